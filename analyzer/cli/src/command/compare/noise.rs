//! Errors of means over time, and the differences that exceed them.
//!
//! Consecutive slices of time are alike, so they are resampled in blocks: the stationary bootstrap
//! (Politis and Romano, "The stationary bootstrap", 1994). The mean block length follows from the
//! series' own autocorrelation (Politis and White, "Automatic block-length selection for the dependent
//! bootstrap", 2004, as corrected by Patton, Politis and White, 2009). Intervals are those of Student's
//! t. Its degrees of freedom are those of a spectral estimate with the bootstrap's weights, which fall
//! by e in a block of length b: 2 n / b of n slices (Priestley, "Spectral analysis and time series",
//! 1981, 6.2.4), and Welch's for two runs.

use rand::Rng as _;
use roce_model::random::{self, Random};

/// Slices that are needed to tell anything.
const MIN_SLICES: usize = 16;
/// Blocks that are needed.
const MIN_BLOCKS: f64 = 5.0;
/// Number of long blocks that a series is drawn in, to find slow changes.
const LONG: f64 = 5.0;
/// Number of draws of a series: the error itself is then known to 4 % (1 / sqrt(2 * 400)).
const DRAWS: u32 = 400;

/// A ratio of two sums over slices of time, such as marked packets over packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// Its standard error, and the number of independent blocks behind it; `None` when they are too few.
    pub(super) noise: Option<Noise>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    pub(super) error: f64,
    blocks: f64,
}

/// Sum over sum of `(part, whole)` of each slice; `None` when there is no whole.
pub(super) fn estimate(series: &[(f64, f64)], name: &str) -> Option<Estimate> {
    let value = ratio(series.iter().copied())?;
    let slices = float(series.len());
    let mean_whole = series.iter().map(|(_, whole)| whole).sum::<f64>() / slices;
    let off: Vec<f64> = series
        .iter()
        .map(|(part, whole)| (part - value * whole) / mean_whole)
        .collect();
    let length = block_length(&off);
    if series.len() < MIN_SLICES || slices / length < MIN_BLOCKS {
        return Some(Estimate { value, noise: None });
    }
    // Slow and small changes, such as in how flows share a link, are hidden from the autocorrelation by
    // fast ones, and not from long blocks.
    let lengths = [length, (slices / LONG).max(length)];
    let noises = lengths.map(|length| noise(series, length, name));
    let larger = |one: Noise, other: Noise| if other.error > one.error { other } else { one };
    let [by_length, by_slow] = noises;
    Some(Estimate {
        value,
        noise: Option::zip(by_length, by_slow).map(|(one, other)| larger(one, other)),
    })
}

/// Error of the ratio when blocks of this mean length are drawn.
fn noise(series: &[(f64, f64)], length: f64, name: &str) -> Option<Noise> {
    let mut random = random::stream(0, name);
    let blocks = float(series.len()) / length;
    let mut drawn = Vec::with_capacity(DRAWS as usize);
    for _ in 0..DRAWS {
        // A series without any whole says nothing; with so few of them neither does the error.
        if let Some(value) = ratio(resampled(series, length, &mut random)) {
            drawn.push(value);
        }
    }
    (drawn.len() * 10 >= DRAWS as usize * 9).then(|| Noise {
        error: deviation(&drawn) * (blocks / (blocks - 1.0)).sqrt(),
        blocks,
    })
}

/// As many slices as there are, in blocks of this mean length from random places; a block past the end
/// continues at the start.
fn resampled<'a>(
    series: &'a [(f64, f64)],
    length: f64,
    random: &'a mut Random,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let mut at = None;
    (0..series.len()).filter_map(move |_| {
        let next = match at {
            Some(at) if unit(random) >= 1.0 / length => (at + 1) % series.len(),
            _ => below(random, series.len()),
        };
        at = Some(next);
        series.get(next).copied()
    })
}

fn ratio(series: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (part, whole) = series.fold((0.0, 0.0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    (whole > 0.0).then(|| part / whole)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / float(values.len());
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (float(values.len()) - 1.0).max(1.0)).sqrt()
}

/// The mean block length for the stationary bootstrap of a series of mean 0: at least 1.
fn block_length(series: &[f64]) -> f64 {
    let slices = float(series.len());
    let covariance = |lag: usize| {
        let products = series.iter().zip(series.iter().skip(lag)).map(|(a, b)| a * b);
        products.sum::<f64>() / slices
    };
    let variance = covariance(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let most = whole((3.0 * slices.sqrt()).min(slices / 3.0)).max(1);
    // From which lag on nothing is correlated any more: the first one behind which `quiet` lags in a row are within what chance gives.
    let quiet = whole(slices.log10().sqrt()).max(5);
    let bound = 2.0 * (slices.log10() / slices).sqrt();
    let correlated = |lag: usize| (covariance(lag) / variance).abs() >= bound;
    let lag = (0..most)
        .find(|lag| !(lag + 1..=lag + quiet).any(correlated))
        .unwrap_or(most);
    let window = (2 * lag).clamp(1, most);
    let (mut spectrum, mut slope) = (variance, 0.0);
    for lag in 1..=window {
        let place = float(lag) / float(window);
        let weight = if place <= 0.5 { 1.0 } else { 2.0 * (1.0 - place) };
        let both = 2.0 * weight * covariance(lag);
        spectrum += both;
        slope += float(lag) * both;
    }
    if spectrum <= 0.0 {
        return 1.0;
    }
    ((slope / spectrum).powi(2) * slices)
        .cbrt()
        .clamp(1.0, float(most))
}

/// Estimated difference of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    /// The interval around it, with the requested error probability.
    pub(super) interval: (f64, f64),
    /// A difference of this size is seen in four of five such pairs.
    pub(super) visible: f64,
}

/// B less A, with an interval that errs with probability `error`; `None` when one of both has too few blocks. Neither is negative.
///
/// Where both are something, their logarithms are compared: what counts is how many times as much it is, and what varies much varies by factors.
pub(super) fn difference(a: &Estimate, b: &Estimate, error: f64) -> Option<Difference> {
    let (of_a, of_b) = (a.noise?, b.noise?);
    let factors = a.value > 0.0 && b.value > 0.0;
    let (of_value_a, of_value_b) = if factors { (a.value, b.value) } else { (1.0, 1.0) };
    let (square_a, square_b) = (
        (of_a.error / of_value_a).powi(2),
        (of_b.error / of_value_b).powi(2),
    );
    let both = square_a + square_b;
    let standard = both.sqrt();
    let spread = square_a.powi(2) / (2.0 * of_a.blocks) + square_b.powi(2) / (2.0 * of_b.blocks);
    let freedom = if spread > 0.0 { both.powi(2) / spread } else { 1e6 };
    let reach = standard * student(freedom, error);
    // 0.8416: the point that a normal deviate stays under in four of five cases.
    let far = reach + 0.8416 * standard;
    Some(if factors {
        let found = (b.value / a.value).ln();
        Difference {
            interval: (
                a.value * (found - reach).exp_m1(),
                a.value * (found + reach).exp_m1(),
            ),
            visible: a.value * far.exp_m1(),
        }
    } else {
        let found = b.value - a.value;
        Difference {
            // No quantity is less than nothing.
            interval: ((found - reach).max(-a.value), found + reach),
            visible: far,
        }
    })
}

/// The t that a variable of Student's distribution exceeds, in either direction, with probability `error`: by bisection of its distribution
/// function, which for whole degrees of freedom is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4). Fractions are cut off, which widens.
fn student(freedom: f64, error: f64) -> f64 {
    // Beyond this many it is the normal distribution to four digits.
    let freedom = whole(freedom.clamp(1.0, 10_000.0)).max(1);
    let within = |t: f64| {
        let root = float(freedom).sqrt();
        let angle = (t / root).atan();
        let (sine, cosine) = angle.sin_cos();
        let odd = freedom % 2 == 1;
        let (mut term, mut from) = if odd { (cosine, 3) } else { (1.0, 2) };
        let mut sum = if freedom == 1 { 0.0 } else { term };
        while from < freedom {
            term *= cosine * cosine * float(from - 1) / float(from);
            sum += term;
            from += 2;
        }
        if odd {
            std::f64::consts::FRAC_2_PI * (angle + sine * sum)
        } else {
            sine * sum
        }
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if 1.0 - within(middle) > error {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// A number in 0 .. 1, of 53 random bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number below `bound`.
fn below(random: &mut Random, bound: usize) -> usize {
    let product = (u128::from(random.next_u64()) * bound as u128) >> 64;
    usize::try_from(product).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "some hundred slices")]
fn float(number: usize) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cut off on purpose; none is negative"
)]
fn whole(number: f64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests;
