//! An object as a stream of bytes. It is requested in ranges, each with the ETag of the first answer: after a cut the next request starts where
//! the last byte came from, and never reads a newer object of that name.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::Error;
use crate::location::Location;

/// Bytes that are requested at once. What has come of them and was not read yet is one piece of the connection, some 16 KiB to 2 MiB.
const RANGE: u64 = 64 << 20;
/// Attempts that bring no byte, one after the other.
const MAX_ATTEMPTS: u32 = 6;
/// The first and the longest wait between two attempts: with those inside of an attempt, a store may be away for about half a minute.
const WAITS: (Duration, Duration) = if cfg!(test) {
    (Duration::from_millis(1), Duration::from_millis(4))
} else {
    (Duration::from_millis(200), Duration::from_secs(8))
};

/// An object that is being read.
pub struct ObjectReader {
    client: Arc<Client>,
    store: Arc<dyn ObjectStore>,
    path: Path,
    location: Location,
    size: u64,
    etag: Option<String>,
    offset: u64,
    body: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    piece: Bytes,
    /// Attempts since the last byte.
    attempts: u32,
    backoff: Backoff,
}

impl Client {
    /// Begins to read an object.
    ///
    /// # Errors
    /// There is none, or the store refuses or cannot be reached.
    pub fn open(self: &Arc<Self>, location: &Location) -> Result<ObjectReader, Error> {
        let (store, path) = self.object(location)?;
        let mut backoff = Backoff::new(WAITS.0, WAITS.1);
        let mut attempts = 0;
        let about = loop {
            attempts += 1;
            match self.wait(store.head(&path))? {
                Ok(about) => break about,
                Err(error) => {
                    let error = Error::reading(location.to_string(), 0, &error);
                    if !error.is_passing() || attempts >= MAX_ATTEMPTS {
                        return Err(error);
                    }
                    std::thread::sleep(backoff.wait());
                }
            }
        };
        backoff.reset();
        Ok(ObjectReader {
            client: Arc::clone(self),
            store,
            path,
            location: location.clone(),
            size: about.size,
            etag: about.e_tag,
            offset: 0,
            body: None,
            piece: Bytes::new(),
            attempts: 0,
            backoff,
        })
    }
}

impl ObjectReader {
    /// The object's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next piece; empty at the end.
    fn next_piece(&mut self) -> Result<Bytes, Error> {
        while self.offset < self.size {
            let error = match self.attempt() {
                Ok(piece) if !piece.is_empty() => {
                    self.offset += piece.len() as u64;
                    self.attempts = 0;
                    self.backoff.reset();
                    return Ok(piece);
                }
                // The end of a range.
                Ok(_) => continue,
                Err(error) => error,
            };
            self.body = None;
            self.attempts += 1;
            if !error.is_passing() || self.attempts >= MAX_ATTEMPTS {
                // The end, for whoever reads on.
                self.size = self.offset;
                return Err(error);
            }
            std::thread::sleep(self.backoff.wait());
        }
        Ok(Bytes::new())
    }

    /// The next piece of the range, which is requested if none is under way. Empty where it ends.
    fn attempt(&mut self) -> Result<Bytes, Error> {
        let fail =
            |error: &object_store::Error| Error::reading(self.location.to_string(), self.offset, error);
        let left = self.size - self.offset;
        let mut body = if let Some(body) = self.body.take() {
            body
        } else {
            let options = GetOptions {
                if_match: self.etag.clone(),
                range: Some(GetRange::Bounded(self.offset..self.offset + left.min(RANGE))),
                ..GetOptions::default()
            };
            let answer = self.client.wait(self.store.get_opts(&self.path, options))?;
            let answer = answer.map_err(|error| fail(&error))?;
            if answer.meta.size != self.size {
                return Err(Error::Replaced {
                    url: self.location.to_string(),
                    offset: self.offset,
                });
            }
            answer.into_stream()
        };
        let mut piece = match self.client.wait(body.next())? {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => return Err(fail(&error)),
            None => return Ok(Bytes::new()),
        };
        // A store that sends more than was requested cannot make the object longer.
        piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.body = Some(body);
        Ok(piece)
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            self.piece = self.next_piece().map_err(io::Error::other)?;
        }
        let count = self.piece.len().min(buffer.len());
        if let Some(room) = buffer.get_mut(..count) {
            self.piece.copy_to_slice(room);
        }
        Ok(count)
    }
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReader")
            .field("location", &self.location)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
