//! Rules for Prometheus: recorded series, and alerts. One description, from which the file is printed.
//!
//! Alerts are about rates, never about totals, and about 802.3x pauses or PFC, never both. PFC between a switch's own parts is normal and
//! alerts nobody.

mod alerts;
mod compatible;
mod records;
mod rule;

use std::fmt::Write;

use alerts::ALERTS;
#[cfg(test)]
use compatible::COMPATIBLE;
pub use compatible::compatible;
use records::{BASELINES, RECORDS};
pub(crate) use rule::Rule;
use rule::write_expression;

/// A group of rules that are evaluated together.
pub(crate) struct Group {
    /// Its name.
    pub name: &'static str,
    /// Time between two evaluations; empty for Prometheus' own.
    pub interval: &'static str,
    /// Its rules, in the order of evaluation.
    pub rules: &'static [Rule],
}

/// All rules.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "roce-records",
        interval: "30s",
        rules: RECORDS,
    },
    Group {
        name: "roce-baselines",
        interval: "5m",
        rules: BASELINES,
    },
    Group {
        name: "roce-alerts",
        interval: "",
        rules: ALERTS,
    },
];

/// The file of recorded series and alerts.
pub fn rules() -> String {
    let mut text = String::from(
        "# Recorded series and alerts of roce-analyze. Those over roce_switch_ and roce_hypervisor_ metrics need\n\
         # `metrics serve --inventory` on one host.\n\
         groups:\n",
    );
    for group in GROUPS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  - name: {}", group.name);
        if !group.interval.is_empty() {
            let _ = writeln!(text, "    interval: {}", group.interval);
        }
        text.push_str("    rules:\n");
        for rule in group.rules {
            write_rule(&mut text, rule);
        }
    }
    text
}

fn write_rule(text: &mut String, rule: &Rule) {
    let kind = if rule.alert.is_some() { "alert" } else { "record" };
    if !rule.about.is_empty() {
        let _ = writeln!(text, "      # {}", rule.about);
    }
    let _ = writeln!(text, "      - {kind}: {}", rule.name);
    write_expression(text, rule.expr);
    if let Some(alert) = &rule.alert {
        let _ = writeln!(text, "        for: {}", alert.wait);
        let _ = writeln!(text, "        labels:\n          severity: {}", alert.severity);
        text.push_str("        annotations:\n");
        let _ = writeln!(text, "          summary: {}", quoted(alert.summary));
        let _ = writeln!(text, "          description: {}", quoted(alert.next));
    }
}

/// A text of YAML in quotation marks.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
