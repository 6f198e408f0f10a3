//! The finding about the rank that spends the least time in collectives, by the job's own documents: the others wait for it.

use std::collections::BTreeMap;

use roce_model::{Confidence, Evidence, FindingRow, RankState, RankStateRow, RunSummary, Severity, Span};

use super::super::numbers::{counted, ranked};
use super::rule::{FindingOf as _, Needs, Rule};

/// Fewer collectives than this show no habit.
const MIN_COLLECTIVES: u64 = 5;
/// Least ratio of the others' time to the rank's.
const MIN_RATIO: u64 = 2;
/// And so much longer in each collective, in nanoseconds, as for `rank.late`.
const MIN_EXCESS_NS: u64 = 50_000;

pub(super) const LAST: Rule = Rule {
    id: "rank.last",
    title: "a rank comes last to collectives, by the job's documents",
    meaning: "All ranks leave a collective at about the same time, and each is in it from its own arrival on. So the rank with the shortest time \
              came last, and the longer times of the others are their waits for it, whatever bandwidth is computed from them.",
    method: "Medians of the lengths that documents give, by communicator and operation: one rank's is at most half of each other's and 50 us \
             less, over 5 collectives or more of each rank. The price is the difference to the next shortest, times the collectives. \
             Not where credits have shown who was late.",
    source: "NVIDIA/nccl, plugins/profiler/inspector; pytorch/pytorch, c10d/FlightRecorder.hpp.",
    thresholds: &[],
    severity: Severity::Warning,
    confidence: "medium: documents alone do not show why it was late",
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) fn last(run: &RunSummary) -> Option<FindingRow> {
    let is_shown = |finding: &FindingRow| finding.id == "rank.late" && finding.confidence != Confidence::Low;
    if run.findings.iter().any(is_shown) {
        return None;
    }
    let forms = run.traces.iter().map(|trace| (trace.trace, trace.form.name()));
    let forms: BTreeMap<u32, &str> = forms.collect();
    let mut groups: BTreeMap<_, BTreeMap<u32, &RankStateRow>> = BTreeMap::new();
    for row in run
        .rank_states
        .iter()
        .filter(|row| row.state == RankState::Measured)
    {
        if let Some(rank) = row
            .rank
            .filter(|_| row.median_ns.is_some() && row.collectives >= MIN_COLLECTIVES)
        {
            let key = (
                forms.get(&row.trace),
                row.communicator.as_deref(),
                &*row.operation,
            );
            groups.entry(key).or_default().insert(rank, row);
        }
    }
    let judged = groups
        .values()
        .filter_map(|rows| judge(rows.values().copied().collect()));
    let (row, next, collectives) =
        judged.max_by_key(|(row, next, collectives)| excess(row, next) * collectives)?;
    let own = Span(row.median_ns.unwrap_or_default());
    let (others, excess) = (Span(next.median_ns.unwrap_or_default()), excess(row, next));
    let rank = row.rank.unwrap_or_default();
    let host = row.address.map(|address| address.to_string());
    let at = host.or_else(|| row.hostname.as_deref().map(str::to_owned));
    let at = at.map_or_else(String::new, |host| format!(" ({host})"));
    let waited = excess.saturating_mul(collectives);
    let mut evidence = Evidence::default();
    evidence
        .count("rank", rank.into())
        .text("operation", row.operation.to_string())
        .count("collectives", collectives)
        .count("median_ns", own.0)
        .count("next_median_ns", others.0);
    let summary = format!(
        "rank {rank}{at} came last: its {} took {own}, those of each other rank {others} or more; the others waited {} in {}",
        row.operation,
        Span(waited),
        counted(collectives, "collective")
    );
    let next_step =
        "Look at this rank's GPU and host. Its captures with `-s 160` show which of both was late.";
    let mut finding = LAST.finding(
        (Severity::Warning, Confidence::Medium),
        summary,
        evidence,
        next_step,
        None,
    );
    finding.waited_ns = Some(waited);
    finding.aggressors = row
        .address
        .map(|host| ranked(host, row.rank))
        .into_iter()
        .collect();
    Some(finding)
}

fn excess(row: &RankStateRow, next: &RankStateRow) -> u64 {
    let median = |row: &RankStateRow| row.median_ns.unwrap_or_default();
    median(next).saturating_sub(median(row))
}

/// The rank with the shortest time, the next one, and how many collectives both have, if that is no chance.
fn judge(mut rows: Vec<&RankStateRow>) -> Option<(&RankStateRow, &RankStateRow, u64)> {
    rows.sort_by_key(|row| row.median_ns);
    let (&first, &next) = rows.first().zip(rows.get(1))?;
    let counts = || rows.iter().map(|row| row.collectives);
    let (least, most) = (counts().min()?, counts().max()?);
    // Ranks that were asked at different times have other collectives.
    let is_alike = most - least <= least / 10;
    let median = first.median_ns?;
    let is_short =
        excess(first, next) >= MIN_EXCESS_NS && next.median_ns? >= median.saturating_mul(MIN_RATIO);
    (is_alike && is_short).then_some((first, next, least))
}
