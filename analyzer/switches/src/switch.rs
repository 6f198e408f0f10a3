//! Switches: the commands that they are given, and the readings that their answers become.

mod answer;
pub(crate) mod cumulus;
mod eos;
pub mod interface;
mod netstat;
mod nexus;
mod other;
mod paragraphs;
mod port;
#[cfg(test)]
mod recorded;
mod sonic;
pub(crate) mod text;

pub use nexus::{Bodies, MAX_NXAPI_BYTES, NXAPI_NO_JSON, NxapiForm, nxapi_bodies, nxapi_request};
pub use sonic::{SaiStatistic, sai_statistic};

use roce_model::{SampleSource, Time};

use crate::device::{Answers, Question, Reading};
use crate::inventory::SwitchKind;

/// Commands for a switch of this kind. Those of a later reading can depend on what an earlier one answered.
pub fn questions(kind: SwitchKind, known: &Answers) -> Vec<Question> {
    match kind {
        SwitchKind::Nexus => nexus::questions(known),
        SwitchKind::Sonic => sonic::questions(known),
        SwitchKind::Eos => eos::questions(known),
        SwitchKind::Cumulus => cumulus::questions(known),
        SwitchKind::Other => other::questions(),
    }
}

/// The reading that the answers of a switch become. `time` is that of the reading on the clock of the host that analyses.
pub fn read(kind: SwitchKind, node: &str, time: Time, answers: &Answers) -> Reading {
    let mut reading = Reading::new(SampleSource::Switch, node, time);
    match kind {
        SwitchKind::Nexus => nexus::read(answers, &mut reading),
        SwitchKind::Sonic => sonic::read(answers, &mut reading),
        SwitchKind::Eos => eos::read(answers, &mut reading),
        SwitchKind::Cumulus => cumulus::read(answers, &mut reading),
        SwitchKind::Other => other::read(answers, &mut reading),
    }
    if kind != SwitchKind::Nexus {
        // Its parser keeps the first number of each place itself.
        reading.keep_first();
    }
    reading
}
