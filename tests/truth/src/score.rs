//! How often the analysis was right about one kind of thing.

use std::fmt;

/// What is counted of one category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Things that happened.
    pub items: u64,
    /// Of these, such as a tap's records show.
    pub observable: u64,
    /// Of these, such as the analysis told.
    pub found: u64,
    /// Things that the analysis told, but for what no record can prove or disprove.
    pub told: u64,
    /// Of these, such as are true.
    pub right: u64,
    /// What was wrong or missed, in words.
    pub notes: Vec<String>,
}

impl Score {
    /// Something happened that the analysis could see; it told so or not.
    pub fn expect(&mut self, found: bool, note: impl FnOnce() -> String) {
        self.items += 1;
        self.observable += 1;
        if found {
            self.found += 1;
        } else {
            self.notes.push(format!("missed: {}", note()));
        }
    }

    /// Something happened that the analysis could not see.
    pub fn hidden(&mut self) {
        self.items += 1;
    }

    /// The analysis told something that is true or not.
    pub fn tell(&mut self, right: bool, note: impl FnOnce() -> String) {
        self.told += 1;
        if right {
            self.right += 1;
        } else {
            self.notes.push(format!("wrong: {}", note()));
        }
    }

    /// Adds the counts of another one; its notes are left.
    pub fn add(&mut self, other: &Self) {
        self.items += other.items;
        self.observable += other.observable;
        self.found += other.found;
        self.told += other.told;
        self.right += other.right;
    }

    /// The share of what was told that is true; 1 when nothing was told.
    pub fn precision(&self) -> f64 {
        share(self.right, self.told)
    }

    /// The share of what could be seen that was told; 1 when nothing could be.
    pub fn recall(&self) -> f64 {
        share(self.found, self.observable)
    }

    /// What was wrong and what was missed.
    pub fn faults(&self) -> u64 {
        (self.observable - self.found) + (self.told - self.right)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>8} {:>10} {:>9.4} {:>9.4}",
            self.items,
            self.observable,
            self.precision(),
            self.recall()
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of one run stay below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_counts_neither_way() {
        let mut score = Score::default();
        score.hidden();
        score.expect(true, String::new);
        score.expect(true, String::new);
        score.expect(false, || "a".to_owned());
        score.tell(true, String::new);
        score.tell(false, || "b".to_owned());
        assert_eq!((score.items, score.observable, score.told), (4, 3, 2));
        assert!((score.recall() - 2.0 / 3.0).abs() < 1e-12);
        assert!((score.precision() - 0.5).abs() < 1e-12);
        assert_eq!(score.faults(), 2);
        assert_eq!(score.notes, ["missed: a", "wrong: b"]);
        assert_eq!(Score::default().precision().to_bits(), 1.0f64.to_bits());
    }
}
