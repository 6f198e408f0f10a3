//! Ultra Ethernet Transport: its packets beside the batch, and the table `uet_traffic`. Its connections are in `mrc_connections`.

use std::borrow::Cow;

use roce_wire::Address;
use roce_wire::transport::uet::Semantics;

use crate::table::table;
use crate::{MrcSack, TapId, Time};

/// A packet of UET in the stream: it comes before the packet at `before`.
#[derive(Clone, PartialEq, Debug)]
pub struct UetPacket {
    /// The index in [`crate::PacketBatch::packets`] that it precedes.
    pub before: usize,
    /// Time of capture.
    pub time: Time,
    /// Tap of capture.
    pub tap: TapId,
    /// Its frame's length on the wire, in bytes, without FCS.
    pub wire_bytes: u32,
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// UDP source port: its entropy.
    pub udp_source_port: u16,
    /// The low 16 bits of the IPv6 flow label; `None` with IPv4.
    pub flow_label: Option<u16>,
    /// IPv4 TOS or IPv6 traffic class.
    pub traffic_class: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
    /// Source and destination of the IPv6 header around it: SRv6.
    pub outer: Option<[Address; 2]>,
    /// Bytes of payload, without the headers.
    pub payload_bytes: u32,
    /// A switch has cut it: it came without its data.
    pub is_trimmed: bool,
    /// Its sender says that it is sent again.
    pub is_again: bool,
    /// A hash of its headers.
    pub hash: u32,
    /// The headers of packet delivery.
    pub headers: UetHeaders,
    /// The semantic layer, where there is one.
    pub semantics: Option<Semantics>,
}

/// Headers of packet delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UetHeaders {
    /// All behind them is encrypted.
    Secure {
        /// Number of the secure domain.
        domain: u32,
        /// Number of the source in it.
        source: Option<u32>,
    },
    /// A request of a connection.
    Request {
        /// Delivered in the order of PSNs (ROD).
        is_ordered: bool,
        /// Its PSN.
        psn: u32,
        /// Numbers of the connection: the sender's and the receiver's.
        ids: [u16; 2],
        /// First PSN of the connection, where the packet opens it: then the receiver's number is not known.
        first_psn: Option<u32>,
    },
    /// An idempotent request or its answer, without a connection (RUDI).
    Idempotent,
    /// An unreliable datagram (UUD).
    Datagram,
    /// An acknowledgement.
    Ack {
        /// The packets that arrived. Its ids are the sender's and the receiver's number of the connection.
        sack: MrcSack,
        /// The receiver asks for the connection's end.
        asks_close: bool,
    },
    /// A refusal.
    Nack {
        /// Why.
        code: u8,
        /// The refused PSN. `None`: it is about an idempotent packet.
        psn: Option<u32>,
        /// Numbers of the connection: the sender's and the receiver's.
        ids: [u16; 2],
    },
    /// A control packet.
    Control {
        /// Kind of control.
        kind: u8,
        /// The probe.
        probe: u16,
        /// Numbers of the connection: the sender's and the receiver's.
        ids: [u16; 2],
    },
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    UetTrafficRow, UetTrafficColumns, "uet_traffic", "Packets of UET from one host to another at one tap: those of one job, of one secure domain, or without either.";
    tap: TapId, "", "The tap at which they were seen: `taps.tap`.";
    source: Address, "", "Their sender.";
    destination: Address, "", "Their receiver.";
    job: Option<u32>, "", "Number of the job (JobID). Absent: encrypted, or packets without a semantic header, as most acknowledgements.";
    secure_domain: Option<u32>, "", "Number of the secure domain (SDI): they are encrypted, so that their kinds, connections and jobs are not known. Absent: not encrypted.";
    secure_source: Option<u32>, "", "Number of the source in it (SSI). Absent: the packets have none.";
    packets: u64, "packets", "The packets.";
    wire_bytes: u64, "bytes", "Their frames on the wire, without FCS.";
    payload_bytes: u64, "bytes", "Application data in them; of encrypted packets everything behind the security header.";
    unordered: u64, "packets", "Reliable requests in any order (RUD).";
    ordered: u64, "packets", "Reliable requests in order (ROD).";
    idempotent: u64, "packets", "Idempotent requests and their answers (RUDI).";
    datagrams: u64, "packets", "Unreliable datagrams (UUD).";
    acks: u64, "packets", "Acknowledgements.";
    nacks: u64, "packets", "Refusals.";
    controls: u64, "packets", "Control packets.";
    encrypted: u64, "packets", "Encrypted packets.";
    messages: u64, "messages", "First packets of messages; retransmissions are left out.";
    retransmitted: u64, "packets", "Packets that their sender marks as sent again.";
    errors: u64, "packets", "Answers with a return code that is an error.";
    operations: Option<Cow<'static, str>>, "", "Operations of requests, in the order of their codes. Absent: no request.";
    ce: u64, "packets", "Packets with CE in the IP header.";
    trimmed: u64, "packets", "Packets that came without their data: a switch whose queue was full had cut them.";
    first_time: Time, "ns", "The first packet.";
    last_time: Time, "ns", "The last packet.";
}
