//! Whole files: formats, compressions, and how little memory is used again.

use std::io::{self, Cursor, Read, Write};

use roce_model::Time;
use roce_wire::LinkType;

use super::*;
use crate::summary::{Compression, Container, Disorder, Format, Truncation};
use crate::write::{ByteOrder, InterfaceOptions, Packet, PcapOptions, PcapWriter, PcapngWriter};

mod broken;
mod later;
mod properties;

fn from(capture: impl Into<Vec<u8>>, block_bytes: usize) -> Result<Reader, Error> {
    let options = Options {
        block_bytes,
        read_ahead: false,
        ..Options::default()
    };
    Reader::from_read("memory", Box::new(Cursor::new(capture.into())), &options)
}

/// A pcap file whose frames have the lengths 0, 1, 2 ..., and the times 0, 10, 20 ... ns.
fn pcap(frames: u8) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), PcapOptions::default()).unwrap();
    for number in 0..frames {
        writer
            .write(Time(u64::from(number) * 10), 99, &vec![number; number.into()])
            .unwrap();
    }
    writer.finish().unwrap()
}

/// Number of frames, each compared with those of [`pcap`], and the error at the end.
fn drain(reader: &mut Reader) -> (u64, Option<Error>) {
    let mut count = 0;
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => {
                for frame in batch.frames() {
                    assert_eq!(frame.time, Time(count * 10));
                    let expected = vec![u8::try_from(count).unwrap(); usize::try_from(count).unwrap()];
                    assert_eq!(batch.bytes(frame), expected);
                    count += 1;
                }
                reader.recycle(batch);
            }
            Ok(None) => return (count, None),
            Err(error) => {
                assert!(matches!(reader.next_batch(), Ok(None)), "an error ends the file");
                return (count, Some(error));
            }
        }
    }
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(data: &[u8]) -> Vec<u8> {
    zstd::encode_all(data, 1).unwrap()
}

#[test]
fn the_summary_tells_the_file() {
    let mut reader = from(pcap(20), 64).unwrap();
    assert_eq!(
        reader.interfaces().len(),
        1,
        "pcap's interface is known from the start"
    );
    assert_eq!(drain(&mut reader).0, 20);
    let expected = Summary {
        format: Format {
            container: Container::PcapNanos,
            compression: None,
        },
        frames: 20,
        first_time: Some(Time(0)),
        last_time: Some(Time(190)),
        untimed: 0,
        lost_records: 0,
        disorder: Disorder::default(),
        unstamped: 0,
        sorting: crate::SortCounts::default(),
        truncation: None,
    };
    assert_eq!(reader.summary(), &expected);
    // 24 + 20 * 16 + (0 + 1 + ... + 19).
    assert_eq!(
        reader.progress(),
        Progress {
            bytes: 534,
            total: None
        }
    );
}

#[test]
fn what_is_no_capture_is_named_by_its_first_bytes() {
    let said = |capture: &[u8]| from(capture, 64).unwrap_err().to_string();
    assert_eq!(said(b""), "memory: empty; expected a capture (pcap or pcapng)");
    assert_eq!(
        said(b"GET / HTTP"),
        "memory: not a capture file: a text; expected pcap, pcapng, gzip or zstd"
    );
    assert_eq!(
        said(b"GMBU\x00\x02\x01\x00"),
        "memory: a file of Microsoft Network Monitor; expected pcap, pcapng, gzip or zstd\nhint: editcap -F pcapng memory converted.pcapng"
    );
    assert_eq!(
        said(&gzip(b"snoop\0\0\0\0\0\0\x02")),
        "memory: a file of Solaris snoop of the data inside of gzip; expected pcap or pcapng\nhint: editcap -F pcapng memory converted.pcapng"
    );
    assert_eq!(
        said(&[0xd4]),
        "memory: not a capture file: begins with 0xd4; expected pcap, pcapng, gzip or zstd"
    );
    assert_eq!(
        said(&gzip(b"text")),
        "memory: not a capture file: a text of the data inside of gzip; expected pcap or pcapng"
    );
    assert_eq!(
        said(&zstandard(b"")),
        "memory: empty of the data inside of zstd; expected a capture (pcap or pcapng)"
    );
}

#[test]
fn compressed_files_are_identified_by_content() {
    let whole = pcap(200);
    let (front, back) = whole.split_at(whole.len() / 3);
    let skippable = [
        &[0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9][..],
        &zstandard(&whole),
    ]
    .concat();
    for (stored, expected) in [
        (gzip(&whole), "pcap, ns in gzip"),
        ([gzip(front), gzip(back)].concat(), "pcap, ns in gzip"),
        (zstandard(&whole), "pcap, ns in zstd"),
        ([zstandard(front), zstandard(back)].concat(), "pcap, ns in zstd"),
        (skippable, "pcap, ns in zstd"),
    ] {
        for block_bytes in [7, 1_000, 1 << 20] {
            let length = stored.len() as u64;
            let mut reader = from(stored.clone(), block_bytes).unwrap();
            assert_eq!(reader.summary().format.to_string(), expected);
            assert_eq!(drain(&mut reader).0, 200);
            assert_eq!(reader.summary().truncation, None);
            assert_eq!(reader.progress().bytes, length);
        }
    }
}

#[test]
fn a_record_longer_than_blocks_and_their_room_is_put_together() {
    let mut writer = PcapWriter::new(
        Vec::new(),
        PcapOptions {
            snaplen: 1 << 20,
            ..PcapOptions::default()
        },
    )
    .unwrap();
    let lengths = [3, 500_000, 90_000, 0, 70_000, 8];
    for (number, length) in (0_u8..).zip(lengths) {
        writer.write(Time(0), 0, &vec![number; length]).unwrap();
    }
    let capture = writer.finish().unwrap();
    for block_bytes in [999, 65_536, 100_000, 1 << 20] {
        let mut reader = from(capture.clone(), block_bytes).unwrap();
        let mut found = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            for frame in batch.frames() {
                assert!(
                    batch
                        .bytes(frame)
                        .iter()
                        .all(|byte| usize::from(*byte) == found.len())
                );
                found.push(batch.bytes(frame).len());
            }
            reader.recycle(batch);
        }
        assert_eq!(found, lengths);
    }
}

#[test]
fn recycled_batches_are_used_again() {
    let capture = pcap(200);
    for read_ahead in [false, true] {
        let options = Options {
            block_bytes: 500,
            read_ahead,
            ..Options::default()
        };
        let mut reader =
            Reader::from_read("memory", Box::new(Cursor::new(capture.clone())), &options).unwrap();
        let (mut places, mut batches) = (Vec::new(), 0);
        while let Some(batch) = reader.next_batch().unwrap() {
            places.push(batch.data().as_ptr());
            batches += 1;
            reader.recycle(batch);
        }
        places.sort_unstable();
        places.dedup();
        // Without read-ahead there is one buffer. With it there are two in the queue, one being filled,
        // and one being read.
        let most = if read_ahead { 4 + 1 } else { 1 };
        assert!(batches > 40 && places.len() <= most, "{batches} {}", places.len());
    }
}

#[test]
fn a_batch_that_is_kept_is_not_written_over() {
    let capture = pcap(100);
    let mut reader = from(capture, 200).unwrap();
    let first = reader.next_batch().unwrap().unwrap();
    let (data, copy) = (first.data().clone(), first.data().to_vec());
    reader.recycle(first);
    while let Some(batch) = reader.next_batch().unwrap() {
        reader.recycle(batch);
    }
    assert_eq!(data, copy);
}

#[test]
fn files_are_opened_by_path_and_read_again_after_parking() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, pcap(100)).unwrap();
    let mut reader = Reader::open(
        &path,
        &Options {
            block_bytes: 256,
            ..Options::default()
        },
    )
    .unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    assert_eq!(reader.progress().total, Some(size));
    reader.next_batch().unwrap().unwrap();
    assert!(reader.park());
    assert_eq!(drain(&mut reader).0, 100);
    assert_eq!(reader.summary().frames, 100);
    assert_eq!(reader.progress().bytes, size);

    let missing = folder.path().join("missing");
    let error = Reader::open(&missing, &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: cannot be opened", missing.display())
    );
    assert!(
        !from(pcap(1), 64).unwrap().park(),
        "a stream cannot be opened again"
    );
}

#[test]
fn losses_without_frames_are_delivered() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Big).unwrap();
    let about = InterfaceOptions {
        link: LinkType::LINUX_SLL2,
        ..InterfaceOptions::default()
    };
    writer.interface(&about).unwrap();
    writer
        .packet(&Packet {
            ticks: 7,
            data: b"data",
            original: 4,
            ..Packet::default()
        })
        .unwrap();
    writer.simple(4, b"data").unwrap();
    writer.statistics(0, 9, Some(3), Some(2)).unwrap();
    let capture = writer.finish().unwrap();
    let mut reader = from(capture, 1).unwrap();
    let mut lost = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        lost.extend_from_slice(batch.lost());
        assert!(batch.frames().iter().all(|frame| frame.time == Time(7)));
    }
    assert_eq!(
        lost,
        [LostFrames {
            before: 0,
            interface: 0,
            records: 5
        }]
    );
    assert_eq!((reader.summary().lost_records, reader.summary().untimed), (5, 1));
    assert_eq!(reader.interfaces()[0].dropped, Some(5));
    assert_eq!(reader.interfaces()[0].link, LinkType::LINUX_SLL2);
}

/// A capture ends where its limit is reached, whatever it is wrapped in; one of exactly that length is whole.
#[test]
fn a_capture_is_read_up_to_its_limit() {
    let plain = pcap(100);
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &plain).unwrap();
        encoder.finish().unwrap()
    };
    let whole = plain.len() as u64;
    for (stored, read_ahead) in [(&plain, false), (&plain, true), (&gzip, false)] {
        let drained = |limit| {
            let options = Options {
                block_bytes: 1_000,
                read_ahead,
                max_bytes: Some(limit),
            };
            let stream = Box::new(Cursor::new(stored.clone()));
            let mut reader = Reader::from_read("memory", stream, &options).unwrap();
            let mut frames = 0;
            loop {
                match reader.next_batch() {
                    Ok(Some(batch)) => frames += batch.frames().len(),
                    Ok(None) => return (frames, reader.expanded(), None),
                    Err(error) => return (frames, reader.expanded(), Some(error.to_string())),
                }
            }
        };
        assert_eq!(drained(whole), (100, whole, None));
        let (frames, expanded, error) = drained(whole - 1);
        assert_eq!((frames, expanded), (99, whole - 1));
        let error = error.unwrap();
        assert!(
            error.contains(&format!("longer than {} bytes", whole - 1)),
            "{error}"
        );
    }
}
