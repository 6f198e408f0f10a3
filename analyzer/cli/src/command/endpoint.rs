//! Options of whoever serves metrics.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use roce_endpoint::{Endpoint, Notices, Protection};

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
}

impl EndpointArguments {
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
