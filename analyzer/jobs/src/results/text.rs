//! Numbers and fields of lines.

/// A finite number that is not negative.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// The value behind `name`, up to the next white space.
pub(super) fn after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(name)?;
    rest.split_whitespace().next()
}

/// The value of `name : value`, or `name: value`, where a line has several such pairs in columns.
pub(super) fn setting<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(name)?;
    rest.trim_start().strip_prefix(':')?.split_whitespace().next()
}

/// The lines of a text, from 1 on.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

/// True if two numbers are the same but for rounding: to `share` of them, and to half of the last digit, `digit`.
pub(super) fn agree(one: f64, other: f64, share: f64, digit: f64) -> bool {
    (one - other).abs() <= one.abs().max(other.abs()) * share + digit
}

/// Half of what the last digit of a printed number stands for: 0.005 for `6.98`, 0.5 for `12`.
pub(super) fn half_digit(field: &str) -> f64 {
    let behind = field.split_once('.').map_or(0, |(_, digits)| {
        digits.bytes().take_while(u8::is_ascii_digit).count()
    });
    0.5 * 0.1_f64.powi(i32::try_from(behind).unwrap_or(i32::MAX))
}
