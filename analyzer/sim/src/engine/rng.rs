//! Random numbers of the simulation, from a stream of [`random`](roce_model::random).

use rand::Rng as _;

use roce_model::random::{self, Random};

/// A stream of random numbers: each component has one of its own, so that a change of one (one more link, a tap that
/// loses records) does not shift the draws of the others.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Random);

impl Stream {
    /// The stream of the component `name`, number `index`, of the run with `seed`.
    pub(crate) fn new(seed: u64, name: &str, index: usize) -> Self {
        Self(random::stream(seed, &format!("{name} {index}")))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in 0 .. 1, of 53 random bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True if an event of this probability happens. Draws nothing for 0 or less.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// A number below `bound` (0 when that is 0). The bias is below `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An exponentially distributed number of mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_each_part_of_their_name() {
        let first = |seed, name, index| Stream::new(seed, name, index).bits();
        let base = first(1, "link", 0);
        assert_eq!(base, first(1, "link", 0));
        for other in [first(2, "link", 0), first(1, "tap", 0), first(1, "link", 1)] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn draws_have_their_mean() {
        // 100,000 draws: the mean of a uniform one is 0.5 +- 5 sigma (0.2887 / sqrt(1e5) * 5 = 0.0046), of an
        // exponential one 1 +- 0.016.
        let mut stream = Stream::new(7, "test", 0);
        let n = 100_000;
        let uniform: f64 = (0..n).map(|_| stream.unit()).sum::<f64>() / f64::from(n);
        let exponential: f64 = (0..n).map(|_| stream.exponential()).sum::<f64>() / f64::from(n);
        assert!((uniform - 0.5).abs() < 0.0046, "{uniform}");
        assert!((exponential - 1.0).abs() < 0.016, "{exponential}");
        assert!((0..1000).all(|_| stream.below(3) < 3));
        assert_eq!(stream.below(0), 0);
        assert!(!stream.happens(0.0));
    }
}
