//! COUNTERS_DB: SAI's statistics of ports, queues and ingress priority groups.
//!
//! A statistic that the chip lacks is absent or `N/A`. SONiC clears the chip's watermarks whenever it reads them (`counterpoll
//! watermark`): a peak is that of SONiC's last interval.

use roce_model::{Counter, value_of};

use super::super::answer::count as number;
use super::super::port::{Port, PortPlace};
use super::database::{Database, Hash};
use crate::device::Reading;

/// Statistics of a port, with the value of their label.
const PORT: [(&str, Counter, Option<&str>); 15] = [
    ("IF_IN_OCTETS", Counter::SwitchInterfaceReceivedBytes, None),
    ("IF_OUT_OCTETS", Counter::SwitchInterfaceTransmittedBytes, None),
    (
        "IF_IN_UCAST_PKTS",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
    ),
    (
        "IF_IN_MULTICAST_PKTS",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
    ),
    (
        "IF_IN_BROADCAST_PKTS",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
    ),
    (
        "IF_OUT_UCAST_PKTS",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
    ),
    (
        "IF_OUT_MULTICAST_PKTS",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
    ),
    (
        "IF_OUT_BROADCAST_PKTS",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
    ),
    (
        "IF_IN_DISCARDS",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
    ),
    (
        "IF_OUT_DISCARDS",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
    (
        "ETHER_STATS_CRC_ALIGN_ERRORS",
        Counter::SwitchInterfaceFcsErrors,
        None,
    ),
    ("IF_IN_ERRORS", Counter::SwitchInterfaceErrors, Some("received")),
    (
        "IF_OUT_ERRORS",
        Counter::SwitchInterfaceErrors,
        Some("transmitted"),
    ),
    ("PAUSE_RX_PKTS", Counter::SwitchPauseReceivedFrames, None),
    ("PAUSE_TX_PKTS", Counter::SwitchPauseTransmittedFrames, None),
];

/// Statistics of a queue. Those whose last field is true have the label `cast`.
const QUEUE: [(&str, Counter, bool); 11] = [
    ("PACKETS", Counter::SwitchQueueTransmittedPackets, true),
    ("BYTES", Counter::SwitchQueueTransmittedBytes, true),
    ("DROPPED_PACKETS", Counter::SwitchQueueDroppedPackets, true),
    ("DROPPED_BYTES", Counter::SwitchQueueDroppedBytes, true),
    ("TRIM_PACKETS", Counter::SwitchQueueTrimmedPackets, true),
    ("TX_TRIM_PACKETS", Counter::SwitchQueueTrimmedSentPackets, true),
    (
        "DROPPED_TRIM_PACKETS",
        Counter::SwitchQueueTrimmedDroppedPackets,
        true,
    ),
    (
        "WRED_ECN_MARKED_PACKETS",
        Counter::SwitchQueueEcnMarkedPackets,
        false,
    ),
    ("WRED_ECN_MARKED_BYTES", Counter::SwitchQueueEcnMarkedBytes, false),
    ("CURR_OCCUPANCY_BYTES", Counter::SwitchQueueDepth, false),
    ("SHARED_WATERMARK_BYTES", Counter::SwitchQueuePeak, false),
];

/// Microseconds as seconds.
const MICROSECOND: f64 = 1e-6;

/// A statistic of SAI by its whole name, for those who get it without the database.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SaiStatistic {
    /// The quantity.
    pub counter: Counter,
    /// The value of the label behind the interface's kind.
    pub detail: Option<&'static str>,
    /// The priority, where the name has one.
    pub priority: Option<u8>,
    /// True if it counts in a queue, false if in a port.
    pub is_of_queue: bool,
    /// Factor from a value to one in the counter's base unit.
    pub factor: f64,
}

/// The statistic of this name (`SAI_PORT_STAT_PFC_3_RX_PKTS`, `SAI_QUEUE_STAT_DROPPED_PACKETS`); `None` of one that is not read.
///
/// The type of a queue is not in its name, so that the label `cast` of its counters is `all`.
pub fn sai_statistic(name: &str) -> Option<SaiStatistic> {
    let found = |counter, detail, is_of_queue| SaiStatistic {
        counter,
        detail,
        priority: None,
        is_of_queue,
        factor: 1.0,
    };
    if let Some(field) = name.strip_prefix("SAI_QUEUE_STAT_") {
        if field == "WRED_DROPPED_PACKETS" {
            return Some(found(Counter::SwitchQueueWredDroppedPackets, Some("any"), true));
        }
        let (_, counter, has_cast) = QUEUE.iter().find(|(known, ..)| *known == field)?;
        return Some(found(*counter, has_cast.then_some("all"), true));
    }
    let field = name.strip_prefix("SAI_PORT_STAT_")?;
    if let Some((_, counter, detail)) = PORT.iter().find(|(known, ..)| *known == field) {
        return Some(found(*counter, *detail, false));
    }
    let (priority, field) = field.strip_prefix("PFC_")?.split_once('_')?;
    let priority = priority.parse().ok().filter(|priority| *priority < 8)?;
    let (counter, factor) = match field {
        "RX_PKTS" => (Counter::SwitchPriorityPfcReceivedFrames, 1.0),
        "TX_PKTS" => (Counter::SwitchPriorityPfcTransmittedFrames, 1.0),
        "RX_PAUSE_DURATION_US" => (Counter::SwitchPriorityPfcReceivePausedSeconds, MICROSECOND),
        "ON2OFF_RX_PKTS" => (Counter::SwitchPriorityPfcTransitions, 1.0),
        _ => return None,
    };
    Some(SaiStatistic {
        priority: Some(priority),
        factor,
        ..found(counter, None, false)
    })
}

/// Adds the counters of all objects that have a name.
pub(super) fn read(maps: &Database, counters: &Database, reading: &mut Reading) {
    for (name, hash) in objects(maps, "COUNTERS_PORT_NAME_MAP", counters) {
        if let Some(port) = Port::new(reading, name) {
            read_port(port, hash);
        }
    }
    let types = maps.hash("COUNTERS_QUEUE_TYPE_MAP");
    let indices = maps.hash("COUNTERS_QUEUE_INDEX_MAP");
    let names = maps.hash("COUNTERS_QUEUE_NAME_MAP");
    for (name, oid) in names.into_iter().flat_map(Hash::texts) {
        let Some(hash) = counters.hash(&format!("COUNTERS:{oid}")) else {
            continue;
        };
        let Some((name, place)) = name.rsplit_once(':') else {
            continue;
        };
        // A map that is there says it of each queue.
        let cast = types.map_or(Some("all"), |types| cast_of(types.text(oid)?));
        let index = indices.map_or(Some(place), |indices| indices.text(oid));
        let (Some(cast), Some(index)) = (cast, index.filter(|index| number(index).is_some())) else {
            continue;
        };
        if let Some(port) = Port::new(reading, name) {
            read_queue(port, &queue_name(index, cast), cast, hash);
        }
    }
    for (name, hash) in objects(maps, "COUNTERS_PG_NAME_MAP", counters) {
        let Some((name, group)) = name.rsplit_once(':') else {
            continue;
        };
        if let Some(mut port) = Port::new(reading, name) {
            let place = PortPlace::queue(group);
            let value = |field: &str| {
                let count = hash.count(&format!("SAI_INGRESS_PRIORITY_GROUP_STAT_{field}"));
                count.map(value_of)
            };
            port.put(
                Counter::SwitchPriorityGroupDroppedPackets,
                place,
                value("DROPPED_PACKETS"),
            );
            port.put(
                Counter::SwitchPriorityGroupHeadroomPeak,
                place,
                value("XOFF_ROOM_WATERMARK_BYTES"),
            );
        }
    }
}

/// Objects of a map of names, each with its counters.
fn objects<'a>(
    maps: &'a Database,
    map: &str,
    counters: &'a Database,
) -> impl Iterator<Item = (&'a str, Hash<'a>)> {
    let names = maps.hash(map).into_iter().flat_map(Hash::texts);
    names.filter_map(|(name, oid)| Some((name, counters.hash(&format!("COUNTERS:{oid}"))?)))
}

fn read_port(mut port: Port<'_>, hash: Hash<'_>) {
    let count = |field: &str| hash.count(&format!("SAI_PORT_STAT_{field}"));
    for (field, counter, detail) in PORT {
        let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
        port.put(counter, place, count(field).map(value_of));
    }
    let mut received = [None; 8];
    let mut transmitted = [None; 8];
    for (priority, (received, transmitted)) in (0u8..).zip(received.iter_mut().zip(&mut transmitted)) {
        *received = count(&format!("PFC_{priority}_RX_PKTS"));
        *transmitted = count(&format!("PFC_{priority}_TX_PKTS"));
        let place = PortPlace::priority(priority);
        let paused = count(&format!("PFC_{priority}_RX_PAUSE_DURATION_US"));
        port.put(
            Counter::SwitchPriorityPfcReceivePausedSeconds,
            place,
            paused.map(|microseconds| value_of(microseconds) * MICROSECOND),
        );
        let changes = count(&format!("PFC_{priority}_ON2OFF_RX_PKTS"));
        port.put(
            Counter::SwitchPriorityPfcTransitions,
            place,
            changes.map(value_of),
        );
    }
    port.put_pfc(&received, &transmitted);
}

fn read_queue(mut port: Port<'_>, queue: &str, cast: &'static str, hash: Hash<'_>) {
    let place = PortPlace::queue(queue);
    let count = |field: &str| hash.count(&format!("SAI_QUEUE_STAT_{field}"));
    for (field, counter, has_cast) in QUEUE {
        let place = if has_cast { place.with(cast) } else { place };
        port.put(counter, place, count(field).map(value_of));
    }
    // SAI counts what WRED drops without regard to the packet's ECN field.
    port.put(
        Counter::SwitchQueueWredDroppedPackets,
        place.with("any"),
        count("WRED_DROPPED_PACKETS").map(value_of),
    );
    let watchdog = |field: &str| hash.count(&format!("PFC_WD_QUEUE_STATS_{field}"));
    storms(
        &mut port,
        queue,
        [watchdog("DEADLOCK_DETECTED"), watchdog("DEADLOCK_RESTORED")],
        [watchdog("TX_DROPPED_PACKETS"), watchdog("RX_DROPPED_PACKETS")],
    );
    port.put_watchdog_state(queue, hash.text("PFC_WD_STATUS").unwrap_or_default());
}

/// Adds the watchdog's counters of a queue: storms detected and restored, packets dropped on transmission and reception.
pub(super) fn storms(port: &mut Port<'_>, queue: &str, storms: [Option<u64>; 2], dropped: [Option<u64>; 2]) {
    let place = PortPlace::queue(queue);
    let [detected, restored] = storms;
    port.put(Counter::SwitchWatchdogShutdowns, place, detected.map(value_of));
    port.put(Counter::SwitchWatchdogRestores, place, restored.map(value_of));
    let sum = dropped.into_iter().flatten().reduce(u64::saturating_add);
    port.put(Counter::SwitchWatchdogDroppedPackets, place, sum.map(value_of));
}

/// The label `cast` of a SAI type of queues; `None` of a word that is no such type.
fn cast_of(kind: &str) -> Option<&'static str> {
    match kind.strip_prefix("SAI_QUEUE_TYPE_")? {
        "UNICAST" => Some("unicast"),
        "MULTICAST" => Some("multicast"),
        _ => Some("all"),
    }
}

/// The name of a queue in samples: its number, with `mc` before that of a multicast queue, whose number a unicast queue may have too.
pub(super) fn queue_name(index: &str, cast: &str) -> String {
    let prefix = if cast == "multicast" { "mc" } else { "" };
    format!("{prefix}{index}")
}
