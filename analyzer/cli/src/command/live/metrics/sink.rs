//! The sink that turns a live run's rows into metrics. It keeps counts by tap and by pair of hosts, all bounded, and publishes a whole
//! text at each interval: a scrape never waits for the analysis, nor the analysis for a scrape.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roce_capture::Interface;
use roce_capture::live::Counters;
use roce_metrics::{self as metric, Buckets, Exposition, Label, Own};
use roce_model::{
    EpisodeKind, EventColumns, EventKind, FlowId, FlowKey, FlowRow, JobSteps, Progress, RunSummary, Sink,
    SinkError, Snapshot, Span, TapMeasures, Time, TimeBuckets, TimelineColumns, value_of,
};
use roce_pipeline::time_of_day;

use super::super::parts::PartPublisher;
use super::hosts::FlowHosts;
use super::pairs::{PairCounts, Pairs};
use roce_endpoint::{Latest, Texts};

/// Taps with counts of their own; those of mirror sessions beyond them are one.
const MAX_TAPS: u32 = 64;

/// Counts at one tap.
#[derive(Default)]
struct TapCounts {
    plain: [u64; PLAIN.len()],
    /// not_ect, ect0, ect1, ce.
    ecn: [u64; 4],
    cnps: u64,
    missing: BTreeMap<&'static str, u64>,
    /// By priority.
    pfc: [u64; 8],
    pauses: u64,
    measures: TapMeasures,
    /// Steps that have ended, the start of the last of them, and its length.
    steps: Option<(u64, Time, Span)>,
}

/// Metrics that are a column of the timeline, in the order of [`TapCounts::plain`].
const PLAIN: [Own; 9] = [
    metric::LIVE_PACKETS,
    metric::LIVE_WIRE_BYTES,
    metric::LIVE_PAYLOAD_BYTES,
    metric::LIVE_ACKS,
    metric::LIVE_NAKS,
    metric::LIVE_RNR_NAKS,
    metric::LIVE_RETRANSMITTED_PACKETS,
    metric::LIVE_RETRANSMITTED_BYTES,
    metric::LIVE_SKIPPED,
];

const ECN: [&str; 4] = ["not_ect", "ect0", "ect1", "ce"];
/// Fates of missing packets: details of the event `hole`.
const BECAME: [&str; 5] = [
    "network_lost",
    "reordered",
    "capture_lost",
    "ambiguous",
    "unresolved",
];
const PRIORITIES: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

pub(super) struct LiveMetrics {
    about: Vec<(&'static str, String)>,
    /// The name of the only interface.
    interface: Option<String>,
    counters: Arc<Counters>,
    parts: Option<PartPublisher>,
    latest: Arc<Latest>,
    taps: BTreeMap<u32, TapCounts>,
    pairs: Pairs,
    hosts: FlowHosts,
    live_flows: Option<usize>,
    episodes: BTreeMap<&'static str, u64>,
    findings: BTreeSet<(&'static str, &'static str)>,
    complete: Time,
}

impl LiveMetrics {
    pub(super) fn new(
        about: &[Label<'_>],
        interfaces: &[Interface],
        counters: Arc<Counters>,
        parts: Option<PartPublisher>,
        pairs: usize,
        latest: Arc<Latest>,
    ) -> Self {
        let interface = match interfaces {
            [one] => one.name.clone(),
            _ => None,
        };
        let about = about
            .iter()
            .map(|(name, value)| (*name, value.clone().into_owned()));
        Self {
            about: about.collect(),
            interface,
            counters,
            parts,
            latest,
            taps: BTreeMap::new(),
            pairs: Pairs::new(pairs),
            hosts: FlowHosts::default(),
            live_flows: None,
            episodes: EpisodeKind::ALL.iter().map(|kind| (kind.name(), 0)).collect(),
            findings: BTreeSet::new(),
            complete: Time(0),
        }
    }

    fn tap(&mut self, tap: u32) -> &mut TapCounts {
        self.taps.entry(tap.min(MAX_TAPS)).or_default()
    }

    /// Makes all metrics and publishes them.
    fn publish(&self) {
        let mut metrics = Exposition::default();
        let about: Vec<Label<'_>> = self
            .about
            .iter()
            .map(|(name, value)| (*name, value.as_str().into()))
            .collect();
        metrics.own(metric::LIVE_INFO, &about, 1.0);
        metrics.own(metric::LIVE_FRAMES, &[], value_of(self.counters.frames()));
        for (place, lost) in [
            ("kernel", self.counters.kernel()),
            ("queue", self.counters.overrun()),
        ] {
            metrics.own(
                metric::LIVE_LOST_FRAMES,
                &[("where", place.into())],
                value_of(lost),
            );
        }
        if let Some(parts) = &self.parts {
            parts(&mut metrics);
        }
        if let Some(flows) = self.live_flows {
            metrics.own(metric::LIVE_FLOWS, &[], value_of(flows as u64));
        }
        if self.complete > Time(0) {
            let behind = time_of_day().since(self.complete);
            metrics.own(metric::LIVE_BEHIND, &[], value_of(behind.0) / 1e9);
        }
        for (kind, count) in &self.episodes {
            metrics.own(
                metric::LIVE_EPISODES,
                &[("kind", (*kind).into())],
                value_of(*count),
            );
        }
        for (id, severity) in &self.findings {
            let labels = [("id", (*id).into()), ("severity", (*severity).into())];
            metrics.own(metric::LIVE_FINDING, &labels, 1.0);
        }
        for (tap, counts) in &self.taps {
            self.publish_tap(*tap, counts, &mut metrics);
        }
        self.publish_pairs(&mut metrics);
        self.latest.take(Texts::from(&metrics), None);
    }

    fn name(&self, tap: u32) -> String {
        match &self.interface {
            Some(name) if tap == 0 => name.clone(),
            _ if tap == MAX_TAPS => "other".to_owned(),
            _ => tap.to_string(),
        }
    }

    fn publish_tap(&self, tap: u32, counts: &TapCounts, into: &mut Exposition) {
        let name = self.name(tap);
        let tap: Label<'_> = ("tap", name.as_str().into());
        for (metric, count) in PLAIN.into_iter().zip(counts.plain) {
            into.own(metric, std::slice::from_ref(&tap), value_of(count));
        }
        for (ecn, count) in ECN.into_iter().zip(counts.ecn) {
            into.own(
                metric::LIVE_DATA_PACKETS,
                &[tap.clone(), ("ecn", ecn.into())],
                value_of(count),
            );
        }
        into.own(
            metric::LIVE_CNPS,
            std::slice::from_ref(&tap),
            value_of(counts.cnps),
        );
        for became in BECAME {
            let count = counts.missing.get(became).copied().unwrap_or(0);
            into.own(
                metric::LIVE_MISSING,
                &[tap.clone(), ("became", became.into())],
                value_of(count),
            );
        }
        for (priority, count) in PRIORITIES.into_iter().zip(counts.pfc) {
            into.own(
                metric::LIVE_PFC_FRAMES,
                &[tap.clone(), ("priority", priority.into())],
                value_of(count),
            );
        }
        let wasted = value_of(counts.measures.wasted_bytes);
        into.own(metric::LIVE_WASTED_BYTES, std::slice::from_ref(&tap), wasted);
        for (state, time) in counts.measures.times.iter() {
            let labels = [tap.clone(), ("state", state.name().into())];
            into.own(metric::LIVE_TIME, &labels, value_of(time) / 1e9);
        }
        for (metric, times) in [
            (metric::LIVE_ACK_RTT, &counts.measures.ack_rtt),
            (metric::LIVE_MESSAGE, &counts.measures.message),
        ] {
            into.histogram(metric, std::slice::from_ref(&tap), buckets(times));
        }
        if let Some((steps, _, length)) = counts.steps {
            into.own(metric::LIVE_STEPS, std::slice::from_ref(&tap), value_of(steps));
            into.own(
                metric::LIVE_STEP,
                std::slice::from_ref(&tap),
                value_of(length.0) / 1e9,
            );
        }
        into.own(metric::LIVE_PAUSE_FRAMES, &[tap], value_of(counts.pauses));
    }

    fn publish_pairs(&self, into: &mut Exposition) {
        let mut put = |tap: &str, source: &str, destination: &str, counts: &PairCounts| {
            let labels: [Label<'_>; 3] = [
                ("tap", tap.into()),
                ("source", source.into()),
                ("destination", destination.into()),
            ];
            for (metric, count) in [
                (metric::LIVE_PAIR_WIRE_BYTES, counts.wire_bytes),
                (metric::LIVE_PAIR_DATA_PACKETS, counts.data_packets),
                (metric::LIVE_PAIR_MARKED_PACKETS, counts.marked),
                (metric::LIVE_PAIR_CNPS, counts.cnps),
                (metric::LIVE_PAIR_RETRANSMITTED_PACKETS, counts.retransmitted),
            ] {
                into.own(metric, &labels, value_of(count));
            }
        };
        let mut listed = 0_u64;
        for ((tap, source, destination), counts) in self.pairs.listed() {
            put(
                &self.name(*tap),
                &source.to_string(),
                &destination.to_string(),
                counts,
            );
            listed += 1;
        }
        put("other", "other", "other", self.pairs.others());
        into.own(metric::LIVE_PAIRS_LISTED, &[], value_of(listed));
    }

    /// Takes what a snapshot concludes. Episodes are only counted up: one that is taken for another later does not make a count fall.
    fn conclude(&mut self, snapshot: &Snapshot) {
        self.live_flows = (!snapshot.too_many).then_some(snapshot.flows.len());
        for kind in EpisodeKind::ALL {
            let now = snapshot
                .episodes
                .iter()
                .filter(|episode| episode.kind == *kind)
                .count() as u64;
            let count = self.episodes.entry(kind.name()).or_default();
            *count = now.max(*count);
        }
        for (tap, measures) in &snapshot.measures {
            self.tap(tap.0).measures.clone_from(measures);
        }
        for job in &snapshot.jobs {
            count_steps(self.tap(job.tap.0), job);
        }
        let findings = snapshot.findings.iter();
        self.findings = findings
            .map(|finding| (finding.id, finding.severity.name()))
            .collect();
    }
}

impl Sink for LiveMetrics {
    fn begin(&mut self, _bin: Span) -> Result<(), SinkError> {
        self.publish();
        Ok(())
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        for key in keys {
            let id = key.id();
            self.hosts.opened(id, (key.source, key.destination));
        }
        Ok(())
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        self.complete = progress.complete;
        if let Some(snapshot) = progress.snapshot {
            self.conclude(snapshot);
            self.pairs.interval();
            self.hosts.interval();
            self.publish();
        }
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for row in 0..rows.time.len() {
            let (Some(flow), Some(tap)) = (rows.flow_id.at(row), rows.tap.at(row)) else {
                continue;
            };
            let number = |values: &roce_model::Values<u32>| u64::from(values.at(row).copied().unwrap_or(0));
            let long = |values: &roce_model::Values<u64>| values.at(row).copied().unwrap_or(0);
            let more = [
                number(&rows.packets),
                long(&rows.wire_bytes),
                long(&rows.payload_bytes),
                number(&rows.acks),
                number(&rows.naks),
                number(&rows.rnr_naks),
                number(&rows.retransmitted_packets),
                long(&rows.retransmitted_bytes),
                long(&rows.missing),
            ];
            let ecn = [&rows.not_ect, &rows.ect0, &rows.ect1, &rows.ce].map(number);
            let counts = self.tap(*tap);
            for (sum, more) in counts.plain.iter_mut().zip(more) {
                *sum += more;
            }
            for (sum, more) in counts.ecn.iter_mut().zip(ecn) {
                *sum += more;
            }
            let time = rows.time.at(row).copied().unwrap_or_default();
            let hosts = self.hosts.of(FlowId(*flow), Time(time));
            let pair = PairCounts {
                wire_bytes: long(&rows.wire_bytes),
                data_packets: number(&rows.data_packets),
                marked: ecn[3],
                cnps: number(&rows.cnp),
                retransmitted: number(&rows.retransmitted_packets),
            };
            let key = hosts.map(|(source, destination)| ((*tap).min(MAX_TAPS), source, destination));
            self.pairs.add(key, &pair);
        }
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.time.len() {
            let (Some(kind), Some(tap)) = (rows.kind.at(row), rows.tap.at(row)) else {
                continue;
            };
            let value = rows.value.at(row).copied().unwrap_or(0);
            let detail = rows.detail.at(row).map(ToString::to_string).unwrap_or_default();
            if kind == EventKind::Cnp.name() {
                self.tap(*tap).cnps += value;
            } else if kind == EventKind::Hole.name() {
                if let Some(became) = BECAME.into_iter().find(|became| *became == detail) {
                    *self.tap(*tap).missing.entry(became).or_default() += value;
                }
            } else if kind == EventKind::LostAgain.name() {
                *self.tap(*tap).missing.entry("network_lost").or_default() += value;
            } else if kind == EventKind::Pause.name() {
                pause(self.tap(*tap), &detail);
            }
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            self.hosts.closed(row.flow_id, row.last_time);
        }
        Ok(())
    }

    fn finish(&mut self, _run: &RunSummary) -> Result<(), SinkError> {
        self.publish();
        Ok(())
    }
}

/// Counts the steps of a job that have ended since the last look. No count falls, whatever a snapshot still knows.
fn count_steps(counts: &mut TapCounts, job: &JobSteps) {
    let (before, last, _) = counts.steps.unwrap_or_default();
    let new = job.starts.iter().filter(|start| **start > last).count() as u64;
    if let Some(latest) = job.starts.last().filter(|_| new > 0) {
        counts.steps = Some((before + new, *latest, job.last));
    }
}

/// Times as a histogram in seconds.
fn buckets(times: &TimeBuckets) -> Buckets {
    let (bounded, beyond) = times.counts().split_at(TimeBuckets::BOUNDS);
    let bounded = bounded.iter().enumerate();
    Buckets {
        counts: bounded
            .map(|(bucket, count)| (value_of(TimeBuckets::bound(bucket).0) / 1e9, *count))
            .collect(),
        beyond: beyond.iter().sum(),
        sum: value_of(times.sum().0) / 1e9,
    }
}

/// Counts a pause frame by its detail: `PFC 3:65535 from ...` or `pause 65535 quanta from ...` (`roce_wire::Pause`). A PFC frame with
/// time 0 ends a pause and counts, too, as in adapters.
fn pause(counts: &mut TapCounts, detail: &str) {
    let Some(priorities) = detail.strip_prefix("PFC") else {
        counts.pauses += 1;
        return;
    };
    let words = priorities.split(' ').take_while(|word| *word != "from");
    for (priority, _) in words.filter_map(|word| word.split_once(':')) {
        let count = priority.parse().ok().and_then(|at: usize| counts.pfc.get_mut(at));
        if let Some(count) = count {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_counted_once() {
        let mut counts = TapCounts::default();
        let job = |starts: &[u64], last| JobSteps {
            starts: starts.iter().copied().map(Time).collect(),
            last: Span(last),
            ..JobSteps::default()
        };
        count_steps(&mut counts, &job(&[10, 20, 30], 4));
        // A snapshot that has forgotten the first steps, and knows one more.
        count_steps(&mut counts, &job(&[30, 40], 5));
        count_steps(&mut counts, &job(&[30, 40], 5));
        count_steps(&mut counts, &job(&[], 0));
        assert_eq!(counts.steps, Some((4, Time(40), Span(5))));
    }

    #[test]
    fn bounds_are_seconds() {
        let mut times = TimeBuckets::default();
        times.add(Span(1_000));
        times.add(Span(70_000_000));
        let buckets = buckets(&times);
        assert_eq!((buckets.counts[0], buckets.beyond), ((0.000_001, 1), 1));
        assert_eq!(buckets.counts.last(), Some(&(0.065_536, 0)));
        assert!((buckets.sum - 0.070_001).abs() < 1e-12);
    }

    #[test]
    fn pauses_of_the_two_kinds_are_counted_apart() {
        let mut counts = TapCounts::default();
        pause(&mut counts, "PFC 3:65535 5:0 from 02:00:00:00:00:0a");
        pause(&mut counts, "pause 65535 quanta from 02:00:00:00:00:0a");
        assert_eq!(counts.pfc, [0, 0, 0, 1, 0, 1, 0, 0]);
        assert_eq!(counts.pauses, 1);
    }
}
