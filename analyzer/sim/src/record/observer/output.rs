//! Destinations of a capture: a file, memory, or nothing.

use std::io::{self, Write};

/// A file, memory, or nowhere.
#[derive(Debug)]
pub(crate) enum Output {
    Memory(Vec<u8>),
    File(roce_files::Output),
    Discard,
}

impl Output {
    /// Gives a file its name.
    pub(crate) fn finish(self) -> Result<(), roce_files::Error> {
        match self {
            Self::File(file) => file.finish(),
            Self::Memory(_) | Self::Discard => Ok(()),
        }
    }

    /// Written bytes, if they went to memory.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Memory(bytes) => bytes,
            Self::File(_) | Self::Discard => Vec::new(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Memory(memory) => memory.write(bytes),
            Self::File(file) => file.write(bytes),
            Self::Discard => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Memory(_) | Self::Discard => Ok(()),
            Self::File(file) => file.flush(),
        }
    }
}
