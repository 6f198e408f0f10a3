//! Findings that an analysis of the captures is to come to, with the rule of each: the ids are those of `docs/findings.md`.
//!
//! A rule here examines the events of the simulation. It names the taps whose records alone can show
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::run::Simulation;
use crate::scenario::Operation;
use crate::truth::{EpisodeKind, ExpectedFinding, HoleClass, NakKind, Tap, TriggerKind, Truth};

/// Marked data packets before their CNPs are missed: the first may lie at the end of the run.
const FEW_MARKS: u64 = 8;
/// Share of a run that a port is paused before it may be called a storm: a little less than the analysis
/// requires.
const STORM_SHARE: f64 = 0.04;
/// Jain's index below this is unfair.
const UNFAIR: f64 = 0.8;
/// Queue pairs between two hosts, from which on few source ports are too few: at most a quarter.
const MANY_QPS: usize = 8;
/// Data packets at a tap before it matters that no answers were.
const ENOUGH_DATA: u64 = 100;
/// A stall is as long as this at least, in nanoseconds.
const STALL: u64 = 1_000_000;

/// All findings.
pub(super) fn findings(simulation: &Simulation<'_>, truth: &Truth) -> Vec<ExpectedFinding> {
    let mut findings = Vec::new();
    ecn(simulation, truth, &mut findings);
    dscp(truth, &mut findings);
    loss(truth, &mut findings);
    responses(truth, &mut findings);
    episodes(truth, &mut findings);
    paths(simulation, truth, &mut findings);
    quality(simulation, truth, &mut findings);
    findings
}

/// Adds a finding when it is true of something.
fn add(
    findings: &mut Vec<ExpectedFinding>,
    id: &str,
    why: String,
    flows: BTreeSet<String>,
    taps: Vec<String>,
) {
    findings.push(ExpectedFinding {
        id: id.to_owned(),
        why,
        flows: flows.into_iter().collect(),
        taps,
    });
}

/// Taps for which the condition is true.
fn taps(truth: &Truth, is_true: impl Fn(&Tap) -> bool) -> Vec<String> {
    let found = truth.taps.iter().filter(|tap| is_true(tap));
    found.map(|tap| tap.name.clone()).collect()
}

/// The flows of an item list.
fn set<'a>(flows: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    flows.cloned().collect()
}

/// True if a tap recorded the replies to one of the flows: both directions.
fn both_ways(truth: &Truth, tap: &Tap, flows: &BTreeSet<String>) -> bool {
    truth.connections.iter().any(|connection| {
        let seen = connection.taps.iter().find(|seen| seen.tap == tap.name);
        (flows.contains(&connection.a.flow_id) || flows.contains(&connection.b.flow_id))
            && seen.is_some_and(|seen| seen.a_packets > 0 && seen.b_packets > 0)
    })
}

fn ecn(simulation: &Simulation<'_>, truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let dcqcn = &simulation.scenario.dcqcn;
    let marked = set(truth.flows.iter().filter(|f| f.ce > 0).map(|f| &f.flow_id));
    let ce: u64 = truth.flows.iter().map(|flow| flow.ce).sum();
    let slowed = set(truth
        .cnps
        .iter()
        .filter(|cnp| !cnp.after_nak)
        .map(|cnp| &cnp.flow_id));
    let recorded_ce = |tap: &Tap| tap.flows.iter().map(|flow| flow.ce).sum::<u64>();
    let recorded_cnps = |tap: &Tap| tap.flows.iter().map(|flow| flow.cnps).sum::<u64>();
    let reacts = truth.connections.iter().enumerate().any(|(place, connection)| {
        slowed.contains(&connection.a.flow_id) && simulation.ends[place * 2].reaction.is_some()
            || slowed.contains(&connection.b.flow_id) && simulation.ends[place * 2 + 1].reaction.is_some()
    });
    if !slowed.is_empty() && reacts {
        add(
            findings,
            "ecn.working",
            format!(
                "{ce} packets marked, {} CNPs, senders slow down",
                truth.cnps.len()
            ),
            marked.clone(),
            taps(truth, |tap| recorded_ce(tap) > 0 && recorded_cnps(tap) > 0),
        );
    }
    // Messages of the connection manager are Not-ECT always.
    let plain = truth.flows.iter().filter(|f| f.not_ect > 0 && !f.management);
    let plain = set(plain.map(|f| &f.flow_id));
    if !plain.is_empty() {
        let seen = taps(truth, |tap| {
            tap.flows
                .iter()
                .any(|flow| flow.not_ect > 0 && plain.contains(&flow.flow_id))
        });
        add(
            findings,
            "ecn.not-capable",
            "data is sent Not-ECT".to_owned(),
            plain,
            seen,
        );
    }
    if ce >= FEW_MARKS && !dcqcn.notify {
        let seen = taps(truth, |tap| {
            recorded_ce(tap) >= FEW_MARKS && both_ways(truth, tap, &marked)
        });
        let why = format!("{ce} packets marked, the notification point is off");
        add(findings, "ecn.marks-without-cnp", why, marked, seen);
    }
    if !slowed.is_empty() && !reacts {
        // A sender's own tap shows CNPs come in and the rate stay.
        let seen = taps(truth, |tap| {
            let sends =
                |flow: &&crate::truth::Flow| flow.source == tap.node && slowed.contains(&flow.flow_id);
            tap.at_host && recorded_cnps(tap) > 0 && truth.flows.iter().any(|flow| sends(&flow))
        });
        let why = format!("{} CNPs, the reaction point is off", truth.cnps.len());
        add(findings, "cnp.ignored", why, slowed.clone(), seen);
    }
    let same = truth.connections.iter().any(|c| {
        [&c.a, &c.b]
            .into_iter()
            .any(|end| slowed.contains(&end.flow_id) && end.dscp == dcqcn.cnp_dscp)
    });
    if !truth.cnps.is_empty() && (same || dcqcn.cnp_dscp == 0) {
        let seen = taps(truth, |tap| recorded_cnps(tap) > 0);
        let why = format!("CNPs have DSCP {}", dcqcn.cnp_dscp);
        add(findings, "cnp.class", why, slowed, seen);
    }
}

fn dscp(truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let data = |flow_id: &String| {
        let flow = truth.flows.iter().find(|flow| flow.flow_id == *flow_id);
        flow.is_some_and(|flow| flow.data_packets > 0)
    };
    let mut flows = BTreeSet::new();
    for connection in &truth.connections {
        let (a, b) = (&connection.a, &connection.b);
        if a.dscp != b.dscp && data(&a.flow_id) && data(&b.flow_id) {
            flows.extend([a.flow_id.clone(), b.flow_id.clone()]);
        }
    }
    if !flows.is_empty() {
        let records = |tap: &Tap, flow: &String| {
            tap.flows
                .iter()
                .any(|seen| seen.flow_id == *flow && seen.data_packets > 0)
        };
        let seen = taps(truth, |tap| {
            truth.connections.iter().any(|connection| {
                flows.contains(&connection.a.flow_id)
                    && records(tap, &connection.a.flow_id)
                    && records(tap, &connection.b.flow_id)
            })
        });
        let why = "the two directions of a connection use different DSCPs".to_owned();
        add(findings, "dscp.mismatch", why, flows, seen);
    }
}

fn loss(truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    if !truth.losses.is_empty() {
        let seen = taps(truth, |tap| {
            tap.holes
                .iter()
                .any(|hole| hole.class == HoleClass::NetworkLost && hole.observable)
                || tap
                    .lost_downstream
                    .iter()
                    .any(|lost| lost.observable && !lost.reordered)
        });
        let flows = set(truth.losses.iter().map(|loss| &loss.flow_id));
        let why = format!("{} packets lost by the network", truth.losses.len());
        add(findings, "loss.network", why, flows, seen);
    }
    let missed: u64 = truth.taps.iter().map(|tap| tap.records_lost).sum();
    if missed > 0 {
        let seen = taps(truth, |tap| {
            tap.holes
                .iter()
                .any(|hole| hole.class == HoleClass::CaptureLost && hole.observable)
        });
        let flows = truth.taps.iter().flat_map(|tap| &tap.capture_losses);
        let flows = set(flows.map(|lost| &lost.flow_id));
        add(
            findings,
            "loss.capture",
            format!("{missed} records lost by taps"),
            flows,
            seen,
        );
    }
}

/// True if the tap recorded retransmitted requests of one of the flows.
fn retransmissions(tap: &Tap, flows: &BTreeSet<String>) -> bool {
    tap.flows
        .iter()
        .any(|flow| flows.contains(&flow.flow_id) && flow.retransmitted_packets > 0)
}

fn responses(truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let runs = truth.retransmission_runs.iter();
    let late = runs.filter(|run| run.trigger == TriggerKind::Timeout);
    let flows = set(late.map(|run| &run.flow_id));
    if !flows.is_empty() {
        let seen = taps(truth, |tap| retransmissions(tap, &flows));
        let why = "requests are retransmitted after silence".to_owned();
        add(findings, "retransmit.timeout", why, flows, seen);
    }
    for (id, kind, why) in [
        ("rnr", NakKind::Rnr, "RNR NAKs: no receive buffer was posted"),
        ("nak.fatal", NakKind::Fatal, "a NAK ended the connection"),
    ] {
        let naks: Vec<_> = truth.naks.iter().filter(|nak| nak.kind == kind).collect();
        if !naks.is_empty() {
            let flows = set(naks.iter().map(|nak| &nak.flow_id));
            let seen = taps(truth, |tap| {
                naks.iter().any(|nak| nak.recorded_by.contains(&tap.name))
            });
            add(findings, id, why.to_owned(), flows, seen);
        }
    }
}

fn episodes(truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let of = |kind: EpisodeKind| truth.episodes.iter().filter(move |episode| episode.kind == kind);
    let incast: Vec<_> = of(EpisodeKind::Incast).collect();
    if let Some(widest) = incast.iter().map(|episode| episode.senders).max() {
        let flows = incast.iter().flat_map(|episode| &episode.flows);
        let seen = taps(truth, |tap| {
            incast.iter().any(|episode| episode.taps.contains(&tap.name))
        });
        add(
            findings,
            "incast",
            format!("{widest} hosts send to one"),
            set(flows),
            seen,
        );
    }
    let mut worst: Option<(f64, &crate::truth::Episode)> = None;
    for episode in &incast {
        let index = fairness(truth, episode);
        if index < UNFAIR && worst.is_none_or(|(least, _)| index < least) {
            worst = Some((index, episode));
        }
    }
    if let Some((index, episode)) = worst {
        let flows = episode.flows.iter().cloned().collect();
        let why = format!("Jain's index {index:.2} during an incast");
        add(findings, "unfair", why, flows, episode.taps.clone());
    }
    let stalls: Vec<_> = of(EpisodeKind::Stall)
        .filter(|episode| episode.end - episode.begin >= STALL)
        .collect();
    if !stalls.is_empty() {
        let flows = set(stalls.iter().flat_map(|episode| &episode.flows));
        let seen = taps(truth, |tap| {
            stalls.iter().any(|episode| episode.taps.contains(&tap.name))
        });
        add(findings, "stall", format!("{} stalls", stalls.len()), flows, seen);
    }
    storms(truth, findings);
}

/// Jain's index of the bytes that flows delivered to their destination during an episode.
#[expect(clippy::cast_precision_loss, reason = "bytes of one run stay below 2^53")]
fn fairness(truth: &Truth, episode: &crate::truth::Episode) -> f64 {
    let bin = |time: u64| usize::try_from(time / 1_000_000).unwrap_or(usize::MAX);
    let (first, last) = (bin(episode.begin), bin(episode.end));
    let shares = episode.flows.iter().filter_map(|id| {
        let flow = truth.flows.iter().find(|flow| flow.flow_id == *id)?;
        let bins = flow.received_bytes_per_ms.iter().skip(first);
        Some(bins.take(last - first + 1).sum::<u64>() as f64)
    });
    let shares: Vec<f64> = shares.collect();
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
fn storms(truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let mut places: BTreeMap<_, (u64, BTreeSet<String>)> = BTreeMap::new();
    for pause in &truth.pauses {
        let (time, taps) = places.entry((pause.place.as_str(), pause.priority)).or_default();
        *time += pause.end - pause.begin;
        taps.extend(pause.recorded_by.iter().cloned());
    }
    let mut seen = BTreeSet::new();
    let mut why = None;
    for ((place, priority), (time, taps)) in places {
        let share = time as f64 / truth.duration_ns.max(1) as f64;
        if share >= STORM_SHARE || priority.is_none() {
            seen.extend(taps);
            why = Some(format!("{place} is paused {:.0} % of the time", share * 100.0));
        }
    }
    if let Some(why) = why {
        add(
            findings,
            "pause.storm",
            why,
            BTreeSet::new(),
            seen.into_iter().collect(),
        );
    }
}

fn paths(simulation: &Simulation<'_>, truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let mut pairs: BTreeMap<_, (Vec<&str>, BTreeSet<u16>)> = BTreeMap::new();
    for connection in &truth.connections {
        let (a, b) = (&connection.a, &connection.b);
        let (flows, ports) = pairs.entry((a.host.as_str(), b.host.as_str())).or_default();
        flows.push(&a.flow_id);
        ports.insert(a.source_port);
    }
    for ((a, b), (flows, ports)) in pairs {
        if flows.len() >= MANY_QPS && ports.len() * 4 <= flows.len() {
            let why = format!(
                "{} queue pairs from {a} to {b} on {} UDP source ports",
                flows.len(),
                ports.len()
            );
            let flows: BTreeSet<String> = flows.into_iter().map(str::to_owned).collect();
            let seen = taps(truth, |tap| {
                tap.flows
                    .iter()
                    .filter(|flow| flows.contains(&flow.flow_id))
                    .count()
                    >= MANY_QPS
            });
            add(findings, "ecmp.entropy", why, flows, seen);
        }
    }
    let headers = if simulation.scenario.network.ipv6 { 40 } else { 20 } + 8 + 12 + 16 + 4;
    let mtu = simulation.scenario.nic.mtu;
    let link = simulation.scenario.network.mtu.unwrap_or_else(|| {
        let fits = [1500, 4200, 9000].into_iter().find(|size| mtu + headers <= *size);
        fits.unwrap_or(9000)
    });
    let best = [4096, 2048, 1024, 512]
        .into_iter()
        .find(|size| size + headers <= link);
    if let Some(best) = best.filter(|best| *best > mtu) {
        let why = format!("path MTU {mtu}, the links carry {best}");
        add(findings, "mtu", why, BTreeSet::new(), Vec::new());
    }
}

/// True if a tap keeps too little of WRITE and READ requests.
fn headers_cut(simulation: &Simulation<'_>, truth: &Truth, tap: &Tap) -> bool {
    let has_reth = truth.connections.iter().any(|connection| {
        let here = connection.taps.iter().find(|here| here.tap == tap.name);
        let table = simulation.table(connection.id as usize);
        here.is_some_and(|here| here.a_packets > 0) && table.is_some_and(|table| table.op != Operation::Send)
    });
    let mut tables = simulation.scenario.tap.iter();
    let cuts = tables.any(|table| {
        crate::record::observer::tap_name(table) == tap.name && super::pairs::cuts_reth(simulation, table)
    });
    let recorded = truth
        .taps
        .iter()
        .any(|other| other.name == tap.name && other.records > 0);
    recorded && has_reth && cuts
}

fn quality(simulation: &Simulation<'_>, truth: &Truth, findings: &mut Vec<ExpectedFinding>) {
    let bad = truth
        .losses
        .iter()
        .filter(|loss| loss.reason == crate::truth::LossReason::Icrc);
    let bad: Vec<_> = bad.collect();
    if !bad.is_empty() {
        let flows = set(bad.iter().map(|loss| &loss.flow_id));
        let seen = taps(truth, |tap| {
            // Packets break inside the network: a tap where they enter it sees them whole.
            let mut links = simulation
                .scenario
                .impairment
                .iter()
                .filter(|link| link.corrupt > 0.0);
            let broken = links.any(|link| (&link.from, &link.to) != (&tap.node, &tap.neighbour));
            tap.snaplen == 0 && broken && bad.iter().any(|loss| loss.recorded_by.contains(&tap.name))
        });
        add(
            findings,
            "icrc.bad",
            format!("{} packets with a wrong ICRC", bad.len()),
            flows,
            seen,
        );
    }
    let poor = taps(truth, |tap| {
        let table = simulation
            .scenario
            .tap
            .iter()
            .find(|table| crate::record::observer::tap_name(table) == tap.name);
        let coarse = table.is_some_and(|table| table.poll.is_some() || table.quantum.nanos() > 1_000);
        let losses_reported = table.is_some_and(|table| {
            use crate::scenario::LossReportName;
            matches!(
                table.loss_report,
                LossReportName::Packets | LossReportName::Statistics
            ) && tap.records_lost > 0
        });
        // Others have no answers that could be missed.
        let answered = |id: &String| {
            let mut ends = truth
                .connections
                .iter()
                .filter(|connection| connection.service == "RC");
            ends.any(|connection| [&connection.a.flow_id, &connection.b.flow_id].contains(&id))
        };
        let data = tap.flows.iter().filter(|flow| answered(&flow.flow_id));
        let data: u64 = data.map(|flow| flow.data_packets).sum();
        let one_way = data >= ENOUGH_DATA
            && !truth.connections.is_empty()
            && truth.connections.iter().all(|connection| {
                let seen = connection.taps.iter().find(|seen| seen.tap == tap.name);
                seen.is_none_or(|seen| seen.a_packets == 0 || seen.b_packets == 0)
            });
        coarse || losses_reported || one_way || headers_cut(simulation, truth, tap)
    });
    if !poor.is_empty() {
        let why = "stamps in batches, records lost, headers cut, or one direction only".to_owned();
        add(findings, "capture.quality", why, BTreeSet::new(), poor);
    }
}
