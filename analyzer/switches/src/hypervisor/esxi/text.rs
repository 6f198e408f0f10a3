//! The forms of esxcli's texts: `Name: value` lines, tables below a line of hyphens, and messages in place of an answer.

use std::collections::BTreeMap;

use crate::device::Reason;

/// Characters of a message that are kept.
const MAX_MESSAGE: usize = 160;
/// Columns of a table.
const MAX_COLUMNS: usize = 64;

/// A name as it is compared: without case, blanks, `_` and `-`.
pub(super) fn key(name: &str) -> String {
    let kept = name
        .chars()
        .filter(|glyph| !glyph.is_whitespace() && !matches!(glyph, '_' | '-'));
    kept.flat_map(char::to_lowercase).collect()
}

/// Lines of the form `Name: value`, with their names as [`key`] and without blanks around the values.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (String, &str)> {
    let split = text.lines().filter_map(|line| line.split_once(':'));
    split.map(|(name, value)| (key(name), value.trim()))
}

/// A count. A number that is negative, not whole or no number is not known.
pub(super) fn count(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

pub(super) fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Rows of a table whose columns are as wide as the runs of hyphens below its heading. The last column has the rest of the line.
pub(super) fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_rule = |line: &&str| line.contains("--") && line.chars().all(|glyph| glyph == '-' || glyph == ' ');
    let Some(rule) = lines.iter().position(is_rule).filter(|at| *at > 0) else {
        return Vec::new();
    };
    let columns = columns(lines[rule]);
    let cells = |line: &str| -> Vec<String> {
        let glyphs: Vec<char> = line.chars().collect();
        let cell = |&(start, end): &(usize, usize)| {
            let end = end.min(glyphs.len());
            let cell: String = glyphs.get(start..end).unwrap_or_default().iter().collect();
            cell.trim().to_owned()
        };
        columns.iter().map(cell).collect()
    };
    let names: Vec<String> = cells(lines[rule - 1]).iter().map(|name| key(name)).collect();
    let rows = lines[rule + 1..].iter();
    rows.map(|line| names.iter().cloned().zip(cells(line)).collect())
        .collect()
}

/// First character of each run of hyphens, and the one behind its last.
fn columns(rule: &str) -> Vec<(usize, usize)> {
    let mut columns: Vec<(usize, usize)> = Vec::new();
    let mut before = ' ';
    for (at, glyph) in rule.chars().enumerate() {
        if glyph == '-' && before == '-' {
            if let Some(column) = columns.last_mut() {
                column.1 = at + 1;
            }
        } else if glyph == '-' {
            columns.push((at, at + 1));
        }
        before = glyph;
    }
    columns.truncate(MAX_COLUMNS);
    if let Some(last) = columns.last_mut() {
        last.1 = usize::MAX;
    }
    columns
}

/// Why a text is no answer, and its own words: its first line that has any.
pub(super) fn refusal(text: &str) -> (Reason, String) {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let message: String = line
        .unwrap_or("the answer is empty")
        .chars()
        .take(MAX_MESSAGE)
        .collect();
    let low = text.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| low.contains(part));
    let reason = if has(&[
        "permission denied",
        "not permitted",
        "not authorized",
        "insufficient privileges",
    ]) {
        Reason::Permission
    } else if has(&[
        "not found",
        "unknown command",
        "not supported",
        "unable to",
        "not implemented",
        "invalid nic",
    ]) {
        Reason::Unsupported
    } else {
        Reason::Parse
    };
    (reason, message)
}
