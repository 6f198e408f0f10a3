//! State that few flows need: retransmissions, losses, errors.

use roce_model::Span;
use roce_wire::Psn;

use crate::psn::holes::LossCounts;
use crate::psn::jump::Refusal;
use crate::psn::run::EndedRun;
use crate::table::attributes::Dscps;

/// Counts of what most flows never show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    /// NAKs by code, RNR NAKs left out: sequence, invalid request, remote access, remote operational, other.
    pub(crate) naks: [u64; 5],
    /// Retransmission runs by [`crate::psn::cause::Trigger`].
    pub(crate) runs: [u64; 5],
    /// Those whose cause is sure.
    pub(crate) sure_runs: [u64; 5],
    /// Runs whose cause is not decided yet.
    pub(crate) waiting_runs: Vec<EndedRun>,
    /// The first PSN of the latest run, and the silence before it.
    pub(crate) latest_run: Option<(Psn, Span)>,
    pub(crate) wasted_bytes: u64,
    /// Those of them that were acknowledged when they came again: they had arrived.
    pub(crate) acknowledged_again: u64,
    pub(crate) stale: u64,
    /// Packets that the network delivered more than once.
    pub(crate) duplicates_network: u64,
    /// Packets behind the highest PSN of which nothing tells whether they were late or retransmitted.
    pub(crate) unknown_packets: u64,
    /// READs that were retransmitted because no response came.
    pub(crate) reads_unanswered: u64,
    pub(crate) response_missing: u64,
    /// The latest answer that was recorded before its request, and how many of them had requests that were recorded later.
    pub(crate) early: Option<Psn>,
    pub(crate) early_answers: u32,
    /// Captured packets that the receiver requested again and took without a retransmission.
    pub(crate) overtaken_downstream: u64,
    /// Missing READ responses by [`crate::psn::holes::LossClass`].
    pub(crate) response_fates: LossCounts,
    /// Packets that came without their data.
    pub(crate) trimmed: u64,
    /// Their DSCPs.
    pub(crate) trim_dscps: Dscps,
    pub(crate) icrc_bad: u64,
    /// The first request that its receiver refused for good.
    pub(crate) refusal: Option<Refusal>,
}

/// Number of answers before their requests that is no chance.
const ENOUGH_EARLY: u32 = 8;

impl Trouble {
    /// True if the tap does not record the flow in the order of the wire.
    pub(crate) fn is_recorded_out_of_order(&self) -> bool {
        self.early_answers >= ENOUGH_EARLY
    }
}
