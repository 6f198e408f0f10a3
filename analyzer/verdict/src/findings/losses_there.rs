//! Losses at one destination, and what they prove about the queue before it.

use std::collections::BTreeMap;

use roce_model::cast::float;
use roce_model::{Address, Time};

use super::super::numbers::{NEARLY_ALL, reaches, share};
use crate::chance::UNLIKELY;

/// So large a share of lost packets is no cable's: bit errors lose one in a thousand where a link still works.
const FULL_QUEUE: f64 = 0.01;

/// Losses at one destination, and data packets, in all, while many senders sent there at once, and while several did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossesThere {
    pub(super) lost: u64,
    pub(super) in_incast: u64,
    pub(super) data_in_incast: u64,
    pub(super) of_several: u64,
    pub(super) data_of_several: u64,
    pub(super) data: u64,
    /// The first and the last moment of its episodes.
    pub(super) times: (Time, Time),
    /// Data came as fast as its link takes it while several senders lost packets close to each other.
    pub(super) is_crowded: bool,
}

/// Losses by destination.
pub(super) type Losses = BTreeMap<Address, LossesThere>;

impl LossesThere {
    /// True if many senders at once are the reason: nearly all losses fall into these times, and would not by chance, or are far too many
    /// for a cable.
    pub(super) fn are_explained(&self) -> bool {
        let by_chance = share(self.data_in_incast.min(self.data), self.data)
            .unwrap_or(1.0)
            .powf(float(self.lost));
        reaches(self.in_incast, self.lost, NEARLY_ALL)
            && (by_chance < UNLIKELY || reaches(self.in_incast, self.data_in_incast.max(1), FULL_QUEUE))
            || self.overran()
    }

    /// True if several senders at once lost nearly all of it, and far too much for a cable.
    pub(super) fn are_of_a_full_queue(&self) -> bool {
        self.are_of_several() && reaches(self.of_several, self.data_of_several.max(1), FULL_QUEUE)
            || self.overran()
    }

    /// True if the packets prove that a queue overran: senders at once lost nearly all of it, and close to each other, while the link was
    /// busy.
    pub(super) fn overran(&self) -> bool {
        self.is_crowded && self.are_of_several()
    }

    fn are_of_several(&self) -> bool {
        reaches(self.of_several, self.lost.max(1), NEARLY_ALL)
    }
}
