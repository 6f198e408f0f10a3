//! States and settings of adapters: the list, drivers, 802.3x, DCB, and parameters of the driver's module.

use std::collections::BTreeMap;

use roce_model::{Counter, value_of};
use serde_json::Value;

use super::nic::{MAX_NICS, Nic};
use super::text::{count, key, pairs, refusal, table, truth};
use crate::device::{Adapter, Reading, Reason};
use crate::inventory::is_adapter_name;
use roce_hosts::without_terminal;

/// Beginnings of a list that are tried in a JSON document with other text before it.
const MAX_STARTS: usize = 16;
/// Parameters of one module that are kept; more are left out.
const MAX_PARAMETERS: usize = 512;
/// Priorities of a link.
const PRIORITIES: usize = 8;
/// Bytes/s of 1 Mbit/s.
const BYTES_OF_MEGABIT: u64 = 125_000;

/// An adapter in `esxcli network nic list`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ListedNic {
    pub(super) name: String,
    pub(super) driver: String,
    pub(super) mac: String,
    pub(super) is_up: Option<bool>,
    pub(super) megabits: Option<u64>,
    pub(super) mtu: Option<u64>,
}

impl ListedNic {
    /// The adapter of a row. `of` gives the text of a column.
    fn new(of: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let name = of("name").filter(|name| is_adapter_name(name))?;
        let link = of("linkstatus")
            .or_else(|| of("link"))
            .map(|link| link.to_ascii_lowercase());
        Some(Self {
            name,
            driver: of("driver").unwrap_or_default(),
            mac: of("macaddress").unwrap_or_default(),
            is_up: link.and_then(|link| match link.as_str() {
                "up" => Some(true),
                "down" => Some(false),
                _ => None,
            }),
            megabits: of("speed").as_deref().and_then(count),
            mtu: of("mtu").as_deref().and_then(count),
        })
    }

    pub(super) fn adapter(&self) -> Adapter {
        Adapter {
            name: self.name.clone(),
            driver: self.driver.clone(),
            mac: self.mac.clone(),
            ..Adapter::default()
        }
    }
}

/// The adapters of `esxcli --formatter=json network nic list`. Lines before the document are left out.
pub(super) fn list_json(command: &str, text: &str, reading: &mut Reading) -> Vec<ListedNic> {
    let text = without_terminal(text);
    let starts = text.match_indices('[').take(MAX_STARTS);
    let mut lists = starts.filter_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Array(rows))) if rows.iter().any(Value::is_object) => Some(rows),
            _ => None,
        }
    });
    let Some(rows) = lists.next() else {
        let (reason, message) = refusal(&text);
        let reason = if text.contains('[') { Reason::Parse } else { reason };
        reading.problem(reason, command, format!("no list of adapters: {message}"));
        return Vec::new();
    };
    let nic = |row: &Value| {
        let row = row.as_object()?;
        ListedNic::new(|wanted| {
            let (_, value) = row.iter().find(|(name, _)| key(name) == wanted)?;
            match value {
                Value::String(text) => Some(text.trim().to_owned()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            }
        })
    };
    rows.iter().filter_map(nic).take(MAX_NICS).collect()
}

/// The adapters of the table `esxcli network nic list`.
pub(super) fn list_table(text: &str) -> Vec<ListedNic> {
    let rows = table(&without_terminal(text));
    let nics = rows
        .iter()
        .filter_map(|row| ListedNic::new(|wanted| row.get(wanted).cloned()));
    nics.take(MAX_NICS).collect()
}

pub(super) fn add_listed(listed: &ListedNic, nic: &mut Nic<'_>) {
    if let Some(is_up) = listed.is_up {
        nic.push(Counter::HypervisorNicUp, f64::from(u8::from(is_up)));
    }
    if let Some(megabits) = listed.megabits {
        nic.push(
            Counter::HypervisorNicRate,
            value_of(megabits.saturating_mul(BYTES_OF_MEGABIT)),
        );
    }
    if let Some(mtu) = listed.mtu {
        nic.push(Counter::HypervisorNicMtu, value_of(mtu));
    }
}

/// 802.3x of an adapter: received and sent pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pause {
    received: Option<bool>,
    transmitted: Option<bool>,
}

pub(super) fn add_pause(pause: Pause, nic: &mut Nic<'_>) {
    for (direction, is_on) in [("received", pause.received), ("transmitted", pause.transmitted)] {
        if let Some(is_on) = is_on {
            nic.push_detail(
                Counter::HypervisorPauseEnabled,
                &[direction],
                f64::from(u8::from(is_on)),
            );
        }
    }
}

/// The answer to `esxcli network nic pauseParams list`, by adapter. Where the ends of the link agreed by negotiation, the result counts.
pub(super) fn pauses(command: &str, text: &str, reading: &mut Reading) -> BTreeMap<String, Pause> {
    let text = without_terminal(text);
    let rows = table(&text);
    if rows.is_empty() {
        let (reason, message) = refusal(&text);
        reading.problem(reason, command, message);
    }
    let mut all = BTreeMap::new();
    for row in rows.into_iter().take(MAX_NICS) {
        let truth = |name: &str| row.get(name).and_then(|cell| truth(cell));
        let is_negotiated =
            truth("autonegotiation") == Some(true) && truth("autonegotiationresolutionavail") == Some(true);
        let pick = |set: &str, agreed: &str| {
            let agreed = is_negotiated.then(|| truth(agreed)).flatten();
            agreed.or_else(|| truth(set))
        };
        let pause = Pause {
            received: pick("pauserx", "rxautonegotiationresolution"),
            transmitted: pick("pausetx", "txautonegotiationresolution"),
        };
        if let Some(name) = row.get("nic") {
            all.insert(name.clone(), pause);
        }
    }
    all
}

/// Adds driver and versions of `esxcli network nic get -n NIC`; the result is 802.3x as this command shows it.
pub(super) fn nic(command: &str, text: &str, adapter: &mut Adapter, nic: &mut Nic<'_>) -> Option<Pause> {
    let text = without_terminal(text);
    let all = first_of_each(&text);
    let value = |name: &str| all.get(name).copied().filter(|value| !value.is_empty());
    if value("driver").is_none() && value("name").is_none() {
        let (reason, message) = refusal(&text);
        nic.problem(reason, command, &message);
        return None;
    }
    for (into, name) in [
        (&mut adapter.driver, "driver"),
        (&mut adapter.driver_version, "version"),
        (&mut adapter.firmware, "firmwareversion"),
    ] {
        if let Some(value) = value(name) {
            value.clone_into(into);
        }
    }
    let pause = Pause {
        received: value("pauserx").and_then(truth),
        transmitted: value("pausetx").and_then(truth),
    };
    (pause != Pause::default()).then_some(pause)
}

/// Values by name; of several lines with one name the first counts.
fn first_of_each(text: &str) -> BTreeMap<String, &str> {
    let mut all = BTreeMap::new();
    for (name, value) in pairs(text) {
        all.entry(name).or_insert(value);
    }
    all
}

/// Adds the answer to `esxcli network nic dcb status get -n NIC`: mode, priorities with PFC, and PFC frames where no driver counts them.
pub(super) fn dcb(command: &str, text: &str, nic: &mut Nic<'_>) {
    let text = without_terminal(text);
    let all = first_of_each(&text);
    let mode = all.get("mode").copied();
    let is_enabled = all.get("pfcenabled").and_then(|value| truth(value));
    if mode.is_none() && is_enabled.is_none() {
        let (reason, message) = refusal(&text);
        nic.problem(reason, command, &message);
        return;
    }
    if let Some(mode) = mode {
        let mode = mode.to_ascii_uppercase();
        let mode = match () {
            () if mode.contains("IEEE") => "ieee",
            () if mode.contains("CEE") => "cee",
            () => "unknown",
        };
        nic.push_detail(Counter::HypervisorDcbMode, &[mode], 1.0);
    }
    let priorities = |name: &str| all.get(name).and_then(|value| by_priority(value));
    let enabled = match is_enabled {
        Some(false) => Some([0; PRIORITIES]),
        Some(true) => priorities("pfcconfiguration"),
        None => None,
    };
    if let Some(enabled) = enabled {
        push_priorities(Counter::HypervisorPfcEnabled, enabled.map(|bit| bit.min(1)), nic);
    }
    for (counter, name) in [
        (Counter::HypervisorPfcReceivedFrames, "receivedpfcframes"),
        (Counter::HypervisorPfcTransmittedFrames, "sentpfcframes"),
    ] {
        if let Some(frames) = priorities(name).filter(|_| !nic.has(counter)) {
            push_priorities(counter, frames, nic);
        }
    }
}

/// Eight numbers, one for each priority. Fewer or more are not known.
fn by_priority(text: &str) -> Option<[u64; PRIORITIES]> {
    let numbers: Option<Vec<u64>> = text.split_whitespace().take(PRIORITIES + 1).map(count).collect();
    numbers?.try_into().ok()
}

fn push_priorities(counter: Counter, values: [u64; PRIORITIES], nic: &mut Nic<'_>) {
    for (priority, value) in (0u8..).zip(values) {
        nic.push(counter, value_of(value)).priority = Some(priority);
    }
}

/// Adds the answer to `esxcli system version get`.
pub(super) fn version(command: &str, text: &str, reading: &mut Reading) {
    let text = without_terminal(text);
    let all = first_of_each(&text);
    let value = |name: &str| {
        all.get(name)
            .map_or_else(String::new, |value| (*value).to_owned())
    };
    if !all.contains_key("version") {
        let (reason, message) = refusal(&text);
        reading.problem(reason, command, message);
        return;
    }
    reading.description.model = value("product");
    reading.description.version = value("version");
    reading.description.build = value("build");
}

/// Adds the parameters of a module as settings `MODULE.NAME`. A parameter that is not set has an empty value.
pub(super) fn module_parameters(command: &str, text: &str, module: &str, reading: &mut Reading) {
    let text = without_terminal(text);
    let rows = table(&text);
    if rows.is_empty() {
        let (reason, message) = refusal(&text);
        reading.problem(reason, command, message);
    }
    for row in rows.into_iter().take(MAX_PARAMETERS) {
        if let (Some(name), Some(value)) = (row.get("name"), row.get("value")) {
            reading.settings.insert(format!("{module}.{name}"), value.clone());
        }
    }
}
