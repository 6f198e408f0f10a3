//! Documents of OpenConfig: `openconfig-interfaces` and `openconfig-qos`, as trees (RFC 7951) or as updates that gnmic prints.

use roce_model::{Counter, value_of};
use serde_json::{Map, Value};

use super::super::answer::{MAX_DOCUMENT, json_count, refusal};
use super::super::port::{Port, PortPlace};
use crate::device::{Reading, Reason};

/// Counters of an interface, with the value of their label (openconfig-interfaces.yang, openconfig-if-ethernet.yang).
const COUNTERS: [(&str, Counter, Option<&str>); 16] = [
    ("in-octets", Counter::SwitchInterfaceReceivedBytes, None),
    ("out-octets", Counter::SwitchInterfaceTransmittedBytes, None),
    (
        "in-unicast-pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
    ),
    (
        "in-multicast-pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
    ),
    (
        "in-broadcast-pkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
    ),
    (
        "out-unicast-pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
    ),
    (
        "out-multicast-pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
    ),
    (
        "out-broadcast-pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
    ),
    ("in-discards", Counter::SwitchInterfaceDiscards, Some("received")),
    (
        "out-discards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
    ("in-errors", Counter::SwitchInterfaceErrors, Some("received")),
    ("out-errors", Counter::SwitchInterfaceErrors, Some("transmitted")),
    ("in-fcs-errors", Counter::SwitchInterfaceFcsErrors, None),
    ("carrier-transitions", Counter::SwitchInterfaceLinkChanges, None),
    ("in-mac-pause-frames", Counter::SwitchPauseReceivedFrames, None),
    (
        "out-mac-pause-frames",
        Counter::SwitchPauseTransmittedFrames,
        None,
    ),
];

/// Counters of a queue (openconfig-qos-interfaces.yang).
const QUEUE: [(&str, Counter); 4] = [
    ("transmit-pkts", Counter::SwitchQueueTransmittedPackets),
    ("transmit-octets", Counter::SwitchQueueTransmittedBytes),
    ("dropped-pkts", Counter::SwitchQueueDroppedPackets),
    ("dropped-octets", Counter::SwitchQueueDroppedBytes),
];

/// The documents of a text: one tree, or messages one behind the other, each with a list or an object.
///
/// The error has the reason and a text for a problem.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, (Reason, String)> {
    if text.len() > MAX_DOCUMENT {
        let long = format!("the answer has {} bytes, more than {MAX_DOCUMENT}", text.len());
        return Err((Reason::Parse, long));
    }
    let start = text.find(['{', '[']).unwrap_or(text.len());
    let documents = text.get(start..).unwrap_or_default();
    let mut all = Vec::new();
    for document in serde_json::Deserializer::from_str(documents).into_iter() {
        match document {
            Ok(document) => all.push(document),
            // A prompt behind the last one.
            Err(_) if !all.is_empty() => break,
            Err(error) => return Err((Reason::Parse, format!("the answer is not JSON: {error}"))),
        }
    }
    if all.is_empty() {
        return Err(refusal(text));
    }
    Ok(all)
}

/// Adds the interfaces anywhere in a document.
pub(super) fn read(value: &Value, reading: &mut Reading) {
    match value {
        Value::Array(all) => {
            for value in all {
                read(value, reading);
            }
        }
        Value::Object(object) => {
            if let (Some(Value::String(path)), Some(Value::Object(values))) =
                (object.get("Path"), object.get("values"))
            {
                return update(path, values, reading);
            }
            for (key, value) in object {
                match value {
                    Value::Array(all) if plain(key) == "interface" => {
                        for entry in all {
                            interface(entry, reading);
                        }
                    }
                    value => read(value, reading),
                }
            }
        }
        _ => {}
    }
}

/// A key without the module before it.
fn plain(key: &str) -> &str {
    key.rsplit(':').next().unwrap_or(key)
}

/// The member of an object by its name, with or without a module.
fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let object = value.as_object()?;
    object
        .iter()
        .find(|(key, _)| plain(key) == name)
        .map(|(_, value)| value)
}

/// An entry of a list of interfaces.
fn interface(entry: &Value, reading: &mut Reading) {
    let named = ["name", "interface-id"]
        .iter()
        .find_map(|key| member(entry, key)?.as_str());
    let Some(mut port) = named.and_then(|name| Port::other(reading, name)) else {
        return;
    };
    if let Some(state) = member(entry, "state") {
        put_state(&mut port, state);
    }
    if let Some(state) = member(entry, "ethernet").and_then(|ethernet| member(ethernet, "state")) {
        put_state(&mut port, state);
    }
    let queues = member(entry, "output")
        .and_then(|output| member(output, "queues"))
        .and_then(|queues| member(queues, "queue"))
        .and_then(Value::as_array);
    for queue in queues.into_iter().flatten() {
        let state = member(queue, "state").unwrap_or(queue);
        let name = member(queue, "name").or_else(|| member(state, "name"));
        if let Some(name) = name.and_then(Value::as_str) {
            put_queue(&mut port, name, state);
        }
    }
}

/// `state` of an interface or of its Ethernet, and the counters below it.
fn put_state(port: &mut Port<'_>, state: &Value) {
    let is_up = member(state, "oper-status").and_then(Value::as_str);
    port.put(
        Counter::SwitchInterfaceUp,
        PortPlace::default(),
        is_up.map(|state| f64::from(u8::from(plain(state) == "UP"))),
    );
    let mtu = member(state, "mtu").and_then(json_count);
    port.put(
        Counter::SwitchInterfaceMtu,
        PortPlace::default(),
        mtu.map(value_of),
    );
    if let Some(counters) = member(state, "counters") {
        put_counters(port, counters);
    }
}

fn put_counters(port: &mut Port<'_>, counters: &Value) {
    for (key, counter, detail) in COUNTERS {
        let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
        let value = member(counters, key).and_then(json_count);
        port.put(counter, place, value.map(value_of));
    }
}

/// The queue's name may have that of its interface before a colon (`Ethernet0:3`).
fn put_queue(port: &mut Port<'_>, name: &str, state: &Value) {
    let name = name.rsplit(':').next().unwrap_or(name);
    for (key, counter) in QUEUE {
        let value = member(state, key).and_then(json_count);
        let place = PortPlace::queue(name).with("all");
        port.put(counter, place, value.map(value_of));
    }
}

/// An update of gnmic: `interfaces/interface[name=Ethernet0]/state/counters`, and values by their paths without keys. A path may end
/// with a counter itself.
fn update(path: &str, values: &Map<String, Value>, reading: &mut Reading) {
    let key = |names: [&str; 2]| {
        let rest = names.iter().find_map(|name| path.split_once(name))?.1;
        rest.split(']').next()
    };
    let Some(mut port) =
        key(["interface[name=", "interface[interface-id="]).and_then(|name| Port::other(reading, name))
    else {
        return;
    };
    let queue = key(["queue[name=", "queue[queue-id="]);
    for (leaf, value) in values {
        let last = plain(leaf.rsplit('/').next().unwrap_or(leaf));
        let own;
        let (value, last) = if value.is_object() {
            (value, last)
        } else {
            own = Value::Object(Map::from_iter([(last.to_owned(), value.clone())]));
            (&own, "")
        };
        match queue {
            Some(queue) => put_queue(&mut port, queue, member(value, "state").unwrap_or(value)),
            None if last == "state" => put_state(&mut port, value),
            None if last == "counters" || last.is_empty() => put_counters(&mut port, value),
            None => {}
        }
    }
}
