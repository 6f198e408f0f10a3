//! Errors of the simulator.

use std::io;

use thiserror::Error;

/// Why a capture could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be written.
    #[error("cannot write {file}")]
    Write {
        /// Its name.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A file could not be made.
    #[error(transparent)]
    Files(#[from] roce_files::Error),
    /// A frame was offered to a tap that its file does not have.
    #[error("{file} has {taps} taps, tap {tap} is none of them")]
    NoSuchTap {
        /// The name of the file.
        file: String,
        /// The tap that was named, counted from 0.
        tap: usize,
        /// Number of taps.
        taps: usize,
    },
    /// A scenario is not understood, or describes what cannot be.
    #[error("scenario: {0}")]
    Scenario(String),
}
