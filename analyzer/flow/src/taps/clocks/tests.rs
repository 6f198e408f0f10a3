//! Synthetic packets of known offset, drift, delays and asymmetry; the expected bounds are worked out beside each.

use proptest::prelude::*;

use super::*;

/// A time that real captures have.
const BEGIN: u64 = 1_795_000_000_000_000_000;
const MS: u64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

/// Two taps: how the other clock stands, and how long packets take between them.
#[derive(Clone, Copy, Debug)]
struct Taps {
    ahead: i64,
    drift_ppb: i64,
    /// From the reference's tap to the other, and back, at least.
    there: u64,
    back: u64,
    /// Queues add up to so much.
    jitter: u64,
}

impl Taps {
    fn other(&self, time: u64) -> Time {
        let since = i128::from(time - BEGIN);
        let drifted = since * i128::from(self.drift_ppb) / 1_000_000_000;
        let stamp = i128::from(time) + i128::from(self.ahead) + drifted;
        Time(u64::try_from(stamp).unwrap())
    }

    /// A packet that passes the first of the taps at `time`, with `queue` of the jitter.
    fn packet(&self, time: u64, forward: bool, queue: u64) -> StampedPacket {
        let late = time + if forward { self.there } else { self.back } + queue;
        let (reference, other) = if forward { (time, late) } else { (late, time) };
        StampedPacket {
            reference: Time(reference),
            other: self.other(other),
            way: 1,
            forward,
            reference_first: None,
        }
    }

    /// One packet each way every millisecond, with queues that a fixed generator fills (Knuth's MMIX multiplier).
    fn packets(&self, milliseconds: u64) -> Vec<StampedPacket> {
        let mut state = 12_345_u64;
        let mut queue = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Every fourth packet meets no queue.
            if state >> 62 == 0 {
                0
            } else {
                (state >> 33) % (self.jitter + 1)
            }
        };
        (0..milliseconds)
            .flat_map(|ms| [(ms, true, queue()), (ms, false, queue())])
            .map(|(ms, forward, queue)| {
                self.packet(BEGIN + ms * MS + u64::from(!forward) * 500_000, forward, queue)
            })
            .collect()
    }
}

#[track_caller]
fn offset(packets: &[StampedPacket]) -> Offset {
    match compare(packets, 2) {
        Comparison::Fits(offset) => offset,
        other => panic!("{other:?}"),
    }
}

/// The estimate at a time by the other clock.
fn ahead_at(offset: &Offset, time: Time) -> f64 {
    offset.ahead_ns + offset.faster_ppb / 1e9 * (wide(i128::from(time.0) - i128::from(offset.at.0)))
}

#[test]
fn an_offset_of_seconds_without_drift() {
    let taps = Taps {
        ahead: 7 * SECOND / 2,
        drift_ppb: 0,
        there: 12_000,
        back: 8_000,
        jitter: 300_000,
    };
    let found = offset(&taps.packets(1_000));
    // Bounds: 3.5 s + 12 us and 3.5 s - 8 us; the middle is 2 us too high, half the corridor 10 us.
    assert!((found.ahead_ns - 3.500_002e9).abs() < 1_000.0, "{found:?}");
    let uncertainty = found.uncertainty_ns.unwrap();
    assert!((10_000.0..16_000.0).contains(&uncertainty), "{found:?}");
    assert!(found.faster_ppb.abs() < 3_000.0, "{found:?}");
    assert_eq!(found.packets, 2_000);
}

#[test]
fn hours_and_drift_the_other_way() {
    let taps = Taps {
        ahead: -5 * 3_600 * SECOND,
        drift_ppb: -20_000,
        there: 5_000,
        back: 5_000,
        jitter: 50_000,
    };
    let found = offset(&taps.packets(10_000));
    // 10 us of corridor over 10 s tell the drift to some 1 ppm; 10 % of it is given to less drift.
    assert!((found.faster_ppb + 20_000.0).abs() < 1_000.0, "{found:?}");
    assert!((found.ahead_ns + 5.0 * 3_600e9).abs() < 5_000.0, "{found:?}");
    // At the end it is 20 us/s * 10 s = 200 us further behind.
    let end = ahead_at(&found, taps.other(BEGIN + 9_999 * MS));
    assert!((end + 5.0 * 3_600e9 + 199_980.0).abs() < 6_000.0, "{end}");
}

#[test]
fn which_way_is_forward_does_not_matter() {
    let taps = Taps {
        ahead: 40_000_000,
        drift_ppb: 0,
        there: 3_000,
        back: 4_000,
        jitter: 9_000,
    };
    let packets = taps.packets(100);
    let turned: Vec<StampedPacket> = packets
        .iter()
        .map(|packet| StampedPacket {
            forward: !packet.forward,
            ..*packet
        })
        .collect();
    assert_eq!(compare(&packets, 2), compare(&turned, 2));
    // Two ways of opposite sense, as two hosts behind the taps have.
    let mixed: Vec<StampedPacket> = packets
        .iter()
        .copied()
        .chain(turned.iter().map(|packet| StampedPacket { way: 2, ..*packet }))
        .collect();
    let (one, both) = (offset(&packets), offset(&mixed));
    assert_eq!(
        (one.ahead_ns, one.uncertainty_ns),
        (both.ahead_ns, both.uncertainty_ns)
    );
}

#[test]
fn clocks_that_agree_are_left_alone() {
    let taps = Taps {
        ahead: 0,
        drift_ppb: 0,
        there: 90_000,
        back: 10_000,
        jitter: 500_000,
    };
    let found = offset(&taps.packets(1_000));
    assert_eq!((found.ahead_ns, found.faster_ppb), (0.0, 0.0));
    // It could be 90 us ahead, or 10 us behind, and some drift more.
    assert!(
        (90_000.0..140_000.0).contains(&found.uncertainty_ns.unwrap()),
        "{found:?}"
    );
    // Both taps have equal stamps: delays are 0.
    let same: Vec<StampedPacket> = taps
        .packets(50)
        .into_iter()
        .map(|packet| StampedPacket {
            other: packet.reference,
            ..packet
        })
        .collect();
    let found = offset(&same);
    assert_eq!((found.ahead_ns, found.uncertainty_ns), (0.0, Some(2.0)));
}

#[test]
fn one_direction_bounds_one_side() {
    let taps = |ahead| Taps {
        ahead,
        drift_ppb: 0,
        there: 12_000,
        back: 0,
        jitter: 100_000,
    };
    let data = |ahead, reference_first| -> Vec<StampedPacket> {
        let all = taps(ahead)
            .packets(200)
            .into_iter()
            .filter(|packet| packet.forward);
        all.map(|packet| StampedPacket {
            reference_first,
            ..packet
        })
        .collect()
    };
    // Nothing says which tap is first: nothing is corrected.
    let found = offset(&data(-SECOND, None));
    assert_eq!((found.ahead_ns, found.uncertainty_ns), (0.0, None));
    // The reference is first, and all arrive after they left: they may as well have taken 10 ms, but not a second.
    let found = offset(&data(9_900_000, Some(true)));
    assert_eq!((found.ahead_ns, found.uncertainty_ns), (0.0, None));
    let found = offset(&data(SECOND, Some(true)));
    assert_eq!((found.ahead_ns, found.uncertainty_ns), (1_000_012_000.0, None));
    // They arrive before they left: as much as brings them into order, that is -1 s + 12 us.
    let found = offset(&data(-SECOND, Some(true)));
    assert_eq!((found.ahead_ns, found.uncertainty_ns), (-999_988_000.0, None));
    // The other tap is first, they say: 1 s + 12 us ahead, so that the slowest that it could be is in order: 112 us.
    let found = offset(&data(SECOND, Some(false)));
    assert!((found.ahead_ns - 1.000_112e9).abs() < 2_000.0, "{found:?}");
}

#[test]
fn other_traffic_with_the_same_numbers_fits_no_clock() {
    // Equal requests and answers come a second time, four hours later. Each answer follows its request, but the
    // second run has its own pace: 1 us to 4 ms off.
    let mut packets = Vec::new();
    for n in 0..100_u64 {
        let pace = n * n % 41 * 100_000 + 1_000;
        for (forward, answer) in [(true, 0), (false, 15_000)] {
            packets.push(StampedPacket {
                reference: Time(BEGIN + n * MS + answer),
                other: Time(BEGIN + 4 * 3_600 * 1_000 * MS + n * MS + pace + answer),
                way: 1,
                forward,
                reference_first: None,
            });
        }
    }
    assert_eq!(compare(&packets, 2), Comparison::Contradicts);
}

#[test]
fn a_tap_that_all_packets_pass_first_bounds_one_side() {
    // Packets that enter a switch and leave it, both ways: 4 us to 17 us later by a clock that is 0.5 s ahead. Hop limits are counted
    // down in between. Without them, this would be two taps on a way that packets take in no time less than none.
    let packets = |shown: Option<bool>| -> Vec<StampedPacket> {
        let both = (0..100_u64).flat_map(|n| [(n, true), (n, false)]);
        both.map(|(n, forward)| StampedPacket {
            reference: Time(BEGIN + n * MS),
            other: Time(BEGIN + n * MS + 500 * MS + 4_000 + n % 2 * 13_000),
            way: 1,
            forward,
            reference_first: shown,
        })
        .collect()
    };
    let found = offset(&packets(Some(true)));
    assert_eq!(
        (found.ahead_ns, found.uncertainty_ns),
        (500_004_000.0, None),
        "the fastest took 4 us"
    );
    assert_eq!(compare(&packets(None), 2), Comparison::Contradicts);
    // All left before they arrived, at the earliest 17 us before.
    let found = offset(&packets(Some(false)));
    assert!((found.ahead_ns - 500_017_000.0).abs() < 2_000.0, "{found:?}");
}

#[test]
fn a_few_wrong_matches_do_no_harm() {
    let taps = Taps {
        ahead: SECOND,
        drift_ppb: 5_000,
        there: 20_000,
        back: 20_000,
        jitter: 200_000,
    };
    let mut packets = taps.packets(500);
    // 3 of 1,000: the first transmission at one tap, a retransmission 4 ms later at the other.
    for at in [100, 400, 700] {
        packets[at].reference.0 += 4 * MS;
    }
    let found = offset(&packets);
    assert!((found.ahead_ns - 1e9).abs() < 10_000.0, "{found:?}");
    // 40 wrong ones are more than chance.
    for packet in packets.iter_mut().step_by(25) {
        packet.reference.0 += 4 * MS;
    }
    assert_eq!(compare(&packets, 2), Comparison::Contradicts);
}

#[test]
fn few_packets_prove_nothing() {
    let taps = Taps {
        ahead: SECOND,
        drift_ppb: 0,
        there: 1_000,
        back: 1_000,
        jitter: 0,
    };
    assert_eq!(compare(&[], 2), Comparison::Unrelated);
    assert_eq!(compare(&taps.packets(3), 2), Comparison::Unrelated);
    assert!(matches!(compare(&taps.packets(4), 2), Comparison::Fits(_)));
}

#[test]
fn packets_of_different_times_each_way_leave_the_order_open() {
    // Data in the first millisecond, answers ten seconds later: 200 ppm of drift are 2 ms, and explain either order of
    // taps that are 10 us apart.
    let taps = Taps {
        ahead: SECOND,
        drift_ppb: 0,
        there: 5_000,
        back: 5_000,
        jitter: 10,
    };
    let packets: Vec<StampedPacket> = (0..20)
        .map(|n| taps.packet(BEGIN + n % 10 * 1_000 + n / 10 * 10_000 * MS, n < 10, n % 3 * 4))
        .collect();
    let found = offset(&packets);
    // Without drift only one order is possible: that is taken, and the uncertainty is the 2 ms.
    assert!((found.ahead_ns - 1e9).abs() < 10.0, "{found:?}");
    assert!(
        (1_900_000.0..2_100_000.0).contains(&found.uncertainty_ns.unwrap()),
        "{found:?}"
    );
}

proptest! {
    /// Whatever the clocks and the delays: the truth lies within the stated uncertainty at both ends, and after the
    /// correction no packet arrives before it left.
    #[test]
    fn the_truth_is_within_the_uncertainty(
        ahead in -40_000 * SECOND..40_000 * SECOND,
        drift_ppb in -150_000i64..150_000,
        there in 500u64..2_000_000,
        back in 500u64..2_000_000,
        jitter in 0u64..5_000_000,
        milliseconds in 20u64..400,
    ) {
        let taps = Taps { ahead, drift_ppb, there, back, jitter };
        let packets = taps.packets(milliseconds);
        let found = offset(&packets);
        let uncertainty = found.uncertainty_ns.unwrap();
        for time in [BEGIN, BEGIN + (milliseconds - 1) * MS] {
            let stamp = taps.other(time);
            let truth = wide(i128::from(stamp.0) - i128::from(time));
            let error = (ahead_at(&found, stamp) - truth).abs();
            prop_assert!(error <= uncertainty + 10.0, "{error} of {found:?}");
        }
        for packet in &packets {
            let corrected = wide(i128::from(packet.other.0) - i128::from(packet.reference.0)) - ahead_at(&found, packet.other);
            let delay = if packet.forward { corrected } else { -corrected };
            prop_assert!(delay >= -1_010.0, "{delay} of {packet:?}, {found:?}");
        }
    }

    /// No input makes it panic, or take long.
    #[test]
    fn anything_goes(packets in prop::collection::vec(
        (any::<u64>(), any::<u64>(), 0u64..3, any::<bool>(), any::<Option<bool>>()), 0..300,
    )) {
        let packets: Vec<StampedPacket> = packets
            .into_iter()
            .map(|(reference, other, way, forward, reference_first)| StampedPacket {
                reference: Time(reference),
                other: Time(other),
                way,
                forward,
                reference_first,
            })
            .collect();
        let _ = compare(&packets, u64::MAX / 2);
        let _ = compare(&packets, 0);
    }
}

#[test]
fn clocks_within_the_noise_of_stamps_are_as_far_off_as_their_packets_show() {
    // No time passes between the two ports of one switch, and stamps are rounded: packets that way show 64 ns, packets this
    // way 66 ns or less, so that no offset fits all of them.
    for ahead in [65, -300, 900] {
        let packets: Vec<StampedPacket> = (0..100)
            .map(|number| {
                let forward = number % 2 == 0;
                let shown = if forward { ahead + 1 } else { ahead - 1 };
                let reference = BEGIN + number * MS;
                StampedPacket {
                    reference: Time(reference),
                    other: Time(reference.checked_add_signed(shown).unwrap()),
                    way: 1,
                    forward,
                    reference_first: Some(!forward),
                }
            })
            .collect();
        let found = offset(&packets);
        let off = (wide(i128::from(ahead)) - found.ahead_ns).abs();
        assert!(off <= found.uncertainty_ns.unwrap(), "{ahead}: {found:?}");
    }
}

#[test]
fn equal_clocks_are_not_far_off() {
    let packets: Vec<StampedPacket> = (0..100)
        .map(|number| StampedPacket {
            reference: Time(BEGIN + number * MS),
            other: Time(BEGIN + number * MS + number % 2),
            way: 1,
            forward: number % 2 == 0,
            reference_first: Some(number % 2 == 1),
        })
        .collect();
    let found = offset(&packets);
    // Stamps are 1 ns apart, and two resolutions of 1 ns are added.
    assert!(found.ahead_ns.abs() < 1.0, "{found:?}");
    assert!(found.uncertainty_ns.unwrap() <= 4.0, "{found:?}");
}
