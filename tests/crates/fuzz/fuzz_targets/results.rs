//! Logs of traffic tools: perftest, iperf3, iperf 2, nccl-tests, PyTorch's benchmarks and NCCL. The text itself says which one it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_jobs::results::{Measurement, Results, results, when};
use roce_jobs::traffic::log_state;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for world in [None, Some(8)] {
        check(&text, &results(&text, world));
    }
    let state = log_state(&text);
    assert!(state.error().is_none_or(|line| !line.contains('\n')), "{state:?}");
    let _ = when(&text);
});

fn check(text: &str, found: &Results) {
    let lines = text.matches('\n').count() + 1;
    for remark in &found.remarks {
        assert!(remark.line <= lines && !remark.text.is_empty(), "{remark:?}");
    }
    for row in &found.measurements {
        assert!(row.line <= lines, "{row:?}");
        for value in values(row).into_iter().flatten() {
            assert!(value.is_finite() && value >= 0.0, "{row:?}");
        }
        if let Some(latency) = &row.latency {
            assert!(latency.usual().is_none_or(f64::is_finite), "{row:?}");
        }
    }
}

/// Numbers of a measurement, but those that are whole ones.
fn values(row: &Measurement) -> [Option<f64>; 8] {
    [
        row.goodput_bps,
        row.peak_bps,
        row.bus_bps,
        row.messages_per_second,
        row.time_us,
        row.lost_ratio,
        row.jitter_us,
        row.cpu_ratio,
    ]
}
