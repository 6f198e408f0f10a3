//! The manifest of a run while several threads change it: it is on disk after each change.

use std::sync::{Mutex, PoisonError};

use roce_files::Directory;
use roce_remote::fleet::manifest::{HostRow, Manifest};

use crate::output::messages;

/// A manifest and its folder.
pub(super) struct Book {
    folder: Directory,
    manifest: Mutex<Manifest>,
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
            manifest: Mutex::new(manifest),
        })
    }

    /// The folder with the manifest and the captures.
    pub(super) fn folder(&self) -> &Directory {
        &self.folder
    }

    /// Changes the manifest, and writes it. One that cannot be written is warned about: captures are not given up for it.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Manifest) -> R) -> R {
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut manifest);
        if let Err(error) = manifest.write(&self.folder) {
            messages::report(&error.into());
        }
        result
    }

    /// Changes the row of a host.
    pub(super) fn host<R>(&self, at: usize, change: impl FnOnce(&mut HostRow) -> R) -> Option<R> {
        self.change(|manifest| manifest.hosts.get_mut(at).map(change))
    }

    /// The manifest as it is now.
    pub(super) fn now(&self) -> Manifest {
        self.manifest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
