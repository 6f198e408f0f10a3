//! Configuration of a SONiC switch: pieces of config_db.json (SONiC's Configuration.md), and the watchdog.

use serde_json::{Map, Value, json};

use super::settings::{Settings, cnp_priority};
use super::step::Step;
use crate::inventory::Cluster;

/// The name of maps and profiles.
const NAME: &str = "ROCE";

/// Pieces of config_db.json, and commands.
pub fn sonic(cluster: &Cluster, settings: &Settings, interfaces: &[String]) -> Vec<Step> {
    let mut tables = maps(cluster);
    tables.extend(wred(settings));
    for interface in interfaces {
        merge(&mut tables, port(cluster, settings, interface));
    }
    vec![
        Step::new(&[
            "DSCPs to traffic classes and queues, PFC of one priority, and ECN for its queue.",
            "Buffers are those of the platform's template: a lossless profile for the priority (config qos reload makes it).",
            "Thresholds in bytes grow with the speed and the cables: --set ecn_min=150k --set ecn_max=3000k.",
            "Link: stays up; a new map drops what is in the queues. Undo: load the former config_db.json.",
        ])
        .run("cat > roce.json <<'EOF'")
        .lines(&text(&tables))
        .run("EOF")
        .run("sudo config load -y roce.json"),
        watchdog(interfaces),
        Step::new(&["See that it works, then save."])
            .run("show pfc counters")
            .run("show queue wredcounters")
            .run("sudo config save -y"),
    ]
}

/// A document as lines.
pub(super) fn text(tables: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(tables).unwrap_or_default()
}

/// PFC's watchdog on ports.
pub(super) fn watchdog(interfaces: &[String]) -> Step {
    let ports = if interfaces.is_empty() {
        "all".to_owned()
    } else {
        interfaces.join(" ")
    };
    Step::new(&[
        "The watchdog ends a storm of pauses: packets of a stuck queue are dropped instead of the fabric standing still.",
        "Times in milliseconds. Link: stays up. Undo: sudo pfcwd stop",
    ])
    .run(format!(
        "sudo pfcwd start --action drop {ports} 200 --restoration-time 200"
    ))
}

/// Maps of DSCPs, traffic classes and priorities.
pub(super) fn maps(cluster: &Cluster) -> Map<String, Value> {
    let cnp = cnp_priority(cluster);
    // Class 0 is for all others, so that no foreign DSCP reaches the lossless queue.
    let mut dscps: Map<String, Value> = (0..64).map(|dscp: u8| (dscp.to_string(), json!("0"))).collect();
    dscps.insert(cluster.dscp.to_string(), json!(cluster.priority.to_string()));
    dscps.insert(cluster.cnp_dscp.to_string(), json!(cnp.to_string()));
    let same: Map<String, Value> = (0..8)
        .map(|class: u8| (class.to_string(), json!(class.to_string())))
        .collect();
    let table = |value: Value| json!({ NAME: value });
    Map::from_iter([
        ("DSCP_TO_TC_MAP".to_owned(), table(dscps.into())),
        ("TC_TO_QUEUE_MAP".to_owned(), table(same.clone().into())),
        ("MAP_PFC_PRIORITY_TO_QUEUE".to_owned(), table(same.into())),
    ])
}

/// The profile with ECN.
pub(super) fn wred(settings: &Settings) -> Map<String, Value> {
    let profile = json!({
        "ecn": "ecn_all",
        "wred_green_enable": "true",
        "green_min_threshold": settings.ecn_min.to_string(),
        "green_max_threshold": settings.ecn_max.to_string(),
        "green_drop_probability": settings.ecn_probability.to_string(),
    });
    Map::from_iter([("WRED_PROFILE".to_owned(), json!({ NAME: profile }))])
}

/// Settings of a port.
pub(super) fn port(cluster: &Cluster, settings: &Settings, interface: &str) -> Map<String, Value> {
    Map::from_iter([
        ("PORT_QOS_MAP".to_owned(), json!({ interface: qos(cluster) })),
        (
            "QUEUE".to_owned(),
            json!({ format!("{interface}|{}", cluster.priority): { "wred_profile": NAME } }),
        ),
        (
            "PORT".to_owned(),
            json!({ interface: { "mtu": settings.switch_mtu().to_string() } }),
        ),
    ])
}

/// Maps and PFC of a port.
pub(super) fn qos(cluster: &Cluster) -> Value {
    json!({
        "dscp_to_tc_map": NAME,
        "tc_to_queue_map": NAME,
        "pfc_to_queue_map": NAME,
        "pfc_enable": cluster.priority.to_string(),
    })
}

/// Adds tables to others; what both have is that of `more`.
pub(super) fn merge(tables: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (tables.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (_, value) => {
                tables.insert(key, value);
            }
        }
    }
}
