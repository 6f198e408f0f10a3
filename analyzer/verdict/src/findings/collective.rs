//! The finding about collectives, of merged traces, that took longer while something was congested.

use std::collections::HashMap;

use roce_model::cast::{float, whole};
use roce_model::{
    CollectiveCallRow, Confidence, EpisodeKind, EpisodeRow, Evidence, FindingRow, RunSummary, Severity, Span,
    Time, TraceRow,
};

use super::super::numbers::{bytes, counted, note_first};
use super::super::thresholds::Thresholds;
use super::rule::{FindingOf as _, Rule};
use super::worst::Worst;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

pub(super) const SLOWED: Rule = Rule {
    id: "collective.slowed",
    title: "collectives took longer during congestion of their flows",
    meaning: "Collectives of the merged traces took longer than their equals while an episode of congestion lasted on flows that carried \
              them, and the network was busy with them for longer, too. All ranks of a collective wait for its slowest connection.",
    method: "Equals are collectives of one trace, rank, communicator, kind and size: at least collective_equals. One that takes \
             collective_slow times their median or more is slowed if what it takes longer is at least collective_excess and twice the \
             uncertainty of the clocks, if the time from its first to its last payload grew by half of that or more, and if an episode in \
             its flows overlaps it by a quarter of that or more. It does not count where more than half of its equals of usual length \
             have an episode of this kind, too.",
    source: "The definition of the analysis. That one slow connection holds up a ring: Patarasuk and Yuan, JPDC 69 (2009).",
    thresholds: &["collective_equals", "collective_slow", "collective_excess"],
    severity: Severity::Warning,
    confidence: "medium when the traffic shows how the clocks are related; low when only the trace states it. Never high: packets do not \
                 show what GPUs and other ranks did meanwhile",
    ..Rule::TALLIED
};

/// Fewer times the median than this are the usual length.
const USUAL: f64 = 1.2;

/// Collectives that are alike.
type Equals<'a> = (u32, Option<u32>, Option<&'a str>, &'a str, u64);

/// Facts about collectives that are alike.
struct Like {
    calls: Vec<usize>,
    median: u64,
    median_busy: Option<u64>,
    /// Those of usual length, and how many of them have an episode of each kind.
    usual: u64,
    usual_with: Map<EpisodeKind, u64>,
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Fills in the medians of collectives and which of them were slowed, and returns the finding. Their episodes are known.
pub(super) fn slowed(run: &mut RunSummary, thresholds: &Thresholds) -> Option<FindingRow> {
    let mut equals: Map<Equals<'_>, Vec<usize>> = Map::default();
    for (place, call) in run.collective_calls.iter().enumerate() {
        let Some(size) = call.message_bytes.filter(|_| call.network_bytes.is_some()) else {
            continue;
        };
        let like = (
            call.trace,
            call.rank,
            call.communicator.as_deref(),
            &*call.kind,
            size,
        );
        equals.entry(like).or_default().push(place);
    }
    let kinds: Map<u32, &EpisodeRow> = run.episodes.iter().map(|row| (row.episode, row)).collect();
    let traces: Map<u32, &TraceRow> = run.traces.iter().map(|row| (row.trace, row)).collect();
    let likes = equals.into_values().filter_map(|calls| {
        let enough = calls.len() as u64 >= thresholds.collective_equals;
        enough
            .then(|| Like::new(calls, &run.collective_calls, &kinds))
            .flatten()
    });
    let likes: Vec<Like> = likes.collect();
    let mut slowed: Vec<(usize, u64, EpisodeKind)> = Vec::new();
    for like in &likes {
        for place in &like.calls {
            let Some(call) = run.collective_calls.get(*place) else {
                continue;
            };
            let episode = call.episode.and_then(|number| kinds.get(&number));
            let uncertainty = traces.get(&call.trace).and_then(|trace| trace.uncertainty_ns);
            if let Some(episode) =
                episode.filter(|episode| like.is_slowed(call, episode, uncertainty, thresholds))
            {
                slowed.push((*place, call.duration_ns.saturating_sub(like.median), episode.kind));
            }
        }
    }
    slowed.sort_unstable_by_key(|(place, _, _)| *place);
    let compared = likes.iter().map(|like| like.calls.len() as u64).sum();
    for like in &likes {
        for place in &like.calls {
            if let Some(call) = run.collective_calls.get_mut(*place) {
                call.median_ns = Some(like.median);
            }
        }
    }
    for (place, _, _) in &slowed {
        if let Some(call) = run.collective_calls.get_mut(*place) {
            call.is_slowed = true;
        }
    }
    finding(run, &slowed, compared)
}

impl Like {
    fn new(places: Vec<usize>, calls: &[CollectiveCallRow], kinds: &Map<u32, &EpisodeRow>) -> Option<Self> {
        let of = |place: &usize| calls.get(*place);
        let middle = median(
            places
                .iter()
                .filter_map(of)
                .map(|call| call.duration_ns)
                .collect(),
        )?;
        let mut usual = 0;
        let mut usual_with: Map<EpisodeKind, u64> = Map::default();
        let usual_ones = places
            .iter()
            .filter_map(of)
            .filter(|call| float(call.duration_ns) < USUAL * float(middle));
        for call in usual_ones {
            usual += 1;
            if let Some(episode) = call.episode.and_then(|number| kinds.get(&number)) {
                *usual_with.entry(episode.kind).or_default() += 1;
            }
        }
        Some(Self {
            median: middle,
            median_busy: median(
                places
                    .iter()
                    .filter_map(of)
                    .filter_map(|call| call.busy_ns)
                    .collect(),
            ),
            calls: places,
            usual,
            usual_with,
        })
    }

    fn is_slowed(
        &self,
        call: &CollectiveCallRow,
        episode: &EpisodeRow,
        uncertainty: Option<u64>,
        thresholds: &Thresholds,
    ) -> bool {
        let excess = call.duration_ns.saturating_sub(self.median);
        let is_slow = float(call.duration_ns) >= thresholds.collective_slow * float(self.median)
            && excess
                >= thresholds
                    .collective_excess
                    .0
                    .max(2 * uncertainty.unwrap_or_default());
        let grew = call
            .busy_ns
            .zip(self.median_busy)
            .is_some_and(|(busy, usual)| busy.saturating_sub(usual) >= excess / 2);
        let both = call
            .end_time
            .min(episode.end_time)
            .0
            .saturating_sub(call.start_time.max(episode.start_time).0);
        let always = self.usual_with.get(&episode.kind).copied().unwrap_or_default();
        is_slow && grew && both >= excess / 4 && 2 * always <= self.usual
    }
}

fn finding(run: &RunSummary, slowed: &[(usize, u64, EpisodeKind)], compared: u64) -> Option<FindingRow> {
    let mut worst = Worst::default();
    let mut kinds: Vec<EpisodeKind> = Vec::new();
    let mut first: Option<Time> = None;
    let mut is_sure = true;
    for (place, excess, kind) in slowed {
        let call = run.collective_calls.get(*place)?;
        worst.add(*excess, || name(call, run));
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
        note_first(&mut first, call.start_time);
        let trace = run.traces.iter().find(|trace| trace.trace == call.trace);
        is_sure &= trace.is_some_and(|trace| trace.uncertainty_ns.is_some());
    }
    if worst.all() == 0 {
        return None;
    }
    let kinds: Vec<&str> = kinds.into_iter().map(EpisodeKind::name).collect();
    let mut evidence = Evidence::default();
    evidence
        .count("slowed", worst.all())
        .count("compared", compared)
        .count("longer_ns", worst.sum())
        .text("episodes", kinds.join(" "))
        .text("worst", worst.names());
    let mut finding = SLOWED.finding(
        (
            Severity::Warning,
            if is_sure { Confidence::Medium } else { Confidence::Low },
        ),
        format!(
            "{} of {compared} took longer while their flows were congested ({}), by {} in all; the worst: {}",
            counted(worst.all(), "collective"),
            kinds.join(", "),
            Span(worst.sum()),
            worst.name()
        ),
        evidence,
        "Open the run with --format perfetto: an arrow leads from the episode to the collective. The finding about that kind of episode \
         says what to do.",
        first,
    );
    if run
        .findings
        .iter()
        .any(|finding| finding.concerns_shown.is_some())
    {
        // With --flow the collectives were compared with these flows alone.
        finding.concerns_shown = Some(true);
    }
    Some(finding)
}

/// A slowed collective in few words.
fn name(call: &CollectiveCallRow, run: &RunSummary) -> String {
    let rank = call
        .rank
        .map_or_else(String::new, |rank| format!(" at rank {rank}"));
    let size = call
        .message_bytes
        .map_or_else(String::new, |size| format!(" of {}", bytes(size)));
    let median = call
        .median_ns
        .map_or_else(String::new, |median| format!(" instead of {}", Span(median)));
    let episode = run.episodes.iter().find(|row| Some(row.episode) == call.episode);
    let cause = episode.map_or_else(String::new, |row| {
        let into = row
            .destination
            .map_or_else(String::new, |host| format!(" into {host}"));
        format!(", episode {} ({}{into})", row.episode, row.kind.name())
    });
    let slowest = call.slowest.as_deref().map_or_else(String::new, |slowest| {
        let rate = call.slowest_rate.map_or_else(String::new, |rate| {
            format!(" at {:.2} Gbit/s", float(whole(rate / 1e7)) / 100.0)
        });
        format!(", slowest {slowest}{rate}")
    });
    format!(
        "{}{size}{rank} took {}{median}{cause}{slowest}",
        call.kind,
        Span(call.duration_ns)
    )
}
