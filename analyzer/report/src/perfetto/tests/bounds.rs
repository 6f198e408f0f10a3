//! Runs without packets, names from strangers, more flows than tracks, and rows in unusual orders.

use super::*;
use roce_model::{Span, Time};

#[test]
fn perfetto_a_run_without_packets_is_a_trace() {
    let empty = Rows {
        run: nothing().run,
        ..Rows::default()
    };
    let trace = empty.trace();
    assert_eq!(trace.on("about this trace").len(), 1);
    Rows::default().trace();
    let one = key(1, 2, 3);
    let single = Rows {
        keys: vec![one],
        timeline: vec![row(one.id(), 0, 1)],
        flows: vec![closed(&one, None)],
        ..Rows::default()
    };
    let trace = single.trace();
    assert!((trace.integral(trace.counters("rate")[0]) - 8_000.0).abs() < 0.5);
}

#[test]
fn perfetto_hostile_names_do_not_steer_a_viewer() {
    let mut rows = Rows {
        run: trouble().run,
        ..Rows::default()
    };
    let evil = "\u{1b}]0;x\u{7}\"</script>\\\u{202e}";
    rows.run.key.host = evil.into();
    rows.run.taps = vec![TapRow {
        interface: Some(evil.into()),
        ..TapRow::default()
    }];
    rows.samples = vec![SampleRow {
        time: at(1),
        node: evil.into(),
        object: evil.repeat(1_000).into(),
        kind: "gauge",
        ..SampleRow::default()
    }];
    rows.events = vec![EventRow {
        time: at(1),
        kind: EventKind::Asynchronous,
        source: roce_model::EventSource::Ebpf,
        object: Some(evil.into()),
        detail: Some(evil.into()),
        ..EventRow::default()
    }];
    let trace = rows.trace();
    let names = trace.tracks.values().map(|track| &track.name);
    let events = trace.events.iter();
    let facts = events.flat_map(|event| event.facts.values().chain([&event.name]));
    let texts: Vec<&String> = names.chain(facts).collect();
    assert!(
        texts.iter().any(|text| text.contains("]0;x?\"</script>")),
        "the names are there"
    );
    for text in texts {
        assert!(!text.contains(roce_model::text::steers), "{text:?}");
        assert!(text.chars().count() <= 515 + 2 * 515, "{} characters", text.len());
    }
}

#[test]
fn perfetto_many_flows_are_summed_by_pair_of_hosts() {
    const FLOWS: u32 = 100_000;
    // Flow n sends n packets, to one of 4 receivers; 1,000 senders with 100 flows each, so that 1,000 pairs of hosts exchange data.
    let keys: Vec<FlowKey> = (0..FLOWS)
        .map(|flow| key(flow / 100 + 1, (flow / 100 % 4) as u8, flow))
        .collect();
    let mut sink = TraceReport::new(Vec::new(), TraceForm::Perfetto);
    sink.begin(Span(MILLISECOND)).unwrap();
    for (chunk, first) in keys.chunks(1_000).zip((0..).step_by(1_000)) {
        sink.flows_opened(chunk).unwrap();
        let mut rows = TimelineColumns::default();
        for (key, flow) in chunk.iter().zip(first..) {
            rows.push(&row(key.id(), u64::from(flow % 50), flow));
        }
        sink.timeline(&rows).unwrap();
        let closed: Vec<FlowRow> = chunk.iter().map(|key| closed(key, None)).collect();
        sink.flows_closed(&closed).unwrap();
    }
    sink.finish(&RunSummary::default()).unwrap();
    let bytes = sink.into_inner();
    assert!(bytes.len() < 5_000_000, "{} bytes", bytes.len());
    let trace = Trace::read(&bytes);
    trace.check();
    let named = |part: &str| {
        trace
            .tracks
            .values()
            .filter(|track| track.name.contains(part))
            .count()
    };
    assert_eq!(named(" QP 0x"), crate::series::MAX_CONNECTIONS);
    assert_eq!(named(": other flows"), crate::series::MAX_SUMS);
    assert_eq!(named("other flows ("), 1);
    assert!(
        named("10.1.134.159 > ") == 0 && named("QP 0x1869f") == 1,
        "the largest flow has a track"
    );
    let about = trace.on("about this trace")[0];
    assert_eq!(about.facts["connections"], "256");
    assert_eq!(
        about.facts["flows_summed"],
        (FLOWS as usize - crate::series::MAX_CONNECTIONS).to_string()
    );
    // 1,000 bytes in each of 0 + 1 + ... + 99,999 packets.
    let bits: f64 = trace
        .counters("rate")
        .into_iter()
        .map(|track| trace.integral(track))
        .sum();
    let expected = 8_000.0 * f64::from(FLOWS) * f64::from(FLOWS - 1) / 2.0;
    assert!((bits / expected - 1.0).abs() < 1e-9, "{bits} and {expected}");
}

#[test]
fn perfetto_traffic_at_two_taps_counts_once() {
    let one = key(1, 2, 3);
    let mut rows = Rows {
        keys: vec![one],
        ..Rows::default()
    };
    for (tap, packets) in [(0, 90), (1, 100)] {
        rows.timeline.push(TimelineRow {
            tap: TapId(tap),
            ..row(one.id(), 0, packets)
        });
        rows.flows.push(FlowRow {
            tap: TapId(tap),
            counted: tap == 1,
            ..closed(&one, None)
        });
    }
    let trace = rows.trace();
    let rates = trace.counters("rate");
    assert_eq!(rates.len(), 1);
    assert!((trace.integral(rates[0]) - 800_000.0).abs() < 0.5);
    assert_eq!(trace.on("about this trace")[0].facts["series_seen_again"], "1");
}

#[test]
fn perfetto_flows_can_close_before_their_rows_come() {
    let rows = incast();
    let mut sink = TraceReport::new(Vec::new(), TraceForm::Perfetto);
    sink.begin(Span(MILLISECOND)).unwrap();
    sink.flows_opened(&rows.keys).unwrap();
    sink.flows_closed(&rows.flows).unwrap();
    let (mut timeline, mut events) = (TimelineColumns::default(), EventColumns::default());
    timeline.extend(&rows.timeline);
    events.extend(&rows.events);
    sink.timeline(&timeline).unwrap();
    sink.events(&events).unwrap();
    sink.finish(&rows.run).unwrap();
    assert_eq!(sink.into_inner(), rows.written(TraceForm::Perfetto));
}

#[test]
fn perfetto_overlapping_steps_get_lanes() {
    let step = |step, start, end| StepRow {
        step,
        start_time: at(start),
        end_time: at(end),
        ..StepRow::default()
    };
    let mut rows = Rows::default();
    rows.run.steps = vec![step(1, 0, 10), step(2, 5, 15), step(3, 10, 20), step(4, 12, 13)];
    let trace = rows.trace();
    let lanes = trace
        .tracks
        .values()
        .filter(|track| track.name.starts_with("steps "));
    // Steps 1 and 3 share a lane; 2 overlaps both, and 4 overlaps 2 and 3.
    assert_eq!(lanes.count(), 3);
}

#[test]
fn perfetto_long_runs_have_wider_slots_and_whole_sums() {
    // 600,000 bins are more than 2^19, of which half stay when slots are made wider: 2^18, and 600,000 / 4 are 150,000.
    const BINS: u64 = 600_000;
    let one = key(1, 2, 3);
    let mut sink = TraceReport::new(Vec::new(), TraceForm::Perfetto);
    sink.begin(Span(MILLISECOND)).unwrap();
    sink.flows_opened(&[one]).unwrap();
    for first in (0..BINS).step_by(1_000) {
        let mut rows = TimelineColumns::default();
        for bin in first..first + 1_000 {
            // One packet and two by turns: slots of two bins and more are equal, so that the counter does not change.
            rows.push(&row(one.id(), bin, 1 + u32::from(bin % 2 == 0)));
        }
        sink.timeline(&rows).unwrap();
    }
    sink.flows_closed(&[closed(&one, None)]).unwrap();
    sink.finish(&RunSummary::default()).unwrap();
    let bytes = sink.into_inner();
    assert!(bytes.len() < 10_000, "{} bytes", bytes.len());
    let trace = Trace::read(&bytes);
    trace.check();
    let slot: u64 = trace.on("about this trace")[0].facts["slot_ns"].parse().unwrap();
    assert_eq!(slot, 4 * MILLISECOND);
    // 1.5 packets of 1,000 bytes in each bin.
    let bits = trace.integral(trace.counters("rate")[0]);
    assert!((bits / 7_200_000_000.0 - 1.0).abs() < 1e-9, "{bits}");
}

/// Numbers that look random: a linear congruential generator (Knuth, MMIX).
struct Numbers(u64);

impl Numbers {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn perfetto_traces_of_any_rows_are_well_formed() {
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let keys: Vec<FlowKey> = (0..=numbers.below(8))
            .map(|flow| {
                key(
                    1 + u32::from(flow % 2 == 0),
                    9,
                    0x11 + u32::try_from(flow).unwrap(),
                )
            })
            .collect();
        let mut rows = Rows {
            keys: keys.clone(),
            ..Rows::default()
        };
        let flow = |numbers: &mut Numbers| {
            // Some rows are of flows that nobody opened.
            let place = usize::try_from(numbers.below(9)).unwrap();
            keys.get(place).map_or(FlowId(77), FlowKey::id)
        };
        for _ in 0..numbers.below(60) {
            let packets = u32::try_from(numbers.below(4)).unwrap();
            rows.timeline.push(TimelineRow {
                ce: packets / 2,
                retransmitted_packets: packets / 3,
                tap: TapId(u32::from(numbers.below(5) == 0)),
                ack_rtt_max_ns: (packets > 1).then(|| numbers.below(100)),
                ..row(flow(&mut numbers), numbers.below(20), packets)
            });
            let kind = numbers.below(EventKind::ALL.len() as u64);
            rows.events.push(EventRow {
                time: Time(START + numbers.below(20 * MILLISECOND)),
                kind: EventKind::ALL[usize::try_from(kind).unwrap()],
                flow_id: (numbers.below(4) > 0).then(|| flow(&mut numbers)),
                psn: Some(u32::try_from(numbers.below(10)).unwrap()),
                value: (numbers.below(2) > 0).then(|| numbers.below(3 * MILLISECOND)),
                detail: Some(["nak", "rnr", "timeout"][usize::try_from(numbers.below(3)).unwrap()].into()),
                ..EventRow::default()
            });
        }
        for episode in 0..u32::try_from(numbers.below(30)).unwrap() {
            let start = numbers.below(20);
            rows.run.episodes.push(EpisodeRow {
                episode,
                start_time: at(start),
                end_time: at(start + numbers.below(4)),
                flow_ids: format!("{} {} zz", flow(&mut numbers), flow(&mut numbers)).into(),
                ..EpisodeRow::default()
            });
            rows.run.steps.push(StepRow {
                step: episode,
                start_time: at(numbers.below(20)),
                end_time: at(numbers.below(20)),
                outlier: true,
                episode: Some(u32::try_from(numbers.below(40)).unwrap()),
                ..StepRow::default()
            });
        }
        rows.events.sort_by_key(|event| event.time);
        rows.trace();
    }
}
