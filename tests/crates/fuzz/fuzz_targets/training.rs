//! Training logs. The first line is the pattern, or empty for the built-in one.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (pattern, log) = data.split_at(end);
    let log = log.get(1..).unwrap_or_default();
    let Ok(pattern) = std::str::from_utf8(pattern) else {
        return;
    };
    let pattern = (!pattern.is_empty()).then_some(pattern);
    if let Ok(steps) = roce_analyze::fuzzing::training_log(pattern, log) {
        assert!(steps > 0 && steps <= log.len());
    }
});
