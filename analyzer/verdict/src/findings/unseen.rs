//! The finding about packets that a sender sent and the tap never saw, though no PSN is missing.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{
    Confidence, EventKind, EventRow, Evidence, FindingRow, FlowId, FlowRow, Severity, TapId, Time, Vantage,
};

use super::super::numbers::counted;
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

pub(super) const UNSEEN: Rule = Rule {
    id: "loss.unseen",
    title: "packets of a sender never came by",
    meaning: "A link that is dead for a while takes packets and all their retransmissions. When the sender goes on, no PSN is missing, and \
              behind the dead link nothing but a silence shows. The IPv4 identification shows how many packets the sender sent meanwhile.",
    method: "Flows whose sender counts the identification by one for each packet of the flow: it went on by the packets captured in \
             all bursts with 1,000 packets or more, but for one packet in 16. In a silence of 1 ms or more, behind which the next PSN \
             came, it went on by more. A flow with more than three such silences shares the counter with others that do not pass the tap: \
             nothing is said. Nor is it at the sender's side, or where the capture missed records or packets of the flow.",
    source: "RFC 791 and RFC 6864 (the identification has 16 bits, so that it shows the packets up to multiples of 65,536).",
    thresholds: &[],
    severity: Severity::Info,
    confidence: "low: the sender may have sent these packets elsewhere",
    ..Rule::TALLIED
};

/// Flows that are kept, at most.
const MAX_FLOWS: usize = 1 << 12;
/// A flow with more such silences sends to others meanwhile.
const MAX_SILENCES: u64 = 3;

/// Packets of one flow at one tap that never came by.
#[derive(Clone, Debug)]
struct UnseenPackets {
    silences: u64,
    packets: u64,
    first: Time,
    /// The packets of the silence with most of them, and its length.
    most: (u64, String),
}

/// Packets that never came by, of all flows.
#[derive(Clone, Debug, Default)]
pub(super) struct UnseenTally {
    flows: BTreeMap<(FlowId, TapId), UnseenPackets>,
    /// Those of which the tap is no judge.
    beside: BTreeSet<(FlowId, TapId)>,
}

impl UnseenTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        let (EventKind::Unseen, Some(flow), Some(packets)) = (event.kind, event.flow_id, event.value) else {
            return;
        };
        let key = (flow, event.tap);
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            return;
        }
        let known = self.flows.entry(key).or_insert(UnseenPackets {
            silences: 0,
            packets: 0,
            first: event.time,
            most: (0, String::new()),
        });
        known.silences += 1;
        known.packets = known.packets.saturating_add(packets);
        known.first = known.first.min(event.time);
        if packets > known.most.0 {
            known.most = (packets, event.detail.as_deref().unwrap_or_default().to_owned());
        }
    }

    /// A flow at any tap.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        let key = (row.flow_id, row.tap);
        let is_judged = row.vantage != Some(Vantage::Sender) && row.capture_lost == 0;
        if !is_judged && self.flows.contains_key(&key) {
            self.beside.insert(key);
        }
    }

    pub(super) fn unseen(&self, context: &Context<'_>) -> Option<FindingRow> {
        let mut worst = Worst::default();
        let mut first: Option<(u64, Time, &str, String)> = None;
        let (mut silences, mut last_flow) = (0u64, None);
        for (key, unseen) in &self.flows {
            let (flow, tap) = *key;
            let is_whole = context.run.tap(tap).is_none_or(|row| row.records_lost() == 0);
            let is_rare = unseen.silences <= MAX_SILENCES;
            // Several taps may show one flow.
            if self.beside.contains(key) || !is_whole || !is_rare || last_flow == Some(flow) {
                continue;
            }
            last_flow = Some(flow);
            silences += unseen.silences;
            worst.add(unseen.packets, || context.directory.name(tap, flow));
            if first.as_ref().is_none_or(|(most, ..)| *most < unseen.most.0) {
                let sender = context
                    .directory
                    .party(tap, flow)
                    .map(|party| party.source.to_string());
                let sender = sender.unwrap_or_else(|| "a sender".to_owned());
                first = Some((unseen.most.0, unseen.first, &unseen.most.1, sender));
            }
        }
        let (most, time, length, sender) = first?;
        let mut evidence = Evidence::default();
        evidence
            .count("unseen", worst.sum())
            .count("flows", worst.all())
            .count("silences", silences)
            .text("longest_silence", length.to_owned())
            .text("worst", worst.list());
        Some(UNSEEN.finding(
            (Severity::Info, Confidence::Low),
            format!(
                "{} of {sender} never came by in its silence of {length}: lost before this tap with all retransmissions, or sent elsewhere: {}",
                counted(most, "packet"),
                worst.names()
            ),
            evidence,
            "Capture at the sender, too: it shows whether these packets were for this receiver. Look for a link that was down meanwhile.",
            Some(time),
        ))
    }
}
