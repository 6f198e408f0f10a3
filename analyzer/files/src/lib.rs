//! Files of results, and small files that options name. Every output of the program is written through this crate.
//!
//! A program that runs as root writes into folders of other users. The owner of such a folder can put a
//! symbolic link where a file is about to be written. Therefore:
//!
//! - The folder that a user names is opened once ([`Directory::named`]). Its parents may be symbolic links. The folder itself may be a
//!   link only if the link belongs to the caller or to root.
//! - Below it, everything happens relative to that handle, one name at a time, and never through a link.
//! - A file is written under a temporary name, `.NAME.tmp`, and gets its name when it is complete ([`Directory::begin`]). The temporary
//!   name is removed before, so that a link, a FIFO or a leftover of that name is not written to. Packet files get their names at once
//!   ([`Directory::create`]), because other programs read them while they grow.
//! - Several processes can write one file at the same time ([`Directory::begin_shared`]): each under a temporary name of its own, which it
//!   keeps locked. A temporary file without a lock is that of a killed process.
//! - A folder that was made here and is empty when its last handle is dropped is removed again, unless it is kept.
//! - A new folder is given to another user by its handle, never by its name ([`Directory::made`], [`Directory::give`]).
//! - Where a complete file replaces another, its data reaches the disk before the name does. New files are not synchronised: after a
//!   power failure, a run that was not finished has no results anyway.
//! - Devices, FIFOs and standard streams that a user names as a file (`/dev/null`, `/dev/stdout`) are written to directly ([`FilePlace`]).
//!
//! [`open_regular`] and [`read_text`] are for files that options or recordings name: no FIFO, no device, no more bytes than stated. [`lines_of`] reads
//! what another program writes, line by line. [`FileTree`] reads the files of a recorded host, and those of `/sys` and `/proc`.
//!
//! A crate was looked for and not taken. cap-std opens relative to directory handles, but it follows
//! symbolic links below them, which must not happen here. It has no temporary files, needs extension
//! traits for modes, and adds ten crates. The system calls that remain are single ones, which rustix has
//! without `unsafe`.

mod access;
mod content;
mod directory;
mod error;
mod lines;
mod open;
mod place;
mod read;
mod tree;

pub use access::Access;
pub use content::{LOOKED_AT, content, is_text};
pub use directory::{Directory, UnfinishedFile, parent_of};
pub use error::Error;
pub use lines::lines_of;
pub use place::{FilePlace, Output};
pub use read::{open_regular, read_text};
pub use tree::{FileTree, MemberTree};

#[cfg(test)]
mod tests;
