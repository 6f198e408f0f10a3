//! Answers by which NX-OS refuses a command, and the reason.

use serde_json::Value;

use super::json::{Object, field, objects, text};
use crate::device::Reason;
use crate::refusal::refusal_in;

/// Lines at the start of a text in which NX-OS says that it refuses the command.
const REFUSAL_LINES: usize = 8;
/// Bytes of a refusal; longer texts and documents are answers.
const MAX_REFUSAL_BYTES: usize = 4096;

/// Why the switch refused a command, by its answer, and its words; `None` of an answer.
pub(super) fn refusal(answer: &str) -> Option<(Reason, String)> {
    let start = answer.trim_start_matches('\u{feff}').trim_start();
    if start.len() > MAX_REFUSAL_BYTES {
        return None;
    }
    if start.starts_with('{') {
        if !start.contains("clierror") {
            return None;
        }
        let document: Value = serde_json::from_str(start).ok()?;
        return objects(&document).find_map(refused_object);
    }
    let lines = start.lines().filter(|line| !line.trim().is_empty());
    lines
        .take(REFUSAL_LINES)
        .find_map(|line| refusal_in(line).map(|reason| (reason, line.trim().to_owned())))
}

/// The refusal in an object with `clierror`.
fn refused_object(object: &Object) -> Option<(Reason, String)> {
    let said = text(object, &["clierror"])?;
    if said.is_empty() {
        return None;
    }
    let code = text(object, &["code"]).unwrap_or_default();
    let reason = refusal_in(&said).unwrap_or(if matches!(code.as_str(), "400" | "501") {
        Reason::Unsupported
    } else {
        Reason::Parse
    });
    let is_body =
        field(object, "body").is_some_and(|body| !matches!(body, Value::String(text) if text.is_empty()));
    (!is_body).then_some((reason, said))
}
