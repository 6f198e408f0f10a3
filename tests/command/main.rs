//! The real command over the captures of the repository: one binary, a module for each thing that is held.
//!
//! Expected numbers come from outside: tshark (`tests/data/golden`), the formats' specifications, arithmetic in comments.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "live")]
mod adapters;
mod annotate;
mod architecture;
mod bounded;
mod captures;
mod cli;
mod command;
mod compare;
#[cfg(feature = "live")]
mod configure;
mod copies;
mod counters;
#[cfg(feature = "parquet")]
mod dataset;
mod demos;
mod devices;
#[cfg(feature = "live")]
mod doctor;
mod documents;
#[cfg(feature = "live")]
mod endpoint;
mod ends;
mod errors;
#[cfg(feature = "live")]
mod evidence;
#[cfg(feature = "live")]
mod extcap;
#[cfg(feature = "live")]
mod fabric;
#[cfg(feature = "live")]
mod fabric_ssh;
#[cfg(feature = "live")]
mod fleet;
#[cfg(feature = "parquet")]
mod fleet_dataset;
#[cfg(feature = "parquet")]
mod folder;
mod golden;
#[cfg(feature = "live")]
mod gpus;
#[cfg(feature = "live")]
mod hca;
#[cfg(feature = "live")]
mod host;
mod hostile;
#[cfg(feature = "live")]
#[cfg(feature = "sim")]
mod jobs;
#[cfg(feature = "parquet")]
mod killed;
mod limits;
#[cfg(feature = "live")]
mod live;
mod losses;
mod mcp;
mod merge;
#[cfg(feature = "live")]
mod metrics;
mod mrc;
mod mrc_findings;
mod nccl;
#[cfg(feature = "object-store")]
mod objects;
mod old_words;
mod options;
mod order;
mod otlp;
mod packages;
mod pasted;
mod pauses;
mod perfetto;
#[cfg(feature = "live")]
mod plan;
mod pressure;
#[cfg(feature = "live")]
mod probe;
mod processes;
mod programs;
mod query;
mod real;
#[cfg(feature = "live")]
mod replay;
mod report;
#[cfg(feature = "live")]
mod rights;
#[cfg(feature = "live")]
mod samples;
#[cfg(feature = "live")]
mod screen;
#[cfg(feature = "live")]
mod sflow;
mod snapshots;
mod spans;
mod statistics;
#[cfg(feature = "parquet")]
mod stored;
mod taps;
mod terminal;
mod time_states;
mod traffic;
mod transports;
mod triggers;
mod uet;
mod uplinks;
mod variants;
mod version;
