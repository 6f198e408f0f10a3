//! A switch: it chooses the port of a packet, drops it when the buffer is full, marks it when the queue
//! is long, and pauses senders.
//!
//! The buffer is shared; each egress queue counts by priority what waits for it, each ingress port what came in by it.

mod steps;

use crate::engine::rng::Stream;
use crate::record::frame::Frame;
use crate::scenario::Switch;
use crate::units::Picos;

/// State of a switch.
#[derive(Debug)]
pub(crate) struct SwitchState {
    /// Bytes in its buffer.
    pub used: u64,
    marking: Stream,
    /// Salt of the hash that chooses among equal paths.
    salt: u64,
}

impl SwitchState {
    pub(crate) fn new(seed: u64, index: usize) -> Self {
        Self {
            used: 0,
            marking: Stream::new(seed, "marking", index),
            salt: Stream::new(seed, "ecmp", index).bits(),
        }
    }
}

/// The probability that a packet is marked that finds `queued` bytes in its queue: RED on the instantaneous length, as
/// the DCQCN paper has it (SIGCOMM 2015, section 3.1).
#[expect(
    clippy::cast_precision_loss,
    reason = "queues are far shorter than 2^53 bytes"
)]
pub(crate) fn marking_probability(switch: &Switch, queued: u64) -> f64 {
    let (kmin, kmax) = (switch.kmin.0, switch.kmax.0);
    if queued <= kmin {
        0.0
    } else if queued >= kmax {
        1.0
    } else {
        switch.pmax * (queued - kmin) as f64 / (kmax - kmin) as f64
    }
}

/// Hash of the fields that ECMP uses: addresses, protocol and ports (FNV-1a, then mixed as in
/// splitmix64).
fn ecmp_hash(frame: &Frame, salt: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ salt;
    if let Some((network, port)) = frame.network() {
        let ends = [network.source, network.destination];
        for byte in ends
            .iter()
            .flat_map(roce_wire::Address::octets)
            .chain(&port.to_be_bytes())
        {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash ^= hash >> 30;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 31
}

/// Duration of `quanta` of 512 bit times (IEEE 802.3 annex 31B.2).
pub(crate) fn pause_time(rate: crate::units::Rate, quanta: u64) -> Picos {
    rate.time_of(quanta * 64)
}

/// Limit of a queue: `alpha` times the free buffer.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "buffers are far smaller than 2^53 bytes, and the cast saturates"
)]
fn share(alpha: f64, free: u64) -> u64 {
    (free as f64 * alpha) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Rate, Size};

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    fn a_queue_marks_as_often_as_red_says() {
        let switch = Switch {
            kmin: Size(5_000),
            kmax: Size(200_000),
            pmax: 0.01,
            ..Switch::default()
        };
        assert!(marking_probability(&switch, 5_000).abs() < 1e-12);
        assert!((marking_probability(&switch, 200_000) - 1.0).abs() < 1e-12);
        // In the middle: Pmax / 2.
        let p = marking_probability(&switch, 102_500);
        assert!((p - 0.005).abs() < 1e-12, "{p}");
        // 200,000 packets at that length: mean 1,000, standard deviation sqrt(n p (1 - p)) = 31.5; five of them.
        let mut stream = Stream::new(3, "marking", 0);
        let marked = (0..200_000).filter(|_| stream.happens(p)).count() as f64;
        assert!((marked - 1_000.0).abs() < 5.0 * 31.6, "{marked}");
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        // 5.12 ns at 100 Gb/s, 12.8 at 40, 51.2 at 10.
        for (rate, picoseconds) in [(100, 5_120), (40, 12_800), (10, 51_200)] {
            assert_eq!(pause_time(Rate(rate * 1_000_000_000), 1), Picos(picoseconds));
        }
    }

    #[test]
    fn dynamic_thresholds_are_shares_of_what_is_free() {
        assert_eq!(share(0.5, 1_000), 500);
        assert_eq!(share(2.0, 1_000), 2_000);
    }
}
