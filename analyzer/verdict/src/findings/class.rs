//! Findings about traffic classes: CNPs that queue with the data they are to slow, and data that changes its class.

use std::cmp::Reverse;
use std::collections::HashMap;

use roce_model::{Address, Confidence, Evidence, FindingRow, FlowId, FlowRow, Severity, TapId, Time};

use super::super::directory::name_of;
use super::super::numbers::{counted, note_first};
use super::plan::priority_of;
use super::rule::{Context, FindingOf as _, Needs, Rule};
use super::worst::Worst;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

pub(super) const CNP_CLASS: Rule = Rule {
    id: "cnp.class",
    title: "CNPs have no class of their own",
    meaning: "Congestion notifications with the data's DSCP wait in the queues that they are to empty; with none (DSCP 0) \
              beside classed data they travel as best effort and are the first to be dropped.",
    method: "For each queue pair that CNPs slow: the DSCP of the first CNP, against the DSCP of the data between the same \
             hosts. CNPs whose 802.1Q priority differs from the data's are fine. Where their class is expected (--expect cnp-dscp, cnp-priority, \
             [cluster] cnp_dscp), CNPs of another class in place of that.",
    source: "CNP_DSCP = 48 and CNP_802P_PRIO = 6 in published dumps of mlxconfig; the DCQCN paper (SIGCOMM 2015) \
             sends CNPs with high priority.",
    thresholds: &[],
    severity: Severity::Info,
    otherwise: "warning when they carry DSCP 0 and the data another, or not the expected class",
    confidence: "high: the packets carry the class",
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const DSCP_MISMATCH: Rule = Rule {
    id: "dscp.mismatch",
    title: "data of one connection travels in different classes",
    meaning: "The two directions of a connection, or one flow over time, use different DSCPs or 802.1Q priorities: one of \
              them misses the lossless queue, its ECN marking or its pause.",
    method: "Paired flows with at least least_data_packets data packets each way whose most frequent DSCP or priority \
             differs, and flows of as many data packets with more than one DSCP. ACKs and CNPs are left out: adapters \
             can force theirs.",
    source: "RFC 2474 (DSCP), IEEE 802.1Q (priority); lossless queues are chosen by either of them.",
    thresholds: &["least_data_packets"],
    severity: Severity::Warning,
    confidence: "high: the packets carry the class",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// The class of data.
#[derive(Clone, Copy, Debug)]
struct Class {
    dscp: u8,
    priority: Option<u8>,
}

#[derive(Debug, Default)]
pub(super) struct ClassTally {
    changing: Worst,
    first: Option<Time>,
}

impl ClassTally {
    /// A flow; its class is known by `least` data packets.
    pub(super) fn flow(&mut self, row: &FlowRow, least: u64) {
        if row.dscp_values > 1 && row.data_packets >= least {
            self.changing.add(row.data_packets, || name_of(row));
            note_first(&mut self.first, row.first_time);
        }
    }

    pub(super) fn mismatch(&self, context: &Context<'_>) -> Option<FindingRow> {
        let directory = context.directory;
        let mut pairs = Vec::new();
        for (tap, flow, peer) in differing(context) {
            let (Some(party), Some(other)) = (directory.party(tap, flow), directory.party(tap, peer)) else {
                continue;
            };
            let class = |party: &super::super::directory::Party| {
                let dscp = party.dscp.map_or_else(String::new, |dscp| format!("DSCP {dscp}"));
                let pcp = party
                    .pcp
                    .map_or_else(String::new, |pcp| format!(" priority {pcp}"));
                format!("{dscp}{pcp}").trim_start().to_owned()
            };
            let name = format!("{} with {}, back with {}", party, class(party), class(other));
            pairs.push((party.data_packets.saturating_add(other.data_packets), name));
        }
        if pairs.is_empty() && self.changing.all() == 0 {
            return None;
        }
        pairs.sort();
        let mut worst = Worst::default();
        for (packets, name) in pairs {
            worst.add(packets, || name);
        }
        let mut evidence = Evidence::default();
        let mut parts = Vec::new();
        if worst.all() > 0 {
            evidence
                .count("connections", worst.all())
                .text("directions", worst.names());
            let connections = counted(worst.all(), "connection");
            parts.push(format!(
                "the directions of {connections} differ in class: {}",
                worst.name()
            ));
        }
        if self.changing.all() > 0 {
            evidence
                .count("flows", self.changing.all())
                .text("changing", self.changing.names());
            let flows = counted(self.changing.all(), "flow");
            parts.push(format!("{flows} changed the DSCP: {}", self.changing.names()));
        }
        Some(DSCP_MISMATCH.finding(
            (Severity::Warning, Confidence::High),
            parts.join("; "),
            evidence,
            "Compare the traffic class of the queue pairs at {senders} and {receivers}, and the DSCP maps of the switches between them.",
            self.first,
        ))
    }
}

/// Connections with data in both directions whose classes differ: the tap and its two flows.
pub(super) fn differing(context: &Context<'_>) -> Vec<(TapId, FlowId, FlowId)> {
    let least = context.least_class_packets;
    let directory = context.directory;
    let differs = |one: Option<u8>, two: Option<u8>| one.is_some() && two.is_some() && one != two;
    let all = directory.flows().filter_map(|(tap, flow, party)| {
        let peer = party.peer.filter(|peer| flow < *peer)?;
        let other = directory.party(tap, peer)?;
        let enough = party.data_packets >= least && other.data_packets >= least;
        let counts = party.counted || other.counted;
        let differ = differs(party.dscp, other.dscp) || differs(party.pcp, other.pcp);
        (enough && counts && differ).then_some((tap, flow, peer))
    });
    all.collect()
}

/// CNPs of another class than expected.
fn unexpected_cnps(context: &Context<'_>) -> Option<FindingRow> {
    let wanted = context.expectation;
    let (mut other, mut all) = (Worst::default(), 0u64);
    let mut first: Option<Time> = None;
    for cnp in &context.run.cnp_receivers {
        let Some(dscp) = cnp.dscp else { continue };
        all = all.saturating_add(cnp.cnp);
        let priority = priority_of(context, dscp, cnp.pcp);
        let is_other = wanted.cnp_dscp.is_some_and(|wanted| wanted != dscp)
            || wanted.cnp_priority.is_some_and(|wanted| wanted != priority);
        if is_other {
            let pair = format!("{} to {}", cnp.source, cnp.destination);
            other.add(cnp.cnp, || format!("DSCP {dscp} = priority {priority}, {pair}"));
            note_first(&mut first, cnp.first_time);
        }
    }
    if other.all() == 0 {
        return None;
    }
    let mut evidence = Evidence::default();
    evidence
        .count("cnp_in_other_class", other.sum())
        .count("cnp", all)
        .text("expected", wanted.to_string())
        .text("other_class", other.list());
    let plan = [("DSCP", wanted.cnp_dscp), ("priority", wanted.cnp_priority)];
    let plan: Vec<String> = plan
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name} {value}")))
        .collect();
    Some(CNP_CLASS.finding(
        (Severity::Warning, Confidence::High),
        format!(
            "{} of {} with {}; the plan is {}",
            other.sum(),
            counted(all, "CNP"),
            other.name(),
            plan.join(", ")
        ),
        evidence,
        "Set the class of CNPs at the adapters that send them (cnp_dscp and cnp_802p_prio).",
        first,
    ))
}

pub(super) fn cnp_class(context: &Context<'_>) -> Option<FindingRow> {
    if context.expectation.cnp_dscp.is_some() || context.expectation.cnp_priority.is_some() {
        return unexpected_cnps(context);
    }
    // The data's class by tap, sender and receiver, where CNPs went from receiver to sender.
    let mut classes: Map<(TapId, Address, Address), Option<Class>> = Map::default();
    for cnp in &context.run.cnp_receivers {
        classes.insert((cnp.tap, cnp.destination, cnp.source), None);
    }
    if classes.is_empty() {
        return None;
    }
    // The flow of the most data packets decides, and of equal ones the lowest DSCP.
    let mut most: Map<(TapId, Address, Address), (u64, Reverse<u8>)> = Map::default();
    for (tap, _, party) in context.directory.flows() {
        let key = (tap, party.source, party.destination);
        if let Some(class) = classes.get_mut(&key)
            && let Some(dscp) = party.dscp.filter(|_| party.data_packets > 0)
            && most
                .get(&key)
                .is_none_or(|most| (party.data_packets, Reverse(dscp)) > *most)
        {
            *class = Some(Class {
                dscp,
                priority: party.pcp,
            });
            most.insert(key, (party.data_packets, Reverse(dscp)));
        }
    }
    let (mut none, mut shared) = (Worst::default(), Worst::default());
    let mut first: Option<Time> = None;
    for cnp in &context.run.cnp_receivers {
        let class = classes
            .get(&(cnp.tap, cnp.destination, cnp.source))
            .copied()
            .flatten();
        let (Some(dscp), Some(Class { dscp: data, priority })) = (cnp.dscp, class) else {
            continue;
        };
        let own_priority = cnp.pcp.is_some() && priority.is_some() && cnp.pcp != priority;
        let kind = match dscp {
            _ if own_priority => continue,
            dscp if dscp == data => &mut shared,
            0 => &mut none,
            _ => continue,
        };
        kind.add(cnp.cnp, || {
            format!("{} to {} (data DSCP {data})", cnp.source, cnp.destination)
        });
        note_first(&mut first, cnp.first_time);
    }
    let mut evidence = Evidence::default();
    let mut parts = Vec::new();
    if none.all() > 0 {
        evidence
            .count("cnp_without_class", none.sum())
            .text("without_class", none.names());
        parts.push(format!(
            "{} with DSCP 0, {}",
            counted(none.sum(), "CNP"),
            none.name()
        ));
    }
    if shared.all() > 0 {
        evidence
            .count("cnp_with_data", shared.sum())
            .text("with_data", shared.names());
        parts.push(format!(
            "{} in the class of the data, {}",
            counted(shared.sum(), "CNP"),
            shared.name()
        ));
    }
    if parts.is_empty() {
        return None;
    }
    let severity = if none.all() > 0 {
        Severity::Warning
    } else {
        Severity::Info
    };
    Some(CNP_CLASS.finding(
        (severity, Confidence::High),
        parts.join("; "),
        evidence,
        "Give CNPs a DSCP and a strict-priority queue of their own (cnp_dscp and cnp_802p_prio at the receiver, 48 and 6 \
         by default).",
        first,
    ))
}
