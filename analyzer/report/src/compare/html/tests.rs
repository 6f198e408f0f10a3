//! A comparison by hand, with names that try to become markup.

use super::*;
use crate::Style;
use crate::compare::{Quantity, json};
use crate::terminal::comparison::text;

fn compared(quantity: Quantity, a: f64, b: f64, reach: f64, outcome: Outcome) -> ComparedQuantity {
    ComparedQuantity {
        quantity,
        a: Some(a),
        b: Some(b),
        interval: Some((b - a - reach, b - a + reach)),
        visible: Some(1.2 * reach),
        outcome,
    }
}

fn hostile() -> Comparison {
    let side = Side {
        path: "<script>alert(1)</script>\u{1b}[2J\".pcap".to_owned(),
        slices: 200,
        ..Side::default()
    };
    let scope = |pair: Option<(&str, &str)>| Scope {
        pair: pair.map(|(from, to)| (from.to_owned(), to.to_owned())),
        compared: vec![
            compared(Quantity::CeShare, 0.01, 0.012, 0.005, Outcome::Alike),
            compared(Quantity::Goodput, 8e9, 7e9, 1e8, Outcome::Worse),
            compared(Quantity::Lost, 0.0, 12.5, 5.0, Outcome::Worse),
            compared(Quantity::StepTime, 5e7, 4e7, 1e6, Outcome::Better),
            compared(Quantity::Cnp, 10.0, 101.0, 20.0, Outcome::Different),
            ComparedQuantity {
                interval: None,
                visible: None,
                ..compared(Quantity::RetransmittedShare, 0.0, 0.5, 0.0, Outcome::TooShort)
            },
            ComparedQuantity {
                b: None,
                interval: None,
                visible: None,
                ..compared(Quantity::AckTimeMedian, 2e4, 0.0, 0.0, Outcome::OneSided)
            },
        ],
    };
    Comparison {
        a: side.clone(),
        b: side,
        scopes: vec![
            scope(None),
            scope(Some(("10.0.0.1", "fd00::<b>7"))),
            scope(Some(("10.0.0.2", "10.0.0.7"))),
        ],
        pairs_left_out: 3,
        findings: vec![FindingChange {
            id: "loss.network".to_owned(),
            a: None,
            b: Some(Severity::Critical),
            summary: "lost <img onerror=x> & more".to_owned(),
            may_be_chance: false,
        }],
        notes: vec!["it's <i>noted</i>".to_owned()],
        confidence: 0.95,
        matters: 0.05,
    }
}

#[test]
fn nothing_from_outside_becomes_markup() {
    let page = page(&hostile());
    for word in ["<script", "<img", "<b>", "<i>", "\u{1b}"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("it&#39;s &lt;i&gt;noted&lt;/i&gt;"));
    // Every element that is opened is closed.
    for name in ["table", "tr", "td", "details", "svg", "p", "dl"] {
        let opened = page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
    }
}

#[test]
fn no_line_is_wider_than_the_screen_and_nothing_steers_it() {
    for (width, unicode) in [(60, true), (80, true), (80, false), (160, true)] {
        let page = text(
            &hostile(),
            Style {
                width,
                unicode,
                ..Style::default()
            },
        );
        assert!(
            page.lines().all(|line| line.chars().count() <= width),
            "{width}:\n{page}"
        );
        assert!(!page.contains('\u{1b}'));
        assert!(unicode || page.is_ascii(), "{page}");
    }
    assert!(
        text(
            &hostile(),
            Style {
                color: true,
                ..Style::default()
            }
        )
        .contains("\u{1b}[")
    );
}

#[test]
fn the_document_has_every_number() {
    let mut out = Vec::new();
    json::write(&hostile(), &mut out).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(document["schema_version"], 1);
    let lost = &document["scopes"][1]["compared"][2];
    assert_eq!(
        (&lost["metric"], &lost["unit"]),
        (&"lost_per_million".into(), &"per million data packets".into())
    );
    assert_eq!((&lost["low"], &lost["high"]), (&7.5.into(), &17.5.into()));
    assert_eq!(
        (&lost["relative"], &lost["outcome"]),
        (&serde_json::Value::Null, &"worse".into())
    );
    assert_eq!(document["scopes"][1]["destination"], "fd00::<b>7");
    assert_eq!(document["findings"][0]["regression"], true);
}

#[test]
fn a_regression_is_what_is_worse_by_so_much() {
    let mut comparison = hostile();
    assert!(comparison.has_regression(0.5));
    comparison.findings.clear();
    // Losses where there were none are as much as can be.
    assert!(comparison.has_regression(10.0));
    for scope in &mut comparison.scopes {
        scope
            .compared
            .retain(|compared| compared.quantity != Quantity::Lost);
    }
    // The goodput lost an eighth.
    assert!(comparison.has_regression(0.12) && !comparison.has_regression(0.13));
}
