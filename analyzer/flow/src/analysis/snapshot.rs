//! Snapshots of the live flows, for a running analysis. They change nothing.

use std::cmp::Reverse;
use std::collections::HashMap;

use roce_model::FlowRow;

use crate::analysis::{Analysis, LiveFlows};
use crate::key::FlowSlot;
use crate::taps::matching::traffic;

impl Analysis {
    /// Puts the current rows of the live flows, as of the end of their last complete bin, into the next
    /// output. When there are more than `most`, it says only that.
    pub fn take_snapshot(&mut self, most: usize) {
        let live: Vec<FlowSlot> = self.table.live().take(most.saturating_add(1)).collect();
        if let Some(measures) = &self.measures {
            let mut measures = measures.clone();
            for at in self.table.live() {
                if let Some(division) = &self.table.cold[at].division {
                    measures.add_times(self.table.hot[at].tap, division.decided());
                }
            }
            self.output.measures = measures.by_tap();
        }
        self.output.snapshot = Some(if live.len() <= most {
            LiveFlows::Rows(self.snapshot_rows(&live))
        } else {
            LiveFlows::TooMany
        });
    }

    fn snapshot_rows(&self, live: &[FlowSlot]) -> Vec<FlowRow> {
        // The tap that saw most of the traffic counts, as at the end.
        let mut most = HashMap::<_, _, foldhash::fast::RandomState>::default();
        let mut rows = Vec::with_capacity(live.len());
        for at in live {
            let hot = &self.table.hot[*at];
            let cold = &self.table.cold[*at];
            if cold.totals.packets == 0 {
                continue;
            }
            let mut row = cold.flow_row(hot, false, self.outside_evidence(*at, self.other_of_open(*at)));
            self.name_process(&cold.key, &mut row);
            self.name_service(&mut row, cold.key.service);
            if let Some(times) = self.divide_so_far(*at) {
                row.set_time_by_state(&times);
            }
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
