//! Any bytes as a stored table: the check of footers and pages that comes before polars reads it. polars itself is not in this program:
//! built with instrumentation it takes half an hour.
//!
//! The first two bytes are the number of rows. All bytes behind the magic are the pages of one column, and of two halves.

#![no_main]

#[path = "../../../../analyzer/parquet/src/check.rs"]
#[expect(dead_code, reason = "the crate's other files use the rest")]
mod check;
#[path = "../../../../analyzer/parquet/src/marks.rs"]
mod marks;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use check::Chunk;
use libfuzzer_sys::fuzz_target;

/// A file without a name.
static SCRATCH: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("roce-fuzz-parquet-{}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(&path);
    fs::remove_file(&path).expect("it was made");
    file.expect("the temporary folder can be written")
});

fuzz_target!(|data: &[u8]| {
    let Some((rows, file)) = data.split_first_chunk::<2>() else {
        return;
    };
    let rows = usize::from(u16::from_le_bytes(*rows));
    SCRATCH.set_len(0).expect("it can be emptied");
    SCRATCH.write_all_at(file, 0).expect("it can be written");
    let _ = check::footer(&SCRATCH).expect("it can be read");
    let size = file.len() as u64;
    let chunk = |range| Chunk {
        values: rows as i64,
        range,
    };
    let _ = check::group(&SCRATCH, rows, &[chunk(4..size)], false).expect("it can be read");
    let halves = [chunk(4..size / 2), chunk(size / 2..size)];
    let _ = check::group(&SCRATCH, rows, &halves, true).expect("it can be read");
});
