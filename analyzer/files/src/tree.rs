//! A tree of files: the running system's, a recorded folder that nothing leads out of, or the members of an archive.

mod members;

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

pub use members::MemberTree;

use crate::read::{TextFault, text_within};

/// Names in one folder, at most; further ones are left out.
const MAX_NAMES: usize = 8192;

/// A tree of files. Paths begin below its root, without a slash. Only regular files are read, and never more bytes than stated.
#[derive(Debug)]
pub struct FileTree(Source);

/// Where the files of a tree are.
#[derive(Debug)]
enum Source {
    Folder(FolderTree),
    Members(MemberTree),
}

/// A folder of the file system.
#[derive(Debug)]
struct FolderTree {
    root: OwnedFd,
    is_running: bool,
}

/// The handle of the root is only looked up from, which Landlock allows of every folder.
const ROOT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl FileTree {
    /// The running system's, whose links are the kernel's.
    ///
    /// # Errors
    /// When its root cannot be opened.
    pub fn running() -> io::Result<Self> {
        Ok(Self(Source::Folder(FolderTree {
            root: openat(CWD, "/", ROOT, Mode::empty())?,
            is_running: true,
        })))
    }

    /// A recorded one, which nothing leads out of.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn recorded(root: &Path) -> io::Result<Self> {
        Ok(Self(Source::Folder(FolderTree {
            root: openat(CWD, root, ROOT, Mode::empty())?,
            is_running: false,
        })))
    }

    /// That of an archive's members.
    pub fn of_members(members: MemberTree) -> Self {
        Self(Source::Members(members))
    }

    /// The names in a folder, in order; at most 8,192 of them.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        match &self.0 {
            Source::Folder(tree) => tree.names(folder),
            Source::Members(tree) => tree.names(folder, MAX_NAMES),
        }
    }

    /// The bytes of a regular file, at most `limit` of them.
    ///
    /// # Errors
    /// When it cannot be read, or is no regular file.
    pub fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        match &self.0 {
            Source::Folder(tree) => tree.read(path, limit),
            Source::Members(tree) => tree.read(path, limit),
        }
    }

    /// The text of a regular file, at most `limit` bytes of it.
    ///
    /// # Errors
    /// When it cannot be read, is no regular file, or no UTF-8.
    pub fn text(&self, path: &str, limit: u64) -> io::Result<String> {
        String::from_utf8(self.read(path, limit)?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The whole text of a regular file that has at most `limit` bytes.
    ///
    /// # Errors
    /// When it cannot be read, is no regular file, is larger, or is no UTF-8.
    pub fn whole_text(&self, path: &str, limit: u64) -> io::Result<String> {
        let bytes = self.read(path, limit.saturating_add(1))?;
        text_within(bytes, limit).map_err(|fault| match fault {
            TextFault::Foreign(found) => io::Error::other(format!("this is {found}, and no text")),
            TextFault::TooLarge => io::Error::other(format!("it has more than {limit} bytes")),
        })
    }

    /// True if a folder is there.
    pub fn is_folder(&self, path: &str) -> bool {
        match &self.0 {
            Source::Folder(tree) => tree.open(path, OFlags::DIRECTORY).is_ok(),
            Source::Members(tree) => tree.is_folder(path),
        }
    }

    /// True if a path is there.
    pub fn has(&self, path: &str) -> bool {
        match &self.0 {
            Source::Folder(tree) => tree.open(path, OFlags::empty()).is_ok(),
            Source::Members(tree) => tree.has(path),
        }
    }

    /// The target of a link in a folder.
    pub fn link(&self, folder: &str, name: &str) -> Option<String> {
        match &self.0 {
            Source::Folder(tree) => tree.link(folder, name),
            Source::Members(tree) => tree.link(folder, name),
        }
    }
}

impl FolderTree {
    /// Opens a path. In a recorded tree links are resolved as if its root were `/`, so that none leads out of it (openat2,
    /// RESOLVE_IN_ROOT); a kernel without that follows none.
    fn open(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { "." } else { path };
        if self.is_running {
            return Ok(openat(&self.root, path, FLAGS | flags, Mode::empty())?);
        }
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.root, path, FLAGS | flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => self.open_by_parts(path, flags),
            opened => Ok(opened?),
        }
    }

    fn open_by_parts(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let mut at = openat(&self.root, ".", FLAGS | OFlags::DIRECTORY, Mode::empty())?;
        let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
        for (place, part) in parts.iter().enumerate() {
            if *part == ".." || part.is_empty() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let own = if place + 1 == parts.len() {
                flags
            } else {
                OFlags::DIRECTORY
            };
            at = openat(&at, *part, FLAGS | OFlags::NOFOLLOW | own, Mode::empty())?;
        }
        Ok(at)
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let handle = self.open(folder, OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&handle)?.take(MAX_NAMES + 2) {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let handle = self.open(path, OFlags::empty())?;
        if FileType::from_raw_mode(fstat(&handle)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        let mut file = std::fs::File::from(handle).take(limit);
        match file.read_to_end(&mut bytes) {
            // The kernel ends configuration space so beyond what this process may read.
            Err(_) if self.is_running && !bytes.is_empty() => Ok(bytes),
            Err(error) => Err(error),
            Ok(_) => Ok(bytes),
        }
    }

    fn link(&self, folder: &str, name: &str) -> Option<String> {
        let folder = self.open(folder, OFlags::DIRECTORY).ok()?;
        let target = readlinkat(&folder, name, Vec::new()).ok()?;
        target.into_string().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out_of_a_recorded_tree() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("secret");
        fs::write(&outside, "secret").unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sys/real")).unwrap();
        fs::write(root.join("sys/real/a"), "inside").unwrap();
        symlink(&outside, root.join("sys/absolute")).unwrap();
        symlink("../../secret", root.join("sys/relative")).unwrap();
        symlink("real", root.join("sys/folder")).unwrap();
        symlink("/proc/self/root/etc", root.join("sys/magic")).unwrap();
        let tree = FileTree::recorded(&root).unwrap();
        for path in [
            "sys/absolute",
            "sys/relative",
            "sys/magic/hostname",
            "../secret",
            "sys/../../secret",
        ] {
            assert!(tree.read(path, 100).is_err(), "{path}");
        }
        assert_eq!(tree.read("sys/real/a", 100).unwrap(), b"inside");
        assert_eq!(tree.read("sys/folder/a", 100).unwrap(), b"inside");
        assert_eq!(tree.read("sys/folder/a", 3).unwrap(), b"ins");
        // Kernels without openat2 follow no link at all.
        let Source::Folder(tree) = &tree.0 else {
            panic!("a folder");
        };
        for path in ["sys/absolute", "sys/folder/a", "../secret"] {
            assert!(tree.open_by_parts(path, OFlags::empty()).is_err(), "{path}");
        }
        assert!(tree.open_by_parts("sys/real/a", OFlags::empty()).is_ok());
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let tree = FileTree::recorded(folder.path()).unwrap();
        assert!(tree.read("fifo", 10).is_err());
    }
}
