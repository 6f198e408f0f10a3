//! Speed of a sender's port, as one flow's packets show it. A flow that is not limited puts its packets
//! on the wire back to back: over some packets its rate is then one of the few speeds of ports. A
//! limited flow has other, varying rates. Other flows on the port are not considered here.

use roce_model::Time;
use roce_model::cast::float;
use roce_model::ethernet::{PORT_GIGABITS, bits_per_second};

use crate::congestion::progress::Progress;

/// A rate is a port's when it differs from its speed by no more than this share. 8 frames of 1,100 bytes
/// at 400 Gbit/s take 180 ns, and nanosecond stamps are uncertain by two. Frames without the overhead
/// would differ by as much.
const NEAR: f64 = 0.0125;
/// Number of steps at the highest rate that show the speed of the port.
const STEPS: u32 = 16;
/// One of this number of all steps has to be at the highest rate: a limited flow passes a rate on its way to
/// others.
const SHARE: u32 = 8;
/// Steps without a result, after which it is examined less often.
const PATIENCE: u32 = 4_096;
/// A flow whose first steps are all below half of the slowest port, in bit/s, is examined less often until one is not.
const SLOW: f64 = 5e9;
const FIRST_STEPS: u32 = 32;

/// Evidence of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineEvidence {
    last: Progress,
    /// The highest rate of a step, in bit/s, and how many steps had it.
    fastest: f64,
    near: u32,
    steps: u32,
    speed: Option<u64>,
}

impl LineEvidence {
    /// Packets of a step while it is learned.
    pub(super) const PACKETS: u8 = 8;

    pub(super) fn new(now: Progress) -> Self {
        Self {
            last: now,
            fastest: 0.0,
            near: 0,
            steps: 0,
            speed: None,
        }
    }

    /// The speed that shows, in bit/s.
    pub(super) fn speed(&self) -> Option<u64> {
        self.speed
    }

    pub(super) fn is_learning(&self) -> bool {
        let is_slow = self.steps >= FIRST_STEPS && self.fastest < SLOW;
        self.speed.is_none() && self.steps < PATIENCE && !is_slow
    }

    /// Adds a step of the flow; true if another speed shows now, or none any more.
    pub(super) fn step(&mut self, now: Progress) -> bool {
        let packets = now.packets.saturating_sub(self.last.packets);
        let bits = float(now.on_wire_since(&self.last)) * 8.0;
        let time = now.time.since(self.last.time);
        self.last = now;
        if packets < u64::from(Self::PACKETS) || now.time == Time(0) {
            return false;
        }
        // Stamps that are the same show no rate, and none that is lower than any.
        let rate = bits / time.seconds().max(1e-9);
        self.steps = self.steps.saturating_add(1);
        if rate > self.fastest * (1.0 + NEAR) {
            (self.fastest, self.near) = (rate, 1);
        } else if rate >= self.fastest * (1.0 - NEAR) {
            self.fastest = self.fastest.max(rate);
            self.near = self.near.saturating_add(1);
        }
        let matches = |speed: u64| (self.fastest / float(speed) - 1.0).abs() <= NEAR;
        let before = self.speed;
        if before.is_some_and(|speed| !matches(speed)) {
            self.speed = None;
        }
        if self.speed.is_none() && self.near >= STEPS && self.near.saturating_mul(SHARE) >= self.steps {
            let mut speeds = PORT_GIGABITS.into_iter().map(bits_per_second);
            self.speed = speeds.find(|speed| matches(*speed));
        }
        self.speed != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: f64 = 1e9;

    /// Result after steps of 8 frames of 4,154 bytes at these rates, in Gbit/s, each with its number.
    fn shown(rates: &[(f64, u32)]) -> Option<u64> {
        let mut now = Progress {
            time: Time(1_000_000_000),
            ..Progress::default()
        };
        let mut line = LineEvidence::new(now);
        for (rate, count) in rates {
            for _ in 0..*count {
                // 8 * 4,178 bytes are 267,392 bits.
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "nanoseconds of a step"
                )]
                let time = (267_392.0 / (rate * GIGABIT) * 1e9).round() as u64;
                now.time.0 += time;
                now.packets += 8;
                now.wire_bytes += 8 * 4_154;
                line.step(now);
            }
        }
        line.speed()
    }

    #[test]
    fn packets_back_to_back_show_the_port() {
        assert_eq!(shown(&[(100.0, 16)]), Some(100_000_000_000));
        assert_eq!(shown(&[(100.0, 15)]), None, "too few");
        // Bursts with rests between: one step in eight is a whole one.
        let bursts: Vec<(f64, u32)> = (0..16).flat_map(|_| [(25.0, 1), (11.0, 7)]).collect();
        assert_eq!(shown(&bursts), Some(25_000_000_000));
        let few: Vec<(f64, u32)> = (0..16).flat_map(|_| [(25.0, 1), (11.0, 8)]).collect();
        assert_eq!(shown(&few), None);
    }

    #[test]
    fn a_limited_flow_shows_nothing() {
        // 37 Gbit/s is no port's speed, and 24.5 is too far from one.
        assert_eq!(shown(&[(37.0, 1_000)]), None);
        assert_eq!(shown(&[(24.5, 1_000)]), None);
        // From a half of 200 to more: the first looked like a port's.
        assert_eq!(shown(&[(100.0, 40)]), Some(100_000_000_000));
        assert_eq!(shown(&[(100.0, 40), (150.0, 1)]), None);
        assert_eq!(
            shown(&[(100.0, 40), (150.0, 20), (200.0, 40)]),
            Some(200_000_000_000)
        );
    }

    #[test]
    fn stamps_in_batches_show_nothing() {
        // 800 G are passed by whatever has one stamp.
        assert_eq!(shown(&[(25.0, 100), (1e9, 1), (25.0, 100)]), None);
    }
}
