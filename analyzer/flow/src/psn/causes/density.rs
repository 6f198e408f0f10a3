//! How long something takes: densities over the logarithm of a time, learned from weighted samples.

use roce_model::Span;

/// Shorter times are as good as none: stamps of adapters are no finer.
const SHORTEST: u64 = 50;
/// Logarithm of [`SHORTEST`].
const LOWEST: f64 = 3.912_023_005_428_146;
/// Width of a bin of a histogram, as a difference of logarithms: 13 %.
const WIDTH: f64 = 0.125;
/// Bins of a histogram: up to 178 s.
const BINS: usize = 176;
/// The part of a sample that goes to the bin itself, to the ones beside it, and so on: a normal distribution two bins wide.
const KERNEL: [f64; 9] = [
    0.199_475, 0.176_036, 0.120_987, 0.064_760, 0.026_996, 0.008_764, 0.002_216, 0.000_436, 0.000_067,
];
/// Square root of 2 pi.
const ROOT_TAU: f64 = 2.506_628_274_631;

/// The natural logarithm of a time in ns.
#[expect(clippy::cast_precision_loss, reason = "15 digits are enough for a time")]
pub(super) fn ln(time: Span) -> f64 {
    (time.0.max(SHORTEST) as f64).ln()
}

/// Delays of one cause, which have one hump: a log-normal distribution, and one delay in 50 of any length. A second hump belongs to
/// another cause.
#[derive(Clone, Debug)]
pub(super) struct OneHump {
    weight: f64,
    sum: f64,
    squares: f64,
    mean: f64,
    sigma: f64,
}

impl OneHump {
    /// Before anything is known: 15 us, give or take a factor of seven. The middle of samples that agree outweighs it.
    const PRIOR: (f64, f64) = (9.615_805_480_084_347, 2.0);
    /// The spread of the answers of one host, before anything is known: a factor of two. It weighs as much as one sample.
    const SPREAD: f64 = 0.7;
    /// Hosts differ at least by a quarter from one answer to the next, and by a factor of five at the most.
    const SIGMAS: (f64, f64) = (0.25, 1.7);
    /// With fewer samples their spread says nothing.
    const FEW: f64 = 3.0;

    pub(super) fn new() -> Self {
        let (mean, sigma) = Self::PRIOR;
        Self {
            weight: 0.0,
            sum: 0.0,
            squares: 0.0,
            mean,
            sigma,
        }
    }

    /// Adds a sample with the logarithm `ln`.
    pub(super) fn add(&mut self, ln: f64, weight: f64) {
        self.weight += weight;
        self.sum += weight * ln;
        self.squares += weight * ln * ln;
    }

    /// Adapts the distribution to the samples: a normal distribution whose middle and spread both have to be found.
    pub(super) fn fit(&mut self) {
        let (prior, sigma) = Self::PRIOR;
        let middle = self.sum / self.weight.max(f64::MIN_POSITIVE);
        let of_samples = (self.squares - self.sum * middle).max(0.0);
        let spread = Self::SPREAD * Self::SPREAD;
        let variance = (of_samples + spread) / (self.weight + 1.0);
        // The less samples spread, the less the assumption moves their middle.
        let of_prior = 1.0 / (sigma * sigma - spread);
        let certainty = of_prior + self.weight / variance;
        self.mean = (of_prior * prior + self.sum / variance) / certainty;
        let (least, most) = Self::SIGMAS;
        let most = if self.weight > Self::FEW { most } else { sigma };
        self.sigma = (variance + 1.0 / certainty).sqrt().max(least).min(most);
    }

    /// The logarithm of the density at `ln`.
    pub(super) fn at(&self, ln: f64) -> f64 {
        let z = (ln - self.mean) / self.sigma;
        (0.98 * (-0.5 * z * z).exp() / self.sigma / ROOT_TAU + 0.001).ln()
    }
}

/// Times of any distribution: a smoothed histogram.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bins: Box<[f64]>,
    weight: f64,
    /// The logarithm of the density in each bin.
    logs: Box<[f64]>,
}

impl Histogram {
    /// Before anything is known: 10 ms, give or take a factor of twelve. It weighs as much as one sample.
    const PRIOR: (f64, f64) = (16.118_095_650_958_32, 2.5);

    /// No samples. What [`Self::at`] says comes from [`Self::fit`].
    pub(super) fn new() -> Self {
        Self {
            bins: vec![0.0; BINS].into_boxed_slice(),
            weight: 0.0,
            logs: vec![0.0; BINS].into_boxed_slice(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative and bounded by the number of bins"
    )]
    fn bin(ln: f64) -> usize {
        (((ln - LOWEST) / WIDTH).max(0.0) as usize).min(BINS - 1)
    }

    /// Adds a sample with the logarithm `ln`.
    pub(super) fn add(&mut self, ln: f64, weight: f64) {
        self.bins[Self::bin(ln)] += weight;
        self.weight += weight;
    }

    /// Adapts the distribution to the samples.
    pub(super) fn fit(&mut self) {
        let (mean, sigma) = Self::PRIOR;
        let mut middle = LOWEST + WIDTH / 2.0;
        for at in 0..BINS {
            let z = (middle - mean) / sigma;
            let prior = (-0.5 * z * z).exp() / sigma / ROOT_TAU + 1e-4;
            let near = self.bins[at] * KERNEL[0]
                + (1..KERNEL.len())
                    .map(|far| {
                        let before = at.checked_sub(far).map_or(0.0, |at| self.bins[at]);
                        let after = self.bins.get(at + far).copied().unwrap_or_default();
                        (before + after) * KERNEL[far]
                    })
                    .sum::<f64>();
            self.logs[at] = ((prior + near / WIDTH) / (1.0 + self.weight)).ln();
            middle += WIDTH;
        }
    }

    /// The logarithm of the density at `ln`.
    pub(super) fn at(&self, ln: f64) -> f64 {
        self.logs[Self::bin(ln)]
    }

    /// The weight of all samples.
    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    /// The logarithm of the time that three of four samples reach; `None` while there are fewer than `enough`.
    pub(super) fn least(&self, enough: f64) -> Option<f64> {
        if self.weight < enough {
            return None;
        }
        let (mut below, mut edge) = (0.0, LOWEST);
        for weight in &self.bins {
            below += weight;
            if below >= self.weight / 4.0 {
                break;
            }
            edge += WIDTH;
        }
        Some(edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of a density over all bins, each as wide as [`WIDTH`].
    fn total(at: impl Fn(f64) -> f64) -> f64 {
        let mut middle = LOWEST + WIDTH / 2.0;
        let mut sum = 0.0;
        for _ in 0..BINS {
            sum += at(middle).exp() * WIDTH;
            middle += WIDTH;
        }
        sum
    }

    #[test]
    fn densities_add_up_to_one() {
        let (mut one, mut any) = (OneHump::new(), Histogram::new());
        for time in [10_000, 12_000, 15_000, 11_000, 9_000] {
            one.add(ln(Span(time)), 1.0);
            any.add(ln(Span(time)), 1.0);
        }
        one.fit();
        any.fit();
        // 2 % of any length are 0.001 for each unit of the logarithm, over 22 of them.
        assert!((total(|ln| one.at(ln)) - 1.0).abs() < 0.02);
        assert!((total(|ln| any.at(ln)) - 1.0).abs() < 0.02);
    }

    #[test]
    fn answers_that_agree_outweigh_the_assumption() {
        let mut one = OneHump::new();
        for time in [3_540_000, 3_550_000, 3_560_000, 3_545_000] {
            one.add(ln(Span(time)), 1.0);
        }
        one.fit();
        // Four answers after 3.55 ms: the next one comes then, and not after 15 us or 60 ms.
        assert!(one.at(ln(Span(3_550_000))) > 0.0);
        assert!(one.at(ln(Span(15_000))) < -4.0 && one.at(ln(Span(60_000_000))) < -4.0);
    }

    #[test]
    fn a_second_hump_is_no_delay_of_the_first() {
        let mut one = OneHump::new();
        for time in [10_000, 12_000, 15_000, 11_000, 9_000] {
            one.add(ln(Span(time)), 1.0);
        }
        one.fit();
        assert!(one.at(ln(Span(60_000_000))) < one.at(ln(Span(13_000))) - 5.0);
    }

    #[test]
    fn the_least_time_needs_enough_samples() {
        let mut any = Histogram::new();
        for _ in 0..4 {
            assert_eq!(any.least(4.0), None);
            any.add(ln(Span(67_000_000)), 1.0);
        }
        let least = any.least(4.0).unwrap();
        assert!((least - ln(Span(67_000_000))).abs() <= WIDTH);
    }
}
