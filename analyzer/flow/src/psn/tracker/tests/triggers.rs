//! Why a sender falls back: an answer to a NAK, or its timer.

use super::*;
use crate::taps::duplicates::{IdAge, Ids};
use roce_model::{Span, Time};

/// A flow of which all up to 119 was acknowledged.
fn paired() -> Flow {
    shuffled::paired_up_to(120)
}

impl Flow {
    fn trigger(&self, psn: u32, request: &Request) -> Option<Trigger> {
        let cause = self.tracker.cause(self.at(psn), request);
        cause.map(|cause| cause.trigger)
    }
}

#[test]
fn an_answer_ten_times_as_late_as_many_others_is_a_timeouts() {
    // Other senders between the hosts answered NAKs within 20 us. This one sends on for 500 us, and then falls back: the NAK was lost, and
    // the timer of the packet that it names has expired (IBTA 9.7.6.1.3).
    for (others_answers, trigger) in [(4, Trigger::Nak), (5, Trigger::Timeout)] {
        let mut flow = paired();
        flow.see(121);
        flow.nak(120);
        for psn in 122..622 {
            flow.see(psn);
        }
        let mut request = flow.request(120, 1_000);
        request.pair.others_answer = Span(20_000);
        request.pair.others_answers = others_answers;
        assert_eq!(
            flow.trigger(120, &request),
            Some(trigger),
            "{others_answers} answers"
        );
    }
}

#[test]
fn a_run_behind_the_psn_of_a_nak_does_not_show_how_long_an_answer_takes() {
    // Its first packets may have been lost: it may be the rest of an older run.
    for (first, answers) in [(125, (Span(21_000), 1)), (127, (Span(0), 0))] {
        let mut flow = paired();
        for psn in 120..130 {
            flow.see(psn);
        }
        flow.nak(125);
        flow.now += 20_000;
        // The first of them comes 1 us later.
        for psn in first..130 {
            flow.see(psn);
        }
        flow.tracker.close(Time(flow.now));
        assert_eq!(trigger_of(&flow.tracker.take_run().unwrap()), Trigger::Nak);
        assert_eq!(flow.tracker.take_new_answers(), answers, "{first}");
    }
}

#[test]
fn the_rest_of_a_read_with_nothing_answered_behind_it_is_a_timeouts() {
    // A requester sees a gap when something later comes (IBTA 9.7.5.1.9). All before 120 was answered, and nothing behind it.
    for (psn, trigger) in [(119, Trigger::Timeout), (118, Trigger::Unknown)] {
        let mut flow = paired();
        flow.now += 350_000;
        let mut request = flow.request(psn, 350_000);
        request.packet.is_read = true;
        request.flow.again = Again::Captured;
        assert_eq!(flow.trigger(psn, &request), Some(trigger), "{psn}");
    }
}

/// The trigger of a run 975 us after its NAK, of a sender that went on `rest` after its last acknowledgement with the packet that showed the
/// gap. `others`: how long answers between the hosts took.
fn after_a_rest(rest: u64, others: u64) -> Option<Trigger> {
    let mut flow = paired();
    flow.now += rest;
    let first = flow.request(121, rest);
    assert_eq!(flow.take(&first), gap(120, 1));
    flow.nak(120);
    flow.now += 975_000;
    let mut request = flow.request(120, 975_000);
    request.pair.others_answer = Span(others);
    request.pair.others_answers = u32::from(others > 0);
    flow.trigger(120, &request)
}

#[test]
fn an_answer_that_takes_as_long_as_the_sender_rested_before_is_unclear() {
    // A queue of 6 MB at 50 Gbit/s holds a packet for 966 us, one that goes on after an acknowledgement as well as one that answers a NAK.
    assert_eq!(after_a_rest(966_000, 0), Some(Trigger::Unknown));
    // The sender went on at once.
    assert_eq!(after_a_rest(50_000, 0), Some(Trigger::Timeout));
    // Answers between the hosts took 20 us: no queue is as long.
    assert_eq!(after_a_rest(966_000, 20_000), Some(Trigger::Timeout));
}

#[test]
fn a_nak_for_the_very_packet_explains_it_whatever_came_after() {
    // The NAK for 120 left before that for 123, and was overtaken by it.
    let mut flow = paired();
    for psn in 120..130 {
        flow.see(psn);
    }
    flow.nak(123);
    flow.nak(120);
    let before = flow
        .tracker
        .circumstances(flow.at(123), flow.requests.next, &flow.request(123, 1_000));
    assert_eq!(before.nak.unwrap().ahead, 0);
}

#[test]
fn the_first_psn_after_a_long_rest_begins_an_epoch() {
    // The receiver waits for PSN 1,012, which it named. A second later nothing is on its way: with 8 or more PSNs acknowledged, or an older
    // identification, the first PSN is another connection's. 20 ms later the answers may still be stuck in a queue.
    let older = Some(Ids {
        id: 0,
        newest: 20,
        age: IdAge::Older,
    });
    for (silence, named, ids, begins) in [
        (1_000_000_000, Some(1_012), None, true),
        (20_000_000, Some(1_012), None, false),
        (1_000_000_000, Some(1_004), None, false),
        (1_000_000_000, None, older, true),
        (20_000_000, None, older, false),
    ] {
        let mut flow = Flow::default();
        for psn in 1_000..1_020 {
            assert_eq!(flow.see(psn), Verdict::InOrder);
        }
        if let Some(named) = named {
            flow.tracker.pair();
            flow.nak(named);
        }
        flow.now += silence;
        let mut request = flow.request(1_000, silence);
        request.packet.ids = ids;
        let verdict = flow.take(&request);
        assert_eq!(
            matches!(verdict, Verdict::NewEpoch(_)),
            begins,
            "silence {silence}, {named:?}, {ids:?}: {verdict:?}"
        );
    }
}
