//! What became of the request PSNs that a tap has not, and which of those that it has were lost further on.
//!
//! The classes are those of analysis.md ("Requests, responses, holes"); the cause is what really happened to the first
//! transmission. They differ where a go-back-N run covers a PSN: it is sent again whatever had become of it.

use std::collections::{HashMap, HashSet};

use super::Names;
use crate::endpoint::low;
use crate::log::Run;
use crate::observer::Hole as SeenHole;
use crate::packet::Kind;
use crate::requester::Trigger;
use crate::run::Simulation;
use crate::scenario::ToldName;
use crate::topology::number;
use crate::truth::{Hole, HoleClass, LostDownstream, TapFlow};

/// What was found at one tap.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub holes: Vec<Hole>,
    pub downstream: Vec<LostDownstream>,
}

impl Judged {
    /// Counts what belongs to a flow.
    pub(super) fn count(&self, flow: &mut TapFlow) {
        for hole in self.holes.iter().filter(|hole| hole.flow_id == flow.flow_id) {
            flow.missing += 1;
            *match hole.class {
                HoleClass::Reordered => &mut flow.reordered,
                HoleClass::NetworkLost => &mut flow.network_lost,
                HoleClass::CaptureLost => &mut flow.capture_lost,
                HoleClass::Ambiguous => &mut flow.ambiguous,
                HoleClass::Unresolved => &mut flow.unresolved,
            } += 1;
        }
        let downstream = self.downstream.iter();
        flow.lost_downstream = downstream.filter(|lost| lost.flow_id == flow.flow_id).count() as u64;
    }
}

/// What is looked up by flow and PSN.
struct Facts<'a> {
    simulation: &'a Simulation<'a>,
    /// First transmissions that the network lost.
    lost: HashSet<(u32, u64)>,
    /// First transmissions that the tap missed.
    missed: HashSet<(u32, u64)>,
    /// Sequence NAKs that the tap recorded.
    naks: HashSet<(u32, u64)>,
    runs: HashMap<u32, Vec<&'a Run>>,
    /// The capture says itself where it lost records: with each of them everything begins anew.
    told: bool,
}

/// Judges the holes of one tap.
pub(super) fn judge(simulation: &Simulation<'_>, names: &Names, tap: usize) -> Judged {
    let facts = Facts::new(simulation, tap);
    let mut judged = Judged::default();
    for (flow, seen) in simulation.observer.taps[tap].flows.iter().enumerate() {
        let (Some(seen), Some(end)) = (seen, simulation.ends.get(flow)) else {
            continue;
        };
        let back = simulation.observer.taps[tap].flows[flow ^ 1].as_deref();
        let acked = back.map_or(0, |back| back.acked);
        for (seq, hole) in &seen.holes {
            let (class, cause, observable) = facts.class(number(flow), *seq, hole, acked);
            judged.holes.push(Hole {
                flow_id: names.flow(number(flow)),
                psn: end.first_psn.plus(low(*seq)).value(),
                time: hole.time.nanos(),
                class,
                cause,
                observable,
            });
        }
    }
    judged.holes.sort_by_key(|hole| hole.time);
    judged.downstream = downstream(simulation, names, tap);
    judged
}

impl<'a> Facts<'a> {
    fn new(simulation: &'a Simulation<'_>, tap: usize) -> Self {
        let log = &simulation.log;
        let firsts =
            |flow: u32, seq: u64, span: u32| (0..u64::from(span)).map(move |step| (flow, seq + step));
        let lost = log
            .losses
            .iter()
            .filter(|l| l.kind.is_request() && l.attempt == 0);
        let missed = simulation.observer.taps[tap].missed.iter();
        let missed = missed.filter(|m| m.kind.is_request() && m.attempt == 0);
        let naks = log.refusals.iter();
        let naks = naks.filter(|nak| nak.kind == Kind::Nak && nak.recorded >> tap & 1 != 0);
        let mut runs: HashMap<u32, Vec<&Run>> = HashMap::new();
        for run in &log.runs {
            runs.entry(run.flow).or_default().push(run);
        }
        Self {
            simulation,
            lost: lost.flat_map(|l| firsts(l.flow, l.seq, l.span)).collect(),
            missed: missed.flat_map(|m| firsts(m.flow, m.seq, m.span)).collect(),
            naks: naks.map(|nak| (nak.flow, nak.seq)).collect(),
            runs,
            told: simulation
                .scenario
                .tap
                .get(tap)
                .is_some_and(|table| table.told == ToldName::Packets),
        }
    }

    /// The class of a hole, its cause, and whether the tap's records tell the class. `acked` is what recorded
    /// acknowledgements cover.
    fn class(&self, flow: u32, seq: u64, hole: &SeenHole, acked: u64) -> (HoleClass, HoleClass, bool) {
        let key = (flow, seq);
        if let Some((time, 0)) = hole.filled {
            // Late, unless the sender had fallen back by then: it looks like a part of that run.
            let in_run = self.runs.get(&flow).is_some_and(|runs| {
                runs.iter()
                    .any(|run| run.begin <= time && time <= run.end && run.seq <= seq)
            });
            return (HoleClass::Reordered, HoleClass::Reordered, !in_run);
        }
        let cause = if self.lost.contains(&key) {
            HoleClass::NetworkLost
        } else if self.missed.contains(&key) {
            HoleClass::CaptureLost
        } else {
            HoleClass::Unresolved
        };
        let run = self.simulation.log.first_run.get(&key);
        let run = run.and_then(|run| self.simulation.log.runs.get(*run as usize));
        let Some(run) = run else {
            // Nobody sent it again.
            return match cause {
                HoleClass::CaptureLost => (cause, cause, acked > seq && !self.told),
                _ => (HoleClass::Unresolved, cause, acked <= seq),
            };
        };
        let resend_seen = hole.filled.is_some();
        if run.seq < seq {
            return (HoleClass::Ambiguous, cause, resend_seen);
        }
        let named = match run.trigger {
            Trigger::Nak => self.naks.contains(&key),
            Trigger::Timeout => resend_seen && acked <= seq,
            Trigger::ImpliedNak | Trigger::Rnr => false,
        };
        (cause, cause, named && cause == HoleClass::NetworkLost)
    }
}

/// What a tap recorded and a NAK asked for again.
fn downstream(simulation: &Simulation<'_>, names: &Names, tap: usize) -> Vec<LostDownstream> {
    let log = &simulation.log;
    let here = |mask: u64| mask >> tap & 1 != 0;
    let psn = |flow: u32, seq: u64| {
        let end = simulation.ends.get(flow as usize);
        end.map_or(0, |end| end.first_psn.plus(low(seq)).value())
    };
    let lost = log.losses.iter().filter(|loss| here(loss.recorded));
    let lost = lost.map(|loss| (loss.flow, loss.seq, loss.nak, false));
    let delayed = log.delayed.iter().filter(|delayed| here(delayed.recorded));
    let delayed = delayed.map(|delayed| (delayed.flow, delayed.seq, delayed.nak, true));
    let mut found: Vec<LostDownstream> = lost
        .chain(delayed)
        .filter_map(|(flow, seq, nak, reordered)| {
            let nak = log.refusals.get(nak? as usize)?;
            Some(LostDownstream {
                flow_id: names.flow(flow),
                psn: psn(flow, seq),
                time: nak.time.nanos(),
                reordered,
                observable: here(nak.recorded),
            })
        })
        .collect();
    found.sort_by_key(|lost| lost.time);
    found
}
