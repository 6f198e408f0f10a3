//! Packets on their way: the frame and the simulation's notes; and the pool that holds them.

use roce_wire::Ecn;

use crate::engine::events::{EndpointId, PacketId, PortId};
use crate::record::frame::Frame;

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// SEND or WRITE of a connected service.
    Request,
    /// READ request.
    ReadRequest,
    /// READ response.
    ReadResponse,
    /// ACK.
    Ack,
    /// NAK for a sequence error.
    Nak,
    /// RNR NAK.
    RnrNak,
    /// NAK that ends the connection.
    FatalNak,
    /// Congestion notification.
    Cnp,
    /// UD SEND.
    Datagram,
    /// Message of the connection manager.
    Management,
    /// PFC or 802.3x pause frame.
    Pause,
}

impl Kind {
    /// True if it carries data: messages of the connection manager do, as UD SENDs.
    pub(crate) fn is_data(self) -> bool {
        matches!(
            self,
            Self::Request | Self::ReadResponse | Self::Datagram | Self::Management
        )
    }

    /// True if its PSN is one of its sender's own requests.
    pub(crate) fn is_request(self) -> bool {
        matches!(self, Self::Request | Self::ReadRequest)
    }
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub frame: Frame,
    pub kind: Kind,
    /// The end that sent it.
    pub end: EndpointId,
    /// The flow that it belongs to, by its place in the log.
    pub flow: u32,
    /// The host that it goes to.
    pub to: u32,
    /// Distance of its PSN from the first PSN of its stream.
    pub seq: u64,
    /// Number of its PSNs: more than one for READ requests only.
    pub span: u32,
    /// Application data in it.
    pub payload: u32,
    /// Its frame, without FCS.
    pub bytes: u32,
    /// Number of transmissions before this one.
    pub attempt: u16,
    pub priority: u8,
    /// First and last packet of a message.
    pub first: bool,
    pub last: bool,
    /// SEND: needs a receive buffer.
    pub receives: bool,
    pub ack_request: bool,
    /// Its ICRC is wrong.
    pub corrupt: bool,
    /// The port that it came into the switch by.
    pub ingress: PortId,
    /// Taps that it passed, and those that recorded it: one bit each.
    pub passed: u64,
    pub recorded: u64,
    /// Place in the log: among NAKs or CNPs, or that of its run for a retransmitted request.
    pub note: u32,
    /// The place of its CE mark in the log.
    pub mark: u32,
    /// The path that it takes, where there are several.
    pub path: u32,
    /// READ response: how many of its message follow it.
    pub follow: u32,
    /// Place of a retransmitted packet in the log.
    pub again: u32,
    /// A duplicate that the network made: its place in the log.
    pub copy: u32,
    /// The write of a proxy thread that it belongs to.
    pub posting: u32,
}

impl Packet {
    /// A whole message of its end's own flow, sent for the first time, with nothing special about it.
    pub(crate) fn new(frame: &Frame, kind: Kind, end: EndpointId, to: u32) -> Self {
        Self {
            frame: *frame,
            kind,
            end,
            flow: end.0,
            to,
            seq: 0,
            span: 1,
            payload: 0,
            bytes: frame.wire_bytes(),
            attempt: 0,
            priority: 0,
            first: true,
            last: true,
            receives: false,
            ack_request: false,
            corrupt: false,
            ingress: PortId(0),
            passed: 0,
            recorded: 0,
            note: u32::MAX,
            mark: u32::MAX,
            path: u32::MAX,
            follow: 0,
            again: u32::MAX,
            copy: u32::MAX,
            posting: u32::MAX,
        }
    }

    /// True if the network made it of another packet.
    pub(crate) fn is_copy(&self) -> bool {
        self.copy != u32::MAX
    }

    pub(crate) fn ecn(&self) -> Ecn {
        self.frame
            .network()
            .map_or(Ecn::NotEct, |(network, _)| network.ecn)
    }

    pub(crate) fn mark(&mut self) {
        if let Frame::Roce(roce) | Frame::Damaged(roce) = &mut self.frame {
            roce.network.ecn = Ecn::Ce;
        }
    }

    /// A bit of it is turned over.
    pub(crate) fn damage(&mut self) {
        self.corrupt = true;
        if let Frame::Roce(roce) = self.frame {
            self.frame = Frame::Damaged(roce);
        }
    }

    /// One router further.
    pub(crate) fn hop(&mut self) {
        if let Frame::Roce(roce) | Frame::Damaged(roce) = &mut self.frame {
            roce.network.hop_limit = roce.network.hop_limit.saturating_sub(1);
        }
    }

    /// The PSN on the wire.
    pub(crate) fn psn(&self) -> u32 {
        match &self.frame {
            Frame::Roce(roce) | Frame::Damaged(roce) => roce.transport.psn.value(),
            Frame::Mrc(packet) => packet.psn,
            Frame::Pfc(_) | Frame::Pause(_) => 0,
        }
    }
}

/// All packets on their way.
#[derive(Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Pool {
    pub(crate) fn add(&mut self, packet: &Packet) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.packets[id.index()] = *packet;
            return id;
        }
        let id = PacketId(u32::try_from(self.packets.len()).unwrap_or(u32::MAX));
        self.packets.push(*packet);
        id
    }

    /// Takes a packet out: it has come to its end.
    pub(crate) fn take(&mut self, id: PacketId) -> Packet {
        self.free.push(id);
        self.packets[id.index()]
    }

    pub(crate) fn packet(&self, id: PacketId) -> &Packet {
        &self.packets[id.index()]
    }

    pub(crate) fn change(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.index()]
    }
}

impl Pool {
    /// A request on its way that is not a retransmission.
    pub(crate) fn find(&self, flow: u32, seq: u64) -> Option<&Packet> {
        let is_it = |packet: &&Packet| {
            packet.flow == flow && packet.seq == seq && packet.kind.is_request() && packet.attempt == 0
        };
        let found = self.packets.iter().enumerate();
        let mut found = found.filter(|(_, packet)| is_it(packet) && !packet.is_copy());
        let live = found.find(|(place, _)| self.free.iter().all(|free| free.index() != *place));
        live.map(|(_, packet)| packet)
    }

    /// Number of RoCE packets that are on their way. CNPs, pause frames and duplicates of the network
    /// are not counted.
    pub(crate) fn live_packets(&self) -> u64 {
        let mut live = vec![true; self.packets.len()];
        for free in &self.free {
            live[free.index()] = false;
        }
        let live = self.packets.iter().zip(live).filter(|(_, live)| *live);
        let counted =
            live.filter(|(packet, _)| !packet.is_copy() && !matches!(packet.kind, Kind::Pause | Kind::Cnp));
        counted.count() as u64
    }
}
