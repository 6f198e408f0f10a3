//! Bounds of what was estimated from some of all packets: the interval in which the truth lies 19 times of 20.

/// Standard deviations on both sides of the mean that have 95 % of a normal distribution.
pub const Z: f64 = 1.959_963_985;

/// The bounds of a share that was found in `samples` samples, more than 0: the score interval of Wilson (Journal of the American Statistical
/// Association 22, 1927, p. 209). It stays within 0 and 1, and holds for few samples and for shares of 0.
pub fn wilson(share: f64, samples: f64) -> [f64; 2] {
    let z2 = Z * Z / samples;
    let middle = (share + z2 / 2.0) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (share * (1.0 - share) / samples + z2 / (4.0 * samples)).sqrt();
    // At the ends the bound is the share itself, and rounding would miss it.
    let low = if share > 0.0 { middle - half } else { 0.0 };
    let high = if share < 1.0 { middle + half } else { 1.0 };
    [low.max(0.0), high.min(1.0)]
}
