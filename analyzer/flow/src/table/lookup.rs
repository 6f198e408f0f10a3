//! Packets whose flows are looked up together.

use crate::key::{FlowSlot, Key};

/// Packets looked up together.
pub(crate) const LOOKUP_BATCH: usize = 64;

/// A looked-up packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FoundFlow {
    pub(crate) key: Key,
    pub(crate) hash: u64,
    /// The index entry where its search begins.
    pub(super) entry: u64,
    /// The packet's own hash, for finding copies.
    pub(crate) fingerprint: u64,
    /// The flow's place; [`FlowSlot::NONE`] when there is none yet.
    pub(crate) at: FlowSlot,
}
