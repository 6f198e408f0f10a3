//! Simulation of MRC: senders that spread packets over the paths of several planes, receivers that acknowledge selectively, and what
//! becomes of packets between them.
//!
//! Written after section 1 of the specification's public descriptions, not after any analysis of it.

#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers of paths, ports, messages and drawn bits are below 2^32"
)]

pub(crate) mod evs;
pub(crate) mod log;
pub(crate) mod receiver;
pub(crate) mod run;
pub(crate) mod sender;
mod steps;
