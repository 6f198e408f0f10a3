//! Folders of results as open handles, and the files in them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use crate::access::Access;
use crate::error::Error;
use crate::open::{self, FOLDER, is_component, is_trusted, kind};

/// Ending of temporary names.
const TEMPORARY: &str = ".tmp";
/// Temporary names that are tried for a file.
const MAX_TRIES: u32 = 16;

/// An open folder. Clones share the handle.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Open>);

#[derive(Debug)]
struct Open {
    handle: OwnedFd,
    path: PathBuf,
    /// Folders that were made to open this one: the parent's handle and the name, the outermost first.
    made: Vec<(OwnedFd, OsString)>,
}

impl Drop for Open {
    /// Removes the made folders again if they are empty. The system refuses to remove others.
    fn drop(&mut self) {
        while let Some((parent, name)) = self.made.pop() {
            if fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
    }
}

impl Directory {
    /// Opens the folder that a user named, and makes it and its parents if they are missing.
    ///
    /// # Errors
    /// If it cannot be opened or made, or is a link that belongs neither to the caller nor to root.
    pub fn named(path: &Path, access: Access) -> Result<Self, Error> {
        let failed = || Error::io("made", path);
        let mut made = Vec::new();
        let Some(name) = path.file_name().filter(|name| is_component(name)) else {
            // `.`, `..` and `/` are folders and no links.
            let handle = fs::openat(CWD, path, FOLDER, Mode::empty()).map_err(|errno| failed()(errno))?;
            return Ok(Self::new(handle, path, made));
        };
        let parent = parents(path, access, &mut made).map_err(|errno| failed()(errno))?;
        let handle = match open::strict(&parent, name, FOLDER, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => {
                make(&parent, name, access, &mut made).map_err(|errno| failed()(errno))?;
                open::strict(&parent, name, FOLDER, Mode::empty()).map_err(|errno| failed()(errno))?
            }
            Err(errno) => match own_link(&parent, name, path)? {
                Some(target) => fs::openat(&parent, target.as_os_str(), FOLDER, Mode::empty())
                    .map_err(|errno| failed()(errno))?,
                None => return Err(failed()(errno)),
            },
        };
        Ok(Self::new(handle, path, made))
    }

    /// Makes the folder that a user named, which its owner alone can look into, and its missing parents, for everybody whom the umask
    /// allows. `None` if something has the name.
    ///
    /// # Errors
    /// If it cannot be made, or another folder has its name before it is open.
    pub fn made(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |errno: Errno| Error::io("made", path)(errno);
        let Some(name) = path.file_name().filter(|name| is_component(name)) else {
            return Ok(None);
        };
        let mut made = Vec::new();
        let parent = parents(path, Access::Umask, &mut made).map_err(failed)?;
        let above = made.len();
        make(&parent, name, Access::Private, &mut made).map_err(failed)?;
        if made.len() == above {
            return Ok(None);
        }
        let handle = open::strict(&parent, name, FOLDER, Mode::empty()).map_err(failed)?;
        let folder = Self::new(handle, path, made);
        // A user who can write to the parent can put another folder in its place, which is theirs or has files.
        let owner = fs::fstat(folder.handle()).map_err(failed)?.st_uid;
        if owner != rustix::process::geteuid().as_raw() || !folder.names()?.is_empty() {
            return Err(failed(Errno::STALE));
        }
        Ok(Some(folder))
    }

    /// Gives the folder to another user, whatever has its name by now.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give(&self, user: Uid, group: Gid) -> Result<(), Error> {
        fs::fchown(self.handle(), Some(user), Some(group)).map_err(Error::io("given away", self.path()))
    }

    /// Closes the folder, and leaves it and the parents that were made for it even if it is empty.
    pub fn keep(mut self) {
        if let Some(open) = Arc::get_mut(&mut self.0) {
            open.made.clear();
        }
    }

    /// Opens the existing folder in which a user named a file. It can be written to and not listed.
    pub(crate) fn parent_of_file(path: &Path) -> Result<Self, Error> {
        let parent = parent_of(path);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = fs::openat(CWD, parent, flags, Mode::empty()).map_err(Error::io("made", path))?;
        let shown = path.parent().unwrap_or_else(|| Path::new(""));
        Ok(Self::new(handle, shown, Vec::new()))
    }

    fn new(handle: OwnedFd, path: &Path, made: Vec<(OwnedFd, OsString)>) -> Self {
        Self(Arc::new(Open {
            handle,
            path: path.to_path_buf(),
            made,
        }))
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.0.handle.as_fd()
    }

    /// The folder's path as the user wrote it, for messages.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The path of a file in the folder, for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Opens the folder `name` in this one, and makes it if it is missing.
    ///
    /// # Errors
    /// If it is a link or no folder, or cannot be made.
    pub fn below(&self, name: &str, access: Access) -> Result<Self, Error> {
        if let Some(folder) = self.find(name)? {
            return Ok(folder);
        }
        let path = self.path_of(name);
        let mut made = Vec::new();
        make(self.handle(), OsStr::new(name), access, &mut made).map_err(Error::io("made", &path))?;
        let handle = self.folder(name).map_err(Error::io("made", &path))?;
        Ok(Self::new(handle, &path, made))
    }

    /// Opens the folder `name` in this one; `None` if there is none.
    ///
    /// # Errors
    /// If it is a link or no folder, or cannot be opened.
    pub fn find(&self, name: &str) -> Result<Option<Self>, Error> {
        let path = self.path_of(name);
        match self.folder(name) {
            Ok(handle) => Ok(Some(Self::new(handle, &path, Vec::new()))),
            Err(Errno::NOENT) => Ok(None),
            Err(_) if self.kind(name) == Some(FileType::Symlink) => Err(Error::Link { path }),
            Err(errno) => Err(Error::io("opened", &path)(errno)),
        }
    }

    fn folder(&self, name: &str) -> Result<OwnedFd, Errno> {
        open::strict(self.handle(), OsStr::new(name), FOLDER, Mode::empty())
    }

    /// Names in the folder that are UTF-8, in no order.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let failed = || Error::io("read", self.path());
        let entries = Dir::read_from(self.handle()).map_err(|errno| failed()(errno))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|errno| failed()(errno))?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    /// Kind of the entry of that name, links not followed; `None` if there is none.
    fn kind(&self, name: &str) -> Option<FileType> {
        let found = fs::statat(self.handle(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(kind(found.st_mode))
    }

    /// True if something has the name, be it a link that leads nowhere.
    pub fn has(&self, name: &str) -> bool {
        self.kind(name).is_some()
    }

    /// Begins the file `name` under its temporary name, `.NAME.tmp`. Whatever has that name is removed.
    ///
    /// # Errors
    /// If the file cannot be made, or a folder has its name.
    pub fn begin(&self, name: &str, access: Access) -> Result<(File, UnfinishedFile), Error> {
        if self.kind(name) == Some(FileType::Directory) {
            return Err(Error::io("replaced", &self.path_of(name))(Errno::ISDIR));
        }
        let temporary = format!(".{name}{TEMPORARY}");
        let file = self.make(&temporary, access)?;
        let unfinished = UnfinishedFile {
            folder: self.clone(),
            name: name.to_owned(),
            temporary,
            is_pending: true,
        };
        Ok((file, unfinished))
    }

    /// Takes the lock that the file `name` stands for; it is made if it is missing, and stays. The lock lasts as long as the returned file is open.
    /// `None`: another process has it.
    ///
    /// # Errors
    /// If the file is a link or cannot be opened, or the file system has no locks.
    pub fn lock(&self, name: &str, access: Access) -> Result<Option<File>, Error> {
        let (file, _) = self.append(name, access)?;
        match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Error::io("locked", &self.path_of(name))(errno)),
        }
    }

    /// Flushes the names in the folder to the disk.
    ///
    /// # Errors
    /// If the disk takes no more.
    pub fn sync(&self) -> Result<(), Error> {
        fs::fsync(self.handle()).map_err(Error::io("written", self.path()))
    }

    /// Begins the file `name` as one of several processes that may write it at the same time: its temporary name, `.NAME.RANDOM.tmp`, is
    /// its own. The file that is published last stays. The temporary file is locked while it is open; those of processes that are gone are
    /// removed.
    ///
    /// # Errors
    /// If the file cannot be made, or a folder has its name.
    pub fn begin_shared(&self, name: &str, access: Access) -> Result<(File, UnfinishedFile), Error> {
        if self.kind(name) == Some(FileType::Directory) {
            return Err(Error::io("replaced", &self.path_of(name))(Errno::ISDIR));
        }
        self.remove_abandoned(|file| file == name)?;
        let mut tries = 0;
        loop {
            let random = RandomState::new().build_hasher().finish();
            let temporary = format!(".{name}.{random:016x}{TEMPORARY}");
            let path = self.path_of(&temporary);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let file = open::strict(self.handle(), OsStr::new(&temporary), flags, access.file())
                .map_err(Error::io("made", &path))?;
            // Without locks on this file system, nothing counts as abandoned.
            let is_taken =
                fs::flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
            // Another process may take it for abandoned before it is locked.
            let is_linked = fs::fstat(&file).is_ok_and(|found| found.st_nlink > 0);
            if is_taken || !is_linked {
                tries += 1;
                if tries < MAX_TRIES {
                    continue;
                }
                return Err(Error::io("made", &path)(Errno::BUSY));
            }
            let unfinished = UnfinishedFile {
                folder: self.clone(),
                name: name.to_owned(),
                temporary,
                is_pending: true,
            };
            return Ok((File::from(file), unfinished));
        }
    }

    /// Removes the temporary files that [`begin_shared`](Self::begin_shared) made for files whose name `is_chosen` takes, and that no process
    /// writes any more. Returns their number.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file not be removed.
    pub fn remove_abandoned(&self, is_chosen: impl Fn(&str) -> bool) -> Result<usize, Error> {
        let mut removed = 0;
        for temporary in self.names()? {
            if !shared_name(&temporary).is_some_and(&is_chosen) {
                continue;
            }
            // A file that is gone by now, or that another user made, is no concern of ours.
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            let Ok(file) = open::strict(self.handle(), OsStr::new(&temporary), flags, Mode::empty()) else {
                continue;
            };
            if fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                self.remove(&temporary)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// This folder, which stays even if it is empty when its last handle is dropped: other processes may be about to write into it.
    #[must_use]
    pub fn kept(mut self) -> Self {
        if let Some(open) = Arc::get_mut(&mut self.0) {
            open.made.clear();
        }
        self
    }

    /// Makes the file `name` with that name at once. With `overwrite` it takes the place of a file or link of that name.
    ///
    /// # Errors
    /// If the name is taken and `overwrite` is not set, a folder has it, or the file cannot be made.
    pub fn create(&self, name: &str, overwrite: bool, access: Access) -> Result<File, Error> {
        if !overwrite && self.has(name) {
            return Err(Error::Exists {
                path: self.path_of(name),
            });
        }
        self.make(name, access)
    }

    /// Opens the file `name` to write behind its end, and makes it if it is missing. Returns the bytes that it has.
    ///
    /// # Errors
    /// If it is a link or no regular file, or cannot be opened.
    pub fn append(&self, name: &str, access: Access) -> Result<(File, u64), Error> {
        let failed = || Error::io("opened", &self.path_of(name));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK;
        let file = open::strict(self.handle(), OsStr::new(name), flags, access.file())
            .map_err(|errno| failed()(errno))?;
        let found = fs::fstat(&file).map_err(|errno| failed()(errno))?;
        if kind(found.st_mode) != FileType::RegularFile {
            return Err(failed()(Errno::INVAL));
        }
        Ok((File::from(file), u64::try_from(found.st_size).unwrap_or(0)))
    }

    /// Bytes that this user can still write to its file system.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        let about = fs::fstatvfs(self.handle()).map_err(Error::io("read", self.path()))?;
        Ok(about.f_bavail.saturating_mul(about.f_frsize))
    }

    /// Opens the regular file `name` to read, through no link.
    ///
    /// # Errors
    /// If there is none, or it cannot be opened.
    pub fn open(&self, name: &str) -> Result<File, Error> {
        let failed = || Error::io("opened", &self.path_of(name));
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open::strict(self.handle(), OsStr::new(name), flags, Mode::empty())
            .map_err(|errno| failed()(errno))?;
        let found = fs::fstat(&file).map_err(|errno| failed()(errno))?;
        if kind(found.st_mode) != FileType::RegularFile {
            return Err(failed()(Errno::INVAL));
        }
        Ok(File::from(file))
    }

    /// Gives the file `from` the name `to`, in place of what has it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        fs::renameat(self.handle(), from, self.handle(), to)
            .map_err(Error::io("renamed", &self.path_of(from)))
    }

    /// Makes a file in place of another one.
    fn make(&self, name: &str, access: Access) -> Result<File, Error> {
        let path = self.path_of(name);
        self.remove(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = open::strict(self.handle(), OsStr::new(name), flags, access.file());
        file.map(File::from).map_err(Error::io("made", &path))
    }

    /// Removes the folder `name`, which is empty; it is no error if there is none, or if it has files.
    ///
    /// # Errors
    /// If it cannot be removed for another reason.
    pub fn remove_folder(&self, name: &str) -> Result<(), Error> {
        match fs::unlinkat(self.handle(), name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
            Err(errno) => Err(Error::io("removed", &self.path_of(name))(errno)),
        }
    }

    /// Removes a file or a link; it is no error if there is none.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        match fs::unlinkat(self.handle(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::io("removed", &self.path_of(name))(errno)),
        }
    }
}

/// The name of the file whose temporary file of a process of its own has this name.
fn shared_name(temporary: &str) -> Option<&str> {
    let (name, random) = temporary
        .strip_prefix('.')?
        .strip_suffix(TEMPORARY)?
        .rsplit_once('.')?;
    let is_random = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_random.then_some(name)
}

/// A file that has its temporary name until it is complete. Dropped before, it is removed.
#[derive(Debug)]
pub struct UnfinishedFile {
    folder: Directory,
    name: String,
    temporary: String,
    is_pending: bool,
}

impl UnfinishedFile {
    /// The path that the file will have, for messages.
    pub fn path(&self) -> PathBuf {
        self.folder.path_of(&self.name)
    }

    /// The path that the file has until it is complete, for messages.
    pub fn temporary_path(&self) -> PathBuf {
        self.folder.path_of(&self.temporary)
    }

    /// Flushes the data to the disk if the file will replace another one: a power failure must leave one
    /// of them.
    ///
    /// # Errors
    /// If the disk takes no more.
    pub fn sync(&self) -> Result<(), Error> {
        if !self.folder.has(&self.name) {
            return Ok(());
        }
        self.flush()
    }

    /// Flushes the data to the disk.
    ///
    /// # Errors
    /// If the disk takes no more.
    pub fn flush(&self) -> Result<(), Error> {
        let failed = || Error::io("written", &self.temporary_path());
        let name = OsStr::new(&self.temporary);
        let file = open::strict(self.folder.handle(), name, OFlags::RDONLY, Mode::empty())
            .map_err(|errno| failed()(errno))?;
        fs::fdatasync(file).map_err(|errno| failed()(errno))
    }

    /// Renames the file to its final name and replaces what has it. Its data must have been flushed.
    ///
    /// # Errors
    /// If the name cannot be given.
    pub fn publish(&mut self) -> Result<(), Error> {
        let folder = self.folder.handle();
        fs::renameat(folder, &self.temporary, folder, &self.name)
            .map_err(Error::io("renamed", &self.path()))?;
        self.is_pending = false;
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if self.is_pending {
            // There is nobody to tell, and the next run removes it.
            let _ = self.folder.remove(&self.temporary);
        }
    }
}

/// The folder in which a user's path is looked up: its parent, or the current one for a name alone.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Opens the parent of `path` by the system's ordinary rules, and makes what is missing of it.
fn parents(path: &Path, access: Access, made: &mut Vec<(OwnedFd, OsString)>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = parent_of(path);
    let mut missing = Vec::new();
    let mut known = parent;
    let mut handle = loop {
        match fs::openat(CWD, known, flags, Mode::empty()) {
            Ok(handle) => break handle,
            Err(Errno::NOENT) => match known.components().next_back() {
                Some(Component::Normal(name)) => missing.push(name),
                _ => return Err(Errno::NOENT),
            },
            Err(errno) => return Err(errno),
        }
        known = parent_of(known);
    };
    for name in missing.into_iter().rev() {
        make(&handle, name, access, made)?;
        handle = open::strict(&handle, name, flags, Mode::empty())?;
    }
    Ok(handle)
}

/// Makes a folder and notes that it was made; that another process was faster is fine.
fn make(
    parent: impl AsFd,
    name: &OsStr,
    access: Access,
    made: &mut Vec<(OwnedFd, OsString)>,
) -> Result<(), Errno> {
    match fs::mkdirat(&parent, name, access.folder()) {
        Ok(()) => {
            let parent = parent.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
            made.push((parent, name.to_owned()));
            Ok(())
        }
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// The target of a link that the caller or root made; `None` if it is no link.
///
/// The link is held by a handle, so that its owner and its target are those of one link, whatever is put in its place.
pub(crate) fn own_link(parent: impl AsFd, name: &OsStr, path: &Path) -> Result<Option<OsString>, Error> {
    let failed = || Error::io("opened", path);
    let link = open::component(parent, name, OFlags::PATH, Mode::empty()).map_err(|errno| failed()(errno))?;
    let found = fs::fstat(&link).map_err(|errno| failed()(errno))?;
    if kind(found.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    if !is_trusted(found.st_uid) {
        return Err(Error::ForeignLink {
            path: path.to_path_buf(),
            owner: found.st_uid,
        });
    }
    let target = fs::readlinkat(&link, "", Vec::new()).map_err(|errno| failed()(errno))?;
    let target = std::os::unix::ffi::OsStringExt::from_vec(target.into_bytes());
    Ok(Some(target))
}
