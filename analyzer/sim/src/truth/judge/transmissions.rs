//! Single transmissions: late, duplicated and retransmitted ones, lost ones as taps show them, and the
//! limits of flows.

use std::collections::{HashMap, HashSet};

use super::names::{self, Names};
use super::pairs;
use crate::engine::log::{LoggedRun, Loss, RetransmittedPacket};
use crate::engine::run::Simulation;
use crate::network::packet::Kind;
use crate::truth::{
    DuplicateAtTap, Evidence, Late, Limits, LossAtTap, LossSide, Retransmission, TriggerKind,
};
use crate::units::Picos;
use crate::workload::account::{WaitTotals, Waits};
use crate::workload::requester::Trigger;

/// Packets that a tap recorded late.
pub(super) fn late(simulation: &Simulation<'_>, names: &Names, tap: usize) -> Vec<Late> {
    let flows = simulation.observer.taps[tap].flows.iter().enumerate();
    let mut found: Vec<Late> = flows
        .flat_map(|(flow, seen)| seen.iter().map(move |seen| (flow, seen)))
        .flat_map(|(flow, seen)| {
            seen.late.iter().map(move |late| Late {
                flow_id: names.flows[flow].clone(),
                psn: late.psn,
                kind: names::kind(late.kind),
                time: late.time.nanos(),
                depth: late.depth,
                behind_ns: late.behind.nanos(),
            })
        })
        .collect();
    found.sort_by_key(|late| late.time);
    found
}

/// The duplicates of the network that a tap recorded.
pub(super) fn duplicates(simulation: &Simulation<'_>, names: &Names, tap: usize) -> Vec<DuplicateAtTap> {
    let flows = simulation.observer.taps[tap].flows.iter().enumerate();
    let mut found: Vec<DuplicateAtTap> = flows
        .flat_map(|(flow, seen)| seen.iter().map(move |seen| (flow, seen)))
        .flat_map(|(flow, seen)| {
            seen.copies.iter().map(move |copy| DuplicateAtTap {
                flow_id: names.flows[flow].clone(),
                psn: copy.psn,
                kind: names::kind(copy.kind),
                time: copy.time.nanos(),
            })
        })
        .collect();
    found.sort_by_key(|copy| copy.time);
    found
}

/// The run of a retransmitted packet.
fn run<'a>(simulation: &'a Simulation<'_>, retransmitted: &RetransmittedPacket) -> Option<&'a LoggedRun> {
    simulation.log.runs.get(retransmitted.run as usize)
}

/// Cause of a retransmission.
pub(super) fn cause(simulation: &Simulation<'_>, retransmitted: &RetransmittedPacket) -> Option<TriggerKind> {
    run(simulation, retransmitted).map(|run| names::trigger(run.trigger))
}

pub(super) fn retransmissions(simulation: &Simulation<'_>, names: &Names) -> Vec<Retransmission> {
    let retransmitted = simulation.log.retransmitted.iter();
    let retransmitted = retransmitted.map(|retransmitted| Retransmission {
        time: retransmitted.time.nanos(),
        flow_id: names.flow(retransmitted.flow),
        psn: retransmitted.psn,
        kind: names::kind(retransmitted.kind),
        attempt: retransmitted.attempt,
        cause: cause(simulation, retransmitted),
        run: run(simulation, retransmitted).map(|_| retransmitted.run),
        recorded_by: names.taps(retransmitted.recorded),
    });
    retransmitted.collect()
}

/// The flow and PSN of the request that makes up for a loss: a READ response is requested again.
fn request_of(loss: &Loss) -> Option<(u32, u64)> {
    match loss.kind {
        Kind::Request | Kind::ReadRequest => Some((loss.flow, loss.seq)),
        Kind::ReadResponse => Some((loss.flow ^ 1, loss.seq)),
        _ => None,
    }
}

/// Retransmitted requests, by flow and PSN, where something was lost.
pub(super) struct Retransmissions<'a> {
    by_psn: HashMap<(u32, u64), Vec<&'a RetransmittedPacket>>,
}

impl<'a> Retransmissions<'a> {
    pub(super) fn new(simulation: &'a Simulation<'_>) -> Self {
        let wanted: HashSet<_> = simulation.log.losses.iter().filter_map(request_of).collect();
        let mut by_psn: HashMap<_, Vec<_>> = HashMap::new();
        if !wanted.is_empty() {
            let requests = simulation
                .log
                .retransmitted
                .iter()
                .filter(|retransmitted| retransmitted.kind.is_request());
            for retransmitted in requests {
                for seq in retransmitted.seq..retransmitted.seq + u64::from(retransmitted.span) {
                    if wanted.contains(&(retransmitted.flow, seq)) {
                        by_psn
                            .entry((retransmitted.flow, seq))
                            .or_default()
                            .push(retransmitted);
                    }
                }
            }
        }
        Self { by_psn }
    }

    /// The request that was sent next for what was lost.
    fn after(&self, loss: &Loss) -> Option<&'a RetransmittedPacket> {
        let retransmissions = self.by_psn.get(&request_of(loss)?)?;
        retransmissions
            .iter()
            .copied()
            .find(|retransmitted| retransmitted.time > loss.time)
    }
}

/// True if the network may delay packets for longer than receivers wait before they name them in a NAK.
fn naks_what_is_late(simulation: &Simulation<'_>) -> bool {
    let (network, nic) = (&simulation.scenario.network, &simulation.scenario.nic);
    network.spray.is_some_and(|spray| {
        let waits = nic
            .ooo_nak_after
            .filter(|_| nic.out_of_order && nic.ooo_nak_packets.is_none());
        waits.is_none_or(|waits| waits <= spray.skew.plus(spray.jitter))
    })
}

/// Evidence of a loss at the taps.
pub(super) fn at_taps(
    simulation: &Simulation<'_>,
    names: &Names,
    retransmissions: &Retransmissions<'_>,
    loss: &Loss,
) -> Vec<LossAtTap> {
    let mut found = Vec::new();
    if request_of(loss).is_none() {
        return found;
    }
    let again = retransmissions.after(loss);
    // The run begins with what was lost.
    let begins = again.and_then(|again| {
        let run = run(simulation, again)?;
        (run.seq == loss.seq).then_some(run)
    });
    for (tap, state) in simulation.observer.taps.iter().enumerate() {
        let here = |mask: u64| mask >> tap & 1 != 0;
        let seen = state.flows.get(loss.flow as usize).and_then(Option::as_deref);
        let passed = here(loss.passed);
        if !passed && seen.is_none_or(|seen| seen.packets == 0) {
            continue;
        }
        let nak = loss.nak.and_then(|nak| simulation.log.refusals.get(nak as usize));
        let recorded = again.is_some_and(|again| here(again.recorded));
        let evidence = match begins.map(|run| run.trigger) {
            _ if nak.is_some_and(|nak| here(nak.recorded)) => Evidence::Nak,
            Some(Trigger::ImpliedNak) if recorded => Evidence::ImpliedNak,
            Some(Trigger::Timeout) if recorded => Evidence::Timeout,
            _ => Evidence::None,
        };
        let shows = match evidence {
            // The responder had executed this READ before, so that it is a duplicate: it expects a later PSN, and sends no NAK if the
            // request is lost (IBTA 9.7.5.1.4). The only response to it is missing: every tap records the same packets, whether that or the
            // request was lost.
            Evidence::ImpliedNak if loss.attempt > 0 && loss.begins && loss.ends => false,
            Evidence::Nak | Evidence::ImpliedNak => !passed || !naks_what_is_late(simulation),
            // Nothing came behind the lost response, or the requester would not have waited for its timer. If it is the first one, no tap
            // records a response to this READ: the packets are the same as when the request was lost. One that is not the first came behind
            // another, which the requester had, as it asks again from the first one that it lacks: the request had arrived.
            Evidence::Timeout if loss.kind == Kind::ReadResponse => !passed && !loss.begins,
            Evidence::Timeout => {
                let hole = seen.and_then(|seen| seen.holes.get(&loss.seq));
                let filled = hole.and_then(|hole| hole.filled);
                !passed && loss.attempt == 0 && filled.is_some_and(|filled| filled.attempt > 0)
            }
            Evidence::None => false,
        };
        found.push(LossAtTap {
            tap: names.taps[tap].clone(),
            side: if passed {
                LossSide::Behind
            } else {
                LossSide::Before
            },
            evidence,
            in_retransmission_window: again.is_some() && begins.is_none(),
            decidable: shows && pairs::is_paired(simulation, tap, loss.flow, Picos::NEVER),
        });
    }
    found
}

/// Times of lost requests and READ responses, by the flow of the request and its PSN.
pub(super) struct LostTransmissions(HashMap<(u32, u64), Vec<Picos>>);

impl LostTransmissions {
    pub(super) fn new(simulation: &Simulation<'_>) -> Self {
        let mut lost: HashMap<_, Vec<_>> = HashMap::new();
        for loss in &simulation.log.losses {
            if let Some(key) = request_of(loss) {
                lost.entry(key).or_default().push(loss.time);
            }
        }
        Self(lost)
    }

    /// True if what a run begins with was lost since it was sent the last time before.
    pub(super) fn before(&self, run: &LoggedRun) -> bool {
        let times = self.0.get(&(run.flow, run.seq));
        times.is_some_and(|times| times.iter().any(|time| *time < run.begin))
    }
}

/// Adds what a connection of a flow waited for.
pub(super) fn limits(limits: &mut Limits, waited: &WaitTotals) {
    let of = |waits: Waits| waited.total[waits as usize].nanos();
    limits.demand_ns += of(Waits::Demand);
    limits.blocked_ns += of(Waits::Blocked);
    limits.dcqcn_ns += of(Waits::Dcqcn);
    limits.rate_limit_ns += of(Waits::RateLimit);
    limits.port_ns += of(Waits::Port);
    limits.paused_ns += of(Waits::Paused);
    for (total, part) in [
        (&mut limits.dcqcn_ns_per_ms, &waited.dcqcn_by_ms),
        (&mut limits.port_ns_per_ms, &waited.port_by_ms),
    ] {
        if total.len() < part.len() {
            total.resize(part.len(), 0);
        }
        for (total, part) in total.iter_mut().zip(part) {
            *total += part.nanos();
        }
    }
}
