//! A part of the table: what holds over all seeds holds over these.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use roce_truth::{Case, Table};

/// What is to be reached of each category: precision and recall.
const FLOORS: [(&str, f64, f64); 10] = [
    ("pairing", 0.99, 0.99),
    ("loss class", 0.99, 0.99),
    ("lost downstream", 0.99, 0.99),
    ("READ responses", 0.99, 0.99),
    ("resend trigger", 0.99, 0.99),
    ("CNP attribution", 0.99, 0.99),
    ("episodes", 0.99, 0.99),
    ("findings", 0.99, 0.99),
    ("clean traffic", 1.0, 1.0),
    ("clocks", 0.99, 0.99),
];

#[test]
fn the_analysis_tells_what_happened() {
    let mut table = Table::default();
    for seed in 1..=24 {
        let folder = tempfile::tempdir().unwrap();
        table.add(&Case::run(seed, folder.path()).unwrap());
    }
    for (name, precision, recall) in FLOORS {
        let score = table.score(name).unwrap();
        assert!(
            score.precision() >= precision,
            "{name}: precision {}\n{table}",
            score.precision()
        );
        assert!(
            score.recall() >= recall,
            "{name}: recall {}\n{table}",
            score.recall()
        );
    }
}
