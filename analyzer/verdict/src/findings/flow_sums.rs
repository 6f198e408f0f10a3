//! Counts by flow: a flow is one, however many epochs it has.

use std::collections::HashMap;

use roce_model::{FlowId, FlowRow, TapId};

use super::rule::Context;
use super::worst::Worst;

/// Flows that are kept apart; those that find no room count once for each epoch, without a name.
const MAX_FLOWS: usize = 1 << 16;

/// Counts by flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowSums {
    flows: HashMap<(TapId, FlowId), u64, foldhash::fast::RandomState>,
    others: (u64, u64),
}

impl FlowSums {
    /// Adds a count of an epoch of a flow.
    pub(super) fn add(&mut self, count: u64, row: &FlowRow) {
        let flow = (row.tap, row.flow_id);
        if self.flows.len() < MAX_FLOWS || self.flows.contains_key(&flow) {
            let sum = self.flows.entry(flow).or_default();
            *sum = sum.saturating_add(count);
        } else {
            self.others = (self.others.0 + 1, self.others.1.saturating_add(count));
        }
    }

    /// The flows with the highest counts, and the sum of all.
    pub(super) fn worst(&self, context: &Context<'_>) -> Worst {
        let mut worst = Worst::default();
        for ((tap, flow), count) in &self.flows {
            worst.add(*count, || context.directory.name(*tap, *flow));
        }
        worst.add_unnamed(self.others.0, self.others.1);
        worst
    }
}
