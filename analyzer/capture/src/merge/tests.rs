//! Order, ties, failing inputs, many inputs, and that memory stays bounded.

use std::fs;
use std::io::Cursor;

use super::*;
use crate::options::Options;
use crate::write::{ByteOrder, InterfaceOptions, Packet, PcapOptions, PcapWriter, PcapngWriter};

fn capture(times: &[u64]) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), PcapOptions::default()).unwrap();
    for time in times {
        writer.write(Time(*time), 4, b"data").unwrap();
    }
    writer.finish().unwrap()
}

fn reader(capture: Vec<u8>, block_bytes: usize) -> Reader {
    let options = Options {
        block_bytes,
        read_ahead: false,
        ..Options::default()
    };
    Reader::from_read("memory", Box::new(Cursor::new(capture)), &options).unwrap()
}

/// All frames in the merged order, as (time, input).
fn drain(merge: &mut Merge) -> Vec<(u64, usize)> {
    let mut all = Vec::new();
    while let Some(run) = merge.next_run() {
        assert!(run.frames().iter().all(|frame| run.batch.bytes(frame) == b"data"));
        all.extend(run.frames().iter().map(|frame| (frame.time.0, run.input)));
        merge.recycle(run);
    }
    all
}

#[test]
fn frames_come_by_time_then_input() {
    for block_bytes in [1, 45, 1 << 20] {
        let inputs: [&[u64]; 4] = [&[1, 4, 4, 9], &[], &[1, 2, 4], &[3, 10]];
        let readers = inputs
            .iter()
            .map(|times| reader(capture(times), block_bytes))
            .collect();
        let mut merge = Merge::new(readers);
        let expected = [
            (1, 0),
            (1, 2),
            (2, 2),
            (3, 3),
            (4, 0),
            (4, 0),
            (4, 2),
            (9, 0),
            (10, 3),
        ];
        assert_eq!(drain(&mut merge), expected);
        assert!(merge.next_run().is_none());
        assert!(merge.take_errors().is_empty());
        assert_eq!(merge.readers()[0].summary().frames, 4);
    }
}

#[test]
fn one_input_comes_in_whole_batches() {
    let mut merge = Merge::new(vec![reader(capture(&[5, 3, 8]), 1 << 20)]);
    let run = merge.next_run().unwrap();
    assert_eq!((run.input, run.range), (0, 0..3));
    assert!(merge.next_run().is_none());
}

#[test]
fn a_file_out_of_order_is_put_in_order() {
    let readers = vec![
        reader(capture(&[10, 5, 20]), 1 << 20),
        reader(capture(&[7, 15]), 1 << 20),
    ];
    let mut merge = Merge::new(readers);
    assert_eq!(drain(&mut merge), [(5, 0), (7, 1), (10, 0), (15, 1), (20, 0)]);
    let sorting = merge.readers()[0].summary().sorting;
    assert_eq!((sorting.frames, sorting.first), (1, Some(Time(5))));
    assert_eq!((sorting.furthest_ns, sorting.too_late), (5, 0));
    assert_eq!(merge.readers()[1].summary().sorting, crate::SortCounts::default());
}

#[test]
fn an_input_that_fails_ends_alone() {
    let mut broken = capture(&[1, 5]);
    broken.extend([0xff; 16]);
    let mut merge = Merge::new(vec![reader(broken, 1 << 20), reader(capture(&[2, 9]), 1 << 20)]);
    assert_eq!(drain(&mut merge), [(1, 0), (2, 1), (5, 0), (9, 1)]);
    let errors = merge.take_errors();
    assert!(
        matches!(errors.as_slice(), [(0, Error::Corrupt { offset: 64, .. })]),
        "{errors:?}"
    );
    assert!(merge.take_errors().is_empty());
}

#[test]
fn every_loss_is_in_one_run() {
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer.interface(&InterfaceOptions::default()).unwrap();
    for ticks in [10, 20, 30] {
        let packet = Packet {
            ticks,
            original: 4,
            data: b"data",
            dropped: Some(ticks),
            ..Packet::default()
        };
        writer.packet(&packet).unwrap();
    }
    // 60 of them are known; the rest comes after the last frame.
    writer.statistics(0, 40, Some(100), None).unwrap();
    let capture_with_losses = writer.finish().unwrap();
    for block_bytes in [1, 1 << 20] {
        let others = reader(capture(&[15, 25, 35]), 1 << 20);
        let mut merge = Merge::new(vec![reader(capture_with_losses.clone(), block_bytes), others]);
        let mut lost = Vec::new();
        while let Some(run) = merge.next_run() {
            lost.extend(run.lost().iter().map(|lost| lost.records));
            merge.recycle(run);
        }
        assert_eq!(lost, [10, 20, 30, 40]);
        assert_eq!(merge.readers()[0].summary().lost_records, 100);
    }
}

#[test]
fn many_files_are_closed_until_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let count = CLOSE_FROM as u64 + 6;
    let readers = (0..count).map(|number| {
        let path = folder.path().join(number.to_string());
        // Each file follows the one before it, and the first one reaches over all.
        let mut times = vec![number * 10, number * 10 + 1];
        times.extend((number == 0).then_some(1_000_000));
        fs::write(&path, capture(&times)).unwrap();
        let mut reader = Reader::open(&path, &Options::default()).unwrap();
        assert!(reader.park());
        reader
    });
    let readers = readers.rev().collect();
    let mut merge = Merge::new(readers);
    let first = merge.next_run().unwrap();
    assert_eq!(first.frames()[0].time, Time(0));
    merge.recycle(first);
    // Only the file that is being read is open.
    assert_eq!(merge.current.iter().flatten().count(), 1);
    assert!(
        merge
            .readers()
            .iter()
            .all(|reader| reader.interfaces().len() == 1)
    );
    let rest = drain(&mut merge);
    assert!(rest.is_sorted());
    assert_eq!(rest.len() as u64, count * 2 - 1);
    assert!(merge.readers().iter().all(|reader| reader.summary().frames >= 2));
}

#[test]
fn a_parked_file_that_is_gone_is_an_error_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone");
    fs::write(&path, capture(&[1])).unwrap();
    let mut gone = Reader::open(&path, &Options::default()).unwrap();
    assert!(gone.park());
    fs::remove_file(&path).unwrap();
    let mut merge = Merge::new(vec![gone, reader(capture(&[2]), 1 << 20)]);
    assert_eq!(drain(&mut merge), [(2, 1)]);
    assert!(matches!(
        merge.take_errors().as_slice(),
        [(0, Error::Open { .. })]
    ));
}
