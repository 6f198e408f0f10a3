//! A file that a user named by its path: `-w FILE`, `-o FILE`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, PROC_SUPER_MAGIC};
use rustix::io::Errno;

use crate::access::Access;
use crate::directory::{Directory, UnfinishedFile, own_link};
use crate::error::Error;
use crate::open::{self, is_component, is_trusted, kind};

/// Bytes that are buffered before they are written.
const BUFFER: usize = 1 << 18;

/// Folders of the links that the standard streams have.
const STREAMS: [&str; 2] = ["/proc/self/fd/", "/dev/fd/"];

/// A file's folder, open, and its name in it.
#[derive(Clone, Debug)]
pub struct FilePlace {
    folder: Directory,
    name: String,
}

impl FilePlace {
    /// The place of the file that a user named. Its folder must exist.
    ///
    /// # Errors
    /// If the folder cannot be opened, or the path does not end in a name that is UTF-8.
    pub fn named(path: &Path) -> Result<Self, Error> {
        let name = path
            .file_name()
            .filter(|name| is_component(name))
            .and_then(OsStr::to_str);
        // `path/` is the name of a folder, not of a file.
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let name = name
            .filter(|_| !is_folder)
            .ok_or_else(|| Error::io("written: it ends in no file name", path)(Errno::INVAL))?;
        Ok(Self {
            folder: Directory::parent_of_file(path)?,
            name: name.to_owned(),
        })
    }

    /// The place of a file in an open folder.
    pub fn below(folder: &Directory, name: &str) -> Self {
        Self {
            folder: folder.clone(),
            name: name.to_owned(),
        }
    }

    /// Its path, for messages.
    pub fn path(&self) -> PathBuf {
        self.folder.path_of(&self.name)
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another file in the same folder.
    #[must_use]
    pub fn beside(&self, name: &str) -> Self {
        Self::below(&self.folder, name)
    }

    /// Makes the file, which has its name at once. Devices, FIFOs and standard streams are written to as they are.
    ///
    /// # Errors
    /// If it is there and `overwrite` is not set, or cannot be made.
    pub fn create(&self, overwrite: bool, access: Access) -> Result<File, Error> {
        self.refuse_taken(overwrite)?;
        match self.special()? {
            Some(file) => Ok(file),
            None => self.folder.create(&self.name, true, access),
        }
    }

    /// Refuses a name that something has, be it a link, unless it is to be replaced. Devices, FIFOs and standard streams are written to as
    /// they are. Every file that a command writes is decided here; a command that reads for long before it writes calls this first.
    ///
    /// # Errors
    /// If the name is taken and `overwrite` is not set.
    pub fn refuse_taken(&self, overwrite: bool) -> Result<(), Error> {
        if overwrite || !self.folder.has(&self.name) || self.special_kind().is_some() {
            return Ok(());
        }
        Err(Error::Exists { path: self.path() })
    }

    /// Begins a file that has its name once it is complete, and replaces an older one where `overwrite` is set. Devices, FIFOs and standard
    /// streams are written to as they are.
    ///
    /// # Errors
    /// If the name is taken and `overwrite` is not set, or it cannot be made.
    pub fn begin(&self, overwrite: bool, access: Access) -> Result<Output, Error> {
        self.refuse_taken(overwrite)?;
        let (file, unfinished) = if let Some(file) = self.special()? {
            (file, None)
        } else {
            let (file, unfinished) = self.folder.begin(&self.name, access)?;
            (file, Some(unfinished))
        };
        Ok(Output {
            file: BufWriter::with_capacity(BUFFER, file),
            unfinished,
            path: self.path(),
        })
    }

    /// Kind of what has the name, if it is a device, a FIFO or the link of a standard stream, and the caller's or root's.
    fn special_kind(&self) -> Option<FileType> {
        let name = OsStr::new(&self.name);
        let found = fs::statat(self.folder.handle(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = kind(found.st_mode);
        let is_special = match kind {
            FileType::CharacterDevice | FileType::Fifo => is_trusted(found.st_uid),
            FileType::Symlink => self.is_stream(),
            _ => false,
        };
        is_special.then_some(kind)
    }

    /// Opens what has the name, if it is a device, a FIFO or a standard stream, and the caller's or root's.
    fn special(&self) -> Result<Option<File>, Error> {
        let (folder, path) = (self.folder.handle(), self.path());
        let name = OsStr::new(&self.name);
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match self.special_kind() {
            None => return Ok(None),
            Some(FileType::Symlink) => fs::openat(folder, name, flags, Mode::empty()),
            Some(_) => open::component(folder, name, flags, Mode::empty()),
        };
        file.map(|file| Some(File::from(file)))
            .map_err(Error::io("opened", &path))
    }

    /// True if a link leads to an open file of this process, as `/dev/stdout` does.
    fn is_stream(&self) -> bool {
        let (folder, name) = (self.folder.handle(), OsStr::new(&self.name));
        if fs::fstatfs(folder).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC) {
            return true;
        }
        let Ok(Some(target)) = own_link(folder, name, &self.path()) else {
            return false;
        };
        let number = target
            .to_str()
            .and_then(|target| STREAMS.iter().find_map(|folder| target.strip_prefix(folder)));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

/// A file that a user named, as it is written. It has its name once it is finished; dropped before, it is removed.
#[derive(Debug)]
pub struct Output {
    file: BufWriter<File>,
    /// Absent for what is written to directly.
    unfinished: Option<UnfinishedFile>,
    path: PathBuf,
}

impl Output {
    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the rest, and gives the file its name.
    ///
    /// # Errors
    /// If either fails.
    pub fn finish(mut self) -> Result<(), Error> {
        self.file.flush().map_err(Error::io("written", &self.path))?;
        let Some(unfinished) = &mut self.unfinished else {
            return Ok(());
        };
        unfinished.sync()?;
        unfinished.publish()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
