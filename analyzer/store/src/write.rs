//! A file becomes an object: by one request where it is small, else in parts that become visible together at the end.

use std::io::Read;

use bytes::Bytes;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use crate::client::Client;
use crate::error::Error;
use crate::location::Location;

/// Bytes in memory: of an object that is written by one request, and of a part of a larger one. S3 has at most 10,000 parts.
const PART: usize = 8 << 20;
/// Bytes of the largest file.
const MAX_BYTES: u64 = 10_000 * PART as u64;

impl Client {
    /// Writes `size` bytes of `file` as the object at `location`. It is visible whole or not at all; one that was there before is replaced then.
    ///
    /// # Errors
    /// The file has another length, or the store refuses or cannot be reached.
    pub fn write(&self, location: &Location, file: &mut dyn Read, size: u64) -> Result<(), Error> {
        let url = || location.to_string();
        if size > MAX_BYTES {
            return Err(Error::Settings {
                url: url(),
                reason: format!("{size} bytes; an object has at most {MAX_BYTES}"),
            });
        }
        let (store, path) = self.object(location)?;
        let failed = |error: object_store::Error| Error::writing(url(), &error);
        let mut left = size;
        if size <= PART as u64 {
            let bytes = part(location, file, &mut left)?;
            ends(location, file)?;
            self.wait(store.put(&path, PutPayload::from_bytes(bytes)))?
                .map_err(failed)?;
            return Ok(());
        }
        let mut upload = self.wait(store.put_multipart(&path))?.map_err(failed)?;
        let written = self.parts(location, upload.as_mut(), file, left);
        if written.is_err() {
            // Parts that stay are not visible; the store's own rules remove them.
            let _ = self.wait(upload.abort());
        }
        written
    }

    fn parts(
        &self,
        location: &Location,
        upload: &mut dyn MultipartUpload,
        file: &mut dyn Read,
        mut left: u64,
    ) -> Result<(), Error> {
        let failed = |error: object_store::Error| Error::writing(location.to_string(), &error);
        while left > 0 {
            let bytes = part(location, file, &mut left)?;
            self.wait(upload.put_part(PutPayload::from_bytes(bytes)))?
                .map_err(failed)?;
        }
        ends(location, file)?;
        self.wait(upload.complete())?.map_err(failed)?;
        Ok(())
    }
}

/// The next part of a file.
fn part(location: &Location, file: &mut dyn Read, left: &mut u64) -> Result<Bytes, Error> {
    let count = usize::try_from(*left).unwrap_or(PART).min(PART);
    let mut bytes = vec![0; count];
    file.read_exact(&mut bytes).map_err(|source| Error::File {
        url: location.to_string(),
        source,
    })?;
    *left -= count as u64;
    Ok(bytes.into())
}

/// The file ends here.
fn ends(location: &Location, file: &mut dyn Read) -> Result<(), Error> {
    match file.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Error::File {
            url: location.to_string(),
            source: std::io::Error::other("it has grown"),
        }),
        Err(source) => Err(Error::File {
            url: location.to_string(),
            source,
        }),
    }
}
