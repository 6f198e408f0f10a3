//! Conversions between whole numbers and floating point, with their rounding.

/// A number as floating point. Above 2^53 it is rounded: that many nanoseconds are 104 days, that many bytes 9 PB.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "rounded above 2^53, as documented")]
pub fn float(value: u64) -> f64 {
    value as f64
}

/// The nearest whole number. Negative numbers give 0, those beyond 64 bits the largest one.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast stops at the ends of the range"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_hold() {
        assert_eq!(
            [-1.0, 0.4, 0.5, 2.6, 1e30, f64::NAN].map(whole),
            [0, 0, 1, 3, u64::MAX, 0]
        );
        assert_eq!(whole(float(1 << 53)), 1 << 53);
    }
}
