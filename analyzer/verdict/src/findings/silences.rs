//! The silences of flows that count, and the episodes that explain them. Which of them count is left to `stall`.

use roce_model::{Address, EpisodeKind, TapId, Time};

use super::super::episodes::{Episode, StallFacts};
use super::overlaps::Overlaps;

/// The silences that count.
#[derive(Debug, Default)]
pub(super) struct Silences<'a> {
    /// Each with its facts, in the order of time.
    pub(super) counted: Vec<(&'a Episode, StallFacts)>,
    /// Losses and hosts without buffers, by destination.
    refused: Overlaps<(TapId, Option<Address>)>,
    pauses: Overlaps<TapId>,
}

impl<'a> Silences<'a> {
    /// Those that count, among all episodes.
    pub(super) fn new(counted: Vec<(&'a Episode, StallFacts)>, episodes: &[Episode]) -> Self {
        let is_refused = |kind| matches!(kind, EpisodeKind::Loss | EpisodeKind::Rnr);
        let refused = episodes.iter().filter(|episode| is_refused(episode.row.kind));
        let pauses = episodes
            .iter()
            .filter(|episode| episode.row.kind == EpisodeKind::Pause);
        Self {
            counted,
            refused: refused
                .map(|episode| ((episode.row.tap, episode.row.destination), times(episode)))
                .collect(),
            pauses: pauses.map(|episode| (episode.row.tap, times(episode))).collect(),
        }
    }

    /// True if something else that was captured explains a silence: losses on the way to the same host, a host without
    /// buffers, pauses.
    pub(super) fn has_reason(&self, silence: &Episode) -> bool {
        let row = &silence.row;
        self.refused.meet(&(row.tap, row.destination), times(silence))
            || self.pauses.meet(&row.tap, times(silence))
    }
}

/// Begin and end of an episode.
fn times(episode: &Episode) -> (Time, Time) {
    (episode.row.start_time, episode.row.end_time)
}
