//! Findings as a graph of causes: which one explains which, what the roots cost, and in which order they are told.
//!
//! An edge stands where a mechanism (`causes::mechanisms`) leads from one rule to the other and the packets agree: nearly all flows of
//! the effect are flows of the cause, or go where it says, and the cause began first. What is only partly explained stays a root.

mod mechanisms;
mod next_steps;
mod subjects;

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Address, Confidence, FindingRow, FlowId, NameList, Severity, Time};

use super::super::numbers::{NEARLY_ALL, reaches};
use super::rule::Context;
pub use mechanisms::{MECHANISMS, Mechanism};
pub(super) use subjects::{FlowSigns, FlowsByRule, Side, Subject, Subjects};
use subjects::{RunFacts, subjects_of};

/// Times this close, in ns, are one moment: a sign is seen within the cell of what made it.
const NEAR: u64 = 1_000_000;
/// Hosts that a finding names as victims or aggressors, at most.
const MAX_HOSTS: usize = 8;

/// A finding and what it is about.
#[derive(Debug)]
pub(super) struct RelatedFinding {
    pub(super) row: FindingRow,
    pub(super) subjects: Subjects,
}

/// Relates the findings of a run: fills in what explains what, prices and hosts, and puts them into their order.
pub(super) fn relate(
    findings: impl IntoIterator<Item = FindingRow>,
    (signs, flows): (&FlowSigns, &FlowsByRule),
    context: &Context<'_>,
    place_of: fn(&str) -> usize,
) -> Vec<RelatedFinding> {
    let facts = RunFacts::new(signs, flows, context);
    let mut related: Vec<RelatedFinding> = findings
        .into_iter()
        .map(|row| RelatedFinding {
            subjects: subjects_of(&row, &facts),
            row,
        })
        .collect();
    for mechanism in MECHANISMS {
        if let Some((cause, effect)) = stands(mechanism, &related) {
            related[cause].row.explains.0.push(mechanism.effect.into());
            related[effect].row.explained_by.0.push(mechanism.cause.into());
        }
    }
    raise_causes(&mut related);
    for at in 0..related.len() {
        let tree = tree_of(&related, at);
        let waited = waited(tree.iter().map(|at| &related[*at]));
        let times = related[at].subjects.times();
        let (victims, aggressors) = hosts(&related, at, &tree);
        let row = &mut related[at].row;
        // A rule that knows its price, its hosts and its end has said them.
        row.waited_ns = row.waited_ns.max(waited);
        row.last_time = row.last_time.or_else(|| {
            let first = row.first_time?;
            Some(times.map_or(first, |times| times.1.max(first)))
        });
        if row.victims.0.is_empty() && row.aggressors.0.is_empty() {
            (row.victims, row.aggressors) = (victims, aggressors);
        }
        let RelatedFinding { row, subjects } = &mut related[at];
        next_steps::fill(row, subjects, context);
    }
    in_order(related, |finding| &finding.row, place_of)
}

/// The places of cause and effect, where both were found and the packets agree with the mechanism.
fn stands(mechanism: &Mechanism, related: &[RelatedFinding]) -> Option<(usize, usize)> {
    let place = |id| related.iter().position(|finding| finding.row.id == id);
    let (cause, effect) = (place(mechanism.cause)?, place(mechanism.effect)?);
    // Less evidence never gives more confidence.
    let is_doubtful =
        related[cause].row.confidence == Confidence::Low && related[effect].row.confidence != Confidence::Low;
    let follows = |cause: usize| follows(&related[cause].subjects, &related[effect].subjects);
    let is_shown = match mechanism.with {
        Some(with) => place(with).is_some_and(follows) || is_of_full_queues(&related[effect].subjects),
        None => true,
    };
    (!is_doubtful && is_shown && follows(cause)).then_some((cause, effect))
}

/// True if nearly all flows of losses met a full queue, at the port to their destination.
fn is_of_full_queues(losses: &Subjects) -> bool {
    let met = losses
        .flows
        .values()
        .filter(|flow| losses.full.contains(&flow.destination));
    reaches(met.count() as u64, losses.flows.len().max(1) as u64, NEARLY_ALL)
}

/// True if nearly all that the effect is about is the cause's as well.
fn follows(cause: &Subjects, effect: &Subjects) -> bool {
    if !effect.flows.is_empty() {
        let flows = effect.flows.iter();
        let explained = flows.filter(|(flow, subject)| covers(cause, **flow, subject));
        return reaches(explained.count() as u64, effect.flows.len() as u64, NEARLY_ALL);
    }
    let links = effect.links.iter();
    let explained = links.clone().filter(|(tap, times)| {
        let first = times.first().map(|first| first.0);
        first.is_some_and(|first| is_held(cause.links.get(tap), first))
    });
    reaches(explained.count() as u64, links.len() as u64, NEARLY_ALL)
}

/// True if what a flow met is the cause's, by flow, destination or link, and the times agree.
fn covers(cause: &Subjects, flow: FlowId, met: &Subject) -> bool {
    let agree = |(begin, end): (Time, Time)| {
        let reach = met.waited_ns.saturating_add(NEAR);
        begin.0 <= met.times.0.0.saturating_add(NEAR) && met.times.0.0 <= end.0.saturating_add(reach)
    };
    // A sender waits before the packet that shows it.
    let begun = |subject: &Subject| Time(subject.times.0.0.saturating_sub(subject.waited_ns));
    let of_flow = cause
        .flows
        .get(&flow)
        .map(|subject| (begun(subject), subject.times.1));
    let of_destination = cause.destinations.get(&met.destination).copied();
    of_flow.is_some_and(agree)
        || of_destination.is_some_and(agree)
        || met
            .tap
            .is_some_and(|tap| is_held(cause.links.get(&tap), met.times.0))
}

/// True if a link was held at a moment; its times do not overlap.
fn is_held(times: Option<&Vec<(Time, Time)>>, at: Time) -> bool {
    let Some(times) = times else { return false };
    let next = times.partition_point(|(_, end)| end.0.saturating_add(NEAR) < at.0);
    times
        .get(next)
        .is_some_and(|(begin, _)| begin.0 <= at.0.saturating_add(NEAR))
}

/// A cause is at least as bad as what follows from it.
fn raise_causes(related: &mut [RelatedFinding]) {
    for _ in 0..related.len() {
        let mut worst: BTreeMap<String, Severity> = BTreeMap::new();
        for effect in related.iter() {
            for cause in &effect.row.explained_by.0 {
                let known = worst.entry(cause.to_string()).or_default();
                *known = effect.row.severity.max(*known);
            }
        }
        let mut has_changed = false;
        for cause in related.iter_mut() {
            let least = worst.get(cause.row.id).copied().unwrap_or_default();
            has_changed |= cause.row.severity < least;
            cause.row.severity = cause.row.severity.max(least);
        }
        if !has_changed {
            return;
        }
    }
}

/// The places of a finding and, behind it, of all that it explains.
fn tree_of(related: &[RelatedFinding], root: usize) -> Vec<usize> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(at) = tree.get(next).copied() {
        for (place, effect) in related.iter().enumerate() {
            if related[at].row.explains.has(effect.row.id) && !tree.contains(&place) {
                tree.push(place);
            }
        }
        next += 1;
    }
    tree
}

/// The time that flows waited, by all of some findings. Waits for timers and for buffers follow each other; a silence in a message, and the
/// time without progress of a connection that failed, may hold both. `None` where none of them is about waiting.
fn waited<'a>(findings: impl Iterator<Item = &'a RelatedFinding>) -> Option<u64> {
    let mut flows: BTreeMap<FlowId, [u64; 3]> = BTreeMap::new();
    let mut is_about_waiting = false;
    for finding in findings {
        let kind = match finding.row.id {
            "retransmit.timeout" | "mtu.exceeded" => 0,
            "rnr" => 1,
            "stall" | "connection.failed" => 2,
            _ => continue,
        };
        is_about_waiting = true;
        for (flow, subject) in &finding.subjects.flows {
            let known = &mut flows.entry(*flow).or_default()[kind];
            *known = subject.waited_ns.max(*known);
        }
    }
    let each = flows
        .values()
        .map(|[timers, buffers, whole]| timers.saturating_add(*buffers).max(*whole));
    is_about_waiting.then(|| each.fold(0, u64::saturating_add))
}

/// Who suffered and who caused it. A cause has the victims of what it explains.
fn hosts(related: &[RelatedFinding], at: usize, tree: &[usize]) -> (NameList, NameList) {
    let affected = affected(
        &related[at].subjects,
        tree.iter().map(|at| &related[*at].subjects).skip(1),
    );
    let aggressors = aggressors_of(
        related[at].row.id,
        affected.as_ref().unwrap_or(&related[at].subjects),
    );
    let mut victims = victims_of(&related[at]);
    if victims.is_empty() {
        for host in tree.iter().flat_map(|effect| victims_of(&related[*effect])) {
            if !victims.contains(&host) {
                victims.push(host);
            }
        }
    }
    victims.retain(|host| !aggressors.contains(host));
    let list = |hosts: Vec<String>| hosts.into_iter().take(MAX_HOSTS).collect();
    (list(victims), list(aggressors))
}

fn victims_of(finding: &RelatedFinding) -> Vec<String> {
    let subjects = &finding.subjects;
    match finding.row.id {
        "ecn.not-capable" | "cnp.ignored" | "dscp.mismatch" | "icrc.bad" | "path.spread" => Vec::new(),
        "incast" | "unfair" | "ecn.marks-without-cnp" => match finding.row.id {
            "ecn.marks-without-cnp" => Vec::new(),
            _ => subjects.hosts(Side::Destination),
        },
        _ => subjects.hosts(Side::Source),
    }
}

/// The part of a cause that its effects are about, by flow; `None` where that is nothing.
pub(super) fn affected<'a>(
    cause: &Subjects,
    effects: impl Iterator<Item = &'a Subjects>,
) -> Option<Subjects> {
    let flows: BTreeSet<FlowId> = effects.flat_map(|effect| effect.flows.keys().copied()).collect();
    let mut affected = cause.clone();
    affected.flows.retain(|flow, _| flows.contains(flow));
    (!affected.flows.is_empty()).then_some(affected)
}

fn aggressors_of(id: &str, subjects: &Subjects) -> Vec<String> {
    match id {
        "ecn.not-capable" | "cnp.ignored" | "icrc.bad" | "incast" | "dscp.mismatch" => {
            subjects.hosts(Side::Source)
        }
        "rnr" | "ecn.marks-without-cnp" => subjects.hosts(Side::Destination),
        "pause.storm" | "pause.origin" => subjects.pausers.iter().map(Address::to_string).collect(),
        _ => Vec::new(),
    }
}

/// True for a verdict that something ended or was never seen: no price says how bad that is.
fn is_an_end(row: &FindingRow) -> bool {
    let ends = [
        "capture.blind",
        "nccl.completion_error",
        "connection.failed",
        "nak.fatal",
    ];
    row.severity == Severity::Critical && ends.contains(&row.id)
}

/// The order of roots: what ended, what asks somebody to act, by price; and else as their severity is.
fn rank(row: &FindingRow, place_of: fn(&str) -> usize) -> impl Ord + use<> {
    let price = row.waited_ns.filter(|_| row.severity >= Severity::Warning);
    (
        core::cmp::Reverse((is_an_end(row), row.severity >= Severity::Warning, price)),
        core::cmp::Reverse(row.severity),
        row.confidence == Confidence::Low,
        place_of(row.id),
    )
}

/// Findings in their one order: roots before what they explain.
pub(super) fn in_order<T>(
    mut findings: Vec<T>,
    row: impl Fn(&T) -> &FindingRow,
    place_of: fn(&str) -> usize,
) -> Vec<T> {
    findings.sort_by_key(|finding| rank(row(finding), place_of));
    let order: Vec<usize> = order(&findings.iter().map(row).collect::<Vec<_>>());
    let mut places: Vec<Option<T>> = findings.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| places[at].take()).collect()
}

/// The places of rows that are sorted by rank, each root followed by what it explains.
fn order(rows: &[&FindingRow]) -> Vec<usize> {
    let mut order = Vec::new();
    for (root, row) in rows.iter().enumerate() {
        if !row.is_root() {
            continue;
        }
        order.push(root);
        let mut from = order.len() - 1;
        while let Some(cause) = order.get(from).map(|at| rows[*at]) {
            for (place, effect) in rows.iter().enumerate() {
                if cause.explains.has(effect.id) && !order.contains(&place) {
                    order.push(place);
                }
            }
            from += 1;
        }
    }
    order
}
