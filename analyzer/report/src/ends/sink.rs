//! The sink: which flows can be the connection of an error, and what is kept of them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use roce_model::{
    Address, Columns as _, EventColumns, EventKind, FlowId, FlowKey, FlowRow, JobError, RunSummary, Sink,
    SinkError, TapId, Time,
};

use super::end::{End, FITS, end};
use super::followed::{Event, FollowedFlow, Last};

/// Flows between the addresses of errors that are followed: some 25 MB, and up to 200 MB where each begins again many times.
const MAX_FLOWS: usize = 1 << 14;
/// Rows that are kept of a flow: those of its latest epochs, and of several taps.
const MAX_ROWS: usize = 8;
/// Latest events that are kept of a flow.
const MAX_EVENTS: usize = 64;
/// Errors that are explained.
pub const MAX_ERRORS: usize = 64;
/// Connections that are shown for an error.
const MAX_SHOWN: usize = 3;
/// Addresses of which the last packet is kept.
const MAX_ADDRESSES: usize = 1 << 16;

/// Follows the connections of errors.
#[derive(Debug, Default)]
pub struct Ends {
    errors: Vec<JobError>,
    flows: HashMap<FlowId, FollowedFlow>,
    last: Last,
    pub(super) left_out: u64,
    /// The first frame of the capture.
    pub(super) start: Time,
    pub(super) explained: Vec<ExplainedError>,
}

/// An error, and the connections that it can be about.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedError {
    /// The error.
    pub error: JobError,
    /// The connections, those that fit its status best first.
    pub ends: Vec<End>,
    /// Connections that fit as well, or worse, and are not among `ends`.
    pub others: usize,
    /// How the connections were found.
    pub by: By,
}

/// The flow from the side that reports an error, and that of its answers.
type ConnectionKeys = (FlowKey, Option<FlowKey>);

/// Evidence by which a connection was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The number of the queue pair.
    QueuePair,
    /// Both addresses.
    Addresses,
    /// One address.
    Address,
    /// Nothing: the line names neither.
    Nothing,
}

impl Ends {
    /// Follows the connections of `errors`.
    pub fn new(errors: impl IntoIterator<Item = JobError>) -> Self {
        Self {
            errors: errors.into_iter().take(MAX_ERRORS).collect(),
            ..Self::default()
        }
    }

    /// The errors and their connections, once the run is over.
    pub fn explained(&self) -> &[ExplainedError] {
        &self.explained
    }

    /// True if a flow can be one direction of the connection of some error.
    fn is_wanted(&self, key: &FlowKey) -> bool {
        self.errors.iter().any(|error| wanted(error, key))
    }

    /// Connections that can be that of an error.
    fn connections(&self, error: &JobError) -> (By, Vec<ConnectionKeys>) {
        let fits = |followed: &&FollowedFlow| wanted(error, &followed.key);
        let mut flows: Vec<&FollowedFlow> = self.flows.values().filter(fits).collect();
        flows.sort_by_key(|followed| followed.key.id());
        let mut found = Vec::new();
        for followed in &flows {
            let peer = followed
                .rows
                .values()
                .find_map(|row| row.peer_flow_id)
                .and_then(|peer| self.flows.get(&peer));
            // The side that wrote the line is the sender of the first direction.
            let to = followed.key.destination_qpn.value();
            let is_from_reporter = match (error.local, error.remote) {
                (Some(local), _) => followed.key.source == local,
                (None, Some(remote)) => followed.key.destination == remote,
                (None, None) if error.queue_pair.is_some() => error.queue_pair != Some(to),
                (None, None) => error.remote_queue_pair.is_none_or(|number| number == to),
            };
            match (is_from_reporter, peer) {
                (true, peer) => found.push((followed.key, peer.map(|peer| peer.key))),
                (false, None) => found.push((reversed(&followed.key), Some(followed.key))),
                // Its other direction is among the flows, too.
                (false, Some(_)) => (),
            }
        }
        let numbered = of_queue_pair(error, &found);
        if !numbered.is_empty() {
            return (By::QueuePair, numbered);
        }
        let by = match (error.local, error.remote) {
            (Some(_), Some(_)) => By::Addresses,
            (None, None) => By::Nothing,
            _ => By::Address,
        };
        // The out-of-band address counts where packets have it, too.
        let to_peer = found
            .iter()
            .filter(|(sent, _)| error.remote.is_none() && error.peer == Some(sent.destination));
        let to_peer: Vec<_> = to_peer.copied().collect();
        match by {
            By::Address | By::Nothing if !to_peer.is_empty() => (By::Address, to_peer),
            _ => (by, found),
        }
    }

    fn explain(&self, error: &JobError, run: &RunSummary) -> ExplainedError {
        let (by, connections) = self.connections(error);
        let mut ends: Vec<End> = connections
            .iter()
            .filter_map(|(sent, answers)| {
                let (sent, answers) = (
                    self.flows.get(&sent.id()),
                    answers.and_then(|key| self.flows.get(&key.id())),
                );
                end(error, sent, answers, &self.last, run)
            })
            .collect();
        // A line that names neither end is about a connection that ended so, or about none of this capture.
        if by == By::Nothing {
            ends.retain(|end| end.fit == FITS);
        }
        ends.sort_by(|one, other| {
            other
                .fit
                .cmp(&one.fit)
                .then(other.last_time.cmp(&one.last_time))
                .then(one.name.cmp(&other.name))
        });
        let others = ends.len().saturating_sub(MAX_SHOWN);
        ends.truncate(MAX_SHOWN);
        ExplainedError {
            error: error.clone(),
            ends,
            others,
            by,
        }
    }
}

/// The connections with the queue pairs that an error names: the own one, or else that of the other side.
fn of_queue_pair(error: &JobError, found: &[ConnectionKeys]) -> Vec<ConnectionKeys> {
    let own = |answers: Option<FlowKey>| {
        answers.is_some_and(|answers| Some(answers.destination_qpn.value()) == error.queue_pair)
    };
    let numbered: Vec<_> = found
        .iter()
        .filter(|(_, answers)| own(*answers))
        .copied()
        .collect();
    if !numbered.is_empty() {
        return numbered;
    }
    let other = |sent: &FlowKey| Some(sent.destination_qpn.value()) == error.remote_queue_pair;
    found.iter().filter(|(sent, _)| other(sent)).copied().collect()
}

/// The key of the other direction, whose queue pair is not known.
fn reversed(key: &FlowKey) -> FlowKey {
    FlowKey {
        source: key.destination,
        destination: key.source,
        ..*key
    }
}

/// True if a flow can be one direction of the connection of an error.
fn wanted(error: &JobError, key: &FlowKey) -> bool {
    let ends = [key.source, key.destination];
    let has = |address: Option<Address>| address.is_none_or(|address| ends.contains(&address));
    has(error.local) && has(error.remote)
}

impl Sink for Ends {
    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        for key in keys {
            if !self.is_wanted(key) {
                continue;
            }
            if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key.id()) {
                self.left_out += 1;
                continue;
            }
            self.flows.entry(key.id()).or_insert_with(|| FollowedFlow {
                key: *key,
                rows: BTreeMap::new(),
                events: VecDeque::new(),
            });
        }
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for at in 0..rows.len() {
            let Some(flow) = rows
                .flow_id
                .at(at)
                .and_then(|id| self.flows.get_mut(&FlowId(*id)))
            else {
                continue;
            };
            let kind = rows.kind.at(at).map_or("", |kind| kind.as_ref());
            let known = EventKind::ALL.iter().find(|known| known.name() == kind);
            let wanted = [
                EventKind::RetransmissionRun,
                EventKind::Nak,
                EventKind::RnrNak,
                EventKind::Stall,
                EventKind::Gap,
                EventKind::LostDownstream,
            ];
            let Some(kind) = known.filter(|kind| wanted.contains(kind)) else {
                continue;
            };
            if flow.events.len() >= MAX_EVENTS {
                flow.events.pop_front();
            }
            let event = Event {
                time: Time(rows.time.at(at).copied().unwrap_or_default()),
                kind: kind.name(),
                value: rows.value.at(at).copied(),
                detail: rows.detail.at(at).map(ToString::to_string),
            };
            let tap = TapId(rows.tap.at(at).copied().unwrap_or_default());
            flow.events.push_back((tap, event));
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            if let Some(flow) = self.flows.get_mut(&row.flow_id) {
                flow.rows.insert((row.tap, row.epoch), row.clone());
                if flow.rows.len() > MAX_ROWS {
                    flow.rows.pop_first();
                }
            }
            let key = (row.tap, row.source);
            if self.last.len() < MAX_ADDRESSES || self.last.contains_key(&key) {
                // A connection has one flow from an address: of two flows one is of another connection.
                let last = self.last.entry(key).or_default();
                let known = last.iter().find(|(_, flow)| *flow == row.flow_id);
                let time = known.map_or(row.last_time, |(time, _)| row.last_time.max(*time));
                last.retain(|(_, flow)| *flow != row.flow_id);
                last.push((time, row.flow_id));
                last.sort_unstable();
                if last.len() > 2 {
                    last.remove(0);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let errors = std::mem::take(&mut self.errors);
        self.start = run.zero();
        self.explained = errors.iter().map(|error| self.explain(error, run)).collect();
        self.errors = errors;
        Ok(())
    }
}
