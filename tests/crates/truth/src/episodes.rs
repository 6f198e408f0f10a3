//! Episodes, at each tap apart. What is expected is put together here from the truth's single events (marks, CNPs, losses,
//! runs, NAKs, pauses, silences) that the tap recorded, by the rule that the analysis documents: signs of one kind on
//! the way to one destination belong together until `episode_quiet` has passed without one.
//!
//! An item: such an episode. Observable: it holds signs that the tap's records show for sure. Found: an episode of the same
//! kind and destination overlaps it, and begins and ends in the bin of its first and last sign, or the one before or after.
//! Signs that may or may not be seen (CNPs of flows that cannot be paired there, losses that no record explains) let an
//! episode begin earlier and end later, and make one that consists only of them neither right nor wrong.
//! An `ecn` episode of which an incast covers half is that incast's.

use roce_model::EpisodeRow;
use roce_sim::truth::Tap;
use roce_verdict::Thresholds;

use crate::case::Case;
use crate::score::{Score, StatedConfidence};
use crate::signs::{Sign, Signs};

/// By so much an episode may begin or end beside its signs, in nanoseconds.
const BIN: u64 = 1_000_000;

/// An episode that the analysis should or could tell.
#[derive(Debug)]
struct ExpectedEpisode {
    /// First and last sign that the tap shows for sure, if there is one.
    sure: Option<(u64, u64)>,
    /// First and last sign of all.
    all: (u64, u64),
}

/// Puts signs together, in bins of the analysis: its rule is about bins without a sign.
fn group(mut signs: Vec<Sign>, quiet: u64, bin: u64) -> Vec<ExpectedEpisode> {
    signs.sort_by_key(|sign| sign.begin);
    let mut episodes: Vec<ExpectedEpisode> = Vec::new();
    for sign in signs {
        let sure = sign.sure.then_some((sign.begin, sign.end));
        match episodes.last_mut() {
            Some(last) if sign.begin / bin * bin < (last.all.1 / bin + 1) * bin + quiet => {
                last.all.1 = last.all.1.max(sign.end);
                last.sure = match (last.sure, sure) {
                    (Some((begin, end)), Some(more)) => Some((begin.min(more.0), end.max(more.1))),
                    (one, other) => one.or(other),
                };
            }
            _ => episodes.push(ExpectedEpisode {
                sure,
                all: (sign.begin, sign.end),
            }),
        }
    }
    episodes
}

impl ExpectedEpisode {
    /// True if an episode of the analysis overlaps this one.
    fn overlaps(&self, row: &EpisodeRow) -> bool {
        row.start_time.0 <= self.all.1 + BIN && row.end_time.0 + BIN >= self.all.0
    }

    /// True if it begins and ends where this one does, to within a bin.
    fn bounds(&self, row: &EpisodeRow) -> bool {
        let sure = self.sure.unwrap_or(self.all);
        let (first, last) = (row.start_time.0 / BIN, row.end_time.0.saturating_sub(1) / BIN);
        first + 1 >= self.all.0 / BIN
            && first <= sure.0 / BIN + 1
            && last + 1 >= sure.1 / BIN
            && last <= self.all.1 / BIN + 1
    }
}

pub(crate) fn compare(case: &Case, score: &mut Score) {
    for tap in &case.truth.taps {
        let rows: Vec<&EpisodeRow> = case
            .seen
            .summary
            .episodes
            .iter()
            .filter(|row| case.is_at(tap, row.tap.0))
            .collect();
        let signs = Signs::of(case, tap);
        for (kind, destinations) in signs.by_kind() {
            for (destination, signs) in destinations {
                let said: Vec<&EpisodeRow> = rows
                    .iter()
                    .copied()
                    .filter(|row| row.kind.name() == kind && place_of(row) == *destination)
                    .collect();
                one_place(score, case, tap, kind, destination, signs, &said, &rows);
            }
        }
        for row in &rows {
            if !signs.has(row.kind.name(), &place_of(row)) {
                score.tell_with(StatedConfidence::of(row.confidence), false, || {
                    format!("{}: {}", tap.name, text(case, row))
                });
            }
        }
    }
}

/// Place of an episode: its destination, or the priority of a pause.
fn place_of(row: &EpisodeRow) -> String {
    if row.kind == roce_model::EpisodeKind::Pause {
        return row.priority.unwrap_or_default().to_string();
    }
    row.destination
        .map_or_else(String::new, |address| address.to_string())
}

#[expect(
    clippy::too_many_arguments,
    reason = "one place of one tap, with what is known of it"
)]
fn one_place(
    score: &mut Score,
    case: &Case,
    tap: &Tap,
    kind: &str,
    destination: &str,
    signs: &[Sign],
    said: &[&EpisodeRow],
    rows: &[&EpisodeRow],
) {
    let quiet = match kind {
        // Silences that overlap are one.
        "stall" => 0,
        _ => Thresholds::default().episode_quiet.0,
    };
    let expected = group(signs.to_vec(), quiet, case.seen.summary.bin.0.max(1));
    for episode in &expected {
        let absorbed = kind == "ecn"
            && rows.iter().any(|row| {
                row.kind == roce_model::EpisodeKind::Incast
                    && place_of(row) == *destination
                    && covers_half(row, episode.all)
            });
        if episode.sure.is_none() || absorbed {
            score.hidden();
            continue;
        }
        let found = said
            .iter()
            .any(|row| episode.overlaps(row) && episode.bounds(row));
        score.expect(found, || {
            let relative = |time: u64| time.saturating_sub(case.stamp(tap, 0)) / 1_000;
            let sure = episode.sure.unwrap_or_default();
            format!(
                "{}: {kind} to {destination} from {} to {} us (all {} to {})",
                tap.name,
                relative(sure.0),
                relative(sure.1),
                relative(episode.all.0),
                relative(episode.all.1)
            )
        });
    }
    for row in said {
        let near: Vec<&ExpectedEpisode> = expected.iter().filter(|episode| episode.overlaps(row)).collect();
        if near.iter().any(|episode| episode.sure.is_some()) {
            let right = near.iter().any(|episode| episode.bounds(row));
            score.tell_with(StatedConfidence::of(row.confidence), right, || {
                format!("{}: {}: bounds", tap.name, text(case, row))
            });
        } else if near.is_empty() {
            score.tell_with(StatedConfidence::of(row.confidence), false, || {
                format!("{}: {}", tap.name, text(case, row))
            });
        }
    }
}

/// True if an incast covers half of the bins from one time to another.
fn covers_half(incast: &EpisodeRow, (begin, end): (u64, u64)) -> bool {
    let (first, last) = (begin / BIN, end / BIN);
    let from = first.max(incast.start_time.0 / BIN);
    let to = last.min(incast.end_time.0.saturating_sub(1) / BIN);
    // Bins without marks do not count for the analysis: one more or less.
    to + 1 >= from && (to + 1 - from) * 2 + 1 >= last + 1 - first
}

fn text(case: &Case, row: &EpisodeRow) -> String {
    let relative = |time: u64| time.saturating_sub(case.truth.start_ns) / 1_000;
    format!(
        "{} to {} from {} to {} us: {}",
        row.kind.name(),
        place_of(row),
        relative(row.start_time.0),
        relative(row.end_time.0),
        row.cause
    )
}
