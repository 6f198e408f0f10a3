//! What a port does: it sends one packet after the other, obeys pauses, and hands on what comes in.

use roce_capture::Direction;

use crate::events::{Event, PacketId, PortId};
use crate::frame::Frame;
use crate::log::Reason;
use crate::packet::{Kind, Packet};
use crate::run::Simulation;
use crate::scenario::{Impairment, Only};
use crate::topology::{LINK_CLASS, Node, Port, Sending};
use crate::units::Time;

/// Priorities that go before all others: network control and CNPs.
const STRICT: [usize; 2] = [7, 6];
/// The priorities below, which take turns.
const TURNS: usize = 6;

impl Port {
    /// Whether a priority must not be sent now.
    pub(crate) fn is_paused(&self, priority: u8, now: Time) -> bool {
        self.paused_until[usize::from(priority)] > now || self.paused_until[usize::from(LINK_CLASS)] > now
    }

    /// The next packet of its queues: pause frames, then network control, then the others in turn.
    fn choose(&mut self, now: Time) -> Option<PacketId> {
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
        let packet = *self.pool.of(packet_id);
        let port = &mut self.topology.ports[id.index()];
        let time = port.rate.time_of(u64::from(packet.bytes + Frame::LINE_OVERHEAD));
        let (peer, delay) = (port.peer, port.delay);
        port.busy = true;
        if matches!(node, Node::Switch(_)) && packet.kind != Kind::Pause {
            port.sending = Some(Sending {
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
        self.events.at(
            arrives,
            Event::Arrive {
                port: peer,
                packet: packet_id,
            },
        );
    }

    /// What a link does to a packet: `None` when it loses it, or how much longer it takes.
    fn impair(&mut self, id: PortId, packet_id: PacketId) -> Option<Time> {
        let mut more = Time::ZERO;
        for place in 0..self.topology.ports[id.index()].impairments.len() {
            let index = self.topology.ports[id.index()].impairments[place] as usize;
            let Some(table) = self.scenario.impairment.get(index) else {
                continue;
            };
            let packet = *self.pool.of(packet_id);
            if !applies(table, &packet, self.now) {
                continue;
            }
            let state = &mut self.impairments[index];
            let number = state.seen;
            state.seen += 1;
            if state.stream.happens(table.loss) || table.drop.contains(&number) {
                self.drop_packet(packet_id, id, Reason::Random);
                return None;
            }
            if state.stream.happens(table.corrupt) {
                self.pool.change(packet_id).damage();
            }
            if state.stream.happens(table.reorder) {
                more = more.plus(table.reorder_delay);
                self.log.delayed(&packet);
            }
        }
        Some(more)
    }

    /// The last bit of a packet has left a port.
    pub(crate) fn sent(&mut self, id: PortId) {
        let port = &mut self.topology.ports[id.index()];
        port.busy = false;
        if let Node::Switch(switch) = port.node {
            self.release(switch, id);
        }
        self.transmit(id);
    }

    /// The last bit of a packet came in at a port.
    pub(crate) fn arrive(&mut self, id: PortId, packet: PacketId) {
        self.pass(id, packet, Direction::Inbound);
        if self.pool.of(packet).kind == Kind::Pause {
            let pause = self.pool.take(packet);
            self.obey_pause(id, &pause.frame);
            return;
        }
        match self.topology.ports[id.index()].node {
            Node::Switch(switch) => self.forward(switch, id, packet),
            Node::Host(host) => self.receive(host, id, packet),
        }
    }
}

/// Whether an impairment is for a packet.
fn applies(table: &Impairment, packet: &Packet, now: Time) -> bool {
    if now < table.begin || table.end.is_some_and(|end| now >= end) {
        return false;
    }
    match table.only {
        Only::All => packet.kind != Kind::Pause,
        Only::Data => packet.kind.is_data(),
        Only::Ack => matches!(packet.kind, Kind::Ack | Kind::Nak | Kind::RnrNak | Kind::FatalNak),
        Only::Cnp => packet.kind == Kind::Cnp,
    }
}
