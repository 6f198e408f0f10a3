//! A part of the table: what holds over all seeds holds over these.

#![allow(clippy::print_stderr, reason = "the table says what to look at")]

use roce_truth::{Family, REACH, Score, Table, cause_of, family_of, mrc_of, run_all};

/// Captures of the part: the scenarios of the first seeds, each family in turn.
const CASES: u64 = 442;
/// Captures with one cause each: five of each family.
const CAUSES: u64 = 110;

/// Precision and recall that hold today, a little below what was measured. What is to be reached is in `REACH`; a class
/// that has reached it is asserted by it, and leaves this list.
const HOLDS: [(&str, f64, f64); 9] = [
    ("healthy", 0.0, 1.0),
    ("pairing", 0.997, 0.99),
    ("network lost", 0.99, 0.97),
    ("reordered", 0.99, 0.99),
    ("lost downstream", 0.98, 0.94),
    ("READ responses lost", 0.99, 0.58),
    ("hops lost", 0.995, 0.98),
    ("trigger nak", 0.97, 0.97),
    ("trigger rnr", 0.99, 0.99),
];

/// Families in which a class does not reach `HOLDS` yet. All others have to reach it without them. A line whose family reaches it
/// has to go.
const OPEN: [(&str, &str); 1] = [
    // Packets that a mirror's stamps put out of order count as overtaking in the network.
    ("reordered", "late-mirror"),
];

/// Floors for captures with one cause each.
const CAUSES_HOLD: [(&str, f64, f64); 4] = [
    ("healthy", 0.0, 1.0),
    ("connection ends", 1.0, 0.81),
    ("time by state", 0.77, 0.77),
    ("root named first", 1.0, 0.67),
];

/// Captures of MRC: every second one is healthy.
const MRC: u64 = 100;

/// Floors for captures of MRC. What is decided is a share: of packets that were sent again after a hole or a timeout the packets of the
/// senders do not always show if they were lost or late.
const MRC_HOLD: [(&str, f64, f64); 7] = [
    ("MRC healthy", 0.0, 1.0),
    ("MRC lost", 0.999, 0.999),
    ("MRC lost, counts", 0.999, 0.999),
    ("MRC decided", 0.0, 0.9),
    ("MRC paths of losses", 0.999, 0.999),
    ("MRC trimmed", 0.999, 0.999),
    ("MRC causes", 0.999, 0.999),
];

fn run(list: &[(&'static Family, u64)]) -> Table {
    let mut table = Table::default();
    for outcome in run_all(list, 2, None) {
        table.add(&outcome);
    }
    eprintln!("{table}");
    assert!(table.failed().is_empty(), "{table}");
    table
}

fn assert_floor(class: &str, score: &Score, (precision, recall): (f64, f64)) {
    assert!(!score.is_empty(), "{class}: nothing to compare");
    assert!(
        score.precision() >= precision && score.recall() >= recall,
        "{class}: precision {:.4} of {precision}, recall {:.4} of {recall}",
        score.precision(),
        score.recall()
    );
}

#[test]
fn the_analysis_names_the_cause() {
    let table = run(&(1..=CAUSES)
        .map(|seed| (cause_of(seed), seed))
        .collect::<Vec<_>>());
    for (class, precision, recall) in CAUSES_HOLD {
        assert_floor(class, &table.scores().get(class), (precision, recall));
    }
}

#[test]
fn the_analysis_follows_packets_of_mrc() {
    let table = run(&(1..=MRC).map(|seed| (mrc_of(seed), seed)).collect::<Vec<_>>());
    for (class, precision, recall) in MRC_HOLD {
        assert_floor(class, &table.scores().get(class), (precision, recall));
    }
}

#[test]
fn the_analysis_says_what_happened() {
    let table = run(&(1..=CASES)
        .map(|seed| (family_of(seed), seed))
        .collect::<Vec<_>>());
    for (class, precision, recall) in HOLDS {
        let is_open = |family: &str| OPEN.contains(&(class, family));
        let score = table.score_of(class, |family| !is_open(family));
        assert_floor(class, &score, (precision, recall));
    }
    for (class, family) in OPEN {
        let floor = HOLDS.iter().find(|(name, ..)| *name == class);
        let score = table.score_of(class, |other| other == family);
        assert!(
            floor.is_some_and(
                |(_, precision, recall)| score.precision() < *precision || score.recall() < *recall
            ),
            "{class} holds in {family} now: its line in OPEN has to go"
        );
    }
    // Each floor has something to be compared with in this part.
    for reach in REACH {
        assert!(!table.scores().get(reach.class).is_empty(), "{}", reach.class);
    }
}
