//! How sure a finding is, by what of it is proven, what is likely, and what something else may explain.

use std::collections::HashMap;

use roce_model::{Address, Confidence, FlowRow, TapId};

use super::super::directory::is_disturbed;

/// Pairs of hosts that are kept at most.
const MAX_HOST_PAIRS: usize = 1 << 16;

/// Parts of a sum that a finding reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Counts that the packets prove.
    pub(super) proven: u64,
    /// Counts that one explanation makes far more likely than others.
    pub(super) likely: u64,
    /// Counts that reordering or duplicates may explain as well.
    pub(super) doubtful: u64,
}

/// Flows from one host to another at a tap. `disturbed`: some of their packets overtook each other or came twice.
#[derive(Clone, Copy, Debug, Default)]
struct SureLosses {
    parts: Parts,
    disturbed: bool,
}

/// Counts of a finding by pair of hosts. Flows between the same two hosts share their paths: where the packets of one
/// overtake each other, the others' may have done so, too, unseen.
#[derive(Clone, Debug, Default)]
pub(super) struct Sure {
    pairs: HashMap<(TapId, Address, Address), SureLosses, foldhash::fast::RandomState>,
    /// Counts of pairs that found no room.
    others: Parts,
}

impl Sure {
    /// Notes a flow that is reported or not.
    pub(super) fn note(&mut self, row: &FlowRow) {
        if is_disturbed(row)
            && let Some(pair) = self.pair(row)
        {
            pair.disturbed = true;
        }
    }

    fn pair(&mut self, row: &FlowRow) -> Option<&mut SureLosses> {
        let key = (row.tap, row.source, row.destination);
        (self.pairs.len() < MAX_HOST_PAIRS || self.pairs.contains_key(&key))
            .then(|| self.pairs.entry(key).or_default())
    }

    fn parts(&mut self, row: &FlowRow) -> &mut Parts {
        let key = (row.tap, row.source, row.destination);
        if self.pairs.len() < MAX_HOST_PAIRS || self.pairs.contains_key(&key) {
            &mut self.pairs.entry(key).or_default().parts
        } else {
            &mut self.others
        }
    }

    /// Adds losses of a flow. Proven are those that the flow's row says are; of the others a NAK or a timer is the only sign.
    ///
    /// A packet that comes again without a cause may be the first one of its PSN, later than its own retransmission: then that PSN was not
    /// lost. So each such run takes one loss from those that are proven.
    pub(super) fn add_losses(&mut self, lost: u64, row: &FlowRow) {
        let proven = row.losses_proven.min(lost).saturating_sub(row.runs_unknown);
        let others = lost - proven;
        let disturbed = is_disturbed(row);
        let parts = self.parts(row);
        parts.proven = parts.proven.saturating_add(proven);
        let sum = if disturbed {
            &mut parts.doubtful
        } else {
            &mut parts.likely
        };
        *sum = sum.saturating_add(others);
    }

    /// Adds a count of a flow: proven, unless the flow's packets overtake each other or come twice. Then a packet behind the
    /// highest can have another reason.
    pub(super) fn add(&mut self, count: u64, row: &FlowRow) {
        let disturbed = is_disturbed(row);
        let parts = self.parts(row);
        let sum = if disturbed {
            &mut parts.doubtful
        } else {
            &mut parts.proven
        };
        *sum = sum.saturating_add(count);
    }

    /// Adds timeouts of a flow. Where the capture missed packets, it may have missed NAKs; without any answer nothing shows that there were
    /// none. What another cause explains nearly as well is doubtful there.
    pub(super) fn add_timeouts(&mut self, row: &FlowRow) {
        let sure = row.runs_timeout_sure.min(row.runs_timeout);
        let misses = row.capture_lost.saturating_add(row.unresolved) > 0;
        // Without the other direction one packet that is repeated after equal silences, twice and more, is a timer's.
        let is_blind = row.peer_flow_id.is_none();
        let sure = if is_blind && sure < 2 { 0 } else { sure };
        let all = row.runs_timeout;
        let (proven, likely, doubtful) = match (is_disturbed(row), is_blind, misses) {
            (true, ..) => (0, 0, all),
            (_, true, _) => (0, sure, all - sure),
            (.., true) => (0, all, 0),
            _ => (sure, all - sure, 0),
        };
        let parts = self.parts(row);
        parts.proven = parts.proven.saturating_add(proven);
        parts.likely = parts.likely.saturating_add(likely);
        parts.doubtful = parts.doubtful.saturating_add(doubtful);
    }

    /// All pairs together. Where packets of other flows overtake each other, proven counts are only likely, and likely ones
    /// doubtful.
    pub(super) fn sum(&self) -> Parts {
        let mut sum = self.others;
        for SureLosses { parts, disturbed } in self.pairs.values() {
            let (proven, likely, doubtful) = if *disturbed {
                (0, parts.proven, parts.likely.saturating_add(parts.doubtful))
            } else {
                (parts.proven, parts.likely, parts.doubtful)
            };
            sum.proven = sum.proven.saturating_add(proven);
            sum.likely = sum.likely.saturating_add(likely);
            sum.doubtful = sum.doubtful.saturating_add(doubtful);
        }
        sum
    }

    /// High when something is proven, medium when something is likely, low when all is doubtful.
    pub(super) fn confidence(&self) -> Confidence {
        self.sum().confidence()
    }
}

impl Parts {
    fn confidence(self) -> Confidence {
        match (self.proven, self.likely) {
            (1.., _) => Confidence::High,
            (_, 1..) => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_proven_loss_proves_that_there_are_losses() {
        let parts = |proven, likely, doubtful| {
            Parts {
                proven,
                likely,
                doubtful,
            }
            .confidence()
        };
        assert_eq!(parts(1, 5, 5), Confidence::High);
        assert_eq!(parts(0, 1, 5), Confidence::Medium);
        assert_eq!(parts(0, 0, 1), Confidence::Low);
    }

    #[test]
    fn a_packet_that_comes_again_without_a_cause_may_be_the_lost_one() {
        let parts = |losses_proven, runs_unknown| {
            let mut sure = Sure::default();
            let row = FlowRow {
                losses_proven,
                runs_unknown,
                ..FlowRow::default()
            };
            sure.add_losses(losses_proven, &row);
            (sure.sum().proven, sure.sum().likely, sure.confidence())
        };
        assert_eq!(parts(1, 1), (0, 1, Confidence::Medium));
        assert_eq!(parts(3, 1), (2, 1, Confidence::High));
        assert_eq!(parts(1, 2), (0, 1, Confidence::Medium));
    }

    #[test]
    fn late_packets_make_a_loss_doubtful() {
        let mut sure = Sure::default();
        let mut row = FlowRow {
            losses_proven: 2,
            ..FlowRow::default()
        };
        sure.note(&row);
        sure.add_losses(3, &row);
        let before = Parts {
            proven: 2,
            likely: 1,
            doubtful: 0,
        };
        assert_eq!(sure.sum(), before);
        // Another flow between these hosts has a late packet: its three other losses are doubtful, as is the first flow's, and
        // nothing is proven there: two and two are likely.
        row.late = 1;
        sure.note(&row);
        sure.add_losses(5, &row);
        let after = Parts {
            proven: 0,
            likely: 4,
            doubtful: 4,
        };
        assert_eq!(sure.sum(), after);
        sure.add(7, &row);
        assert_eq!(sure.sum().doubtful, 11);
        // A flow between other hosts stays as it is.
        let elsewhere = FlowRow {
            tap: TapId(1),
            ..FlowRow::default()
        };
        sure.note(&elsewhere);
        sure.add(1, &elsewhere);
        assert_eq!((sure.sum().proven, sure.confidence()), (1, Confidence::High));
    }
}
