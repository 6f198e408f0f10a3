//! Batches in and out of order, as a reader gives them.

use proptest::prelude::*;

use super::*;
use crate::frame::Direction;

/// A batch of frames with these stamps; each has its stamp as its bytes.
fn batch(times: &[u64]) -> Batch {
    let mut data = Vec::new();
    let mut frames = Vec::new();
    for time in times {
        frames.push(Frame {
            time: Time(*time),
            offset: place(data.len()),
            captured: 8,
            original: 8,
            interface: 0,
            fcs_bytes: 0,
            direction: Direction::Unknown,
            process: 0,
        });
        data.extend_from_slice(&time.to_be_bytes());
    }
    Batch::new(Bytes::from(data), frames, Vec::new())
}

/// Stamps and bytes of what comes out.
fn out(sorter: &mut Sorter, ended: bool) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(batch) = sorter.pop(ended) {
        for frame in batch.frames() {
            assert_eq!(batch.bytes(frame), frame.time.0.to_be_bytes());
            times.push(frame.time.0);
        }
    }
    times
}

fn is_in_order(times: &[u64], last: Option<u64>) -> bool {
    last.into_iter().chain(times.iter().copied()).is_sorted()
}

/// All of it through a sorter, in batches of this size.
fn sorted(times: &[u64], size: usize, most_bytes: usize) -> (Vec<u64>, SortCounts) {
    let mut sorter = Sorter::new(most_bytes);
    let (mut all, mut last) = (Vec::new(), None);
    for some in times.chunks(size) {
        sorter.push(batch(some), is_in_order(some, last), &[]);
        last = some.last().copied();
        all.extend(out(&mut sorter, false));
    }
    all.extend(out(&mut sorter, true));
    assert_eq!((sorter.frames, sorter.bytes), (0, 0));
    (all, sorter.sorting())
}

const MS: u64 = 1_000_000;

#[test]
fn batches_in_order_pass_as_they_are_once_a_millisecond_has_passed() {
    let mut sorter = Sorter::new(1 << 20);
    let first = batch(&[1, 2, 3]);
    let data = first.data().as_ptr();
    sorter.push(first, true, &[]);
    sorter.push(batch(&[MS + 2]), true, &[]);
    assert!(sorter.pop(false).is_none(), "3 is not a millisecond ago");
    sorter.push(batch(&[MS + 3]), true, &[]);
    let passed = sorter.pop(false).unwrap();
    assert_eq!(passed.data().as_ptr(), data, "nothing was copied");
    assert!(sorter.pop(false).is_none());
    assert_eq!(out(&mut sorter, true), [MS + 2, MS + 3]);
    assert_eq!(sorter.sorting(), SortCounts::default());
}

#[test]
fn little_waits_behind_a_start_in_order() {
    let sized = |time, bytes| Batch {
        data: Bytes::from(vec![0; bytes]),
        ..batch(&[time])
    };
    let large = |time| sized(time, MAX_BYTES_IN_ORDER);
    let mut sorter = Sorter::new(2 * START_BYTES);
    // The start waits for its window.
    sorter.push(sized(1, START_BYTES), true, &[]);
    assert!(sorter.pop(false).is_none());
    sorter.push(large(10), true, &[]);
    assert_eq!(sorter.pop(false).unwrap().frames()[0].time, Time(1));
    assert!(sorter.pop(false).is_none());
    sorter.push(large(20), true, &[]);
    assert_eq!(sorter.pop(false).unwrap().frames()[0].time, Time(10));
    assert!(sorter.pop(false).is_none());
    // Once one was out of order, all of a millisecond waits.
    sorter.push(large(15), false, &[]);
    sorter.push(large(30), true, &[]);
    assert!(sorter.pop(false).is_none());
    let popped = sorter.pop(true).unwrap();
    assert_eq!(popped.frames()[0].time, Time(15));
}

#[test]
fn what_is_out_of_order_is_sorted_and_counted() {
    // 40 stands 60 behind, 90 stands 10 behind.
    let (all, sorting) = sorted(&[10, 100, 40, 90, 110], 2, 1 << 20);
    assert_eq!(all, [10, 40, 90, 100, 110]);
    let expected = SortCounts {
        frames: 2,
        first: Some(Time(40)),
        furthest_ns: 60,
        too_late: 0,
    };
    assert_eq!(sorting, expected);
}

#[test]
fn what_is_later_than_the_window_comes_where_it_came() {
    let (all, sorting) = sorted(&[10, 3 * MS, 3 * MS + 1, 20, 4 * MS], 1, 1 << 20);
    assert_eq!(all.len(), 5);
    assert_eq!(
        (sorting.frames, sorting.too_late),
        (1, 0),
        "20 comes behind 10 alone"
    );
    let (all, sorting) = sorted(&[10, 3 * MS, 5 * MS, 20, 6 * MS], 1, 1 << 20);
    assert_eq!(all, [10, 3 * MS, 20, 5 * MS, 6 * MS]);
    assert_eq!((sorting.frames, sorting.too_late), (1, 1));
    assert_eq!(sorting.furthest_ns, 5 * MS - 20);
}

#[test]
fn losses_and_notes_stay_before_their_frames() {
    let mut sorter = Sorter::new(1 << 20);
    let mut lossy = batch(&[50, 30, 40]);
    lossy.lost.push(LostFrames {
        before: 1,
        interface: 0,
        records: 7,
    });
    lossy.notes.push(Note {
        before: 2,
        kind: 1 << 31,
        offset: 8,
        length: 8,
    });
    sorter.push(lossy, false, &[]);
    let popped = sorter.pop(true).unwrap();
    let times: Vec<u64> = popped.frames().iter().map(|frame| frame.time.0).collect();
    assert_eq!(times, [30, 40, 50]);
    assert_eq!(popped.lost()[0].before, 0, "before 30");
    let note = popped.notes()[0];
    assert_eq!(
        (note.before, popped.note(&note)),
        (1, &30_u64.to_be_bytes()[..]),
        "before 40"
    );
    assert_eq!(sorter.take_spent().len(), 1);
}

#[test]
fn a_record_without_a_stamp_that_fits_stays_behind_the_one_before_it() {
    let (all, sorting) = sorted(&[10, u64::MAX, 30, 20], 4, 1 << 20);
    assert_eq!(all, [10, u64::MAX, 20, 30]);
    assert_eq!((sorting.frames, sorting.furthest_ns), (1, 10));
}

/// An Ethernet frame with RoCEv2 over IPv4 (RFC 791, RFC 768, IBTA A17): opcode, PSN, and an AETH with this syndrome.
fn roce_frame(opcode: u8, psn: u8, syndrome: u8) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    // IPv4: 20 + 8 + 12 + 4 + 4 bytes, protocol UDP.
    frame.extend([
        0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    // UDP: port 0xc000 to 4791 (0x12b7), 28 bytes.
    frame.extend([0xc0, 0, 0x12, 0xb7, 0, 28, 0, 0]);
    frame.extend([opcode, 0, 0xff, 0xff, 0, 0, 0, 0x11, 0, 0, 0, psn]);
    frame.extend([syndrome, 0, 0, 1, 0, 0, 0, 0]);
    frame
}

#[test]
fn an_answer_comes_behind_the_requests_of_its_stamp() {
    // SEND Only is 0x04, Acknowledge 0x11; the syndromes of an ACK and of a NAK for a PSN out of sequence are 0x1f and 0x60.
    let frames = [
        (70, roce_frame(0x04, 1, 0)),
        (50, roce_frame(0x11, 2, 0x1f)),
        (50, roce_frame(0x11, 3, 0x60)),
        (50, roce_frame(0x04, 4, 0)),
        (40, roce_frame(0x11, 5, 0x1f)),
        (50, roce_frame(0x04, 6, 0)),
    ];
    let mut data = Vec::new();
    let mut of_batch = Vec::new();
    for (time, bytes) in &frames {
        of_batch.push(Frame {
            time: Time(*time),
            offset: place(data.len()),
            captured: 62,
            original: 62,
            interface: 0,
            fcs_bytes: 0,
            direction: Direction::Unknown,
            process: 0,
        });
        assert_eq!(bytes.len(), 62);
        data.extend_from_slice(bytes);
    }
    let psns = |in_order: bool, frames: &[Frame]| {
        let interface = Interface {
            link: roce_wire::LinkType::ETHERNET,
            name: None,
            description: None,
            snaplen: 0,
            fcs_bytes: 0,
            quantum_ns: 1,
            dropped: None,
            section: 0,
        };
        let mut sorter = Sorter::new(1 << 20);
        let batch = Batch::new(Bytes::from(data.clone()), frames.to_vec(), Vec::new());
        sorter.push(batch, in_order, &[interface]);
        let popped = sorter.pop(true).unwrap();
        popped
            .frames()
            .iter()
            .map(|frame| popped.bytes(frame)[53])
            .collect::<Vec<u8>>()
    };
    assert_eq!(psns(false, &of_batch), [5, 3, 4, 6, 2, 1], "sorted");
    // A file in order keeps its own: whoever wrote it saw the answer first.
    assert_eq!(psns(true, &of_batch[1..4]), [2, 3, 4]);
}

proptest! {
    /// Up to a millisecond of disorder leaves nothing out of order, whatever the batches.
    #[test]
    fn any_disorder_within_the_window_is_put_right(
        steps in prop::collection::vec((0..200_000_u64, 0..=MS), 1..300),
        size in 1..50_usize,
    ) {
        let mut time = 5 * MS;
        // Each is written when its stamp and its delay have passed.
        let mut records: Vec<(u64, u64)> = steps
            .iter()
            .map(|(step, delay)| {
                time += step;
                (time + delay, time)
            })
            .collect();
        records.sort_unstable();
        let written: Vec<u64> = records.iter().map(|(_, time)| *time).collect();
        let mut expected = written.clone();
        expected.sort_unstable();
        let (all, sorting) = sorted(&written, size, 64 << 20);
        prop_assert_eq!(&all, &expected);
        prop_assert_eq!(sorting.too_late, 0);
        prop_assert_eq!(sorting.frames > 0, written != expected);
    }

    /// Nothing is lost or kept where there is no room and stamps mean nothing.
    #[test]
    fn every_frame_comes_once(
        times in prop::collection::vec(0..10 * MS, 0..300),
        size in 1..50_usize,
        most_bytes in 0..2_000_usize,
    ) {
        let (mut all, _) = sorted(&times, size, most_bytes);
        let mut expected = times.clone();
        all.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(all, expected);
    }
}

#[test]
fn a_recording_keeps_the_order_of_its_run() {
    let mut sorter = Sorter::new(1 << 20);
    let mut first = batch(&[5, 3]);
    first.notes.push(Note {
        before: 0,
        kind: RecordingStart::BLOCK,
        offset: 0,
        length: 0,
    });
    sorter.push(first, false, &[]);
    assert_eq!(out(&mut sorter, false), [5, 3], "nothing waits");
    sorter.push(batch(&[2 * MS, MS]), false, &[]);
    sorter.push(batch(&[7]), false, &[]);
    assert_eq!(out(&mut sorter, false), [2 * MS, MS, 7]);
    assert_eq!(sorter.sorting(), SortCounts::default());
}
