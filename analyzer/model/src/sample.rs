//! Samples: numbers that something outside of the packets counts or shows, as time series.
//!
//! Hosts, switches, hypervisors and GPUs are read from time to time. Every reading gives [`Sample`]s in base units. [`SampleSeries`]
//! compares each with the one before, by one set of rules for wraps, resets, gauges and absence, and gives rows of the table `samples`.

mod counter;
mod reading;
mod row;
mod series;
mod start;

pub use counter::{Counter, CounterChange, SampleKind};
pub use reading::{Sample, SampleSource, value_of};
pub use row::{SampleColumns, SampleRow};
pub use series::{SampleSeries, repeated};
pub use start::SystemStart;
