//! RoCE packets turned into flows, timelines and events.
//!
//! The analysis knows no file, no clock and no screen: packets go in, in the order of time, and rows come out when they
//! can no longer change. What several taps saw of one flow is matched; [`clocks`] compares the clocks of captures before
//! they are merged.

mod analysis;
mod asked;
mod bins;
pub mod clocks;
mod cnp;
mod collect;
mod congestion;
mod copies;
mod counts;
mod crossings;
mod dcqcn;
mod distribution;
mod holes;
mod marks;
mod messages;
mod outstanding;
mod pace;
mod pairing;
mod pauses;
mod ports;
mod promises;
mod queue_pairs;
mod reads;
mod requests;
mod responses;
mod state;
mod table;
mod times;
mod vantage;

pub use analysis::{Analysis, Conclusion, Options, Output};
pub use collect::Collector;
pub use crossings::identity;
pub use dcqcn::{Parameters as DcqcnParameters, ParametersError as DcqcnParametersError};
pub use queue_pairs::{Connection, QueuePairs};
