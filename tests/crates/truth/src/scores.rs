//! The scores of a case by class: of one class each kind of thing that the analysis says.

use std::collections::BTreeMap;

use roce_sim::truth::TimeState;

use crate::score::Score;

/// Nanoseconds by true state and said state.
pub type Confusion = BTreeMap<(TimeState, TimeState), u64>;

/// The classes in the order of the table; `finding ID` follows, one class for each id.
pub const CLASSES: &[&str] = &[
    "healthy",
    "false warnings",
    "pairing",
    "network lost",
    "network lost, counts",
    "reordered",
    "capture lost",
    "lost downstream",
    "READ responses lost",
    "READ requests lost",
    "READ responses missing",
    "hops lost",
    "hops not captured",
    "retransmitted packets",
    "late packets",
    "network duplicates",
    "mirror copies",
    "trigger nak",
    "trigger timeout",
    "trigger implied_nak",
    "trigger rnr",
    "time waited",
    "time by state",
    "connection ends",
    "root named first",
    "root's victims",
    "root's aggressors",
    "CNP attribution",
    "episodes",
    "clocks",
    "pause roots",
    "pause chain",
    "pause shares",
    "ECMP collisions",
    "late: root",
    "late: place",
    "late: cost",
    "late: healthy",
    "late: one capture",
    "MRC healthy",
    "MRC lost",
    "MRC lost, counts",
    "MRC paths of losses",
    "MRC trimmed",
    "MRC causes",
];

/// The score of each class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    by_class: BTreeMap<(usize, String), Score>,
    /// Findings by id, but those of severity `ok`: for the calibration of their confidence.
    pub calibration: BTreeMap<&'static str, Score>,
    /// Findings that nothing in a scenario proves or disproves, by id.
    pub not_judged: BTreeMap<&'static str, u64>,
    /// Time of flows, by the true state and the said one.
    pub confusion: Confusion,
}

impl Scores {
    /// The score of a class, to be added to.
    pub fn of_class(&mut self, class: &str) -> &mut Score {
        self.by_class.entry(key(class)).or_default()
    }

    /// Drops the classes in which there was nothing.
    pub(crate) fn drop_empty(&mut self) {
        self.by_class.retain(|_, score| !score.is_empty());
    }

    /// The score of a class; an empty one when there was nothing.
    pub fn get(&self, class: &str) -> Score {
        self.by_class.get(&key(class)).cloned().unwrap_or_default()
    }

    /// Classes and scores, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Score)> {
        self.by_class
            .iter()
            .map(|((_, class), score)| (class.as_str(), score))
    }

    /// Adds the counts of another case; its notes are left.
    pub fn add(&mut self, other: &Self) {
        for (key, score) in &other.by_class {
            self.by_class.entry(key.clone()).or_default().add(score);
        }
        for (id, score) in &other.calibration {
            self.calibration.entry(id).or_default().add(score);
        }
        for (states, ns) in &other.confusion {
            *self.confusion.entry(*states).or_default() += ns;
        }
        for (id, count) in &other.not_judged {
            *self.not_judged.entry(id).or_default() += count;
        }
    }
}

fn key(class: &str) -> (usize, String) {
    let place = CLASSES.iter().position(|name| *name == class);
    (place.unwrap_or(CLASSES.len()), class.to_owned())
}
