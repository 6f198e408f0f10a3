//! The worst of many: how many there were, and the few that a finding names.

use super::super::numbers::some;

/// Kept for naming.
const MAX_NAMED: usize = 5;

/// Things with a score, the highest of which are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Worst {
    all: u64,
    sum: u64,
    top: Vec<(u64, String)>,
}

impl Worst {
    /// Adds one with this score; its name is made only when it may be kept.
    pub(super) fn add(&mut self, score: u64, name: impl FnOnce() -> String) {
        self.all += 1;
        self.sum = self.sum.saturating_add(score);
        if self.top.len() == MAX_NAMED && self.top.last().is_some_and(|(least, _)| *least > score) {
            return;
        }
        // Equal scores are ordered by name: the order in which flows closed does not matter.
        let added = (core::cmp::Reverse(score), name());
        let place = self
            .top
            .partition_point(|(score, name)| (core::cmp::Reverse(*score), name) <= (added.0, &added.1));
        self.top.insert(place, (score, added.1));
        self.top.truncate(MAX_NAMED);
    }

    /// Adds some that have no names, with the sum of their scores.
    pub(super) fn add_unnamed(&mut self, count: u64, sum: u64) {
        self.all += count;
        self.sum = self.sum.saturating_add(sum);
    }

    /// How many there were.
    pub(super) fn all(&self) -> u64 {
        self.all
    }

    /// The sum of their scores.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// The highest score.
    pub(super) fn most(&self) -> u64 {
        self.top.first().map_or(0, |(score, _)| *score)
    }

    /// The worst one's name.
    pub(super) fn name(&self) -> &str {
        self.top.first().map_or("", |(_, name)| name)
    }

    /// The worst ones with their scores, as evidence.
    pub(super) fn list(&self) -> String {
        let each: Vec<String> = self
            .top
            .iter()
            .map(|(score, name)| format!("{name}: {score}"))
            .collect();
        some(&each, MAX_NAMED, usize::try_from(self.all).unwrap_or(usize::MAX))
    }

    /// The worst ones' names.
    pub(super) fn names(&self) -> String {
        let each: Vec<&str> = self.top.iter().map(|(_, name)| name.as_str()).collect();
        some(&each, MAX_NAMED, usize::try_from(self.all).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_are_kept_in_order() {
        let mut worst = Worst::default();
        for score in [3, 9, 1, 7, 5, 8, 9] {
            worst.add(score, || format!("f{score}"));
        }
        assert_eq!((worst.all(), worst.sum(), worst.most()), (7, 42, 9));
        assert_eq!(worst.list(), "f9: 9, f9: 9, f8: 8, f7: 7, f5: 5 and 2 more");
        assert_eq!(worst.name(), "f9");
        let mut alike = Worst::default();
        for name in ["g", "c", "a", "f", "e", "d", "b"] {
            alike.add(1, || name.to_owned());
        }
        assert_eq!(alike.names(), "a, b, c, d, e and 2 more");
    }
}
