//! One end of a connection: its numbers, its requester and responder, its rate; and the packets that it makes.

mod state;

use roce_capture::Direction;
use roce_model::{FlowKey, Time};
use roce_wire::{Ecn, Nak, Opcode, Qpn, RnrTimer, Service};

pub(crate) use state::{Endpoint, Job, QueueState};

use crate::engine::events::{EndpointId, PacketId, PortId};
use crate::engine::log::{Notification, Refusal};
use crate::engine::run::Simulation;
use crate::network::packet::{Kind, Packet};
use crate::record::frame::{
    Ethernet, Frame, Network, Payload, Position, RemoteMemory, Roce, Transport, Version,
};
use crate::scenario::{Operation, ServiceName};
use crate::units::Picos;
use crate::workload::requester::OutgoingPacket;
use crate::workload::responder::{Reply, WaitingRead};

/// A transport service as the wire names it.
pub(crate) fn service(name: ServiceName) -> Service {
    match name {
        ServiceName::Rc => Service::Rc,
        ServiceName::Uc => Service::Uc,
        ServiceName::Ud => Service::Ud,
    }
}

impl Simulation<'_> {
    /// The key of the flow that an end sends.
    pub(crate) fn flow_key(&self, end: EndpointId) -> FlowKey {
        let (own, peer) = (&self.ends[end.index()], &self.ends[end.peer().index()]);
        let datagram = own.service == ServiceName::Ud;
        FlowKey {
            source: self.topology.hosts[own.host as usize].address,
            destination: self.topology.hosts[peer.host as usize].address,
            destination_qpn: peer.qpn,
            source_qpn: if datagram { own.qpn } else { Qpn::new(0) },
            vlan: self.scenario.network.vlan,
            vni: None,
            service: service(own.service),
        }
    }

    /// A frame from one host to another.
    pub(crate) fn frame(
        &self,
        from: u32,
        to: u32,
        dscp: u8,
        ecn: Ecn,
        source_port: u16,
        transport: Transport,
    ) -> Roce {
        let (source, destination) = (
            &self.topology.hosts[from as usize],
            &self.topology.hosts[to as usize],
        );
        let mut ethernet = Ethernet::new(source.mac, destination.mac);
        if let Some(vlan) = self.scenario.network.vlan {
            ethernet = ethernet.tagged(dscp >> 3, vlan);
        }
        let mut network = Network::new(source.address, destination.address);
        network.dscp = dscp;
        network.ecn = ecn;
        network.hop_limit = self.scenario.nic.ttl;
        Roce {
            ethernet,
            network,
            version: Version::V2 { source_port },
            transport,
        }
    }

    /// A packet of an end to its peer, with nothing special about it.
    fn packet(&mut self, end: EndpointId, kind: Kind, transport: Transport, seq: u64) -> Packet {
        let own = &self.ends[end.index()];
        let to = self.ends[end.peer().index()].host;
        let (dscp, ecn) = match kind {
            // Seen so on a ConnectX-4 Lx: CNPs are ECT(0) themselves.
            Kind::Cnp => (self.scenario.dcqcn.cnp_dscp, Ecn::Ect0),
            _ => (own.dscp, own.ecn),
        };
        let mut roce = self.frame(own.host, to, dscp, ecn, own.source_port, transport);
        let own = &mut self.ends[end.index()];
        let identifier = &mut self.hosts[own.host as usize].identifier;
        roce.network.identification = identifier.identify(&mut own.identification);
        Packet {
            seq,
            priority: dscp >> 3 & 7,
            ..Packet::new(&Frame::Roce(roce), kind, end, to)
        }
    }

    /// The next data packet of an end, or an acknowledgement that waited behind READ responses.
    pub(crate) fn produce(&mut self, end: EndpointId) -> Option<PacketId> {
        let own = &mut self.ends[end.index()];
        let packet = match own.jobs.front_mut() {
            Some(Job::Read { read, next, run }) => {
                let (read, index, run) = (*read, *next, *run);
                *next += 1;
                if *next >= read.packets {
                    own.jobs.pop_front();
                }
                self.read_response(end, read, index, run)
            }
            Some(Job::Reply(reply)) => {
                let reply = *reply;
                own.jobs.pop_front();
                self.reply_packet(end, reply)
            }
            None => {
                let outgoing = own.requester.send(self.now)?;
                self.request(end, outgoing)
            }
        };
        let bytes = u64::from(packet.bytes + Frame::LINE_OVERHEAD);
        let now = Time(self.now.nanos());
        let own = &mut self.ends[end.index()];
        if let Some(reaction) = &mut own.reaction {
            reaction.sent(now, bytes);
            if reaction.is_limited() {
                let rate = reaction.rate(now).max(1.0);
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "a frame is far shorter than 2^53 bytes"
                )]
                let time = Picos::from_seconds(bytes as f64 * 8.0 / rate);
                own.next_send = self.now.plus(time);
            }
        }
        if let Some(limit) = own.rate_limit {
            let next = self.now.plus(limit.time_of(bytes));
            own.held_by_limit = next > own.next_send;
            own.next_send = own.next_send.max(next);
        }
        Some(self.pool.add(&packet))
    }

    fn request(&mut self, end: EndpointId, out: OutgoingPacket) -> Packet {
        let (own, peer) = (&self.ends[end.index()], &self.ends[end.peer().index()]);
        let (service, own_qpn) = (own.service, own.qpn);
        let psn = own.first_psn.plus(low(out.seq));
        let position = Position::from_index(out.index, out.packets);
        let operation = match out.operation {
            Operation::Write => position.write(),
            Operation::Send => position.send(),
            Operation::Read => Opcode(0x0c),
        };
        let (kind, opcode) = match service {
            ServiceName::Rc if out.operation == Operation::Read => (Kind::ReadRequest, operation),
            ServiceName::Rc => (Kind::Request, operation),
            ServiceName::Uc => (Kind::Request, Opcode(operation.0 | 0x20)),
            ServiceName::Ud => (Kind::Datagram, Opcode::UD_SEND_ONLY),
        };
        let is_read = kind == Kind::ReadRequest;
        let mut transport = Transport::new(opcode, peer.qpn, psn);
        transport.ack_request = out.ack_request && service == ServiceName::Rc;
        transport.extended.source_qpn = own_qpn;
        transport.extended.queue_key = 0x1111_1111;
        transport.extended.reth = RemoteMemory {
            address: 0x7f00_0000_0000 + (u64::from(end.0) << 24) + out.offset,
            key: 0x0018_0000 + end.0,
            length: u32::try_from(if is_read { out.bytes } else { out.message_bytes }).unwrap_or(u32::MAX),
        };
        let payload = if is_read {
            0
        } else {
            u16::try_from(out.bytes).unwrap_or(u16::MAX)
        };
        // The data begins with its place in the flow, so that packets differ.
        #[expect(clippy::cast_possible_truncation, reason = "any 8 bits do")]
        let first = (out.seq as u8).wrapping_mul(31);
        transport.payload = Payload::Data {
            bytes: payload,
            first,
            step: 1,
        };
        let mut packet = self.packet(end, kind, transport, out.seq);
        packet.span = out.span;
        packet.payload = u32::from(payload);
        packet.attempt = out.attempt;
        packet.first = out.index == 0;
        packet.last = out.index + 1 == out.packets || is_read;
        packet.receives = out.operation == Operation::Send && service == ServiceName::Rc;
        packet.ack_request = transport.ack_request;
        self.note_request(end, &mut packet, &out);
        packet
    }

    /// Keeps the books of a request that leaves.
    fn note_request(&mut self, end: EndpointId, packet: &mut Packet, out: &OutgoingPacket) {
        let own = &mut self.ends[end.index()];
        let silent_since = own.last_sent;
        self.log.sent(packet, self.now);
        self.expect_answer(end, packet);
        if packet.attempt > 0 {
            packet.note = self
                .log
                .sent_again(packet, out.begins_run, self.now, silent_since);
            packet.again = self.log.retransmitted(packet, packet.note, self.now);
        }
        self.note_silence(end, out.begins_run);
        let own = &mut self.ends[end.index()];
        own.last_sent = self.now;
        if own.service != ServiceName::Rc {
            // Nothing will acknowledge it.
            let done = own.requester.acknowledged(out.seq + 1, self.now);
            self.messages_done(end, &done);
        }
    }

    fn read_response(&mut self, end: EndpointId, read: WaitingRead, index: u32, run: u32) -> Packet {
        let (own, peer) = (&self.ends[end.index()], &self.ends[end.peer().index()]);
        let seq = read.seq + u64::from(index);
        let mtu = u64::from(self.scenario.nic.mtu);
        let payload = read.length.saturating_sub(u64::from(index) * mtu).min(mtu);
        let position = Position::from_index(index, read.packets);
        let mut transport = Transport::new(position.read_response(), peer.qpn, peer.first_psn.plus(low(seq)));
        transport.extended.aeth = acknowledgement(0x1f, own.responder.completed);
        let payload = u16::try_from(payload).unwrap_or(u16::MAX);
        transport.payload = Payload::data(payload);
        let mut packet = self.packet(end, Kind::ReadResponse, transport, seq);
        packet.payload = u32::from(payload);
        packet.first = index == 0;
        packet.last = index + 1 == read.packets;
        packet.follow = read.packets.saturating_sub(index + 1);
        let own = &mut self.ends[end.index()];
        packet.attempt = u16::from(seq < own.answered);
        own.answered = own.answered.max(seq + 1);
        own.last_sent = self.now;
        self.log.sent(&packet, self.now);
        if packet.attempt > 0 {
            packet.again = self.log.retransmitted(&packet, run, self.now);
        }
        packet
    }

    /// An ACK or NAK.
    fn reply_packet(&mut self, end: EndpointId, reply: Reply) -> Packet {
        let (own, peer) = (&self.ends[end.index()], &self.ends[end.peer().index()]);
        let (qpn, base, completed) = (peer.qpn, peer.first_psn, own.responder.completed);
        let timer = RnrTimer::new(self.scenario.nic.rnr_timer);
        let (kind, seq, transport) = match reply {
            Reply::Ack(seq) => {
                let psn = base.plus(low(seq).wrapping_sub(1));
                (Kind::Ack, seq, Transport::ack(qpn, psn, completed, 0x1f))
            }
            Reply::Nak(seq) => {
                let transport = Transport::nak(qpn, base.plus(low(seq)), completed, Nak::PsnSequenceError);
                (Kind::Nak, seq, transport)
            }
            Reply::NotReady(seq) => {
                let transport = Transport::rnr_nak(qpn, base.plus(low(seq)), completed, timer);
                (Kind::RnrNak, seq, transport)
            }
            Reply::Fatal(seq) => {
                let transport = Transport::nak(qpn, base.plus(low(seq)), completed, Nak::RemoteAccessError);
                (Kind::FatalNak, seq, transport)
            }
        };
        let mut packet = self.packet(end, kind, transport, seq);
        self.log.sent(&packet, self.now);
        if kind == Kind::Nak && self.spray.is_some() {
            let flow = end.peer().0;
            let in_flight = self.pool.find(flow, seq).map(|packet| packet.recorded);
            self.log.overtaken(flow, seq, in_flight);
        }
        if kind != Kind::Ack {
            packet.note = self.log.refused(Refusal {
                time: self.now,
                flow: end.peer().0,
                kind,
                seq,
                psn: packet.psn(),
                received: None,
                recorded: 0,
            });
        }
        packet
    }

    /// Sends an ACK or NAK: at once, or behind unfinished READ responses.
    pub(crate) fn reply(&mut self, end: EndpointId, reply: Reply) {
        if !self.ends[end.index()].jobs.is_empty() {
            self.ends[end.index()].jobs.push_back(Job::Reply(reply));
            return;
        }
        let packet = self.reply_packet(end, reply);
        self.queue(self.ends[end.index()].host, &packet);
        if self.scenario.nic.cnp_after_nak && matches!(reply, Reply::Nak(_)) {
            self.notify(end, true);
        }
    }

    /// Sends a CNP to the peer of an end.
    pub(crate) fn notify(&mut self, end: EndpointId, after_nak: bool) {
        let qpn = self.ends[end.peer().index()].qpn;
        let mut packet = self.packet(end, Kind::Cnp, Transport::cnp(qpn), 0);
        packet.note = self.log.notified(Notification {
            time: self.now,
            received: None,
            slows: end.peer(),
            after_nak,
            recorded: 0,
            effect: None,
        });
        self.queue(self.ends[end.index()].host, &packet);
    }

    /// Puts a packet into a host's queue, before data.
    pub(crate) fn queue(&mut self, host: u32, packet: &Packet) {
        let id = self.pool.add(packet);
        let port = self.topology.hosts[host as usize].port;
        self.topology.ports[port.index()].queues[usize::from(packet.priority & 7)].push_back(id);
        self.transmit(port);
    }

    /// Shows a packet to the taps of a port.
    pub(crate) fn pass(&mut self, port: PortId, id: PacketId, direction: Direction) {
        if self.topology.ports[port.index()].taps.is_empty() {
            return;
        }
        let packet = *self.pool.packet(id);
        let taps = &self.topology.ports[port.index()].taps;
        let (passed, recorded) = self.observer.pass(taps, &packet, self.now, direction);
        let packet = self.pool.change(id);
        packet.passed |= passed;
        packet.recorded |= recorded;
        let (copy, again) = (packet.copy as usize, packet.again as usize);
        let note = packet.note as usize;
        if let Some(mark) = self.log.marks.get_mut(packet.mark as usize) {
            mark.recorded |= recorded;
        }
        let kind = packet.kind;
        if let Some(duplicate) = self.log.duplicates.get_mut(copy) {
            duplicate.recorded |= recorded;
        }
        if let Some(retransmitted) = self.log.retransmitted.get_mut(again) {
            retransmitted.recorded |= recorded;
        }
        match kind {
            Kind::Cnp => {
                if let Some(cnp) = self.log.notifications.get_mut(note) {
                    cnp.recorded |= recorded;
                }
            }
            Kind::Nak | Kind::RnrNak | Kind::FatalNak => {
                if let Some(refusal) = self.log.refusals.get_mut(note) {
                    refusal.recorded |= recorded;
                }
            }
            _ => {}
        }
    }
}

/// An AETH of a syndrome and a message sequence number.
fn acknowledgement(syndrome: u8, completed: u32) -> roce_wire::Aeth {
    let [_, high, middle, low] = completed.to_be_bytes();
    roce_wire::Aeth([syndrome, high, middle, low])
}

/// The low bits of a PSN that does not wrap.
#[expect(clippy::cast_possible_truncation, reason = "PSNs are taken modulo 2^24")]
pub(crate) fn low(seq: u64) -> u32 {
    seq as u32
}
