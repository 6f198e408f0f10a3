//! The finding about data that is repeated although nothing was lost.

use std::collections::HashMap;

use roce_model::{Confidence, Evidence, FindingRow, FlowRow, Severity, TapId, Time};

use super::super::directory::{lost_behind, name_of};
use super::super::numbers::{NEARLY_ALL, bytes, counted, note_first, percent, reaches, share};
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

pub(super) const WASTE: Rule = Rule {
    id: "retransmit.waste",
    title: "senders repeat much of what they send",
    meaning: "Much of what the links carry is sent once more, although nothing was lost: a receiver that goes back N drops all that comes \
              behind a packet that was only overtaken.",
    method: "Flows of whose data packets a tenth or more are retransmissions, 16 or more; 64 or more in all where nothing shows the reason. Overtaking is the reason where a tap saw \
             far more packets come late than were or may have been lost, or receivers acknowledged them before their repetition could have come, or where a \
             second tap saw all that the first one saw, half as many came late as receivers asked for, and nothing was lost in between. \
             What losses cost is said with the losses (loss.network).",
    source: "IBTA 9.7.5.1.1 (a responder drops what is out of order) and 9.7.5.2.8; selective repeat: Mittal et al., SIGCOMM 2018.",
    thresholds: &[],
    severity: Severity::Info,
    otherwise: "warning when overtaking is the reason",
    confidence: "high where two taps saw all packets pass; medium where one saw packets come late; low where nothing shows the reason",
    ..Rule::TALLIED
};

/// One of so many data packets is much.
const MUCH: f64 = 0.1;
/// Retransmissions of a flow that are enough for a share. It is no sum: what is said of one flow does not depend on how many others there are.
const MIN_PACKETS: u64 = 16;
/// Retransmissions of all flows that are said without a reason.
const MIN_WITHOUT_REASON: u64 = 64;
/// Overtaking is the reason where so many times as many packets came late as were lost.
const FAR_MORE: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct WasteTally {
    flows: Worst,
    data: u64,
    packets: u64,
    bytes: u64,
    naks: u64,
    lost: u64,
    /// Missing packets that may have been lost.
    unclear: u64,
    /// Packets that receivers asked for again, and that came before their repetition could have.
    overtaken: u64,
    first: Option<Time>,
    /// Late packets, by tap.
    late: HashMap<TapId, u64, foldhash::fast::RandomState>,
}

impl WasteTally {
    /// A flow at any tap.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        if !is_much(row) {
            return;
        }
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        if self.late.len() < MAX_TAPS || self.late.contains_key(&row.tap) {
            add(self.late.entry(row.tap).or_default(), row.late);
        }
        if !row.counted {
            return;
        }
        self.flows.add(row.retransmitted_packets, || name_of(row));
        add(&mut self.data, row.data_packets);
        add(&mut self.packets, row.retransmitted_packets);
        add(&mut self.bytes, row.retransmitted_bytes);
        add(&mut self.naks, row.runs_nak);
        add(&mut self.lost, row.network_lost.saturating_add(lost_behind(row)));
        let unclear = row.ambiguous.saturating_add(row.unresolved);
        add(&mut self.unclear, unclear.saturating_add(row.capture_lost));
        add(&mut self.overtaken, row.overtaken_downstream.unwrap_or_default());
        note_first(&mut self.first, row.first_time);
    }

    pub(super) fn waste(&self, context: &Context<'_>) -> Option<FindingRow> {
        if self.packets == 0 {
            return None;
        }
        let late = self.late.values().copied().max().unwrap_or_default();
        let late = late.max(self.overtaken);
        let hops = || context.run.hops.iter().filter(|hop| hop.matched > 0);
        let matched = hops().map(|hop| hop.matched).fold(0, u64::saturating_add);
        // The second tap has seen these flows whole, nothing was lost before the first one, and what came late did so about as often as
        // receivers asked for packets.
        let all_passed = self.lost == 0
            && reaches(matched, self.data.max(1), NEARLY_ALL)
            && hops().all(|hop| hop.lost == 0 && hop.unresolved == 0)
            && late.saturating_mul(2) >= self.naks;
        let may_be_lost = self.lost.saturating_add(self.unclear);
        let is_overtaken =
            self.naks > 0 && (all_passed || late >= may_be_lost.max(1).saturating_mul(FAR_MORE));
        if !is_overtaken && (self.lost > 0 || self.packets < MIN_WITHOUT_REASON) {
            return None;
        }
        let of_data = share(self.packets, self.data).unwrap_or_default();
        let (reason, verdict, next_step) = if is_overtaken {
            (
                format!(
                    "packets overtake each other ({late} came late), and receivers go back for each that was overtaken, {}",
                    counted(self.naks, "time")
                ),
                (
                    Severity::Warning,
                    if all_passed {
                        Confidence::High
                    } else {
                        Confidence::Medium
                    },
                ),
                "Turn adaptive routing or packet spraying off for {class} at the switches, or out-of-order receiving on at {receivers}.",
            )
        } else {
            (
                "whether packets or answers were lost is not shown".to_owned(),
                (Severity::Info, Confidence::Low),
                "Capture behind this tap, too: two taps show whether packets or answers are lost between them, or overtaken.",
            )
        };
        let mut evidence = Evidence::default();
        evidence
            .count("retransmitted_packets", self.packets)
            .count("retransmitted_bytes", self.bytes)
            .number("share", of_data)
            .count("runs_nak", self.naks)
            .count("late", late)
            .count("lost", self.lost)
            .text("worst", self.flows.list());
        Some(WASTE.finding(
            verdict,
            format!(
                "{} sent {} of their data packets again, {}: {reason}: {}",
                counted(self.flows.all(), "flow"),
                percent(of_data),
                bytes(self.bytes),
                self.flows.names()
            ),
            evidence,
            next_step,
            self.first,
        ))
    }
}

/// True if much of the flow's data is sent again.
pub(super) fn is_much(row: &FlowRow) -> bool {
    row.retransmitted_packets >= MIN_PACKETS
        && reaches(row.retransmitted_packets, row.data_packets.max(1), MUCH)
}

/// Taps that are kept at most.
const MAX_TAPS: usize = 1 << 12;
