//! Links as `mlxlink` shows them, as text and with `--json` (NVIDIA's MFT; mstflint, `mlxlink/modules`).

use serde_json::{Map, Value, json};

use super::files::{PastedFiles, command_of, device_in};
use crate::hca::is_plain_name;

/// First heading of each link.
const FIRST_HEADING: &str = "Operational Info";

/// Keys that are kept (`mlxlink_maps.cpp`, `mlxlink_commander.cpp`). Speeds have ` (Ext.)` behind them on newer adapters.
const KEYS: [&str; 22] = [
    "State",
    "Physical state",
    "Speed",
    "Width",
    "FEC",
    "Enabled Link Speed",
    "Supported Cable Speed",
    "Status Opcode",
    "Recommendation",
    "Firmware Version",
    "Time Since Last Clear [Min]",
    "Symbol BER",
    "Effective Physical Errors",
    "Effective Physical BER",
    "Raw Physical BER",
    "Link Down Counter",
    "Cable Type",
    "Vendor Name",
    "Vendor Part Number",
    "Vendor Serial Number",
    "Transfer Distance [m]",
    "Temperature [C]",
];

/// Maximum number of JSON documents that are looked for in a text.
const MAX_DOCUMENTS: usize = 64;

/// Fields that one run of `mlxlink` shows.
struct ShownLink {
    name: String,
    fields: Map<String, Value>,
}

impl ShownLink {
    fn add(&mut self, key: &str, value: &str) {
        let key = key.trim().trim_end_matches(" (Ext.)");
        let value = value.trim();
        if KEYS.contains(&key) && !value.is_empty() && value != "N/A" {
            self.fields.entry(key).or_insert_with(|| json!(value));
        }
    }
}

/// Ends the output of one run.
fn end(link: Option<ShownLink>, found: &mut PastedFiles) {
    if let Some(link) = link.filter(|link| !link.fields.is_empty()) {
        found.answer(
            &format!("mlxlink.{}.json", link.name),
            &Value::Object(link.fields),
        );
    }
}

/// Adds what the outputs in a text say. `name` is that of the file, which can name the device.
pub(super) fn read(text: &str, name: &str, found: &mut PastedFiles) {
    if !text.contains(FIRST_HEADING) {
        return;
    }
    let mut device = device_in(name).unwrap_or_else(|| if is_plain_name(name) { name } else { "port" });
    let mut link: Option<ShownLink> = None;
    let mut documents = 0;
    let mut start = 0;
    let mut skipped_to = 0;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        if at < skipped_to {
            continue;
        }
        if let Some(named) = asked_device(line).or_else(|| line.starts_with('=').then(|| device_in(line))?) {
            end(link.take(), found);
            device = named;
        } else if line.trim() == FIRST_HEADING {
            end(link.take(), found);
            link = Some(ShownLink {
                name: device.to_owned(),
                fields: Map::new(),
            });
        } else if line.starts_with('{') && documents < MAX_DOCUMENTS {
            documents += 1;
            let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
            if let Some(Ok(document)) = stream.next() {
                skipped_to = at + stream.byte_offset();
                of_document(&document, device, found);
            }
        } else if let (Some(link), Some((key, value))) = (&mut link, line.split_once(':')) {
            // `mlxlink` fills its column of keys with blanks; other tools of the text do not.
            if key.ends_with(' ') {
                link.add(key, value);
            }
        }
    }
    end(link, found);
}

/// A document of `mlxlink --json`: headings with keys, whose values are texts, or lists with a mask.
fn of_document(document: &Value, device: &str, found: &mut PastedFiles) {
    let Some(headings) = document["result"]["output"].as_object() else {
        return;
    };
    if !headings.contains_key(FIRST_HEADING) {
        return;
    }
    let mut link = ShownLink {
        name: device.to_owned(),
        fields: Map::new(),
    };
    for (key, value) in headings.values().filter_map(Value::as_object).flatten() {
        match value {
            Value::String(text) => link.add(key, text),
            Value::Number(number) => link.add(key, &number.to_string()),
            Value::Object(list) => {
                let values = list.get("values").and_then(Value::as_array);
                let values = values.into_iter().flatten().filter_map(Value::as_str);
                link.add(key, &values.collect::<Vec<_>>().join(","));
            }
            _ => {}
        }
    }
    end(Some(link), found);
}

/// The device in a command: `mlxlink -d mlx5_0 -c`, also of MST: `/dev/mst/mt4129_pciconf0`.
fn asked_device(line: &str) -> Option<&str> {
    let command = command_of(line).unwrap_or(line);
    let (program, arguments) = command.trim().split_once(' ')?;
    if program.rsplit('/').next() != Some("mlxlink") {
        return None;
    }
    let mut words = arguments.split_whitespace();
    words.find(|word| ["-d", "--device"].contains(word))?;
    let name = words.next()?.rsplit('/').next()?;
    is_plain_name(&name.replace(':', "_")).then_some(name)
}
