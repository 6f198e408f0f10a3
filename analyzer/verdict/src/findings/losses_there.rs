//! Losses at one destination, and what they prove about the queue before it.

use std::collections::BTreeMap;
use std::fmt;

use roce_model::cast::float;
use roce_model::{Address, Time};

use super::super::numbers::{NEARLY_ALL, counted, reaches, share};
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

/// The class that alone lost packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct LosingClass {
    pub(super) dscp: u8,
    /// The only one who sends in it.
    pub(super) sender: Option<Address>,
    /// Packets of other classes to the same hosts, and the class if it is one.
    pub(super) spared: u64,
    pub(super) other: Option<u8>,
}

/// `only DSCP 0 lost any, sent by 10.0.0.4, and none of 6000 packets of DSCP 26`.
impl fmt::Display for LosingClass {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "only DSCP {} lost any", self.dscp)?;
        if let Some(sender) = self.sender {
            write!(to, ", sent by {sender},")?;
        }
        write!(to, " and none of {} of ", counted(self.spared, "packet"))?;
        match self.other {
            Some(dscp) => write!(to, "DSCP {dscp}"),
            None => to.write_str("other DSCPs"),
        }
    }
}
