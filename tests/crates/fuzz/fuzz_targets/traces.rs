//! Traces of profilers in Chrome's format, and documents of NCCL and PyTorch beside them. A collective ends behind its start, and each one comes
//! from some bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_pipeline::{Trace, TraceFile};

/// Limit of a file's bytes, so that some inputs reach it.
const LIMIT: u64 = 4096;

fuzz_target!(|data: &[u8]| {
    for limit in [None, Some(LIMIT)] {
        let Ok(trace) = Trace::read(data, "f".to_owned(), limit) else {
            continue;
        };
        // An event needs more than ten bytes of JSON.
        assert!(
            trace.calls.len() <= data.len() / 10,
            "{} calls",
            trace.calls.len()
        );
        for call in &trace.calls {
            assert!(call.start <= call.end, "{call:?}");
            assert!(call.kind.chars().count() <= 64, "{call:?}");
        }
        assert!(trace.calls.is_sorted_by_key(|call| call.start));
    }
    let _ = TraceFile::parse(&String::from_utf8_lossy(data));
});
