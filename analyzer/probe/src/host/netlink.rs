//! Optional counters of a port: netlink knows them, sysfs does not.

use std::collections::BTreeSet;
use std::sync::Arc;

use roce_model::{Counter, Sample, SampleSource, Time, value_of};

use crate::rdma::Rdma;

/// A port as netlink describes it.
#[derive(Clone, Debug)]
pub(super) struct NetlinkPort {
    pub(super) device: u32,
    pub(super) port: u32,
    /// Optional counters that are on.
    pub(super) optional: Vec<String>,
}

/// Asks netlink about a port, and notes optional counters that are off.
pub(super) fn netlink_port(
    rdma: &mut Rdma,
    device: &str,
    port: &str,
    notes: &mut BTreeSet<String>,
) -> Option<NetlinkPort> {
    let devices = rdma.devices().ok()?;
    let index = devices.iter().find(|known| known.name == device)?.index;
    let number: u32 = port.parse().ok()?;
    let all = rdma.optional(index, number).ok()?;
    let (on, off): (Vec<_>, Vec<_>) = all.into_iter().partition(|counter| counter.is_on);
    if !off.is_empty() {
        let names: Vec<&str> = off.iter().map(|counter| counter.name.as_str()).collect();
        notes.insert(format!(
            "{device}:{port}: optional counters are off; hint: rdma statistic set link {device}/{port} optional-counters {}",
            names.join(",")
        ));
    }
    (!on.is_empty()).then(|| NetlinkPort {
        device: index,
        port: number,
        optional: on.into_iter().map(|counter| counter.name).collect(),
    })
}

/// The sample of an optional counter.
pub(super) fn optional(time: Time, node: &Arc<str>, object: &Arc<str>, name: String, value: u64) -> Sample {
    Sample {
        time,
        source: SampleSource::Host,
        node: Arc::clone(node),
        object: Arc::clone(object),
        counter: Counter::PortOptionalCounter,
        priority: None,
        queue: None,
        details: vec![name.into()],
        value: value_of(value),
        bits: 64,
    }
}
