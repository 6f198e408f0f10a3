//! config_db.json of a SONiC switch: maps of DSCPs, PFC, ECN, scheduling, the watchdog and MTUs of ports.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::change::Change;
use super::super::settings::{Settings, cnp_priority};
use super::super::sonic::{maps, merge, qos, text, watchdog, wred};
use crate::inventory::Cluster;

/// A longer document is not parsed, in bytes.
const MAX_DOCUMENT: usize = 16 << 20;
/// Ports of a switch.
const MAX_PORTS: usize = 4_096;
/// The name of the scheduler of RoCE data.
const SCHEDULER: &str = "scheduler.roce";

/// Differences of one check: what is set, and the tables that mend it.
#[derive(Default)]
struct FoundDifferences {
    texts: BTreeSet<String>,
    tables: Map<String, Value>,
}

impl FoundDifferences {
    fn add(&mut self, text: String, tables: Value) {
        self.texts.insert(text);
        if let Value::Object(tables) = tables {
            merge(&mut self.tables, tables);
        }
    }

    /// The change, if there is one. Ports are named up to a few.
    fn change(self, id: &'static str) -> Option<Change> {
        const MAX_NAMED: usize = 4;
        if self.texts.is_empty() {
            return None;
        }
        let named = self.texts.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>();
        let more = self.texts.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        let all = format!("{}{more}", named.join("; "));
        let document = text(&self.tables);
        let mut lines = vec!["cat > change.json <<'EOF'"];
        lines.extend(document.lines());
        lines.extend(["EOF", "sudo config load -y change.json"]);
        Some(Change::new(id, all, &lines).comment("Link: stays up. Undo: load the former config_db.json."))
    }
}

/// Changes that a configuration needs. No interfaces: all ports that are not down.
///
/// # Errors
/// If the text is no configuration, or an interface is not in it.
pub fn check_sonic(
    cluster: &Cluster,
    settings: &Settings,
    document: &str,
    named: &[String],
) -> Result<Vec<Change>, String> {
    if document.len() > MAX_DOCUMENT {
        return Err(format!("the document has more than {MAX_DOCUMENT} bytes"));
    }
    let document: Value = serde_json::from_str(document.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("not a config_db.json: {error}"))?;
    let ports = document.get("PORT").and_then(Value::as_object);
    let ports = ports.ok_or_else(|| "config_db.json has no PORT".to_owned())?;
    if let Some(unknown) = named.iter().find(|name| !ports.contains_key(*name)) {
        return Err(format!("config_db.json has no port {unknown}"));
    }
    let is_looked_at = |name: &str, port: &Value| {
        let is_down = port.get("admin_status").and_then(Value::as_str) == Some("down");
        if named.is_empty() {
            !is_down
        } else {
            named.iter().any(|known| known == name)
        }
    };
    let ports: Vec<(&str, &Value)> = ports
        .iter()
        .map(|(name, port)| (name.as_str(), port))
        .filter(|(name, port)| is_looked_at(name, port))
        .take(MAX_PORTS)
        .collect();
    let queues = queues(&document, cluster.priority);
    let mut all = Differences::default();
    for (name, port) in &ports {
        all.check(
            cluster,
            settings,
            &document,
            (
                name,
                port,
                queues.get(name).map(Vec::as_slice).unwrap_or_default(),
            ),
        );
    }
    let unwatched: Vec<String> = ports
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .filter(|name| at(&document, &["PFC_WD", name]).is_none())
        .collect();
    let mut changes: Vec<Change> = [
        all.unclassified.change("switch.queue_unclassified"),
        all.pfc.change("switch.pfc_off"),
        all.others.change("switch.pfc_other_priority"),
        all.ecn.change("switch.ecn_off"),
        all.strict.change("switch.rdma_strict_priority"),
        all.mtu.change("switch.mtu"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !unwatched.is_empty() {
        changes.push(Change {
            id: "switch.no_watchdog",
            text: match unwatched.as_slice() {
                [port] => format!("{port}: PFC's watchdog is off"),
                ports => format!("PFC's watchdog is off on {} ports", ports.len()),
            },
            step: watchdog(&unwatched),
        });
    }
    Ok(changes)
}

/// Differences of all ports, by check.
#[derive(Default)]
struct Differences {
    unclassified: FoundDifferences,
    pfc: FoundDifferences,
    others: FoundDifferences,
    ecn: FoundDifferences,
    strict: FoundDifferences,
    mtu: FoundDifferences,
}

impl Differences {
    fn check(
        &mut self,
        cluster: &Cluster,
        settings: &Settings,
        document: &Value,
        (name, port, queue): (&str, &Value, &[&Value]),
    ) {
        let priority = cluster.priority.to_string();
        self.classification(cluster, document, name);
        let own = at(document, &["PORT_QOS_MAP", name]);
        let enabled = own.and_then(|own| own.get("pfc_enable")).and_then(Value::as_str);
        let enabled: Vec<&str> = enabled.unwrap_or_default().split(',').map(str::trim).collect();
        let table = json!({ "PORT_QOS_MAP": { name: { "pfc_enable": priority } } });
        if !enabled.contains(&priority.as_str()) {
            self.pfc
                .add(format!("{name}: PFC of priority {priority} is off"), table);
        } else if enabled.len() > 1 {
            self.others.add(
                format!("{name}: PFC is on for priorities {}", enabled.join(", ")),
                table,
            );
        }
        self.queue(cluster, settings, document, (name, queue));
        let wanted = settings.switch_mtu();
        let known = port
            .get("mtu")
            .and_then(Value::as_str)
            .and_then(|mtu| mtu.parse().ok());
        // SONiC's own MTU of a port is 9100.
        let known: u64 = known.unwrap_or(9_100);
        if known < wanted && (settings.mtu.is_some() || known < 9_100) {
            let table = json!({ "PORT": { name: { "mtu": wanted.to_string() } } });
            self.mtu.add(format!("{name}: the MTU is {known} bytes"), table);
        }
    }

    /// DSCPs reach the lossless class, and another one.
    fn classification(&mut self, cluster: &Cluster, document: &Value, name: &str) {
        let own = at(document, &["PORT_QOS_MAP", name]);
        let global = at(document, &["PORT_QOS_MAP", "global"]);
        let map = reference(own, "dscp_to_tc_map").or_else(|| reference(global, "dscp_to_tc_map"));
        let known = map.and_then(|map| Some((map, at(document, &["DSCP_TO_TC_MAP", map])?)));
        let Some((map, table)) = known else {
            let mut tables = maps(cluster);
            merge(
                &mut tables,
                object(json!({ "PORT_QOS_MAP": { name: qos(cluster) } })),
            );
            self.unclassified
                .add(format!("{name}: no map of DSCPs"), Value::Object(tables));
            return;
        };
        let class = |dscp: u8| table.get(dscp.to_string()).and_then(Value::as_str);
        let mut wanted = Map::new();
        let (data, cnp) = (class(cluster.dscp), class(cluster.cnp_dscp));
        let priority = cluster.priority.to_string();
        if data != Some(&priority) {
            wanted.insert(cluster.dscp.to_string(), json!(priority));
        }
        if cnp.is_none_or(|cnp| cnp == priority || cnp == "0") {
            wanted.insert(
                cluster.cnp_dscp.to_string(),
                json!(cnp_priority(cluster).to_string()),
            );
        }
        if !wanted.is_empty() {
            let text = format!(
                "map {map}: DSCP {} reaches class {}, DSCP {} class {}",
                cluster.dscp,
                data.unwrap_or("-"),
                cluster.cnp_dscp,
                cnp.unwrap_or("-")
            );
            self.unclassified
                .add(text, json!({ "DSCP_TO_TC_MAP": { map: wanted } }));
        }
    }

    /// The queue of RoCE data marks, with these thresholds if they were set, and has no strict priority.
    fn queue(
        &mut self,
        cluster: &Cluster,
        settings: &Settings,
        document: &Value,
        (name, queue): (&str, &[&Value]),
    ) {
        let priority = cluster.priority;
        let key = format!("{name}|{priority}");
        let of_queue = |field| queue.iter().find_map(|queue| reference(Some(queue), field));
        let profile = of_queue("wred_profile");
        let table = profile.and_then(|profile| Some((profile, at(document, &["WRED_PROFILE", profile])?)));
        let field = |key: &str| table.and_then(|(_, table)| table.get(key)?.as_str());
        let marks = field("ecn").is_some_and(|ecn| ecn == "ecn_all" || ecn.contains("green"));
        let (min, max) = (settings.ecn_min.to_string(), settings.ecn_max.to_string());
        let differs = settings.has_thresholds
            && (field("green_min_threshold") != Some(&min) || field("green_max_threshold") != Some(&max));
        match table {
            Some((profile, _)) if !marks => self.ecn.add(
                format!("profile {profile}: packets are not marked"),
                json!({ "WRED_PROFILE": { profile: { "ecn": "ecn_all", "wred_green_enable": "true" } } }),
            ),
            None => {
                let mut tables = wred(settings);
                merge(
                    &mut tables,
                    object(json!({ "QUEUE": { key.as_str(): { "wred_profile": "ROCE" } } })),
                );
                self.ecn.add(
                    format!("{name}: queue {priority} does not mark packets"),
                    Value::Object(tables),
                );
            }
            Some(_) => {}
        }
        if let (Some((profile, _)), true) = (table, differs) {
            self.ecn.add(
                format!("profile {profile}: other thresholds"),
                json!({ "WRED_PROFILE": { profile: { "green_min_threshold": min, "green_max_threshold": max } } }),
            );
        }
        let scheduler = of_queue("scheduler").and_then(|scheduler| at(document, &["SCHEDULER", scheduler]));
        let kind = scheduler.and_then(|scheduler| scheduler.get("type")?.as_str());
        if kind == Some("STRICT") {
            self.strict.add(
                format!("{name}: queue {priority} of RoCE data has strict priority: it starves all others"),
                json!({
                    "SCHEDULER": { SCHEDULER: { "type": "DWRR", "weight": settings.bandwidth.to_string() } },
                    "QUEUE": { key.as_str(): { "scheduler": SCHEDULER } },
                }),
            );
        }
    }
}

/// The settings of a queue, by port. Those of this queue alone go before those of several.
fn queues(document: &Value, queue: u8) -> BTreeMap<&str, Vec<&Value>> {
    let mut own: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let mut shared = Vec::new();
    let table = document.get("QUEUE").and_then(Value::as_object);
    for (key, value) in table.into_iter().flatten() {
        let Some((ports, range)) = key.split_once('|') else {
            continue;
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.parse::<u8>().ok().zip(last.parse::<u8>().ok());
        if !bounds.is_some_and(|(first, last)| (first..=last).contains(&queue)) {
            continue;
        }
        for port in ports.split(',') {
            if range.parse() == Ok(queue) {
                own.entry(port).or_default().push(value);
            } else {
                shared.push((port, value));
            }
        }
    }
    for (port, value) in shared {
        own.entry(port).or_default().push(value);
    }
    own
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn at<'a>(document: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(document, |value, key| value.get(key))
}

/// The name in a reference: `AZURE`, or `[DSCP_TO_TC_MAP|AZURE]` of releases before 2022.
fn reference<'a>(table: Option<&'a Value>, field: &str) -> Option<&'a str> {
    let text = table?.get(field)?.as_str()?;
    let text = text.trim_start_matches('[').trim_end_matches(']');
    Some(text.rsplit_once('|').map_or(text, |(_, name)| name))
}
