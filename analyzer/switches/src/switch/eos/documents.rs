//! JSON of Arista EOS' commands: each an object with the interfaces by name.

use std::collections::BTreeMap;

use roce_model::{Counter, value_of};
use serde_json::{Map, Value};

use super::super::answer::{json_count, json_text, json_value};
use super::super::port::{Port, PortPlace};
use crate::device::{Neighbor, Reading};
use crate::switch::interface::{Interface, counted};

/// Neighbours of one switch.
const MAX_NEIGHBORS: usize = 4_096;
/// Bits/s as bytes/s.
const BIT: f64 = 0.125;

/// Counters of an interface in `interfaces`, with the value of their label.
const COUNTERS: [(&str, Counter, Option<&str>); 11] = [
    ("linkStatusChanges", Counter::SwitchInterfaceLinkChanges, None),
    ("inOctets", Counter::SwitchInterfaceReceivedBytes, None),
    ("outOctets", Counter::SwitchInterfaceTransmittedBytes, None),
    (
        "inUcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
    ),
    (
        "inMulticastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
    ),
    (
        "inBroadcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
    ),
    (
        "outUcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
    ),
    (
        "outMulticastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
    ),
    (
        "outBroadcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
    ),
    ("inDiscards", Counter::SwitchInterfaceDiscards, Some("received")),
    (
        "outDiscards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
];

/// Counters of a queue.
const QUEUE: [(&str, Counter); 4] = [
    ("enqueuedPackets", Counter::SwitchQueueTransmittedPackets),
    ("enqueuedBytes", Counter::SwitchQueueTransmittedBytes),
    ("droppedPackets", Counter::SwitchQueueDroppedPackets),
    ("droppedBytes", Counter::SwitchQueueDroppedBytes),
];

/// `show version`: model, version, serial number and time since the start.
pub(super) fn version(document: &Map<String, Value>, reading: &mut Reading) {
    let text = |key: &str| {
        let text = document.get(key).and_then(Value::as_str);
        text.unwrap_or_default().trim().to_owned()
    };
    reading.description.model = text("modelName");
    reading.description.version = text("version");
    reading.description.serial = text("serialNumber");
    let uptime = document.get("uptime").and_then(Value::as_f64);
    if let Some(seconds) = uptime.filter(|seconds| *seconds >= 0.0) {
        reading.push(Counter::SwitchUptime, "", seconds);
    }
}

/// `show lldp neighbors`: a list of ports, or with `detail` an object by interface.
pub(super) fn neighbors(document: &Map<String, Value>, reading: &mut Reading) {
    let mut add = |interface: &str, node: String, port: String| {
        if let Some(Interface { name: interface, .. }) = counted(interface)
            && !node.is_empty()
            && reading.neighbors.len() < MAX_NEIGHBORS
        {
            reading.neighbors.push(Neighbor {
                interface,
                node,
                port,
            });
        }
    };
    let first = |object: &Value, keys: &[&str]| {
        let mut texts = keys.iter().map(|key| json_text(object, key));
        // Older releases write quotation marks around a port's identifier.
        let text = texts.find(|text| !text.is_empty()).unwrap_or_default();
        text.trim_matches('"').to_owned()
    };
    match document.get("lldpNeighbors") {
        Some(Value::Array(all)) => {
            for entry in all {
                add(
                    &json_text(entry, "port"),
                    first(entry, &["neighborDevice"]),
                    first(entry, &["neighborPort"]),
                );
            }
        }
        Some(Value::Object(all)) => {
            for (interface, entry) in all {
                let list = entry.get("lldpNeighborInfo").and_then(Value::as_array);
                for neighbor in list.into_iter().flatten() {
                    let port = neighbor.get("neighborInterfaceInfo").unwrap_or(neighbor);
                    let port = first(port, &["interfaceId_v2", "interfaceId", "interfaceDescription"]);
                    add(interface, first(neighbor, &["systemName", "chassisId"]), port);
                }
            }
        }
        _ => {}
    }
}

/// `show interfaces status`: the link's state, and its bandwidth in bits/s.
pub(super) fn status(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaceStatuses", reading, |port, entry| {
        let link = json_text(entry, "linkStatus");
        // `notconnect`, `disabled`, `errdisabled`; what is no word is no state.
        let is_word = link.starts_with(|first: char| first.is_ascii_lowercase());
        let is_up = is_word.then(|| f64::from(u8::from(link == "connected")));
        port.put(Counter::SwitchInterfaceUp, PortPlace::default(), is_up);
        let rate = json_value(entry, "bandwidth").filter(|rate| *rate > 0.0);
        port.put(
            Counter::SwitchInterfaceRate,
            PortPlace::default(),
            rate.map(|rate| rate * BIT),
        );
    });
}

/// `show interfaces counters`, and `counters discards`: counters by interface.
pub(super) fn counters(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaces", reading, |port, entry| {
        for (key, counter, detail) in COUNTERS {
            let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
            port.put(counter, place, json_value(entry, key));
        }
    });
}

/// `show interfaces`: states, and counters below `interfaceCounters`.
pub(super) fn interfaces(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaces", reading, |port, entry| {
        let is_up = match json_text(entry, "lineProtocolStatus").as_str() {
            "up" => Some(1.0),
            "" => None,
            _ => Some(0.0),
        };
        port.put(Counter::SwitchInterfaceUp, PortPlace::default(), is_up);
        port.put(
            Counter::SwitchInterfaceMtu,
            PortPlace::default(),
            json_value(entry, "mtu"),
        );
        let Some(numbers) = entry.get("interfaceCounters") else {
            return;
        };
        for (key, counter, detail) in COUNTERS {
            let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
            port.put(counter, place, json_value(numbers, key));
        }
        for (key, direction, part, pauses) in [
            ("totalInErrors", "received", "inputErrorsDetail", "rxPause"),
            ("totalOutErrors", "transmitted", "outputErrorsDetail", "txPause"),
        ] {
            let errors = PortPlace::detail(direction);
            port.put(Counter::SwitchInterfaceErrors, errors, json_value(numbers, key));
            let Some(part) = numbers.get(part) else {
                continue;
            };
            let counter = if direction == "received" {
                Counter::SwitchPauseReceivedFrames
            } else {
                Counter::SwitchPauseTransmittedFrames
            };
            port.put(counter, PortPlace::default(), json_value(part, pauses));
            port.put(
                Counter::SwitchInterfaceFcsErrors,
                PortPlace::default(),
                json_value(part, "fcsErrors"),
            );
        }
    });
}

/// `show interfaces counters errors`.
pub(super) fn errors(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaceErrorCounters", reading, |port, entry| {
        port.put(
            Counter::SwitchInterfaceFcsErrors,
            PortPlace::default(),
            json_value(entry, "fcsErrors"),
        );
        for (key, detail) in [("inErrors", "received"), ("outErrors", "transmitted")] {
            port.put(
                Counter::SwitchInterfaceErrors,
                PortPlace::detail(detail),
                json_value(entry, key),
            );
        }
    });
}

/// `show priority-flow-control counters`: frames of all priorities.
pub(super) fn pfc(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaceCounters", reading, |port, entry| {
        port.put(
            Counter::SwitchPfcReceivedFrames,
            PortPlace::default(),
            json_value(entry, "rxFrames"),
        );
        port.put(
            Counter::SwitchPfcTransmittedFrames,
            PortPlace::default(),
            json_value(entry, "txFrames"),
        );
    });
}

/// `show priority-flow-control counters detail`: frames by priority. The keys are unverified. Two forms are looked for: an object of
/// priorities with received and sent frames (`{"3": {"rxFrames": 5}}`), and one for each direction (`{"rxFrames": {"3": 5}}`).
pub(super) fn pfc_by_priority(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaceCounters", reading, |port, entry| {
        let mut received = [None; 8];
        let mut transmitted = [None; 8];
        for (name, value) in entry.as_object().into_iter().flatten() {
            for (priority, value) in by_priority(value) {
                if let Some(frames) = json_count(value) {
                    let values = match name.get(..2) {
                        Some("rx") => &mut received,
                        Some("tx") => &mut transmitted,
                        _ => continue,
                    };
                    values[priority] = Some(frames);
                    continue;
                }
                for (name, value) in value.as_object().into_iter().flatten() {
                    let values = match name.as_str() {
                        "rxFrames" | "rxPfc" | "rxPause" | "rxPauseFrames" => &mut received,
                        "txFrames" | "txPfc" | "txPause" | "txPauseFrames" => &mut transmitted,
                        _ => continue,
                    };
                    values[priority] = json_count(value).or(values[priority]);
                }
            }
        }
        port.put_pfc(&received, &transmitted);
    });
}

/// Members of an object by priority, if all of its keys are priorities (`3`, `priority3`).
fn by_priority(value: &Value) -> Vec<(usize, &Value)> {
    let priority = |key: &str| {
        let digits = key.trim_start_matches(|glyph: char| !glyph.is_ascii_digit());
        digits.parse().ok().filter(|priority| *priority < 8)
    };
    let members = value.as_object().into_iter().flatten();
    let members: Option<Vec<(usize, &Value)>> = members
        .map(|(key, value)| Some((priority(key)?, value)))
        .collect();
    members.unwrap_or_default()
}

/// `show priority-flow-control counters watchdog`: an interface is there from its first stuck queue on (`txQueues` with `stuckCount`
/// and `recoveryCount`, as Meta's test infrastructure for FBOSS reads them).
pub(super) fn watchdog(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaces", reading, |port, entry| {
        let queues = entry.get("txQueues").and_then(Value::as_object);
        for (queue, entry) in queues.into_iter().flatten() {
            let place = PortPlace::queue(queue);
            port.put(
                Counter::SwitchWatchdogShutdowns,
                place,
                json_value(entry, "stuckCount"),
            );
            port.put(
                Counter::SwitchWatchdogRestores,
                place,
                json_value(entry, "recoveryCount"),
            );
        }
    });
}

/// `show interfaces flow-control`: 802.3x pauses.
pub(super) fn pauses(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "interfaceFlowControls", reading, |port, entry| {
        let frames = [
            ("rxPause", Counter::SwitchPauseReceivedFrames),
            ("txPause", Counter::SwitchPauseTransmittedFrames),
        ];
        for (key, counter) in frames {
            port.put(counter, PortPlace::default(), json_value(entry, key));
        }
        for (key, detail) in [("rxOperState", "received"), ("txOperState", "transmitted")] {
            let is_on = match json_text(entry, key).as_str() {
                "on" => Some(1.0),
                "off" => Some(0.0),
                _ => None,
            };
            port.put(Counter::SwitchPauseEnabled, PortPlace::detail(detail), is_on);
        }
    });
}

/// `show qos interfaces ecn counters queue`: marked packets by queue; `-` where the queue does not mark.
pub(super) fn ecn(document: &Map<String, Value>, reading: &mut Reading) {
    each(document, "intfQueueCounters", reading, |port, entry| {
        let queues = entry.get("queueCounters").and_then(Value::as_object);
        for (queue, marked) in queues.into_iter().flatten() {
            port.put(
                Counter::SwitchQueueEcnMarkedPackets,
                PortPlace::queue(queue_name(queue)),
                json_count(marked).map(value_of),
            );
        }
    });
}

/// `show interfaces counters queue detail`: packets and drops by queue. Chips with queues on egress have `egressQueueCounters`; chips
/// with virtual output queues have `trafficClasses` in `interfaces`, and drop in the virtual queue, too.
pub(super) fn queues(document: &Map<String, Value>, reading: &mut Reading) {
    if let Some(Value::Object(egress)) = document.get("egressQueueCounters") {
        each(egress, "interfaces", reading, |port, entry| {
            for (key, cast) in [("ucastQueues", "unicast"), ("mcastQueues", "multicast")] {
                let classes = entry.get(key).and_then(|queues| queues.get("trafficClasses"));
                for (class, entry) in classes.and_then(Value::as_object).into_iter().flatten() {
                    let precedences = entry.get("dropPrecedences").and_then(Value::as_object);
                    let parts: Vec<&Value> = precedences.into_iter().flat_map(Map::values).collect();
                    put_queue(port, queue_name(class), cast, |key| sum(&parts, key));
                }
            }
        });
        return;
    }
    // `show interfaces counters queue` of such chips has the classes below each kind of queue.
    if let Some(Value::Object(voq)) = document.get("ingressVoqCounters") {
        each(voq, "interfaces", reading, |port, entry| {
            let classes = entry.get("trafficClasses").and_then(Value::as_object);
            for (class, entry) in classes.into_iter().flatten() {
                let entry = entry.get("countersSum").unwrap_or(entry);
                put_queue(port, queue_name(class), "all", |key| sum(&[entry], key));
            }
        });
        return;
    }
    each(document, "interfaces", reading, |port, entry| {
        let classes = entry.get("trafficClasses").and_then(Value::as_object);
        for (class, entry) in classes.into_iter().flatten() {
            let part = |key: &str| entry.get(key).and_then(|part| part.get("countersSum"));
            let sent: Vec<&Value> = part("egressQueueCounters").into_iter().collect();
            let all: Vec<&Value> = sent.iter().copied().chain(part("ingressVoqCounters")).collect();
            put_queue(port, queue_name(class), "all", |key| {
                let parts = if key.starts_with("dropped") { &all } else { &sent };
                sum(parts, key)
            });
        }
    });
}

fn put_queue(port: &mut Port<'_>, queue: &str, cast: &'static str, count: impl Fn(&str) -> Option<u64>) {
    for (key, counter) in QUEUE {
        let place = PortPlace::queue(queue).with(cast);
        port.put(counter, place, count(key).map(value_of));
    }
}

/// The sum of a key over all objects; one that is not known makes the sum unknown.
fn sum(parts: &[&Value], key: &str) -> Option<u64> {
    let counts = parts.iter().map(|part| part.get(key).and_then(json_count));
    counts.reduce(|sum, count| Some(sum?.saturating_add(count?)))?
}

/// The number of a queue or a traffic class: `3` of `TC3`, `UC3` and `3`.
fn queue_name(text: &str) -> &str {
    let number = text.trim_start_matches(|glyph: char| glyph.is_ascii_alphabetic());
    if number.is_empty() { text } else { number }
}

/// Calls `read` with each interface of `key` that is part of a reading.
fn each(
    document: &Map<String, Value>,
    key: &str,
    reading: &mut Reading,
    mut read: impl FnMut(&mut Port<'_>, &Value),
) {
    let interfaces = document.get(key).and_then(Value::as_object);
    // One interface has one entry, whichever spelling of its name.
    let mut by_name = BTreeMap::new();
    for (name, entry) in interfaces.into_iter().flatten() {
        if let Some(Interface { name: canonical, .. }) = counted(name) {
            by_name.insert(canonical, (name, entry));
        }
    }
    for (name, entry) in by_name.into_values() {
        if let Some(mut port) = Port::new(reading, name) {
            read(&mut port, entry);
        }
    }
}
