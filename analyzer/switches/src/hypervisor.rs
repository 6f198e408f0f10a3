//! Hypervisors: the commands that they are given, and the readings that their answers become.

mod esxi;

use roce_model::{SampleSource, Time};

use crate::device::{Answers, Question, Reading};
use crate::inventory::HypervisorKind;

/// Commands for a hypervisor of this kind. No adapters: all whose link is up.
pub fn questions(kind: HypervisorKind, vmnics: &[String]) -> Vec<Question> {
    match kind {
        HypervisorKind::Esxi => esxi::questions(vmnics),
    }
}

/// The reading that the answers of a hypervisor become. `time` is that of the reading on the clock of the host that analyses.
pub fn read(kind: HypervisorKind, node: &str, time: Time, answers: &Answers) -> Reading {
    let mut reading = Reading::new(SampleSource::Hypervisor, node, time);
    match kind {
        HypervisorKind::Esxi => esxi::read(answers, &mut reading),
    }
    reading
}
