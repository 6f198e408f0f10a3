//! Reads files that options name: regular ones, within bounds.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{self, CWD, FileType, Mode, OFlags};

use crate::content::content;
use crate::error::Error;
use crate::open::kind;

/// Opens a regular file to read. FIFOs and devices are refused and never waited for.
///
/// # Errors
/// If it cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> Result<File, Error> {
    let failed = || Error::io("opened", path);
    // O_NONBLOCK: a FIFO is opened without its writer, and files of the kernel that wait for events (kmsg, trace_pipe) do not wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::openat(CWD, path, flags, Mode::empty()).map_err(|errno| failed()(errno))?;
    let found = fs::fstat(&file).map_err(|errno| failed()(errno))?;
    let kind = match kind(found.st_mode) {
        FileType::RegularFile => return Ok(File::from(file)),
        FileType::Directory => "a folder",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Err(Error::NotRegular {
        path: path.to_path_buf(),
        kind,
    })
}

/// Reads a regular file of text, at most `limit` bytes, whatever length it states.
///
/// # Errors
/// If it cannot be read, is no regular file, is larger, or is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(Error::io("read", path))?;
    text_within(bytes, limit).map_err(|fault| {
        let path = path.to_path_buf();
        match fault {
            TextFault::Foreign(found) => Error::NoText { path, found },
            TextFault::TooLarge => Error::TooLarge { path, limit },
        }
    })
}

/// The reason why bytes are no text.
pub(crate) enum TextFault {
    /// They are something else, in words.
    Foreign(&'static str),
    TooLarge,
}

/// The text that bytes are, at most `limit` of them.
pub(crate) fn text_within(bytes: Vec<u8>, limit: u64) -> Result<String, TextFault> {
    if let Some(found) = content(&bytes) {
        return Err(TextFault::Foreign(found));
    }
    if bytes.len() as u64 > limit {
        return Err(TextFault::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| TextFault::Foreign("data, or a text that is not UTF-8"))
}
