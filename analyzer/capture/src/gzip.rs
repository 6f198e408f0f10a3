//! gzip streams of any number of members (RFC 1952).
//!
//! flate2's own readers drop what a failing call had decompressed before it failed; this one keeps it. Leaves
//! deflate and CRC-32 to flate2.

use std::io::{self, BufRead, Read};

use flate2::{Crc, Decompress, FlushDecompress, Status};

const HAS_HEADER_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// Decompresses gzip members one after the other.
pub(crate) struct Gzip<R> {
    input: R,
    inflate: Decompress,
    crc: Crc,
    state: State,
    /// An error that comes after bytes already delivered.
    error: Option<io::Error>,
}

enum State {
    /// Before a member; `true` before the first one.
    Header(bool),
    Body,
    End,
}

impl<R: BufRead> Gzip<R> {
    pub(crate) fn new(input: R) -> Self {
        let inflate = Decompress::new(false);
        Self {
            input,
            inflate,
            crc: Crc::new(),
            state: State::Header(true),
            error: None,
        }
    }

    /// Reads a member's header; false where there is no further member.
    fn header(&mut self, first: bool) -> io::Result<bool> {
        if !first {
            // Zeros fill up tape blocks; anything else behind a member is no gzip (gzip itself ignores it, too).
            let next = self.input.fill_buf()?;
            if next.first() != Some(&0x1f) {
                return Ok(false);
            }
        }
        let [id1, id2, method, flags, ..] = self.array::<10>()?;
        if (id1, id2, method) != (0x1f, 0x8b, 8) {
            return Err(bad(format!(
                "member header begins with 0x{id1:02x}{id2:02x}{method:02x}; expected 0x1f8b08"
            )));
        }
        if flags & HAS_EXTRA != 0 {
            let length = u16::from_le_bytes(self.array()?);
            for _ in 0..length {
                self.array::<1>()?;
            }
        }
        for flag in [HAS_NAME, HAS_COMMENT] {
            if flags & flag != 0 {
                while self.array()? != [0] {}
            }
        }
        if flags & HAS_HEADER_CRC != 0 {
            self.array::<2>()?;
        }
        self.inflate.reset(false);
        self.crc.reset();
        Ok(true)
    }

    /// Checks a member's checksum and length.
    fn trailer(&mut self) -> io::Result<()> {
        let crc = u32::from_le_bytes(self.array()?);
        let length = u32::from_le_bytes(self.array()?);
        if crc != self.crc.sum() || length != self.crc.amount() {
            let (sum, amount) = (self.crc.sum(), self.crc.amount());
            return Err(bad(format!(
                "member ends with CRC 0x{crc:08x} and length {length}; its data has 0x{sum:08x} and {amount}"
            )));
        }
        Ok(())
    }

    /// Decompresses some of a member; the count also holds where an error follows.
    fn body(&mut self, buffer: &mut [u8]) -> (usize, io::Result<Status>) {
        let input = match self.input.fill_buf() {
            Ok([]) => return (0, Err(cut())),
            Ok(input) => input,
            Err(error) => return (0, Err(error)),
        };
        let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, buffer, FlushDecompress::None);
        let consumed = usize::try_from(self.inflate.total_in() - before_in).unwrap_or(input.len());
        let produced = usize::try_from(self.inflate.total_out() - before_out)
            .unwrap_or(0)
            .min(buffer.len());
        self.input.consume(consumed);
        self.crc.update(buffer.get(..produced).unwrap_or_default());
        if consumed == 0 && produced == 0 && matches!(status, Ok(Status::Ok | Status::BufError)) {
            return (0, Err(bad("the deflate stream makes no progress".to_owned())));
        }
        (produced, status.map_err(|error| bad(error.to_string())))
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input
            .read_exact(&mut bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => cut(),
                _ => error,
            })?;
        Ok(bytes)
    }
}

fn bad(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends inside of a member")
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(error) = self.error.take() {
                self.state = State::End;
                return Err(error);
            }
            match self.state {
                State::End => return Ok(0),
                State::Header(first) => {
                    let more = self.header(first).inspect_err(|_| self.state = State::End)?;
                    self.state = if more { State::Body } else { State::End };
                }
                State::Body => {
                    let (produced, status) = self.body(buffer);
                    let ended = match status {
                        Ok(Status::StreamEnd) => {
                            self.state = State::Header(false);
                            self.trailer()
                        }
                        Ok(Status::Ok | Status::BufError) => Ok(()),
                        Err(error) => Err(error),
                    };
                    self.error = ended.err();
                    if produced > 0 {
                        return Ok(produced);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn member(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::GzBuilder::new()
            .filename("x.pcap")
            .comment("c")
            .extra(vec![1, 2, 3])
            .write(Vec::new(), flate2::Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Bytes that can be read before the end or an error.
    fn read(stored: &[u8]) -> (Vec<u8>, io::Result<usize>) {
        let mut data = Vec::new();
        let end = Gzip::new(stored).read_to_end(&mut data);
        (data, end)
    }

    #[test]
    fn members_follow_each_other_up_to_zeros() {
        let mut stored = member(b"abc");
        stored.extend(member(b""));
        stored.extend(member(b"defg"));
        stored.extend([0; 100]);
        let (data, end) = read(&stored);
        assert_eq!((data.as_slice(), end.unwrap()), (b"abcdefg".as_slice(), 7));
    }

    #[test]
    fn what_came_before_an_error_is_kept() {
        let text: Vec<u8> = (0..50_000_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        let whole = member(&text);
        let (data, end) = read(&whole[..whole.len() - 1]);
        assert_eq!(data, text);
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);

        let mut wrong = whole.clone();
        let crc = whole.len() - 8;
        wrong[crc] ^= 1;
        let (data, end) = read(&wrong);
        assert_eq!(data, text);
        assert!(end.unwrap_err().to_string().contains("CRC"));

        let (data, end) = read(&whole[..whole.len() / 2]);
        assert!(data.len() > text.len() / 4 && text.starts_with(&data));
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn the_second_member_may_fail() {
        let mut stored = member(b"abc");
        stored.extend([0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 0]);
        let (data, end) = read(&stored);
        assert_eq!(data, b"abc");
        assert!(end.unwrap_err().to_string().contains("expected 0x1f8b08"));
    }
}
