//! Parts that all of the trace's end share: the events, the arrows between causes and victims, and counts of the rest that is left out.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use foldhash::fast::RandomState;
use roce_model::{Columns, EventKind, EventRow, EventSource, FlowId, RunSummary, Time};

use super::form::Form;
use crate::moments::{Moments, event};
use crate::series::{ShownSeries, Subject};

/// Arrows to collectives.
const MAX_CALL_ARROWS: usize = 1 << 14;

/// Events, and the places of those of each flow.
#[derive(Debug, Default)]
pub(super) struct Events {
    rows: Vec<EventRow>,
    of_flow: HashMap<FlowId, Vec<usize>, RandomState>,
}

/// True of events that are drawn. The counters show CNPs; a hole says what became of a gap and its late packets.
const fn is_drawn(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Cnp | EventKind::Gap | EventKind::ResponseGap | EventKind::Late | EventKind::Paired
    )
}

impl Events {
    /// Those that were kept, in the order of time.
    pub(super) fn from_moments(moments: &Moments) -> Self {
        let columns = moments.columns();
        let mut events = Self::default();
        for row in 0..columns.len() {
            let row = event(&columns, row);
            if !is_drawn(row.kind) {
                continue;
            }
            if let Some(flow) = row.flow_id {
                events.of_flow.entry(flow).or_default().push(events.rows.len());
            }
            events.rows.push(row);
        }
        events
    }

    /// Flows that have any.
    pub(super) fn flows(&self) -> impl Iterator<Item = FlowId> {
        self.of_flow.keys().copied()
    }

    /// Those of a flow that is shown, with their places.
    pub(super) fn of(&self, shown: &ShownSeries) -> impl Iterator<Item = (usize, &EventRow)> {
        let places = match shown.subject {
            Subject::Flow(flow) => self.of_flow.get(&flow),
            Subject::Pair(..) | Subject::Others => None,
        };
        let tap = shown.tap;
        places
            .into_iter()
            .flatten()
            .map(|place| (*place, &self.rows[*place]))
            .filter(move |(_, row)| row.tap == tap)
    }

    /// Those without a flow, of a source.
    pub(super) fn without_flow(&self, is_wanted: fn(EventSource) -> bool) -> impl Iterator<Item = &EventRow> {
        let rows = self.rows.iter().filter(|row| row.flow_id.is_none());
        rows.filter(move |row| is_wanted(row.source))
    }

    /// Number of events with a flow.
    pub(super) fn with_flow(&self) -> usize {
        self.of_flow.values().map(Vec::len).sum()
    }
}

/// The arrows of the trace, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Arrows {
    /// From the episodes, by their places.
    pub(super) from_episode: HashMap<usize, Vec<u64>, RandomState>,
    /// To the flows that an episode slowed: its place, and the arrow.
    pub(super) slowed: HashMap<FlowId, Vec<(usize, u64)>, RandomState>,
    /// To the outliers among steps, by their places: the episode's place, and the arrow.
    pub(super) steps: HashMap<usize, (usize, u64), RandomState>,
    /// To collectives of merged traces, by their places.
    pub(super) calls: HashMap<usize, u64, RandomState>,
    /// From NAKs, by the event's place.
    pub(super) from_event: HashMap<usize, Vec<u64>, RandomState>,
    /// To retransmission runs, by the event's place.
    pub(super) into_event: HashMap<usize, u64, RandomState>,
}

/// Flows that an episode names, in its order.
pub(super) fn flows_named(names: &str) -> impl Iterator<Item = FlowId> {
    names
        .split_ascii_whitespace()
        .filter_map(|name| u64::from_str_radix(name, 16).ok())
        .map(FlowId)
}

impl Arrows {
    pub(super) fn new(
        run: &RunSummary,
        shown: &[ShownSeries],
        events: &Events,
        form: &mut Form<impl Write>,
    ) -> Self {
        let mut arrows = Self::default();
        let flows = shown.iter().filter_map(|shown| match shown.subject {
            Subject::Flow(flow) => Some((flow, shown)),
            Subject::Pair(..) | Subject::Others => None,
        });
        let flows: HashMap<FlowId, &ShownSeries, RandomState> = flows.collect();
        arrows.episodes(run, &flows.keys().copied().collect(), form);
        arrows.runs(&flows, events, form);
        arrows
    }

    fn episodes(
        &mut self,
        run: &RunSummary,
        flows: &HashSet<FlowId, RandomState>,
        form: &mut Form<impl Write>,
    ) {
        let mut places: HashMap<u32, usize, RandomState> = HashMap::default();
        for (place, episode) in run.episodes.iter().enumerate() {
            places.insert(episode.episode, place);
            for flow in flows_named(&episode.flow_ids).filter(|flow| flows.contains(flow)) {
                let arrow = form.arrow();
                self.from_episode.entry(place).or_default().push(arrow);
                self.slowed.entry(flow).or_default().push((place, arrow));
            }
        }
        for (step, row) in run.steps.iter().enumerate() {
            let episode = row.episode.and_then(|episode| places.get(&episode));
            if let Some(place) = episode.filter(|_| row.outlier) {
                let arrow = form.arrow();
                self.from_episode.entry(*place).or_default().push(arrow);
                self.steps.insert(step, (*place, arrow));
            }
        }
        // Those that were slowed come first where there are more than have room.
        let (slowed, others): (Vec<_>, Vec<_>) = run
            .collective_calls
            .iter()
            .enumerate()
            .partition(|(_, call)| call.is_slowed);
        let with_episode = slowed.into_iter().chain(others).filter_map(|(call, row)| {
            let place = row.episode.and_then(|episode| places.get(&episode))?;
            Some((call, *place))
        });
        for (call, place) in with_episode.take(MAX_CALL_ARROWS) {
            let arrow = form.arrow();
            self.from_episode.entry(place).or_default().push(arrow);
            self.calls.insert(call, arrow);
        }
    }

    /// From NAKs of either direction to the retransmission runs that answer them.
    fn runs(
        &mut self,
        flows: &HashMap<FlowId, &ShownSeries, RandomState>,
        events: &Events,
        form: &mut Form<impl Write>,
    ) {
        let mut naks = Naks::default();
        for (flow, shown) in flows {
            for (place, row) in events.of(shown) {
                naks.add(*flow, place, row);
            }
        }
        // In the order of flows, so that numbers do not depend on the order of a table.
        let mut ordered: Vec<_> = flows.iter().collect();
        ordered.sort_by_key(|(flow, _)| **flow);
        for (flow, shown) in ordered {
            let carriers = [shown.series.peer, Some(*flow)];
            let mut last_run = Time(0);
            for (place, run) in events.of(shown) {
                if run.kind != EventKind::RetransmissionRun {
                    continue;
                }
                let mut carriers = carriers.into_iter().flatten();
                if let Some(nak) =
                    carriers.find_map(|carrier| naks.cause(carrier, run, last_run, &events.rows))
                {
                    let arrow = form.arrow();
                    self.from_event.entry(nak).or_default().push(arrow);
                    self.into_event.insert(place, arrow);
                }
                last_run = run.time;
            }
        }
    }
}

/// Places of NAKs in the order of time, by the flow that carries them and their kind.
#[derive(Debug, Default)]
struct Naks {
    of_psn: HashMap<(FlowId, EventKind, Option<u32>), Vec<usize>, RandomState>,
    all: HashMap<(FlowId, EventKind), Vec<usize>, RandomState>,
}

impl Naks {
    fn add(&mut self, flow: FlowId, place: usize, row: &EventRow) {
        if matches!(row.kind, EventKind::Nak | EventKind::RnrNak) {
            let of_psn = self.of_psn.entry((flow, row.kind, row.psn)).or_default();
            of_psn.push(place);
            self.all.entry((flow, row.kind)).or_default().push(place);
        }
    }

    /// The NAK that a run answers: the last one of the PSN with which the run begins. Where there is none, the first retransmissions were lost
    /// before this tap: the last NAK since the run before.
    fn cause(&self, carrier: FlowId, run: &EventRow, last_run: Time, rows: &[EventRow]) -> Option<usize> {
        let kind = match run.detail.as_deref() {
            Some("nak") => EventKind::Nak,
            Some("rnr") => EventKind::RnrNak,
            _ => return None,
        };
        let before = |places: &Vec<usize>| {
            let later = places.partition_point(|nak| rows[*nak].time < run.time);
            places.get(later.checked_sub(1)?).copied()
        };
        let of_psn = self.of_psn.get(&(carrier, kind, run.psn)).and_then(before);
        of_psn.or_else(|| {
            let last = self.all.get(&(carrier, kind)).and_then(before)?;
            (rows[last].time > last_run).then_some(last)
        })
    }
}

/// Numbers of what is not in the trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeftOut {
    /// Slices without a free lane, or beyond the tracks for their kind.
    pub(super) slices: u64,
    /// Events of flows without a track, or at another tap.
    pub(super) events: u64,
}
