//! The kinds of episodes that a destination can have.

use roce_model::EpisodeKind;

/// The kinds that a destination has, in the order of [`EpisodePlace::open`].
pub(super) const KINDS: [EpisodeKind; 4] = [
    EpisodeKind::Ecn,
    EpisodeKind::Incast,
    EpisodeKind::Loss,
    EpisodeKind::Rnr,
];
pub(super) const ECN: usize = 0;
pub(super) const INCAST: usize = 1;
pub(super) const LOSS: usize = 2;
pub(super) const RNR: usize = 3;
