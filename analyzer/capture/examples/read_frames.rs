//! Reads captures record by record, and looks at each frame's time and length: reading without decoding.
//!
//!     read_frames FILE...

#![expect(clippy::print_stdout, reason = "an example for a terminal")]

use std::path::Path;

use roce_capture::{Error, Options, Reader};

fn main() -> Result<(), Error> {
    let (mut frames, mut bytes, mut last) = (0_u64, 0_u64, 0);
    for path in std::env::args_os().skip(1) {
        let mut reader = Reader::open(Path::new(&path), &Options::default())?;
        while let Some(batch) = reader.next_batch()? {
            for frame in batch.frames() {
                frames += 1;
                bytes += u64::from(frame.original);
                last = last.max(frame.time.0);
            }
            reader.recycle(batch);
        }
    }
    println!("{frames} frames, {bytes} bytes on the wire, the last at {last} ns");
    Ok(())
}
