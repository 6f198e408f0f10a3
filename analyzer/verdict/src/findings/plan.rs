//! Findings about traffic that is not what its owners expect: data in another class, other path MTUs. Without an expectation: data that
//! has no class at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::{Address, Confidence, Evidence, Expectation, FindingRow, FlowId, FlowRow, Severity, Time};

use super::super::directory::name_of;
use super::super::numbers::{counted, note_first, percent, share, some};
use super::path::MTU;
use super::rule::{Context, FindingOf as _, Needs, Rule};
use super::worst::Worst;

pub(super) const PLAN: Rule = Rule {
    id: "dscp.plan",
    title: "data travels in another class than planned",
    meaning: "Switches and adapters choose the lossless queue, its ECN marking and its pauses by DSCP or VLAN priority. Data in another class \
              misses them: it travels as best effort, beside all other traffic, and its losses are the network's right.",
    method: "Data packets of flows whose most frequent DSCP is not the expected one, or whose priority is not: that of the VLAN tag, else \
             --dscp-map of the DSCP. Expected is what --expect states, else [cluster] of --inventory. ACKs and CNPs are left out.",
    source: "RFC 2474 (DSCP), IEEE 802.1Q (priority). The traffic class of a queue pair is DSCP x 4 + ECN: NCCL_IB_TC=106 is DSCP 26 with ECT(0).",
    thresholds: &["least_data_packets"],
    severity: Severity::Warning,
    otherwise: "info when it is both less than least_data_packets packets and less than half of the data",
    confidence: "high: the packets carry the class",
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const NONE: Rule = Rule {
    id: "dscp.none",
    title: "no RoCE data has a class",
    meaning: "All data has DSCP 0 and no VLAN priority. Switches treat it as best effort unless they class it otherwise: no lossless queue, \
              often no ECN marking. That is the default of applications whose traffic class nobody set.",
    method: "At least least_data_packets data packets over IP, all of flows with DSCP 0 whose VLAN tags, if any, have priority 0. Silent \
             where an expectation states the class.",
    source: "RFC 2474, 4.1: DSCP 0 is the default forwarding behavior.",
    thresholds: &["least_data_packets"],
    severity: Severity::Info,
    confidence: "high: the packets carry the class; what the switches make of it is not seen",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// Senders and flows of one class that are kept.
const MAX_KEPT: usize = 1 << 14;

/// Data of one class.
#[derive(Debug, Default)]
struct ClassData {
    packets: u64,
    flows: BTreeSet<FlowId>,
    senders: BTreeMap<Address, u64>,
    first: Option<Time>,
}

/// Flows of one path MTU.
#[derive(Debug, Default)]
struct MtuFlows {
    flows: Worst,
    first: Option<Time>,
}

/// Data by class, and flows by path MTU. Classes are at most 64 x 9.
#[derive(Debug, Default)]
pub(super) struct PlanTally {
    classes: HashMap<(u8, Option<u8>), ClassData, foldhash::fast::RandomState>,
    mtus: BTreeMap<u32, MtuFlows>,
}

impl PlanTally {
    pub(super) fn flow(&mut self, row: &FlowRow) {
        if let Some(mtu) = row.path_mtu {
            let of_mtu = self.mtus.entry(mtu).or_default();
            of_mtu.flows.add(row.payload_bytes, || name_of(row));
            note_first(&mut of_mtu.first, row.first_time);
        }
        let Some(dscp) = row.dscp.filter(|_| row.data_packets > 0) else {
            return;
        };
        let class = self.classes.entry((dscp, row.pcp)).or_default();
        class.packets = class.packets.saturating_add(row.data_packets);
        note_first(&mut class.first, row.first_time);
        if class.flows.len() < MAX_KEPT {
            class.flows.insert(row.flow_id);
        }
        if class.senders.len() < MAX_KEPT || class.senders.contains_key(&row.source) {
            let of_sender = class.senders.entry(row.source).or_default();
            *of_sender = of_sender.saturating_add(row.data_packets);
        }
    }

    /// Data packets of all classes.
    fn packets(&self) -> u64 {
        let packets = self.classes.values().map(|class| class.packets);
        packets.fold(0, u64::saturating_add)
    }

    /// Data in another class than expected.
    pub(super) fn class(&self, context: &Context<'_>) -> Option<FindingRow> {
        let wanted = context.expectation;
        let all = self.packets();
        let mut other: Vec<(&(u8, Option<u8>), &ClassData)> = self
            .classes
            .iter()
            .filter(|((dscp, pcp), _)| {
                let priority = priority_of(context, *dscp, *pcp);
                differs(wanted.dscp, *dscp) || differs(wanted.priority, priority)
            })
            .collect();
        other.sort_by_key(|(class, data)| (core::cmp::Reverse(data.packets), **class));
        let ((dscp, pcp), most) = *other.first()?;
        let packets = other
            .iter()
            .map(|(_, data)| data.packets)
            .fold(0, u64::saturating_add);
        let part = share(packets, all)?;
        let mut senders = Worst::default();
        let mut by_sender: BTreeMap<Address, u64> = BTreeMap::new();
        for (_, data) in &other {
            for (sender, packets) in &data.senders {
                let of_sender = by_sender.entry(*sender).or_default();
                *of_sender = of_sender.saturating_add(*packets);
            }
        }
        for (sender, packets) in &by_sender {
            senders.add(*packets, || sender.to_string());
        }
        let classes: Vec<String> = other
            .iter()
            .map(|((dscp, pcp), data)| {
                format!(
                    "{} {}",
                    counted(data.packets, "packet"),
                    class_name(context, *dscp, *pcp)
                )
            })
            .collect();
        let flows: u64 = other.iter().map(|(_, data)| data.flows.len() as u64).sum();
        let mut evidence = Evidence::default();
        evidence
            .count("data_packets", packets)
            .number("share", part)
            .count("flows", flows)
            .count("dscp", (*dscp).into())
            .text("expected", wanted.to_string())
            .text("senders", senders.list());
        if other.len() > 1 {
            evidence.text("classes", some(&classes, 5, classes.len()));
        }
        let is_much = packets >= context.thresholds.least_data_packets || part >= 0.5;
        let of_most = share(most.packets, all).unwrap_or_default();
        let who = if by_sender.len() == 1 {
            format!(", from {}", senders.names())
        } else {
            format!(", from {} senders", by_sender.len())
        };
        let more = match packets - most.packets {
            0 => String::new(),
            more => format!("; {} in further classes", counted(more, "packet")),
        };
        Some(PLAN.finding(
            (
                if is_much { Severity::Warning } else { Severity::Info },
                Confidence::High,
            ),
            format!(
                "{} of RoCE data ({}{who}) has {}, the plan is {}{more}",
                percent(of_most),
                counted(most.packets, "packet"),
                class_name(context, *dscp, *pcp),
                plan_name(wanted)
            ),
            evidence,
            "Set the traffic class where the queue pairs are made (NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS, default_roce_tos of rdma_cm, --tclass \
             of perftest), and let the adapters map that DSCP to the lossless priority.",
            most.first,
        ))
    }

    /// Data without a class, where nothing says which one it should have.
    pub(super) fn no_class(&self, context: &Context<'_>) -> Option<FindingRow> {
        let wanted = context.expectation;
        let packets = self.packets();
        let is_classed = |(dscp, pcp): &(u8, Option<u8>)| *dscp > 0 || pcp.is_some_and(|pcp| pcp > 0);
        if wanted.dscp.is_some()
            || wanted.priority.is_some()
            || packets < context.thresholds.least_data_packets.max(1)
            || self.classes.keys().any(is_classed)
        {
            return None;
        }
        let flows: u64 = self.classes.values().map(|data| data.flows.len() as u64).sum();
        let mut evidence = Evidence::default();
        evidence.count("data_packets", packets).count("flows", flows);
        let priority = priority_of(context, 0, None);
        Some(NONE.finding(
            (Severity::Info, Confidence::High),
            format!(
                "all RoCE data ({} of {}) has DSCP 0 = priority {priority}: best effort, unless the switches class it otherwise",
                counted(packets, "packet"),
                counted(flows, "flow")
            ),
            evidence,
            "If the network has a lossless class for RoCE, set its traffic class where the queue pairs are made (NCCL_IB_TC=106 is DSCP 26), \
             and state the plan with --expect dscp=26.",
            self.classes.values().filter_map(|data| data.first).min(),
        ))
    }

    /// Flows of another path MTU than expected.
    pub(super) fn mtu(&self, context: &Context<'_>) -> Option<FindingRow> {
        let wanted = context.expectation.mtu?;
        let mut other: Vec<(&u32, &MtuFlows)> = self.mtus.iter().filter(|(mtu, _)| **mtu != wanted).collect();
        other.sort_by_key(|(mtu, of_mtu)| (core::cmp::Reverse(of_mtu.flows.sum()), **mtu));
        let (mtu, most) = *other.first()?;
        let flows: u64 = other.iter().map(|(_, of_mtu)| of_mtu.flows.all()).sum();
        let bytes = other
            .iter()
            .map(|(_, of_mtu)| of_mtu.flows.sum())
            .fold(0, u64::saturating_add);
        let mut evidence = Evidence::default();
        evidence
            .count("flows", flows)
            .count("payload_bytes", bytes)
            .count("path_mtu", (*mtu).into())
            .count("expected", wanted.into())
            .text("worst", most.flows.list());
        let more = match flows - most.flows.all() {
            0 => String::new(),
            more => format!("; {} with other path MTUs", counted(more, "flow")),
        };
        Some(MTU.finding(
            (Severity::Warning, Confidence::High),
            format!(
                "{} with path MTU {mtu}, the plan is {wanted}: {}{more}",
                counted(most.flows.all(), "flow"),
                most.flows.names()
            ),
            evidence,
            "Compare active_mtu of the ports and the MTU of the interfaces at both ends (ibv_devinfo, ip link): the smaller end decides.",
            most.first,
        ))
    }
}

/// True if a value is expected and this is another one.
fn differs(wanted: Option<u8>, value: u8) -> bool {
    wanted.is_some_and(|wanted| wanted != value)
}

/// The priority of packets with this DSCP and VLAN priority.
pub(super) fn priority_of(context: &Context<'_>, dscp: u8, pcp: Option<u8>) -> u8 {
    let of_ip = context.priority_of_dscp.get(usize::from(dscp));
    pcp.unwrap_or_else(|| of_ip.copied().unwrap_or_default())
}

fn class_name(context: &Context<'_>, dscp: u8, pcp: Option<u8>) -> String {
    let priority = priority_of(context, dscp, pcp);
    match pcp {
        Some(_) => format!("DSCP {dscp} and VLAN priority {priority}"),
        None => format!("DSCP {dscp} = priority {priority}"),
    }
}

/// The expected class of data, with the traffic class that gives it.
fn plan_name(wanted: &Expectation) -> String {
    match (wanted.dscp, wanted.priority) {
        (Some(dscp), priority) => {
            let priority = priority.map_or_else(String::new, |priority| format!(", priority {priority}"));
            // ECT(0) is 2.
            format!("{dscp}{priority}: NCCL_IB_TC={}", u16::from(dscp) * 4 + 2)
        }
        (None, priority) => format!("priority {}", priority.unwrap_or_default()),
    }
}
