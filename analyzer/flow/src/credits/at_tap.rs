//! One connection as one tap saw it.

use std::collections::HashMap;

use roce_model::{FlowId, TapId};
use roce_wire::{Address, Psn};

use super::message::TapMessage;

/// A connection as one tap saw it.
#[derive(Clone, PartialEq, Debug)]
pub struct CreditsAtTap {
    pub(super) tap: TapId,
    pub(super) sender: Address,
    pub(super) receiver: Address,
    pub(super) credit_flows: Vec<FlowId>,
    pub(super) data_flows: Vec<FlowId>,
    /// Addresses of its slots, as far as they were written.
    pub(super) low: u64,
    pub(super) high: u64,
    /// Credits say their numbers, which are the same at each tap.
    pub(super) says_numbers: bool,
    pub(super) rank: Option<u32>,
    pub(super) releases: Option<&'static str>,
    /// The highest number that data came for.
    pub(super) used: Option<u64>,
    /// Pieces of a message.
    pub(super) pieces: u8,
    /// Messages end with immediates.
    pub(super) has_immediates: bool,
    pub(super) early: u64,
    pub(super) messages: Vec<TapMessage>,
}

impl CreditsAtTap {
    /// True if it is the same connection at another tap.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.tap != other.tap
            && self
                .credit_flows
                .iter()
                .any(|flow| other.credit_flows.contains(flow))
            && self.low <= other.high
            && other.low <= self.high
    }

    /// How much larger the numbers of `other` are than its own.
    pub(super) fn offset_of(&self, other: &Self) -> Option<i64> {
        if self.says_numbers && other.says_numbers {
            return Some(0);
        }
        let own: HashMap<(Psn, u64), u64> = self
            .messages
            .iter()
            .map(|message| ((message.psn, message.buffer), message.number))
            .collect();
        other.messages.iter().find_map(|message| {
            let number = own.get(&(message.psn, message.buffer))?;
            Some(message.number.cast_signed() - number.cast_signed())
        })
    }
}
