//! Receive buffers that were not posted, and losses of RDMA ports.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Severity};
use roce_spelling::counted;

use super::growth::{Growths, share_text};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by, severity};

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
                 PFC is off, or an interface without PFC and pauses. Without either of the two: counters.losses; discards of priorities with PFC alone: counters.lossless_loss",
        source: "mlx5 counters out_of_sequence, packet_seq_err, local_ack_timeout_err; RDMA over Commodity Ethernet at Scale (SIGCOMM 2016): a \
                 loss of 0.4 % with go-back-0 leaves no goodput",
        next: "Find the port that discards: `fabric counters` of the switches on the way, queue drops of this class. Turn PFC or ECN on for the \
               class, or move the data into the lossless one (DSCP, NCCL_IB_TC).",
        severity: Severity::Warning,
        confidence: "likely",
        run: by(lossy_class),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.lossless_loss",
        title: "packets are lost in a class with PFC",
        meaning: "The adapter discarded packets of a priority for which it pauses its neighbour. Pauses came too late or were not obeyed: the \
                  buffer holds less than what is under way when a pause is sent, or the neighbour does not honour PFC.",
        method: "discards of a priority on which PFC is on, or for which pauses were sent: 0.001 % of the packets received, or 1 a second where \
                 packets are not counted, is a warning; less is a note",
        source: "IEEE 802.1Qbb-2011, annex O (headroom: cable, frames under way, response time of the neighbour); mlx5 rx_prio{i}_discards, \
                 rx_prio{i}_buf_discard, rx_prio{i}_cong_discard",
        next: "Compare headroom (mlnx_qos: buffer size, cable length) with the real cable; see whether the switch port has PFC on for this \
               priority, and whether it counts received pauses.",
        severity: Severity::Warning,
        confidence: "likely",
        run: by(lossless_loss),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.losses",
        title: "packets are lost, reordered or answered too late",
        meaning: "Packets arrive out of sequence, or NAKs and timeouts come, and nothing here says where. Packets out of sequence alone need not \
                  be lost: adaptive routing and packet spraying reorder them.",
        method: "packets out of sequence, sequence NAKs, missing responses or timeouts, without discards of the same port and without a class \
                 known to be lossy: note. Named with it: priorities with PFC, by mlnx_qos, dcb or lldptool in the reading",
        source: "mlx5 counters out_of_sequence, packet_seq_err, implied_nak_seq_err, local_ack_timeout_err; NVIDIA, adaptive routing for RoCE",
        next: "If adaptive routing or spraying is on, packets out of sequence are expected: look at throughput. Otherwise find the port that \
               discards, with `fabric counters` of the switches on the way.",
        severity: Severity::Info,
        confidence: "likely",
        run: by(losses),
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

/// Losses of a port, and what is known of their place.
struct PortLosses<'a> {
    object: &'a str,
    /// Each counter that rose, in words.
    said: String,
    count: f64,
    is_much: bool,
    /// Packets out of sequence are the only sign.
    is_order_alone: bool,
    /// Timeouts are the only sign.
    are_timeouts_alone: bool,
    discards: Vec<PortDiscards<'a>>,
    classes: PortClasses,
}

/// Classes of a port's interfaces, in words.
#[derive(Default)]
struct PortClasses {
    /// Priorities with the data and without PFC, and interfaces without PFC.
    lossy: Vec<String>,
    /// Priorities with PFC.
    lossless: Vec<String>,
}

impl PortLosses<'_> {
    /// Discards that may be of a class without PFC, in words.
    fn lossy_discards(&self) -> Vec<String> {
        let lossy = self.discards.iter().filter(|discards| !discards.is_lossless);
        lossy.map(PortDiscards::words).collect()
    }
}

fn port_losses<'a>(growths: &Growths<'a>) -> Vec<PortLosses<'a>> {
    let mut found = Vec::new();
    if growths.is_total() {
        return found;
    }
    let mut counters = LOSSES.map(|(counter, _)| counter).to_vec();
    counters.push(Counter::PortRetransmittedPackets);
    for object in growths.objects(&counters) {
        let rise = |counter| growths.sum(counter, object).unwrap_or(0.0);
        let repeated = rise(Counter::PortRetransmittedPackets);
        // With go-back-N more packets are sent again than were lost: their count is taken where nothing else is counted.
        let lost = lost(growths, object);
        let count = if lost > 0.0 { lost } else { repeated };
        if count <= 0.0 {
            continue;
        }
        let risen = LOSSES.into_iter().filter(|(counter, _)| rise(*counter) > 0.0);
        let mut said: Vec<String> = risen
            .map(|(counter, noun)| {
                let is_order = counter == Counter::PortOutOfSequencePackets;
                let of = if is_order { " out of sequence" } else { "" };
                format!("{}{of}", counted(rise(counter), noun))
            })
            .collect();
        if repeated > 0.0 {
            said.push(format!("{} sent again", counted(repeated, "packet")));
        }
        let behind = rise(Counter::PortOutOfSequencePackets);
        let timeouts = rise(Counter::PortAckTimeouts);
        let packets = growths
            .sum(Counter::PortReceivedPackets, object)
            .filter(|packets| *packets > 0.0);
        let share = packets
            .filter(|_| behind > 0.0)
            .map_or_else(String::new, |packets| {
                format!(" ({} of those received)", share_text((behind / packets).min(1.0)))
            });
        found.push(PortLosses {
            object,
            count,
            is_much: match packets {
                Some(packets) => count / packets >= LOST_SHARE,
                None => is_much(growths, count, LOST_PER_SECOND, MIN_NOT_READY),
            },
            is_order_alone: said.len() == 1 && behind > 0.0,
            are_timeouts_alone: said.len() == 1 && timeouts > 0.0,
            said: format!("{}{share}", said.join(", ")),
            discards: discards(growths, object),
            classes: port_classes(growths, object),
        });
    }
    found
}

fn lossy_class(growths: &Growths<'_>) -> Vec<CounterSign> {
    let found = port_losses(growths).into_iter().filter_map(|losses| {
        let discards = losses.lossy_discards();
        if discards.is_empty() && losses.classes.lossy.is_empty() {
            return None;
        }
        let mut follows = Vec::new();
        if !discards.is_empty() {
            follows.push(format!("discarded meanwhile: {}", discards.join(", ")));
        }
        follows.extend(losses.classes.lossy.iter().cloned());
        let sign = CounterSign::new(growths, severity(losses.is_much), losses.object, &losses.said);
        Some(sign.and(&follows.join("; ")).number("losses", losses.count))
    });
    found.collect()
}

fn losses(growths: &Growths<'_>) -> Vec<CounterSign> {
    let found = port_losses(growths).into_iter().filter_map(|losses| {
        if !losses.discards.is_empty() || !losses.classes.lossy.is_empty() {
            return None;
        }
        let follows = if losses.is_order_alone {
            "packets are lost, or reordered on the way (adaptive routing, packet spraying): no sequence NAK and no timeout says that one is missing"
        } else if losses.are_timeouts_alone {
            "a request or its answer was lost, or the peer answered too late"
        } else {
            "packets are lost on the way to this port, or behind it"
        };
        let mut follows = vec![follows.to_owned()];
        follows.extend(losses.classes.lossless);
        let sign = CounterSign::new(growths, Severity::Info, losses.object, &losses.said);
        Some(sign.and(&follows.join("; ")).number("losses", losses.count))
    });
    found.collect()
}

fn lossless_loss(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let objects = growths.objects(&[Counter::PriorityDiscards]).into_iter();
    let found = objects.filter_map(|object| {
        let discards = interface_discards(growths, object)?;
        if !discards.is_lossless {
            return None;
        }
        let packets = growths
            .sum(Counter::PriorityReceivedPackets, object)
            .filter(|packets| *packets > 0.0);
        let is_much = match packets {
            Some(packets) => discards.count / packets >= LOST_SHARE,
            None => is_much(growths, discards.count, LOST_PER_SECOND, MIN_NOT_READY),
        };
        let text = format!(
            "{}{} discarded although PFC is on for it",
            counted(discards.count, "packet"),
            discards.of_priorities()
        );
        let sign = CounterSign::new(growths, severity(is_much), object, &text)
            .and("headroom too small for the cable, or a neighbour that ignores pauses");
        Some(sign.number("discarded_packets", discards.count))
    });
    found.collect()
}

/// Packets that a network interface discarded.
pub(super) struct PortDiscards<'a> {
    interface: &'a str,
    pub(super) count: f64,
    priorities: BTreeSet<u8>,
    /// All are of priorities with PFC.
    is_lossless: bool,
}

impl PortDiscards<'_> {
    fn of_priorities(&self) -> String {
        let all: Vec<String> = self.priorities.iter().map(u8::to_string).collect();
        if all.is_empty() {
            String::new()
        } else {
            format!(" of priority {}", all.join(" and "))
        }
    }

    fn words(&self) -> String {
        format!(
            "{}{} by {}",
            counted(self.count, "packet"),
            self.of_priorities(),
            self.interface
        )
    }
}

/// Discards of a port's interfaces.
fn discards<'a>(growths: &Growths<'a>, port: &str) -> Vec<PortDiscards<'a>> {
    let interfaces = growths.objects(&DISCARDS).into_iter();
    interfaces
        .filter(|interface| growths.may_belong(interface, port))
        .filter_map(|interface| interface_discards(growths, interface))
        .collect()
}

/// Discards of one interface. The reasons of a priority may name one packet twice, and priorities are parts of the port's sum: of each the
/// largest counts, and where the port counts its discards, they are all.
pub(super) fn interface_discards<'a>(growths: &Growths<'a>, interface: &'a str) -> Option<PortDiscards<'a>> {
    let mut by_priority: BTreeMap<u8, f64> = BTreeMap::new();
    for (sample, growth) in growths.of_object(Counter::PriorityDiscards, interface) {
        if let Some(priority) = sample.priority.filter(|_| growth > 0.0) {
            let most = by_priority.entry(priority).or_default();
            *most = most.max(growth);
        }
    }
    let of_priorities: f64 = by_priority.values().sum();
    let of_port = growths.sum(Counter::NetdevDiscards, interface).unwrap_or(0.0);
    let count = if of_port > 0.0 { of_port } else { of_priorities };
    let priorities: BTreeSet<u8> = by_priority.into_keys().collect();
    let is_lossless = !priorities.is_empty()
        && priorities
            .iter()
            .all(|priority| has_pfc(growths, interface, *priority));
    (count > 0.0).then_some(PortDiscards {
        interface,
        count,
        priorities,
        is_lossless,
    })
}

/// True if PFC is known to be on for a priority: the setting says it, or without one the frames that were ever sent.
fn has_pfc(growths: &Growths<'_>, interface: &str, priority: u8) -> bool {
    let value = |counter| {
        growths
            .states(counter)
            .find(|sample| &*sample.object == interface && sample.priority == Some(priority))
            .map(|sample| sample.value)
    };
    let is_on = value(Counter::PfcEnabled).map(|value| value > 0.5);
    is_on.unwrap_or_else(|| value(Counter::PfcTransmittedFrames).is_some_and(|frames| frames > 0.0))
}

/// Classes of a port's interfaces, by the settings of PFC that a reading has.
fn port_classes(growths: &Growths<'_>, port: &str) -> PortClasses {
    let mut is_on: BTreeMap<&str, BTreeMap<u8, bool>> = BTreeMap::new();
    let states = growths.states(Counter::PfcEnabled);
    for sample in states.filter(|sample| growths.may_belong(&sample.object, port)) {
        if let Some(priority) = sample.priority {
            let of_interface = is_on.entry(&*sample.object).or_default();
            of_interface.insert(priority, sample.value > 0.5);
        }
    }
    let mut classes = PortClasses::default();
    for (object, priorities) in is_on {
        let on: Vec<String> = priorities
            .iter()
            .filter(|(_, is_on)| **is_on)
            .map(|(priority, _)| priority.to_string())
            .collect();
        match data_class(growths, object) {
            Some((priority, share)) => {
                let share = share_text(share);
                let of = format!("priority {priority} of {object} has {share} of the bytes");
                match priorities.get(&priority) {
                    Some(false) => classes.lossy.push(format!("{of} and no PFC: a lossy class")),
                    Some(true) => classes.lossless.push(format!("{of} and PFC: a lossless class")),
                    None => {}
                }
            }
            None if on.is_empty() && priorities.len() == 8 && !pauses(growths, object) => {
                classes.lossy.push(format!(
                    "PFC is off for all priorities of {object}: each class is lossy"
                ));
            }
            None if !on.is_empty() => classes.lossless.push(format!(
                "PFC is on for priority {} of {object}: that class is lossless, others are lossy",
                on.join(" and ")
            )),
            None => {}
        }
    }
    classes
}

/// The priority that carries the data of an interface, and its share of the bytes.
fn data_class(growths: &Growths<'_>, interface: &str) -> Option<(u8, f64)> {
    let mut bytes: BTreeMap<u8, f64> = BTreeMap::new();
    for counter in [Counter::PriorityReceivedBytes, Counter::PriorityTransmittedBytes] {
        for (sample, growth) in growths.of_object(counter, interface) {
            if let Some(priority) = sample.priority {
                *bytes.entry(priority).or_default() += growth;
            }
        }
    }
    let all: f64 = bytes.values().sum();
    let (priority, most) = bytes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most > 0.0 && most >= all * CLASS_SHARE).then_some((priority, most / all))
}

/// True if an interface ever sent a pause of 802.3x, which makes all classes lossless.
fn pauses(growths: &Growths<'_>, interface: &str) -> bool {
    growths
        .states(Counter::PauseTransmittedFrames)
        .any(|sample| &*sample.object == interface && sample.value > 0.0)
}
