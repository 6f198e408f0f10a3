//! A host with what its checks found.

use roce_hosts::doctor::{Host, Judgement, RecommendedAddress};

/// A host with the outcomes of its checks.
pub(super) struct ExaminedHost {
    pub(super) host: Host,
    pub(super) judgements: Vec<Judgement>,
    pub(super) recommended: Vec<RecommendedAddress>,
}
