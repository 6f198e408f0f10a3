//! Everything that can go wrong with a capture file, each with the file, the offset, and what was expected.

use std::fmt;
use std::io;

use roce_model::text::shell_word;

use crate::summary::Compression;

/// Why a capture cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be opened.
    #[error("{file}: cannot be opened")]
    Open {
        /// The file.
        file: String,
        /// Cause, from the system.
        source: io::Error,
    },
    /// The system failed to read it.
    #[error("{file}: cannot be read at byte {offset}")]
    Read {
        /// The file.
        file: String,
        /// Bytes read before.
        offset: u64,
        /// Cause, from the system.
        source: io::Error,
    },
    /// Its compression is broken or cut off. What could be decompressed before was delivered.
    #[error(
        "{file}: {compression} stream fails after {offset} decompressed bytes (about byte {stored} of the file)"
    )]
    Decompress {
        /// The file.
        file: String,
        /// The compression.
        compression: Compression,
        /// Bytes decompressed before.
        offset: u64,
        /// Bytes of the file read before, which is a little further than where it fails.
        stored: u64,
        /// Cause, from the decompressor.
        source: io::Error,
    },
    /// It is longer than the reader's limit. What came before was delivered.
    #[error("{file}: longer than {limit} bytes{}: read no further", within(*.compression))]
    TooLong {
        /// The file.
        file: String,
        /// The limit.
        limit: u64,
        /// The compression around it, if any.
        compression: Option<Compression>,
    },
    /// There is nothing in it.
    #[error("{file}: empty{}; expected a capture (pcap or pcapng)", within(*.compression))]
    Empty {
        /// The file.
        file: String,
        /// The compression it is empty inside of.
        compression: Option<Compression>,
    },
    /// It begins like none of the formats.
    #[error(
        "{file}: {}{}; expected {}{}",
        begins.format().map_or_else(|| format!("not a capture file: {begins}"), |format| format!("a file of {format}")),
        within(*.compression),
        if compression.is_some() { "pcap or pcapng" } else { "pcap, pcapng, gzip or zstd" },
        if begins.format().is_some() { format!("\nhint: editcap -F pcapng {} converted.pcapng", shell_word(file)) } else { String::new() }
    )]
    NotCapture {
        /// The file.
        file: String,
        /// Kind of file that the first bytes suggest.
        begins: Begins,
        /// The compression it begins like that inside of.
        compression: Option<Compression>,
    },
    /// A record or a block makes no sense. Everything before it was delivered.
    #[error("{file}: byte {offset}{}: {fault}", within(*.compression))]
    Corrupt {
        /// The file.
        file: String,
        /// Start of the record or block, in bytes of the decompressed file.
        offset: u64,
        /// The compression around it, if any.
        compression: Option<Compression>,
        /// Fault of the record or block.
        fault: Fault,
    },
}

impl Error {
    /// True if the system failed, and not what is in the file: another reading may end otherwise.
    pub fn is_of_system(&self) -> bool {
        match self {
            Self::Open { .. } | Self::Read { .. } => true,
            Self::Decompress { source, .. } => source.raw_os_error().is_some(),
            _ => false,
        }
    }
}

/// " (inside of gzip)", where there is a compression.
fn within(compression: Option<Compression>) -> String {
    compression.map_or_else(String::new, |compression| {
        format!(" of the data inside of {compression}")
    })
}

/// The first bytes of a file, up to four, and the kind of file that begins so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begins {
    bytes: [u8; 4],
    count: usize,
    kind: Option<&'static str>,
}

impl Begins {
    pub(crate) fn new(prefix: &[u8]) -> Self {
        let mut bytes = [0; 4];
        let count = prefix.len().min(bytes.len());
        for (to, from) in bytes.iter_mut().zip(prefix) {
            *to = *from;
        }
        let text = || roce_files::is_text(prefix).then_some("a text");
        Self {
            bytes,
            count,
            kind: roce_files::content(prefix).or_else(text),
        }
    }

    /// True if a text begins so.
    pub fn is_text(self) -> bool {
        self.kind == Some("a text")
    }

    /// The format of captures that begins so, of those that Wireshark's editcap converts.
    fn format(self) -> Option<&'static str> {
        let begins = self.bytes.get(..self.count)?;
        let format = match begins {
            // Network Monitor 2.x and 1.x (wiretap/netmon.c), snoop (RFC 1761).
            b"GMBU" | b"RTSS" => "Microsoft Network Monitor",
            b"snoo" => "Solaris snoop",
            _ => return None,
        };
        Some(format)
    }
}

impl fmt::Display for Begins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => return f.write_str(kind),
            None => f.write_str("begins with 0x")?,
        }
        self.bytes
            .iter()
            .take(self.count)
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Fault of a record or a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A version that is not known.
    #[error("{format} version {major}.{minor}; expected {expected}")]
    Version {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Its major number.
        major: u16,
        /// Its minor number.
        minor: u16,
        /// Values that are known.
        expected: &'static str,
    },
    /// The header of another file where a record or block is expected: files were concatenated.
    #[error(
        "another capture begins here\nhint: give concatenated captures one by one; mergecap joins them into one file"
    )]
    AnotherCapture,
    /// A record that claims more bytes than a frame can have.
    #[error("record of {found} captured bytes; expected at most {limit}")]
    CapturedLength {
        /// Length that the field claims.
        found: u32,
        /// The most it may claim.
        limit: u32,
    },
    /// A block that is too short or too long for its kind.
    #[error("block of type 0x{kind:x} is {found} bytes long; expected {least} to {most}")]
    BlockLength {
        /// The block's type.
        kind: u32,
        /// Its length as it says.
        found: u32,
        /// The least for its kind.
        least: u32,
        /// The most for its kind.
        most: u32,
    },
    /// A block whose two lengths differ.
    #[error("block of type 0x{kind:x} ends with the length {found}; expected {expected} as at its start")]
    Trailer {
        /// The block's type.
        kind: u32,
        /// The length at its end.
        found: u32,
        /// The length at its start.
        expected: u32,
    },
    /// A section without its byte order.
    #[error("section with the byte-order magic 0x{found:08x}; expected 0x1a2b3c4d in either byte order")]
    ByteOrder {
        /// Number that was found, read as big endian.
        found: u32,
    },
    /// A block about an interface that its section did not describe.
    #[error("block of type 0x{kind:x} is about interface {found}; its section has described only {known}")]
    Interface {
        /// The block's type.
        kind: u32,
        /// The interface's number inside the section.
        found: u32,
        /// Interfaces described in the section before this block.
        known: u32,
    },
    /// More interfaces than any capture has: each one costs memory.
    #[error("an interface more than the {limit} that a capture may describe")]
    TooManyInterfaces {
        /// The most there may be, in all sections.
        limit: usize,
    },
    /// An option that is longer than what is left of its block.
    #[error("block of type 0x{kind:x} has an option {code} of {found} bytes; expected at most {room}")]
    Option {
        /// The block's type.
        kind: u32,
        /// The option's code.
        code: u16,
        /// The option's length.
        found: u16,
        /// Bytes left in the block.
        room: usize,
    },
}
