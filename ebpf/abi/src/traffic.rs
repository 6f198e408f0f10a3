//! Counts and packet records of the classifier.

/// Flows that are counted apart at most; packets of more of them are counted in [`Losses::untracked`].
pub const FLOWS: u32 = 65_536;
/// Room for operations in [`FlowCounts::operations`]: a power of two over the number of `roce_wire::Operation`s.
pub const OPERATIONS: usize = 16;
/// Room for NAK codes in [`FlowCounts::naks`]: 0 to 4 are defined, the last one is for all reserved
/// ones.
pub const NAKS: usize = 8;
/// Limit of a packet's bytes in a record: enough for all RoCE headers.
pub const RECORD_BYTES: usize = 96;
/// Limit for packets of queue pair 1: the fields of a connection manager's REQ reach past byte 130.
pub const RECORD_BYTES_MANAGEMENT: usize = 384;

/// Task of the classifier besides counting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Mode {
    /// Nothing.
    Count = 0,
    /// Sends records of packets that tell of congestion or loss: CE, CNP, NAK, RNR NAK.
    Congestion = 1,
    /// Sends a record of every RoCE packet, and of every packet that looks like a broken one.
    Packets = 2,
}

/// Direction of a packet at the interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum Direction {
    /// Into this host.
    Ingress = 0,
    /// Out of it.
    Egress = 1,
}

/// Whose packets are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct FlowKey {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// The queue pair that they are for.
    pub qpn: u32,
    /// The index of the interface.
    pub interface: u32,
    /// A [`Direction`].
    pub direction: u32,
}

/// Counts of a flow's packets on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct FlowCounts {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames, without FCS; a VLAN tag that the NIC took off is not in them.
    pub wire_bytes: u64,
    /// Bytes of application data: `roce_wire::Roce::payload_bytes`.
    pub payload_bytes: u64,
    /// Packets by the ECN field of the IP header or GRH.
    pub ecn: [u64; 4],
    /// Packets by operation, in the order of `roce_wire::Operation`; congestion notifications are not among them.
    pub operations: [u64; OPERATIONS],
    /// Negative acknowledgements by code.
    pub naks: [u64; NAKS],
    /// RNR NAKs.
    pub rnr_naks: u64,
    /// Congestion notifications.
    pub cnps: u64,
}

/// Packets and events that were seen and not counted or not reported, on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Losses {
    /// RoCE packets of flows that found no room in the table.
    pub untracked: u64,
    /// Packets to the port of RoCEv2 that are not plain RoCE: cut, with odd lengths, or something else. They are not counted by flow;
    /// [`Mode::Packets`] sends them.
    pub undecoded: u64,
    /// Packet records that found no room in the ring buffer.
    pub packets: u64,
    /// Host events that found no room in theirs.
    pub events: u64,
}

/// Why a packet record was sent: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketReason;

impl PacketReason {
    /// Every packet is sent.
    pub const ALL: u16 = 0;
    /// Congestion experienced.
    pub const CE: u16 = 1;
    /// A congestion notification.
    pub const CNP: u16 = 2;
    /// A NAK.
    pub const NAK: u16 = 4;
    /// An RNR NAK.
    pub const RNR_NAK: u16 = 8;
}

/// Before the bytes of a packet record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct PacketHead {
    /// Time at which the classifier saw it.
    pub time: u64,
    /// The index of the interface.
    pub interface: u32,
    /// A [`Direction`].
    pub direction: u32,
    /// Bytes of the frame, without FCS and without the tag of `vlan`.
    pub original: u32,
    /// Bytes of the packet that follow.
    pub captured: u16,
    /// Bits of [`PacketReason`].
    pub reason: u16,
    /// The tag control field of a VLAN tag that the NIC took off, or will put on.
    pub vlan: u16,
    /// Its EtherType; 0: there is none.
    pub vlan_protocol: u16,
    /// Nothing.
    pub reserved: u32,
}
