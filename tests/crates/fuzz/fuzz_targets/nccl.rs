//! Logs of NCCL, of the kernel and of other programs, as `--nccl-log` reads them. No line is counted twice, and what is kept comes from lines.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_jobs::nccl::{Reader, is_log, log};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let lines = text.matches('\n').count() as u64 + 1;
    let whole = log(&text);
    assert!(
        whole.lines <= lines && whole.unknown_lines <= whole.lines,
        "{} of {lines}",
        whole.lines
    );
    let _ = is_log(&text);
    // Two files with the same lines.
    let mut reader = Reader::default();
    for _ in 0..2 {
        assert!(reader.read(data).is_ok());
    }
    let both = reader.finish();
    assert!(both.communicators.len() <= 2 * lines as usize);
});
