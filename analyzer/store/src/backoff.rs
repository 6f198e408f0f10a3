//! Waits between attempts: each is about twice the one before, up to a limit, and random by half, so that many hosts that
//! lost the same store do not come back at the same moment.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Waits between the attempts of one thing.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    first: Duration,
    most: Duration,
}

impl Backoff {
    /// Waits from about `first` up to about `most`.
    pub fn new(first: Duration, most: Duration) -> Self {
        Self {
            next: first,
            first,
            most,
        }
    }

    /// The next wait: between half of its step and the whole step.
    pub fn wait(&mut self) -> Duration {
        // The standard library's hashes are seeded at random.
        self.wait_by(u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(u32::MAX))
    }

    /// The next wait by a random number.
    pub fn wait_by(&mut self, random: u32) -> Duration {
        let step = self.next.min(self.most);
        self.next = step.saturating_mul(2).min(self.most);
        let share = f64::from(random) / f64::from(u32::MAX);
        step.div_f64(2.0) + step.mul_f64(share / 2.0)
    }

    /// An attempt has succeeded: the next wait is a short one.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_are_random_by_half() {
        let (first, most) = (Duration::from_secs(1), Duration::from_secs(5));
        let mut seen = Vec::new();
        for _ in 0..20 {
            let mut backoff = Backoff::new(first, most);
            // Steps of 1, 2, 4, 5 and 5 s.
            for step in [1, 2, 4, 5, 5] {
                let wait = backoff.wait();
                let step = Duration::from_secs(step);
                assert!(wait >= step / 2 && wait <= step, "{wait:?} of {step:?}");
                seen.push(wait);
            }
            backoff.reset();
            assert!(backoff.wait() <= first);
        }
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 20, "waits are hardly random: {}", seen.len());
    }
}
