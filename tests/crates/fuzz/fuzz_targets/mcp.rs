//! Any bytes as lines of a client of `mcp`: each becomes a request that is served, or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for line in data.split(|byte| *byte == b'\n') {
        roce_analyze::fuzzing::client_message(line);
    }
});
