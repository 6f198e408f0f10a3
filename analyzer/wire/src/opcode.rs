//! BTH opcodes: a transport in the top three bits, an operation in the low five (IBTA 9.2.1, table 38 in
//! release 1.3; Linux include/rdma/ib_pack.h has the same values).

use core::fmt;

/// The transport service of an opcode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Service {
    /// Reliable connection.
    Rc = 0,
    /// Unreliable connection.
    Uc = 1,
    /// Reliable datagram.
    Rd = 2,
    /// Unreliable datagram.
    Ud = 3,
    /// Congestion notification: no service, it belongs to the queue pair that it names.
    Cnp = 4,
    /// Extended reliable connection.
    Xrc = 5,
    /// Opcodes 0xc0 to 0xdf: Multipath Reliable Connection, or NVIDIA's dynamically connected transport (DC). Which one shows only in
    /// more of a queue pair's packets.
    Mrc = 6,
    /// Other vendor opcodes, 0xe0 and above.
    Vendor = 7,
}

impl Service {
    /// True if its packets are acknowledged and its PSNs tell losses: RC and XRC. (RD has never been built.)
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::Rc | Self::Xrc)
    }

    /// The service of this [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        const ALL: [Service; 8] = [
            Service::Rc,
            Service::Uc,
            Service::Rd,
            Service::Ud,
            Service::Cnp,
            Service::Xrc,
            Service::Mrc,
            Service::Vendor,
        ];
        ALL.into_iter().find(|service| service.name() == name)
    }

    /// The name as written in tables: `RC`, `UC`, `RD`, `UD`, `CNP`, `XRC`, `MRC`, `vendor`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Rd => "RD",
            Self::Ud => "UD",
            Self::Cnp => "CNP",
            Self::Xrc => "XRC",
            Self::Mrc => "MRC",
            Self::Vendor => "vendor",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The opcode byte of a BTH.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Opcode(pub u8);

/// Operation in the low five bits of an opcode, from the receiver's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "each variant is the operation it names")]
pub enum Operation {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    Acknowledge,
    AtomicAcknowledge,
    Atomic,
    Flush,
    AtomicWrite,
    /// Reserved, vendor, resync of RD, or a congestion notification.
    Other,
}

/// Extended headers after the BTH, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ExtendedHeaders(u16);

impl ExtendedHeaders {
    /// None.
    pub const NONE: Self = Self(0);
    /// RDETH, 4 bytes.
    pub const RDETH: Self = Self(1);
    /// DETH, 8 bytes.
    pub const DETH: Self = Self(1 << 1);
    /// XRCETH, 4 bytes.
    pub const XRCETH: Self = Self(1 << 2);
    /// FETH, 4 bytes.
    pub const FETH: Self = Self(1 << 3);
    /// RETH, 16 bytes.
    pub const RETH: Self = Self(1 << 4);
    /// AtomicETH, 28 bytes.
    pub const ATOMIC_ETH: Self = Self(1 << 5);
    /// AETH, 4 bytes.
    pub const AETH: Self = Self(1 << 6);
    /// AtomicAckETH, 8 bytes.
    pub const ATOMIC_ACK_ETH: Self = Self(1 << 7);
    /// ImmDt, 4 bytes.
    pub const IMM_DT: Self = Self(1 << 8);
    /// IETH, 4 bytes.
    pub const IETH: Self = Self(1 << 9);
    /// The headers of MRC, whose length [`crate::transport::mrc::header_bytes`] says.
    pub const MRC: Self = Self(1 << 10);

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if all of `other` are in the set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Their length in bytes.
    pub const fn bytes(self) -> u8 {
        const SIZES: [(ExtendedHeaders, u8); 10] = [
            (ExtendedHeaders::RDETH, 4),
            (ExtendedHeaders::DETH, 8),
            (ExtendedHeaders::XRCETH, 4),
            (ExtendedHeaders::FETH, 4),
            (ExtendedHeaders::RETH, 16),
            (ExtendedHeaders::ATOMIC_ETH, 28),
            (ExtendedHeaders::AETH, 4),
            (ExtendedHeaders::ATOMIC_ACK_ETH, 8),
            (ExtendedHeaders::IMM_DT, 4),
            (ExtendedHeaders::IETH, 4),
        ];
        let mut sum = 0;
        let mut i = 0;
        while i < SIZES.len() {
            if self.has(SIZES[i].0) {
                sum += SIZES[i].1;
            }
            i += 1;
        }
        sum
    }
}

/// Properties of one opcode, an entry of [`TABLE`].
#[derive(Clone, Copy, Debug)]
struct Entry {
    operation: Operation,
    extended: ExtendedHeaders,
    extended_bytes: u8,
    flags: u16,
    places: Places,
}

/// Offsets of fields, in bytes from the BTH; 0 where the opcode has no such header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The AETH.
    pub(crate) aeth: u8,
    /// The DMA length of the RETH.
    pub(crate) dma_length: u8,
    /// The word of the DETH that ends in the source queue pair.
    pub(crate) source_qpn: u8,
}

impl Places {
    const fn new(extended: ExtendedHeaders) -> Self {
        /// Bytes of the headers of `extended` that come before `header`.
        const fn before(extended: ExtendedHeaders, header: ExtendedHeaders) -> u8 {
            ExtendedHeaders(extended.0 & (header.0 - 1)).bytes()
        }
        let bth = 12;
        let mut places = Self {
            aeth: 0,
            dma_length: 0,
            source_qpn: 0,
        };
        if extended.has(ExtendedHeaders::AETH) {
            places.aeth = bth + before(extended, ExtendedHeaders::AETH);
        }
        if extended.has(ExtendedHeaders::RETH) {
            places.dma_length = bth + before(extended, ExtendedHeaders::RETH) + 12;
        }
        if extended.has(ExtendedHeaders::DETH) {
            places.source_qpn = bth + before(extended, ExtendedHeaders::DETH) + 4;
        }
        places
    }
}

const REQUEST: u16 = 1;
const RESPONSE: u16 = 1 << 1;
const PAYLOAD: u16 = 1 << 2;
const FIRST: u16 = 1 << 3;
const LAST: u16 = 1 << 4;
const DEFINED: u16 = 1 << 5;
/// A request of RC, XRC or UC.
const SEQUENCED: u16 = 1 << 6;
/// A READ request.
const READ: u16 = 1 << 7;
/// A WRITE of RC.
const RELIABLE_WRITE: u16 = 1 << 8;

/// The operation of an opcode's lower five bits, the headers that follow on the BTH whatever the transport, and its flags.
const fn operation_of(low: u8) -> (Operation, ExtendedHeaders, u16) {
    use Operation::{
        Acknowledge, Atomic, AtomicAcknowledge, AtomicWrite, Flush, Other, ReadRequest, ReadResponse, Send,
        Write,
    };
    let none = ExtendedHeaders::NONE;
    let imm = ExtendedHeaders::IMM_DT;
    let reth = ExtendedHeaders::RETH;
    let aeth = ExtendedHeaders::AETH;
    match low {
        0x00 => (Send, none, REQUEST | PAYLOAD | FIRST),
        0x01 => (Send, none, REQUEST | PAYLOAD),
        0x02 => (Send, none, REQUEST | PAYLOAD | LAST),
        0x03 => (Send, imm, REQUEST | PAYLOAD | LAST),
        0x04 => (Send, none, REQUEST | PAYLOAD | FIRST | LAST),
        0x05 => (Send, imm, REQUEST | PAYLOAD | FIRST | LAST),
        0x06 => (Write, reth, REQUEST | PAYLOAD | FIRST),
        0x07 => (Write, none, REQUEST | PAYLOAD),
        0x08 => (Write, none, REQUEST | PAYLOAD | LAST),
        0x09 => (Write, imm, REQUEST | PAYLOAD | LAST),
        0x0a => (Write, reth, REQUEST | PAYLOAD | FIRST | LAST),
        0x0b => (Write, reth.and(imm), REQUEST | PAYLOAD | FIRST | LAST),
        0x0c => (ReadRequest, reth, REQUEST | FIRST | LAST),
        0x0d => (ReadResponse, aeth, RESPONSE | PAYLOAD | FIRST),
        0x0e => (ReadResponse, none, RESPONSE | PAYLOAD),
        0x0f => (ReadResponse, aeth, RESPONSE | PAYLOAD | LAST),
        0x10 => (ReadResponse, aeth, RESPONSE | PAYLOAD | FIRST | LAST),
        0x11 => (Acknowledge, aeth, RESPONSE),
        0x12 => (
            AtomicAcknowledge,
            aeth.and(ExtendedHeaders::ATOMIC_ACK_ETH),
            RESPONSE,
        ),
        0x13 | 0x14 => (Atomic, ExtendedHeaders::ATOMIC_ETH, REQUEST | FIRST | LAST),
        0x16 => (Send, ExtendedHeaders::IETH, REQUEST | PAYLOAD | LAST),
        0x17 => (Send, ExtendedHeaders::IETH, REQUEST | PAYLOAD | FIRST | LAST),
        0x1c => (Flush, ExtendedHeaders::FETH.and(reth), REQUEST | FIRST | LAST),
        0x1d => (AtomicWrite, reth, REQUEST | PAYLOAD | FIRST | LAST),
        _ => (Other, none, 0),
    }
}

const fn entry(code: u8) -> Entry {
    let none = ExtendedHeaders::NONE;
    let (transport, low) = (code >> 5, code & 0x1f);
    let (operation, mut extended, flags) = operation_of(low);
    let defined = match transport {
        0 | 5 => flags != 0,
        1 => low <= 0x0b,
        2 => low <= 0x14,
        3 => low == 4 || low == 5,
        _ => false,
    };
    if !defined {
        let flags = if code == 0x80 || code == 0x81 { DEFINED } else { 0 };
        return Entry {
            operation: Operation::Other,
            extended: none,
            extended_bytes: 0,
            flags,
            places: Places::new(none),
        };
    }
    match transport {
        2 => {
            let deth = if flags & REQUEST != 0 {
                ExtendedHeaders::DETH
            } else {
                none
            };
            extended = extended.and(ExtendedHeaders::RDETH).and(deth);
        }
        3 => extended = extended.and(ExtendedHeaders::DETH),
        5 if flags & REQUEST != 0 => extended = extended.and(ExtendedHeaders::XRCETH),
        _ => {}
    }
    let connected = matches!(transport, 0 | 1 | 5);
    let flags = flags
        | DEFINED
        | if connected && flags & REQUEST != 0 {
            SEQUENCED
        } else {
            0
        }
        | if low == 0x0c { READ } else { 0 }
        | if transport == 0 && matches!(operation, Operation::Write) {
            RELIABLE_WRITE
        } else {
            0
        };
    let places = Places::new(extended);
    Entry {
        operation,
        extended,
        extended_bytes: extended.bytes(),
        flags,
        places,
    }
}

static TABLE: [Entry; 256] = {
    let mut table = [entry(0); 256];
    let mut code = 0;
    while code < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "code is below 256")]
        {
            table[code] = entry(code as u8);
        }
        code += 1;
    }
    table
};

/// Properties of an opcode in one number: see [`Opcode::traits`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits(u16);

impl Traits {
    /// See [`Opcode::is_response`].
    #[inline]
    pub const fn is_response(self) -> bool {
        self.0 & RESPONSE != 0
    }

    /// See [`Opcode::carries_data`].
    #[inline]
    pub const fn carries_data(self) -> bool {
        self.0 & PAYLOAD != 0
    }

    /// Neither the first nor the last packet of its message.
    #[inline]
    pub const fn is_middle(self) -> bool {
        self.0 & (FIRST | LAST) == 0
    }

    /// A request of a connected service, whose PSNs form a sequence: RC, XRC, UC.
    #[inline]
    pub const fn is_sequenced(self) -> bool {
        self.0 & SEQUENCED != 0
    }

    /// Any packet of a reliable connection's WRITE.
    #[inline]
    pub const fn is_reliable_write(self) -> bool {
        self.0 & RELIABLE_WRITE != 0
    }

    /// Such a request that takes one PSN, whatever its length: any but a READ.
    #[inline]
    pub const fn takes_one_psn(self) -> bool {
        self.0 & SEQUENCED != 0 && self.0 & READ == 0
    }
}

impl Opcode {
    /// RC Acknowledge (an ACK or a NAK, by its AETH).
    pub const RC_ACKNOWLEDGE: Self = Self(0x11);
    /// UD SEND Only: what management datagrams are.
    pub const UD_SEND_ONLY: Self = Self(0x64);
    /// The congestion notification packet of RoCEv2 (IBTA A17.9.3).
    pub const CNP: Self = Self(0x81);
    /// The congestion notification packet of InfiniBand.
    pub const INFINIBAND_CNP: Self = Self(0x80);

    #[inline]
    fn entry(self) -> &'static Entry {
        &TABLE[usize::from(self.0)]
    }

    /// All that its flags say, looked up once.
    #[inline]
    pub fn traits(self) -> Traits {
        Traits(self.entry().flags)
    }

    /// Its transport service.
    #[inline]
    pub const fn service(self) -> Service {
        match self.0 >> 5 {
            0 => Service::Rc,
            1 => Service::Uc,
            2 => Service::Rd,
            3 => Service::Ud,
            4 => Service::Cnp,
            5 => Service::Xrc,
            6 => Service::Mrc,
            _ => Service::Vendor,
        }
    }

    /// Its operation.
    #[inline]
    pub fn operation(self) -> Operation {
        self.entry().operation
    }

    /// True if the specification (or, for the CNP, its annex) defines it.
    pub fn is_defined(self) -> bool {
        self.entry().flags & DEFINED != 0
    }

    /// The extended headers after the BTH.
    #[inline]
    pub fn extended(self) -> ExtendedHeaders {
        self.entry().extended
    }

    /// The length of the extended headers, in bytes.
    #[inline]
    pub fn extended_bytes(self) -> u8 {
        self.entry().extended_bytes
    }

    /// Offsets of the fields of its extended headers.
    #[inline]
    pub(crate) fn places(self) -> Places {
        self.entry().places
    }

    /// True if it carries a PSN of its sender's own request stream.
    #[inline]
    pub fn is_request(self) -> bool {
        self.entry().flags & REQUEST != 0
    }

    /// True if it answers the other side: its PSN belongs to the other side's requests.
    #[inline]
    pub fn is_response(self) -> bool {
        self.entry().flags & RESPONSE != 0
    }

    /// True if the operation carries application data: SEND, WRITE, ATOMIC WRITE, READ Response.
    #[inline]
    pub fn carries_data(self) -> bool {
        self.entry().flags & PAYLOAD != 0
    }

    /// True if it begins a message.
    #[inline]
    pub fn is_first(self) -> bool {
        self.entry().flags & FIRST != 0
    }

    /// True if it ends a message.
    #[inline]
    pub fn is_last(self) -> bool {
        self.entry().flags & LAST != 0
    }

    /// True if it is a congestion notification, RoCEv2's or InfiniBand's.
    #[inline]
    pub const fn is_cnp(self) -> bool {
        matches!(self, Self::CNP | Self::INFINIBAND_CNP)
    }

    /// True if it is one packet of a READ response.
    #[inline]
    pub fn is_read_response(self) -> bool {
        matches!(self.operation(), Operation::ReadResponse)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = match (self.0, self.0 & 0x1f) {
            (0x80, _) => return f.write_str("CNP (InfiniBand)"),
            (0x81, _) => return f.write_str("CNP"),
            (0xc0.., low) => return write!(f, "vendor 0x{:02x}", 0xc0 | low | (self.0 & 0x20)),
            _ if !self.is_defined() => return write!(f, "reserved 0x{:02x}", self.0),
            (_, low) => low,
        };
        let operation = match low {
            0x00 => "SEND First",
            0x01 => "SEND Middle",
            0x02 => "SEND Last",
            0x03 => "SEND Last with Immediate",
            0x04 => "SEND Only",
            0x05 => "SEND Only with Immediate",
            0x06 => "RDMA WRITE First",
            0x07 => "RDMA WRITE Middle",
            0x08 => "RDMA WRITE Last",
            0x09 => "RDMA WRITE Last with Immediate",
            0x0a => "RDMA WRITE Only",
            0x0b => "RDMA WRITE Only with Immediate",
            0x0c => "RDMA READ Request",
            0x0d => "RDMA READ Response First",
            0x0e => "RDMA READ Response Middle",
            0x0f => "RDMA READ Response Last",
            0x10 => "RDMA READ Response Only",
            0x11 => "Acknowledge",
            0x12 => "Atomic Acknowledge",
            0x13 => "CmpSwap",
            0x14 => "FetchAdd",
            0x16 => "SEND Last with Invalidate",
            0x17 => "SEND Only with Invalidate",
            0x1c => "FLUSH",
            _ => "ATOMIC WRITE",
        };
        write!(f, "{} {operation}", self.service())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn codes_are_those_of_ib_pack_h() {
        // include/rdma/ib_pack.h: IB_OPCODE_RC 0x00, UC 0x20, RD 0x40, UD 0x60, CNP 0x80, operations below.
        assert_eq!(Opcode(0x0a).to_string(), "RC RDMA WRITE Only");
        assert_eq!(Opcode(0x64).to_string(), "UD SEND Only");
        assert_eq!(Opcode(0x81).to_string(), "CNP");
        assert_eq!(Opcode(0xac).to_string(), "XRC RDMA READ Request");
        assert_eq!(Opcode(0xd1).to_string(), "vendor 0xd1");
        assert_eq!(Opcode(0xff).to_string(), "vendor 0xff");
        assert_eq!(Opcode(0x60).to_string(), "reserved 0x60");
        assert_eq!(Opcode(0x15).to_string(), "reserved 0x15");
    }

    #[test]
    fn traits_are_the_flags_in_one_look() {
        for code in 0..=u8::MAX {
            let opcode = Opcode(code);
            let traits = opcode.traits();
            let connected = matches!(opcode.service(), Service::Rc | Service::Uc | Service::Xrc);
            assert_eq!(
                traits.is_sequenced(),
                connected && opcode.is_request(),
                "{opcode}"
            );
            let is_read = opcode.operation() == Operation::ReadRequest;
            assert_eq!(
                traits.takes_one_psn(),
                traits.is_sequenced() && !is_read,
                "{opcode}"
            );
            assert_eq!(
                traits.is_middle(),
                !opcode.is_first() && !opcode.is_last(),
                "{opcode}"
            );
            assert_eq!(traits.is_response(), opcode.is_response(), "{opcode}");
            assert_eq!(traits.carries_data(), opcode.carries_data(), "{opcode}");
        }
    }

    #[test]
    fn extended_headers_follow_ibta_table_38() {
        assert_eq!(
            Opcode(0x0e).extended_bytes(),
            0,
            "READ Response Middle has no AETH"
        );
        assert_eq!(Opcode(0x0d).extended_bytes(), 4);
        assert_eq!(Opcode(0x12).extended_bytes(), 4 + 8);
        assert_eq!(Opcode(0x13).extended_bytes(), 28);
        assert_eq!(Opcode(0x0b).extended_bytes(), 16 + 4);
        assert_eq!(Opcode(0x65).extended_bytes(), 8 + 4);
        // RD requests: RDETH and DETH; RD responses: RDETH alone.
        assert_eq!(Opcode(0x4a).extended_bytes(), 4 + 8 + 16);
        assert_eq!(Opcode(0x51).extended_bytes(), 4 + 4);
        // XRC requests carry the XRCETH, its responses do not.
        assert_eq!(Opcode(0xa4).extended_bytes(), 4);
        assert_eq!(Opcode(0xb1).extended_bytes(), 4);
        assert!(Opcode(0xb1).extended().has(ExtendedHeaders::AETH));
        assert_eq!(Opcode(0x1c).extended_bytes(), 4 + 16);
    }
}
