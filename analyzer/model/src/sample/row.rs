//! The table `samples`.

use std::borrow::Cow;

use crate::table::table;
use crate::{CounterChange, HostChange, HostEvent, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    SampleRow, SampleColumns, "samples", "One number that a host, switch, hypervisor or GPU counts or shows, at one reading.";
    time: Time, "ns", "When it was read, on the clock of the host that analyses.";
    source: &'static str, "", "Who was read: host, switch, hypervisor, gpu, tool.";
    node: Cow<'static, str>, "", "The name of the host, switch or hypervisor.";
    object: Cow<'static, str>, "", "The part that counts: an RDMA device and its port (`mlx5_0:1`), a network interface, a switch's interface, a GPU.";
    counter: &'static str, "", "The quantity, by one name for all drivers.";
    priority: Option<u8>, "", "The priority, 0 to 7. Absent where the quantity is not counted by priority.";
    queue: Option<Cow<'static, str>>, "", "The queue. Absent where the quantity is not counted by queue.";
    detail: Option<Cow<'static, str>>, "", "The quantity's further labels (operation, direction, reason), joined by commas; of counters without a common name, the driver's name.";
    kind: &'static str, "", "cumulative (a count that only a reset lowers) or gauge (a present value).";
    value: f64, "", "The value read, in `unit`.";
    change: Option<f64>, "", "By how much a cumulative counter rose since the reading before, wraps and resets taken into account. Absent for gauges, for the first reading, where a register of 32 bits can have wrapped more than once at the port's rate, and where its device restarted and the value does not tell.";
    interval_ns: Option<u64>, "ns", "Time since the reading before. Absent for the first reading.";
    unit: &'static str, "", "Base unit: packets, frames, bytes, s, ratio, celsius, W, Hz, ...";
    reset: bool, "", "The counter began again since the reading before: it fell and did not wrap, or its device restarted. A driver was loaded again, or somebody cleared it.";
}

impl SampleRow {
    /// The event that a change is; `None` where the row has no change.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a change is never negative; one beyond 64 bits is the largest"
    )]
    pub fn event(&self, change: CounterChange) -> Option<HostEvent> {
        let by = self.change?.round() as u64;
        Some(HostEvent {
            time: self.time,
            device: Some(self.object.as_ref().into()),
            process: None,
            what: HostChange::Counter {
                change,
                name: self.counter.into(),
                priority: self.priority,
                detail: self.detail.as_deref().map(Into::into),
                by,
            },
        })
    }
}
