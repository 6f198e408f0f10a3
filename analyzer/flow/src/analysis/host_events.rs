//! Hosts' reports: rows of events, connections between queue pairs that they name, and the processes
//! behind them.

use std::borrow::Cow;

use roce_model::{FlowKey, FlowRow, HostReport, PacketProcess, TapId, Time};
use roce_wire::{Qpn, Service};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::pairing::evidence::PairingEvidence;
use crate::pairing::host_queue_pairs::Connection;
use crate::psn::request::NewConnection;

impl Analysis {
    /// Something that a host reports.
    pub(super) fn host(&mut self, report: &HostReport) {
        let event = &report.event;
        self.advance_to(event.time);
        if report.reported {
            // A host is no tap: its events belong to the first one.
            self.bins.events.push(event.row(TapId(0), None));
        }
        if let Some(connection) = self.connections.queue_pairs.take(event) {
            self.connected_by_host(&connection, event.time);
        }
    }

    /// A capture names the process of a packet.
    pub(super) fn named(&mut self, found: &PacketProcess) {
        self.connections.queue_pairs.named(&found.flow, &found.process);
    }

    /// A queue pair got a connection: earlier flows for it start again, and have a peer. Reports may
    /// come later than packets: a flow that has started since is of this connection.
    fn connected_by_host(&mut self, connection: &Connection, time: Time) {
        for tap in (0..self.taps.count).map(TapId) {
            for service in [Service::Rc, Service::Uc, Service::Xrc] {
                let to_this_host = FlowKey {
                    source: connection.remote,
                    destination: connection.local,
                    destination_qpn: connection.local_qpn,
                    source_qpn: Qpn::default(),
                    vlan: None,
                    vni: None,
                    service,
                };
                let Some(at) = self.table.find_key(tap, &to_this_host) else {
                    continue;
                };
                let cold = &mut self.table.cold[at];
                if cold.first_time < time {
                    let connected = NewConnection {
                        reason: "the host made a new connection",
                        first: connection.first,
                    };
                    let hot = &mut self.table.hot[at];
                    cold.tracker.connect(&mut hot.requests, connected);
                }
                self.link_as_reported(at, time);
            }
        }
    }

    /// Links a flow to the one that its host says is its other direction, when that is there. What the host says is stronger than what
    /// packets show.
    pub(super) fn link_as_reported(&mut self, at: FlowSlot, time: Time) {
        let key = &self.table.cold[at].key;
        let is_connected = matches!(key.service, Service::Rc | Service::Uc | Service::Xrc);
        let Some(reported) = self
            .connections
            .queue_pairs
            .reported(key)
            .filter(|_| is_connected)
        else {
            return;
        };
        let other = FlowKey {
            source: key.destination,
            destination: key.source,
            destination_qpn: reported.peer,
            ..*key
        };
        let tap = self.table.hot[at].tap;
        let found = self.table.find_key(tap, &other).filter(|other| *other != at);
        let how = self.table.cold[at].peering.link().map(|link| link.how);
        let is_said = matches!(how, Some(PairingEvidence::Cm | PairingEvidence::Host));
        if let Some(other) = found
            && (self.table.hot[at].peer != other || !is_said)
        {
            self.link(at, other, PairingEvidence::Host, None, time);
        }
    }

    /// Names the process behind a flow that closes.
    pub(super) fn name_process(&self, key: &FlowKey, row: &mut FlowRow) {
        let Some(process) = self.connections.queue_pairs.process(key) else {
            return;
        };
        row.pid = Some(process.pid);
        row.comm = (!process.comm.is_empty()).then(|| Cow::Owned(process.comm.to_string()));
        row.cgroup = (process.cgroup != 0).then_some(process.cgroup);
    }
}
