//! The meaning of a finding, how it is computed, its thresholds as they are now, and where its rule comes from; a check of
//! `doctor`; a finding about a device; the columns of a table; and single words, which `meanings` has.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::anyhow;
use roce_hosts::doctor::{self, checks};
use roce_model::Table;
use roce_report::schema::TABLES;
use roce_rules::{Needs, Rule, counters};
use roce_switches::findings;
use roce_verdict::{MECHANISMS, RULES, ThresholdValue, Thresholds};

use super::meanings::{self, NamedMeaning};
use crate::options::arguments::Analyse;
use crate::options::nearest::near;
use crate::options::settings;
use crate::output::style::width;

/// Text is not wrapped wider than this: longer lines are hard to read.
const WIDEST: usize = 100;
/// The narrowest that it is laid out for.
const NARROWEST: usize = 40;
/// Columns of a paragraph's name.
const NAME: usize = 12;

/// Prints what has the name `id`; thresholds of a finding are those that the run would have.
///
/// # Errors
/// When nothing has that name, or the configuration cannot be read.
pub(crate) fn print(id: &str, arguments: &Analyse) -> anyhow::Result<ExitCode> {
    let (_, thresholds) = settings::configuration(&arguments.run.shape)?;
    let text = explain(id, &thresholds, width())?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The text for what has the name `id`, or the list of all for `list`.
///
/// # Errors
/// When nothing has that name: it says which name is near.
fn explain(id: &str, thresholds: &Thresholds, width: usize) -> anyhow::Result<String> {
    let width = width.clamp(NARROWEST, WIDEST);
    if id == "list" {
        return Ok(list(width));
    }
    if id == "checks" {
        return Ok(list_of_checks(width));
    }
    if let Some(rule) = rules().find(|rule| rule.id == id) {
        return Ok(text(&rule, thresholds, width));
    }
    let table = meanings::tables().find(|table| table.name == id);
    let found = meanings::meanings(id);
    if table.is_some() || !found.is_empty() {
        let mut text = String::new();
        for NamedMeaning { name, text: words } in found {
            paragraph(&mut text, "", 0, &format!("{name}: {words}"), width);
        }
        if let Some(table) = table {
            columns(&mut text, table, width);
        }
        return Ok(text);
    }
    Err(unknown(id))
}

/// The error for a name that nothing has.
fn unknown(id: &str) -> anyhow::Error {
    let known = rules().map(|rule| rule.id);
    let known = known
        .chain(meanings::tables().map(|table| table.name))
        .chain(meanings::names());
    let hint = near(id, known).map_or_else(String::new, |near| format!("did you mean '{near}'? "));
    anyhow!(
        "nothing is named '{id}': no finding, check, table, column, word or status\nhint: {hint}`roce-analyze explain list` has all names"
    )
}

/// All rules: of findings in captures, of checks of a host, of findings about devices.
fn rules() -> impl Iterator<Item = Rule> {
    let of_devices = findings::rules()
        .map(Rule::texts)
        .chain(counters::rules().map(Rule::texts));
    RULES
        .iter()
        .copied()
        .chain(checks().map(Rule::texts))
        .chain(of_devices)
}

/// Names that completions of shells offer.
pub(super) fn names() -> Vec<&'static str> {
    let findings = RULES.iter().map(|rule| rule.id);
    let tables = TABLES.iter().map(|table| table.name);
    ["list", "checks"]
        .into_iter()
        .chain(findings)
        .chain(tables)
        .chain(meanings::names())
        .collect()
}

/// All checks of `doctor` with their titles and groups.
fn list_of_checks(width: usize) -> String {
    let room = checks().map(|check| check.id.len()).max().unwrap_or(0) + 2;
    let mut list = String::new();
    for group in doctor::groups() {
        for check in checks().filter(|check| check.run.group == group) {
            let title = format!("{} ({group})", check.title);
            paragraph(&mut list, &format!("{:room$}", check.id), room, &title, width);
        }
    }
    list
}

/// The columns of a table.
fn columns(text: &mut String, table: &Table, width: usize) {
    let title = format!("table {}: {}", table.name, table.row);
    paragraph(text, "", 0, &title, width);
    text.push('\n');
    let room = table
        .columns
        .iter()
        .map(|column| column.name.len())
        .max()
        .unwrap_or(0)
        .min(width / 3)
        + 2;
    for column in table.columns {
        let unit = column.unit;
        let unit = if unit.is_empty() {
            String::new()
        } else {
            format!(" ({unit})")
        };
        let name = format!("{:room$}", column.name);
        paragraph(text, &name, room, &format!("{}{unit}", column.meaning), width);
    }
}

/// All findings with their titles.
fn list(width: usize) -> String {
    let room = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0) + 2;
    let mut list = String::new();
    for rule in RULES {
        let title = format!("{} ({})", rule.title, rule.severity.name());
        paragraph(&mut list, &format!("{:room$}", rule.id), room, &title, width);
    }
    let tables: Vec<&str> = meanings::tables().map(|table| table.name).collect();
    let words: Vec<&str> = meanings::glossary().map(|(word, _)| word).collect();
    let checks: Vec<&str> = checks().map(|check| check.id).collect();
    let devices: Vec<&str> = findings::rules().map(|rule| rule.id).collect();
    let counters: Vec<&str> = counters::rules().map(|rule| rule.id).collect();
    for (name, all) in [
        ("checks", checks),
        ("devices", devices),
        ("counters", counters),
        ("tables", tables),
        ("words", words),
    ] {
        list.push('\n');
        paragraph(
            &mut list,
            &format!("{:room$}", format!("{name}:")),
            room,
            &all.join(", "),
            width,
        );
    }
    list
}

fn text(rule: &Rule, thresholds: &Thresholds, width: usize) -> String {
    let mut text = String::new();
    paragraph(&mut text, "", 0, &format!("{}: {}", rule.id, rule.title), width);
    let severity = if rule.otherwise.is_empty() {
        rule.severity.name().to_owned()
    } else {
        format!("{}; {}", rule.severity.name(), rule.otherwise)
    };
    let needs = match rule.needs {
        _ if !RULES.iter().any(|known| known.id == rule.id) => "",
        Needs::Any => "any part of the packets: it holds for thin captures, too (--sampled)",
        Needs::Ends => {
            "first and last packets, answers and CNPs: a mirror of these is enough (--sampled ends), one in N packets is not"
        }
        Needs::Every => "every packet: thin captures cannot tell (--sampled)",
    };
    for (name, words) in [
        ("severity", severity.as_str()),
        ("meaning", rule.meaning),
        ("read", rule.read),
        ("computed", rule.method),
        ("shows as", rule.symptom),
        ("or else", rule.alternatives),
        ("confidence", rule.confidence),
        ("needs", needs),
        ("rule from", rule.source),
        ("next", rule.next),
    ] {
        if words.is_empty() {
            continue;
        }
        text.push('\n');
        paragraph(&mut text, &format!("{name:NAME$}"), NAME, words, width);
    }
    let causes = MECHANISMS.iter().filter(|mechanism| mechanism.effect == rule.id);
    let effects = MECHANISMS.iter().filter(|mechanism| mechanism.cause == rule.id);
    let causes = causes.map(|mechanism| ("follows", mechanism.cause, mechanism.how));
    let effects = effects.map(|mechanism| ("explains", mechanism.effect, mechanism.how));
    let mut last = "";
    for (name, other, how) in causes.chain(effects) {
        let head = if name == last { "" } else { name };
        if name != last {
            text.push('\n');
        }
        last = name;
        paragraph(
            &mut text,
            &format!("{head:NAME$}"),
            NAME,
            &format!("{other}: {how}"),
            width,
        );
    }
    for (place, name) in rule.thresholds.iter().enumerate() {
        let Ok(threshold) = Thresholds::named(name) else {
            continue;
        };
        let value = threshold.get(thresholds);
        let changed = if value == threshold.default {
            "the default".to_owned()
        } else {
            format!("the default is {}", said(threshold.default))
        };
        let head = if place == 0 { "thresholds" } else { "" };
        let words = format!(
            "{name} = {} ({changed}). {} {}",
            said(value),
            threshold.meaning,
            threshold.reason
        );
        text.push('\n');
        paragraph(&mut text, &format!("{head:NAME$}"), NAME, &words, width);
    }
    if !rule.thresholds.is_empty() {
        text.push('\n');
        let words = "A file for --config changes them, in its table [thresholds].";
        paragraph(&mut text, &format!("{:NAME$}", ""), NAME, words, width);
    }
    text
}

/// A value as a configuration file has it.
fn said(value: ThresholdValue) -> String {
    match value {
        ThresholdValue::Span(time) => {
            let (unit, of) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
                .into_iter()
                .find(|(_, of)| time.0 >= *of && time.0 % of == 0)
                .unwrap_or(("ns", 1));
            format!("\"{}{unit}\"", time.0 / of)
        }
        ThresholdValue::Count(_) | ThresholdValue::Number(_) => value.to_string(),
    }
}

/// Words after a name, wrapped so that all lines begin where the first one's words do.
fn paragraph(text: &mut String, name: &str, indent: usize, words: &str, width: usize) {
    let blanks = " ".repeat(indent);
    let options = textwrap::Options::new(width)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .initial_indent(name)
        .subsequent_indent(&blanks)
        .break_words(false);
    for line in textwrap::wrap(words, options) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use roce_model::Span;

    use super::*;

    #[test]
    fn every_finding_is_explained_at_every_width() {
        for rule in rules() {
            for width in [0, 40, 80, 160, usize::MAX] {
                let text = explain(rule.id, &Thresholds::default(), width).unwrap();
                assert!(text.starts_with(rule.id), "{text}");
                for word in ["severity", "meaning", "computed", "confidence", "rule from"] {
                    assert!(text.contains(&format!("\n{word} ")), "{word}: {text}");
                }
                let widest = width.clamp(NARROWEST, WIDEST);
                for line in text.lines().filter(|line| line.trim().contains(' ')) {
                    let long = line.chars().count();
                    // Only a word that is longer than the line is wider.
                    assert!(long <= widest || width <= NARROWEST, "{long}: {line}");
                }
                for name in rule.thresholds {
                    assert!(Thresholds::named(name).is_ok(), "{}: {name}", rule.id);
                    assert!(text.contains(name), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_changed_threshold_is_shown_with_its_default() {
        let rule = RULES.iter().find(|rule| !rule.thresholds.is_empty()).unwrap();
        let threshold = Thresholds::named(rule.thresholds[0]).unwrap();
        let mut thresholds = Thresholds::default();
        let other = match threshold.default {
            ThresholdValue::Count(_) => ThresholdValue::Count(77),
            ThresholdValue::Span(_) => ThresholdValue::Span(Span(77_000)),
            ThresholdValue::Number(_) => ThresholdValue::Number(0.77),
        };
        threshold.set(&mut thresholds, other).unwrap();
        let text = explain(rule.id, &thresholds, 200).unwrap();
        assert!(text.contains("77") && text.contains("the default is"), "{text}");
    }

    #[test]
    fn values_are_as_a_file_has_them() {
        for (value, text) in [
            (ThresholdValue::Span(Span(5_000_000)), "\"5ms\""),
            (ThresholdValue::Span(Span(4_000)), "\"4us\""),
            (ThresholdValue::Span(Span(1_500_000_000)), "\"1500ms\""),
            (ThresholdValue::Span(Span(7)), "\"7ns\""),
            (ThresholdValue::Count(3), "3"),
            (ThresholdValue::Number(0.25), "0.25"),
        ] {
            assert_eq!(said(value), text);
        }
    }

    #[test]
    fn words_and_tables_are_explained() {
        let said = |name| explain(name, &Thresholds::default(), 100).unwrap();
        assert!(
            said("vantage").starts_with("vantage: where a tap is"),
            "{}",
            said("vantage")
        );
        assert!(said("ack time").starts_with("RTT, turnaround, ACK time: "));
        assert!(said("flows").contains("\ntable flows: ") && said("flows").contains("\ndestination_qpn "));
        let list = explain("list", &Thresholds::default(), 100).unwrap();
        for (word, _) in meanings::glossary() {
            assert!(list.contains(word.split(' ').next().unwrap()), "{word}");
        }
        assert!(said("IBV_WC_RETRY_EXC_ERR").contains("(status 12 of a completion): "));
        assert!(said("goodput").contains("goodput"), "{}", said("goodput"));
    }

    #[test]
    fn what_is_none_names_the_nearest() {
        let refusal = |name| explain(name, &Thresholds::default(), 80).unwrap_err().to_string();
        assert_eq!(
            refusal("loss.netwrk"),
            "nothing is named 'loss.netwrk': no finding, check, table, column, word or status\n\
             hint: did you mean 'loss.network'? `roce-analyze explain list` has all names"
        );
        assert!(refusal("qqqq").ends_with("\nhint: `roce-analyze explain list` has all names"));
    }
}
