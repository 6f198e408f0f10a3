//! Values in the middle of others.

/// The middle value, the larger one of two. The values get another order. 0 without values.
pub(crate) fn median(values: &mut [i64]) -> i64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        0
    } else {
        *values.select_nth_unstable(middle).1
    }
}

/// The value that a quarter of the others are below. 0 without values.
pub(crate) fn lower_quartile(values: &mut [i64]) -> i64 {
    let place = values.len().saturating_sub(1) / 4;
    if values.is_empty() {
        0
    } else {
        *values.select_nth_unstable(place).1
    }
}
