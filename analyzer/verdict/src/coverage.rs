//! How much of a flow the capture shows.

use roce_model::FlowRow;

/// Packets of a flow by what the capture has of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Captured for the first time.
    pub(crate) shown: u64,
    /// Missing, and acknowledged or never requested again: they arrived.
    pub(crate) missed: u64,
    /// Missing, never sent again, and nothing shows whether they arrived.
    pub(crate) unclear: u64,
}

impl Coverage {
    /// Coverage of a flow's row.
    pub(crate) fn from_row(row: &FlowRow) -> Self {
        let answers = [row.acks, row.naks, row.rnr_naks];
        let requests = answers.into_iter().fold(row.packets, u64::saturating_sub);
        let responses = row.response_capture_lost.unwrap_or_default();
        // Where READs are known, they show what of the responses came again.
        let unknown = row.peer_flow_id.map_or(row.response_missing, |_| 0);
        // Without a retransmission a loss is one that a NAK names: the receiver waits, so that what is missing behind it did not arrive.
        let is_awaited = row.network_lost > 0 && row.retransmission_runs == 0;
        let unresolved = if is_awaited { 0 } else { row.unresolved };
        Self {
            shown: requests.saturating_sub(row.retransmitted_packets),
            missed: row.capture_lost.saturating_add(responses),
            unclear: unresolved.saturating_add(unknown),
        }
    }

    /// Adds that of another row.
    pub(crate) fn add(&mut self, other: Self) {
        self.shown = self.shown.saturating_add(other.shown);
        self.missed = self.missed.saturating_add(other.missed);
        self.unclear = self.unclear.saturating_add(other.unclear);
    }

    /// Packets that the capture does not show, and that nobody sent again.
    pub(crate) fn absent(self) -> u64 {
        self.missed.saturating_add(self.unclear)
    }

    /// True if a third of the flow or more was never captured. No network loses so much without any of it being sent again, so the capture
    /// is a sample, or the packets take other ways as well.
    pub(crate) fn is_sparse(self) -> bool {
        self.absent() > 0 && self.absent() >= self.shown.div_ceil(2)
    }
}

/// Takes back which packets of a sparse flow the network lost. There a run begins with a hole of the capture more often than not, so that a
/// NAK alone shows a loss.
pub fn leave_unclear(row: &mut FlowRow) {
    if !Coverage::from_row(row).is_sparse() {
        return;
    }
    let first = row.network_lost.saturating_sub(row.network_lost_again);
    let named = first.min(row.losses_proven);
    row.ambiguous = row.ambiguous.saturating_add(first - named);
    (row.network_lost, row.network_lost_again) = (named, 0);
    row.response_network_lost = row.response_network_lost.map(|_| 0);
}

#[cfg(test)]
mod tests {
    use roce_model::FlowId;

    use super::*;

    #[test]
    fn a_third_that_is_absent_makes_a_flow_sparse() {
        let is_sparse = |shown, missed, unclear| {
            Coverage {
                shown,
                missed,
                unclear,
            }
            .is_sparse()
        };
        assert!(!is_sparse(100, 0, 0));
        assert!(!is_sparse(100, 30, 19));
        assert!(is_sparse(100, 30, 20));
        assert!(is_sparse(0, 1, 0));
    }

    #[test]
    fn of_a_sparse_flow_a_nak_alone_shows_a_loss() {
        let row = FlowRow {
            packets: 100,
            retransmission_runs: 3,
            network_lost: 30,
            network_lost_again: 20,
            losses_proven: 2,
            ambiguous: 1,
            unresolved: 49,
            ..FlowRow::default()
        };
        let unclear = |mut row: FlowRow| {
            leave_unclear(&mut row);
            (row.network_lost, row.network_lost_again, row.ambiguous)
        };
        assert_eq!(unclear(row.clone()), (30, 20, 1));
        // Half as many as were captured. Two of ten are named by NAKs.
        let sparse = FlowRow {
            unresolved: 50,
            ..row
        };
        assert_eq!(unclear(sparse), (2, 0, 9));
    }

    #[test]
    fn what_was_sent_again_is_not_absent() {
        let mut row = FlowRow {
            packets: 110,
            acks: 4,
            retransmitted_packets: 6,
            retransmission_runs: 1,
            network_lost: 5,
            capture_lost: 2,
            unresolved: 3,
            ..FlowRow::default()
        };
        let coverage = Coverage {
            shown: 100,
            missed: 2,
            unclear: 3,
        };
        assert_eq!(Coverage::from_row(&row), coverage);
        // The receiver still waits for what a NAK named.
        row.retransmission_runs = 0;
        assert_eq!(Coverage::from_row(&row).unclear, 0);
        row.retransmission_runs = 1;
        // Ten missing responses: of an unknown connection nothing is known of them.
        row.response_missing = 10;
        assert_eq!(Coverage::from_row(&row).unclear, 13);
        (row.peer_flow_id, row.response_capture_lost) = (Some(FlowId(7)), Some(4));
        let coverage = Coverage {
            shown: 100,
            missed: 6,
            unclear: 3,
        };
        assert_eq!(Coverage::from_row(&row), coverage);
    }
}
