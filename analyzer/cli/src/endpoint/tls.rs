//! TLS of the endpoint, by rustls: certificate and key are read once, before the process gives up its rights.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

use super::web_config::{ClientAuth, Tls};

/// Larger files of certificates are not read.
const MAX_BYTES: u64 = 1 << 20;

/// The server's side of TLS.
///
/// # Errors
/// A file cannot be read, or key and certificate do not fit.
pub(super) fn server_config(tls: &Tls) -> anyhow::Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: &[_] = if tls.only_tls13 {
        &[&TLS13]
    } else {
        &[&TLS12, &TLS13]
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .context("TLS")?;
    let builder = match (tls.client_auth, &tls.client_ca) {
        (ClientAuth::IfGiven | ClientAuth::Required, Some(path)) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots
                    .add(certificate)
                    .with_context(|| path.display().to_string())?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if tls.client_auth == ClientAuth::IfGiven {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            builder.with_client_cert_verifier(verifier.build().with_context(|| path.display().to_string())?)
        }
        _ => builder.with_no_client_auth(),
    };
    let text = roce_files::read_text(&tls.key, MAX_BYTES)?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .ok()
        .with_context(|| format!("{}: no private key in PEM", tls.key.display()))?;
    let mut config = builder
        .with_single_cert(certificates(&tls.certificate)?, key)
        .with_context(|| format!("{}, {}", tls.certificate.display(), tls.key.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = roce_files::read_text(path, MAX_BYTES)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .ok()
        .filter(|found: &Vec<_>| !found.is_empty())
        .with_context(|| format!("{}: no certificate in PEM", path.display()))?;
    Ok(found)
}
