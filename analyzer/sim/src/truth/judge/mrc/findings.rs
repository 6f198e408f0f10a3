//! Findings that packets of a run of MRC allow: what happened, and the taps that show it alone.
//!
//! Paths that are marked or slow, planes that are uneven and needless retransmissions are left out: how much of them is worth a finding is
//! a matter of thresholds.

use std::collections::BTreeSet;

use super::tap_names::tap_names;
use crate::mrc::run::MrcRun;
use crate::truth::{ExpectedFinding, MrcCause, MrcConnection, Truth};
use crate::units::Picos;

/// Share of a connection's SACKs that ask for a smaller window: 1 % is the definition's, and twice of it is beyond doubt.
const PENALISED: f64 = 0.02;
/// Losses that make a dead path.
const DEAD: usize = 2;
/// Packets that its share of what follows lets expect on it, so that it shows that it is used no more.
const EXPECTED: usize = 16;

/// The findings, by id.
pub(super) fn findings(run: &MrcRun<'_>, truth: &Truth) -> Vec<ExpectedFinding> {
    let mut findings = Vec::new();
    for (number, connection) in (0..).zip(&truth.mrc) {
        of_connection(run, number, connection, &mut findings);
    }
    last_hop(run, truth, &mut findings);
    findings
}

/// Taps that see all ports of a host, both directions, from begin to end and without losses.
fn taps_at(run: &MrcRun<'_>, host: &str) -> Vec<String> {
    let tables = run.scenario.tap.iter().zip(&run.observer.taps).enumerate();
    let bits = tables.filter(|(_, (table, state))| {
        table.at == host
            && table.direction == crate::scenario::TapDirection::Both
            && table.from.0 == 0
            && table.until.is_none()
            && state.lost == 0
    });
    tap_names(run, bits.fold(0, |bits, (place, _)| bits | 1 << place))
}

fn of_connection(
    run: &MrcRun<'_>,
    number: u32,
    connection: &MrcConnection,
    findings: &mut Vec<ExpectedFinding>,
) {
    let taps = taps_at(run, &connection.requestor.host);
    let mut add = |id: &str, why: String| {
        findings.push(ExpectedFinding {
            id: id.to_owned(),
            why: format!(
                "{} -> {}: {why}",
                connection.requestor.host, connection.responder.host
            ),
            flows: Vec::new(),
            taps: taps.clone(),
        });
    };
    for left in &connection.left {
        let ev = left.path.ev;
        let lost = connection.losses.iter().filter(|loss| loss.path.ev == ev);
        let lost: Vec<_> = lost.filter(|loss| loss.place == "path").collect();
        let Some(first) = lost.first().filter(|_| lost.len() >= DEAD) else {
            continue;
        };
        let on_path = |sent: &&crate::mrc::log::Transmission| sent.pair == number && sent.ev == ev;
        let whole = run.sent.iter().filter(on_path).all(|sent| {
            sent.time.nanos() < first.time || matches!(sent.fate, crate::mrc::log::Fate::Lost(..))
        });
        let others = run
            .sent
            .iter()
            .filter(|sent| sent.pair == number && sent.time > Picos::from_nanos(left.time));
        let goes_on = others.count() >= EXPECTED * run.scenario.mrc.evs as usize;
        if whole && goes_on && lost.iter().filter(|loss| loss.repaired).count() >= DEAD {
            let count = lost.len();
            add(
                "mrc.path.dead",
                format!("EV {ev:#x} lost {count} packets and was left"),
            );
        }
    }
    let silent = connection.losses.iter();
    let silent = silent
        .filter(|loss| loss.place == "path" && loss.repaired)
        .count();
    if silent > 0 && connection.trims.iter().any(|trim| trim.nacked) {
        add(
            "mrc.loss.silent",
            format!("{silent} packets vanished beside trims"),
        );
    }
    let fabric = connection
        .trims
        .iter()
        .filter(|trim| trim.reason == 1 && trim.nacked);
    let fabric = fabric.count();
    if fabric > 0 {
        add(
            "mrc.trim.fabric",
            format!("{fabric} packets were trimmed in the fabric"),
        );
    }
    let late = connection.retransmissions.iter();
    let late = late
        .filter(|again| again.cause == MrcCause::Timeout && again.needed)
        .count();
    if late > 0 {
        add(
            "mrc.retransmit.timeout",
            format!("{late} packets waited for the timeout"),
        );
    }
    let log = &run.pairs[number as usize].log;
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 SACKs")]
    let share = log.penalised as f64 / log.sacks.max(1) as f64;
    if share >= PENALISED {
        add(
            "mrc.responder.limit",
            format!("{} SACKs ask for less", log.penalised),
        );
    }
}

/// Several senders fill the queue before one host.
fn last_hop(run: &MrcRun<'_>, truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let hosts: BTreeSet<&str> = truth.mrc.iter().map(|own| own.responder.host.as_str()).collect();
    for host in hosts {
        let trimmed = truth
            .mrc
            .iter()
            .filter(|own| own.responder.host == host && own.trims.iter().any(|trim| trim.reason == 2));
        let senders: BTreeSet<&str> = trimmed.map(|own| own.requestor.host.as_str()).collect();
        if senders.len() >= 2 {
            findings.push(ExpectedFinding {
                id: "mrc.trim.lasthop".to_owned(),
                why: format!("{} senders overload the link to {host}", senders.len()),
                flows: Vec::new(),
                taps: taps_at(run, host),
            });
        }
    }
}
