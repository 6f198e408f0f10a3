//! Packets that nobody sends again, and packets that come late.

use super::*;

/// Packets of the sender and the answers to them, between two taps: each way has a flow of its own.
struct AnsweredRun(MatcherRun);

impl AnsweredRun {
    fn new() -> Self {
        let mut run = MatcherRun::new();
        let back = |tap| (Key::from_packet(&Self::answer(tap, 0, 0)), TapId(tap));
        run.keys[2] = back(0);
        run.keys[3] = back(1);
        Self(run)
    }

    /// An ACK of `psn`.
    fn answer(tap: u32, us: u64, psn: u8) -> Packet {
        let mut answer = packet(tap, us, psn, 64);
        core::mem::swap(&mut answer.roce.source, &mut answer.roce.destination);
        answer.roce.bth = Bth([0x11, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, psn]);
        answer
    }

    /// An answer passes tap 1, and tap 0 where it arrives.
    fn answered(&mut self, us: u64, psn: u8, arrives: bool) {
        self.see(Self::answer(1, us, psn));
        if arrives {
            self.see(Self::answer(0, us + 3, psn));
        }
    }

    fn see(&mut self, packet: Packet) {
        let key = Key::from_packet(&packet);
        let keys = |at: FlowSlot| self.0.keys.get(at.index()).map(|(key, tap)| (key, *tap));
        let at = slot(packet.tap.0 + 2);
        let Some(found) = self.0.matcher.sight(&packet, at, &key, keys) else {
            return;
        };
        let flow = FlowKey::from_packet(&packet.roce).id();
        let ends = Ends {
            before: flow,
            now: flow,
        };
        self.0.matcher.note(&found, at, || Some(ends));
    }

    /// Matched, lost, of these answers, not captured and unresolved, of the way back.
    fn back(mut self) -> [u64; 5] {
        self.0.matcher.conclude(|_, _| true);
        let rows = self.0.matcher.hops.rows();
        let back = rows.iter().find(|row| row.from_tap == TapId(1)).unwrap();
        [
            back.matched,
            back.lost,
            back.answers_lost,
            back.not_captured,
            back.unresolved,
        ]
    }
}

#[test]
fn answers_that_do_not_come_back_were_lost_where_the_tap_missed_nothing_else() {
    // 20 packets pass; of 20 answers 3 do not come back: 17 + 3 are 20.
    let run = |misses: bool| {
        let mut run = AnsweredRun::new();
        run.0.pass(0, 0..20);
        if misses {
            // A packet that tap 1 saw, tap 0 did not, and that was acknowledged.
            run.0.see(packet(1, 205, 20, 63));
        }
        run.0.pass(210, 21..30);
        for psn in 0..20 {
            run.answered(300 + 10 * u64::from(psn), psn, !matches!(psn, 5 | 6 | 11));
        }
        run.0.pass(600, 30..40);
        run.back()
    };
    assert_eq!(run(false), [17, 3, 3, 0, 0]);
    assert_eq!(run(true), [17, 0, 0, 0, 3], "the tap may have missed them, too");
}

#[test]
fn packets_of_an_unreliable_service_that_do_not_come_were_lost() {
    // SENDs of UC: nobody repeats them.
    let mut run = MatcherRun::new();
    let uc = |tap: u32, us: u64, psn: u8| {
        let mut packet = packet(tap, us, psn, 64);
        packet.roce.bth.0[0] = 0x24;
        packet
    };
    for tap in 0..2 {
        run.keys[tap as usize] = (Key::from_packet(&uc(tap, 0, 0)), TapId(tap));
    }
    for psn in 0..40 {
        run.see(uc(0, 10 * u64::from(psn), psn));
        if !matches!(psn, 20..23) {
            run.see(uc(1, 10 * u64::from(psn) + 3, psn));
        }
    }
    assert_eq!(run.losses(0), [(0, 1, 3, 0, Some(20))]);
}

#[test]
fn what_a_pause_holds_back_is_late_and_not_lost() {
    // 2^18 packets are remembered. Half as many wait at once, in sets of four: of 2 in a set on average, sets with more than 4 overflow.
    // Each of them comes 7 ms later, and a timer has repeated some of them meanwhile.
    let mut run = MatcherRun::new();
    let numbered = |tap: u32, us: u64, psn: u32| {
        let mut packet = packet(tap, us, 0, 64);
        packet.roce.bth.0[9..].copy_from_slice(&psn.to_be_bytes()[1..]);
        packet
    };
    run.pass(0, 0..20);
    let held = 1_000..100_000_u32;
    for psn in held.clone() {
        run.see(numbered(0, 1_000 + u64::from(psn) / 20, psn));
    }
    for psn in held.clone().take(500) {
        run.see(with_id(9, numbered(0, 7_000, psn)));
    }
    for psn in held.clone() {
        run.see(numbered(1, 8_000 + u64::from(psn) / 20, psn));
    }
    for psn in held.take(500) {
        run.see(with_id(9, numbered(1, 14_000, psn)));
    }
    run.pass(20_000, 20..40);
    let rows = {
        run.matcher.conclude(|_, _| true);
        run.matcher.hops.rows()
    };
    // 40 of both passes, 99,000 and 500.
    let all = (
        rows[0].matched,
        rows[0].lost,
        rows[0].not_captured,
        rows[0].unresolved,
    );
    assert_eq!(all, (99_540, 0, 0, 0));
    assert_eq!(rows[0].delay_max_ns, Some(7_000_000.0));
}

#[test]
fn what_others_overtook_may_still_come_when_the_capture_ends() {
    // Packets 0, 10, 20, ... take 15 us, all others 3 us: seven come before the one that left first. Packet 30 leaves at 300 us, is sent
    // again, and the capture ends at 312 us: nothing was lost. Where it goes on to 400 us, it was.
    let lost = |end: u64| {
        let mut run = MatcherRun::new();
        let mut seen: Vec<(u64, u32, u8)> = Vec::new();
        for psn in 0..40_u8 {
            let sent = 10 * u64::from(psn);
            let took = if psn % 10 == 0 { 15 } else { 3 };
            seen.push((sent, 0, psn));
            if psn != 30 {
                seen.push((sent + took, 1, psn));
            }
        }
        seen.push((306, 0, 30));
        seen.sort_unstable();
        for (us, tap, psn) in seen.into_iter().filter(|(us, ..)| *us <= end) {
            run.see(packet(tap, us, psn, 64));
        }
        run.losses(0)
    };
    assert_eq!(lost(312), [(0, 1, 0, 0, None)]);
    // The first of its two transmissions: nobody asked for the second one again.
    assert_eq!(lost(395), [(0, 1, 1, 0, Some(30))]);
}

#[test]
fn the_last_answer_may_be_on_its_way_when_the_flow_ends() {
    // Answers take 3 us. The last one is not there, and nothing follows it: 10 us behind the one before it may be on its way, with the 10 us
    // that two clocks may differ. 100 us behind it was lost.
    let run = |behind: u64| {
        let mut run = AnsweredRun::new();
        run.0.pass(0, 0..20);
        for psn in 0..20 {
            run.answered(300 + 10 * u64::from(psn), psn, true);
        }
        run.answered(490 + behind, 20, false);
        run.0.pass(800, 20..40);
        run.back()
    };
    assert_eq!(run(10), [20, 0, 0, 0, 1]);
    assert_eq!(run(100), [20, 1, 1, 0, 0]);
}

#[test]
fn runs_that_meet_holes_of_a_tap_as_often_as_all_packets_do_lost_nothing() {
    // The second tap records three of four packets. Of eight that are sent again, two are among those that it did not record: as many as
    // chance makes it. Of eight others all are, by chance in one of 4^8 captures.
    let run = |again: [u8; 8]| {
        let mut run = MatcherRun::new();
        for psn in 0..160u8 {
            let us = 10 * u64::from(psn);
            run.see(packet(0, us, psn, 64));
            if psn % 4 != 3 {
                run.see(packet(1, us + 3, psn, 63));
            }
        }
        for (nth, psn) in (0..).zip(again) {
            run.see(with_id(8, packet(0, 2_000 + 50 * nth, psn, 64)));
            run.see(with_id(8, packet(1, 2_003 + 50 * nth, psn, 63)));
        }
        run.pass(3_000, 160..180);
        run.losses(180)[0].2
    };
    assert_eq!(run([12, 23, 40, 57, 70, 83, 100, 110]), 0);
    assert_eq!(run([11, 23, 39, 51, 71, 83, 103, 111]), 8);
}

#[test]
fn what_is_on_its_way_at_a_rest_is_not_lost_behind_it() {
    let mut run = MatcherRun::new();
    run.pass(0, 0..20);
    // The capture ends here, and goes on ten seconds later with the same PSNs.
    run.see(packet(0, 200, 20, 64));
    let later = Time(11_000_000_000);
    assert!(run.matcher.has_rested(later));
    run.matcher.conclude(|_, _| true);
    run.matcher.look_again();
    run.pass(10_000_000, 0..40);
    assert_eq!(run.losses(40), [(0, 1, 0, 0, None)]);
}
