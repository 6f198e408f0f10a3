//! Ways to ask a device: over ssh, and from a folder with recorded answers.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use roce_files::FileTree;
use roce_switches::device::{Answers, Form, Question, Reason, file_name};
use roce_switches::pasted::{PastedText, pasted};

use super::answer::{MAX_ANSWER_BYTES, Outcome, UnansweredQuestion};
use super::refusal::refusal;
use crate::machine::{CommandOutput, Machine, RemoteError};

/// Bytes of a recorded file, or of all files of a script: what somebody pasted has many answers in one.
const MAX_RECORDED_BYTES: u64 = 64 << 20;

/// Commands of one reading that may take too long; behind them the others are not given any more.
pub(crate) const MAX_TIMEOUTS: usize = 2;

/// A way to ask a device.
pub(crate) trait Transport: Send {
    /// Asks, and returns the outcomes in the order of the questions. There are fewer outcomes than questions where the device can be
    /// asked no more: the last outcome says why.
    fn ask(&mut self, questions: &[Question]) -> Vec<Outcome>;

    /// Answers that are there without a question: recordings have those to commands that somebody gave by hand.
    fn further(&mut self) -> Result<Answers, UnansweredQuestion> {
        Ok(Answers::default())
    }

    /// True if it has some answers alone, so that it is no problem where one is absent.
    fn is_excerpt(&self) -> bool {
        false
    }
}

impl Transport for Machine {
    fn ask(&mut self, questions: &[Question]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let mut timeouts = 0;
        for question in questions {
            let said = match question.form {
                Form::Whole => self.said(&question.command, MAX_ANSWER_BYTES),
                Form::Sections => self.said_by(&question.command, MAX_ANSWER_BYTES),
            };
            let outcome = match said {
                Ok(said) => answered(question, said),
                Err(error) => Err(failed(&error)),
            };
            let reason = outcome.as_ref().err().map(|unanswered| unanswered.reason);
            timeouts += usize::from(reason == Some(Reason::Timeout));
            outcomes.push(outcome);
            if reason == Some(Reason::Unreachable) || timeouts >= MAX_TIMEOUTS {
                break;
            }
        }
        outcomes
    }
}

/// The outcome of a command that ended.
fn answered(question: &Question, said: CommandOutput) -> Outcome {
    if said.output.len() as u64 >= MAX_ANSWER_BYTES {
        return Err(UnansweredQuestion::too_long());
    }
    let text = String::from_utf8_lossy(&said.output).into_owned();
    if let Some(refused) = refusal(&text) {
        return Err(refused);
    }
    match said.failure {
        None => Ok(text),
        // A script goes on behind a command that fails; the code is that of its last one.
        Some(_) if question.form == Form::Sections && has_section(&text) => Ok(text),
        Some(error) => Err(failed(&error)),
    }
}

fn has_section(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("== "))
}

/// The reason of a command that failed.
fn failed(error: &RemoteError) -> UnansweredQuestion {
    let text = error.to_string().lines().next().unwrap_or_default().to_owned();
    let reason = match error {
        RemoteError::Start { .. }
        | RemoteError::Unreachable(_)
        | RemoteError::Interrupted
        | RemoteError::Sink(_)
        | RemoteError::Thread(_) => Reason::Unreachable,
        RemoteError::NoAnswer(_) | RemoteError::TooSlow(_) => Reason::Timeout,
        RemoteError::NotFound(_) | RemoteError::Argument(_) => Reason::Unsupported,
        RemoteError::TooMuch(_) => Reason::Parse,
        RemoteError::Failed { text, .. } => refusal(text).map_or(Reason::Parse, |refused| refused.reason),
    };
    UnansweredQuestion::new(reason, text)
}

/// A folder with recorded answers: for each command a file that [`file_name`] names, with the ending `.json` or `.txt`, or any file whose
/// content says what it answers. Or one file with what somebody pasted, whose content says which answers it has.
///
/// A script is answered by all of them: its commands are found by the names of their files. A file that begins with `== ` has the
/// output of a whole script. No link leads out of the folder.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The answers of one pasted text; `None`: this is a folder.
    fn pasted(&self) -> Option<Result<PastedText, UnansweredQuestion>> {
        if !self.folder.is_file() {
            return None;
        }
        let name = self.folder.file_stem().unwrap_or_default().to_string_lossy();
        let text = roce_files::read_text(&self.folder, MAX_RECORDED_BYTES)
            .map_err(|error| UnansweredQuestion::new(Reason::Parse, error.to_string()));
        Some(text.and_then(|text| {
            pasted(&text, &name).ok_or_else(|| {
                let reason = "the text has no answer of a switch or hypervisor that is known";
                UnansweredQuestion::new(Reason::Unsupported, reason)
            })
        }))
    }

    fn unreachable(&self, error: &std::io::Error) -> UnansweredQuestion {
        let text = format!("{}: {error}", self.folder.display());
        UnansweredQuestion::new(Reason::Unreachable, text)
    }

    fn unreadable(&self, file: &str, error: &std::io::Error) -> UnansweredQuestion {
        let path = self.folder.join(file);
        UnansweredQuestion::new(Reason::Parse, format!("{}: {error}", path.display()))
    }

    fn whole(&self, tree: &FileTree, command: &str) -> Outcome {
        // A recording of texts alone answers a question for a document, too.
        let plain = command.strip_suffix("| json").unwrap_or(command).trim_end();
        let names = [file_name(command), file_name(plain)];
        let files = names
            .iter()
            .flat_map(|name| [".json", ".txt", ".log", ""].map(|ending| format!("{name}{ending}")));
        for file in files {
            // A look that fails for another reason does not say that there is none.
            let text = match tree.whole_text(&file, MAX_RECORDED_BYTES) {
                Ok(text) => text,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => {
                    continue;
                }
                Err(error) => return Err(self.unreadable(&file, &error)),
            };
            return refusal(&text).map_or(Ok(text), Err);
        }
        let text = format!("there is no recorded answer {}.json or .txt", names[0]);
        Err(UnansweredQuestion::new(Reason::Unsupported, text))
    }

    fn sections(&self, tree: &FileTree, script: &str) -> Outcome {
        // A listing that ends with an error may lack answers: it is no folder with fewer of them.
        let mut names = tree.names("").map_err(|error| self.unreachable(&error))?;
        // The last of two files of one name counts: `.json` goes behind `.txt`.
        names.sort_by_key(|name| Path::new(name).extension().map(|ending| ending == "json"));
        // Commands of the script by the names of their files.
        let commands: BTreeMap<String, &str> = script
            .split(['"', '\n'])
            .map(|part| part.trim().trim_start_matches("== "))
            .map(|command| (file_name(command), command))
            .collect();
        let mut all = String::new();
        for file in &names {
            let Some(name) = Path::new(file).file_stem().and_then(|name| name.to_str()) else {
                continue;
            };
            let left = MAX_RECORDED_BYTES.saturating_sub(all.len() as u64);
            if name.starts_with('.') {
                continue;
            }
            let text = match tree.whole_text(file, left) {
                Ok(text) => text,
                // Half of an answer is none. What is no text, or a link that leads out, is no answer at all.
                Err(error) if error.raw_os_error().is_some() && error.kind() != ErrorKind::NotFound => {
                    return Err(self.unreadable(file, &error));
                }
                Err(_) => continue,
            };
            if !text.trim_start().starts_with("== ") {
                all.push_str("== ");
                all.push_str(commands.get(name).copied().unwrap_or(name));
                all.push('\n');
            }
            all.push_str(&text);
            if !text.ends_with('\n') {
                all.push('\n');
            }
        }
        if all.is_empty() {
            let text = "the folder has no recorded answers: texts or documents";
            return Err(UnansweredQuestion::new(Reason::Unsupported, text));
        }
        Ok(all)
    }
}

/// The answer to a question in what was pasted.
fn in_pasted(found: &PastedText, question: &Question) -> Outcome {
    if question.form == Form::Sections {
        let sections = found.answers.iter().map(|(name, answer)| {
            let end = if answer.ends_with('\n') { "" } else { "\n" };
            format!("== {name}\n{answer}{end}")
        });
        return Ok(sections.collect());
    }
    let command = &question.command;
    let plain = command.strip_suffix("| json").unwrap_or(command).trim_end();
    let answer = [command, plain]
        .iter()
        .find_map(|command| found.answers.get(&file_name(command)));
    answer.cloned().ok_or_else(|| {
        let text = format!("the text has no answer to {plain}");
        UnansweredQuestion::new(Reason::Unsupported, text)
    })
}

impl Transport for Files {
    fn ask(&mut self, questions: &[Question]) -> Vec<Outcome> {
        match self.pasted() {
            Some(Ok(found)) => {
                return questions
                    .iter()
                    .map(|question| in_pasted(&found, question))
                    .collect();
            }
            Some(Err(error)) => return vec![Err(error)],
            None => {}
        }
        let tree = match FileTree::recorded(&self.folder) {
            Ok(tree) => tree,
            Err(error) => return vec![Err(self.unreachable(&error))],
        };
        let outcome = |question: &Question| match question.form {
            Form::Whole => self.whole(&tree, &question.command),
            Form::Sections => self.sections(&tree, &question.command),
        };
        questions.iter().map(outcome).collect()
    }

    fn is_excerpt(&self) -> bool {
        self.folder.is_file()
    }

    fn further(&mut self) -> Result<Answers, UnansweredQuestion> {
        let mut all = Answers::default();
        // A refusal is the problem of its question.
        let mut insert = |name: &str, answer: &str| {
            if all.get(name).is_none() && refusal(answer).is_none() {
                all.insert(name, answer);
            }
        };
        match self.pasted() {
            Some(Ok(found)) => {
                for (name, answer) in &found.answers {
                    insert(name, answer);
                }
            }
            Some(Err(_)) => {}
            None => {
                let mut named = Answers::default();
                let tree = FileTree::recorded(&self.folder).map_err(|error| self.unreachable(&error))?;
                match self.sections(&tree, "") {
                    Ok(text) => named.add(&Question::script(""), &text),
                    Err(unanswered) if unanswered.reason == Reason::Unsupported => {}
                    Err(unanswered) => return Err(unanswered),
                }
                for (name, text) in named.iter() {
                    insert(name, text);
                }
                // A file with any name is an answer by its content.
                for (name, text) in named.iter() {
                    for (command, answer) in pasted(text, name).into_iter().flat_map(|found| found.answers) {
                        insert(&command, &answer);
                    }
                }
            }
        }
        Ok(all)
    }
}
