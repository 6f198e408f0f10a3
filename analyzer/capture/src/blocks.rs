//! Big blocks of bytes in buffers that are used again and again, read in place or on a thread of its own.
//!
//! Each buffer has free room before the block, so that the record which the last block's end cut in two can be
//! put together there. Leaves where the bytes come from to `input`, and what they mean to the walkers.

use std::io;
use std::thread;

use bytes::BytesMut;
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::input::{FailedStream, Stream};

/// Free bytes before each block: more than nearly every record has. Longer ones are put together elsewhere.
pub(crate) const ROOM: usize = 64 << 10;
/// Buffers kept for later: about as many as several threads have at once. Fresh memory costs more than reading into it.
pub(crate) const SPARE: usize = 16;

/// A buffer with a block of the stream in `buffer[ROOM..end]`. The buffer keeps its full length always: cutting
/// and growing it would zero it again and again.
pub(crate) struct Block {
    pub(crate) buffer: BytesMut,
    pub(crate) end: usize,
}

/// The blocks of one stream.
pub(crate) enum Blocks {
    Here(Here),
    Ahead(Ahead),
}

impl Blocks {
    /// Reads blocks of `size` bytes on the caller's thread.
    pub(crate) fn here(stream: Stream, size: usize) -> Self {
        Self::Here(Here {
            stream,
            size,
            spare: Vec::new(),
        })
    }

    /// Reads blocks of `size` bytes on a thread of its own; when `whole`, it waits until each is full.
    pub(crate) fn ahead(stream: Stream, size: usize, whole: bool) -> io::Result<Self> {
        Ok(Self::Ahead(Ahead::spawn(stream, size, whole)?))
    }

    /// The next block, `None` at the end. It has at least `least` bytes if that is possible without waiting for
    /// the end of a stream that has not ended.
    pub(crate) fn next(&mut self, least: usize) -> io::Result<Option<Block>> {
        match self {
            Self::Here(here) => here.next(least),
            Self::Ahead(ahead) => ahead.next(),
        }
    }

    /// Takes back a buffer; those of another size are dropped.
    pub(crate) fn give_back(&mut self, buffer: BytesMut) {
        match self {
            Self::Here(here) => {
                if buffer.len() == ROOM + here.size && here.spare.len() < SPARE {
                    here.spare.push(buffer);
                }
            }
            Self::Ahead(ahead) => {
                if buffer.len() == ROOM + ahead.size {
                    // A full channel has enough of them.
                    drop(ahead.spare.try_send(buffer));
                }
            }
        }
    }
}

/// Reads on the caller's thread, a block for each call.
pub(crate) struct Here {
    stream: Stream,
    size: usize,
    spare: Vec<BytesMut>,
}

impl Here {
    fn next(&mut self, least: usize) -> io::Result<Option<Block>> {
        let mut buffer = self
            .spare
            .pop()
            .unwrap_or_else(|| BytesMut::zeroed(ROOM + self.size));
        let (end, outcome) = fill(&mut self.stream, &mut buffer, least);
        if end == ROOM {
            self.spare.push(buffer);
            return outcome.map(|()| None);
        }
        if let Err(error) = outcome {
            // The next call returns the error.
            self.stream = Box::new(FailedStream(Some(error)));
        }
        Ok(Some(Block { buffer, end }))
    }
}

/// Reads once, and on until there are `least` bytes, the buffer is full, or the stream ends or fails.
fn fill(stream: &mut Stream, buffer: &mut [u8], least: usize) -> (usize, io::Result<()>) {
    let mut end = ROOM;
    let enough = ROOM.saturating_add(least.max(1)).min(buffer.len());
    while end < enough {
        let free = buffer.get_mut(end..).unwrap_or_default();
        match stream.read(free) {
            Ok(0) => break,
            Ok(read) => end += read.min(free.len()),
            Err(error) => return (end, Err(error)),
        }
    }
    (end, Ok(()))
}

/// A message of the reading thread.
enum BlockMessage {
    Block(Block),
    Error(io::Error),
    End,
}

/// Reads on a thread of its own, at most two blocks ahead.
pub(crate) struct Ahead {
    blocks: Receiver<BlockMessage>,
    spare: Sender<BytesMut>,
    size: usize,
    ended: bool,
}

impl Ahead {
    fn spawn(mut stream: Stream, size: usize, whole: bool) -> io::Result<Self> {
        let (sender, blocks) = bounded(2);
        let (spare, buffers) = bounded::<BytesMut>(SPARE);
        // The thread ends with the stream, or when nobody takes its blocks any more.
        thread::Builder::new()
            .name("read-ahead".to_owned())
            .spawn(move || {
                let least = if whole { size } else { 1 };
                loop {
                    let mut buffer = buffers
                        .try_recv()
                        .unwrap_or_else(|_| BytesMut::zeroed(ROOM + size));
                    let (end, outcome) = fill(&mut stream, &mut buffer, least);
                    let ended = end == ROOM;
                    if !ended && sender.send(BlockMessage::Block(Block { buffer, end })).is_err() {
                        return;
                    }
                    match outcome {
                        Err(error) => drop(sender.send(BlockMessage::Error(error))),
                        Ok(()) if ended => drop(sender.send(BlockMessage::End)),
                        Ok(()) => continue,
                    }
                    return;
                }
            })
            .map_err(|error| io::Error::new(error.kind(), format!("no thread to read it: {error}")))?;
        Ok(Self {
            blocks,
            spare,
            size,
            ended: false,
        })
    }

    fn next(&mut self) -> io::Result<Option<Block>> {
        if self.ended {
            return Ok(None);
        }
        match self.blocks.recv() {
            Ok(BlockMessage::Block(block)) => return Ok(Some(block)),
            Ok(BlockMessage::End) => self.ended = true,
            Ok(BlockMessage::Error(error)) => {
                self.ended = true;
                return Err(error);
            }
            Err(_) => {
                self.ended = true;
                return Err(io::Error::other("the reading thread ended unexpectedly"));
            }
        }
        Ok(None)
    }
}
