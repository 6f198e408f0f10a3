//! Lines of what another program writes.

use std::io::{self, BufRead, BufReader, Read};

/// Lines of a pipe until its end or its first error, each with its line feed. A longer one than `max_bytes` comes in pieces.
pub fn lines_of(pipe: impl Read, max_bytes: u64) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut reader = Some(BufReader::new(pipe));
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = reader.as_mut()?.take(max_bytes).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            reader = None;
        }
        match read {
            Ok(0) => None,
            read => Some(read.map(|_| line)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_come_in_pieces_and_the_last_one_needs_no_line_feed() {
        let lines = lines_of(&b"one\ntwenty\n\nend"[..], 4);
        let lines: Vec<Vec<u8>> = lines.map(Result::unwrap).collect();
        assert_eq!(lines, [&b"one\n"[..], b"twen", b"ty\n", b"\n", b"end"]);
    }

    #[test]
    fn the_first_error_is_the_end() {
        struct BrokenPipe;
        impl Read for BrokenPipe {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::TimedOut.into())
            }
        }
        let mut lines = lines_of(BrokenPipe, 4);
        assert!(lines.next().is_some_and(|line| line.is_err()));
        assert!(lines.next().is_none());
    }
}
