//! Findings about marks: whether ECN works from the mark to the slower sender, whether data can be marked at all, and
//! marks that nobody answers.

use std::collections::{BTreeMap, HashMap, HashSet};

use roce_model::{
    Address, Confidence, EpisodeKind, Evidence, FindingRow, FlowId, FlowRow, Severity, Span, TapId, Time,
    Vantage,
};

use super::super::arrivals::Fell;
use super::super::chance::UNLIKELY;
use super::super::directory::name_of;
use super::super::numbers::{counted, note_first, percent, reaches};
use super::super::thresholds::Thresholds;
use super::cnp::is_often_over;
use super::rule::{Context, FindingOf as _, Needs, Rule};
use super::worst::Worst;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
type Set<K> = HashSet<K, foldhash::fast::RandomState>;

/// UDP source port and destination, by which switches choose a way.
type AnswerWay = (Option<u16>, Address);

/// Flows with marks or CNPs, and hosts, that are kept at most.
const MAX_KEPT: usize = 1 << 16;

pub(super) const WORKING: Rule = Rule {
    id: "ecn.working",
    title: "ECN works: marks, CNPs, slower senders",
    meaning: "Switches mark packets, receivers answer with congestion notifications, and senders slow down, as far as \
              the taps can show it.",
    method: "Flows with CE for whose sender CNPs left the receiver (those within 100 us after a NAK left out), or \
             sender-side flows that slowed down. Senders are seen to slow down at their own side by the median of \
             cnp_reaction, below reaction_seen; at the receiver's side by arrivals: in at least 5 windows of 64 packets (1 ms at most) after marked ones, \
             with CNPs, without marks and with as many flows as before, less than arrivals_fell of what came while \
             packets were marked. Flows that ignore CNPs, or go on with their rate, do not count, nor do those whose CNPs come, as a rule, later than cnp_delay_most after the first mark of a train.",
    source: "DCQCN (Zhu et al., SIGCOMM 2015, section 3): switch marks, notification point answers, reaction point cuts \
             its rate. RoCEv2 CNP: IBTA annex A17.9.3.",
    thresholds: &["reaction_seen", "arrivals_fell", "cnp_delay_most"],
    severity: Severity::Ok,
    confidence: "high where senders are seen to slow down at their own side; medium where arrivals show it, or where only marks and CNPs are seen",
    ..Rule::TALLIED
};

pub(super) const NOT_CAPABLE: Rule = Rule {
    id: "ecn.not-capable",
    title: "data is sent without ECN",
    meaning: "RoCE data packets carry Not-ECT, so that a congested switch can only drop them or pause the link; it \
              cannot mark them, and DCQCN never acts.",
    method: "Flows of whose data packets more than not_ect_share are Not-ECT, with least_data_packets such packets in \
             all. Management datagrams (queue pairs 0 and 1), ACKs and CNPs are left out.",
    source: "RFC 3168, section 5 (codepoints); Soft-RoCE leaves the field at 0 unless the traffic class is set.",
    thresholds: &["not_ect_share", "least_data_packets"],
    severity: Severity::Info,
    otherwise: "warning when such flows lost packets or were paused, or go to a host to which others are marked",
    confidence: "high: the packets carry the codepoint at this tap",
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const MARKS_WITHOUT_CNP: Rule = Rule {
    id: "ecn.marks-without-cnp",
    title: "marks arrive and no CNP leaves",
    meaning: "A receiver gets packets with CE and sends no congestion notification to their sender: its notification \
              point is off or not set up for this priority, and the sender never learns of it.",
    method: "Pairs of hosts with at least least_marks marked data packets at a tap that also sees what the receiver \
             sends back on the same connections (they are paired, and its packets were captured), and no CNP from \
             the receiver to the sender at any tap.",
    source: "IBTA annex A17.9.3 (congestion notification packets); DCQCN, section 3.1 (notification point).",
    thresholds: &["least_marks"],
    severity: Severity::Warning,
    otherwise: "info when it is not known where the tap stands: the CNPs could take another way",
    confidence: "high at a tap on the receiver's side; medium between the hosts, or where the answers to all marked flows of the receiver pass the \
                 tap, and are so many, by their ports and hosts, that of two equal ways one takes them all in less than 1 of 20 networks; low \
                 where it is not known where the tap stands",
    needs: Needs::Ends,
    ..Rule::TALLIED
};

/// Signals of one flow, the most that any tap shows.
#[derive(Debug)]
struct Signal {
    source: Address,
    destination: Address,
    ce: u64,
    /// CNPs but for those after a NAK.
    cnp: u64,
    /// Median reaction, at the sender's side.
    reaction: Option<f64>,
    /// It sent more than DCQCN allows.
    ignores: bool,
    /// It went on with its rate.
    unmoved: bool,
    /// Its notifications come late, as a rule.
    late: bool,
}

/// Windows in which less arrives than before are no accident from so many on.
const WINDOWS_THAT_FELL: u64 = 5;

/// Marked flows at a tap that sees both directions.
#[derive(Debug)]
struct Candidate {
    tap: TapId,
    flow: FlowId,
    peer: FlowId,
    responses_seen: bool,
    source: Address,
    destination: Address,
    ce: u64,
    place: u8,
}

/// How sure it is that CNPs would pass a tap.
const AT_RECEIVER: u8 = 3;
const BETWEEN: u8 = 2;
const ON_THE_WAY: u8 = 1;
const UNKNOWN: u8 = 0;

#[derive(Debug, Default)]
pub(super) struct EcnTally {
    signals: Map<(FlowId, u32), Signal>,
    candidates: Vec<Candidate>,
    /// UDP source port, and destination, of flows that carry answers.
    answers: Map<(TapId, FlowId), AnswerWay>,
    /// Marked flows by tap and receiver.
    marked_flows: Map<(TapId, Address), u64>,
    not_ect: Worst,
    /// Number of flows without ECN that suffered.
    suffered: u64,
    not_ect_to: Set<Address>,
    /// Where marked packets go.
    marked_to: Set<Address>,
    not_ect_first: Option<Time>,
}

impl EcnTally {
    pub(super) fn flow(&mut self, row: &FlowRow, thresholds: &Thresholds) {
        self.signal(row, thresholds.cnp_delay_most);
        self.candidate(row);
        if row.acks > 0 && self.answers.len() < MAX_KEPT {
            let way = (row.source_port, row.destination);
            self.answers.insert((row.tap, row.flow_id), way);
        }
        if row.ce > 0 && self.marked_to.len() < MAX_KEPT {
            self.marked_to.insert(row.destination);
            *self.marked_flows.entry((row.tap, row.destination)).or_default() += 1;
        }
        let over_ip = row
            .not_ect
            .saturating_add(row.ect0)
            .saturating_add(row.ect1)
            .saturating_add(row.ce);
        let share = thresholds.not_ect_share;
        if row.counted && row.not_ect > 0 && !reaches(over_ip - row.not_ect, over_ip, 1.0 - share) {
            self.not_ect.add(row.not_ect, || name_of(row));
            let lost = row
                .network_lost
                .saturating_add(row.lost_downstream.unwrap_or_default());
            self.suffered += u64::from(lost > 0 || row.pause_ns.is_some_and(|ns| ns > 0));
            if self.not_ect_to.len() < MAX_KEPT {
                self.not_ect_to.insert(row.destination);
            }
            note_first(&mut self.not_ect_first, row.first_time);
        }
    }

    fn signal(&mut self, row: &FlowRow, latest: Span) {
        let cnp = row.cnp.unwrap_or_default();
        let key = (row.flow_id, row.epoch);
        if (row.ce == 0 && cnp == 0) || (self.signals.len() >= MAX_KEPT && !self.signals.contains_key(&key)) {
            return;
        }
        let signal = self.signals.entry(key).or_insert(Signal {
            source: row.source,
            destination: row.destination,
            ce: 0,
            cnp: 0,
            reaction: None,
            ignores: false,
            unmoved: false,
            late: false,
        });
        signal.ce = signal.ce.max(row.ce);
        signal.cnp = signal
            .cnp
            .max(cnp.saturating_sub(row.cnp_after_nak.unwrap_or_default()));
        signal.late |= row.ce_to_cnp_p50_ns.is_some_and(|delay| delay > latest.0);
        let over = is_often_over(row);
        signal.ignores |= over && row.vantage != Some(Vantage::Receiver);
        signal.unmoved |= row.is_unmoved();
        if row.shows_sent_rate() && row.cnp_trains > 0 {
            signal.reaction = row
                .cnp_reaction_p50
                .filter(|reaction| reaction.is_finite())
                .or(signal.reaction);
        }
    }

    fn candidate(&mut self, row: &FlowRow) {
        let place = match row.vantage {
            Some(Vantage::Receiver) => AT_RECEIVER,
            Some(Vantage::Between) => BETWEEN,
            None => UNKNOWN,
            // Its own marks do not come by here.
            Some(_) => return,
        };
        if let Some(peer) = row.peer_flow_id.filter(|_| row.ce > 0)
            && row.cnp.is_none_or(|cnp| cnp == 0)
            && self.candidates.len() < MAX_KEPT
        {
            self.candidates.push(Candidate {
                tap: row.tap,
                flow: row.flow_id,
                peer,
                responses_seen: row.ack_rtt_count > 0,
                source: row.source,
                destination: row.destination,
                ce: row.ce,
                place,
            });
        }
    }

    pub(super) fn working(
        &self,
        context: &Context<'_>,
        arrivals: &HashMap<Address, Fell>,
    ) -> Option<FindingRow> {
        let unchanged = context.thresholds.reaction_seen;
        let cnps = cnp_pairs(context);
        // CNPs that no flow was found for, between hosts with marks.
        let mut unattributed: Map<(Address, Address), u64> = Map::default();
        let (mut ce, mut cnp) = (0u64, 0u64);
        // Epochs of a flow are one flow.
        let mut flows: Set<FlowId> = Set::default();
        let mut reactions = Vec::new();
        let mut fell: BTreeMap<Address, f64> = BTreeMap::new();
        for ((flow, _), signal) in &self.signals {
            let pair = (signal.destination, signal.source);
            let by_pair = cnps.get(&pair).copied().unwrap_or_default();
            let answered = signal.ce > 0 && (signal.cnp > 0 || by_pair > 0);
            let reacted = signal
                .reaction
                .filter(|reaction| signal.cnp > 0 && *reaction < unchanged);
            if signal.ignores || signal.unmoved || signal.late || !(answered || reacted.is_some()) {
                continue;
            }
            let less = arrivals.get(&signal.destination);
            if let Some(less) = less.filter(|less| signal.ce > 0 && less.windows >= WINDOWS_THAT_FELL) {
                fell.extend(less.mean().map(|mean| (signal.destination, mean)));
            }
            flows.insert(*flow);
            ce = ce.saturating_add(signal.ce);
            cnp = cnp.saturating_add(signal.cnp);
            if signal.cnp == 0 {
                unattributed.insert(pair, by_pair);
            }
            reactions.extend(reacted);
        }
        cnp = unattributed.values().copied().fold(cnp, u64::saturating_add);
        if flows.is_empty() {
            return None;
        }
        let flows = flows.len() as u64;
        reactions.sort_by(f64::total_cmp);
        let median = reactions.get(reactions.len() / 2).copied();
        let mut evidence = Evidence::default();
        evidence
            .count("flows", flows)
            .count("ce", ce)
            .count("cnp", cnp)
            .count("flows_slowed", reactions.len() as u64);
        if let Some(median) = median {
            evidence.number("rate_after_cnp", median);
        }
        let worst = fell.values().copied().max_by(f64::total_cmp);
        let at_sender = context
            .run
            .taps
            .iter()
            .any(|tap| tap.vantage == Some(Vantage::Sender));
        let reaction = match (median, worst) {
            (Some(median), _) => format!(
                "{} slowed to {} of the rate before (median; seen at the sender's side)",
                counted(reactions.len() as u64, "flow"),
                percent(median)
            ),
            (None, Some(least)) => {
                evidence
                    .count("receivers_with_fewer_arrivals", fell.len() as u64)
                    .number("arrivals_after_cnp", least);
                format!(
                    "arrivals at {} fell to {} of the bottleneck's rate after CNPs (seen from arrivals at the receiver's side)",
                    counted(fell.len() as u64, "receiver"),
                    percent(least)
                )
            }
            (None, None) if at_sender => {
                "whether senders slowed down is not clear from the CNPs at the sender's side".to_owned()
            }
            (None, None) => "whether senders slowed down cannot be seen from here".to_owned(),
        };
        let confidence = if median.is_some() {
            Confidence::High
        } else {
            Confidence::Medium
        };
        Some(WORKING.finding(
            (Severity::Ok, confidence),
            format!(
                "ECN works for {}: {} with CE, {}; {reaction}",
                counted(flows, "flow"),
                counted(ce, "packet"),
                counted(cnp, "CNP")
            ),
            evidence,
            if median.is_some() || !fell.is_empty() {
                "Nothing to do; if the rates are too low, look where the marks come from in the episodes."
            } else if at_sender {
                "Look at the sender's rate around its CNPs on the timeline of the page; a longer capture at the sender's side has more of them."
            } else {
                "Capture at a sender, too, to see whether its rate falls after a CNP."
            },
            context.first(&[EpisodeKind::Ecn, EpisodeKind::Incast]),
        ))
    }

    pub(super) fn not_capable(&self, context: &Context<'_>) -> Option<FindingRow> {
        let packets = self.not_ect.sum();
        if packets < context.thresholds.least_data_packets.max(1) {
            return None;
        }
        let mixed = self.not_ect_to.intersection(&self.marked_to).count() as u64;
        let severity = if self.suffered > 0 || mixed > 0 {
            Severity::Warning
        } else {
            Severity::Info
        };
        let mut evidence = Evidence::default();
        evidence
            .count("flows", self.not_ect.all())
            .count("not_ect", packets)
            .count("flows_lost_or_paused", self.suffered)
            .count("hosts_to_which_others_are_marked", mixed)
            .text("worst", self.not_ect.list());
        let but = match (self.suffered, mixed) {
            (0, 0) => String::new(),
            (0, hosts) => format!(
                "; other flows to {} of them are marked",
                counted(hosts, "receiver")
            ),
            (suffered, _) => format!("; {suffered} of them lost packets or stood still in a pause"),
        };
        Some(NOT_CAPABLE.finding(
            (severity, Confidence::High),
            format!(
                "{} sent {} as Not-ECT, which switches cannot mark{but}",
                counted(self.not_ect.all(), "flow"),
                counted(packets, "data packet")
            ),
            evidence,
            "Enable ECN at {senders} for {class}: the traffic class of the queue pairs needs an ECT codepoint. Behind a switch, check \
             that it does not clear it.",
            self.not_ect_first,
        ))
    }

    /// Taps, and receivers whose answers surely pass them: those to all marked flows do, by so many ports and to so many hosts that they would
    /// be divided among several ways.
    fn passed_by_answers(&self) -> Set<(TapId, Address)> {
        let mut answered: Map<(TapId, Address), (u64, Set<AnswerWay>)> = Map::default();
        for candidate in &self.candidates {
            if let Some(way) = self.answers.get(&(candidate.tap, candidate.peer)) {
                let (flows, ways) = answered
                    .entry((candidate.tap, candidate.destination))
                    .or_default();
                *flows += 1;
                ways.insert(*way);
            }
        }
        let pass = answered.into_iter().filter(|(place, (flows, ways))| {
            // The first one takes some way; each other one takes the same of two in one case of two.
            let others = i32::try_from(ways.len()).unwrap_or(i32::MAX) - 1;
            self.marked_flows.get(place) == Some(flows) && 0.5_f64.powi(others) < UNLIKELY
        });
        pass.map(|(place, _)| place).collect()
    }

    pub(super) fn marks_without_cnp(&self, context: &Context<'_>) -> Option<FindingRow> {
        if self.candidates.is_empty() {
            return None;
        }
        let cnps = cnp_pairs(context);
        let on_the_way = self.passed_by_answers();
        let mut seen: Set<FlowId> = Set::default();
        // By receiver and sender: marks, and how sure it is that CNPs would have been seen.
        let mut pairs: Map<(Address, Address), (u64, u8)> = Map::default();
        let mut candidates: Vec<&Candidate> = self.candidates.iter().collect();
        candidates.sort_by_key(|candidate| {
            (
                core::cmp::Reverse((candidate.place, candidate.ce)),
                candidate.flow,
                candidate.tap,
            )
        });
        for candidate in candidates {
            let pair = (candidate.destination, candidate.source);
            let peer = context.directory.party(candidate.tap, candidate.peer);
            let both = candidate.responses_seen || peer.is_some_and(|peer| peer.packets > 0);
            if both && !cnps.contains_key(&pair) && seen.insert(candidate.flow) {
                let (ce, place) = pairs.entry(pair).or_insert((0, UNKNOWN));
                *ce = ce.saturating_add(candidate.ce);
                let passes = on_the_way.contains(&(candidate.tap, candidate.destination));
                let known = if passes { ON_THE_WAY } else { UNKNOWN };
                *place = (*place).max(candidate.place).max(known);
            }
        }
        pairs.retain(|_, (ce, _)| *ce >= context.thresholds.least_marks.max(1));
        let sure = pairs.values().map(|(_, place)| *place).max()?;
        let mut sorted: Vec<_> = pairs.into_iter().collect();
        sorted.sort_unstable();
        let mut worst = Worst::default();
        for ((receiver, sender), (ce, _)) in sorted {
            worst.add(ce, || format!("{receiver} to {sender}"));
        }
        let verdict = match sure {
            AT_RECEIVER => (Severity::Warning, Confidence::High),
            BETWEEN | ON_THE_WAY => (Severity::Warning, Confidence::Medium),
            _ => (Severity::Info, Confidence::Low),
        };
        let place = match sure {
            AT_RECEIVER => "receiver side",
            BETWEEN => "between the hosts",
            ON_THE_WAY => "where all answers pass",
            _ => "not known",
        };
        let mut evidence = Evidence::default();
        evidence
            .count("pairs", worst.all())
            .count("ce", worst.sum())
            .text("vantage", place)
            .text("worst", worst.list());
        let doubt = if sure == UNKNOWN {
            "; they may take a way that this tap does not see"
        } else {
            ""
        };
        Some(MARKS_WITHOUT_CNP.finding(
            verdict,
            format!(
                "{} with CE arrived and no CNP went back: {}{doubt}",
                counted(worst.sum(), "packet"),
                worst.names()
            ),
            evidence,
            "At {receivers}, check that the notification point is enabled for {class} (roce_np), and the counters of marked packets \
             and of CNPs sent.",
            context.first(&[EpisodeKind::Ecn, EpisodeKind::Incast]),
        ))
    }
}

/// Number of CNPs by source and destination: the most that any tap saw.
fn cnp_pairs(context: &Context<'_>) -> Map<(Address, Address), u64> {
    let receivers = &context.run.cnp_receivers;
    let mut by_tap: Map<(Address, Address, TapId), u64> = Map::default();
    by_tap.reserve(receivers.len());
    for receiver in receivers {
        let sum = by_tap
            .entry((receiver.source, receiver.destination, receiver.tap))
            .or_default();
        *sum = sum.saturating_add(receiver.cnp);
    }
    let mut pairs: Map<(Address, Address), u64> = Map::default();
    pairs.reserve(by_tap.len());
    for ((source, destination, _), cnp) in by_tap {
        let most = pairs.entry((source, destination)).or_default();
        *most = cnp.max(*most);
    }
    pairs
}
