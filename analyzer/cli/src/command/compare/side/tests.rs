//! Rows by hand, small enough to know every sum.

use super::*;
use roce_model::{EventKind, EventRow, Qpn, Span, Time, TimelineRow};
use roce_wire::Service;

const MS: u64 = 1_000_000;

fn key(from: u8, to: u8) -> FlowKey {
    FlowKey {
        source: Address::v4([10, 0, 0, from]),
        destination: Address::v4([10, 0, 0, to]),
        destination_qpn: Qpn::new(1),
        source_qpn: Qpn::new(0),
        vlan: None,
        vni: None,
        service: Service::Rc,
    }
}

fn pair(from: u8, to: u8) -> Pair {
    (key(from, to).source, key(from, to).destination)
}

/// 1,000 bytes and a data packet of a flow in a bin, at a tap.
fn row(flow: &FlowKey, bin: u64, tap: u32) -> TimelineRow {
    TimelineRow {
        time: Time(1_000 * MS + bin * MS),
        flow_id: flow.id(),
        tap: TapId(tap),
        payload_bytes: 1_000,
        data_packets: 1,
        ..TimelineRow::default()
    }
}

fn collected(flows: &[FlowKey], rows: &[TimelineRow]) -> CollectedRun {
    let mut side = CollectedRun::default();
    side.begin(Span(MS)).unwrap();
    side.flows_opened(flows).unwrap();
    let mut columns = TimelineColumns::default();
    for row in rows {
        columns.push(row);
    }
    side.timeline(&columns).unwrap();
    side
}

fn payload(slices: &Slices) -> f64 {
    slices.sums.iter().map(|sums| sums.payload).sum()
}

fn seconds(slices: &Slices) -> f64 {
    slices.sums.iter().map(|sums| sums.seconds).sum()
}

#[test]
fn slices_grow_with_the_run_and_lose_nothing() {
    let flow = key(1, 2);
    // A bin of every third, 3,001 bins in all; the last one is alone in its slice but for the bins without data.
    let rows: Vec<TimelineRow> = (0..=1_000).map(|bin| row(&flow, 3 * bin, 0)).collect();
    let side = collected(&[flow], &rows);
    let whole = side.whole();
    // 3,001 bins in slices of 16: 188.
    assert_eq!(side.widths(), (Span(MS), Span(16 * MS)));
    assert_eq!(whole.sums.len(), 188);
    assert!((payload(&whole) - 1_001_000.0).abs() < 1e-6);
    assert!((seconds(&whole) - 3.001).abs() < 1e-9, "{}", seconds(&whole));
}

#[test]
fn a_pair_is_looked_at_while_it_sends() {
    let (one, other) = (key(1, 2), key(3, 2));
    let mut rows: Vec<TimelineRow> = (0..100).map(|bin| row(&one, bin, 0)).collect();
    rows.extend((40..60).map(|bin| row(&other, bin, 0)));
    let side = collected(&[one, other], &rows);
    assert_eq!(side.pairs().len(), 2);
    let slices = side.pair(pair(3, 2)).unwrap();
    assert_eq!((slices.sums.len(), payload(&slices)), (20, 20_000.0));
    assert!((seconds(&slices) - 0.02).abs() < 1e-12);
    assert!(side.pair(pair(2, 1)).is_none());
    assert!((payload(&side.whole()) - 120_000.0).abs() < 1e-6);
}

#[test]
fn what_two_taps_saw_counts_once() {
    let (both, one) = (key(1, 2), key(3, 2));
    let rows: Vec<TimelineRow> = (0..20)
        .flat_map(|bin| {
            [
                row(&both, bin, 0),
                row(&both, bin, 1),
                row(&one, bin, 0),
                row(&one, bin, 1),
            ]
        })
        .collect();
    let mut side = collected(&[both, one], &rows);
    let closed = |flow: &FlowKey, tap: u32, counted: bool| FlowRow {
        flow_id: flow.id(),
        source: flow.source,
        destination: flow.destination,
        tap: TapId(tap),
        counted,
        packets: 20,
        payload_bytes: 20_000,
        ..FlowRow::default()
    };
    // The first pair's packets at tap 1 are those of tap 0; the second one's are others, such as of another link.
    side.flows_closed(&[
        closed(&both, 0, true),
        closed(&both, 1, false),
        closed(&one, 0, true),
        closed(&one, 1, true),
    ])
    .unwrap();
    assert!((payload(&side.pair(pair(1, 2)).unwrap()) - 20_000.0).abs() < 1e-6);
    assert!((payload(&side.pair(pair(3, 2)).unwrap()) - 40_000.0).abs() < 1e-6);
    assert!((payload(&side.whole()) - 60_000.0).abs() < 1e-6);
    assert_eq!((side.counted_flows, side.payload_bytes), (3, 60_000));
}

#[test]
fn losses_go_to_their_class_and_pauses_to_the_run() {
    let flow = key(1, 2);
    let rows: Vec<TimelineRow> = (0..20)
        .map(|bin| TimelineRow {
            lost_downstream: (bin == 3).then_some(2),
            ack_rtt_p50_ns: (bin < 2).then_some(1_000),
            ack_rtt_max_ns: (bin < 2).then_some(3_000 + 1_000 * bin),
            cnp: (bin < 10).then_some(1),
            ..row(&flow, bin, 0)
        })
        .collect();
    let mut side = collected(&[flow], &rows);
    let event = |kind, detail: &'static str, value: u64| EventRow {
        time: Time(1_005 * MS),
        kind,
        flow_id: (kind != EventKind::Pause && kind != EventKind::PauseInterval).then(|| flow.id()),
        value: Some(value),
        detail: Some(detail.into()),
        ..EventRow::default()
    };
    let mut columns = EventColumns::default();
    for event in [
        event(EventKind::Hole, "network_lost", 3),
        event(EventKind::ResponseHole, "network_lost", 4),
        event(EventKind::LostAgain, "", 2),
        event(EventKind::Hole, "capture_lost", 5),
        event(EventKind::Hole, "reordered", 6),
        event(EventKind::Hole, "ambiguous", 7),
        event(EventKind::Hole, "unresolved", 8),
        event(EventKind::Nak, "", 96),
        event(EventKind::Pause, "", 65_535),
        event(EventKind::PauseInterval, "", 2 * MS),
    ] {
        columns.push(&event);
    }
    side.events(&columns).unwrap();
    let whole = side.whole();
    let sum = |of: fn(&Sums) -> f64| whole.sums.iter().map(of).sum::<f64>();
    assert_eq!(
        (sum(|sums| sums.not_captured), sum(|sums| sums.reordered)),
        (5.0, 6.0)
    );
    assert_eq!(
        (sum(|sums| sums.unclear), sum(|sums| sums.pause_frames)),
        (15.0, 1.0)
    );
    assert!((sum(|sums| sums.paused) - 0.002).abs() < 1e-12);
    assert_eq!(
        (sum(|sums| sums.ack_rows), sum(|sums| sums.ack_median)),
        (2.0, 2_000.0)
    );
    assert_eq!(
        (sum(|sums| sums.lost), sum(|sums| sums.ack_longest)),
        (11.0, 7_000.0)
    );
    assert_eq!(
        (sum(|sums| sums.cnp), sum(|sums| sums.payload_with_cnp)),
        (10.0, 10_000.0)
    );
    let alone = side.pair(pair(1, 2)).unwrap();
    assert!(alone.sums.iter().all(|sums| sums.pause_frames <= 0.0));
}
