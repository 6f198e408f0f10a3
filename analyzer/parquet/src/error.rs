//! Errors of datasets; each names the file or folder.

use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;

/// Why a dataset could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder has a dataset, and `overwrite` was not set.
    #[error("{} holds a dataset already ({}); hint: give another folder, or --overwrite", dir.display(), found.display())]
    Exists {
        /// The folder.
        dir: PathBuf,
        /// A file of the dataset in it.
        found: PathBuf,
    },
    /// A table's folder has a file that no run has made. Queries would read it as rows of the run.
    #[error("{} has a file that is no part of a dataset ({}); hint: give another folder", dir.display(), found.display())]
    Foreign {
        /// The folder.
        dir: PathBuf,
        /// The file.
        found: PathBuf,
    },
    /// A file or folder could not be made, renamed or removed, or is none that is read or written.
    #[error(transparent)]
    Files(#[from] roce_files::Error),
    /// A file or folder could not be read.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The caller wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// Another process compacts the dataset.
    #[error("{}: another process compacts this dataset", dir.display())]
    Compacting {
        /// The folder.
        dir: PathBuf,
    },
    /// A place that is no folder refuses a file.
    #[error("cannot {action} {}", path.display())]
    Storage {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be written or read as Parquet.
    #[error("cannot {action} {} as Parquet: {reason}", path.display())]
    Parquet {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The dataset was finished before.
    #[error("the dataset in {} is finished already", dir.display())]
    Finished {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder has no file of this table.
    #[error("{} holds no table {table:?}; hint: a dataset has a folder with part-0.parquet for each table", dir.display())]
    NoTable {
        /// The folder.
        dir: PathBuf,
        /// The table.
        table: String,
    },
    /// A file was written by another version, whose columns may mean something else.
    #[error("{}: results of schema version {found} cannot be read, only of {}; hint: analyse the capture again", path.display(), crate::SCHEMA_VERSION)]
    OtherSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: String,
    },
    /// A file has no such column, or holds something else in it than this program's column of that name does.
    #[error("{}: column {column:?} is missing, or differs from this version's; hint: analyse the capture again", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn parquet(action: &'static str, path: &Path) -> impl FnOnce(PolarsError) -> Self {
        let path = path.to_path_buf();
        move |error| Self::Parquet {
            action,
            path,
            reason: error.to_string(),
        }
    }
}
