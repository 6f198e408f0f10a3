//! Answers of SONiC, Arista EOS and Cumulus Linux: JSON documents, numbers, and refusals.

use std::borrow::Cow;

use roce_model::text::clean;
use roce_model::value_of;
use serde_json::{Map, Value};

use super::text::{CUT, answer_of, up_to_last_end};
use crate::device::{Reading, Reason};
use roce_hosts::without_terminal;

/// A longer JSON document is not parsed, in bytes. 512 ports with 20 queues each take about 10 MB.
pub(super) const MAX_DOCUMENT: usize = 16 << 20;
/// Characters of a refusal in a problem's text.
const MAX_QUOTE: usize = 120;
/// Lines of an answer that are looked at for a refusal.
const MAX_LINES: usize = 20;

/// Words of a shell, of SONiC's and of Arista's command line that do not know a command.
const UNKNOWN: [&str; 7] = [
    "not found",
    "no such command",
    "invalid input",
    "unconverted command",
    "unrecognized",
    "usage:",
    "no such file",
];
/// Words of a refusal.
const FORBIDDEN: [&str; 4] = [
    "permission denied",
    "authorization denied",
    "privilege",
    "must be root",
];

/// The JSON object in an answer. Lines before it (a banner, a prompt) and behind it are not looked at.
///
/// The error has the reason and a text for a problem.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, (Reason, String)> {
    if text.len() > MAX_DOCUMENT {
        let long = format!("the answer has {} bytes, more than {MAX_DOCUMENT}", text.len());
        return Err((Reason::Parse, long));
    }
    // No document of a device has signs that a terminal adds.
    let text = if text.contains(['\u{1b}', '\u{8}']) || text.contains("--More--") {
        Cow::Owned(without_terminal(text))
    } else {
        Cow::Borrowed(text)
    };
    let text = text.as_ref();
    let Some(document) = text.find('{').and_then(|start| text.get(start..)) else {
        return Err(refusal(text));
    };
    let mut documents = serde_json::Deserializer::from_str(document).into_iter();
    match documents.next() {
        Some(Ok(object)) => Ok(object),
        Some(Err(error)) => Err((Reason::Parse, format!("the answer is not JSON: {error}"))),
        None => Err(refusal(text)),
    }
}

/// The JSON object in an answer; a problem is noted where it has none.
pub(super) fn object_of(text: &str, command: &str, reading: &mut Reading) -> Option<Map<String, Value>> {
    match object(text) {
        Ok(object) => Some(object),
        Err((reason, text)) => {
            reading.problem(reason, command, text);
            None
        }
    }
}

/// Gives `read` the answer in a text that a terminal may have recorded, without a last line that may be cut; a problem is noted where it
/// is, and where `read` found no table.
pub(super) fn read_table(
    text: &str,
    command: &str,
    reading: &mut Reading,
    read: impl FnOnce(&str, &mut Reading) -> bool,
) {
    let cut = up_to_last_end(text);
    let answer = answer_of(cut.unwrap_or(text), command);
    if !read(&answer, reading) {
        let (reason, said) = refusal(&answer_of(text, command));
        reading.problem(reason, command, said);
    } else if cut.is_some() {
        reading.problem(Reason::Parse, command, CUT);
    }
}

/// Why a text that has no document, or no table, is none.
pub(super) fn refusal(text: &str) -> (Reason, String) {
    for line in text.lines().take(MAX_LINES) {
        let lower = line.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let reason = if has(&FORBIDDEN) {
            Reason::Permission
        } else if has(&UNKNOWN) {
            Reason::Unsupported
        } else {
            continue;
        };
        let quote: String = line.trim().chars().take(MAX_QUOTE).collect();
        return (reason, clean(&quote).into_owned());
    }
    let empty = text.trim().is_empty();
    let text = if empty {
        "the answer is empty"
    } else {
        "the answer is not what was expected"
    };
    (Reason::Parse, text.to_owned())
}

/// A count in a text: digits, with or without commas. `N/A`, `-` and the empty text are not known.
pub(super) fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_count = |byte: u8| byte.is_ascii_digit() || byte == b',';
    if text.is_empty() || text.len() > 32 || !text.bytes().all(is_count) {
        return None;
    }
    text.replace(',', "").parse().ok()
}

/// A count in JSON: a number, or a text of one.
pub(super) fn json_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => count(text),
        _ => None,
    }
}

/// A count of an object, as a sample's value.
pub(super) fn json_value(object: &Value, key: &str) -> Option<f64> {
    object.get(key).and_then(json_count).map(value_of)
}

/// The text of an object; empty where it has none.
pub(super) fn json_text(object: &Value, key: &str) -> String {
    let text = object.get(key).and_then(Value::as_str);
    text.unwrap_or_default().trim().to_owned()
}

/// Seconds since the start in `/proc/uptime`.
pub(super) fn uptime(text: &str) -> Option<f64> {
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

/// A script with a line `== COMMAND` before the output of each command. The empty line between two ends an output that has no line end.
pub(super) fn script(commands: &[&str]) -> String {
    let parts: Vec<String> = commands
        .iter()
        .map(|command| format!("echo; echo \"== {command}\"; {command} 2>&1"))
        .collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_and_absent_is_not_zero() {
        assert_eq!(count("1,200"), Some(1_200));
        assert_eq!(count(" 18446744073709551615 "), Some(u64::MAX));
        for text in [
            "N/A",
            "-",
            "",
            "--",
            "+5",
            "1.5",
            "18446744073709551616",
            "0 Bytes",
        ] {
            assert_eq!(count(text), None, "{text}");
        }
        assert_eq!(
            json_count(&serde_json::json!(9_007_199_254_740_993_u64)),
            Some(9_007_199_254_740_993)
        );
        assert_eq!(json_count(&serde_json::json!("-")), None);
        assert_eq!(json_count(&serde_json::json!(-1)), None);
        assert_eq!(uptime("350735.47 234388.90\n"), Some(350_735.47));
        assert_eq!(uptime("inf"), None);
    }

    #[test]
    fn refusals_have_their_reason() {
        let reason = |text| object(text).unwrap_err().0;
        assert_eq!(
            reason("bash: sonic-db-dump: command not found"),
            Reason::Unsupported
        );
        assert_eq!(reason("% This is an unconverted command\n"), Reason::Unsupported);
        assert_eq!(
            reason("% Authorization denied for command 'show version'"),
            Reason::Permission
        );
        assert_eq!(reason(""), Reason::Parse);
        assert_eq!(reason("{\"a\": "), Reason::Parse);
        let (_, quote) = refusal("\u{1b}[31mError: No such command \"pfc\".");
        assert_eq!(quote, "?[31mError: No such command \"pfc\".");
    }

    #[test]
    fn a_document_is_found_behind_a_banner() {
        let found =
            object("\u{feff}Debian GNU/Linux\r\nadmin@leaf1:~$ x\r\n{\"a\": \"1\"}\r\nadmin@leaf1:~$")
                .unwrap();
        assert_eq!(found.get("a").and_then(json_count), Some(1));
        assert!(object(&" ".repeat(MAX_DOCUMENT + 1)).is_err());
    }
}
