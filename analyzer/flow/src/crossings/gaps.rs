//! PSNs that a tap did not show, kept to the end: what one tap did not show and the one before it did was lost between
//! them. Who lost it, the network or the second tap's capture, was told at that tap alone.

use std::collections::HashMap;

use roce_model::{FlowId, Nanos, TapId};
use roce_wire::Psn;

use crate::holes::Fate;

/// Gaps kept of a flow at a tap, and in all. Of more nothing is said.
const MOST_OF_A_FLOW: usize = 1_024;
const MOST: usize = 1 << 18;

/// What is further apart in time is another lap of the PSNs.
const LAP: Nanos = Nanos(4 * Nanos::SECOND);

/// Who lost packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LostBy {
    Network,
    Capture,
}

/// PSNs that a tap did not show in their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    pub(crate) first: Psn,
    pub(crate) count: u32,
    /// When they were found to be missing.
    pub(crate) time: Nanos,
    /// `None`: it is not known.
    pub(crate) lost_by: Option<LostBy>,
}

/// All of them, by the flow's name at a tap.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    of: HashMap<(FlowId, TapId), Vec<Gap>, foldhash::fast::RandomState>,
    count: usize,
}

impl Gaps {
    /// Notes PSNs of a flow that were missing at a tap, unless they came late: then they were there.
    pub(crate) fn note(&mut self, flow: FlowId, tap: TapId, first: Psn, count: u64, time: Nanos, fate: Fate) {
        if fate == Fate::Reordered || self.count >= MOST {
            return;
        }
        let known = self.of.entry((flow, tap)).or_default();
        if known.len() >= MOST_OF_A_FLOW {
            return;
        }
        self.count += 1;
        known.push(Gap {
            first,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            time,
            lost_by: match fate {
                Fate::NetworkLost => Some(LostBy::Network),
                Fate::CaptureLost => Some(LostBy::Capture),
                Fate::Reordered | Fate::Ambiguous | Fate::Unresolved => None,
            },
        });
    }

    /// Those of a flow at a tap.
    pub(crate) fn of(&self, flow: FlowId, tap: TapId) -> &[Gap] {
        self.of.get(&(flow, tap)).map_or(&[], Vec::as_slice)
    }
}

impl Gap {
    /// All of its PSNs.
    pub(crate) fn whole(&self) -> Left {
        Left(vec![(0, i64::from(self.count))])
    }
}

/// PSNs of a gap, counted from its first one, that no tap was found to have seen: from one up to, not including, another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Left(Vec<(i64, i64)>);

impl Left {
    /// Takes out what a tap saw that misses `missing`; how many PSNs these were.
    pub(crate) fn take_seen(&mut self, gap: &Gap, missing: &[Gap]) -> u64 {
        let mut not_seen = Vec::new();
        for other in missing {
            if other.time.0.abs_diff(gap.time.0) > LAP.0 {
                continue;
            }
            let begin = i64::from(other.first.offset_from(gap.first));
            let end = begin + i64::from(other.count);
            if end <= 0 || begin >= i64::from(gap.count) {
                continue;
            }
            let parts = self.0.iter().map(|(from, to)| (begin.max(*from), end.min(*to)));
            not_seen.extend(parts.filter(|(from, to)| from < to));
        }
        not_seen.sort_unstable();
        // What two gaps have in common counts once.
        let mut end = i64::MIN;
        for part in &mut not_seen {
            part.0 = part.0.max(end);
            end = end.max(part.1);
        }
        not_seen.retain(|(from, to)| from < to);
        let length = |parts: &[(i64, i64)]| {
            parts
                .iter()
                .map(|(from, to)| (to - from).unsigned_abs())
                .sum::<u64>()
        };
        let seen = length(&self.0).saturating_sub(length(&not_seen));
        self.0 = not_seen;
        seen
    }
}
