//! Where the numbers of an answer go: samples of a reading. A number that is there already stays: the first command that has it counts,
//! and a line that a device repeats does not count twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use roce_model::{Counter, value_of};

use crate::device::{Problem, Reading, Reason};
use crate::switch::interface::{Interface, InterfaceKind};

/// Samples of one reading.
const MAX_SAMPLES: usize = 1_000_000;
/// Ports to which a policy of the whole switch is applied. A chassis has some hundreds.
const MAX_PORTS: usize = 4096;
/// Problems of one reading.
const MAX_PROBLEMS: usize = 100;

/// The place that a number is about.
#[derive(Clone, Copy)]
pub(super) struct NumberPlace<'a> {
    pub(super) interface: Option<&'a Interface>,
    pub(super) priority: Option<u8>,
    pub(super) queue: Option<&'a str>,
}

impl<'a> NumberPlace<'a> {
    /// The switch as a whole.
    pub(super) const SWITCH: NumberPlace<'static> = NumberPlace {
        interface: None,
        priority: None,
        queue: None,
    };

    pub(super) fn interface(interface: &'a Interface) -> Self {
        Self {
            interface: Some(interface),
            priority: None,
            queue: None,
        }
    }

    pub(super) fn priority(interface: &'a Interface, priority: u8) -> Self {
        Self {
            priority: Some(priority),
            ..Self::interface(interface)
        }
    }

    pub(super) fn queue(interface: &'a Interface, queue: &'a str) -> Self {
        Self {
            queue: Some(queue),
            ..Self::interface(interface)
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    counter: Counter,
    object: String,
    priority: Option<u8>,
    queue: Option<String>,
    details: Vec<Cow<'static, str>>,
}

/// Samples of a reading, each place once.
pub(super) struct Sink<'a> {
    pub(super) reading: &'a mut Reading,
    seen: HashSet<Key>,
    ports: BTreeMap<String, Interface>,
    is_full: bool,
}

impl<'a> Sink<'a> {
    pub(super) fn new(reading: &'a mut Reading) -> Self {
        Self {
            reading,
            seen: HashSet::new(),
            ports: BTreeMap::new(),
            is_full: false,
        }
    }

    /// Adds a count of a place; nothing where it is absent. `details` are those of [`Counter::labels`] behind `kind`.
    pub(super) fn put(
        &mut self,
        place: NumberPlace<'_>,
        counter: Counter,
        details: &[Cow<'static, str>],
        value: Option<u64>,
    ) {
        let Some(value) = value else {
            return;
        };
        let mut all: Vec<Cow<'static, str>> = Vec::with_capacity(details.len() + 1);
        if counter.labels().first() == Some(&"kind") {
            let Some(interface) = place.interface else {
                return;
            };
            all.push(interface.kind.label().into());
        }
        all.extend_from_slice(details);
        let object = place.interface.map_or("", |interface| interface.name.as_str());
        let key = Key {
            counter,
            object: object.to_owned(),
            priority: place.priority,
            queue: place.queue.map(str::to_owned),
            details: all.clone(),
        };
        if self.seen.len() >= MAX_SAMPLES {
            self.is_full = true;
            return;
        }
        if !self.seen.insert(key) {
            return;
        }
        let sample = self.reading.push(counter, object, value_of(value));
        sample.priority = place.priority;
        sample.queue = place.queue.map(Into::into);
        sample.details = all;
    }

    /// The interface of this name, if its numbers are part of a reading.
    pub(super) fn interface(&mut self, name: &str) -> Option<Interface> {
        let interface = counted(name)?;
        if interface.kind == InterfaceKind::Port && self.ports.len() < MAX_PORTS {
            self.ports
                .entry(interface.name.clone())
                .or_insert_with(|| interface.clone());
        }
        Some(interface)
    }

    /// Ports that the answers have had up to here.
    pub(super) fn ports(&self) -> Vec<Interface> {
        self.ports.values().cloned().collect()
    }

    /// Notes a part that is absent or contradicts itself.
    pub(super) fn note(&mut self, reason: Reason, command: &str, text: &str) {
        self.problem(Problem {
            reason,
            command: command.to_owned(),
            text: text.to_owned(),
        });
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        if self.reading.problems.len() < MAX_PROBLEMS {
            self.reading.problems.push(problem);
        }
    }

    /// Says what did not fit.
    pub(super) fn finish(mut self) {
        if self.is_full {
            let said = "the answers have more than 1,000,000 numbers, and the others are not read";
            self.note(Reason::Parse, "", said);
        }
    }
}

/// The interface of this name; `None` of one for management and of one without a port.
pub(super) fn counted(name: &str) -> Option<Interface> {
    Interface::parse(name).filter(|interface| interface.kind.is_counted())
}

/// The queue of a QoS group by the device's words: `3`, `QOS GROUP 3`, `CONTROL QOS GROUP`.
pub(super) fn queue_of(words: &str) -> Option<String> {
    let lower = words.to_ascii_lowercase();
    if lower.contains("control") {
        return Some("control".to_owned());
    }
    if lower.contains("span") {
        return Some("span".to_owned());
    }
    let last = lower.split_whitespace().last()?;
    let number: u8 = last.parse().ok()?;
    Some(number.to_string())
}
