//! Sends a capture's frames out of a device, at the pace of the capture or at a rate: to try `live` where there is no RDMA traffic.
//! Bytes that the capture cut off are sent as zeros. Needs CAP_NET_RAW.
//!
//! `cargo run --release -p roce-capture --features live --example send_frames -- DEVICE CAPTURE [FRAMES A SECOND [TIMES]]`

#![expect(clippy::print_stdout, reason = "a command for a person at a terminal")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use roce_capture::live::Injector;
use roce_capture::{Options, Reader};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, capture, ..] = arguments.as_slice() else {
        return Err("usage: send_frames DEVICE CAPTURE [FRAMES A SECOND [TIMES]]".into());
    };
    let rate: Option<f64> = arguments.get(2).map(|rate| rate.parse()).transpose()?;
    let times: u32 = arguments.get(3).map_or(Ok(1), |times| times.parse())?;
    let mut frames: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut reader = Reader::open(Path::new(capture), &Options::default())?;
    while let Some(batch) = reader.next_batch()? {
        for frame in batch.frames() {
            let mut bytes = batch.bytes(frame).to_vec();
            bytes.resize(frame.original as usize, 0);
            frames.push((frame.time.0, bytes));
        }
    }
    let first = frames.first().map_or(0, |(time, _)| *time);
    let mut injector = Injector::open(device)?;
    let begun = Instant::now();
    let mut sent = 0_u32;
    for (time, bytes) in (0..times).flat_map(|_| &frames) {
        let due = match rate {
            Some(rate) => Duration::from_secs_f64(f64::from(sent) / rate),
            None => Duration::from_nanos(time - first),
        };
        // Sleeping takes longer than it should: the last bit is waited out.
        while let Some(left) = due.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            if left > Duration::from_millis(1) {
                std::thread::sleep(left.saturating_sub(Duration::from_micros(500)));
            }
        }
        injector.send(bytes)?;
        sent += 1;
    }
    println!("{sent} frames in {:.3} s", begun.elapsed().as_secs_f64());
    Ok(())
}
