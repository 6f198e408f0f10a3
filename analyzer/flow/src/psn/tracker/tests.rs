//! The tracker's verdicts on sequences of requests, compared with those of a plain set of PSNs.

use roce_model::{Span, Time, WriteTarget};
use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::psn::cause::Trigger;
use crate::psn::run::EndedRun;

use super::*;
use crate::psn::request::{Again, BASE, RequestPacket};
use crate::psn::undecided::BehindVerdict;

mod named;
mod shuffled;
mod triggers;

/// A flow's requests, one microsecond apart.
#[derive(Default)]
struct Flow {
    requests: Requests,
    tracker: Tracker,
    now: u64,
}

/// The trigger of a run between hosts that had no other.
fn trigger_of(run: &EndedRun) -> Trigger {
    run.before.cause_alone().trigger
}

impl Flow {
    fn request(&self, psn: u32, silence: u64) -> Request {
        let mut request = Request {
            packet: RequestPacket {
                psn: Psn::new(psn),
                span: Some(1),
                time: Time(self.now),
                bin: self.now / 1_000_000,
                payload_bytes: 1024,
                ..RequestPacket::default()
            },
            ..Request::default()
        };
        request.flow.silence = Span(silence);
        request.flow.max_holes = crate::psn::holes::MAX_OPEN_HOLES;
        request
    }

    fn take(&mut self, request: &Request) -> Verdict {
        if let Some(span) = request.packet.span
            && self.requests.advance(request.packet.psn, span)
        {
            return Verdict::InOrder;
        }
        self.tracker.observe(&mut self.requests, request)
    }

    fn see(&mut self, psn: u32) -> Verdict {
        self.now += 1_000;
        self.take(&self.request(psn, 1_000))
    }

    fn see_after_silence(&mut self, psn: u32) -> Verdict {
        self.now += 1_000_000;
        self.take(&self.request(psn, 1_000_000))
    }
}

fn gap(first: u32, missing: u32) -> Verdict {
    Verdict::Gap {
        first: Psn::new(first),
        missing,
    }
}

/// It fills a hole, and the next packets tell.
const FILLS: Verdict = Verdict::Undecided {
    captured_before: false,
};
const AGAIN: Verdict = Verdict::Retransmission {
    captured_before: true,
};

#[test]
fn the_rules_of_a_transport_are_kept() {
    let flow = Flow::default();
    let connection = crate::transport::rules::Connection {
        transport: Tracker {
            paired: true,
            ..Tracker::default()
        },
        requests: Requests::default(),
        request: |psn, time| {
            let mut request = flow.request(psn, 1_000);
            request.packet.time = time;
            request
        },
        acknowledgement: |covered, time| RequestAnswer {
            covered,
            time,
            meaning: AnswerMeaning::Ack,
        },
        now: 0,
    };
    connection.keeps_the_rules();
}

#[test]
fn in_order_takes_the_short_way() {
    let mut flow = Flow::default();
    assert_eq!(flow.see(0x00ff_fffe), Verdict::InOrder);
    assert!(flow.requests.advance(Psn::new(0x00ff_ffff), 1));
    assert!(flow.requests.advance(Psn::new(0), 1), "over the wrap");
    assert!(!flow.requests.advance(Psn::new(5), 1));
    assert!(!flow.requests.disturbed);
}

#[test]
fn a_run_ends_when_it_passes_the_highest() {
    let mut flow = Flow::default();
    flow.see(100);
    assert_eq!(flow.see(102), gap(101, 1));
    assert_eq!(flow.see(101), FILLS);
    assert_eq!(flow.see(102), AGAIN);
    let decision = flow.tracker.take_decision().unwrap();
    assert_eq!(decision.judged, BehindVerdict::Retransmitted);
    assert_eq!(
        (decision.psn, decision.parts),
        (Psn::new(101), vec![(0, 1, 1024)])
    );
    assert_eq!(flow.tracker.take_run(), None);
    assert_eq!(flow.see(103), Verdict::InOrder);
    let run = flow.tracker.take_run().unwrap();
    assert_eq!((run.first, run.packets), (Psn::new(101), 2));
    assert!(!flow.requests.disturbed, "the short way again");
}

#[test]
fn what_a_nak_names_is_sent_again() {
    let mut flow = Flow::default();
    flow.see(100);
    flow.see(102);
    let mut is_naked = flow.request(101, 1_000);
    is_naked.pair.is_naked = true;
    assert_eq!(flow.take(&is_naked), FILLS);
    assert_eq!(flow.see(102), AGAIN, "the sender goes on to repeat");
    assert_eq!(
        flow.tracker.take_decision().unwrap().judged,
        BehindVerdict::Retransmitted
    );
}

#[test]
fn a_silence_decides_for_a_retransmission() {
    let mut flow = Flow::default();
    flow.see(100);
    flow.see(103);
    assert_eq!(flow.see_after_silence(101), FILLS);
    assert_eq!(flow.see(104), Verdict::InOrder);
    assert_eq!(
        flow.tracker.take_decision().unwrap().judged,
        BehindVerdict::Retransmitted
    );
    // Without one, the other hole's packet is late.
    assert_eq!(flow.see(102), FILLS);
    assert_eq!(flow.see(105), Verdict::InOrder);
    assert_eq!(flow.tracker.take_decision().unwrap().judged, BehindVerdict::Late);
}

#[test]
fn late_packets_may_come_backwards() {
    let mut flow = Flow::default();
    flow.see(100);
    flow.see(104);
    for psn in [103, 101, 102] {
        assert_eq!(flow.see(psn), FILLS);
    }
    flow.see(105);
    let mut decisions: Vec<_> = core::iter::from_fn(|| flow.tracker.take_decision()).collect();
    decisions.sort_by_key(|decision| decision.psn.value());
    let judged: Vec<_> = decisions
        .iter()
        .map(|decision| (decision.judged, decision.psn.value(), decision.parts[0]))
        .collect();
    // 101 and 102 in a row, 103 by itself.
    assert_eq!(
        judged,
        [
            (BehindVerdict::Late, 101, (0, 2, 2048)),
            (BehindVerdict::Late, 103, (0, 1, 1024))
        ]
    );
    // 105 was the next one. 103 came 1 behind 104, 1 us after the gap showed; 101 came 3 behind, 2 us after it, and 102 3 us after it.
    assert_eq!(flow.tracker.reordering().depth(), Some(3));
    assert_eq!(flow.tracker.reordering().time(), Some(Span(3_000)));
}

#[test]
fn undecided_packets_keep_their_bins() {
    let mut flow = Flow {
        now: 998_000,
        ..Flow::default()
    };
    flow.see(100);
    flow.now -= 2_000;
    flow.see(103);
    flow.see(101);
    flow.now += 2_000;
    flow.see(102);
    flow.tracker.close(Time(flow.now));
    assert_eq!(
        flow.tracker.take_decision().unwrap().parts,
        [(0, 1, 1024), (1, 1, 1024)]
    );
}

#[test]
fn borders_of_gap_and_stale() {
    let mut flow = Flow::default();
    flow.see(0);
    assert_eq!(flow.see(1 + 65_536), gap(1, 65_536));
    let next = 65_538;
    assert!(matches!(flow.see(next + 65_537), Verdict::NewEpoch(_)));
    let behind = |next: u32, psns: u32| Psn::new(next).plus(Psn::COUNT - psns).value();
    assert_eq!(flow.see(behind(0, 65_537)), Verdict::Stale, "before the first");
    assert_eq!(flow.see(behind(0, 65_536)), Verdict::Unknown, "before the first");
    // 65 jumps of 65,537 are more than 2^22.
    let mut next = next;
    for _ in 0..65 {
        flow.see(next + 65_536);
        next += 65_537;
    }
    assert_eq!(flow.see(behind(next, 1 << 22)), Verdict::Stale);
    assert_eq!(flow.see(behind(next, (1 << 22) - 1)), FILLS, "in a gap");
}

#[test]
fn a_read_of_unknown_span_excuses_any_jump() {
    let mut flow = Flow::default();
    flow.see(10);
    let mut read = flow.request(11, 1_000);
    read.packet.span = None;
    assert_eq!(flow.take(&read), Verdict::InOrder);
    assert_eq!(flow.see(1_000_000), Verdict::InOrder);
    assert_eq!(flow.see(1_000_002), gap(1_000_001, 1));
}

#[test]
fn what_the_capture_lost_is_no_gap() {
    let mut flow = Flow::default();
    flow.tracker.capture_lost(&mut flow.requests);
    assert!(!flow.requests.disturbed, "nothing was seen yet");
    flow.see(10);
    flow.tracker.capture_lost(&mut flow.requests);
    assert_eq!(flow.see(11), Verdict::InOrder);
    assert_eq!(flow.see(13), gap(12, 1));
    flow.tracker.capture_lost(&mut flow.requests);
    assert!(matches!(flow.see(15), Verdict::NewEpoch(_)));
    flow.tracker.restart(&mut flow.requests);
    assert_eq!(flow.see(15), Verdict::InOrder);
}

/// The rules of the design with a set of captured positions: slow and plain.
#[derive(Default)]
struct Model {
    captured: BTreeSet<i64>,
    highest: Option<i64>,
    stale: Option<(i64, u8)>,
    missing: u64,
    behind: u64,
    stale_packets: u64,
    epochs: u64,
}

impl Model {
    fn begin(&mut self, psn: u32) {
        self.captured = BTreeSet::from([i64::from(psn)]);
        self.highest = Some(i64::from(psn));
        self.stale = None;
    }

    fn see(&mut self, psn: u32) {
        let Some(highest) = self.highest else {
            return self.begin(psn);
        };
        // The position nearest to the one expected: at most 2^23 behind, less than that ahead.
        let size = i64::from(Psn::COUNT);
        let expected = highest + 1;
        let half = size / 2;
        let at = expected + (i64::from(psn) - expected + half).rem_euclid(size) - half;
        if at <= expected - (1 << 22) {
            let run = match self.stale {
                Some((next, run)) if next == i64::from(psn) => run + 1,
                _ => 1,
            };
            if run == 8 {
                self.epochs += 1;
                return self.begin(psn);
            }
            self.stale = Some((i64::from(Psn::new(psn).plus(1).value()), run));
            self.stale_packets += 1;
            return;
        }
        self.stale = None;
        if at < expected {
            self.behind += 1;
            self.captured.insert(at);
        } else if at - expected > 65_536 {
            self.epochs += 1;
            self.begin(psn);
        } else {
            self.missing +=
                u64::try_from((expected..at).filter(|at| !self.captured.contains(at)).count()).unwrap();
            self.captured.insert(at);
            self.highest = Some(at);
        }
    }
}

/// The sums of the tracker's verdicts.
#[derive(Default)]
struct Tally {
    missing: u64,
    stale: u64,
    epochs: u64,
    retransmitted: u64,
    late: u64,
    duplicates: u64,
    unknown: u64,
    undecided: u64,
    runs: u64,
    /// Packets of a run that others overtook, and that came after its end: no run counts them.
    stragglers: u64,
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Gap { missing, .. } => self.missing += u64::from(missing),
            Verdict::Stale => self.stale += 1,
            Verdict::Retransmission { .. } => self.retransmitted += 1,
            Verdict::Undecided { .. } => self.undecided += 1,
            Verdict::NewEpoch(_) => self.epochs += 1,
            Verdict::Unknown => self.unknown += 1,
            Verdict::Duplicate => self.duplicates += 1,
            Verdict::Late { .. } => self.late += 1,
            Verdict::InOrder => {}
        }
    }

    fn settle(&mut self, flow: &mut Flow) {
        while let Some(decision) = flow.tracker.take_decision() {
            let packets: u64 = decision
                .parts
                .iter()
                .map(|(_, packets, _)| u64::from(*packets))
                .sum();
            self.undecided -= packets;
            match decision.judged {
                BehindVerdict::Retransmitted => self.retransmitted += packets,
                BehindVerdict::Late => self.late += packets,
                BehindVerdict::Duplicate => self.duplicates += packets,
                BehindVerdict::Unknown => self.unknown += packets,
            }
        }
        while let Some(run) = flow.tracker.take_run() {
            self.runs += run.packets;
        }
    }
}

/// The next step of a sender or of a network.
#[derive(Clone, Copy, Debug)]
enum Step {
    InOrder(u32),
    Gap(u32),
    Back { by: u32, packets: u32 },
    Jump(u32),
    Silence,
    BinDone,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1u32..20).prop_map(Step::InOrder),
        4 => (1u32..50).prop_map(Step::Gap),
        4 => (1u32..60, 1u32..70).prop_map(|(by, packets)| Step::Back { by, packets }),
        1 => (60_000u32..70_000).prop_map(Step::Gap),
        1 => (65_537u32..8_000_000).prop_map(Step::Jump),
        1 => ((1u32 << 22) - 2..(1 << 23), 1u32..12).prop_map(|(by, packets)| Step::Back { by, packets }),
        1 => Just(Step::Silence),
        1 => Just(Step::BinDone),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    /// Whatever comes, nothing panics, and the missing ones, epochs and stale ones are those of the model.
    #[test]
    fn as_the_model(first in 0u32..Psn::COUNT, steps in steps()) {
        let mut flow = Flow::default();
        let mut model = Model::default();
        let (mut tally, mut next, mut silent) = (Tally::default(), first, false);
        for step in steps {
            let (from, packets) = match step {
                Step::InOrder(packets) => (next, packets),
                Step::Gap(psns) => (Psn::new(next).plus(psns).value(), 1),
                Step::Jump(psns) => (Psn::new(next).plus(psns).value(), 2),
                Step::Back { by, packets } => (Psn::new(next).plus(Psn::COUNT - by).value(), packets),
                Step::Silence => {
                    silent = true;
                    continue;
                }
                Step::BinDone => {
                    flow.tracker.decide_alone();
                    tally.settle(&mut flow);
                    continue;
                }
            };
            for psn in (0..packets).map(|i| Psn::new(from).plus(i).value()) {
                model.see(psn);
                let silent = core::mem::take(&mut silent);
                let run_before = flow.tracker.runs.current().copied();
                let verdict = if silent { flow.see_after_silence(psn) } else { flow.see(psn) };
                if matches!(verdict, Verdict::NewEpoch(_)) {
                    flow.tracker.close(Time(flow.now));
                }
                tally.count(verdict);
                let is_straggler = matches!(verdict, Verdict::Retransmission { .. }) && flow.tracker.runs.current().copied() == run_before;
                tally.stragglers += u64::from(is_straggler);
                tally.settle(&mut flow);
                if matches!(verdict, Verdict::NewEpoch(_)) {
                    flow.tracker.restart(&mut flow.requests);
                    prop_assert_eq!(flow.see(psn), Verdict::InOrder);
                }
            }
            if let Some(highest) = model.highest {
                next = u32::try_from((highest + 1).rem_euclid(i64::from(Psn::COUNT))).unwrap();
            }
        }
        flow.tracker.close(Time(flow.now));
        tally.settle(&mut flow);
        prop_assert_eq!(tally.missing, model.missing);
        prop_assert_eq!(tally.epochs, model.epochs);
        prop_assert_eq!(tally.stale, model.stale_packets);
        prop_assert_eq!(tally.undecided, 0, "every packet is judged in the end");
        prop_assert_eq!(tally.retransmitted + tally.late + tally.duplicates + tally.unknown, model.behind, "a packet behind is one of the four");
        prop_assert_eq!(tally.runs + tally.stragglers, tally.retransmitted, "every packet retransmitted is in one run, or late for it");
    }
}

#[test]
fn another_source_port_with_the_first_psn_begins_an_epoch() {
    for (psn, has_other_port, begins) in [(1_000, true, true), (1_000, false, false), (1_005, true, false)] {
        let mut flow = Flow::default();
        for psn in 1_000..1_020 {
            assert_eq!(flow.see(psn), Verdict::InOrder);
        }
        flow.now += 100_000;
        let mut request = flow.request(psn, 100_000);
        request.packet.has_other_port = has_other_port;
        let verdict = flow.take(&request);
        assert_eq!(
            matches!(verdict, Verdict::NewEpoch(_)),
            begins,
            "PSN {psn}, other port {has_other_port}: {verdict:?}"
        );
    }
}

#[test]
fn psn_zero_after_a_rest_begins_an_epoch_only_when_all_is_acknowledged() {
    // The capture begins at PSN 1,000. With PSN 0 libraries begin a connection; with something outstanding a sender falls back to it as to
    // any other PSN, and without the other direction something may be.
    for (psn, silence, acked, begins) in [
        (0, 100_000, Some(1_020), true),
        (0, 100_000, Some(1_015), false),
        (0, 100_000, None, false),
        (5, 100_000, Some(1_020), false),
        (0, 1_000, Some(1_020), false),
    ] {
        let mut flow = Flow::default();
        for psn in 1_000..1_020 {
            assert_eq!(flow.see(psn), Verdict::InOrder);
        }
        if let Some(acked) = acked {
            flow.tracker.pair();
            flow.acknowledge(acked);
        }
        flow.now += silence;
        let request = flow.request(psn, silence);
        let verdict = flow.take(&request);
        assert_eq!(
            matches!(verdict, Verdict::NewEpoch(_)),
            begins,
            "PSN {psn}, silence {silence}, {acked:?}: {verdict:?}"
        );
    }
}

#[test]
fn what_goes_to_the_same_memory_is_sent_again_although_it_was_acknowledged() {
    // The acknowledgements were lost behind the tap. A new connection writes to other memory, or comes after a long rest; and a sender without any
    // answer does not go on for longer than its timer.
    let memory = |address| WriteTarget {
        address,
        key: 7,
        length: 20_480,
    };
    for (address, gap, silence, begins) in [
        (4_096, 1_000, 1_510_000, false),
        (8_192, 1_000, 1_510_000, true),
        (4_096, 1_000, 1_000_000_000, true),
        (4_096, 200_000, 1_510_000, true),
    ] {
        let mut flow = Flow::default();
        for psn in 0..20 {
            flow.now += gap;
            let mut request = flow.request(psn, gap);
            request.target = (psn == 0).then(|| memory(4_096));
            assert_eq!(flow.take(&request), Verdict::InOrder);
        }
        flow.tracker.pair();
        flow.acknowledge(20);
        flow.now += silence;
        let mut request = flow.request(0, silence);
        request.target = Some(memory(address));
        let verdict = flow.take(&request);
        assert_eq!(
            matches!(verdict, Verdict::NewEpoch(_)),
            begins,
            "address {address}, a packet in {gap} ns, silence {silence}: {verdict:?}"
        );
    }
}

#[test]
fn psn_zero_once_more_is_a_retransmission_where_others_are_answered() {
    // A connection from PSN 0 on, whose message ended and that nobody answered. Where answers to others are captured, it is outstanding.
    for others_are_answered in [false, true] {
        let mut flow = Flow::default();
        for psn in 0..16 {
            assert_eq!(flow.see(psn), Verdict::InOrder);
        }
        flow.now += 4_194_000;
        let mut request = flow.request(0, 4_194_000);
        request.pair.others_are_answered = others_are_answered;
        let verdict = flow.take(&request);
        assert_eq!(matches!(verdict, Verdict::NewEpoch(_)), !others_are_answered);
    }
}

#[test]
fn what_is_acknowledged_before_its_retransmission_can_have_come_was_overtaken_behind_the_tap() {
    // The answer comes 2 us after the retransmission. Round trips take 20 us, 1 us, or nobody knows.
    let cases = [
        (None, 20_000, true),
        (None, 0, true),
        (Some(2_000), 20_000, true),
        (Some(2_000), 1_000, false),
        (Some(2_000), 0, false),
    ];
    for (after, rtt, is_overtaken) in cases {
        let mut flow = Flow::default();
        flow.tracker.pair();
        for psn in 100..120 {
            flow.see(psn);
        }
        let position = |psn: u32| BASE + u64::from(psn);
        let times = (Span(rtt), Time(0));
        let named = flow
            .tracker
            .nak(&flow.requests, position(110), Time(flow.now), times);
        assert_eq!(named.lost_downstream, Some((Psn::new(110), 1)));
        assert!(!named.was_overtaken);
        if let Some(after) = after {
            flow.see(110);
            flow.now += after;
        }
        let time = Time(flow.now);
        let answered = flow.tracker.acknowledged(&flow.requests, position(112), time);
        assert_eq!(answered.was_overtaken, is_overtaken, "{after:?} {rtt}");
    }
}
