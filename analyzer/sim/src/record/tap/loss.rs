//! Losses of records: the frames that pass a tap and are not recorded.

use rand::distr::{Bernoulli, Distribution};
use roce_model::{Span, Time};

use roce_model::random::Random;

/// Kinds of a tap's losses of records.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Loss {
    /// It loses none.
    #[default]
    None,
    /// Each with this probability, whatever happens to the others; below 0 and NaN mean 0, above 1 means 1.
    Random {
        /// The probability.
        probability: f64,
    },
    /// The last `lose` of each `every` frames; none when `every` is 0.
    Bursts {
        /// The length of a round, in frames.
        every: u64,
        /// Number of the lost ones among them.
        lose: u64,
    },
    /// Those that find no room in a buffer that is emptied at a steady rate. Only the bytes that are kept of a frame
    /// count.
    Ring {
        /// The size of the buffer in bytes.
        bytes: u64,
        /// Rate at which it is emptied, in bytes per second.
        rate: u64,
    },
    /// All that pass from one moment of the simulation on and before another.
    Between {
        /// The first moment.
        from: Time,
        /// The moment after the last.
        to: Time,
    },
}

/// Bytes times this is the unit in which a ring is filled, so that a rate times a time in ns is exact.
const SECOND: u128 = Span::SECOND.0 as u128;

/// State of a tap's losses.
#[derive(Clone, Debug)]
pub(super) struct LossState {
    loss: Loss,
    chance: Option<Bernoulli>,
    random: Random,
    /// Frames that have passed.
    frames: u64,
    /// Bytes in the ring, in units of 10^-9 bytes.
    level: u128,
    last: Time,
}

impl LossState {
    pub(super) fn new(loss: Loss, random: Random) -> Self {
        let chance = match loss {
            // NaN stays NaN, and is no probability.
            Loss::Random { probability } => Bernoulli::new(probability.clamp(0.0, 1.0)).ok(),
            _ => None,
        };
        Self {
            loss,
            chance,
            random,
            frames: 0,
            level: 0,
            last: Time(0),
        }
    }

    /// True if the next frame is lost: it passes at `time` and `bytes` of it would be kept.
    pub(super) fn next(&mut self, time: Time, bytes: u64) -> bool {
        let index = self.frames;
        self.frames += 1;
        match self.loss {
            Loss::None => false,
            Loss::Random { .. } => self.chance.is_some_and(|chance| chance.sample(&mut self.random)),
            Loss::Bursts { every, lose } => every > 0 && index % every >= every.saturating_sub(lose),
            Loss::Ring { bytes: size, rate } => {
                let emptied = u128::from(time.since(self.last).0) * u128::from(rate);
                self.last = self.last.max(time);
                self.level = self.level.saturating_sub(emptied);
                let filled = self.level + u128::from(bytes) * SECOND;
                let lost = filled > u128::from(size) * SECOND;
                if !lost {
                    self.level = filled;
                }
                lost
            }
            Loss::Between { from, to } => (from..to).contains(&time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::random::stream;

    fn losing(loss: Loss) -> LossState {
        LossState::new(loss, stream(7, "loss"))
    }

    #[test]
    fn bursts_take_the_end_of_each_round() {
        let mut bursts = losing(Loss::Bursts { every: 5, lose: 2 });
        let lost: Vec<bool> = (0..10).map(|_| bursts.next(Time(0), 1)).collect();
        let round = [false, false, false, true, true];
        assert_eq!(lost, [round, round].concat());
        let mut never = losing(Loss::Bursts { every: 0, lose: 2 });
        assert!(!never.next(Time(0), 1));
        let mut always = losing(Loss::Bursts { every: 2, lose: 9 });
        assert!(always.next(Time(0), 1) && always.next(Time(0), 1));
    }

    #[test]
    fn a_ring_loses_what_finds_no_room() {
        // 300 bytes of room, emptied by 1 byte a ns. Three frames of 100 bytes at once fit, a fourth does not; 50 ns later
        // there is room for half a frame, 100 ns later for one, and no more.
        let mut ring = losing(Loss::Ring {
            bytes: 300,
            rate: 1_000_000_000,
        });
        let lost = [0, 0, 0, 0, 50, 100, 100].map(|time| ring.next(Time(time), 100));
        assert_eq!(lost, [false, false, false, true, true, false, true]);
        // After 1 us it is empty.
        let lost = [1_100; 4].map(|time| ring.next(Time(time), 100));
        assert_eq!(lost, [false, false, false, true]);
    }

    #[test]
    fn chances_are_what_they_say() {
        let mut some = losing(Loss::Random { probability: 0.1 });
        let lost = (0..100_000).filter(|_| some.next(Time(0), 1)).count();
        // Mean 10,000, standard deviation sqrt(100,000 * 0.1 * 0.9) = 95: five of them.
        assert!((9_525..=10_475).contains(&lost), "{lost}");
        for (probability, all) in [
            (0.0, false),
            (-3.0, false),
            (f64::NAN, false),
            (1.0, true),
            (7.0, true),
        ] {
            let mut losing = losing(Loss::Random { probability });
            assert!((0..100).all(|_| losing.next(Time(0), 1) == all), "{probability}");
        }
    }

    #[test]
    fn intervals_are_half_open() {
        let mut between = losing(Loss::Between {
            from: Time(10),
            to: Time(20),
        });
        let lost = [9, 10, 19, 20].map(|time| between.next(Time(time), 1));
        assert_eq!(lost, [false, true, true, false]);
    }
}
