//! The finding that the network is not what senders wait for.

use roce_model::cast::float;
use roce_model::ethernet::{FRAME_OVERHEAD, PORT_GIGABITS, bits_per_second};
use roce_model::{
    Confidence, Evidence, FindingRow, FlowRow, Severity, Span, Time, TimeByState, TimeState, Vantage,
};

use super::super::numbers::{counted, note_first, percent, reaches, share};
use super::rule::{Context, FindingOf as _, Rule};

pub(super) const NOT_NETWORK: Rule = Rule {
    id: "not.network",
    title: "senders are idle, and the network is not why",
    meaning: "Senders send their messages at the speed of their links, and nothing on the way holds them back. Most of the time they have \
              nothing to send: the programs, or what these wait for, take the rest.",
    method: "The time of all flows with requests (time_* of flows) is idle for half of it or more, known for nine tenths of it, and late, slowed, \
             paused or repeated for less than a hundredth. The flows with nine tenths of the data send at 0.9 of --link-rate while they send, or \
             within 10 % below and 5 % above a speed of Ethernet. No mark, CNP, loss, retransmission, RNR NAK or pause was captured, and no record was \
             lost.",
    source: "The definition of the states; speeds: IEEE 802.3.",
    thresholds: &[],
    severity: Severity::Ok,
    confidence: "high where all taps are at the senders; medium elsewhere: there an answer that is on its way to the sender looks like a silence",
    ..Rule::TALLIED
};

/// Parts of the speed of a port that a burst has: preambles and gaps between frames are not captured, and its last packet takes no time.
const PART_OF_SPEED: (f64, f64) = (0.9, 1.05);
/// Messages without which a rhythm is none.
const MIN_MESSAGES: u64 = 16;
/// The share of all time that is idle, of all time that is known, of all data that comes at the speed of a link.
const MIN_IDLE: f64 = 0.5;
const MAX_UNKNOWN: f64 = 0.1;
const MIN_FAST: f64 = 0.9;
/// The share of all time that the network may have taken.
const MAX_NETWORK: f64 = 0.01;

/// Sums over flows with requests.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleTally {
    times: TimeByState,
    flows: u64,
    messages: u64,
    bytes: u64,
    fast_bytes: u64,
    /// The greatest speed of bursts, in bit/s.
    speed: f64,
    has_trouble: bool,
    elsewhere: bool,
    first: Option<Time>,
}

impl IdleTally {
    /// A flow that counts. `link_rate` in bit/s, if it is given.
    pub(super) fn flow(&mut self, row: &FlowRow, link_rate: Option<u64>) {
        let signs = [
            row.ce,
            row.cnp.unwrap_or(0),
            row.missing,
            row.capture_lost,
            row.response_missing,
            row.lost_downstream.unwrap_or(0),
            row.retransmission_runs,
            row.retransmitted_packets,
            row.reads_unanswered,
            row.naks,
            row.rnr_naks,
            row.icrc_bad,
        ];
        self.has_trouble |= signs.iter().any(|count| *count > 0);
        let Some(times) = row.time_by_state() else {
            return;
        };
        self.times.add_all(&times);
        self.flows += 1;
        self.messages = self.messages.saturating_add(row.messages);
        self.bytes = self.bytes.saturating_add(row.wire_bytes);
        self.elsewhere |= row.vantage != Some(Vantage::Sender);
        note_first(&mut self.first, row.first_time);
        let bytes = row
            .wire_bytes
            .saturating_add(row.packets.saturating_mul(FRAME_OVERHEAD));
        let sending = times.of(TimeState::Sending);
        if sending > 0
            && let Some(speed) = speed_of(float(bytes) * 8e9 / float(sending), link_rate)
        {
            self.fast_bytes = self.fast_bytes.saturating_add(row.wire_bytes);
            self.speed = self.speed.max(speed);
        }
    }

    /// The finding; `others`: those of all other rules.
    pub(super) fn not_network(&self, context: &Context<'_>, others: &[FindingRow]) -> Option<FindingRow> {
        let run = context.run;
        let is_lossy = run.taps.iter().any(|tap| tap.records_lost() > 0);
        let is_troubled = others.iter().any(|finding| finding.severity >= Severity::Warning);
        let totals = &run.totals;
        if self.has_trouble || is_lossy || is_troubled || totals.cnp > 0 || totals.pause_frames > 0 {
            return None;
        }
        let sum = self.times.sum();
        let add = |sum: u64, state: &TimeState| sum.saturating_add(self.times.of(*state));
        let of = |states: &[TimeState]| states.iter().fold(0, add);
        let idle = of(&[TimeState::Idle, TimeState::Sender]);
        let network = of(&[
            TimeState::Timeout,
            TimeState::Rnr,
            TimeState::Paused,
            TimeState::Recovering,
            TimeState::Slowed,
            TimeState::Network,
        ]);
        let is_idle = reaches(idle, sum, MIN_IDLE) && self.messages >= MIN_MESSAGES;
        let is_known =
            !reaches(of(&[TimeState::Unknown]), sum, MAX_UNKNOWN) && !reaches(network, sum, MAX_NETWORK);
        if !is_idle || !is_known || !reaches(self.fast_bytes, self.bytes, MIN_FAST) {
            return None;
        }
        let mean = Span(idle / self.messages.max(1));
        let mut evidence = Evidence::default();
        evidence
            .count("flows", self.flows)
            .count("messages", self.messages)
            .count("time_ns", sum)
            .count("idle_ns", idle)
            .count("idle_by_message_ns", mean.0)
            .number("burst_bps", self.speed);
        let (confidence, doubt) = if self.elsewhere {
            (Confidence::Medium, ", unless the round trip takes as long")
        } else {
            (Confidence::High, "")
        };
        let part = share(idle, sum).map(percent).unwrap_or_default();
        Some(NOT_NETWORK.finding(
            (Severity::Ok, confidence),
            format!(
                "the network is not what {} for: messages go at {:.0} Gbit/s, nothing was marked, lost or paused; idle {part} of the time, \
                 {mean} for each message{doubt}",
                if self.flows == 1 {
                    "the sender waits".to_owned()
                } else {
                    format!("the senders of {} wait", counted(self.flows, "flow"))
                },
                self.speed / 1e9
            ),
            evidence,
            "Look at what the sending program does between messages: copies, launches of kernels, completions that it waits for. A faster \
             network changes nothing.",
            self.first,
        ))
    }
}

/// The speed of the port that sends at `rate`, in bit/s; `None` if it sends slower than any.
fn speed_of(rate: f64, link_rate: Option<u64>) -> Option<f64> {
    if let Some(stated) = link_rate {
        return (rate >= float(stated) * PART_OF_SPEED.0).then_some(float(stated));
    }
    let fits = |speed: &f64| rate >= speed * PART_OF_SPEED.0 && rate <= speed * PART_OF_SPEED.1;
    PORT_GIGABITS
        .into_iter()
        .map(|gigabits| float(bits_per_second(gigabits)))
        .find(fits)
}
