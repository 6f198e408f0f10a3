//! Congestion: how flows react to marks and notifications, and what pauses took from them.

pub(crate) mod cnp_receivers;
pub(crate) mod dcqcn;
pub(crate) mod pauses;
pub(crate) mod progress;
pub(crate) mod reaction;
pub(crate) mod recent_marks;
