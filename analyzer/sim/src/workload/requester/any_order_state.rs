//! State of a requester that takes READ responses and acknowledgements in any order.

use std::collections::BTreeSet;

use crate::workload::gaps::Gaps;

/// State beyond that of a requester that needs everything in order.
#[derive(Debug)]
pub(crate) struct AnyOrder {
    pub(super) gaps: Gaps,
    /// READ responses beyond the oldest PSN that is not done.
    pub(super) got: BTreeSet<u64>,
    /// PSN up to which the responder has acknowledged, including unfinished READs.
    pub(super) acked: u64,
}
