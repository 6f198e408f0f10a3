//! Findings about connections whose packets never pass because of their length.

use std::collections::{HashMap, HashSet};

use roce_model::{
    AckTimeout, Address, Confidence, EventKind, EventRow, Evidence, FindingRow, FlowId, FlowRow, Severity,
    Span, TapId, Time,
};

use super::super::directory::name_of;
use super::super::numbers::{counted, note_first};
use super::rule::{FindingOf as _, Rule};
use super::worst::Worst;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
type Set<K> = HashSet<K, foldhash::fast::RandomState>;
/// A tap, and the two hosts in the direction of packets.
type Way = (TapId, Address, Address);

/// Flows of each kind that are kept at most.
const MAX_KEPT: usize = 1 << 16;
/// Runs after a timer, or of answers to NAKs, from which a connection repeats. `retry_cnt` is 7 by default (rdma_cm, perftest, NCCL).
const MIN_RUNS: u64 = 3;
/// Packets of the length in question, from which it is no chance that each was lost where a receiver answers.
const MIN_LOST: u64 = 8;

pub(super) const UNPASSED: Rule = Rule {
    id: "mtu.exceeded",
    title: "packets of a length never pass",
    meaning: "A connection repeats its first packets until it gives up, while shorter packets between the same two hosts arrive: a link on \
              the way has a smaller MTU than the ends, and drops what is longer without a word.",
    method: "Connections that went back to where they began three times or more, and of which nothing was ever acknowledged, against \
             those that the same two hosts had in the same time and direction: packets of some are acknowledged, and all of these are shorter. \
             ack_timeout is the largest local ACK timeout that fits the waits between repeats.",
    source: "IBTA 9.7.6.1.3 (an adapter waits 4.096 us times 2^n, up to four times as long); IEEE 802.3 bridges drop frames above their limit.",
    thresholds: &[],
    severity: Severity::Warning,
    confidence: "high when the receiver of eight such packets or more NAKed each time what came behind them: it is alive, and got the shorter \
                 packets of this connection; medium without its NAKs; low for one connection without them, whose queue pair may be gone",
    ..Rule::TALLIED
};

/// A connection of which nothing was acknowledged.
#[derive(Clone, Debug)]
struct TriedConnection {
    flow: FlowId,
    peer: Option<FlowId>,
    way: Way,
    first: Time,
    last: Time,
    /// Length of its longest packets, in bytes of payload.
    length: u64,
    packets: u64,
    timeouts: u64,
    waited: u64,
    /// The PSN that it began with.
    begin: Option<u32>,
    name: String,
}

/// A connection to whose requests answers came.
#[derive(Clone, Copy, Debug)]
struct AnsweredConnection {
    way: Way,
    peer: Option<FlowId>,
    /// Its first packet, and its last answer.
    times: (Time, Time),
    /// Length of its longest packets, in bytes of payload.
    length: u64,
}

/// Runs of a flow that began at one PSN, one after another.
#[derive(Clone, Copy, Debug)]
struct EqualRuns {
    psn: u32,
    count: u64,
    /// When the first of them began.
    first: Time,
}

/// Answers that a flow carries.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    acks: u64,
    naks: u64,
}

/// Flows of one way of which something was acknowledged.
#[derive(Clone, Debug, Default)]
struct PassedTraffic {
    /// First packet of each, and its last answer.
    times: Vec<(Time, Time)>,
    /// Length of the longest packets.
    longest: u64,
}

impl PassedTraffic {
    /// Joins times that overlap, in order.
    fn join(&mut self) {
        self.times.sort_unstable();
        let mut joined: Vec<(Time, Time)> = Vec::new();
        for (first, last) in self.times.drain(..) {
            match joined.last_mut().filter(|(_, end)| first <= *end) {
                Some((_, end)) => *end = last.max(*end),
                None => joined.push((first, last)),
            }
        }
        self.times = joined;
    }

    /// True if one of them was there between two times; they are joined.
    fn overlaps(&self, first: Time, last: Time) -> bool {
        let place = self.times.partition_point(|(_, end)| *end < first);
        self.times.get(place).is_some_and(|(begin, _)| *begin <= last)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct UnpassedTally {
    repeated: Vec<TriedConnection>,
    runs: Map<(TapId, FlowId), EqualRuns>,
    answered: Vec<AnsweredConnection>,
    answers: Map<(TapId, FlowId), Answers>,
    /// Ways of answers that fit no flow: what they acknowledge is not known.
    unpaired: Set<Way>,
}

impl UnpassedTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        let (Some(flow), Some(psn)) = (event.flow_id, event.psn) else {
            return;
        };
        let key = (event.tap, flow);
        match event.kind {
            EventKind::RetransmissionRun if self.runs.len() < MAX_KEPT || self.runs.contains_key(&key) => {
                let begun = EqualRuns {
                    psn,
                    count: 0,
                    first: event.time,
                };
                let runs = self.runs.entry(key).or_insert(begun);
                if runs.psn != psn {
                    *runs = begun;
                }
                runs.count += 1;
                // Runs whose causes are not sure are reported late.
                runs.first = runs.first.min(event.time);
            }
            EventKind::Epoch => {
                self.runs.remove(&key);
            }
            _ => {}
        }
    }

    /// The runs of a connection that went back to where it began again and again, whatever it sent in between.
    fn stuck(&self, tried: &TriedConnection) -> Option<EqualRuns> {
        let runs = self.runs.get(&(tried.way.0, tried.flow)).copied();
        runs.filter(|runs| runs.count >= MIN_RUNS && Some(runs.psn) == tried.begin)
    }

    pub(super) fn flow(&mut self, row: &FlowRow) {
        let way = (row.tap, row.source, row.destination);
        if row.acks > 0 || row.naks > 0 {
            if self.answers.len() < MAX_KEPT {
                let answers = self.answers.entry((row.tap, row.flow_id)).or_default();
                answers.acks = answers.acks.saturating_add(row.acks);
                answers.naks = answers.naks.saturating_add(row.nak_sequence);
            }
            if row.peer_flow_id.is_none() && self.unpaired.len() < MAX_KEPT {
                self.unpaired.insert(way);
            }
        }
        // A message in one packet has this length.
        let length = row.path_mtu.map(u64::from).or(row.message_bytes_max);
        let Some(length) = length.filter(|_| row.data_packets > 0) else {
            return;
        };
        if row.ack_rtt_count > 0 && self.answered.len() < MAX_KEPT {
            // A host that went away since answers nothing, whatever the length.
            let until = row.last_answer_time.unwrap_or(row.last_time);
            self.answered.push(AnsweredConnection {
                way,
                peer: row.peer_flow_id,
                times: (row.first_time, until),
                length,
            });
        }
        if matches!(row.service, "RC" | "XRC")
            && row.retransmission_runs >= MIN_RUNS
            && self.repeated.len() < MAX_KEPT
        {
            self.repeated.push(TriedConnection {
                flow: row.flow_id,
                peer: row.peer_flow_id,
                way,
                first: row.first_time,
                last: row.last_time,
                length,
                packets: row.data_packets,
                timeouts: row.runs_timeout,
                waited: row.time_timeout_ns.unwrap_or_default(),
                begin: row.first_psn,
                name: name_of(row),
            });
        }
    }

    /// Connections of which something was acknowledged. A NAK acknowledges nothing of one that is stuck.
    fn acknowledged(&self) -> Map<Way, PassedTraffic> {
        let mut acknowledged: Map<Way, PassedTraffic> = Map::default();
        for answered in &self.answered {
            let answers = answered
                .peer
                .and_then(|peer| self.answers.get(&(answered.way.0, peer)));
            if answers.is_none_or(|answers| answers.acks > 0) {
                let passed = acknowledged.entry(answered.way).or_default();
                passed.times.push(answered.times);
                passed.longest = passed.longest.max(answered.length);
            }
        }
        acknowledged
    }

    /// The finding and its flows; nothing is added behind it.
    pub(super) fn unpassed(self) -> Option<(FindingRow, Vec<FlowId>)> {
        let mut flows = Vec::new();
        let mut worst = Worst::default();
        let (mut length, mut passed, mut runs, mut timer) = (u64::MAX, 0, 0_u64, None);
        let mut confidence = Confidence::High;
        let mut lacks_naks = true;
        let mut first: Option<Time> = None;
        let mut acknowledged = self.acknowledged();
        for passed in acknowledged.values_mut() {
            passed.join();
        }
        for tried in &self.repeated {
            let Some(repeats) = self.stuck(tried) else {
                continue;
            };
            let (tap, source, destination) = tried.way;
            let answers = tried.peer.and_then(|peer| self.answers.get(&(tap, peer)));
            let answers = answers.copied().unwrap_or_default();
            let is_unclear = tried.peer.is_none() && self.unpaired.contains(&(tap, destination, source));
            let passed_here = acknowledged.get(&tried.way);
            // Shorter packets were acknowledged after this one had been repeated: its host was alive.
            let passed_here = passed_here.filter(|others| others.overlaps(repeats.first, tried.last));
            let Some(longest) = passed_here.map(|others| others.longest) else {
                continue;
            };
            if longest >= tried.length || answers.acks > 0 || is_unclear {
                continue;
            }
            if answers.naks == 0 || tried.packets < MIN_LOST {
                confidence = Confidence::Medium;
            }
            lacks_naks &= answers.naks == 0;
            flows.push(tried.flow);
            worst.add(tried.waited, || tried.name.clone());
            length = length.min(tried.length);
            passed = passed.max(longest);
            runs = runs.saturating_add(repeats.count);
            timer = timer.or_else(|| exponent(tried.waited.checked_div(tried.timeouts)?));
            note_first(&mut first, tried.first);
        }
        if worst.all() == 0 {
            return None;
        }
        // One queue pair that is gone looks the same.
        if lacks_naks && worst.all() == 1 {
            confidence = Confidence::Low;
        }
        let mut evidence = Evidence::default();
        evidence
            .count("flows", worst.all())
            .count("repeats", runs)
            .count("packet_bytes", length)
            .count("passed_bytes", passed)
            .count("waited_ns", worst.sum());
        let fits = timer.map_or_else(String::new, |timer| {
            evidence.count("ack_timeout", timer);
            format!(", as a timeout of {timer} makes it")
        });
        evidence.text("worst", worst.names());
        let finding = UNPASSED.finding(
            (Severity::Warning, confidence),
            format!(
                "nothing of {length} bytes was ever acknowledged, while {passed} bytes were: the MTU of a link on the way is smaller; {} stood \
                 still {} in {}{fits}: {}",
                counted(worst.all(), "connection"),
                Span(worst.sum()),
                counted(runs, "repeat"),
                worst.names()
            ),
            evidence,
            // IP, UDP, BTH, RETH and ICRC: 20 + 8 + 12 + 16 + 4 bytes, with IPv6 20 more (IBTA annex A17.3.1).
            "Compare the MTU of the interfaces and of each switch port between {senders} and {receivers} with the queue pair's path MTU: an IP packet has up \
             to 60 bytes more than that, with IPv6 80.",
            first,
        );
        Some((finding, flows))
    }
}

/// The largest exponent of a local ACK timeout that is no longer than a wait, if any is.
fn exponent(waited_ns: u64) -> Option<u64> {
    waited_ns
        .checked_div(AckTimeout::UNIT_NS)?
        .checked_ilog2()
        .map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_is_the_largest_that_ends_before_the_wait() {
        // 4.096 us times 2^12 are 16.78 ms, times 2^13 33.55 ms.
        assert_eq!(exponent(16_777_216), Some(12));
        assert_eq!(exponent(18_864_922), Some(12));
        assert_eq!(exponent(33_554_432), Some(13));
        assert_eq!(exponent(4_000), None);
    }
}
