//! The comparison as one page for a browser: no script, nothing from elsewhere. Bars show A and B to the same scale; what they say is
//! written beside them.

use std::fmt::Write;

use roce_model::Severity;
use roce_model::cast::float;

use super::{ComparedQuantity, Comparison, FindingChange, Outcome, Scope, Side};
use crate::markup::{STYLE, escape};
use crate::terminal::comparison::{amount, change, how, interval, visible};

/// The page.
pub fn page(comparison: &Comparison) -> String {
    let mut page = String::with_capacity(1 << 16);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{} compared with {}</title>\n<style>\n{STYLE}</style></head>\n<body><main>\n\
         <h1>Two runs compared</h1>\n{}",
        escape(&comparison.b.path),
        escape(&comparison.a.path),
        verdict(comparison),
    );
    page.push_str("<table class=\"runs\"><thead><tr><th></th><th>run</th><th>length</th><th>flows</th><th>data</th><th>slices</th></tr></thead><tbody>\n");
    page.push_str(&side("A", &comparison.a));
    page.push_str(&side("B", &comparison.b));
    page.push_str("</tbody></table>\n");
    for note in &comparison.notes {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(note));
    }
    findings(&mut page, &comparison.findings);
    for (place, scope) in comparison.scopes.iter().enumerate() {
        if place == 1 {
            page.push_str("<h2>Between hosts</h2>\n");
        }
        scope_table(&mut page, scope);
    }
    if comparison.pairs_left_out > 0 {
        let _ = writeln!(
            page,
            "<p class=\"note\">{} pairs of hosts with less data were not compared one by one.</p>",
            comparison.pairs_left_out
        );
    }
    definitions(&mut page, comparison);
    page.push_str("</main></body></html>\n");
    page
}

/// First sentence: the number of quantities by outcome.
fn verdict(comparison: &Comparison) -> String {
    let mut said = Vec::new();
    for (outcome, word) in [
        (Outcome::Worse, "worse"),
        (Outcome::Better, "better"),
        (Outcome::Different, "different"),
    ] {
        let count = comparison.count(outcome);
        if count > 0 {
            said.push(format!(
                "<span class=\"{}\">{count} {word}</span>",
                outcome.name()
            ));
        }
    }
    if said.is_empty() {
        said.push("No difference that stands out of the noise".to_owned());
    }
    let new = comparison.new_findings();
    if new > 0 {
        said.push(format!("<span class=\"worse\">{new} new findings</span>"));
    }
    let doubtful = comparison.doubtful_findings();
    if doubtful > 0 {
        said.push(format!("{doubtful} new findings that chance may have brought"));
    }
    let short = comparison.count(Outcome::TooShort);
    if short > 0 {
        said.push(format!("{short} too short to tell"));
    }
    format!("<p class=\"verdict\">{}</p>\n", said.join(" "))
}

fn side(name: &str, side: &Side) -> String {
    format!(
        "<tr><th>{name}</th><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.3} MB</td><td>{} of {}</td></tr>\n",
        escape(&side.path),
        side.length,
        side.flows,
        megabytes(side.payload_bytes),
        side.slices,
        side.slice,
    )
}

fn megabytes(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

fn findings(page: &mut String, changes: &[FindingChange]) {
    if changes.is_empty() {
        return;
    }
    page.push_str("<h2>Findings that changed</h2>\n<table class=\"findings\"><thead><tr><th>finding</th><th>A</th><th>B</th><th>what it says</th></tr></thead><tbody>\n");
    for change in changes {
        let severity = |severity: Option<Severity>| severity.map_or("none", Severity::name);
        let class = if change.is_regression() { "worse" } else { "" };
        let _ = writeln!(
            page,
            "<tr><th class=\"{class}\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&change.id),
            severity(change.a),
            severity(change.b),
            escape(&change.sentence()),
        );
    }
    page.push_str("</tbody></table>\n");
}

/// The table of a scope: significant rows first. The table of a pair of hosts is closed where there are
/// none.
fn scope_table(page: &mut String, scope: &Scope) {
    let stands_out = scope
        .compared
        .iter()
        .filter(|compared| compared.outcome.stands_out())
        .count();
    match &scope.pair {
        None => page.push_str("<h2>The whole run</h2>\n"),
        Some((from, to)) => {
            let open = if stands_out > 0 { " open" } else { "" };
            let _ = writeln!(
                page,
                "<details{open}><summary>{} to {}: {stands_out} stand out</summary>",
                escape(from),
                escape(to)
            );
        }
    }
    page.push_str(
        "<table class=\"compared\"><thead><tr><th>quantity</th><th>outcome</th><th></th><th>A</th><th>B</th><th>change</th>\
         <th>95 % interval</th><th>seen from</th></tr></thead><tbody>\n",
    );
    let mut rows: Vec<&ComparedQuantity> = scope.compared.iter().collect();
    rows.sort_by_key(|compared| !compared.outcome.stands_out());
    for compared in rows {
        row(page, compared);
    }
    page.push_str("</tbody></table>\n");
    if scope.pair.is_some() {
        page.push_str("</details>\n");
    }
}

fn row(page: &mut String, compared: &ComparedQuantity) {
    let metric = compared.quantity.describe();
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| amount(metric.unit, value));
    let outcome = compared.outcome.name();
    let _ = writeln!(
        page,
        "<tr class=\"{outcome}\"><th title=\"{}\">{}</th><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        escape(metric.meaning),
        escape(metric.title),
        outcome.replace('_', " "),
        bars(compared),
        value(compared.a),
        value(compared.b),
        change(compared),
        interval(compared),
        visible(compared),
    );
}

/// A above B, to the scale of the larger one.
fn bars(compared: &ComparedQuantity) -> String {
    let [a, b] = [compared.a, compared.b].map(|value| value.unwrap_or(0.0).max(0.0));
    let most = a.max(b);
    if most <= 0.0 {
        return String::new();
    }
    let bar = |value: f64, place: u32, class: &str| {
        format!(
            "<rect class=\"{class}\" x=\"0\" y=\"{place}\" width=\"{:.1}\" height=\"6\"/>",
            value / most * 100.0
        )
    };
    format!(
        "<svg viewBox=\"0 0 100 14\" width=\"100\" height=\"14\" aria-hidden=\"true\">{}{}</svg>",
        bar(a, 0, "a"),
        bar(b, 8, "b")
    )
}

/// Confidence of the intervals, and the meaning of each number.
fn definitions(page: &mut String, comparison: &Comparison) {
    let _ = writeln!(
        page,
        "<h2>How to read it</h2>\n<p>In each row the upper bar is A, the lower one B. {}.</p>\n<dl>",
        escape(&sentence(&how(comparison)))
    );
    for quantity in super::Quantity::ALL {
        if comparison
            .all()
            .any(|(_, compared)| compared.quantity == quantity)
        {
            let metric = quantity.describe();
            let _ = writeln!(
                page,
                "<dt>{}</dt><dd>{}</dd>",
                escape(metric.title),
                escape(metric.meaning)
            );
        }
    }
    page.push_str("</dl>\n");
}

/// With a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests;
