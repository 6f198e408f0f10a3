//! Prints what the probe sees: `probe SECONDS none|congestion|all [INTERFACE ...]`, the second word being the packets that are sent. For
//! trying it by hand, and in the VM.

#![expect(clippy::print_stdout, reason = "an example for a person at a terminal")]

use std::error::Error;
use std::time::{Duration, Instant};

use roce_probe::{Options, Packets, Probe, UNSEEN};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: probe SECONDS none|congestion|all [INTERFACE ...]";
    let seconds = arguments.next().ok_or(usage)?.parse()?;
    let packets = match arguments.next().as_deref() {
        Some("none") => Packets::None,
        Some("congestion") => Packets::Congestion,
        Some("all") => Packets::All,
        _ => return Err(usage.into()),
    };
    let options = Options {
        interfaces: arguments.collect(),
        packets,
        ..Options::default()
    };
    let (mut probe, skipped) = Probe::open(&options)?;
    probe.drop_capabilities()?;
    for point in skipped {
        println!("not attached: {point}");
    }
    for unseen in UNSEEN {
        println!("not seen: {unseen}");
    }
    println!("clocks: {:?}", probe.clock());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut events, mut records) = (Vec::new(), 0_u64);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
        probe.events(&mut events)?;
        let lost = probe.packets(|_| records += 1)?;
        if lost > 0 {
            println!("{lost} packet records lost");
        }
        for event in events.drain(..) {
            let device = event.device.as_deref().unwrap_or("-");
            let process = event
                .process
                .map_or_else(|| "-".to_owned(), |process| process.to_string());
            println!("{} {device} [{process}] {}", event.time.0, event.what);
        }
    }
    for flow in probe.counts()? {
        let counts = flow.counts;
        println!(
            "{} > {} QP {} interface {} {:?}: {} packets, {} B, ECN {:?}, operations {:?}, NAKs {:?}, {} RNR NAKs, {} CNPs",
            flow.source,
            flow.destination,
            flow.qpn,
            flow.interface,
            flow.direction,
            counts.packets,
            counts.wire_bytes,
            counts.ecn,
            counts.operations,
            counts.naks,
            counts.rnr_naks,
            counts.cnps
        );
    }
    println!("{records} packet records; {:?}", probe.losses()?);
    Ok(())
}
