//! Findings, of a whole case.
//!
//! An item: a finding of the truth. Observable: one of the taps shows it by its records alone, and it is large enough for
//! the thresholds of the analysis. Found: a finding of the same id, whatever its severity. Told: findings at `warning` or
//! over; right when the truth holds that finding at all.

use roce_flow::Thresholds;
use roce_model::Severity;
use roce_sim::truth::{Finding, HoleClass, PacketKind, Tap, TriggerKind};

use crate::case::Case;
use crate::score::Score;
use crate::signs::{Sign, Signs};

/// Trains of CNPs that a sender's tap must have recorded before its reaction is sure to be judged: twice what the analysis
/// asks for, because not each train finds its flow backlogged.
const TRAINS: u64 = 10;
/// CNPs this far apart are of two trains.
const TRAIN: u64 = 300_000;
/// The share of a tap's time that a priority is paused before it is called a storm for sure.
const STORM: f64 = 0.1;

pub(crate) fn compare(case: &Case) -> Score {
    let mut score = Score::default();
    let told = &case.seen.summary.findings;
    for finding in &case.truth.findings {
        if is_shown(case, finding) {
            score.expect(told.iter().any(|told| told.id == finding.id), || {
                format!("{}: {} at {}", finding.id, finding.why, finding.taps.join(", "))
            });
        } else {
            score.hidden();
        }
    }
    for finding in told
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning)
    {
        let right = case.truth.findings.iter().any(|other| other.id == finding.id)
            // Whatever is lost while many send to one makes an incast of it, not only what the queue dropped.
            || finding.id == "incast" && case.truth.taps.iter().any(|tap| holds(case, tap, "incast", |_| true));
        // A NAK for what was overtaken behind a tap looks like one for what was lost there; and what comes so late that it has
        // been sent again, like a part of that.
        let overtaken = case.truth.taps.iter().any(|tap| {
            let mut late = tap.holes.iter().filter(|hole| hole.class == HoleClass::Reordered);
            tap.lost_downstream.iter().any(|lost| lost.reordered) || late.any(|hole| !hole.observable)
        });
        if !right && overtaken && finding.id == "loss.network" {
            continue;
        }
        score.tell(right, || format!("{}: {}", finding.id, finding.summary));
    }
    score
}

/// Findings at warning or over in a clean case: there should be none.
pub(crate) fn alarms(case: &Case) -> Score {
    let mut score = Score::default();
    if !case.scenario.clean {
        return score;
    }
    let told = case.seen.summary.findings.iter();
    let alarms: Vec<_> = told
        .filter(|finding| finding.severity >= Severity::Warning)
        .collect();
    score.expect(alarms.is_empty(), || "the traffic is clean".to_owned());
    for finding in alarms {
        score.tell(false, || format!("{}: {}", finding.id, finding.summary));
    }
    score
}

/// Whether a tap shows a finding that is large enough.
fn is_shown(case: &Case, finding: &Finding) -> bool {
    case.truth
        .taps
        .iter()
        .filter(|tap| finding.taps.contains(&tap.name))
        .any(|tap| is_large_enough(case, finding, tap))
}

fn is_large_enough(case: &Case, finding: &Finding, tap: &Tap) -> bool {
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
        "cnp.ignored" => finding.flows.iter().any(|flow| trains(case, tap, flow) >= TRAINS),
        // Each way.
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
                .any(|lost| lost.observable && !lost.reordered)
        }
        "retransmit.timeout" => case.truth.resend_runs.iter().any(|run| {
            let here = run.taps.iter().find(|here| here.tap == tap.name);
            run.trigger == TriggerKind::Timeout && here.is_some_and(|here| here.observable)
        }),
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

/// Whether a tap shows signs of a kind that are of some sort.
fn holds(case: &Case, tap: &Tap, kind: &str, sort: impl Fn(&Sign) -> bool) -> bool {
    let signs = Signs::of(case, tap);
    let mut kinds = signs.by_kind();
    kinds.any(|(name, places)| name == kind && places.values().flatten().any(&sort))
}

/// Trains of CNPs for a flow that a tap at its sender recorded.
fn trains(case: &Case, tap: &Tap, flow: &str) -> u64 {
    let sender = case.flow(flow).is_some_and(|flow| flow.source == tap.node);
    let mut last: Option<u64> = None;
    let mut trains = 0;
    for cnp in case
        .truth
        .cnps
        .iter()
        .filter(|cnp| cnp.flow_id == flow && cnp.recorded_by.contains(&tap.name))
    {
        trains += u64::from(last.is_none_or(|last| cnp.sent - last >= TRAIN));
        last = Some(cnp.sent);
    }
    if sender { trains } else { 0 }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
fn storm(case: &Case, tap: &Tap) -> bool {
    let told = case
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
    told && paused as f64 / 2.0 / case.truth.duration_ns.max(1) as f64 >= STORM
}
