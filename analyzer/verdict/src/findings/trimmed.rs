//! The finding about packets that switches trimmed because their queues were full.

use std::collections::{BTreeMap, HashMap};

use roce_model::{
    Confidence, EventKind, EventRow, Evidence, FindingRow, FlowId, FlowRow, Severity, Span, Time,
};

use super::super::directory::{lost_behind, name_of};
use super::super::numbers::{NEARLY_ALL, bytes, counted, note_first, reaches};
use super::rule::{FindingOf as _, Needs, Rule};
use super::worst::Worst;

pub(super) const TRIMMED: Rule = Rule {
    id: "loss.trimmed",
    title: "switches trimmed packets",
    meaning: "A switch on the way had no room in a queue, and let the headers of packets pass without their data. Each is a loss that its \
              receiver knows of at once; RoCE repeats it, and with go-back-N what followed it. Which switch it was the frames do not say: it \
              need not be the neighbour of the tap. Trimmed packets are dropped as well, so that none here does not mean that none was dropped.",
    method: "Frames that are shorter on the wire than their UDP length says, where the flow has whole packets that are longer, and none of \
             these with data has the DSCP of the short one. Frames that the snaplen, a mirror or a writer cut have the DSCP of the others. \
             Of each flow the tap counts that saw most of them. The price is the part of the bytes that were sent again, and of the time of \
             timeouts and retransmissions, that these packets are of the losses of their flows.",
    source: "SONiC packet trimming, design document 2.1 to 2.4 and test plan 5.4; Cumulus Linux 5.14, packet trimming.",
    thresholds: &[],
    severity: Severity::Warning,
    confidence: "high when nearly all of these flows sent packets again; medium otherwise",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// Flows with trimmed packets that are kept at most; packets of others count all the same.
const MAX_FLOWS: usize = 1 << 14;

/// Trimmed packets of one flow, as the tap saw it that saw most of them.
#[derive(Clone, Debug, Default)]
struct TrimmedFlow {
    name: String,
    packets: u64,
    lost: u64,
    waited_ns: u64,
    repeated_bytes: u64,
    is_repeated: bool,
}

impl TrimmedFlow {
    /// The part of a sum over the flow's losses that its trimmed packets have.
    fn part_of(&self, sum: u64) -> u64 {
        let part =
            u128::from(sum) * u128::from(self.packets) / u128::from(self.lost.max(self.packets).max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct TrimmedTally {
    flows: HashMap<FlowId, TrimmedFlow, foldhash::fast::RandomState>,
    /// Packets of flows that found no room.
    others: u64,
    dscps: BTreeMap<u64, u64>,
    first: Option<Time>,
    last: Option<Time>,
}

impl TrimmedTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        if event.kind == EventKind::Trimmed {
            *self
                .dscps
                .entry(event.value.unwrap_or_default() & 63)
                .or_default() += 1;
            note_first(&mut self.first, event.time);
            self.last = self.last.max(Some(event.time));
        }
    }

    /// A flow at any tap: a tap behind the switch sees its trimmed packets, and one before it more of the others.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        let is_known = self.flows.contains_key(&row.flow_id);
        if row.trimmed == 0 && !is_known {
            return;
        }
        if !is_known && self.flows.len() >= MAX_FLOWS {
            self.others = self.others.saturating_add(row.trimmed);
            return;
        }
        let flow = self.flows.entry(row.flow_id).or_default();
        if row.trimmed > flow.packets {
            flow.name = name_of(row);
        }
        let most = |known: &mut u64, value: u64| *known = value.max(*known);
        most(&mut flow.packets, row.trimmed);
        most(&mut flow.lost, row.network_lost.saturating_add(lost_behind(row)));
        let waited = [row.time_timeout_ns, row.time_recovering_ns];
        let waited = waited.into_iter().flatten().fold(0, u64::saturating_add);
        most(&mut flow.waited_ns, waited);
        most(&mut flow.repeated_bytes, row.retransmitted_bytes);
        flow.is_repeated |= row.retransmitted_packets > 0;
    }

    pub(super) fn trimmed(&self) -> Option<FindingRow> {
        let mut worst = Worst::default();
        let mut ids: Vec<&FlowId> = self.flows.keys().collect();
        ids.sort_unstable();
        let flows = || ids.iter().map(|id| &self.flows[*id]);
        for flow in flows() {
            worst.add(flow.packets, || flow.name.clone());
        }
        let packets = worst.sum().saturating_add(self.others);
        if packets == 0 {
            return None;
        }
        let sum = |of: fn(&TrimmedFlow) -> u64| flows().map(of).fold(0, u64::saturating_add);
        let waited = sum(|flow| flow.part_of(flow.waited_ns));
        let repeated = sum(|flow| flow.part_of(flow.repeated_bytes));
        let repeating = flows().filter(|flow| flow.is_repeated).count() as u64;
        let confidence = if reaches(repeating, worst.all(), NEARLY_ALL) {
            Confidence::High
        } else {
            Confidence::Medium
        };
        let dscps: Vec<String> = self
            .dscps
            .iter()
            .map(|(dscp, packets)| format!("{dscp}: {packets}"))
            .collect();
        let mut evidence = Evidence::default();
        evidence
            .count("trimmed", packets)
            .count("flows", worst.all())
            .text("trim_dscps", dscps.join(", "))
            .count("repeated_bytes", repeated)
            .count("waited_ns", waited)
            .text("worst", worst.list());
        let mut finding = TRIMMED.finding(
            (Severity::Warning, confidence),
            format!(
                "a queue before the tap had no room: {} of {} came without their data; {} sent again, and {} of waiting: {}",
                counted(packets, "packet"),
                counted(worst.all(), "flow"),
                bytes(repeated),
                Span(waited),
                worst.names()
            ),
            evidence,
            "Read the counters of trimmed packets at the switches on the way: they name the queue (SONiC: show queue counters --all; Cumulus: nv \
             show interface <port> counters packet-trim).",
            self.first,
        );
        finding.waited_ns = Some(waited);
        finding.last_time = self.last;
        Some(finding)
    }
}
