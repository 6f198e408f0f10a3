//! Systems whose recordings alone are read: Junos, Dell OS10, and documents of OpenConfig, whatever system they are of.

mod junos;
mod openconfig;
mod os10;
#[cfg(test)]
mod tests;

use super::answer::read_table;
use crate::device::{Answers, Question, Reading};

/// Names of the answers: commands, and of a document its model.
const JUNOS_INTERFACES: &str = "show interfaces extensive";
const JUNOS_QUEUES: &str = "show interfaces queue";
const OS10_QUEUES: &str = "show queuing statistics";
const OS10_INTERFACES: &str = "show interface";
const OS10_PFC: &str = "show interface priority-flow-control details";
const OPENCONFIG: &str = "openconfig";

/// The answers that a recording may have.
const ANSWERS: [&str; 6] = [
    JUNOS_INTERFACES,
    JUNOS_QUEUES,
    OS10_QUEUES,
    OS10_INTERFACES,
    OS10_PFC,
    OPENCONFIG,
];

/// The questions of these answers. No device is asked them.
pub(super) fn questions() -> Vec<Question> {
    ANSWERS.map(Question::each).into()
}

/// Adds what the answers say.
pub(super) fn read(answers: &Answers, reading: &mut Reading) {
    let tables = [
        (JUNOS_INTERFACES, junos::read as fn(&str, &mut Reading) -> bool),
        (JUNOS_QUEUES, junos::read),
        (OS10_QUEUES, os10::queues),
        (OS10_INTERFACES, os10::interfaces),
        (OS10_PFC, os10::pfc),
    ];
    for (command, read) in tables {
        if let Some(text) = answers.get(command) {
            read_table(text, command, reading, read);
        }
    }
    if let Some(text) = answers.get(OPENCONFIG) {
        match openconfig::documents(text) {
            Ok(documents) => openconfig::read(&documents.into(), reading),
            Err((reason, said)) => reading.problem(reason, OPENCONFIG, said),
        }
    }
}
