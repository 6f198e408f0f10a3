//! Counters before and after: for people, and as JSON.

pub(crate) mod summary;

use std::io::Write;

use roce_model::text::escape_json;
use serde_json::{Value, json};

use crate::Error;
use crate::terminal::Style;
use crate::terminal::samples::lines;

pub use summary::SampleSummary;

/// Writes a table for people: what moved, or `all` that was read.
///
/// # Errors
/// When it cannot be written.
pub fn text(summary: &SampleSummary, all: bool, style: &Style, out: &mut impl Write) -> Result<(), Error> {
    out.write_all(lines(summary, all, style).as_bytes())
        .and_then(|()| out.flush())
        .map_err(Error::Text)
}

/// Writes one JSON document with every series and the findings about them. Absent is null; values are in base units.
///
/// # Errors
/// When it cannot be written.
pub fn json(
    summary: &SampleSummary,
    findings: &[Value],
    notes: &[&str],
    out: &mut impl Write,
) -> Result<(), Error> {
    let series: Vec<Value> = summary
        .series
        .iter()
        .map(|(key, series)| {
            json!({
                "node": key.node,
                "object": key.object,
                "counter": key.counter,
                "priority": key.priority,
                "queue": key.queue,
                "detail": key.detail,
                "kind": series.kind,
                "unit": series.unit,
                "before": series.first.1,
                "after": series.last.1,
                "change": series.change,
                "per_second": series.rate(),
                "interval_ns": series.last.0.since(series.first.0).0,
                "readings": series.readings,
                "resets": series.resets,
                "unknown_changes": series.unknown,
            })
        })
        .collect();
    let document = json!({
        "schema_version": crate::json::SCHEMA_VERSION,
        "counters": series,
        "findings": findings,
        "left_out": summary.left_out,
        "notes": notes,
    });
    writeln!(out, "{}", escape_json(&format!("{document:#}")))
        .and_then(|()| out.flush())
        .map_err(Error::Text)
}
#[cfg(test)]
mod tests {
    use roce_model::{SampleRow, Time};

    use super::*;

    fn row(
        object: &'static str,
        counter: &'static str,
        kind: &'static str,
        seconds: u64,
        value: f64,
    ) -> SampleRow {
        SampleRow {
            time: Time(seconds * 1_000_000_000),
            source: "host",
            node: "a".into(),
            object: object.into(),
            counter,
            kind,
            value,
            unit: "packets",
            ..SampleRow::default()
        }
    }

    fn summary() -> SampleSummary {
        let mut summary = SampleSummary::default();
        summary.add(&row("mlx5_0:1", "port_cnp_sent", "cumulative", 1, 100.0));
        summary.add(&row("mlx5_0:1", "port_cnp_handled", "cumulative", 1, 7.0));
        summary.add(&row("mlx5_0:1", "port_objects", "gauge", 1, 50.0));
        for (seconds, value, change) in [(2, 350.0, 250.0), (3, 600.0, 250.0)] {
            summary.add(&SampleRow {
                change: Some(change),
                ..row("mlx5_0:1", "port_cnp_sent", "cumulative", seconds, value)
            });
        }
        summary.add(&SampleRow {
            change: Some(0.0),
            ..row("mlx5_0:1", "port_cnp_handled", "cumulative", 3, 7.0)
        });
        summary.add(&row("mlx5_0:1", "port_objects", "gauge", 3, 49.0));
        summary
    }

    #[test]
    fn changes_add_up_and_gauges_have_none() {
        let mut out = Vec::new();
        json(&summary(), &[], &["a note"], &mut out).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        let counters = document["counters"].as_array().unwrap();
        let of = |name: &str| counters.iter().find(|series| series["counter"] == name).unwrap();
        // 250 and 250 in two seconds.
        let sent = of("port_cnp_sent");
        assert_eq!(
            (sent["before"].as_f64(), sent["after"].as_f64()),
            (Some(100.0), Some(600.0))
        );
        assert_eq!(
            (sent["change"].as_f64(), sent["per_second"].as_f64()),
            (Some(500.0), Some(250.0))
        );
        assert_eq!(sent["readings"], 3);
        assert!(of("port_objects")["change"].is_null());
        assert_eq!(document["notes"][0], "a note");
    }

    #[test]
    fn one_unknown_change_makes_the_sum_unknown() {
        let mut summary = SampleSummary::default();
        let name = "port_out_of_sequence_packets";
        summary.add(&row("mlx5_0:1", name, "cumulative", 1, 5.0));
        for (seconds, value, change) in [(2, 6.0, Some(1.0)), (62, 7.0, None), (63, 9.0, Some(2.0))] {
            summary.add(&SampleRow {
                change,
                interval_ns: Some(1),
                ..row("mlx5_0:1", name, "cumulative", seconds, value)
            });
        }
        let mut out = Vec::new();
        json(&summary, &[], &[], &mut out).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        let series = &document["counters"][0];
        assert!(
            series["change"].is_null() && series["per_second"].is_null(),
            "{series}"
        );
        assert_eq!(series["unknown_changes"], 1);
        let mut out = Vec::new();
        let style = Style {
            width: 80,
            ..Style::default()
        };
        super::text(&summary, false, &style, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(" unknown "), "{text}");
        assert!(
            text.contains("1 counter of 32 bits can have wrapped twice"),
            "{text}"
        );
    }

    #[test]
    fn the_text_shows_what_moved_unless_all_is_wanted() {
        let text = |all| {
            let mut out = Vec::new();
            let style = Style {
                width: 80,
                ..Style::default()
            };
            super::text(&summary(), all, &style, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let moved = text(false);
        assert!(
            moved.contains("port_cnp_sent") && moved.contains("+500"),
            "{moved}"
        );
        assert!(!moved.contains("port_cnp_handled"), "{moved}");
        assert!(moved.contains("port_objects"), "a gauge that fell: {moved}");
        assert!(moved.contains("1 of 3 counters did not move"), "{moved}");
        assert!(text(true).contains("port_cnp_handled"));
        assert!(moved.lines().all(|line| line.chars().count() <= 80), "{moved}");
    }
}
