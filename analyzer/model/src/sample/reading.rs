//! A sample: one number of one reading.

use std::borrow::Cow;
use std::sync::Arc;

use super::counter::Counter;
use crate::Time;

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
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Host, Self::Switch, Self::Hypervisor, Self::Gpu, Self::Tool];

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
    pub time: Time,
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
