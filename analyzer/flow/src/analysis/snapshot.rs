//! How the flows that are live stand, for whoever looks at a run that goes on. Nothing is changed by looking.

use std::cmp::Reverse;
use std::collections::HashMap;

use roce_model::FlowRow;

use crate::analysis::{Analysis, LiveFlows};
use crate::key::FlowSlot;
use crate::taps::matching::traffic;

impl Analysis {
    /// Puts the rows of the flows that are live into the next output, as they stand at the end of their last complete bin;
    /// when there are more than `most`, that alone.
    pub fn take_snapshot(&mut self, most: usize) {
        let live: Vec<FlowSlot> = self.table.live().take(most.saturating_add(1)).collect();
        self.output.snapshot = Some(if live.len() <= most {
            LiveFlows::Rows(self.snapshot_rows(&live))
        } else {
            LiveFlows::TooMany
        });
    }

    fn snapshot_rows(&self, live: &[FlowSlot]) -> Vec<FlowRow> {
        // Of traffic that several taps saw, the one that saw most counts, as at the end.
        let mut most = HashMap::<_, _, foldhash::fast::RandomState>::default();
        let mut rows = Vec::with_capacity(live.len());
        for at in live {
            let hot = &self.table.hot[*at];
            let cold = &self.table.cold[*at];
            if cold.totals.packets == 0 {
                continue;
            }
            let mut row = cold.flow_row(hot, false, self.what_other_says(*at), self.by_taps(*at));
            self.name_process(&cold.key, &mut row);
            let matched = hot.matched.then(|| traffic(&cold.key));
            if let Some(matched) = matched {
                let seen = (row.packets, row.ce, Reverse(row.tap));
                let of_all = most.entry(matched).or_insert(seen);
                *of_all = seen.max(*of_all);
            }
            rows.push((matched, row));
        }
        let counted = |(matched, row): (Option<u64>, FlowRow)| {
            let named = matched.and_then(|matched| most.get(&matched));
            FlowRow {
                counted: named.is_none_or(|(.., tap)| tap.0 == row.tap),
                ..row
            }
        };
        rows.into_iter().map(counted).collect()
    }
}
