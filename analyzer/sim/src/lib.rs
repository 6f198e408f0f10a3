//! Captures of RoCE traffic whose truth is known.
//!
//! The lower half makes bytes: [`mod@frame`] describes frames by plain values, [`mod@tap`] records them as a capturing host
//! or a mirroring switch would: with a clock of its own, a snaplen, and losses. [`mod@random`] gives each part of a
//! simulation its own reproducible numbers.
//!
//! The upper half decides which frames there are: [`simulate`] runs a [`Scenario`], a discrete-event simulation of hosts,
//! links and switches, writes the captures of its taps, and returns the [`Truth`]: what happened, and what
//! each tap could see of it. What an analysis makes of a capture is for those who read it.
//!
//! ```
//! use roce_sim::{Scenario, simulate_in_memory};
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     duration = "1ms"
//!     network = { hosts = 2, rate = "25Gbps" }
//!     flow = [{ from = "h1", to = "h2", message = "64KiB" }]
//!     tap = [{ at = "h2" }]
//!     "#,
//! )?;
//! let (truth, captures) = simulate_in_memory(&scenario)?;
//! assert_eq!(truth.losses.len(), 0);
//! assert_eq!(captures[0].name, "h2");
//! # Ok::<(), roce_sim::Error>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod counters;
mod engine;
mod error;
mod mrc;
mod network;
mod record;
mod simulate;
mod workload;

pub mod dcqcn;
pub mod demos;
pub mod scenario;
pub mod truth;
pub mod units;

pub use counters::Counters;
pub use error::Error;
pub use record::{frame, tap};
pub use roce_model::random;
pub use scenario::Scenario;
pub use simulate::{Capture, OutputPlan, simulate, simulate_in_memory, simulate_with_counters};
pub use truth::Truth;
