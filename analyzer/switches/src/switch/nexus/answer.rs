//! The answer to a command as a body: documents of JSON, or a text; or why there is none.

use serde_json::{Deserializer, Value};

use super::nxapi;
use super::refusal::refusal;
use crate::device::{Answers, Problem, Reason};
use crate::switch::text::{CUT, answer_of, up_to_last_end};

/// Suffix of a command that makes NX-OS answer in JSON.
pub(super) const JSON: &str = " | json";

/// Longest answer in JSON that is read, in bytes: a document takes up to 16 times as much memory.
const MAX_DOCUMENT_BYTES: usize = 32 << 20;

/// An answer.
#[derive(Debug)]
pub(super) enum Body {
    /// Documents, one after the other.
    Json(Vec<Value>),
    /// Lines, without what a terminal adds.
    Text(String),
}

impl Body {
    /// True if it says nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Json(documents) => documents.iter().all(|document| match document {
                Value::Object(object) => object.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::Null => true,
                Value::String(text) => text.trim().is_empty(),
                _ => false,
            }),
            Self::Text(text) => text.is_empty(),
        }
    }
}

/// An answer that was found.
#[derive(Debug)]
pub(super) struct FoundAnswer {
    /// The command under which it was.
    pub(super) command: String,
    /// Content of the answer.
    pub(super) body: Body,
    /// Problem of the answer, where a part of it is good.
    pub(super) problem: Option<Problem>,
}

/// The command that makes NX-OS answer in JSON.
pub(super) fn as_json(command: &str) -> String {
    format!("{command}{JSON}")
}

/// The answer to a command, with or without ` | json`; that in JSON goes first. A refused or broken one counts only where the other is
/// none or is refused or broken, too.
pub(super) fn find(answers: &Answers, command: &str) -> Option<Result<FoundAnswer, Problem>> {
    let mut refused = None;
    for command in [as_json(command), command.to_owned()] {
        let Some(text) = answers.get(&command) else {
            continue;
        };
        match read(&command, text) {
            Ok(found) => return Some(Ok(found)),
            Err(problem) => refused = Some(problem),
        }
    }
    refused.map(Err)
}

/// Reads an answer.
fn read(command: &str, answer: &str) -> Result<FoundAnswer, Problem> {
    let problem = |reason, text: String| Problem {
        reason,
        command: command.to_owned(),
        text,
    };
    if let Some((reason, said)) = refusal(answer) {
        return Err(problem(reason, said));
    }
    let mut text = answer_of(answer, command);
    let start = text.trim_start();
    if start.starts_with('<') {
        let said = "the answer is a page of HTML or XML, where a text or JSON was expected";
        return Err(problem(Reason::Parse, said.to_owned()));
    }
    if start.starts_with(['{', '[']) {
        if text.len() > MAX_DOCUMENT_BYTES {
            let said = "the JSON has more than 32 MiB, and is not read";
            return Err(problem(Reason::Parse, said.to_owned()));
        }
        return documents(command, start);
    }
    let mut cut = None;
    if let Some(whole) = up_to_last_end(answer) {
        text = answer_of(whole, command);
        cut = Some(problem(Reason::Parse, CUT.to_owned()));
    }
    Ok(FoundAnswer {
        command: command.to_owned(),
        body: Body::Text(text),
        problem: cut,
    })
}

/// Reads one JSON document after the other.
fn documents(command: &str, text: &str) -> Result<FoundAnswer, Problem> {
    let mut documents = Vec::new();
    let mut problem = None;
    for document in Deserializer::from_str(text).into_iter::<Value>() {
        match document {
            Ok(document) => documents.push(document),
            Err(error) => {
                problem = Some(Problem {
                    reason: Reason::Parse,
                    command: command.to_owned(),
                    text: format!("JSON was expected: {error}"),
                });
                break;
            }
        }
    }
    // An answer that was recorded with its envelope.
    if let [document] = documents.as_slice()
        && nxapi::is_envelope(document)
    {
        let base = command.strip_suffix(JSON).unwrap_or(command);
        let mut bodies = nxapi::bodies(document)?;
        let at = bodies
            .iter()
            .position(|(input, _)| input == base || input == command);
        let at = at.or((bodies.len() == 1).then_some(0));
        let Some(at) = at else {
            return Err(Problem {
                reason: Reason::Parse,
                command: command.to_owned(),
                text: "NX-API's answer has no output for this command".to_owned(),
            });
        };
        let (_, body) = bodies.swap_remove(at);
        let body = body.map_err(|problem| Problem {
            command: command.to_owned(),
            ..problem
        })?;
        return Ok(FoundAnswer {
            command: command.to_owned(),
            body: match body {
                Value::String(text) => Body::Text(answer_of(&text, command)),
                body => Body::Json(vec![body]),
            },
            problem,
        });
    }
    match problem {
        Some(problem) if documents.is_empty() => Err(problem),
        problem => Ok(FoundAnswer {
            command: command.to_owned(),
            body: Body::Json(documents),
            problem,
        }),
    }
}
