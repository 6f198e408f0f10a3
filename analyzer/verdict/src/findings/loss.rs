//! Findings about what was lost: in the network, by the capture, and what senders only noticed by a timeout.

use std::collections::{BTreeMap, HashMap};

use roce_model::{
    Confidence, EpisodeKind, EventKind, EventRow, Evidence, FindingRow, FlowId, FlowRow, Severity, Span,
    TapId, TapNames, Time, Vantage,
};

use super::super::coverage::Coverage;
use super::super::directory::{lost_behind, name_of};
use super::super::numbers::{bytes, counted, note_first, percent, share};
use super::alone::Facts;
use super::between::{Claims, LossTotals, LostAt};
use super::flow_sums::FlowSums;
use super::missed::{ChanceSign, MissedByTaps};
use super::rule::{Context, FindingOf as _, Rule};
use super::stall;
use super::sure::{Sure, Ways, surer};
use super::worst::Worst;

pub(super) const NETWORK: Rule = Rule {
    id: "loss.network",
    title: "the network lost packets",
    meaning: "Packets of RoCE were dropped on the way, and go-back-N sent them and what followed them again.",
    method: "Missing PSNs that a sequence NAK requested or that a retransmission after a timeout filled (network_lost), READ \
             responses that were requested again, and packets captured here that the receiver requested again \
             (lost_downstream: lost behind this tap), without those that it had after all (overtaken_downstream). Where several taps saw a flow, what was lost between two of them is counted by \
             what the first one saw and the second one did not (hops.lost); each tap's own word counts only for what lies outside. \
             Of a flow of which a third or more was never captured and never sent again, only losses that a NAK names count. The share is of the data \
             packets captured and those lost before the tap. \"about\": holes of the capture may be among them.",
    source: "IBTA 9.7.5 (ACKs and NAKs of responders) and 9.7.6.1.3 (timeouts of requesters).",
    thresholds: &["loss_critical", "loss_critical_least"],
    severity: Severity::Warning,
    otherwise: "info when the confidence is low, and of answers alone where nothing was sent again: a later answer stands for them; critical when at least loss_critical_least packets and more than the share loss_critical of the data \
                packets were lost, and no capture missed as large a share by itself",
    confidence: "high when a second tap shows a loss and a NAK, a timer or a READ requested packets of that flow again, or when a \
                 NAK names a packet that was missing here until it was retransmitted, and no packet between these two hosts came late; \
                 medium when a NAK or a timer is the only sign, as for losses behind this tap, or a difference of two taps is; low when \
                 packets between these hosts came late or twice, for which NAKs come as well, or where holes of the capture would meet as many \
                 retransmissions in 1 of 20 captures. It is medium at most where the capture missed packets of these hosts, where its holes meet \
                 any retransmission in 1 of 20 captures, or where one of two taps shows a part of its flows only, and low where that lacks two thirds \
                 of them, or without any answer of the peer",
    ..Rule::TALLIED
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
    confidence: "high when no packet of such a flow came late or twice: what was acknowledged arrived; medium when packets of other \
                 flows between these hosts did, or when a third of the flow or more is missing, which may have taken other ways; low otherwise",
    ..Rule::TALLIED
};

pub(super) const TIMEOUT: Rule = Rule {
    id: "retransmit.timeout",
    title: "senders waited for a timeout",
    meaning: "A sender got neither ACK nor NAK and stood still until its timer ran out: the last packets of a message, an \
              ACK or a NAK were lost, or the other side did not answer. A timeout costs far more than a NAK.",
    method: "Retransmission runs that a timer explains better than NAKs, RNR NAKs and missing READ responses do, by the times that \
             these take between the two hosts (runs_timeout); with the time that the senders stood still before them \
             (time_timeout_ns).",
    source: "IBTA 9.7.6.1.3 (transport timer, 4.096 us times 2^n); adaptive timers of adapters start at tens of us.",
    thresholds: &[],
    severity: Severity::Warning,
    otherwise: "info when the confidence is low",
    confidence: "high when all other causes together are fifty times less likely for one of them, no packet of such a flow came \
                 late or twice, and the capture missed nothing that may have caused a run; medium when packets of other flows between \
                 these hosts did, when the capture missed packets of these hosts, or without ACKs; low otherwise, where a third of the \
                 flow or more was never captured, where senders stood still for less than the shortest timer, 4.096 us, or without any answer of the peer",
    ..Rule::TALLIED
};

/// The shortest timer of a requester (IBTA 9.7.6.1.3), in ns.
const SHORTEST_TIMER_NS: u64 = 4_096;
/// Flows with timeouts at taps whose rows do not count that are kept at most.
const MAX_ELSEWHERE: usize = 1 << 12;

#[derive(Clone, Debug, Default)]
pub(super) struct LossTally {
    data_packets: u64,
    lost: Worst,
    network: u64,
    downstream: u64,
    /// Number of the packets that were lost between a tap beside the receiver and the receiver.
    at_adapter: u64,
    responses: u64,
    ambiguous: u64,
    unresolved: u64,
    wasted_bytes: u64,
    /// True if it is known of some flow how many of its retransmitted bytes had arrived.
    knows_wasted: bool,
    retransmitted_bytes: u64,
    /// The claims of each tap.
    claims: Claims,
    capture: Worst,
    capture_first: Option<Time>,
    timeouts: FlowSums,
    waited_ns: u64,
    sure_before: Sure,
    sure_behind: Sure,
    sure_capture: Sure,
    sure_timeouts: Sure,
    /// Losses and timeouts of rows that do not count: see [`Facts`].
    sure_alone: Sure,
    timeouts_elsewhere: HashMap<(FlowId, TapId), String, foldhash::fast::RandomState>,
    timeout_times: Facts<()>,
    timeout_first: Option<Time>,
    ways: Ways,
    missed: MissedByTaps,
}

impl LossTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        self.note_time(event);
        self.missed.event(event);
        let first = match (event.kind, event.detail.as_deref()) {
            (EventKind::RetransmissionRun, Some("timeout")) => &mut self.timeout_first,
            (EventKind::Hole | EventKind::ResponseHole, Some("capture_lost")) => &mut self.capture_first,
            _ => return,
        };
        note_first(first, event.time);
    }

    /// When packets were lost, and when senders waited for a timer: another tap may not have recorded then.
    fn note_time(&mut self, event: &EventRow) {
        let Some(flow) = event.flow_id else {
            return;
        };
        let of = (flow, event.tap);
        let packets = event.value.unwrap_or_default();
        let detail = event.detail.as_deref();
        match event.kind {
            EventKind::Hole | EventKind::ResponseHole if detail == Some("network_lost") => {
                self.claims.note_time(of, event.time, LostAt::Before, packets);
            }
            EventKind::LostAgain => self.claims.note_time(of, event.time, LostAt::Before, packets),
            EventKind::LostDownstream => self.claims.note_time(of, event.time, LostAt::Behind, 1),
            EventKind::RetransmissionRun if detail == Some("timeout") => {
                self.timeout_times.note(of, event.time, (), 1);
            }
            _ => {}
        }
    }

    /// A row that does not count: another tap saw more of the flow.
    fn elsewhere(&mut self, row: &FlowRow) {
        let lost = row.network_lost.saturating_add(lost_behind(row));
        if lost > 0 {
            self.sure_alone.add_losses(lost, row);
        }
        if row.runs_timeout > 0 && self.timeouts_elsewhere.len() < MAX_ELSEWHERE {
            self.sure_alone.add_timeouts(row);
            self.timeouts_elsewhere
                .insert((row.flow_id, row.tap), name_of(row));
        }
    }

    /// Timeouts of all flows, each once.
    fn all_timeouts(&self, context: &Context<'_>) -> Worst {
        let mut more: BTreeMap<(FlowId, TapId), u64> = BTreeMap::new();
        let is_elsewhere = |flow, tap| self.timeouts_elsewhere.contains_key(&(flow, tap));
        self.timeout_times.each(
            context.run,
            |flow, tap| !is_elsewhere(flow, tap),
            |flow, tap, (), runs| *more.entry((flow, tap)).or_default() += runs,
        );
        let mut timeouts = self.timeouts.worst(context);
        for (key, runs) in &more {
            timeouts.add(*runs, || {
                self.timeouts_elsewhere.get(key).cloned().unwrap_or_default()
            });
        }
        timeouts
    }

    pub(super) fn flow(&mut self, row: &FlowRow) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        let is_sparse = Coverage::from_row(row).is_sparse();
        let behind = lost_behind(row);
        let (network, responses) = (row.network_lost, row.response_network_lost.unwrap_or_default());
        add(&mut self.data_packets, row.data_packets);
        let before = network.saturating_add(responses);
        if before > 0 || behind > 0 {
            self.lost.add(before.saturating_add(behind), || name_of(row));
            if is_sparse {
                self.sure_before.add_doubtful(before, row);
            } else {
                self.sure_before.add_losses(before, row);
            }
            self.sure_behind.add_likely(behind, row);
            add(&mut self.network, network);
            add(&mut self.downstream, behind);
            if row.vantage == Some(Vantage::Receiver) {
                add(&mut self.at_adapter, behind);
            }
            add(&mut self.responses, responses);
            add(&mut self.ambiguous, row.ambiguous);
            add(&mut self.unresolved, row.unresolved);
            add(&mut self.wasted_bytes, row.wasted_bytes.unwrap_or_default());
            self.knows_wasted |= row.retransmitted_bytes > 0 && row.wasted_bytes.is_some();
            add(&mut self.retransmitted_bytes, row.retransmitted_bytes);
        }
        if row.runs_timeout > 0 {
            self.timeouts.add(row.runs_timeout, row);
            add(&mut self.waited_ns, row.time_timeout_ns.unwrap_or_default());
            if is_sparse {
                self.sure_timeouts.add_doubtful(row.runs_timeout, row);
            } else {
                self.sure_timeouts.add_timeouts(row);
            }
        }
    }

    /// A flow at any tap: what the capture lost of it.
    pub(super) fn captured(&mut self, row: &FlowRow) {
        self.claims.note(row);
        if !row.counted {
            self.elsewhere(row);
        }
        self.ways.note(row);
        self.missed.flow(row);
        let coverage = Coverage::from_row(row);
        if coverage.missed > 0 {
            self.capture.add(coverage.missed, || name_of(row));
            // The packets of a flow that the tap shows in part may take other ways as well: surely those of a sender that uses several.
            match coverage.is_sparse() {
                true if row.multipath => self.sure_capture.add_doubtful(coverage.missed, row),
                true => self.sure_capture.add_likely(coverage.missed, row),
                false => self.sure_capture.add(coverage.missed, row),
            }
        }
    }

    /// Packets that captures missed.
    pub(super) fn missed(&self) -> &MissedByTaps {
        &self.missed
    }

    /// The confidence of timeouts.
    pub(super) fn sure_of_timeouts(&self) -> Confidence {
        self.sure_timeouts
            .confidence(&self.ways, &self.missed, ChanceSign::Timeout)
    }

    /// The confidence of losses in the network.
    fn sure_of_losses(&self, totals: &LossTotals) -> Confidence {
        if totals.lost() == totals.alone {
            return self
                .sure_alone
                .confidence(&self.ways, &self.missed, ChanceSign::Loss);
        }
        if !totals.between.is_empty() {
            // Two taps show it, and one of them that it was requested again. A tap that shows a part of its flows misses packets that passed it.
            let mut pairs = totals.between.iter().map(|between| between.taps);
            let is_sparse = pairs.clone().flatten().any(|tap| self.missed.is_sparse(tap));
            let is_certain = totals.confirmed && !is_sparse && !self.missed.may_coincide();
            return if pairs.all(|taps| taps.iter().any(|tap| self.missed.lacks_most(*tap))) {
                Confidence::Low
            } else if is_certain {
                Confidence::High
            } else {
                Confidence::Medium
            };
        }
        let before = self
            .sure_before
            .confidence(&self.ways, &self.missed, ChanceSign::Loss);
        let behind = self
            .sure_behind
            .confidence(&self.ways, &self.missed, ChanceSign::Named);
        surer(before, behind)
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
                alone: 0,
                flows: self.lost.clone(),
            };
        }
        self.claims.tell(context.run, known, sums, |tap, flow| {
            context.directory.name(tap, flow)
        })
    }

    /// True if something explains so many losses that these are all.
    pub(super) fn are_explained(&self, context: &Context<'_>, explained: u64) -> bool {
        self.totals(context, &context.run.tap_names()).lost() <= explained
    }

    pub(super) fn network(&self, context: &Context<'_>) -> Option<FindingRow> {
        let known = context.run.tap_names();
        let totals = self.totals(context, &known);
        let lost = totals.lost();
        if lost == 0 {
            return None;
        }
        let answers = totals.answers();
        let data_lost = lost.saturating_sub(answers);
        // Packets that were lost before a tap are not among those that it captured.
        let between = totals.between.iter().map(|between| between.lost);
        let never_seen = between
            .fold(totals.before, u64::saturating_add)
            .saturating_sub(answers);
        let of_data = share(data_lost, self.data_packets.saturating_add(never_seen)).unwrap_or(1.0);
        let of_data = of_data.min(1.0);
        let thresholds = context.thresholds;
        // A capture that misses as large a share by itself does not show that the network does.
        let critical = data_lost >= thresholds.loss_critical_least
            && of_data > thresholds.loss_critical
            && self.missed.highest_rate() <= thresholds.loss_critical;
        let confidence = self.sure_of_losses(&totals);
        // Where nothing else was lost, timers expired because of answers alone.
        let timeouts = if data_lost == 0 {
            self.all_timeouts(context).sum()
        } else {
            0
        };
        let mut evidence = Evidence::default();
        evidence
            .count("lost", lost)
            .count("answers_lost", answers)
            .count("timeouts_by_lost_answers", timeouts)
            .count("network_lost", self.network)
            .count("lost_downstream", self.downstream)
            .count("response_network_lost", self.responses)
            .count("ambiguous", self.ambiguous)
            .count("unresolved", self.unresolved)
            .count("data_packets", self.data_packets)
            .number("share", of_data)
            .count("retransmitted_bytes", self.retransmitted_bytes);
        if self.knows_wasted {
            evidence.count("wasted_bytes", self.wasted_bytes);
        }
        evidence.text("worst", totals.flows.list());
        let begin = context.run.zero();
        let between: Vec<String> = totals
            .between
            .iter()
            .take(3)
            .map(|between| {
                let [one, other] = between.taps.map(|tap| known.name(tap));
                let first = between.first.map_or_else(String::new, |(time, psn)| {
                    format!(", first PSN {psn}, {} after the first frame", time.since(begin))
                });
                format!("between {one} and {other}: {} lost{first}", between.lost)
            })
            .collect();
        if !between.is_empty() {
            evidence.text("between_taps", between.join("; "));
        }
        let class = context.losing_class.as_ref().filter(|_| data_lost > 0);
        if let Some(class) = class {
            evidence.text("class", class.to_string());
        }
        let class = class.map(|class| format!("; {class}")).unwrap_or_default();
        let (place, next_step) = place(&totals, &between, self.at_adapter);
        let first_between = totals.between.iter().filter_map(|between| between.first).min();
        Some(
            NETWORK.finding(
                (
                    match confidence {
                        // Reordering explains it as well: no reason to wake anybody.
                        Confidence::Low => Severity::Info,
                        // An answer acknowledges all before it (IBTA 9.7.5.1.2): the loss cost nothing.
                        _ if data_lost == 0 && timeouts == 0 && self.retransmitted_bytes == 0 => {
                            Severity::Info
                        }
                        _ if critical => Severity::Critical,
                        _ => Severity::Warning,
                    },
                    confidence,
                ),
                format!(
                    "the network lost {}{} of {}{}, {place}{}: {}{class}",
                    self.bound(),
                    what(data_lost, answers),
                    counted(totals.flows.all(), "flow"),
                    if data_lost > 0 {
                        format!(" ({})", percent(of_data))
                    } else {
                        arrived(timeouts)
                    },
                    self.repeated(),
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

    /// Next step about timeouts: two taps show whether packets or answers were lost.
    fn timeout_step(&self, context: &Context<'_>) -> &'static str {
        let totals = self.totals(context, &context.run.tap_names());
        let lost = totals.between.iter().map(|between| between.lost);
        let lost = lost.fold(0, u64::saturating_add);
        match totals.answers() {
            _ if lost == 0 => {
                "Find out whether packets of {senders} or answers of {receivers} were lost, and compare the timeout of the queue pairs \
                 (timeout, retry_cnt) with the round trip."
            }
            0 => {
                "The packets were lost between the taps: look for drops on the way there, and compare the timeout of the queue pairs \
                 (timeout, retry_cnt) with the round trip."
            }
            answers if answers == lost => {
                "The packets had arrived, and their answers were lost on the way back between the taps: look for drops in that \
                 direction."
            }
            _ => "Packets and answers were lost between the taps: look for drops in both directions.",
        }
    }

    /// Text of the bytes that senders repeated because of the losses, if there were any.
    fn repeated(&self) -> String {
        if self.retransmitted_bytes == 0 {
            return String::new();
        }
        let repeated = bytes(self.retransmitted_bytes);
        if self.knows_wasted {
            format!(
                "; {repeated} retransmitted, {} of it wasted",
                bytes(self.wasted_bytes)
            )
        } else {
            format!("; {repeated} retransmitted")
        }
    }

    /// The word before the number of losses. Holes of the capture may be among them; those that are unclear may be more.
    fn bound(&self) -> &'static str {
        if self.capture.sum() > 0 {
            "about "
        } else if self.ambiguous > 0 || self.unresolved > 0 {
            "at least "
        } else {
            ""
        }
    }

    pub(super) fn capture(&self, context: &Context<'_>) -> Option<FindingRow> {
        let lost = self.capture.sum();
        if lost == 0 {
            return None;
        }
        // Where frames are cut a short snaplen is set already.
        let is_whole = context.run.taps.iter().all(|tap| tap.cut_frames == 0);
        let mut evidence = Evidence::default();
        evidence
            .count("capture_lost", lost)
            .count("frames_lost", context.run.totals.frames_lost)
            .count("data_packets", self.data_packets)
            .text("worst", self.capture.list());
        Some(CAPTURE.finding(
            (Severity::Info, self.sure_capture.confidence_alone(&self.ways)),
            format!(
                "the capture missed {} of {} that were acknowledged and never retransmitted",
                counted(lost, "packet"),
                counted(self.capture.all(), "flow")
            ),
            evidence,
            if is_whole {
                "Capture with a smaller snaplen (192 bytes hold all headers), a larger buffer or fewer flows before trusting \
                 small counts."
            } else {
                "Capture with a larger buffer or fewer flows before trusting small counts."
            },
            self.capture_first,
        ))
    }

    pub(super) fn timeout(&self, context: &Context<'_>) -> Option<FindingRow> {
        let flows = self.all_timeouts(context);
        let runs = flows.sum();
        if runs == 0 {
            return None;
        }
        let confidence = if self.timeouts.worst(context).sum() > 0 {
            self.sure_of_timeouts()
        } else {
            self.sure_alone
                .confidence(&self.ways, &self.missed, ChanceSign::Timeout)
        };
        // Senders that stood still for less than the shortest timer may have had another reason.
        let is_short = (1..runs.saturating_mul(SHORTEST_TIMER_NS)).contains(&self.waited_ns);
        let confidence = if is_short { Confidence::Low } else { confidence };
        let mut evidence = Evidence::default();
        evidence
            .count("runs_timeout", runs)
            .count("flows", flows.all())
            .count("stood_still_ns", self.waited_ns)
            .text("worst", flows.list());
        let happened = match self.waited_ns {
            0 => "retransmitted after".to_owned(),
            wait => format!(
                "stood still {} in",
                stall::stood_still(context, Span(wait), flows.all())
            ),
        };
        Some(TIMEOUT.finding(
            match confidence {
                Confidence::Low => (Severity::Info, Confidence::Low),
                confidence => (Severity::Warning, confidence),
            },
            format!(
                "{} {happened} {}: {}",
                counted(flows.all(), "flow"),
                counted(runs, "timeout"),
                flows.names()
            ),
            evidence,
            self.timeout_step(context),
            self.timeout_first,
        ))
    }
}

/// Number of timeouts that lost answers cost.
fn arrived(timeouts: u64) -> String {
    let arrived = "; what they answer had arrived";
    if timeouts == 0 {
        return arrived.to_owned();
    }
    format!("{arrived}, and {} followed", counted(timeouts, "timeout"))
}

/// Text of the losses: packets, and answers to them.
fn what(data: u64, answers: u64) -> String {
    match (data, answers) {
        (_, 0) => counted(data, "packet"),
        (0, _) => format!("{} on the way back", counted(answers, "answer")),
        _ => format!(
            "{}, and {} on the way back,",
            counted(data, "packet"),
            counted(answers, "answer")
        ),
    }
}

/// Where packets were lost, and where to look.
fn place(totals: &LossTotals, between: &[String], at_adapter: u64) -> (String, &'static str) {
    const ADAPTER: &str =
        "At {receivers}, look at discards and buffers of the adapter's port (ethtool -S), PCIe, ICRC errors.";
    const BEFORE: &str = "Look for drops between {senders} and this tap: discard counters of switch ports, their buffers and PFC for {class}, optics.";
    const BEHIND: &str = "Look for drops between this tap and {receivers}: discard counters of switch ports, their buffers and PFC for {class}, and of the adapters.";
    const BOTH: &str = "Look for drops of {class} on both sides of this tap, from {senders} and to {receivers}: discard counters of switch ports and adapters.";
    const BETWEEN: &str = "Look for drops on the way between these taps: discard counters of switch ports, their buffers and PFC for {class}, optics.";
    if between.is_empty() {
        return match (totals.before, totals.behind) {
            (_, 0) => ("before this tap".to_owned(), BEFORE),
            (0, behind) if behind <= at_adapter => (
                "behind this tap, which stands beside the receiver: its adapter dropped them".to_owned(),
                ADAPTER,
            ),
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
