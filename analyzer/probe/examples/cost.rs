//! Cost of the classifier: nanoseconds per packet in the kernel, by BPF_PROG_TEST_RUN over the frames of
//! a capture. `cost CAPTURE [REPEAT]` takes the first 64 frames, each REPEAT times in three rounds; the
//! quickest round counts.

#![expect(clippy::print_stdout, reason = "an example for a person at a terminal")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use roce_capture::{Options as ReadOptions, Reader};
use roce_probe::{Options, Packets, Probe};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: cost CAPTURE [REPEAT]")?;
    let repeat: u32 = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let mut reader = Reader::open(Path::new(&path), &ReadOptions::default())?;
    let mut frames = Vec::new();
    let batch = reader.next_batch()?.ok_or("the capture is empty")?;
    for frame in batch.frames().iter().take(64) {
        let mut bytes = batch.bytes(frame).to_vec();
        bytes.resize(frame.original as usize, 0);
        frames.push(bytes);
    }
    // BPF_PROG_TEST_RUN takes a page at most, and TCP in place of UDP is somebody else's packet.
    frames.retain(|frame| frame.len() < 3_000);
    let mut other = frames[0].clone();
    other[23] = 6;
    for (name, packets) in [
        ("counting only", Packets::None),
        ("with events of congestion", Packets::Congestion),
        ("with packet records", Packets::All),
    ] {
        let options = Options {
            packets,
            host_events: false,
            packet_buffer: 64 << 20,
            ..Options::default()
        };
        let (mut probe, _) = Probe::open(&options)?;
        let mut of = |frames: &[Vec<u8>]| -> Result<f64, Box<dyn Error>> {
            let mut sum = Duration::ZERO;
            for frame in frames {
                let mut best = Duration::MAX;
                for _ in 0..3 {
                    best = best.min(probe.try_frame(frame, repeat)?);
                    // Room for the records of the next measurement.
                    while probe.packets(|_| ())? > 0 {}
                }
                sum += best;
            }
            Ok(sum.as_secs_f64() * 1e9 / f64::from(u32::try_from(frames.len())?))
        };
        let (roce, tcp) = (of(&frames)?, of(std::slice::from_ref(&other))?);
        println!("{name}: {roce:.0} ns a RoCE packet, {tcp:.0} ns another");
        println!("  lost {:?}", probe.losses()?);
    }
    Ok(())
}
