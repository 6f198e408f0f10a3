//! Datagrams into estimates, wherever they come from.

use std::net::IpAddr;

use roce_model::Time;
use roce_sflow::{Fault, SampleCollector};

use crate::output::messages;

/// Datagrams, and the first thing in them that is not as the specification has it.
#[derive(Default)]
pub(super) struct DatagramReader {
    /// Everything that could be read.
    pub(super) collector: SampleCollector,
    first_fault: Option<(String, Fault)>,
    faults: u64,
    /// Datagrams that the capture cut.
    pub(super) cut: u64,
}

impl DatagramReader {
    /// Adds a datagram; `place` says where it was, if something is wrong with it.
    pub(super) fn add(&mut self, time: Time, sender: IpAddr, bytes: &[u8], place: impl FnOnce() -> String) {
        if let Err(fault) = self.collector.add(time, sender, bytes) {
            self.faults += 1;
            self.first_fault.get_or_insert_with(|| (place(), fault));
        }
    }

    /// Says what is wrong with datagrams.
    pub(super) fn say(&self) {
        if let Some((place, fault)) = &self.first_fault {
            let others = match self.faults - 1 {
                0 => String::new(),
                others => format!("; and {others} more datagrams"),
            };
            messages::warn(place, &format!("{fault}{others}"));
        }
        if self.cut > 0 {
            messages::warn(
                "sFlow",
                &format!(
                    "{} datagrams are cut by the capture\nhint: capture whole frames (tcpdump -s 0)",
                    self.cut
                ),
            );
        }
    }
}
