//! Numbers in sentences.

/// Largest number that is written; larger ones are written as this one.
const MAX_SHOWN: f64 = 1e18;

/// A count with commas, without decimals: `48,000`.
pub(crate) fn number(count: f64) -> String {
    let digits = format!("{:.0}", count.clamp(0.0, MAX_SHOWN));
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 packet`, `48,000 packets`.
pub(crate) fn counted(count: f64, noun: &str) -> String {
    let number = number(count);
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas_and_nouns_a_number() {
        for (count, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1_000.0, "1,000"),
            (133_704_872.0, "133,704,872"),
            (-5.0, "0"),
            (1e300, "1,000,000,000,000,000,000"),
        ] {
            assert_eq!(number(count), text);
        }
        assert_eq!(
            (counted(1.0, "packet"), counted(0.0, "packet")),
            ("1 packet".into(), "0 packets".into())
        );
    }
}
