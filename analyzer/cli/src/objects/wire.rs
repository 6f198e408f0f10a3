//! Messages between a run and the process that reads and writes its objects.
//!
//! A request is one message on the socket that is the process' standard input: a letter, a URL, and open files: the socket for the
//! answer, and for a write the file. An answer is frames: a letter, a length of four bytes (little endian), and that many bytes. It ends with
//! [`END`] or [`FAILED`]; without either, the process has gone.

use std::io::{self, Read, Write};

/// Longest request.
pub(super) const MAX_REQUEST: usize = 1_300;
/// Longest content of a frame.
pub(super) const MAX_FRAME: usize = 256 << 10;

/// The size of an object, 8 bytes.
pub(super) const SIZE: u8 = b's';
/// Bytes of an object.
pub(super) const DATA: u8 = b'd';
/// All was done.
pub(super) const END: u8 = b'e';
/// It was not done: a letter of [`Cause`], and a text.
pub(super) const FAILED: u8 = b'x';

/// A request's letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    /// The size of an object.
    Size,
    /// All bytes of an object.
    Read,
    /// A file becomes an object.
    Write,
    /// An object is removed.
    Remove,
}

impl Verb {
    const ALL: [(u8, Self); 4] = [
        (b'S', Self::Size),
        (b'R', Self::Read),
        (b'W', Self::Write),
        (b'D', Self::Remove),
    ];

    /// The request as bytes.
    pub(super) fn with(self, url: &str) -> Vec<u8> {
        let letter = Self::ALL.iter().find(|(_, verb)| *verb == self);
        let mut bytes: Vec<u8> = letter.map(|(letter, _)| *letter).into_iter().collect();
        bytes.extend_from_slice(url.as_bytes());
        bytes
    }

    /// The request that these bytes are.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Self, &str)> {
        let (letter, url) = bytes.split_first()?;
        let (_, verb) = Self::ALL.iter().find(|(known, _)| known == letter)?;
        Some((*verb, std::str::from_utf8(url).ok()?))
    }
}

/// Kind of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// Another attempt may succeed.
    Passing,
    /// There is no such object.
    Missing,
    /// It stays, until somebody changes something.
    Lasting,
    /// The process that reads and writes has ended.
    Gone,
}

impl Cause {
    const ALL: [(u8, Self); 3] = [
        (b'p', Self::Passing),
        (b'm', Self::Missing),
        (b'l', Self::Lasting),
    ];

    fn letter(self) -> u8 {
        let found = Self::ALL.iter().find(|(_, cause)| *cause == self);
        found.map_or(b'l', |(letter, _)| *letter)
    }

    fn parse(letter: u8) -> Self {
        let found = Self::ALL.iter().find(|(known, _)| *known == letter);
        found.map_or(Self::Lasting, |(_, cause)| *cause)
    }
}

/// The content of a failure's frame.
pub(super) fn failure(cause: Cause, text: &str) -> Vec<u8> {
    let mut bytes = vec![cause.letter()];
    bytes.extend_from_slice(text.as_bytes());
    bytes.truncate(MAX_FRAME);
    bytes
}

/// The failure that a frame's content is.
pub(super) fn parse_failure(content: &[u8]) -> (Cause, String) {
    let (letter, text) = content.split_first().unwrap_or((&b'l', &[]));
    (Cause::parse(*letter), String::from_utf8_lossy(text).into_owned())
}

/// Writes a frame.
///
/// # Errors
/// The other side has gone.
pub(super) fn send(to: &mut impl Write, kind: u8, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(io::Error::other)?;
    let [a, b, c, d] = length.to_le_bytes();
    to.write_all(&[kind, a, b, c, d])?;
    to.write_all(content)
}

/// The head of the next frame: its letter, and how many bytes follow.
///
/// # Errors
/// The other side has gone, or says what is no frame.
pub(super) fn head(from: &mut impl Read) -> io::Result<(u8, usize)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME || ![SIZE, DATA, END, FAILED].contains(&kind) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no frame"));
    }
    Ok((kind, length))
}

/// The next frame, whole.
///
/// # Errors
/// As those of [`head`].
pub(super) fn receive(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let (kind, length) = head(from)?;
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok((kind, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_as_they_were() {
        for (_, verb) in Verb::ALL {
            assert_eq!(Verb::parse(&verb.with("s3://b/k")), Some((verb, "s3://b/k")));
        }
        for other in [&b""[..], b"X s3://b/k", b"R\xff"] {
            assert_eq!(Verb::parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn frames_come_back_as_they_were_and_have_a_bound() {
        let mut bytes = Vec::new();
        send(&mut bytes, DATA, b"abc").unwrap();
        send(&mut bytes, FAILED, &failure(Cause::Missing, "no such object")).unwrap();
        // d, the length 3 in four bytes, and the content.
        assert_eq!(bytes[..8], *b"d\x03\0\0\0abc");
        let mut from = &bytes[..];
        assert_eq!(receive(&mut from).unwrap(), (DATA, b"abc".to_vec()));
        let (kind, content) = receive(&mut from).unwrap();
        assert_eq!(kind, FAILED);
        assert_eq!(
            parse_failure(&content),
            (Cause::Missing, "no such object".to_owned())
        );
        assert!(receive(&mut from).is_err());
        for odd in [&b"d\xff\xff\xff\xff"[..], b"q\0\0\0\0", b"d\x03\0\0\0ab"] {
            assert!(receive(&mut &odd[..]).is_err(), "{odd:?}");
        }
    }
}
