//! The table: all categories over all cases.

use std::fmt;

use crate::case::Case;
use crate::score::Score;
use crate::{clocks, cnps, episodes, findings, holes, pairing, resends};

/// One kind of thing that the analysis tells.
#[derive(Clone, Copy, Debug)]
pub struct Category {
    /// Its name.
    pub name: &'static str,
    compare: fn(&Case) -> Score,
}

/// All categories.
pub const CATEGORIES: &[Category] = &[
    Category {
        name: "pairing",
        compare: pairing::compare,
    },
    Category {
        name: "loss class",
        compare: holes::classes,
    },
    Category {
        name: "lost downstream",
        compare: holes::downstream,
    },
    Category {
        name: "READ responses",
        compare: holes::responses,
    },
    Category {
        name: "resend trigger",
        compare: resends::compare,
    },
    Category {
        name: "CNP attribution",
        compare: cnps::compare,
    },
    Category {
        name: "episodes",
        compare: episodes::compare,
    },
    Category {
        name: "findings",
        compare: findings::compare,
    },
    Category {
        name: "clean traffic",
        compare: findings::alarms,
    },
    Category {
        name: "clocks",
        compare: clocks::compare,
    },
];

/// Seeds that are named in the table.
const NAMED: usize = 5;

/// Scores of all categories.
#[derive(Clone, Debug, Default)]
pub struct Table {
    cases: u64,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    score: Score,
    /// Faults and seed of the cases that have some.
    worst: Vec<(u64, u64)>,
}

impl Table {
    /// Adds a case; its scores, in the order of [`CATEGORIES`].
    pub fn add(&mut self, case: &Case) -> Vec<Score> {
        self.cases += 1;
        self.rows.resize_with(CATEGORIES.len(), Row::default);
        let mut scores = Vec::new();
        for (category, row) in CATEGORIES.iter().zip(&mut self.rows) {
            let score = (category.compare)(case);
            row.score.add(&score);
            if score.faults() > 0 {
                row.worst.push((score.faults(), case.scenario.seed));
            }
            scores.push(score);
        }
        scores
    }

    /// The score of a category.
    pub fn score(&self, name: &str) -> Option<&Score> {
        let place = CATEGORIES.iter().position(|category| category.name == name)?;
        self.rows.get(place).map(|row| &row.score)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} scenarios", self.cases)?;
        writeln!(
            f,
            "{:<16} {:>8} {:>10} {:>9} {:>9}  worst seeds (faults)",
            "category", "items", "observable", "precision", "recall"
        )?;
        for (category, row) in CATEGORIES.iter().zip(&self.rows) {
            let mut worst = row.worst.clone();
            worst.sort_unstable_by(|a, b| b.cmp(a));
            let mut worst: Vec<String> = worst
                .iter()
                .map(|(faults, seed)| format!("{seed} ({faults})"))
                .collect();
            let more = worst.len().saturating_sub(NAMED);
            worst.truncate(NAMED);
            if more > 0 {
                worst.push(format!("and {more} more"));
            }
            writeln!(f, "{:<16} {}  {}", category.name, row.score, worst.join(", "))?;
        }
        Ok(())
    }
}
