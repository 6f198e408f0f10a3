//! Reads captures and decodes each frame by the fast path: what comes before the analysis.
//!
//!     decode_alone FILE...

#![expect(clippy::print_stdout, reason = "an example for a terminal")]

use std::path::Path;

use roce_capture::{Error, Options, Reader};
use roce_wire::Roce;

fn main() -> Result<(), Error> {
    let (mut frames, mut packets, mut payload) = (0_u64, 0_u64, 0_u64);
    let mut roce = Roce::default();
    for path in std::env::args_os().skip(1) {
        let mut reader = Reader::open(Path::new(&path), &Options::default())?;
        while let Some(batch) = reader.next_batch()? {
            frames += batch.frames().len() as u64;
            for frame in batch.frames() {
                let Some(interface) = reader.interfaces().get(frame.interface as usize) else {
                    continue;
                };
                let bytes = batch.bytes(frame);
                if roce_wire::fast::decode_into(interface.link, bytes, frame.original, &mut roce) {
                    packets += 1;
                    payload += u64::from(roce.payload_bytes);
                }
            }
            reader.recycle(batch);
        }
    }
    println!("{frames} frames, {packets} RoCE packets, {payload} bytes of payload");
    Ok(())
}
