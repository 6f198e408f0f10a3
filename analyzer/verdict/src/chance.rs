//! How often a sign shows by chance.

use roce_model::cast::float;

/// A sign is believed that shows by chance in fewer captures than this part of them.
pub(crate) const UNLIKELY: f64 = 0.05;

/// The chance that at least `signs` of `trials` happen, each by the chance `rate`, or a little more: Chernoff's bound of the binomial
/// distribution, exact where all of them happen.
#[must_use]
pub fn at_least(signs: u64, trials: u64, rate: f64) -> f64 {
    if signs == 0 || trials == 0 {
        return 1.0;
    }
    let (n, share) = (float(trials), float(signs.min(trials)) / float(trials));
    if share <= rate {
        return 1.0;
    }
    let rest = if share < 1.0 {
        (1.0 - share) * ((1.0 - share) / (1.0 - rate)).ln()
    } else {
        0.0
    };
    (-n * (share * (share / rate).ln() + rest)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_coincidences() {
        // All of them: rate^n. 0.1^2 = 0.01, 0.9^28 = 0.0523.
        assert!((at_least(2, 2, 0.1) - 0.01).abs() < 1e-9);
        assert!((at_least(28, 28, 0.9) - 0.0523).abs() < 1e-4);
        // One of ten at 1 %: 1 - 0.99^10 = 0.0956; the bound is higher.
        assert!((0.0956..0.3).contains(&at_least(1, 10, 0.01)));
        // As many as expected, or none, are no surprise.
        assert!((at_least(1, 10, 0.1) - 1.0).abs() < 1e-9);
        assert!((at_least(0, 10, 0.1) - 1.0).abs() < 1e-9);
    }
}
