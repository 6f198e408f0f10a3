//! Ports: a port sends one packet after the other, obeys pauses, and emits the packets that come in.

use roce_capture::Direction;

use crate::engine::events::{Event, PacketId, PortId};
use crate::engine::run::Simulation;
use crate::network::packet::Kind;
use crate::network::topology::{LINK_CLASS, Node, Port, SendingPacket};
use crate::record::frame::Frame;
use crate::units::Picos;

/// Priorities that go before all others: network control and CNPs.
const STRICT: [usize; 2] = [7, 6];
/// The priorities below, which take turns.
const TURNS: usize = 6;

impl Port {
    /// True if a priority must not be sent now.
    pub(crate) fn is_paused(&self, priority: u8, now: Picos) -> bool {
        self.paused_until[usize::from(priority)] > now || self.paused_until[usize::from(LINK_CLASS)] > now
    }

    /// The next packet of its queues: pause frames, then network control, then the others in turn.
    fn choose(&mut self, now: Picos) -> Option<PacketId> {
        if let Some(id) = self.control.pop_front() {
            return Some(id);
        }
        let free = |port: &Self, queue: usize| {
            !port.queues[queue].is_empty() && !port.is_paused(u8::try_from(queue).unwrap_or(0), now)
        };
        let strict = STRICT.into_iter().find(|queue| free(self, *queue));
        let queue = strict.or_else(|| {
            let turn = self.turn;
            let next = (1..=TURNS)
                .map(|step| (turn + step) % TURNS)
                .find(|queue| free(self, *queue));
            if let Some(queue) = next {
                self.turn = queue;
            }
            next
        })?;
        self.queues[queue].pop_front()
    }
}

impl Simulation<'_> {
    /// Sends the next packet of a port, if it is idle and may.
    pub(crate) fn transmit(&mut self, id: PortId) {
        let now = self.now;
        let port = &mut self.topology.ports[id.index()];
        if port.busy {
            return;
        }
        let node = port.node;
        let chosen = port.choose(now).or_else(|| match node {
            Node::Host(host) => self.pull(host),
            Node::Switch(_) => None,
        });
        let Some(packet_id) = chosen else { return };
        self.pass(id, packet_id, Direction::Outbound);
        let packet = *self.pool.packet(packet_id);
        let port = &mut self.topology.ports[id.index()];
        port.count.sends(&packet, matches!(node, Node::Host(_)));
        let time = port.rate.time_of(u64::from(packet.bytes + Frame::LINE_OVERHEAD));
        let delay = port.delay;
        port.busy = true;
        if matches!(node, Node::Switch(_)) && packet.kind != Kind::Pause {
            port.sending = Some(SendingPacket {
                ingress: packet.ingress,
                priority: packet.priority,
                bytes: u64::from(packet.bytes),
            });
        }
        let sent = now.plus(time);
        self.events.at(sent, Event::Sent { port: id });
        let Some(more) = self.impair(id, packet_id) else {
            return;
        };
        let arrives = sent.plus(delay).plus(more);
        self.duplicate(id, packet_id, arrives);
        self.travel(id, packet_id, arrives);
    }

    /// Schedules a packet's arrival at the other end of a port's link, later when it passes several
    /// paths on the way.
    pub(crate) fn travel(&mut self, id: PortId, packet: PacketId, arrives: Picos) {
        let port = self.topology.ports[id.index()].peer;
        match self.spray_cable(id, packet, arrives) {
            Some(exit) => self.events.at(exit, Event::Merge { port, packet }),
            None => self.events.at(arrives, Event::Arrive { port, packet }),
        }
    }

    /// The last bit of a packet has left a port.
    pub(crate) fn sent(&mut self, id: PortId) {
        let port = &mut self.topology.ports[id.index()];
        port.busy = false;
        match port.node {
            Node::Switch(switch) => self.release(switch, id),
            Node::Host(host) => {
                if let Some(end) = self.hosts[host as usize].leaves.take() {
                    self.ends_packet(end);
                }
            }
        }
        self.transmit(id);
    }

    /// The last bit of a packet came in at a port.
    pub(crate) fn arrive(&mut self, id: PortId, packet: PacketId) {
        self.pass(id, packet, Direction::Inbound);
        let is_host = self.is_host_port(id);
        let count = &mut self.topology.ports[id.index()].count;
        count.receives(self.pool.packet(packet), is_host);
        if self.pool.packet(packet).kind == Kind::Pause {
            let pause = self.pool.take(packet);
            self.obey_pause(id, &pause.frame);
            return;
        }
        match self.topology.ports[id.index()].node {
            Node::Switch(switch) => {
                if !self.spray(switch, id, packet) {
                    self.forward(switch, id, packet);
                }
            }
            Node::Host(host) => self.receive(host, id, packet),
        }
    }
}
