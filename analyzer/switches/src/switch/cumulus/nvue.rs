//! NVUE's JSON, and the tables that people paste.

use roce_model::{Counter, value_of};
use serde_json::{Map, Value};

use super::super::answer::{count, json_count, json_value, object};
use super::super::port::{Port, PortPlace};
use crate::device::Reading;

/// Levels of a document below which the tables are not looked for.
const MAX_DEPTH: usize = 8;
/// Objects of a document that are looked at for the tables.
const MAX_OBJECTS: usize = 4_096;

/// Columns of the table of egress queues, with the value of their label.
const QUEUES: [(&str, Counter, Option<&str>); 5] = [
    ("tx-frames", Counter::SwitchQueueTransmittedPackets, Some("all")),
    ("tx-bytes", Counter::SwitchQueueTransmittedBytes, Some("all")),
    (
        "tx-uc-buffer-discards",
        Counter::SwitchQueueDroppedPackets,
        Some("unicast"),
    ),
    ("ecn-marked-frames", Counter::SwitchQueueEcnMarkedPackets, None),
    (
        "wred-discards",
        Counter::SwitchQueueWredDroppedPackets,
        Some("any"),
    ),
];

/// Adds the counters of a port: queues, PFC by priority, and ingress priority groups. The time paused is left out: its unit is not
/// documented.
pub(super) fn qos(name: &str, document: &Map<String, Value>, reading: &mut Reading) {
    let document = Value::Object(document.clone());
    let Some(mut port) = Port::new(reading, name) else {
        return;
    };
    for (queue, row) in rows(&document, "egress-queue-stats") {
        for (key, counter, detail) in QUEUES {
            let mut place = PortPlace::queue(queue);
            place.detail = detail;
            port.put(counter, place, json_value(row, key));
        }
    }
    for (group, row) in rows(&document, "ingress-buffer-stats") {
        port.put(
            Counter::SwitchPriorityGroupDroppedPackets,
            PortPlace::queue(group),
            json_value(row, "rx-buffer-discards"),
        );
    }
    let mut received = [None; 8];
    let mut transmitted = [None; 8];
    for (priority, row) in rows(&document, "pfc-stats") {
        let Some(place) = priority.parse::<usize>().ok().filter(|place| *place < 8) else {
            continue;
        };
        received[place] = row.get("rx-pause-frames").and_then(json_count);
        transmitted[place] = row.get("tx-pause-frames").and_then(json_count);
    }
    port.put_pfc(&received, &transmitted);
}

/// Counters of the kernel for a port (`nv show interface swp1 link stats`), with the value of their label.
const STATISTICS: [(&str, Counter, Option<&str>); 9] = [
    ("carrier-transitions", Counter::SwitchInterfaceLinkChanges, None),
    ("in-bytes", Counter::SwitchInterfaceReceivedBytes, None),
    ("out-bytes", Counter::SwitchInterfaceTransmittedBytes, None),
    ("in-pkts", Counter::SwitchInterfaceReceivedPackets, Some("all")),
    (
        "out-pkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("all"),
    ),
    ("in-errors", Counter::SwitchInterfaceErrors, Some("received")),
    ("out-errors", Counter::SwitchInterfaceErrors, Some("transmitted")),
    ("in-drops", Counter::SwitchInterfaceDiscards, Some("received")),
    ("out-drops", Counter::SwitchInterfaceDiscards, Some("transmitted")),
];

/// Adds the kernel's statistics of a port, out of a document or out of a table with a name and a value in each line. Rounded bytes
/// (`4.37 MB`) are left out.
pub(super) fn statistics(name: &str, text: &str, reading: &mut Reading) {
    let Some(mut port) = Port::new(reading, name) else {
        return;
    };
    let mut put = |key: &str, value: Option<u64>| {
        if let Some((_, counter, detail)) = STATISTICS.iter().find(|(known, ..)| *known == key) {
            let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
            port.put(*counter, place, value.map(value_of));
        }
    };
    if let Ok(document) = object(text) {
        let document = Value::Object(document);
        let mut left = MAX_OBJECTS;
        for (key, ..) in STATISTICS {
            let value = find(&document, key, MAX_DEPTH, &mut left);
            put(key, value.and_then(json_count));
        }
        return;
    }
    for line in text.lines() {
        if let [Some(key), value, ..] = exact(line).as_slice() {
            put(key, value.as_deref().and_then(count));
        }
    }
}

/// Adds the tables of `nv show interface PORT counters qos`.
pub(super) fn qos_tables(name: &str, text: &str, reading: &mut Reading) {
    let Some(mut port) = Port::new(reading, name) else {
        return;
    };
    let mut received = [None; 8];
    let mut transmitted = [None; 8];
    let mut columns: Vec<String> = Vec::new();
    for line in text.lines() {
        let cells = exact(line);
        let Some(Some(first)) = cells.first() else {
            continue;
        };
        if ["traffic-class", "switch-priority", "priority-group"].contains(&first.as_str()) {
            columns = cells.into_iter().flatten().collect();
            continue;
        }
        if count(first).is_none() || cells.len() != columns.len() {
            continue;
        }
        let cell = |key: &str| {
            let at = columns.iter().position(|column| column == key)?;
            cells.get(at)?.as_deref().and_then(count)
        };
        match columns.first().map(String::as_str) {
            Some("traffic-class") => {
                for (key, counter, detail) in QUEUES {
                    let mut place = PortPlace::queue(first);
                    place.detail = detail;
                    port.put(counter, place, cell(key).map(value_of));
                }
            }
            Some("priority-group") => port.put(
                Counter::SwitchPriorityGroupDroppedPackets,
                PortPlace::queue(first),
                cell("rx-buffer-discards").map(value_of),
            ),
            _ => {
                if let Some(place) = first.parse::<usize>().ok().filter(|place| *place < 8) {
                    received[place] = cell("rx-pause-frames");
                    transmitted[place] = cell("tx-pause-frames");
                }
            }
        }
    }
    port.put_pfc(&received, &transmitted);
}

/// The cells of a line; `None` for a number that its unit rounds.
fn exact(line: &str) -> Vec<Option<String>> {
    let mut cells: Vec<Option<String>> = Vec::new();
    for word in line.split_whitespace().take(32) {
        match word {
            "Bytes" | "B" => {}
            "KB" | "MB" | "GB" | "TB" | "PB" => {
                if let Some(last) = cells.last_mut() {
                    *last = None;
                }
            }
            _ => cells.push(Some(word.to_owned())),
        }
    }
    cells
}

/// Adds the packets that were trimmed on their way out of a port, from a table of traffic classes and counts. Releases without the command
/// print no such table.
pub(super) fn trims(name: &str, text: &str, reading: &mut Reading) {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Traffic Class"));
    let has_counts = lines
        .next()
        .is_some_and(|head| head.contains("Trim Eligible Packets"));
    let Some(mut port) = Port::new(reading, name).filter(|_| has_counts) else {
        return;
    };
    for line in lines.take(MAX_OBJECTS) {
        let mut words = line.split_whitespace();
        let (Some(class), Some(packets), None) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if class.parse::<u8>().is_ok_and(|class| class < 8) {
            // Packets of known unicast alone are trimmed.
            let mut place = PortPlace::queue(class);
            place.detail = Some("unicast");
            port.put(
                Counter::SwitchQueueTrimmedPackets,
                place,
                count(packets).map(value_of),
            );
        }
    }
}

/// Adds `nv show platform`. Its keys are unverified.
pub(super) fn platform(document: &Map<String, Value>, reading: &mut Reading) {
    let text = |keys: &[&str]| {
        let mut texts = keys.iter().filter_map(|key| document.get(*key)?.as_str());
        texts.next().unwrap_or_default().trim().to_owned()
    };
    reading.description.model = text(&["product-name", "system-model", "part-number"]);
    reading.description.serial = text(&["serial-number", "system-serial-number"]);
}

/// Rows of a table by their numbers, wherever the table is.
fn rows<'a>(document: &'a Value, table: &str) -> Vec<(&'a str, &'a Value)> {
    let mut left = MAX_OBJECTS;
    let Some(table) = find(document, table, MAX_DEPTH, &mut left).and_then(Value::as_object) else {
        return Vec::new();
    };
    let is_number = |name: &str| name.len() <= 3 && name.bytes().all(|byte| byte.is_ascii_digit());
    table
        .iter()
        .map(|(name, row)| (name.as_str(), row))
        .filter(|(name, row)| !name.is_empty() && is_number(name) && row.is_object())
        .collect()
}

fn find<'a>(value: &'a Value, key: &str, depth: usize, left: &mut usize) -> Option<&'a Value> {
    let object = value.as_object()?;
    *left = left.checked_sub(1)?;
    if let Some(found) = object.get(key) {
        return Some(found);
    }
    let depth = depth.checked_sub(1)?;
    object.values().find_map(|value| find(value, key, depth, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_found_at_any_place_within_the_limits() {
        let nested = serde_json::json!({"operational": {"interface": {"swp1": {"qos": {"pfc-stats": {"3": {}, "x": {}, "": {}}}}}}});
        let names: Vec<&str> = rows(&nested, "pfc-stats")
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["3"]);
        let mut deep = serde_json::json!({"pfc-stats": {"3": {}}});
        for _ in 0..=MAX_DEPTH {
            deep = serde_json::json!({ "a": deep });
        }
        assert_eq!(rows(&deep, "pfc-stats"), []);
    }
}
