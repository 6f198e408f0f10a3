//! Ends from rows and events, one story each; expected values are the numbers of the story.

use roce_model::{
    Address, Columns as _, EndKind, EndRow, EventColumns, EventKind, EventRow, FlowKey, FlowRow, JobError,
    Period, Qpn, RunSummary, Service, Sink as _, Span, Time, Vantage,
};

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn host(number: u8) -> Address {
    Address::v4([10, 0, 0, number])
}

fn key(from: u8, to: u8, qpn: u32) -> FlowKey {
    FlowKey {
        source: host(from),
        destination: host(to),
        destination_qpn: Qpn::new(qpn),
        source_qpn: Qpn::default(),
        vlan: None,
        vni: None,
        service: Service::Rc,
    }
}

fn row(key: &FlowKey, peer: Option<&FlowKey>, last: u64, packets: u64) -> FlowRow {
    FlowRow {
        flow_id: key.id(),
        source: key.source,
        destination: key.destination,
        destination_qpn: key.destination_qpn.value(),
        service: "RC",
        peer_flow_id: peer.map(FlowKey::id),
        last_time: Time(last),
        packets,
        counted: true,
        vantage: Some(Vantage::Sender),
        ..FlowRow::default()
    }
}

fn event(key: &FlowKey, time: u64, kind: EventKind, value: u64, detail: &'static str) -> EventRow {
    EventRow {
        time: Time(time),
        kind,
        flow_id: Some(key.id()),
        value: Some(value),
        detail: Some(detail.into()),
        ..EventRow::default()
    }
}

fn error(number: u32, queue_pair: Option<u32>) -> JobError {
    JobError {
        status: "IBV_WC".to_owned(),
        number: Some(number),
        meaning: "something",
        local: Some(host(1)),
        remote: Some(host(2)),
        queue_pair,
        ..JobError::default()
    }
}

fn ends_of(error: JobError, keys: &[FlowKey], events: &[EventRow], rows: &[FlowRow], end: u64) -> Ends {
    ends_with(error, keys, events, rows, end, &[])
}

/// Ends of the connections of an error, with rows that say how connections ended.
fn ends_with(
    error: JobError,
    keys: &[FlowKey],
    events: &[EventRow],
    rows: &[FlowRow],
    end: u64,
    outcomes: &[EndRow],
) -> Ends {
    let mut ends = Ends::new([error]);
    ends.flows_opened(keys).unwrap();
    let mut columns = EventColumns::default();
    columns.extend(events);
    ends.events(&columns).unwrap();
    ends.flows_closed(rows).unwrap();
    let run = RunSummary {
        span: Some(Period {
            first: Time(0),
            last: Time(end),
        }),
        ends: outcomes.into(),
        ..RunSummary::default()
    };
    ends.finish(&run).unwrap();
    ends
}

/// A peer that falls silent: seven retransmissions, 1.1 s apart, and the peer's other queue pair goes on.
fn silent_peer(queue_pair: Option<u32>) -> Ends {
    let (sent, answers, other) = (key(1, 2, 0x12), key(2, 1, 0x11), key(2, 1, 0x99));
    let runs: Vec<EventRow> = (1..=7)
        .map(|run| {
            event(
                &sent,
                SECOND + run * 1_100 * MS,
                EventKind::RetransmissionRun,
                1,
                "timeout",
            )
        })
        .collect();
    let rows = [
        row(&sent, Some(&answers), SECOND + 7_700 * MS, 1_000),
        row(&answers, Some(&sent), SECOND, 500),
        row(&other, None, 9 * SECOND, 10),
    ];
    let unanswered = EndRow {
        flow_id: sent.id(),
        outcome: EndKind::RetriesUnanswered,
        ..EndRow::default()
    };
    ends_with(
        error(12, queue_pair),
        &[sent, answers, other],
        &runs,
        &rows,
        20 * SECOND,
        &[unanswered],
    )
}

#[test]
fn a_silent_peer() {
    let ends = silent_peer(Some(0x11));
    let found = &ends.explained()[0];
    assert_eq!((found.by, found.ends.len(), found.others), (By::QueuePair, 1, 0));
    let end = &found.ends[0];
    assert_eq!(
        (end.name.as_str(), end.queue_pair),
        ("10.0.0.1 > 10.0.0.2 QP 0x12", Some(0x11))
    );
    assert_eq!((end.retries.runs, end.retries.by_timeout), (7, 7));
    assert_eq!(end.retries.interval, Some(Span(1_100 * MS)));
    // 4.096 us x 2^18 is 1.074 s, x 2^17 0.537 s, x 2^16 0.268 s: four times that is 1.074 s, less than 1.1 s.
    assert_eq!(end.retries.timeouts, Some((17, 18)));
    assert_eq!(end.unanswered(), Some(Span(7_700 * MS)));
    assert_eq!(end.silence(), Some(Span(20 * SECOND - 8_700 * MS)));
    assert_eq!(end.peer_elsewhere, Some(Time(9 * SECOND)));
    let text = ends.text();
    for part in [
        "7 without an answer, 7 of them by timeout",
        "they left the sender",
        "its address sent on other queue pairs until +9.00 s",
        "the peer's address still sent on other queue pairs",
        "setting of 17 to 18",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn without_a_queue_pair_the_end_decides() {
    let ends = silent_peer(None);
    let found = &ends.explained()[0];
    assert_eq!(found.by, By::Addresses);
    // The other connection is one direction only, and does not end so.
    assert_eq!(found.ends[0].name, "10.0.0.1 > 10.0.0.2 QP 0x12");
    assert_eq!(found.ends.iter().map(|end| end.fit).collect::<Vec<_>>(), [2, 0]);
    assert!(ends.text().contains("the line has no queue pair"));
}

#[test]
fn a_peer_that_answered_shows_no_silence() {
    let (sent, answers) = (key(1, 2, 0x12), key(2, 1, 0x11));
    let rows = [
        row(&sent, Some(&answers), SECOND, 100),
        row(&answers, Some(&sent), SECOND + 20_000, 50),
    ];
    let ends = ends_of(
        error(12, Some(0x11)),
        &[sent, answers],
        &[],
        &rows,
        SECOND + 30_000,
    );
    let text = ends.text();
    assert!(
        text.contains("the end that the line reports is not in it"),
        "{text}"
    );
    assert!(text.contains("what followed was not captured"), "{text}");
    assert!(!text.contains("retransmitted"), "{text}");
    assert_eq!(ends.explained()[0].ends[0].fit, 1);
}

#[test]
fn refusals_have_their_own_words() {
    let (sent, answers) = (key(1, 2, 0x12), key(2, 1, 0x11));
    let rows = |naks: u64, rnr_naks: u64| {
        let mut rows = [
            row(&sent, Some(&answers), SECOND, 100),
            row(&answers, Some(&sent), SECOND + 20_000, 50),
        ];
        (rows[1].naks, rows[1].rnr_naks) = (naks, rnr_naks);
        rows
    };
    let nak = event(&answers, SECOND + 20_000, EventKind::Nak, 0x62, "");
    let ends = ends_of(
        error(10, Some(0x11)),
        &[sent, answers],
        &[nak],
        &rows(1, 0),
        2 * SECOND,
    );
    assert!(
        ends.text()
            .contains("the peer refused a request: remote access error"),
        "{}",
        ends.text()
    );
    let rnr = event(&answers, SECOND + 20_000, EventKind::RnrNak, 640_000, "");
    let ends = ends_of(
        error(13, Some(0x11)),
        &[sent, answers],
        &[rnr],
        &rows(0, 8),
        2 * SECOND,
    );
    let text = ends.text();
    assert!(
        text.contains("refused 8 times because it had no receive buffer") && text.contains("wait 640 us"),
        "{text}"
    );
    // The status is another one than the packets show.
    let ends = ends_of(
        error(10, Some(0x11)),
        &[sent, answers],
        &[],
        &rows(0, 0),
        2 * SECOND,
    );
    assert!(ends.text().contains("no NAK with an error passed the tap"));
    assert_eq!(
        ends.document()["errors"][0]["connections"][0]["last_nak_ns"],
        serde_json::Value::Null
    );
}

#[test]
fn one_direction_says_nothing_about_answers() {
    let sent = key(1, 2, 0x12);
    let ends = ends_of(
        error(12, None),
        &[sent],
        &[],
        &[row(&sent, None, SECOND, 100)],
        9 * SECOND,
    );
    let text = ends.text();
    assert!(text.contains("nothing can be said about answers"), "{text}");
    assert!(text.contains("capture both ends"), "{text}");
    // A capture of other hosts.
    let other = key(7, 8, 0x12);
    let ends = ends_of(
        error(12, None),
        &[other],
        &[],
        &[row(&other, None, SECOND, 100)],
        9 * SECOND,
    );
    assert!(
        ends.text()
            .contains("the capture has none between 10.0.0.1 and 10.0.0.2"),
        "{}",
        ends.text()
    );
}

#[test]
fn flows_beyond_the_bound_are_counted() {
    let mut ends = Ends::new([error(12, None)]);
    let keys: Vec<FlowKey> = (0..20_000).map(|qpn| key(1, 2, qpn)).collect();
    ends.flows_opened(&keys).unwrap();
    ends.finish(&RunSummary::default()).unwrap();
    assert!(
        ends.text().contains("3,616 flows"),
        "20,000 less 16,384: {}",
        ends.text()
    );
}
