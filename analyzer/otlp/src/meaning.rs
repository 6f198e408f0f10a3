//! Names of metrics: the quantity that each is, and where its points say its place.
//!
//! Cumulus Linux: NVIDIA's manual, "Open Telemetry Export" (5.11 to 5.15); its counts are gauges with doubles. OpenConfig: paths as
//! gnmic (`/` and `-` become `_`) and others write them, of `openconfig-interfaces`, `openconfig-qos` and NVIDIA's additions (manual,
//! "gNMI Streaming"). SONiC: SAI's statistics below `COUNTERS/PORT` (sonic-gnmi, `doc/grpc_telemetry.md`).

use roce_model::Counter;
use roce_switches::switch::sai_statistic;

/// The quantity of a metric, and where its place is.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct MetricMeaning {
    pub(crate) counter: Counter,
    pub(crate) place: Place,
    /// The label behind the interface's kind.
    pub(crate) detail: Option<&'static str>,
    pub(crate) scale: Scale,
    /// The interface, where the metric's name has it.
    pub(crate) object: Option<String>,
}

/// The part of an interface that a point counts, and which attribute names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Interface,
    /// A traffic class, whose queue it is: `tc`.
    Class,
    /// An ingress priority group: `pg`. It is no priority: a switch maps several to one group.
    Group,
    /// A switch priority, by an attribute.
    SwitchPriority,
    /// A priority, by the metric's name.
    Priority(u8),
    /// A queue, by an attribute.
    Queue,
    /// A queue, by the metric's name.
    NamedQueue(String),
}

/// How a value becomes one in the counter's base unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Scale {
    Factor(f64),
    /// By the unit that the metric states: the documents of the switch name none.
    Stated(Quantity),
    /// A bitmap of Cumulus Linux: 1 is up (manual, `nvswitch_interface_oper_state`).
    IsUp,
}

/// Quantities with units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quantity {
    Bytes,
    Seconds,
}

impl Scale {
    /// The factor of a unit in UCUM's or in plain spelling; `None` of others.
    pub(crate) fn of_unit(self, unit: &str) -> Option<f64> {
        match (self, unit) {
            (Self::Stated(Quantity::Bytes), "By" | "bytes" | "byte")
            | (Self::Stated(Quantity::Seconds), "s" | "seconds") => Some(1.0),
            (Self::Stated(Quantity::Seconds), "ms" | "milliseconds") => Some(1e-3),
            (Self::Stated(Quantity::Seconds), "us" | "microseconds") => Some(1e-6),
            (Self::Stated(Quantity::Seconds), "ns" | "nanoseconds") => Some(1e-9),
            _ => None,
        }
    }

    pub(crate) fn apply(self, value: f64) -> f64 {
        match self {
            Self::Factor(factor) => value * factor,
            Self::Stated(_) => value,
            Self::IsUp => f64::from(u8::from((value - 1.0).abs() < 0.5)),
        }
    }
}

const ONE: Scale = Scale::Factor(1.0);
const MICROSECONDS: Scale = Scale::Factor(1e-6);
/// Bits in bytes.
const BITS: Scale = Scale::Factor(0.125);
const STATED_BYTES: Scale = Scale::Stated(Quantity::Bytes);
const STATED_TIME: Scale = Scale::Stated(Quantity::Seconds);

/// A name, and what it means.
type Line = (&'static str, Counter, Option<&'static str>, Scale);

/// Names of Cumulus Linux behind `nvswitch_interface_`, of an interface.
const INTERFACE: [Line; 19] = [
    ("if_in_octets", Counter::SwitchInterfaceReceivedBytes, None, ONE),
    (
        "if_out_octets",
        Counter::SwitchInterfaceTransmittedBytes,
        None,
        ONE,
    ),
    (
        "if_in_ucast_pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
        ONE,
    ),
    (
        "if_in_multicast_pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
        ONE,
    ),
    (
        "if_in_broadcast_pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
        ONE,
    ),
    (
        "if_out_ucast_pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
        ONE,
    ),
    (
        "if_out_multicast_pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
        ONE,
    ),
    (
        "if_out_broadcast_pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
        ONE,
    ),
    (
        "if_in_discards",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
        ONE,
    ),
    (
        "if_out_discards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
        ONE,
    ),
    (
        "if_in_errors",
        Counter::SwitchInterfaceErrors,
        Some("received"),
        ONE,
    ),
    (
        "if_out_errors",
        Counter::SwitchInterfaceErrors,
        Some("transmitted"),
        ONE,
    ),
    (
        "dot3_stats_fcs_errors",
        Counter::SwitchInterfaceFcsErrors,
        None,
        ONE,
    ),
    (
        "dot3_in_pause_frames",
        Counter::SwitchPauseReceivedFrames,
        None,
        ONE,
    ),
    (
        "dot3_out_pause_frames",
        Counter::SwitchPauseTransmittedFrames,
        None,
        ONE,
    ),
    ("oper_state", Counter::SwitchInterfaceUp, None, Scale::IsUp),
    ("mtu_bytes", Counter::SwitchInterfaceMtu, None, ONE),
    ("oper_aggregate_speed", Counter::SwitchInterfaceRate, None, BITS),
    (
        "pg_rx_buffer_discard",
        Counter::SwitchPriorityGroupDroppedPackets,
        None,
        ONE,
    ),
];

/// Names of Cumulus Linux behind `nvswitch_interface_`, of a traffic class. Depths are bytes or cells, by the release: they need a unit.
const CLASS: [Line; 8] = [
    (
        "tc_tx_frames",
        Counter::SwitchQueueTransmittedPackets,
        Some("all"),
        ONE,
    ),
    (
        "tc_tx_octet",
        Counter::SwitchQueueTransmittedBytes,
        Some("all"),
        ONE,
    ),
    (
        "tc_tx_ecn_marked_tc",
        Counter::SwitchQueueEcnMarkedPackets,
        None,
        ONE,
    ),
    (
        "tc_tx_no_buffer_discard_uc",
        Counter::SwitchQueueDroppedPackets,
        Some("unicast"),
        ONE,
    ),
    (
        "tc_tx_wred_discard",
        Counter::SwitchQueueWredDroppedPackets,
        Some("any"),
        ONE,
    ),
    ("tc_tx_queue", Counter::SwitchQueueDepth, None, STATED_BYTES),
    // High-frequency telemetry: the name in its files, and that of its command. Those of its export are unverified.
    ("tc_curr_occupancy", Counter::SwitchQueueDepth, None, STATED_BYTES),
    ("tc_occupancy", Counter::SwitchQueueDepth, None, STATED_BYTES),
];

/// Names of Cumulus Linux behind `nvswitch_interface_`, of a switch priority.
const PRIORITY: [Line; 4] = [
    ("sp_rx_pause", Counter::SwitchPriorityPfcReceivedFrames, None, ONE),
    (
        "sp_tx_pause",
        Counter::SwitchPriorityPfcTransmittedFrames,
        None,
        ONE,
    ),
    (
        "sp_rx_pause_transition",
        Counter::SwitchPriorityPfcTransitions,
        None,
        ONE,
    ),
    (
        "sp_rx_pause_duration",
        Counter::SwitchPriorityPfcReceivePausedSeconds,
        None,
        STATED_TIME,
    ),
];

/// Ends of OpenConfig's paths, below `interface/state/counters` or `interface/ethernet/state/counters`.
const OPENCONFIG_INTERFACE: [Line; 15] = [
    ("in_octets", Counter::SwitchInterfaceReceivedBytes, None, ONE),
    ("out_octets", Counter::SwitchInterfaceTransmittedBytes, None, ONE),
    (
        "in_unicast_pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
        ONE,
    ),
    (
        "in_multicast_pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
        ONE,
    ),
    (
        "in_broadcast_pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
        ONE,
    ),
    (
        "out_unicast_pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
        ONE,
    ),
    (
        "out_multicast_pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
        ONE,
    ),
    (
        "out_broadcast_pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
        ONE,
    ),
    (
        "in_discards",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
        ONE,
    ),
    (
        "out_discards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
        ONE,
    ),
    ("in_errors", Counter::SwitchInterfaceErrors, Some("received"), ONE),
    (
        "out_errors",
        Counter::SwitchInterfaceErrors,
        Some("transmitted"),
        ONE,
    ),
    ("in_fcs_errors", Counter::SwitchInterfaceFcsErrors, None, ONE),
    (
        "in_mac_pause_frames",
        Counter::SwitchPauseReceivedFrames,
        None,
        ONE,
    ),
    (
        "out_mac_pause_frames",
        Counter::SwitchPauseTransmittedFrames,
        None,
        ONE,
    ),
];

/// Ends of OpenConfig's paths below `output/queues/queue/state`, and NVIDIA's. Lengths are bytes by both documents.
const OPENCONFIG_QUEUE: [Line; 9] = [
    (
        "transmit_pkts",
        Counter::SwitchQueueTransmittedPackets,
        Some("all"),
        ONE,
    ),
    (
        "transmit_octets",
        Counter::SwitchQueueTransmittedBytes,
        Some("all"),
        ONE,
    ),
    (
        "dropped_pkts",
        Counter::SwitchQueueDroppedPackets,
        Some("all"),
        ONE,
    ),
    (
        "dropped_octets",
        Counter::SwitchQueueDroppedBytes,
        Some("all"),
        ONE,
    ),
    (
        "no_buffer_uc_dropped_pkts",
        Counter::SwitchQueueDroppedPackets,
        Some("unicast"),
        ONE,
    ),
    ("ecn_marked_pkts", Counter::SwitchQueueEcnMarkedPackets, None, ONE),
    (
        "wred_dropped_pkts",
        Counter::SwitchQueueWredDroppedPackets,
        Some("any"),
        ONE,
    ),
    ("instant_queue_len", Counter::SwitchQueueDepth, None, ONE),
    ("max_queue_len", Counter::SwitchQueuePeak, None, ONE),
];

/// Ends of NVIDIA's paths below `switch-priority/state`.
const OPENCONFIG_PRIORITY: [Line; 4] = [
    (
        "counters_in_pause_pkts",
        Counter::SwitchPriorityPfcReceivedFrames,
        None,
        ONE,
    ),
    (
        "counters_out_pause_pkts",
        Counter::SwitchPriorityPfcTransmittedFrames,
        None,
        ONE,
    ),
    (
        "in_pause_duration",
        Counter::SwitchPriorityPfcReceivePausedSeconds,
        None,
        MICROSECONDS,
    ),
    (
        "counters_in_pause_duration",
        Counter::SwitchPriorityPfcReceivePausedSeconds,
        None,
        MICROSECONDS,
    ),
];

/// The meaning of a metric's name; `None` of a name that is not known.
pub(crate) fn meaning(name: &str) -> Option<MetricMeaning> {
    if let Some(rest) = name.strip_prefix("nvswitch_interface_") {
        let place = |counter: &Counter| match counter {
            Counter::SwitchPriorityGroupDroppedPackets => Place::Group,
            _ => Place::Interface,
        };
        return line(&CLASS, rest, |_| Place::Class)
            .or_else(|| line(&PRIORITY, rest, |_| Place::SwitchPriority))
            .or_else(|| line(&INTERFACE, rest, place));
    }
    if let Some(at) = name.find("SAI_") {
        return sai(&name[..at], &name[at..]);
    }
    let path = name.replace(['/', '-'], "_");
    let below = |part: &str| path.rsplit_once(part).map(|(_, rest)| rest);
    if let Some(rest) = below("queues_queue_state_") {
        line(&OPENCONFIG_QUEUE, rest, |_| Place::Queue)
    } else if let Some(rest) = below("switch_priority_state_") {
        line(&OPENCONFIG_PRIORITY, rest, |_| Place::SwitchPriority)
    } else {
        let rest = below("interface_state_counters_").or_else(|| below("ethernet_state_counters_"))?;
        line(&OPENCONFIG_INTERFACE, rest, |_| Place::Interface)
    }
}

fn line(lines: &[Line], name: &str, place: impl Fn(&Counter) -> Place) -> Option<MetricMeaning> {
    let (_, counter, detail, scale) = lines.iter().find(|(known, ..)| *known == name)?;
    Some(MetricMeaning {
        counter: *counter,
        place: place(counter),
        detail: *detail,
        scale: *scale,
        object: None,
    })
}

/// A statistic of SAI. The path before it has the interface, and behind `Queues` the queue: `COUNTERS/Ethernet0/Queues/Ethernet0:3/`.
fn sai(path: &str, statistic: &str) -> Option<MetricMeaning> {
    let found = sai_statistic(statistic)?;
    let parts: Vec<&str> = path.split(['/', '_']).filter(|part| !part.is_empty()).collect();
    let behind = |word: &str| {
        let at = parts.iter().rposition(|part| *part == word)?;
        parts.get(at + 1).copied()
    };
    let queue = behind("Queues").and_then(|name| name.rsplit_once(':'));
    let object = queue.map(|(port, _)| port).or_else(|| behind("COUNTERS"));
    let place = match (found.priority, found.is_of_queue, queue) {
        (Some(priority), ..) => Place::Priority(priority),
        (None, true, Some((_, number))) => Place::NamedQueue(number.to_owned()),
        (None, true, None) => Place::Queue,
        (None, false, _) => Place::Interface,
    };
    Some(MetricMeaning {
        counter: found.counter,
        place,
        detail: found.detail,
        scale: Scale::Factor(found.factor),
        object: object.map(str::to_owned),
    })
}
