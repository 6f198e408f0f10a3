//! Opens files and standard input, and unwraps compressions, which the first bytes identify.
//!
//! Leaves reading in big blocks to `blocks` and records to the walkers.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::Error;
use crate::gzip::Gzip;
use crate::objects::object;
use crate::summary::Compression;
use crate::zstandard::Zstandard;

/// Bytes looked at before anything is decided: a pcap file header.
pub(crate) const PREFIX: usize = 24;
/// Compressed bytes read at once.
const COMPRESSED_BLOCK: usize = 256 << 10;

/// A stream of bytes from anywhere.
pub(crate) type Stream = Box<dyn Read + Send>;

/// A stream of decompressed bytes, and what is known of it.
pub(crate) struct Input {
    /// All of it but the prefix.
    pub(crate) stream: Stream,
    /// Its first bytes; fewer than [`PREFIX`] only where it has no more.
    pub(crate) prefix: Vec<u8>,
    /// Compression that was unwrapped.
    pub(crate) compression: Option<Compression>,
}

/// A file to read, its size where that is known, and whether it can be opened a second time.
pub(crate) struct OpenedFile {
    pub(crate) stream: Stream,
    pub(crate) size: Option<u64>,
    pub(crate) again: bool,
}

/// Opens a path; `-` is standard input.
pub(crate) fn open(path: &Path) -> io::Result<OpenedFile> {
    if path == Path::new("-") {
        return Ok(OpenedFile {
            stream: Box::new(io::stdin()),
            size: None,
            again: false,
        });
    }
    if let Some((objects, url)) = object(path) {
        let (stream, size) = objects.open(url)?;
        return Ok(OpenedFile {
            stream,
            size: Some(size),
            again: true,
        });
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    let plain = about.is_file();
    Ok(OpenedFile {
        stream: Box::new(file),
        size: plain.then_some(about.len()),
        again: plain,
    })
}

/// Counts what is read, and reads on where a signal interrupts it.
struct CountedStream {
    stream: Stream,
    count: Arc<AtomicU64>,
}

impl Read for CountedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Ok(read) => {
                    self.count.fetch_add(read as u64, Ordering::Relaxed);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A stream with some of its bytes put back.
struct PrefixedStream {
    prefix: Vec<u8>,
    at: usize,
    stream: Stream,
}

impl Read for PrefixedStream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at < self.prefix.len() {
            let read = self.prefix.get(self.at..).unwrap_or_default().read(buffer)?;
            self.at += read;
            return Ok(read);
        }
        self.stream.read(buffer)
    }
}

/// A stream that fails once, and then has ended.
pub(crate) struct FailedStream(pub(crate) Option<io::Error>);

impl Read for FailedStream {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Counts of the bytes read: as stored, and decompressed.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) stored: Arc<AtomicU64>,
    pub(crate) expanded: Arc<AtomicU64>,
}

/// Compressed captures with a larger ratio than this, and more bytes than [`LARGE_EXPANSION`], are warned about. Captures compress
/// 3 to 20 times; deflate reaches 1,032 times, zstd far more.
const MAX_EXPANSION: u64 = 1_000;
/// Decompressed bytes from which on a high ratio is worth a warning.
const LARGE_EXPANSION: u64 = 1 << 30;
/// Files that are told of; of more nothing is said before their end.
const MAX_TOLD: usize = 64;

/// True of a compressed file that is far longer than its stored bytes, as no capture is: it may be made to take time.
pub fn is_bomb(expanded: u64, stored: u64) -> bool {
    expanded > LARGE_EXPANSION && expanded / stored.max(1) > MAX_EXPANSION
}

/// Called with a file's name, its bytes so far, and those of them that are stored.
type Tell = fn(&str, u64, u64);
static TELL: OnceLock<Tell> = OnceLock::new();
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From here on `tell` is called as soon as a file turns out to be a [bomb](is_bomb), once for each file. It gets the file's name, the bytes
/// that were decompressed so far, and those that they were stored in. Only the first call for a process counts.
pub fn on_bomb(tell: Tell) {
    TELL.get_or_init(|| tell);
}

/// Tells of a file.
fn tell(file: &str, expanded: u64, stored: u64) {
    let Some(tell) = TELL.get() else { return };
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    // A file is opened more than once where clocks are compared first.
    if told.len() < MAX_TOLD && !told.iter().any(|known| known == file) {
        told.push(file.to_owned());
        drop(told);
        tell(file, expanded, stored);
    }
}

/// A stream that fails after a stated number of bytes, and counts them.
struct LimitedStream {
    stream: Stream,
    count: Arc<AtomicU64>,
    /// Bytes that may still be read.
    left: u64,
    /// Name and count of stored bytes of a compressed file that has not been reported yet.
    watched: Option<(String, Arc<AtomicU64>)>,
}

/// The reason of a stream that is longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("longer than allowed")]
pub(crate) struct LimitReached;

impl Read for LimitedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if room == 0 && !buffer.is_empty() {
            // An input of exactly the allowed length is whole.
            return match self.stream.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::other(LimitReached)),
            };
        }
        let read = self.stream.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.left -= read as u64;
        let before = self.count.fetch_add(read as u64, Ordering::Relaxed);
        if let Some((file, stored)) = &self.watched {
            let (expanded, stored) = (before + read as u64, stored.load(Ordering::Relaxed));
            if is_bomb(expanded, stored) {
                tell(file, expanded, stored);
                self.watched = None;
            }
        }
        Ok(read)
    }
}

/// Looks at the first bytes, unwraps the compression if there is any, and lets at most `limit` bytes of the capture pass.
pub(crate) fn unwrap(
    file: &str,
    stream: Stream,
    counts: &Counts,
    limit: Option<u64>,
) -> Result<Input, Error> {
    let mut input = decompress(file, stream, &counts.stored)?;
    let had = input.prefix.len() as u64;
    counts.expanded.store(had, Ordering::Relaxed);
    input.stream = Box::new(LimitedStream {
        stream: input.stream,
        count: Arc::clone(&counts.expanded),
        left: limit.unwrap_or(u64::MAX).saturating_sub(had),
        watched: input
            .compression
            .map(|_| (file.to_owned(), Arc::clone(&counts.stored))),
    });
    Ok(input)
}

/// Looks at the first bytes and unwraps the compression.
fn decompress(file: &str, stream: Stream, count: &Arc<AtomicU64>) -> Result<Input, Error> {
    let mut stream: Stream = Box::new(CountedStream {
        stream,
        count: Arc::clone(count),
    });
    let mut prefix = Vec::new();
    if let Err(source) = fill_prefix(&mut stream, &mut prefix) {
        return Err(Error::Read {
            file: file.to_owned(),
            offset: prefix.len() as u64,
            source,
        });
    }
    let Some(compression) = recognise(&prefix) else {
        return plain(file, stream, prefix);
    };
    decompressed(
        file,
        compression,
        PrefixedStream {
            prefix,
            at: 0,
            stream,
        },
        count,
    )
}

/// An input that is not compressed.
fn plain(file: &str, mut stream: Stream, prefix: Vec<u8>) -> Result<Input, Error> {
    if prefix.is_empty() {
        return Err(Error::Empty {
            file: file.to_owned(),
            compression: None,
        });
    }
    if prefix.len() < PREFIX {
        // It has ended, and stays so even where somebody writes more to it by now.
        stream = Box::new(FailedStream(None));
    }
    Ok(Input {
        stream,
        prefix,
        compression: None,
    })
}

/// An input whose compression is unwrapped; `count` counts the bytes of `whole` that were read.
fn decompressed(
    file: &str,
    compression: Compression,
    whole: PrefixedStream,
    count: &Arc<AtomicU64>,
) -> Result<Input, Error> {
    let failed = |offset: usize, source| Error::Decompress {
        file: file.to_owned(),
        compression,
        offset: offset as u64,
        stored: count.load(Ordering::Relaxed),
        source,
    };
    let buffered = BufReader::with_capacity(COMPRESSED_BLOCK, whole);
    let mut stream: Stream = match compression {
        Compression::Gzip => Box::new(Gzip::new(buffered)),
        Compression::Zstd => Box::new(Zstandard::new(buffered).map_err(|source| failed(0, source))?),
    };
    let mut prefix = Vec::new();
    if let Err(error) = fill_prefix(&mut stream, &mut prefix) {
        if prefix.len() < 4 {
            return Err(failed(prefix.len(), error));
        }
        // The first bytes are enough to identify the format. The error is returned where reading reaches
        // it.
        stream = Box::new(FailedStream(Some(error)));
    }
    if prefix.is_empty() {
        return Err(Error::Empty {
            file: file.to_owned(),
            compression: Some(compression),
        });
    }
    Ok(Input {
        stream,
        prefix,
        compression: Some(compression),
    })
}

/// Reads up to [`PREFIX`] bytes; an error leaves those before it.
fn fill_prefix(stream: &mut Stream, prefix: &mut Vec<u8>) -> io::Result<()> {
    stream.take(PREFIX as u64).read_to_end(prefix).map(drop)
}

/// Tells a compression by its first bytes: RFC 1952 section 2.3.1, RFC 8878 sections 3.1.1 and 3.1.2 (a
/// skippable frame may come first).
fn recognise(prefix: &[u8]) -> Option<Compression> {
    match *prefix {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static HEARD: Mutex<Vec<(String, u64, u64)>> = Mutex::new(Vec::new());

    #[test]
    fn a_bomb_is_told_of_before_its_end() {
        on_bomb(|file, expanded, stored| {
            HEARD.lock().unwrap().push((file.to_owned(), expanded, stored));
        });
        // 1 GiB less 100 bytes have come of as many stored bytes as are given. No file has an end.
        let read = |file: &str, stored: u64| {
            let mut stream = LimitedStream {
                stream: Box::new(io::repeat(0)),
                count: Arc::new(AtomicU64::new(LARGE_EXPANSION - 100)),
                left: u64::MAX,
                watched: Some((file.to_owned(), Arc::new(AtomicU64::new(stored)))),
            };
            let mut buffer = [0; 64];
            for _ in 0..4 {
                assert_eq!(stream.read(&mut buffer).unwrap(), 64);
            }
        };
        read("large", LARGE_EXPANSION / 20);
        assert!(HEARD.lock().unwrap().is_empty(), "captures compress 20 times");
        read("bomb", 100_000);
        read("bomb", 100_000);
        let heard = HEARD.lock().unwrap().clone();
        assert_eq!(heard, [("bomb".to_owned(), LARGE_EXPANSION + 28, 100_000)]);
    }
}
