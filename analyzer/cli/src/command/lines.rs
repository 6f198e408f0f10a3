//! Lines of a program that runs beside this one: its pipe is read without waiting, and with bounds.

use std::io::{self, ErrorKind, Read as _};
use std::process::ChildStdout;

/// Bytes that are read in one call, at most.
const BUFFER_BYTES: usize = 1 << 16;

/// Bounds of what a program may write.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLimits {
    /// The longest line, in bytes.
    pub(super) line: usize,
    /// Bytes that are read at one look, about: the rest is read at the next, so that a flood holds nothing up.
    pub(super) look: usize,
}

/// Lines of a pipe that is read without waiting.
#[derive(Debug)]
pub(super) struct Lines {
    pipe: Option<ChildStdout>,
    limits: LineLimits,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The current line is too long.
    is_too_long: bool,
}

impl Lines {
    /// The lines of a program's standard output; none if it has no pipe.
    ///
    /// # Errors
    /// The pipe cannot be set not to wait.
    pub(super) fn new(pipe: Option<ChildStdout>, limits: LineLimits) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            let flags = rustix::fs::fcntl_getfl(pipe)?;
            rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK)?;
        }
        Ok(Self {
            pipe,
            limits,
            line: Vec::new(),
            is_too_long: false,
        })
    }

    /// True until the program has closed the pipe.
    pub(super) const fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Closes the pipe.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    /// Calls `each` with every line that has come whole, without its line feed. One that is too long is empty.
    pub(super) fn look(&mut self, mut each: impl FnMut(&[u8])) {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut bytes = 0;
        while bytes < self.limits.look {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    bytes += count;
                    self.take(buffer.get(..count).unwrap_or_default(), &mut each);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn take(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let end = part.strip_suffix(b"\n");
            let text = end.unwrap_or(part);
            if self.line.len() + text.len() > self.limits.line {
                self.is_too_long = true;
                self.line.clear();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(text);
            }
            if end.is_some() {
                each(&self.line);
                self.line.clear();
                self.is_too_long = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const LIMITS: LineLimits = LineLimits {
        line: 10,
        look: 1 << 10,
    };

    #[test]
    fn lines_come_in_any_pieces_and_have_a_bound() {
        let text = b"0123456789\n\n01234567890\nabc\n0123456789abcdef";
        let expected: [&[u8]; 4] = [b"0123456789", b"", b"", b"abc"];
        for size in 1..=text.len() {
            let mut lines = Lines::new(None, LIMITS).unwrap();
            let mut seen = Vec::new();
            for piece in text.chunks(size) {
                lines.take(piece, &mut |line| seen.push(line.to_vec()));
                assert!(lines.line.len() <= LIMITS.line);
            }
            assert_eq!(seen, expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_silent_program_holds_nothing_up_and_its_end_is_seen() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = Lines::new(child.stdout.take(), LIMITS).unwrap();
        lines.look(|line| panic!("{line:?} from a program that is silent"));
        assert!(lines.is_open());
        drop(child.stdin.take());
        child.wait().unwrap();
        lines.look(|line| panic!("{line:?} from a program that wrote nothing"));
        assert!(!lines.is_open());
    }
}
