//! Times of messages and answers: latencies, their distribution, and silences.

pub(crate) mod distribution;
pub(crate) mod latency;
pub(crate) mod messages;
pub(crate) mod send_answers;
pub(crate) mod stall;
