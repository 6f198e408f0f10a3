//! Lines of `--samples`: a row of a table as JSON, or a request of OTLP. A row that is read is written and read again without a change.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_pipeline::sample_row;
use serde_json::{Map, Value};

fuzz_target!(|data: &[u8]| {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(line) else {
            continue;
        };
        if let Err(why) = sample_row(&fields) {
            assert!(why.starts_with("has "), "{why}");
        }
    }
});
