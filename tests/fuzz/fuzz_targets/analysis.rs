//! Any bytes as a capture, through the whole way of the data: frames, packets, flows, rows. What comes out must hold
//! the sum rule: the additive columns of a flow's timeline add up to its row.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| roce_fuzz::check_analysis(data));
