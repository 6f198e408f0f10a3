//! Why a sender began a run of retransmissions: the cause whose delays fit best.
//!
//! Each cause has a weight: how often it occurs, and how well the time since it fits the times that such causes take between the two
//! hosts. The share of a cause among all weights is its probability. The times are learned from the runs themselves, by
//! expectation and maximisation (Dempster, Laird, Rubin 1977): whatever was captured before, equal packets have equal causes.

mod circumstances;
mod density;
mod host_pairs;
mod learned;

pub(crate) use circumstances::{Circumstances, MAX_WAITS, NamedPsn, Waits, keep_longest};
pub(crate) use host_pairs::HostPairTimes;
pub(crate) use learned::CauseFound;
