//! The counters of one switch at one time as a SONiC switch answers: `sonic-db-dump` with maps of names to object identifiers and one
//! hash of numbers, as strings, for each object; and `show lldp table` with its neighbours.
//!
//! Names of the fields are those of SAI (saiport.h, saiqueue.h, saibuffer.h), which SONiC's database COUNTERS_DB takes over.

use serde_json::{Map, Value, json};

use super::{Port, PortReading, sum};
use crate::network::count::Traffic;
use crate::network::topology::LINK_CLASS;

/// Answers by their command lines.
pub(super) type Dump = Vec<(&'static str, String)>;

/// The command for the names of ports, queues and priority groups.
const NAMES: &str = "sonic-db-dump -n COUNTERS_DB -k 'COUNTERS_*_MAP' -y";
/// The command for all numbers.
const NUMBERS: &str = "sonic-db-dump -n COUNTERS_DB -k 'COUNTERS:oid:*' -y";

/// The command for states of ports.
const STATES: &str = "sonic-db-dump -n APPL_DB -k 'PORT_TABLE:*' -y";
/// The command for the other ends of cables.
const LLDP: &str = "show lldp table";

/// SAI's types of objects, in the upper 16 bits of an identifier (saitypes.h).
const PORT: u64 = 0x01;
const QUEUE: u64 = 0x15;
const PRIORITY_GROUP: u64 = 0x1a;

fn identifier(kind: u64, port: usize, index: u64) -> String {
    format!("oid:{:#x}", kind << 48 | (port as u64 + 1) << 8 | index)
}

fn hash(values: &Map<String, Value>) -> Value {
    json!({ "expireat": 0.0, "ttl": -0.001, "type": "hash", "value": values })
}

/// Numbers by name, as strings.
fn numbers<const N: usize>(values: [(&str, u64); N]) -> Map<String, Value> {
    let entries = values.into_iter();
    entries
        .map(|(name, value)| (name.to_owned(), Value::String(value.to_string())))
        .collect()
}

/// The answers of the switch `node`. Its ports are those of `ports` with that name.
pub(super) fn dump(node: &str, ports: &[Port], reading: &PortReading) -> Dump {
    let (mut port_names, mut queue_names, mut group_names) = (Map::new(), Map::new(), Map::new());
    let (mut queue_types, mut states) = (Map::new(), Map::new());
    let mut neighbors = lldp(["LocalPort", "RemoteDevice", "RemotePortID", "Capability"]);
    neighbors += &lldp([
        "-----------",
        "---------------",
        "---------------",
        "------------",
    ]);
    let mut counters = Map::new();
    let own = ports.iter().enumerate().filter(|(_, port)| port.node == node);
    for (lane, (place, port)) in own.enumerate() {
        let name = |key: String, names: &mut Map<String, Value>, id: &str| {
            names.insert(key, Value::String(id.to_owned()));
        };
        let id = identifier(PORT, lane, 0);
        name(port.sonic.clone(), &mut port_names, &id);
        states.insert(format!("PORT_TABLE:{}", port.sonic), hash(&state(port)));
        let peer = &ports[port.peer];
        let other = if peer.is_host { &peer.name } else { &peer.sonic };
        neighbors += &lldp([
            &port.sonic,
            &peer.node,
            other,
            if peer.is_host { "O" } else { "BR" },
        ]);
        counters.insert(format!("COUNTERS:{id}"), hash(&of_port(reading, place)));
        for queue in 0..8_u8 {
            let id = identifier(QUEUE, lane, u64::from(queue));
            name(format!("{}:{queue}", port.sonic), &mut queue_names, &id);
            queue_types.insert(id.clone(), json!("SAI_QUEUE_TYPE_UNICAST"));
            counters.insert(format!("COUNTERS:{id}"), hash(&of_queue(reading, place, queue)));
            let id = identifier(PRIORITY_GROUP, lane, u64::from(queue));
            name(format!("{}:{queue}", port.sonic), &mut group_names, &id);
            let refused = reading.counts[place].refused[usize::from(queue)].packets;
            let group = numbers([("SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS", refused)]);
            counters.insert(format!("COUNTERS:{id}"), hash(&group));
        }
    }
    let names = json!({
        "COUNTERS_PORT_NAME_MAP": hash(&port_names),
        "COUNTERS_QUEUE_NAME_MAP": hash(&queue_names),
        "COUNTERS_QUEUE_TYPE_MAP": hash(&queue_types),
        "COUNTERS_PG_NAME_MAP": hash(&group_names),
    });
    vec![
        (NAMES, format!("{names:#}\n")),
        (NUMBERS, format!("{:#}\n", Value::Object(counters))),
        (STATES, format!("{:#}\n", Value::Object(states))),
        (LLDP, neighbors),
    ]
}

/// A line of `show lldp table`.
fn lldp([port, device, other, capability]: [&str; 4]) -> String {
    format!("{port:<11}  {device:<15}  {other:<15}  {capability}\n")
}

/// State of a port, whose speed is in Mbit/s.
fn state(port: &Port) -> Map<String, Value> {
    let mut state = numbers([("speed", port.rate.0 / 1_000_000), ("mtu", 9_100)]);
    for (name, value) in [
        ("admin_status", "up"),
        ("oper_status", "up"),
        ("description", port.name.as_str()),
    ] {
        state.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    state
}

fn of_port(reading: &PortReading, place: usize) -> Map<String, Value> {
    let count = &reading.counts[place];
    let packets = |traffic: &[Traffic; 8]| sum(&traffic.map(|one| one.packets));
    let bytes = |traffic: &[Traffic; 8]| sum(&traffic.map(|one| one.bytes));
    let mut values = numbers([
        ("SAI_PORT_STAT_IF_IN_OCTETS", bytes(&count.received)),
        ("SAI_PORT_STAT_IF_OUT_OCTETS", bytes(&count.sent)),
        ("SAI_PORT_STAT_IF_IN_UCAST_PKTS", packets(&count.received)),
        ("SAI_PORT_STAT_IF_OUT_UCAST_PKTS", packets(&count.sent)),
        ("SAI_PORT_STAT_IF_IN_DISCARDS", packets(&count.refused)),
        ("SAI_PORT_STAT_IF_OUT_DISCARDS", packets(&count.dropped)),
        ("SAI_PORT_STAT_IF_IN_ERRORS", 0),
        ("SAI_PORT_STAT_IF_OUT_ERRORS", 0),
        (
            "SAI_PORT_STAT_PAUSE_RX_PKTS",
            count.pauses_received[usize::from(LINK_CLASS)],
        ),
        (
            "SAI_PORT_STAT_PAUSE_TX_PKTS",
            count.pauses_sent[usize::from(LINK_CLASS)],
        ),
    ]);
    for class in 0..usize::from(LINK_CLASS) {
        for (what, value) in [
            ("RX_PKTS", count.pauses_received[class]),
            ("TX_PKTS", count.pauses_sent[class]),
            ("RX_PAUSE_DURATION_US", count.paused[class].nanos() / 1_000),
            ("ON2OFF_RX_PKTS", count.transitions[class]),
        ] {
            values.insert(
                format!("SAI_PORT_STAT_PFC_{class}_{what}"),
                Value::String(value.to_string()),
            );
        }
    }
    values
}

fn of_queue(reading: &PortReading, place: usize, queue: u8) -> Map<String, Value> {
    let (count, queue) = (&reading.counts[place], usize::from(queue));
    numbers([
        ("SAI_QUEUE_STAT_PACKETS", count.sent[queue].packets),
        ("SAI_QUEUE_STAT_BYTES", count.sent[queue].bytes),
        ("SAI_QUEUE_STAT_DROPPED_PACKETS", count.dropped[queue].packets),
        ("SAI_QUEUE_STAT_DROPPED_BYTES", count.dropped[queue].bytes),
        (
            "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS",
            count.marked[queue].packets,
        ),
        ("SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES", count.marked[queue].bytes),
        (
            "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES",
            reading.depths[place][queue],
        ),
        ("SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", count.peak[queue]),
    ])
}
