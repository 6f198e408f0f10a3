//! Taps that show frames twice, and taps whose files are not in the order of time.

use roce_capture::{Direction, Options, Reader};
use roce_model::{Span, Time};
use roce_sim::frame::{Ethernet, Frame, Network, Payload, Position, Roce, Transport, Version};
use roce_sim::tap::{Clock, MirrorDoubling, Queues, RecordCounts, Tap, TapRecording};
use roce_wire::{Address, MacAddress, Psn, Qpn};

/// Packet `number`, from one of 16 UDP source ports.
fn packet(number: u32) -> Frame {
    let mut transport = Transport::new(Position::Middle.write(), Qpn::new(0x11), Psn::new(number));
    transport.payload = Payload::data(1024);
    let source_port = 0xc000 + u16::try_from(number % 16).unwrap();
    Frame::Roce(Roce {
        ethernet: Ethernet::new(MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])),
        network: Network::new(Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2])),
        version: Version::V2 { source_port },
        transport,
    })
}

/// Stamps and bytes of the file's records, when packets 0, 1, 2 ... pass every microsecond.
fn recorded(tap: &Tap, packets: u32) -> (Vec<(u64, Vec<u8>)>, RecordCounts) {
    let mut recording = TapRecording::new(Vec::new(), "test", std::slice::from_ref(tap), 3).unwrap();
    for number in 0..packets {
        let time = Time(u64::from(number) * 1_000);
        recording
            .offer(0, time, Direction::Unknown, &packet(number))
            .unwrap();
    }
    let (file, seen) = recording.finish().unwrap();
    let source = Box::new(std::io::Cursor::new(file));
    let mut reader = Reader::from_read("test", source, &Options::default()).unwrap();
    let mut records = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            let time = frame.time.0 - Clock::default().epoch.0;
            records.push((time, batch.bytes(frame).to_vec()));
        }
    }
    (records, seen[0])
}

#[test]
fn a_mirror_shows_each_frame_twice() {
    let tap = Tap {
        doubling: Some(MirrorDoubling {
            least: Span(800),
            most: Span(5_000),
            share: 1.0,
            routed: false,
            tunnel: None,
        }),
        ..Tap::new("span")
    };
    let (records, seen) = recorded(&tap, 500);
    assert_eq!((seen.offered, seen.recorded, seen.copies), (500, 500, 500));
    assert_eq!(records.len(), 1_000);
    assert!(records.is_sorted_by_key(|(time, _)| *time));
    let mut waits = Vec::new();
    for number in 0..500_u64 {
        let first = number * 1_000;
        let (_, bytes) = records.iter().find(|(time, _)| *time == first).unwrap();
        let same: Vec<u64> = records
            .iter()
            .filter(|(_, other)| other == bytes)
            .map(|(time, _)| time - first)
            .collect();
        // The frame itself, and one copy with the same bytes.
        assert_eq!((same.len(), same[0]), (2, 0));
        waits.push(same[1]);
    }
    assert!(waits.iter().all(|wait| (800..=5_000).contains(wait)));
    // The mean of a uniform draw is 2,900 ns, its standard deviation 4,200 / sqrt(12) = 1,212: of 500, +- 5 * 54.
    let mean = waits.iter().sum::<u64>() / 500;
    assert!((2_630..=3_170).contains(&mean), "{mean}");
}

#[test]
fn behind_a_router_the_copy_has_another_header() {
    let tap = Tap {
        doubling: Some(MirrorDoubling {
            least: Span(100),
            most: Span(100),
            share: 0.25,
            routed: true,
            tunnel: None,
        }),
        ..Tap::new("span")
    };
    let (records, seen) = recorded(&tap, 2_000);
    // A quarter of 2,000, +- 5 standard deviations of sqrt(2000 * 0.25 * 0.75) = 19.
    assert!((403..=597).contains(&seen.copies), "{}", seen.copies);
    let copies: Vec<_> = records.iter().filter(|(time, _)| time % 1_000 == 100).collect();
    assert_eq!(copies.len() as u64, seen.copies);
    for (time, copy) in copies {
        let (_, first) = records.iter().find(|(other, _)| *other == time - 100).unwrap();
        // Other MAC addresses; the TTL at byte 22 is less by one; the checksum at 24 and 25 differs; the rest is the same.
        assert_ne!(copy[..12], first[..12]);
        assert_eq!(copy[22], first[22] - 1);
        assert_eq!((&copy[12..22], &copy[26..]), (&first[12..22], &first[26..]));
    }
}

#[test]
fn queues_are_read_one_after_the_other() {
    let tap = Tap {
        queues: Some(Queues {
            count: 4,
            least: Span(20_000),
            most: Span(100_000),
        }),
        ..Tap::new("nic")
    };
    let (records, seen) = recorded(&tap, 4_000);
    assert_eq!((seen.recorded, records.len()), (4_000, 4_000));
    let mut times: Vec<u64> = records.iter().map(|(time, _)| *time).collect();
    let mut highest = 0;
    let (mut back, mut deepest) = (0, 0);
    for time in &times {
        highest = highest.max(*time);
        back += u64::from(*time < highest);
        deepest = deepest.max(highest - time);
    }
    // No record follows one that is later by more than a round; some rounds are long.
    assert!(deepest <= 100_000, "{deepest}");
    assert!(deepest > 50_000 && back > 1_000, "{deepest}, {back}");
    // Stamps are right: one packet each microsecond.
    times.sort_unstable();
    assert!(
        times
            .iter()
            .zip(0..)
            .all(|(time, number)| *time == number * 1_000)
    );
    // One flow keeps its order: packets 0, 16, 32 ... have one source port.
    let own: Vec<u64> = records
        .iter()
        .map(|(time, _)| *time)
        .filter(|time| time % 16_000 == 0)
        .collect();
    assert_eq!(own.len(), 250);
    assert!(own.is_sorted());
}
