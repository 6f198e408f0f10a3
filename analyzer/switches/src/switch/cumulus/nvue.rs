//! NVUE's JSON.

use roce_model::{Counter, value_of};
use serde_json::{Map, Value};

use super::super::answer::{count, json_count, json_value};
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
