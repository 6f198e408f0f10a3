//! Kinds of files by their first bytes, for errors about a file of another kind.

/// First bytes of files, or bytes at a place in them, and the kind in words.
///
/// Sources: the formats' own specifications, and the magic numbers of file(1).
const KINDS: [(usize, &[u8], &str); 26] = [
    (0, b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    (0, b"\xff\xd8\xff", "a picture (JPEG)"),
    (0, b"GIF8", "a picture (GIF)"),
    (8, b"WEBP", "a picture (WebP)"),
    (0, b"\x1f\x8b", "a file compressed by gzip"),
    (0, b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (0, b"\xfd7zXZ\0", "a file compressed by xz"),
    (0, b"BZh", "a file compressed by bzip2"),
    (0, b"PK\x03\x04", "a ZIP archive, or an office document"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"\x7fELF", "a program (ELF)"),
    (0, b"\xa1\xb2\xc3\xd4", "a capture (pcap)"),
    (0, b"\xd4\xc3\xb2\xa1", "a capture (pcap)"),
    (0, b"\xa1\xb2\x3c\x4d", "a capture (pcap)"),
    (0, b"\x4d\x3c\xb2\xa1", "a capture (pcap)"),
    (0, b"\x0a\x0d\x0d\x0a", "a capture (pcapng)"),
    (0, b"\xff\xfe", "a text in UTF-16"),
    (0, b"\xfe\xff", "a text in UTF-16"),
    (0, b"RIFF", "a sound or a video (RIFF)"),
    (4, b"ftyp", "a video (MP4)"),
    (0, b"GMBU", "a capture of Microsoft Network Monitor"),
    (0, b"snoop\0", "a capture of Solaris snoop"),
];

/// Bytes of a file that are looked at.
pub const LOOKED_AT: usize = 512;

/// The kind of a file that begins with these bytes, in words; `None`: it is not known, or a text.
pub fn content(begin: &[u8]) -> Option<&'static str> {
    let is =
        |(at, bytes, _): &&(usize, &[u8], &str)| begin.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    KINDS.iter().find(is).map(|(.., kind)| *kind)
}

/// True of bytes that a text begins with: UTF-8 without control characters, except those of lines and terminals.
pub fn is_text(begin: &[u8]) -> bool {
    let begin = begin.get(..LOOKED_AT).unwrap_or(begin);
    let text = match std::str::from_utf8(begin) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => {
            let whole = begin.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let is_odd =
        |glyph: char| glyph.is_control() && !matches!(glyph, '\n' | '\r' | '\t' | '\u{1b}' | '\u{8}');
    !text.is_empty() && content(begin).is_none() && !text.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_their_first_bytes() {
        assert_eq!(content(b"\x89PNG\r\n\x1a\n\0\0"), Some("a picture (PNG)"));
        assert_eq!(content(b"\0\0\0\x20ftypisom"), Some("a video (MP4)"));
        let mut tar = [0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(content(&tar), Some("a tar archive"));
        for other in [b"".as_slice(), b"NIC statistics:\n", &[0; 512]] {
            assert_eq!(content(other), None);
        }
    }

    #[test]
    fn texts_have_no_odd_characters() {
        for text in [
            b"show version\r\n".as_slice(),
            "Gr\u{fc}\u{df}e".as_bytes(),
            b"\x1b[1mbold",
            "\u{fc}".repeat(300).as_bytes(),
        ] {
            assert!(is_text(text));
        }
        for other in [b"".as_slice(), b"\0\0", b"%PDF-1.7\n", b"caf\xe9 au lait"] {
            assert!(!is_text(other));
        }
    }
}
