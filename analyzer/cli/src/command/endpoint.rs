//! Options of whoever serves metrics.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use roce_endpoint::{Endpoint, Notices, Protection, Tokens};

use crate::output::messages;

// Options of whoever serves metrics. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EndpointArguments {
    /// TLS and passwords, from a FILE in the form that Prometheus' exporters share (tls_server_config, basic_auth_users)
    #[arg(long, value_name = "FILE")]
    web_config: Option<PathBuf>,

    /// Allow an address that other hosts reach without TLS and passwords: everybody who reaches it reads the metrics
    #[arg(long, conflicts_with = "web_config")]
    listen_anywhere_unprotected: bool,

    /// Take the metrics of switches and Collectors, too: OTLP/HTTP at /v1/metrics of the same address (docs/otlp.md)
    #[arg(long)]
    otlp: bool,

    /// Take OTLP only from who has a token of FILE, which has one in each line, or a password
    #[arg(long, value_name = "FILE", requires = "otlp")]
    otlp_tokens: Option<PathBuf>,
}

impl EndpointArguments {
    /// The tokens of who may send, if OTLP is taken. They are read with the rights that there are now.
    ///
    /// # Errors
    /// The file of tokens cannot be used.
    pub(crate) fn otlp(&self) -> anyhow::Result<Option<Tokens>> {
        if !self.otlp {
            return Ok(None);
        }
        let tokens = self.otlp_tokens.as_deref().map(Tokens::read).transpose()?;
        Ok(Some(tokens.unwrap_or_default()))
    }

    /// Opens the addresses, protected as these options say. Warnings are about `metrics`.
    ///
    /// # Errors
    /// As those of [`Endpoint::open`].
    pub(crate) fn open(&self, addresses: &[SocketAddr]) -> anyhow::Result<Endpoint> {
        let protection = Protection {
            web_config: self.web_config.clone(),
            listen_anywhere_unprotected: self.listen_anywhere_unprotected,
        };
        let notices = Notices {
            warn: |text| messages::warn("metrics", text),
            note: |text| messages::note("metrics", text),
        };
        Endpoint::open(addresses, &protection, notices)
    }
}
