//! Ports of hosts, as their endpoint requests report them.

use std::collections::HashMap;

use roce_model::{Address, EventKind, EventRow, MrcPortLoss, Packet};

/// Hosts whose ports are remembered, at most.
const MAX_HOSTS: usize = 1 << 16;
/// Lost ports that are kept for findings, at most.
const MAX_LOST: usize = 4096;

/// Ports of all hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    /// The latest report of each host.
    latest: HashMap<Address, u32, foldhash::fast::RandomState>,
    /// Ports that a later report has no more.
    pub(super) lost: Vec<MrcPortLoss>,
}

impl Ports {
    /// A host reports its ports. Only a bit that an earlier report had shows that a port was lost.
    pub(super) fn report(&mut self, packet: &Packet, ports: u32, events: &mut Vec<EventRow>) {
        let host = packet.roce.source;
        if self.latest.len() >= MAX_HOSTS && !self.latest.contains_key(&host) {
            return;
        }
        let before = self.latest.insert(host, ports);
        if before == Some(ports) {
            return;
        }
        events.push(EventRow {
            time: packet.time,
            kind: EventKind::MrcPorts,
            tap: packet.tap,
            value: Some(u64::from(ports)),
            detail: Some(host.to_string().into()),
            ..EventRow::default()
        });
        let lost = before.map_or(0, |before| before & !ports);
        if lost != 0 && self.lost.len() < MAX_LOST {
            self.lost.push(MrcPortLoss {
                host,
                lost,
                time: packet.time,
            });
        }
    }
}
