//! READ responses that are missing, and what is known of them.

use roce_model::Time;

use crate::psn::holes::LossClass;

/// Missing responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHole {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) time: Time,
    /// An answer to this PSN ends a round.
    pub(super) until: u64,
    pub(super) rounds: u8,
    pub(super) stage: Stage,
    /// They were missing below a response that had come, and may have come before that.
    pub(super) may_have_come: bool,
}

/// Evidence on missing responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing yet.
    Open,
    /// READs requested them again. Each READ brings one response for each PSN (IBTA 9.7.5.1.9), so one that was only late comes once
    /// more than it was requested again.
    Requested(RepairReads),
    /// Reported. The place is kept, so that a READ that asks for it again asks for something missing.
    Decided,
}

/// READs that requested missing responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepairReads {
    /// Where all of them began. `u64::MAX`: they began at several PSNs, or before the missing ones.
    pub(super) from: u64,
    /// READs since, and responses to a PSN.
    pub(super) reads: u32,
    pub(super) responses: u32,
    /// When the latest of them was sent.
    pub(super) at: Time,
    /// Fate of the responses, unless they were only late.
    pub(super) class: LossClass,
}

impl ResponseHole {
    /// The fate of the responses if the requester goes back to the first of them, unless they were only late. Where they may have come,
    /// nothing tells if the requester discarded them.
    pub(super) fn class(&self) -> LossClass {
        if self.may_have_come {
            LossClass::Unresolved
        } else {
            LossClass::NetworkLost
        }
    }
}
