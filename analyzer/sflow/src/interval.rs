//! Estimates and the intervals in which the truth lies 19 times of 20.
//!
//! - Shares: the score interval of Wilson.
//! - Totals: the estimate and 196 sqrt(1/c) per cent of it, c samples, which is sFlow.org's rule (Phaal and Panchen, "Packet Sampling
//!   Basics", <https://sflow.org/packetSamplingBasics/>). Where the agent counts its packets, N, the same paper's full form is taken: c of n
//!   samples stand for c N/n packets, with a variance of N^2 (c/n) (1 - c/n) / n. For samples of several rates, and for bytes, the general form is taken: the
//!   variance of a sum of samples is that of Horvitz and Thompson, nearly the sum of the squares of what each sample stands for.
//! - Samples of several rates count for a share as so many equal ones: (sum of weights)^2 / sum of squares (Kish, "Survey Sampling", 1965).

use roce_model::cast::float;
use roce_model::interval::{self, Z};

/// A value and its bounds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Estimate {
    /// The value that is most likely.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Sums of weights: a sample of a source that takes 1 in N stands for N packets.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct WeightSum {
    /// Samples.
    pub(crate) samples: u64,
    /// Sum of what they stand for.
    pub(crate) sum: f64,
    /// Sum of the squares.
    pub(crate) squares: f64,
}

impl WeightSum {
    /// Adds a sample that stands for `weight`.
    pub(crate) fn add(&mut self, weight: f64) {
        self.samples += 1;
        self.sum += weight;
        self.squares += weight * weight;
    }

    /// Adds other samples, each of which stands for `factor` times its own.
    pub(crate) fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.samples += other.samples;
        self.sum += other.sum * factor;
        self.squares += other.squares * factor * factor;
    }

    /// Equal samples that say as much as these.
    pub(crate) fn equal_samples(&self) -> f64 {
        if self.squares > 0.0 {
            self.sum * self.sum / self.squares
        } else {
            0.0
        }
    }

    /// The sum with its bounds.
    pub(crate) fn total(&self) -> Estimate {
        bounded(self.sum, self.squares)
    }
}

/// A total with its bounds, by its variance.
pub(crate) fn bounded(total: f64, variance: f64) -> Estimate {
    let error = Z * variance.sqrt();
    Estimate {
        value: total,
        low: (total - error).max(0.0),
        high: total + error,
    }
}

/// The packets that `samples` samples of 1 in `rate` stand for.
pub fn total(samples: u64, rate: u32) -> Estimate {
    let weight = f64::from(rate);
    let sum = WeightSum {
        samples,
        sum: float(samples) * weight,
        squares: float(samples) * weight * weight,
    };
    sum.total()
}

/// The share of a class in all packets, by `part` of `whole` samples; `None` without samples.
pub fn share(part: u64, whole: u64) -> Option<Estimate> {
    (whole > 0).then(|| wilson(float(part) / float(whole), float(whole)))
}

/// Wilson's interval of a share that was found in `samples` samples.
pub(crate) fn wilson(share: f64, samples: f64) -> Estimate {
    let share = share.clamp(0.0, 1.0);
    let [low, high] = interval::wilson(share, samples);
    Estimate {
        value: share,
        low,
        high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 5e-5
    }

    #[test]
    fn shares_are_those_of_newcombe() {
        // R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998), table I, method 3.
        for (part, whole, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = share(part, whole).unwrap();
            assert!(is_near(found.low, low), "{part} of {whole}: {found:?}");
            assert!(is_near(found.high, high), "{part} of {whole}: {found:?}");
        }
        assert_eq!(share(0, 0), None);
        assert_eq!(share(7, 7).unwrap().high.to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn totals_are_those_of_sflow_org() {
        // Packet Sampling Basics: 196 sqrt(1/c) per cent. c = 10,000 samples of 1 in 400: 4,000,000 packets, 1.96 % of them: 78,400.
        let found = total(10_000, 400);
        assert!((found.value - 4_000_000.0).abs() < 1e-6);
        assert!((found.high - 4_078_400.0).abs() < 10.0, "{found:?}");
        assert!((found.low - 3_921_600.0).abs() < 10.0, "{found:?}");
        // One sample says no lower bound.
        assert_eq!(total(1, 400).low.to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn samples_of_several_rates_say_less() {
        let mut sum = WeightSum::default();
        for weight in [1.0, 1.0, 1.0, 1.0, 4.0] {
            sum.add(weight);
        }
        // (4 + 4)^2 / (4 + 16) = 3.2
        assert!(is_near(sum.equal_samples(), 3.2));
    }
}
