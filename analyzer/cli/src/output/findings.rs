//! Findings about hosts and devices as lines for people.

use std::fmt::Write as _;

use roce_model::Severity;
use roce_model::text::clean;
use roce_report::Style;

/// A finding with its place and texts.
pub(crate) struct FoundLine<'a> {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The rule's name.
    pub(crate) id: &'a str,
    /// The port, interface or adapter; empty: the whole device.
    pub(crate) object: &'a str,
    /// The finding in words.
    pub(crate) text: &'a str,
    /// The next thing to look at.
    pub(crate) next: &'a str,
}

/// A heading and the findings; empty without any.
pub(crate) fn lines<'a>(findings: impl Iterator<Item = FoundLine<'a>>, style: &Style) -> String {
    let mut out = String::new();
    let width = style.width.saturating_sub(4).max(20);
    for finding in findings {
        if out.is_empty() {
            out.push_str("\n findings\n");
        }
        // Writing to a text does not fail.
        let _ = writeln!(
            out,
            " {}",
            [finding.severity.name(), finding.id, &clean(finding.object)]
                .join(" ")
                .trim_end()
        );
        for text in [finding.text, finding.next] {
            for line in textwrap::wrap(&clean(text), width) {
                let _ = writeln!(out, "   {line}");
            }
        }
    }
    out
}
