//! Arithmetic and words that episodes and findings share: shares, first moments, Jain's index, counts with their noun.

use std::fmt::Display;

use roce_model::cast::float;
use roce_model::{Address, Time};
pub(super) use roce_spelling::bytes;

/// A share of losses, of flows or of signs that is nearly all of them.
pub(super) const NEARLY_ALL: f64 = 0.9;

/// `part` of `whole`; `None` of nothing.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

/// True if `part` is at least the share `least` of `whole`.
pub(super) fn reaches(part: u64, whole: u64, least: f64) -> bool {
    share(part, whole).is_some_and(|share| share >= least)
}

/// Notes a moment of something whose first one counts.
pub(super) fn note_first(first: &mut Option<Time>, time: Time) {
    *first = Some(first.map_or(time, |first| first.min(time)));
}

/// Jain's index of several shares, (sum x)^2 / (n sum x^2): 1 when all got the same, 1/n when one got
/// all (Jain, Chiu, Hawe, DEC-TR-301, 1984). `None` for fewer than two, or when nobody got anything.
pub(super) fn jain(parts: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for part in parts {
        n += 1;
        sum += float(part);
        squares += float(part).powi(2);
    }
    (n >= 2 && squares > 0.0).then(|| sum * sum / (float(n) * squares))
}

/// A share in percent, with as many digits as tell something: `12 %`, `1.5 %`, `0.01 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        _ if percent >= 9.95 || percent <= 0.0 => 0,
        _ if percent >= 0.095 => 1,
        _ => 3,
    };
    format!("{percent:.decimals$} %")
}

/// A count with its noun, which takes an s.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A host as findings list it: with its rank where that is known.
pub(super) fn ranked(host: Address, rank: Option<u32>) -> String {
    match rank {
        Some(rank) => format!("{host}[rank{rank}]"),
        None => host.to_string(),
    }
}

/// A few of a list, and how many more there are: `a, b and 3 more`.
pub(super) fn some<T: Display>(items: &[T], most: usize, all: usize) -> String {
    let shown = most.min(items.len());
    let left = all.saturating_sub(shown);
    let words: Vec<String> = items.iter().take(shown).map(ToString::to_string).collect();
    match (left, words.split_last()) {
        (0, Some((last, rest))) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        (0, _) | (_, None) => words.concat(),
        (left, Some(_)) => format!("{} and {left} more", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_between_one_nth_and_one() {
        let index = |parts: &[u64]| jain(parts.iter().copied());
        assert_eq!(index(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(index(&[9, 0, 0, 0]), Some(0.25));
        // (1 + 3)^2 / (2 (1 + 9)) = 16 / 20
        assert_eq!(index(&[1, 3]), Some(0.8));
        assert_eq!(index(&[7]), None);
        assert_eq!(index(&[0, 0]), None);
        assert!(index(&[u64::MAX, u64::MAX]).is_some_and(f64::is_finite));
    }

    #[test]
    fn words() {
        assert_eq!(percent(0.1234), "12 %");
        assert_eq!(percent(0.015), "1.5 %");
        assert_eq!(percent(0.000_1), "0.010 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(
            (counted(1, "flow"), counted(0, "flow")),
            ("1 flow".into(), "0 flows".into())
        );
        assert_eq!(some(&["a"], 3, 1), "a");
        assert_eq!(some(&["a", "b"], 3, 2), "a and b");
        assert_eq!(some(&["a", "b", "c"], 2, 5), "a, b and 3 more");
        assert_eq!(some::<&str>(&[], 2, 0), "");
    }
}
