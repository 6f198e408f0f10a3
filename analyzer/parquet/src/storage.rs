//! Where the files of a fleet dataset go: a folder here, an object store in other crates. It knows paths and bytes, not tables.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use roce_files::{Access, Directory, UnfinishedFile};

use crate::error::Error;

/// A place that takes the files of a fleet dataset.
///
/// Paths are relative, their parts joined by `/`: `flows/date=2026-11-24/host=h7/0cc16b3648ffa64b.parquet`. A part is made of letters, digits
/// and `._=%-`, begins with a letter or a digit, and has at most 255 bytes.
///
/// Several processes may write the same path at the same time, with the same bytes: each file is seen whole, and that of the last one stays.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Begins the file at `path`: what takes its bytes, and what gives it its name. No reader sees it before it is published; a process that
    /// is killed leaves nothing that readers see.
    ///
    /// # Errors
    /// When it cannot be made.
    fn begin(&self, path: &str) -> Result<BegunFile, Error>;

    /// Removes the file at `path`; it is no error if there is none.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&self, path: &str) -> Result<(), Error>;

    /// Names of the files and folders in the folder at `path`, in no order; none if there is no such folder. Files that are not published may be
    /// among them: their names begin with a dot.
    ///
    /// # Errors
    /// When it cannot be read.
    fn list(&self, path: &str) -> Result<Vec<String>, Error>;

    /// The file at `path`, for messages.
    fn shown(&self, path: &str) -> PathBuf;

    /// The dataset as a folder of this machine; `None` if it is none.
    fn folder(&self) -> Option<&FolderStorage> {
        None
    }
}

/// A file that was begun: what takes its bytes, and what gives it its name.
pub type BegunFile = (Box<dyn Write + Send>, Box<dyn PendingFile>);

/// A file that is written and that nobody sees. Dropped before it is published, it leaves nothing behind.
pub trait PendingFile: Send {
    /// Its path until it is published, for messages.
    fn temporary_path(&self) -> PathBuf;

    /// Moves everything that was written to where it will stay, so that publishing is one small step. The writer has been flushed.
    ///
    /// # Errors
    /// When the place takes no more.
    fn sync(&mut self) -> Result<(), Error>;

    /// Gives the file its name, in place of one that has it.
    ///
    /// # Errors
    /// When that fails: the older file is still there.
    fn publish(&mut self) -> Result<(), Error>;
}

impl PendingFile for UnfinishedFile {
    fn temporary_path(&self) -> PathBuf {
        Self::temporary_path(self)
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(Self::sync(self)?)
    }

    fn publish(&mut self) -> Result<(), Error> {
        Ok(Self::publish(self)?)
    }
}

/// A dataset in a folder. Folders in it stay when they are empty: other processes write into them, too.
#[derive(Clone, Debug)]
pub struct FolderStorage {
    root: Directory,
    access: Access,
}

impl FolderStorage {
    /// Opens the folder that a user named, and makes it if it is missing.
    ///
    /// # Errors
    /// When it cannot be opened or made.
    pub fn open(root: &Path, access: Access) -> Result<Self, Error> {
        Ok(Self {
            root: Directory::named(root, access)?.kept(),
            access,
        })
    }

    /// The folder.
    pub const fn root(&self) -> &Directory {
        &self.root
    }

    /// The folder of the file at `path`, made if it is missing, and the file's name.
    fn place<'a>(&self, path: &'a str) -> Result<(Directory, &'a str), Error> {
        let mut folder = self.root.clone();
        let mut parts = path.split('/');
        let name = parts.next_back().unwrap_or_default();
        for part in parts {
            folder = folder.below(part, self.access)?.kept();
        }
        Ok((folder, name))
    }

    /// The folder of that path; `None` if it is missing.
    ///
    /// # Errors
    /// When a part of it is a link, or cannot be opened.
    pub fn find(&self, path: &str) -> Result<Option<Directory>, Error> {
        let mut folder = self.root.clone();
        for part in path.split('/') {
            match folder.find(part)? {
                Some(found) => folder = found,
                None => return Ok(None),
            }
        }
        Ok(Some(folder))
    }
}

impl Storage for FolderStorage {
    fn begin(&self, path: &str) -> Result<BegunFile, Error> {
        let (folder, name) = self.place(path)?;
        let (file, unfinished) = folder.begin_shared(name, self.access)?;
        Ok((Box::new(file), Box::new(unfinished)))
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        match path.rsplit_once('/') {
            None => self.root.remove(path)?,
            Some((folder, name)) => {
                if let Some(folder) = self.find(folder)? {
                    folder.remove(name)?;
                }
            }
        }
        Ok(())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Error> {
        match self.find(path)? {
            Some(folder) => Ok(folder.names()?),
            None => Ok(Vec::new()),
        }
    }

    fn shown(&self, path: &str) -> PathBuf {
        self.root.path_of(path)
    }

    fn folder(&self) -> Option<&FolderStorage> {
        Some(self)
    }
}
