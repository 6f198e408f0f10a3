//! Errors of reading and writing; each names the file or folder.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file or folder is not written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses.
    #[error("{}: cannot be {action}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The refused action: `written`, `renamed`.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is there already, and must not be replaced.
    #[error("{}: already exists\nhint: give another name, or --overwrite", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The output folder is a symbolic link that another user made.
    #[error(
        "{}: a symbolic link of another user (uid {owner}): nothing is written through it\nhint: give the folder that it leads to",
        path.display()
    )]
    ForeignLink {
        /// The link.
        path: PathBuf,
        /// User who owns it.
        owner: u32,
    },
    /// A folder inside the output folder is a symbolic link.
    #[error("{}: a symbolic link: folders of results are not followed through links\nhint: remove it, or give another folder", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A file to read is no regular file.
    #[error("{}: {kind}, not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
        /// Its kind, with an article.
        kind: &'static str,
    },
    /// A file to read is no text.
    #[error("{}: {found}, where a text was expected", path.display())]
    NoText {
        /// The file.
        path: PathBuf,
        /// Its kind, with an article.
        found: &'static str,
    },
    /// A file to read has more bytes than it may.
    #[error("{}: larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
}

impl Error {
    /// An error of the system at `path`.
    pub fn io<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> Self + use<E> {
        let path = path.to_path_buf();
        move |source| Self::Io {
            path,
            action,
            source: source.into(),
        }
    }

    /// True if the system says that the file or folder does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
