//! Answers by which NX-OS refuses a command, and the reason.

use serde_json::Value;

use super::json::{Object, field, objects, text};
use crate::device::Reason;

/// Lines at the start of a text in which NX-OS says that it refuses the command.
const REFUSAL_LINES: usize = 8;

/// Why the switch refused a command, by its answer, and its words; `None` of an answer.
pub(super) fn refusal(answer: &str) -> Option<(Reason, String)> {
    let start = answer.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with('{') {
        // A refusal is short; large documents are not read twice.
        if start.len() > 4096 || !start.contains("clierror") {
            return None;
        }
        let document: Value = serde_json::from_str(start).ok()?;
        return objects(&document).find_map(refused_object);
    }
    let lines = start.lines().filter(|line| !line.trim().is_empty());
    lines
        .take(REFUSAL_LINES)
        .find_map(|line| reason_of(line.trim()).map(|reason| (reason, line.trim().to_owned())))
}

/// The refusal in an object with `clierror`.
fn refused_object(object: &Object) -> Option<(Reason, String)> {
    let said = text(object, &["clierror"])?;
    if said.is_empty() {
        return None;
    }
    let code = text(object, &["code"]).unwrap_or_default();
    let reason = reason_of(&said).unwrap_or(if matches!(code.as_str(), "400" | "501") {
        Reason::Unsupported
    } else {
        Reason::Parse
    });
    let is_body =
        field(object, "body").is_some_and(|body| !matches!(body, Value::String(text) if text.is_empty()));
    (!is_body).then_some((reason, said))
}

/// Why a command was refused, by NX-OS' words.
pub(super) fn reason_of(said: &str) -> Option<Reason> {
    let lower: String = said.chars().take(200).collect::<String>().to_ascii_lowercase();
    let starts = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    if starts(&[
        "% permission denied",
        "permission denied",
        "% not authorized",
        "% authorization failed",
    ]) {
        Some(Reason::Permission)
    } else if starts(&[
        "% invalid",
        "% incomplete",
        "% ambiguous",
        "invalid command",
        "syntax error",
        "cmd exec error",
        "structured output unsupported",
        "error: this command does not support json",
    ]) {
        Some(Reason::Unsupported)
    } else {
        None
    }
}
