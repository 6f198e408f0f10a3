//! Traffic between hosts: a plan says which streams run, checks say what is wrong with it, command lines start its tools, and their
//! logs say what became of each stream.
//!
//! Nothing is started here, and no host is asked.

mod check;
mod command;
mod log;
mod pattern;
mod plan;
mod stream;

pub use check::{Concern, Gravity, Load, MAX_DURATION, Speeds, concerns, loads};
pub use command::{Facts, words};
pub use log::{LogState, log_state};
pub use pattern::{Pattern, PatternError, written};
pub use plan::{Endpoint, MAX_STREAMS, Pair, PlanError, PortRange, Report, StreamSize, Tool, TrafficPlan};
pub use stream::{Role, Stream, streams};

#[cfg(test)]
mod tests;
