//! Messages of the connection manager (IBTA 12.6 and 12.7; Linux include/rdma/ibta_vol1_c12.h): what pairs the two
//! queue pairs of a connection.
//!
//! Each message is a view of the fields in front of its private data; REQ is a file of its own. Offsets count from
//! the end of the common MAD header, bits from the most significant one.
//!
//! ```text
//! all:   0..4 local communication id (the sender's) | 4..8 remote communication id (not in REQ)
//! REP:   8..12 queue key | 12..15 local QPN | 20..23 starting PSN | 24 responder resources | 25 initiator depth
//!        26 target ACK delay 5 bits, failover 2, flow control 1 | 27 RNR retries 3 bits, SRQ 1 | 28..36 GUID
//! RTU:   nothing more
//! REJ:   8 message rejected 2 bits | 9 length of the information 7 bits | 10..12 reason | 12..84 information
//! DREQ:  8..11 remote QPN
//! DREP:  nothing more
//! MRA:   8 message received 2 bits | 9 service timeout 5 bits
//! ```

use core::fmt;

use super::cm_req::Req;
pub use super::comm_id::CommId;
use super::mad::{Datagram, Mad};
use crate::bytes::{chunk, part};
use crate::{Psn, Qpn};

/// A message of the connection manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Request for a connection: the active side's queue pair.
    Req(Req<'a>),
    /// Reply to it: the passive side's queue pair.
    Rep(Rep<'a>),
    /// Ready to use: the reply has arrived.
    Rtu(Rtu<'a>),
    /// Reject.
    Rej(Rej<'a>),
    /// Request to disconnect.
    Dreq(Dreq<'a>),
    /// Reply to it.
    Drep(Drep<'a>),
    /// Message received: the answer will take a while.
    Mra(Mra<'a>),
    /// Another attribute (SIDR, path changes), or a message that was captured too short.
    Other(u16),
}

/// View of a REP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rep<'a>(pub &'a [u8; 36]);
/// View of an RTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rtu<'a>(pub &'a [u8; 8]);
/// View of a REJ, without its additional information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rej<'a>(pub &'a [u8; 12]);
/// View of a DREQ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dreq<'a>(pub &'a [u8; 12]);
/// View of a DREP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drep<'a>(pub &'a [u8; 8]);
/// View of an MRA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mra<'a>(pub &'a [u8; 10]);

/// Why a REJ was sent (IBTA 12.6.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RejectReason(pub u16);

impl<'a> Message<'a> {
    /// The message in a management datagram; `None` when it is not of communication management.
    pub fn parse(datagram: &Datagram<'a>) -> Option<Self> {
        if datagram.mad.class() != Mad::COMMUNICATION_MANAGEMENT {
            return None;
        }
        let data = datagram.data;
        let attribute = datagram.mad.attribute();
        let message = match attribute {
            0x0010 => Req::parse(data).map(Self::Req),
            0x0011 => chunk(data, 0).map(|b| Self::Mra(Mra(b))),
            0x0012 => chunk(data, 0).map(|b| Self::Rej(Rej(b))),
            0x0013 => chunk(data, 0).map(|b| Self::Rep(Rep(b))),
            0x0014 => chunk(data, 0).map(|b| Self::Rtu(Rtu(b))),
            0x0015 => chunk(data, 0).map(|b| Self::Dreq(Dreq(b))),
            0x0016 => chunk(data, 0).map(|b| Self::Drep(Drep(b))),
            _ => None,
        };
        Some(message.unwrap_or(Self::Other(attribute)))
    }

    /// The sender's communication id.
    pub fn local_id(&self) -> Option<CommId> {
        Some(CommId(u32::from_be_bytes(match self {
            Self::Req(m) => return Some(m.local_id()),
            Self::Rep(m) => part::<0, 4, 36>(m.0),
            Self::Rtu(m) => part::<0, 4, 8>(m.0),
            Self::Drep(m) => part::<0, 4, 8>(m.0),
            Self::Rej(m) => part::<0, 4, 12>(m.0),
            Self::Dreq(m) => part::<0, 4, 12>(m.0),
            Self::Mra(m) => part::<0, 4, 10>(m.0),
            Self::Other(_) => return None,
        })))
    }

    /// The receiver's communication id, which a REQ does not know yet.
    pub fn remote_id(&self) -> Option<CommId> {
        Some(CommId(u32::from_be_bytes(match self {
            Self::Rep(m) => part::<4, 4, 36>(m.0),
            Self::Rtu(m) => part::<4, 4, 8>(m.0),
            Self::Drep(m) => part::<4, 4, 8>(m.0),
            Self::Rej(m) => part::<4, 4, 12>(m.0),
            Self::Dreq(m) => part::<4, 4, 12>(m.0),
            Self::Mra(m) => part::<4, 4, 10>(m.0),
            Self::Req(_) | Self::Other(_) => return None,
        })))
    }

    /// The name of the message, such as `REQ` or `REP`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Req(_) => "REQ",
            Self::Rep(_) => "REP",
            Self::Rtu(_) => "RTU",
            Self::Rej(_) => "REJ",
            Self::Dreq(_) => "DREQ",
            Self::Drep(_) => "DREP",
            Self::Mra(_) => "MRA",
            Self::Other(_) => "CM",
        }
    }
}

impl Rep<'_> {
    /// The queue key of a datagram service.
    pub const fn queue_key(&self) -> u32 {
        u32::from_be_bytes(part::<8, 4, 36>(self.0))
    }

    /// The queue pair of the sender of the REP: the passive side.
    pub const fn local_qpn(&self) -> Qpn {
        Qpn::new(u32::from_be_bytes([0, self.0[12], self.0[13], self.0[14]]))
    }

    /// The PSN of the first request that the receiver of the REP is to send (`cm_rep_handler` of Linux
    /// drivers/infiniband/core/cm.c).
    pub const fn starting_psn(&self) -> Psn {
        Psn::new(u32::from_be_bytes([0, self.0[20], self.0[21], self.0[22]]))
    }

    /// Number of READs and ATOMICs that it answers at a time.
    pub const fn responder_resources(&self) -> u8 {
        self.0[24]
    }

    /// Number of READs and ATOMICs that it will have outstanding.
    pub const fn initiator_depth(&self) -> u8 {
        self.0[25]
    }

    /// Longest delay of its acknowledgements: 4.096 us * 2^n.
    pub const fn target_ack_delay(&self) -> u8 {
        self.0[26] >> 3
    }

    /// Retries of the receiver after an RNR NAK; 7 = without limit.
    pub const fn rnr_retry_count(&self) -> u8 {
        self.0[27] >> 5
    }

    /// True if the queue pair receives from a shared receive queue.
    pub const fn has_shared_receive_queue(&self) -> bool {
        self.0[27] & 0x10 != 0
    }
}

impl Rej<'_> {
    /// The rejected message: 0 a REQ, 1 a REP, 2 none (another reason).
    pub const fn rejected(&self) -> u8 {
        self.0[8] >> 6
    }

    /// Length of the additional information, in bytes.
    pub const fn information_bytes(&self) -> u8 {
        self.0[9] >> 1
    }

    /// Why.
    pub const fn reason(&self) -> RejectReason {
        RejectReason(u16::from_be_bytes([self.0[10], self.0[11]]))
    }
}

impl Dreq<'_> {
    /// The queue pair of the receiver of the DREQ.
    pub const fn remote_qpn(&self) -> Qpn {
        Qpn::new(u32::from_be_bytes([0, self.0[8], self.0[9], self.0[10]]))
    }
}

impl Mra<'_> {
    /// The received message: 0 a REQ, 1 a REP, 2 a LAP.
    pub const fn received(&self) -> u8 {
        self.0[8] >> 6
    }

    /// Longest delay of the answer: 4.096 us * 2^n.
    pub const fn service_timeout(&self) -> u8 {
        self.0[9] >> 3
    }
}

impl RejectReason {
    /// The reason in words, `None` when it is reserved.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "no queue pair",
            2 => "no end-to-end context",
            3 => "no resources",
            4 => "timeout",
            5 => "unsupported request",
            6 => "invalid communication id",
            7 => "invalid communication instance",
            8 => "invalid service id",
            9 => "invalid transport type",
            10 => "stale connection",
            11 => "reliable datagram channel does not exist",
            12 => "invalid primary GID",
            13 => "invalid primary LID",
            14 => "invalid primary service level",
            15 => "invalid primary traffic class",
            16 => "invalid primary hop limit",
            17 => "invalid primary packet rate",
            18 => "invalid alternate GID",
            19 => "invalid alternate LID",
            20 => "invalid alternate service level",
            21 => "invalid alternate traffic class",
            22 => "invalid alternate hop limit",
            23 => "invalid alternate packet rate",
            24 => "port and connection manager redirected",
            25 => "port redirected",
            26 => "invalid path MTU",
            27 => "insufficient responder resources",
            28 => "consumer reject",
            29 => "RNR retry count reject",
            30 => "duplicate local communication id",
            31 => "unsupported class version",
            32 => "invalid primary flow label",
            33 => "invalid alternate flow label",
            35 => "vendor option not supported",
            _ => return None,
        })
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "reason {}", self.0),
        }
    }
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Req(m) => write!(f, " from QP {}", m.local_qpn())?,
            Self::Rep(m) => write!(f, " from QP {} PSN {}", m.local_qpn(), m.starting_psn())?,
            Self::Rej(m) => write!(f, ": {}", m.reason())?,
            Self::Dreq(m) => write!(f, " of QP {}", m.remote_qpn())?,
            Self::Other(attribute) => return write!(f, " attribute 0x{attribute:04x}"),
            Self::Rtu(_) | Self::Drep(_) | Self::Mra(_) => {}
        }
        if let Some(id) = self.local_id() {
            write!(f, " id {id}")?;
        }
        if let Some(id) = self.remote_id() {
            write!(f, " to id {id}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn datagram(attribute: u8) -> ([u8; 24], [u8; 232]) {
        let mut header = [0; 24];
        (header[0], header[1], header[2], header[3], header[17]) = (1, 7, 2, 3, attribute);
        (header, core::array::from_fn(|i| u8::try_from(i).unwrap_or(0)))
    }

    #[test]
    fn reject_and_mra_by_ibta_tables() {
        let (header, mut data) = datagram(0x12);
        // A REP (1 << 6), 5 bytes of information (5 << 1), reason 8.
        (data[8], data[9], data[10], data[11]) = (0x40, 0x0a, 0, 8);
        let datagram_of = Datagram {
            mad: Mad(&header),
            data: &data,
        };
        let message = Message::parse(&datagram_of);
        let Some(Message::Rej(rej)) = message else {
            panic!("a REJ: {message:?}")
        };
        assert_eq!(
            (rej.rejected(), rej.information_bytes(), rej.reason()),
            (1, 5, RejectReason(8))
        );
        let text = Message::Rej(rej).to_string();
        assert_eq!(text, "REJ: invalid service id id 0x00010203 to id 0x04050607");

        let (header, mut data) = datagram(0x11);
        // Service timeout 18 << 3 = 0x90.
        (data[8], data[9]) = (0x80, 0x90);
        let message = Message::parse(&Datagram {
            mad: Mad(&header),
            data: &data,
        });
        let Some(Message::Mra(mra)) = message else {
            panic!("an MRA: {message:?}")
        };
        assert_eq!((mra.received(), mra.service_timeout()), (2, 18));
        // Cut within its fields: only the attribute is known.
        let message = Message::parse(&Datagram {
            mad: Mad(&header),
            data: &data[..9],
        });
        assert_eq!(message, Some(Message::Other(0x11)));
    }

    #[test]
    fn reply_fields_by_ibta_table() {
        let (header, mut data) = datagram(0x13);
        // Target ACK delay 15, failover 1, flow control 1: 0b01111_01_1; RNR retries 7, SRQ: 0b111_1_0000.
        (data[26], data[27]) = (0x7b, 0xf0);
        let message = Message::parse(&Datagram {
            mad: Mad(&header),
            data: &data,
        });
        let Some(Message::Rep(rep)) = message else {
            panic!("a REP: {message:?}")
        };
        assert_eq!(rep.queue_key(), 0x0809_0a0b);
        assert_eq!(
            (rep.local_qpn(), rep.starting_psn()),
            (Qpn::new(0x0c_0d0e), Psn::new(0x14_1516))
        );
        assert_eq!((rep.responder_resources(), rep.initiator_depth()), (0x18, 0x19));
        assert_eq!((rep.target_ack_delay(), rep.rnr_retry_count()), (15, 7));
        assert!(rep.has_shared_receive_queue());
    }
}
