//! Packets that a NAK names, READs whose span shows later, and identifications.

use super::*;

impl Flow {
    /// The receiver names `psn` in a NAK.
    pub(super) fn nak(&mut self, psn: u32) {
        let at = Tracker::position(&self.requests, Psn::new(psn)).unwrap();
        let now = Time(self.now);
        self.tracker.nak(&self.requests, at, now, (Span(0), Time(0)));
    }

    /// A packet `after` ns after the one before.
    fn see_after(&mut self, psn: u32, after: u64) -> Verdict {
        self.now += after;
        self.take(&self.request(psn, after))
    }

    fn decisions(&mut self) -> Vec<(BehindVerdict, u32)> {
        let mut decisions: Vec<_> = core::iter::from_fn(|| self.tracker.take_decision())
            .map(|decision| (decision.judged, decision.psn.value()))
            .collect();
        decisions.sort_by_key(|decision| decision.1);
        decisions
    }

    fn fates(&mut self) -> LossCounts {
        self.tracker.take_missing(true, false, Time(u64::MAX));
        self.tracker.fates()
    }
}

/// A flow whose other direction is known, and whose packets 1 to 3 came, 2 late by 1 us.
fn paired(reordered: bool) -> Flow {
    let mut flow = Flow::default();
    let order: &[u32] = if reordered { &[1, 3, 2, 4] } else { &[1, 2, 3, 4] };
    for psn in order {
        flow.see(*psn);
    }
    flow.tracker.pair();
    flow.see(5);
    flow.decisions();
    flow
}

#[test]
fn the_answer_to_a_nak_shows_that_what_came_before_was_late() {
    for reordered in [false, true] {
        let mut flow = paired(reordered);
        let late_before = flow.fates()[LossClass::Reordered as usize];
        assert_eq!(flow.see(7), gap(6, 1));
        flow.nak(6);
        // 1 us after the NAK: 6. 20 us after that the sender goes back to it, as the NAK says.
        flow.see(6);
        flow.see_after(6, 20_000);
        flow.see(7);
        flow.see(8);
        assert_eq!(flow.decisions()[0], (BehindVerdict::Late, 6));
        flow.tracker.close(Time(flow.now));
        let fates = flow.fates();
        assert_eq!(fates[LossClass::NetworkLost as usize], 0, "{reordered}");
        assert_eq!(
            fates[LossClass::Reordered as usize],
            late_before + 1,
            "{reordered}"
        );
        let runs: Vec<_> = core::iter::from_fn(|| flow.tracker.take_run()).collect();
        let runs: Vec<_> = runs
            .iter()
            .map(|run| (run.first.value(), trigger_of(run)))
            .collect();
        assert_eq!(runs, [(6, Trigger::Nak)], "one run, the true one");
    }
}

#[test]
fn what_a_nak_names_is_unclear_alone_only_where_packets_come_late() {
    for reordered in [false, true] {
        let mut flow = paired(reordered);
        flow.see(7);
        flow.nak(6);
        // No packet repeats what had been captured: a sender that sends the lost packet alone, or a late one.
        flow.see_after(6, 20_000);
        flow.see(8);
        flow.see_after(9, 2_000_000);
        let judged = if reordered {
            BehindVerdict::Unknown
        } else {
            BehindVerdict::Retransmitted
        };
        assert_eq!(flow.decisions(), [(judged, 6)]);
        flow.tracker.close(Time(flow.now));
        let fates = flow.fates();
        assert_eq!(fates[LossClass::NetworkLost as usize], u64::from(!reordered));
        assert_eq!(fates[LossClass::Unresolved as usize], u64::from(reordered));
    }
}

#[test]
fn late_packets_of_other_flows_make_a_named_one_unclear() {
    let mut flow = paired(false);
    flow.see(7);
    flow.nak(6);
    flow.now += 20_000;
    let mut filling = flow.request(6, 20_000);
    filling.pair.others_late = true;
    flow.take(&filling);
    flow.see(8);
    flow.see_after(9, 2_000_000);
    assert_eq!(flow.decisions(), [(BehindVerdict::Unknown, 6)]);
}

#[test]
fn what_comes_much_sooner_than_any_answer_is_late() {
    let mut flow = paired(true);
    flow.see(7);
    flow.nak(6);
    // The sender takes 20 us: it repeats 7, too.
    flow.see_after(6, 20_000);
    flow.see(7);
    flow.see(9);
    flow.nak(8);
    flow.see_after(8, 20_000);
    flow.see(9);
    flow.see(11);
    flow.nak(10);
    flow.see_after(10, 20_000);
    flow.see(11);
    flow.decisions();
    // Going back to what had been captured shows the time for sure.
    flow.nak(11);
    flow.see_after(11, 20_000);
    flow.see(12);
    flow.see(14);
    flow.nak(13);
    flow.see_after(13, 2_000);
    flow.see(15);
    assert_eq!(flow.decisions(), [(BehindVerdict::Late, 13)]);
}

#[test]
fn a_packet_of_a_run_may_be_overtaken_by_those_behind_it() {
    let mut flow = paired(true);
    for psn in 6..=9 {
        flow.see(psn);
    }
    flow.nak(6);
    flow.see_after(6, 20_000);
    flow.see(7);
    flow.see(9);
    flow.nak(8);
    assert_eq!(flow.see(8), AGAIN);
    flow.see(10);
    let run = flow.tracker.take_run().unwrap();
    assert_eq!((run.first.value(), run.packets), (6, 4), "8 is one of it");
    assert_eq!(flow.tracker.take_run(), None);
}

#[test]
fn a_new_identification_is_a_new_transmission() {
    for (has_new_id, judged) in [
        (true, BehindVerdict::Retransmitted),
        (false, BehindVerdict::Duplicate),
    ] {
        let mut flow = paired(false);
        flow.see(6);
        flow.now += 1_000;
        let mut again = flow.request(4, 1_000);
        again.packet.has_new_id = has_new_id;
        flow.take(&again);
        flow.see(7);
        assert_eq!(flow.decisions(), [(judged, 4)]);
    }
}

#[test]
fn a_named_loss_is_one_when_the_capture_goes_on_for_a_while() {
    // 100 us are left for it to come late.
    for (after, class) in [(99_000, LossClass::Unresolved), (101_000, LossClass::NetworkLost)] {
        let mut flow = paired(false);
        flow.see(7);
        flow.nak(6);
        flow.tracker.close(Time(flow.now + after));
        assert_eq!(flow.fates()[class as usize], 1);
    }
}

#[test]
fn the_path_mtu_shows_afterwards_which_reads_are_missing() {
    let read = |flow: &mut Flow, psn: u32, read_before: u32| {
        flow.now += 1_000;
        let mut read = flow.request(psn, 1_000);
        read.packet.span = None;
        read.packet.is_read = true;
        read.flow.read_before = read_before;
        flow.take(&read)
    };
    let mut flow = Flow::default();
    read(&mut flow, 10, 0);
    // 4096 bytes each: at 1024 bytes a packet the second is the next one, and one is missing before the third.
    assert_eq!(read(&mut flow, 14, 4_096), Verdict::InOrder);
    assert_eq!(read(&mut flow, 22, 4_096), Verdict::InOrder);
    assert!(flow.tracker.longest_unsure_read().is_some());
    let gaps = flow
        .tracker
        .learn_spans(256, |length| Some(length.div_ceil(1_024)));
    assert_eq!(gaps, [(Psn::new(18), 4)]);
    assert!(flow.tracker.longest_unsure_read().is_none());
    flow.now += 1_000;
    let mut late = flow.request(18, 1_000);
    late.packet.span = Some(4);
    late.packet.is_read = true;
    assert_eq!(flow.take(&late), FILLS);
    flow.tracker.close(Time(flow.now));
    flow.tracker.take_missing(true, true, Time(u64::MAX));
    assert_eq!(
        flow.tracker.fates()[LossClass::Reordered as usize],
        1,
        "one request"
    );
}

#[test]
fn a_read_that_came_before_the_path_mtu_was_known_is_not_missing() {
    let mut flow = Flow::default();
    for (psn, read_before) in [(10, 0), (18, 4_096), (14, 4_096)] {
        flow.now += 1_000;
        let mut read = flow.request(psn, 1_000);
        read.packet.span = None;
        read.packet.is_read = true;
        read.flow.read_before = read_before;
        read.packet.read_length = 4_096;
        flow.take(&read);
    }
    // At 1024 bytes a packet 10 takes 10 to 13. 14 came 1 us after 18 had shown the gap.
    let gaps = flow
        .tracker
        .learn_spans(256, |length| Some(length.div_ceil(1_024)));
    assert_eq!(gaps, [(Psn::new(14), 4)]);
    flow.tracker.close(Time(flow.now));
    let holes = flow.tracker.take_missing(true, true, Time(u64::MAX));
    let fates: Vec<_> = holes.iter().map(|hole| hole.class).collect();
    assert_eq!(fates, [LossClass::Reordered]);
    assert_eq!(flow.tracker.reordering().time(), Some(Span(1_000)));
}

#[test]
fn a_lost_read_counts_as_one_packet() {
    let mut flow = Flow::default();
    let read = |flow: &mut Flow, psn: u32, span: u32, after: u64| {
        flow.now += after;
        let mut request = flow.request(psn, after);
        request.packet.is_read = true;
        request.packet.span = Some(span);
        flow.take(&request)
    };
    read(&mut flow, 0, 4, 1_000);
    flow.tracker.pair();
    // The READs at 4 and at 8, of 4 responses each, are lost before the tap.
    assert_eq!(read(&mut flow, 12, 4, 1_000), gap(4, 8));
    flow.nak(4);
    read(&mut flow, 4, 4, 10_000);
    read(&mut flow, 8, 4, 1_000);
    // The rest of a READ is short, and says nothing of the others.
    read(&mut flow, 15, 1, 1_000);
    read(&mut flow, 16, 4, 1_000);
    flow.tracker.close(Time(flow.now + 100_000));
    flow.tracker.take_missing(true, true, Time(u64::MAX));
    let fates = flow.tracker.fates();
    let lost = fates[LossClass::NetworkLost as usize] + fates[LossClass::Ambiguous as usize];
    assert_eq!(lost, 2);
    // The NAK names the first one, and with it the gap: two READs. Of other requests each takes one PSN.
    assert_eq!(flow.tracker.proven_losses(true), 2);
    assert_eq!(flow.tracker.proven_losses(false), 8);
}

#[test]
fn late_packets_of_other_flows_take_the_proof_from_a_nak() {
    for others_late in [false, true] {
        let mut flow = paired(false);
        flow.see(7);
        flow.nak(6);
        flow.see_after(6, 20_000);
        flow.see(7);
        flow.now += 1_000;
        let mut next = flow.request(9, 1_000);
        next.pair.others_late = others_late;
        flow.take(&next);
        flow.tracker.close(Time(flow.now + 100_000));
        assert_eq!(flow.tracker.proven_losses(false), u64::from(!others_late));
    }
}

#[test]
fn a_loss_just_before_the_end_is_not_proven() {
    // The first transmission may come late, less than 100 us after its retransmission; two packets of 1 us follow that.
    for (wait, proven) in [(97_000, 0), (98_000, 1)] {
        let mut flow = paired(false);
        flow.see(7);
        flow.nak(6);
        flow.see_after(6, 20_000);
        flow.see(7);
        flow.see(8);
        flow.tracker.close(Time(flow.now + wait));
        assert_eq!(flow.tracker.proven_losses(false), proven);
        let fates = flow.fates();
        assert_eq!(fates[LossClass::NetworkLost as usize], 1, "lost all the same");
    }
}

#[test]
fn a_copy_of_the_answer_to_a_nak_does_not_make_the_answer_late() {
    // 6 is lost, named and sent again. The network delivers that once more 13 us later: with the same identification.
    let mut flow = paired(false);
    assert_eq!(flow.see(7), gap(6, 1));
    flow.nak(6);
    flow.see(6);
    flow.now += 13_000;
    let mut copy = flow.request(6, 13_000);
    copy.packet.has_old_id = true;
    assert_eq!(flow.take(&copy), Verdict::Duplicate);
    flow.see(8);
    flow.tracker.close(Time(flow.now));
    assert_eq!(flow.fates()[LossClass::NetworkLost as usize], 1);
    let run = flow.tracker.take_run().unwrap();
    assert_eq!((run.first.value(), trigger_of(&run)), (6, Trigger::Nak));
}
