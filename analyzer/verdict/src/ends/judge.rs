//! The outcome of a connection.

use std::collections::{BTreeMap, HashSet};

use roce_model::{
    AckTimeout, Address, Confidence, EndKind, EndRow, FlowId, Period, Psn, RunSummary, Span, TapId, TapRow,
    Time,
};

use super::{Ends, MAX_REPEATS, Map, Refusal, Repeats, Requester, SentPsns, Way};

/// Repeats from which a request is one that nobody answers: a single one is any loss.
const MIN_REPEATS: u64 = 2;
/// RNR NAKs for one request from which the requester may have given up.
const MIN_RNR_NAKS: u64 = 2;
/// A requester that was asked to wait comes again soon: adapters take up to this beyond the timer.
const RNR_SLACK: Span = Span(10_000_000);
/// Silence from which a request without an answer waits longer than common timers: 4.096 us x 2^18 is 1.07 s.
const MIN_SILENCE: Span = Span(AckTimeout::new(18).nanos());
/// Packets of a refused connection that were under way when the NAK came arrive within this time.
const UNDER_WAY: Span = Span(1_000_000);
/// ICRCs from which it is no chance that each was wrong.
const MIN_ICRCS: u64 = 3;

/// How a connection ended, before the rest of the row.
struct JudgedEnd {
    outcome: EndKind,
    time: Time,
    /// The last sign of progress.
    since: Time,
    psn: Option<u32>,
    refusal: Option<&'static str>,
    rnr_naks: u64,
    confidence: Confidence,
}

impl JudgedEnd {
    fn new(outcome: EndKind, time: Time, since: Time, confidence: Confidence) -> Self {
        Self {
            outcome,
            time,
            since,
            psn: None,
            refusal: None,
            rnr_naks: 0,
            confidence,
        }
    }
}

/// The recording of a tap.
struct TapRecording<'a> {
    /// Its last packet.
    end: Option<Time>,
    /// Times without a silence in between, the first ones of them.
    stretches: &'a [Period],
    /// Nothing shows that packets are missing: neither the capture's own counts nor what was acknowledged.
    is_whole: bool,
}

impl<'a> TapRecording<'a> {
    fn new(run: &'a RunSummary, place: usize, row: &TapRow, ends: &Ends) -> Self {
        Self {
            end: row.last_time,
            stretches: run.stretches.get(place).map(Vec::as_slice).unwrap_or_default(),
            is_whole: row.records_lost() == 0 && !ends.holed.contains(&row.tap),
        }
    }
}

/// Facts that all connections are compared with.
pub(super) struct Judgement<'a> {
    ends: &'a Ends,
    taps: Map<TapId, TapRecording<'a>>,
    /// First packets of the connections of two hosts, in the order of time.
    begins: BTreeMap<Way, Vec<(Time, FlowId)>>,
    /// The first flow on a way that has this peer.
    by_peer: Map<(Way, FlowId), FlowId>,
    /// Flows on a way that have no known peer, with the PSNs that they sent, in the order of time.
    unpaired: Map<Way, Vec<(Time, FlowId, SentPsns)>>,
    /// Hosts to which packets were captured.
    reached: HashSet<(TapId, Address), foldhash::fast::RandomState>,
    /// The refusal of each flow of requests, the latest one.
    refused: Map<(TapId, FlowId), Refusal>,
}

impl<'a> Judgement<'a> {
    pub(super) fn new(ends: &'a Ends, run: &'a RunSummary) -> Self {
        let mut begins: BTreeMap<Way, Vec<(Time, FlowId)>> = BTreeMap::new();
        for ((tap, flow), requester) in &ends.requesters {
            let way = (*tap, requester.source, requester.destination);
            let begin = (requester.first_time, *flow);
            begins.entry(way).or_default().push(begin);
        }
        let (mut by_peer, mut unpaired) = (Map::default(), Map::<Way, Vec<_>>::default());
        for (way, begins) in &mut begins {
            begins.sort_unstable();
            for (begin, flow) in begins {
                let Some(requester) = ends.requesters.get(&(way.0, *flow)) else {
                    continue;
                };
                if let Some(peer) = requester.peer {
                    by_peer.entry((*way, peer)).or_insert(*flow);
                } else {
                    unpaired
                        .entry(*way)
                        .or_default()
                        .push((*begin, *flow, requester.sent));
                }
            }
        }
        let mut judgement = Self {
            ends,
            taps: run
                .taps
                .iter()
                .enumerate()
                .map(|(place, row)| (row.tap, TapRecording::new(run, place, row, ends)))
                .collect(),
            begins,
            by_peer,
            unpaired,
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
        let way = (refusal.tap, *destination, *source);
        if let Some(flow) = self.by_peer.get(&(way, refusal.carrier)) {
            return Some(*flow);
        }
        let unpaired = self.unpaired.get(&way)?;
        let begun = unpaired.partition_point(|(begin, ..)| *begin <= refusal.time);
        let sent = unpaired[..begun]
            .iter()
            .filter(|(.., sent)| sent.has(refusal.psn));
        let mut flows = sent.map(|(_, flow, _)| *flow);
        let flow = flows.next()?;
        flows.next().is_none().then_some(flow)
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
        let timeouts = repeats.and_then(Repeats::timeouts);
        let is_other = |(_, other): &&(Time, FlowId)| Some(*other) != requester.peer;
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
            timeout_min: timeouts.map(|(least, _)| least.code().into()),
            timeout_max: timeouts.map(|(_, most)| most.code().into()),
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
            .unwrap_or_else(|| {
                let last = requester.last_request;
                JudgedEnd::new(EndKind::Closed, last, last, Confidence::Medium)
            })
    }

    /// A fatal NAK after which neither side went on. One behind which answers came ended a request of a queue pair that was made again.
    fn refusal(&self, tap: TapId, flow: FlowId, requester: &Requester) -> Option<JudgedEnd> {
        let refusal = self.refused.get(&(tap, flow))?;
        let (.., carrier_last) = self.ends.carriers.get(&(tap, refusal.carrier))?;
        let went_on = carrier_last.since(refusal.time) > UNDER_WAY
            || requester.last_answer.is_some_and(|time| time > refusal.time);
        (!went_on).then(|| JudgedEnd {
            psn: Some(refusal.psn),
            refusal: Some(refusal.reason),
            ..JudgedEnd::new(EndKind::Refused, refusal.time, refusal.time, Confidence::High)
        })
    }

    /// RNR NAKs for one request, after the last of which the requester did not come again.
    fn no_buffer(&self, tap: TapId, requester: &Requester) -> Option<JudgedEnd> {
        let not_ready = self.ends.not_ready.get(&(tap, requester.peer?))?;
        let longest = not_ready.timer.0.saturating_mul(AckTimeout::RANGE);
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
        let since = requester.last_answer.unwrap_or(requester.first_time);
        is_over.then(|| JudgedEnd {
            psn: Some(not_ready.psn),
            rnr_naks: not_ready.count,
            ..JudgedEnd::new(EndKind::RnrExhausted, not_ready.last, since, confidence)
        })
    }

    /// Equal sends in the spacing of a timer, behind which nothing new came.
    fn unanswered(&self, tap: TapId, flow: FlowId, requester: &Requester) -> Option<JudgedEnd> {
        let repeats = self.ends.repeats.get(&(tap, flow))?;
        let longest = Span(repeats.longest?);
        let is_last = repeats.count >= MIN_REPEATS
            && requester.last_request.since(repeats.last) <= longest
            && requester.last_answer.is_none_or(|time| time <= repeats.first);
        if !is_last {
            return None;
        }
        let is_first = requester.last_answer.is_none() && repeats.psn == requester.sent.first;
        let (outcome, start) = if is_first {
            (EndKind::NeverAnswered, requester.first_time)
        } else {
            (EndKind::RetriesUnanswered, repeats.first)
        };
        let twice = longest * 2;
        let silence = self.recorded_behind(tap, repeats.last, twice);
        // Where packets are missing, the last repeats may be.
        let is_silent = silence > twice && self.is_whole(tap);
        let has_given_up = repeats.count >= MAX_REPEATS || is_silent;
        // A requester comes again because it got no answer. Where packets to it are captured, none passed here either.
        let shows_answers = self.reached.contains(&(tap, requester.source)) && self.is_whole(tap);
        let is_regular = repeats.timeouts().is_some();
        let confidence = match (has_given_up, shows_answers, is_regular) {
            (true, true, true) => Confidence::High,
            (true, false, _) if repeats.count < MAX_REPEATS => Confidence::Low,
            _ => Confidence::Medium,
        };
        let since = requester.last_answer.unwrap_or(start);
        Some(JudgedEnd {
            psn: Some(repeats.psn),
            ..JudgedEnd::new(outcome, repeats.last, since, confidence)
        })
    }

    /// A request that asked for an answer, and neither got one nor was repeated.
    fn silence(&self, tap: TapId, requester: &Requester) -> Option<JudgedEnd> {
        let since = requester.unanswered_time?;
        let silence = self.recorded_behind(tap, requester.last_request, MIN_SILENCE);
        let is_silent = requester.peer.is_some() && silence >= MIN_SILENCE && self.is_whole(tap);
        is_silent.then(|| JudgedEnd::new(EndKind::Silent, requester.last_request, since, Confidence::Medium))
    }

    /// Time behind `from` in which the tap shows that it recorded: packets came, of whatever flow, none more than `gap` behind the one before.
    /// A tap without any packet may have stopped, as rotated files and filters do.
    fn recorded_behind(&self, tap: TapId, from: Time, gap: Span) -> Span {
        let Some((recording, end)) = self.taps.get(&tap).and_then(|tap| Some((tap, tap.end?))) else {
            return Span(0);
        };
        let stretches = recording.stretches;
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

    /// True if nothing shows that packets are missing at this tap.
    fn is_whole(&self, tap: TapId) -> bool {
        self.taps
            .get(&tap)
            .map_or(!self.ends.holed.contains(&tap), |recording| recording.is_whole)
    }
}

impl SentPsns {
    /// True if the flow sent a request with this PSN.
    fn has(self, psn: u32) -> bool {
        let distance = |to: u32| to.wrapping_sub(self.first) % Psn::COUNT;
        distance(psn) <= distance(self.last)
    }
}

impl Repeats {
    /// The local ACK timeouts, the smallest and the largest, that fit all times between equal sends.
    fn timeouts(&self) -> Option<(AckTimeout, AckTimeout)> {
        let (shortest, longest) = (self.shortest?, self.longest?);
        // Stamps are a little off.
        AckTimeout::fitting(1..32, shortest.saturating_add(shortest / 64), longest)
    }
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
