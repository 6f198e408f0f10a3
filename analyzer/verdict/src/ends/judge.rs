//! The outcome of a connection.

use std::collections::{BTreeMap, HashSet};

use roce_model::{Address, Confidence, EndKind, EndRow, FlowId, Nanos, RunSummary, TapId};

use super::{Ends, Map, Refusal, Repeats, Requester, Way};

/// Unit of the local ACK timeout: 4.096 us (IBTA 9.7.6.1.3).
const TIMER_UNIT_NS: u64 = 4_096;
/// An adapter waits up to four times as long as its timeout says (IBTA 9.7.6.1.3).
const TIMER_RANGE: u64 = 4;
/// Repeats from which a request is one that nobody answers: a single one is any loss.
const MIN_REPEATS: u64 = 2;
/// Repeats after which a queue pair has given up: `retry_cnt` has three bits.
const MAX_REPEATS: u64 = 7;
/// RNR NAKs for one request from which the requester may have given up.
const MIN_RNR_NAKS: u64 = 2;
/// A requester that was asked to wait comes again soon: adapters take up to this beyond the timer.
const RNR_SLACK: Nanos = Nanos(10_000_000);
/// Silence from which a request without an answer waits longer than common timers: 4.096 us x 2^18 is 1.07 s.
const MIN_SILENCE: Nanos = Nanos(TIMER_UNIT_NS << 18);
/// Packets of a refused connection that were under way when the NAK came arrive within this time.
const UNDER_WAY: Nanos = Nanos(1_000_000);
/// ICRCs from which it is no chance that each was wrong.
const MIN_ICRCS: u64 = 3;
/// PSNs have 24 bits.
const PSNS: u32 = 1 << 24;

/// How a connection ended, before the rest of the row.
struct JudgedEnd {
    outcome: EndKind,
    time: Nanos,
    /// The last sign of progress.
    since: Nanos,
    psn: Option<u32>,
    refusal: Option<&'static str>,
    rnr_naks: u64,
    confidence: Confidence,
}

/// Facts that all connections are compared with.
pub(super) struct Judgement<'a> {
    ends: &'a Ends,
    run: &'a RunSummary,
    /// First packets of the connections of two hosts, in the order of time.
    begins: BTreeMap<Way, Vec<(Nanos, FlowId)>>,
    /// Hosts to which packets were captured.
    reached: HashSet<(TapId, Address), foldhash::fast::RandomState>,
    /// The refusal of each flow of requests, the latest one.
    refused: Map<(TapId, FlowId), Refusal>,
}

impl<'a> Judgement<'a> {
    pub(super) fn new(ends: &'a Ends, run: &'a RunSummary) -> Self {
        let mut begins: BTreeMap<Way, Vec<(Nanos, FlowId)>> = BTreeMap::new();
        for ((tap, flow), requester) in &ends.requesters {
            let way = (*tap, requester.source, requester.destination);
            let begin = (requester.first_time, *flow);
            begins.entry(way).or_default().push(begin);
        }
        for begins in begins.values_mut() {
            begins.sort_unstable();
        }
        let mut judgement = Self {
            ends,
            run,
            begins,
            reached: ends
                .ways
                .keys()
                .map(|(tap, _, destination)| (*tap, *destination))
                .collect(),
            refused: Map::default(),
        };
        for refusal in &ends.refusals {
            if let Some(flow) = judgement.requester_of(refusal) {
                judgement.refused.insert((refusal.tap, flow), *refusal);
            }
        }
        judgement
    }

    /// The flow whose request a NAK refused: the peer of the flow that carried it, or the only one without a peer that sent this PSN.
    fn requester_of(&self, refusal: &Refusal) -> Option<FlowId> {
        let (source, destination, _) = self.ends.carriers.get(&(refusal.tap, refusal.carrier))?;
        let flows = self.begins.get(&(refusal.tap, *destination, *source))?;
        let mut fitting = Vec::new();
        for (begin, flow) in flows {
            let Some(requester) = self.ends.requesters.get(&(refusal.tap, *flow)) else {
                continue;
            };
            if requester.peer == Some(refusal.carrier) {
                return Some(*flow);
            }
            if requester.peer.is_none() && *begin <= refusal.time && requester.sent(refusal.psn) {
                fitting.push(*flow);
            }
        }
        match fitting[..] {
            [flow] => Some(flow),
            _ => None,
        }
    }

    /// The row of a connection.
    pub(super) fn end(&self, tap: TapId, flow: FlowId, requester: &Requester) -> EndRow {
        let ends = self.ends;
        let way = (tap, requester.source, requester.destination);
        let ending = self.ending(tap, flow, requester);
        let is_repeated = matches!(
            ending.outcome,
            EndKind::NeverAnswered | EndKind::RetriesUnanswered
        );
        let repeats = ends.repeats.get(&(tap, flow)).filter(|_| is_repeated);
        let timeouts = repeats.and_then(timeouts);
        let is_other = |(_, other): &&(Nanos, FlowId)| Some(*other) != requester.peer;
        let back = ends.ways.get(&(tap, requester.destination, requester.source));
        let peer_last = back.and_then(|facts| facts.last_packets.iter().find(is_other));
        let peer_answer = back.and_then(|facts| facts.last_answers.iter().find(is_other));
        let next = self.begins.get(&way).and_then(|begins| {
            let from = begins.partition_point(|(begin, _)| *begin <= ending.time);
            begins[from..].iter().find(|(_, other)| *other != flow)
        });
        let icrcs = ends.icrcs.get(&(tap, requester.source));
        let answers = requester.peer.and_then(|peer| ends.carriers.get(&(tap, peer)));
        let last = answers.map_or(requester.last_time, |(.., time)| requester.last_time.max(*time));
        EndRow {
            flow_id: flow,
            tap,
            epoch: requester.epoch,
            source: requester.source,
            destination: requester.destination,
            destination_qpn: requester.destination_qpn,
            peer_flow_id: requester.peer,
            outcome: ending.outcome,
            time: ending.time,
            refusal: ending.refusal,
            request_psn: ending.psn,
            repeats: repeats.map_or(0, |repeats| repeats.count),
            repeat_min_ns: repeats.and_then(|repeats| repeats.shortest),
            repeat_max_ns: repeats.and_then(|repeats| repeats.longest),
            timeout_min: timeouts.map(|(least, _)| least),
            timeout_max: timeouts.map(|(_, most)| most),
            rnr_naks: ending.rnr_naks,
            last_answer_time: requester.last_answer,
            waited_ns: ending.time.since(ending.since).0,
            silence_ns: match ending.outcome {
                EndKind::Closed => 0,
                _ => self.recorded_behind(tap, last, MIN_SILENCE).0,
            },
            peer_last_time: peer_last.map(|(time, _)| *time),
            peer_answers: peer_answer.is_some_and(|(time, _)| *time > ending.since),
            to_itself: requester.to_itself,
            bad_icrc: icrcs.is_some_and(|sums| sums.checked >= MIN_ICRCS && sums.bad == sums.checked),
            followed_by: next.map(|(_, other)| *other),
            followed_after_ns: next.map(|(begin, _)| begin.since(ending.time).0),
            path_mtu: ends.ways.get(&way).and_then(|facts| facts.path_mtu),
            peer_path_mtu: back.and_then(|facts| facts.path_mtu),
            confidence: ending.confidence,
        }
    }

    fn ending(&self, tap: TapId, flow: FlowId, requester: &Requester) -> JudgedEnd {
        self.refusal(tap, flow, requester)
            .or_else(|| self.no_buffer(tap, requester))
            .or_else(|| self.unanswered(tap, flow, requester))
            .or_else(|| self.silence(tap, requester))
            .unwrap_or(JudgedEnd {
                outcome: EndKind::Closed,
                time: requester.last_request,
                since: requester.last_request,
                psn: None,
                refusal: None,
                rnr_naks: 0,
                confidence: Confidence::Medium,
            })
    }

    /// A fatal NAK after which neither side went on. One behind which answers came ended a request of a queue pair that was made anew.
    fn refusal(&self, tap: TapId, flow: FlowId, requester: &Requester) -> Option<JudgedEnd> {
        let refusal = self.refused.get(&(tap, flow))?;
        let (.., carrier_last) = self.ends.carriers.get(&(tap, refusal.carrier))?;
        let went_on = carrier_last.since(refusal.time) > UNDER_WAY
            || requester.last_answer.is_some_and(|time| time > refusal.time);
        (!went_on).then_some(JudgedEnd {
            outcome: EndKind::Refused,
            time: refusal.time,
            since: refusal.time,
            psn: Some(refusal.psn),
            refusal: Some(refusal.reason),
            rnr_naks: 0,
            confidence: Confidence::High,
        })
    }

    /// RNR NAKs for one request, after the last of which the requester did not come again.
    fn no_buffer(&self, tap: TapId, requester: &Requester) -> Option<JudgedEnd> {
        let not_ready = self.ends.not_ready.get(&(tap, requester.peer?))?;
        let longest = not_ready.timer.0.saturating_mul(TIMER_RANGE);
        let silence = self.recorded_behind(tap, not_ready.last, MIN_SILENCE);
        let is_over = not_ready.count >= MIN_RNR_NAKS
            && requester.last_request <= not_ready.last
            && requester.last_answer.is_none_or(|time| time <= not_ready.last)
            && silence.0 > longest.saturating_add(RNR_SLACK.0);
        let confidence = if self.is_whole(tap) {
            Confidence::High
        } else {
            Confidence::Medium
        };
        is_over.then_some(JudgedEnd {
            outcome: EndKind::RnrExhausted,
            time: not_ready.last,
            since: requester.last_answer.unwrap_or(requester.first_time),
            psn: Some(not_ready.psn),
            refusal: None,
            rnr_naks: not_ready.count,
            confidence,
        })
    }

    /// Equal sends in the spacing of a timer, behind which nothing new came.
    fn unanswered(&self, tap: TapId, flow: FlowId, requester: &Requester) -> Option<JudgedEnd> {
        let repeats = self.ends.repeats.get(&(tap, flow))?;
        let longest = Nanos(repeats.longest?);
        let is_last = repeats.count >= MIN_REPEATS
            && requester.last_request.since(repeats.last) <= longest
            && requester.last_answer.is_none_or(|time| time <= repeats.first);
        if !is_last {
            return None;
        }
        let is_first = requester.last_answer.is_none() && repeats.psn == requester.first_psn;
        let start = if is_first {
            requester.first_time
        } else {
            repeats.first
        };
        let twice = Nanos(longest.0.saturating_mul(2));
        let silence = self.recorded_behind(tap, repeats.last, twice);
        // Where packets are missing, the last repeats may be.
        let is_silent = silence > twice && self.is_whole(tap);
        let has_given_up = repeats.count >= MAX_REPEATS || is_silent;
        // A requester comes again because it got no answer. Where packets to it are captured, none passed here either.
        let shows_answers = self.reached.contains(&(tap, requester.source)) && self.is_whole(tap);
        let is_regular = timeouts(repeats).is_some();
        let confidence = match (has_given_up, shows_answers, is_regular) {
            (true, true, true) => Confidence::High,
            (true, false, _) if repeats.count < MAX_REPEATS => Confidence::Low,
            _ => Confidence::Medium,
        };
        Some(JudgedEnd {
            outcome: if is_first {
                EndKind::NeverAnswered
            } else {
                EndKind::RetriesUnanswered
            },
            time: repeats.last,
            since: requester.last_answer.unwrap_or(start),
            psn: Some(repeats.psn),
            refusal: None,
            rnr_naks: 0,
            confidence,
        })
    }

    /// A request that asked for an answer, and neither got one nor was repeated.
    fn silence(&self, tap: TapId, requester: &Requester) -> Option<JudgedEnd> {
        let since = requester.unanswered_time?;
        let silence = self.recorded_behind(tap, requester.last_request, MIN_SILENCE);
        let is_silent = requester.peer.is_some() && silence >= MIN_SILENCE && self.is_whole(tap);
        is_silent.then_some(JudgedEnd {
            outcome: EndKind::Silent,
            time: requester.last_request,
            since,
            psn: None,
            refusal: None,
            rnr_naks: 0,
            confidence: Confidence::Medium,
        })
    }

    /// Time behind `from` in which the tap shows that it recorded: packets came, of whatever flow, none more than `gap` behind the one before.
    /// A tap without any packet may have stopped, as rotated files and filters do.
    fn recorded_behind(&self, tap: TapId, from: Nanos, gap: Nanos) -> Nanos {
        let place = self.run.taps.iter().position(|row| row.tap == tap);
        let Some(end) = place.and_then(|place| self.run.taps[place].last_time) else {
            return Nanos(0);
        };
        let stretches = place.and_then(|place| self.run.stretches.get(place));
        let stretches = stretches.map(Vec::as_slice).unwrap_or_default();
        // Only the first stretches are kept: nothing is known of gaps behind them.
        let known = stretches.last().map_or(from, |stretch| stretch.last);
        let mut until = from;
        for stretch in &stretches[stretches.partition_point(|stretch| stretch.last <= from)..] {
            if stretch.first.since(until) > gap {
                return until.since(from);
            }
            until = stretch.last;
        }
        if until >= known { end.max(until) } else { until }.since(from)
    }

    /// True if nothing shows that packets are missing at this tap: neither the capture's own counts nor what was acknowledged.
    fn is_whole(&self, tap: TapId) -> bool {
        !self.ends.holed.contains(&tap) && self.run.tap(tap).is_none_or(|row| row.records_lost() == 0)
    }
}

impl Requester {
    /// True if the flow sent a request with this PSN.
    fn sent(&self, psn: u32) -> bool {
        let distance = |to: u32| to.wrapping_sub(self.first_psn) % PSNS;
        distance(psn) <= distance(self.last_psn)
    }
}

/// The local ACK timeouts, the smallest and the largest, that fit all times between equal sends.
fn timeouts(repeats: &Repeats) -> Option<(u32, u32)> {
    let (shortest, longest) = (repeats.shortest?, repeats.longest?);
    let fits = |n: &u32| {
        let timer = TIMER_UNIT_NS << *n;
        // Stamps are a little off.
        timer <= shortest.saturating_add(shortest / 64) && longest <= timer.saturating_mul(TIMER_RANGE)
    };
    Some(((1..32).find(fits)?, (1..32).rev().find(fits)?))
}

impl Ends {
    /// The rows of the table: connections that failed first, those that waited longest before others.
    pub(crate) fn conclude(&self, run: &RunSummary) -> Vec<EndRow> {
        let judgement = Judgement::new(self, run);
        let mut rows: BTreeMap<FlowId, EndRow> = BTreeMap::new();
        let (counted, others): (Vec<_>, Vec<_>) = self
            .requesters
            .iter()
            .partition(|(_, requester)| requester.counted);
        for ((tap, flow), requester) in counted {
            rows.insert(*flow, judgement.end(*tap, *flow, requester));
        }
        // A refusal that another tap alone recorded ended the connection all the same, unless an answer came behind it.
        for ((tap, flow), requester) in others {
            let row = judgement.end(*tap, *flow, requester);
            let went_on = |known: &EndRow| {
                let answered = known.last_answer_time.is_some_and(|time| time > row.time);
                known.outcome == EndKind::Refused || answered
            };
            if row.outcome == EndKind::Refused && !rows.get(flow).is_some_and(went_on) {
                rows.insert(*flow, row);
            }
        }
        let mut rows: Vec<EndRow> = rows.into_values().collect();
        rows.sort_by_key(|row| {
            let failed = row.outcome != EndKind::Closed;
            let waited = if failed { row.waited_ns } else { 0 };
            (!failed, core::cmp::Reverse(waited), row.tap, row.flow_id)
        });
        rows
    }
}
