//! A switch's description of itself, its ports and their neighbours: `show version`, `show interface status`,
//! `show lldp neighbors detail`.

use roce_model::Counter;

use super::answer::Body;
use super::json::{Object, count, number, objects, table, text};
use super::sink::{NumberPlace, Sink, counted};
use crate::device::Neighbor;
use crate::switch::interface::canonical;

/// Longest word about the switch or a neighbour, in characters.
const MAX_WORD: usize = 256;
/// Neighbours of one switch.
const MAX_NEIGHBORS: usize = 10_000;

/// Model, version, serial number and uptime.
pub(super) fn version(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    let mut found = System::default();
    match body {
        Body::Json(documents) => {
            for document in documents.iter().flat_map(objects) {
                found.document(document);
            }
        }
        Body::Text(text) => text.lines().for_each(|line| found.line(line.trim())),
    }
    let is_known = found.model.is_some() || found.version.is_some() || found.uptime.is_some();
    let about = &mut sink.reading.description;
    about.model = short(found.model.as_deref().unwrap_or_default());
    about.version = short(found.version.as_deref().unwrap_or_default());
    about.serial = short(found.serial.as_deref().unwrap_or_default());
    sink.put(NumberPlace::SWITCH, Counter::SwitchUptime, &[], found.uptime);
    is_known
}

/// Facts of `show version`.
#[derive(Default)]
struct System {
    model: Option<String>,
    version: Option<String>,
    serial: Option<String>,
    uptime: Option<u64>,
}

impl System {
    fn document(&mut self, document: &Object) {
        self.model = text(document, &["chassis_id"]).map(|model| without_chassis(&model).to_owned());
        // rr_sys_ver is the version at the last restart.
        let keys = ["nxos_ver_str", "sys_ver_str", "kickstart_ver_str", "rr_sys_ver"];
        self.version = keys
            .iter()
            .find_map(|key| Some(text(document, &[key])?.split_whitespace().next()?.to_owned()));
        self.serial = text(document, &["proc_board_id"]);
        let part = |key: &str, seconds: u64| Some(count(document, &[key])?.saturating_mul(seconds));
        let parts = [
            part("kern_uptm_days", 86_400),
            part("kern_uptm_hrs", 3600),
            part("kern_uptm_mins", 60),
            part("kern_uptm_secs", 1),
        ];
        // The smaller parts alone would be a restart.
        self.uptime = parts.into_iter().sum::<Option<u64>>();
    }

    fn line(&mut self, line: &str) {
        if let Some(version) = [
            "NXOS: version ",
            "Host NXOS: version ",
            "system:    version ",
            "system: version ",
        ]
        .iter()
        .find_map(|start| line.strip_prefix(start))
        {
            let version = version.split_whitespace().next().map(str::to_owned);
            self.version = self.version.take().or(version);
        } else if let Some(serial) = line.strip_prefix("Processor Board ID ") {
            self.serial = Some(serial.trim().to_owned());
        } else if let Some(uptime) = line.strip_prefix("Kernel uptime is ") {
            self.uptime = uptime_of(uptime);
        } else if let Some(model) = line
            .strip_prefix("cisco ")
            .or_else(|| line.strip_prefix("Cisco "))
            && self.model.is_none()
            && line.to_ascii_lowercase().contains("chassis")
        {
            self.model = Some(without_chassis(model).to_owned());
        }
    }
}

/// `Nexus9000 C9332PQ chassis` without the last word, and what follows it.
fn without_chassis(model: &str) -> &str {
    let end = ["chassis", "Chassis"].iter().find_map(|word| model.find(word));
    end.map_or(model, |end| &model[..end]).trim()
}

/// The seconds of `12 day(s), 3 hour(s), 45 minute(s), 6 second(s)`.
fn uptime_of(words: &str) -> Option<u64> {
    let mut sum: u64 = 0;
    for part in words.split(',') {
        let (value, unit) = part.trim().split_once(' ')?;
        let seconds = match unit.trim().trim_end_matches("(s)") {
            "day" => 86_400,
            "hour" => 3600,
            "minute" => 60,
            "second" => 1,
            _ => return None,
        };
        sum = sum.saturating_add(number(value)?.saturating_mul(seconds));
    }
    Some(sum)
}

/// State, rate and MTU of interfaces.
pub(super) fn status(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Json(documents) => {
            let mut is_known = false;
            for row in documents
                .iter()
                .flat_map(objects)
                .flat_map(|document| table(document, "interface"))
            {
                is_known = true;
                let Some(name) = text(row, &["interface", "if_name_str"]) else {
                    continue;
                };
                let state = text(row, &["state"]).unwrap_or_default();
                let speed = text(row, &["speed"]).unwrap_or_default();
                interface_status(&name, &state, &speed, count(row, &["mtu", "eth_mtu"]), sink);
            }
            is_known
        }
        Body::Text(text) => status_text(text, sink),
    }
}

/// The names of ports have blanks: the columns are those of the heading.
fn status_text(text: &str, sink: &mut Sink<'_>) -> bool {
    let mut columns: Option<[usize; 4]> = None;
    for line in text.lines() {
        if line.trim_start().starts_with("Port") && line.contains("Status") {
            let at = |word: &str| line.find(word).filter(|at| line.is_char_boundary(*at));
            columns = (|| Some([at("Status")?, at("Vlan")?, at("Speed")?, at("Type")?]))();
            continue;
        }
        let Some([status, vlan, speed, end]) = columns else {
            continue;
        };
        let glyphs: Vec<char> = line.chars().collect();
        let column = |from: usize, to: usize| -> String {
            let cells = glyphs.get(from..to.min(glyphs.len())).unwrap_or_default();
            cells.iter().collect::<String>().trim().to_owned()
        };
        let Some(name) = line.split_whitespace().next() else {
            continue;
        };
        interface_status(name, &column(status, vlan), &column(speed, end), None, sink);
    }
    columns.is_some()
}

fn interface_status(name: &str, state: &str, speed: &str, mtu: Option<u64>, sink: &mut Sink<'_>) {
    // `notconnec`, `xcvrAbsen`: the words are cut to nine characters.
    if state.eq_ignore_ascii_case("n/a") || !state.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return;
    }
    let Some(interface) = sink.interface(name) else {
        return;
    };
    let place = NumberPlace::interface(&interface);
    let is_up = state == "connected" || state == "up";
    sink.put(place, Counter::SwitchInterfaceUp, &[], Some(u64::from(is_up)));
    if is_up {
        sink.put(place, Counter::SwitchInterfaceRate, &[], rate_of(speed));
    }
    sink.put(place, Counter::SwitchInterfaceMtu, &[], mtu);
}

/// A rate in bytes/s: `40G`, `a-100G`, `25G(D)`, and without a unit in Mbit/s: `1000`.
fn rate_of(speed: &str) -> Option<u64> {
    let speed = speed.strip_prefix("a-").unwrap_or(speed);
    let speed = speed.split('(').next()?.trim();
    let end = speed
        .find(|glyph: char| !glyph.is_ascii_digit())
        .unwrap_or(speed.len());
    let (digits, unit) = speed.split_at(end);
    let bits = match unit {
        "" | "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => return None,
    };
    number(digits)?.checked_mul(bits).map(|bits| bits / 8)
}

/// The other ends of cables.
pub(super) fn neighbors(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Json(documents) => {
            let mut is_known = false;
            for document in documents.iter().flat_map(objects) {
                is_known |=
                    document.contains_key("TABLE_nbor_detail") || document.contains_key("neigh_count");
                for row in table(document, "nbor_detail") {
                    let word = |key: &str| text(row, &[key]).unwrap_or_default();
                    Lldp {
                        local: word("l_port_id"),
                        chassis: word("chassis_id"),
                        port: word("port_id"),
                        description: word("port_desc"),
                        name: word("sys_name"),
                    }
                    .add(sink);
                }
            }
            is_known
        }
        Body::Text(text) => neighbors_text(text, sink),
    }
}

fn neighbors_text(text: &str, sink: &mut Sink<'_>) -> bool {
    let mut is_known = false;
    let mut neighbor = Lldp::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        is_known |= matches!(name, "Chassis id" | "Total entries displayed");
        let Some(into) = neighbor.field(name) else {
            continue;
        };
        // A block starts with the chassis. A line that is there already belongs to the next block, whose first line is missing.
        if name == "Chassis id" || !into.is_empty() {
            std::mem::take(&mut neighbor).add(sink);
        }
        if let Some(into) = neighbor.field(name) {
            value.clone_into(into);
        }
    }
    neighbor.add(sink);
    is_known
}

/// One neighbour. A text that is not known is empty.
#[derive(Default)]
struct Lldp {
    local: String,
    chassis: String,
    port: String,
    description: String,
    name: String,
}

impl Lldp {
    fn field(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "Local Port id" => Some(&mut self.local),
            "Chassis id" => Some(&mut self.chassis),
            "Port id" => Some(&mut self.port),
            "Port Description" => Some(&mut self.description),
            "System Name" => Some(&mut self.name),
            _ => None,
        }
    }

    fn add(self, sink: &mut Sink<'_>) {
        let Some(interface) = counted(&self.local) else {
            return;
        };
        let known = |word: &String| !word.is_empty() && word != "null" && word != "not advertised";
        let Some(node) = [&self.name, &self.chassis].into_iter().find(|word| known(word)) else {
            return;
        };
        // A host often has its address as the port, and the interface's name as the description.
        let ports = if is_address(&self.port) {
            [&self.description, &self.port]
        } else {
            [&self.port, &self.description]
        };
        let port = ports
            .into_iter()
            .find(|word| known(word))
            .map_or("", String::as_str);
        let neighbor = Neighbor {
            interface: interface.name,
            node: short(node),
            port: short(&canonical(port)),
        };
        let neighbors = &mut sink.reading.neighbors;
        if neighbors.len() < MAX_NEIGHBORS {
            neighbors.push(neighbor);
        }
    }
}

/// True of a MAC address: `0050.56aa.0003`, `00:50:56:aa:00:03`.
fn is_address(port: &str) -> bool {
    let digits = port.bytes().filter(u8::is_ascii_hexdigit).count();
    digits == 12
        && port
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || b".:-".contains(&byte))
}

fn short(word: &str) -> String {
    word.chars().take(MAX_WORD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_bytes() {
        // 40 Gbit/s are 5 GB/s.
        for (speed, rate) in [
            ("40G", Some(5_000_000_000)),
            ("a-100G", Some(12_500_000_000)),
            ("25G(D)", Some(3_125_000_000)),
            ("1000", Some(125_000_000)),
            ("a-1000", Some(125_000_000)),
            ("auto", None),
            ("--", None),
            ("", None),
            ("99999999999999999999", None),
            ("18446744073709551615T", None),
        ] {
            assert_eq!(rate_of(speed), rate, "{speed}");
        }
    }

    #[test]
    fn uptimes_are_in_seconds() {
        // 12 x 86,400 + 3 x 3,600 + 45 x 60 + 6.
        assert_eq!(
            uptime_of("12 day(s), 3 hour(s), 45 minute(s), 6 second(s)"),
            Some(1_050_306)
        );
        assert_eq!(uptime_of("12 day(s), 3 hour(s)x"), None);
        assert_eq!(uptime_of(""), None);
    }
}
