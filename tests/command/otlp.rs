//! Requests of OTLP: as a file of a Collector for `--samples`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::captures::root;
use crate::command::run;

/// 2026-01-01, when the demos begin.
const START: u64 = 1_767_225_600_000_000_000;

/// A line of a Collector's file exporter: a metric with points of (nanoseconds behind the start, value) of queue 3 of swp1 at leaf1.
fn line(name: &str, unit: &str, points: &[(u64, f64)]) -> String {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let points: Vec<Value> = points
        .iter()
        .map(|(behind, value)| {
            json!({
                "attributes": [text("interface", "swp1"), text("tc", "3")],
                "timeUnixNano": (START + behind).to_string(),
                "asDouble": value,
            })
        })
        .collect();
    let metric = json!({"name": name, "unit": unit, "gauge": {"dataPoints": points}});
    let request = json!({"resourceMetrics": [{
        "resource": {"attributes": [text("host.name", "leaf1")]},
        "scopeMetrics": [{"scope": {}, "metrics": [metric]}],
    }]});
    request.to_string()
}

#[test]
fn a_collectors_file_joins_a_capture() {
    let folder = tempdir().unwrap();
    fs::copy(
        root().join("captures/demos/incast-h7.pcapng"),
        folder.path().join("incast.pcapng"),
    )
    .unwrap();
    let mut lines = String::new();
    let marks = [(0, 100.0), (1_000_000, 150.0)];
    for text in [
        line("nvswitch_interface_tc_tx_ecn_marked_tc", "", &marks),
        r#"{"resourceLogs":[]}"#.to_owned(),
        // A depth each 100 us.
        line(
            "nvswitch_interface_tc_curr_occupancy",
            "By",
            &[(0, 0.0), (100_000, 90_000.0), (200_000, 180_000.0)],
        ),
        line("nvswitch_interface_of_tomorrow", "", &[(0, 1.0)]),
    ] {
        writeln!(lines, "{text}").unwrap();
    }
    fs::write(folder.path().join("plain"), &lines).unwrap();
    let file = fs::File::create(folder.path().join("packed")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(lines.as_bytes()).unwrap();
    packed.finish().unwrap();
    for file in ["plain", "packed"] {
        let ran = run(folder.path(), ["incast.pcapng", "--samples", file]);
        assert_eq!(ran.code, Some(0));
        let said = ran.stderr;
        let expected = format!(
            "{file}: 1 of 6 points became no samples: 1 have names that are not known (nvswitch_interface_of_tomorrow)"
        );
        assert!(said.contains(&expected), "{said}");
        let arguments = ["incast.pcapng", "--samples", file, "--format", "json"];
        let document = run(folder.path(), arguments).json();
        let rows: Vec<Value> = document["samples"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                assert_eq!(
                    (&row["source"], &row["node"], &row["object"], &row["queue"]),
                    (&json!("switch"), &json!("leaf1"), &json!("swp1"), &json!("3"))
                );
                json!([
                    row["counter"],
                    row["kind"],
                    row["value"],
                    row["change"],
                    row["interval_ns"]
                ])
            })
            .collect();
        let (marked, depth) = ("switch_queue_ecn_marked_packets", "switch_queue_depth_bytes");
        assert_eq!(
            rows,
            [
                json!([marked, "cumulative", 100.0, null, null]),
                // 150 - 100 marks in 1 ms.
                json!([marked, "cumulative", 150.0, 50.0, 1_000_000]),
                json!([depth, "gauge", 0.0, null, null]),
                json!([depth, "gauge", 90_000.0, null, 100_000]),
                json!([depth, "gauge", 180_000.0, null, 100_000]),
            ]
        );
    }
}

#[test]
fn a_line_that_is_no_request_is_an_error() {
    let folder = tempdir().unwrap();
    let text = line("nvswitch_interface_tc_tx_ecn_marked_tc", "", &[(0, 1.0)]);
    fs::write(
        folder.path().join("bad"),
        format!("{text}\n{{\"resourceMetrics\":7}}\n"),
    )
    .unwrap();
    let capture = root().join("captures/demos/clean.pcapng");
    let refused = run(folder.path(), [capture.to_str().unwrap(), "--samples", "bad"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("bad: line 2 is no request of OTLP: "),
        "{}",
        refused.stderr
    );
}
