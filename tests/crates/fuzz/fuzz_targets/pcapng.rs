//! Bytes that begin like a pcapng section, as a capture.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    if !data.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        return Corpus::Reject;
    }
    roce_fuzz::check_reader(data);
    Corpus::Keep
});
