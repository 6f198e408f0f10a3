//! The headers of Ultra Ethernet Transport 1.0 on UDP port 4793: packet delivery (PDS), and the semantics behind it (SES). Sources:
//! Wireshark's `packet-uet.c`, and `pds.h` and `ses.h` of xdp2.
//!
//! ```text
//! prologue   0..2   type 0xf800 | next header or kind of control 0x0780 | flags 0x007f
//! request    2..4   PSN that may be cleared, less the own one | 4..8 PSN | 8..10 sender's id
//!            10..12 receiver's id; with SYN: 0x8000 reserved connection, PSN less the first one 0x0fff | with CC: 12 context, 13..16 target
//! ACK        2..4   named PSN less the cumulative one, or the probe | 4..8 cumulative PSN | 8..10, 10..12 sender's id, receiver's id
//!   with CC  12     congestion type 0xf0 | 13 window | 14..16 first PSN of the bitmap less the cumulative one | 16..24 bitmap
//!            24..32 type 0: service time 16 bits, restore 1, penalty 7, received bytes 24, out of order 16; 1: credit 24, reserved 24,
//!            out of order 16
//! NACK       2 code | 3 vendor | 4..8 PSN, or the id of an unordered one | 8..10, 10..12 ids | 12..16 highest PSN
//! control    2..4   probe | 4..8 PSN | 8..10, 10..12 ids | 12..16 payload
//! datagram   2..4   reserved | 4..8 its id, of idempotent ones
//! security   0      type | 0x04 source is there | 0x01 key | 1..4 domain | [source 4] | counter 8: all behind it is encrypted
//! SES        0      opcode 0x3f | 1 SOM 0x01, EOM 0x02, header data 0x04 | 2..4 message, or length 0x3fff | 5..8 job | 8..10 process 0x0fff
//!            10..12 resource 0x0fff
//! ```

mod semantics;

use crate::bytes::part;
pub use semantics::{Operation, Semantics, operation_name};

/// Kinds of packets (PDS types).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Encrypted behind a security header.
    Secure,
    /// Reliable request, in any order (RUD).
    Request,
    /// Reliable request, in order (ROD).
    OrderedRequest,
    /// Request of an idempotent operation without a connection (RUDI).
    Idempotent,
    /// The answer to it.
    IdempotentResponse,
    /// Unreliable datagram (UUD).
    Datagram,
    /// Acknowledgement.
    Ack,
    /// Acknowledgement with congestion control, or with an extended form of it.
    AckState,
    /// Refusal.
    Nack,
    /// Control packet.
    Control,
}

impl Kind {
    /// The kind of a number; `None` for those that the specification does not define.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Secure,
            2 | 13 => Self::Request,
            3 | 14 => Self::OrderedRequest,
            4 => Self::Idempotent,
            5 => Self::IdempotentResponse,
            6 => Self::Datagram,
            7 => Self::Ack,
            8 | 9 => Self::AckState,
            10 | 12 => Self::Nack,
            11 => Self::Control,
            _ => return None,
        })
    }

    /// True if it carries data, which switches may trim.
    pub const fn carries_data(self) -> bool {
        matches!(
            self,
            Self::Secure
                | Self::Request
                | Self::OrderedRequest
                | Self::Idempotent
                | Self::IdempotentResponse
                | Self::Datagram
        )
    }
}

/// A prologue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prologue(pub [u8; 2]);

impl Prologue {
    const fn word(self) -> u16 {
        u16::from_be_bytes(self.0)
    }

    /// Number of the type.
    pub const fn number(self) -> u8 {
        self.0[0] >> 3
    }

    /// Kind of the packet.
    pub const fn kind(self) -> Option<Kind> {
        Kind::from_number(self.number())
    }

    /// Which header follows; of a control packet, which one it is.
    pub const fn next(self) -> u8 {
        (self.word() >> 7 & 0x0f) as u8
    }

    const fn has(self, flag: u16) -> bool {
        self.word() & flag != 0
    }

    /// It is sent again.
    pub const fn is_again(self) -> bool {
        self.has(0x10)
    }

    /// Requests and control packets: an acknowledgement is asked for.
    pub const fn asks_ack(self) -> bool {
        self.has(0x08)
    }

    /// Requests and control packets: its connection is being set up.
    pub const fn is_opening(self) -> bool {
        self.has(0x04)
    }

    /// Acknowledgements, refusals, answers: the packet that they are about was marked.
    pub const fn is_marked(self) -> bool {
        self.has(0x20)
    }

    /// Acknowledgements: it answers a probe.
    pub const fn answers_probe(self) -> bool {
        self.has(0x08)
    }

    /// Acknowledgements: what the receiver asks for: 0 nothing, 1 to clear state, 2 to close.
    pub const fn asks(self) -> u8 {
        (self.word() >> 1 & 3) as u8
    }

    /// Refusals: it is about an idempotent packet, which has an id and no PSN.
    pub const fn is_about_id(self) -> bool {
        self.has(0x08)
    }

    /// Length of the headers of packet delivery, in bytes, this one included. Both decoders that are known differ about the state of
    /// types 9 and 12: 8 bytes here, as in xdp2; Wireshark takes 16.
    pub const fn header_bytes(self) -> Option<usize> {
        Some(match self.number() {
            1 if self.0[0] & 0x04 != 0 => 16,
            1..=3 | 7 => 12,
            4 | 5 => 8,
            6 => 4,
            8 | 9 => 32,
            10 | 11 | 13 | 14 => 16,
            12 => 24,
            _ => return None,
        })
    }
}

/// View of a security header (TSS) without its counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Secure<'a>(pub &'a [u8; 8]);

impl Secure<'_> {
    /// Number of the secure domain, 24 bits.
    pub const fn domain(&self) -> u32 {
        u32::from_be_bytes(part::<0, 4, 8>(self.0)) & 0x00ff_ffff
    }

    /// Number of the source in it.
    pub const fn source(&self) -> Option<u32> {
        if self.0[0] & 0x04 != 0 {
            Some(u32::from_be_bytes(part::<4, 4, 8>(self.0)))
        } else {
            None
        }
    }
}

/// Views of fixed length with their prologue.
macro_rules! views {
    ($($(#[$meta:meta])* $name:ident: $bytes:literal,)+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub struct $name<'a>(pub &'a [u8; $bytes]);

            impl $name<'_> {
                /// Its length in bytes.
                pub const BYTES: usize = $bytes;

                /// The prologue.
                pub const fn prologue(&self) -> Prologue {
                    Prologue([self.0[0], self.0[1]])
                }

                #[inline]
                const fn u16_at<const AT: usize>(&self) -> u16 {
                    u16::from_be_bytes(part::<AT, 2, $bytes>(self.0))
                }

                #[inline]
                const fn u32_at<const AT: usize>(&self) -> u32 {
                    u32::from_be_bytes(part::<AT, 4, $bytes>(self.0))
                }
            }
        )+
    };
}

views! {
    /// A reliable request.
    Request: 12,
    /// An acknowledgement.
    Ack: 12,
    /// An acknowledgement with congestion control.
    AckState: 32,
    /// A refusal.
    Nack: 16,
    /// A control packet.
    Control: 16,
}

/// The numbers of both ends of a connection: that of the sender, and that of the receiver.
macro_rules! ids {
    ($($name:ident)+) => {
        $(
            impl $name<'_> {
                /// Numbers of the connection: the sender's, and the receiver's.
                pub const fn ids(&self) -> [u16; 2] {
                    [self.u16_at::<8>(), self.u16_at::<10>()]
                }
            }
        )+
    };
}

ids! { Request Ack Nack Control }

impl Request<'_> {
    /// Its PSN, 32 bits.
    pub const fn psn(&self) -> u32 {
        self.u32_at::<4>()
    }

    /// The first PSN of the connection, which only packets that set it up tell.
    pub const fn first_psn(&self) -> Option<u32> {
        if self.prologue().is_opening() {
            Some(self.psn().wrapping_sub((self.u16_at::<10>() & 0x0fff) as u32))
        } else {
            None
        }
    }

    /// PSN up to which the receiver may forget answers, less its own.
    pub const fn clear_offset(&self) -> i16 {
        self.u16_at::<2>().cast_signed()
    }
}

impl Ack<'_> {
    /// The PSN that made it less the cumulative one, or the probe that it answers.
    pub const fn named_offset(&self) -> i16 {
        self.u16_at::<2>().cast_signed()
    }

    /// All PSNs up to this one arrived.
    pub const fn cumulative(&self) -> u32 {
        self.u32_at::<4>()
    }
}

impl AckState<'_> {
    /// Type of the congestion state: 0 by the network's signals (NSCC), 1 by credits; of type 9 a vendor's.
    pub const fn congestion_type(&self) -> u8 {
        self.0[12] >> 4
    }

    /// How far ahead of the cumulative PSN the sender may go, in units that the specification sets.
    pub const fn window(&self) -> u8 {
        self.0[13]
    }

    /// The PSN of the bitmap's lowest bit less the cumulative one.
    pub const fn bitmap_offset(&self) -> i16 {
        self.u16_at::<14>().cast_signed()
    }

    /// Bit i is the PSN at [`AckState::bitmap_offset`] + i: it arrived.
    pub const fn bitmap(&self) -> u64 {
        u64::from_be_bytes(part::<16, 8, 32>(self.0))
    }

    /// True of the state by the network's signals.
    pub const fn has_signals(&self) -> bool {
        self.prologue().number() == 8 && self.congestion_type() == 0
    }

    /// How much smaller the window has to be: 0 to 127. Only with [`AckState::has_signals`].
    pub const fn penalty(&self) -> u8 {
        self.0[26] & 0x7f
    }

    /// The sender may use its whole window again. Only with [`AckState::has_signals`].
    pub const fn restores_window(&self) -> bool {
        self.0[26] & 0x80 != 0
    }

    /// Time that the receiver took, in units of the specification. Only with [`AckState::has_signals`].
    pub const fn service_time(&self) -> u16 {
        self.u16_at::<24>()
    }

    /// Received bytes, 24 bits. Only with [`AckState::has_signals`].
    pub const fn received(&self) -> u32 {
        self.u32_at::<26>() & 0x00ff_ffff
    }

    /// Credit, 24 bits. Only of congestion type 1.
    pub const fn credit(&self) -> u32 {
        self.u32_at::<24>() >> 8
    }

    /// Packets that arrived before others that were sent earlier.
    pub const fn out_of_order(&self) -> u16 {
        self.u16_at::<30>()
    }
}

impl Nack<'_> {
    /// Why.
    pub const fn code(&self) -> u8 {
        self.0[2]
    }

    /// The vendor's own code.
    pub const fn vendor(&self) -> u8 {
        self.0[3]
    }

    /// The refused PSN, or the id of an idempotent packet.
    pub const fn psn(&self) -> u32 {
        self.u32_at::<4>()
    }

    /// The highest PSN that the receiver knows, as a rule.
    pub const fn payload(&self) -> u32 {
        self.u32_at::<12>()
    }
}

impl Control<'_> {
    /// Control: a connection is to be closed, at the initiator's order or at the target's wish.
    pub const CLOSE: [u8; 2] = [4, 5];
    /// Control: a probe.
    pub const PROBE: u8 = 6;

    /// The probe, which its answer repeats.
    pub const fn probe(&self) -> u16 {
        self.u16_at::<2>()
    }

    /// Its PSN.
    pub const fn psn(&self) -> u32 {
        self.u32_at::<4>()
    }

    /// Further numbers.
    pub const fn payload(&self) -> u32 {
        self.u32_at::<12>()
    }
}

/// The name of a NACK's code.
pub const fn nack_name(code: u8) -> &'static str {
    const NAMES: [&str; 27] = [
        "reserved",
        "TRIMMED",
        "TRIMMED_LASTHOP",
        "TRIMMED_ACK",
        "NO_PDC_AVAIL",
        "NO_CCC_AVAIL",
        "NO_BITMAP",
        "NO_PKT_BUFFER",
        "NO_GTD_DEL_AVAIL",
        "NO_SES_MSG_AVAIL",
        "NO_RESOURCE",
        "PSN_OOR_WINDOW",
        "reserved",
        "ROD_OOO",
        "INV_DPDCID",
        "PDC_HDR_MISMATCH",
        "CLOSING",
        "CLOSING_IN_ERR",
        "PKT_NOT_RCVD",
        "GTD_RESP_UNAVAIL",
        "ACK_WITH_DATA",
        "INVALID_SYN",
        "PDC_MODE_MISMATCH",
        "NEW_START_PSN",
        "RCVD_SES_PROCG",
        "UNEXP_EVENT",
        "RCVR_INFER_LOSS",
    ];
    match code {
        253..=255 => "experimental",
        _ if (code as usize) < NAMES.len() => NAMES[code as usize],
        _ => "reserved",
    }
}

/// The headers of packet delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery<'a> {
    /// All behind it is encrypted.
    Secure(Secure<'a>),
    /// A request of a connection.
    Request(Request<'a>),
    /// A datagram or an idempotent operation, without a connection.
    Connectionless,
    /// An acknowledgement, with congestion control where its type has it.
    Ack(Ack<'a>, Option<AckState<'a>>),
    /// A refusal.
    Nack(Nack<'a>),
    /// A control packet.
    Control(Control<'a>),
}

/// The headers of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers<'a> {
    /// Packet delivery.
    pub delivery: Delivery<'a>,
    /// The semantic layer, where it is there and was captured.
    pub semantics: Option<Semantics>,
    /// Bytes of all headers, the semantic layer included.
    pub header_bytes: usize,
    /// Bytes of payload in the packet as its header says; `None`: the header says nothing, and the length of UDP decides.
    pub stated_payload: Option<usize>,
}

/// Reads the headers of a packet: `bytes` begin behind the UDP header. `None`: the type is not one, or they are not whole.
pub fn parse(bytes: &[u8]) -> Option<Headers<'_>> {
    let prologue = Prologue(*bytes.first_chunk()?);
    let kind = prologue.kind()?;
    let header_bytes = prologue.header_bytes()?;
    if bytes.len() < header_bytes {
        return None;
    }
    let delivery = match kind {
        Kind::Secure => Delivery::Secure(Secure(bytes.first_chunk()?)),
        Kind::Request | Kind::OrderedRequest => Delivery::Request(Request(bytes.first_chunk()?)),
        Kind::Idempotent | Kind::IdempotentResponse | Kind::Datagram => Delivery::Connectionless,
        Kind::Ack => Delivery::Ack(Ack(bytes.first_chunk()?), None),
        Kind::AckState => Delivery::Ack(Ack(bytes.first_chunk()?), Some(AckState(bytes.first_chunk()?))),
        Kind::Nack => Delivery::Nack(Nack(bytes.first_chunk()?)),
        Kind::Control => Delivery::Control(Control(bytes.first_chunk()?)),
    };
    let mut headers = Headers {
        delivery,
        semantics: None,
        header_bytes,
        stated_payload: None,
    };
    if !matches!(kind, Kind::Secure | Kind::Control) {
        let found = semantics::read(prologue.next(), bytes.get(header_bytes..).unwrap_or_default());
        headers.semantics = found.semantics;
        headers.header_bytes += found.header_bytes;
        headers.stated_payload = found.stated_payload;
    }
    Some(headers)
}

#[cfg(test)]
mod tests;
