//! Samples: numbers that something outside of the packets counts or shows, as time series.
//!
//! Hosts, switches, hypervisors and GPUs are read from time to time. Every reading gives [`Sample`]s in base units. [`SampleSeries`]
//! compares each with the one before, by one set of rules for wraps, resets, gauges and absence, and gives rows of the table `samples`.

mod counter;
mod series;

use std::borrow::Cow;
use std::sync::Arc;

use crate::Nanos;
use crate::table::table;

pub use counter::{Counter, SampleKind};
pub use series::{SampleSeries, has_wrapped};

/// Who was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SampleSource {
    /// A host's own devices, or a recording of them.
    Host,
    /// A switch.
    Switch,
    /// A hypervisor.
    Hypervisor,
    /// A GPU.
    Gpu,
    /// The report of a traffic generator.
    Tool,
}

impl SampleSource {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Switch => "switch",
            Self::Hypervisor => "hypervisor",
            Self::Gpu => "gpu",
            Self::Tool => "tool",
        }
    }
}

/// An integer that was read, as a value: exact up to 2^53, which a count of bytes at 400 Gbit/s reaches in two days; then rounded to
/// the next few bytes.
#[expect(
    clippy::cast_precision_loss,
    reason = "a counter of more than 2^53 is read to 16 digits"
)]
pub fn value_of(count: u64) -> f64 {
    count as f64
}

/// One number of one reading.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// When it was read, on the clock of the host that analyses.
    pub time: Nanos,
    /// Who was read.
    pub source: SampleSource,
    /// The name of the host, switch or hypervisor.
    pub node: Arc<str>,
    /// The part that counts: `mlx5_0:1` (device and port), `ens1f0np0`, `Ethernet1/1/1`, `vmnic5`, `gpu0`.
    pub object: Arc<str>,
    /// The quantity.
    pub counter: Counter,
    /// The priority (0 to 7), where the quantity is counted by priority.
    pub priority: Option<u8>,
    /// The queue, where the quantity is counted by queue.
    pub queue: Option<Arc<str>>,
    /// The values of [`Counter::labels`], in their order.
    pub details: Vec<Cow<'static, str>>,
    /// The value in the counter's base unit. Integers over 2^53 are rounded.
    pub value: f64,
    /// The width of the register in bits, for wraps: 32 or 64.
    pub bits: u8,
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    SampleRow, SampleColumns, "samples", "One number that a host, switch, hypervisor or GPU counts or shows, at one reading.";
    time: Nanos, "ns", "When it was read, on the clock of the host that analyses.";
    source: &'static str, "", "Who was read: host, switch, hypervisor, gpu, tool.";
    node: Cow<'static, str>, "", "The name of the host, switch or hypervisor.";
    object: Cow<'static, str>, "", "The part that counts: an RDMA device and its port (`mlx5_0:1`), a network interface, a switch's interface, a GPU.";
    counter: &'static str, "", "The quantity, by one name for all drivers.";
    priority: Option<u8>, "", "The priority, 0 to 7. Absent where the quantity is not counted by priority.";
    queue: Option<Cow<'static, str>>, "", "The queue. Absent where the quantity is not counted by queue.";
    detail: Option<Cow<'static, str>>, "", "The quantity's further labels (operation, direction, reason), joined by commas; of counters without a common name, the driver's name.";
    kind: &'static str, "", "cumulative (a count that only a reset lowers) or gauge (a present value).";
    value: f64, "", "The value read, in `unit`.";
    change: Option<f64>, "", "By how much a cumulative counter rose since the reading before, wraps and resets taken into account. Absent for gauges and for the first reading.";
    interval_ns: Option<u64>, "ns", "Time since the reading before. Absent for the first reading.";
    unit: &'static str, "", "Base unit: packets, frames, bytes, s, ratio, celsius, W, Hz, ...";
    reset: bool, "", "The counter fell since the reading before and did not wrap: a driver was loaded again, or somebody cleared it.";
}
