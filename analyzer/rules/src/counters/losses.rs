//! Receive buffers that were not posted, and losses of RDMA ports.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Severity};
use roce_spelling::counted;

use super::growth::{Growths, share_text};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by};

/// RNR NAKs or packets without a buffer per second from which on they are a warning; the alert has the same.
const NOT_READY_PER_SECOND: f64 = 1.0;
/// As above, between recordings of unknown time.
const MIN_NOT_READY: f64 = 100.0;
/// Share by which two counts that are taken for equal may differ: the readings of two counters are some packets apart.
const EQUAL_DIFFERENCE: f64 = 0.01;
/// Share of received packets from which on packets out of sequence are a warning: each costs a round trip, and with go-back-N all packets
/// that are under way.
const LOST_SHARE: f64 = 1e-5;
/// Losses per second from which on they are a warning where packets are not counted.
const LOST_PER_SECOND: f64 = 1.0;
/// Share of a host's bytes that one priority carries when it is the class of its data.
const CLASS_SHARE: f64 = 0.9;

pub(super) const RULES: &[CounterRule] = &[
    CounterRule {
        id: "counters.not_ready",
        title: "receive buffers are posted too late",
        meaning: "A packet found no receive buffer; its sender gets an RNR NAK and waits for the RNR timer (10 us to 655 ms). This is the \
                  receiving program, not the network.",
        method: "out_of_buffer or RNR NAKs: 1 a second, or 100 between recordings of unknown time: warning; fewer: note. Equal within 1 %: each \
                 RNR NAK is a buffer that was missing",
        source: "IBTA 9.7.5.2.8 (RNR NAK); mlx5 counters out_of_buffer and rnr_nak_retry_err, bnxt_re rx_out_of_buffer and rnr_naks_rcvd",
        next: "Post receives earlier, or more of them, in the receiving program; or use WRITEs, which need none.",
        severity: Severity::Warning,
        run: by(not_ready),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.lossy_class",
        title: "packets are lost in a class without PFC",
        meaning: "Packets arrive out of sequence, or NAKs and timeouts say that they did not arrive, and the class that carries the data is lossy: \
                  a full queue drops instead of pausing.",
        method: "packets out of sequence, sequence NAKs or timeouts, whichever are most, as one loss may be counted by each: 0.001 % of the \
                 packets received, or 1 a second where packets are not counted, is a warning; less is a note. Named with it: discards of the same port, and a priority with 90 % of the bytes on which \
                 PFC is off",
        source: "mlx5 counters out_of_sequence, packet_seq_err, local_ack_timeout_err; RDMA over Commodity Ethernet at Scale (SIGCOMM 2016): a \
                 loss of 0.4 % with go-back-0 leaves no goodput",
        next: "Find the port that discards: `fabric counters` of the switches on the way, queue drops of this class. Turn PFC or ECN on for the \
               class, or move the data into the lossless one (DSCP, NCCL_IB_TC).",
        severity: Severity::Warning,
        confidence: "likely",
        run: by(lossy_class),
        ..NO_TEXTS
    },
];

/// How many are many: by time where it is known.
fn is_much(growths: &Growths<'_>, count: f64, per_second: f64, unknown: f64) -> bool {
    match growths.per_second(count) {
        Some(rate) => rate >= per_second,
        None => count >= unknown,
    }
}

/// True if two counts are taken for equal.
fn is_equal(one: f64, other: f64) -> bool {
    one > 0.0 && (one - other).abs() <= one.max(other) * EQUAL_DIFFERENCE
}

fn not_ready(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let counters = [
        Counter::PortOutOfBufferDrops,
        Counter::PortRnrNaksReceived,
        Counter::PortRnrNaksSent,
    ];
    let found = growths.objects(&counters).into_iter().filter_map(|object| {
        let sum = |counter| growths.sum(counter, object).unwrap_or(0.0);
        let (missing, received, sent) = (
            sum(Counter::PortOutOfBufferDrops),
            sum(Counter::PortRnrNaksReceived),
            sum(Counter::PortRnrNaksSent),
        );
        let most = missing.max(received).max(sent);
        if most <= 0.0 {
            return None;
        }
        let naks = if received > 0.0 { received } else { sent };
        let (text, follows) = if is_equal(missing, naks) {
            (
                format!(
                    "{} without a receive buffer, and as many RNR NAKs ({})",
                    counted(missing, "packet"),
                    roce_spelling::whole(naks)
                ),
                "every RNR NAK is a receive that a program posted too late; the network lost nothing",
            )
        } else if missing > 0.0 {
            (
                format!("{} without a receive buffer", counted(missing, "packet")),
                "this host's program posts receives too late",
            )
        } else if received > 0.0 {
            (
                format!("{} received", counted(received, "RNR NAK")),
                "the peers' programs post receives too late, and this sender waits for each",
            )
        } else {
            (
                format!("{} sent", counted(sent, "RNR NAK")),
                "this host's program posts receives too late",
            )
        };
        let severity = if is_much(growths, most, NOT_READY_PER_SECOND, MIN_NOT_READY) {
            Severity::Warning
        } else {
            Severity::Info
        };
        let sign = CounterSign::new(growths, severity, object, &text).and(follows);
        Some(sign.number("out_of_buffer", missing).number("rnr_naks", naks))
    });
    found.collect()
}

/// Counters that show that a packet did not arrive, or arrived behind a later one.
const LOSSES: [(Counter, &str); 4] = [
    (Counter::PortOutOfSequencePackets, "packet"),
    (Counter::PortPacketSequenceErrors, "sequence NAK"),
    (Counter::PortImpliedNakSequenceErrors, "missing response"),
    (Counter::PortAckTimeouts, "timeout"),
];

/// Discards that a network interface counts.
const DISCARDS: [Counter; 2] = [Counter::PriorityDiscards, Counter::NetdevDiscards];

/// Losses of a port: its largest count, as a packet that is out of sequence, the NAK that answers it and a timeout may be of one loss.
pub(super) fn lost(growths: &Growths<'_>, object: &str) -> f64 {
    let counts = LOSSES.map(|(counter, _)| growths.sum(counter, object).unwrap_or(0.0));
    counts.into_iter().fold(0.0, f64::max)
}

fn lossy_class(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for object in growths.objects(&LOSSES.map(|(counter, _)| counter)) {
        let mut said = Vec::new();
        let mut behind = 0.0;
        let count = lost(growths, object);
        for (counter, noun) in LOSSES {
            let growth = growths.sum(counter, object).unwrap_or(0.0);
            if growth > 0.0 {
                let of = counter == Counter::PortOutOfSequencePackets;
                behind += if of { growth } else { 0.0 };
                said.push(format!(
                    "{}{}",
                    counted(growth, noun),
                    if of { " out of sequence" } else { "" }
                ));
            }
        }
        if count <= 0.0 {
            continue;
        }
        let class = lossy_priorities(growths, object);
        let discards = discards(growths, object);
        let packets = growths
            .sum(Counter::PortReceivedPackets, object)
            .filter(|packets| *packets > 0.0);
        let is_much = match packets {
            Some(packets) => count / packets >= LOST_SHARE,
            None => is_much(growths, count, LOST_PER_SECOND, MIN_NOT_READY),
        };
        let is_judged = is_much && (!class.is_empty() || !discards.is_empty());
        let share = packets
            .filter(|_| behind > 0.0)
            .map_or_else(String::new, |packets| {
                format!(" ({} of those received)", share_text((behind / packets).min(1.0)))
            });
        let mut follows = Vec::new();
        if !discards.is_empty() {
            follows.push(format!("discarded meanwhile: {}", discards.join(", ")));
        }
        follows.extend(class.iter().cloned());
        if follows.is_empty() {
            follows.push("packets are lost on the way to this port, or behind it".to_owned());
        }
        let severity = if is_judged {
            Severity::Warning
        } else {
            Severity::Info
        };
        let text = format!("{}{share}", said.join(", "));
        let sign = CounterSign::new(growths, severity, object, &text).and(&follows.join("; "));
        found.push(sign.number("losses", count));
    }
    found
}

/// Discards of a port's interfaces, in words.
fn discards(growths: &Growths<'_>, port: &str) -> Vec<String> {
    let mut all = Vec::new();
    let interfaces = growths.objects(&DISCARDS).into_iter();
    for object in interfaces.filter(|interface| growths.may_belong(interface, port)) {
        // The priorities are parts of the port's sum.
        let sums = DISCARDS.map(|counter| growths.sum(counter, object).unwrap_or(0.0));
        let most = sums.into_iter().fold(0.0, f64::max);
        if most > 0.0 {
            let priorities: BTreeSet<u8> = growths
                .of_object(Counter::PriorityDiscards, object)
                .filter(|(_, growth)| *growth > 0.0)
                .filter_map(|(sample, _)| sample.priority)
                .collect();
            let of: Vec<String> = priorities.iter().map(u8::to_string).collect();
            let of = if of.is_empty() {
                String::new()
            } else {
                format!(" of priority {}", of.join(" and "))
            };
            all.push(format!("{}{of} by {object}", counted(most, "packet")));
        }
    }
    all
}

/// Interfaces of a port whose data is in a priority on which PFC is off, in words.
fn lossy_priorities(growths: &Growths<'_>, port: &str) -> Vec<String> {
    let mut is_on: BTreeMap<(&str, u8), bool> = BTreeMap::new();
    for sample in growths.states(Counter::PfcEnabled) {
        if let Some(priority) = sample.priority {
            is_on.insert((&*sample.object, priority), sample.value > 0.5);
        }
    }
    let mut bytes: BTreeMap<&str, BTreeMap<u8, f64>> = BTreeMap::new();
    for counter in [Counter::PriorityReceivedBytes, Counter::PriorityTransmittedBytes] {
        for (sample, growth) in growths.of(counter) {
            if let Some(priority) = sample
                .priority
                .filter(|_| growths.may_belong(&sample.object, port))
            {
                *bytes
                    .entry(&*sample.object)
                    .or_default()
                    .entry(priority)
                    .or_default() += growth;
            }
        }
    }
    let lossy = bytes.into_iter().filter_map(|(object, priorities)| {
        let all: f64 = priorities.values().sum();
        let (priority, most) = priorities.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let is_class = most > 0.0 && most >= all * CLASS_SHARE;
        (is_class && is_on.get(&(object, priority)) == Some(&false)).then(|| {
            format!(
                "priority {priority} of {object} has {} of the bytes and no PFC: a lossy class",
                share_text(most / all)
            )
        })
    });
    lossy.collect()
}
