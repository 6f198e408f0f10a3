//! Cross-correlation of two series at all lags, by the fast Fourier transform (Cooley and Tukey, 1965): n log n steps.
//!
//! Crates that were looked at: `rustfft` 6 (well kept; plans and code for each instruction set, for one transform in a run). A transform of
//! radix 2 takes fewer lines than its use.

use std::f64::consts::TAU;

use roce_model::cast::float;

/// A complex number.
#[derive(Clone, Copy, Default)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn times(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

/// The sums of `a[i] * b[i - lag]` for each lag from `-(b.len() - 1)` to `a.len() - 1`, in this order.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> Vec<f64> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    let lags = a.len() + b.len() - 1;
    let size = lags.next_power_of_two();
    // Both are real: one is the real part, the other one, backwards, the imaginary part. The imaginary part of the square is
    // twice their product.
    let mut values = vec![Complex::default(); size];
    for (value, a) in values.iter_mut().zip(a) {
        value.re = *a;
    }
    for (value, b) in values.iter_mut().zip(b.iter().rev()) {
        value.im = *b;
    }
    transform(&mut values, 1.0);
    for value in &mut values {
        *value = value.times(*value);
    }
    transform(&mut values, -1.0);
    let scale = 2.0 * float(size as u64);
    values.iter().take(lags).map(|value| value.im / scale).collect()
}

/// The transform in place; `sign` -1: its inverse, not scaled. The length is a power of two.
fn transform(values: &mut [Complex], sign: f64) {
    let size = values.len();
    let bits = size.trailing_zeros();
    if bits == 0 {
        return;
    }
    for place in 0..size {
        let other = place.reverse_bits() >> (usize::BITS - bits);
        if place < other {
            values.swap(place, other);
        }
    }
    let mut half = 1;
    while half < size {
        let roots: Vec<Complex> = (0..half)
            .map(|place| {
                let angle = -sign * TAU * float(place as u64) / float(2 * half as u64);
                Complex {
                    re: angle.cos(),
                    im: angle.sin(),
                }
            })
            .collect();
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((low, high), root) in low.iter_mut().zip(high).zip(&roots) {
                let turned = high.times(*root);
                *high = Complex {
                    re: low.re - turned.re,
                    im: low.im - turned.im,
                };
                low.re += turned.re;
                low.im += turned.im;
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lags_are_those_of_the_definition() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 16) / 65_536.0
        };
        for (length, other) in [(1usize, 1usize), (2, 1), (5, 3), (64, 64), (100, 37), (3, 200)] {
            let a: Vec<f64> = (0..length).map(|_| next()).collect();
            let b: Vec<f64> = (0..other).map(|_| next()).collect();
            let found = correlation(&a, &b);
            assert_eq!(found.len(), length + other - 1);
            for (found, shift) in found.iter().zip(0..) {
                // a[i] * b[i - lag] with lag = shift - (other - 1).
                let sum: f64 = (0..length)
                    .filter_map(|i| Some(a[i] * b.get((i + other - 1).checked_sub(shift)?)?))
                    .sum();
                assert!(
                    (found - sum).abs() < 1e-9,
                    "{length} {other} {shift}: {found} {sum}"
                );
            }
        }
        assert!(correlation(&[], &[1.0]).is_empty());
    }
}
