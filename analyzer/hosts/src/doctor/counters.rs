//! Counters of a snapshot: their values, and how far they moved until a second reading below `later`.

use std::collections::HashMap;

use std::borrow::Cow;

use roce_model::{Counter, Sample, SampleSource, Time, has_wrapped, value_of};
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
    /// By how much it rose between the two readings; `None`: there was one reading alone, or it was reset between them.
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
                .map(|after: &CounterValue| after.value);
            let change = after.and_then(|after| {
                if after >= reading.value {
                    Some(after - reading.value)
                } else {
                    // One that was reset counted an unknown part of `after` in the time.
                    has_wrapped(reading.value, after, reading.bits, None)
                        .then_some(after + 4_294_967_296.0 - reading.value)
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

/// Findings about what the counters of the two readings say together; none of one reading alone.
pub(crate) fn found(host: &Host, links: &dyn LinkFacts) -> Vec<CounterFinding> {
    if !host.has(LATER) {
        return Vec::new();
    }
    let (before, now) = (samples(host, ""), samples(host, "later/"));
    let reading = |samples, path| CounterReading {
        samples,
        uptime: uptime(host, path),
    };
    let before = reading(before.as_slice(), "proc/uptime");
    let now = reading(now.as_slice(), "later/proc/uptime");
    judge(&Growths::new(Some(before), now, links))
}

/// Seconds since the start of the system.
fn uptime(host: &Host, path: &str) -> Option<f64> {
    host.text(path)?.split_whitespace().next()?.parse().ok()
}

/// The counters of a reading, and the states of PFC, as samples without a time.
fn samples(host: &Host, before: &str) -> Vec<Sample> {
    let mut values = HashMap::new();
    read(host, before, &mut values);
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
        .into_iter()
        .map(|((object, _), value)| {
            sample(
                &object,
                value.counter,
                value.priority,
                value.details,
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
    // Findings are in one order, whatever the order of the map.
    all.sort_by(|a, b| {
        let key = |sample: &Sample| {
            (
                sample.object.clone(),
                sample.counter,
                sample.priority,
                sample.details.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    all
}

fn read(host: &Host, before: &str, into: &mut HashMap<Key, CounterValue>) {
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
    into: &mut HashMap<Key, CounterValue>,
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
    into: &mut HashMap<Key, CounterValue>,
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
