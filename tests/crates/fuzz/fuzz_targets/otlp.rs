//! Requests of OTLP, in protobuf and in JSON. No sample comes from nothing, and each point is counted once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_otlp::{Translator, read_json, read_protobuf};

fuzz_target!(|data: &[u8]| {
    for read in [read_protobuf, read_json] {
        let (mut translator, mut samples) = (Translator::new(Some("leaf1")), Vec::new());
        let _ = read(data, &mut translator, &mut samples);
        let tally = translator.tally();
        assert_eq!(tally.taken, samples.len() as u64);
        // A point has two bytes at least, in both encodings.
        assert!(tally.taken + tally.left_out() <= data.len() as u64);
        assert!(
            samples
                .iter()
                .all(|sample| sample.value.is_finite() && sample.time.0 > 0)
        );
    }
});
