//! RoCE packets turned into flows, timelines and events.
//!
//! The analysis knows no file, no clock and no screen: packets go in, in the order of time, and rows come out when they
//! can no longer change. What several taps saw of one flow is matched; [`clocks`] compares the clocks of captures before
//! they are merged.

mod analysis;
mod bins;
mod collect;
mod congestion;
mod counts;
mod credits;
mod division;
mod hash;
mod inband;
mod key;
mod mrc;
mod pair_places;
mod pairing;
mod psn;
mod rows;
mod spare;
mod table;
mod taps;
mod timing;
mod transport;
mod uet;

pub use analysis::{Analysis, Conclusion, Options, Output};
pub use collect::Collector;
pub use congestion::dcqcn::Parameters as DcqcnParameters;
pub use congestion::dcqcn::parse::ParametersError as DcqcnParametersError;
pub use credits::{CreditsAtTap, JoinedCredits, join as join_credits};
pub use mrc::MrcConclusion;
pub use pairing::host_queue_pairs::{Connection, QueuePairs};
pub use spare::Spare;
pub use taps::clocks;
pub use taps::matching::identity;
