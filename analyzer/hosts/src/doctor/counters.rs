//! Counters of a snapshot: their values, and how far they moved until a second reading below `later`.

use std::collections::HashMap;

use roce_model::{Counter, has_wrapped, value_of};

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
    /// By how much it rose between the two readings; `None`: there was one reading alone.
    pub change: Option<f64>,
}

/// The key of a counter: object and driver's name.
type Key = (String, String);

struct CounterReading {
    counter: Counter,
    priority: Option<u8>,
    path: String,
    value: f64,
    bits: u8,
}

/// All counters with their changes.
pub(crate) fn moved(host: &Host) -> Vec<MovedCounter> {
    let mut first = HashMap::new();
    read(host, "", &mut first);
    let mut later = HashMap::new();
    let is_twice = host.has(LATER);
    if is_twice {
        read(host, "later/", &mut later);
    }
    let mut all: Vec<MovedCounter> = first
        .into_iter()
        .map(|((object, name), reading)| {
            let after = later
                .get(&(object.clone(), name.clone()))
                .map(|after: &CounterReading| after.value);
            let change = after.map(|after| {
                if after >= reading.value {
                    after - reading.value
                } else if has_wrapped(reading.value, after, reading.bits, None) {
                    after + 4_294_967_296.0 - reading.value
                } else {
                    // It was reset: it has counted `after` since.
                    after
                }
            });
            MovedCounter {
                object,
                counter: reading.counter,
                priority: reading.priority,
                name,
                path: reading.path,
                value: after.unwrap_or(reading.value),
                change,
            }
        })
        .collect();
    all.sort_by(|a, b| (&a.object, &a.name).cmp(&(&b.object, &b.name)));
    all
}

fn read(host: &Host, before: &str, into: &mut HashMap<Key, CounterReading>) {
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
    into: &mut HashMap<Key, CounterReading>,
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
    into: &mut HashMap<Key, CounterReading>,
) {
    let Some(mapped) = mapped(place, name) else { return };
    let key = (object.to_owned(), name.to_owned());
    into.insert(
        key,
        CounterReading {
            counter: mapped.counter,
            priority: mapped.priority,
            path: path.to_owned(),
            value: value_of(value) * mapped.factor,
            bits: mapped.bits,
        },
    );
}
