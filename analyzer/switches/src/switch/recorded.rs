//! Fixtures of `tests/data/fabric` for the tests of parsers.

use std::collections::BTreeSet;
use std::path::Path;

use roce_model::{Counter, Sample, Time};

use crate::device::{Answers, Reading, file_name};
use crate::inventory::SwitchKind;

/// The answer to a command in a folder of fixtures.
pub(super) fn fixture(folder: &str, command: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/fabric");
    let name = file_name(command);
    let read = |ending: &str| std::fs::read_to_string(root.join(folder).join(format!("{name}.{ending}")));
    read("json").or_else(|_| read("txt")).unwrap()
}

/// The reading of these commands' answers.
pub(super) fn read_all(kind: SwitchKind, folder: &str, commands: &[&str]) -> Reading {
    let mut answers = Answers::default();
    for command in commands {
        answers.insert(command, &fixture(folder, command));
    }
    reading_of(kind, &answers)
}

/// The reading of answers.
pub(super) fn reading_of(kind: SwitchKind, answers: &Answers) -> Reading {
    super::read(kind, "leaf1", Time(0), answers)
}

/// Samples of a counter as `object priority queue details value`.
pub(super) fn samples(reading: &Reading, counter: Counter) -> BTreeSet<String> {
    let line = |sample: &Sample| {
        let mut words = vec![sample.object.to_string()];
        words.extend(sample.priority.map(|priority| format!("p{priority}")));
        words.extend(sample.queue.as_ref().map(|queue| format!("q{queue}")));
        words.extend(sample.details.iter().map(ToString::to_string));
        words.push(sample.value.to_string());
        words.join(" ")
    };
    let lines: BTreeSet<String> = reading.of(counter).map(line).collect();
    assert_eq!(
        lines.len(),
        reading.of(counter).count(),
        "{} twice",
        counter.name()
    );
    lines
}

#[track_caller]
pub(super) fn check(reading: &Reading, counter: Counter, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(ToString::to_string).collect();
    assert_eq!(samples(reading, counter), expected, "{}", counter.name());
}
