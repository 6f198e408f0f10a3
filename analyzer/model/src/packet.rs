//! Decoded packets on their way to the analysis, in batches.

use core::ops::Deref;

use roce_wire::management::cm::RejectReason;
use roce_wire::management::cm_req::ServiceId;
use roce_wire::{Address, Hops, MacAddress, Pause, Psn, Qpn, Roce};

use crate::{FlowKey, HostEvent, MrcPacket, Process, SampleRow, TapId, Time, UetPacket};

/// One RoCE packet as one tap saw it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Packet {
    /// Time of capture.
    pub time: Time,
    /// Tap of capture.
    pub tap: TapId,
    /// Its frame's length on the wire, in bytes, without FCS.
    pub wire_bytes: u32,
    /// A hash of the fields that links change and a sender repeats: link addresses, interface, direction
    /// and TTL. Two sightings of one packet differ in it; a packet sent twice does not.
    pub path: u16,
    /// A hash of the extended headers, as far as they hold more than an AETH; 0 without such.
    pub extended: u32,
    /// Rare properties of its frame.
    pub flags: PacketFlags,
    /// True if its ICRC was checked, and was right.
    pub icrc: Option<bool>,
    /// Decoded fields.
    pub roce: Roce,
}

/// A packet passes through several threads: 112 bytes, with nothing unused between them.
const _: () = assert!(size_of::<Packet>() <= 112, "a packet grew");

/// Rare properties of a packet's frame, as a set in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacketFlags(u8);

impl PacketFlags {
    /// A header was cut by the snaplen.
    pub const CUT: Self = Self(1);
    /// The frame was addressed to the MAC address that sent it.
    pub const TO_ITSELF: Self = Self(1 << 1);
    /// A SEND whose answer may take any time: an NVMe command that asks for the next asynchronous event.
    pub const OPEN_REQUEST: Self = Self(1 << 2);
    /// The batch has a [`RemoteWrite`] of it.
    pub const REMOTE_WRITE: Self = Self(1 << 3);
    /// The batch has a [`MrcPacket`] of it.
    pub const MRC: Self = Self(1 << 4);

    /// True if the batch has headers of it.
    #[inline]
    pub const fn has_headers(self) -> bool {
        self.0 & (Self::REMOTE_WRITE.0 | Self::MRC.0) != 0
    }

    /// It is shorter on the wire than its lengths say, as a switch's trimming leaves it: see [`roce_wire::DecodedFrame::is_short`].
    pub const SHORT: Self = Self(1 << 5);

    /// True if more is to be done with it than with others: the batch has headers of it, or it is short.
    #[inline]
    pub const fn is_special(self) -> bool {
        self.0 & (Self::REMOTE_WRITE.0 | Self::MRC.0 | Self::SHORT.0) != 0
    }

    /// True if all of `other` are in the set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set with `other` too, if that `is_set`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self, is_set: bool) -> Self {
        Self(self.0 | if is_set { other.0 } else { 0 })
    }
}

/// A pause frame in the stream: it comes before the packet at `before`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PauseFrame {
    /// The index in [`PacketBatch::packets`] that it precedes.
    pub before: usize,
    /// Time of capture.
    pub time: Time,
    /// Tap of capture.
    pub tap: TapId,
    /// Decoded fields.
    pub pause: Pause,
    /// Every part of a run sees it, one counts it.
    pub reported: bool,
}

/// Link addresses of two hosts' packets at a tap, reported once for each pair, so that the sender of a
/// pause frame can be found among them. The report precedes the packet at `before`, and exists only at
/// taps that have pause frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkAddresses {
    /// The index in [`PacketBatch::packets`] that it precedes.
    pub before: usize,
    /// Time of capture of the frame that shows them.
    pub time: Time,
    /// Tap of capture.
    pub tap: TapId,
    /// Source address of its packet.
    pub source: Address,
    /// Destination address of its packet.
    pub destination: Address,
    /// The frame's sender: the source itself or the last router.
    pub source_mac: MacAddress,
    /// The frame's receiver: the destination itself or the next router.
    pub destination_mac: MacAddress,
    /// Its TTL or hop limit.
    pub hop_limit: u8,
}

/// A connection manager's message, carried by the packet at `packet`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Management {
    /// The index in [`PacketBatch::packets`] of the packet that carried it.
    pub packet: usize,
    /// Message: REQ, REP, RTU, REJ, DREQ, DREP, MRA.
    pub name: &'static str,
    /// The communication id that the sender gave the connection.
    pub local_id: Option<u32>,
    /// The one that the receiver gave it; a REQ does not know it yet.
    pub remote_id: Option<u32>,
    /// REQ and REP: the sender's queue pair of the connection.
    pub local_qpn: Option<Qpn>,
    /// REQ and REP: the PSN with which the requests to the sender, those of the other end, begin.
    pub starting_psn: Option<Psn>,
    /// REQ: the service that is asked for.
    pub service: Option<ServiceId>,
    /// REJ: why (IBTA 12.6.7.2).
    pub reason: Option<RejectReason>,
}

/// The capture, or the mirror in front of it, says that records are missing here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRecords {
    /// The index in [`PacketBatch::packets`] before which they are missing.
    pub before: usize,
    /// Time of capture of the next record.
    pub time: Time,
    /// Tap of capture.
    pub tap: TapId,
    /// Number of lost records; 0 when another shard reports them.
    pub records: u64,
    /// The sequence numbers of a mirror session say so, not the capture.
    pub by_mirror: bool,
}

/// A host's report in the stream: it precedes the packet at `before`.
#[derive(Clone, PartialEq, Debug)]
pub struct HostReport {
    /// The index in [`PacketBatch::packets`] that it precedes.
    pub before: usize,
    /// The reported event.
    pub event: HostEvent,
    /// Every part of a run sees it, one reports it.
    pub reported: bool,
}

/// A process that a capture names as the one that sent or received a packet at the capturing host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketProcess {
    /// The index in [`PacketBatch::packets`] that it precedes.
    pub before: usize,
    /// The flow of the packet.
    pub flow: FlowKey,
    /// The process. Without a name its command is empty.
    pub process: Process,
}

/// Headers of a WRITE of a reliable connection besides its packet: where its message goes, the immediate, and the first bytes of
/// a short message. First, Only and Last with Immediate leave one, so there are one or two for each message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteWrite {
    /// The index in [`PacketBatch::packets`] of its packet.
    pub packet: usize,
    /// Where the message goes. None: a Last, which has no RETH.
    pub target: Option<WriteTarget>,
    /// The immediate, in network byte order.
    pub immediate: Option<u32>,
    /// Bytes in [`RemoteWrite::payload`] that were captured.
    pub payload_bytes: u8,
    /// First bytes of the payload of an Only of at most [`RemoteWrite::MAX_SHORT`] bytes.
    pub payload: [u8; RemoteWrite::MAX_PAYLOAD],
}

impl RemoteWrite {
    /// Length of a message, in bytes, up to which its payload is kept. Eight elements of 64 bytes are the longest credit of NCCL.
    pub const MAX_SHORT: u32 = 512;
    /// Bytes of payload that are kept.
    pub const MAX_PAYLOAD: usize = 64;

    /// The captured bytes of the payload.
    pub fn start(&self) -> &[u8] {
        &self.payload[..usize::from(self.payload_bytes).min(Self::MAX_PAYLOAD)]
    }
}

/// Fields of a RETH (IBTA 9.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteTarget {
    /// Virtual address at the receiver.
    pub address: u64,
    /// The key that allows the access.
    pub key: u32,
    /// Length of the whole message, in bytes.
    pub length: u32,
}

/// Telemetry of a packet in the stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct InbandHops {
    /// The index in [`PacketBatch::packets`] that it precedes: it comes behind its own packet.
    pub before: usize,
    /// The packet. Of a copy time, tap, length, addresses and BTH.
    pub packet: Packet,
    /// It came in a copy beside the packet, which counts nothing.
    pub is_copy: bool,
    /// The hops.
    pub hops: Hops,
}

/// An item of the stream between packets, or with one of them.
#[derive(Clone, PartialEq, Debug)]
pub enum Between {
    /// A pause frame.
    Pause(PauseFrame),
    /// Link addresses of two hosts.
    Link(LinkAddresses),
    /// A loss of the capture, or of the mirror in front of it.
    Lost(LostRecords),
    /// A connection manager's message.
    Management(Management),
    /// The target of a WRITE.
    Write(RemoteWrite),
    /// Headers of a packet that may be one of MRC.
    Mrc(MrcPacket),
    /// A packet of UET.
    Uet(Box<UetPacket>),
    /// Telemetry of switches in the packet before.
    Inband(Box<InbandHops>),
    /// A host's report.
    Host(Box<HostReport>),
    /// A process that a capture names as that of a packet.
    Process(Box<PacketProcess>),
}

impl Between {
    /// The index in [`PacketBatch::packets`] of the packet that it precedes or that carries it.
    pub fn before(&self) -> usize {
        match self {
            Self::Pause(pause) => pause.before,
            Self::Link(link) => link.before,
            Self::Lost(lost) => lost.before,
            Self::Management(message) => message.packet,
            Self::Write(write) => write.packet,
            Self::Mrc(headers) => headers.packet,
            Self::Uet(packet) => packet.before,
            Self::Inband(hops) => hops.before,
            Self::Host(report) => report.before,
            Self::Process(found) => found.before,
        }
    }
}

/// Packets whose places are used again: they are decoded where they stay, and no place is cleared for the next one.
#[derive(Clone, Default, Debug)]
pub struct Packets {
    /// Those from `used` on are left over from before.
    places: Vec<Packet>,
    used: usize,
}

impl Packets {
    /// Places for `more` packets behind the others, with arbitrary contents. [`Packets::keep`] says how
    /// many of them were filled.
    pub fn room(&mut self, more: usize) -> &mut [Packet] {
        let end = self.used + more;
        if self.places.len() < end {
            self.places.resize(end, Packet::default());
        }
        &mut self.places[self.used..end]
    }

    /// The first `more` of the places that [`Packets::room`] gave are packets now.
    ///
    /// # Panics
    /// When it gave fewer.
    pub fn keep(&mut self, more: usize) {
        assert!(self.used + more <= self.places.len(), "more packets than places");
        self.used += more;
    }

    /// Another packet behind the others.
    pub fn push(&mut self, packet: Packet) {
        self.room(1)[0] = packet;
        self.keep(1);
    }

    /// No packets; their places stay.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

impl Deref for Packets {
    type Target = [Packet];

    fn deref(&self) -> &[Packet] {
        &self.places[..self.used]
    }
}

impl From<Vec<Packet>> for Packets {
    fn from(packets: Vec<Packet>) -> Self {
        Self {
            used: packets.len(),
            places: packets,
        }
    }
}

/// Some hundred packets in time order, with what happened between them.
#[derive(Clone, Default, Debug)]
pub struct PacketBatch {
    /// The packets.
    pub packets: Packets,
    /// Items between them, in the order of the stream: [`Between::before`] never falls.
    pub between: Vec<Between>,
    /// Samples read meanwhile. They do not change how packets are analysed.
    pub samples: Vec<SampleRow>,
}

impl PacketBatch {
    /// Number of its items.
    pub fn len(&self) -> usize {
        self.packets.len() + self.between.len() + self.samples.len()
    }

    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties it, keeping its room.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.between.clear();
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(time: u64) -> Packet {
        Packet {
            time: Time(time),
            ..Packet::default()
        }
    }

    fn times(packets: &Packets) -> Vec<u64> {
        packets.iter().map(|packet| packet.time.0).collect()
    }

    #[test]
    fn only_what_is_kept_is_a_packet() {
        let mut packets = Packets::from(vec![packet(1), packet(2)]);
        let places = packets.room(3);
        assert_eq!(places.len(), 3);
        (places[0], places[1]) = (packet(3), packet(4));
        assert_eq!(times(&packets), [1, 2]);
        packets.keep(1);
        assert_eq!(times(&packets), [1, 2, 3]);
        packets.push(packet(5));
        assert_eq!(times(&packets), [1, 2, 3, 5], "the place of 4 was free");
        packets.clear();
        assert!(packets.is_empty());
        // The earlier contents are still there, and no packet.
        assert_eq!(packets.room(6).len(), 6);
        assert_eq!(times(&packets), []);
    }

    #[test]
    #[should_panic(expected = "more packets than places")]
    fn more_than_there_was_room_for_is_a_mistake() {
        let mut packets = Packets::default();
        packets.room(1);
        packets.keep(2);
    }
}
