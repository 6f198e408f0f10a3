//! The connection manager's exchange before a connection: REQ, REP and RTU on queue pair 1 (IBTA chapter 12).

use roce_wire::management::cm::CommId;
use roce_wire::{Ecn, Psn, Qpn};

use crate::engine::events::{EndpointId, Event};
use crate::engine::run::Simulation;
use crate::network::packet::{Kind, Packet};
use crate::network::topology::number;
use crate::record::frame::cm::{ConnectedService, Datagram, Message, PathMtu, Rep, Req};
use crate::record::frame::{Frame, Payload, Transport, udp_source_port};
use crate::scenario::ServiceName;
use crate::units::Picos;

/// Wait of the connection manager for an answer: 4.096 us * 2^12, rounded.
const MANAGER_WAIT: Picos = Picos::from_nanos(16_777_216);

impl Simulation<'_> {
    /// Sends a REQ.
    pub(crate) fn ask(&mut self, connection: u32) {
        let a = EndpointId(connection * 2);
        let (own, peer) = (&self.ends[a.index()], &self.ends[a.peer().index()]);
        let address = |host: u32| self.topology.hosts[host as usize].address;
        // A starting PSN is where the other end begins (captures/rping.pcap).
        let mut req = Req::new(address(own.host), address(peer.host), own.qpn, peer.first_psn);
        req.source_port = own.source_port;
        req.path_mtu = PathMtu::within(u16::try_from(self.scenario.nic.mtu).unwrap_or(u16::MAX));
        req.service_level = own.priority();
        req.traffic_class = own.dscp << 2;
        req.hop_limit = self.scenario.nic.ttl;
        if own.service == ServiceName::Uc {
            req.transport = ConnectedService::Uc;
        }
        self.manager_message(a, Message::Req(req));
        let sent = &mut self.connections[connection as usize].requests;
        *sent += 1;
        let sent = *sent;
        let again = self.now.plus(MANAGER_WAIT);
        self.events.at(again, Event::ManagerRetry { connection, sent });
    }

    /// Retransmits a REQ without an answer.
    pub(crate) fn ask_again(&mut self, connection: u32, sent: u32) {
        let state = &self.connections[connection as usize];
        if !state.established && state.requests == sent && sent < 16 {
            self.ask(connection);
        }
    }

    /// Sends a message of the connection manager from one end to the other.
    fn manager_message(&mut self, end: EndpointId, message: Message) {
        let connection = number(end.connection());
        let id = |end: EndpointId| CommId(0x1000_0000 + end.0);
        let datagram = Datagram {
            transaction: 0x0000_0001_0000_0000 + u64::from(connection),
            local_id: id(end),
            remote_id: id(end.peer()),
            message,
        };
        let (from, to) = (self.ends[end.index()].host, self.ends[end.peer().index()].host);
        let psn = self.hosts[from as usize].management_psn;
        self.hosts[from as usize].management_psn = psn + 1;
        let transport = Transport::management(Psn::new(psn), datagram);
        let port = udp_source_port(Qpn::GENERAL_SERVICES, Qpn::GENERAL_SERVICES);
        let mut roce = self.frame(from, to, 0, Ecn::NotEct, port, transport);
        #[expect(clippy::cast_possible_truncation, reason = "any 16 bits do")]
        let mut own = psn as u16;
        let identifier = &mut self.hosts[from as usize].identifier;
        roce.network.identification = identifier.identify(&mut own);
        let flow = self.management_flow(from, to);
        let packet = Packet {
            flow,
            seq: u64::from(psn),
            payload: u32::from(Datagram::BYTES),
            ..Packet::new(&Frame::Roce(roce), Kind::Management, end, to)
        };
        self.log.sent(&packet, self.now);
        self.queue(from, &packet);
    }

    /// A message of the connection manager came.
    pub(crate) fn manage(&mut self, packet: &Packet) {
        let Frame::Roce(roce) = &packet.frame else { return };
        let Payload::Management(datagram) = roce.transport.payload else {
            return;
        };
        let end = packet.end.peer();
        match datagram.message {
            Message::Req(_) => {
                let rep = Rep::new(
                    self.ends[end.index()].qpn,
                    self.ends[end.peer().index()].first_psn,
                );
                self.manager_message(end, Message::Rep(rep));
            }
            Message::Rep(_) => {
                self.manager_message(end, Message::Rtu);
                self.establish(number(end.connection()));
            }
            Message::Rtu => {
                self.ends[end.index()].open = true;
                self.kick(end);
            }
            Message::Dreq { .. } | Message::Drep => {}
        }
    }
}
