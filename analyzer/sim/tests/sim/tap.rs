//! Taps: the files that they write, read back.

use roce_capture::{Direction, LostFrames, Options, Reader};
use roce_model::{Span, Time};
use roce_sim::frame::{
    Ethernet, Frame, Granularity, Network, Payload, Position, Roce, Transport, Tunnel, TunnelKind, Version,
};
use roce_sim::tap::{Clock, Loss, LossReport, Mirror, OfferResult, RecordCounts, Tap, TapRecording};
use roce_wire::{Address, LinkType, MacAddress, Psn, Qpn, decode};

use super::bytes_of;

const EPOCH: u64 = 1_700_000_000_000_000_000;

/// Packet `number` of a stream.
fn packet(number: u32) -> Frame {
    let mut transport = Transport::new(Position::Middle.write(), Qpn::new(0x11), Psn::new(number));
    transport.payload = Payload::data(1024);
    Frame::Roce(Roce {
        ethernet: Ethernet::new(MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])),
        network: Network::new(Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2])),
        version: Version::V2 { source_port: 0xc123 },
        transport,
    })
}

/// One record of a file: time, interface, length on the wire, bytes.
type Record = (Time, u32, u32, Vec<u8>);

fn read(file: Vec<u8>) -> (Vec<Record>, Vec<LostFrames>, Vec<roce_capture::Interface>) {
    let mut reader =
        Reader::from_read("test", Box::new(std::io::Cursor::new(file)), &Options::default()).unwrap();
    let (mut records, mut lost) = (Vec::new(), Vec::new());
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            let bytes = batch.bytes(frame).to_vec();
            records.push((frame.time, frame.interface, frame.original, bytes));
        }
        lost.extend_from_slice(batch.lost());
    }
    (records, lost, reader.interfaces().to_vec())
}

/// Offers packets 0, 1, 2 ... every microsecond to one tap.
fn record(tap: &Tap, packets: u32, seed: u64) -> (Vec<u8>, Vec<OfferResult>, RecordCounts) {
    let mut recording = TapRecording::new(Vec::new(), "test", std::slice::from_ref(tap), seed).unwrap();
    let offered = (0..packets)
        .map(|number| {
            let time = Time(u64::from(number) * 1_000);
            recording
                .offer(0, time, Direction::Inbound, &packet(number))
                .unwrap()
        })
        .collect();
    let (file, counts) = recording.finish().unwrap();
    (file, offered, counts[0])
}

#[test]
fn what_was_offered_is_in_the_file() {
    let taps = [
        Tap::new("nic"),
        Tap {
            snaplen: 96,
            digits: 6,
            description: Some("a mirror port".to_owned()),
            clock: Clock {
                offset_ns: 5_000,
                ..Clock::default()
            },
            ..Tap::new("switch")
        },
    ];
    let mut recording = TapRecording::new(Vec::new(), "both.pcapng", &taps, 1).unwrap();
    let mut offered = Vec::new();
    for number in 0..10 {
        let time = Time(u64::from(number) * 1_234);
        for (tap, direction) in [(0, Direction::Outbound), (1, Direction::Unknown)] {
            offered.push(recording.offer(tap, time, direction, &packet(number)).unwrap());
        }
    }
    let none = recording.offer(2, Time(0), Direction::Unknown, &packet(0));
    assert_eq!(
        none.unwrap_err().to_string(),
        "both.pcapng has 2 taps, tap 2 is none of them"
    );
    let (file, counts) = recording.finish().unwrap();
    assert_eq!(
        counts
            .iter()
            .map(|tap| (tap.offered, tap.recorded))
            .collect::<Vec<_>>(),
        [(10, 10); 2]
    );
    let (records, lost, interfaces) = read(file);
    assert!(lost.is_empty());
    let about: Vec<_> = interfaces
        .iter()
        .map(|i| {
            (
                i.name.as_deref(),
                i.description.as_deref(),
                i.snaplen,
                i.quantum_ns,
                i.dropped,
            )
        })
        .collect();
    assert_eq!(
        about,
        [
            (Some("nic"), None, 0, 1, None),
            (Some("switch"), Some("a mirror port"), 96, 1_000, None)
        ]
    );
    assert_eq!(records.len(), 20);
    for (at, (time, interface, original, bytes)) in records.into_iter().enumerate() {
        let number = u32::try_from(at / 2).unwrap();
        let whole = bytes_of(&packet(number));
        let simulated = EPOCH + u64::from(number) * 1_234;
        assert_eq!(original, 1_082);
        if at % 2 == 0 {
            assert_eq!((interface, time, &bytes), (0, Time(simulated), &whole));
        } else {
            // Whole microseconds, 5 us ahead.
            let stamp = (simulated + 5_000) / 1_000 * 1_000;
            assert_eq!((interface, time, &bytes[..]), (1, Time(stamp), &whole[..96]));
        }
        let number = at as u64 + 1;
        assert_eq!(offered[at], OfferResult::Recorded { number, stamp: time });
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let tap = Tap {
        loss: Loss::Random { probability: 0.3 },
        ..Tap::new("nic")
    };
    assert_eq!(record(&tap, 200, 5), record(&tap, 200, 5));
    let lost_with = |seed| record(&tap, 200, seed).1;
    assert_ne!(lost_with(5), lost_with(6));
    let other = Tap {
        name: "other".to_owned(),
        ..tap.clone()
    };
    assert_ne!(lost_with(5), record(&other, 200, 5).1);
}

#[test]
fn losses_are_told_as_asked() {
    // There are 13 frames: 3, 4, 8, 9 are lost, and 10 to 12 are there.
    let tap = |loss_report| Tap {
        loss: Loss::Bursts { every: 5, lose: 2 },
        loss_report,
        ..Tap::new("nic")
    };
    for (loss_report, dropped, places) in [
        (LossReport::Silent, None, vec![]),
        (LossReport::Packets, Some(4), vec![(3, 2), (6, 2)]),
        (LossReport::Statistics, Some(4), vec![(9, 4)]),
        (LossReport::ClaimsNone, Some(0), vec![]),
    ] {
        let (file, offered, counts) = record(&tap(loss_report), 13, 1);
        assert_eq!((counts.offered, counts.recorded, counts.lost), (13, 9, 4));
        let lost: Vec<usize> = (0..13).filter(|at| offered[*at] == OfferResult::Lost).collect();
        assert_eq!(lost, [3, 4, 8, 9]);
        let (records, lost, interfaces) = read(file);
        assert_eq!(interfaces[0].dropped, dropped, "{loss_report:?}");
        let found: Vec<_> = lost.iter().map(|lost| (lost.before, lost.records)).collect();
        assert_eq!(found, places, "{loss_report:?}");
        // The frames that were recorded are numbered through.
        assert_eq!(records.len(), 9);
        let numbers: Vec<u64> = offered
            .iter()
            .filter_map(|offered| match offered {
                OfferResult::Recorded { number, .. } => Some(*number),
                OfferResult::Lost => None,
            })
            .collect();
        assert_eq!(numbers, (1..=9).collect::<Vec<_>>());
    }
    // Losses after the last record: the statistics tell them too.
    let (file, ..) = record(&tap(LossReport::Packets), 10, 1);
    let (_, lost, interfaces) = read(file);
    assert_eq!(interfaces[0].dropped, Some(4));
    let found: Vec<_> = lost.iter().map(|lost| (lost.before, lost.records)).collect();
    assert_eq!(found, [(3, 2), (6, 2)]);
}

#[test]
fn only_what_is_kept_fills_a_ring() {
    let ring = |snaplen| {
        let tap = Tap {
            snaplen,
            // Room for 4 whole frames of 1,082 bytes; 64 bytes leave in a microsecond.
            loss: Loss::Ring {
                bytes: 4_328,
                rate: 64_000_000,
            },
            ..Tap::new("nic")
        };
        record(&tap, 100, 1).2.lost
    };
    assert_eq!(ring(64), 0);
    // 4,328 + 99 * 64 = 10,664 bytes in 99 us: at most 9 frames of 1,082.
    assert!(ring(0) >= 91, "{}", ring(0));
}

#[test]
fn stamps_of_a_polled_tap_come_in_batches() {
    let tap = Tap {
        clock: Clock {
            poll: Some(Span(10_000)),
            quantum: Span(1_000),
            ..Clock::default()
        },
        ..Tap::new("mlx5_0")
    };
    let (file, ..) = record(&tap, 21, 1);
    let times: Vec<u64> = read(file).0.iter().map(|record| record.0.0 - EPOCH).collect();
    let expected = [vec![0], vec![10_000; 10], vec![20_000; 10]].concat();
    assert_eq!(times, expected);
}

#[test]
fn mirrors_number_what_the_tap_loses() {
    let mirror = Mirror {
        tunnel: Tunnel {
            ethernet: Ethernet::new(MacAddress([2, 0, 0, 0, 1, 1]), MacAddress([2, 0, 0, 0, 1, 2])),
            network: Network::new(Address::v4([192, 168, 0, 1]), Address::v4([192, 168, 0, 2])),
            kind: TunnelKind::ErspanIII {
                session: 42,
                hardware: 1,
                granularity: Granularity::HundredNanoseconds,
                egress: true,
            },
            truncate: None,
        },
        clock: Clock {
            epoch: Time(0),
            ..Clock::default()
        },
        delay: Span(700),
        first_sequence: u32::MAX,
    };
    let tap = Tap {
        snaplen: 128,
        loss: Loss::Bursts { every: 3, lose: 1 },
        mirror: Some(mirror),
        ..Tap::new("collector")
    };
    let (file, ..) = record(&tap, 6, 1);
    let (records, ..) = read(file);
    let found: Vec<_> = records
        .iter()
        .map(|(time, _, original, bytes)| {
            assert_eq!(bytes.len(), 128);
            // 14 + 20 + 8 (GRE) + 12 (ERSPAN) around.
            assert_eq!(*original, 1_082 + 54);
            let mirror = decode(LinkType::ETHERNET, bytes, *original).mirror.unwrap();
            (
                time.0 - EPOCH,
                mirror.sequence.unwrap(),
                mirror.timestamp.unwrap(),
                mirror.session,
            )
        })
        .collect();
    // Packets 2 and 5 are lost before the tap; the mirror's stamps are its own, in 100 ns.
    assert_eq!(
        found,
        [
            (700, u32::MAX, 0, 42),
            (1_700, 0, 10, 42),
            (3_700, 2, 30, 42),
            (4_700, 3, 40, 42)
        ]
    );
}
