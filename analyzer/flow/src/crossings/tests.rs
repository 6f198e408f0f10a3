//! Packets as two and three taps see them: on their way, marked, sent again, lost.

use roce_wire::{Address, Bth, Psn};

use super::gaps::Gap;
use super::*;
use crate::holes::Fate;

/// A WRITE Middle of one flow; `ttl` falls along the way.
fn packet(tap: u32, us: u64, psn: u8, ttl: u8) -> Packet {
    Packet {
        time: Nanos(1_000_000_000 + us * 1_000),
        tap: TapId(tap),
        wire_bytes: 1_082,
        roce: Roce {
            source: Address::v4([10, 0, 0, 1]),
            destination: Address::v4([10, 0, 0, 2]),
            bth: Bth([0x07, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, psn]),
            traffic_class: 2,
            hop_limit: ttl,
            ..Roce::default()
        },
        ..Packet::default()
    }
}

fn marked(packet: Packet) -> Packet {
    Packet {
        roce: Roce {
            traffic_class: 3,
            ..packet.roce
        },
        ..packet
    }
}

/// From, to, matched, marked, shortest and longest delay in us.
type Found = (u32, u32, u64, u64, Option<f64>, Option<f64>);

/// Taps, each with one flow at the place of its number.
struct Run {
    crossings: Crossings,
    keys: Vec<(Key, TapId)>,
}

impl Run {
    fn new() -> Self {
        let keys = (0..4)
            .map(|tap| (Key::of_packet(&packet(tap, 0, 0, 0)), TapId(tap)))
            .collect();
        Self {
            crossings: Crossings::new(100),
            keys,
        }
    }

    /// Takes a packet; which tap had seen it.
    fn see(&mut self, packet: Packet) -> Option<u32> {
        let key = Key::of_packet(&packet);
        let keys = |at: u32| self.keys.get(at as usize).map(|(key, tap)| (key, *tap));
        let found = self.crossings.sight(&packet, packet.tap.0, &key, keys)?;
        let flow = FlowKey::of(&packet.roce).id();
        let names = || {
            Some(Ends {
                before: flow,
                now: flow,
            })
        };
        self.crossings.note(&found, packet.tap.0, names);
        Some(found.flow)
    }

    fn hops(&self) -> Vec<Found> {
        let rows = self.crossings.hops.rows(&self.crossings.gaps);
        rows.iter()
            .map(|row| {
                let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
                let delays = (us(row.delay_min_ns), us(row.delay_max_ns));
                (
                    row.from_tap.0,
                    row.to_tap.0,
                    row.matched,
                    row.marked,
                    delays.0,
                    delays.1,
                )
            })
            .collect()
    }
}

#[test]
fn from_tap_to_tap_to_tap() {
    let mut run = Run::new();
    assert_eq!(run.see(packet(2, 0, 1, 64)), None);
    assert_eq!(run.see(packet(0, 5, 1, 63)), Some(2));
    assert_eq!(run.see(marked(packet(1, 12, 1, 62))), Some(0));
    // One that the tap in between did not see.
    assert_eq!(run.see(packet(2, 20, 2, 64)), None);
    assert_eq!(run.see(packet(1, 33, 2, 62)), Some(2));
    assert_eq!(
        run.hops(),
        [
            (0, 1, 1, 1, Some(7.0), Some(7.0)),
            (2, 0, 1, 0, Some(5.0), Some(5.0)),
            (2, 1, 1, 0, Some(13.0), Some(13.0)),
        ]
    );
    // Tap 0 saw one, taps 1 and 2 two, and each counts once.
    assert_eq!(run.crossings.matched(), [1, 2, 2]);
}

#[test]
fn what_is_sent_again_is_not_taken_for_its_original() {
    let mut run = Run::new();
    assert_eq!(run.see(packet(0, 0, 1, 64)), None);
    assert_eq!(run.see(packet(1, 10, 1, 63)), Some(0));
    // Sent again: tap 0 comes first once more.
    assert_eq!(run.see(packet(0, 500, 1, 64)), None);
    assert_eq!(run.see(packet(1, 520, 1, 63)), Some(0));
    // Lost between, and sent again: which of the two came is not known, so its time says nothing.
    assert_eq!(run.see(packet(0, 600, 2, 64)), None);
    assert_eq!(run.see(packet(0, 900, 2, 64)), None);
    assert_eq!(run.see(packet(1, 915, 2, 63)), Some(0));
    assert_eq!(run.hops(), [(0, 1, 3, 0, Some(10.0), Some(20.0))]);
}

#[test]
fn hop_limits_and_marks_say_more_than_times() {
    let mut run = Run::new();
    // Tap 1's clock is 50 us behind: all arrive before they left.
    for psn in 0..4 {
        let us = 100 + 100 * u64::from(psn);
        assert_eq!(run.see(marked(packet(1, us - 40, psn, 63))), None);
        assert_eq!(run.see(packet(0, us, psn, 64)), Some(1));
    }
    assert_eq!(run.hops(), [(0, 1, 4, 4, Some(-40.0), Some(-40.0))]);
    // Without them the times decide.
    let mut run = Run::new();
    for psn in 0..3 {
        let us = 100 + 100 * u64::from(psn);
        assert_eq!(run.see(packet(1, us - 10, psn, 64)), None);
        assert_eq!(run.see(packet(0, us, psn, 64)), Some(1));
    }
    assert_eq!(run.see(packet(0, 500, 3, 64)), None);
    assert_eq!(run.see(packet(1, 503, 3, 64)), Some(0));
    assert_eq!(run.hops(), [(1, 0, 4, 0, Some(-3.0), Some(10.0))]);
}

#[test]
fn another_packet_is_no_second_sighting() {
    let first = packet(0, 0, 1, 64);
    let changes: [fn(&mut Packet); 8] = [
        |packet| packet.roce.bth.0[11] = 2,
        |packet| packet.roce.bth.0[0] = 0x08,
        |packet| packet.roce.ip_id = 9,
        |packet| packet.roce.payload_bytes = 9,
        |packet| packet.roce.udp_source_port = 9,
        |packet| packet.roce.source = Address::v4([10, 0, 0, 3]),
        |packet| packet.roce.dma_length = 9,
        |packet| packet.time.0 += WINDOW.0,
    ];
    for change in changes {
        let mut run = Run::new();
        assert_eq!(run.see(first), None);
        let mut other = packet(1, 5, 1, 63);
        change(&mut other);
        assert_eq!(run.see(other), None, "{other:?}");
    }
    // What switches change: marks, FECN and BECN, tags.
    let mut run = Run::new();
    assert_eq!(run.see(first), None);
    let mut other = marked(packet(1, 5, 1, 63));
    other.roce.bth.0[4] = 0xc0;
    other.roce.vlan = Some(roce_wire::VlanTag(7));
    assert_eq!(run.see(other), Some(0));
}

#[test]
fn memory_is_bounded() {
    let mut run = Run::new();
    let flow = |number: u64| roce_model::FlowId(number);
    let tap = |number: u32| Sighted {
        tap: TapId(number),
        time: Some(Nanos(5)),
        hop_limit: 1,
        marked: false,
    };
    for number in 0..1_000 {
        let ends = Ends {
            before: flow(number),
            now: flow(number),
        };
        let mut last = LastHop::NONE;
        run.crossings
            .hops
            .note(&mut last, 0, || Some(ends), &tap(0), &tap(1));
        run.crossings.sides.add(
            number,
            Seen {
                tap: TapId(0),
                packets: 1,
                marked: 0,
            },
        );
        for psn in 0..2_000 {
            let fate = Fate::NetworkLost;
            run.crossings
                .gaps
                .note(flow(number), TapId(1), Psn::new(psn), 1, Nanos(5), fate);
        }
    }
    assert_eq!(run.hops().len(), 100);
    let kept: usize = (0..1_000)
        .map(|number| run.crossings.gaps.of(flow(number), TapId(1)).len())
        .sum();
    assert_eq!(kept, 1 << 18);
}

#[test]
fn gaps_at_one_tap_and_not_at_the_one_before() {
    let mut run = Run::new();
    let flow = FlowKey::of(&packet(0, 0, 0, 0).roce).id();
    for psn in [1, 100] {
        run.see(packet(0, u64::from(psn) * 10, psn, 64));
        run.see(packet(1, u64::from(psn) * 10 + 3, psn, 63));
        run.see(packet(2, u64::from(psn) * 10 + 5, psn, 62));
    }
    let at = |us: u64| Nanos(1_000_000_000 + us * 1_000);
    let mut gap = |tap, first, count, us, fate| {
        run.crossings
            .gaps
            .note(flow, TapId(tap), Psn::new(first), count, at(us), fate);
    };
    // 10 to 15 are missing at tap 2; 12 and 13 at tap 1, too, and 13 even at tap 0.
    gap(2, 10, 6, 165, Fate::NetworkLost);
    gap(1, 12, 2, 143, Fate::NetworkLost);
    gap(0, 13, 1, 140, Fate::Unresolved);
    // 20 and 21: tap 1 did not record 20, for 21 was late there.
    gap(2, 20, 2, 225, Fate::NetworkLost);
    gap(1, 20, 1, 210, Fate::CaptureLost);
    gap(1, 21, 1, 213, Fate::Reordered);
    // Not told who lost it; and before the taps looked at the same time.
    gap(2, 30, 1, 315, Fate::Ambiguous);
    gap(2, 40, 1, 0, Fate::NetworkLost);
    let rows = run.crossings.hops.rows(&run.crossings.gaps);
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.from_tap.0, row.to_tap.0, row.lost, row.not_captured))
        .collect();
    // Between 1 and 2: 10, 11, 14, 15 and 21. Between 0 and 1: 12; and 20 went by tap 1.
    assert_eq!(found, [(0, 1, 1, 1), (1, 2, 5, 0)]);
}

#[test]
fn psns_are_counted_past_their_end() {
    let gap = |first, count| Gap {
        first: Psn::new(first),
        count,
        time: Nanos(1),
        lost_by: None,
    };
    let all = gap(0xff_fffe, 4);
    let mut left = all.whole();
    // ff'fffe, ff'ffff, 0 and 1; the tap misses ff'ffff and 0 (twice noted) and others.
    let missing = [gap(0xff_ffff, 2), gap(0, 1), gap(5, 9), gap(0xff_fff0, 3)];
    assert_eq!(left.take_seen(&all, &missing), 2);
    assert_eq!(left.take_seen(&all, &[]), 2, "what was left");
    assert_eq!(left.take_seen(&all, &[]), 0);
}

#[test]
fn the_tap_that_saw_most_counts() {
    let row = |tap, packets, ce| roce_model::FlowRow {
        tap: TapId(tap),
        packets,
        ce,
        ..roce_model::FlowRow::default()
    };
    let counted = |rows: Vec<roce_model::FlowRow>| {
        let mut sides = Sides::new(9);
        for row in rows {
            assert_eq!(sides.close(7, row), None, "held back");
        }
        sides.complete();
        let released = sides.release();
        released
            .iter()
            .filter(|row| row.counted)
            .map(|row| row.tap.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(counted(vec![row(0, 10, 0), row(1, 11, 0)]), [1]);
    // Two epochs at tap 0 together are more.
    assert_eq!(counted(vec![row(0, 10, 0), row(1, 11, 0), row(0, 5, 0)]), [0, 0]);
    assert_eq!(
        counted(vec![row(0, 10, 0), row(1, 10, 3)]),
        [1],
        "marks are put on along the way"
    );
    assert_eq!(counted(vec![row(1, 10, 3), row(0, 10, 3)]), [0]);
    // Once all is known, rows pass at once.
    let mut sides = Sides::new(9);
    sides.add(
        7,
        Seen {
            tap: TapId(1),
            packets: 5,
            marked: 0,
        },
    );
    sides.complete();
    assert_eq!(sides.close(7, row(0, 4, 0)).map(|row| row.counted), Some(false));
    assert_eq!(
        sides.close(8, row(0, 4, 0)).map(|row| row.counted),
        Some(true),
        "of which nothing is known"
    );
}
