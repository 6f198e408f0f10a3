//! Answers to NAKs whose packets come out of their order, or with gaps.

use super::*;
use crate::taps::duplicates::{IdAge, Ids};

/// A flow whose other direction is known, and of which all before 100 was acknowledged.
fn paired() -> Flow {
    paired_up_to(100)
}

/// A flow with the PSNs 90 to 119 whose other direction is known, and acknowledged all before `acked`.
pub(super) fn paired_up_to(acked: u32) -> Flow {
    let mut flow = Flow::default();
    flow.tracker.pair();
    for psn in 90..120 {
        assert_eq!(flow.see(psn), Verdict::InOrder);
    }
    flow.acknowledge(acked);
    flow
}

impl Flow {
    pub(super) fn at(&self, psn: u32) -> u64 {
        Tracker::position(&self.requests, Psn::new(psn)).unwrap()
    }

    pub(super) fn acknowledge(&mut self, psn: u32) {
        let (at, now) = (self.at(psn), Time(self.now));
        self.tracker.acknowledge(&self.requests, at, now);
    }

    fn retransmitted(&mut self) -> (u64, u64) {
        let (mut retransmitted, mut duplicates) = (0, 0);
        while let Some(decision) = self.tracker.take_decision() {
            let packets: u64 = decision
                .parts
                .iter()
                .map(|(_, packets, _)| u64::from(*packets))
                .sum();
            match decision.judged {
                BehindVerdict::Retransmitted => retransmitted += packets,
                BehindVerdict::Duplicate => duplicates += packets,
                _ => {}
            }
        }
        (retransmitted, duplicates)
    }
}

/// The verdicts on an answer to a NAK for 105 whose packets take several paths. 119 is the highest PSN before it.
fn shuffled(is_reordered: bool) -> (u64, u64) {
    let mut flow = paired();
    if is_reordered {
        flow.see(121);
        flow.see(120);
        flow.see(122);
    }
    flow.nak(105);
    let mut again = 0;
    for psn in [108, 106, 110, 105, 107, 112, 109, 111] {
        let verdict = flow.see(psn);
        again += u64::from(matches!(verdict, Verdict::Retransmission { .. }));
    }
    flow.tracker.close(Time(flow.now));
    let (retransmitted, duplicates) = flow.retransmitted();
    (again + retransmitted, duplicates)
}

#[test]
fn an_answer_on_several_paths_is_one_answer() {
    assert_eq!(shuffled(true), (8, 0));
}

#[test]
fn copies_without_a_nak_are_the_networks() {
    let mut flow = paired();
    flow.see(121);
    flow.see(120);
    for psn in [108, 106, 110] {
        flow.see(psn);
        flow.see(flow.requests.expected().value());
    }
    flow.tracker.close(Time(flow.now));
    assert_eq!(flow.retransmitted(), (0, 3));
}

#[test]
fn a_run_that_loses_packets_again_answers_its_own_nak() {
    let mut flow = paired();
    // 120 is lost, named and retransmitted; 121 is lost from the run, 122 and 123 come again.
    for psn in [121, 122, 123] {
        flow.see(psn);
    }
    flow.nak(120);
    flow.see(120);
    flow.nak(121);
    flow.see(122);
    assert_eq!(flow.see(123), AGAIN);
    // The answer to the second NAK.
    flow.see(121);
    assert_eq!(flow.see(122), AGAIN);
    flow.tracker.close(Time(flow.now));
    let mut runs = Vec::new();
    while let Some(run) = flow.tracker.take_run() {
        runs.push((run.first.value(), trigger_of(&run)));
    }
    runs.sort_unstable_by_key(|run| run.0);
    assert_eq!(runs, [(120, Trigger::Nak), (121, Trigger::Nak)]);
}

#[test]
fn a_silence_of_an_rnr_timer_may_follow_on_one() {
    let waits = |silence: u64| {
        let mut flow = paired();
        let (at, now) = (flow.at(110), Time(flow.now));
        flow.tracker.rnr(&flow.requests, at, now, Span(1_000_000));
        flow.acknowledge(120);
        flow.see(120);
        flow.now += silence;
        let mut request = flow.request(120, silence);
        request.flow.waiting_since = Time(flow.now - silence);
        flow.tracker
            .cause(flow.at(120), &request)
            .map(|cause| cause.trigger)
    };
    assert_eq!(waits(1_000_000), Some(Trigger::Unknown));
    assert_eq!(waits(2_500_000), Some(Trigger::Timeout));
}

#[test]
fn a_late_first_packet_after_a_rest_is_no_timeout() {
    // All was acknowledged 1.4 ms ago. Packet 121 overtakes 120 by 2 us: 120 may have been sent just before it.
    let mut flow = paired();
    flow.acknowledge(120);
    flow.now += 1_400_000;
    let rest = flow.request(121, 1_400_000);
    assert_eq!(flow.take(&rest), gap(120, 1));
    flow.now += 2_000;
    let late = flow.request(120, 2_000);
    assert_eq!(flow.take(&late), FILLS);
    flow.see(122);
    assert_eq!(flow.tracker.take_decision().unwrap().judged, BehindVerdict::Late);
    assert_eq!(flow.tracker.take_run(), None, "nothing was retransmitted");
}

#[test]
fn a_missing_packet_long_after_its_gap_is_a_timeouts() {
    let mut flow = paired();
    flow.acknowledge(120);
    flow.see(121);
    flow.now += 1_400_000;
    let retransmitted = flow.request(120, 1_400_000);
    assert_eq!(flow.take(&retransmitted), FILLS);
    flow.see(122);
    assert_eq!(
        flow.tracker.take_decision().unwrap().judged,
        BehindVerdict::Retransmitted
    );
    flow.tracker.close(Time(flow.now));
    assert_eq!(trigger_of(&flow.tracker.take_run().unwrap()), Trigger::Timeout);
}

/// A receiver that keeps what comes out of order names 120 and 122, which come late, and gets both once more.
fn two_named(sent_again: &[u32]) -> Vec<(u32, BehindVerdict)> {
    let mut flow = paired();
    // Packets of this flow come late.
    flow.see(121);
    flow.see(120);
    flow.see(123);
    flow.nak(122);
    flow.see(125);
    flow.now += 5_000;
    flow.see(122);
    flow.nak(124);
    flow.now += 5_000;
    flow.see(124);
    flow.now += 10_000;
    for psn in sent_again {
        flow.see(*psn);
    }
    flow.tracker.close(Time(flow.now));
    let mut judged: Vec<_> = core::iter::from_fn(|| flow.tracker.take_decision())
        .map(|decision| (decision.psn.value(), decision.judged))
        .filter(|(psn, _)| [122, 124].contains(psn))
        .collect();
    judged.sort_unstable_by_key(|(psn, _)| *psn);
    judged
}

#[test]
fn several_packets_wait_for_the_answers_to_their_naks() {
    use BehindVerdict::{Late, Unknown};
    // Both come once more: the first ones were late.
    assert_eq!(two_named(&[122, 124]), [(122, Late), (124, Late)]);
    // The sender took 18 us to answer the second NAK. Packet 122 came 6 us after its own.
    assert_eq!(two_named(&[124]), [(122, Late), (124, Late)]);
    assert_eq!(two_named(&[]), [(122, Unknown), (124, Unknown)]);
}

/// The runs after a NAK for 105, where the sender counts its packets: first PSN, packets, trigger. Packets come with these PSNs and
/// identifications.
fn runs_by_identification(packets: &[(u32, u16)]) -> Vec<(u32, u64, Trigger)> {
    let mut flow = paired();
    for psn in [121, 120, 122] {
        flow.see(psn);
    }
    flow.nak(105);
    let mut newest = 199;
    for (psn, id) in packets.iter().copied() {
        let is_older = id < newest;
        newest = newest.max(id);
        flow.now += 1_000;
        let mut request = flow.request(psn, 1_000);
        request.packet.ids = Some(Ids {
            id,
            newest,
            age: if is_older { IdAge::Older } else { IdAge::Newer },
        });
        flow.take(&request);
    }
    flow.tracker.close(Time(flow.now));
    let runs = core::iter::from_fn(|| flow.tracker.take_run());
    let mut runs: Vec<_> = runs
        .map(|run| (run.first.value(), run.packets, trigger_of(&run)))
        .collect();
    runs.sort_unstable_by_key(|run| run.0);
    runs
}

#[test]
fn identifications_show_that_an_overtaken_packet_belongs_to_the_run() {
    // 105 to 108 have the identifications 200 to 203. 107 overtakes 106 on its way: one answer to one NAK.
    let runs = runs_by_identification(&[(105, 200), (107, 202), (106, 201), (108, 203)]);
    assert_eq!(runs, [(105, 4, Trigger::Nak)]);
    // The sender answers with 105 alone, goes on with 123, falls back to 106, and goes on with 124, which overtakes that.
    let runs = runs_by_identification(&[(105, 200), (123, 201), (124, 203), (106, 202)]);
    let runs: Vec<_> = runs
        .iter()
        .map(|(first, packets, _)| (*first, *packets))
        .collect();
    assert_eq!(runs, [(105, 1), (106, 1)]);
}
