//! Policies: which queues are lossless (`network-qos`), from which length packets are marked and which queue goes first (`queuing`).

use std::collections::BTreeSet;

use roce_model::Counter;
use serde_json::Value;

use super::answer::Body;
use super::json::{Object, count, field, number, objects, table, text};
use super::sink::{NumberPlace, Sink, queue_of};
use crate::device::QueueClass;
use crate::switch::interface::Interface;

/// Classes of one policy.
const MAX_CLASSES: usize = 64;

/// A class of a policy.
#[derive(Clone, Default)]
struct Class {
    queue: String,
    level: Option<u8>,
    has_ecn: bool,
    /// Lowest and highest length, in bytes.
    bounds: [Option<u64>; 2],
    is_lossless: bool,
}

impl Class {
    /// Takes the QoS group that it matches. The name of a class that is made by the switch has the group already.
    fn set_group(&mut self, group: &str) {
        if self.queue.is_empty()
            && let Some(queue) = queue_of(group)
        {
            self.queue = queue;
        }
    }
}

/// A list of classes that are being read.
#[derive(Default)]
struct Classes {
    list: Vec<Class>,
    is_open: bool,
}

impl Classes {
    /// Starts the class of this queue. What follows a class without one belongs to nobody.
    fn begin(&mut self, queue: Option<String>) {
        self.is_open = queue.is_some() && self.list.len() < MAX_CLASSES;
        if let (true, Some(queue)) = (self.is_open, queue) {
            self.list.push(Class {
                queue,
                ..Class::default()
            });
        }
    }

    fn last(&mut self) -> Option<&mut Class> {
        self.list.last_mut().filter(|_| self.is_open)
    }
}

/// The queue of a class: `c-out-q3`, `c-out-8q-q3` and `c-nq3` are 3, `c-out-q-default` and `class-default` are 0.
fn queue_of_class(name: &str) -> Option<String> {
    if name.ends_with("-default") {
        return Some("0".to_owned());
    }
    let at = name.rfind('q')?;
    let number: u8 = name[at + 1..].parse().ok()?;
    Some(number.to_string())
}

/// Lossless queues, by the policy that applies to the whole switch. The table of ingress thresholds of a port counts where it is there.
pub(super) fn network_qos(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    let mut policies = match body {
        Body::Json(documents) => network_documents(documents),
        Body::Text(text) => network_text(text),
    };
    let is_known = !policies.is_empty();
    // It is not known which one of several applies.
    let (Some(policy), true) = (policies.pop(), policies.is_empty()) else {
        return is_known;
    };
    let ports = sink.ports();
    for class in policy.list.iter().filter(|class| !class.queue.is_empty()) {
        for port in &ports {
            let place = NumberPlace::queue(port, &class.queue);
            // A class whose first line is repeated is two, of which the second has its lines.
            let mut of_queue = policy.list.iter().filter(|other| other.queue == class.queue);
            let is_lossless = of_queue.any(|other| other.is_lossless);
            sink.put(
                place,
                Counter::SwitchQueueNoDrop,
                &[],
                Some(u64::from(is_lossless)),
            );
        }
    }
    is_known
}

fn network_text(text: &str) -> Vec<Classes> {
    let mut policies: Vec<Classes> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("policy-map type network-qos ") {
            if policies.len() < MAX_CLASSES {
                policies.push(Classes::default());
            }
        } else if let Some(policy) = policies.last_mut() {
            if let Some(name) = line.strip_prefix("class type network-qos ") {
                let name = name.split_whitespace().next().unwrap_or_default();
                policy.begin(Some(queue_of_class(name).unwrap_or_default()));
            } else if let Some(class) = policy.last() {
                if let Some(group) = line.strip_prefix("match qos-group ") {
                    class.set_group(group);
                } else if line == "pause" || line.starts_with("pause ") {
                    class.is_lossless = true;
                }
            }
        }
    }
    policies
}

/// Keys of the NX-OS command reference (`show policy-map system`); no recording is known.
fn network_documents(documents: &[Value]) -> Vec<Classes> {
    let mut policies = Vec::new();
    for policy in documents
        .iter()
        .flat_map(objects)
        .flat_map(|document| table(document, "xpmap"))
    {
        let mut classes = Classes::default();
        for class in table(policy, "xcmap") {
            let name = text(class, &["xcmap-name"]).unwrap_or_default();
            classes.begin(Some(queue_of_class(&name).unwrap_or_default()));
            for action in table(class, "xaction").into_iter().chain(table(class, "action")) {
                if let Some(class) = classes.last() {
                    if let Some(queue) = text(action, &["qos-group-list"]).and_then(|group| queue_of(&group))
                    {
                        class.queue = queue;
                    }
                    class.is_lossless |= ["pause", "nq-pause", "pfc-cos-list"]
                        .iter()
                        .any(|key| text(action, &[key]).is_some_and(|value| !value.is_empty()));
                }
            }
        }
        policies.push(classes);
    }
    policies
}

/// The queuing policy of one interface.
pub(super) fn interface_queuing(body: &Body, interface: &Interface, sink: &mut Sink<'_>) -> bool {
    let classes = queuing(body, Some(interface));
    let Some(interface) = sink.interface(&interface.name) else {
        return false;
    };
    for class in &classes.list {
        put_class(&interface.name, class, sink);
        put_bounds(&interface, class, sink);
    }
    !classes.list.is_empty()
}

/// The queuing policy of the system. It applies to the ports without one of their own.
pub(super) fn system_queuing(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    let classes = queuing(body, None);
    let own: BTreeSet<String> = sink
        .reading
        .classes
        .iter()
        .map(|class| class.interface.clone())
        .collect();
    let mut ports = sink.ports();
    ports.retain(|port| !own.contains(&port.name));
    for class in &classes.list {
        put_class("", class, sink);
        for port in &ports {
            put_bounds(port, class, sink);
        }
    }
    !classes.list.is_empty()
}

fn put_class(interface: &str, class: &Class, sink: &mut Sink<'_>) {
    let known = &mut sink.reading.classes;
    let is_known = known
        .iter()
        .rev()
        .take(MAX_CLASSES)
        .any(|other| other.interface == interface && other.queue == class.queue);
    if !is_known {
        known.push(QueueClass {
            interface: interface.to_owned(),
            queue: class.queue.clone(),
            priority_level: class.level,
            has_ecn: class.has_ecn,
        });
    }
}

/// Thresholds of marking. Those of a class without ECN are of drops, and left out.
fn put_bounds(interface: &Interface, class: &Class, sink: &mut Sink<'_>) {
    if !class.has_ecn {
        return;
    }
    let place = NumberPlace::queue(interface, &class.queue);
    for (bound, value) in ["min", "max"].into_iter().zip(class.bounds) {
        sink.put(place, Counter::SwitchEcnThreshold, &[bound.into()], value);
    }
}

/// The classes of the policy for output.
fn queuing(body: &Body, interface: Option<&Interface>) -> Classes {
    let mut classes = Classes::default();
    match body {
        Body::Text(text) => queuing_text(text, interface, &mut classes),
        Body::Json(documents) => {
            for document in documents.iter().flat_map(objects) {
                let below = table(document, "interface")
                    .into_iter()
                    .flat_map(|row| table(row, "pmap"));
                for policy in table(document, "pmap").into_iter().chain(below) {
                    queuing_policy(policy, &mut classes);
                }
            }
        }
    }
    classes
}

fn queuing_text(text: &str, interface: Option<&Interface>, classes: &mut Classes) {
    let mut is_output = true;
    for line in text.lines() {
        let line = line.trim();
        if !line.contains([' ', ':'])
            && line.contains('/')
            && let Some(other) = Interface::parse(line)
        {
            // The answer is about one interface.
            if interface.is_some_and(|interface| *interface != other) {
                return;
            }
        } else if line.starts_with("Service-policy") {
            is_output = !line.contains("input");
        } else if let Some(name) = line.strip_prefix("Class-map (queuing):") {
            let name = name.split_whitespace().next().filter(|_| is_output);
            classes.begin(name.and_then(queue_of_class));
        } else if let Some(class) = classes.last() {
            class_line(line, class);
        }
    }
}

/// A line of a class: `priority level 1`, or `random-detect minimum-threshold 150 kbytes maximum-threshold 1500 kbytes ... ecn`.
fn class_line(line: &str, class: &mut Class) {
    if let Some(level) = line.strip_prefix("priority level ") {
        class.level = class.level.or(level.trim().parse().ok());
    } else if line.starts_with("random-detect") || line.starts_with("afd ") {
        let words: Vec<&str> = line.split_whitespace().collect();
        class.has_ecn |= words.contains(&"ecn");
        for (bound, name) in class
            .bounds
            .iter_mut()
            .zip(["minimum-threshold", "maximum-threshold"])
        {
            let at = words.iter().position(|word| *word == name);
            let value = at.and_then(|at| Some((words.get(at + 1)?, words.get(at + 2)?)));
            *bound = bound.or(value.and_then(|(value, unit)| bytes(value, unit)));
        }
    }
}

/// A length in bytes. NX-OS' documents do not say whether a kbyte has 1000 or 1024 bytes; the former is taken. Lengths in packets and in
/// time are none.
fn bytes(value: &str, unit: &str) -> Option<u64> {
    let factor = match unit {
        "bytes" => 1,
        "kbytes" => 1000,
        "mbytes" => 1_000_000,
        _ => return None,
    };
    number(value)?.checked_mul(factor)
}

/// Keys of the NX-OS command reference (`show policy-map system`); no recording is known.
fn queuing_policy(policy: &Object, classes: &mut Classes) {
    if text(policy, &["in-or-out"]).is_some_and(|direction| direction.contains("input")) {
        return;
    }
    for class in table(policy, "cmap") {
        classes.begin(text(class, &["cmap-name"]).and_then(|name| queue_of_class(&name)));
        for action in table(class, "action") {
            let Some(class) = classes.last() else {
                continue;
            };
            let level = count(action, &["prio-level"]).and_then(|level| u8::try_from(level).ok());
            class.level = class.level.or(level);
            let is_set = |key: &str| match field(action, key) {
                Some(Value::Bool(is_set)) => *is_set,
                Some(Value::Number(number)) => number.as_u64().is_some_and(|number| number > 0),
                Some(Value::String(text)) => {
                    !matches!(text.trim(), "" | "0" | "-" | "--" | "N/A" | "false" | "no")
                }
                _ => false,
            };
            class.has_ecn |= is_set("rdet-ecn");
            for detect in table(action, "rdet") {
                let unit = text(detect, &["rdet-size-units"]).unwrap_or_default();
                for (bound, key) in class
                    .bounds
                    .iter_mut()
                    .zip(["rdet-min-thresh", "rdet-max-thresh"])
                {
                    let value = text(detect, &[key]).and_then(|value| bytes(&value, &unit));
                    *bound = bound.or(value);
                }
            }
        }
    }
}
