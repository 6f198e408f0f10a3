//! The context that all rules conclude from, and the finding of a rule.

use std::collections::HashSet;

use roce_lateness::Lateness;
use roce_model::cast::float;
use roce_model::{
    Confidence, EpisodeKind, Evidence, Expectation, FindingRow, FlowId, HopRow, RunSummary, Severity, TapId,
    Time, Wiring,
};
pub(super) use roce_rules::{Needs, Rule};

use super::losses_there::{LosingClass, Losses};
use super::silences::Silences;
use crate::directory::Directory;
use crate::episodes::Episode;
use crate::pauses::ConcludedPauses;
use crate::settings::Settings;
use crate::thresholds::Thresholds;

/// Findings of a rule.
pub(super) trait FindingOf {
    /// A finding of this rule. What is only likely asks nobody to act: of low confidence it is for information at most.
    fn finding(
        &self,
        judged: (Severity, Confidence),
        summary: String,
        evidence: Evidence,
        next_step: &'static str,
        first_time: Option<Time>,
    ) -> FindingRow;
}

impl FindingOf for Rule {
    fn finding(
        &self,
        (severity, confidence): (Severity, Confidence),
        summary: String,
        evidence: Evidence,
        next_step: &'static str,
        first_time: Option<Time>,
    ) -> FindingRow {
        FindingRow {
            id: self.id,
            severity: match confidence {
                Confidence::Low => severity.min(Severity::Info),
                _ => severity,
            },
            summary: summary.into(),
            evidence,
            confidence,
            next_step: next_step.into(),
            first_time,
            ..FindingRow::default()
        }
    }
}

/// Queue pairs that only manage: 0 and 1 (Linux include/rdma/ib_mad.h). Their datagrams are no data.
pub(super) const MAX_MANAGEMENT_QPN: u32 = 1;

/// Input of all rules, besides the tally of each.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) run: &'a RunSummary,
    pub(super) thresholds: &'a Thresholds,
    /// Data packets by which the class of a flow is known.
    pub(super) least_class_packets: u64,
    /// Speed of the links, in bit/s, if given.
    pub(super) link_rate: Option<u64>,
    /// Classes and path MTU that somebody expects.
    pub(super) expectation: &'a Expectation,
    /// Cables, and ports of addresses.
    pub(super) wiring: &'a Wiring,
    /// The priority of untagged packets, by DSCP.
    pub(super) priority_of_dscp: &'a [u8; 64],
    pub(super) directory: &'a Directory,
    pub(super) episodes: &'a [Episode],
    /// Losses by destination.
    pub(super) losses: &'a Losses,
    /// The class that alone lost packets.
    pub(super) losing_class: Option<LosingClass>,
    /// The silences of flows that count.
    pub(super) silences: &'a Silences<'a>,
    /// Episodes that found no room.
    pub(super) dropped: u64,
    /// Pauses that were counted at several levels; `None` in a snapshot.
    pub(super) fabric: Option<&'a ConcludedPauses>,
    /// Who was late in a job's collectives; `None` in a snapshot.
    pub(super) lateness: Option<&'a Lateness>,
    /// The only flows that findings are about.
    pub(super) only: Option<&'a HashSet<FlowId>>,
}

impl<'a> Context<'a> {
    /// The context of a run and its settings: without pauses at several levels, lateness, and what was left out.
    pub(super) fn new(
        (run, settings): (&'a RunSummary, &'a Settings),
        directory: &'a Directory,
        episodes: &'a [Episode],
        (losses, silences): (&'a Losses, &'a Silences<'a>),
    ) -> Self {
        Self {
            run,
            thresholds: &settings.thresholds,
            least_class_packets: settings.least_class_packets(),
            link_rate: settings.link_rate,
            expectation: &settings.expectation,
            wiring: &settings.wiring,
            priority_of_dscp: &settings.priority_of_dscp,
            directory,
            episodes,
            losses,
            silences,
            losing_class: None,
            dropped: 0,
            fabric: None,
            lateness: None,
            only: None,
        }
    }
}

impl Context<'_> {
    /// The episodes of a kind, each once: of those that two taps saw, the one whose flows count.
    pub(super) fn distinct(&self, kind: EpisodeKind) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().filter(move |episode| {
            episode.row.kind == kind && (episode.counted || !self.seen_elsewhere(episode))
        })
    }

    /// True if another tap has the same episode, and is the one to report it.
    pub(super) fn seen_elsewhere(&self, episode: &Episode) -> bool {
        let row = &episode.row;
        self.episodes
            .iter()
            .take_while(|other| other.row.start_time <= row.end_time)
            .any(|other| {
                other.row.kind == row.kind
                    && other.row.tap != row.tap
                    && other.row.destination == row.destination
                    && other.row.end_time >= row.start_time
                    && (other.counted || other.row.tap < row.tap)
            })
    }

    /// The resolution of a tap's stamps, in ns.
    pub(super) fn quantum(&self, tap: TapId) -> u64 {
        self.run.tap(tap).map_or(0, |row| row.stamp_quantum_ns)
    }

    /// True if a flow's packets pass this tap first, and others that saw the same packets later.
    pub(super) fn is_first_on_way(&self, tap: TapId, flow: FlowId) -> bool {
        let mut hops = self.run.hops.iter().filter(|hop| hop.flow_id == flow);
        // Delays that the stamps do not resolve give no order, and marks are added along the way.
        let is_ordered = |hop: &HopRow| {
            let resolution = self
                .quantum(hop.from_tap)
                .saturating_add(self.quantum(hop.to_tap));
            hop.marked > 0
                || hop
                    .delay_p50_ns
                    .is_none_or(|delay| delay.abs() > float(resolution))
        };
        let before = |hop: &HopRow| hop.to_tap == tap && hop.matched > 0;
        let behind = |hop: &HopRow| hop.from_tap == tap && hop.matched > 0 && is_ordered(hop);
        let is_first = hops.clone().any(behind);
        is_first && !hops.any(before)
    }

    /// When the first episode of these kinds began.
    pub(super) fn first(&self, kinds: &[EpisodeKind]) -> Option<Time> {
        let begun = self
            .episodes
            .iter()
            .filter(|episode| kinds.contains(&episode.row.kind));
        begun.map(|episode| episode.row.start_time).min()
    }
}
