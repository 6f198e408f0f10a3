//! Tests of the page with answers made by hand. `spark/tests` makes one of a dataset and opens it in a browser.

use std::path::Path;

use serde_json::json;

use super::super::sections::SECTIONS;
use super::*;
use crate::command::query::AnswerColumn;

fn answer(columns: &[(&str, bool)], rows: Vec<Vec<Value>>) -> Answer {
    Answer {
        columns: columns
            .iter()
            .map(|(name, is_number)| AnswerColumn {
                name: (*name).to_owned(),
                is_number: *is_number,
            })
            .collect(),
        rows: rows
            .into_iter()
            .map(|row| row.into_iter().map(Cell).collect())
            .collect(),
    }
}

fn section(name: &str) -> &'static Section {
    SECTIONS.iter().find(|section| section.question == name).unwrap()
}

#[test]
fn names_from_datasets_are_no_markup() {
    let evil = "</td><script>alert(1)</script>\"'\u{202e}";
    let destinations = answer(
        &[
            ("hour", false),
            ("host", false),
            ("rack", false),
            ("ce_share", true),
            ("run_id", false),
        ],
        vec![vec![
            json!("2026-03-05 10:00"),
            json!(evil),
            json!(null),
            json!(0.536),
            json!(evil),
        ]],
    );
    let runs = answer(
        &[("run_id", false), ("host", false), ("capture", false)],
        vec![vec![json!(evil), json!(evil), json!(evil)]],
    );
    let mut known = Runs::new(&runs, Path::new("/nowhere/fleet.html"));
    known.prepare([evil].into_iter(), None);
    let destinations = (
        section("destinations"),
        section("destinations").choose(&destinations),
    );
    let text = Page {
        dataset: evil,
        summary: &Answer::default(),
        parts: &[destinations],
        runs: &known,
    }
    .text();
    assert!(!text.contains("<script"), "{text}");
    assert!(!text.contains('\u{202e}'));
    assert!(text.contains("&lt;/td&gt;&lt;script&gt;"));
    assert!(text.contains("53.6 %") && text.contains("1 congested destination<"));
    // A column without any value is left out, and a run without a page has no link.
    assert!(!text.contains("<th>rack</th>") && !text.contains("fleet-runs"));
    // Nothing from elsewhere.
    assert!(!text.contains("http") && !text.contains("src="));
}

#[test]
fn rows_that_are_as_always_are_counted_only() {
    let columns = [
        ("day", false),
        ("host", false),
        ("is_bad", false),
        ("ahead_ns", true),
    ];
    let good = vec![json!("2026-03-05"), json!("h1"), json!(false), json!(-300)];
    let bad = vec![json!("2026-03-05"), json!("h4"), json!(true), json!(297_214)];
    let clocks = answer(&columns, vec![bad, good.clone()]);
    let chosen = section("clocks").choose(&clocks);
    assert_eq!((chosen.rows.as_slice(), chosen.telling), (&[0][..], 1));
    let runs = Runs::new(&Answer::default(), Path::new("fleet.html"));
    let page = |answer: &Answer| {
        Page {
            dataset: "DS",
            summary: &Answer::default(),
            parts: &[(section("clocks"), section("clocks").choose(answer))],
            runs: &runs,
        }
        .text()
    };
    let text = page(&clocks);
    assert!(
        text.contains("<td class=\"n\">297.2 us</td>") && !text.contains("<td>h1</td>"),
        "{text}"
    );
    let text = page(&answer(&columns, vec![good]));
    assert!(
        text.contains("None among 1.") && text.contains("no bad clock"),
        "{text}"
    );
}

#[test]
fn numbers_have_units() {
    // 12,800 ns; 380,000 ns; 1.5 s. Decimal units.
    assert_eq!(
        [time(12_800.0), time(-380_000.0), time(1.5e9)],
        ["12.8 us", "-380.0 us", "1.5 s"]
    );
    assert_eq!(
        [percent(0.0), percent(0.000_8), percent(0.536)],
        ["0 %", "0.08 %", "53.6 %"]
    );
}
