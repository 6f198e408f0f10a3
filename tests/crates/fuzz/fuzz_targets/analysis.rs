//! Any bytes as a capture, through the whole data path: frames, packets, flows, rows. The results must
//! obey the sum rule: the additive columns of a flow's timeline add up to its row.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| roce_fuzz::check_analysis(data));
