//! The simulation's knowledge beside the analysis' conclusions: the lines of a demo's last table.
//!
//! Counts agree when they are equal for every flow, not only in their sum. Facts that a tap could not
//! see are left out.

mod line;
mod mrc;
mod results;

use std::collections::{BTreeMap, BTreeSet};

use roce_model::text::port_name;
use roce_model::{FlowRow, Severity, Span};
use roce_sim::truth::{ConnectionAtTap, HoleClass, PacketKind, TapFlow, TriggerKind, Truth};
use roce_spelling::count;

use self::line::line;
pub(crate) use self::line::{Agreement, VerdictLine};
pub(crate) use self::results::DemoResults;
use super::lesson::Lesson;

/// All lines of a demo.
pub(crate) fn compare(lesson: &Lesson, truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    let mut lines: Vec<VerdictLine> = copies(truth, concluded).into_iter().collect();
    // The truth has connections of MRC, and no flows.
    if truth.mrc.is_empty() {
        lines.extend(counts(truth, concluded));
    }
    lines.extend(holes(truth, concluded));
    lines.extend(reordering(truth, concluded));
    lines.extend(runs(truth, concluded));
    lines.extend(mrc::connections(truth, concluded));
    lines.extend(pairs(truth, concluded));
    lines.extend(pauses(truth, concluded));
    lines.extend(pause_roots(lesson, truth, concluded));
    lines.extend(steps(truth, concluded));
    lines.extend(episodes(truth, concluded));
    lines.extend(findings(lesson, truth, concluded));
    lines
}

/// A count of a flow: its name, the truth at one tap, the verdict of one row.
type ComparedCount = (&'static str, fn(&TapFlow) -> u64, fn(&FlowRow) -> u64);

/// The count of retransmissions.
const RETRANSMITTED: &str = "retransmitted packets, as far as visible";

const COUNTS: [ComparedCount; 10] = [
    ("packets without CNPs", |t| t.packets, |v| v.packets),
    ("data packets marked CE", |t| t.ce, |v| v.ce),
    ("data packets without ECN", |t| t.not_ect, |v| v.not_ect),
    (
        "CNPs, by the flow they slow down",
        |t| t.cnps,
        |v| v.cnp.unwrap_or(0),
    ),
    ("NAKs", |t| t.naks, |v| v.naks),
    ("RNR NAKs", |t| t.rnr_naks, |v| v.rnr_naks),
    (
        RETRANSMITTED,
        |t| t.retransmitted_behind_packets,
        |v| v.retransmitted_packets,
    ),
    ("PSNs missing in the capture", |t| t.missing, |v| v.missing),
    ("packets that came late", |t| t.late, |v| v.late),
    (
        "captured here, lost behind the tap",
        |t| t.lost_downstream,
        |v| v.lost_downstream.unwrap_or(0),
    ),
];

fn counts(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    let management: BTreeSet<&str> = truth
        .flows
        .iter()
        .filter(|flow| flow.management)
        .map(|flow| flow.flow_id.as_str())
        .collect();
    let is_data = |flow: &str| !management.contains(flow);
    // Late packets and copies look like retransmissions: their absence is worth a line.
    let looks_retransmitted = truth
        .taps
        .iter()
        .any(|tap| tap.copies > 0 || tap.flows.iter().any(|flow| flow.late > 0));
    let mut lines = Vec::new();
    for (about, of_truth, of_verdict) in COUNTS {
        let mut by_flow: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for flow in truth
            .taps
            .iter()
            .flat_map(|tap| &tap.flows)
            .filter(|flow| is_data(&flow.flow_id))
        {
            by_flow.entry(flow.flow_id.clone()).or_default().0 += of_truth(flow);
        }
        for row in &concluded.flows {
            let flow = row.flow_id.to_string();
            if is_data(&flow) {
                by_flow.entry(flow).or_default().1 += of_verdict(row);
            }
        }
        let sum = |of: fn(&(u64, u64)) -> u64| by_flow.values().map(of).sum::<u64>();
        let (happened, said) = (sum(|both| both.0), sum(|both| both.1));
        if happened > 0 || said > 0 || (looks_retransmitted && about == RETRANSMITTED) {
            lines.push(VerdictLine {
                about: about.to_owned(),
                truth: count(happened),
                verdict: count(said),
                agreement: Agreement::from_bool(by_flow.values().all(|(truth, verdict)| truth == verdict)),
            });
        }
    }
    lines
}

/// Frames that a mirror showed twice.
fn copies(truth: &Truth, concluded: &DemoResults) -> Option<VerdictLine> {
    line(
        "copies made by the mirror, dropped",
        truth.taps.iter().map(|tap| tap.copies).sum(),
        concluded.run.taps.iter().map(|tap| tap.copies).sum(),
    )
}

/// Classes of missing PSNs.
fn holes(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    type Fates = (&'static str, &'static [HoleClass], fn(&FlowRow) -> u64);
    // PSNs in a run of retransmissions would have been retransmitted in any case: which of them were
    // lost is a matter of definition.
    const FATES: [Fates; 3] = [
        (
            "- lost by the network, or retransmitted anyway",
            &[HoleClass::NetworkLost, HoleClass::Ambiguous],
            // A PSN is missing once, however often it is lost.
            |v| v.network_lost.saturating_sub(v.network_lost_again) + v.ambiguous,
        ),
        ("- lost by the capture", &[HoleClass::CaptureLost], |v| {
            v.capture_lost
        }),
        ("- reordered", &[HoleClass::Reordered], |v| v.reordered),
    ];
    let lines = FATES.iter().filter_map(|(about, classes, of_verdict)| {
        let holes = truth.taps.iter().flat_map(|tap| &tap.holes);
        let holes: Vec<_> = holes.filter(|hole| classes.contains(&hole.class)).collect();
        let happened = holes.len() as u64;
        let observable = holes.iter().filter(|hole| hole.observable).count() as u64;
        let said = concluded.flows.iter().map(of_verdict).sum();
        line(about, happened, said).map(|line| VerdictLine {
            agreement: Agreement::as_seen(said == happened, (observable..happened).contains(&said)),
            ..line
        })
    });
    lines.collect()
}

/// Times that packets came late.
fn reordering(truth: &Truth, concluded: &DemoResults) -> Option<VerdictLine> {
    let late = truth.taps.iter().flat_map(|tap| &tap.late);
    let happened = late.filter(|late| late.kind == PacketKind::Request);
    let happened = happened.map(|late| late.behind_ns).max();
    let said = concluded.flows.iter().filter_map(|row| row.reorder_time_max_ns);
    let said = said.max();
    let shown = |time: Option<u64>| time.map_or("none".to_owned(), |time| Span(time).to_string());
    (happened.is_some() || said.is_some()).then(|| VerdictLine {
        about: "longest time by which one was late".to_owned(),
        truth: shown(happened),
        verdict: shown(said),
        agreement: Agreement::from_bool(happened == said),
    })
}

/// Causes of retransmissions.
fn runs(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    type Runs = (&'static str, Option<TriggerKind>, fn(&FlowRow) -> u64);
    const RUNS: [Runs; 5] = [
        (
            "runs of retransmissions after a NAK",
            Some(TriggerKind::Nak),
            |v| v.runs_nak,
        ),
        (
            "runs of retransmissions after a READ gap",
            Some(TriggerKind::ImpliedNak),
            |v| v.runs_implied_nak,
        ),
        (
            "runs of retransmissions after an RNR NAK",
            Some(TriggerKind::Rnr),
            |v| v.runs_rnr,
        ),
        (
            "runs of retransmissions after a timeout",
            Some(TriggerKind::Timeout),
            |v| v.runs_timeout,
        ),
        ("runs of retransmissions without a known cause", None, |v| {
            v.runs_unknown
        }),
    ];
    // A run is seen wherever the flow's packets are; the tap that saw most of a flow decides.
    let seen: BTreeSet<&str> = truth
        .taps
        .iter()
        .flat_map(|tap| &tap.flows)
        .filter(|flow| flow.retransmitted_packets > 0)
        .map(|flow| flow.flow_id.as_str())
        .collect();
    let runs = truth.retransmission_runs.iter();
    let runs_of_all = runs.filter(|run| seen.contains(run.flow_id.as_str())).count() as u64;
    let counted = concluded.flows.iter().filter(|row| row.counted);
    let runs_said: u64 = counted.map(|row| row.retransmission_runs).sum();
    let lines = RUNS.iter().map(|(about, trigger, of_verdict)| {
        let happened = truth
            .retransmission_runs
            .iter()
            .filter(|run| Some(run.trigger) == *trigger && seen.contains(run.flow_id.as_str()))
            .count();
        let happened = happened as u64;
        let said: u64 = concluded
            .flows
            .iter()
            .filter(|row| row.counted)
            .map(of_verdict)
            .sum();
        // A run that never fell behind what the tap had seen looks like first transmissions. One whose cause is open is missing where its
        // cause is counted.
        let is_open = trigger.is_none() && runs_said <= runs_of_all;
        line(about, happened, said).map(|line| VerdictLine {
            agreement: Agreement::as_seen(said == happened, said < happened && said > 0 || is_open),
            ..line
        })
    });
    lines.flatten().collect()
}

/// Flows that belong together.
fn pairs(truth: &Truth, concluded: &DemoResults) -> Option<VerdictLine> {
    let pair = |one: String, other: String| if one < other { (one, other) } else { (other, one) };
    let pairs_of = |is_one: &dyn Fn(&ConnectionAtTap) -> bool| -> BTreeSet<_> {
        let connections = truth.connections.iter();
        let seen = connections.filter(|connection| connection.taps.iter().any(is_one));
        seen.map(|connection| pair(connection.a.flow_id.clone(), connection.b.flow_id.clone()))
            .collect()
    };
    let happened = pairs_of(&|tap| tap.a_packets > 0 && tap.b_packets > 0);
    let sure = pairs_of(&|tap| tap.observable);
    let said: BTreeSet<_> = concluded
        .flows
        .iter()
        .filter_map(|row| Some(pair(row.flow_id.to_string(), row.peer_flow_id?.to_string())))
        .collect();
    let about = "connections, as pairs of flows";
    line(about, happened.len() as u64, said.len() as u64).map(|line| VerdictLine {
        // One that the capture hardly shows may be found or not, as long as it is right.
        agreement: Agreement::from_bool(sure.is_subset(&said) && said.is_subset(&happened)),
        ..line
    })
}

/// Pause frames, and how long they held.
fn pauses(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    let frames = line(
        "pause frames",
        truth.taps.iter().map(|tap| tap.pause_records).sum(),
        concluded.run.taps.iter().map(|tap| tap.pause_frames).sum(),
    );
    let happened: u64 = truth
        .pauses
        .iter()
        .filter(|pause| !pause.recorded_by.is_empty())
        .map(|pause| pause.end - pause.begin)
        .sum();
    let said = concluded.paused;
    let time = frames.is_some().then(|| VerdictLine {
        about: "time paused, all priorities and links".to_owned(),
        truth: Span(happened).to_string(),
        verdict: Span(said).to_string(),
        // The tap is not where the pause begins and ends.
        agreement: Agreement::from_bool(said.abs_diff(happened) <= happened / 20),
    });
    frames.into_iter().chain(time).collect()
}

/// The root of most of the time for which flows without a part in it were paused, and its kind. Captures alone do not name it.
fn pause_roots(lesson: &Lesson, truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    let mut paused: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for root in truth.pause_roots.iter().filter(|root| !root.contributes) {
        // The truth calls a port by its direction, counters by its two ends.
        let port = root.root.replacen("->", ":", 1);
        *paused.entry((port, root.kind.name())).or_default() += root.paused_ns;
    }
    let happened = paused.iter().max_by_key(|(_, paused)| **paused);
    let (Some(((port, kind), _)), Some(_)) = (happened, lesson.counters) else {
        return Vec::new();
    };
    let waits = concluded.run.waits.iter().filter(|wait| wait.is_root);
    let said: BTreeSet<(String, &str)> = waits
        .filter_map(|wait| {
            let port = port_name(wait.waits_for_node.as_deref()?, wait.waits_for_port.as_deref()?);
            Some((port, wait.root_kind?.name()))
        })
        .collect();
    // A root of few pauses, between two readings, need not be found. One that is said must be one.
    let agrees = said.contains(&(port.clone(), *kind)) && said.iter().all(|root| paused.contains_key(root));
    let line = |about: &str, truth: &str, verdict: Vec<&str>| VerdictLine {
        about: about.to_owned(),
        truth: truth.to_owned(),
        verdict: verdict.join(", "),
        agreement: Agreement::from_bool(agrees),
    };
    let ports = said.iter().map(|(port, _)| port.as_str()).collect();
    let kinds = said.iter().map(|(_, kind)| *kind).collect();
    vec![
        line("root of most victims' pauses", port, ports),
        line("kind of that root", kind, kinds),
    ]
}

/// Steps of training.
fn steps(truth: &Truth, concluded: &DemoResults) -> Option<VerdictLine> {
    let said: BTreeSet<u32> = concluded.run.steps.iter().map(|row| row.step).collect();
    line("steps of training", truth.steps.len() as u64, said.len() as u64)
}

/// Kinds of congestion.
fn episodes(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    /// An incast replaces the marks that it causes.
    fn kind(name: &str) -> &str {
        if matches!(name, "ecn" | "incast") {
            "marks, incast"
        } else {
            name
        }
    }
    #[derive(Default)]
    struct Counts {
        happened: u64,
        recorded: u64,
        said: u64,
    }
    let mut kinds: BTreeMap<String, Counts> = BTreeMap::new();
    for episode in &truth.episodes {
        let name = format!("{:?}", episode.kind).to_lowercase();
        let counts = kinds.entry(kind(&name).to_owned()).or_default();
        counts.happened += 1;
        counts.recorded += u64::from(!episode.taps.is_empty());
    }
    for episode in &concluded.run.episodes {
        kinds
            .entry(kind(episode.kind.name()).to_owned())
            .or_default()
            .said += 1;
    }
    let lines = kinds.into_iter().map(|(kind, counts)| {
        let Counts {
            happened,
            recorded,
            said,
        } = counts;
        VerdictLine {
            about: format!("episodes: {kind}"),
            truth: count(happened),
            verdict: count(said),
            // The border between two episodes is a matter of definition; the presence of one is not.
            // CNPs can show an episode that no tap recorded.
            agreement: Agreement::as_seen(
                happened == said,
                (said > 0 || recorded == 0) && (happened > 0 || said == 0),
            ),
        }
    });
    lines.collect()
}

/// The verdicts: those that must be there, those that must not, and those that nobody expected.
fn findings(lesson: &Lesson, truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    let said: BTreeMap<&str, Severity> = concluded
        .run
        .findings
        .iter()
        .map(|finding| (finding.id, finding.severity))
        .collect();
    let mut expected: Vec<&str> = lesson.finds.iter().map(String::as_str).collect();
    for finding in truth.findings.iter().filter(|finding| !finding.taps.is_empty()) {
        if !expected.contains(&finding.id.as_str()) {
            expected.push(&finding.id);
        }
    }
    let unexpected = said
        .iter()
        .filter(|(id, severity)| **severity >= Severity::Warning && !expected.contains(id))
        .map(|(id, _)| *id);
    let mut not: Vec<&str> = lesson.not.iter().map(String::as_str).collect();
    not.extend(unexpected.filter(|id| !lesson.not.iter().any(|not| not == id)));
    let severity = |id: &str| said.get(id).map_or("no", |severity| severity.name()).to_owned();
    let mut lines = Vec::new();
    for id in expected {
        lines.push(VerdictLine {
            about: format!("finding {id}"),
            truth: "yes".to_owned(),
            verdict: severity(id),
            agreement: Agreement::from_bool(said.contains_key(id)),
        });
    }
    for id in not {
        lines.push(VerdictLine {
            about: format!("finding {id}"),
            truth: "no".to_owned(),
            verdict: severity(id),
            agreement: Agreement::from_bool(!said.contains_key(id)),
        });
    }
    lines
}
