//! Tests of gathering series for the page.

use roce_model::TimelineRow;

use super::*;

fn row(bin: u64, flow: u64, bytes: u64) -> TimelineRow {
    TimelineRow {
        time: Time(bin * 1_000),
        flow_id: FlowId(flow),
        packets: 1,
        wire_bytes: bytes,
        senders_to_destination: 1,
        ..TimelineRow::default()
    }
}

fn gather(rows: impl IntoIterator<Item = TimelineRow>) -> GatheredSeries {
    let mut gathered = GatheredSeries::new(Span(1_000));
    let mut columns = TimelineColumns::default();
    for row in rows {
        columns.push(&row);
        if columns.len() == 8_192 {
            gathered.timeline(&columns);
            columns.clear();
        }
    }
    gathered.timeline(&columns);
    gathered
}

fn wire_bytes(series: &Series) -> u64 {
    let mut metrics = series.metrics(0);
    let of = metric("wire_bytes").unwrap();
    let (_, slots) = metrics.find(|(metric, _)| *metric == of).unwrap();
    slots.iter().map(|(_, value)| value).sum()
}

#[test]
fn a_long_run_has_few_slots_and_the_same_sums() {
    // 100,000 bins: 16,384 slots hold them 8 by 8.
    let mut gathered = gather((0..100_000).map(|bin| row(bin, bin % 2, 3)));
    assert_eq!(gathered.axis.width(), Span(8_000));
    assert_eq!(gathered.axis.slots(), 12_500);
    assert_eq!(wire_bytes(&gathered.taps().next().unwrap().1), 300_000);
    let kept = gathered.kept(&HashSet::new());
    let sums: Vec<u64> = kept.iter().map(|kept| wire_bytes(kept.series)).collect();
    assert_eq!(sums, [150_000, 150_000]);
    assert!(kept.iter().all(|kept| !kept.partial));
}

#[test]
fn what_finds_no_room_stays_in_the_sum_of_its_tap() {
    // Twice as many flows as have room, the later ones larger; each has a byte more than the one before.
    let flows = u64::try_from(MAX_FLOWS).unwrap() * 2;
    let mut gathered = gather((0..flows).map(|flow| row(0, flow, flow + 1)));
    assert!(gathered.flows.len() <= MAX_FLOWS);
    // 1 + 2 + ... + n.
    let tap = gathered.taps().next().unwrap().1;
    assert_eq!(wire_bytes(&tap), flows * (flows + 1) / 2);
    let named = HashSet::from([FlowId(flows - 1_500)]);
    let kept = gathered.kept(&named);
    assert_eq!(kept.len(), PAGE_SERIES);
    assert_eq!(kept[0].flow, FlowId(flows - 1));
    // The 64 largest, then the one that was named.
    assert_eq!(kept[64].flow, FlowId(flows - 1_500));
    assert_eq!(kept[65].flow, FlowId(flows - 65));
}

#[test]
fn a_flow_that_is_left_out_comes_back_when_it_is_large_or_in_trouble() {
    // As many flows as fill the room in the end, each with a byte more than the one before; then the smallest one sends.
    let flows = 20_000;
    let rows = (0..100).flat_map(|bin| (0..flows).map(move |flow| row(bin, flow, flow + 1)));
    let marked = TimelineRow {
        ce: 1,
        ..row(101, 2, 3)
    };
    let rest = [row(100, 1, 1), row(100, 0, 1 << 40), row(101, 0, 5), marked];
    let gathered = gather(rows.chain(rest));
    let of = |flow: u64| &gathered.flows[gathered.places[&(FlowId(flow), TapId(0))]];
    assert!(gathered.flow_room.bytes <= MAX_BYTES);
    assert!(of(1).is_left_out && of(1).series.size() == 0);
    assert_eq!(of(1).wire_bytes, 2 * 100 + 1);
    assert!(!of(0).is_left_out && of(0).partial);
    assert_eq!(wire_bytes(&of(0).series), (1 << 40) + 5);
    // In trouble once.
    assert!(!of(2).is_left_out && of(2).partial);
    assert_eq!(wire_bytes(&of(2).series), 3);
    assert!(!of(flows - 1).is_left_out && !of(flows - 1).partial);
    assert_eq!(wire_bytes(&of(flows - 1).series), flows * 100);
}

#[test]
fn a_flow_that_is_left_out_comes_back_when_there_is_room() {
    let mut gathered = gather([row(0, 0, 1), row(0, 1, 5)]);
    gathered.flows[0].leave_out();
    gathered.large = u64::MAX;
    // All of the room for rows that become one when they are merged: a row takes at least a byte.
    let mut columns = TimelineColumns::default();
    (0..8_192).for_each(|_| columns.push(&row(MIN_SLOTS, 1, 5)));
    for _ in 0..MAX_BYTES.div_ceil(8_192) {
        gathered.timeline(&columns);
        if !gathered.flows[0].is_left_out {
            break;
        }
    }
    assert!(gathered.flow_room.bytes < MAX_BYTES / 2);
    assert_eq!(gathered.axis.shift(), 0);
    assert!(!gathered.flows[0].is_left_out && gathered.flows[0].partial);
}

#[test]
fn rows_in_no_order_take_no_more_room_than_in_order() {
    // 2 M rows of two flows over 4,096 bins, each 1,201 bins after the one before: 20 bytes a row are more than all of the room.
    let rows = (0..2_000_000_u64).map(|place| TimelineRow {
        payload_bytes: 1 << 42,
        retransmitted_bytes: 1 << 42,
        ..row(place * 1_201 % 4_096, place % 2, 3)
    });
    let gathered = gather(rows);
    assert_eq!(wire_bytes(&gathered.taps().next().unwrap().1), 6_000_000);
    let flows = gathered.flows.iter().map(|flow| wire_bytes(&flow.series));
    assert_eq!(flows.sum::<u64>(), 6_000_000);
    assert!(gathered.flow_room.bytes <= MAX_BYTES + 8_192 * 16);
    assert!(gathered.tap_room.bytes <= MAX_TAP_BYTES + 8_192 * 16);
    assert!(gathered.destination_room.bytes <= MAX_BYTES + 8_192 * 16);
}

#[test]
fn a_flow_that_lost_its_series_says_so() {
    let flows = u64::try_from(MAX_FLOWS).unwrap() * 2;
    let all = (0..flows).map(|flow| row(0, flow, flow + 1));
    let mut gathered = gather(all.chain([row(1, 0, 1 << 40)]));
    let kept = gathered.kept(&HashSet::new());
    assert_eq!((kept[0].flow, kept[0].partial), (FlowId(0), true));
    assert!(!kept[1].partial);
}
