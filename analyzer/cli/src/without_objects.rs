//! Builds without object stores: a URL of one is an error that says so.

use std::path::PathBuf;

use anyhow::bail;

/// Nothing is prepared.
#[derive(Default)]
pub(crate) struct ObjectRun(());

impl ObjectRun {
    /// Fails for URLs of stores.
    pub(crate) fn prepare(
        captures: &mut [PathBuf],
        output: &mut Option<PathBuf>,
        _: bool,
    ) -> anyhow::Result<Self> {
        for path in captures.iter_mut().chain(output) {
            let Some(text) = path.to_str() else { continue };
            if let Some(local) = text.strip_prefix("file://").filter(|path| path.starts_with('/')) {
                *path = PathBuf::from(local);
                continue;
            }
            if ["s3://", "gs://", "az://"]
                .iter()
                .any(|scheme| text.starts_with(scheme))
            {
                bail!(
                    "{text}: this roce-analyze was built without object stores\nhint: build it with `--features object-store`"
                );
            }
        }
        Ok(Self(()))
    }

    /// False.
    #[expect(clippy::unused_self, reason = "builds with object stores look at the run")]
    pub(crate) fn has_objects(&self) -> bool {
        false
    }

    /// Does nothing.
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "builds with object stores can fail here"
    )]
    pub(crate) fn finish(&self, _: bool) -> anyhow::Result<()> {
        Ok(())
    }
}
