//! Readings of switches and hypervisors: their questions, asked over a transport, become one reading.
//!
//! Slow questions are asked at the start and once an hour. A command that the device does not know is not given again for an hour.
//! A device that cannot be read, or of whose answers nothing is understood, has the value 0 for "up" and nothing else. Values have the time of this host's clock.

pub(crate) mod answer;
pub(crate) mod error;
mod recorder;
pub(crate) mod refusal;
mod secrets;
#[cfg(test)]
mod tests;
pub(crate) mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use roce_model::{Counter, SampleSource, Time};
use roce_switches::device::{Answers, Problem, Question, Reading, Reason};
use roce_switches::inventory::{
    HypervisorKind, HypervisorTarget, SshSettings, SwitchKind, SwitchTarget, Transport as Way,
};
use roce_switches::{hypervisor, switch};

use crate::machine::Machine;
use answer::{Outcome, UnansweredQuestion};
pub use error::ReaderError;
pub use recorder::Recorder;
use transport::{Files, Transport};

/// Time for which the answer to a slow question is good, and for which an unknown command is not given again.
const GOOD_FOR: Duration = Duration::from_hours(1);
/// Questions of one reading.
const MAX_QUESTIONS: usize = 1_024;
/// Times that the answers of one reading may lead to further questions.
const MAX_ROUNDS: usize = 3;
/// Bytes of all answers of one reading.
const MAX_READING_BYTES: usize = 64 << 20;

/// Number of commands without an answer, and of parts that were not understood, since the start.
pub type Count = (Reason, u64);

/// Language of a device: its questions, and the meaning of the answers.
trait Language: Send {
    fn source(&self) -> SampleSource;
    fn questions(&self, known: &Answers) -> Vec<Question>;
    fn read(&self, node: &str, time: Time, answers: &Answers) -> Reading;
}

impl Language for SwitchKind {
    fn source(&self) -> SampleSource {
        SampleSource::Switch
    }

    fn questions(&self, known: &Answers) -> Vec<Question> {
        switch::questions(*self, known)
    }

    fn read(&self, node: &str, time: Time, answers: &Answers) -> Reading {
        switch::read(*self, node, time, answers)
    }
}

/// A hypervisor, and the adapters of it that are read.
struct Hypervisor {
    kind: HypervisorKind,
    vmnics: Vec<String>,
}

impl Language for Hypervisor {
    fn source(&self) -> SampleSource {
        SampleSource::Hypervisor
    }

    fn questions(&self, _known: &Answers) -> Vec<Question> {
        hypervisor::questions(self.kind, &self.vmnics)
    }

    fn read(&self, node: &str, time: Time, answers: &Answers) -> Reading {
        hypervisor::read(self.kind, node, time, answers)
    }
}

/// Reads a switch or a hypervisor, again and again.
pub struct DeviceReader {
    node: String,
    language: Box<dyn Language>,
    transport: Box<dyn Transport>,
    /// Answers to slow questions, by question.
    kept: BTreeMap<String, (Instant, Answers)>,
    /// Commands that the device does not know, and when it said so.
    unknown: BTreeMap<String, (Instant, UnansweredQuestion)>,
    /// The last answers to all questions, on which further questions depend.
    known: Answers,
    errors: BTreeMap<Reason, u64>,
    recorder: Option<Recorder>,
    record_error: Option<roce_files::Error>,
}

impl DeviceReader {
    /// A switch of an inventory.
    ///
    /// # Errors
    /// If its transport cannot be used: a file with a password or a certificate cannot be read.
    pub fn switch(target: &SwitchTarget, ssh: &Arc<SshSettings>) -> Result<Self, ReaderError> {
        let transport: Box<dyn Transport> = match target.transport {
            Way::Ssh => Box::new(Machine::switch(target, ssh)),
            Way::Files => Box::new(Files::new(folder(target.files.as_ref())?)),
            #[cfg(feature = "nxapi")]
            Way::Nxapi => Box::new(crate::nxapi::Client::new(target, ssh)?),
            #[cfg(not(feature = "nxapi"))]
            Way::Nxapi => {
                let text = "this program was built without the feature `nxapi`";
                return Err(ReaderError::Nxapi(text.to_owned()));
            }
        };
        Ok(Self::new(&target.name, Box::new(target.kind), transport))
    }

    /// A hypervisor of an inventory.
    ///
    /// # Errors
    /// If its transport cannot be used.
    pub fn hypervisor(target: &HypervisorTarget, ssh: &Arc<SshSettings>) -> Result<Self, ReaderError> {
        let transport: Box<dyn Transport> = match target.transport {
            Way::Files => Box::new(Files::new(folder(target.files.as_ref())?)),
            Way::Ssh | Way::Nxapi => Box::new(Machine::hypervisor(target, ssh)),
        };
        let language = Hypervisor {
            kind: target.kind,
            vmnics: target.vmnics.clone(),
        };
        Ok(Self::new(&target.name, Box::new(language), transport))
    }

    fn new(node: &str, language: Box<dyn Language>, transport: Box<dyn Transport>) -> Self {
        Self {
            node: node.to_owned(),
            language,
            transport,
            kept: BTreeMap::new(),
            unknown: BTreeMap::new(),
            known: Answers::default(),
            errors: BTreeMap::new(),
            recorder: None,
            record_error: None,
        }
    }

    /// Writes every answer from here on, too.
    pub fn record_to(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Gives one command alone, beside those of readings. Returns its answer.
    ///
    /// # Errors
    /// If there is none: why, in one line.
    pub fn answer(&mut self, command: &str) -> Result<String, String> {
        let question = Question::each(command);
        let outcome = self.transport.ask(std::slice::from_ref(&question)).pop();
        match outcome {
            Some(Ok(text)) => Ok(text),
            Some(Err(unanswered)) => Err(unanswered.text),
            None => Err("it gave no answer".to_owned()),
        }
    }

    /// Its name in the inventory.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Failures since the start, by reason.
    pub fn errors(&self) -> impl Iterator<Item = Count> {
        self.errors.iter().map(|(reason, count)| (*reason, *count))
    }

    /// The first error of writing answers, once.
    pub fn take_record_error(&mut self) -> Option<roce_files::Error> {
        self.record_error.take()
    }

    /// Asks and reads. `clock` is that of this host: the reading has the time in the middle of the asking, so that no value is further
    /// from it than half of the time that the device took.
    pub fn read(&mut self, clock: impl Fn() -> Time) -> Reading {
        self.read_at(Instant::now(), clock)
    }

    fn read_at(&mut self, now: Instant, clock: impl Fn() -> Time) -> Reading {
        let begun = clock();
        self.kept
            .retain(|_, (asked, _)| now.duration_since(*asked) < GOOD_FOR);
        self.unknown
            .retain(|_, (asked, _)| now.duration_since(*asked) < GOOD_FOR);
        let asked = self.ask(now);
        let time = begun + clock().since(begun) / 2;
        let mut reading = if asked.is_up {
            let mut answers = asked.further;
            for (_, slow) in self.kept.values() {
                answers.update(slow.clone());
            }
            answers.update(asked.answers);
            self.language.read(&self.node, time, &answers)
        } else {
            Reading::new(self.language.source(), &self.node, time)
        };
        let is_understood = reading.understood() > 0;
        if asked.is_up && !is_understood {
            let text = "it answered, and nothing of it was understood";
            let problem = problem("every command", &UnansweredQuestion::new(Reason::Parse, text));
            reading.problems.insert(0, problem);
        }
        for problem in reading.problems.iter().chain(&asked.problems) {
            *self.errors.entry(problem.reason).or_default() += 1;
        }
        let remembered = self.unknown.iter().filter(|(_, (at, _))| *at != now);
        let remembered = remembered.map(|(command, (_, unanswered))| problem(command, unanswered));
        let mut unanswered: Vec<Problem> = asked.problems.into_iter().chain(remembered).collect();
        unanswered.retain(|problem| !self.has_answer_as_text(&problem.command));
        // Problems of the whole device come first.
        let at = usize::from(asked.is_up && !is_understood);
        reading.problems.splice(at..at, unanswered);
        let up = match reading.source {
            SampleSource::Hypervisor => Counter::HypervisorUp,
            _ => Counter::SwitchUp,
        };
        reading.samples.retain(|sample| sample.counter != up);
        reading.push(up, "", f64::from(u8::from(asked.is_up && is_understood)));
        reading
    }

    /// Asks all questions that are due, and those to which their answers lead.
    fn ask(&mut self, now: Instant) -> ReadingOutcomes {
        let mut asked = ReadingOutcomes::default();
        let mut given = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            let mut due = self.language.questions(&self.known);
            due.retain(|question| {
                let command = &question.command;
                let is_good = question.is_slow && self.kept.contains_key(command);
                !is_good && !self.unknown.contains_key(command) && !given.contains(command)
            });
            due.truncate(MAX_QUESTIONS.saturating_sub(given.len()));
            if due.is_empty() {
                break;
            }
            given.extend(due.iter().map(|question| question.command.clone()));
            let outcomes = self.transport.ask(&due);
            let is_whole = outcomes.len() == due.len();
            for (question, outcome) in due.iter().zip(outcomes) {
                self.take(question, outcome, now, &mut asked);
            }
            if !is_whole || asked.is_unreachable || asked.bytes > MAX_READING_BYTES {
                break;
            }
        }
        match self.transport.further() {
            Ok(further) => asked.further = further,
            // A folder that is not there was said before.
            Err(_) if asked.is_unreachable => {}
            Err(unanswered) => asked.problems.push(problem("further answers", &unanswered)),
        }
        asked.is_up |= !asked.further.is_empty();
        // A device that vanished in the middle of a reading has given half of one: none of it is shown.
        asked.is_up = asked.is_up && !asked.is_unreachable;
        asked
    }

    /// True if the command wants a document, and the device has a text instead.
    fn has_answer_as_text(&self, command: &str) -> bool {
        let plain = command.strip_suffix("| json").map(str::trim_end);
        plain.is_some_and(|plain| !self.unknown.contains_key(plain) && self.known.get(plain).is_some())
    }

    /// Takes the outcome of one question.
    fn take(&mut self, question: &Question, outcome: Outcome, now: Instant, asked: &mut ReadingOutcomes) {
        let text = match &outcome {
            Ok(text) => Some(text),
            Err(unanswered) => unanswered.answer.as_ref(),
        };
        if let (Some(recorder), Some(text)) = (&mut self.recorder, text)
            && let Err(error) = recorder.write(question, text)
        {
            self.record_error.get_or_insert(error);
        }
        match outcome {
            Ok(text) => {
                asked.is_up = true;
                asked.bytes = asked.bytes.saturating_add(text.len());
                if asked.bytes > MAX_READING_BYTES {
                    let text = format!("all answers have more than {} MiB", MAX_READING_BYTES >> 20);
                    let unanswered = UnansweredQuestion::new(Reason::Parse, text);
                    asked.problems.push(problem(&question.command, &unanswered));
                    return;
                }
                let mut answers = Answers::default();
                answers.add(question, &text);
                self.known.update(answers.clone());
                if question.is_slow {
                    self.kept.insert(question.command.clone(), (now, answers));
                } else {
                    asked.answers.update(answers);
                }
            }
            Err(unanswered) => {
                // The next question may be for the same thing in another form.
                if let Some(text) = &unanswered.answer {
                    self.known.insert(&question.command, text);
                }
                let is_absent = unanswered.reason == Reason::Unsupported && unanswered.answer.is_none();
                if !(is_absent && self.transport.is_excerpt()) {
                    asked.problems.push(problem(&question.command, &unanswered));
                }
                match unanswered.reason {
                    Reason::Unreachable => asked.is_unreachable = true,
                    Reason::Unsupported => {
                        self.unknown.insert(question.command.clone(), (now, unanswered));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Outcomes of one reading.
#[derive(Default)]
struct ReadingOutcomes {
    answers: Answers,
    /// Answers of a recording to other commands than those that were asked.
    further: Answers,
    problems: Vec<Problem>,
    bytes: usize,
    /// Something was answered.
    is_up: bool,
    is_unreachable: bool,
}

/// A problem of a question that has no answer.
fn problem(command: &str, unanswered: &UnansweredQuestion) -> Problem {
    Problem {
        reason: unanswered.reason,
        command: command.to_owned(),
        text: unanswered.text.clone(),
    }
}

fn folder(files: Option<&String>) -> Result<PathBuf, ReaderError> {
    files.map(PathBuf::from).ok_or(ReaderError::NoFolder)
}
