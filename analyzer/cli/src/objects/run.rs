//! A run whose captures or results are objects: what is prepared before it gives up its rights, and what follows its end.

use std::sync::Arc;

use super::input::prepare_inputs;
use super::output::ObjectFolder;
use super::process::Objects;
use crate::command::invocation::Places;
use crate::output::messages;

/// The process and the folder of a run, where it has any.
#[derive(Default)]
pub(crate) struct ObjectRun {
    objects: Option<Arc<Objects>>,
    folder: Option<ObjectFolder>,
    overwrite: bool,
    quiet: bool,
}

impl ObjectRun {
    /// Prepares what URLs among the `places` need. They become what the run can use.
    ///
    /// # Errors
    /// A URL is wrong, or there are results already.
    pub(crate) fn prepare(places: Places<'_>) -> anyhow::Result<Self> {
        let Places {
            mut captures,
            results,
        } = places;
        let (mut overwrite, mut quiet) = (false, false);
        let mut folder = None;
        if let Some(results) = results {
            (overwrite, quiet) = (results.overwrite, results.quiet);
            folder = ObjectFolder::prepare(results.path)?;
        }
        let objects = prepare_inputs(&mut captures, folder.as_ref().map(ObjectFolder::location))?;
        if let (Some(folder), Some(objects)) = (&folder, &objects) {
            folder.check(objects, overwrite)?;
        }
        Ok(Self {
            objects,
            folder,
            overwrite,
            quiet,
        })
    }

    /// The run has ended well: its results become objects.
    ///
    /// # Errors
    /// The store fails. Nothing of the run is visible then as a result.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        let (Some(folder), Some(objects)) = (&self.folder, &self.objects) else {
            return Ok(());
        };
        let (files, bytes) = folder.write(objects, self.overwrite)?;
        if !self.quiet {
            messages::wrote(&format!("{}: {files} objects, {bytes} bytes", folder.location()));
        }
        Ok(())
    }
}
