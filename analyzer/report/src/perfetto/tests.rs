//! Traces of runs made by hand, read back: the protobuf form by a decoder of its own, the JSON form by `serde_json`.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{
    Address, EpisodeKind, EpisodeRow, EventKind, EventRow, FindingRow, FlowKey, FlowRow, Qpn, SampleRow,
    Service, Span, StepRow, TapId, TapRow, Time, TimelineRow,
};
use serde_json::Value;

use super::*;
use crate::fixture::{START, nothing, training, trouble};
use decoder::{BEGIN, INSTANT, Trace};

mod bounds;

#[path = "../../../../tests/command/perfetto/decoder.rs"]
mod decoder;

const MILLISECOND: u64 = 1_000_000;

/// The flow of a sender to a receiver.
fn key(source: u32, destination: u8, qpn: u32) -> FlowKey {
    let [_, high, middle, low] = source.to_be_bytes();
    FlowKey {
        source: Address::v4([10, high, middle, low]),
        destination: Address::v4([11, 0, 0, destination]),
        destination_qpn: Qpn::new(qpn),
        source_qpn: Qpn::new(0),
        vlan: None,
        vni: None,
        service: Service::Rc,
    }
}

fn closed(key: &FlowKey, peer: Option<FlowId>) -> FlowRow {
    FlowRow {
        flow_id: key.id(),
        source: key.source,
        destination: key.destination,
        destination_qpn: key.destination_qpn.value(),
        service: "RC",
        peer_flow_id: peer,
        counted: true,
        ..FlowRow::default()
    }
}

fn at(milliseconds: u64) -> Time {
    Time(START + milliseconds * MILLISECOND)
}

/// The data of a flow in one bin of 1 ms.
fn row(flow: FlowId, bin: u64, packets: u32) -> TimelineRow {
    TimelineRow {
        time: at(bin),
        flow_id: flow,
        packets,
        data_packets: packets,
        payload_bytes: u64::from(packets) * 1_000,
        ..TimelineRow::default()
    }
}

/// Rows that a sink is given.
#[derive(Default)]
struct Rows {
    keys: Vec<FlowKey>,
    timeline: Vec<TimelineRow>,
    events: Vec<EventRow>,
    samples: Vec<SampleRow>,
    flows: Vec<FlowRow>,
    run: RunSummary,
}

impl Rows {
    fn written(&self, form: TraceForm) -> Vec<u8> {
        let mut sink = TraceReport::new(Vec::new(), form);
        sink.begin(Span(MILLISECOND)).unwrap();
        sink.flows_opened(&self.keys).unwrap();
        let (mut timeline, mut events) = (TimelineColumns::default(), EventColumns::default());
        timeline.extend(&self.timeline);
        events.extend(&self.events);
        let mut samples = SampleColumns::default();
        samples.extend(&self.samples);
        sink.timeline(&timeline).unwrap();
        sink.events(&events).unwrap();
        sink.samples(&samples).unwrap();
        sink.flows_closed(&self.flows).unwrap();
        sink.finish(&self.run).unwrap();
        sink.into_inner()
    }

    /// The trace, after what holds of each was checked, in both forms.
    fn trace(&self) -> Trace {
        let trace = Trace::read(&self.written(TraceForm::Perfetto));
        trace.check();
        same_as_json(&trace, &json(&self.written(TraceForm::Chrome)));
        trace
    }
}

/// The events of the JSON form, each with the keys that the Trace Event Format wants of its phase.
fn json(bytes: &[u8]) -> Vec<Value> {
    let events: Vec<Value> = serde_json::from_slice(bytes).unwrap();
    for event in &events {
        let has = |keys: &[&str]| keys.iter().all(|key| !event[key].is_null());
        assert!(has(&["name", "ph", "pid"]), "{event}");
        let wanted: &[&str] = match event["ph"].as_str().unwrap() {
            "M" => &["args"],
            "X" => &["ts", "dur", "tid", "cat", "args"],
            "i" => &["ts", "s", "tid", "cat", "args"],
            "C" => &["ts", "args"],
            "s" => &["ts", "id", "tid", "cat"],
            "f" => &["ts", "id", "tid", "cat", "bp"],
            other => panic!("phase {other}"),
        };
        assert!(has(wanted), "{event}");
    }
    events
}

/// Compares the numbers of things in the two forms.
fn same_as_json(trace: &Trace, events: &[Value]) {
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    let kind = |kind: u64| trace.events.iter().filter(|event| event.kind == kind).count();
    let arrows = |of: fn(&decoder::Event) -> &Vec<u64>| {
        trace.events.iter().map(|event| of(event).len()).sum::<usize>()
    };
    // Instants at which an arrow begins or ends are short slices in the JSON form.
    assert_eq!(of("X") + of("i"), kind(BEGIN) + kind(INSTANT));
    assert_eq!(of("C"), kind(decoder::COUNTER));
    assert_eq!(of("s"), arrows(|event| &event.out));
    assert_eq!(of("f"), arrows(|event| &event.into));
}

/// Two senders into one receiver. The first is marked, and retransmits after a NAK; the second stalls. An episode slows the first.
fn incast() -> Rows {
    let (first, second) = (key(1, 9, 0x11), key(2, 9, 0x12));
    let back = FlowKey {
        source: first.destination,
        destination: first.source,
        destination_qpn: Qpn::new(0x21),
        ..first
    };
    let mut rows = Rows {
        keys: vec![first, second, back],
        flows: vec![
            closed(&first, Some(back.id())),
            closed(&second, None),
            closed(&back, Some(first.id())),
        ],
        ..Rows::default()
    };
    // 5 + 5 bins of 100 packets with a gap of two bins between; bins 3 and 4 are marked and retransmit.
    for bin in [0, 1, 2, 3, 4, 7, 8, 9, 10, 11] {
        let is_marked = bin == 3 || bin == 4;
        rows.timeline.push(TimelineRow {
            ce: if is_marked { 25 } else { 0 },
            cnp: Some(u32::from(is_marked)),
            retransmitted_packets: if is_marked { 4 } else { 0 },
            inflight_bytes_max: Some(64_000),
            ack_rtt_max_ns: Some(7_000 + bin),
            ..row(first.id(), bin, 100)
        });
    }
    rows.timeline.push(row(second.id(), 1, 7));
    // The other direction has responses alone.
    rows.timeline.push(row(back.id(), 3, 0));
    let event = |kind, flow: &FlowKey, time, psn, value, detail: Option<&'static str>| EventRow {
        time: Time(time),
        kind,
        flow_id: Some(flow.id()),
        psn: Some(psn),
        value: Some(value),
        detail: detail.map(Into::into),
        ..EventRow::default()
    };
    rows.events = vec![
        event(EventKind::Nak, &back, START + 3_100_000, 40, 0x60, None),
        event(
            EventKind::RetransmissionRun,
            &first,
            START + 3_200_000,
            40,
            8,
            Some("nak"),
        ),
        event(EventKind::Cnp, &first, START + 3_300_000, 0, 1, None),
        event(
            EventKind::Stall,
            &second,
            START + 2_000_000,
            90,
            5_000_000,
            Some("between messages"),
        ),
    ];
    rows.run = RunSummary {
        span: Some(Period {
            first: at(0),
            last: at(12),
        }),
        bin: Span(MILLISECOND),
        episodes: vec![EpisodeRow {
            episode: 3,
            kind: EpisodeKind::Incast,
            start_time: at(3),
            end_time: at(5),
            destination: Some(first.destination),
            flow_ids: first.id().to_string().into(),
            senders_max: 2,
            ..EpisodeRow::default()
        }],
        findings: vec![
            FindingRow {
                id: "incast",
                summary: "2 senders at once".into(),
                first_time: Some(at(3)),
                ..FindingRow::default()
            },
            FindingRow {
                id: "capture.quality",
                summary: "about all of it".into(),
                ..FindingRow::default()
            },
        ],
        ..RunSummary::default()
    };
    rows
}

#[test]
fn perfetto_connections_have_their_counters_below_their_host() {
    let trace = incast().trace();
    let only = |name: &str| {
        let mut found = trace.tracks.iter().filter(|(_, track)| track.name == name);
        let one = found
            .next()
            .unwrap_or_else(|| panic!("{name} among {:?}", trace.tracks));
        assert!(found.next().is_none(), "{name} is there once");
        one
    };
    let (host, described) = only("10.0.0.1");
    assert!(described.pid.is_some());
    let (flow, described) = only("10.0.0.1 > 11.0.0.9 QP 0x11");
    assert_eq!(described.parent, Some(*host));
    let below = trace.tracks.values().filter(|track| track.parent == Some(*flow));
    let below: BTreeMap<&str, Option<&str>> = below
        .map(|track| (track.name.as_str(), track.unit.as_deref()))
        .collect();
    let expected = [
        ("rate", Some("bit/s")),
        ("CE share", Some("ratio")),
        ("CNPs", Some("packets in each bin")),
        ("in flight, most", Some("bytes")),
        ("RTT, longest", Some("ns")),
        ("retransmission runs", None),
        ("slowed by episodes", None),
    ];
    assert_eq!(below, BTreeMap::from(expected));
    // 10 bins of 100 packets of 1,000 bytes, and 7 packets: bits over time.
    let mut bits: Vec<f64> = trace
        .counters("rate")
        .into_iter()
        .map(|track| trace.integral(track).round())
        .collect();
    bits.sort_by(f64::total_cmp);
    assert_eq!(bits, [56_000.0, 8_000_000.0]);
    let sent = trace
        .counters("sent")
        .into_iter()
        .map(|track| trace.integral(track));
    let received = trace
        .counters("received")
        .into_iter()
        .map(|track| trace.integral(track));
    assert_eq!(
        (sent.sum::<f64>().round(), received.sum::<f64>().round()),
        (8_056_000.0, 8_056_000.0)
    );
}

#[test]
fn perfetto_counters_change_where_values_do() {
    let trace = incast().trace();
    let of = |name: &str, place: usize| {
        let counter = trace.counters(name)[place];
        let values = trace.events.iter().filter(|event| event.track == counter);
        values
            .map(|event| ((event.time - START) / MILLISECOND, event.value.unwrap()))
            .collect::<Vec<_>>()
    };
    // 100,000 bytes in 1 ms are 800 Mbit/s. Nothing was sent in bins 5 and 6, and after bin 11.
    let rate = [(0, 8e8), (5, 0.0), (7, 8e8), (12, 0.0)];
    let first = trace
        .counters("rate")
        .into_iter()
        .position(|track| trace.integral(track) > 1e6);
    assert_eq!(of("rate", first.unwrap()), rate);
    // 25 of 100 in bins 3 and 4; the receiver has the same, since the other flow is only there in bin 1.
    for place in 0..2 {
        assert_eq!(of("CE share", place), [(0, 0.0), (3, 0.25), (5, 0.0)]);
    }
    // A measured value stays until the next; it does not become 0.
    assert_eq!(of("in flight, most", 0), [(0, 64_000.0)]);
    assert_eq!(
        of("RTT, longest", 0)[..3],
        [(0, 7_000.0), (1, 7_001.0), (2, 7_002.0)]
    );
}

#[test]
fn perfetto_arrows_lead_from_causes_to_victims() {
    let trace = incast().trace();
    let one = |track: &str| {
        let found = trace.on(track);
        assert_eq!(found.len(), 1, "{track}");
        found[0]
    };
    let (episode, slowed) = (one("episodes: incast"), one("slowed by episodes"));
    assert_eq!(episode.name, "incast into 11.0.0.9");
    assert_eq!(episode.out, slowed.into);
    assert_eq!((episode.time, trace.end_of(episode)), (at(3).0, at(5).0));
    assert_eq!(episode.facts["senders_max"], "2");
    // From the NAK in the other direction to the run, which lasts to the end of bin 4.
    let run = one("retransmission runs");
    let nak = trace.events.iter().find(|event| event.name == "NAK").unwrap();
    assert_eq!(nak.out, run.into);
    assert_eq!((run.time, trace.end_of(run)), (START + 3_200_000, at(5).0));
    assert_eq!(
        (run.name.as_str(), run.facts["value"].as_str()),
        ("retransmission run (nak)", "8")
    );
    let stall = one("stalls");
    assert_eq!((stall.time, trace.end_of(stall)), (at(2).0, at(7).0));
    assert_eq!(trace.on("findings").len(), 2);
    assert!(
        !trace.events.iter().any(|event| event.name == "cnp"),
        "a counter shows CNPs"
    );
}

#[test]
fn perfetto_a_run_whose_first_packets_were_lost_answers_the_last_nak() {
    let mut rows = incast();
    let (nak, run) = (rows.events[0].clone(), rows.events[1].clone());
    // The NAK of PSN 50 is answered from PSN 52 on. The last run answers nothing: that NAK has been answered.
    rows.events.extend([
        EventRow {
            time: Time(START + 3_500_000),
            psn: Some(50),
            ..nak
        },
        EventRow {
            time: Time(START + 3_600_000),
            psn: Some(52),
            ..run.clone()
        },
        EventRow {
            time: Time(START + 3_700_000),
            psn: Some(60),
            ..run
        },
    ]);
    let trace = Trace::read(&rows.written(TraceForm::Perfetto));
    trace.check();
    let arrows: Vec<usize> = trace
        .on("retransmission runs")
        .iter()
        .map(|run| run.into.len())
        .collect();
    assert_eq!(arrows, [1, 1, 0]);
}

#[test]
fn perfetto_outliers_of_a_training_job_have_their_episode() {
    let made = training();
    let rows = Rows {
        run: made.run.clone(),
        ..Rows::default()
    };
    let trace = rows.trace();
    let steps: usize = trace
        .tracks
        .values()
        .filter(|track| track.name.starts_with("steps "))
        .map(|track| track.name.clone())
        .collect::<BTreeSet<_>>()
        .iter()
        .map(|name| trace.on(name).len())
        .sum();
    // Eight steps of four pairs; one of them is an outlier that began before its episode.
    assert_eq!(steps, 32);
    let slowed = trace.on("slowed steps");
    assert_eq!(slowed.len(), 1);
    assert_eq!((slowed[0].time, slowed[0].into.len()), (at(260).0, 1));
}

#[test]
fn perfetto_samples_are_counters_of_their_node() {
    let sample = |counter, kind, seconds: u64, value, change: Option<f64>| SampleRow {
        time: Time(START + seconds * Span::SECOND.0),
        source: "switch",
        node: "leaf1".into(),
        object: "Ethernet1/1".into(),
        counter,
        kind,
        value,
        change,
        interval_ns: change.map(|_| 2 * Span::SECOND.0),
        unit: "packets",
        priority: Some(3),
        ..SampleRow::default()
    };
    let rows = Rows {
        samples: vec![
            sample("port_discards", "cumulative", 1, 10.0, None),
            sample("port_discards", "cumulative", 3, 70.0, Some(60.0)),
            sample("queue_bytes", "gauge", 1, 5.0, None),
            sample("queue_bytes", "gauge", 3, f64::NAN, None),
        ],
        ..Rows::default()
    };
    let trace = rows.trace();
    let values = |name: &str| {
        let counter = trace.counters(name)[0];
        assert_eq!(
            trace.tracks[&trace.tracks[&counter].parent.unwrap()].name,
            "switch leaf1"
        );
        let values = trace.events.iter().filter(|event| event.track == counter);
        values
            .map(|event| (event.time - START, event.value.unwrap()))
            .collect::<Vec<_>>()
    };
    // 60 packets in the 2 s before the second reading: 30 a second, from the first one on.
    assert_eq!(
        values("Ethernet1/1 port_discards, priority 3"),
        [(Span::SECOND.0, 30.0)]
    );
    assert_eq!(
        values("Ethernet1/1 queue_bytes, priority 3"),
        [(Span::SECOND.0, 5.0)]
    );
}
