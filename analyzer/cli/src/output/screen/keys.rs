//! Keys from the bytes that a terminal sends: characters in UTF-8, control characters, and the sequences of ECMA-48 (CSI) and of
//! the VT100's application mode (SS3) for arrows and pages. What is not known of these is no key.
//!
//! A crate was looked for and not taken: crossterm reads keys, but its reader spins at full load when
//! the terminal goes away (crossterm-rs/crossterm, issue 793).

use roce_report::Key;

/// A pressed key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PressedKey {
    /// A key of the screen.
    Key(Key),
    /// Ctrl-C, which in raw mode is a key.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Redraw,
}

const ESCAPE: u8 = 0x1b;
/// The longest sequence that is waited for.
const LONGEST: usize = 32;

/// Bytes that are not all there.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<u8>);

impl Keys {
    /// Adds bytes; what was pressed by them.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Vec<PressedKey> {
        self.0.extend_from_slice(bytes);
        let mut pressed = Vec::new();
        while let Some((length, key)) = next(&self.0) {
            self.0.drain(..length);
            pressed.extend(key);
        }
        pressed
    }

    /// True if more is needed to say what was pressed.
    pub(super) fn wait(&self) -> bool {
        !self.0.is_empty()
    }

    /// No more has come: an escape that nothing followed is the key.
    pub(super) fn end(&mut self) -> Vec<PressedKey> {
        let left = std::mem::take(&mut self.0);
        let escape = left == [ESCAPE];
        escape
            .then_some(PressedKey::Key(Key::Escape))
            .into_iter()
            .collect()
    }
}

/// Length of the first key in bytes, and the key; none when it is incomplete.
fn next(bytes: &[u8]) -> Option<(usize, Option<PressedKey>)> {
    let key = |key| Some(PressedKey::Key(key));
    match *bytes.first()? {
        ESCAPE => sequence(bytes),
        0x03 => Some((1, Some(PressedKey::Interrupt))),
        0x0c => Some((1, Some(PressedKey::Redraw))),
        0x1a => Some((1, Some(PressedKey::Suspend))),
        b'\r' | b'\n' => Some((1, key(Key::Enter))),
        0x08 | 0x7f => Some((1, key(Key::Backspace))),
        0..0x20 => Some((1, None)),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Option<(usize, Option<PressedKey>)> {
    let some = bytes.get(..4).unwrap_or(bytes);
    let (valid, whole) = match std::str::from_utf8(some) {
        Ok(text) => (text, true),
        Err(error) => {
            let valid = some.get(..error.valid_up_to()).unwrap_or_default();
            (
                std::str::from_utf8(valid).unwrap_or_default(),
                error.error_len().is_some(),
            )
        }
    };
    match valid.chars().next() {
        Some(letter) => Some((letter.len_utf8(), Some(PressedKey::Key(Key::Char(letter))))),
        // Bytes that are no UTF-8 are no key.
        None => whole.then_some((1, None)),
    }
}

fn sequence(bytes: &[u8]) -> Option<(usize, Option<PressedKey>)> {
    let is_control = match bytes.get(1)? {
        b'[' => true,
        b'O' => false,
        // An escape before something else: the key alone.
        _ => return Some((1, Some(PressedKey::Key(Key::Escape)))),
    };
    let rest = bytes.get(2..)?;
    // Parameters and intermediate bytes precede its last byte.
    let last = |byte: &u8| !is_control || (0x40..=0x7e).contains(byte);
    let Some(length) = rest.iter().position(last) else {
        return (rest.len() > LONGEST).then_some((bytes.len(), None));
    };
    let (parameters, end) = (rest.get(..length)?, *rest.get(length)?);
    let number = parameters.split(|byte| *byte == b';').next();
    let key = match (end, number) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C', _) => Some(Key::Right),
        (b'D', _) => Some(Key::Left),
        (b'H', _) | (b'~', Some(b"1" | b"7")) => Some(Key::Home),
        (b'F', _) | (b'~', Some(b"4" | b"8")) => Some(Key::End),
        (b'~', Some(b"5")) => Some(Key::PageUp),
        (b'~', Some(b"6")) => Some(Key::PageDown),
        _ => None,
    };
    Some((2 + length + 1, key.map(PressedKey::Key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<PressedKey> {
        let mut keys = Keys::default();
        let mut pressed = keys.add(bytes);
        pressed.extend(keys.end());
        pressed
    }

    #[test]
    fn what_terminals_send() {
        // As in xterm's documentation of control sequences, in normal and in application mode.
        for (bytes, key) in [
            (&b"\x1b[A"[..], Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[C", Key::Right),
            (b"\x1b[1;5D", Key::Left),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[6~", Key::PageDown),
            (b"\x1b[H", Key::Home),
            (b"\x1b[1~", Key::Home),
            (b"\x1bOF", Key::End),
            (b"\x1b[4~", Key::End),
            (b"\r", Key::Enter),
            (b"\x7f", Key::Backspace),
            (b"\x1b", Key::Escape),
            (b"q", Key::Char('q')),
            ("ü".as_bytes(), Key::Char('ü')),
        ] {
            assert_eq!(all(bytes), [PressedKey::Key(key)], "{bytes:?}");
        }
        assert_eq!(
            all(b"\x03\x1a\x0c"),
            [PressedKey::Interrupt, PressedKey::Suspend, PressedKey::Redraw]
        );
        // F5, the focus, a stray byte, a NUL: no keys.
        assert_eq!(all(b"\x1b[15~\x1b[I\xff\x00"), []);
        assert_eq!(
            all(b"\x1bq"),
            [PressedKey::Key(Key::Escape), PressedKey::Key(Key::Char('q'))]
        );
    }

    #[test]
    fn bytes_come_in_any_portions() {
        let bytes = "\u{1b}[5~a\u{1b}[Aü/".as_bytes();
        let whole = all(bytes);
        assert_eq!(whole.len(), 5);
        for cut in 0..bytes.len() {
            let mut keys = Keys::default();
            let mut pressed = keys.add(&bytes[..cut]);
            pressed.extend(keys.add(&bytes[cut..]));
            assert_eq!(pressed, whole, "cut at {cut}");
            assert!(!keys.wait());
        }
        let mut keys = Keys::default();
        assert_eq!(keys.add(b"\x1b["), []);
        assert!(keys.wait());
        assert_eq!((keys.end(), keys.wait()), (Vec::new(), false));
        // A sequence without an end is dropped.
        keys.add(b"\x1b[");
        keys.add(&[b'1'; 64]);
        assert!(!keys.wait());
    }
}
