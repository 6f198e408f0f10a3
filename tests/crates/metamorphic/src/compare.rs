//! Relations between the answers to a capture and to a copy of it.

use std::collections::BTreeSet;
use std::fmt;

use roce_model::Severity;

use crate::answer::{Answer, Verdict};

/// Relation that has to hold for the copies of a transformation.
#[derive(Clone, Copy, Debug)]
pub enum Relation {
    /// Each verdict of severity warning or worse is the same: rule, severity, confidence, and these numbers.
    Same(Numbers),
    /// Each verdict of severity warning or worse is there, and as bad; others may come.
    Stays,
    /// No verdict of severity warning or worse that the whole capture did not have, none that is worse or surer; verdicts on the
    /// capture itself are free.
    Weaker {
        /// Losses and timeouts are never said with high confidence.
        never_high: bool,
    },
}

/// Which numbers a transformation keeps.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    /// None but those that follow from the verdicts themselves.
    None,
    /// All but shares, and sums of the whole run's traffic: there is more of it.
    Counts,
    /// All, and the number of flows: it is one and the same tap.
    Whole,
    /// As `Whole`, but for bytes on the wire and what is computed of them.
    Frames,
    /// All; times may differ by so many nanoseconds.
    All {
        /// Allowed difference of a time.
        nanos: f64,
    },
    /// Counts are twice what they were; shares and extremes are the same.
    Twice,
}

/// One way in which a copy's answer violates its relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// A verdict has changed; otherwise only a number has.
    pub is_verdict: bool,
    /// Description of the change, in a line.
    pub text: String,
}

impl Change {
    fn verdict(text: impl fmt::Display) -> Self {
        Self {
            is_verdict: true,
            text: text.to_string(),
        }
    }

    fn number(text: impl fmt::Display) -> Self {
        Self {
            is_verdict: false,
            text: text.to_string(),
        }
    }

    /// The analysis of a copy failed.
    pub fn failed(error: impl fmt::Display) -> Self {
        Self::verdict(format!("failed: {error}"))
    }
}

/// Counts of a run that depend on nothing but what happened to its packets.
const LASTING: [&str; 21] = [
    "naks",
    "rnr_naks",
    "cnp",
    "data_ce",
    "missing",
    "reordered",
    "late",
    "network_lost",
    "network_lost_again",
    "lost_downstream",
    "response_network_lost",
    "ambiguous",
    "unresolved",
    "capture_lost",
    "retransmitted_packets",
    "retransmitted_bytes",
    "wasted_bytes",
    "runs_nak",
    "runs_implied_nak",
    "runs_rnr",
    "runs_timeout",
];

/// Evidence that is a share, an extreme or a number of parties: it does not grow with the length of a capture.
const LEVELS: [&str; 20] = [
    "share",
    "_max",
    "longest",
    "jain",
    "peak",
    "flows",
    "pairs",
    "_p50",
    "_p99",
    "ratio",
    "rate",
    "least",
    "most",
    "hosts",
    "ports",
    "receivers",
    "groups",
    "links",
    "busiest",
    "idlest",
];

/// Numbers of links that are computed of all bytes on them.
const OF_WIRE_BYTES: [&str; 6] = [
    "busiest",
    "idlest",
    "bytes_over",
    "rate_bps",
    "jain_bytes",
    "fair_rate",
];

/// Names of the sums of all traffic in evidence.
const OF_ALL_TRAFFIC: [&str; 10] = [
    "share",
    "data_packets",
    "frames",
    "jain",
    "flows",
    "busiest",
    "idlest",
    "bytes_over",
    "rate_bps",
    "fair_rate",
];

/// Rules that are about the capture itself: what is taken from a capture may be told by them.
fn is_of_capture(id: &str) -> bool {
    id.starts_with("capture.") || id == "loss.capture"
}

/// The ways in which the answer to a copy violates a relation; none if it holds.
pub fn compare(relation: Relation, before: &Answer, after: &Answer) -> Vec<Change> {
    match relation {
        Relation::Same(numbers) => same(numbers, before, after),
        Relation::Stays => stays(before, after),
        Relation::Weaker { never_high } => weaker(never_high, before, after),
    }
}

/// The verdicts of a rule in a line.
fn line(answer: &Answer, id: &str) -> String {
    let said = answer.of_id(id);
    let said: Vec<String> = said
        .map(|verdict| format!("{}/{}", verdict.severity.name(), verdict.confidence))
        .collect();
    if said.is_empty() {
        "nothing".to_owned()
    } else {
        said.join(" and ")
    }
}

/// The sentence of a rule's first verdict.
fn sentence(answer: &Answer, id: &str) -> String {
    let first = answer.of_id(id).next();
    first.map_or_else(String::new, |verdict| format!(" ({})", verdict.summary))
}

/// Text of the change of a rule's verdicts.
fn told(id: &str, before: &Answer, after: &Answer) -> String {
    let side = |answer| format!("{}{}", line(answer, id), sentence(answer, id));
    format!("{id}: {} -> {}", side(before), side(after))
}

fn loud<'a>(answer: &'a Answer, id: &'a str) -> Vec<&'a Verdict> {
    let mut verdicts: Vec<_> = answer.of_id(id).filter(|verdict| verdict.is_loud()).collect();
    verdicts.sort_by_key(|verdict| (verdict.severity, verdict.sureness()));
    verdicts
}

fn loud_ids<'a>(answers: &[&'a Answer]) -> BTreeSet<&'a str> {
    let verdicts = answers.iter().flat_map(|answer| &answer.verdicts);
    verdicts
        .filter(|verdict| verdict.is_loud())
        .map(|verdict| verdict.id.as_str())
        .collect()
}

fn same(numbers: Numbers, before: &Answer, after: &Answer) -> Vec<Change> {
    let mut changes = Vec::new();
    for id in loud_ids(&[before, after]) {
        if matches!(numbers, Numbers::Twice) && id == "stall" && is_worse(id, before, after) {
            // A flow that ends inside a message, and goes on after ten seconds, has stood still for them: the
            // copy shows a longer stall.
            continue;
        }
        let (was, is) = (loud(before, id), loud(after, id));
        let kind = |list: &[&Verdict]| -> Vec<_> {
            list.iter()
                .map(|verdict| (verdict.severity, verdict.sureness()))
                .collect()
        };
        if kind(&was) == kind(&is) {
            for (was, is) in was.iter().zip(&is) {
                changes.extend(facts(numbers, was, is).map(Change::number));
            }
        } else {
            changes.push(Change::verdict(told(id, before, after)));
        }
    }
    changes.extend(totals(numbers, before, after).map(Change::number));
    changes
}

/// True if what a rule says of the copy is at least as bad as what it says of the original.
fn is_worse(id: &str, before: &Answer, after: &Answer) -> bool {
    let worst = |answer: &Answer| loud(answer, id).iter().map(|verdict| verdict.severity).max();
    let longest = |answer: &Answer| {
        let verdicts = loud(answer, id);
        let times = verdicts
            .iter()
            .filter_map(|verdict| verdict.facts.get("stood_still_ns"));
        times.fold(0.0, |longest: f64, time| longest.max(*time))
    };
    worst(after) >= worst(before) && longest(after) >= longest(before) + 1e10
}

/// Differences of two verdicts' numbers, in words.
fn facts<'a>(numbers: Numbers, was: &'a Verdict, is: &'a Verdict) -> impl Iterator<Item = String> + 'a {
    let names: BTreeSet<&String> = was.facts.keys().chain(is.facts.keys()).collect();
    // It describes the worst one of so many.
    let is_of_one = was.facts.contains_key("found");
    let names = names.into_iter().filter(|name| !name.ends_with("_qpn"));
    names.filter_map(move |name| {
        let (old, new) = (was.facts.get(name).copied(), is.facts.get(name).copied());
        let (Some(old), Some(new)) = (old, new) else {
            return (!matches!(numbers, Numbers::None))
                .then(|| format!("{}: {name} {old:?} -> {new:?}", was.id));
        };
        let holds = match numbers {
            Numbers::None => true,
            Numbers::Counts => {
                OF_ALL_TRAFFIC.iter().any(|part| name.contains(part)) || near(name, old, new, 0.0)
            }
            Numbers::Whole => near(name, old, new, 0.0),
            Numbers::Frames => {
                OF_WIRE_BYTES.iter().any(|part| name.contains(part)) || near(name, old, new, 0.0)
            }
            Numbers::All { nanos } => near(name, old, new, nanos),
            Numbers::Twice if is_of_one && name != "found" => near(name, old, new, 0.0),
            Numbers::Twice if LEVELS.iter().any(|part| name.contains(part)) => {
                near(name, old, new, 0.0) || near(name, 2.0 * old, new, 0.0)
            }
            Numbers::Twice => near(name, 2.0 * old, new, 0.0),
        };
        (!holds).then(|| format!("{}: {name} {old} -> {new}", was.id))
    })
}

/// True if two numbers are the same but for rounding, or times within an allowed difference.
fn near(name: &str, old: f64, new: f64, nanos: f64) -> bool {
    let allowed = if name.ends_with("_ns") { nanos } else { 0.0 };
    // A share of times that may differ differs, too.
    let relative = if nanos > 0.0 { 0.01 } else { 1e-9 };
    (old - new).abs() <= allowed + relative * old.abs()
}

/// Differences of the counts of two runs, in words.
fn totals<'a>(numbers: Numbers, before: &'a Answer, after: &'a Answer) -> impl Iterator<Item = String> + 'a {
    let factor = match numbers {
        Numbers::None => None,
        Numbers::Twice => Some(2),
        Numbers::Counts | Numbers::Whole | Numbers::Frames | Numbers::All { .. } => Some(1),
    };
    let flows = matches!(numbers, Numbers::Whole | Numbers::Frames).then_some("flows");
    LASTING.into_iter().chain(flows).filter_map(move |name| {
        let of = |answer: &Answer| answer.totals.get(name).copied().unwrap_or_default();
        let (old, new) = (of(before), of(after));
        (new != factor? * old).then(|| format!("totals: {name} {old} -> {new}"))
    })
}

fn stays(before: &Answer, after: &Answer) -> Vec<Change> {
    let worst = |answer: &Answer, id| loud(answer, id).iter().map(|verdict| verdict.severity).max();
    let gone = loud_ids(&[before])
        .into_iter()
        .filter(|id| worst(after, id) < worst(before, id));
    gone.map(|id| Change::verdict(told(id, before, after))).collect()
}

fn weaker(never_high: bool, before: &Answer, after: &Answer) -> Vec<Change> {
    let mut changes = Vec::new();
    for id in loud_ids(&[after]) {
        let was = loud(before, id);
        let worst = was
            .iter()
            .map(|verdict| verdict.severity)
            .max()
            .unwrap_or(Severity::Info);
        let surest = was
            .iter()
            .map(|verdict| verdict.sureness())
            .max()
            .unwrap_or_default();
        let is = loud(after, id);
        let is_another = !is_of_capture(id) && is.iter().any(|verdict| verdict.severity > worst);
        let is_surer =
            !was.is_empty() && !is_of_capture(id) && is.iter().any(|verdict| verdict.sureness() > surest);
        if is_another || is_surer {
            changes.push(Change::verdict(told(id, before, after)));
        }
    }
    for id in ["loss.network", "retransmit.timeout"] {
        let is_high = after.of_id(id).any(|verdict| verdict.sureness() == 2);
        if never_high && is_high && changes.iter().all(|change| !change.text.starts_with(id)) {
            changes.push(Change::verdict(format!(
                "{id}: {} -> {}, never high{}",
                line(before, id),
                line(after, id),
                sentence(after, id)
            )));
        }
    }
    for verdict in &after.verdicts {
        if let Some(share) = verdict.facts.get("share").filter(|share| **share > 1.0) {
            changes.push(Change::verdict(format!("{}: a share of {share}", verdict.id)));
        }
    }
    changes
}
