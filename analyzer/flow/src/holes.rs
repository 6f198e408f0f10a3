//! The PSNs that a flow has not shown yet, as intervals.

/// Missing PSNs behind the highest one, as intervals in order. PSNs are counted on past their 24 bits, so that
/// a hole of the last lap is not mistaken for one of this. Bounded: past [`Holes::MOST`] the oldest interval is
/// forgotten, and a packet that fills it later counts as sent again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes(Vec<Hole>);

/// From `first` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    first: u64,
    end: u64,
}

impl Holes {
    /// Intervals kept of one flow.
    pub(crate) const MOST: usize = 256;

    /// Adds the PSNs from `first` up to `end`, which lie after all others.
    pub(crate) fn add(&mut self, first: u64, end: u64) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(Hole { first, end });
    }

    /// Whether no PSN is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out the PSNs from `first` up to `end`; says whether `first` itself was missing.
    pub(crate) fn fill(&mut self, first: u64, end: u64) -> bool {
        let from = self.0.partition_point(|hole| hole.end <= first);
        let to = from + self.0[from..].partition_point(|hole| hole.first < end);
        let touched = &self.0[from..to];
        let (Some(lowest), Some(highest)) = (touched.first(), touched.last()) else {
            return false;
        };
        let was_missing = lowest.first <= first;
        let before = Hole {
            first: lowest.first,
            end: first,
        };
        let after = Hole {
            first: end,
            end: highest.end,
        };
        let left = [before, after].into_iter().filter(|hole| hole.first < hole.end);
        self.0.splice(from..to, left);
        if self.0.len() > Self::MOST {
            self.0.remove(0);
        }
        was_missing
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn left(holes: &Holes) -> Vec<u64> {
        holes.0.iter().flat_map(|hole| hole.first..hole.end).collect()
    }

    #[test]
    fn filling_splits_and_joins_nothing() {
        let mut holes = Holes::default();
        holes.add(10, 15);
        assert!(holes.fill(12, 13));
        assert_eq!(left(&holes), [10, 11, 13, 14]);
        assert!(!holes.fill(12, 13), "filled once");
        assert!(
            !holes.fill(9, 12),
            "9 was not missing, 10 and 11 are filled all the same"
        );
        assert_eq!(left(&holes), [13, 14]);
        assert!(holes.fill(13, 113));
        assert!(holes.is_empty());
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut holes = Holes::default();
        for i in 0..=Holes::MOST as u64 {
            holes.add(i * 4, i * 4 + 3);
        }
        assert_eq!(holes.0.len(), Holes::MOST);
        assert!(!holes.fill(0, 1));
        assert!(holes.fill(5, 6), "the split makes one too many");
        assert_eq!(holes.0.len(), Holes::MOST);
        assert!(!holes.fill(4, 5));
        assert!(holes.fill(6, 7));
    }

    proptest! {
        /// The intervals equal a plain set of numbers.
        #[test]
        fn as_a_set(gaps in prop::collection::vec((1u64..20, 1u64..5), 1..20),
                    fills in prop::collection::vec((0u64..400, 1u64..30), 1..40)) {
            let mut holes = Holes::default();
            let mut set = BTreeSet::new();
            let mut next = 0;
            for (psns, seen) in gaps {
                holes.add(next, next + psns);
                set.extend(next..next + psns);
                next += psns + seen;
            }
            for (first, psns) in fills {
                let expected = set.contains(&first);
                set.retain(|psn| !(first..first + psns).contains(psn));
                prop_assert_eq!(holes.fill(first, first + psns), expected);
                prop_assert_eq!(left(&holes), set.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
