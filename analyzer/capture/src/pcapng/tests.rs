//! Each kind of block, each option, both byte orders.

use roce_model::Time;

use super::*;
use crate::frame::{Direction, Frame};
use crate::write::{ByteOrder, InterfaceOptions, Packet, PcapngWriter, SectionOptions};

mod faults;
mod processes;

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

fn writer(order: ByteOrder) -> PcapngWriter<Vec<u8>> {
    PcapngWriter::new(Vec::new(), order).unwrap()
}

/// Walks a file to its end.
fn walk(file: &[u8]) -> FoundFrames {
    let mut found = FoundFrames::default();
    let walked = Pcapng::default().walk(file, 0, 0, &mut found);
    assert!(matches!(walked.stop, Stop::Need(12)), "{walked:?}");
    assert_eq!(walked.at, file.len());
    found
}

fn bytes<'a>(file: &'a [u8], frame: &Frame) -> &'a [u8] {
    &file[frame.offset as usize..][..frame.captured as usize]
}

#[test]
fn interfaces_say_what_they_are() {
    for order in ORDERS {
        let mut writer = writer(order);
        let about = InterfaceOptions {
            link: LinkType::INFINIBAND,
            snaplen: 300,
            name: Some("mlx5_0".to_owned()),
            description: Some("a port".to_owned()),
            resolution: Some(9),
            offset: Some(-5),
            fcs_bits: Some(32),
        };
        writer.interface(&about).unwrap();
        writer
            .interface(&InterfaceOptions {
                resolution: None,
                ..InterfaceOptions::default()
            })
            .unwrap();
        writer.write(0, Time(7_000_000_000), 60, b"abc").unwrap();
        writer
            .packet(&Packet {
                interface: 1,
                ticks: 2_000_001,
                ..Packet::default()
            })
            .unwrap();
        let file = writer.finish().unwrap();
        let found = walk(&file);
        let first = Interface {
            link: LinkType::INFINIBAND,
            name: Some("mlx5_0".to_owned()),
            description: Some("a port".to_owned()),
            snaplen: 300,
            fcs_bytes: 4,
            quantum_ns: 1,
            dropped: None,
            section: 1,
        };
        assert_eq!(found.interfaces[0], first);
        assert_eq!(
            (found.interfaces[1].quantum_ns, found.interfaces[1].fcs_bytes),
            (1_000, 0)
        );
        // 7 s - 5 s; 2000001 us.
        let times: Vec<Time> = found.frames.iter().map(|frame| frame.time).collect();
        assert_eq!(times, [Time(2_000_000_000), Time(2_000_001_000)]);
        assert_eq!(bytes(&file, &found.frames[0]), b"abc");
        assert_eq!((found.frames[0].original, found.frames[0].fcs_bytes), (60, 4));
    }
}

#[test]
fn fcs_lengths_are_bits_unless_they_cannot_be() {
    assert_eq!([0, 4, 2, 16, 32].map(fcs_length), [0, 4, 2, 2, 4]);
}

#[test]
fn packets_have_flags_drops_and_comments() {
    for order in ORDERS {
        let mut writer = writer(order);
        writer
            .interface(&InterfaceOptions {
                fcs_bits: Some(16),
                ..InterfaceOptions::default()
            })
            .unwrap();
        let packet = Packet {
            ticks: 1,
            original: 5,
            data: b"12345",
            ..Packet::default()
        };
        // Flags: inbound, FCS of 4 bytes (4 << 5).
        writer
            .packet(&Packet {
                flags: Some(1 | 4 << 5),
                comment: Some("hm"),
                ..packet
            })
            .unwrap();
        // Outbound, no FCS length: the interface's.
        writer
            .packet(&Packet {
                flags: Some(2),
                dropped: Some(1 << 40),
                ..packet
            })
            .unwrap();
        writer
            .packet(&Packet {
                dropped: Some(0),
                ..packet
            })
            .unwrap();
        writer
            .packet(&Packet {
                dropped: Some(3),
                ..packet
            })
            .unwrap();
        let file = writer.finish().unwrap();
        let found = walk(&file);
        let about: Vec<_> = found
            .frames
            .iter()
            .map(|frame| (frame.direction, frame.fcs_bytes))
            .collect();
        let unknown = (Direction::Unknown, 2);
        assert_eq!(
            about,
            [
                (Direction::Inbound, 4),
                (Direction::Outbound, 2),
                unknown,
                unknown
            ]
        );
        assert!(found.frames.iter().all(|frame| bytes(&file, frame) == b"12345"));
        let lost = [
            LostFrames {
                before: 1,
                interface: 0,
                records: 1 << 40,
            },
            LostFrames {
                before: 3,
                interface: 0,
                records: 3,
            },
        ];
        assert_eq!(found.lost, lost);
        assert_eq!(found.interfaces[0].dropped, Some((1 << 40) + 3));
    }
}

#[test]
fn statistics_add_what_packets_did_not_say() {
    let mut writer = writer(ByteOrder::Little);
    writer.interface(&InterfaceOptions::default()).unwrap();
    writer.interface(&InterfaceOptions::default()).unwrap();
    let packet = Packet {
        interface: 1,
        dropped: Some(2),
        ..Packet::default()
    };
    writer.packet(&packet).unwrap();
    writer.statistics(1, 9, Some(4), Some(3)).unwrap();
    // Counted from the start, and by now known.
    writer.statistics(1, 9, Some(7), None).unwrap();
    writer.statistics(0, 9, Some(0), None).unwrap();
    writer.statistics(0, 9, None, None).unwrap();
    let found = walk(&writer.finish().unwrap());
    // 4 + 3 records, 2 of which were reported before the packet.
    let lost = [
        LostFrames {
            before: 0,
            interface: 1,
            records: 2,
        },
        LostFrames {
            before: 1,
            interface: 1,
            records: 5,
        },
    ];
    assert_eq!(found.lost, lost);
    assert_eq!(
        [found.interfaces[0].dropped, found.interfaces[1].dropped],
        [Some(0), Some(7)]
    );
}

#[test]
fn obsolete_packets_count_drops_in_16_bits() {
    for order in ORDERS {
        let mut writer = writer(order);
        writer.interface(&InterfaceOptions::default()).unwrap();
        let packet = Packet {
            ticks: 5 << 32 | 6,
            original: 9,
            data: b"abcdef",
            ..Packet::default()
        };
        writer.obsolete(0, 0xffff, &packet).unwrap();
        writer.obsolete(0, 11, &packet).unwrap();
        let file = writer.finish().unwrap();
        let found = walk(&file);
        assert_eq!(
            found.lost,
            [LostFrames {
                before: 1,
                interface: 0,
                records: 11
            }]
        );
        assert_eq!(found.frames[0].time, Time(5 << 32 | 6));
        assert_eq!(bytes(&file, &found.frames[1]), b"abcdef");
    }
}

#[test]
fn simple_packets_take_the_time_before_them() {
    let mut writer = writer(ByteOrder::Big);
    writer
        .interface(&InterfaceOptions {
            snaplen: 6,
            ..InterfaceOptions::default()
        })
        .unwrap();
    writer.simple(4, b"abcd").unwrap();
    writer.write(0, Time(77), 1, b"x").unwrap();
    // Cut by the snaplen: 6 bytes, in a body of 8.
    writer.simple(100, b"abcdef").unwrap();
    // Cut by nothing: the padding of the original length's last word is not part of it.
    writer.simple(5, b"abcde").unwrap();
    let file = writer.finish().unwrap();
    let found = walk(&file);
    let simple: Vec<_> = found
        .frames
        .iter()
        .map(|frame| (frame.time.0, bytes(&file, frame)))
        .collect();
    assert_eq!(
        simple,
        [(0, &b"abcd"[..]), (77, b"x"), (77, b"abcdef"), (77, b"abcde")]
    );
    assert_eq!(found.frames[2].original, 100);
    assert_eq!(found.untimed, 3);
}

#[test]
fn a_simple_packet_is_no_longer_than_its_block() {
    let mut writer = writer(ByteOrder::Little);
    writer.interface(&InterfaceOptions::default()).unwrap();
    writer.simple(100, b"abcdefgh").unwrap();
    let found = walk(&writer.finish().unwrap());
    assert_eq!((found.frames[0].captured, found.frames[0].original), (8, 100));
}

#[test]
fn sections_change_order_and_number_on() {
    let mut writer = writer(ByteOrder::Little);
    writer.interface(&InterfaceOptions::default()).unwrap();
    writer.interface(&InterfaceOptions::default()).unwrap();
    writer.write(1, Time(1), 1, b"a").unwrap();
    writer.section(ByteOrder::Big).unwrap();
    writer
        .interface(&InterfaceOptions {
            link: LinkType::RAW,
            ..InterfaceOptions::default()
        })
        .unwrap();
    writer.write(0, Time(2), 1, b"b").unwrap();
    writer.section(ByteOrder::Big).unwrap();
    writer.section(ByteOrder::Little).unwrap();
    writer
        .interface(&InterfaceOptions {
            link: LinkType::IPV4,
            ..InterfaceOptions::default()
        })
        .unwrap();
    writer
        .packet(&Packet {
            dropped: Some(1),
            ..Packet::default()
        })
        .unwrap();
    let found = walk(&writer.finish().unwrap());
    let numbers: Vec<u32> = found.frames.iter().map(|frame| frame.interface).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(found.interfaces[2].link, LinkType::RAW);
    assert_eq!(found.interfaces[3].link, LinkType::IPV4);
    assert_eq!(found.lost[0].interface, 3);
    let sections: Vec<u32> = found
        .interfaces
        .iter()
        .map(|interface| interface.section)
        .collect();
    assert_eq!(sections, [1, 1, 2, 4], "the third one has no interface");
}

#[test]
fn other_blocks_are_skipped() {
    let mut writer = writer(ByteOrder::Little);
    // Name resolution, decryption secrets, custom, and a type of nobody.
    for kind in [4, 10, 0xbad, 0x8000_0001] {
        writer.block(kind, b"whatever").unwrap();
    }
    writer.interface(&InterfaceOptions::default()).unwrap();
    writer.block(0x7777, b"").unwrap();
    writer.write(0, Time(2), 1, b"b").unwrap();
    assert_eq!(walk(&writer.finish().unwrap()).frames.len(), 1);
}

#[test]
fn a_long_block_of_no_interest_is_skipped_without_holding_it() {
    let mut writer = writer(ByteOrder::Little);
    writer.block(4, &vec![1; 100_000]).unwrap();
    let file = writer.finish().unwrap();
    // The section takes 28 bytes; of the block there are 8 + 100000 before its last length.
    let (mut pcapng, mut found) = (Pcapng::default(), FoundFrames::default());
    let stopped = pcapng.walk(&file[..1_000], 0, 0, &mut found);
    assert_eq!(stopped.at, 28);
    assert!(matches!(stopped.stop, Stop::Skip(100_008)), "{stopped:?}");
    assert_eq!(pcapng.unfinished(), Some((28, 100_012)));
    let stopped = pcapng.walk(&file, 28 + 100_008, 28 + 100_008, &mut found);
    assert!(matches!(stopped.stop, Stop::Need(12)), "{stopped:?}");
    assert_eq!(pcapng.unfinished(), None);
    // And its last length is checked.
    let mut wrong = file;
    *wrong.last_mut().unwrap() = 9;
    let mut pcapng = Pcapng::default();
    pcapng.walk(&wrong[..1_000], 0, 0, &mut found);
    let stopped = pcapng.walk(&wrong, 28 + 100_008, 28 + 100_008, &mut found);
    assert!(
        matches!(
            stopped.stop,
            Stop::Fault(Fault::Trailer {
                kind: 4,
                expected: 100_012,
                ..
            })
        ),
        "{stopped:?}"
    );
}

#[test]
fn lengths_that_forget_the_padding_are_rounded_up() {
    let mut file = writer(ByteOrder::Little).finish().unwrap();
    // A Name Resolution Block of 13 bytes: padded to 16.
    file.extend([4, 0, 0, 0, 13, 0, 0, 0, 0xaa, 0, 0, 0, 13, 0, 0, 0]);
    walk(&file);
}

#[test]
fn blocks_of_local_use_are_notes() {
    for order in ORDERS {
        let mut writer = writer(order);
        writer.interface(&InterfaceOptions::default()).unwrap();
        writer.block(0x8000_0001, b"first").unwrap();
        writer.write(0, Time(1), 3, b"abc").unwrap();
        // Nobody uses this block: it is skipped.
        writer.block(0x0bad, b"other").unwrap();
        writer.block(0xffff_ffff, b"").unwrap();
        let file = writer.finish().unwrap();
        let found = walk(&file);
        let notes: Vec<_> = found
            .notes
            .iter()
            .map(|note| {
                let body = &file[note.offset as usize..][..note.length as usize];
                (note.before, note.kind, body)
            })
            .collect();
        assert_eq!(
            notes,
            [
                (0, 0x8000_0001, b"first\0\0\0".as_slice()),
                (1, 0xffff_ffff, b"".as_slice())
            ]
        );
    }
}

#[test]
fn a_section_says_who_wrote_it() {
    let about = SectionOptions {
        comments: vec!["of a test".to_owned()],
        application: Some("a program".to_owned()),
        ..SectionOptions::default()
    };
    let writer = PcapngWriter::with(Vec::new(), ByteOrder::Big, &about).unwrap();
    let file = writer.finish().unwrap();
    // Options 1 (opt_comment, 9 bytes) and 4 (shb_userappl, 9 bytes) behind the 24 bytes that are always there.
    let options = [
        b"\0\x01\0\x09of a test\0\0\0".as_slice(),
        b"\0\x04\0\x09a program\0\0\0",
        &[0; 4],
    ]
    .concat();
    assert_eq!(file[24..file.len() - 4], options);
    walk(&file);
}
