//! Attribution of CNPs. An item: a CNP that a tap recorded, of the flow that it slows. Observable where the flow's
//! connection can be paired at that tap, or the flow is UD, whose CNPs say it. Told: a CNP charged to a flow. Compared by
//! tap and flow.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::score::Score;

pub(crate) fn compare(case: &Case) -> Score {
    let mut score = Score::default();
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
        for (flow, (sent, told)) in flows {
            let datagrams = case.flow(&flow).is_some_and(|flow| flow.service == "UD");
            let both = sent.min(told);
            score.items += sent;
            score.told += told;
            score.right += both;
            if datagrams || case.is_paired_at(tap, &flow) {
                score.observable += sent;
                score.found += both;
            }
            if sent != told {
                score
                    .notes
                    .push(format!("{}: {flow}: {sent} CNPs, told {told}", tap.name));
            }
        }
    }
    score
}
