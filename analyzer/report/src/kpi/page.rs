//! The key figures as one page without scripts.

use std::fmt::Write;

use roce_model::{RunSummary, Span, cast};
use roce_spelling::{decimal, rate_of};

use super::figure::{Kpi, SOURCE};
use crate::markup::{STYLE, escape};

/// Cells that hold sentences wrap; the others do not.
const CELLS: &str =
    "td { vertical-align: top } td:nth-child(n + 3) { white-space: normal; min-width: 15em }\n";

/// A value in its unit, as everywhere.
fn value_in(value: f64, unit: &str) -> String {
    match unit {
        "ns" => Span(cast::whole(value)).to_string(),
        "bit/s" => rate_of(value),
        "" => decimal(value),
        unit => format!("{} {unit}", decimal(value)),
    }
}

/// An input by its name, which tells its unit.
fn input(name: &str, value: f64) -> String {
    let (name, value) = match (name.strip_suffix("_ns"), name.strip_suffix("_bps")) {
        (Some(name), _) => (name, Span(cast::whole(value)).to_string()),
        (_, Some(name)) => (name, rate_of(value)),
        _ => (name, decimal(value)),
    };
    format!("{} {value}", name.replace('_', " "))
}

/// The page.
pub(super) fn page(run: &RunSummary, kpis: &[Kpi]) -> String {
    let mut page = String::with_capacity(1 << 14);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>Key figures of {}</title>\n<style>\n{STYLE}{CELLS}</style></head>\n<body><main>\n\
         <h1>Key figures of a training fabric</h1>\n<p>Names and formulas are those of {}. Its targets are no standard, and are left out. \
         Run {}.</p>\n<table><thead><tr><th>figure</th><th>value</th><th>from, or why it cannot be had</th><th>formula</th></tr></thead><tbody>\n",
        escape(&run.key.run_id),
        SOURCE,
        escape(&run.key.run_id),
    );
    for kpi in kpis {
        let value = kpi.value.map(|value| value_in(value, kpi.unit));
        let inputs = kpi.inputs.iter().map(|(name, value)| input(name, *value));
        let from = [inputs.collect::<Vec<_>>().join(", "), kpi.remark.clone()];
        let from: Vec<String> = from.into_iter().filter(|text| !text.is_empty()).collect();
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(kpi.name),
            escape(value.as_deref().unwrap_or("cannot be had")),
            escape(&from.join("; ")),
            escape(kpi.formula),
        );
    }
    page.push_str("</tbody></table>\n</main></body></html>\n");
    page
}
