//! Findings about what was lost: in the network, by the capture, and what senders only noticed by a timeout.

use roce_model::{
    Confidence, EpisodeKind, EventKind, EventRow, Evidence, FindingRow, FlowRow, Nanos, Severity, TapNames,
};

use super::super::directory::{lost_behind, name_of};
use super::super::numbers::{bytes, counted, percent, share};
use super::between::{Claims, LossTotals};
use super::rule::{Context, Rule};
use super::stall;
use super::sure::Sure;
use super::worst::Worst;

pub(super) const NETWORK: Rule = Rule {
    id: "loss.network",
    title: "the network lost packets",
    meaning: "Packets of RoCE were dropped on the way, and go-back-N sent them and what followed them again.",
    method: "Missing PSNs that a sequence NAK requested or that a retransmission after a timeout filled (network_lost), READ \
             responses that were requested again, and packets captured here that the receiver requested again \
             (lost_downstream: lost behind this tap), without those that it had after all (overtaken_downstream). Where several taps saw a flow, what was lost between two of them is counted by \
             what the first one saw and the second one did not (hops.lost); each tap's own word counts only for what lies outside.",
    source: "IBTA 9.7.5 (ACKs and NAKs of responders) and 9.7.6.1.3 (timeouts of requesters).",
    thresholds: &["loss_critical", "loss_critical_least"],
    severity: Severity::Warning,
    otherwise: "info when the confidence is low; critical when at least loss_critical_least packets and more than the share loss_critical of the data \
                packets were lost",
    confidence: "high when a second tap shows a loss and a NAK, a timer or a READ requested packets of that flow again, or when a \
                 NAK names a packet that was missing here until it was retransmitted, and no packet between these two hosts came late; \
                 medium when a NAK or a timer is the only sign, as for losses behind this tap, or a difference of two taps is; low when \
                 packets between these hosts came late or twice, for which NAKs come as well",
};

pub(super) const CAPTURE: Rule = Rule {
    id: "loss.capture",
    title: "the capture lost packets",
    meaning: "Packets are missing in the capture that were acknowledged and never retransmitted: they reached their receiver, \
              and only the recording missed them. The network is not to blame, and counts here are too low.",
    method: "Missing PSNs that a later ACK covers and nobody retransmitted (capture_lost), and READ responses that were never \
             requested again.",
    source: "IBTA 9.7.5.1.2: an acknowledgement covers all requests before it.",
    thresholds: &[],
    severity: Severity::Info,
    otherwise: "",
    confidence: "high when no packet of such a flow came late or twice: what was acknowledged arrived; medium when packets of other \
                 flows between these hosts did; low otherwise",
};

pub(super) const TIMEOUT: Rule = Rule {
    id: "retransmit.timeout",
    title: "senders waited for a timeout",
    meaning: "A sender got neither ACK nor NAK and stood still until its timer ran out: the last packets of a message, an \
              ACK or a NAK were lost, or the other side did not answer. A timeout costs far more than a NAK.",
    method: "Retransmission runs without a NAK or RNR NAK before them, where the time since the last progress fits the timer \
             (runs_timeout); with the longest stall that one of them ended.",
    source: "IBTA 9.7.6.1.3 (transport timer, 4.096 us times 2^n); adaptive timers of adapters start at tens of us.",
    thresholds: &[],
    severity: Severity::Warning,
    otherwise: "info when the confidence is low",
    confidence: "high when no packet of such a flow came late or twice: nothing but the timer explains the silence and what \
                 was retransmitted after it; medium when packets of other flows between these hosts did; low otherwise",
};

#[derive(Clone, Debug, Default)]
pub(super) struct LossTally {
    data_packets: u64,
    lost: Worst,
    network: u64,
    downstream: u64,
    responses: u64,
    ambiguous: u64,
    unresolved: u64,
    wasted_bytes: u64,
    retransmitted_bytes: u64,
    /// The claims of each tap.
    claims: Claims,
    capture: Worst,
    capture_first: Option<Nanos>,
    timeouts: Worst,
    sure_lost: Sure,
    sure_capture: Sure,
    sure_timeouts: Sure,
    timeout_first: Option<Nanos>,
}

impl LossTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        if event.kind == EventKind::RetransmissionRun && event.detail.as_deref() == Some("timeout") {
            self.timeout_first = Some(
                self.timeout_first
                    .map_or(event.time, |first| first.min(event.time)),
            );
        }
    }

    pub(super) fn flow(&mut self, row: &FlowRow) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        for sure in [&mut self.sure_lost, &mut self.sure_timeouts] {
            sure.note(row);
        }
        let downstream = lost_behind(row);
        let responses = row.response_network_lost.unwrap_or_default();
        add(&mut self.data_packets, row.data_packets);
        let lost = [row.network_lost, downstream, responses]
            .into_iter()
            .fold(0, u64::saturating_add);
        if lost > 0 {
            self.lost.add(lost, || name_of(row));
            self.sure_lost.add_losses(lost, row);
            add(&mut self.network, row.network_lost);
            add(&mut self.downstream, downstream);
            add(&mut self.responses, responses);
            add(&mut self.ambiguous, row.ambiguous);
            add(&mut self.unresolved, row.unresolved);
            add(&mut self.wasted_bytes, row.wasted_bytes);
            add(&mut self.retransmitted_bytes, row.retransmitted_bytes);
        }
        if row.runs_timeout > 0 {
            self.timeouts.add(row.runs_timeout, || name_of(row));
            self.sure_timeouts.add(row.runs_timeout, row);
        }
    }

    /// A flow at any tap: what the capture lost of it.
    pub(super) fn captured(&mut self, row: &FlowRow) {
        self.claims.note(row);
        self.sure_capture.note(row);
        let capture = row
            .capture_lost
            .saturating_add(row.response_capture_lost.unwrap_or_default());
        if capture > 0 {
            self.capture.add(capture, || name_of(row));
            self.sure_capture.add(capture, row);
            self.capture_first = Some(
                self.capture_first
                    .map_or(row.first_time, |first| first.min(row.first_time)),
            );
        }
    }

    /// All losses, each once.
    fn totals(&self, context: &Context<'_>, known: &TapNames) -> LossTotals {
        let sums = [self.network.saturating_add(self.responses), self.downstream];
        if context.run.hops.is_empty() {
            let [before, behind] = sums;
            return LossTotals {
                before,
                behind,
                between: Vec::new(),
                confirmed: false,
                flows: self.lost.clone(),
            };
        }
        self.claims.tell(context.run, known, sums, |tap, flow| {
            context.directory.name(tap, flow)
        })
    }

    pub(super) fn network(&self, context: &Context<'_>) -> Option<FindingRow> {
        let known = context.run.tap_names();
        let totals = self.totals(context, &known);
        let lost = totals.lost();
        if lost == 0 {
            return None;
        }
        let of_data = share(lost, self.data_packets).unwrap_or(1.0);
        let thresholds = context.thresholds;
        let critical = lost >= thresholds.loss_critical_least && of_data > thresholds.loss_critical;
        let confidence = match self.sure_lost.confidence() {
            confidence if totals.between.is_empty() => confidence,
            // Two taps show it, and one of them that it was requested again.
            _ if totals.confirmed => Confidence::High,
            _ => Confidence::Medium,
        };
        let mut evidence = Evidence::default();
        evidence
            .count("lost", lost)
            .count("network_lost", self.network)
            .count("lost_downstream", self.downstream)
            .count("response_network_lost", self.responses)
            .count("ambiguous", self.ambiguous)
            .count("unresolved", self.unresolved)
            .count("data_packets", self.data_packets)
            .number("share", of_data)
            .count("retransmitted_bytes", self.retransmitted_bytes)
            .count("wasted_bytes", self.wasted_bytes)
            .text("worst", totals.flows.list());
        let begin = context.run.span.map(|span| span.first);
        let between: Vec<String> = totals
            .between
            .iter()
            .take(3)
            .map(|between| {
                let [one, other] = between.taps.map(|tap| known.name(tap));
                let first = between.first.map_or_else(String::new, |(time, psn)| {
                    let after = begin.map_or_else(String::new, |begin| {
                        format!(", {} after the first frame", time.since(begin))
                    });
                    format!(", first PSN {psn}{after}")
                });
                format!("between {one} and {other}: {} lost{first}", between.lost)
            })
            .collect();
        if !between.is_empty() {
            evidence.text("between_taps", between.join("; "));
        }
        let (place, next_step) = place(&totals, &between);
        let first_between = totals.between.iter().filter_map(|between| between.first).min();
        Some(
            NETWORK.finding(
                (
                    match confidence {
                        // Reordering explains it as well: no reason to wake anybody.
                        Confidence::Low => Severity::Info,
                        _ if critical => Severity::Critical,
                        _ => Severity::Warning,
                    },
                    confidence,
                ),
                format!(
                    "the network lost {} of {} ({}), {place}; {} retransmitted, {} of it wasted: {}",
                    counted(lost, "packet"),
                    counted(totals.flows.all(), "flow"),
                    percent(of_data),
                    bytes(self.retransmitted_bytes),
                    bytes(self.wasted_bytes),
                    totals.flows.names()
                ),
                evidence,
                next_step,
                first_between
                    .map(|(time, _)| time)
                    .or(context.first(&[EpisodeKind::Loss])),
            ),
        )
    }

    pub(super) fn capture(&self, context: &Context<'_>) -> Option<FindingRow> {
        let lost = self.capture.sum();
        if lost == 0 {
            return None;
        }
        let mut evidence = Evidence::default();
        evidence
            .count("capture_lost", lost)
            .count("frames_lost", context.run.totals.frames_lost)
            .count("data_packets", self.data_packets)
            .text("worst", self.capture.list());
        Some(CAPTURE.finding(
            (Severity::Info, self.sure_capture.confidence()),
            format!(
                "the capture missed {} of {} that were acknowledged and never retransmitted",
                counted(lost, "packet"),
                counted(self.capture.all(), "flow")
            ),
            evidence,
            "Capture with a smaller snaplen (96 bytes hold all headers), a larger buffer or fewer flows before trusting \
             small counts.",
            self.capture_first,
        ))
    }

    pub(super) fn timeout(&self, context: &Context<'_>) -> Option<FindingRow> {
        let runs = self.timeouts.sum();
        if runs == 0 {
            return None;
        }
        let silences = || {
            let stalls = context.distinct(EpisodeKind::Stall);
            let stalls = stalls.filter_map(|episode| episode.facts.stall.as_ref());
            stalls.filter(|stall| stall.by_timeout).map(|stall| stall.longest)
        };
        let silence = silences().max();
        let stood_still = Nanos(silences().map(|silence| silence.0).fold(0, u64::saturating_add));
        let mut evidence = Evidence::default();
        evidence
            .count("runs_timeout", runs)
            .count("flows", self.timeouts.all());
        if let Some(silence) = silence {
            evidence
                .count("silence_max_ns", silence.0)
                .count("stood_still_ns", stood_still.0);
        }
        evidence.text("worst", self.timeouts.list());
        let before = silence.map_or_else(String::new, |silence| {
            let sum = stall::stood_still(context, stood_still, self.timeouts.all());
            let longest = if stood_still > silence {
                format!(", {silence} at once")
            } else {
                String::new()
            };
            format!(", stood still for at least {sum}{longest}")
        });
        Some(TIMEOUT.finding(
            match self.sure_timeouts.confidence() {
                Confidence::Low => (Severity::Info, Confidence::Low),
                confidence => (Severity::Warning, confidence),
            },
            format!(
                "{} retransmitted after {}{before}: {}",
                counted(self.timeouts.all(), "flow"),
                counted(runs, "timeout"),
                self.timeouts.names()
            ),
            evidence,
            "Find out whether the packets or the answers were lost, and compare the timeout of the queue pairs (timeout, \
             retry_cnt) with the round trip.",
            self.timeout_first,
        ))
    }
}

/// Where packets were lost, and where to look.
fn place(totals: &LossTotals, between: &[String]) -> (String, &'static str) {
    const BEFORE: &str = "Look for drops between the senders and this tap: discard counters of switch ports, buffers and PFC of \
                          the priority, optics.";
    const BEHIND: &str = "Look for drops between this tap and the receivers: discard counters of switch ports and of the \
                          receivers' adapters.";
    const BOTH: &str =
        "Look for drops on both sides of this tap: discard counters of switch ports and adapters.";
    const BETWEEN: &str = "Look for drops on the way between these taps: discard counters of switch ports, buffers and PFC of the \
                           priority, optics.";
    if between.is_empty() {
        return match (totals.before, totals.behind) {
            (_, 0) => ("before this tap".to_owned(), BEFORE),
            (0, _) => ("behind this tap".to_owned(), BEHIND),
            _ => ("before and behind this tap".to_owned(), BOTH),
        };
    }
    let outside = [
        (totals.before, "before the first tap"),
        (totals.behind, "behind the last tap"),
    ];
    let outside = outside.iter().filter(|(lost, _)| *lost > 0);
    let outside = outside.map(|(lost, place)| format!("; {place}: {lost}"));
    (between.join("; ") + &outside.collect::<String>(), BETWEEN)
}
