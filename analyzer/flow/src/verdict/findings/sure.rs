//! How sure a finding is, by what of it is proven, what is likely, and what something else may explain.

use roce_model::{Confidence, FlowRow};

/// Parts of a sum that a finding reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sure {
    /// What the packets prove.
    pub(super) proven: u64,
    /// What one explanation makes far more likely than others.
    pub(super) likely: u64,
    /// What reordering or duplicates may explain as well.
    pub(super) doubtful: u64,
}

impl Sure {
    /// Adds losses of a flow. Proven are those that the flow's row says are; of the others a NAK or a timer is the only sign.
    pub(super) fn add_losses(&mut self, lost: u64, row: &FlowRow) {
        let proven = row.losses_proven.min(lost);
        self.proven = self.proven.saturating_add(proven);
        let others = lost - proven;
        let sum = if is_disturbed(row) {
            &mut self.doubtful
        } else {
            &mut self.likely
        };
        *sum = sum.saturating_add(others);
    }

    /// Adds what is said of a flow: proven, unless the flow's packets overtake each other or come twice. Then a packet behind the
    /// highest can have another reason.
    pub(super) fn add(&mut self, count: u64, row: &FlowRow) {
        let sum = if is_disturbed(row) {
            &mut self.doubtful
        } else {
            &mut self.proven
        };
        *sum = sum.saturating_add(count);
    }

    /// High when something is proven, medium when something is likely, low when all is doubtful.
    pub(super) fn confidence(self) -> Confidence {
        match (self.proven, self.likely) {
            (1.., _) => Confidence::High,
            (_, 1..) => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

/// Whether the flow's packets overtake each other or come twice.
fn is_disturbed(row: &FlowRow) -> bool {
    row.late > 0 || row.duplicates_network > 0 || row.unknown_packets > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_proven_loss_proves_that_there_are_losses() {
        let sure = |proven, likely, doubtful| {
            Sure {
                proven,
                likely,
                doubtful,
            }
            .confidence()
        };
        assert_eq!(sure(1, 5, 5), Confidence::High);
        assert_eq!(sure(0, 1, 5), Confidence::Medium);
        assert_eq!(sure(0, 0, 1), Confidence::Low);
    }

    #[test]
    fn late_packets_make_a_loss_doubtful() {
        let mut sure = Sure::default();
        let mut row = FlowRow {
            losses_proven: 2,
            ..FlowRow::default()
        };
        sure.add_losses(3, &row);
        let before = Sure {
            proven: 2,
            likely: 1,
            doubtful: 0,
        };
        assert_eq!(sure, before);
        row.late = 1;
        sure.add_losses(5, &row);
        let after = Sure {
            proven: 4,
            likely: 1,
            doubtful: 3,
        };
        assert_eq!(sure, after);
        sure.add(7, &row);
        assert_eq!(sure.doubtful, 10);
    }
}
