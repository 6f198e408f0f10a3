//! Sizes, as arguments.

#[cfg(feature = "live")]
use roce_pipeline::packet_files::Rotate;

#[cfg(feature = "live")]
use crate::options::duration::parse_duration;

/// Parses `64MiB`, `1GB`, `1500000`: bytes, in decimal or binary units.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size such as 1GB, 64MiB or 1500000");
    let trimmed = text.trim();
    let digits = trimmed
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let scale = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(scale)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(wrong)
}

/// Parses a size or a time: `1GB`, `10min`.
#[cfg(feature = "live")]
pub(crate) fn parse_rotate(text: &str) -> Result<Rotate, String> {
    if let Ok(bytes) = parse_size(text) {
        return Ok(Rotate::Bytes(bytes));
    }
    let time = parse_duration(text)
        .map_err(|_| format!("'{text}' is neither a size such as 1GB nor a time such as 10min"))?;
    if time.0 == 0 {
        return Err("a file needs some time".to_owned());
    }
    Ok(Rotate::After(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counts_of_bytes() {
        assert_eq!(parse_size("1GB"), Ok(1_000_000_000));
        assert_eq!(parse_size("64 MiB"), Ok(64 << 20));
        assert!(parse_size("0").is_err());
        assert!(parse_size("99999999999999999999GB").is_err());
    }

    #[test]
    #[cfg(feature = "live")]
    fn sizes_and_times_differ() {
        use roce_model::Span;

        assert_eq!(parse_rotate("1GB"), Ok(Rotate::Bytes(1_000_000_000)));
        assert_eq!(parse_rotate("64 MiB"), Ok(Rotate::Bytes(64 << 20)));
        assert_eq!(
            parse_rotate("10min"),
            Ok(Rotate::After(Span(600 * Span::SECOND.0)))
        );
        // A lonely m is a million bytes, as it is to tcpdump.
        assert_eq!(parse_rotate("10m"), Ok(Rotate::Bytes(10_000_000)));
        assert!(parse_rotate("a lot").is_err());
        assert!(parse_rotate("0s").is_err());
    }
}
