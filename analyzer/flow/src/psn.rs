//! The PSNs of one flow: which packets are missing, late or retransmitted, what the receiver acknowledged, and when a new
//! epoch starts. Each flow is looked at alone here: no file of this folder knows the table of flows.

pub(crate) mod acks;
pub(crate) mod answer;
pub(crate) mod cause;
pub(crate) mod causes;
mod epoch;
pub(crate) mod holes;
pub(crate) mod jump;
mod news;
mod proven_losses;
mod read_awaited;
mod read_hole;
pub(crate) mod read_holes;
mod read_replay;
pub(crate) mod read_responses;
mod read_spans;
pub(crate) mod recent_naks;
mod refilled;
pub(crate) mod reordering;
pub(crate) mod request;
pub(crate) mod run;
mod runs;
mod seldom;
pub(crate) mod tracker;
pub(crate) mod undecided;
