//! sFlow version 5: what switches say of the packets that they sample, 1 of N.
//!
//! [`Payload`] finds a datagram in a captured frame, [`Datagram`] reads it, and [`SampleCollector`] estimates from many of them: packets,
//! bytes, the shares of marks, CNPs and opcodes, and the busiest pairs of hosts, each with the interval in which it lies 19 times of 20.
//! Samples never show losses, retransmissions, the order of packets or the time of one message, so nothing here is about those.
//! Everything is a function of bytes: no files, no sockets, no clocks.
//!
//! A crate was looked for and not taken: sflow-parser 0.7 gives up a whole datagram for one record that it cannot read, allocates what a
//! length claims before it looks whether the bytes are there, and copies each record. The crate sflow 0.0.1 reads no expanded samples.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod agent;
mod collector;
mod datagram;
mod interval;
mod order;
mod payload;
mod source;
mod summary;
mod talkers;
mod tally;

pub use collector::SampleCollector;
pub use datagram::{
    AgentAddress, DataSource, Datagram, Fault, FlowSample, PacketHeader, Port, Sample, Samples,
};
pub use interval::{Estimate, share, total};
pub use payload::{PORT, Payload};
pub use summary::{
    AgentKey, AgentSummary, Estimates, OpcodeShare, Place, SampleCounts, SampleSummary, ShareEstimate,
    TalkerShare,
};
