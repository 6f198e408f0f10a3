//! Where a capture is written to: a file, memory, or nowhere.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// A file, memory, or nowhere.
#[derive(Debug)]
pub(crate) enum Output {
    Memory(Vec<u8>),
    File(BufWriter<File>),
    Discard,
}

impl Output {
    /// What was written, if it was to memory.
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
