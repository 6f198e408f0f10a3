//! Any text as the file of `--config`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(error) = roce_analyze::fuzzing::configuration(text) {
        assert!(error.starts_with("input.toml"), "{error}");
    }
});
