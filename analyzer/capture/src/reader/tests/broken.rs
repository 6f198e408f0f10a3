//! Cut or broken files: frames before the fault are kept, and its place and cause are reported.

use super::*;

#[test]
fn a_broken_compression_keeps_what_came_before() {
    let whole = pcap(200);
    let after = [0x28, 0xb5, 0x2f, 0xfd];
    for (stored, compression) in [
        // Without its last byte all of the data is there, but not its end.
        (gzip(&whole)[..gzip(&whole).len() - 1].to_vec(), Compression::Gzip),
        ([zstandard(&whole), after.to_vec()].concat(), Compression::Zstd),
    ] {
        let mut reader = from(stored.clone(), 1 << 20).unwrap();
        let (frames, error) = drain(&mut reader);
        assert_eq!(frames, 200);
        let Some(Error::Decompress {
            compression: found,
            offset,
            stored: read,
            ..
        }) = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(
            (found, offset, read),
            (compression, whole.len() as u64, stored.len() as u64)
        );
    }
    // A capture, and then garbage: in gzip, a second member that is none.
    let wrong = [gzip(&whole), vec![0x1f, 0x8b, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let (frames, error) = drain(&mut from(wrong, 1 << 20).unwrap());
    assert_eq!(frames, 200);
    let error = error.unwrap().to_string();
    let expected = format!(
        "memory: gzip stream fails after {} decompressed bytes",
        whole.len()
    );
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_compression_that_breaks_at_once_is_an_error() {
    for stored in [
        vec![0x1f, 0x8b, 8],
        zstandard(&pcap(9))[..6].to_vec(),
        vec![0x28, 0xb5, 0x2f, 0xfd],
    ] {
        let error = from(stored, 64).unwrap_err();
        assert!(matches!(error, Error::Decompress { offset: 0, .. }), "{error:?}");
    }
}

#[test]
fn a_concatenated_capture_is_named() {
    let section = {
        let mut section = vec![
            0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        ];
        section.extend([0xff; 8]);
        section.extend([28, 0, 0, 0]);
        section
    };
    for (first, second, frames_before) in [
        (pcap(3), pcap(2), 3),
        (pcap(3), section.clone(), 3),
        (section.clone(), pcap(2), 0),
    ] {
        let (at, whole) = (first.len(), [first, second].concat());
        for block_bytes in [1, 50, 1 << 20] {
            let (frames, error) = drain(&mut from(whole.clone(), block_bytes).unwrap());
            assert_eq!(frames, frames_before, "{at}");
            assert_eq!(
                error.unwrap().to_string(),
                format!(
                    "memory: byte {at}: another capture begins here\n\
                     hint: give concatenated captures one by one; mergecap joins them into one file"
                )
            );
        }
    }
    // Sections of one pcapng file follow each other: no error.
    let (_, error) = drain(&mut from([section.clone(), section].concat(), 64).unwrap());
    assert!(error.is_none(), "{error:?}");
}

#[test]
fn a_corrupt_record_is_reported_with_its_offset() {
    let mut capture = pcap(3);
    let at = capture.len() as u64;
    capture.extend([0xff; 16]);
    for block_bytes in [1, 50, 1 << 20] {
        let (frames, error) = drain(&mut from(capture.clone(), block_bytes).unwrap());
        assert_eq!(frames, 3);
        let expected = "record of 4294967295 captured bytes; expected at most 262144";
        assert_eq!(
            error.unwrap().to_string(),
            format!("memory: byte {at}: {expected}")
        );
    }
    let (frames, error) = drain(&mut from(gzip(&capture), 64).unwrap());
    assert_eq!(frames, 3);
    let error = error.unwrap().to_string();
    assert!(
        error.starts_with(&format!(
            "memory: byte {at} of the data inside of gzip: record of"
        )),
        "{error}"
    );
}

#[test]
fn a_wrong_file_header_is_reported_at_once() {
    let mut capture = pcap(1);
    capture[4] = 9;
    let error = from(capture, 64).unwrap_err().to_string();
    assert_eq!(error, "memory: byte 0: pcap version 9.4; expected 2.4");
}

#[test]
fn a_cut_record_ends_the_file_with_a_note() {
    let capture = pcap(5);
    // The last record has 16 + 4 bytes, 19 and then 15 of which are left.
    let at = capture.len() - 20;
    for (had, needed) in [(19, 20), (15, 16)] {
        let mut reader = from(&capture[..at + had], 1 << 20).unwrap();
        assert!(matches!(drain(&mut reader), (4, None)));
        let truncation = reader.summary().truncation.unwrap();
        assert_eq!(
            truncation,
            Truncation {
                offset: at as u64,
                needed,
                had: had as u64
            }
        );
    }
    let mut reader = from(&capture[..9], 64).unwrap();
    assert!(matches!(drain(&mut reader), (0, None)));
    assert_eq!(
        reader.summary().truncation,
        Some(Truncation {
            offset: 0,
            needed: 24,
            had: 9
        })
    );
}

#[test]
fn a_cut_block_of_no_interest_is_noted_too() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer.block(0x99, &vec![0; 200_000]).unwrap();
    let capture = writer.finish().unwrap();
    // The block begins at 28 and is 200012 bytes long.
    for had in [100_u64, 70_000, 200_008, 200_011] {
        for block_bytes in [1_000, 1 << 20] {
            let mut reader = from(&capture[..28 + usize::try_from(had).unwrap()], block_bytes).unwrap();
            assert!(matches!(drain(&mut reader), (0, None)));
            let expected = Truncation {
                offset: 28,
                needed: 200_012,
                had,
            };
            assert_eq!(reader.summary().truncation, Some(expected), "{block_bytes}");
        }
    }
}

/// A stream that fails after its bytes.
struct Fails(Cursor<Vec<u8>>);

impl Read for Fails {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("gone")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_stream_that_fails_keeps_what_came_before() {
    let capture = pcap(4);
    let length = capture.len() as u64;
    for read_ahead in [false, true] {
        let stream = Box::new(Fails(Cursor::new(capture.clone())));
        let options = Options {
            read_ahead,
            ..Options::default()
        };
        let (frames, error) = drain(&mut Reader::from_read("memory", stream, &options).unwrap());
        assert_eq!(frames, 4);
        assert!(
            matches!(error, Some(Error::Read { offset, .. }) if offset == length),
            "{error:?}"
        );
    }
}
