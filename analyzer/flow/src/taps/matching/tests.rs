//! Packets at two and three taps: delayed, marked, retransmitted, lost.

mod late;

use roce_wire::{Address, Bth};

use super::*;
use crate::key::slot;
use crate::taps::matching::counted::SeenByTap;

/// A WRITE Middle of one flow; `ttl` falls along the path.
fn packet(tap: u32, us: u64, psn: u8, ttl: u8) -> Packet {
    Packet {
        time: Time(1_000_000_000 + us * 1_000),
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
type FoundHop = (u32, u32, u64, u64, Option<f64>, Option<f64>);

/// Taps, each with one flow at the place of its number.
struct MatcherRun {
    matcher: TapMatcher,
    keys: Vec<(Key, TapId)>,
}

impl MatcherRun {
    fn new() -> Self {
        let keys = (0..4)
            .map(|tap| (Key::from_packet(&packet(tap, 0, 0, 0)), TapId(tap)))
            .collect();
        Self {
            matcher: TapMatcher::new(100, Span(1_000_000)),
            keys,
        }
    }

    /// Takes a packet; which tap had seen it.
    fn see(&mut self, packet: Packet) -> Option<u32> {
        let key = Key::from_packet(&packet);
        let keys = |at: FlowSlot| self.keys.get(at.index()).map(|(key, tap)| (key, *tap));
        let found = self.matcher.sight(&packet, slot(packet.tap.0), &key, keys)?;
        let flow = FlowKey::from_packet(&packet.roce).id();
        let names = || {
            Some(Ends {
                before: flow,
                now: flow,
            })
        };
        self.matcher.note(&found, slot(packet.tap.0), names);
        Some(found.flow.bits())
    }

    fn hops(&self) -> Vec<FoundHop> {
        let rows = self.matcher.hops.rows();
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
    let mut run = MatcherRun::new();
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
    assert_eq!(run.matcher.matched(), [1, 2, 2]);
}

#[test]
fn what_is_sent_again_is_not_taken_for_its_original() {
    let mut run = MatcherRun::new();
    assert_eq!(run.see(packet(0, 0, 1, 64)), None);
    assert_eq!(run.see(packet(1, 10, 1, 63)), Some(0));
    // Retransmitted: tap 0 comes first once more.
    assert_eq!(run.see(packet(0, 500, 1, 64)), None);
    assert_eq!(run.see(packet(1, 520, 1, 63)), Some(0));
    // Lost between, and retransmitted: nothing shows which of the two came, so its time is not used.
    assert_eq!(run.see(packet(0, 600, 2, 64)), None);
    assert_eq!(run.see(packet(0, 900, 2, 64)), None);
    assert_eq!(run.see(packet(1, 915, 2, 63)), Some(0));
    assert_eq!(run.hops(), [(0, 1, 3, 0, Some(10.0), Some(20.0))]);
}

#[test]
fn hop_limits_and_marks_say_more_than_times() {
    let mut run = MatcherRun::new();
    // Tap 1's clock is 50 us behind: all arrive before they left.
    for psn in 0..4 {
        let us = 100 + 100 * u64::from(psn);
        assert_eq!(run.see(marked(packet(1, us - 40, psn, 63))), None);
        assert_eq!(run.see(packet(0, us, psn, 64)), Some(1));
    }
    assert_eq!(run.hops(), [(0, 1, 4, 4, Some(-40.0), Some(-40.0))]);
    // Without them the times decide.
    let mut run = MatcherRun::new();
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
    let changes: [fn(&mut Packet); 7] = [
        |packet| packet.roce.bth.0[11] = 2,
        |packet| packet.roce.bth.0[0] = 0x08,
        |packet| packet.roce.ip_id = 9,
        |packet| packet.roce.payload_bytes = 9,
        |packet| packet.roce.udp_source_port = 9,
        |packet| packet.roce.source = Address::v4([10, 0, 0, 3]),
        |packet| packet.time.0 += WINDOW.0,
    ];
    for change in changes {
        let mut run = MatcherRun::new();
        assert_eq!(run.see(first), None);
        let mut other = packet(1, 5, 1, 63);
        change(&mut other);
        assert_eq!(run.see(other), None, "{other:?}");
    }
    // Fields that switches change: marks, FECN and BECN, tags.
    let mut run = MatcherRun::new();
    assert_eq!(run.see(first), None);
    let mut other = marked(packet(1, 5, 1, 63));
    other.roce.bth.0[4] = 0xc0;
    other.roce.vlan = Some(roce_wire::VlanTag(7));
    assert_eq!(run.see(other), Some(0));
    // A capture that is cut behind the BTH does not show the RETH.
    let mut run = MatcherRun::new();
    assert_eq!(run.see(first), None);
    let mut longer = packet(1, 5, 1, 63);
    longer.roce.dma_length = 4_096;
    assert_eq!(run.see(longer), Some(0));
}

#[test]
fn memory_is_bounded() {
    let mut run = MatcherRun::new();
    let flow = |number: u64| roce_model::FlowId(number);
    let tap = |number: u32| SightedPacket {
        tap: TapId(number),
        time: Time(5),
        is_ambiguous: false,
        is_repaired: true,
        shown: 1,
        hop_limit: 1,
        marked: false,
    };
    for number in 0..1_000 {
        let ends = Ends {
            before: flow(number),
            now: flow(number),
        };
        let mut last = LastHop::NONE;
        run.matcher
            .hops
            .note(&mut last, slot(0), || Some(ends), &tap(0), &tap(1));
        run.matcher.sides.add(
            number,
            SeenByTap {
                tap: TapId(0),
                packets: 1,
                marked: 0,
            },
        );
    }
    assert_eq!(run.hops().len(), 100);
    // Half a million packets that only one tap saw: what is remembered of them has its size from the start.
    assert_eq!(size_of::<Set>(), 128, "two cache lines");
}

/// From, to, lost, not captured, first PSN lost.
type Losses = (u32, u32, u64, u64, Option<u32>);

impl MatcherRun {
    /// Losses between taps, when PSNs before `acked` were acknowledged.
    fn losses(mut self, acked: u32) -> Vec<Losses> {
        self.matcher.conclude(|_, psn| psn.value() < acked);
        let rows = self.matcher.hops.rows();
        rows.iter()
            .map(|row| {
                let (from, to) = (row.from_tap.0, row.to_tap.0);
                (from, to, row.lost, row.not_captured, row.first_lost_psn)
            })
            .collect()
    }

    /// PSNs that pass both taps, 3 us apart, from `us` on every 10 us.
    fn pass(&mut self, us: u64, psns: core::ops::Range<u8>) {
        for (nth, psn) in (0..).zip(psns) {
            self.see(packet(0, us + 10 * nth, psn, 64));
            self.see(packet(1, us + 10 * nth + 3, psn, 63));
        }
    }
}

fn with_id(id: u16, packet: Packet) -> Packet {
    Packet {
        roce: Roce {
            ip_id: id,
            ..packet.roce
        },
        ..packet
    }
}

#[test]
fn what_the_first_tap_saw_and_sent_again_was_lost_between() {
    // With and without counted packets of the sender.
    for ids in [[0, 0], [7, 8]] {
        let mut run = MatcherRun::new();
        run.pass(0, 0..20);
        run.see(with_id(ids[0], packet(0, 200, 20, 64)));
        run.pass(210, 21..30);
        run.see(with_id(ids[1], packet(0, 400, 20, 64)));
        run.see(with_id(ids[1], packet(1, 403, 20, 63)));
        run.pass(500, 30..40);
        assert_eq!(run.losses(40), [(0, 1, 1, 0, Some(20))], "{ids:?}");
    }
}

#[test]
fn each_transmission_that_is_lost_counts() {
    for ids in [[0, 0, 0], [7, 8, 9]] {
        let mut run = MatcherRun::new();
        run.pass(0, 0..20);
        for (nth, id) in (0..).zip(ids) {
            run.see(with_id(id, packet(0, 200 + 100 * nth, 20, 64)));
        }
        run.see(with_id(ids[2], packet(1, 403, 20, 63)));
        run.pass(500, 21..40);
        assert_eq!(run.losses(40), [(0, 1, 2, 0, Some(20))], "{ids:?}");
    }
}

#[test]
fn what_both_taps_saw_is_not_lost() {
    let mut run = MatcherRun::new();
    run.pass(0, 0..20);
    // 20 takes another path and is 90 us late; the receiver sent a NAK for it, so it is retransmitted.
    run.see(with_id(7, packet(0, 200, 20, 64)));
    run.pass(210, 21..24);
    run.see(with_id(8, packet(0, 260, 20, 64)));
    run.see(with_id(8, packet(1, 263, 20, 63)));
    run.see(with_id(7, packet(1, 290, 20, 63)));
    // A whole window is retransmitted: all of it passes both.
    run.pass(300, 15..30);
    run.pass(600, 30..40);
    assert_eq!(run.losses(40), [(0, 1, 0, 0, None)]);
}

#[test]
fn what_was_acknowledged_and_not_sent_again_was_not_captured() {
    let lost_at_20 = |acked| {
        let mut run = MatcherRun::new();
        run.pass(0, 0..20);
        run.see(packet(0, 200, 20, 64));
        run.pass(210, 21..40);
        run.losses(acked)
    };
    assert_eq!(lost_at_20(40), [(0, 1, 0, 1, None)]);
    assert_eq!(lost_at_20(20), [(0, 1, 0, 0, None)], "nobody knows");
}

#[test]
fn a_lost_copy_of_what_arrived_needs_no_repair() {
    for ids in [[0, 0], [7, 8]] {
        let mut run = MatcherRun::new();
        run.pass(0, 0..20);
        // 20 is lost between, and 21 to 23 with it.
        for psn in 20..24 {
            run.see(packet(0, u64::from(psn) * 10, psn, 64));
        }
        run.pass(250, 24..26);
        // The ACK for 18 and 19 was lost: the sender repeats these, too, and loses them once more. It goes on behind 23.
        for psn in 18..20 {
            run.see(with_id(ids[1], packet(0, 280 + u64::from(psn), psn, 64)));
        }
        run.pass(320, 20..24);
        run.pass(500, 26..40);
        // Nobody missed the copies of 18 and 19: the second capture missed nothing, and all of 20 to 23 count.
        assert_eq!(run.losses(40), [(0, 1, 4, 0, Some(20))], "{ids:?}");
    }
}

#[test]
fn a_new_epoch_sends_nothing_again() {
    for is_new in [false, true] {
        let mut run = MatcherRun::new();
        run.pass(0, 0..20);
        // The second capture misses 20 and 21.
        run.see(packet(0, 200, 20, 64));
        run.see(packet(0, 210, 21, 64));
        run.pass(220, 22..30);
        // 400 us later the queue pair is used once more: its PSNs begin again.
        if is_new {
            for tap in 0..2 {
                run.matcher.renew(slot(tap), Time(1_000_700_000));
            }
        }
        run.pass(700, 0..40);
        let lost = if is_new { 0 } else { 2 };
        assert_eq!(run.losses(10)[0].2, lost, "{is_new}");
    }
}

#[test]
fn what_is_sent_later_than_the_longest_way_before_the_end_is_not_judged() {
    // The way takes 3 us, and the second capture ends at 309 us: 309 - 3 * 5 / 4 - 10 us are 295.25.
    let lost_at = |us: u64| {
        let mut run = MatcherRun::new();
        run.pass(0, 0..20);
        run.see(packet(0, us, 20, 64));
        run.see(packet(0, us + 5, 20, 64));
        run.see(packet(1, 309, 90, 64));
        run.losses(20)[0].2
    };
    assert_eq!((lost_at(290), lost_at(297)), (1, 0));
}

#[test]
fn a_capture_that_misses_packets_makes_no_losses_of_the_network() {
    let mut run = MatcherRun::new();
    run.pass(0, 0..20);
    // 20 is lost between; the second tap did not record 22; 30 neither, and that was acknowledged.
    run.see(packet(0, 200, 20, 64));
    run.pass(210, 21..22);
    run.see(packet(0, 220, 22, 64));
    run.pass(230, 23..25);
    run.pass(400, 20..30);
    run.see(packet(0, 500, 30, 64));
    run.pass(510, 31..40);
    // 20 and 22 were retransmitted; 22 only because it follows 20.
    assert_eq!(run.losses(40), [(0, 1, 1, 1, Some(20))]);

    // While a tap reports lost records, no loss counts as the network's.
    let mut run = MatcherRun::new();
    run.pass(0, 0..20);
    for psn in 20..30 {
        run.see(packet(0, u64::from(psn) * 10, psn, 64));
    }
    run.matcher.lost(TapId(1), Time(1_000_400_000));
    run.pass(400, 20..40);
    assert_eq!(run.losses(40), [(0, 1, 0, 0, None)]);
}

#[test]
fn nothing_is_lost_before_a_tap_looks_and_after_it_does() {
    let mut run = MatcherRun::new();
    for psn in 0..5 {
        run.see(packet(0, u64::from(psn), psn, 64));
    }
    run.pass(100, 0..20);
    // The second capture has ended: the last packets are still on their way.
    for (us, psn) in [(291, 20), (292, 21), (400, 20), (500, 21)] {
        run.see(packet(0, us, psn, 64));
    }
    assert_eq!(run.losses(20), [(0, 1, 0, 0, None)]);
}

#[test]
fn a_loss_right_behind_the_first_packets_counts() {
    // 10 us are the shortest time that clocks are compared to: the second capture begins 3 us before 1 should come. What it saw
    // before and after that shows that it was looking.
    let mut run = MatcherRun::new();
    run.pass(0, 0..1);
    run.see(packet(0, 3, 1, 64));
    run.pass(10, 2..4);
    run.pass(60, 1..20);
    assert_eq!(run.losses(20), [(0, 1, 1, 0, Some(1))]);
    // Nobody saw a packet of the flow pass both before.
    let mut run = MatcherRun::new();
    run.see(packet(0, 0, 0, 64));
    run.pass(3, 1..4);
    run.pass(60, 0..20);
    assert_eq!(run.losses(20), [(0, 1, 0, 0, None)]);
}

#[test]
fn clocks_that_are_off_by_more_than_the_way_change_no_count() {
    // The second tap's clock is 5 us behind: each packet arrives before it left.
    let mut run = MatcherRun::new();
    let mut pass = |us: u64, psn: u8, arrives: bool| {
        if arrives {
            run.see(packet(1, us - 2, psn, 63));
        }
        run.see(packet(0, us, psn, 64));
    };
    for psn in 0..20 {
        pass(10 + 10 * u64::from(psn), psn, true);
    }
    pass(210, 20, false);
    pass(220, 21, true);
    pass(400, 20, true);
    for psn in 22..30 {
        pass(500 + 10 * u64::from(psn), psn, true);
    }
    assert_eq!(run.losses(30), [(0, 1, 1, 0, Some(20))]);
}

#[test]
fn of_three_taps_it_is_known_between_which_two() {
    let mut run = MatcherRun::new();
    let at = |tap: u32, us: u64, psn: u8| {
        packet(tap, us + 3 * u64::from(tap), psn, 64 - u8::try_from(tap).unwrap())
    };
    let pass = |run: &mut MatcherRun, us: u64, psn: u8, taps: u32| {
        for tap in 0..taps {
            run.see(at(tap, us, psn));
        }
    };
    for psn in 0..20 {
        pass(&mut run, 20 * u64::from(psn), psn, 3);
    }
    // 20 is lost between the first two, 21 between the last two; each is retransmitted.
    pass(&mut run, 400, 20, 1);
    pass(&mut run, 420, 21, 2);
    for psn in 20..40 {
        pass(&mut run, 200 + 20 * u64::from(psn), psn, 3);
    }
    let losses = run.losses(40);
    assert_eq!(losses, [(0, 1, 1, 0, Some(20)), (1, 2, 1, 0, Some(21))]);
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
        "marks are added along the path"
    );
    assert_eq!(counted(vec![row(1, 10, 3), row(0, 10, 3)]), [0]);
    // Once all is known, rows pass at once.
    let mut sides = Sides::new(9);
    sides.add(
        7,
        SeenByTap {
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
