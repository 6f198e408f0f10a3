//! Names of results that a file has already.

use anyhow::bail;
use roce_files::FilePlace;

/// Refuses a place that has a file, unless it is to be replaced. A link is replaced, as everywhere.
pub(crate) fn refuse_taken(place: &FilePlace, overwrite: bool) -> anyhow::Result<()> {
    let path = place.path();
    if !overwrite && path.symlink_metadata().is_ok_and(|about| about.is_file()) {
        bail!(
            "{}: it exists already\nhint: --overwrite replaces it",
            path.display()
        );
    }
    Ok(())
}
