//! Pauses at every level at once: what servers, hypervisors and switches counted before, during and after a command.
//!
//! Use: a [`PauseCollector`] is given every reading when it is made ([`add_samples`](PauseCollector::add_samples) for hosts,
//! [`add_reading`](PauseCollector::add_reading) for switches and hypervisors), and the command's start and end when they happen
//! ([`mark_start`](PauseCollector::mark_start), [`mark_end`](PauseCollector::mark_end)). [`finish`](PauseCollector::finish) takes the
//! inventory and gives [`Pauses`]: rows, pairs of ends, the pattern, the order and the chains. [`pause_text`] makes a table of it for
//! a terminal, [`pause_json`] a document. The collector keeps sums, and two readings for the rules about counters: its memory does not grow
//! with the time.
//!
//! The reading of targets, the command and the files are left to others.

mod chains;
mod collect;
mod document;
mod json;
mod judged;
mod links;
mod order;
mod report;
mod row;
mod text;

use crate::inventory::Inventory;

pub use collect::PauseCollector;
pub use document::{
    Chain, ENDS_DIFFER, JudgedPause, MovedInterval, Pair, PairState, Pattern, PauseTimes, Pauses, Reset, Row,
    Sign,
};
pub use json::pause_json;
pub use row::{Kind, Level, PauseFamily, Unseen};
pub use text::pause_text;

impl PauseCollector {
    /// The result up to now, with the connections of the inventory and of LLDP. The collector can go on.
    pub fn finish(&self, inventory: &Inventory) -> Pauses {
        report::pauses(self, inventory)
    }
}

#[cfg(test)]
mod tests;
