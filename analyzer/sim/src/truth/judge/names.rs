//! Names of the truth for the numbers and kinds in a run's log.

use crate::engine::run::Simulation;
use crate::network::packet::Kind;
use crate::record::observer;
use crate::truth::{PacketKind, TriggerKind};
use crate::workload::requester::Trigger;
/// Names for the numbers in the log.
pub(super) struct Names {
    pub(super) flows: Vec<String>,
    pub(super) taps: Vec<String>,
}

impl Names {
    pub(super) fn new(simulation: &Simulation<'_>) -> Self {
        Self {
            flows: simulation.keys.iter().map(|key| key.id().to_string()).collect(),
            taps: simulation
                .scenario
                .tap
                .iter()
                .map(|table| observer::tap_name(table).to_owned())
                .collect(),
        }
    }

    pub(super) fn flow(&self, flow: u32) -> String {
        self.flows.get(flow as usize).cloned().unwrap_or_default()
    }

    /// The taps whose bits are set.
    pub(super) fn taps(&self, mask: u64) -> Vec<String> {
        let places = (0..self.taps.len()).filter(|place| mask >> place & 1 != 0);
        places.map(|place| self.taps[place].clone()).collect()
    }
}

/// A kind of packet in words. Pause frames do not come here.
pub(super) fn kind(kind: Kind) -> PacketKind {
    match kind {
        Kind::Request => PacketKind::Request,
        Kind::ReadRequest => PacketKind::ReadRequest,
        Kind::ReadResponse => PacketKind::ReadResponse,
        Kind::Ack => PacketKind::Ack,
        Kind::Nak | Kind::FatalNak => PacketKind::Nak,
        Kind::RnrNak => PacketKind::RnrNak,
        Kind::Cnp => PacketKind::Cnp,
        Kind::Datagram => PacketKind::Datagram,
        Kind::Management | Kind::Pause => PacketKind::Management,
    }
}

/// A trigger in words.
pub(super) fn trigger(trigger: Trigger) -> TriggerKind {
    match trigger {
        Trigger::Nak => TriggerKind::Nak,
        Trigger::ImpliedNak => TriggerKind::ImpliedNak,
        Trigger::Rnr => TriggerKind::Rnr,
        Trigger::Timeout => TriggerKind::Timeout,
    }
}
