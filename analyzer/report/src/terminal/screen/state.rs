//! State of the screen: the latest intervals of each flow, its latest events, and current conclusions.
//! Bounded for any run. Drawing is elsewhere.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use roce_model::{
    EpisodeRow, EventColumns, EventKind, FindingRow, FlowId, FlowKey, FlowRow, Progress, RunSummary, Span,
    TapId, Time, TimelineColumns,
};

use super::counters::Counters;
use super::gpus::Gpus;
use super::history::{Cell, History, MAX_INTERVALS};

/// Flows that are kept at a time: 60 MB when each of them has been active in all intervals that are kept.
const MAX_FLOWS: usize = 4096;
/// Flows whose names are kept.
const MAX_NAMES: usize = 1 << 18;
/// Events that are kept of a flow, and of everything that is no flow's.
const MAX_EVENTS: usize = 64;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) time: Time,
    pub(super) kind: EventKind,
    pub(super) psn: Option<u32>,
    pub(super) value: Option<u64>,
    pub(super) detail: String,
}

/// One flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) id: FlowId,
    pub(super) key: Option<FlowKey>,
    /// Intervals of it at each tap.
    pub(super) taps: Vec<(TapId, History)>,
    pub(super) events: VecDeque<Event>,
    /// Its row in the last snapshot.
    pub(super) row: Option<Box<FlowRow>>,
}

impl Flow {
    /// The history that counts: that of the tap that saw most.
    pub(super) fn history(&self) -> Option<&History> {
        let most = self
            .taps
            .iter()
            .max_by_key(|(tap, history)| (history.packets, std::cmp::Reverse(*tap)));
        most.map(|(_, history)| history)
    }

    /// True if it had packets up to this interval.
    pub(super) fn has_begun(&self, interval: u64) -> bool {
        let begun = self.taps.iter().filter_map(|(_, history)| history.begun);
        begun.min().is_some_and(|begun| begun <= interval)
    }

    pub(super) fn at(&self, interval: u64) -> Cell {
        self.history()
            .map_or_else(Cell::default, |history| history.at(interval))
    }

    /// Sums of the `many` intervals up to this one.
    pub(super) fn until(&self, interval: u64, many: usize) -> Vec<Cell> {
        self.history().map_or_else(
            || vec![Cell::default(); many],
            |history| history.until(interval, many).collect(),
        )
    }
}

/// State of the screen.
#[derive(Debug)]
pub(super) struct State {
    /// Width of an interval, in ns; at least a bin.
    pub(super) width: u64,
    flows: HashMap<FlowId, Flow, RandomState>,
    names: HashMap<FlowId, FlowKey, RandomState>,
    /// The sums of complete intervals.
    sums: HashMap<u64, (u64, Cell), RandomState>,
    /// Flows that found no room, together.
    pub(super) others: History,
    /// Events that belong to no flow.
    pub(super) of_no_flow: VecDeque<Event>,
    /// The first interval with a row.
    pub(super) first: Option<u64>,
    /// All rows of bins that begin before this have come.
    pub(super) complete: Time,
    /// Nothing from this time on is shown: a replay has not reached it, though its rows may be there.
    pub(super) limit: Time,
    /// By so much rows of a replay come before they are shown, at most.
    lead: Span,
    /// Findings, episodes and flows that are shown.
    pub(super) conclusions: Conclusions,
    /// Conclusions that are shown once their time is reached.
    waiting: Option<(Time, Conclusions)>,
    /// The last rows of flows that are complete.
    last: HashMap<FlowId, FlowRow, RandomState>,
    /// Records that the capture itself says it lost, and host events.
    pub(super) records_lost: u64,
    pub(super) host_events_lost: u64,
    /// Counters of devices.
    pub(super) counters: Counters,
    /// GPUs by interval.
    pub(super) gpus: Gpus,
}

/// Conclusions about a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Conclusions {
    /// True if there was a snapshot.
    pub(super) anything: bool,
    pub(super) findings: Vec<FindingRow>,
    /// The first sentence; empty before the end.
    pub(super) sentence: String,
    episodes: Vec<EpisodeRow>,
    /// More flows are live than a snapshot can have.
    pub(super) too_many: bool,
    /// It is of the whole run, which has ended.
    pub(super) ended: bool,
    /// All that is known of flows.
    rows: Vec<FlowRow>,
}

impl State {
    pub(super) fn new(interval: Span, lead: Span) -> Self {
        Self {
            width: interval.0.max(1),
            flows: HashMap::default(),
            names: HashMap::default(),
            sums: HashMap::default(),
            others: History::default(),
            of_no_flow: VecDeque::new(),
            first: None,
            complete: Time(0),
            limit: Time(u64::MAX),
            lead,
            conclusions: Conclusions::default(),
            waiting: None,
            last: HashMap::default(),
            records_lost: 0,
            host_events_lost: 0,
            counters: Counters::default(),
            gpus: Gpus::default(),
        }
    }

    pub(super) fn begin(&mut self, bin: Span) {
        // An interval has whole bins: a row belongs to one of them.
        let bins = self.width.div_ceil(bin.0.max(1));
        self.width = bins.saturating_mul(bin.0.max(1));
    }

    pub(super) fn opened(&mut self, keys: &[FlowKey]) {
        for key in keys {
            if self.names.len() < MAX_NAMES {
                self.names.insert(key.id(), *key);
            }
        }
    }

    /// The watermark has reached `limit`: waiting conclusions are shown.
    pub(super) fn shown_until(&mut self, limit: Time) {
        self.limit = limit;
        if let Some((_, conclusions)) = self.waiting.take_if(|(due, _)| *due <= limit) {
            self.conclusions = conclusions;
            for row in std::mem::take(&mut self.conclusions.rows) {
                if let Some(flow) = self.flows.get_mut(&row.flow_id) {
                    flow.row = Some(Box::new(row));
                }
            }
        }
    }

    /// The episodes up to now: also those that are over, though the conclusions that came with them
    /// wait.
    pub(super) fn episodes(&self) -> impl DoubleEndedIterator<Item = &EpisodeRow> {
        let latest = self
            .waiting
            .as_ref()
            .map_or(&self.conclusions, |(_, conclusions)| conclusions);
        latest.episodes.iter().filter(|row| row.end_time <= self.limit)
    }

    /// The latest interval that is complete and shown.
    pub(super) fn newest(&self) -> Option<u64> {
        let first = self.first?;
        let newest = (self.complete.min(self.limit).0 / self.width).checked_sub(1)?;
        (newest >= first).then_some(newest)
    }

    /// The oldest interval that can be looked at.
    pub(super) fn oldest(&self) -> Option<u64> {
        let newest = self.newest()?;
        Some(newest.saturating_sub(MAX_INTERVALS as u64 - 1).max(self.first?))
    }

    /// Start of an interval.
    pub(super) fn begins(&self, interval: u64) -> Time {
        Time(interval.saturating_mul(self.width))
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values()
    }

    pub(super) fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(&id)
    }

    /// The flow's name for people.
    pub(super) fn key(&self, id: FlowId) -> Option<&FlowKey> {
        self.names.get(&id)
    }

    /// Flows that had packets up to this interval.
    pub(super) fn begun(&self, interval: u64) -> usize {
        self.flows().filter(|flow| flow.has_begun(interval)).count()
    }

    /// Sums of this interval over all flows: the number of flows with packets, and their sum.
    pub(super) fn sum(&self, interval: u64) -> (u64, Cell) {
        if let Some(known) = self.sums.get(&interval) {
            return *known;
        }
        let mut sum = self.others.at(interval);
        let mut active = 0;
        for flow in self.flows() {
            let cell = flow.at(interval);
            active += u64::from(cell.packets > 0);
            sum.add(&cell);
        }
        (active, sum)
    }

    /// Adds up the intervals that are complete and shown, so that drawings need not.
    fn add_up(&mut self) {
        let (Some(oldest), Some(newest)) = (self.oldest(), self.newest()) else {
            return;
        };
        self.sums.retain(|interval, _| *interval >= oldest);
        for interval in oldest..=newest {
            let sum = self.sum(interval);
            self.sums.insert(interval, sum);
        }
    }

    pub(super) fn timeline(&mut self, rows: &TimelineColumns) {
        for row in 0..rows.time.len() {
            let (Some(time), Some(flow), Some(tap)) =
                (rows.time.at(row), rows.flow_id.at(row), rows.tap.at(row))
            else {
                continue;
            };
            let number = |values: &roce_model::Values<u32>| u64::from(values.at(row).copied().unwrap_or(0));
            let large = |values: &roce_model::Values<u64>| values.at(row).copied();
            let answer = large(&rows.ack_rtt_p50_ns);
            let cell = Cell {
                packets: number(&rows.packets),
                payload: large(&rows.payload_bytes).unwrap_or(0),
                data: number(&rows.data_packets),
                ce: number(&rows.ce),
                cnp: rows.cnp.at(row).copied().map(u64::from),
                retransmitted: number(&rows.retransmitted_packets),
                missing: large(&rows.missing).unwrap_or(0),
                answer_sum: answer.unwrap_or(0),
                answer_bins: u64::from(answer.is_some()),
                answer_max: large(&rows.ack_rtt_max_ns).unwrap_or(0),
                inflight: large(&rows.inflight_bytes_max),
                senders: number(&rows.senders_to_destination),
                paused: large(&rows.pause_ns),
            };
            self.row(*time / self.width, FlowId(*flow), TapId(*tap), &cell);
        }
    }

    fn row(&mut self, interval: u64, id: FlowId, tap: TapId, cell: &Cell) {
        let first = self.first.get_or_insert(interval);
        *first = interval.min(*first);
        // A row that comes late.
        self.sums.remove(&interval);
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&id) {
            self.others.add(interval, cell);
            return;
        }
        let flow = self.flows.entry(id).or_insert_with(|| Flow {
            id,
            key: self.names.get(&id).copied(),
            taps: Vec::new(),
            events: VecDeque::new(),
            row: None,
        });
        let at = flow.taps.iter_mut().find(|(known, _)| *known == tap);
        if let Some((_, history)) = at {
            history.add(interval, cell);
        } else {
            let mut history = History::default();
            history.add(interval, cell);
            flow.taps.push((tap, history));
        }
    }

    pub(super) fn events(&mut self, rows: &EventColumns) {
        for row in 0..rows.time.len() {
            let (Some(time), Some(kind)) = (rows.time.at(row), rows.kind.at(row)) else {
                continue;
            };
            let Some(kind) = EventKind::ALL.iter().find(|known| known.name() == kind) else {
                continue;
            };
            let value = rows.value.at(row).copied();
            match kind {
                EventKind::CaptureLost | EventKind::MirrorLost => {
                    self.records_lost = self.records_lost.saturating_add(value.unwrap_or_default());
                }
                EventKind::HostEventsLost => {
                    self.host_events_lost = self.host_events_lost.saturating_add(value.unwrap_or_default());
                }
                _ => {}
            }
            let event = Event {
                time: Time(*time),
                kind: *kind,
                psn: rows.psn.at(row).copied(),
                value,
                detail: rows.detail.at(row).map(ToString::to_string).unwrap_or_default(),
            };
            let flow = rows
                .flow_id
                .at(row)
                .and_then(|id| self.flows.get_mut(&FlowId(*id)));
            let events = flow.map_or(&mut self.of_no_flow, |flow| &mut flow.events);
            if events.len() >= MAX_EVENTS {
                events.pop_front();
            }
            events.push_back(event);
        }
    }

    pub(super) fn progress(&mut self, progress: &Progress<'_>) {
        self.complete = self.complete.max(progress.complete);
        self.add_up();
        if self.flows.len() >= MAX_FLOWS
            && let Some(oldest) = self.oldest()
        {
            // Flows that nothing is kept of make room.
            self.flows
                .retain(|_, flow| flow.taps.iter().any(|(_, history)| history.end() > oldest));
        }
        // The last snapshot waits for its time.
        if let Some(snapshot) = progress.snapshot.filter(|_| self.waiting.is_none()) {
            let conclusions = Conclusions {
                anything: true,
                findings: snapshot.findings.clone(),
                sentence: String::new(),
                episodes: snapshot.episodes.clone(),
                too_many: snapshot.too_many,
                ended: false,
                rows: snapshot.flows.iter().filter(|row| row.counted).cloned().collect(),
            };
            self.waiting = Some((progress.complete + self.lead, conclusions));
        }
    }

    /// Flows are complete: for those that are kept, their last rows are shown at the end.
    pub(super) fn closed(&mut self, rows: &[FlowRow]) {
        for row in rows
            .iter()
            .filter(|row| row.counted && self.flows.contains_key(&row.flow_id))
        {
            self.last.insert(row.flow_id, row.clone());
        }
    }

    /// The end: nothing waits for later any more.
    pub(super) fn finish(&mut self, run: &RunSummary) {
        let last = run.span.map(|span| span.last);
        if let Some(last) = last {
            // The last interval is not whole; it is all there is.
            let end = (last.0 / self.width).saturating_add(1);
            self.complete = self.complete.max(Time(end.saturating_mul(self.width)));
        }
        let conclusions = Conclusions {
            anything: true,
            findings: run.findings.clone(),
            sentence: run.sentence.clone(),
            episodes: run.episodes.clone(),
            too_many: false,
            ended: true,
            rows: std::mem::take(&mut self.last).into_values().collect(),
        };
        self.waiting = Some((last.unwrap_or_default(), conclusions));
    }
}
