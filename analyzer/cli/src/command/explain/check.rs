//! Checks of `doctor`: what a check means, how it is read, why it matters.

use std::fmt::Write as _;

use roce_fabric::doctor::{self, Check};

/// Columns of a paragraph's name.
const NAME: usize = 12;

/// The text about a check; `None`: there is no check of this name.
pub(crate) fn explained(id: &str, width: usize) -> Option<String> {
    let check = doctor::checks().find(|check| check.id == id)?;
    let mut text = format!("{}: {}\n", check.id, check.title);
    let Check {
        group,
        read,
        rule,
        why,
        symptom,
        alternatives,
        source,
        ..
    } = check;
    for (name, words) in [
        ("group", group),
        ("read", read),
        ("rule", rule),
        ("why", why),
        ("symptom", symptom),
        ("or else", alternatives),
        ("rule from", source),
    ] {
        if words.is_empty() {
            continue;
        }
        let indent = " ".repeat(NAME);
        let head = format!("{name:NAME$}");
        let options = textwrap::Options::new(width)
            .initial_indent(&head)
            .subsequent_indent(&indent)
            .break_words(false);
        text.push('\n');
        for line in textwrap::wrap(words, options) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    Some(text)
}
