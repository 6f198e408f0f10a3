//! Where packets of one millisecond are too many to be remembered, chance decides which copies are found: the seed's alone.

use roce_flow::{Analysis, Options};
use roce_model::{Nanos, Packet, PacketBatch};
use roce_wire::{Bth, Roce};

/// As many packets as are remembered, and then each once more by another way, all within 1 ms.
fn copies(seed: u64) -> u64 {
    let packets = (0..2_u16).flat_map(|path| {
        (0..16_384_u32).map(move |number| {
            let [_, high, middle, low] = number.to_be_bytes();
            Packet {
                time: Nanos(1_000 * Nanos::SECOND + 20 * u64::from(number)),
                path,
                roce: Roce {
                    bth: Bth([0x0a, 0, 0, 0, 0, 0, 0, 0x11, 0, high, middle, low]),
                    ..Roce::default()
                },
                ..Packet::default()
            }
        })
    });
    let mut analysis = Analysis::new(Options {
        seed: Some(seed),
        ..Options::default()
    });
    analysis.push(&PacketBatch {
        packets: packets.collect::<Vec<_>>().into(),
        ..PacketBatch::default()
    });
    analysis.finish().1.copies.iter().sum()
}

#[test]
fn one_seed_finds_the_same_copies() {
    assert_eq!(copies(1), copies(1));
    assert_ne!(copies(1), copies(2));
}
