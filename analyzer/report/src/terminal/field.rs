//! Layout of fields: a name and items that wrap between each other, facts after one another, running
//! text. `about`, `counts` and `summary` provide the contents.

use super::ink::{Ink, shorten, width};
use super::style::Style;
use roce_spelling::count;

/// Columns of a field's name, with the blanks around it.
pub(super) const NAME: usize = 12;
/// Limit of files, taps or receivers of CNPs that are named.
pub(super) const NAMED: usize = 4;

/// Lines of `name` and its items; none when there are no items.
pub(super) fn field(name: &str, items: &[String], style: &Style) -> Vec<String> {
    let room = style.width.saturating_sub(NAME);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for (index, item) in items.iter().enumerate() {
        let item = shorten(item, room.saturating_sub(1), style.unicode);
        let comma = if index + 1 < items.len() { "," } else { "" };
        if !line.is_empty() && width(&line) + 1 + width(&item) + comma.len() > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&item);
        line.push_str(comma);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    let heads = std::iter::once(name).chain(std::iter::repeat(""));
    lines
        .into_iter()
        .zip(heads)
        .map(|(line, head)| format!(" {}{line}", padded(&Ink::Faint.paint(head), NAME - 1)))
        .collect()
}

/// Facts after one another.
pub(super) fn sentence(facts: impl IntoIterator<Item = Option<String>>, style: &Style) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for fact in facts.into_iter().flatten() {
        let fact = shorten(&fact, style.width.saturating_sub(1), style.unicode);
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(&fact) <= style.width => {
                line.push_str(", ");
                line.push_str(&fact);
            }
            _ => lines.push(format!(" {fact}")),
        }
    }
    lines
}

pub(super) fn padded(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(width(text));
    format!("{text}{:blanks$}", "")
}

pub(super) fn more(all: usize, one: &str, many: &str) -> Option<String> {
    let left = all.checked_sub(NAMED).filter(|left| *left > 0)?;
    Some(format!(
        "and {} more {}",
        count(left as u64),
        if left == 1 { one } else { many }
    ))
}

/// A field of running text.
pub(super) fn wrapped(name: &str, words: &[String], ink: Ink, style: &Style) -> Vec<String> {
    let room = style.width.saturating_sub(NAME);
    let mut texts: Vec<String> = Vec::new();
    for word in words {
        let word = shorten(word, room, style.unicode);
        match texts.last_mut() {
            Some(text) if width(text) + 1 + width(&word) <= room => {
                text.push(' ');
                text.push_str(&word);
            }
            _ => texts.push(word),
        }
    }
    let heads = std::iter::once(name).chain(std::iter::repeat(""));
    texts
        .iter()
        .zip(heads)
        .map(|(text, head)| format!(" {}{text}", padded(&ink.paint(head), NAME - 1)))
        .collect()
}
