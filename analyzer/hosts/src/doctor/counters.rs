//! Counters of a snapshot: their values, and how far they moved until a second reading below `later`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use roce_model::{Counter, Sample, SampleSource, SystemStart, Time, value_of};
use roce_rules::counters::{CounterFinding, CounterReading, Growths, LinkFacts, judge};
use serde_json::Value;

use crate::doctor::host::Host;
use crate::drivers::{CounterPlace, mapped};
use crate::host::ethtool_statistics;

/// The folder of the second reading.
pub const LATER: &str = "later";

/// A counter with its change.
#[derive(Clone, PartialEq, Debug)]
pub struct MovedCounter {
    /// Device and port, or interface.
    pub object: String,
    /// The quantity.
    pub counter: Counter,
    /// Its priority.
    pub priority: Option<u8>,
    /// The driver's name.
    pub name: String,
    /// The file or command that it was read from.
    pub path: String,
    /// Its last value, in base units.
    pub value: f64,
    /// By how much it rose between the two readings; `None`: there was one reading alone, or it began again between them.
    pub change: Option<f64>,
}

/// The key of a counter: object and driver's name.
type Key = (String, String);

struct CounterValue {
    counter: Counter,
    priority: Option<u8>,
    details: Vec<Cow<'static, str>>,
    path: String,
    value: f64,
    bits: u8,
}

/// Counters of a host with their changes, and findings about what the changes of the two readings say together.
#[derive(Default)]
pub(crate) struct HostCounters {
    /// All of them; of two readings those that the later one has.
    pub(crate) moved: Vec<MovedCounter>,
    /// Findings; none of one reading alone.
    pub(crate) found: Vec<CounterFinding>,
}

/// Counters with their changes, and what is found in them.
pub(crate) fn counters(host: &Host, links: &dyn LinkFacts) -> HostCounters {
    let first = values(host, "");
    let is_twice = host.has(LATER);
    let later = if is_twice {
        values(host, "later/")
    } else {
        BTreeMap::new()
    };
    let (before, now) = (samples(host, &first), samples(host, &later));
    let before = CounterReading {
        samples: &before,
        start: start(host, ""),
    };
    let now = CounterReading {
        samples: &now,
        start: start(host, "later/"),
    };
    let growths = Growths::new(Some(before), now, links);
    // The samples begin with the values, in their order.
    let changes: BTreeMap<&Key, Option<f64>> = later
        .keys()
        .enumerate()
        .map(|(at, key)| (key, growths.growth_at(at)))
        .collect();
    let has_restarted = is_twice && growths.is_since_restart();
    let moved = first.iter().map(|(key, reading)| MovedCounter {
        object: key.0.clone(),
        counter: reading.counter,
        priority: reading.priority,
        name: key.1.clone(),
        path: reading.path.clone(),
        value: later.get(key).unwrap_or(reading).value,
        // A count since a restart is no change of the time between the readings.
        change: changes.get(key).copied().flatten().filter(|_| !has_restarted),
    });
    HostCounters {
        moved: moved.collect(),
        found: if is_twice { judge(&growths) } else { Vec::new() },
    }
}

/// Start of the system by the files of a reading.
fn start(host: &Host, before: &str) -> SystemStart {
    let text = |path: &str| host.text(&format!("{before}{path}")).unwrap_or_default();
    SystemStart::from_texts(
        &text("proc/uptime"),
        &text("proc/sys/kernel/random/boot_id"),
        &text("proc/stat"),
    )
}

/// The counters of a reading, and behind them the states of PFC, as samples without a time.
fn samples(host: &Host, values: &BTreeMap<Key, CounterValue>) -> Vec<Sample> {
    let node: std::sync::Arc<str> = host.name.as_str().into();
    let sample = |object: &str, counter, priority, details, value, bits| Sample {
        time: Time(0),
        source: SampleSource::Host,
        node: std::sync::Arc::clone(&node),
        object: object.into(),
        counter,
        priority,
        queue: None,
        details,
        value,
        bits,
    };
    let mut all: Vec<Sample> = values
        .iter()
        .map(|((object, _), value)| {
            let details = value.details.clone();
            sample(
                object,
                value.counter,
                value.priority,
                details,
                value.value,
                value.bits,
            )
        })
        .collect();
    for name in host.names("answers") {
        let interface = name
            .strip_prefix("dcb-pfc.")
            .and_then(|name| name.strip_suffix(".json"));
        let Some(interface) = interface else { continue };
        let answer = host.json(&format!("answers/{name}")).unwrap_or_default();
        let priorities = answer.get("prio_pfc").and_then(Value::as_array);
        for (priority, is_on) in (0_u8..8).zip(priorities.into_iter().flatten()) {
            if let Some(is_on) = is_on.as_bool() {
                let value = f64::from(u8::from(is_on));
                all.push(sample(
                    interface,
                    Counter::PfcEnabled,
                    Some(priority),
                    Vec::new(),
                    value,
                    64,
                ));
            }
        }
    }
    all
}

/// The counters of a reading.
fn values(host: &Host, before: &str) -> BTreeMap<Key, CounterValue> {
    let mut values = BTreeMap::new();
    read(host, before, &mut values);
    values
}

fn read(host: &Host, before: &str, into: &mut BTreeMap<Key, CounterValue>) {
    let devices = format!("{before}sys/class/infiniband");
    for device in host.names(&devices) {
        let folder = format!("{devices}/{device}");
        read_folder(
            host,
            &device,
            &format!("{folder}/hw_counters"),
            CounterPlace::Hardware,
            into,
        );
        for port in host.names(&format!("{folder}/ports")) {
            let object = format!("{device}:{port}");
            let folder = format!("{folder}/ports/{port}");
            read_folder(
                host,
                &object,
                &format!("{folder}/counters"),
                CounterPlace::Port,
                into,
            );
            read_folder(
                host,
                &object,
                &format!("{folder}/hw_counters"),
                CounterPlace::Hardware,
                into,
            );
        }
    }
    let commands = format!("{before}commands");
    for name in host.names(&commands) {
        let interface = name
            .strip_prefix("ethtool_-S_")
            .and_then(|name| name.strip_suffix(".txt"));
        let Some(interface) = interface else { continue };
        let path = format!("{commands}/{name}");
        let text = host.text(&path).unwrap_or_default();
        for statistic in ethtool_statistics(&text) {
            add(
                interface,
                &statistic.name,
                statistic.value,
                CounterPlace::Netdev,
                &path,
                into,
            );
        }
    }
}

fn read_folder(
    host: &Host,
    object: &str,
    folder: &str,
    place: CounterPlace,
    into: &mut BTreeMap<Key, CounterValue>,
) {
    for name in host.names(folder) {
        let path = format!("{folder}/{name}");
        if let Ok(value) = host.number::<u64>(&path) {
            add(object, &name, value, place, &path, into);
        }
    }
}

fn add(
    object: &str,
    name: &str,
    value: u64,
    place: CounterPlace,
    path: &str,
    into: &mut BTreeMap<Key, CounterValue>,
) {
    let Some(mapped) = mapped(place, name) else { return };
    let key = (object.to_owned(), name.to_owned());
    into.insert(
        key,
        CounterValue {
            counter: mapped.counter,
            priority: mapped.priority,
            details: mapped.details,
            path: path.to_owned(),
            value: value_of(value) * mapped.factor,
            bits: mapped.bits,
        },
    );
}
