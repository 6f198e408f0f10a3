//! Traces of ranks beside a capture: PyTorch's profiler and NCCL's profiler plugin, on the capture's clock.
//!
//! [`Traces`] is a sink. While rows come it keeps the traffic over time in bounded memory; when the run has ended, [`Traces::conclude`]
//! relates the clocks, adds up what the network did in each collective, and adds both to the run's summary. How a trace is read, and how
//! clocks are related, is left to the modules below.

mod bounded;
mod clock;
mod correlate;
mod edges;
mod event;
mod kinds;
mod net;
mod network;
mod read;
mod stated;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::fast::RandomState;
use roce_model::{
    Address, CollectiveCallRow, FlowId, FlowKey, FlowRow, RunSummary, Sink, SinkError, Span, Time,
    TimelineColumns, TraceClock, TraceRow,
};
use roce_report::series::SeriesStore;
use roce_verdict::{Thresholds, add_slowed_collectives, add_stuck_job};

use clock::{Clock, MAX_STATED_ERROR_NS};
use edges::{Activity, Interval};
pub use net::NetworkEvents;
use network::{Episodes, Traffic, flows_named};
pub use read::{Call, Trace, TraceError};
use stated::CapturedJob;
pub use stated::{StatedRanks, StatedTime};

/// Traces that are merged with one run.
pub const MAX_TRACES: usize = 1 << 10;
/// Collectives of all traces that are rows: 14 MB of the JSON document.
const MAX_CALLS: usize = 1 << 15;

/// Kinds and communicators of one trace whose collectives get their numbers.
const MAX_GROUPS: usize = 1 << 10;

/// A trace that is to be merged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceFile {
    /// Its file.
    pub path: PathBuf,
    /// Address of the host whose ranks it is of.
    pub address: Option<Address>,
}

impl TraceFile {
    /// A file, or `ADDRESS=FILE` with the address of the rank's host.
    pub fn parse(text: &str) -> Self {
        let parts = text.split_once('=');
        let named = parts.and_then(|(address, path)| {
            let address: std::net::IpAddr = address.parse().ok()?;
            Some((Address::from(address), path))
        });
        match named {
            Some((address, path)) => Self {
                path: Path::new(path).to_path_buf(),
                address: Some(address),
            },
            None => Self {
                path: Path::new(text).to_path_buf(),
                address: None,
            },
        }
    }
}

/// Traces, and the traffic of the run that they are merged with.
#[derive(Debug)]
pub struct Traces {
    documents: Arc<[(Trace, Option<Address>)]>,
    gathered: SeriesStore,
    captured: CapturedJob,
}

impl Traces {
    /// Traces that were read, each with the address of its rank's host where that is known.
    pub fn new(traces: Arc<[(Trace, Option<Address>)]>) -> Self {
        Self {
            documents: traces,
            gathered: SeriesStore::new(Span(0)),
            captured: CapturedJob::default(),
        }
    }

    /// Adds the traces and their collectives to the summary of the run, and the finding about them. Returns what could not be merged, in
    /// words with the file.
    pub fn conclude(&mut self, run: &mut RunSummary, thresholds: &Thresholds) -> Vec<String> {
        let named: HashSet<FlowId, RandomState> = run
            .episodes
            .iter()
            .flat_map(|episode| flows_named(&episode.flow_ids))
            .collect();
        let width = self.gathered.width();
        let shown = self.gathered.take(&named);
        let traffic = Traffic::new(&shown, width);
        let episodes = Episodes::new(&run.episodes);
        let mut activities: HashMap<Option<Address>, Activity, RandomState> = HashMap::default();
        self.captured.credits(&run.credits);
        let mut failed = Vec::new();
        let (mut rows, mut calls, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for ((trace, address), number) in self.documents.iter().zip(0..) {
            let activity = activities
                .entry(*address)
                .or_insert_with(|| traffic.activity(*address));
            let place = (number, *address);
            let span = run.span.map(|span| (span.first.0, span.last.0));
            let merged = trace
                .stated
                .placed(place, &self.captured, span)
                .and_then(|stated| Ok((stated, self.relation(trace, *address, activity)?)));
            let (mut placed, related) = match merged {
                Ok(merged) => merged,
                Err(reason) => {
                    failed.push(format!("{}: is not merged: {reason}", trace.file));
                    continue;
                }
            };
            states.append(&mut placed);
            let mut row = related.row(trace, number, *address);
            let span = activity.span().unwrap_or_default();
            let mut own: Vec<CollectiveCallRow> = Vec::new();
            let has_clock = !matches!(related, ClockRelation::None);
            row.left_out += if has_clock { 0 } else { trace.calls.len() as u64 };
            let timed = trace.calls.iter().filter(|_| has_clock);
            for call in timed.map(|call| related.call(call, number)) {
                if call.end_time.0 <= span.0 || call.start_time.0 >= span.1 {
                    row.outside += 1;
                } else if calls.len() + own.len() >= MAX_CALLS {
                    row.left_out += 1;
                } else {
                    own.push(call);
                }
            }
            row.calls = own.len() as u64;
            let mut groups: HashMap<_, Vec<usize>, RandomState> = HashMap::default();
            for (place, call) in own.iter().enumerate() {
                let like = (call.rank, call.communicator.clone(), call.kind.clone());
                let next = groups.len();
                match groups.entry(like) {
                    Entry::Occupied(mut group) => group.get_mut().push(place),
                    Entry::Vacant(group) if next < MAX_GROUPS => drop(group.insert(vec![place])),
                    // Without their numbers: each further group would look at all connections again.
                    Entry::Vacant(_) => {}
                }
            }
            for places in groups.values() {
                let like = places.iter().filter_map(|place| own.get(*place));
                let carrying = traffic.carrying(like, *address);
                for place in places {
                    if let Some(call) = own.get_mut(*place) {
                        let carriers = carrying.fill(&traffic, call);
                        call.episode = episodes.of(call, &carriers);
                    }
                }
            }
            calls.append(&mut own);
            rows.push(row);
        }
        calls.sort_by_key(|call| (call.start_time, call.trace, call.rank, call.end_time));
        run.traces = rows;
        run.collective_calls = calls;
        run.rank_states = states;
        add_slowed_collectives(run, thresholds);
        add_stuck_job(run);
        failed
    }
}

impl Traces {
    /// How the clock of one document is related to the capture's. A trace that has too few collectives for that, and queue pairs of the
    /// capture, is merged without their times.
    fn relation(
        &self,
        trace: &Trace,
        address: Option<Address>,
        activity: &Activity,
    ) -> Result<ClockRelation, String> {
        if trace.calls.is_empty() {
            return Ok(ClockRelation::None);
        }
        let queue_pairs = trace.network.as_ref().map(|events| &events.queue_pairs);
        let is_captured = queue_pairs.is_some_and(|numbers| self.captured.has_queue_pair(address, numbers));
        relate(trace, activity).or_else(|reason| {
            let is_of_capture = is_captured && !trace.has_epoch;
            if is_of_capture {
                Ok(ClockRelation::None)
            } else {
                Err(reason)
            }
        })
    }
}

/// How a trace's clock is related to the capture's.
enum ClockRelation {
    /// As the trace states it; nothing else shows it.
    Stated,
    /// The trace states it, and the traffic shows the rest.
    Corrected(Clock),
    /// The traffic shows it.
    Found(Clock),
    /// There are no times to relate.
    None,
}

/// Relates a trace's clock to that of the traffic.
///
/// # Errors
/// In words: they cannot be related.
fn relate(trace: &Trace, activity: &Activity) -> Result<ClockRelation, String> {
    let mut groups: HashMap<(&str, Option<&str>, Option<u32>), u32, RandomState> = HashMap::default();
    let intervals = trace.calls.iter().map(|call| {
        let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
        let group = (call.kind.as_str(), call.communicator.as_deref(), call.ranks);
        Interval {
            start: call.start,
            end: call.end,
            message_bytes: call.message_bytes,
            group: *groups.entry(group).or_insert(next),
        }
    });
    let intervals: Vec<Interval> = intervals.collect();
    if !trace.has_epoch {
        return clock::find(activity, &intervals, None).map(ClockRelation::Found);
    }
    let (first, end) = activity.span().ok_or("the capture has no traffic")?;
    let is_meanwhile = |call: &&Call| {
        let near = |time: u64, by: i64| i64::try_from(time).unwrap_or(i64::MAX).saturating_add(by);
        call.end > near(first, -MAX_STATED_ERROR_NS) && call.start < near(end, MAX_STATED_ERROR_NS)
    };
    if !trace.calls.iter().any(|call| is_meanwhile(&call)) {
        let (Some(begin), Some(last)) = (trace.calls.first(), trace.calls.last()) else {
            return Err("it has no collective".to_owned());
        };
        let seconds = |time: i64| time.div_euclid(1_000_000_000);
        return Err(format!(
            "its collectives are from {} s to {} s since the epoch, the traffic from {} s to {} s",
            seconds(begin.start),
            seconds(last.end),
            first / Span::SECOND.0,
            end / Span::SECOND.0
        ));
    }
    let found = clock::find(activity, &intervals, Some(MAX_STATED_ERROR_NS));
    Ok(found.map_or(ClockRelation::Stated, ClockRelation::Corrected))
}

impl ClockRelation {
    fn row(&self, trace: &Trace, number: u32, address: Option<Address>) -> TraceRow {
        let rank = trace.calls.first().and_then(|call| call.rank);
        let mut row = TraceRow {
            trace: number,
            file: trace.file.clone().into(),
            form: trace.form,
            rank: rank.filter(|rank| trace.calls.iter().all(|call| call.rank == Some(*rank))),
            address,
            left_out: trace.left_out,
            send_gpu_wait_ns: trace.network.as_ref().map(|events| events.send_gpu_wait_ns),
            send_peer_wait_ns: trace.network.as_ref().map(|events| events.send_peer_wait_ns),
            send_wait_ns: trace.network.as_ref().map(|events| events.send_wait_ns),
            ..TraceRow::default()
        };
        let clock = match self {
            Self::Stated => return row,
            Self::None => {
                row.clock = TraceClock::None;
                let mut ranks = trace.stated.rows.iter().map(|state| state.rank);
                let first = ranks.next().flatten();
                row.rank = row.rank.or(first.filter(|_| ranks.all(|other| other == first)));
                return row;
            }
            Self::Corrected(clock) => clock,
            Self::Found(clock) => {
                row.clock = TraceClock::Traffic;
                clock
            }
        };
        row.offset_ns = Some(clock.offset());
        row.drift = clock.drift;
        row.uncertainty_ns = Some(clock.uncertainty);
        row.matched = clock.matched;
        row
    }

    fn call(&self, call: &Call, number: u32) -> CollectiveCallRow {
        let at = |time: i64| match self {
            Self::Stated | Self::None => Time(u64::try_from(time).unwrap_or_default()),
            Self::Corrected(clock) | Self::Found(clock) => clock.at(time),
        };
        CollectiveCallRow {
            trace: number,
            rank: call.rank,
            communicator: call.communicator.clone().map(Into::into),
            kind: call.kind.clone().into(),
            message_bytes: call.message_bytes,
            ranks: call.ranks,
            sequence: call.sequence,
            start_time: at(call.start),
            end_time: at(call.end),
            duration_ns: u64::try_from(call.end.saturating_sub(call.start)).unwrap_or_default(),
            ..CollectiveCallRow::default()
        }
    }
}

impl Sink for Traces {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.gathered.begin(bin)
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.gathered.flows_opened(keys)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.gathered.timeline(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            self.captured.flow(row);
        }
        self.gathered.flows_closed(rows)
    }
}
