//! A host one adapter of which counts everything: readings in a recording, as `live` makes it.

use roce_model::{Counter, Sample, SampleRow, SampleSeries, SampleSource, Span, Time};
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::Capture;
use crate::command::document;
use crate::samples::recording;

/// Readings of two ports of a host, 1 s apart: bytes that they sent until then.
fn readings(first: Time, bytes: [[f64; 3]; 2]) -> Vec<SampleRow> {
    let mut series = SampleSeries::default();
    let mut rows = Vec::new();
    for seconds in 0..3_u8 {
        for (object, bytes) in ["mlx5_0:1", "mlx5_1:1"].into_iter().zip(bytes) {
            let sample = Sample {
                time: Time(first.0 + u64::from(seconds) * Span::SECOND.0),
                source: SampleSource::Host,
                node: "h1".into(),
                object: object.into(),
                counter: Counter::PortTransmittedBytes,
                priority: None,
                queue: None,
                details: Vec::new(),
                value: bytes[usize::from(seconds)],
                bits: 64,
            };
            rows.push(series.row(&sample, None));
        }
    }
    rows
}

fn found(bytes: [[f64; 3]; 2]) -> Option<Value> {
    let folder = tempdir().unwrap();
    let first = Capture::named("rping").frames()[0].time;
    recording(folder.path(), &readings(first, bytes));
    let document = document(folder.path(), ["recording.pcapng.zst"]);
    let findings = document["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["id"] == "adapter.idle")
        .cloned()
}

#[test]
fn an_adapter_that_counts_nothing() {
    // 2 x 9 GB in two seconds, and 100 bytes.
    let finding = found([[5e9, 14e9, 23e9], [700.0, 700.0, 800.0]]).unwrap();
    assert_eq!(
        (&finding["severity"], &finding["confidence"]),
        (&"info".into(), &"medium".into())
    );
    let evidence = &finding["evidence"];
    assert_eq!(evidence["bytes"], 18_000_000_000_u64);
    assert_eq!(
        (&evidence["busy"], &evidence["idle"]),
        (&"mlx5_0:1".into(), &"mlx5_1:1".into())
    );
    // Both are used.
    assert_eq!(found([[5e9, 14e9, 23e9], [0.0, 4e9, 7e9]]), None);
}
