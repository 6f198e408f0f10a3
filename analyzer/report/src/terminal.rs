//! The terminal report: first the verdicts and the episodes, then the capture, congestion, losses and
//! flows, and at the end pauses, training steps, taps and hops.
//!
//! `report` is the sink and the order of the sections. Tables are laid out by `grid`; nothing is coloured before all is
//! laid out (`ink`).

mod about;
mod collectives;
pub mod comparison;
mod counts;
pub(crate) mod devices;
mod draw;
mod ends;
pub(crate) mod episodes;
mod field;
mod grid;
mod inband;
mod ink;
mod live;
mod mrc;
mod page;
mod places;
mod report;
pub(crate) mod samples;
mod screen;
mod shapes;
mod steps;
mod strip;
mod style;
mod summary;
mod table;
mod top;
mod verdicts;
mod view;
mod waits;

pub use live::{CaptureCounts, LiveReport};
pub use page::{Page, Tone};
pub use report::TerminalReport;
pub use screen::{About, Command, Key, RunStanding, Screen};
pub use style::Style;

#[cfg(test)]
mod tests;
