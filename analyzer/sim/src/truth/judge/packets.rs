//! Items of the truth for single packets of the log: losses, marks, notifications, NAKs, runs of
//! retransmissions, pauses.

use super::names::{self, Names, kind};
use super::{pairs, transmissions};
use crate::engine::log::{LoggedRun, Reason};
use crate::engine::run::Simulation;
use crate::network::packet::Kind;
use crate::network::topology::{LINK_CLASS, number};
use crate::truth::{
    CaptureLoss, CeMark, Cnp, Duplicate, Loss, LossReason, Nak, NakKind, Pause, RetransmissionRun, RunAtTap,
};
use crate::units::Picos;
use crate::workload::endpoint::low;
use crate::workload::requester::Trigger;

/// A frame passes the tap of a link, and comes to its end, within this time.
const PASSING: Picos = Picos::from_nanos(10_000);

fn reason(reason: Reason) -> LossReason {
    match reason {
        Reason::TailDrop => LossReason::TailDrop,
        Reason::Headroom => LossReason::Headroom,
        Reason::Random => LossReason::Random,
        Reason::Icrc => LossReason::Icrc,
        Reason::Watchdog => LossReason::Watchdog,
    }
}

pub(super) fn losses(simulation: &Simulation<'_>, names: &Names) -> Vec<Loss> {
    let log = &simulation.log;
    let retransmissions = transmissions::Retransmissions::new(simulation);
    let losses = log.losses.iter().map(|loss| Loss {
        time: loss.time.nanos(),
        flow_id: names.flow(loss.flow),
        psn: loss.psn,
        kind: kind(loss.kind),
        attempt: loss.attempt,
        place: simulation.topology.place(loss.port),
        reason: reason(loss.reason),
        recorded_by: names.taps(loss.recorded),
        nak_time: loss
            .nak
            .and_then(|nak| log.refusals.get(nak as usize))
            .map(|nak| nak.time.nanos()),
        at_taps: transmissions::at_taps(simulation, names, &retransmissions, loss),
    });
    losses.collect()
}

pub(super) fn duplicates(simulation: &Simulation<'_>, names: &Names) -> Vec<Duplicate> {
    let duplicates = simulation.log.duplicates.iter().map(|duplicate| Duplicate {
        time: duplicate.time.nanos(),
        flow_id: names.flow(duplicate.flow),
        psn: duplicate.psn,
        kind: kind(duplicate.kind),
        place: simulation.topology.place(duplicate.port),
        recorded_by: names.taps(duplicate.recorded),
    });
    duplicates.collect()
}

pub(super) fn marks(simulation: &Simulation<'_>, names: &Names) -> Vec<CeMark> {
    let marks = simulation.log.marks.iter().map(|mark| CeMark {
        time: mark.time.nanos(),
        flow_id: names.flow(mark.flow),
        psn: mark.psn,
        kind: kind(mark.kind),
        place: simulation.topology.place(mark.port),
        recorded_by: names.taps(mark.recorded),
    });
    marks.collect()
}

pub(super) fn cnps(simulation: &Simulation<'_>, names: &Names) -> Vec<Cnp> {
    let host = |end: crate::engine::events::EndpointId| {
        let host = simulation.ends[end.index()].host;
        simulation.topology.hosts[host as usize].name.clone()
    };
    let cnps = simulation.log.notifications.iter().map(|cnp| Cnp {
        sent: cnp.time.nanos(),
        received: cnp.received.map(Picos::nanos),
        from: host(cnp.slows.peer()),
        to: host(cnp.slows),
        qpn: simulation.ends[cnp.slows.index()].qpn.value(),
        flow_id: names.flow(cnp.slows.0),
        after_nak: cnp.after_nak,
        cut: cnp.effect.is_some_and(|effect| effect.cut),
        rate_before_bps: cnp.effect.map_or(0, |effect| bits(effect.before)),
        rate_after_bps: cnp.effect.map_or(0, |effect| bits(effect.after)),
        binding: cnp.effect.is_some_and(|effect| effect.binding),
        recorded_by: names.taps(cnp.recorded),
    });
    cnps.collect()
}

/// A rate in whole bit/s.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are neither negative nor beyond 2^63"
)]
fn bits(rate: f64) -> u64 {
    rate as u64
}

pub(super) fn naks(simulation: &Simulation<'_>, names: &Names) -> Vec<Nak> {
    let naks = simulation.log.refusals.iter().map(|nak| Nak {
        sent: nak.time.nanos(),
        received: nak.received.map(Picos::nanos),
        kind: match nak.kind {
            Kind::RnrNak => NakKind::Rnr,
            Kind::FatalNak => NakKind::Fatal,
            _ => NakKind::Sequence,
        },
        flow_id: names.flow(nak.flow),
        psn: nak.psn,
        recorded_by: names.taps(nak.recorded),
    });
    naks.collect()
}

pub(super) fn runs(simulation: &Simulation<'_>, names: &Names) -> Vec<RetransmissionRun> {
    let lost = transmissions::LostTransmissions::new(simulation);
    let runs = simulation.log.runs.iter().enumerate();
    let runs = runs.map(|(place, run)| RetransmissionRun {
        flow_id: names.flow(run.flow),
        time: run.begin.nanos(),
        end: run.end.nanos(),
        first_psn: run.psn,
        packets: run.packets,
        bytes: run.bytes,
        needed: run.trigger == Trigger::Rnr || lost.before(run),
        trigger: names::trigger(run.trigger),
        silence_ns: run.begin.since(run.silent_since).nanos(),
        taps: run_at_taps(simulation, names, number(place), run),
    });
    runs.collect()
}

/// Records of a run at the taps.
fn run_at_taps(simulation: &Simulation<'_>, names: &Names, place: u32, run: &LoggedRun) -> Vec<RunAtTap> {
    let end = simulation.ends.get(run.flow as usize);
    let mut found = Vec::new();
    for (tap, state) in simulation.observer.taps.iter().enumerate() {
        let flow = |flow: u32| state.flows.get(flow as usize).and_then(Option::as_deref);
        let Some(seen) = flow(run.flow).and_then(|own| own.runs.iter().find(|seen| seen.run == place)) else {
            continue;
        };
        // Its cause: the last NAK that came in before, if it names the run's first PSN.
        let refusals = simulation.log.refusals.iter().rev().find(|refusal| {
            refusal.flow == run.flow && refusal.received.is_some_and(|time| time <= run.begin)
        });
        let shown = match run.trigger {
            Trigger::Nak | Trigger::Rnr => {
                refusals.is_some_and(|refusal| refusal.seq == run.seq && refusal.recorded >> tap & 1 != 0)
            }
            // A retransmission follows sooner behind a queue that holds earlier packets.
            Trigger::Timeout => seen.waited >= Picos(simulation.scenario.nic.timeout.0 / 2),
            Trigger::ImpliedNak => true,
        };
        let paired = pairs::is_paired(simulation, tap, run.flow, seen.time)
            || run.trigger == Trigger::Timeout && pairs::is_never_answered(simulation, tap, run.flow);
        // The cause is forgotten where everything starts again.
        let cause_time = match run.trigger {
            Trigger::Nak | Trigger::Rnr => refusals.map_or(Picos::ZERO, |refusal| refusal.time),
            Trigger::Timeout | Trigger::ImpliedNak => Picos(seen.time.0.saturating_sub(seen.waited.0)),
        };
        let forgotten =
            pairs::restarts(simulation, tap, run.flow).any(|time| (cause_time..=seen.time).contains(&time));
        found.push(RunAtTap {
            tap: names.taps(1 << tap).concat(),
            time: seen.time.nanos(),
            end: seen.last.nanos(),
            first_psn: end.map_or(run.psn, |end| end.first_psn.plus(low(seen.seq)).value()),
            packets: seen.packets,
            observable: seen.seq == run.seq && seen.behind && !seen.joins && shown && paired && !forgotten,
        });
    }
    found
}

pub(super) fn pauses(simulation: &Simulation<'_>, names: &Names) -> Vec<Pause> {
    let topology = &simulation.topology;
    let pauses = simulation.log.pauses.iter().map(|pause| {
        let port = &topology.ports[pause.port.index()];
        let peer = &topology.ports[port.peer.index()];
        let mut mask = 0;
        for tap in port.taps.iter().chain(&peer.taps) {
            let sees = simulation
                .scenario
                .tap
                .get(*tap as usize)
                .is_some_and(|table| table.pause_frames);
            let end = pause.end.unwrap_or(simulation.now);
            let missed = simulation.observer.taps.get(*tap as usize).is_some_and(|tap| {
                let mut lost = tap.lost_pauses.iter();
                lost.any(|time| pause.begin <= time.plus(PASSING) && *time <= end.plus(PASSING))
            });
            mask |= u64::from(sees && !missed) << tap;
        }
        Pause {
            place: topology.place(pause.port),
            priority: (pause.class != LINK_CLASS).then_some(pause.class),
            begin: pause.begin.nanos(),
            end: pause.end.unwrap_or(simulation.now).nanos(),
            recorded_by: names.taps(mask),
        }
    });
    pauses.collect()
}

pub(super) fn capture_losses(simulation: &Simulation<'_>, names: &Names, tap: usize) -> Vec<CaptureLoss> {
    let missed = simulation.observer.taps[tap]
        .missed
        .iter()
        .map(|missed| CaptureLoss {
            time: missed.time.nanos(),
            flow_id: names.flow(missed.flow),
            psn: missed.psn,
            kind: kind(missed.kind),
            attempt: missed.attempt,
        });
    missed.collect()
}
