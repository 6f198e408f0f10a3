//! Two runs compared, on the terminal: first significant differences, then findings and pairs of hosts.
//! The end has the quantities without one, and how small a difference would have been seen. Sentences
//! with numbers are here for every output for people.

use roce_model::cast::whole;
use roce_model::{Severity, Span};

use super::field::{field, wrapped};
use super::grid::{Column, lay};
use super::ink::{Ink, clean, paint, shorten};
use super::style::{MIN_WIDTH, Style};
use crate::compare::{ComparedQuantity, Comparison, FindingChange, Outcome, Scope, Side, Unit};
use roce_spelling::{ABSENT, bytes, plural, rate_of};

/// Lines about pairs of hosts; the others are counted.
const PAIRS: usize = 20;

/// The page.
pub fn text(comparison: &Comparison, style: Style) -> String {
    let style = &Style {
        width: style.width.max(MIN_WIDTH),
        ..style
    };
    let mut lines = field("verdict", &verdict(comparison, style.unicode), style);
    lines.extend(field("A", &side(&comparison.a), style));
    lines.extend(field("B", &side(&comparison.b), style));
    for note in &comparison.notes {
        lines.extend(words("note", note, Ink::Warn, style));
    }
    let (whole, pairs) = comparison.scopes.split_at(comparison.scopes.len().min(1));
    let of_whole: Vec<QuantityLine<'_>> = whole.iter().flat_map(QuantityLine::from_scope).collect();
    let mut of_pairs: Vec<QuantityLine<'_>> = pairs
        .iter()
        .flat_map(QuantityLine::from_scope)
        .filter(QuantityLine::stands_out)
        .collect();
    lines.extend(outstanding(&of_whole, style));
    lines.extend(findings(&comparison.findings, style));
    lines.extend(between(&mut of_pairs, pairs.len(), comparison, style));
    lines.extend(alike(&of_whole, style));
    lines.extend(silent(&of_whole, style));
    lines.push(String::new());
    lines.extend(words("how", &how(comparison), Ink::Faint, style));
    paint(&lines.join("\n"), style.color)
}

/// A quantity, and the scope it is of.
struct QuantityLine<'a> {
    scope: &'a Scope,
    compared: &'a ComparedQuantity,
}

impl<'a> QuantityLine<'a> {
    fn from_scope(scope: &'a Scope) -> impl Iterator<Item = Self> {
        scope
            .compared
            .iter()
            .map(move |compared| Self { scope, compared })
    }

    fn stands_out(&self) -> bool {
        self.compared.outcome.stands_out()
    }

    fn title(&self) -> String {
        self.compared.quantity.describe().title.to_owned()
    }
}

/// Colour, symbol and word of an outcome, so that each is enough alone.
fn mark(outcome: Outcome, unicode: bool) -> (Ink, &'static str, &'static str) {
    match (outcome, unicode) {
        (Outcome::Worse, true) => (Ink::Warn, "▲", "worse"),
        (Outcome::Worse, false) => (Ink::Warn, "!", "worse"),
        (Outcome::Better, true) => (Ink::Good, "✓", "better"),
        (Outcome::Better, false) => (Ink::Good, "+", "better"),
        (_, true) => (Ink::Bold, "•", "other"),
        (_, false) => (Ink::Bold, "i", "other"),
    }
}

/// Number of quantities by outcome.
fn verdict(comparison: &Comparison, unicode: bool) -> Vec<String> {
    // A new finding of warning or worse is no noise, and weighs more than a number.
    let mut said = Vec::new();
    let regressions = comparison.new_findings();
    if regressions > 0 {
        let critical = comparison.new_critical_findings();
        let worst = match critical {
            0 => String::new(),
            _ => format!(", {critical} critical"),
        };
        let new = plural(regressions as u64, "new finding", "new findings");
        said.push(Ink::Bad.paint(&format!("{new}{worst}")));
    }
    let outcomes = [Outcome::Worse, Outcome::Better, Outcome::Different].into_iter();
    let outcomes = outcomes.filter(|outcome| comparison.count(*outcome) > 0);
    let counts: Vec<String> = outcomes
        .map(|outcome| {
            let (ink, symbol, word) = mark(outcome, unicode);
            ink.paint(&format!("{symbol} {} {word}", comparison.count(outcome)))
        })
        .collect();
    if counts.is_empty() {
        let other = if regressions > 0 { "number" } else { "difference" };
        said.push(Ink::Bold.paint(&format!("no {other} that stands out of the noise")));
    }
    said.extend(counts);
    let doubtful = comparison.doubtful_findings();
    if doubtful > 0 {
        said.push(format!(
            "{} that chance may have brought",
            plural(doubtful as u64, "new finding", "new findings")
        ));
    }
    let short = comparison.count(Outcome::TooShort);
    if short > 0 {
        said.push(format!("{short} too short to tell"));
    }
    said
}

fn side(side: &Side) -> Vec<String> {
    vec![
        clean(&side.path),
        format!("{} long", side.length),
        plural(side.flows, "flow", "flows"),
        format!("{} of data", bytes(side.payload_bytes)),
        format!("{} of {}", plural(side.slices, "slice", "slices"), side.slice),
    ]
}

/// A field of running text, in which words from outside are cleaned.
fn words(name: &str, text: &str, ink: Ink, style: &Style) -> Vec<String> {
    let words: Vec<String> = clean(text).split(' ').map(str::to_owned).collect();
    wrapped(name, &words, ink, style)
}

fn heading(text: &str) -> [String; 2] {
    [String::new(), format!(" {}", Ink::Bold.paint(text))]
}

/// Significant differences of the whole run.
fn outstanding(lines: &[QuantityLine<'_>], style: &Style) -> Vec<String> {
    let rows: Vec<&QuantityLine<'_>> = lines.iter().filter(|line| line.stands_out()).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut text = vec![String::new()];
    text.extend(lay(
        vec![
            Column::new("whole run", false, 0, &rows, |line| outcome(line, true, style)),
            Column::new("", false, 0, &rows, |line| line.title()),
            Column::new("A", true, 0, &rows, |line| value(line.compared, line.compared.a)),
            Column::new("B", true, 0, &rows, |line| value(line.compared, line.compared.b)),
            Column::new("change", true, 0, &rows, |line| changed(line, style)),
            Column::new("95 % interval", true, 1, &rows, |line| interval(line.compared)),
        ],
        None,
        style,
    ));
    text
}

fn outcome(line: &QuantityLine<'_>, with_word: bool, style: &Style) -> String {
    let (ink, symbol, word) = mark(line.compared.outcome, style.unicode);
    ink.paint(&if with_word {
        format!("{symbol} {word}")
    } else {
        symbol.to_owned()
    })
}

fn changed(line: &QuantityLine<'_>, style: &Style) -> String {
    let (ink, ..) = mark(line.compared.outcome, style.unicode);
    ink.paint(&change(line.compared))
}

fn value(compared: &ComparedQuantity, value: Option<f64>) -> String {
    value.map_or_else(
        || ABSENT.to_owned(),
        |value| amount(compared.quantity.describe().unit, value),
    )
}

/// The findings that are not the same.
fn findings(changes: &[FindingChange], style: &Style) -> Vec<String> {
    if changes.is_empty() {
        return Vec::new();
    }
    let mut lines = heading("findings that changed").to_vec();
    for change in changes {
        let ink = if change.is_regression() {
            Ink::Bad
        } else {
            Ink::Bold
        };
        let (head, tail) = (moved(change), clean(&change.sentence()));
        let mut words: Vec<String> = vec![ink.paint(&format!("{}:", clean(&change.id)))];
        words.extend(tail.split(' ').map(str::to_owned));
        lines.extend(wrapped(&head, &words, Ink::Bold, style));
    }
    lines
}

/// Change of a finding, in few words.
fn moved(change: &FindingChange) -> String {
    match (change.a, change.b) {
        (None, Some(now)) => format!("new {}", short(now)),
        (Some(before), None) => format!("gone {}", short(before)),
        (before, Some(now)) => format!("{}>{}", before.map_or("", short), short(now)),
        (None, None) => String::new(),
    }
}

/// A severity in four letters.
const fn short(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "ok",
        Severity::Info => "info",
        Severity::Warning => "warn",
        Severity::Critical => "crit",
    }
}

/// Significant differences between pairs of hosts, the largest first.
fn between(
    rows: &mut Vec<QuantityLine<'_>>,
    pairs: usize,
    comparison: &Comparison,
    style: &Style,
) -> Vec<String> {
    if pairs == 0 {
        return Vec::new();
    }
    let mut lines = Vec::new();
    if rows.is_empty() {
        lines.push(String::new());
        let none = format!(
            "nothing stands out for any of {}",
            plural(pairs as u64, "pair", "pairs")
        );
        lines.extend(field("host pairs", &[none], style));
    } else {
        let size = |line: &QuantityLine<'_>| line.compared.relative().map_or(f64::INFINITY, f64::abs);
        let rank = |line: &QuantityLine<'_>| u8::from(line.compared.outcome != Outcome::Worse);
        rows.sort_by(|one, other| {
            rank(one)
                .cmp(&rank(other))
                .then(size(other).total_cmp(&size(one)))
        });
        let left = rows.len().saturating_sub(PAIRS);
        rows.truncate(PAIRS);
        let room = if style.width < 100 { 15 } else { 39 };
        let host = |line: &QuantityLine<'_>, end: fn(&(String, String)) -> &String| {
            let name = line.scope.pair.as_ref().map_or("", |pair| end(pair));
            shorten(&clean(name), room, style.unicode)
        };
        lines.push(String::new());
        lines.extend(lay(
            vec![
                Column::new("", false, 0, rows, |line| outcome(line, false, style)),
                Column::new("from", false, 0, rows, |line| host(line, |pair| &pair.0)),
                Column::new("to", false, 0, rows, |line| host(line, |pair| &pair.1)),
                Column::new("", false, 0, rows, QuantityLine::title),
                Column::new("A", true, 1, rows, |line| value(line.compared, line.compared.a)),
                Column::new("B", true, 1, rows, |line| value(line.compared, line.compared.b)),
                Column::new("change", true, 0, rows, |line| changed(line, style)),
                Column::new("95 % interval", true, 2, rows, |line| interval(line.compared)),
            ],
            None,
            style,
        ));
        if left > 0 {
            lines.push(format!(
                " and {} between pairs of hosts",
                plural(left as u64, "more", "more")
            ));
        }
    }
    if comparison.pairs_left_out > 0 {
        let left = plural(
            comparison.pairs_left_out,
            "pair with less data was",
            "pairs with less data were",
        );
        lines.push(format!(" {left} not compared one by one"));
    }
    lines
}

/// Quantities of the whole run without a significant difference, and the difference that would have been
/// seen.
fn alike(lines: &[QuantityLine<'_>], style: &Style) -> Vec<String> {
    let of = |outcome| move |line: &&QuantityLine<'_>| line.compared.outcome == outcome;
    let mut rows: Vec<&QuantityLine<'_>> = lines.iter().filter(of(Outcome::Alike)).collect();
    rows.extend(lines.iter().filter(of(Outcome::Negligible)));
    if rows.is_empty() {
        return Vec::new();
    }
    let mut text = heading("no difference that stands out, or one too small to matter").to_vec();
    text.extend(lay(
        vec![
            Column::new("whole run", false, 0, &rows, |line| line.title()),
            Column::new("A", true, 0, &rows, |line| value(line.compared, line.compared.a)),
            Column::new("B", true, 0, &rows, |line| value(line.compared, line.compared.b)),
            Column::new("change", true, 0, &rows, |line| change(line.compared)),
            Column::new("seen from", true, 1, &rows, |line| visible(line.compared)),
        ],
        None,
        style,
    ));
    text
}

/// Quantities that could not be compared.
fn silent(lines: &[QuantityLine<'_>], style: &Style) -> Vec<String> {
    let titles = |outcome: Outcome| -> Vec<String> {
        let rows = lines.iter().filter(|line| line.compared.outcome == outcome);
        rows.map(QuantityLine::title).collect()
    };
    let mut text = Vec::new();
    let short = titles(Outcome::TooShort);
    if !short.is_empty() {
        text.push(String::new());
        text.extend(field("too short", &short, style));
        let hint = "these runs have too few slices of time to tell noise from a difference: take longer ones, or --bin 100us or less";
        text.extend(words("", hint, Ink::Faint, style));
    }
    for (name, missing) in [("only in A", true), ("only in B", false)] {
        let rows = lines
            .iter()
            .filter(|line| line.compared.outcome == Outcome::OneSided);
        let rows = rows.filter(|line| line.compared.b.is_none() == missing);
        text.extend(field(
            name,
            &rows.map(QuantityLine::title).collect::<Vec<_>>(),
            style,
        ));
    }
    text
}

/// Confidence of all intervals.
pub(crate) fn how(comparison: &Comparison) -> String {
    let (percent, matters) = (comparison.confidence * 100.0, comparison.matters * 100.0);
    format!(
        "all intervals together hold what they are to with {percent:.0} % (block bootstrap over slices of time); what stands out has one \
         without 0 and differs by {matters:.0} % or more; what is \"seen from\" a size would have been seen in 4 of 5 such pairs of runs. Noise from \
         run to run that a single run does not show is not in it: compare two runs of A to see that"
    )
}

/// A number with its unit.
pub(crate) fn amount(unit: Unit, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    let said = match unit {
        Unit::BitsPerSecond => rate_of(size),
        Unit::Share => format!("{} %", digits(size * 100.0)),
        Unit::Nanoseconds => Span(whole(size)).to_string(),
        Unit::PerMillionPackets => format!("{} ppm", digits(size)),
        Unit::PerGigabyte => format!("{} /GB", digits(size)),
        Unit::PerSecond => format!("{} /s", digits(size)),
    };
    format!("{sign}{said}")
}

/// Three digits.
fn digits(value: f64) -> String {
    let decimals = match value {
        0.0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// The difference: in percent of A, as a factor when it is large, by itself where A is nothing.
pub(crate) fn change(compared: &ComparedQuantity) -> String {
    match (compared.relative(), compared.difference()) {
        (Some(relative), _) if relative < 2.0 => format!("{:+.1} %", relative * 100.0),
        (Some(relative), _) => format!("x {}", digits(1.0 + relative)),
        (None, Some(difference)) => signed(compared.quantity.describe().unit, difference),
        (None, None) => ABSENT.to_owned(),
    }
}

/// The interval of the difference, as [`change`] says it.
pub(crate) fn interval(compared: &ComparedQuantity) -> String {
    let Some((low, high)) = compared.interval else {
        return ABSENT.to_owned();
    };
    let unit = compared.quantity.describe().unit;
    match (
        compared.relative_to_a(low),
        compared.relative_to_a(high),
        compared.relative(),
    ) {
        (Some(low), Some(high), Some(relative)) if relative < 2.0 => {
            format!("{:+.1} to {:+.1} %", low * 100.0, high * 100.0)
        }
        (Some(low), Some(high), _) => format!("x {} to {}", digits((1.0 + low).max(0.0)), digits(1.0 + high)),
        _ => format!("{} to {}", signed(unit, low), signed(unit, high)),
    }
}

/// Least difference that would have been seen, said as [`change`] says it.
pub(crate) fn visible(compared: &ComparedQuantity) -> String {
    let Some(visible) = compared.visible else {
        return ABSENT.to_owned();
    };
    match compared.relative_to_a(visible) {
        Some(relative) if relative < 2.0 => format!("{} %", digits(relative * 100.0)),
        Some(relative) => format!("x {}", digits(1.0 + relative)),
        None => amount(compared.quantity.describe().unit, visible),
    }
}

fn signed(unit: Unit, value: f64) -> String {
    let plus = if value > 0.0 { "+" } else { "" };
    format!("{plus}{}", amount(unit, value))
}
