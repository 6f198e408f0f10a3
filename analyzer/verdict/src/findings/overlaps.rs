//! Intervals of time by a key, and whether one of them overlaps another interval: found in the logarithm of their number.

use core::hash::Hash;
use std::collections::HashMap;

use roce_model::Time;

/// Intervals with both ends, by key.
#[derive(Debug)]
pub(super) struct Overlaps<K>(HashMap<K, Vec<Prefix>>);

/// An interval among those that begin no later.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    begin: Time,
    /// The latest end of this one and all before it.
    latest_end: Time,
}

impl<K> Default for Overlaps<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> FromIterator<(K, (Time, Time))> for Overlaps<K> {
    fn from_iter<I: IntoIterator<Item = (K, (Time, Time))>>(intervals: I) -> Self {
        let mut by_key: HashMap<K, Vec<Prefix>> = HashMap::new();
        for (key, (begin, latest_end)) in intervals {
            by_key.entry(key).or_default().push(Prefix { begin, latest_end });
        }
        for intervals in by_key.values_mut() {
            intervals.sort_by_key(|interval| interval.begin);
            let mut latest = Time(0);
            for interval in intervals {
                latest = latest.max(interval.latest_end);
                interval.latest_end = latest;
            }
        }
        Self(by_key)
    }
}

impl<K: Eq + Hash> Overlaps<K> {
    /// True if an interval with this key and `begin..=end` have a moment in common.
    pub(super) fn meet(&self, key: &K, (begin, end): (Time, Time)) -> bool {
        let Some(intervals) = self.0.get(key) else {
            return false;
        };
        let up_to = intervals.partition_point(|interval| interval.begin <= end);
        up_to > 0 && intervals[up_to - 1].latest_end >= begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_meet_where_both_are() {
        // A long one hides behind short ones that begin later.
        let intervals = [(60, 70), (10, 50), (20, 21), (30, 31)];
        let overlaps: Overlaps<u8> = intervals
            .iter()
            .map(|(begin, end)| (1, (Time(*begin), Time(*end))))
            .collect();
        for begin in 0..80 {
            for end in begin..80 {
                let expected = intervals
                    .iter()
                    .any(|interval| interval.0 <= end && interval.1 >= begin);
                assert_eq!(
                    overlaps.meet(&1, (Time(begin), Time(end))),
                    expected,
                    "{begin} to {end}"
                );
            }
        }
        assert!(!overlaps.meet(&2, (Time(0), Time(80))));
    }
}
