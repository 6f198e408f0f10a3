//! Bins that are narrower than a cell of the verdicts: their rows are kept until the cell has ended.

use roce_model::{Active, Time};
use roce_verdict::{BinRows, CELL, HostPairs, cell_of};

/// The cell that goes on.
#[derive(Debug, Default)]
pub(super) struct Cell {
    begin: Time,
    /// The begin and the rows of its bins.
    bins: Vec<(Time, BinRows)>,
}

impl Cell {
    /// True if bins wait, and the one that begins at `time` is of another cell.
    pub(super) fn ends_before(&self, time: Time) -> bool {
        !self.bins.is_empty() && cell_of(time) != self.begin
    }

    /// Adds the rows of the bin that begins at `time`.
    pub(super) fn add<'a>(
        &mut self,
        time: Time,
        rows: impl Iterator<Item = (Time, &'a BinRows)>,
        pairs: &mut HostPairs,
    ) {
        if self.bins.is_empty() {
            self.begin = cell_of(time);
            pairs.begin_cell();
        }
        let after = time.since(self.begin).0;
        for (_, rows) in rows {
            for (hosts, active) in rows.sending() {
                let active = Active {
                    first: active.first.saturating_add(after),
                    last: active.last.saturating_add(after),
                };
                pairs.sends_in_cell(hosts, active);
            }
            self.bins.push((time, rows.clone()));
        }
    }

    /// The cell has ended: the rows of its bins, if it had any.
    pub(super) fn end(&mut self, pairs: &mut HostPairs) -> Option<Vec<(Time, BinRows)>> {
        if self.bins.is_empty() {
            return None;
        }
        pairs.count_senders_of_cell(self.begin, CELL);
        Some(core::mem::take(&mut self.bins))
    }
}
