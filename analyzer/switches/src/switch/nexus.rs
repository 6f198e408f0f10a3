//! Cisco NX-OS: the commands, and the reading that their answers become. Each answer may be text or JSON.
//!
//! Keys and tables of the JSON are those of the NX-OS command reference for the Nexus 9000, release 9.3. Where a release answers in
//! another form, the part is absent, with a problem.

mod about;
mod answer;
mod buffer;
mod counters;
mod json;
mod nxapi;
mod pfc;
mod policy;
mod queuing;
mod refusal;
mod sink;
mod watchdog;

pub use nxapi::{Bodies, MAX_NXAPI_BYTES, NXAPI_NO_JSON, NxapiForm, nxapi_bodies, nxapi_request};

use crate::device::{Answers, Question, Reading, Reason};
use crate::switch::interface::{Interface, InterfaceKind};
use answer::Body;
use sink::Sink;

/// Interfaces whose own policy is read. The policies of others are those of the system.
const MAX_POLICY_INTERFACES: usize = 64;

const PFC: &str = "show interface priority-flow-control";

/// Requested form of the answer to a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerForm {
    Json,
    Text,
}

/// A command, and who reads its answer. The reader says whether it found the form that it knows.
struct Part {
    command: &'static str,
    wanted: AnswerForm,
    is_slow: bool,
    /// Recordings have its answer, and no switch is asked for it: other commands have the same numbers.
    is_recorded_only: bool,
    read: fn(&Body, &str, &mut Sink<'_>) -> bool,
}

impl Part {
    const fn new(
        command: &'static str,
        wanted: AnswerForm,
        read: fn(&Body, &str, &mut Sink<'_>) -> bool,
    ) -> Self {
        Self {
            command,
            wanted,
            is_slow: false,
            is_recorded_only: false,
            read,
        }
    }

    const fn recorded_only(self) -> Self {
        Self {
            is_recorded_only: true,
            ..self
        }
    }

    const fn slow(self) -> Self {
        Self {
            is_slow: true,
            ..self
        }
    }
}

/// In the order of questions and of reading: where two commands have one number, that of the first one counts. Policies are last: they
/// apply to the ports that the others have.
const PARTS: [Part; 14] = [
    Part::new("show version", AnswerForm::Json, about::version).slow(),
    // A link that goes down is known at the next reading, not an hour later.
    Part::new("show interface status", AnswerForm::Json, about::status),
    Part::new("show lldp neighbors detail", AnswerForm::Json, about::neighbors).slow(),
    Part::new(PFC, AnswerForm::Json, pfc::interfaces),
    Part::new(
        "show interface priority-flow-control detail",
        AnswerForm::Text,
        pfc::priorities_of,
    ),
    Part::new("show interface flowcontrol", AnswerForm::Text, pfc::flowcontrol),
    Part::new("show queuing interface", AnswerForm::Json, queuing::read),
    Part::new("show interface counters", AnswerForm::Json, counters::read),
    Part::new("show interface counters errors", AnswerForm::Json, counters::read),
    Part::new("show interface", AnswerForm::Text, counters::interfaces).recorded_only(),
    Part::new("show queuing pfc-queue detail", AnswerForm::Json, watchdog::read),
    Part::new(
        "show hardware internal buffer info pkt-stats",
        AnswerForm::Json,
        buffer::read,
    ),
    Part::new(
        "show policy-map system type network-qos",
        AnswerForm::Text,
        policy::network_qos,
    )
    .slow(),
    Part::new(
        "show policy-map type network-qos",
        AnswerForm::Text,
        policy::network_qos,
    )
    .slow(),
];

/// The system's own queuing policy. It applies to the ports without one of their own.
const SYSTEM_QUEUING: Part = Part::new(
    "show policy-map system type queuing",
    AnswerForm::Text,
    policy::system_queuing,
)
.slow();

/// The command for the queuing policy of an interface, around the interface's name.
const INTERFACE_POLICY: (&str, &str) = ("show policy-map interface ", " type queuing");

/// Commands. A command whose JSON the switch refused is given without it; one that it refused as text, too, is given once an hour.
pub(super) fn questions(known: &Answers) -> Vec<Question> {
    let mut questions: Vec<Question> = PARTS
        .iter()
        .chain([&SYSTEM_QUEUING])
        .filter(|part| !part.is_recorded_only)
        .map(|part| question(part, known))
        .collect();
    let (before, behind) = INTERFACE_POLICY;
    for name in pfc_ports(known) {
        questions.push(Question::slow(&format!("{before}{name}{behind}")));
    }
    questions
}

fn question(part: &Part, known: &Answers) -> Question {
    let is_refused = |command: &str| known.get(command).and_then(refusal::refusal).is_some();
    let mut command = part.command.to_owned();
    if part.wanted == AnswerForm::Json {
        let json = answer::as_json(part.command);
        if !is_refused(&json) {
            command = json;
        }
    }
    if part.is_slow || is_refused(&command) {
        Question::slow(&command)
    } else {
        Question::each(&command)
    }
}

/// Ports with PFC in operation, by an earlier answer.
fn pfc_ports(known: &Answers) -> Vec<String> {
    let Some(Ok(found)) = answer::find(known, PFC) else {
        return Vec::new();
    };
    let mut names: Vec<String> = pfc::enabled(&found.body)
        .into_iter()
        .filter(|interface| interface.kind == InterfaceKind::Port)
        .map(|interface| interface.name)
        .collect();
    names.sort();
    names.dedup();
    names.truncate(MAX_POLICY_INTERFACES);
    names
}

/// Adds what the answers say. An answer is found under its command, with or without ` | json`, and may be text or JSON.
pub(super) fn read(answers: &Answers, reading: &mut Reading) {
    let mut sink = Sink::new(reading);
    for part in &PARTS {
        read_part(part, answers, &mut sink);
    }
    let (before, behind) = INTERFACE_POLICY;
    let mut last: Option<Interface> = None;
    for (rest, _) in answers.starting(before) {
        let rest = rest.strip_suffix(answer::JSON).unwrap_or(rest);
        let Some(interface) = rest.strip_suffix(behind).and_then(Interface::parse) else {
            continue;
        };
        // The answers with and without ` | json` are beside each other.
        if last.as_ref() == Some(&interface) {
            continue;
        }
        if let Some(found) = answer::find(answers, &format!("{before}{rest}")) {
            match found {
                Ok(found) => {
                    policy::interface_queuing(&found.body, &interface, &mut sink);
                }
                Err(problem) => sink.problem(problem),
            }
        }
        last = Some(interface);
    }
    read_part(&SYSTEM_QUEUING, answers, &mut sink);
    sink.finish();
}

fn read_part(part: &Part, answers: &Answers, sink: &mut Sink<'_>) {
    match answer::find(answers, part.command) {
        None => {}
        Some(Err(problem)) => sink.problem(problem),
        Some(Ok(found)) => {
            if let Some(problem) = found.problem {
                sink.problem(problem);
            }
            if !found.body.is_empty() && !(part.read)(&found.body, &found.command, sink) {
                sink.note(
                    Reason::Parse,
                    &found.command,
                    "the answer has no table that is known",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
