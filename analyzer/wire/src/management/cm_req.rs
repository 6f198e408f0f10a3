//! REQ, the connection manager's request for a connection (IBTA 12.6.5; Linux include/rdma/ibta_vol1_c12.h), and the
//! IP addresses in its private data (IBTA annex A11; struct cma_hdr of Linux drivers/infiniband/core/cma.c).
//!
//! Offsets count from the end of the common MAD header, bits from the most significant one.
//!
//! ```text
//!  0..4     local communication id          8..16   service id            16..24  GUID
//! 28..32    queue key                      32..35   local QPN             35      responder resources
//! 39        initiator depth                43       remote response timeout 5 bits, transport 2, flow control 1
//! 44..47    starting PSN                   47       local response timeout 5 bits, retry count 3
//! 48..50    P_Key                          50       path MTU 4 bits, RDC 1, RNR retry count 3
//! 51        CM retries 4 bits, SRQ 1, extended transport 3
//! 52..96    primary path: 0..2 local LID, 2..4 remote LID, 4..20 local GID, 20..36 remote GID,
//!           36..40 flow label and rate, 40 traffic class, 41 hop limit, 42 SL, 43 local ACK timeout 5 bits
//! 96..140   alternate path
//! 140..232  private data; through RDMA CM over IP:
//!           0 version | 1 IP version 4 bits | 2..4 source port | 4..20 source | 20..36 destination
//! ```

use core::fmt;

use super::comm_id::CommId;
use crate::bytes::{chunk, part};
use crate::{Address, Psn, Qpn, Service};

/// View of a REQ. Its first 36 bytes name the requesting queue pair; a capture cut at 128 bytes still
/// has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Req<'a> {
    head: &'a [u8; 36],
    rest: Option<&'a [u8; 104]>,
    private: &'a [u8],
}

/// View of the rest of a REQ, up to its private data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReqDetail<'a>(&'a [u8; 104]);

/// View of the addresses in the private data of a REQ through RDMA CM over IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpAddressing<'a>(pub &'a [u8; 36]);

/// A service id: 64 bits; `0x0000000001pppppp` is RDMA CM's, with the IP protocol and the port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ServiceId(pub u64);

impl<'a> Req<'a> {
    /// A view of the data of a REQ; `None` when its first 36 bytes are not all there.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        Some(Self {
            head: chunk(data, 0)?,
            rest: chunk(data, 36),
            private: data.get(140..).unwrap_or_default(),
        })
    }

    /// The communication id of the active side.
    pub const fn local_id(&self) -> CommId {
        CommId(u32::from_be_bytes(part::<0, 4, 36>(self.head)))
    }

    /// Requested service.
    pub const fn service_id(&self) -> ServiceId {
        ServiceId(u64::from_be_bytes(part::<8, 8, 36>(self.head)))
    }

    /// The queue key of a datagram service.
    pub const fn queue_key(&self) -> u32 {
        u32::from_be_bytes(part::<28, 4, 36>(self.head))
    }

    /// The queue pair of the active side.
    pub const fn local_qpn(&self) -> Qpn {
        Qpn::new(u32::from_be_bytes([
            0,
            self.head[32],
            self.head[33],
            self.head[34],
        ]))
    }

    /// Number of READs and ATOMICs that the active side answers at a time.
    pub const fn responder_resources(&self) -> u8 {
        self.head[35]
    }

    /// The fields up to the private data, if they were captured.
    pub fn detail(&self) -> Option<ReqDetail<'a>> {
        self.rest.map(ReqDetail)
    }

    /// Captured bytes of the private data: 92 when whole.
    pub const fn private_data(&self) -> &'a [u8] {
        self.private
    }

    /// The IP addresses in the private data, if the service id is RDMA CM's over IP and they were captured.
    pub fn ip_addressing(&self) -> Option<IpAddressing<'a>> {
        let addressing = IpAddressing(chunk(self.private, 0)?);
        (self.service_id().is_rdma_ip() && matches!(addressing.ip_version(), 4 | 6)).then_some(addressing)
    }
}

impl ReqDetail<'_> {
    /// Number of READs and ATOMICs that the active side will have outstanding.
    pub const fn initiator_depth(&self) -> u8 {
        self.0[39 - 36]
    }

    /// Longest delay of the passive side's answer: 4.096 us * 2^n.
    pub const fn remote_response_timeout(&self) -> u8 {
        self.0[43 - 36] >> 3
    }

    /// The transport service: RC, UC or RD, or XRC by the extended type.
    pub const fn transport(&self) -> Option<Service> {
        match (self.0[43 - 36] >> 1 & 3, self.0[51 - 36] & 7) {
            (0, _) => Some(Service::Rc),
            (1, _) => Some(Service::Uc),
            (2, _) => Some(Service::Rd),
            (_, 1) => Some(Service::Xrc),
            _ => None,
        }
    }

    /// True if the queue pair uses end-to-end flow control.
    pub const fn has_flow_control(&self) -> bool {
        self.0[43 - 36] & 1 != 0
    }

    /// The PSN of the first request that the passive side is to send (`cm_req_handler` of Linux drivers/infiniband/core/cm.c).
    pub const fn starting_psn(&self) -> Psn {
        Psn::new(u32::from_be_bytes([
            0,
            self.0[44 - 36],
            self.0[45 - 36],
            self.0[46 - 36],
        ]))
    }

    /// Longest delay of the active side's answer: 4.096 us * 2^n.
    pub const fn local_response_timeout(&self) -> u8 {
        self.0[47 - 36] >> 3
    }

    /// Retries after a timeout or a sequence error.
    pub const fn retry_count(&self) -> u8 {
        self.0[47 - 36] & 7
    }

    /// The partition key.
    pub const fn partition_key(&self) -> u16 {
        u16::from_be_bytes(part::<12, 2, 104>(self.0))
    }

    /// The code of the path MTU: 1 to 5 for 256 to 4,096 bytes.
    pub const fn path_mtu_code(&self) -> u8 {
        self.0[50 - 36] >> 4
    }

    /// The path MTU in bytes: the most payload that a packet may carry.
    pub const fn path_mtu(&self) -> Option<u16> {
        match self.path_mtu_code() {
            code @ 1..=5 => Some(128 << code),
            _ => None,
        }
    }

    /// Retries after an RNR NAK; 7 = without limit.
    pub const fn rnr_retry_count(&self) -> u8 {
        self.0[50 - 36] & 7
    }

    /// Retries of the connection manager's messages.
    pub const fn max_cm_retries(&self) -> u8 {
        self.0[51 - 36] >> 4
    }

    /// True if the queue pair receives from a shared receive queue.
    pub const fn has_shared_receive_queue(&self) -> bool {
        self.0[51 - 36] & 8 != 0
    }

    /// Primary path: the LID of the active side; 0xffff with RoCE.
    pub const fn primary_local_lid(&self) -> u16 {
        u16::from_be_bytes(part::<16, 2, 104>(self.0))
    }

    /// Primary path: the LID of the passive side.
    pub const fn primary_remote_lid(&self) -> u16 {
        u16::from_be_bytes(part::<18, 2, 104>(self.0))
    }

    /// Primary path: the GID of the active side; with RoCEv2 an IP address.
    pub const fn primary_local_gid(&self) -> Address {
        Address::v6(part::<20, 16, 104>(self.0))
    }

    /// Primary path: the GID of the passive side.
    pub const fn primary_remote_gid(&self) -> Address {
        Address::v6(part::<36, 16, 104>(self.0))
    }

    /// Primary path: the traffic class.
    pub const fn primary_traffic_class(&self) -> u8 {
        self.0[92 - 36]
    }

    /// Primary path: the hop limit.
    pub const fn primary_hop_limit(&self) -> u8 {
        self.0[93 - 36]
    }

    /// Primary path: how long the queue pair waits for an ACK: 4.096 us * 2^n, 0 = for ever.
    pub const fn primary_ack_timeout(&self) -> u8 {
        self.0[95 - 36] >> 3
    }
}

impl IpAddressing<'_> {
    /// 4 or 6.
    pub const fn ip_version(&self) -> u8 {
        self.0[1] >> 4
    }

    /// The port of the active side.
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// The address of the active side.
    pub const fn source(&self) -> Address {
        if self.ip_version() == 4 {
            return Address::v4(part::<16, 4, 36>(self.0));
        }
        Address::v6(part::<4, 16, 36>(self.0))
    }

    /// The address of the passive side.
    pub const fn destination(&self) -> Address {
        if self.ip_version() == 4 {
            return Address::v4(part::<32, 4, 36>(self.0));
        }
        Address::v6(part::<20, 16, 36>(self.0))
    }
}

impl ServiceId {
    /// True if it is of RDMA CM over IP (IBTA annex A11).
    pub const fn is_rdma_ip(self) -> bool {
        self.0 >> 24 == 1
    }

    /// The port that the passive side listens at, of an RDMA CM service id.
    pub const fn port(self) -> Option<u16> {
        if self.is_rdma_ip() {
            Some((self.0 & 0xffff) as u16)
        } else {
            None
        }
    }
}

impl fmt::Display for Req<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "REQ from QP {} for service {}",
            self.local_qpn(),
            self.service_id()
        )
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port() {
            Some(port) => write!(f, "0x{:016x} (port {port})", self.0),
            None => write!(f, "0x{:016x}", self.0),
        }
    }
}

impl fmt::Display for IpAddressing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} port {} > {}",
            self.source(),
            self.source_port(),
            self.destination()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_by_ibta_12_6_5() {
        let mut data = [0; 232];
        // Remote timeout 20, transport 1 (UC), flow control: 0b10100_01_1. Local timeout 18, retries 7: 0b10010_111.
        // MTU code 3, RNR retries 6: 0b0011_0_110. CM retries 15, SRQ: 0b1111_1_000.
        (data[43], data[47], data[50], data[51]) = (0xa3, 0x97, 0x36, 0xf8);
        // ACK timeout 19: 0b10011_000.
        data[95] = 0x98;
        let Some(detail) = Req::parse(&data).and_then(|req| req.detail()) else {
            panic!("a REQ")
        };
        assert_eq!(
            (detail.remote_response_timeout(), detail.local_response_timeout()),
            (20, 18)
        );
        assert_eq!(detail.transport(), Some(Service::Uc));
        assert!(detail.has_flow_control() && detail.has_shared_receive_queue());
        assert_eq!(
            (
                detail.retry_count(),
                detail.rnr_retry_count(),
                detail.max_cm_retries()
            ),
            (7, 6, 15)
        );
        assert_eq!(
            (detail.path_mtu(), detail.primary_ack_timeout()),
            (Some(1024), 19)
        );
        // Transport 3 and extended type 1: XRC.
        (data[43], data[51]) = (0x06, 0x01);
        let transport = Req::parse(&data)
            .and_then(|req| req.detail())
            .and_then(|detail| detail.transport());
        assert_eq!(transport, Some(Service::Xrc));
    }

    #[test]
    fn the_first_36_bytes_are_enough_for_the_queue_pair() {
        let mut data = [0; 40];
        data[34] = 0x11;
        let Some(req) = Req::parse(&data) else {
            panic!("a REQ")
        };
        assert_eq!(req.local_qpn(), Qpn::new(0x11));
        assert_eq!(
            (req.detail(), req.private_data(), req.ip_addressing()),
            (None, &[][..], None)
        );
        assert_eq!(Req::parse(&data[..35]), None);
    }
}
