//! A rule, and how its expression is written.

use std::fmt::Write;

/// One rule.
pub(crate) struct Rule {
    /// Name of the recorded series or of the alert.
    pub name: &'static str,
    /// The expression.
    pub expr: &'static str,
    /// A recorded series: its meaning.
    pub about: &'static str,
    /// The alert, if it is one.
    pub alert: Option<Alert>,
}

/// Texts of an alert, and how long it waits.
pub(crate) struct Alert {
    /// How long the expression has to hold.
    pub wait: &'static str,
    /// info, warning or critical.
    pub severity: &'static str,
    /// One line, with the labels of the series.
    pub summary: &'static str,
    /// Its meaning, and the next thing to look at.
    pub next: &'static str,
}

pub(super) const fn record(name: &'static str, expr: &'static str, about: &'static str) -> Rule {
    Rule {
        name,
        expr,
        about,
        alert: None,
    }
}

pub(super) const fn alert(
    name: &'static str,
    wait: &'static str,
    severity: &'static str,
    expr: &'static str,
    summary: &'static str,
    next: &'static str,
) -> Rule {
    Rule {
        name,
        expr,
        about: "",
        alert: Some(Alert {
            wait,
            severity,
            summary,
            next,
        }),
    }
}

pub(super) fn write_expression(text: &mut String, expr: &str) {
    text.push_str("        expr: |-\n");
    for line in expr.lines() {
        let _ = writeln!(text, "          {line}");
    }
}
