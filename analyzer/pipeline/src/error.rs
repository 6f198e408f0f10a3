//! Errors of a run, besides those of its sinks.

use std::io;
use std::path::{Path, PathBuf};

/// A file, a folder or a device cannot be read or written; the text names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses a file.
    #[error("{}: {what}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A file or folder of results cannot be made, or one to read is no regular file.
    #[error(transparent)]
    Files(#[from] roce_files::Error),
    /// A device cannot be captured from any more.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Device(#[from] roce_capture::live::Error),
    /// A dataset cannot be read or written.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Dataset(#[from] roce_parquet::Error),
    /// A day of a dataset has more than is held in memory.
    #[cfg(feature = "parquet")]
    #[error("more than {limit} {what} in one day")]
    TooMany {
        /// Name of what there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A folder has tables and no document.
    #[cfg(feature = "parquet")]
    #[error(
        "{}: the run that wrote it did not end: there is no {document}\nhint: analyse its captures, or its recording",
        dir.display(), document = crate::names::DOCUMENT
    )]
    Unfinished {
        /// The folder.
        dir: PathBuf,
    },
    /// A folder has neither.
    #[cfg(feature = "parquet")]
    #[error(
        "{}: holds no results: there is no {document}\nhint: give a folder that -o wrote",
        dir.display(), document = crate::names::DOCUMENT
    )]
    NoResults {
        /// The folder.
        dir: PathBuf,
    },
    /// The document of a folder cannot be understood.
    #[cfg(feature = "parquet")]
    #[error("{}", path.display())]
    Document {
        /// The document.
        path: PathBuf,
        /// Why.
        source: roce_report::Error,
    },
    /// A file of samples cannot be opened or decompressed.
    #[error(transparent)]
    Bytes(#[from] roce_capture::Error),
    /// A line of a file of samples is no row.
    #[error(
        "{}: line {line} {what}\nhint: each line is a JSON object with the columns of the table `samples`, or a request of OTLP",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Description of the error.
        what: String,
    },
    /// A folder whose samples are wanted has none.
    #[error(
        "{}: holds no samples: neither a dataset with the table `samples` nor a recording\nhint: give a folder that `live -o` or \
         `host counters -o` wrote, or a file of JSON lines",
        dir.display()
    )]
    NoSamples {
        /// The folder.
        dir: PathBuf,
    },
    /// A stored flow has a number that does not belong to its addresses.
    #[cfg(feature = "parquet")]
    #[error("{}: table flows: flow {flow} is not the one that its addresses and numbers name", dir.display())]
    OtherFlow {
        /// The folder.
        dir: PathBuf,
        /// The number.
        flow: roce_model::FlowId,
    },
}

impl Error {
    /// Makes the error of a file out of the system's.
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, what, source }
    }
}

/// An error with its causes, for a message that names its file already: without that name.
pub(crate) fn reason(path: Option<&Path>, error: &dyn std::error::Error) -> String {
    let text = text(error);
    let own = path.map(|path| format!("{}: ", path.display()));
    own.and_then(|own| Some(text.strip_prefix(&own)?.to_owned()))
        .unwrap_or(text)
}

/// An error with its causes, on one line.
pub(crate) fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
