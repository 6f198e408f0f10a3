//! Questions to switches and hypervisors of all kinds, their answers, and the reading that these become.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use roce_model::{Counter, Sample, SampleSource, Time};

/// Characters of an answer's command in the name of its file.
const MAX_NAME: usize = 120;

/// One command for a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The command line. The name of its answer.
    pub command: String,
    /// True if the answer hardly changes: it is read at the start and then once an hour.
    pub is_slow: bool,
    /// Form of the answer.
    pub form: Form,
}

/// Form of the answer to a [`Question`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Text or a JSON document, which the parser tells apart.
    Whole,
    /// Output of several commands of a shell script; a line `== COMMAND` is before each.
    Sections,
}

impl Question {
    /// A command that is given at each reading.
    pub fn each(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            is_slow: false,
            form: Form::Whole,
        }
    }

    /// A command that is given at the start and once an hour.
    pub fn slow(command: &str) -> Self {
        Self {
            is_slow: true,
            ..Self::each(command)
        }
    }

    /// A shell script with a line `== COMMAND` before the output of each command.
    pub fn script(script: &str) -> Self {
        Self {
            form: Form::Sections,
            ..Self::each(script)
        }
    }
}

/// Answers of one device, by command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answers {
    texts: BTreeMap<String, String>,
}

impl Answers {
    /// Adds the answer to `question`: one text, or one for each section of a script.
    pub fn add(&mut self, question: &Question, text: &str) {
        match question.form {
            Form::Whole => self.insert(&question.command, text),
            Form::Sections => self.add_sections(text),
        }
    }

    /// Adds the answer to a command. A later answer replaces an earlier one.
    pub fn insert(&mut self, command: &str, text: &str) {
        self.texts.insert(command.to_owned(), text.to_owned());
    }

    /// Adds the output of a script: lines behind `== COMMAND` up to the next such line. What is before the first one belongs to nobody.
    fn add_sections(&mut self, text: &str) {
        let mut section: Option<(&str, String)> = None;
        for whole in text.split_inclusive('\n') {
            let has_end = whole.ends_with('\n');
            let line = whole.trim_end_matches(['\n', '\r']);
            if let Some(command) = line.strip_prefix("== ") {
                if let Some((command, text)) = section.take() {
                    self.texts.insert(command.to_owned(), text);
                }
                section = Some((command.trim(), String::new()));
            } else if let Some((_, text)) = &mut section {
                text.push_str(line);
                // A last line without an end may be cut: who reads it has to know.
                if has_end {
                    text.push('\n');
                }
            }
        }
        if let Some((command, text)) = section {
            self.texts.insert(command.to_owned(), text);
        }
    }

    /// The answer to a command. An answer of a recorded folder may have the name of its file instead of the command.
    pub fn get(&self, command: &str) -> Option<&str> {
        let text = self.texts.get(command);
        text.or_else(|| self.texts.get(&file_name(command)))
            .map(String::as_str)
    }

    /// All answers, in the order of their commands.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .map(|(command, text)| (command.as_str(), text.as_str()))
    }

    /// Answers whose command starts with `prefix`, with the rest of the command.
    pub fn starting(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.iter()
            .filter_map(move |(command, text)| Some((command.strip_prefix(prefix)?, text)))
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Takes the answers of `newer` in place of its own.
    pub fn update(&mut self, newer: Self) {
        self.texts.extend(newer.texts);
    }
}

/// The name of the file that has the answer to a command, without its ending: characters outside `[A-Za-z0-9.-]` become `_`.
pub fn file_name(command: &str) -> String {
    let kept = |character: char| {
        if character.is_ascii_alphanumeric() || matches!(character, '.' | '-') {
            character
        } else {
            '_'
        }
    };
    command.chars().take(MAX_NAME).map(kept).collect()
}

/// Why a part of a reading is absent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The device does not know the command.
    Unsupported,
    /// The answer has a form that is not understood, or is cut short.
    Parse,
    /// Two numbers of the device that have to agree do not.
    Contradiction,
    /// The account may not give this command.
    Permission,
    /// The command took too long.
    Timeout,
    /// The device cannot be reached.
    Unreachable,
}

impl Reason {
    /// Its name in metrics and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Parse => "parse",
            Self::Contradiction => "contradiction",
            Self::Permission => "permission",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
        }
    }
}

/// A part of a reading that is absent, or that contradicts itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Why.
    pub reason: Reason,
    /// The command whose answer it is about.
    pub command: String,
    /// Text of what was expected and what was there.
    pub text: String,
}

/// The other end of a cable, by LLDP.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Neighbor {
    /// The interface of this device.
    pub interface: String,
    /// The neighbour's name, or its chassis' identifier.
    pub node: String,
    /// The neighbour's interface, or its address.
    pub port: String,
}

/// A device's description of itself. A text that is not known is empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    /// Model of the chassis.
    pub model: String,
    /// Version of its system.
    pub version: String,
    /// Serial number.
    pub serial: String,
    /// Build of its system (ESXi).
    pub build: String,
}

/// An adapter of a hypervisor. A text that is not known is empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Adapter {
    /// Its name: `vmnic5`.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Version of the driver.
    pub driver_version: String,
    /// Version of the firmware.
    pub firmware: String,
    /// Its MAC address.
    pub mac: String,
}

/// One queue's class in a switch's policies, as far as findings need it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueClass {
    /// The interface, or empty for a policy of the whole system.
    pub interface: String,
    /// The queue, as in samples.
    pub queue: String,
    /// Strict priority level, where the class has one; 1 goes first.
    pub priority_level: Option<u8>,
    /// True if packets are marked.
    pub has_ecn: bool,
}

/// One reading of a device.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// Who was read.
    pub source: SampleSource,
    /// Its name in the inventory.
    pub node: Arc<str>,
    /// When, on the clock of the host that analyses.
    pub time: Time,
    /// Numbers.
    pub samples: Vec<Sample>,
    /// The device's description of itself.
    pub description: Description,
    /// The other ends of its cables.
    pub neighbors: Vec<Neighbor>,
    /// Adapters of a hypervisor.
    pub adapters: Vec<Adapter>,
    /// Classes of queues.
    pub classes: Vec<QueueClass>,
    /// DSCPs (0 to 63) that reach a queue, by queue; empty where the policies were not read.
    pub queue_of_dscp: BTreeMap<u8, String>,
    /// True if PFC's watchdog runs; `None`: not known.
    pub has_watchdog: Option<bool>,
    /// Queues that PFC's watchdog keeps shut at the moment: interface and queue.
    pub stormed_queues: BTreeSet<(String, String)>,
    /// Settings by name, as far as findings need them: `nmlx5_core.pfctx` is a parameter of a hypervisor's module. Empty value: not set.
    pub settings: BTreeMap<String, String>,
    /// Absent values, each with the reason.
    pub problems: Vec<Problem>,
}

impl Reading {
    /// An empty reading.
    pub fn new(source: SampleSource, node: &str, time: Time) -> Self {
        Self {
            source,
            node: node.into(),
            time,
            samples: Vec::new(),
            description: Description::default(),
            neighbors: Vec::new(),
            adapters: Vec::new(),
            classes: Vec::new(),
            queue_of_dscp: BTreeMap::new(),
            has_watchdog: None,
            stormed_queues: BTreeSet::new(),
            settings: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// Adds a number of an object: 64 bits wide, without priority, queue or details.
    pub fn push(&mut self, counter: Counter, object: &str, value: f64) -> &mut Sample {
        let sample = Sample {
            time: self.time,
            source: self.source,
            node: Arc::clone(&self.node),
            object: object.into(),
            counter,
            priority: None,
            queue: None,
            details: Vec::new(),
            value,
            bits: 64,
        };
        let at = self.samples.len();
        self.samples.push(sample);
        &mut self.samples[at]
    }

    /// Number of values and facts that were understood; whether the device is up is none of them.
    pub fn understood(&self) -> usize {
        let is_up = |sample: &&Sample| matches!(sample.counter, Counter::SwitchUp | Counter::HypervisorUp);
        let about = &self.description;
        let texts = [&about.model, &about.version, &about.serial, &about.build];
        let texts = texts.into_iter().chain(self.settings.values());
        self.samples.len() - self.samples.iter().filter(is_up).count()
            + texts.filter(|text| !text.is_empty()).count()
            + self.neighbors.len()
            + self.adapters.len()
            + self.classes.len()
            + self.queue_of_dscp.len()
    }

    /// Notes a part that is absent.
    pub fn problem(&mut self, reason: Reason, command: &str, text: impl Into<String>) {
        self.problems.push(Problem {
            reason,
            command: command.to_owned(),
            text: text.into(),
        });
    }

    /// Leaves out numbers that are there already: a line that a device repeats does not count twice, and the first one counts.
    pub(crate) fn keep_first(&mut self) {
        let mut seen = HashSet::new();
        self.samples.retain(|sample| {
            let place = (Arc::clone(&sample.object), sample.priority, sample.queue.clone());
            seen.insert((sample.counter, place, sample.details.clone()))
        });
    }

    /// Samples of one counter.
    pub fn of(&self, counter: Counter) -> impl Iterator<Item = &Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.counter == counter)
    }

    /// The sum of a counter over an object's priorities, queues and details; `None` where there is none of it.
    pub fn sum(&self, counter: Counter, object: &str) -> Option<f64> {
        let values = self.of(counter).filter(|sample| sample.object.as_ref() == object);
        values.map(|sample| sample.value).reduce(|sum, value| sum + value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_one_answer_for_each_section() {
        let mut answers = Answers::default();
        let question = Question::script("echo '== a'; cat a; echo '== b c'; cat b");
        answers.add(&question, "a warning before\r\n== a\r\n1\r\n2\n== b c\n");
        let all: Vec<_> = answers.iter().collect();
        assert_eq!(all, [("a", "1\n2\n"), ("b c", "")]);
        assert_eq!(answers.starting("b ").collect::<Vec<_>>(), [("c", "")]);
        answers.add(&question, "== a\n1\r\n== b c\n18446");
        assert_eq!(
            (answers.get("a"), answers.get("b c")),
            (Some("1\n"), Some("18446"))
        );
        answers.insert("show_queuing_interface___json", "{}");
        assert_eq!(answers.get("show queuing interface | json"), Some("{}"));
    }

    #[test]
    fn commands_name_their_files() {
        assert_eq!(
            file_name("show queuing interface | json"),
            "show_queuing_interface___json"
        );
        assert_eq!(file_name("../etc/passwd"), ".._etc_passwd");
        assert_eq!(file_name(&"a".repeat(500)).len(), MAX_NAME);
    }

    #[test]
    fn a_number_that_is_repeated_counts_once() {
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(5));
        for (object, priority, value) in [
            ("Ethernet0", None, 7.0),
            ("Ethernet0", None, 9.0),
            ("Ethernet0", Some(3), 5.0),
            ("Ethernet4", None, 7.0),
        ] {
            reading
                .push(Counter::SwitchPfcReceivedFrames, object, value)
                .priority = priority;
        }
        reading.keep_first();
        let values: Vec<f64> = reading.samples.iter().map(|sample| sample.value).collect();
        assert_eq!(values, [7.0, 5.0, 7.0]);
    }

    #[test]
    fn absent_is_not_zero() {
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(5));
        reading.push(Counter::SwitchPfcReceivedFrames, "Ethernet1/1/1", 7.0);
        let sample = reading.push(Counter::SwitchPfcReceivedFrames, "Ethernet1/1/1", 5.0);
        sample.priority = Some(3);
        assert_eq!(
            reading.sum(Counter::SwitchPfcReceivedFrames, "Ethernet1/1/1"),
            Some(12.0)
        );
        assert_eq!(
            reading.sum(Counter::SwitchPfcReceivedFrames, "Ethernet1/1/10"),
            None
        );
    }
}
