//! Draws of a scenario, all from one stream.

use rand::Rng as _;
use roce_sim::random::{self, Random};

/// Draws from the stream of a family and a seed.
pub(crate) struct Draw(Random);

impl Draw {
    /// The stream `name` of a seed.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Self(random::stream(seed, name))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The bias is below bound / 2^64.
        u64::try_from((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64).unwrap_or_default()
    }

    /// A number from `least` to `most`, both among them.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// A number from `least` to `most`, whose logarithm is spread evenly: as many below the geometric mean as above it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the numbers of a scenario stay below 2^53"
    )]
    pub(crate) fn scaled(&mut self, least: u64, most: u64) -> u64 {
        let (low, high) = (least.max(1) as f64, most.max(1) as f64);
        let part = self.below(1 << 20) as f64 / f64::from((1 << 20) - 1);
        ((low * (high / low).powf(part)).round() as u64).clamp(least, most)
    }

    /// True with a probability of 1 / `times`.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the choices.
    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        let place = self.below(choices.len() as u64);
        choices[usize::try_from(place).unwrap_or_default()]
    }

    /// A share from `least` to `most`, in millionths, as TOML has it.
    pub(crate) fn share(&mut self, least: u64, most: u64) -> String {
        let millionths = self.scaled(least, most);
        format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_draws_lie_within_their_bounds_and_around_the_geometric_mean() {
        let mut draw = Draw::new(3, "test");
        let all: Vec<u64> = (0..4_000).map(|_| draw.scaled(10, 100_000)).collect();
        assert!(all.iter().all(|value| (10..=100_000).contains(value)));
        // The geometric mean of 10 and 100,000 is 1,000; half of 4,000 draws lie below, +- 5 standard deviations of
        // sqrt(4000 / 4) = 32.
        let below = all.iter().filter(|value| **value < 1_000).count();
        assert!((1_840..=2_160).contains(&below), "{below}");
    }

    #[test]
    fn shares_are_decimals() {
        let mut draw = Draw::new(3, "test");
        assert_eq!(draw.share(50_000, 50_000), "0.050000");
        assert_eq!(draw.share(1_000_000, 1_000_000), "1.000000");
    }
}
