//! System calls that open one name relative to a directory handle without following links.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

/// True once the kernel has refused openat2 (before Linux 5.6, or by a filter of system calls).
static WITHOUT_OPENAT2: AtomicBool = AtomicBool::new(false);

/// Flags of a folder that is read.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens `name` in `dir`, through no link at all.
///
/// openat2 refuses links, `..` and names with a separator. `name` is a single component, so O_NOFOLLOW refuses the same links on
/// kernels without openat2.
pub(crate) fn strict(dir: impl AsFd, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    if !is_component(name) {
        return Err(Errno::INVAL);
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if !WITHOUT_OPENAT2.load(Ordering::Relaxed) {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        match fs::openat2(&dir, name, flags, mode, resolve) {
            // A filter of system calls answers with EPERM; if it was the file system, openat says so again.
            Err(Errno::NOSYS | Errno::PERM) => WITHOUT_OPENAT2.store(true, Ordering::Relaxed),
            opened => return opened,
        }
    }
    component(dir, name, flags, mode)
}

/// Opens `name` in `dir` as kernels without openat2 can.
pub(crate) fn component(dir: impl AsFd, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    fs::openat(dir, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
}

/// True if a name is one component of a path, neither `.` nor `..`.
pub(crate) fn is_component(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !bytes.is_empty() && bytes != b"." && bytes != b".." && !bytes.contains(&b'/') && !bytes.contains(&0)
}

/// The kind of file that `mode` states.
pub(crate) fn kind(mode: rustix::fs::RawMode) -> FileType {
    FileType::from_raw_mode(mode)
}

/// True if a file of this owner is as trustworthy as the caller: it is the caller's own or root's.
pub(crate) fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}
