//! Bounds on the JSON of strangers: a reader that fails before a parser would have to keep much of it.
//!
//! `serde_json` keeps one string and one number whole, and a byte for each level of what it skips. So the length of both and the
//! depth are limited here, byte by byte. Whether the text is JSON at all is left to `serde_json`.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Longest string: stacks of Python calls in profiles of PyTorch have some ten kilobytes.
const MAX_STRING_BYTES: u32 = 1 << 20;
/// Longest number. A double has at most 767 significant digits.
const MAX_NUMBER_BYTES: u32 = 1 << 10;
/// Levels of arrays and objects: traces have four.
const MAX_DEPTH: u32 = 64;

/// Reads on as long as the text stays within the bounds, and counts its bytes.
pub(super) struct BoundedReader<R> {
    input: R,
    offset: Rc<Cell<u64>>,
    depth: u32,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Between,
    /// In a string: its bytes up to here, and true if the next byte is escaped.
    String(u32, bool),
    /// In a number or a word: its bytes up to here.
    Word(u32),
}

impl<R: Read> BoundedReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            offset: Rc::default(),
            depth: 0,
            state: State::Between,
        }
    }

    /// The number of bytes that were read, while the parser has the reader.
    pub(super) fn offset(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.offset)
    }

    fn take(&mut self, byte: u8) -> Result<(), &'static str> {
        self.state = match (self.state, byte) {
            (State::String(length, true), _) => State::String(length + 1, false),
            (State::String(_, false), b'"') => State::Between,
            (State::String(MAX_STRING_BYTES, _), _) => return Err("a string is longer than 1 MiB"),
            (State::String(length, false), _) => State::String(length + 1, byte == b'\\'),
            (_, b'"') => State::String(0, false),
            (_, b'[' | b'{') => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err("arrays and objects are nested deeper than 64 levels");
                }
                State::Between
            }
            (_, b']' | b'}') => {
                self.depth = self.depth.saturating_sub(1);
                State::Between
            }
            (_, b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') => State::Between,
            (State::Word(MAX_NUMBER_BYTES), _) => return Err("a number is longer than 1,024 digits"),
            (State::Word(length), _) => State::Word(length + 1),
            (State::Between, _) => State::Word(1),
        };
        Ok(())
    }
}

impl<R: Read> Read for BoundedReader<R> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        for byte in buffer.get(..read).unwrap_or_default() {
            self.take(*byte)
                .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))?;
            self.offset.set(self.offset.get() + 1);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<usize, String> {
        let mut bytes = Vec::new();
        let read = BoundedReader::new(text.as_bytes()).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_within_the_bounds_passes() {
        let longest = format!("[\"{}\", {}]", "x".repeat(1 << 20), "1".repeat(1_000));
        assert_eq!(read(&longest), Ok(longest.len()));
        let deepest = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert_eq!(read(&deepest.repeat(100)), Ok(12_800));
        // Brackets and quotes in a string are text; an escaped quote does not end it.
        let text = format!("\"{}\\\"{}\" 1", "[".repeat(1_000), "{".repeat(1_000));
        assert_eq!(read(&text), Ok(text.len()));
    }

    #[test]
    fn what_is_beyond_fails() {
        assert!(
            read(&format!("\"{}", "x".repeat(2 << 20)))
                .unwrap_err()
                .contains("string")
        );
        assert!(read(&"\\\"".repeat(2 << 20)).unwrap_err().contains("string"));
        assert!(read(&"7".repeat(2_000)).unwrap_err().contains("number"));
        assert!(read(&"{\"a\":".repeat(65)).unwrap_err().contains("nested"));
    }
}
