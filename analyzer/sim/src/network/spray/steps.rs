//! Steps of a run: paths of sprayed packets.

use crate::engine::events::{Event, PacketId, PortId};
use crate::engine::run::Simulation;
use crate::network::topology::Node;
use crate::record::frame::Frame;
use crate::scenario::Topology;
use crate::units::Picos;

impl Simulation<'_> {
    /// A packet comes from a host into a switch where the paths begin. Returns whether it went into one of them.
    pub(crate) fn spray(&mut self, switch: u32, ingress: PortId, id: PacketId) -> bool {
        let Some(state) = &mut self.spray else {
            return false;
        };
        let packet = *self.pool.packet(id);
        let peer = self.topology.ports[ingress.index()].peer;
        let Node::Host(from) = self.topology.ports[peer.index()].node else {
            return false;
        };
        let ways = self.topology.switches[switch as usize]
            .routes
            .get(packet.to as usize);
        // Two hosts of one leaf have one path: through the leaf.
        if self.scenario.network.topology == Topology::LeafSpine
            && ways
                .and_then(|ways| ways.first())
                .is_none_or(|way| self.topology.host_behind(*way).is_some())
        {
            return false;
        }
        let (path, exit) = state.send(from, &packet, self.now);
        self.pool.change(id).path = path;
        self.events.at(
            exit,
            Event::OutOfPath {
                switch,
                ingress,
                packet: id,
            },
        );
        true
    }

    /// A packet has left a host whose cable leads to another host: when it comes out of the paths in the cable, if there
    /// are any.
    pub(crate) fn spray_cable(&mut self, port: PortId, id: PacketId, arrives: Picos) -> Option<Picos> {
        let state = self.spray.as_mut()?;
        let (own, peer) = (
            &self.topology.ports[port.index()],
            self.topology.ports[port.index()].peer,
        );
        let (Node::Host(from), Node::Host(_)) = (own.node, self.topology.ports[peer.index()].node) else {
            return None;
        };
        let packet = *self.pool.packet(id);
        if packet.kind == crate::network::packet::Kind::Pause {
            return None;
        }
        let (path, exit) = state.send(from, &packet, arrives);
        self.pool.change(id).path = path;
        Some(exit)
    }

    /// A packet comes out of the paths in a cable: packets arrive one after the other, at the rate of the link.
    pub(crate) fn merge(&mut self, port: PortId, id: PacketId) {
        let bytes = u64::from(self.pool.packet(id).bytes + Frame::LINE_OVERHEAD);
        let state = &mut self.topology.ports[port.index()];
        let arrives = self.now.max(state.merged.plus(state.rate.time_of(bytes)));
        state.merged = arrives;
        self.events.at(arrives, Event::Arrive { port, packet: id });
    }
}
