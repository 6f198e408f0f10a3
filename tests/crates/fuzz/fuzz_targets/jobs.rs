//! Documents of a job: NCCL's Inspector, RAS, PyTorch's flight recorder. Each reader gets all bytes, whatever they look like.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_jobs::documents::{InspectorReader, flight_recorder, inspector_metrics, kind_of, ras};

fuzz_target!(|data: &[u8]| {
    let _ = kind_of(data);
    if let Ok(dump) = InspectorReader::new("f").read(data) {
        for record in &dump.records {
            assert!(record.process < dump.processes.len(), "{record:?}");
            assert!(
                record.span_us.is_none_or(|(start, end)| start < end),
                "{record:?}"
            );
        }
    }
    if let Ok(metrics) = inspector_metrics(data, "f") {
        for value in metrics
            .iter()
            .flat_map(|metric| [metric.bus_bandwidth_gbs, metric.duration_us])
        {
            assert!(
                value.is_none_or(|value| value.is_finite() && value >= 0.0),
                "{value:?}"
            );
        }
    }
    for found in [ras(data, "f").map(drop), flight_recorder(data, "f").map(drop)] {
        if let Err(error) = found {
            assert!(error.reason.contains("expected"), "{error}");
        }
    }
});
