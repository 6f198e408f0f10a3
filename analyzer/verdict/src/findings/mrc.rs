//! The findings about connections of MRC and UET, which have the same answers: their paths, what was trimmed and lost, and what the responder asks for.

mod hits;
mod paths;

use std::collections::BTreeMap;

use roce_model::{Address, Confidence, Evidence, FindingRow, MrcConnectionRow, Severity, Span, Time};

use super::super::numbers::{NEARLY_ALL, bytes, counted, percent, reaches, share};
use super::rule::{Context, FindingOf as _, Needs, Rule};
use hits::{Hit, MAX_HOSTS, MrcConnection, connections, finding};

const SOURCE: &str = "OCP-MRC-1.0, 7.5 (SETH, NETH, CC_STATE), as two public decoders and a simulator read it; UET 1.0, as Wireshark and xdp2 read it.";
const SURE: &str = "high with both directions at the sender's side and 99 % of the PSNs captured, medium with SACKs alone or at the \
                    receiver, low where a part of the paths was captured";
const NAMED: &str = "high: the responder says so itself";

pub(super) const QP_FAILED: Rule = Rule {
    id: "mrc.qp.failed",
    title: "a connection of MRC or UET ended with an error",
    meaning: "The responder ended the connection, and nothing was sent afterwards: its program sees an error.",
    method: "A NACK with reason 25 or an AETH with a NAK, behind which no data follow.",
    source: SOURCE,
    severity: Severity::Critical,
    otherwise: "info at low confidence",
    next: "Look for the error of the completion in the program's log, at both ends.",
    confidence: NAMED,
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const PORT_DOWN: Rule = Rule {
    id: "mrc.port.down",
    title: "a host says that one of its ports is down",
    meaning: "Its other planes take the traffic: less bandwidth, and more load on each path.",
    method: "The mask of an endpoint request has lost a bit that the host's mask before had. A first mask says nothing.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Look at this port's link, optics and switch port. The number is that of the mask's bit.",
    confidence: NAMED,
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const SWITCH_SUSPECT: Rule = Rule {
    id: "mrc.switch.suspect",
    title: "all dead paths pass one switch",
    meaning: "The paths differ in other switches: what they share and no good path has is the likely place of the losses.",
    method: "An identifier in the SRv6 destinations of two dead paths or more, and of no path in use.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Look at this switch: its links, its errors, its routes.",
    confidence: SURE,
    ..Rule::TALLIED
};

pub(super) const PATH_DEAD: Rule = Rule {
    id: "mrc.path.dead",
    title: "a path of MRC or UET lost packets until its sender left it",
    meaning: "Other paths go on: the fault is on the way that this entropy selects, not at the hosts.",
    method: "Two packets or more of the path were lost, nothing that was sent on it later arrived (its probe, where there is one), and its sender \
         left it, although its share lets expect seven packets or more. The price is the time until the lost packets were sent again.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Follow the entropy (or the SRv6 address) through the fabric, and look at the links of that plane.",
    confidence: SURE,
    ..Rule::TALLIED
};

pub(super) const LOSS_SILENT: Rule = Rule {
    id: "mrc.loss.silent",
    title: "packets of MRC or UET vanished without a trim",
    meaning: "Switches that trim tell the receiver of each packet that a full queue refuses. What vanishes without that was lost on a link or in a \
         switch.",
    method: "Packets that were sent again after a hole or a timeout, of which a SACK shows that they had not arrived when they were older than round \
         trips on their path, and that were not trimmed. What may only have been late is `undecided`. The price is the time until then.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Look at errors of links and at drops of switches on the paths of `mrc_paths` with losses.",
    confidence: SURE,
    ..Rule::TALLIED
};

pub(super) const TRIM_FABRIC: Rule = Rule {
    id: "mrc.trim.fabric",
    title: "queues inside the fabric overflowed",
    meaning: "A switch that is not the last one cut packets: load is uneven, or the fabric is too small.",
    method: "NACKs with reason 1. The price is the time until the packets were sent again.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Compare the paths in `mrc_paths`: trims on few of them are uneven load.",
    confidence: NAMED,
    ..Rule::TALLIED
};

pub(super) const TRIM_LASTHOP: Rule = Rule {
    id: "mrc.trim.lasthop",
    title: "several senders overloaded the link to one host",
    meaning: "The last switch cut packets of two senders or more: incast. The fabric is not at fault.",
    method: "NACKs with reason 2 to two requestors or more of one responder. The price is the time until the packets were sent again.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Let fewer hosts send to this one at a time, or send less each.",
    confidence: NAMED,
    ..Rule::TALLIED
};

pub(super) const TIMEOUT: Rule = Rule {
    id: "mrc.retransmit.timeout",
    title: "packets of MRC or UET were sent again only after a timer",
    meaning: "Neither a SACK nor a NACK reached the sender: they were lost, or the last packets of a burst.",
    method: "Retransmissions without a hole or a NACK, after a probe or after twice the longest round trip. The price is the time until then.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Look at losses on the way back, and at the local ACK timeout of the queue pair.",
    confidence: SURE,
    ..Rule::TALLIED
};

pub(super) const SPURIOUS: Rule = Rule {
    id: "mrc.retransmit.spurious",
    title: "packets of MRC or UET were sent again although they had arrived",
    meaning: "The sender takes packets that were overtaken for lost: its guard against reordering is shorter than the difference of the paths.",
    method: "A SACK acknowledges the packet before its retransmission, or reflects the stamp or the path of an earlier sending; or it names the \
         retransmission after another SACK had acknowledged the packet, or sooner than the shortest round trip. Or the first sending comes to the \
         tap later. The price is the bandwidth of what was repeated.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Compare the round trips in `mrc_paths`; raise the adapter's threshold for reordering.",
    confidence: SURE,
    ..Rule::TALLIED
};

pub(super) const RESPONDER: Rule = Rule {
    id: "mrc.responder.limit",
    title: "a host asks its senders to slow down",
    meaning: "Its adapter or its memory is the limit, not the network.",
    method: "SACKs with a penalty, and NACKs with reasons 6, 7, 10 and 11: 1 % of its SACKs, and two, or more.",
    source: SOURCE,
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    next: "Look at this host: PCIe, memory, the resources of its adapter.",
    confidence: NAMED,
    ..Rule::TALLIED
};

pub(super) const PATH_MARKED: Rule = Rule {
    id: "mrc.path.marked",
    title: "few paths of MRC or UET carry the marks",
    meaning: "Queues grow on these paths alone: load is uneven. Where all paths are marked alike, the fabric is full.",
    method: "The share of SACKs that ask to skip the path is three times that of the median path, or more, on at most half of the paths, and \
         hardly comes by chance.",
    source: SOURCE,
    severity: Severity::Info,
    otherwise: "info at low confidence",
    next: "Look at what else uses these links.",
    confidence: SURE,
    ..Rule::TALLIED
};

pub(super) const PATH_SLOW: Rule = Rule {
    id: "mrc.path.slow",
    title: "a path of MRC or UET is slower than the others",
    meaning: "Messages wait for the packets of their slowest path.",
    method: "Its median time from a packet to its SACK is longer than that of the median path by 30 % and 2 us, over 20 samples or more, \
         and so is its shortest time: it is no queue that is empty at times. Several such paths are fewer than an eighth of all.",
    source: SOURCE,
    severity: Severity::Info,
    otherwise: "info at low confidence",
    next: "Look at queues and at the length of this path.",
    confidence: SURE,
    ..Rule::TALLIED
};

pub(super) const PLANE_UNEVEN: Rule = Rule {
    id: "mrc.plane.uneven",
    title: "a plane carries more or less than its part",
    meaning: "All ports of a host should carry the same.",
    method: "A plane's share is more than 20 % off an even one, and by more than five standard deviations of a random choice, over 1,000 packets or more, with SRv6 and without a port that is down.",
    source: SOURCE,
    severity: Severity::Info,
    otherwise: "info at low confidence",
    next: "Look at ports and paths of that plane that were taken out of use.",
    confidence: SURE,
    ..Rule::TALLIED
};

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
        finding(&SWITCH_SUSPECT, paths::suspect(&all).into_iter().collect()),
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
        .with("undecided", row.undecided)
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
    finding.aggressors = named
        .take(MAX_HOSTS)
        .map(|of| of.row.requestor.to_string())
        .collect();
    finding.victims = senders.map(|host| host.to_string()).into_iter().collect();
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
    finding.victims = victims.into_iter().collect();
    finding.aggressors = [first.host.to_string()].into_iter().collect();
    Some(finding)
}
