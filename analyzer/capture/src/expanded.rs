//! Files that are no captures, decompressed as captures are: gzip and Zstandard by their first bytes, up to a limit.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::error::Error;
use crate::input::{self, Counts, LimitReached, Stream};

/// Bytes read at once.
const BLOCK: usize = 256 << 10;

/// The bytes of a file, decompressed.
pub struct ExpandedBytes(BufReader<io::Chain<io::Cursor<Vec<u8>>, Stream>>);

impl ExpandedBytes {
    /// Opens a file, of which at most `limit` decompressed bytes can be read: reading further fails.
    ///
    /// # Errors
    /// When it cannot be opened, is empty, or its compression is broken from the start.
    pub fn open(path: &Path, limit: Option<u64>) -> Result<Self, Error> {
        let file = path.display().to_string();
        let opened = input::open(path).map_err(|source| Error::Open {
            file: file.clone(),
            source,
        })?;
        let counts = Counts {
            stored: Arc::new(AtomicU64::new(0)),
            expanded: Arc::new(AtomicU64::new(0)),
        };
        let input = input::unwrap(&file, opened.stream, &counts, limit)?;
        let whole = io::Cursor::new(input.prefix).chain(input.stream);
        Ok(Self(BufReader::with_capacity(BLOCK, whole)))
    }

    /// True if reading failed because the file is longer than the limit.
    pub fn is_too_long(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(cause) if cause.is::<LimitReached>())
    }
}

impl Read for ExpandedBytes {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    #[test]
    fn text_is_read_compressed_or_not_up_to_the_limit() {
        let text = "0123456789".repeat(20_000);
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        for bytes in [text.as_bytes(), &packed] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(bytes).unwrap();
            let read = |limit| {
                let mut read = String::new();
                let result = ExpandedBytes::open(file.path(), limit)
                    .unwrap()
                    .read_to_string(&mut read);
                (result.map_err(|error| ExpandedBytes::is_too_long(&error)), read)
            };
            assert_eq!(read(None), (Ok(200_000), text.clone()));
            assert_eq!(read(Some(200_000)).0, Ok(200_000));
            assert_eq!(read(Some(199_999)).0, Err(true));
        }
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(
            ExpandedBytes::open(file.path(), None),
            Err(Error::Empty { .. })
        ));
        let missing = file.path().with_extension("none");
        assert!(matches!(
            ExpandedBytes::open(&missing, None),
            Err(Error::Open { .. })
        ));
    }
}
