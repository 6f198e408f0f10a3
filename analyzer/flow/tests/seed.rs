//! Where packets of one millisecond are too many to be remembered, chance decides which copies are found: the seed's alone.

use roce_flow::{Analysis, Options};
use roce_model::{Packet, PacketBatch, Span, Time};
use roce_wire::{Bth, Roce};

/// As many packets as are remembered, and then each once more by another way, all within 1 ms.
fn copies(options: Options) -> u64 {
    let packets = (0..2_u16).flat_map(|path| {
        (0..16_384_u32).map(move |number| {
            let [_, high, middle, low] = number.to_be_bytes();
            Packet {
                time: Time(1_000 * Span::SECOND.0 + 20 * u64::from(number)),
                path,
                roce: Roce {
                    bth: Bth([0x0a, 0, 0, 0, 0, 0, 0, 0x11, 0, high, middle, low]),
                    ..Roce::default()
                },
                ..Packet::default()
            }
        })
    });
    let mut analysis = Analysis::new(options);
    analysis.push(&PacketBatch {
        packets: packets.collect::<Vec<_>>().into(),
        ..PacketBatch::default()
    });
    analysis.finish().1.copies.iter().sum()
}

fn seeded(seed: u64) -> Options {
    Options {
        seed,
        ..Options::default()
    }
}

#[test]
fn one_seed_finds_the_same_copies() {
    assert_eq!(copies(seeded(1)), copies(seeded(1)));
    assert_ne!(copies(seeded(1)), copies(seeded(2)));
}

#[test]
fn a_capture_gives_the_same_results_again() {
    assert_eq!(copies(Options::default()), copies(Options::default()));
}
