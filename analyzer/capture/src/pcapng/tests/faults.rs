//! Faults of a file are reported with offset and expected values.

use super::*;

/// Walks a file up to what is wrong: where that is, and what.
fn fault(file: &[u8]) -> (usize, Fault) {
    let walked = Pcapng::default().walk(file, 0, 0, &mut FoundFrames::default());
    match walked.stop {
        Stop::Fault(fault) => (walked.at, fault),
        stop => panic!("{stop:?} at {}", walked.at),
    }
}

type Writer = PcapngWriter<Vec<u8>>;

/// A file of a section (28 bytes), an interface without options (20 bytes), and what is put behind them.
fn file(put: impl FnOnce(&mut Writer) -> std::io::Result<()>) -> Vec<u8> {
    let mut writer = writer(ByteOrder::Little);
    let bare = InterfaceOptions {
        resolution: None,
        ..InterfaceOptions::default()
    };
    writer.interface(&bare).unwrap();
    put(&mut writer).unwrap();
    writer.finish().unwrap()
}

const PACKET_OF_4: Packet<'_> = Packet {
    interface: 0,
    ticks: 0,
    original: 4,
    data: b"abcd",
    flags: None,
    dropped: None,
    comment: None,
};

#[test]
fn interfaces_must_be_described_before() {
    let enhanced = file(|writer| {
        writer.packet(&Packet {
            interface: 1,
            ..PACKET_OF_4
        })
    });
    assert_eq!(
        fault(&enhanced),
        (
            48,
            Fault::Interface {
                kind: 6,
                found: 1,
                known: 1
            }
        )
    );
    let obsolete = file(|writer| writer.obsolete(7, 0, &PACKET_OF_4));
    assert_eq!(
        fault(&obsolete),
        (
            48,
            Fault::Interface {
                kind: 2,
                found: 7,
                known: 1
            }
        )
    );
    let statistics = file(|writer| writer.statistics(2, 0, Some(1), None));
    assert_eq!(
        fault(&statistics),
        (
            48,
            Fault::Interface {
                kind: 5,
                found: 2,
                known: 1
            }
        )
    );
    let mut simple = writer(ByteOrder::Little);
    simple.simple(4, b"abcd").unwrap();
    let expected = Fault::Interface {
        kind: 3,
        found: 0,
        known: 0,
    };
    assert_eq!(fault(&simple.finish().unwrap()), (28, expected));
}

#[test]
fn both_lengths_must_agree() {
    let mut file = file(|writer| writer.packet(&PACKET_OF_4));
    *file.iter_mut().nth_back(3).unwrap() = 0;
    assert_eq!(
        fault(&file),
        (
            48,
            Fault::Trailer {
                kind: 6,
                found: 0,
                expected: 36
            }
        )
    );
}

#[test]
fn captured_bytes_must_fit_the_block() {
    let mut file = file(|writer| writer.packet(&PACKET_OF_4));
    // The length is 20 bytes into the block. There is room for 36 - 32 = 4.
    file[48 + 20] = 5;
    assert_eq!(fault(&file), (48, Fault::CapturedLength { found: 5, limit: 4 }));
}

#[test]
fn blocks_must_be_as_long_as_their_kind() {
    let short = file(|writer| writer.block(6, b"abcd"));
    let expected = Fault::BlockLength {
        kind: 6,
        found: 16,
        least: 32,
        most: 32 << 20,
    };
    assert_eq!(fault(&short), (48, expected));
    let long = file(|writer| writer.block(6, &vec![0; 32 << 20]));
    assert!(matches!(fault(&long), (48, Fault::BlockLength { kind: 6, .. })));
}

#[test]
fn options_must_fit_the_block() {
    // One of 9 bytes in an interface's room for 4.
    let option = file(|writer| writer.block(1, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 9, 0, 1, 2, 3, 4]));
    assert_eq!(
        fault(&option),
        (
            48,
            Fault::Option {
                kind: 1,
                code: 2,
                found: 9,
                room: 4
            }
        )
    );
}

#[test]
fn sections_must_say_order_and_version() {
    let mut order = file(|_| Ok(()));
    order[8] = 0;
    assert_eq!(fault(&order), (0, Fault::ByteOrder { found: 0x003c_2b1a }));
    let mut version = file(|_| Ok(()));
    version[12] = 2;
    assert!(matches!(
        fault(&version),
        (
            0,
            Fault::Version {
                major: 2,
                minor: 0,
                ..
            }
        )
    ));
}

#[test]
fn a_frame_may_be_as_long_as_its_interface_declares() {
    for (snaplen, captured, fits) in [
        // libpcap's usual limit, whatever is declared below it.
        (64, 256 << 10, true),
        (0, (256 << 10) + 4, false),
        (1 << 20, 1 << 20, true),
        (1 << 20, (1 << 20) + 4, false),
        (u32::MAX, 16 << 20, true),
        (u32::MAX, (16 << 20) + 4, false),
    ] {
        let mut writer = writer(ByteOrder::Little);
        writer
            .interface(&InterfaceOptions {
                snaplen,
                ..InterfaceOptions::default()
            })
            .unwrap();
        writer
            .write(0, Time(0), captured, &vec![0; captured as usize])
            .unwrap();
        let file = writer.finish().unwrap();
        let mut found = FoundFrames::default();
        let walked = Pcapng::default().walk(&file, 0, 0, &mut found);
        assert_eq!(
            found.frames.len(),
            usize::from(fits),
            "{snaplen} {captured} {walked:?}"
        );
        assert_eq!(
            matches!(walked.stop, Stop::Fault(Fault::CapturedLength { .. })),
            !fits
        );
    }
}

#[test]
fn interfaces_without_end_are_refused() {
    // Interface descriptions of 20 bytes, the last of which is one too many.
    let mut writer = writer(ByteOrder::Little);
    for _ in 0..=crate::pcapng::MAX_INTERFACES {
        writer.interface(&InterfaceOptions::default()).unwrap();
    }
    let (_, found) = fault(&writer.finish().unwrap());
    assert_eq!(found, Fault::TooManyInterfaces { limit: 16_384 });
}
