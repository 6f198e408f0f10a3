//! Zstandard streams of any number of frames (RFC 8878).
//!
//! The zstd crate's own reader drops what a failing call had decompressed before it failed; this one hands the
//! decoder one block at a time, so that nothing is lost. The room for a block has always the same size: how much of a damaged block
//! libzstd gives depends on that. Leaves the decoding to libzstd.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use zstd::stream::raw::{Decoder, Operation};

/// Bytes of a block header. The decoder requests the next one together with a block, but gets it alone.
const BLOCK_HEADER: usize = 3;
/// Bytes that the decoder needs to begin a frame.
const FRAME_HEADER: usize = 5;
/// Bytes of a decompressed block, at most (RFC 8878, 3.1.1.2.4).
const BLOCK: usize = 128 << 10;

/// Decompresses frames one after the other.
pub(crate) struct Zstandard<R> {
    input: R,
    decoder: Decoder<'static>,
    /// Bytes that the decoder needs next; 0 between two frames.
    wants: usize,
    /// A decompressed block, and what of it has not been read.
    block: Box<[u8]>,
    unread: Range<usize>,
    failed: bool,
}

impl<R: BufRead> Zstandard<R> {
    pub(crate) fn new(input: R) -> io::Result<Self> {
        Ok(Self {
            input,
            decoder: Decoder::new()?,
            wants: 0,
            block: vec![0; BLOCK].into_boxed_slice(),
            unread: 0..0,
            failed: false,
        })
    }

    /// Decompresses one block; none at the end.
    fn decompress(&mut self) -> io::Result<usize> {
        loop {
            let input = self.input.fill_buf()?;
            let ended = input.is_empty();
            if self.wants == 0 {
                if ended {
                    return Ok(0);
                }
                self.decoder.reinit()?;
                self.wants = FRAME_HEADER + BLOCK_HEADER;
            }
            let give = self
                .wants
                .checked_sub(BLOCK_HEADER)
                .filter(|give| *give > 0)
                .unwrap_or(self.wants);
            let input = input.get(..give).unwrap_or(input);
            let status = self.decoder.run_on_buffers(input, &mut self.block)?;
            self.input.consume(status.bytes_read);
            self.wants = status.remaining;
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
            if ended && self.wants > 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "it ends inside of a frame",
                ));
            }
        }
    }
}

impl<R: BufRead> Read for Zstandard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.failed {
            return Ok(0);
        }
        if self.unread.is_empty() {
            self.unread = 0..self.decompress().inspect_err(|_| self.failed = true)?;
        }
        let unread = self.block.get(self.unread.clone()).unwrap_or_default();
        let read = unread.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..read), unread.get(..read)) {
            to.copy_from_slice(from);
        }
        self.unread.start += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that can be read before the end or an error.
    fn read(stored: &[u8]) -> (Vec<u8>, io::Result<usize>) {
        let mut data = Vec::new();
        let end = Zstandard::new(stored).unwrap().read_to_end(&mut data);
        (data, end)
    }

    /// Bytes that can be read into a buffer of this size before the end, or before an error.
    fn read_by(stored: &[u8], size: usize) -> (Vec<u8>, io::Result<usize>) {
        let mut reader = Zstandard::new(stored).unwrap();
        let (mut data, mut buffer) = (Vec::new(), vec![0; size]);
        loop {
            match reader.read(&mut buffer) {
                Ok(read @ 1..) => data.extend_from_slice(&buffer[..read]),
                end => return (data, end),
            }
        }
    }

    /// Bytes that hardly compress (a xorshift generator's).
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_le_bytes()[0] & 0x3f
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn frames_follow_each_other() {
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"skip"].concat();
        let frame = |data: &[u8]| zstd::encode_all(data, 3).unwrap();
        let text = noise(300_000);
        let stored = [
            skippable.clone(),
            frame(&text),
            frame(b""),
            skippable,
            frame(b"abc"),
        ]
        .concat();
        let (data, end) = read(&stored);
        assert_eq!(end.unwrap(), text.len() + 3);
        assert_eq!(data, [&text[..], b"abc"].concat());
    }

    #[test]
    fn a_cut_stream_keeps_its_whole_blocks() {
        // Blocks hold at most 128 KiB (RFC 8878, 3.1.1.2.4): this makes at least three of them.
        let text = noise(300_000);
        let stored = zstd::encode_all(&text[..], 3).unwrap();
        let (data, end) = read(&stored[..stored.len() - 1]);
        assert!(
            data.len() >= 2 * (128 << 10) && text.starts_with(&data),
            "{}",
            data.len()
        );
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for cut in 1..stored.len().min(40) {
            assert!(read(&stored[..cut]).1.is_err(), "{cut}");
        }
    }

    #[test]
    fn garbage_after_a_frame_keeps_the_frame() {
        let text = noise(1_000);
        let stored = [zstd::encode_all(&text[..], 3).unwrap(), vec![0; 20]].concat();
        let (data, end) = read(&stored);
        assert_eq!(data, text);
        assert!(end.is_err());
    }

    #[test]
    fn a_damaged_stream_gives_the_same_whatever_the_buffer() {
        let text = noise(3_000);
        let whole = zstd::encode_all(&text[..], 3).unwrap();
        let mut given = 0;
        for at in 0..whole.len() {
            let mut stored = whole.clone();
            stored[at] ^= 0x55;
            let (large, end) = read(&stored);
            let (small, small_end) = read_by(&stored, 61);
            assert!(
                large == small,
                "byte {at}: {} and {} bytes",
                large.len(),
                small.len()
            );
            assert_eq!(end.is_ok(), small_end.is_ok(), "byte {at}");
            given += usize::from(end.is_err() && !small.is_empty());
        }
        assert!(given > 0, "no error came behind data");
    }

    #[test]
    fn a_small_buffer_is_enough() {
        let text = noise(200_000);
        let stored = zstd::encode_all(&text[..], 3).unwrap();
        let (data, end) = read_by(&stored, 777);
        assert_eq!(end.unwrap(), 0);
        assert!(data == text);
    }
}
