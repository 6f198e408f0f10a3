//! The key figures as one page without scripts.

use std::fmt::Write;

use roce_model::RunSummary;

use super::figure::{Kpi, SOURCE};
use crate::markup::{STYLE, escape};

/// A value with four digits that count.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        let digits = if value.abs() >= 1_000.0 { 0 } else { 3 };
        format!("{value:.digits$}")
    } else {
        format!("{value:.3e}")
    }
}

/// The page.
pub(super) fn page(run: &RunSummary, kpis: &[Kpi]) -> String {
    let mut page = String::with_capacity(1 << 14);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>Key figures of {}</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n\
         <h1>Key figures of a training fabric</h1>\n<p>Names and formulas are those of {}. Its targets are no standard, and are left out. \
         Run {}.</p>\n<table><thead><tr><th>figure</th><th>value</th><th>formula</th><th>from</th><th></th></tr></thead><tbody>\n",
        escape(&run.key.run_id),
        SOURCE,
        escape(&run.key.run_id),
    );
    for kpi in kpis {
        let value = kpi.value.map_or_else(
            || "cannot be had".to_owned(),
            |value| format!("{} {}", number(value), kpi.unit),
        );
        let inputs = kpi
            .inputs
            .iter()
            .map(|(name, value)| format!("{name} {}", number(*value)));
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(kpi.name),
            escape(value.trim()),
            escape(kpi.formula),
            escape(&inputs.collect::<Vec<_>>().join(", ")),
            escape(&kpi.remark),
        );
    }
    page.push_str("</tbody></table>\n</main></body></html>\n");
    page
}
