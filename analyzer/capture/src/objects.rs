//! Captures that are no files: the program says once how its URLs are opened, before it opens captures.
//!
//! This crate knows no store and no network.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::OnceLock;

/// Opens captures by URL.
pub trait Objects: Send + Sync {
    /// True if this text is a URL that can be opened.
    fn is_object(&self, url: &str) -> bool;

    /// Size of an object in bytes.
    ///
    /// # Errors
    /// There is none, or it cannot be reached.
    fn size(&self, url: &str) -> io::Result<u64>;

    /// Begins to read an object, and returns its size. Each call reads from the beginning.
    ///
    /// # Errors
    /// As those of [`size`](Self::size).
    fn open(&self, url: &str) -> io::Result<(Box<dyn Read + Send>, u64)>;
}

static OBJECTS: OnceLock<Box<dyn Objects>> = OnceLock::new();

/// Names the way in which URLs are opened from now on. False if there is one already.
pub fn set_objects(objects: Box<dyn Objects>) -> bool {
    OBJECTS.set(objects).is_ok()
}

/// The URL in the place of a path, and who opens it.
pub(crate) fn object(path: &Path) -> Option<(&'static dyn Objects, &str)> {
    let objects = OBJECTS.get()?;
    let url = path.to_str()?;
    objects.is_object(url).then_some((&**objects, url))
}

/// True for a file or an object: it has an end, and can be read a second time. A path about which the system fails to answer is taken for a
/// file: whoever reads it says why it cannot be.
pub fn is_whole(path: &Path) -> bool {
    if object(path).is_some() {
        return true;
    }
    match std::fs::metadata(path) {
        Ok(about) => about.is_file(),
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// The size of a file or an object in bytes; `None` for streams, and where it cannot be known.
pub fn size(path: &Path) -> Option<u64> {
    if let Some((objects, url)) = object(path) {
        return objects.size(url).ok();
    }
    let about = std::fs::metadata(path).ok()?;
    about.is_file().then_some(about.len())
}

/// The bytes of a file or an object, as they are stored.
///
/// # Errors
/// It cannot be opened.
pub fn bytes(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    if let Some((objects, url)) = object(path) {
        return Ok(objects.open(url)?.0);
    }
    Ok(Box::new(File::open(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Reader};

    /// One object, with a pcap header (little endian, microseconds, Ethernet: pcap-savefile(5)) and no packet.
    struct One;

    const HEADER: [u8; 24] = [
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
    ];

    impl Objects for One {
        fn is_object(&self, url: &str) -> bool {
            url.starts_with("one://")
        }

        fn size(&self, _: &str) -> io::Result<u64> {
            Ok(24)
        }

        fn open(&self, url: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
            if url != "one://a/b.pcap" {
                return Err(io::Error::other("no such object"));
            }
            Ok((Box::new(&HEADER[..]), 24))
        }
    }

    #[test]
    fn an_object_is_read_like_a_file_and_can_be_parked() {
        assert!(set_objects(Box::new(One)));
        assert!(!set_objects(Box::new(One)), "a second way");
        let path = Path::new("one://a/b.pcap");
        assert!(is_whole(path) && size(path) == Some(24));
        let mut reader = Reader::open(path, &Options::default()).unwrap();
        assert_eq!(reader.progress().total, Some(24));
        for _ in 0..2 {
            assert!(reader.park());
            assert!(reader.next_batch().unwrap().is_none());
            reader = Reader::open(path, &Options::default()).unwrap();
        }
        let missing = Reader::open(Path::new("one://a/c"), &Options::default()).unwrap_err();
        assert_eq!(missing.to_string(), "one://a/c: cannot be opened");
        assert!(!is_whole(Path::new("two://a/b.pcap")));
    }

    #[test]
    fn a_path_that_cannot_be_looked_at_is_no_stream() {
        // A name may have 255 bytes (limits.h, NAME_MAX).
        assert!(is_whole(Path::new(&"n".repeat(300))));
        assert!(!is_whole(Path::new("/nonexistent")));
        assert!(!is_whole(Path::new("/dev/null")));
        assert!(!is_whole(Path::new("/dev/null/below")));
    }
}
