//! The manifest of a run while several threads change it: it is on disk after each change.
//!
//! Rows of many hosts change at the same moments. A row is then on disk a little later, so that a run writes no more than a few manifests a
//! second for each hundred hosts: everything that a later command needs to find the captures is written before they start.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use roce_files::Directory;
use roce_remote::fleet::manifest::{HostRow, Manifest};

use crate::output::messages;

/// Time between two writings for rows, for each host.
const PAUSE_PER_HOST: Duration = Duration::from_millis(2);

/// A manifest and its folder.
pub(super) struct Book {
    folder: Directory,
    kept: Mutex<KeptManifest>,
}

struct KeptManifest {
    manifest: Manifest,
    written: Instant,
    /// It differs from what is on disk.
    is_changed: bool,
}

impl Book {
    /// Begins with a manifest, and writes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn new(folder: Directory, manifest: Manifest) -> anyhow::Result<Self> {
        manifest.write(&folder)?;
        Ok(Self {
            folder,
            kept: Mutex::new(KeptManifest {
                manifest,
                written: Instant::now(),
                is_changed: false,
            }),
        })
    }

    /// The folder with the manifest and the captures.
    pub(super) fn folder(&self) -> &Directory {
        &self.folder
    }

    /// Changes the manifest, and writes it. One that cannot be written is an error message: captures are not given up for it.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Manifest) -> R) -> R {
        let mut kept = self.kept();
        let result = change(&mut kept.manifest);
        self.write(&mut kept);
        result
    }

    /// Changes the row of a host, and writes the manifest if the last time was long enough ago.
    pub(super) fn host<R>(&self, at: usize, change: impl FnOnce(&mut HostRow) -> R) -> Option<R> {
        let mut kept = self.kept();
        let result = kept.manifest.hosts.get_mut(at).map(change);
        kept.is_changed = true;
        self.write_if_due(&mut kept);
        result
    }

    /// Writes changes of rows that wait for it. Called now and then; cheap.
    pub(super) fn settle(&self) {
        self.write_if_due(&mut self.kept());
    }

    /// The manifest as it is now.
    pub(super) fn now(&self) -> Manifest {
        self.kept().manifest.clone()
    }

    fn kept(&self) -> MutexGuard<'_, KeptManifest> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_if_due(&self, kept: &mut KeptManifest) {
        let hosts = u32::try_from(kept.manifest.hosts.len()).unwrap_or(u32::MAX);
        if kept.is_changed && kept.written.elapsed() >= PAUSE_PER_HOST.saturating_mul(hosts) {
            self.write(kept);
        }
    }

    fn write(&self, kept: &mut KeptManifest) {
        kept.written = Instant::now();
        kept.is_changed = false;
        if let Err(error) = kept.manifest.write(&self.folder) {
            messages::report(&error.into());
        }
    }
}
