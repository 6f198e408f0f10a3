//! Results of decoding a frame: a RoCE packet as plain values, a pause frame, or the kind of another
//! frame.

use core::fmt;

use crate::transport::mrc;
use crate::{Address, Aeth, Bth, Ecn, ExtendedHeaders, Opcode, Pause, Service, Stop, Telemetry};

/// Carrier of a packet's transport headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Carrier {
    /// RoCEv2: UDP port 4791 over IPv4 (IBTA A17).
    #[default]
    RoceV2Ipv4,
    /// RoCEv2 over IPv6.
    RoceV2Ipv6,
    /// RoCEv1: EtherType 0x8915 and a GRH (IBTA A16).
    RoceV1,
    /// Native InfiniBand without a global routing header.
    InfinibandLocal,
    /// Native InfiniBand with a global routing header.
    InfinibandGlobal,
}

impl Carrier {
    /// True if the packet has an IP header, so that its ECN field and DSCP mean what RFC 3168 and RFC 2474 say.
    #[inline]
    pub const fn has_ip(self) -> bool {
        matches!(self, Self::RoceV2Ipv4 | Self::RoceV2Ipv6)
    }

    /// The name as written in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoceV2Ipv4 => "RoCEv2/IPv4",
            Self::RoceV2Ipv6 => "RoCEv2/IPv6",
            Self::RoceV1 => "RoCEv1",
            Self::InfinibandLocal => "InfiniBand",
            Self::InfinibandGlobal => "InfiniBand/GRH",
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The layers that a packet came through besides its own, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Through(u16);

impl Through {
    /// Nothing but its own headers.
    pub const NOTHING: Self = Self(0);
    /// One or more 802.1Q or 802.1ad tags.
    pub const VLAN: Self = Self(1);
    /// MPLS labels.
    pub const MPLS: Self = Self(1 << 1);
    /// VXLAN.
    pub const VXLAN: Self = Self(1 << 2);
    /// Geneve.
    pub const GENEVE: Self = Self(1 << 3);
    /// GRE.
    pub const GRE: Self = Self(1 << 4);
    /// ERSPAN type I.
    pub const ERSPAN_I: Self = Self(1 << 5);
    /// ERSPAN type II.
    pub const ERSPAN_II: Self = Self(1 << 6);
    /// ERSPAN type III.
    pub const ERSPAN_III: Self = Self(1 << 7);
    /// IPv6 extension headers.
    pub const IPV6_EXTENSION: Self = Self(1 << 8);
    /// IPv4 options.
    pub const IPV4_OPTIONS: Self = Self(1 << 9);
    /// IP in IP.
    pub const IP_IN_IP: Self = Self(1 << 10);
    /// In-band flow analyzer: telemetry of switches between UDP and the BTH.
    pub const IFA: Self = Self(1 << 11);
    /// A congestion signaling tag.
    pub const CSIG: Self = Self(1 << 12);

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if all of `other` are in the set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if the packet came through nothing but its own headers.
    pub const fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Through, &str); 13] = [
            (Through::VLAN, "802.1Q"),
            (Through::MPLS, "MPLS"),
            (Through::VXLAN, "VXLAN"),
            (Through::GENEVE, "Geneve"),
            (Through::GRE, "GRE"),
            (Through::ERSPAN_I, "ERSPAN I"),
            (Through::ERSPAN_II, "ERSPAN II"),
            (Through::ERSPAN_III, "ERSPAN III"),
            (Through::IPV6_EXTENSION, "IPv6 extension"),
            (Through::IPV4_OPTIONS, "IPv4 options"),
            (Through::IP_IN_IP, "IP in IP"),
            (Through::IFA, "IFA"),
            (Through::CSIG, "CSIG"),
        ];
        let mut separator = "";
        for (layer, name) in NAMES {
            if self.has(layer) {
                write!(f, "{separator}{name}")?;
                separator = "+";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Through({self})")
    }
}

/// An 802.1Q tag control field: PCP (3 bits), DEI (1), VID (12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VlanTag(pub u16);

impl VlanTag {
    /// The VLAN identifier, 0 to 4095.
    pub const fn id(self) -> u16 {
        self.0 & 0x0fff
    }

    /// The priority code point, 0 to 7.
    pub const fn priority(self) -> u8 {
        (self.0 >> 13) as u8
    }

    /// The drop eligible indicator.
    pub const fn drop_eligible(self) -> bool {
        self.0 & 0x1000 != 0
    }
}

/// A RoCE packet (RoCEv1, RoCEv2 or native InfiniBand) as plain values: what both decoding paths give.
///
/// Lengths come from the headers, so that a capture cut by a snaplen counts the same bytes as a whole one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Roce {
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// The base transport header.
    pub bth: Bth,
    /// The first four bytes of the AETH when [`Roce::seen`] has it: syndrome and MSN.
    pub aeth: Aeth,
    /// RETH: the length of the whole message in bytes; 0 unless [`Roce::seen`] has the RETH.
    pub dma_length: u32,
    /// DETH: the sender's queue pair; 0 unless [`Roce::seen`] has the DETH.
    pub source_qpn: u32,
    /// Application data in this packet, in bytes, without padding and ICRC. The 16 reserved bytes of a CNP count here
    /// too (so that the lengths add up): [`Opcode::carries_data`](crate::Opcode::carries_data) tells data from those.
    pub payload_bytes: u32,
    /// The VXLAN or Geneve network identifier of the innermost overlay, if it came through one.
    pub vni: Option<u32>,
    /// Offset in the frame of the IP header, the GRH or (without a GRH) the LRH, in bytes.
    pub network_offset: u16,
    /// Offset of the BTH in the frame, in bytes.
    pub bth_offset: u16,
    /// The innermost VLAN tag in front of the packet's own network header.
    pub vlan: Option<VlanTag>,
    /// The UDP source port: entropy for ECMP, not an address. 0 without UDP.
    pub udp_source_port: u16,
    /// The IPv4 identification; 0 otherwise.
    pub ip_id: u16,
    /// IPv4 TOS, IPv6 or GRH traffic class.
    pub traffic_class: u8,
    /// IPv4 TTL, IPv6 or GRH hop limit.
    pub hop_limit: u8,
    /// Carrier of the transport headers.
    pub carrier: Carrier,
    /// Tunnel around the packet.
    pub through: Through,
    /// The extended headers that were captured whole.
    pub seen: ExtendedHeaders,
}

/// The operation of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// By its opcode in IBTA's tables.
    Ibta(Opcode),
    /// One of MRC, by its name.
    Mrc(&'static str),
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ibta(opcode) => opcode.fmt(f),
            Self::Mrc(name) => f.write_str(name),
        }
    }
}

impl Roce {
    /// The operation, whose text is its name: by the table of IBTA, and of MRC where the packet has its headers.
    pub fn operation(&self) -> Operation {
        let opcode = self.bth.opcode();
        match mrc::name(opcode.0) {
            Some(name) if self.seen == ExtendedHeaders::MRC => Operation::Mrc(name),
            _ => Operation::Ibta(opcode),
        }
    }

    /// The ECN field of its IP header (of the GRH's traffic class in RoCEv1).
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_traffic_class(self.traffic_class)
    }

    /// The DSCP of its IP header.
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// The transport service.
    #[inline]
    pub const fn service(&self) -> Service {
        self.bth.opcode().service()
    }

    /// Bytes from the BTH to the end of the ICRC, by the headers.
    pub fn transport_bytes(&self) -> u32 {
        12 + u32::from(self.bth.opcode().extended_bytes())
            + self.payload_bytes
            + u32::from(self.bth.pad_count())
            + 4
    }
}

/// The mirror session that a frame came through, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mirror {
    /// By what it was mirrored.
    pub kind: MirrorKind,
    /// The ERSPAN session (10 bits), or the VXLAN or Geneve network identifier.
    pub session: u32,
    /// The GRE sequence number: gaps in it are mirrored packets that were lost on the way here.
    pub sequence: Option<u32>,
    /// ERSPAN's T bit: the mirror cut the frame.
    pub truncated: bool,
    /// ERSPAN III: the mirror's own 32-bit timestamp.
    pub timestamp: Option<u32>,
    /// ERSPAN II: the 20-bit port index; ERSPAN III: the hardware id.
    pub index: u32,
}

/// The kinds of mirror sessions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "each variant is the encapsulation it names")]
pub enum MirrorKind {
    ErspanI,
    ErspanII,
    ErspanIII,
    Vxlan,
    Geneve,
    Gre,
}

/// Content of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// A RoCE packet.
    Roce(Roce),
    /// A packet of Ultra Ethernet Transport. It has no BTH: of its fields those of the network are set, and `bth_offset` is where its own
    /// headers begin ([`crate::transport::uet::parse`]). `payload_bytes` are those of its UDP payload.
    Uet(Roce),
    /// A copy that carries telemetry of switches beside its packet (IFA): addresses, source port and BTH are those of the packet, which
    /// comes itself.
    Copy(Roce),
    /// A priority flow control or pause frame.
    Pause(Pause),
    /// A later fragment of an IP datagram to the RoCEv2 port cannot be recognised: any non-first fragment of UDP.
    Fragment,
    /// Something else, whole or not.
    Other(Other),
}

/// Why a frame is not a RoCE packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Other {
    /// Not RoCE: other traffic.
    NotRoce,
    /// It leads to RoCE (UDP port 4791, EtherType 0x8915, an InfiniBand link) but its BTH could not be read.
    Undecodable,
    /// The link type is not one that the decoder knows.
    UnknownLink,
}

/// All that decoding a frame gives. Decoding never fails: it says what was understood and where it stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodedFrame {
    /// Content of the frame.
    pub content: Content,
    /// The outermost mirror session, if the frame came through one.
    pub mirror: Option<Mirror>,
    /// Reason and place where decoding stopped, if before the end of the headers.
    pub stop: Option<Stop>,
    /// Telemetry of switches that it came by.
    pub telemetry: Telemetry,
}

impl DecodedFrame {
    /// A frame that was read whole, without a mirror and without telemetry.
    #[inline]
    pub const fn new(content: Content) -> Self {
        Self {
            content,
            mirror: None,
            stop: None,
            telemetry: Telemetry {
                csig: None,
                is_wide: false,
                ifa: None,
                ioam: None,
            },
        }
    }

    /// True of a packet with data that is shorter on the wire than its UDP length says, as one that a switch has trimmed: IP's length is
    /// as before, and more than the frame has, or that of what is left, and less than UDP's. Its capture may be cut as well. A packet in a
    /// tunnel is none, since switches trim no such packets, and mirrors cut frames themselves.
    pub fn is_short(&self) -> bool {
        let (Some(stop), None) = (self.stop, self.mirror) else {
            return false;
        };
        let roce = match &self.content {
            Content::Roce(roce) if roce.bth.opcode().carries_data() => roce,
            Content::Uet(roce) => roce,
            _ => return false,
        };
        let bare = Through::VLAN
            .and(Through::CSIG)
            .and(Through::IPV4_OPTIONS)
            .and(Through::IPV6_EXTENSION);
        let own = [
            u32::from(roce.network_offset),
            u32::from(roce.bth_offset).saturating_sub(8),
        ];
        stop.is_beyond_frame()
            && own.contains(&stop.offset)
            && bare.has(roce.through)
            && roce.payload_bytes == 0
    }
}
