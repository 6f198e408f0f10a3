//! The headers of Multipath Reliable Connection 1.0 (OCP-MRC-1.0, 6.2 and 7.5): RoCEv2 with opcodes of its own.
//!
//! ```text
//! METH    0..2   messages with immediate up to this one | 2..4 message number
//! TSETH   0..2   sender's time | 2..4 own resolution 0x8000, type 0x000f
//! SETH    0..2   type 4 bits, next 5, m 0x0060, probe 0x0002 | 2..4 named PSN less the cumulative one, or the probe's number
//!         4..8   entropy of the named packet | 8..10, 10..12 ids | 13..16 cumulative PSN | 16 congestion type 0xf0, flags 0x0f
//!         17     window in 128 PSNs | 18..20 first PSN of the bitmap less the cumulative one | 20..28 bitmap
//! state   28..30 reflected time | 30..32 packets out of order 0x7fff | 32 restore 0x80, penalty 0x7f | 33..36 received bytes / 256
//! NETH    0..2   as SETH | 2 reason | 3 vendor | 4..8 entropy | 8..10, 10..12 ids | 13..16 PSN | 16 type, flags | 18..20 reflected time
//! PETH    3      vendor | 4..6 number | 8..10, 10..12 ids | 12..14 time | 14..16 own resolution 0x8000, type 0x000f
//! ERTH    1      operation 0x03 | 3 vendor | 4..8 ports that can be reached | 12..14 time | 14..16 as PETH
//! EETH    1      operation 0x0c | 28..30 reflected time
//! ```

use crate::Bth;
use crate::bytes::{chunk, part};
use crate::transport::imm_dt::ImmDt;
use crate::transport::reth::Reth;
use crate::{Aeth, Psn};

/// The first opcode that may be one of MRC; those below are RoCE's.
pub const FIRST_OPCODE: u8 = 0xc0;
/// The end of the opcodes that may be MRC's.
const END_OF_OPCODES: u8 = 0xe0;
/// WRITE First, and the opcodes up to [`WRITE_ONLY_IMMEDIATE`].
pub const WRITE_FIRST: u8 = 0xc6;
/// WRITE Middle.
pub const WRITE_MIDDLE: u8 = 0xc7;
/// WRITE Last.
pub const WRITE_LAST: u8 = 0xc8;
/// WRITE Last with Immediate.
pub const WRITE_LAST_IMMEDIATE: u8 = 0xc9;
/// WRITE Only.
pub const WRITE_ONLY: u8 = 0xca;
/// WRITE Only with Immediate.
pub const WRITE_ONLY_IMMEDIATE: u8 = 0xcb;
/// Acknowledge: of messages, in their order.
pub const ACKNOWLEDGE: u8 = 0xd1;
/// Endpoint Request: of a port's state, or a probe of a path.
pub const ENDPOINT_REQUEST: u8 = 0xd8;
/// Endpoint Response.
pub const ENDPOINT_RESPONSE: u8 = 0xd9;
/// Selective acknowledgement.
pub const SACK: u8 = 0xdc;
/// A packet was refused.
pub const NACK: u8 = 0xdd;
/// Request of a selective acknowledgement.
pub const PROBE: u8 = 0xde;

/// The name of an opcode that the specification defines.
pub const fn name(code: u8) -> Option<&'static str> {
    Some(match code {
        WRITE_FIRST => "MRC WRITE First",
        WRITE_MIDDLE => "MRC WRITE Middle",
        WRITE_LAST => "MRC WRITE Last",
        WRITE_LAST_IMMEDIATE => "MRC WRITE Last with Immediate",
        WRITE_ONLY => "MRC WRITE Only",
        WRITE_ONLY_IMMEDIATE => "MRC WRITE Only with Immediate",
        ACKNOWLEDGE => "MRC Acknowledge",
        ENDPOINT_REQUEST => "MRC Endpoint Request",
        ENDPOINT_RESPONSE => "MRC Endpoint Response",
        SACK => "MRC SACK",
        NACK => "MRC NACK",
        PROBE => "MRC Probe",
        _ => return None,
    })
}

/// True of an opcode that the specification defines.
#[inline]
pub const fn is_opcode(code: u8) -> bool {
    matches!(code, WRITE_FIRST..=WRITE_ONLY_IMMEDIATE | ACKNOWLEDGE)
        || matches!(code, ENDPOINT_REQUEST | ENDPOINT_RESPONSE | SACK | NACK | PROBE)
}

/// True of any packet of a WRITE.
#[inline]
pub const fn is_write(code: u8) -> bool {
    matches!(code, WRITE_FIRST..=WRITE_ONLY_IMMEDIATE)
}

/// True of the first packet of a message.
#[inline]
pub const fn is_first(code: u8) -> bool {
    matches!(code, WRITE_FIRST | WRITE_ONLY | WRITE_ONLY_IMMEDIATE)
}

/// True of the last packet of a message.
#[inline]
pub const fn is_last(code: u8) -> bool {
    matches!(
        code,
        WRITE_LAST | WRITE_LAST_IMMEDIATE | WRITE_ONLY | WRITE_ONLY_IMMEDIATE
    )
}

/// True of an opcode that is one of MRC or of another vendor's transport with the same three bits.
#[inline]
pub const fn may_be(code: u8) -> bool {
    code >= FIRST_OPCODE && code < END_OF_OPCODES
}

/// True of a packet's retransmission: the rtx bit of its BTH.
#[inline]
pub const fn is_again(bth: &Bth) -> bool {
    bth.0[8] & 0x20 != 0
}

/// True if a TSETH follows on the METH: the ts bit of the BTH.
#[inline]
pub const fn has_time(bth: &Bth) -> bool {
    bth.0[8] & 0x10 != 0
}

/// Length of the headers behind a BTH, in bytes; `None` for opcodes that MRC does not define.
pub const fn header_bytes(bth: &Bth) -> Option<usize> {
    let write = Meth::BYTES + Reth::BYTES + if has_time(bth) { Tseth::BYTES } else { 0 };
    Some(match bth.0[0] {
        WRITE_LAST_IMMEDIATE | WRITE_ONLY_IMMEDIATE => write + 4,
        WRITE_FIRST..=WRITE_ONLY => write,
        ACKNOWLEDGE => 4,
        ENDPOINT_REQUEST => Erth::BYTES,
        ENDPOINT_RESPONSE => Eeth::BYTES,
        SACK => Seth::BYTES + CcState::BYTES,
        NACK => Neth::BYTES,
        PROBE => Peth::BYTES,
        _ => return None,
    })
}

/// The length of the headers of a packet if they are whole. `captured` are the bytes behind the start of the BTH; `whole` is the length
/// from there to the end of the ICRC, where it is known.
pub const fn whole_header(bth: &Bth, captured: usize, whole: Option<usize>) -> Option<usize> {
    let Some(bytes) = header_bytes(bth) else {
        return None;
    };
    let fits = match whole {
        Some(whole) => whole >= Bth::BYTES + bytes + bth.pad_count() as usize + 4,
        None => true,
    };
    if fits && captured >= Bth::BYTES + bytes {
        Some(bytes)
    } else {
        None
    }
}

/// Views of fixed length with their length.
macro_rules! views {
    ($($(#[$meta:meta])* $name:ident: $bytes:literal,)+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub struct $name<'a>(pub &'a [u8; $bytes]);

            impl $name<'_> {
                /// Its length in bytes.
                pub const BYTES: usize = $bytes;

                #[inline]
                const fn u16_at<const AT: usize>(&self) -> u16 {
                    u16::from_be_bytes(part::<AT, 2, $bytes>(self.0))
                }
            }
        )+
    };
}

views! {
    /// Which message a WRITE is of.
    Meth: 4,
    /// When a WRITE was sent.
    Tseth: 4,
    /// A selective acknowledgement.
    Seth: 28,
    /// The receiver's state behind a [`Seth`].
    CcState: 8,
    /// A refusal.
    Neth: 20,
    /// A probe.
    Peth: 16,
    /// A request to an endpoint.
    Erth: 16,
    /// The answer to such a request.
    Eeth: 36,
}

impl Meth<'_> {
    /// Messages with immediate up to this one.
    pub const fn immediate_number(&self) -> u16 {
        self.u16_at::<0>()
    }

    /// Number of the message.
    pub const fn message_number(&self) -> u16 {
        self.u16_at::<2>()
    }
}

impl Tseth<'_> {
    /// The sender's time, in 128 ns unless [`Tseth::has_own_resolution`].
    pub const fn time(&self) -> u16 {
        self.u16_at::<0>()
    }

    /// The unit of the time is the sender's own.
    pub const fn has_own_resolution(&self) -> bool {
        self.0[2] & 0x80 != 0
    }
}

impl Seth<'_> {
    /// True if type and next header are those that the specification defines: 0.
    pub const fn is_plain(&self) -> bool {
        self.u16_at::<0>() >> 7 == 0
    }

    /// Advice about the path of the named packet: 0 none, 1 skip it once, 2 avoid it, 3 reserved.
    pub const fn advice(&self) -> u8 {
        self.0[1] >> 5 & 3
    }

    /// It answers a probe, whose number [`Seth::probe`] is.
    pub const fn answers_probe(&self) -> bool {
        self.0[1] & 2 != 0
    }

    /// The probe that it answers.
    pub const fn probe(&self) -> u16 {
        self.u16_at::<2>()
    }

    /// The PSN that made it less the cumulative one.
    pub const fn named_offset(&self) -> i16 {
        self.u16_at::<2>().cast_signed()
    }

    /// The entropy of the packet that made it.
    pub const fn entropy(&self) -> u32 {
        u32::from_be_bytes(part::<4, 4, 28>(self.0))
    }

    /// The low 16 bits of two queue pairs, in either order.
    pub const fn ids(&self) -> [u16; 2] {
        [self.u16_at::<8>(), self.u16_at::<10>()]
    }

    /// All PSNs up to this one arrived.
    pub const fn cumulative(&self) -> Psn {
        Psn::new(u32::from_be_bytes(part::<12, 4, 28>(self.0)))
    }

    /// Type of the congestion state: 0 has a [`CcState`].
    pub const fn congestion_type(&self) -> u8 {
        self.0[16] >> 4
    }

    /// Flags of the congestion state, whose meaning its type sets.
    pub const fn congestion_flags(&self) -> u8 {
        self.0[16] & 0x0f
    }

    /// How far ahead of the cumulative PSN the sender may go, in 128 PSNs; 0 says nothing.
    pub const fn window(&self) -> u8 {
        self.0[17]
    }

    /// The PSN of the bitmap's lowest bit less the cumulative one.
    pub const fn bitmap_offset(&self) -> i16 {
        self.u16_at::<18>().cast_signed()
    }

    /// Bit i is the PSN at [`Seth::bitmap_offset`] + i: it arrived.
    pub const fn bitmap(&self) -> u64 {
        u64::from_be_bytes(part::<20, 8, 28>(self.0))
    }
}

impl CcState<'_> {
    /// The time of the packet that is answered, as its sender stamped it.
    pub const fn reflected_time(&self) -> u16 {
        self.u16_at::<0>()
    }

    /// Packets that arrived before others that were sent earlier.
    pub const fn out_of_order(&self) -> u16 {
        self.u16_at::<2>() & 0x7fff
    }

    /// The sender may use its whole window again.
    pub const fn restores_window(&self) -> bool {
        self.0[4] & 0x80 != 0
    }

    /// How much smaller the window has to be: 0 to 127.
    pub const fn penalty(&self) -> u8 {
        self.0[4] & 0x7f
    }

    /// Received bytes, in units of 256; it wraps.
    pub const fn received(&self) -> u32 {
        u32::from_be_bytes(part::<4, 4, 8>(self.0)) & 0x00ff_ffff
    }
}

impl Neth<'_> {
    /// As [`Seth::is_plain`].
    pub const fn is_plain(&self) -> bool {
        self.u16_at::<0>() >> 7 == 0
    }

    /// Why the packet was refused.
    pub const fn reason(&self) -> u8 {
        self.0[2]
    }

    /// The vendor's own code.
    pub const fn vendor(&self) -> u8 {
        self.0[3]
    }

    /// The entropy of the refused packet.
    pub const fn entropy(&self) -> u32 {
        u32::from_be_bytes(part::<4, 4, 20>(self.0))
    }

    /// As [`Seth::ids`].
    pub const fn ids(&self) -> [u16; 2] {
        [self.u16_at::<8>(), self.u16_at::<10>()]
    }

    /// The refused PSN.
    pub const fn psn(&self) -> Psn {
        Psn::new(u32::from_be_bytes(part::<12, 4, 20>(self.0)))
    }

    /// As [`Seth::congestion_type`].
    pub const fn congestion_type(&self) -> u8 {
        self.0[16] >> 4
    }

    /// As [`Seth::congestion_flags`].
    pub const fn congestion_flags(&self) -> u8 {
        self.0[16] & 0x0f
    }

    /// The time of the refused packet, as its sender stamped it.
    pub const fn reflected_time(&self) -> u16 {
        self.u16_at::<18>()
    }
}

impl Peth<'_> {
    /// As [`Seth::is_plain`].
    pub const fn is_plain(&self) -> bool {
        self.u16_at::<0>() >> 7 == 0
    }

    /// The vendor's own code.
    pub const fn vendor(&self) -> u8 {
        self.0[3]
    }

    /// Number of the probe.
    pub const fn number(&self) -> u16 {
        self.u16_at::<4>()
    }

    /// As [`Seth::ids`].
    pub const fn ids(&self) -> [u16; 2] {
        [self.u16_at::<8>(), self.u16_at::<10>()]
    }

    /// The sender's time.
    pub const fn time(&self) -> u16 {
        self.u16_at::<12>()
    }

    /// As [`Tseth::has_own_resolution`].
    pub const fn has_own_resolution(&self) -> bool {
        self.0[14] & 0x80 != 0
    }
}

impl Erth<'_> {
    /// As [`Seth::is_plain`].
    pub const fn is_plain(&self) -> bool {
        self.u16_at::<0>() >> 7 == 0
    }

    /// Operation: 0 the state of ports, 1 a probe of a path.
    pub const fn operation(&self) -> u8 {
        self.0[1] & 3
    }

    /// The vendor's own code.
    pub const fn vendor(&self) -> u8 {
        self.0[3]
    }

    /// The sender's ports that can be reached, a bit each.
    pub const fn ports(&self) -> u32 {
        u32::from_be_bytes(part::<4, 4, 16>(self.0))
    }

    /// The sender's time.
    pub const fn time(&self) -> u16 {
        self.u16_at::<12>()
    }
}

impl Eeth<'_> {
    /// As [`Seth::is_plain`].
    pub const fn is_plain(&self) -> bool {
        self.u16_at::<0>() >> 7 == 0
    }

    /// As [`Erth::operation`].
    pub const fn operation(&self) -> u8 {
        self.0[1] >> 2 & 3
    }

    /// The time of the request, as its sender stamped it.
    pub const fn reflected_time(&self) -> u16 {
        self.u16_at::<28>()
    }
}

/// The headers of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Headers<'a> {
    /// Any packet of a WRITE.
    Write {
        /// Its message.
        meth: Meth<'a>,
        /// When it was sent.
        time: Option<Tseth<'a>>,
        /// Where its payload goes, and how long the whole message is.
        reth: Reth<'a>,
        /// The immediate.
        immediate: Option<ImmDt<'a>>,
    },
    /// Messages are complete.
    Acknowledge(Aeth),
    /// A request to an endpoint.
    Request(Erth<'a>),
    /// The answer to it.
    Response(Eeth<'a>),
    /// A selective acknowledgement, with the receiver's state where its type has one.
    Sack(Seth<'a>, Option<CcState<'a>>),
    /// A refusal.
    Nack(Neth<'a>),
    /// A probe.
    Probe(Peth<'a>),
}

/// Reads the headers behind a BTH: `bytes` begin at the BTH. `None`: MRC does not define the opcode, or they are not whole.
pub fn parse(bytes: &[u8]) -> Option<Headers<'_>> {
    let bth = Bth(*bytes.first_chunk()?);
    let rest = bytes.get(Bth::BYTES..)?;
    Some(match bth.0[0] {
        WRITE_FIRST..=WRITE_ONLY_IMMEDIATE => {
            let (time, at) = if has_time(&bth) {
                (Some(Tseth(chunk(rest, Meth::BYTES)?)), Meth::BYTES + Tseth::BYTES)
            } else {
                (None, Meth::BYTES)
            };
            let has_immediate = matches!(bth.0[0], WRITE_LAST_IMMEDIATE | WRITE_ONLY_IMMEDIATE);
            Headers::Write {
                meth: Meth(chunk(rest, 0)?),
                time,
                reth: Reth(chunk(rest, at)?),
                immediate: if has_immediate {
                    Some(ImmDt(chunk(rest, at + Reth::BYTES)?))
                } else {
                    None
                },
            }
        }
        ACKNOWLEDGE => Headers::Acknowledge(Aeth(*chunk(rest, 0)?)),
        ENDPOINT_REQUEST => Headers::Request(Erth(chunk(rest, 0)?)),
        ENDPOINT_RESPONSE => Headers::Response(Eeth(chunk(rest, 0)?)),
        SACK => {
            let seth = Seth(chunk(rest, 0)?);
            let state = CcState(chunk(rest, Seth::BYTES)?);
            Headers::Sack(seth, (seth.congestion_type() == 0).then_some(state))
        }
        NACK => Headers::Nack(Neth(chunk(rest, 0)?)),
        PROBE => Headers::Probe(Peth(chunk(rest, 0)?)),
        _ => return None,
    })
}

impl Headers<'_> {
    /// True of a control packet whose header begins with the nine zero bits of type and next header, and that has exactly its length:
    /// `transport_bytes` from the BTH to the end of the ICRC. Other transports with these opcodes hardly have both.
    pub const fn is_proof(&self, transport_bytes: usize) -> bool {
        let (is_plain, bytes) = match self {
            Self::Request(erth) => (erth.is_plain(), Erth::BYTES),
            Self::Response(eeth) => (eeth.is_plain(), Eeth::BYTES),
            Self::Sack(seth, _) => (seth.is_plain(), Seth::BYTES + CcState::BYTES),
            Self::Nack(neth) => (neth.is_plain(), Neth::BYTES),
            Self::Probe(peth) => (peth.is_plain(), Peth::BYTES),
            Self::Write { .. } | Self::Acknowledge(_) => return false,
        };
        is_plain && transport_bytes == Bth::BYTES + bytes + 4
    }
}

#[cfg(test)]
mod tests;
