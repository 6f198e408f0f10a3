//! Floors of precision and recall, by class.

use crate::score::{Claims, StatedConfidence};
use crate::scores::Scores;

/// One floor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reach {
    /// The class.
    pub class: &'static str,
    /// Least precision; `None` where only recall counts.
    pub precision: Option<f64>,
    /// Least recall.
    pub recall: Option<f64>,
}

const fn both(class: &'static str, precision: f64, recall: f64) -> Reach {
    Reach {
        class,
        precision: Some(precision),
        recall: Some(recall),
    }
}

/// All floors but that of claims of high confidence, which is [`Reach::HIGH`] in each class.
pub const REACH: &[Reach] = &[
    Reach {
        class: "healthy",
        precision: None,
        recall: Some(1.0),
    },
    both("network lost", 0.99, 0.95),
    both("READ responses lost", 0.99, 0.90),
    both("hops lost", 0.995, 0.98),
    both("trigger timeout", 0.98, 0.95),
    both("trigger nak", 0.98, 0.95),
    both("finding cnp.ignored", 0.98, 0.90),
    both("finding loss.network", 0.99, 0.97),
    both("finding retransmit.timeout", 0.99, 0.97),
    both("finding pause.origin", 0.99, 0.70),
    Reach {
        class: "pairing",
        precision: None,
        recall: Some(0.995),
    },
];

impl Reach {
    /// Least precision of results with high confidence, in each class.
    pub const HIGH: f64 = 0.995;

    /// True if its class reaches it.
    pub fn is_reached(&self, scores: &Scores) -> bool {
        let score = scores.get(self.class);
        self.precision.is_none_or(|floor| score.precision() >= floor)
            && self.recall.is_none_or(|floor| score.recall() >= floor)
    }

    /// True if every floor is reached, and that of claims with high confidence.
    pub fn all_are_reached(scores: &Scores) -> bool {
        REACH.iter().all(|reach| reach.is_reached(scores)) && Self::overconfident(scores).is_empty()
    }

    /// Classes whose results with high confidence are not true often enough.
    pub fn overconfident(scores: &Scores) -> Vec<(String, Claims)> {
        let classes = scores
            .iter()
            .map(|(class, score)| (class.to_owned(), score.claims_with(StatedConfidence::High)));
        let classes =
            classes.filter(|(class, claims)| *class != "false warnings" && claims.precision() < Self::HIGH);
        classes.collect()
    }

    /// All lines of the table of floors.
    pub fn lines(scores: &Scores) -> Vec<String> {
        let mut lines = Vec::new();
        for reach in REACH {
            let score = scores.get(reach.class);
            let part = |name: &str, value: f64, floor: Option<f64>| {
                floor.map_or(String::new(), |floor| format!("{name} {value:.4} of {floor:<6}"))
            };
            let value = if reach.class == "healthy" {
                format!(
                    "{} of {} with a false warning",
                    score.observable - score.found,
                    score.observable
                )
            } else {
                format!(
                    "{:<28}{}",
                    part("precision", score.precision(), reach.precision),
                    part("recall", score.recall(), reach.recall)
                )
            };
            let verdict = verdict(reach.is_reached(scores), score.is_empty());
            lines.push(
                format!("{:<28} {value:<56} {verdict}", reach.class)
                    .trim_end()
                    .to_owned(),
            );
        }
        let wrong = Self::overconfident(scores);
        let classes = scores
            .iter()
            .filter(|(_, score)| score.claims_with(StatedConfidence::High).made > 0);
        lines.push(format!(
            "{:<28} {:<56} {}",
            "high confidence",
            format!(
                "{} of {} classes below {}",
                wrong.len(),
                classes.count(),
                Self::HIGH
            ),
            verdict(wrong.is_empty(), false)
        ));
        for (class, claims) in wrong {
            lines.push(format!(
                "{:<28} {:.4} ({} of {})",
                format!("  {class}"),
                claims.precision(),
                claims.right,
                claims.made
            ));
        }
        lines
    }
}

fn verdict(reached: bool, empty: bool) -> &'static str {
    match (reached, empty) {
        (_, true) => "nothing to compare",
        (true, _) => "reached",
        (false, _) => "NOT reached",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_compared_with_both_numbers() {
        let mut scores = Scores::default();
        let score = scores.of_class("network lost");
        // 95 of 100 found, 99 of 100 claims right: 0.95 and 0.99, the floors themselves.
        score.expect_many(100, 95, String::new);
        score.tell_many(StatedConfidence::High, 100, 99, String::new);
        let reach = REACH.iter().find(|reach| reach.class == "network lost").unwrap();
        assert!(reach.is_reached(&scores));
        // 0.99 is less than 0.995.
        assert_eq!(Reach::overconfident(&scores).len(), 1);
        scores.of_class("network lost").expect(false, String::new);
        assert!(!reach.is_reached(&scores));
        assert!(!Reach::all_are_reached(&scores));
        assert!(Reach::all_are_reached(&Scores::default()), "nothing was wrong");
    }
}
