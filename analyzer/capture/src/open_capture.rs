//! One capture that is being read: its beginning, the record that a block's end cuts in two, and its end.
//!
//! Leaves the blocks to `blocks`, the records to the walkers, and what is delivered to `reader`.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};

use crate::blocks::{Blocks, ROOM};
use crate::error::{Begins, Error, Fault};
use crate::frames::Frames;
use crate::input::{self, Counts, Input, LimitReached, Stream};
use crate::options::Options;
use crate::pcap::{self, Pcap};
use crate::pcapng::{self, Pcapng};
use crate::summary::{Compression, Container, Format, Truncation};
use crate::walk::{FoundFrames, Stop};
use crate::walker::Walker;

/// A capture that is being read.
pub(crate) struct OpenCapture {
    file: String,
    compression: Option<Compression>,
    /// Bytes after which it ends with an error.
    limit: Option<u64>,
    /// Bytes read of the file as it is stored.
    stored: Arc<AtomicU64>,
    pub(crate) blocks: Blocks,
    walker: Walker,
    /// Offset, in the decompressed file, of the first byte that no walker is done with.
    offset: u64,
    /// Bytes from there on that were read already: a part of a record.
    carry: Vec<u8>,
    /// Bytes that the record at `offset` needs.
    need: usize,
    /// Bytes from `offset` on that are of no interest.
    skip: u64,
    /// Error that ends reading after the batch before it.
    failed: Option<Error>,
}

/// Some bytes of the stream, with whole records in them: `buffer[from..end]`.
pub(crate) struct Piece {
    pub(crate) buffer: BytesMut,
    from: usize,
    end: usize,
}

/// Format and first bytes of a capture.
struct OpenedInput {
    container: Container,
    walker: Walker,
    /// Bytes of them that are done with.
    done: usize,
    /// Bytes that come next.
    need: usize,
}

impl OpenCapture {
    /// Begins to read a stream: unwraps its compression and recognises its format.
    pub(crate) fn begin(
        file: &str,
        stream: Stream,
        counts: Counts,
        options: &Options,
        found: &mut FoundFrames,
    ) -> Result<(Self, Format), Error> {
        let Input {
            stream,
            mut prefix,
            compression,
        } = input::unwrap(file, stream, &counts, options.max_bytes)?;
        let begun = match recognise(&prefix, found) {
            Ok(Some(begun)) => begun,
            Ok(None) => {
                let begins = Begins::new(&prefix);
                return Err(Error::NotCapture {
                    file: file.to_owned(),
                    begins,
                    compression,
                });
            }
            Err(fault) => {
                return Err(Error::Corrupt {
                    file: file.to_owned(),
                    offset: 0,
                    compression,
                    fault,
                });
            }
        };
        let offset = begun.done as u64;
        let blocks = if options.read_ahead || compression.is_some() {
            Blocks::ahead(stream, options.block_bytes, compression.is_some()).map_err(|source| {
                Error::Read {
                    file: file.to_owned(),
                    offset,
                    source,
                }
            })?
        } else {
            Blocks::here(stream, options.block_bytes)
        };
        let open = Self {
            file: file.to_owned(),
            compression,
            limit: options.max_bytes,
            stored: counts.stored,
            blocks,
            walker: begun.walker,
            offset,
            carry: prefix.split_off(begun.done),
            need: begun.need,
            skip: 0,
            failed: None,
        };
        Ok((
            open,
            Format {
                container: begun.container,
                compression,
            },
        ))
    }

    /// The next piece of the stream, `None` at its end or where an error before it ends it.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            let least = self.need.saturating_sub(self.carry.len());
            match self.blocks.next(least) {
                Ok(Some(block)) => {
                    if let Some(piece) = self.join(block.buffer, block.end) {
                        return Ok(Some(piece));
                    }
                }
                Ok(None) => return Ok(None),
                Err(source) => return Err(self.broken(source)),
            }
        }
    }

    /// Puts what was carried before the block in `buffer[ROOM..end]`; `None` while a long record is not whole.
    fn join(&mut self, mut buffer: BytesMut, end: usize) -> Option<Piece> {
        if self.carry.is_empty() {
            return Some(Piece {
                buffer,
                from: ROOM,
                end,
            });
        }
        if let Some(from) = ROOM.checked_sub(self.carry.len()) {
            if let Some(free) = buffer.get_mut(from..ROOM) {
                free.copy_from_slice(&self.carry);
            }
            self.carry.clear();
            return Some(Piece { buffer, from, end });
        }
        self.carry
            .extend_from_slice(buffer.get(ROOM..end).unwrap_or_default());
        self.blocks.give_back(buffer);
        if self.carry.len() < self.need {
            return None;
        }
        let joint = mem::take(&mut self.carry);
        let end = joint.len();
        // A vector's own allocation, taken over without a copy.
        let joint = Bytes::from(joint)
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&*shared));
        Some(Piece {
            buffer: joint,
            from: 0,
            end,
        })
    }

    /// The frames that were found in a piece, whose data is now `data`.
    pub(crate) fn take_frames(&self, data: &Bytes, found: &mut FoundFrames) -> Frames {
        let frames = mem::take(&mut found.frames);
        match found.skim.take() {
            Some(skim) => Frames::later(self.walker.maker(), data.clone(), skim, frames),
            None => frames.into(),
        }
    }

    /// Walks the records of a piece, and keeps for later what is left of it.
    pub(crate) fn walk(&mut self, piece: &Piece, found: &mut FoundFrames) {
        let data = piece.buffer.get(..piece.end).unwrap_or_default();
        let mut from = piece.from;
        loop {
            let skipped = usize::try_from(self.skip)
                .unwrap_or(usize::MAX)
                .min(data.len() - from);
            from += skipped;
            self.skip -= skipped as u64;
            self.offset += skipped as u64;
            if self.skip > 0 {
                self.need = 1;
                return;
            }
            let walked = self.walker.walk(data, from, self.offset, found);
            self.offset += (walked.at - from) as u64;
            from = walked.at;
            match walked.stop {
                Stop::Need(need) => {
                    self.need = need;
                    self.carry.extend_from_slice(data.get(from..).unwrap_or_default());
                    return;
                }
                Stop::Skip(bytes) => self.skip = bytes,
                Stop::Fault(fault) => {
                    let (file, offset, compression) = (self.file.clone(), self.offset, self.compression);
                    self.failed = Some(Error::Corrupt {
                        file,
                        offset,
                        compression,
                        fault,
                    });
                    return;
                }
            }
        }
    }

    /// Cut at the end of the file, if there is one.
    pub(crate) fn truncation(&self) -> Option<Truncation> {
        let had = self.carry.len() as u64;
        if let Some((offset, needed)) = self.walker.unfinished() {
            return Some(Truncation {
                offset,
                needed,
                had: self.offset + had - offset,
            });
        }
        (had > 0).then_some(Truncation {
            offset: self.offset,
            needed: self.need as u64,
            had,
        })
    }

    /// The error for a stream that fails.
    fn broken(&self, source: io::Error) -> Error {
        let (file, offset) = (self.file.clone(), self.offset + self.carry.len() as u64);
        let reason = source.get_ref();
        if reason
            .and_then(|reason| reason.downcast_ref::<LimitReached>())
            .is_some()
        {
            return Error::TooLong {
                file,
                limit: self.limit.unwrap_or(u64::MAX),
                compression: self.compression,
            };
        }
        match self.compression {
            Some(compression) => {
                let stored = self.stored.load(Ordering::Relaxed);
                Error::Decompress {
                    file,
                    compression,
                    offset,
                    stored,
                    source,
                }
            }
            None => Error::Read { file, offset, source },
        }
    }
}

/// Recognises the format by the first bytes: `None` when it is no capture.
fn recognise(prefix: &[u8], found: &mut FoundFrames) -> Result<Option<OpenedInput>, Fault> {
    let Some(magic) = prefix.first_chunk::<4>() else {
        return Ok(None);
    };
    if u32::from_le_bytes(*magic) == pcapng::SECTION {
        let walker = Walker::Pcapng(Pcapng::default());
        return Ok(Some(OpenedInput {
            container: Container::Pcapng,
            walker,
            done: 0,
            need: pcapng::SECTION_BYTES,
        }));
    }
    let Some((container, big)) = pcap::recognise(*magic) else {
        return Ok(None);
    };
    let Some(header) = prefix.first_chunk::<{ pcap::HEADER }>() else {
        // A cut inside of the header is reported like a cut record. No records follow.
        let walker = Walker::Pcap(Pcap::default());
        return Ok(Some(OpenedInput {
            container,
            walker,
            done: 0,
            need: pcap::HEADER,
        }));
    };
    let (pcap, interface) = Pcap::new(header, container, big)?;
    found.interfaces.push(interface);
    let need = pcap.record_header();
    Ok(Some(OpenedInput {
        container,
        walker: Walker::Pcap(pcap),
        done: pcap::HEADER,
        need,
    }))
}
