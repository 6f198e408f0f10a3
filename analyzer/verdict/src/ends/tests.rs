//! Ends from rows and events, one story each; expected values are arithmetic on the numbers of the story.

use roce_model::{
    Address, Confidence, EndKind, EndRow, EventKind, EventRow, FlowId, FlowRow, Period, RunSummary, TapId,
    TapRow, Time,
};

use super::Ends;

const MS: u64 = 1_000_000;
/// The capture lasts from 0 to 60 s.
const END: u64 = 60_000 * MS;

fn host(number: u8) -> Address {
    Address::v4([10, 0, 0, number])
}

/// A flow of requests from host 1 to host 2, PSNs 100 to 199, from 1 s to `last`.
fn requests(flow: u64, peer: Option<u64>, last: u64) -> FlowRow {
    FlowRow {
        flow_id: FlowId(flow),
        source: host(1),
        destination: host(2),
        destination_qpn: 0x12,
        service: "RC",
        peer_flow_id: peer.map(FlowId),
        first_time: Time(1_000 * MS),
        last_time: Time(last),
        last_request_time: Some(Time(last)),
        first_psn: Some(100),
        last_psn: Some(199),
        counted: true,
        ..FlowRow::default()
    }
}

/// A flow of answers from host 2 to host 1.
fn answers(flow: u64, last: u64) -> FlowRow {
    FlowRow {
        flow_id: FlowId(flow),
        source: host(2),
        destination: host(1),
        service: "RC",
        last_time: Time(last),
        acks: 5,
        counted: true,
        ..FlowRow::default()
    }
}

fn event(
    flow: u64,
    time: u64,
    kind: EventKind,
    psn: u32,
    value: u64,
    detail: Option<&'static str>,
) -> EventRow {
    EventRow {
        time: Time(time),
        kind,
        flow_id: Some(FlowId(flow)),
        psn: Some(psn),
        value: Some(value),
        detail: detail.map(Into::into),
        ..EventRow::default()
    }
}

/// Runs of one packet by timeout at these times.
fn runs(flow: u64, psn: u32, times: &[u64]) -> Vec<EventRow> {
    let run = |time: &u64| event(flow, *time, EventKind::RetransmissionRun, psn, 1, Some("timeout"));
    times.iter().map(run).collect()
}

fn concluded(events: &[EventRow], rows: &[FlowRow], lost: u64) -> Vec<EndRow> {
    let mut ends = Ends::default();
    for event in events {
        ends.event(event);
    }
    for row in rows {
        ends.flow(row);
    }
    let span = Period {
        first: Time(0),
        last: Time(END),
    };
    let run = RunSummary {
        span: Some(span),
        taps: vec![TapRow {
            tap: TapId(0),
            first_time: Some(span.first),
            last_time: Some(span.last),
            frames_lost: lost,
            ..TapRow::default()
        }],
        ..RunSummary::default()
    };
    ends.conclude(&run)
}

#[test]
fn requests_that_nobody_answers_any_more() {
    // The last answer at 2 s; the request at PSN 150 again at 3.1, 4.2 and 5.3 s.
    let mut row = requests(1, Some(2), 5_300 * MS);
    row.last_answer_time = Some(Time(2_000 * MS));
    let events = runs(1, 150, &[3_100 * MS, 4_200 * MS, 5_300 * MS]);
    let found = concluded(&events, &[row.clone(), answers(2, 2_000 * MS)], 0);
    let end = &found[0];
    assert_eq!((end.outcome, end.repeats), (EndKind::RetriesUnanswered, 3));
    assert_eq!((end.waited_ns, end.repeat_min_ns), (3_300 * MS, Some(1_100 * MS)));
    // 4.096 us x 2^18 is 1.074 s, x 2^17 0.537 s; four times 2^16 is 1.074 s, less than 1.1 s.
    assert_eq!((end.timeout_min, end.timeout_max), (Some(17), Some(18)));
    assert_eq!(end.confidence, Confidence::High);
    // A capture that lost records may have lost the answer, or later repeats.
    let found = concluded(&events, &[row.clone(), answers(2, 2_000 * MS)], 9);
    assert_eq!(found[0].confidence, Confidence::Medium);
    // An answer behind the repeats: it went on.
    row.last_answer_time = Some(Time(5_301 * MS));
    let found = concluded(&events, &[row.clone(), answers(2, 5_301 * MS)], 0);
    assert_eq!(found[0].outcome, EndKind::Closed);
    // New requests long behind the repeats: it went on, too.
    let later = requests(1, None, 9_000 * MS);
    assert_eq!(concluded(&events, &[later], 0)[0].outcome, EndKind::Closed);
}

#[test]
fn one_repeat_or_one_that_a_nak_asked_for_is_no_end() {
    let row = requests(1, Some(2), 3_100 * MS);
    let found = concluded(
        &runs(1, 150, &[3_100 * MS]),
        &[row.clone(), answers(2, 2_000 * MS)],
        0,
    );
    assert_eq!(found[0].outcome, EndKind::Closed);
    let named = event(1, 3_100 * MS, EventKind::RetransmissionRun, 150, 1, Some("nak"));
    let events: Vec<EventRow> = runs(1, 150, &[1_100 * MS, 2_100 * MS])
        .into_iter()
        .chain([named])
        .collect();
    let found = concluded(&events, &[row, answers(2, 3_200 * MS)], 0);
    assert_eq!(found[0].outcome, EndKind::Closed);
}

#[test]
fn the_first_request_was_never_answered() {
    let row = requests(1, None, 8_000 * MS);
    let times: Vec<u64> = (1..=7).map(|at| (1_000 + at * 1_000) * MS).collect();
    let other = answers(9, 30_000 * MS);
    let found = concluded(&runs(1, 100, &times), &[row, other], 0);
    let end = &found[0];
    assert_eq!(
        (end.outcome, end.repeats, end.waited_ns),
        (EndKind::NeverAnswered, 7, 7_000 * MS)
    );
    assert!(end.peer_answers, "another queue pair of host 2 answers");
    assert_eq!(end.peer_last_time, Some(Time(30_000 * MS)));
    assert_eq!(end.confidence, Confidence::High);
}

#[test]
fn a_refusal_ends_a_connection_unless_it_goes_on() {
    let nak = event(2, 5_000 * MS, EventKind::Nak, 150, 0x62, None);
    let row = requests(1, None, 4_999 * MS);
    let found = concluded(
        std::slice::from_ref(&nak),
        &[row.clone(), answers(2, 5_000 * MS)],
        0,
    );
    assert_eq!(
        (found[0].outcome, found[0].refusal),
        (EndKind::Refused, Some("remote access error"))
    );
    // Two flows sent this PSN: nobody knows which one was refused.
    let twin = FlowRow {
        flow_id: FlowId(3),
        ..row.clone()
    };
    let found = concluded(
        std::slice::from_ref(&nak),
        &[row.clone(), twin, answers(2, 5_000 * MS)],
        0,
    );
    assert!(found.iter().all(|end| end.outcome == EndKind::Closed));
    // Answers go on behind it.
    let found = concluded(&[nak], &[row.clone(), answers(2, 5_200 * MS)], 0);
    assert_eq!(found[0].outcome, EndKind::Closed);
    // A sequence NAK refuses nothing.
    let sequence = event(2, 5_000 * MS, EventKind::Nak, 150, 0x60, None);
    assert_eq!(
        concluded(&[sequence], &[row, answers(2, 5_000 * MS)], 0)[0].outcome,
        EndKind::Closed
    );
}

#[test]
fn a_receiver_without_buffers_until_the_requester_gave_up() {
    // Eight RNR NAKs with a timer of 0.64 ms.
    let naks: Vec<EventRow> = (0..8)
        .map(|at| event(2, (5_000 + at) * MS, EventKind::RnrNak, 199, 640_000, None))
        .collect();
    let row = requests(1, Some(2), 5_006 * MS);
    let found = concluded(&naks, &[row, answers(2, 5_007 * MS)], 0);
    assert_eq!((found[0].outcome, found[0].rnr_naks), (EndKind::RnrExhausted, 8));
    // It came again: it waits no longer for its timer.
    let row = requests(1, Some(2), 5_008 * MS);
    assert_eq!(
        concluded(&naks, &[row, answers(2, 5_007 * MS)], 0)[0].outcome,
        EndKind::Closed
    );
}

#[test]
fn a_request_that_waits_at_the_end_is_silent() {
    let mut row = requests(1, Some(2), 50_000 * MS);
    row.unanswered_time = Some(Time(49_999 * MS));
    let found = concluded(&[], &[row.clone(), answers(2, 49_000 * MS)], 0);
    assert_eq!(
        (found[0].outcome, found[0].silence_ns),
        (EndKind::Silent, 10_000 * MS)
    );
    // Within the time of a common timer, and where the capture may have lost the answer, nothing is said.
    row.last_request_time = Some(Time(END - 1_000 * MS));
    assert_eq!(
        concluded(&[], &[row.clone(), answers(2, END)], 0)[0].outcome,
        EndKind::Closed
    );
    row.last_request_time = Some(Time(50_000 * MS));
    assert_eq!(
        concluded(&[], &[row, answers(2, END)], 1)[0].outcome,
        EndKind::Closed
    );
}

#[test]
fn failed_connections_come_first_and_name_the_next_one() {
    let times: Vec<u64> = (1..=7).map(|at| (1_000 + at * 1_000) * MS).collect();
    let mut next = requests(3, None, 20_000 * MS);
    next.first_time = Time(10_000 * MS);
    let rows = [next, requests(1, None, 8_000 * MS), answers(9, END)];
    let found = concluded(&runs(1, 100, &times), &rows, 0);
    assert_eq!(found[0].flow_id, FlowId(1));
    assert_eq!(
        (found[0].followed_by, found[0].followed_after_ns),
        (Some(FlowId(3)), Some(2_000 * MS))
    );
    assert_eq!(found[1].outcome, EndKind::Closed);
}

#[test]
fn a_tap_that_stopped_shows_no_silence() {
    // Requests wait at 1.5 s, where the tap falls silent; at 12 s it shows other packets for 5 s.
    let mut row = requests(1, Some(2), 1_500 * MS);
    row.unanswered_time = Some(Time(1_499 * MS));
    let mut ends = Ends::default();
    ends.flow(&row);
    let stretch = |first, last| Period {
        first: Time(first),
        last: Time(last),
    };
    let tap = TapRow {
        tap: TapId(0),
        first_time: Some(Time(0)),
        last_time: Some(Time(17_000 * MS)),
        ..TapRow::default()
    };
    let mut run = RunSummary {
        taps: vec![tap],
        stretches: vec![vec![stretch(0, 1_500 * MS), stretch(12_000 * MS, 17_000 * MS)]],
        ..RunSummary::default()
    };
    assert_eq!(ends.clone().conclude(&run)[0].outcome, EndKind::Closed);
    // Others go on at once: this one alone is silent.
    run.stretches = vec![vec![stretch(0, 1_500 * MS), stretch(1_600 * MS, 17_000 * MS)]];
    assert_eq!(ends.conclude(&run)[0].outcome, EndKind::Silent);
}

#[test]
fn a_refusal_counts_whichever_tap_recorded_it() {
    // Tap 0 counts and stopped before; tap 1 has the NAK.
    let counted = requests(1, Some(2), 4_999 * MS);
    let other = FlowRow {
        tap: TapId(1),
        counted: false,
        ..counted.clone()
    };
    let carrier = FlowRow {
        tap: TapId(1),
        counted: false,
        ..answers(2, 5_000 * MS)
    };
    let nak = EventRow {
        tap: TapId(1),
        ..event(2, 5_000 * MS, EventKind::Nak, 150, 0x61, None)
    };
    let rows = [counted.clone(), answers(2, 4_000 * MS), other, carrier];
    let found = concluded(std::slice::from_ref(&nak), &rows, 0);
    assert_eq!((found.len(), found[0].outcome), (1, EndKind::Refused));
    // An answer behind it at the first tap: it went on.
    let mut rows = rows;
    rows[0].last_answer_time = Some(Time(5_100 * MS));
    assert_eq!(concluded(&[nak], &rows, 0)[0].outcome, EndKind::Closed);
}
