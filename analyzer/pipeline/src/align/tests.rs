//! Samples, clocks that several files share, and clocks known over others. The packets are made here.

use std::fs;

use roce_capture::write::{PcapOptions, PcapWriter};
use tempfile::{TempDir, tempdir};

use super::*;

const BEGIN: u64 = 1_795_000_000_000_000_000;
const SECOND: u64 = Span::SECOND.0;

/// Ethernet, IPv4, UDP and the BTH of a packet between two hosts: `forward` a WRITE Middle, else an ACK with its AETH.
fn frame(psn: u32, forward: bool, hop_limit: u8) -> Vec<u8> {
    let (payload, opcode) = if forward { (8, 0x07) } else { (4, 0x11) };
    let udp = 8 + 12 + payload + 4;
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 2, 0, 20 + udp, 0, 0, 0x40, 0, hop_limit, 17, 0, 0]);
    let (source, destination) = if forward { (1, 2) } else { (2, 1) };
    frame.extend([10, 0, 0, source, 10, 0, 0, destination]);
    frame.extend([0xc0, 1, 0x12, 0xb7, 0, udp, 0, 0]);
    frame.extend([opcode, 0, 0xff, 0xff, 0, 0, 0, 0x11]);
    frame.extend(psn.to_be_bytes());
    frame.resize(frame.len() + usize::from(payload) + 4, 0);
    frame
}

/// Writes a capture of PSNs, each at `BEGIN` + its number in milliseconds + what is given there and back, in ns.
fn capture(folder: &TempDir, name: &str, psns: std::ops::Range<u32>, there: i64, back: i64) -> PathBuf {
    let mut frames: Vec<(u64, Vec<u8>)> = psns
        .flat_map(|psn| {
            let time = BEGIN + u64::from(psn) * 1_000_000;
            let at = |time: u64, shift: i64| time.checked_add_signed(shift).unwrap();
            [
                (at(time, there), frame(psn, true, 64)),
                (at(time + 100_000, back), frame(psn, false, 64)),
            ]
        })
        .collect();
    frames.sort_by_key(|(time, _)| *time);
    let mut writer = PcapWriter::new(Vec::new(), PcapOptions::default()).unwrap();
    for (time, frame) in frames {
        writer
            .write(Time(time), u32::try_from(frame.len()).unwrap(), &frame)
            .unwrap();
    }
    let path = folder.path().join(name);
    fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

fn aligned(paths: &[PathBuf]) -> Alignment {
    align(&paths.iter().collect::<Vec<_>>(), 2, &[])
}

#[test]
fn a_clock_is_known_over_another_one() {
    let folder = tempdir().unwrap();
    // a and b share the first second, b and c the third: c is 2 s ahead of b, b is 5 s ahead of a. 10 us
    // in each direction.
    let s = SECOND.cast_signed();
    let paths = [
        capture(&folder, "a", 0..1_000, 0, 0),
        capture(&folder, "b", 0..3_000, 5 * s + 10_000, 5 * s - 10_000),
        capture(&folder, "c", 2_000..3_000, 7 * s + 20_000, 7 * s - 20_000),
    ];
    let found = aligned(&paths);
    assert!(found.shared && found.warnings.is_empty(), "{found:?}");
    assert_eq!(found.clocks[0], None, "the reference");
    for (clock, seconds, most) in [
        (found.clocks[1], 5.0, 250_000.0),
        (found.clocks[2], 7.0, 700_000.0),
    ] {
        let clock = clock.unwrap();
        assert_eq!(clock.reference, 0);
        let error = (clock.correction.ahead_ns - seconds * 1e9).abs();
        let uncertainty = clock.uncertainty_ns.unwrap();
        assert!(error <= uncertainty && uncertainty < most, "{clock:?}");
    }
    assert!(found.apart.are(0, 1) && found.apart.are(2, 1) && !found.apart.are(0, 2));
}

#[test]
fn the_surest_reference_first() {
    let folder = tempdir().unwrap();
    // b is 20 us from a, c 400 us: in each direction, and by its own clock.
    let s = SECOND.cast_signed();
    let paths = [
        capture(&folder, "a", 0..500, 0, 0),
        capture(&folder, "b", 0..500, s + 20_000, s - 20_000),
        capture(&folder, "c", 0..500, -3 * s + 400_000, -3 * s - 400_000),
    ];
    let found = aligned(&paths);
    let uncertainty = |input: usize| found.clocks[input].unwrap().uncertainty_ns.unwrap();
    assert!(uncertainty(1) < uncertainty(2), "{found:?}");
    assert!((found.clocks[2].unwrap().correction.ahead_ns + 3e9).abs() <= uncertainty(2));
}

#[test]
fn rotated_files_share_a_clock_and_twins_do_not() {
    let folder = tempdir().unwrap();
    let s = SECOND.cast_signed();
    let paths = [
        capture(&folder, "a1", 0..500, 0, 0),
        capture(&folder, "a2", 500..1_000, 0, 0),
        // Another tap of a1's packets, whose clock makes it begin right after a1's end.
        capture(&folder, "b", 0..500, s / 2 + 5_000, s / 2 - 5_000),
    ];
    let found = aligned(&paths);
    assert_eq!((found.clocks[0], found.clocks[1]), (None, None));
    let b = found.clocks[2].unwrap();
    assert_eq!(b.reference, 0);
    assert!((b.correction.ahead_ns - 0.5e9).abs() < 10_000.0, "{b:?}");
    assert!(found.apart.are(0, 2) && !found.apart.are(0, 1));
}

#[test]
fn what_cannot_belong_together_is_not_read() {
    let folder = tempdir().unwrap();
    let day = 86_400 * SECOND.cast_signed();
    let paths = [
        capture(&folder, "monday", 0..500, 0, 0),
        capture(&folder, "tuesday", 0..500, day, day),
        folder.path().join("missing"),
    ];
    let found = aligned(&paths);
    assert_eq!(found.clocks, [None, None, None]);
    assert!(!found.apart.are(0, 1));
    let all: Vec<&PathBuf> = paths.iter().collect();
    let (close, failed) = close_in_time(&all, vec![0, 1, 2], &[]);
    assert!(close.is_empty());
    // A failure of the system is an error. A file that makes no sense is left to the run.
    assert!(
        matches!(failed.as_slice(), [(2, Error::Open { .. })]),
        "{failed:?}"
    );
    fs::write(&paths[2], "no capture").unwrap();
    assert!(close_in_time(&all, vec![0, 1, 2], &[]).1.is_empty());
    // One alone costs nothing either.
    assert!(!aligned(&paths[..1]).shared);
}

#[test]
fn a_sample_is_bounded_and_the_same_in_every_capture() {
    let folder = tempdir().unwrap();
    let long = capture(&folder, "long", 0..20_000, 0, 0);
    let part = capture(&folder, "part", 15_000..16_000, 0, 0);
    let budget = Budget {
        frames: u64::MAX,
        bytes: u64::MAX,
        packets: 2_000,
    };
    let [long_look, part_look] = [&long, &part].map(|path| look::look(path, &budget).unwrap().unwrap());
    assert!(long_look.whole && long_look.packets.len() <= 2_000);
    // A 32nd of 40,000 packets are 1,250; of the part's 2,000 it is 62, give or take three times the root of that.
    assert!(long_look.packets.len() > 800, "{}", long_look.packets.len());
    assert!(
        (38..87).contains(&shared(&long_look, &part_look)),
        "{}",
        shared(&long_look, &part_look)
    );
    assert_eq!(part_look.packets.len(), 2_000);
    // A budget ends it early: at the batch that goes beyond.
    let few = Budget {
        frames: 100,
        ..budget
    };
    let head = look::look(&long, &few).unwrap().unwrap();
    assert!(!head.whole && head.last < long_look.last);
    assert_eq!(head.first, long_look.first);
}

#[test]
fn repeated_packets_are_left_out() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("repeated");
    let mut writer = PcapWriter::new(Vec::new(), PcapOptions::default()).unwrap();
    let mut write = |us: u64, frame: &[u8]| {
        let length = u32::try_from(frame.len()).unwrap();
        writer.write(Time(BEGIN + us * 1_000), length, frame).unwrap();
    };
    // Sent once; retransmitted; and once more, on another path and at once: a copy.
    write(0, &frame(1, true, 64));
    write(10, &frame(2, true, 64));
    write(500, &frame(2, true, 64));
    write(600, &frame(3, true, 64));
    write(601, &frame(3, true, 63));
    // On another path, but 2 ms later.
    write(700, &frame(4, true, 64));
    write(2_700, &frame(4, true, 63));
    fs::write(&path, writer.finish().unwrap()).unwrap();
    let budget = Budget {
        frames: 100,
        bytes: 1 << 20,
        packets: 100,
    };
    let look = look::look(&path, &budget).unwrap().unwrap();
    let mut kept: Vec<(u64, bool)> = look
        .packets
        .values()
        .map(|packet| (packet.time.0 - BEGIN, packet.repeated))
        .collect();
    kept.sort_unstable();
    assert_eq!(
        kept,
        [(0, false), (10_000, true), (600_000, false), (700_000, true)]
    );
}

/// A day and two hours in nanoseconds, as a time and as an offset.
const DAY: (i64, f64) = (86_400_000_000_000, 8.64e13);
const HOURS: (i64, f64) = (7_200_000_000_000, 7.2e12);

fn known(machine: u32, ahead_ns: f64) -> KnownClock {
    KnownClock {
        machine,
        ahead_ns,
        uncertainty_ns: 1e6,
    }
}

fn aligned_with(paths: &[PathBuf], known: &[KnownClock]) -> Alignment {
    let known: Vec<_> = known.iter().copied().map(Some).collect();
    align(&paths.iter().collect::<Vec<_>>(), 2, &known)
}

#[test]
fn a_known_clock_connects_captures_that_begin_over_twelve_hours_apart() {
    let folder = tempdir().unwrap();
    // One link; b's clock is 24 h ahead, and 10 us pass in each direction.
    let paths = [
        capture(&folder, "a.pcap", 0..1_000, 0, 0),
        capture(&folder, "b.pcap", 0..1_000, DAY.0 + 10_000, DAY.0 - 10_000),
    ];
    assert_eq!(aligned(&paths).clocks, [None, None], "of different days");
    // The measurement is wrong by 3 ms: packets say it better.
    let clocks = aligned_with(&paths, &[known(0, 0.0), known(1, DAY.1 - 3e6)]).clocks;
    let clock = clocks[1].unwrap();
    assert_eq!((clocks[0], clock.reference), (None, 0));
    assert!((clock.correction.ahead_ns - DAY.1).abs() < 100.0, "{clock:?}");
}

#[test]
fn a_known_clock_moves_captures_without_common_packets() {
    let folder = tempdir().unwrap();
    // Seconds 0 to 1 and 2 to 3: no packet in both; c is what b saw, 5 s ahead of it.
    let paths = [
        capture(&folder, "a.pcap", 0..1_000, 0, 0),
        capture(&folder, "b.pcap", 2_000..3_000, HOURS.0, HOURS.0),
        capture(
            &folder,
            "c.pcap",
            2_000..3_000,
            HOURS.0 + 5_000_010_000,
            HOURS.0 + 4_999_990_000,
        ),
    ];
    let ahead = [known(0, 0.0), known(1, HOURS.1), known(2, HOURS.1 + 5e9)];
    let clocks = aligned_with(&paths, &ahead).clocks;
    assert_eq!(clocks[0], None);
    let (b, c) = (clocks[1].unwrap(), clocks[2].unwrap());
    assert_eq!((b.reference, c.reference), (0, 0));
    assert!((b.correction.ahead_ns - HOURS.1).abs() < 1.0, "{b:?}");
    // Both clocks are known to 1 ms each.
    assert_eq!(b.uncertainty_ns, Some(2e6));
    assert!((c.correction.ahead_ns - HOURS.1 - 5e9).abs() < 100.0, "{c:?}");
    // A difference within the uncertainty is none.
    let same = [known(0, 0.0), known(1, 1.9e6), known(2, 5e9)];
    assert_eq!(aligned_with(&paths, &same).clocks[1], None);
}

#[test]
fn captures_of_two_machines_do_not_continue_each_other() {
    let folder = tempdir().unwrap();
    // b begins 1 ms behind a's end, as a rotated file would.
    let paths = [
        capture(&folder, "a.pcap", 0..500, 0, 0),
        capture(&folder, "b.pcap", 501..1_000, 0, 0),
    ];
    assert!(!aligned(&paths).apart.are(0, 1));
    assert!(
        aligned_with(&paths, &[known(0, 0.0), known(1, 0.0)])
            .apart
            .are(0, 1)
    );
    assert!(
        !aligned_with(&paths, &[known(0, 0.0), known(0, 0.0)])
            .apart
            .are(0, 1)
    );
}
