//! Score of the analysis for one kind of result, by its confidence.

use std::collections::BTreeMap;
use std::fmt;

use roce_model::Confidence;

/// With how much confidence something was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatedConfidence {
    /// It says that it is sure.
    High,
    /// It says that it is less sure.
    Medium,
    /// It says that it is not sure.
    Low,
    /// It has no confidence, as most counts and events.
    Plain,
}

impl StatedConfidence {
    /// Those that claim something, the surest first.
    pub const ALL: [Self; 3] = [Self::High, Self::Medium, Self::Low];

    /// The confidence of a row.
    pub fn of(confidence: Confidence) -> Self {
        match confidence {
            Confidence::High => Self::High,
            Confidence::Medium => Self::Medium,
            Confidence::Low => Self::Low,
        }
    }

    /// Its name, as the tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Plain => "no confidence",
        }
    }
}

/// Claims of one confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Things that the analysis said.
    pub made: u64,
    /// Number of the verdicts that are true.
    pub right: u64,
}

impl Claims {
    /// The share of true ones; 1 without any.
    pub fn precision(self) -> f64 {
        share(self.right, self.made)
    }
}

/// Counts of one category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Things that happened.
    pub items: u64,
    /// Number of the true ones that a tap's records show.
    pub observable: u64,
    /// Number of the observable ones that the analysis found.
    pub found: u64,
    /// Results of the analysis, by their confidence.
    pub claims: BTreeMap<StatedConfidence, Claims>,
    /// Errors and misses, in words.
    pub notes: Vec<String>,
}

impl Score {
    /// Something happened that the analysis could see; it said so or not.
    pub fn expect(&mut self, found: bool, note: impl FnOnce() -> String) {
        self.expect_many(1, u64::from(found), note);
    }

    /// Expects `count` things, `found` of which were reported.
    pub fn expect_many(&mut self, count: u64, found: u64, note: impl FnOnce() -> String) {
        self.items += count;
        self.observable += count;
        self.found += found.min(count);
        if found < count {
            self.notes.push(format!("missed: {}", note()));
        }
    }

    /// Something happened that the analysis could not see.
    pub fn hidden(&mut self) {
        self.items += 1;
    }

    /// The analysis said something that carries no confidence, which is true or not.
    pub fn tell(&mut self, right: bool, note: impl FnOnce() -> String) {
        self.tell_with(StatedConfidence::Plain, right, note);
    }

    /// The analysis said something with a confidence.
    pub fn tell_with(&mut self, said: StatedConfidence, right: bool, note: impl FnOnce() -> String) {
        self.tell_many(said, 1, u64::from(right), note);
    }

    /// The analysis reported `count` things, `right` of which are true.
    pub fn tell_many(
        &mut self,
        said: StatedConfidence,
        count: u64,
        right: u64,
        note: impl FnOnce() -> String,
    ) {
        if count == 0 {
            return;
        }
        let claims = self.claims.entry(said).or_default();
        claims.made += count;
        claims.right += right.min(count);
        if right < count {
            self.notes.push(format!("wrong ({}): {}", said.name(), note()));
        }
    }

    /// Adds the counts of another one; its notes are left.
    pub fn add(&mut self, other: &Self) {
        self.items += other.items;
        self.observable += other.observable;
        self.found += other.found;
        for (said, claims) in &other.claims {
            let own = self.claims.entry(*said).or_default();
            own.made += claims.made;
            own.right += claims.right;
        }
    }

    /// All claims, whatever their confidence.
    pub fn all_claims(&self) -> Claims {
        let mut all = Claims::default();
        for claims in self.claims.values() {
            all.made += claims.made;
            all.right += claims.right;
        }
        all
    }

    /// Claims of one confidence.
    pub fn claims_with(&self, said: StatedConfidence) -> Claims {
        self.claims.get(&said).copied().unwrap_or_default()
    }

    /// Share of the reported results that is true; 1 when there are none.
    pub fn precision(&self) -> f64 {
        self.all_claims().precision()
    }

    /// Share of the visible things that was reported; 1 when there are none.
    pub fn recall(&self) -> f64 {
        share(self.found, self.observable)
    }

    /// Number of errors and misses.
    pub fn faults(&self) -> u64 {
        let all = self.all_claims();
        (self.observable - self.found) + (all.made - all.right)
    }

    /// Nothing happened, and nothing was said.
    pub fn is_empty(&self) -> bool {
        self.items == 0 && self.claims.is_empty()
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |part: u64, whole: u64| {
            if whole == 0 {
                "-".to_owned()
            } else {
                format!("{:.4}", share(part, whole))
            }
        };
        let all = self.all_claims();
        write!(
            f,
            "{:>8} {:>10} {:>8} {:>9} {:>9}",
            self.items,
            self.observable,
            all.made,
            number(all.right, all.made),
            number(self.found, self.observable),
        )?;
        for said in StatedConfidence::ALL {
            let claims = self.claims_with(said);
            write!(f, " {:>9}", number(claims.right, claims.made))?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of one run stay below 2^53")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
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
        score.tell_with(StatedConfidence::Low, false, || "b".to_owned());
        let all = score.all_claims();
        assert_eq!((score.items, score.observable, all.made), (4, 3, 2));
        assert!((score.recall() - 2.0 / 3.0).abs() < 1e-12);
        assert!((score.precision() - 0.5).abs() < 1e-12);
        assert_eq!(
            score.claims_with(StatedConfidence::Plain),
            Claims { made: 1, right: 1 }
        );
        assert_eq!(score.claims_with(StatedConfidence::High), Claims::default());
        assert_eq!(
            score.claims_with(StatedConfidence::Low),
            Claims { made: 1, right: 0 }
        );
        assert_eq!(score.faults(), 2);
        assert_eq!(score.notes, ["missed: a", "wrong (low): b"]);
        assert_eq!(Score::default().precision().to_bits(), 1.0f64.to_bits());
    }

    #[test]
    fn counts_are_compared_up_to_the_smaller_one() {
        let mut score = Score::default();
        score.expect_many(5, 9, String::new);
        score.tell_many(StatedConfidence::High, 9, 5, String::new);
        score.tell_many(StatedConfidence::Medium, 0, 0, String::new);
        assert_eq!((score.observable, score.found), (5, 5));
        let all = score.all_claims();
        assert_eq!((all.made, all.right), (9, 5));
        assert!(!score.claims.contains_key(&StatedConfidence::Medium));
    }
}
