//! The findings about connections of MRC: their paths, what was trimmed and lost, and what the responder asks for.

mod hits;
mod paths;
mod rules;

use std::collections::BTreeMap;

use roce_model::{
    Address, Confidence, Evidence, FindingRow, MrcConnectionRow, NameList, Severity, Span, Time,
};

use super::super::numbers::{NEARLY_ALL, bytes, counted, percent, reaches, share};
use super::rule::{Context, FindingOf as _, Rule};
use hits::{Hit, MAX_HOSTS, MrcConnection, connections, finding};
pub(super) use rules::*;

/// A share of SACKs, in which a responder asks for less, that is more than single ones.
const LIMITED: f64 = 0.01;
/// All findings of this family.
pub(super) fn mrc(context: &Context<'_>) -> Vec<FindingRow> {
    let all = connections(context);
    if all.is_empty() && context.run.mrc_reports.ports.is_empty() {
        return Vec::new();
    }
    let over = |rule: &'static Rule,
                judge: &dyn Fn(MrcConnection<'_>) -> bool,
                hit: &dyn for<'a> Fn(MrcConnection<'a>) -> Hit<'a>| {
        let hits = all.iter().copied().filter(|of| judge(*of)).map(hit);
        finding(rule, hits.collect())
    };
    let has_trims = all.iter().any(|of| of.row.trimmed + of.row.trimmed_lasthop > 0);
    let findings = [
        over(&QP_FAILED, &|of| of.row.failed, &|of| failed(of)),
        port_down(context, &all),
        paths::suspect(&all),
        finding(&PATH_DEAD, paths::dead(&all)),
        over(&LOSS_SILENT, &|of| of.row.lost > 0, &|of| lost(of, has_trims)),
        over(&TRIM_FABRIC, &|of| of.row.trimmed > 0, &|of| trimmed(of)),
        last_hop(&all),
        over(&TIMEOUT, &|of| of.row.rtx_timeout > 0, &|of| timeout(of)),
        over(&SPURIOUS, &|of| of.row.spurious > 0, &|of| spurious(of)),
        over(&RESPONDER, &is_limited, &|of| limited(of)),
        finding(&PATH_MARKED, paths::marked(&all)),
        finding(&PATH_SLOW, paths::slow(&all)),
        finding(
            &PLANE_UNEVEN,
            paths::uneven(&all, !context.run.mrc_reports.ports.is_empty()),
        ),
    ];
    let mut findings: Vec<FindingRow> = findings.into_iter().flatten().collect();
    let lost: u64 = all.iter().map(|of| of.row.lost).sum();
    if reaches(paths::lost_on_dead(&all), lost, NEARLY_ALL) {
        explain(&mut findings, &PATH_DEAD, &LOSS_SILENT);
    }
    let is_lost = |of: &MrcConnection<'_>| of.row.rtx_timeout <= of.row.lost;
    if all.iter().all(is_lost) {
        explain(&mut findings, &LOSS_SILENT, &TIMEOUT);
    }
    explain(&mut findings, &SWITCH_SUSPECT, &PATH_DEAD);
    findings
}

/// Notes that one finding follows from another, where there are both.
fn explain(findings: &mut [FindingRow], cause: &Rule, effect: &Rule) {
    let has = |id| findings.iter().position(|finding| finding.id == id);
    let (Some(from), Some(to)) = (has(cause.id), has(effect.id)) else {
        return;
    };
    findings[from].explains.0.push(effect.id.into());
    findings[to].explained_by.0.push(cause.id.into());
}

fn failed(of: MrcConnection<'_>) -> Hit<'_> {
    let by = if of.row.nacks_failed > 0 {
        "a NACK with reason 25"
    } else {
        "a NAK"
    };
    let mut hit = Hit::new(of, 1, format!("the connection ended with {by}"));
    hit.confidence = Confidence::High;
    hit.with("nacks_failed", of.row.nacks_failed)
}

fn lost(of: MrcConnection<'_>, has_trims: bool) -> Hit<'_> {
    let row = of.row;
    let packets = counted(row.lost, "packet");
    let what = if has_trims {
        format!("{packets} vanished without a trim: links or switches lost them, not full queues")
    } else {
        format!("{packets} vanished; no packet was trimmed, so full queues may have dropped them")
    };
    let mut hit = Hit::new(of, row.lost, what);
    if !has_trims && hit.confidence == Confidence::High {
        hit.confidence = Confidence::Medium;
    }
    hit.first = first_loss(of).unwrap_or(row.first_time);
    hit.waited(row.repair_loss_ns.saturating_add(row.repair_timeout_ns))
        .with("lost", row.lost)
        .with("packets", row.packets)
        .with("trimmed", row.trimmed + row.trimmed_lasthop)
}

/// When the first packet was lost, where its path is known.
fn first_loss(of: MrcConnection<'_>) -> Option<Time> {
    of.paths.iter().filter_map(|path| path.first_loss_time).min()
}

fn trimmed(of: MrcConnection<'_>) -> Hit<'_> {
    let row = of.row;
    let on = of.paths.iter().filter(|path| path.trimmed > 0).count() as u64;
    let all = of.paths.len() as u64;
    let what = format!(
        "queues inside the fabric cut {} on {on} of {}",
        counted(row.trimmed, "packet"),
        counted(all, "path")
    );
    let mut hit = Hit::new(of, row.trimmed, what);
    // The NACK names the packet and says why: no capture at the sender is needed.
    hit.confidence = Confidence::High;
    hit.waited(row.repair_trim_ns)
        .with("trimmed", row.trimmed)
        .with("paths", on)
        .with("all_paths", all)
}

/// Packets that the last switch cut: of several senders to one host.
fn last_hop(all: &[MrcConnection<'_>]) -> Option<FindingRow> {
    let mut hosts: BTreeMap<Address, Vec<MrcConnection<'_>>> = BTreeMap::new();
    for of in all.iter().filter(|of| of.row.trimmed_lasthop > 0) {
        hosts.entry(of.row.responder).or_default().push(*of);
    }
    let hits = hosts.into_values().filter_map(|senders| {
        let mut requestors: Vec<Address> = senders.iter().map(|of| of.row.requestor).collect();
        requestors.sort_unstable();
        requestors.dedup();
        let first = *senders.first().filter(|_| requestors.len() >= 2)?;
        let packets: u64 = senders.iter().map(|of| of.row.trimmed_lasthop).sum();
        let waited = senders.iter().map(|of| of.row.repair_lasthop_ns).sum();
        let what = format!(
            "{} overload the link to it: its switch cut {}",
            counted(requestors.len() as u64, "sender"),
            counted(packets, "packet")
        );
        let mut hit = Hit::new(first, packets, what).waited(waited);
        hit.confidence = Confidence::High;
        Some(
            hit.with("senders", requestors.len() as u64)
                .with("trimmed_lasthop", packets),
        )
    });
    let hits: Vec<Hit<'_>> = hits.collect();
    let senders = hits
        .iter()
        .max_by_key(|hit| (hit.price_ns, hit.weight))
        .map(|hit| hit.of.row.responder);
    let mut finding = finding(&TRIM_LASTHOP, hits)?;
    let named = all
        .iter()
        .filter(|of| of.row.trimmed_lasthop > 0 && Some(of.row.responder) == senders);
    finding.aggressors = NameList(
        named
            .take(MAX_HOSTS)
            .map(|of| of.row.requestor.to_string().into())
            .collect(),
    );
    finding.victims = NameList(senders.map(|host| host.to_string().into()).into_iter().collect());
    Some(finding)
}

fn timeout(of: MrcConnection<'_>) -> Hit<'_> {
    let row = of.row;
    let what = format!(
        "{} sent again only when a timer had run out: SACKs or the last packets were lost",
        counted(row.rtx_timeout, "packet")
    );
    Hit::new(of, row.rtx_timeout, what)
        .waited(row.repair_timeout_ns)
        .with("rtx_timeout", row.rtx_timeout)
        .with("probes", row.probes)
}

fn spurious(of: MrcConnection<'_>) -> Hit<'_> {
    let row = of.row;
    let skew = row.skew_max_ns.map_or_else(String::new, |skew| {
        format!("; the last of them was acknowledged {} later", Span(skew))
    });
    let what = format!(
        "{} ({}) repeated what had arrived: the sender waits too short for paths of different length{skew}",
        counted(row.spurious, "retransmission"),
        bytes(row.spurious_bytes)
    );
    Hit::new(of, row.spurious_bytes, what)
        .with("spurious", row.spurious)
        .with("spurious_bytes", row.spurious_bytes)
        .with("retransmitted_packets", row.retransmitted_packets)
}

/// Answers with which a responder asks for less.
const fn refusals(row: &MrcConnectionRow) -> u64 {
    row.penalty_sacks + row.nacks_resources + row.nacks_window
}

fn is_limited(of: MrcConnection<'_>) -> bool {
    let asked = refusals(of.row);
    asked >= 2 && reaches(asked, of.row.sacks.max(1), LIMITED)
}

fn limited(of: MrcConnection<'_>) -> Hit<'_> {
    let row = of.row;
    let asked = share(row.penalty_sacks, row.sacks).unwrap_or_default();
    let mut parts = Vec::new();
    if row.penalty_sacks > 0 {
        parts.push(format!(
            "{} of its SACKs have a penalty (at most {} of 127)",
            percent(asked),
            row.penalty_max
        ));
    }
    if row.nacks_resources > 0 {
        parts.push(format!(
            "{} for want of room",
            counted(row.nacks_resources, "NACK")
        ));
    }
    if row.nacks_window > 0 {
        parts.push(format!("{} beyond the window", counted(row.nacks_window, "NACK")));
    }
    let what = format!("the responder asks to be sent less: {}", parts.join(", "));
    let mut hit = Hit::new(of, refusals(row), what);
    hit.confidence = Confidence::High;
    hit.waited(row.repair_refused_ns)
        .with("penalty_sacks", row.penalty_sacks)
        .with("penalty_max", row.penalty_max.into())
        .with("sacks", row.sacks)
        .with("nacks_resources", row.nacks_resources)
        .with("nacks_window", row.nacks_window)
}

/// A host that reported a port as lost. Without a connection there is nothing to name.
fn port_down(context: &Context<'_>, all: &[MrcConnection<'_>]) -> Option<FindingRow> {
    let ports = &context.run.mrc_reports.ports;
    let first = ports.iter().min_by_key(|port| port.time)?;
    let bits: Vec<String> = (0..32)
        .filter(|bit| first.lost >> bit & 1 != 0)
        .map(|bit| bit.to_string())
        .collect();
    let mut evidence = Evidence::default();
    evidence
        .text("host", first.host.to_string())
        .text("ports", bits.join(" "))
        .count("reports", ports.len() as u64);
    let mut finding = PORT_DOWN.finding(
        (Severity::Warning, Confidence::High),
        format!("{} says that its port {} is down", first.host, bits.join(", ")),
        evidence,
        PORT_DOWN.next,
        Some(first.time),
    );
    let sends = |of: &&MrcConnection<'_>| of.row.responder == first.host;
    let mut victims: Vec<String> = all
        .iter()
        .filter(sends)
        .map(|of| of.row.requestor.to_string())
        .collect();
    victims.dedup();
    victims.truncate(MAX_HOSTS);
    finding.victims = NameList(victims.into_iter().map(Into::into).collect());
    finding.aggressors = NameList(vec![first.host.to_string().into()]);
    Some(finding)
}
