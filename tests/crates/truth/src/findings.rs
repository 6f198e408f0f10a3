//! Findings, of a whole case.
//!
//! An item: a finding of the truth. Observable: one of the taps shows it by its records alone, and it is large enough for
//! the thresholds of the analysis. Found: a finding of the same id, whatever its severity. Said: findings at `warning` or
//! over; right when the truth holds that finding at all. The calibration takes all but those of severity `ok`, as far as
//! something in the scenario's log proves or disproves them; the others are counted as not judged.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Confidence, Fact, FindingRow, Severity};
use roce_sim::truth::{ExpectedFinding, HoleClass, LossReason, LostDownstream, PacketKind, Tap, TriggerKind};
use roce_verdict::Thresholds;

use crate::case::Case;
use crate::reactions;
use crate::score::StatedConfidence;
use crate::scores::Scores;
use crate::signs::{Sign, Signs};
use crate::{imbalance, lateness, provenance};

/// Jain's index below this is unfair, as the simulator's truth has it.
const UNFAIR: f64 = 0.8;
/// The share of a tap's time that a priority is paused before it is called a storm for sure.
const STORM: f64 = 0.1;

/// The ids whose truth the simulator knows.
const KNOWN: &[&str] = &[
    "ecn.working",
    "ecn.not-capable",
    "ecn.marks-without-cnp",
    "cnp.ignored",
    "cnp.class",
    "dscp.mismatch",
    "loss.network",
    "loss.capture",
    "retransmit.timeout",
    "rnr",
    "nak.fatal",
    "incast",
    "unfair",
    "stall",
    "pause.storm",
    "ecmp.entropy",
    "mtu",
    "mtu.exceeded",
    "icrc.bad",
    "capture.quality",
    "path.spread",
    "drops.switch",
    // Simulated switches count what they mark and state no thresholds: each such warning is false.
    "ecn.threshold",
];
/// The ids that `provenance`, `imbalance` and `lateness` judge.
const ELSEWHERE: &[&str] = &[
    provenance::FINDING,
    imbalance::FINDING,
    "rank.late",
    "receiver.late",
    "network.late",
    lateness::CANNOT_TELL,
];
/// Findings that are no fault of the network or its hosts: a capture with them can be healthy.
const HARMLESS: &[&str] = &[
    "ecn.working",
    "not.network",
    "mtu",
    "capture.quality",
    "loss.capture",
];

fn class(id: &str) -> String {
    format!("finding {id}")
}

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    let said = &case.seen.summary.findings;
    let happened = happened(case);
    for finding in &happened {
        let score = scores.of_class(&class(&finding.id));
        if is_shown(case, finding) {
            score.expect(said.iter().any(|said| said.id == finding.id), || {
                format!("{} at {}", finding.why, finding.taps.join(", "))
            });
        } else {
            score.hidden();
        }
    }
    for finding in said {
        if ELSEWHERE.contains(&finding.id) {
            continue;
        }
        if !KNOWN.contains(&finding.id) {
            if finding.severity > Severity::Ok {
                *scores.not_judged.entry(finding.id).or_default() += 1;
            }
            continue;
        }
        let right = is_right(case, &happened, finding);
        if !right && is_undecidable(case, finding) {
            continue;
        }
        let degree = StatedConfidence::of(finding.confidence);
        let note = || {
            let (severity, confidence) = (finding.severity.name(), finding.confidence.name());
            format!("{severity}, {confidence}: {}", finding.summary)
        };
        if finding.severity > Severity::Ok {
            let score = scores.calibration.entry(finding.id).or_default();
            score.tell_with(degree, right, note);
        }
        if finding.severity >= Severity::Warning {
            scores.of_class(&class(finding.id)).tell_with(degree, right, note);
        }
    }
}

/// True if flows to one host had shares that differ much, over the run or three milliseconds of it:
/// Jain's index below [`UNFAIR`].
#[expect(clippy::cast_precision_loss, reason = "bytes of one run stay below 2^53")]
fn is_unfair(case: &Case) -> bool {
    let mut hosts: BTreeMap<&str, Vec<&[u64]>> = BTreeMap::new();
    for flow in &case.truth.flows {
        let bytes = flow.received_bytes_per_ms.as_slice();
        if !flow.management && bytes.iter().any(|bytes| *bytes > 0) {
            hosts.entry(&flow.destination).or_default().push(bytes);
        }
    }
    let bins = case.truth.duration_ns.div_ceil(1_000_000);
    let bins = usize::try_from(bins).unwrap_or(0);
    let unfair = |flows: &[&[u64]], from: usize, count: usize| {
        let shares = flows
            .iter()
            .map(|bytes| bytes.iter().skip(from).take(count).sum::<u64>() as f64);
        let shares: Vec<f64> = shares.filter(|share| *share > 0.0).collect();
        let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        shares.len() > 1 && sum * sum < UNFAIR * shares.len() as f64 * squares
    };
    hosts
        .values()
        .any(|flows| unfair(flows, 0, bins) || (0..bins).any(|from| unfair(flows, from, 3)))
}

/// True if a finding agrees with the simulation.
fn is_right(case: &Case, happened: &[ExpectedFinding], finding: &FindingRow) -> bool {
    if happened.iter().any(|other| other.id == finding.id) {
        return true;
    }
    let mut taps = case.truth.taps.iter();
    match finding.id {
        "unfair" => is_unfair(case),
        // Whatever is lost while many send to one makes an incast of it, not only what the queue dropped.
        "incast" => taps.any(|tap| holds(case, tap, "incast", |_| true)),
        "stall" => taps.any(|tap| holds(case, tap, "stall", |_| true)),
        "path.spread" => {
            taps.any(|tap| !tap.late.is_empty() || tap.flows.iter().any(|flow| flow.reordered > 0))
        }
        "loss.capture" => taps.any(|tap| tap.records_lost > 0 || !tap.capture_losses.is_empty()),
        "icrc.bad" => case
            .truth
            .losses
            .iter()
            .any(|loss| loss.reason == LossReason::Icrc && !loss.recorded_by.is_empty()),
        "drops.switch" => drops_fit(case, finding),
        provenance::FINDING => provenance::is_right(case, finding),
        imbalance::FINDING => imbalance::is_right(case, finding),
        "capture.quality" => taps.any(|tap| is_poor(case, tap)),
        _ => false,
    }
}

/// True if switches dropped packets, at a port that the finding names; of a finding that none did, if they dropped none.
fn drops_fit(case: &Case, finding: &FindingRow) -> bool {
    let nodes = provenance::Nodes::new(case);
    let losses = case.truth.losses.iter();
    let mut dropped = losses
        .filter(|loss| matches!(loss.reason, LossReason::TailDrop | LossReason::Headroom))
        .peekable();
    let is_none = finding
        .evidence
        .0
        .iter()
        .any(|(name, fact)| *name == "dropped" && matches!(fact, Fact::Count(0)));
    if is_none {
        return dropped.peek().is_none();
    }
    dropped.any(|loss| {
        let back = loss
            .place
            .split_once("->")
            .map(|(own, peer)| format!("{peer}->{own}"));
        provenance::names(&nodes, finding, &loss.place)
            || back.is_some_and(|place| provenance::names(&nodes, finding, &place))
    })
}

/// True if a tap recorded less than passed it, or changed: other reasons for uncertain results than the
/// truth's own finding. Frames were lost, in parts or by a mirror; one direction only was seen; queues
/// were written one after the other; copies were recorded; stamps were late, or the clock was set.
fn is_poor(case: &Case, tap: &Tap) -> bool {
    let made = case.table(tap).is_some_and(|table| {
        table.queues > 1
            || table.doubled.is_some()
            || table.late.is_some()
            || table.clock_step_at.is_some()
            || table.direction != roce_sim::scenario::TapDirection::Both
    });
    made || tap.records_lost > 0 || tap.copies > 0
}

/// The findings of the truth. Whether CNPs are ignored is known here by flow: some senders may react and others not.
fn happened(case: &Case) -> Vec<ExpectedFinding> {
    let mut findings = case.truth.findings.clone();
    findings.retain(|finding| finding.id != "cnp.ignored");
    findings.extend(never_passed(case));
    let ignoring: BTreeSet<&String> = case
        .truth
        .cnps
        .iter()
        .filter(|cnp| !cnp.after_nak && cnp.received.is_some() && !case.reacts(&cnp.flow_id))
        .map(|cnp| &cnp.flow_id)
        .collect();
    if !ignoring.is_empty() {
        let at_sender = |tap: &Tap| {
            let mut flows = ignoring.iter().filter_map(|id| case.flow(id));
            flows.any(|flow| flow.source == tap.node)
        };
        let taps = case.truth.taps.iter().filter(|tap| at_sender(tap));
        findings.push(ExpectedFinding {
            id: "cnp.ignored".to_owned(),
            why: format!("the reaction point of {} flows is off", ignoring.len()),
            taps: taps.map(|tap| tap.name.clone()).collect(),
            flows: ignoring.into_iter().cloned().collect(),
        });
    }
    findings
}

/// Flows of which not one packet arrived, because all are longer than a link on the way takes.
fn never_passed(case: &Case) -> Option<ExpectedFinding> {
    let mut links = case.parsed.impairment.iter();
    if !links.any(|link| link.longer_than.is_some()) {
        return None;
    }
    let flows = case.truth.flows.iter();
    let flows = flows.filter(|flow| !flow.management && flow.packets_sent > 0 && flow.packets_received == 0);
    let flows: Vec<String> = flows.map(|flow| flow.flow_id.clone()).collect();
    (!flows.is_empty()).then(|| ExpectedFinding {
        id: "mtu.exceeded".to_owned(),
        why: format!("no packet of {} flows is as short as a link takes", flows.len()),
        taps: case.truth.taps.iter().map(|tap| tap.name.clone()).collect(),
        flows,
    })
}

/// True if no record can disprove a finding that is not true.
fn is_undecidable(case: &Case, finding: &FindingRow) -> bool {
    // A NAK for a packet that was overtaken behind a tap looks like one for a loss there. A packet that
    // comes so late that it has been retransmitted looks like a part of that run. Said with high
    // confidence it is wrong all the same.
    let overtaken = case.truth.taps.iter().any(|tap| {
        let mut late = tap.holes.iter().filter(|hole| hole.class == HoleClass::Reordered);
        tap.lost_downstream.iter().any(|lost| lost.reordered) || late.any(|hole| !hole.observable)
    });
    overtaken && finding.id == "loss.network" && finding.confidence != Confidence::High
}

/// True if everything in a case was as it should be: its family says so, and nothing went wrong by
/// chance.
pub(crate) fn is_healthy(case: &Case) -> bool {
    let truth = &case.truth;
    case.scenario.healthy
        && truth.losses.is_empty()
        && truth.retransmission_runs.is_empty()
        && truth.naks.is_empty()
        && hardly_pauses(case)
        && !imbalance::happened(case)
        && happened(case)
            .iter()
            .all(|finding| HARMLESS.contains(&finding.id.as_str()))
}

/// True if no port was paused for half a percent of the run.
fn hardly_pauses(case: &Case) -> bool {
    let mut ports: BTreeMap<&str, u64> = BTreeMap::new();
    for pause in &case.truth.pauses {
        *ports.entry(&pause.place).or_default() += pause.end - pause.begin;
    }
    ports.values().all(|paused| paused * 200 < case.truth.duration_ns)
}

/// Findings at warning or over in a healthy case: there should be none. `healthy` counts cases, `false warnings`
/// findings.
pub(crate) fn healthy(case: &Case, scores: &mut Scores) {
    if !is_healthy(case) {
        return;
    }
    let true_ones = happened(case);
    let said = case.seen.summary.findings.iter();
    let alarms: Vec<_> = said
        .filter(|finding| finding.severity >= Severity::Warning)
        .filter(|finding| !is_right(case, &true_ones, finding))
        .collect();
    scores.of_class("healthy").expect(alarms.is_empty(), || {
        let ids: Vec<&str> = alarms.iter().map(|finding| finding.id).collect();
        format!("nothing is wrong, said {}", ids.join(", "))
    });
    for finding in alarms {
        let degree = StatedConfidence::of(finding.confidence);
        scores
            .of_class("false warnings")
            .tell_with(degree, false, || format!("{}: {}", finding.id, finding.summary));
    }
}

/// True if a tap shows a finding that is large enough.
fn is_shown(case: &Case, finding: &ExpectedFinding) -> bool {
    case.truth
        .taps
        .iter()
        .filter(|tap| finding.taps.contains(&tap.name))
        .any(|tap| is_large_enough(case, finding, tap))
}

fn is_large_enough(case: &Case, finding: &ExpectedFinding, tap: &Tap) -> bool {
    let thresholds = Thresholds::default();
    let flows = || {
        tap.flows
            .iter()
            .filter(|flow| finding.flows.contains(&flow.flow_id))
    };
    let recorded = |taps: &[String]| taps.contains(&tap.name);
    match finding.id.as_str() {
        "ecn.working" => tap
            .flows
            .iter()
            .any(|flow| flow.ce > 0 && flow.cnps > 0 && case.is_paired_at(tap, &flow.flow_id)),
        "ecn.not-capable" => {
            // More than half of a flow's packets, and enough of them.
            let plain = flows().filter(|flow| flow.not_ect * 2 > flow.data_packets);
            plain.map(|flow| flow.not_ect).sum::<u64>() >= thresholds.least_data_packets
        }
        // Between two hosts, at connections that are paired; at the sender's side there is no CE.
        "ecn.marks-without-cnp" => {
            flows().any(|flow| flow.ce >= thresholds.least_marks && case.is_paired_at(tap, &flow.flow_id))
        }
        "cnp.ignored" => {
            let mut flows = finding.flows.iter();
            flows.any(|flow| reactions::exceeds(case, tap, flow))
        }
        // In each direction.
        "dscp.mismatch" => case.truth.connections.iter().any(|connection| {
            let data = |id: &String| {
                tap.flows
                    .iter()
                    .find(|flow| flow.flow_id == *id)
                    .map_or(0, |flow| flow.data_packets)
            };
            finding.flows.contains(&connection.a.flow_id)
                && data(&connection.a.flow_id).min(data(&connection.b.flow_id))
                    >= thresholds.least_data_packets
                && case.is_paired_at(tap, &connection.a.flow_id)
        }),
        "loss.network" => {
            let hole = tap
                .holes
                .iter()
                .any(|hole| hole.observable && hole.class == HoleClass::NetworkLost);
            hole || tap
                .lost_downstream
                .iter()
                .any(|lost| lost.observable && !lost.reordered && !was_recorded_damaged(case, tap, lost))
        }
        "retransmit.timeout" => case.truth.retransmission_runs.iter().any(|run| {
            let here = run.taps.iter().find(|here| here.tap == tap.name);
            run.trigger == TriggerKind::Timeout && here.is_some_and(|here| here.observable)
        }),
        // Three repeats of one flow, and packets of another that are answered.
        "mtu.exceeded" => {
            let repeats = |id: &String| {
                let mut runs = 0;
                for run in &case.truth.retransmission_runs {
                    let mut here = run.taps.iter().filter(|here| here.tap == tap.name);
                    runs += u32::from(run.flow_id == *id && here.any(|here| here.observable));
                }
                runs
            };
            let mut here = tap.flows.iter();
            finding.flows.iter().any(|id| repeats(id) >= 3)
                && here.any(|flow| flow.data_packets > 0 && case.is_paired_at(tap, &flow.flow_id))
        }
        "incast" => holds(case, tap, "incast", |sign| sign.sure),
        "unfair" | "mtu" => false,
        "stall" => case.truth.episodes.iter().any(|episode| {
            let long = episode.end - episode.begin >= thresholds.stall_least.0 * 2;
            episode.kind == roce_sim::truth::EpisodeKind::Stall && long && recorded(&episode.taps)
        }),
        "pause.storm" => storm(case, tap),
        "ecmp.entropy" => {
            flows().filter(|flow| flow.payload_bytes > 0).count() as u64 >= thresholds.entropy_flows
        }
        "icrc.bad" => case.truth.losses.iter().any(|loss| {
            loss.reason == roce_sim::truth::LossReason::Icrc
                && recorded(&loss.recorded_by)
                && loss.kind != PacketKind::Cnp
                // Damaged on the link that the tap's host receives from.
                && loss.place.ends_with(&format!("->{}", tap.node))
        }),
        _ => true,
    }
}

/// True if the tap recorded the packet on the link that broke it, with a wrong ICRC. An adapter discards such a packet (IBTA 7.8.1), and asks for it again.
/// That is what `icrc.bad` says; the network delivered it.
fn was_recorded_damaged(case: &Case, tap: &Tap, lost: &LostDownstream) -> bool {
    let mut losses = case.truth.losses.iter();
    tap.snaplen == 0
        && losses.any(|loss| {
            loss.reason == LossReason::Icrc
                && (&loss.flow_id, loss.psn) == (&lost.flow_id, lost.psn)
                && loss.recorded_by.contains(&tap.name)
                && loss.place.split("->").any(|end| end == tap.node)
        })
}

/// True if a tap shows signs of a kind that have the property.
fn holds(case: &Case, tap: &Tap, kind: &str, sort: impl Fn(&Sign) -> bool) -> bool {
    let signs = Signs::of(case, tap);
    let mut kinds = signs.by_kind();
    kinds.any(|(name, places)| name == kind && places.values().flatten().any(&sort))
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
fn storm(case: &Case, tap: &Tap) -> bool {
    let is_logged = case
        .scenario
        .arguments
        .iter()
        .any(|argument| argument == "--link-rate");
    let paused: u64 = case
        .truth
        .pauses
        .iter()
        .filter(|pause| pause.recorded_by.contains(&tap.name))
        .map(|pause| pause.end - pause.begin)
        .sum();
    // Two ports can be paused at one link.
    is_logged && paused as f64 / 2.0 / case.truth.duration_ns.max(1) as f64 >= STORM
}
