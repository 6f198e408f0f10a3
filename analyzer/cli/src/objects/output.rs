//! Results that become objects: they are written to a folder of this machine, and from there to the store, those that make them visible last.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use roce_files::Directory;
use roce_store::Location;

use super::input::{as_url, local};
use super::process::Objects;
use super::wire::Cause;

/// Limit of one object's write, with all attempts.
const WRITING: Duration = Duration::from_mins(30);
/// Levels of folders in results: a table, a day, a host, a file.
const MAX_LEVELS: usize = 6;
/// Files of the results of one run.
const MAX_FILES: usize = 100_000;
/// The document that makes the folder of one run complete.
const DOCUMENT: &str = "run.json";

/// A folder on this machine whose files become objects. It is removed with this.
pub(crate) struct ObjectFolder {
    location: Location,
    folder: Directory,
    path: PathBuf,
}

impl ObjectFolder {
    /// Replaces the URL in `output` by a new folder below that of temporary files; `None` where it is a folder already.
    ///
    /// # Errors
    /// The URL is wrong, or the folder cannot be made.
    pub(crate) fn prepare(output: &mut PathBuf) -> anyhow::Result<Option<Self>> {
        local(output);
        let Some(url) = as_url(output) else {
            return Ok(None);
        };
        let location = Location::parse(url)?;
        let name = format!("roce-analyze-{}-{}", std::process::id(), started());
        let path = std::env::temp_dir().join(name);
        let folder = Directory::made(&path)?;
        let folder = folder.ok_or_else(|| anyhow!("{}: it is there already", path.display()))?;
        output.clone_from(&path);
        Ok(Some(Self {
            location,
            folder,
            path,
        }))
    }

    /// The place in the store.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// Fails where the store has results already, unless they are to be replaced.
    ///
    /// # Errors
    /// There are results, or the store cannot be reached.
    pub(crate) fn check(&self, objects: &Objects, overwrite: bool) -> anyhow::Result<()> {
        if overwrite {
            return Ok(());
        }
        let document = self.location.join(DOCUMENT)?.to_string();
        match objects.size(&document) {
            Ok(_) => bail!("{document}: results of a run are there already\nhint: --overwrite replaces them"),
            Err(failure) if failure.cause == Cause::Missing => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Writes all files to the store, those that make results visible last. Returns their number and bytes.
    ///
    /// # Errors
    /// A file cannot be read, or the store fails. What was written before that is not visible as a result.
    pub(crate) fn write(&self, objects: &Objects, overwrite: bool) -> anyhow::Result<(usize, u64)> {
        let mut files = Vec::new();
        collect(&self.folder, "", 0, &mut files)?;
        if overwrite && files.iter().any(|file| file == DOCUMENT) {
            // Without its document, a mixture of two runs is taken for none.
            let document = self.location.join(DOCUMENT)?.to_string();
            objects.remove(&document, WRITING)?;
        }
        files.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
        let mut bytes = 0;
        for name in &files {
            let file = open(&self.folder, name)?;
            bytes += file
                .metadata()
                .with_context(|| self.path.join(name).display().to_string())?
                .len();
            objects.write(&self.location.join(name)?.to_string(), &file, WRITING)?;
        }
        Ok((files.len(), bytes))
    }
}

impl Drop for ObjectFolder {
    fn drop(&mut self) {
        // A file that cannot be removed is in the folder of temporary files.
        let _ = empty(&self.folder, 0);
    }
}

/// Nanoseconds of now: part of a name that nobody else has.
fn started() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_nanos())
}

/// Order in which files become objects: the table `run` makes rows of the others exist, and `run.json` a whole folder.
pub(super) fn rank(name: &str) -> u8 {
    match name.split('/').next() {
        Some(DOCUMENT) => 2,
        Some(table) if table == "run" || table.starts_with("run.") => 1,
        _ => 0,
    }
}

/// Paths of all files below a folder, relative to it.
fn collect(folder: &Directory, below: &str, level: usize, files: &mut Vec<String>) -> anyhow::Result<()> {
    for name in folder.names()? {
        if name.starts_with('.') {
            continue;
        }
        let path = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        let is_folder = Path::new(&folder.path_of(&name)).is_dir();
        match folder.find(&name) {
            Ok(Some(inner)) if is_folder && level < MAX_LEVELS => collect(&inner, &path, level + 1, files)?,
            _ => files.push(path),
        }
        if files.len() > MAX_FILES {
            bail!("{}: more than {MAX_FILES} files", folder.path().display());
        }
    }
    Ok(())
}

/// Opens a file below a folder.
fn open(folder: &Directory, path: &str) -> anyhow::Result<std::fs::File> {
    match path.split_once('/') {
        None => Ok(folder.open(path)?),
        Some((name, rest)) => {
            let inner = folder.find(name)?;
            open(
                &inner.ok_or_else(|| anyhow!("{}: it is gone", folder.path_of(name).display()))?,
                rest,
            )
        }
    }
}

/// Removes everything in a folder.
fn empty(folder: &Directory, level: usize) -> Result<(), roce_files::Error> {
    for name in folder.names()? {
        match folder.find(&name) {
            Ok(Some(inner)) if level < MAX_LEVELS => {
                empty(&inner, level + 1)?;
                drop(inner);
                folder.remove_folder(&name)?;
            }
            _ => folder.remove(&name)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use roce_files::Access;

    use super::*;

    #[test]
    fn what_makes_results_visible_comes_last() {
        let mut files = [
            "run.json",
            "run/date=2026-01-01/host=h7/x.parquet",
            "timeline/date=2026-01-01/host=h7/x.parquet",
            "runs.parquet",
            "report.html",
        ];
        files.sort_by_key(|name| rank(name));
        assert_eq!(files.last(), Some(&"run.json"));
        assert_eq!(files[3], "run/date=2026-01-01/host=h7/x.parquet");
    }

    #[test]
    fn the_folder_has_all_files_and_goes_away() {
        let mut path = PathBuf::from("s3://b/ds/");
        let folder = ObjectFolder::prepare(&mut path).unwrap().unwrap();
        assert_eq!(folder.location().to_string(), "s3://b/ds");
        let inner = folder.folder.below("run", Access::Private).unwrap();
        let day = inner.below("date=2026-01-01", Access::Private).unwrap();
        drop(day.create("x.parquet", false, Access::Private).unwrap());
        drop(folder.folder.create("run.json", false, Access::Private).unwrap());
        drop(
            folder
                .folder
                .create(".flows.tmp", false, Access::Private)
                .unwrap(),
        );
        let mut files = Vec::new();
        collect(&folder.folder, "", 0, &mut files).unwrap();
        files.sort();
        assert_eq!(files, ["run.json", "run/date=2026-01-01/x.parquet"]);
        assert!(open(&folder.folder, "run/date=2026-01-01/x.parquet").is_ok());
        drop((inner, day, folder));
        assert!(!path.exists());
        let mut plain = PathBuf::from("file:///data/ds");
        assert!(ObjectFolder::prepare(&mut plain).unwrap().is_none());
        assert_eq!(plain, PathBuf::from("/data/ds"));
    }
}
