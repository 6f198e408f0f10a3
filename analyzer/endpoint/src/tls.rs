//! TLS of the endpoint, by rustls. Certificate and key are read before the process gives up its rights, and again when they change on
//! disk: each handshake looks at them, as Prometheus' exporter-toolkit does. A new file that cannot be used leaves the one before in use.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use anyhow::Context;
use roce_files::parent_of;
use roce_metrics::{Exposition, TLS_LOADED, TLS_RELOAD_FAILURES};
use roce_model::value_of;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

use super::notices::Notices;
use super::web_config::{ClientAuth, Tls};

/// Larger files of certificates are not read.
const MAX_BYTES: u64 = 1 << 20;

/// Stamp by which a changed file is noticed: device, inode, length, and the times of its last changes in seconds and
/// nanoseconds. `None`: there is none.
type Stamp = Option<(u64, u64, u64, [i64; 4])>;

/// Certificate, key and authority of clients, as their files have them.
pub(super) struct Certificates {
    files: Tls,
    notices: Notices,
    /// One thread looks at the files; others use what there is meanwhile.
    turn: Mutex<()>,
    state: Mutex<State>,
}

struct State {
    config: Arc<ServerConfig>,
    /// Files that were read last, whether they could be used or not.
    stamps: Vec<Stamp>,
    /// When those in use were read.
    loaded: SystemTime,
    /// Changes that could not be used.
    failures: u64,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or key and certificate do not fit.
    pub(super) fn read(files: Tls, notices: Notices) -> anyhow::Result<Self> {
        // First the stamps: a file that changes meanwhile is read again.
        let stamps = stamps(&files);
        let state = State {
            config: server_config(&files)?,
            stamps,
            loaded: SystemTime::now(),
            failures: 0,
        };
        Ok(Self {
            files,
            notices,
            turn: Mutex::default(),
            state: Mutex::new(state),
        })
    }

    /// Configuration for a handshake: of the files as they are now, or of the last ones that could be used. A file system that hangs holds up
    /// the handshake that looks at it, and no other.
    pub(super) async fn current(self: &Arc<Self>) -> Arc<ServerConfig> {
        let looking = Arc::clone(self);
        // A panic in it has been reported.
        let _ = tokio::task::spawn_blocking(move || looking.look()).await;
        Arc::clone(&self.state().config)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files if they have changed.
    fn look(&self) {
        let Ok(_turn) = self.turn.try_lock() else { return };
        let now = stamps(&self.files);
        if self.state().stamps == now {
            return;
        }
        let read = server_config(&self.files);
        let mut state = self.state();
        state.stamps = now;
        match read {
            Ok(config) => {
                state.config = config;
                state.loaded = SystemTime::now();
                drop(state);
                (self.notices.note)("the certificate has changed: it was read again");
            }
            Err(error) => {
                state.failures += 1;
                drop(state);
                (self.notices.warn)(&format!(
                    "{error:#}; the certificate that was read before stays in use"
                ));
            }
        }
    }

    /// Adds the metrics of this moment.
    pub(super) fn add(&self, into: &mut Exposition) {
        let state = self.state();
        let loaded = state.loaded.duration_since(SystemTime::UNIX_EPOCH);
        into.own(TLS_LOADED, &[], loaded.unwrap_or_default().as_secs_f64());
        into.own(TLS_RELOAD_FAILURES, &[], value_of(state.failures));
    }

    /// Folders of the files, those that links lead to included.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = paths(&self.files)
            .flat_map(|path| {
                let real = path.canonicalize().ok();
                std::iter::once(path.to_owned()).chain(real)
            })
            .map(|path| parent_of(&path).to_owned())
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// Says which files can no longer be read, now that rights are given up: changes of those are not seen.
    pub(super) fn check(&self) {
        for path in paths(&self.files) {
            if let Err(error) = roce_files::open_regular(path) {
                (self.notices.warn)(&format!(
                    "{error}; a new one takes effect at the next start, or at once if that user may read it"
                ));
            }
        }
    }
}

fn paths(files: &Tls) -> impl Iterator<Item = &Path> {
    let own = [files.certificate.as_path(), &files.key];
    own.into_iter().chain(files.client_ca.as_deref())
}

fn stamps(files: &Tls) -> Vec<Stamp> {
    let stamp = |path: &Path| {
        let file = std::fs::metadata(path).ok()?;
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        Some((file.dev(), file.ino(), file.len(), times))
    };
    paths(files).map(stamp).collect()
}

/// The server's side of TLS.
///
/// # Errors
/// A file cannot be read, or key and certificate do not fit.
fn server_config(tls: &Tls) -> anyhow::Result<Arc<ServerConfig>> {
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
