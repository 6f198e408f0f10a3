//! The endpoint that Prometheus scrapes and that takes requests of OTLP: HTTP/1.1 over TCP, with TLS and passwords where a file says so.
//!
//! It answers from memory. Whoever serves metrics gives it a [`EndpointSource`], whose text never waits for hardware or for the analysis.

mod answer;
mod grpc;
mod latest;
mod notices;
mod process;
mod receiver;
mod server;
mod source;
mod tls;
mod users;
mod web_config;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};

pub use latest::{Latest, Texts};
pub use notices::Notices;
use receiver::Receiver;
pub use receiver::{SampleReceiver, Tokens};
pub use server::Counts;
use server::{Limits, SharedState};
pub use source::EndpointSource;
use tls::Certificates;
use users::Users;
use web_config::WebConfig;

/// The default address: this host alone reaches it.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9902";

/// How an endpoint is protected.
#[derive(Clone, Debug, Default)]
pub struct Protection {
    /// The file with TLS and passwords, in the form that Prometheus' exporters share.
    pub web_config: Option<PathBuf>,
    /// Addresses that other hosts reach are allowed without TLS and passwords.
    pub listen_anywhere_unprotected: bool,
}

/// An endpoint that is open, and does not answer yet.
pub struct Endpoint {
    listeners: Vec<TcpListener>,
    tls: Option<Arc<Certificates>>,
    users: Users,
    receiver: Option<Receiver>,
}

impl Endpoint {
    /// Reads the file of `--web-config` and opens the addresses, with the rights that there are now.
    ///
    /// # Errors
    /// The file is not understood, an address is in use, or others could reach it unprotected.
    pub fn open(addresses: &[SocketAddr], protection: &Protection, notices: Notices) -> anyhow::Result<Self> {
        let config = match &protection.web_config {
            Some(path) => WebConfig::read(path)?,
            None => WebConfig::default(),
        };
        let tls = config
            .tls
            .map(|files| Certificates::read(files, notices))
            .transpose()
            .with_context(|| shown(protection.web_config.as_deref()))?
            .map(Arc::new);
        let users = Users::new(config.users);
        if let Some(open) = addresses.iter().find(|address| !address.ip().is_loopback()) {
            if tls.is_none() && users.is_empty() && !protection.listen_anywhere_unprotected {
                bail!(
                    "{open}: other hosts reach this address, and nothing protects it\n\
                     hint: --web-config FILE with TLS or passwords, or --listen-anywhere-unprotected"
                );
            }
            if tls.is_none() && !users.is_empty() {
                (notices.warn)(&format!(
                    "{open}: passwords travel without TLS; tls_server_config protects them"
                ));
            }
            if protection.listen_anywhere_unprotected {
                (notices.warn)(&format!(
                    "{open}: everybody who reaches this address reads the metrics, without a password and without TLS"
                ));
            }
        }
        let listeners = addresses.iter().map(|address| {
            let listener = TcpListener::bind(address).with_context(|| format!("{address}: cannot listen"))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        Ok(Self {
            listeners: listeners.collect::<anyhow::Result<_>>()?,
            tls,
            users,
            receiver: None,
        })
    }

    /// Takes requests of OTLP, too, at `/v1/metrics`. With `tokens` a sender needs one, or a user's password.
    #[must_use]
    pub fn receiving(mut self, tokens: Tokens, samples: Arc<dyn SampleReceiver>) -> Self {
        self.receiver = Some(Receiver::new(tokens, samples));
        self
    }

    /// Its addresses as URLs of the metrics. A port of 0 is the one that the system chose.
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let addresses = self
            .listeners
            .iter()
            .filter_map(|listener| listener.local_addr().ok());
        addresses
            .map(|address| format!("{scheme}://{address}/metrics"))
            .collect()
    }

    /// Folders whose files are read again while it answers.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.tls.as_ref().map_or_else(Vec::new, |tls| tls.folders())
    }

    /// Answers until `stop` is done. `counts` are those of requests and connections.
    ///
    /// # Errors
    /// The system does not let the addresses be waited for.
    pub async fn serve(
        self,
        source: Arc<dyn EndpointSource>,
        counts: Arc<Counts>,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        if let Some(tls) = &self.tls {
            tls.check();
        }
        let mut shared = SharedState::new(source, counts, self.users, self.tls, Limits::default());
        shared.receiver = self.receiver;
        server::serve(server::listening(self.listeners)?, Arc::new(shared), stop).await;
        Ok(())
    }
}

fn shown(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}

/// Reads an address of `--listen`: `127.0.0.1:9902`, `[::1]:9902`, or a port of this host alone.
///
/// # Errors
/// It is no address.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse()
        .map_err(|_| "an IP address and a port, such as 127.0.0.1:9902 or [::]:9902".to_owned())
}
