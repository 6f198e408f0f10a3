//! Messages of the connection manager (IBTA 12.6 and 12.7; Linux include/rdma/ibta_vol1_c12.h) in a management datagram of
//! 256 bytes (IBTA 13.4.3): how two queue pairs are connected and parted.
//!
//! `roce-wire` draws the layouts (`management`) and reads them. Only REQ, REP, RTU, DREQ and DREP are written.

use std::net::IpAddr;

use roce_wire::management::cm::CommId;
use roce_wire::{Address, Psn, Qpn};

/// The queue key of queue pair 1 (`IB_QP1_QKEY` of Linux include/rdma/ib_mad.h).
pub const QUEUE_KEY: u32 = 0x8001_0000;

/// A management datagram with a message of the connection manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The transaction: the same in a message and in what answers it.
    pub transaction: u64,
    /// The sender's communication id.
    pub local_id: CommId,
    /// The receiver's communication id. A REQ does not know it yet and has none.
    pub remote_id: CommId,
    /// The message.
    pub message: Message,
}

/// A message of the connection manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Request for a connection, by the active side.
    Req(Req),
    /// Reply to it, by the passive side.
    Rep(Rep),
    /// Ready to use, by the active side.
    Rtu,
    /// Request to disconnect.
    Dreq {
        /// The queue pair of the receiver of the message.
        remote_qpn: Qpn,
    },
    /// Reply to it.
    Drep,
}

/// Fields of a REQ. Times are codes: 4.096 us * 2^n, 5 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Req {
    /// The port that the passive side listens at: the service id is RDMA CM's over TCP (IBTA annex A11).
    pub port: u16,
    /// The port of the active side, in the private data of RDMA CM.
    pub source_port: u16,
    /// The active side's address: its GID of the primary path, and in the private data.
    pub source: Address,
    /// The passive side's.
    pub destination: Address,
    /// The GUID of the active side's adapter.
    pub guid: u64,
    /// The queue pair of the active side.
    pub local_qpn: Qpn,
    /// The PSN of the first request that the passive side is to send.
    pub starting_psn: Psn,
    /// The transport of the queue pair.
    pub transport: ConnectedService,
    /// True if it uses end-to-end flow control.
    pub flow_control: bool,
    /// Number of READs and ATOMICs that the active side answers at a time.
    pub responder_resources: u8,
    /// Number of READs and ATOMICs that it will have outstanding.
    pub initiator_depth: u8,
    /// The most payload that a packet may carry.
    pub path_mtu: PathMtu,
    /// Time that the queue pair waits for an ACK; 0 = for ever.
    pub ack_timeout: u8,
    /// Retries after a timeout or a sequence error, 3 bits.
    pub retry_count: u8,
    /// Retries after an RNR NAK, 3 bits; 7 = without limit.
    pub rnr_retry_count: u8,
    /// Longest delay of an answer, for either side of the connection manager.
    pub response_timeout: u8,
    /// Retries of the connection manager's messages, 4 bits.
    pub cm_retries: u8,
    /// The traffic class of the primary path.
    pub traffic_class: u8,
    /// The hop limit of the primary path.
    pub hop_limit: u8,
    /// The flow label of the primary path, 20 bits.
    pub flow_label: u32,
    /// The code of the path's rate, 6 bits (`enum ib_rate` of Linux include/rdma/ib_verbs.h): 16 = 100 Gb/s.
    pub rate: u8,
    /// The service level of the primary path, 4 bits: with RoCE the priority.
    pub service_level: u8,
}

/// Fields of a REP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rep {
    /// The GUID of the passive side's adapter.
    pub guid: u64,
    /// The queue pair of the passive side.
    pub local_qpn: Qpn,
    /// The PSN of the first request that the active side is to send.
    pub starting_psn: Psn,
    /// Number of READs and ATOMICs that the passive side answers at a time.
    pub responder_resources: u8,
    /// Number of READs and ATOMICs that it will have outstanding.
    pub initiator_depth: u8,
    /// True if it uses end-to-end flow control.
    pub flow_control: bool,
    /// Longest delay of its acknowledgements: 4.096 us * 2^n, 5 bits.
    pub target_ack_delay: u8,
    /// Retries of the active side after an RNR NAK, 3 bits; 7 = without limit.
    pub rnr_retry_count: u8,
}

/// A connected transport service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ConnectedService {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Extended reliable connection.
    Xrc,
}

/// A path MTU, by its code in a REQ (IBTA 12.6.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum PathMtu {
    /// 256 bytes.
    Bytes256 = 1,
    /// 512 bytes.
    Bytes512 = 2,
    /// 1024 bytes.
    #[default]
    Bytes1024 = 3,
    /// 2048 bytes.
    Bytes2048 = 4,
    /// 4096 bytes.
    Bytes4096 = 5,
}

const MAD_BYTES: usize = 24;
const WHOLE: usize = 256;
/// Start of the private data of a REQ.
const PRIVATE: usize = 140;
/// RDMA CM's service ids over TCP (IBTA annex A11; Linux include/rdma/ib.h): protocol 6 and the port.
const RDMA_CM_TCP: u64 = 0x0000_0000_0106_0000;
/// LID with RoCE, which has none.
const NO_LID: u16 = 0xffff;

impl PathMtu {
    /// The largest that does not exceed `bytes`, at least 256.
    pub const fn within(bytes: u16) -> Self {
        match bytes {
            4096.. => Self::Bytes4096,
            2048.. => Self::Bytes2048,
            1024.. => Self::Bytes1024,
            512.. => Self::Bytes512,
            _ => Self::Bytes256,
        }
    }

    /// In bytes.
    pub const fn bytes(self) -> u16 {
        128 << self as u8
    }
}

impl Req {
    /// A request as rping's with Linux, but for the rate, which that leaves at 0: 7 retries of either kind, an ACK
    /// timeout of 4.096 us * 2^19 = 2.1 s.
    pub const fn new(source: Address, destination: Address, local_qpn: Qpn, starting_psn: Psn) -> Self {
        Self {
            port: 7174,
            source_port: 0xc000,
            source,
            destination,
            guid: 0,
            local_qpn,
            starting_psn,
            transport: ConnectedService::Rc,
            flow_control: false,
            responder_resources: 1,
            initiator_depth: 1,
            path_mtu: PathMtu::Bytes1024,
            ack_timeout: 19,
            retry_count: 7,
            rnr_retry_count: 7,
            response_timeout: 20,
            cm_retries: 15,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
            rate: 16,
            service_level: 0,
        }
    }

    fn encode(&self, data: &mut [u8; WHOLE - MAD_BYTES]) {
        put(data, 8, (RDMA_CM_TCP | u64::from(self.port)).to_be_bytes());
        put(data, 16, self.guid.to_be_bytes());
        put(data, 32, triple(self.local_qpn.value()));
        data[35] = self.responder_resources;
        data[39] = self.initiator_depth;
        let (service, extended) = match self.transport {
            ConnectedService::Rc => (0, 0),
            ConnectedService::Uc => (1, 0),
            ConnectedService::Xrc => (3, 1),
        };
        data[43] = self.response_timeout << 3 | service << 1 | u8::from(self.flow_control);
        put(data, 44, triple(self.starting_psn.value()));
        data[47] = self.response_timeout << 3 | self.retry_count & 7;
        put(data, 48, [0xff; 2]);
        data[50] = (self.path_mtu as u8) << 4 | self.rnr_retry_count & 7;
        data[51] = self.cm_retries << 4 | extended;
        put(data, 52, NO_LID.to_be_bytes());
        put(data, 54, NO_LID.to_be_bytes());
        put(data, 56, *self.source.octets());
        put(data, 72, *self.destination.octets());
        let label_and_rate = (self.flow_label & 0x000f_ffff) << 12 | u32::from(self.rate & 0x3f);
        put(data, 88, label_and_rate.to_be_bytes());
        (data[92], data[93]) = (self.traffic_class, self.hop_limit);
        data[94] = self.service_level << 4;
        data[95] = self.ack_timeout << 3;
        self.encode_private(data);
    }

    /// The addresses in the private data (struct `cma_hdr` of Linux drivers/infiniband/core/cma.c): an
    /// IPv4 address is in the last 4 bytes of its 16.
    fn encode_private(&self, data: &mut [u8; WHOLE - MAD_BYTES]) {
        let ends = [(4, self.source), (20, self.destination)];
        let v4 = ends
            .iter()
            .all(|(_, end)| matches!(end.as_ip(), Some(IpAddr::V4(_))));
        data[PRIVATE + 1] = if v4 { 4 << 4 } else { 6 << 4 };
        put(data, PRIVATE + 2, self.source_port.to_be_bytes());
        for (at, end) in ends {
            let octets = end.octets();
            if v4 {
                put(
                    data,
                    PRIVATE + at + 12,
                    [octets[12], octets[13], octets[14], octets[15]],
                );
            } else {
                put(data, PRIVATE + at, *octets);
            }
        }
    }
}

impl Rep {
    /// A reply as rping's with Linux.
    pub const fn new(local_qpn: Qpn, starting_psn: Psn) -> Self {
        Self {
            guid: 0,
            local_qpn,
            starting_psn,
            responder_resources: 1,
            initiator_depth: 1,
            flow_control: false,
            target_ack_delay: 15,
            rnr_retry_count: 7,
        }
    }

    fn encode(&self, data: &mut [u8; WHOLE - MAD_BYTES]) {
        put(data, 12, triple(self.local_qpn.value()));
        put(data, 20, triple(self.starting_psn.value()));
        (data[24], data[25]) = (self.responder_resources, self.initiator_depth);
        // Failover: 0, accepted.
        data[26] = self.target_ack_delay << 3 | u8::from(self.flow_control);
        data[27] = self.rnr_retry_count << 5;
        put(data, 28, self.guid.to_be_bytes());
    }
}

impl Message {
    /// The attribute of the management datagram.
    const fn attribute(&self) -> u16 {
        match self {
            Self::Req(_) => 0x0010,
            Self::Rep(_) => 0x0013,
            Self::Rtu => 0x0014,
            Self::Dreq { .. } => 0x0015,
            Self::Drep => 0x0016,
        }
    }
}

impl Datagram {
    /// The length of a management datagram.
    pub const BYTES: u16 = 256;

    /// Its bytes.
    pub(super) fn encode(&self) -> [u8; WHOLE] {
        let mut data = [0; WHOLE - MAD_BYTES];
        put(&mut data, 0, self.local_id.0.to_be_bytes());
        if !matches!(self.message, Message::Req(_)) {
            put(&mut data, 4, self.remote_id.0.to_be_bytes());
        }
        match &self.message {
            Message::Req(req) => req.encode(&mut data),
            Message::Rep(rep) => rep.encode(&mut data),
            Message::Dreq { remote_qpn } => put(&mut data, 8, triple(remote_qpn.value())),
            Message::Rtu | Message::Drep => {}
        }
        let mut bytes = [0; WHOLE];
        // Base version 1, communication management, class version 2, method Send.
        put(&mut bytes, 0, [1, 0x07, 2, 0x03]);
        put(&mut bytes, 8, self.transaction.to_be_bytes());
        put(&mut bytes, 16, self.message.attribute().to_be_bytes());
        put(&mut bytes, MAD_BYTES, data);
        bytes
    }
}

/// Writes `value` at `at`; what lies beyond the end is left out.
fn put<const N: usize, const M: usize>(bytes: &mut [u8; M], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = value;
    }
}

/// The low 24 bits.
fn triple(value: u32) -> [u8; 3] {
    let [_, high, middle, low] = value.to_be_bytes();
    [high, middle, low]
}
