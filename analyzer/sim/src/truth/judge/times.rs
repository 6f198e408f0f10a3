//! Divides the lives of flows by the activities of their senders.
//!
//! Marks say what an end does. Over them lie silences that a timeout ended and pauses of the host's port, and each wait for an answer is cut
//! at the time at which the answer is due in a network without queues.

use std::collections::BTreeMap;

use super::names::Names;
use crate::engine::events::PortId;
use crate::engine::run::Simulation;
use crate::network::topology::{LINK_CLASS, number};
use crate::truth::{FlowTimes, OpenTime, TimeState};
use crate::units::Picos;
use crate::workload::activity::{Activity, Mark};
use crate::workload::requester::Trigger;

/// Spans of time in nanoseconds, sorted, without overlaps.
type Spans = Vec<(u64, u64)>;

/// A state, and the others that fit as well.
type StateChoice = (TimeState, &'static [TimeState]);

/// The times of all flows that send requests, at each tap.
pub(super) fn times(simulation: &Simulation<'_>, names: &Names) -> Vec<FlowTimes> {
    let ends = 0..simulation.ends.len();
    let flows: Vec<Option<SenderSpans>> = ends.map(|end| SenderSpans::new(simulation, end)).collect();
    let mut rows: Vec<FlowTimes> = Vec::new();
    for (tap, state) in simulation.observer.taps.iter().enumerate() {
        let first = rows.len();
        for (end, seen) in state.flows.iter().enumerate() {
            let (Some(seen), Some(Some(flow))) =
                (seen.as_deref().filter(|seen| seen.packets > 0), flows.get(end))
            else {
                continue;
            };
            let life = (seen.first_time.nanos(), seen.last_time.nanos());
            let row = flow.divide(simulation, end, life, (&names.taps[tap], &names.flows[end]));
            match rows[first..]
                .iter_mut()
                .find(|other| other.flow_id == row.flow_id)
            {
                Some(other) => join(other, &row),
                None => rows.push(row),
            }
        }
    }
    rows
}

/// Adds the life of a later connection with the same numbers. Between the two lives nothing is sent.
fn join(row: &mut FlowTimes, later: &FlowTimes) {
    let idle = later.first_time.saturating_sub(row.last_time);
    for (state, ns) in &later.states {
        *row.states.entry(*state).or_default() += ns;
    }
    *row.states.entry(TimeState::Idle).or_default() += idle;
    row.open.extend_from_slice(&later.open);
    row.last_time = later.last_time;
}

/// Silences and pauses that lie over the marks of an end.
struct SenderSpans {
    timeouts: Spans,
    pauses: Spans,
}

impl SenderSpans {
    fn new(simulation: &Simulation<'_>, end: usize) -> Option<Self> {
        let own = &simulation.ends[end];
        if !own.activities.requests {
            return None;
        }
        let runs = simulation.log.runs.iter();
        let runs = runs.filter(|run| run.flow == number(end) && run.trigger == Trigger::Timeout);
        let timeouts = runs.map(|run| (run.silent_since.nanos(), run.begin.nanos()));
        let port = simulation.topology.hosts[own.host as usize].port;
        Some(Self {
            timeouts: union(timeouts.collect()),
            pauses: pauses(simulation, port, own.priority()),
        })
    }

    /// Divides a life.
    fn divide(
        &self,
        simulation: &Simulation<'_>,
        end: usize,
        (first, last): (u64, u64),
        (tap, flow): (&str, &str),
    ) -> FlowTimes {
        let line = &simulation.ends[end].activities;
        let is_read = simulation
            .table(end / 2)
            .is_some_and(|table| table.op == crate::scenario::Operation::Read);
        let mut states: BTreeMap<TimeState, u64> =
            TimeState::ALL.into_iter().map(|state| (state, 0)).collect();
        let mut open: BTreeMap<StateChoice, u64> = BTreeMap::new();
        let mut add = |meaning: StateChoice, (from, until): (u64, u64)| {
            *states.entry(meaning.0).or_default() += until - from;
            if !meaning.1.is_empty() && until > from {
                *open.entry(meaning).or_default() += until - from;
            }
        };
        let idle = Mark {
            time: Picos::ZERO,
            activity: Activity::Idle,
            due: Picos::NEVER,
            outstanding: 0,
        };
        let marks = line.marks();
        let begins = marks
            .partition_point(|mark| mark.time.nanos() <= first)
            .saturating_sub(1);
        let before =
            std::iter::once(idle).filter(|_| marks.first().is_none_or(|mark| mark.time.nanos() > first));
        let mut marks = before
            .chain(marks[begins.min(marks.len())..].iter().copied())
            .peekable();
        while let Some(mark) = marks.next() {
            let from = mark.time.nanos().max(first);
            let until = marks.peek().map_or(last, |next| next.time.nanos()).min(last);
            if from >= last {
                break;
            }
            let due = mark.due.nanos().clamp(from, until.max(from));
            let full = mark.outstanding * 10 >= line.most * 9;
            for (piece, late) in [((from, due), false), ((due, until), true)] {
                for (piece, silent) in cut(&self.timeouts, piece) {
                    if silent {
                        add((TimeState::Timeout, &[]), piece);
                        continue;
                    }
                    for (piece, paused) in cut(&self.pauses, piece) {
                        let meaning = match (paused, is_read) {
                            (true, _) => meaning_in_pause(mark.activity),
                            (false, true) => meaning_of_read(mark.activity, late, full),
                            (false, false) => meaning(mark.activity, late, full),
                        };
                        add(meaning, piece);
                    }
                }
            }
        }
        FlowTimes {
            tap: tap.to_owned(),
            flow_id: flow.to_owned(),
            first_time: first,
            last_time: last,
            states,
            open: open
                .into_iter()
                .map(|((state, also), ns)| OpenTime {
                    state,
                    also: also.to_vec(),
                    ns,
                })
                .collect(),
        }
    }
}

/// The state of an activity while the port may send. `late`: after the answer was due; `full`: as much was outstanding as ever.
fn meaning(activity: Activity, late: bool, full: bool) -> StateChoice {
    use TimeState as S;
    match activity {
        Activity::NotReady => (S::Rnr, &[]),
        Activity::Recovers => (S::Recovering, &[]),
        Activity::Slowed => (S::Slowed, &[]),
        // A sender that sends while an answer is late waits for nothing; the queue that holds the answer up is the network's.
        Activity::NearlyFull if late => (S::Sending, &[S::Slowed, S::Network]),
        Activity::NearlyFull => (S::Sending, &[S::Slowed]),
        Activity::Sends if late => (S::Sending, &[S::Network]),
        Activity::Sends => (S::Sending, &[]),
        Activity::Window => (S::Window, &[]),
        // Within a round trip nothing tells whether the application waits for the answer or has no more.
        Activity::Messages if late => (S::Window, &[S::Network]),
        Activity::Messages => (S::Window, &[S::Sending, S::Network, S::Idle]),
        Activity::Flight if !late => (S::Idle, &[S::Sending, S::Window, S::Network]),
        // From the packets alone as much as ever was outstanding is a window.
        Activity::Flight if full => (S::Network, &[S::Window]),
        Activity::Flight => (S::Network, &[]),
        Activity::AwaitsInput => (S::Sender, &[S::Idle]),
        Activity::Idle => (S::Idle, &[]),
    }
}

/// The state of an activity while the port is paused. A sender whose data is outstanding does not show whether it would send.
fn meaning_in_pause(activity: Activity) -> StateChoice {
    use TimeState as S;
    match activity {
        Activity::NotReady => (S::Rnr, &[]),
        Activity::Recovers | Activity::Slowed | Activity::NearlyFull | Activity::Sends => (S::Paused, &[]),
        Activity::Window => (S::Window, &[S::Paused]),
        Activity::Messages => (S::Window, &[S::Paused, S::Network]),
        Activity::Flight => (S::Network, &[S::Paused, S::Window, S::Idle]),
        Activity::AwaitsInput => (S::Sender, &[S::Paused, S::Idle]),
        Activity::Idle => (S::Idle, &[S::Paused]),
    }
}

/// The state of an activity that READ responses on their way are a part of: these are the transfer itself.
fn meaning_of_read(activity: Activity, late: bool, full: bool) -> StateChoice {
    use TimeState as S;
    match activity {
        Activity::Window => (S::Window, &[S::Sending, S::Network]),
        other => meaning(other, late, full),
    }
}

/// Times in which a port must not send a priority.
fn pauses(simulation: &Simulation<'_>, port: PortId, priority: u8) -> Spans {
    let all = simulation.log.pauses.iter();
    let own =
        all.filter(|pause| pause.port == port && (pause.class == priority || pause.class == LINK_CLASS));
    let spans = own.map(|pause| {
        let end = pause.end.unwrap_or(simulation.now);
        (pause.begin.nanos(), end.nanos())
    });
    union(spans.collect())
}

fn union(mut spans: Spans) -> Spans {
    spans.sort_unstable();
    let mut joined: Spans = Vec::new();
    for (begin, end) in spans {
        match joined.last_mut().filter(|last| last.1 >= begin) {
            Some(last) => last.1 = last.1.max(end),
            None => joined.push((begin, end)),
        }
    }
    joined
}

/// Cuts a span into pieces inside and outside of others.
fn cut(spans: &Spans, (from, until): (u64, u64)) -> Vec<((u64, u64), bool)> {
    let mut pieces = Vec::new();
    let mut at = from;
    let first = spans.partition_point(|span| span.1 <= from);
    for &(begin, end) in spans[first..].iter().take_while(|span| span.0 < until) {
        let (begin, end) = (begin.max(at), end.min(until));
        if begin > at {
            pieces.push(((at, begin), false));
        }
        if end > begin {
            pieces.push(((begin, end), true));
        }
        at = at.max(end);
    }
    if until > at {
        pieces.push(((at, until), false));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_span_add_up() {
        let spans = union(vec![(5, 9), (20, 30), (8, 12)]);
        assert_eq!(spans, [(5, 12), (20, 30)]);
        let pieces = cut(&spans, (10, 25));
        assert_eq!(pieces, [((10, 12), true), ((12, 20), false), ((20, 25), true)]);
        assert_eq!(cut(&spans, (12, 20)), [((12, 20), false)]);
        assert!(cut(&spans, (7, 7)).is_empty());
    }
}
