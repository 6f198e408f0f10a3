//! A run whose captures or results are objects: what is prepared before it gives up its rights, and what follows its end.

use std::path::PathBuf;
use std::sync::Arc;

use super::input::prepare_inputs;
use super::output::ObjectFolder;
use super::process::Objects;
use crate::output::messages;

/// The process and the folder of a run, where it has any.
#[derive(Default)]
pub(crate) struct ObjectRun {
    objects: Option<Arc<Objects>>,
    folder: Option<ObjectFolder>,
    overwrite: bool,
}

impl ObjectRun {
    /// Prepares what URLs among the `captures`, and in the place of the folder of results, need. Both become what the run can use.
    ///
    /// # Errors
    /// A URL is wrong, or there are results already.
    pub(crate) fn prepare(
        captures: &mut [PathBuf],
        output: &mut Option<PathBuf>,
        overwrite: bool,
    ) -> anyhow::Result<Self> {
        let folder = ObjectFolder::prepare(output)?;
        let objects = prepare_inputs(captures, folder.as_ref().map(ObjectFolder::location))?;
        if let (Some(folder), Some(objects)) = (&folder, &objects) {
            folder.check(objects, overwrite)?;
        }
        Ok(Self {
            objects,
            folder,
            overwrite,
        })
    }

    /// True if the folder of results is one of this machine only for the time of the run.
    pub(crate) fn has_objects(&self) -> bool {
        self.folder.is_some()
    }

    /// The run has ended well: its results become objects.
    ///
    /// # Errors
    /// The store fails. Nothing of the run is visible then as a result.
    pub(crate) fn finish(&self, quiet: bool) -> anyhow::Result<()> {
        let (Some(folder), Some(objects)) = (&self.folder, &self.objects) else {
            return Ok(());
        };
        let (files, bytes) = folder.write(objects, self.overwrite)?;
        if !quiet {
            messages::wrote(&format!("{}: {files} objects, {bytes} bytes", folder.location()));
        }
        Ok(())
    }
}
