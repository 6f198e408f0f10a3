//! The loop of events, random numbers, and the log of a run.

pub(crate) mod events;
pub(crate) mod log;
pub(crate) mod rng;
pub(crate) mod run;
