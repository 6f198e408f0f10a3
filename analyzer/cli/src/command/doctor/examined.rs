//! A host with what its checks found.

use roce_hosts::doctor::{Host, Judgement, Recommended};

/// A host with the outcomes of its checks.
pub(super) struct Examined {
    pub(super) host: Host,
    pub(super) judgements: Vec<Judgement>,
    pub(super) recommended: Vec<Recommended>,
}
