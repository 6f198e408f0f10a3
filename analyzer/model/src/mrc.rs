//! Multipath Reliable Connection: headers of its packets beside the batch, and the tables `mrc_connections` and `mrc_paths`, which have
//! connections of UET as well.

use std::borrow::Cow;

use roce_wire::Address;

use crate::events::names;
use crate::table::table;
use crate::{Confidence, TapId, Time};

/// Headers of a packet that may be one of MRC, besides its [`crate::Packet`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcPacket {
    /// The index in [`crate::PacketBatch::packets`] of its packet.
    pub packet: usize,
    /// The headers.
    pub headers: MrcHeaders,
    /// The low 16 bits of the IPv6 flow label; 0 with IPv4.
    pub flow_label: u16,
    /// Source and destination of the IPv6 header around it: SRv6.
    pub outer: Option<[Address; 2]>,
    /// Bytes of payload, without the headers.
    pub payload_bytes: u32,
    /// The UDP length says more than the frame has: a switch has cut it.
    pub is_trimmed: bool,
    /// The packet alone proves that its queue pair speaks MRC: by its port, or by the form of its header.
    pub is_proof: bool,
    /// UDP destination port.
    pub udp_port: u16,
}

/// Fields of the headers of MRC (OCP-MRC-1.0, 7.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MrcHeaders {
    /// A packet of a WRITE.
    Write(MrcWrite),
    /// Messages are complete.
    Acknowledge {
        /// Syndrome of the AETH.
        syndrome: u8,
        /// Number of complete messages, 24 bits.
        messages: u32,
    },
    /// A selective acknowledgement.
    Sack(MrcSack),
    /// A refusal.
    Nack {
        /// Why.
        reason: u8,
        /// Entropy of the refused packet.
        entropy: u32,
        /// Low 16 bits of two queue pairs.
        ids: [u16; 2],
        /// The refused PSN.
        psn: u32,
        /// Time of the refused packet, as its sender stamped it.
        stamp: u16,
    },
    /// A probe of a connection's path.
    Probe {
        /// Its number.
        number: u16,
        /// Low 16 bits of two queue pairs.
        ids: [u16; 2],
    },
    /// A request to an endpoint.
    Request {
        /// 0 the state of ports, 1 a probe of a path.
        operation: u8,
        /// Ports that can be reached, a bit each.
        ports: u32,
    },
    /// The answer to such a request.
    Response,
}

/// A packet of a WRITE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcWrite {
    /// Number of its message.
    pub message: u16,
    /// When it was sent, by its sender.
    pub stamp: Option<u16>,
    /// Address that its payload goes to.
    pub address: u64,
    /// The key that allows the access.
    pub key: u32,
    /// Length of the whole message, in bytes.
    pub length: u32,
}

/// A selective acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcSack {
    /// 1: the path of the named packet is to be skipped once; 2: it is to be avoided.
    pub advice: u8,
    /// It answers a probe.
    pub answers_probe: bool,
    /// The named PSN less the cumulative one; of an answer to a probe, its number.
    pub named: i16,
    /// Entropy of the named packet. `None`: UET repeats none.
    pub entropy: Option<u32>,
    /// Low 16 bits of two queue pairs.
    pub ids: [u16; 2],
    /// All PSNs up to this one arrived.
    pub cumulative: u32,
    /// Window in 128 PSNs; 0 says nothing.
    pub window: u8,
    /// PSN of the bitmap's lowest bit less the cumulative one.
    pub offset: i16,
    /// A bit for each PSN that arrived.
    pub bitmap: u64,
    /// Congestion state, where there is one.
    pub state: Option<MrcState>,
}

/// The receiver's congestion state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcState {
    /// Time of the named packet, as its sender stamped it. `None`: UET repeats none.
    pub stamp: Option<u16>,
    /// Packets that arrived before others that were sent earlier.
    pub out_of_order: u16,
    /// How much smaller the window has to be: 0 to 127.
    pub penalty: u8,
}

/// A host's ports as it reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MrcPortLoss {
    /// The host.
    pub host: Address,
    /// The bits that a report no longer has and the one before had.
    pub lost: u32,
    /// Time of that report.
    pub time: Time,
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    MrcConnectionRow, MrcConnectionColumns, "mrc_connections", "One direction of a connection of MRC or UET: the packets of one requestor to one queue pair, or of one PDC, over all taps.";
    connection: u32, "", "Number of the connection, from 0.";
    transport: PathTransport, "", "MRC or UET.";
    requestor: Address, "", "The host that sends the data.";
    responder: Address, "", "The host that acknowledges them.";
    requestor_qpn: Option<u32>, "", "Queue pair of the requestor, from what answers it. Absent: no answer was captured, or UET.";
    responder_qpn: Option<u32>, "", "Queue pair of the responder. Absent: no data were captured, or UET.";
    requestor_pdc: Option<u32>, "", "UET: number of the connection (PDC) at the requestor. Absent: MRC.";
    responder_pdc: Option<u32>, "", "UET: its number at the responder. Absent: MRC, or no packet behind the first ones was captured.";
    delivery: MrcDelivery, "", "How the responder delivers packets: any_order (MRC, UET's RUD), in_order (ROD).";
    job: Option<u32>, "", "UET: job of its first request. `uet_traffic` has all jobs. Absent: MRC, or no request was captured.";
    opened_time: Option<Time>, "ns", "UET: the first packet that opens it (SYN). Absent: MRC, or none was captured.";
    closed_time: Option<Time>, "ns", "UET: the first packet that asks for its end. Absent: MRC, or none was captured.";
    taps: u32, "taps", "Taps that saw packets of it.";
    udp_port: u32, "", "UDP destination port.";
    entropy_order: MrcEntropyOrder, "", "Where the bits of an entropy are in data packets, as SACKs show: label_high, port_high, port, unknown. UET: port.";
    ids_order: MrcIdsOrder, "", "Which queue pair SACKs name first: sender_first, requestor_first, equal, unknown.";
    has_stamps: bool, "", "True if data packets carry their time of sending.";
    at_receiver: bool, "", "True if the taps are behind what was lost: times from data to SACK are the responder's, and paths of losses are not seen.";
    first_psn: Option<u32>, "", "Lowest PSN of captured data. Absent: none was captured.";
    last_psn: Option<u32>, "", "Highest PSN of captured data.";
    data_packets: u64, "packets", "Captured PSNs, each once.";
    packets: u64, "packets", "Captured data packets, retransmissions too.";
    payload_bytes: u64, "bytes", "Application data in them.";
    retransmitted_packets: u64, "packets", "Retransmissions.";
    retransmitted_bytes: u64, "bytes", "Application data in them.";
    rtx_hole: u64, "packets", "Retransmissions after a SACK with a hole there.";
    rtx_trimmed: u64, "packets", "Retransmissions after a NACK: trimmed in the fabric.";
    rtx_trimmed_lasthop: u64, "packets", "Retransmissions after a NACK: trimmed at the last hop.";
    rtx_refused: u64, "packets", "Retransmissions after a NACK with another reason.";
    rtx_timeout: u64, "packets", "Retransmissions after a silence.";
    rtx_unknown: u64, "packets", "Retransmissions whose cause was not captured.";
    lost: u64, "packets", "Packets that were sent again after a hole or a timeout, where an answer proves that an earlier sending did not arrive.";
    undecided: u64, "packets", "Packets that were sent again after a hole or a timeout, of which nothing shows if an earlier sending was lost or came late.";
    trimmed: u64, "packets", "Packets whose payload a switch of the fabric cut.";
    trimmed_lasthop: u64, "packets", "Packets whose payload the last switch cut.";
    spurious: u64, "packets", "Retransmissions of what had arrived.";
    spurious_bytes: u64, "bytes", "Application data in them.";
    reordered: u64, "packets", "Holes of SACKs that filled without a retransmission.";
    open: u64, "packets", "PSNs that no SACK speaks of until the end.";
    sacks: u64, "packets", "SACKs.";
    sacks_skip: u64, "packets", "SACKs that ask to skip a path once: the named packet was marked.";
    sacks_avoid: u64, "packets", "SACKs that ask to avoid a path.";
    nacks_trimmed: u64, "packets", "NACKs with reason 1: trimmed in the fabric.";
    nacks_trimmed_lasthop: u64, "packets", "NACKs with reason 2: trimmed at the last hop.";
    nacks_resources: u64, "packets", "NACKs with reasons 6, 7 and 10: no bitmap, no buffer, no resource.";
    nacks_window: u64, "packets", "NACKs with reason 11: the PSN is beyond the window.";
    nacks_failed: u64, "packets", "NACKs with reason 25: the connection ends.";
    nacks_other: u64, "packets", "NACKs with any other reason.";
    window_psns: Option<u32>, "", "Largest window of a SACK, in PSNs. Absent: no SACK says one.";
    penalty_max: u32, "", "Largest penalty of a SACK: 0 to 127.";
    penalty_sacks: u64, "packets", "SACKs with a penalty.";
    out_of_order_max: u32, "packets", "Largest number of packets that waited at the responder for earlier ones.";
    messages: u64, "messages", "Messages of which a packet was captured.";
    messages_complete: u64, "messages", "Messages of which every packet arrived.";
    completion_p50_ns: Option<u64>, "ns", "Time from a message's first packet to the SACK that completes it: median. Absent: none was complete.";
    completion_p99_ns: Option<u64>, "ns", "The same: 99th percentile.";
    probes: u64, "packets", "Probes.";
    probes_unanswered: u64, "packets", "Probes whose answer was not captured.";
    rtt_min_ns: Option<u64>, "ns", "Shortest time from a data packet to its SACK at the same tap. Absent: none is known.";
    repair_loss_ns: u64, "ns", "Time from the loss of a packet until it was sent again after a hole, each moment once.";
    repair_timeout_ns: u64, "ns", "The same after a silence.";
    repair_trim_ns: u64, "ns", "The same after a NACK: trimmed in the fabric.";
    repair_lasthop_ns: u64, "ns", "The same after a NACK: trimmed at the last hop.";
    repair_refused_ns: u64, "ns", "The same after a NACK with another reason.";
    skew_max_ns: Option<u64>, "ns", "Longest time by which a SACK named a packet after it had been sent again.";
    failed: bool, "", "True if a NACK or an AETH ended it and nothing followed.";
    first_time: Time, "ns", "Its first packet.";
    last_time: Time, "ns", "Its last packet.";
    last_data_time: Option<Time>, "ns", "Its last data packet. Absent: none was captured.";
    confidence: Confidence, "", "Confidence in losses and their paths: high (99 % of what was acknowledged was captured), medium (SACKs alone), low (a part of the paths).";
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    MrcPathRow, MrcPathColumns, "mrc_paths", "One path of a connection of MRC or UET: the packets with one entropy.";
    connection: u32, "", "The connection: `mrc_connections.connection`.";
    path: u32, "", "Number of the path within it, in the order of first packets. The last one sums up those beyond 1,023.";
    ev: Option<u32>, "", "Its entropy. Absent: nothing shows the order of its parts.";
    udp_source_port: Option<u32>, "", "UDP source port of its packets. Absent: no data of it were captured.";
    flow_label: Option<u32>, "", "Low 16 bits of the IPv6 flow label. Absent: likewise, or IPv4.";
    srv6: Option<Cow<'static, str>>, "", "Destination of the outer IPv6 header, whose parts name the switches. Absent: no SRv6.";
    plane: Option<u32>, "", "Number of the plane, by the outer source address, else by tap. Absent: one tap without SRv6 shows none.";
    sent: u64, "packets", "Captured data packets.";
    rtx: u64, "packets", "Retransmissions among them.";
    arrived: u64, "packets", "Data packets that arrived.";
    lost: u64, "packets", "Data packets that were lost.";
    trimmed: u64, "packets", "Data packets that were trimmed in the fabric.";
    trimmed_lasthop: u64, "packets", "Data packets that were trimmed at the last hop.";
    sacks: u64, "packets", "SACKs that name a packet of it, and answers to its probes.";
    marked: u64, "packets", "SACKs among them that ask to skip it once.";
    rtt_samples: u64, "", "Times from a data packet to the SACK that names it, at one tap.";
    rtt_min_ns: Option<u64>, "ns", "The shortest of them. Absent: none is known, or the taps are at the receiver.";
    rtt_p50_ns: Option<u64>, "ns", "Their median.";
    rtt_p99_ns: Option<u64>, "ns", "Their 99th percentile.";
    rtt_max_ns: Option<u64>, "ns", "The longest of them.";
    first_loss_time: Option<Time>, "ns", "Sending of the first packet of it that was lost. Absent: none was.";
    last_loss_time: Option<Time>, "ns", "Sending of the last packet of it that was lost.";
    last_sent_time: Option<Time>, "ns", "Its last data packet. Absent: none was captured.";
    last_arrived_time: Option<Time>, "ns", "Sending of the last packet of it that arrived.";
    probes_unanswered: u64, "packets", "Probes with its entropy that nothing answered.";
    repair_ns: u64, "ns", "Time from the loss of its packets until they were sent again, each moment once.";
    state: MrcPathState, "", "State at the end: in_use, retired, dead, unknown.";
}

names! {
    /// The transport of a connection.
    PathTransport {
        /// Multipath Reliable Connection.
        #[default]
        Mrc = "MRC",
        /// Ultra Ethernet Transport.
        Uet = "UET",
    }
}

names! {
    /// The order in which a responder delivers packets.
    MrcDelivery {
        /// As they come.
        #[default]
        AnyOrder = "any_order",
        /// As they were sent.
        InOrder = "in_order",
    }
}

names! {
    /// Where the bits of an entropy are.
    MrcEntropyOrder {
        /// Nothing shows it.
        #[default]
        Unknown = "unknown",
        /// The high bits are in the flow label.
        LabelHigh = "label_high",
        /// The high bits are in the UDP source port.
        PortHigh = "port_high",
        /// There are 16 bits, in the UDP source port.
        Port = "port",
    }
}

names! {
    /// Which of two queue pairs is named first.
    MrcIdsOrder {
        /// Nothing shows it.
        #[default]
        Unknown = "unknown",
        /// That of the packet's sender.
        SenderFirst = "sender_first",
        /// That of the requestor of the data.
        RequestorFirst = "requestor_first",
        /// Both names are equal.
        Equal = "equal",
    }
}

names! {
    /// State of a path at the end.
    MrcPathState {
        /// Too few packets show it.
        #[default]
        Unknown = "unknown",
        /// Its sender uses it.
        InUse = "in_use",
        /// Its sender stopped to use it after a loss.
        Retired = "retired",
        /// It is retired, and a probe of it was not answered.
        Dead = "dead",
    }
}

/// Conclusions about MRC that are in no table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MrcReports {
    /// Ports that hosts reported as lost.
    pub ports: Vec<MrcPortLoss>,
    /// Taps of data packets, by connection.
    pub taps: Vec<Vec<TapId>>,
}
