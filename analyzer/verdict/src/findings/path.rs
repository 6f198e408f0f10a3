//! Findings about paths: too few source ports for ECMP to spread queue pairs, and packets smaller than they could be.

use std::collections::{HashMap, HashSet};

use roce_model::{Address, Confidence, Evidence, FindingRow, FlowId, FlowRow, Severity, Span, TapId, Time};

use super::super::directory::name_of;
use super::super::numbers::{counted, note_first, share};
use super::super::thresholds::Thresholds;
use super::rule::{Context, FindingOf as _, Needs, Rule};
use super::worst::Worst;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
type Set<K> = HashSet<K, foldhash::fast::RandomState>;

/// Pairs of hosts, hosts and flows that are kept at most.
const MAX_KEPT: usize = 1 << 16;
/// Flows of one pair that are kept.
const MAX_OF_PAIR: usize = 1024;

pub(super) const ENTROPY: Rule = Rule {
    id: "ecmp.entropy",
    title: "many queue pairs on few UDP source ports",
    meaning: "Switches choose among equal paths by a hash in which only the UDP source port tells queue pairs between two \
              hosts apart: with few ports their flows share few links, however many there are.",
    method: "By pair of hosts and direction: flows with payload that keep one source port each, against the distinct ports. \
             Fires with at least entropy_flows flows and at most entropy_share ports a flow.",
    source: "IBTA annex A17.9.4 (ECMP by the source port); rdma_get_udp_sport in Linux include/rdma/ib_verbs.h.",
    thresholds: &["entropy_flows", "entropy_share"],
    severity: Severity::Info,
    otherwise: "warning when flows of such a pair were marked, or lost packets",
    confidence: "medium: the ports are counted, but that switches hash by them, and that there are several paths, is not seen",
    needs: Needs::Ends,
    ..Rule::TALLIED
};

pub(super) const MTU: Rule = Rule {
    id: "mtu",
    title: "path MTU below what the hosts can take",
    meaning: "Packets are smaller than they could be: more headers, more packets and more PSNs for the same data.",
    method: "Flows of at least mtu_bytes payload whose path MTU is under 1024, which every Ethernet takes, or under the \
             largest that both of its hosts use with others at the same tap. Where a path MTU is expected (--expect mtu, [cluster] mtu): flows \
             whose path MTU is another.",
    source: "enum ib_mtu in Linux include/rdma/ib_verbs.h (256 to 4096); an Ethernet frame of 1500 bytes holds a RoCEv2 \
             packet of 1024.",
    thresholds: &["mtu_bytes"],
    severity: Severity::Info,
    otherwise: "warning when it is not the expected one",
    confidence: "medium: what both hosts use with others may be more than this way allows; high when it is not the expected one",
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const SPREAD: Rule = Rule {
    id: "path.spread",
    title: "packets came over several paths",
    meaning: "Packets of one flow overtook each other: adaptive routing or packet spraying sends them over paths of different \
              length. That is no loss. A receiver that does not take packets out of order answers it with NAKs.",
    method: "Flows with at least least_measurements packets that came late: behind the highest PSN, not seen before, and without \
             anything that made the sender send them again. The depth (reorder_depth_max) and the time (reorder_time_max_ns) \
             are the flow's own.",
    source: "Packet spraying and adaptive routing: IRN (SIGCOMM 2018, section 4), NVIDIA's adaptive routing, Ultra Ethernet 1.0.",
    thresholds: &["least_measurements"],
    severity: Severity::Info,
    confidence: "high where nothing was lost and the receivers asked for late packets, which proves that they saw them late, too; else medium: \
                 a mirror puts packets out of order as well, and a late packet and a retransmitted one look alike",
    ..Rule::TALLIED
};

/// The path MTU that fits into the smallest frame of Ethernet that is in use, 1500 bytes.
const ALWAYS_POSSIBLE: u32 = 1024;

impl SpreadFlows {
    fn flow(&mut self, row: &FlowRow, thresholds: &Thresholds) {
        if row.late < thresholds.least_measurements.max(1) {
            return;
        }
        self.flows.add(row.late, || name_of(row));
        self.depth = self.depth.max(row.reorder_depth_max);
        self.time = self.time.max(row.reorder_time_max_ns.map(Span));
        let behind = row.lost_downstream.unwrap_or_default();
        let responses = row.response_network_lost.unwrap_or_default();
        for lost in [row.network_lost, behind, responses] {
            self.lost = self.lost.saturating_add(lost);
        }
        self.retransmitted = self.retransmitted.saturating_add(row.retransmitted_packets);
        self.asked = self.asked.saturating_add(row.runs_nak);
        note_first(&mut self.first, row.first_time);
    }
}

#[derive(Debug, Default)]
struct Paths {
    flows: Set<FlowId>,
    ports: Set<u16>,
    suffered: bool,
}

/// A flow whose path MTU may be small.
#[derive(Debug)]
struct Small {
    tap: TapId,
    source: Address,
    destination: Address,
    mtu: u32,
    payload_bytes: u64,
    name: String,
}

/// Flows whose packets came out of order.
#[derive(Debug, Default)]
struct SpreadFlows {
    flows: Worst,
    depth: Option<u64>,
    time: Option<Span>,
    lost: u64,
    retransmitted: u64,
    /// Runs of retransmissions that a NAK began.
    asked: u64,
    first: Option<Time>,
}

#[derive(Debug, Default)]
pub(super) struct PathTally {
    spread: SpreadFlows,
    pairs: Map<(TapId, Address, Address), Paths>,
    flows: usize,
    /// The largest path MTU that a host uses.
    largest: Map<(TapId, Address), u32>,
    small: Vec<Small>,
}

impl PathTally {
    pub(super) fn flow(&mut self, row: &FlowRow, thresholds: &Thresholds) {
        self.port(row);
        self.spread.flow(row, thresholds);
        let Some(mtu) = row.path_mtu else { return };
        for host in [row.source, row.destination] {
            let key = (row.tap, host);
            if self.largest.len() < MAX_KEPT || self.largest.contains_key(&key) {
                let largest = self.largest.entry(key).or_default();
                *largest = (*largest).max(mtu);
            }
        }
        if mtu < 4096 && row.payload_bytes >= thresholds.mtu_bytes && self.small.len() < MAX_KEPT {
            self.small.push(Small {
                tap: row.tap,
                source: row.source,
                destination: row.destination,
                mtu,
                payload_bytes: row.payload_bytes,
                name: name_of(row),
            });
        }
    }

    fn port(&mut self, row: &FlowRow) {
        let Some(port) = row
            .source_port
            .filter(|_| row.payload_bytes > 0 && row.source_ports == 1)
        else {
            return;
        };
        let key = (row.tap, row.source, row.destination);
        if self.flows >= MAX_KEPT || (self.pairs.len() >= MAX_KEPT && !self.pairs.contains_key(&key)) {
            return;
        }
        let paths = self.pairs.entry(key).or_default();
        if paths.flows.len() < MAX_OF_PAIR && paths.flows.insert(row.flow_id) {
            self.flows += 1;
            paths.ports.insert(port);
            paths.suffered |=
                row.ce > 0 || row.network_lost > 0 || row.lost_downstream.is_some_and(|lost| lost > 0);
        }
    }

    pub(super) fn entropy(&self, context: &Context<'_>) -> Option<FindingRow> {
        let thresholds = context.thresholds;
        let mut poor: Vec<_> = self
            .pairs
            .iter()
            .map(|(key, paths)| {
                (
                    key,
                    paths.flows.len() as u64,
                    paths.ports.len() as u64,
                    paths.suffered,
                )
            })
            .filter(|(_, flows, ports, _)| {
                *flows >= thresholds.entropy_flows.max(2)
                    && share(*ports, *flows).is_some_and(|share| share <= thresholds.entropy_share)
            })
            .collect();
        poor.sort_unstable();
        let mut worst = Worst::default();
        let mut ports_of_worst = 0;
        let mut suffered = false;
        for ((_, source, destination), flows, ports, of_pair) in poor {
            if flows > worst.most() {
                ports_of_worst = ports;
            }
            worst.add(flows, || {
                format!(
                    "{source} to {destination}: {flows} flows on {}",
                    counted(ports, "port")
                )
            });
            suffered |= of_pair;
        }
        if worst.all() == 0 {
            return None;
        }
        let mut evidence = Evidence::default();
        evidence
            .count("pairs", worst.all())
            .count("flows", worst.most())
            .count("ports", ports_of_worst)
            .text("worst", worst.names());
        let severity = if suffered {
            Severity::Warning
        } else {
            Severity::Info
        };
        Some(ENTROPY.finding(
            (severity, Confidence::Medium),
            format!("ECMP cannot spread {}: {}", counted(worst.all(), "pair") + " of hosts", worst.name()),
            evidence,
            "Give queue pairs flow labels of their own (the flow_label of the address handle, or the adapter's own setting) \
             and compare the load of the parallel links.",
            None,
        ))
    }

    pub(super) fn spread(&self) -> Option<FindingRow> {
        let SpreadFlows {
            flows,
            depth,
            time,
            lost,
            retransmitted,
            asked,
            first,
        } = &self.spread;
        if flows.all() == 0 {
            return None;
        }
        let mut evidence = Evidence::default();
        evidence.count("flows", flows.all()).count("late", flows.sum());
        let mut by = Vec::new();
        if let Some(depth) = depth {
            evidence.count("reorder_depth_max", *depth);
            by.push(counted(*depth, "packet"));
        }
        if let Some(time) = time {
            evidence.count("reorder_time_max_ns", time.0);
            by.push(time.to_string());
        }
        evidence
            .count("lost", *lost)
            .count("retransmitted_packets", *retransmitted)
            .text("worst", flows.list());
        let by = if by.is_empty() {
            String::new()
        } else {
            format!(", by up to {}", by.join(" and "))
        };
        let loss = if *lost == 0 {
            "no loss".to_owned()
        } else {
            format!("{} lost besides", counted(*lost, "packet"))
        };
        let confidence = if *lost == 0 && *asked >= flows.sum().div_ceil(2) {
            Confidence::High
        } else {
            Confidence::Medium
        };
        Some(SPREAD.finding(
            (Severity::Info, confidence),
            format!(
                "{} came over several paths: {} out of order{by}, {loss}: {}",
                counted(flows.all(), "flow"),
                counted(flows.sum(), "packet"),
                flows.names()
            ),
            evidence,
            "Nothing to do if {receivers} take packets out of order; else look for NAKs, and keep each flow on one path.",
            *first,
        ))
    }

    pub(super) fn mtu(&self) -> Option<FindingRow> {
        let mut worst = Worst::default();
        let (mut least, mut possible) = (u32::MAX, 0);
        for small in &self.small {
            let of = |host| self.largest.get(&(small.tap, host)).copied().unwrap_or_default();
            let both = of(small.source).min(of(small.destination)).max(ALWAYS_POSSIBLE);
            if small.mtu < both {
                worst.add(small.payload_bytes, || {
                    format!("{} with {} instead of {both}", small.name, small.mtu)
                });
                least = least.min(small.mtu);
                possible = possible.max(both);
            }
        }
        if worst.all() == 0 {
            return None;
        }
        let mut evidence = Evidence::default();
        evidence
            .count("flows", worst.all())
            .count("payload_bytes", worst.sum())
            .count("path_mtu", least.into())
            .count("possible", possible.into())
            .text("worst", worst.names());
        Some(MTU.finding(
            (Severity::Info, Confidence::Medium),
            format!(
                "{} with a path MTU below what the hosts take: {}",
                counted(worst.all(), "flow"),
                worst.name()
            ),
            evidence,
            "Compare active_mtu of the ports and the MTU of the interfaces and switches between the two hosts.",
            None,
        ))
    }
}
