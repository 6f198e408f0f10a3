//! Answers of flows whose other direction is not known yet.

use std::collections::{HashMap, VecDeque};

use roce_model::{FlowId, TapId, Time};
use roce_wire::Psn;

use super::handle::WriteHandle;

/// Answers of flows whose other direction is not known.
pub(super) type UnpairedAnswers = HashMap<(TapId, FlowId), UnpairedFlow, foldhash::fast::RandomState>;

/// Answers of one such flow.
#[derive(Clone, Default, Debug)]
pub(super) struct UnpairedFlow {
    pub(super) answers: VecDeque<(Psn, Time)>,
    /// The flow that seems to wait for them, and what speaks for it.
    pub(super) asker: u32,
    pub(super) agreed: u32,
}

impl UnpairedFlow {
    /// An answer speaks for a flow, and against another one.
    pub(super) fn agree(&mut self, asker: u32, weight: u32) {
        if self.asker == asker || self.agreed == 0 {
            (self.asker, self.agreed) = (asker, self.agreed + weight);
        } else {
            self.agreed = self.agreed.saturating_sub(weight);
        }
    }
}

/// An acknowledgement of a flow whose other direction is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnpairedAnswer {
    /// The flow that carries it, and its WRITEs.
    pub(crate) flow: (TapId, FlowId),
    pub(crate) writes: WriteHandle,
    /// A hash of its tap and hosts.
    pub(crate) pair: u64,
    pub(crate) psn: Psn,
    pub(crate) time: Time,
}
