//! RoCE packets turned into flows, timelines and events.
//!
//! The analysis knows no file, no clock and no screen: packets go in, in the order of time, and rows come out when they
//! can no longer change. What one direction of traffic shows is counted here; who belongs to whom is not.

mod analysis;
mod asked;
mod bins;
mod cnp;
mod collect;
mod copies;
mod counts;
mod distribution;
mod holes;
mod messages;
mod requests;
mod responses;
mod state;
mod table;

pub use analysis::{Analysis, Conclusion, Options, Output};
pub use collect::Collector;
