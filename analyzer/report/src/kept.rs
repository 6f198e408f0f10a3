//! The flows that an output shows when there are more than it holds: those with the most trouble, then those with the most bytes.

use std::cmp::Reverse;

use roce_model::{FlowId, FlowRow, TapId, Time};

/// Rows of flows in bounded memory.
#[derive(Debug)]
pub(crate) struct KeptFlows {
    max: usize,
    /// At most a quarter more than `max`.
    rows: Rows,
    seen: u64,
    /// The rank of a row that was left out. No row of this rank or a later one is kept.
    bar: Option<Rank>,
}

/// Boxed: choosing among rows of 1.5 kB moves them.
type Rows = Vec<Box<FlowRow>>;

/// Order of the rows: trouble, bytes, then what tells rows apart, so that the choice does not depend on when rows come.
type Rank = (Reverse<u64>, Reverse<u64>, FlowId, TapId, u32, Time);

fn rank(row: &FlowRow) -> Rank {
    (
        Reverse(trouble(row)),
        Reverse(row.wire_bytes),
        row.flow_id,
        row.tap,
        row.epoch,
        row.first_time,
    )
}

/// Number of packets of a flow that point to congestion or loss.
fn trouble(row: &FlowRow) -> u64 {
    [
        row.ce,
        row.cnp.unwrap_or(0),
        row.retransmitted_packets,
        row.missing,
        row.lost_downstream.unwrap_or(0),
        row.response_missing,
        row.naks,
        row.rnr_naks,
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

impl KeptFlows {
    /// Keeps `max` rows.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            rows: Vec::new(),
            seen: 0,
            bar: None,
        }
    }

    /// Takes rows. A row that cannot be among those that stay costs a comparison.
    pub(crate) fn extend(&mut self, rows: &[FlowRow]) {
        self.seen += rows.len() as u64;
        for row in rows {
            if self.bar.as_ref().is_some_and(|bar| rank(row) >= *bar) {
                continue;
            }
            self.rows.push(Box::new(row.clone()));
            if self.rows.len() > self.max.saturating_add(self.max / 4) {
                self.choose();
            }
        }
    }

    fn choose(&mut self) {
        if self.rows.len() > self.max {
            let (_, first_out, _) = self.rows.select_nth_unstable_by_key(self.max, |row| rank(row));
            self.bar = Some(rank(first_out));
            self.rows.truncate(self.max);
        }
    }

    /// Number of rows that came.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Takes out the rows that stay, ordered by flow, tap, epoch and time.
    pub(crate) fn take(&mut self) -> Rows {
        self.choose();
        self.rows
            .sort_by_key(|row| (row.flow_id, row.tap, row.epoch, row.first_time));
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(flow: u64, ce: u64, wire_bytes: u64) -> FlowRow {
        FlowRow {
            flow_id: FlowId(flow),
            ce,
            wire_bytes,
            ..FlowRow::default()
        }
    }

    fn kept(max: usize, rows: impl IntoIterator<Item = FlowRow>) -> (Vec<u64>, u64) {
        let mut kept = KeptFlows::new(max);
        rows.into_iter().for_each(|row| kept.extend(&[row]));
        assert!(kept.rows.len() <= max + max / 4);
        let flows = kept.take().iter().map(|row| row.flow_id.0).collect();
        (flows, kept.seen())
    }

    #[test]
    fn trouble_comes_before_bytes() {
        let rows = || [row(9, 0, 1_000), row(8, 1, 1), row(7, 2, 1), row(6, 0, 2_000)];
        assert_eq!(kept(3, rows()), (vec![6, 7, 8], 4));
        assert_eq!(kept(1, rows()), (vec![7], 4));
        assert_eq!(kept(0, rows()), (vec![], 4));
        assert_eq!(kept(4, rows()), (vec![6, 7, 8, 9], 4));
    }

    #[test]
    fn the_choice_does_not_depend_on_the_order_in_which_rows_come() {
        // 1,000 rows with 0 to 9 marks: those with 9 are 100, of which the first by flow stay.
        let rows = |step: u64| {
            (0..1_000)
                .map(move |at| at * step % 1_000)
                .map(|flow| row(flow, flow % 10, 7))
        };
        let expected: Vec<u64> = (0..40).map(|nth| nth * 10 + 9).collect();
        for step in [1, 7, 999] {
            assert_eq!(kept(40, rows(step)), (expected.clone(), 1_000));
        }
    }
}
