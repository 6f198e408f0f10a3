//! Numbers for people: three digits where they say enough, all of them where they are counted.
//!
//! There is one spelling of each: `1,204,113`, `1.41 MB`, `5.88 Gbit/s`, `1.31 %`.

use roce_model::Span;
use roce_model::cast::float;

/// Text for a value that is not known.
pub const ABSENT: &str = "-";

/// Largest count with a fraction that is written; larger ones are written as this one.
const MAX_WHOLE: f64 = 1e18;

/// All digits, in groups of three.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A count that was computed, as a whole number with all digits. What is below 0 is 0.
pub fn whole(value: f64) -> String {
    grouped(&format!("{:.0}", value.clamp(0.0, MAX_WHOLE)))
}

/// A number with all digits before the point, in groups, and up to three behind it.
pub fn decimal(value: f64) -> String {
    let text = format!("{value:.3}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole
        .strip_prefix('-')
        .map_or(("", whole), |digits| ("-", digits));
    let whole = grouped(digits);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

fn grouped(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count in few columns: all digits below a million, three of them from there.
pub fn short_count(value: u64) -> String {
    if value < 1_000_000 {
        count(value)
    } else {
        scaled(float(value), 1e3, ["", " k", " M", " G", " T", " P", " E"])
    }
}

/// `1.41 MB`.
pub fn bytes(value: u64) -> String {
    if value < 1_000 {
        return format!("{value} B");
    }
    scaled(
        float(value),
        1e3,
        [" B", " kB", " MB", " GB", " TB", " PB", " EB"],
    )
}

/// `5.88 Gbit/s` for `bytes` in a time; `None` when it took none.
pub fn rate(bytes: u64, time: Span) -> Option<String> {
    (time.0 > 0).then(|| rate_of(float(bytes) * 8.0 / time.seconds()))
}

/// A rate in bits in a second.
pub fn rate_of(bits: f64) -> String {
    let units = [
        " bit/s", " kbit/s", " Mbit/s", " Gbit/s", " Tbit/s", " Pbit/s", " Ebit/s",
    ];
    scaled(bits, 1e3, units)
}

/// Packets in a second: `1.25 Mpackets/s`.
pub fn packet_rate(packets: f64) -> String {
    let units = [
        " packets/s",
        " kpackets/s",
        " Mpackets/s",
        " Gpackets/s",
        " Tpackets/s",
        " Ppackets/s",
        " Epackets/s",
    ];
    scaled(packets, 1e3, units)
}

/// `1.31 %` of a whole; `None` when there is no whole.
pub fn percent(part: u64, whole: u64) -> Option<String> {
    share(part, whole).map(|share| format!("{share} %"))
}

/// A share without its sign. Only exact values are shown as nothing or everything.
pub fn share(part: u64, whole: u64) -> Option<String> {
    if whole == 0 {
        return None;
    }
    let value = float(part) / float(whole) * 100.0;
    Some(if part == 0 {
        "0".to_owned()
    } else if part == whole {
        "100".to_owned()
    } else if value < 0.01 {
        "<0.01".to_owned()
    } else if value < 10.0 {
        format!("{value:.2}")
    } else if value < 99.95 || part > whole {
        format!("{value:.1}")
    } else {
        ">99.9".to_owned()
    })
}

/// A computed count with its noun, which takes an s: `1 packet`, `48,000 packets`.
pub fn counted(count: f64, noun: &str) -> String {
    let number = whole(count);
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// A word for one or for many.
pub fn plural(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// Three digits and a unit.
fn scaled(mut value: f64, step: f64, units: [&str; 7]) -> String {
    let mut unit = 0;
    // A value that rounds to 1000 belongs to the next unit.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 {
        0
    } else {
        usize::from(value < 9.995) + 1
    };
    format!("{value:.decimals$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_groups() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_204_113), "1,204,113");
        assert_eq!(short_count(999_999), "999,999");
        assert_eq!(short_count(1_204_113), "1.20 M");
        assert_eq!(plural(1, "packet", "packets"), "1 packet");
    }

    #[test]
    fn computed_counts_are_whole() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1_000.0, "1,000"),
            (133_704_872.0, "133,704,872"),
            (-5.0, "0"),
            (1e300, "1,000,000,000,000,000,000"),
        ] {
            assert_eq!(whole(value), text);
        }
        assert_eq!(
            (counted(1.0, "packet"), counted(0.0, "packet")),
            ("1 packet".into(), "0 packets".into())
        );
        assert_eq!(decimal(-1_234.5), "-1,234.5");
        assert_eq!(decimal(0.000_4), "0");
    }

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_410_000), "1.41 MB");
        assert_eq!(bytes(14_100), "14.1 kB");
        assert_eq!(bytes(141_000), "141 kB");
        assert_eq!(bytes(999_999), "1.00 MB");
        assert_eq!(bytes(u64::MAX), "18.4 EB");
        assert_eq!(rate(737_500, Span(1_000_000_000)).as_deref(), Some("5.90 Mbit/s"));
        assert_eq!(rate(1, Span(0)), None);
        assert_eq!(rate_of(400e9), "400 Gbit/s");
        assert_eq!(packet_rate(12_345.0), "12.3 kpackets/s");
    }

    #[test]
    fn shares_never_say_none_or_all_by_rounding() {
        assert_eq!(percent(0, 10).as_deref(), Some("0 %"));
        assert_eq!(percent(1, 1_000_000).as_deref(), Some("<0.01 %"));
        assert_eq!(percent(131, 10_000).as_deref(), Some("1.31 %"));
        assert_eq!(percent(987, 1_000).as_deref(), Some("98.7 %"));
        assert_eq!(percent(99_999, 100_000).as_deref(), Some(">99.9 %"));
        assert_eq!(percent(5, 5).as_deref(), Some("100 %"));
        assert_eq!(percent(0, 0), None);
    }
}
