//! MRC packets (OCP Multipath Reliable Connection 1.0) by plain values, and their bytes.
//!
//! Layouts after three public decoders and two public models of MRC that agree; where they do not, the scenario chooses. Leaves to others
//! when a packet is sent, on which path, and what becomes of it.

use roce_wire::{Address, Bth, Qpn, icrc};

use super::network::{self, Ethernet, Network};
use super::version::Version;

/// An MRC packet in its Ethernet frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcPacket {
    /// The Ethernet header.
    pub ethernet: Ethernet,
    /// The IP header; that of the inner packet where there are `segments`.
    pub network: Network,
    /// Source and destination of an outer IPv6 header: the destination holds the segments of SRv6.
    pub segments: Option<[Address; 2]>,
    /// The UDP source port.
    pub source_port: u16,
    /// The UDP destination port.
    pub destination_port: u16,
    /// The queue pair that it is for.
    pub destination_qpn: Qpn,
    /// The field PSN of the BTH: a PSN, or the number of an endpoint operation.
    pub psn: u32,
    /// The headers behind the BTH.
    pub body: MrcBody,
    /// A switch cut the packet.
    pub trim: Option<Trim>,
}

/// Result of a trim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trim {
    /// Bytes of the frame that are left.
    pub bytes: u16,
    /// The IP length says what is left, instead of what there was.
    pub rewritten: bool,
}

/// Headers behind the BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MrcBody {
    /// A packet of an RDMA WRITE.
    Write(MrcWrite),
    /// Transport acknowledgement: messages that are complete, in order. The number of the last one.
    Acknowledge(u32),
    /// Request to the other NIC: an operation (0 port status, 1 probe of an EV), the mask of reachable ports, and a stamp.
    EndpointRequest(u8, u32, u16),
    /// Answer to such a request: its operation and its stamp.
    EndpointResponse(u8, u16),
    /// Selective acknowledgement.
    Sack(MrcSack),
    /// Negative acknowledgement.
    Nack(MrcNack),
    /// Probe of a path.
    Probe(MrcProbe),
}

/// A packet of an RDMA WRITE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcWrite {
    /// Opcode, 0xc6 to 0xcb.
    pub opcode: u8,
    /// True if an acknowledgement is requested.
    pub ack_request: bool,
    /// True if the packet is a retransmission.
    pub retransmission: bool,
    /// METH: number of messages with immediate data; 0 in other messages.
    pub rqmsn: u16,
    /// METH: number of the message.
    pub msn: u16,
    /// TSETH: the stamp of sending, in ticks of 128 ns.
    pub stamp: Option<u16>,
    /// RETH: the address of this packet's payload.
    pub address: u64,
    /// RETH: the remote key.
    pub key: u32,
    /// RETH: length of the whole message.
    pub length: u32,
    /// ImmDt.
    pub immediate: Option<u32>,
    /// Bytes of payload, which count up.
    pub payload: u16,
}

/// A selective acknowledgement (SETH and CC_STATE).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MrcSack {
    /// The field m: 0 none, 1 skip the path once, 2 always.
    pub skip: u8,
    /// True if it answers a probe.
    pub probe: bool,
    /// Distance of the packet that caused it from the cumulative PSN; the number of the probe.
    pub offset: u16,
    /// EV of the packet that caused it.
    pub entropy: u32,
    /// Low bits of the two queue pairs.
    pub ids: [u16; 2],
    /// Cumulative PSN: it and all before it arrived.
    pub cumulative: u32,
    /// Unit of the window, 128 PSNs.
    pub window: u8,
    /// Distance of the bitmap's first PSN from the cumulative one.
    pub base: u16,
    /// Arrived PSNs, the least significant bit first.
    pub bitmap: u64,
    /// Reflected stamp.
    pub stamp: u16,
    /// Number of PSNs that arrived out of order.
    pub out_of_order: u16,
    /// Penalty that the receiver asks for, 0 to 127.
    pub penalty: u8,
    /// Received bytes in units of 256.
    pub received: u32,
}

/// A negative acknowledgement (NETH).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcNack {
    /// Reason.
    pub reason: u8,
    /// EV of the packet that caused it.
    pub entropy: u32,
    /// Low bits of the two queue pairs.
    pub ids: [u16; 2],
    /// Reflected stamp.
    pub stamp: u16,
}

/// A probe of a path (PETH).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcProbe {
    /// Its number.
    pub number: u16,
    /// Low bits of the two queue pairs.
    pub ids: [u16; 2],
    /// Stamp of sending.
    pub stamp: u16,
}

/// Headers behind the BTH, as bytes: ImmDt makes WRITEs the ones with up to 28, EETH has 36.
struct Headers {
    bytes: [u8; 36],
    length: usize,
}

impl Headers {
    fn new() -> Self {
        Self {
            bytes: [0; 36],
            length: 0,
        }
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        let end = self.length + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
        self
    }

    fn zeros(mut self, count: usize) -> Self {
        self.length = (self.length + count).min(self.bytes.len());
        self
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Bytes of IPv6, ICRC and BTH.
const IPV6_BYTES: u32 = 40;
const ICRC_BYTES: u32 = 4;
const BTH_BYTES: u32 = 12;
/// Protocol number of UDP, and of IPv6 in IPv6 (IANA).
const UDP: u8 = 17;
const IPV6_IN_IPV6: u8 = 41;
/// EtherType of IPv6, which an outer header has.
const IPV6: u16 = 0x86dd;

impl MrcBody {
    /// The opcode of the BTH.
    pub const fn opcode(&self) -> u8 {
        match self {
            Self::Write(write) => write.opcode,
            Self::Acknowledge(_) => 0xd1,
            Self::EndpointRequest(..) => 0xd8,
            Self::EndpointResponse(..) => 0xd9,
            Self::Sack(_) => 0xdc,
            Self::Nack(_) => 0xdd,
            Self::Probe(_) => 0xde,
        }
    }

    fn payload(&self) -> u16 {
        match self {
            Self::Write(write) => write.payload,
            _ => 0,
        }
    }

    /// Byte 8 of the BTH: AckReq, rtx, and that a TSETH follows.
    fn flags(&self) -> u8 {
        match self {
            Self::Write(write) => {
                u8::from(write.ack_request) << 7
                    | u8::from(write.retransmission) << 5
                    | u8::from(write.stamp.is_some()) << 4
            }
            _ => 0,
        }
    }

    fn headers(&self, psn: u32) -> Headers {
        let headers = Headers::new();
        let psn = psn.to_be_bytes();
        match self {
            Self::Write(write) => {
                let mut headers = headers
                    .put(&write.rqmsn.to_be_bytes())
                    .put(&write.msn.to_be_bytes());
                if let Some(stamp) = write.stamp {
                    // ftype 1, as for requests.
                    headers = headers.put(&stamp.to_be_bytes()).put(&[0, 1]);
                }
                headers = headers
                    .put(&write.address.to_be_bytes())
                    .put(&write.key.to_be_bytes())
                    .put(&write.length.to_be_bytes());
                match write.immediate {
                    Some(immediate) => headers.put(&immediate.to_be_bytes()),
                    None => headers,
                }
            }
            Self::Acknowledge(msn) => {
                let [_, high, middle, low] = msn.to_be_bytes();
                headers.put(&[0x1f, high, middle, low])
            }
            Self::EndpointRequest(operation, mask, stamp) => headers
                .put(&[0, operation & 3, 0, 0])
                .put(&mask.to_be_bytes())
                .zeros(4)
                .put(&stamp.to_be_bytes())
                .put(&[0, 1]),
            // The operation is in bits 3:2 (two sources of three).
            Self::EndpointResponse(operation, stamp) => headers
                .put(&[0, (operation & 3) << 2])
                .zeros(26)
                .put(&stamp.to_be_bytes())
                .zeros(6),
            Self::Sack(sack) => {
                let [_, high, middle, low] = sack.received.to_be_bytes();
                headers
                    .put(&[0, (sack.skip & 3) << 5 | u8::from(sack.probe) << 1])
                    .put(&sack.offset.to_be_bytes())
                    .put(&sack.entropy.to_be_bytes())
                    .put(&sack.ids[0].to_be_bytes())
                    .put(&sack.ids[1].to_be_bytes())
                    .put(&[0, psn[1], psn[2], psn[3]])
                    .put(&[0, sack.window])
                    .put(&sack.base.to_be_bytes())
                    .put(&sack.bitmap.to_be_bytes())
                    .put(&sack.stamp.to_be_bytes())
                    .put(&(sack.out_of_order & 0x7fff).to_be_bytes())
                    .put(&[sack.penalty & 0x7f, high, middle, low])
            }
            Self::Nack(nack) => headers
                .put(&[0, 0, nack.reason, 0])
                .put(&nack.entropy.to_be_bytes())
                .put(&nack.ids[0].to_be_bytes())
                .put(&nack.ids[1].to_be_bytes())
                .put(&[0, psn[1], psn[2], psn[3]])
                // cc_type 2: a reflected stamp follows.
                .put(&[2 << 4, 0])
                .put(&nack.stamp.to_be_bytes()),
            Self::Probe(probe) => headers
                .zeros(4)
                .put(&probe.number.to_be_bytes())
                .zeros(2)
                .put(&probe.ids[0].to_be_bytes())
                .put(&probe.ids[1].to_be_bytes())
                .put(&probe.stamp.to_be_bytes())
                .put(&[0, 1]),
        }
    }
}

impl MrcPacket {
    /// The length that the sender gave it, without padding to the shortest frame.
    pub(super) fn whole_bytes(&self) -> u32 {
        self.ethernet.bytes() + self.outer_bytes() + self.network.ip_bytes() + self.udp_bytes()
    }

    /// Its length after a trim.
    pub(super) fn bytes(&self) -> u32 {
        let whole = self.whole_bytes();
        self.trim.map_or(whole, |trim| whole.min(u32::from(trim.bytes)))
    }

    fn outer_bytes(&self) -> u32 {
        if self.segments.is_some() { IPV6_BYTES } else { 0 }
    }

    fn pad_count(&self) -> u8 {
        (self.body.payload().wrapping_neg() & 3) as u8
    }

    /// From the UDP header to the ICRC.
    fn udp_bytes(&self) -> u32 {
        let headers = u32::try_from(self.body.headers(self.psn).length).unwrap_or(0);
        let payload = u32::from(self.body.payload()) + u32::from(self.pad_count());
        network::UDP_BYTES + BTH_BYTES + headers + payload + ICRC_BYTES
    }

    /// Appends the packet, and cuts it where a switch has cut it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (bytes, udp) = (self.bytes(), self.udp_bytes());
        let outer_type = if self.segments.is_some() {
            IPV6
        } else {
            self.network.ether_type()
        };
        self.ethernet.encode(outer_type, out);
        // Bytes that are missing behind the trim.
        let missing = match self.trim {
            Some(trim) if trim.rewritten => self.whole_bytes() - bytes,
            _ => 0,
        };
        if let Some([source, destination]) = self.segments {
            let outer = Network {
                source,
                destination,
                flow_label: 0,
                ..self.network
            };
            let inner = self.network.ip_bytes() + udp - missing;
            outer.encode_v6(IPV6_IN_IPV6, inner, out);
        }
        let network_offset = out.len();
        self.network.encode_ip(UDP, udp - missing, out);
        network::encode_udp(
            self.source_port,
            self.destination_port,
            udp - network::UDP_BYTES,
            out,
        );
        let bth_offset = out.len();
        let [_, high, middle, low] = self.destination_qpn.value().to_be_bytes();
        let [_, first, second, third] = self.psn.to_be_bytes();
        let pad = self.pad_count();
        out.extend_from_slice(&[self.body.opcode(), pad << 4, 0xff, 0xff, 0, high, middle, low]);
        out.extend_from_slice(&[self.body.flags(), first, second, third]);
        let headers = self.body.headers(self.psn);
        out.extend_from_slice(headers.as_slice());
        out.extend((0..self.body.payload()).map(|byte| (byte & 0xff) as u8));
        out.resize(out.len() + usize::from(pad), 0);
        let icrc = self.icrc(out, network_offset, bth_offset);
        out.extend_from_slice(&icrc.to_le_bytes());
        out.truncate(start + usize::try_from(bytes).unwrap_or(usize::MAX - start));
    }

    /// The ICRC of IBTA A17: over the inner packet, where there is an outer header.
    fn icrc(&self, out: &[u8], network_offset: usize, bth_offset: usize) -> u32 {
        let Some(packet) = out.get(network_offset..) else {
            return 0;
        };
        let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        let headers = self.body.headers(self.psn).length;
        let behind = u32::try_from(headers).unwrap_or(0) + u32::from(self.body.payload());
        let fields = roce_wire::Roce {
            bth: packet
                .get(bth_offset - network_offset..)
                .and_then(<[u8]>::first_chunk)
                .map(|bytes| Bth(*bytes))
                .unwrap_or_default(),
            payload_bytes: behind,
            network_offset: 0,
            bth_offset: place(bth_offset - network_offset),
            carrier: self.network.carrier(Version::V2 {
                source_port: self.source_port,
            }),
            ..roce_wire::Roce::default()
        };
        icrc::compute(packet, &fields).unwrap_or(0)
    }
}
