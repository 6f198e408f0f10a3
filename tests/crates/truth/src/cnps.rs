//! Attribution of CNPs. An item: a CNP that a tap recorded, of the flow that it slows. Observable where the flow's
//! connection can be paired at that tap, or the flow is UD, whose CNPs say it. LossReport: a CNP charged to a flow. Compared by
//! tap and flow.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::score::{Score, StatedConfidence};

pub(crate) fn compare(case: &Case, score: &mut Score) {
    for tap in &case.truth.taps {
        let mut flows: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for cnp in case
            .truth
            .cnps
            .iter()
            .filter(|cnp| cnp.recorded_by.contains(&tap.name))
        {
            flows.entry(cnp.flow_id.clone()).or_default().0 += 1;
        }
        for row in case.flows_at(tap) {
            if let Some(cnps) = row.cnp.filter(|cnps| *cnps > 0) {
                flows.entry(row.flow_id.to_string()).or_default().1 += cnps;
            }
        }
        for (flow, (sent, said)) in flows {
            let datagrams = case.flow(&flow).is_some_and(|flow| flow.service == "UD");
            let text = || format!("{}: {flow}: {sent} CNPs, said {said}", tap.name);
            if datagrams || case.is_paired_at(tap, &flow) {
                score.expect_many(sent, said, text);
            } else {
                score.items += sent;
            }
            score.tell_many(StatedConfidence::Plain, said, said.min(sent), text);
        }
    }
}
