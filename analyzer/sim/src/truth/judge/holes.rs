//! Classes of the request PSNs that a tap lacks, and of those that it has and that were lost further on.
//!
//! The cause is the real fate of the first transmission, and the class is the one that an analysis can
//! know. They differ where a go-back-N run covers a PSN: it is retransmitted in any case.

use std::collections::{HashMap, HashSet};

use super::names::Names;
use crate::engine::run::Simulation;
use crate::network::packet::Kind;
use crate::network::topology::number;
use crate::record::observer::{Hole as SeenHole, RunSeen};
use crate::truth::{Hole, HoleClass, LostDownstream, TapFlow};
use crate::units::Picos;
use crate::workload::endpoint::low;
use crate::workload::requester::Trigger;

/// Time for which a packet may still come after a NAK that names it: a megabyte of queue on its path takes 80 us at 100 Gbit/s. Records
/// that end before that, and contain neither the packet nor its retransmission, are the same whether it was lost or came later: receivers
/// that take packets in order send the same NAK for both.
const MAY_STILL_ARRIVE: Picos = Picos::from_nanos(100_000);

/// Results at one tap.
#[derive(Debug, Default)]
pub(super) struct JudgedHoles {
    pub holes: Vec<Hole>,
    pub downstream: Vec<LostDownstream>,
}

impl JudgedHoles {
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

/// PSNs that were jumped over at once, as far as they have been looked at.
#[derive(Clone, Copy, Default)]
struct Jump {
    time: Picos,
    first: u64,
    /// After the last.
    next: u64,
    /// The first packet of theirs in a run that started before them, and the run's place in the log.
    overrun: Option<(Picos, u32)>,
}

impl Jump {
    fn filled_by(&mut self, hole: &SeenHole, simulation: &Simulation<'_>) {
        let Some(filled) = hole.filled.filter(|filled| filled.attempt > 0) else {
            return;
        };
        let run = simulation.log.runs.get(filled.run as usize);
        let began_before = run.is_some_and(|run| run.seq < self.first);
        if began_before && self.overrun.is_none_or(|(time, _)| filled.time < time) {
            self.overrun = Some((filled.time, filled.run));
        }
    }
}

/// Facts that are looked up by flow and PSN.
struct Facts<'a> {
    simulation: &'a Simulation<'a>,
    /// First transmissions that the network lost.
    lost: HashSet<(u32, u64)>,
    /// First transmissions that the tap missed.
    missed: HashSet<(u32, u64)>,
    /// PSNs of READ requests in both sets, but for the first of each request.
    inner: HashSet<(u32, u64)>,
    /// READs of one response: without a path MTU nothing shows that one is missing. READs whose length is cut off.
    short_reads: HashSet<(u32, u64)>,
    /// Sequence NAKs that the tap recorded, by flow: when they were sent, and their PSN.
    naks: HashMap<u32, Vec<(Picos, u64)>>,
    /// The first packet that the tap recorded of a run.
    begun: HashMap<u32, u64>,
    /// The runs that the tap recorded packets of, by flow: where each began, and what was seen of it.
    runs: HashMap<u32, Vec<(u64, RunSeen)>>,
    /// The capture says itself where it lost records: with each of them everything starts again.
    losses_reported: bool,
    /// Time of the tap's last record.
    end: Picos,
}

/// Judges the holes of one tap.
pub(super) fn judge(simulation: &Simulation<'_>, names: &Names, tap: usize) -> JudgedHoles {
    let facts = Facts::new(simulation, tap);
    let mut judged = JudgedHoles::default();
    for (flow, seen) in simulation.observer.taps[tap].flows.iter().enumerate() {
        let (Some(seen), Some(end)) = (seen, simulation.ends.get(flow)) else {
            continue;
        };
        let back = simulation.observer.taps[tap].flows[flow ^ 1].as_deref();
        let acked = back.map_or(0, |back| back.acked);
        // Without the other direction, only late packets are known.
        let paired = super::pairs::is_paired(simulation, tap, number(flow), Picos::NEVER);
        let restarts: Vec<Picos> = super::pairs::restarts(simulation, tap, number(flow)).collect();
        let mut jump = Jump::default();
        for (seq, hole) in &seen.holes {
            if (jump.time, jump.next) != (hole.time, *seq) {
                jump = Jump {
                    time: hole.time,
                    first: *seq,
                    ..Jump::default()
                };
            }
            jump.next = seq + 1;
            jump.filled_by(hole, simulation);
            // Holes are forgotten where everything starts again.
            let settled = hole.filled.map_or(Picos::NEVER, |filled| filled.time);
            let forgotten = restarts.iter().any(|time| (hole.time..=settled).contains(time));
            let (class, cause, observable) = facts.class(number(flow), *seq, &jump, hole, acked);
            judged.holes.push(Hole {
                flow_id: names.flow(number(flow)),
                psn: end.first_psn.plus(low(*seq)).value(),
                time: hole.time.nanos(),
                class,
                cause,
                continues: facts.continues(number(flow), *seq, hole),
                observable: observable && (paired || class == HoleClass::Reordered) && !forgotten,
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
        let cuts_lengths = simulation
            .scenario
            .tap
            .get(tap)
            .is_some_and(|table| super::pairs::cuts_reth(simulation, table));
        let short_reads = missed
            .clone()
            .filter(|m| m.kind == Kind::ReadRequest && (m.span == 1 || cuts_lengths));
        let missed = missed.filter(|m| m.kind.is_request() && m.attempt == 0);
        let recorded = log.refusals.iter();
        let recorded = recorded.filter(|nak| nak.kind == Kind::Nak && nak.recorded >> tap & 1 != 0);
        let mut naks: HashMap<u32, Vec<(Picos, u64)>> = HashMap::new();
        for nak in recorded {
            naks.entry(nak.flow).or_default().push((nak.time, nak.seq));
        }
        let flows = simulation.observer.taps[tap].flows.iter().flatten();
        let begun = flows.flat_map(|seen| &seen.runs);
        let mut runs: HashMap<u32, Vec<(u64, RunSeen)>> = HashMap::new();
        for seen in begun.clone() {
            if let Some(run) = log.runs.get(seen.run as usize) {
                runs.entry(run.flow).or_default().push((run.seq, *seen));
            }
        }
        let inner_of = |flow: u32, seq: u64, span: u32| firsts(flow, seq, span).skip(1);
        let inner = lost
            .clone()
            .flat_map(|l| inner_of(l.flow, l.seq, l.span))
            .chain(missed.clone().flat_map(|m| inner_of(m.flow, m.seq, m.span)));
        Self {
            simulation,
            inner: inner.collect(),
            lost: lost.flat_map(|l| firsts(l.flow, l.seq, l.span)).collect(),
            missed: missed.flat_map(|m| firsts(m.flow, m.seq, m.span)).collect(),
            short_reads: short_reads.map(|m| (m.flow, m.seq)).collect(),
            naks,
            begun: begun.map(|run| (run.run, run.seq)).collect(),
            runs,
            losses_reported: simulation
                .scenario
                .tap
                .get(tap)
                .is_some_and(super::pairs::tells_losses),
            end: simulation.observer.taps[tap]
                .flows
                .iter()
                .flatten()
                .map(|seen| seen.last_time)
                .max()
                .unwrap_or_default(),
        }
    }

    /// True if a PSN belongs to the request of the PSN before.
    fn continues(&self, flow: u32, seq: u64, hole: &SeenHole) -> bool {
        match hole.filled.filter(|filled| filled.attempt == 0) {
            Some(late) => late.first != seq,
            None => self.inner.contains(&(flow, seq)),
        }
    }

    /// Cause of the loss of a PSN's first transmission.
    fn cause(&self, key: &(u32, u64)) -> HoleClass {
        if self.lost.contains(key) {
            HoleClass::NetworkLost
        } else if self.missed.contains(key) {
            HoleClass::CaptureLost
        } else {
            HoleClass::Unresolved
        }
    }

    /// The class of a missing PSN, its cause, and whether the tap's records tell the class. `jump` is known up to this PSN;
    /// `acked` is what recorded acknowledgements cover.
    fn class(
        &self,
        flow: u32,
        seq: u64,
        jump: &Jump,
        hole: &SeenHole,
        acked: u64,
    ) -> (HoleClass, HoleClass, bool) {
        let key = (flow, seq);
        if let Some(filled) = hole.filled.filter(|filled| filled.attempt == 0) {
            // Late, unless packets of a run had come by then: it looks like one of them.
            let runs = self.runs.get(&flow).into_iter().flatten();
            let in_run = runs
                .filter(|(first, _)| *first <= seq)
                .any(|(_, seen)| (seen.time..=seen.last).contains(&filled.time));
            // Behind a NAK that names it, a packet of several paths looks like its retransmission.
            let may_be_retransmission =
                self.simulation.spray.is_some() && self.named(flow, jump, seq, hole).is_some();
            return (
                HoleClass::Reordered,
                HoleClass::Reordered,
                !in_run && !may_be_retransmission,
            );
        }
        let cause = self.cause(&key);
        // A NAK shows that the receiver lacks every missing PSN from its own on.
        if let Some((time, named)) = self.named(flow, jump, seq, hole) {
            let class = self.cause(&(flow, named));
            let may_still_come = hole.filled.is_none() && time.plus(MAY_STILL_ARRIVE) > self.end;
            let shows = class == HoleClass::NetworkLost && !may_still_come;
            return (class, cause, shows);
        }
        // A run whose begin was not recorded may look like a run of its own.
        let is_seen = |run: &u32| self.begun.get(run).is_some_and(|first| *first < jump.first);
        if let Some((_, run)) = jump.overrun {
            return (HoleClass::Ambiguous, cause, is_seen(&run));
        }
        let log = &self.simulation.log;
        let number = match hole.filled {
            Some(filled) => Some(filled.run),
            None => log.first_run.get(&key).copied(),
        };
        let Some(run) = number.and_then(|run| log.runs.get(run as usize)) else {
            // Nobody sent it again.
            return match cause {
                HoleClass::CaptureLost => {
                    let shows = acked > seq && !self.losses_reported && !self.short_reads.contains(&key);
                    (cause, cause, shows)
                }
                _ => (HoleClass::Unresolved, cause, acked <= seq),
            };
        };
        if run.seq < jump.first {
            return (HoleClass::Ambiguous, cause, false);
        }
        // A sender that falls back into a jump after a timeout has no acknowledgement of anything
        // missing from there on.
        let class = self.cause(&(flow, run.seq));
        let is_shown = run.trigger == Trigger::Timeout
            && hole.filled.is_some_and(|filled| filled.acked <= run.seq)
            && class == HoleClass::NetworkLost;
        (class, cause, is_shown)
    }

    /// The PSN up to `seq` of a jump that a recorded NAK named, before anything else decided its class, and when the NAK was sent.
    fn named(&self, flow: u32, jump: &Jump, seq: u64, hole: &SeenHole) -> Option<(Picos, u64)> {
        let naks = self.naks.get(&flow)?;
        let filled = hole.filled.map(|filled| filled.time);
        let until = [filled, jump.overrun.map(|(time, _)| time)];
        let until = until.into_iter().flatten().min().unwrap_or(Picos::NEVER);
        let named = naks
            .iter()
            .find(|(time, psn)| (jump.first..=seq).contains(psn) && (jump.time..=until).contains(time));
        named.copied()
    }
}

/// PSNs that a tap recorded and a NAK requested again.
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
                observable: here(nak.recorded) && super::pairs::is_paired(simulation, tap, flow, nak.time),
            })
        })
        .collect();
    found.sort_by_key(|lost| lost.time);
    found
}
