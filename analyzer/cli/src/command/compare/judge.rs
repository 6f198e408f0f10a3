//! Two runs become a comparison: the compared quantities, the differences that stand out, and those that
//! matter.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Fact, FindingRow, RunSummary, TapId, Time};
use roce_report::compare::{
    ComparedQuantity, Comparison, Direction, FindingChange, Outcome, Quantity, Scope, Side,
};

use super::noise::{Estimate, difference, estimate};
use super::side::{CollectedRun, Pair, Slices, Sums};

/// All intervals together hold what they are to with this probability. Half of the rest is for the whole run, so that many pairs of
/// hosts do not blind it; each half goes in equal parts to its intervals (Bonferroni).
const CONFIDENCE: f64 = 0.95;
/// A relative difference under this one matters to nobody.
const MATTERS: f64 = 0.05;
/// Pairs of hosts that are compared one by one, those with most data.
const MAX_PAIRS: usize = 64;

/// A quantity of both runs, before it is known how many there are.
struct PendingQuantity {
    quantity: Quantity,
    a: Option<Estimate>,
    b: Option<Estimate>,
}

/// Compares two runs, which were given as `paths`.
pub(super) fn compare(paths: [String; 2], a: &CollectedRun, b: &CollectedRun) -> Comparison {
    let (whole_a, whole_b) = (a.whole(), b.whole());
    let by_bins: &[Quantity] = if have_one_bin(a, b) { &[] } else { &OF_BINS };
    let of_pair = [&OF_RUN, by_bins].concat();
    let mut whole = pending(by_bins, Some(&whole_a), Some(&whole_b), "");
    let (steps_a, steps_b) = (steps(&a.run), steps(&b.run));
    for (quantity, a, b) in [
        (Quantity::StepTime, &steps_a.0, &steps_b.0),
        (Quantity::StepPeriod, &steps_a.1, &steps_b.1),
    ] {
        let key = quantity.describe().key;
        add(
            &mut whole,
            quantity,
            estimate(a, &format!("a {key}")),
            estimate(b, &format!("b {key}")),
        );
    }
    let (pairs, left_out) = pairs(a, b);
    let of_pairs: Vec<(Pair, Vec<PendingQuantity>)> = pairs
        .into_iter()
        .map(|pair| {
            let name = format!("{} {} ", pair.0, pair.1);
            (
                pair,
                pending(&of_pair, a.pair(pair).as_ref(), b.pair(pair).as_ref(), &name),
            )
        })
        .collect();
    let error = (1.0 - CONFIDENCE) / 2.0;
    let mut scopes = vec![Scope {
        pair: None,
        compared: judged(&whole, error / tested(&whole)),
    }];
    let each = error / of_pairs.iter().map(|(_, pending)| tested(pending)).sum::<f64>();
    scopes.extend(of_pairs.iter().map(|((from, to), pending)| Scope {
        pair: Some((from.to_string(), to.to_string())),
        compared: judged(pending, each),
    }));
    let [path_a, path_b] = paths;
    Comparison {
        a: side(path_a, a, &whole_a),
        b: side(path_b, b, &whole_b),
        scopes,
        pairs_left_out: left_out as u64,
        findings: findings(&a.run, &b.run),
        notes: notes(a, b),
        confidence: CONFIDENCE,
        matters: MATTERS,
    }
}

fn side(path: String, of: &CollectedRun, whole: &Slices) -> Side {
    let (bin, slice) = of.widths();
    Side {
        path,
        length: of.run.span.map(roce_model::Period::length).unwrap_or_default(),
        flows: of.counted_flows,
        payload_bytes: of.payload_bytes,
        bin,
        slices: whole.sums.len() as u64,
        slice,
    }
}

/// The pairs to compare, those with most data first, and how many more there are.
fn pairs(a: &CollectedRun, b: &CollectedRun) -> (Vec<Pair>, usize) {
    let mut bytes: BTreeMap<Pair, f64> = BTreeMap::new();
    for side in [a, b] {
        for pair in side.pairs() {
            let payload = |slices: Slices| slices.sums.iter().map(|sums| sums.payload).sum::<f64>();
            *bytes.entry(pair).or_default() += side.pair(pair).map_or(0.0, payload);
        }
    }
    let mut pairs: Vec<(Pair, f64)> = bytes.into_iter().filter(|(_, bytes)| *bytes > 0.0).collect();
    pairs.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    // One alone is the whole run.
    if pairs.len() == 1 {
        pairs.clear();
    }
    let left_out = pairs.len().saturating_sub(MAX_PAIRS);
    pairs.truncate(MAX_PAIRS);
    (pairs.into_iter().map(|(pair, _)| pair).collect(), left_out)
}

/// Quantities of the whole run alone: no flow has them, or that of the other direction has.
const OF_RUN: [Quantity; 3] = [Quantity::RnrNaks, Quantity::PauseFrames, Quantity::PausedShare];

/// Quantities that depend on the width of bins: means of what a bin has.
const OF_BINS: [Quantity; 4] = [
    Quantity::AckTimeMedian,
    Quantity::AckTimeLongest,
    Quantity::MessageTimeMedian,
    Quantity::MessageTimeLongest,
];

fn have_one_bin(a: &CollectedRun, b: &CollectedRun) -> bool {
    a.widths().0 == b.widths().0
}

/// The parts and the whole of a quantity in a slice; `None` for quantities that slices do not have.
fn parts(quantity: Quantity, of: &Sums) -> Option<(f64, f64)> {
    Some(match quantity {
        Quantity::Goodput => ((of.payload - of.retransmitted) * 8.0, of.seconds),
        Quantity::CeShare => (of.ce, of.ecn_capable),
        Quantity::Cnp => (of.cnp * 1e9, of.payload_with_cnp),
        Quantity::Lost => (of.lost * 1e6, of.data_packets),
        Quantity::Unclear => (of.unclear * 1e6, of.data_packets),
        Quantity::Reordered => (of.reordered * 1e6, of.data_packets),
        Quantity::NotCaptured => (of.not_captured * 1e6, of.data_packets),
        Quantity::RetransmittedShare => (of.retransmitted, of.payload),
        Quantity::RnrNaks => (of.rnr_naks * 1e6, of.data_packets),
        Quantity::AckTimeMedian => (of.ack_median, of.ack_rows),
        Quantity::AckTimeLongest => (of.ack_longest, of.ack_rows),
        Quantity::MessageTimeMedian => (of.message_median, of.message_rows),
        Quantity::MessageTimeLongest => (of.message_longest, of.message_rows),
        Quantity::PauseFrames => (of.pause_frames, of.seconds),
        Quantity::PausedShare => (of.paused, of.seconds),
        Quantity::StepTime | Quantity::StepPeriod => return None,
    })
}

/// Every quantity but those `without`, of slices of time of either run.
fn pending(without: &[Quantity], a: Option<&Slices>, b: Option<&Slices>, name: &str) -> Vec<PendingQuantity> {
    let mut all = Vec::new();
    for quantity in Quantity::ALL
        .into_iter()
        .filter(|quantity| !without.contains(quantity))
    {
        let of = |slices: Option<&Slices>, side: &str| {
            let series: Option<Vec<_>> = slices?.sums.iter().map(|sums| parts(quantity, sums)).collect();
            estimate(&series?, &format!("{side} {name}{}", quantity.describe().key))
        };
        add(&mut all, quantity, of(a, "a"), of(b, "b"));
    }
    all
}

/// Adds a quantity, unless neither run has anything of it.
fn add(all: &mut Vec<PendingQuantity>, quantity: Quantity, a: Option<Estimate>, b: Option<Estimate>) {
    if [a, b].into_iter().flatten().any(|estimate| estimate.value != 0.0) {
        all.push(PendingQuantity { quantity, a, b });
    }
}

/// Number of quantities with an interval; at least 1.
#[expect(clippy::cast_precision_loss, reason = "some thousand at most")]
fn tested(pending: &[PendingQuantity]) -> f64 {
    let known = |estimate: Option<Estimate>| estimate.is_some_and(|estimate| estimate.noise.is_some());
    pending
        .iter()
        .filter(|pending| known(pending.a) && known(pending.b))
        .count()
        .max(1) as f64
}

fn judged(pending: &[PendingQuantity], error: f64) -> Vec<ComparedQuantity> {
    pending.iter().map(|pending| judge(pending, error)).collect()
}

/// Verdict on a quantity whose interval errs with probability `error`.
fn judge(pending: &PendingQuantity, error: f64) -> ComparedQuantity {
    let found = Option::zip(pending.a, pending.b).and_then(|(a, b)| difference(&a, &b, error));
    let metric = pending.quantity.describe();
    let mut compared = ComparedQuantity {
        quantity: pending.quantity,
        a: pending.a.map(|estimate| estimate.value),
        b: pending.b.map(|estimate| estimate.value),
        interval: found.map(|found| found.interval),
        visible: found.map(|found| found.visible),
        outcome: Outcome::TooShort,
    };
    compared.outcome = match (compared.difference(), compared.interval) {
        (None, _) => Outcome::OneSided,
        (_, None) => Outcome::TooShort,
        (_, Some((low, high))) if low <= 0.0 && high >= 0.0 => Outcome::Alike,
        (Some(difference), _) => {
            let small = compared
                .relative()
                .is_some_and(|relative| relative.abs() < MATTERS);
            match metric.worse {
                _ if small || difference.abs() < metric.unit.negligible() => Outcome::Negligible,
                None => Outcome::Different,
                Some(worse) if (worse == Direction::Up) == (difference > 0.0) => Outcome::Worse,
                Some(_) => Outcome::Better,
            }
        }
    };
    compared
}

/// Durations of steps, and times between the starts of two steps, in ns: each over one.
type Steps = (Vec<(f64, f64)>, Vec<(f64, f64)>);

/// The steps in order, at the tap that saw most of them.
#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
fn steps(run: &RunSummary) -> Steps {
    let mut rows: BTreeMap<TapId, u64> = BTreeMap::new();
    for row in &run.steps {
        *rows.entry(row.tap).or_default() += 1;
    }
    let tap = rows.into_iter().max_by_key(|(tap, rows)| (*rows, Reverse(*tap)));
    let mut steps: BTreeMap<u32, (Time, Time)> = BTreeMap::new();
    for row in run
        .steps
        .iter()
        .filter(|row| Some(row.tap) == tap.map(|(tap, _)| tap))
    {
        let (start, end) = steps.entry(row.step).or_insert((row.start_time, row.end_time));
        (*start, *end) = ((*start).min(row.start_time), (*end).max(row.end_time));
    }
    let steps: Vec<(Time, Time)> = steps.into_values().collect();
    let times = steps.iter().map(|(start, end)| (end.since(*start).0 as f64, 1.0));
    let periods = steps
        .windows(2)
        .map(|two| (two[1].0.since(two[0].0).0 as f64, 1.0));
    (times.collect(), periods.collect())
}

/// Findings that rest on events one by one, and the fact that counts them.
const EVENTS: [(&str, &str); 4] = [
    ("loss.network", "lost"),
    ("retransmit.timeout", "runs_timeout"),
    ("rnr", "rnr_naks"),
    ("stall", "stalls"),
];

/// Number of events behind a finding; `None` when its evidence is no event.
fn events(finding: &FindingRow) -> Option<u64> {
    let (_, counted) = EVENTS.iter().find(|(id, _)| *id == finding.id)?;
    let fact = finding.evidence.0.iter().find(|(name, _)| name == counted)?;
    match fact.1 {
        Fact::Count(events) => Some(events),
        _ => None,
    }
}

/// True if chance may give two equal runs these numbers of events, or more on the second one's side, in
/// one case of twenty. Each event falls into the second run with that run's share of the time (binomial
/// test). Events that cause others only make chance more likely.
#[expect(
    clippy::cast_precision_loss,
    reason = "as many events as a double tells apart"
)]
fn may_be_chance(first: u64, second: u64, share: f64) -> bool {
    /// Beyond this number of events, the rate alone decides.
    const MAX_EXACT: u64 = 1_000;
    let all = first + second;
    if all > MAX_EXACT || !(share > 0.0 && share < 1.0) {
        return false;
    }
    // All of them in the second, then one less each time.
    let mut likely = (0..all).fold(1.0, |likely, _| likely * share);
    let mut tail = 0.0;
    for there in (second..=all).rev() {
        tail += likely;
        likely *= there as f64 / (all - there + 1) as f64 * (1.0 - share) / share;
    }
    tail > 1.0 - CONFIDENCE
}

/// The findings that are not the same in both, the worst first: of each kind the worst one counts.
#[expect(clippy::cast_precision_loss, reason = "a share of the time")]
fn findings(a: &RunSummary, b: &RunSummary) -> Vec<FindingChange> {
    let worst = |run: &RunSummary| {
        let mut worst: BTreeMap<&'static str, FindingRow> = BTreeMap::new();
        for finding in &run.findings {
            match worst.get(finding.id) {
                Some(other) if other.severity >= finding.severity => (),
                _ => drop(worst.insert(finding.id, finding.clone())),
            }
        }
        worst
    };
    let length = |run: &RunSummary| run.span.map_or(0.0, |span| span.length().0 as f64);
    let share = length(b) / (length(a) + length(b));
    let (a, b) = (worst(a), worst(b));
    let ids: BTreeSet<&'static str> = a.keys().chain(b.keys()).copied().collect();
    let mut changes: Vec<FindingChange> = ids
        .into_iter()
        .map(|id| {
            let (in_a, in_b) = (a.get(id), b.get(id));
            let (before, after) = (in_a.and_then(events), in_b.and_then(events));
            let severity = |row: Option<&FindingRow>| row.map(|finding| finding.severity);
            FindingChange {
                id: id.to_owned(),
                a: severity(in_a),
                b: severity(in_b),
                summary: in_b
                    .or(in_a)
                    .map(|finding| finding.summary.clone().into_owned())
                    .unwrap_or_default(),
                may_be_chance: severity(in_a) < severity(in_b)
                    && after.is_some_and(|after| may_be_chance(before.unwrap_or(0), after, share)),
            }
        })
        .filter(|change| change.a != change.b)
        .collect();
    changes.sort_by_key(|change| Reverse((change.is_regression(), change.b.max(change.a))));
    changes
}

/// Differences in the making of the two runs, and their consequences.
fn notes(a: &CollectedRun, b: &CollectedRun) -> Vec<String> {
    let mut notes = Vec::new();
    if !have_one_bin(a, b) {
        let (bin_a, bin_b) = (a.widths().0, b.widths().0);
        notes.push(format!(
            "A has bins of {bin_a}, B of {bin_b}: times of ACKs and messages are means over bins, and are not compared. Analyse both with the \
             same --bin for these."
        ));
    }
    let measured = |side: &CollectedRun| {
        side.ack_rtt_kind
            .iter()
            .copied()
            .collect::<Vec<_>>()
            .join(" and ")
    };
    let (of_a, of_b) = (measured(a), measured(b));
    if of_a != of_b && !of_a.is_empty() && !of_b.is_empty() {
        notes.push(format!(
            "ACK times are not of the same kind: {of_a} in A, {of_b} in B. They were captured at different sides of the network."
        ));
    }
    let options = |run: &RunSummary| -> BTreeMap<String, String> { run.options.iter().cloned().collect() };
    let (of_a, of_b) = (options(&a.run), options(&b.run));
    let names: BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
    // These names differ from run to run, and affect nothing that is compared.
    for name in names
        .into_iter()
        .filter(|name| !name.starts_with("training_log") && *name != "config" && *name != "bin")
    {
        let said = |options: &BTreeMap<String, String>| {
            options
                .get(name)
                .cloned()
                .unwrap_or_else(|| "not given".to_owned())
        };
        let (a, b) = (said(&of_a), said(&of_b));
        if a != b {
            notes.push(format!(
                "A and B were not analysed alike: {name} is {a} in A, {b} in B."
            ));
        }
    }
    for (name, side) in [("A", a), ("B", b)] {
        let lost = side.run.totals.frames_lost;
        if lost > 0 {
            notes.push(format!(
                "The capture of {name} lost {lost} frames: what it missed is in none of the numbers."
            ));
        }
        for input in side.run.inputs.iter().filter(|input| input.error.is_some()) {
            notes.push(format!("{name} was not read to its end: {}.", input.input));
        }
    }
    notes
}

#[cfg(test)]
mod tests;
