//! ACK extended transport header, 4 bytes (IBTA 9.3.5).
//!
//! ```text
//!  0        syndrome: 0 00 credit count | 0 01 RNR timer | 0 11 NAK code (IBTA 9.7.5.2)
//!  1..4     message sequence number
//! ```

use core::fmt;
use core::ops::Range;

/// An ACK extended transport header, by value: 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Aeth(pub [u8; 4]);

/// Meaning of a syndrome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AethKind {
    /// Positive acknowledgement.
    Ack {
        /// The credit count code, 0 to 31: see [`AethKind::credit_limit`].
        credits: u8,
    },
    /// Receiver not ready: no receive buffer was posted.
    RnrNak {
        /// Time that the requester has to wait.
        timer: RnrTimer,
    },
    /// Negative acknowledgement.
    Nak(Nak),
    /// A reserved syndrome.
    Reserved(u8),
}

/// The reason of a negative acknowledgement (IBTA 9.7.5.2; `check_ack` of Linux drivers/infiniband/sw/rxe/rxe_comp.c).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Nak {
    /// A packet is missing: the PSN of the NAK is the one expected next.
    PsnSequenceError = 0,
    /// The request is malformed or not supported.
    InvalidRequest = 1,
    /// The key, the address or the rights do not allow the access.
    RemoteAccessError = 2,
    /// The responder failed for a reason of its own.
    RemoteOperationalError = 3,
    /// A reliable datagram request that is not valid.
    InvalidRdRequest = 4,
}

/// The timer code of an RNR NAK, 0 to 31 (IBTA 9.7.5.2.8; `enum ib_rnr_timeout` of Linux include/rdma/ib_verbs.h).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RnrTimer(u8);

/// The local ACK timeout of a queue pair as its code, 0 to 31: a requester waits 4.096 us x 2^code, and up to four times as long. Code 0
/// means no timeout in a queue pair (IBTA 9.7.6.1.3, C9-140).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AckTimeout(u8);

impl Aeth {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The syndrome byte.
    #[inline]
    pub const fn syndrome(&self) -> u8 {
        self.0[0]
    }

    /// The message sequence number: 24 bits, how many messages the responder has completed.
    #[inline]
    pub const fn msn(&self) -> u32 {
        u32::from_be_bytes([0, self.0[1], self.0[2], self.0[3]])
    }

    /// Meaning of the syndrome.
    #[inline]
    pub const fn kind(&self) -> AethKind {
        let low = self.0[0] & 0x1f;
        match self.0[0] >> 5 {
            0 => AethKind::Ack { credits: low },
            1 => AethKind::RnrNak { timer: RnrTimer(low) },
            3 => match Nak::from_code(low) {
                Some(nak) => AethKind::Nak(nak),
                None => AethKind::Reserved(self.0[0]),
            },
            _ => AethKind::Reserved(self.0[0]),
        }
    }
}

impl AethKind {
    /// The number of messages that the credit code of an ACK allows beyond the MSN; `None` for 31 (no limit given)
    /// and for what is no ACK (IBTA 9.7.7.2; `credit_table` of Linux drivers/infiniband/sw/rdmavt/rc.c).
    pub const fn credit_limit(self) -> Option<u32> {
        match self {
            Self::Ack {
                credits: code @ 0..=4,
            } => Some(code as u32),
            // From 4 on: 2^k and 1.5 * 2^k in turn, 4, 6, 8, 12, 16 ...
            Self::Ack {
                credits: code @ 5..=30,
            } => Some(((code as u32 & 1) + 2) << (code / 2 - 1)),
            _ => None,
        }
    }

    /// A short name: `ACK`, `RNR NAK`, `NAK (PSN sequence error)` without its words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ack { .. } => "ACK",
            Self::RnrNak { .. } => "RNR NAK",
            Self::Nak(_) => "NAK",
            Self::Reserved(_) => "reserved syndrome",
        }
    }
}

impl Nak {
    /// The reason of a 5-bit NAK code; `None` when it is reserved.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::PsnSequenceError,
            1 => Self::InvalidRequest,
            2 => Self::RemoteAccessError,
            3 => Self::RemoteOperationalError,
            4 => Self::InvalidRdRequest,
            _ => return None,
        })
    }

    /// The reason in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PsnSequenceError => "PSN sequence error",
            Self::InvalidRequest => "invalid request",
            Self::RemoteAccessError => "remote access error",
            Self::RemoteOperationalError => "remote operational error",
            Self::InvalidRdRequest => "invalid RD request",
        }
    }
}

impl RnrTimer {
    /// The low five bits of `code`.
    pub const fn new(code: u8) -> Self {
        Self(code & 0x1f)
    }

    /// The code, 0 to 31.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The time in nanoseconds, from 10 us to 655.36 ms.
    pub const fn nanos(self) -> u64 {
        /// In units of 10 us.
        const TABLE: [u32; 32] = [
            65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
            2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
        ];
        TABLE[(self.0 & 0x1f) as usize] as u64 * 10_000
    }
}

impl AckTimeout {
    /// Nanoseconds that code 0 stands for: the unit of all others.
    pub const UNIT_NS: u64 = 4_096;
    /// An adapter waits at most this many times as long as its timeout says.
    pub const RANGE: u64 = 4;

    /// The low five bits of `code`.
    pub const fn new(code: u8) -> Self {
        Self(code & 0x1f)
    }

    /// The code, 0 to 31.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The shortest wait, in nanoseconds.
    pub const fn nanos(self) -> u64 {
        Self::UNIT_NS << self.0
    }

    /// True if waits from `shortest` to `longest`, in nanoseconds, can all be those of this timeout.
    pub const fn allows(self, shortest: u64, longest: u64) -> bool {
        self.nanos() <= shortest && longest <= self.nanos() * Self::RANGE
    }

    /// The smallest and the largest timeout among `codes` that [`allows`](Self::allows) such waits; `None` if none does.
    pub fn fitting(codes: Range<u8>, shortest: u64, longest: u64) -> Option<(Self, Self)> {
        let mut fitting = codes.map(Self::new).filter(|code| code.allows(shortest, longest));
        let least = fitting.next()?;
        Some((least, fitting.next_back().unwrap_or(least)))
    }
}

impl fmt::Display for Nak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for RnrTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = self.nanos() / 1000;
        write!(f, "{}.{:02} ms", microseconds / 1000, microseconds % 1000 / 10)
    }
}

impl fmt::Display for AethKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ack { .. } => f.write_str("ACK"),
            Self::RnrNak { timer } => write!(f, "RNR NAK {timer}"),
            Self::Nak(nak) => write!(f, "NAK {nak}"),
            Self::Reserved(syndrome) => write!(f, "reserved syndrome 0x{syndrome:02x}"),
        }
    }
}

impl fmt::Display for Aeth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MSN {}", self.kind(), self.msn())
    }
}

impl fmt::Debug for Aeth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aeth({self})")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn syndromes_follow_ibta_table_45() {
        assert_eq!(Aeth([0x1f, 0, 0, 7]).kind(), AethKind::Ack { credits: 31 });
        assert_eq!(Aeth([0x1f, 0, 0, 7]).msn(), 7);
        assert_eq!(
            Aeth([0x60, 0, 1, 0]).to_string(),
            "NAK PSN sequence error MSN 256"
        );
        assert_eq!(Aeth([0x61, 0, 0, 0]).kind(), AethKind::Nak(Nak::InvalidRequest));
        assert_eq!(Aeth([0x64, 0, 0, 0]).kind(), AethKind::Nak(Nak::InvalidRdRequest));
        assert_eq!(Aeth([0x65, 0, 0, 0]).kind(), AethKind::Reserved(0x65));
        assert_eq!(Aeth([0x40, 0, 0, 0]).kind(), AethKind::Reserved(0x40));
        assert_eq!(Aeth([0x80, 0, 0, 0]).kind(), AethKind::Reserved(0x80));
        assert_eq!(Aeth([0x2c, 0, 0, 0]).to_string(), "RNR NAK 0.64 ms MSN 0");
    }

    #[test]
    fn rnr_timers_follow_their_table() {
        // In hundredths of a millisecond, as the table prints them: 655.36 ms, 0.01 ms ...
        for (code, hundredths) in [
            (0, 65_536),
            (1, 1),
            (5, 6),
            (9, 24),
            (12, 64),
            (15, 192),
            (20, 1024),
            (25, 6144),
            (31, 49_152),
        ] {
            assert_eq!(RnrTimer::new(code).nanos(), hundredths * 10_000, "code {code}");
        }
        assert_eq!(RnrTimer::new(0).to_string(), "655.36 ms");
    }

    #[test]
    fn timeouts_are_powers_of_two() {
        // IBTA 9.7.6.1.3: 4.096 us x 2^18 is 1.0737 s, x 2^16 a quarter of it.
        assert_eq!(AckTimeout::new(18).nanos(), 1_073_741_824);
        let fitting = |shortest, longest| {
            let (least, most) = AckTimeout::fitting(1..32, shortest, longest)?;
            Some((least.code(), most.code()))
        };
        assert_eq!(fitting(1_073_741_824, 1_073_741_824), Some((16, 18)));
        assert_eq!(fitting(1_073_741_823, 1_073_741_824), Some((16, 17)));
        // More than four times as long.
        assert_eq!(fitting(8_192, 32_769), None);
        assert_eq!(fitting(8_191, 8_191), None);
    }

    #[test]
    fn credit_codes_follow_the_table() {
        // Linux drivers/infiniband/sw/rdmavt/rc.c lists the same: 0 1 2 3 4 6 8 0xc 0x10 0x18 ... 0x6000 0x8000.
        for (credits, limit) in [
            (0, 0),
            (4, 4),
            (5, 6),
            (6, 8),
            (7, 12),
            (8, 16),
            (9, 24),
            (29, 0x6000),
            (30, 0x8000),
        ] {
            assert_eq!(
                AethKind::Ack { credits }.credit_limit(),
                Some(limit),
                "code {credits}"
            );
        }
        assert_eq!(AethKind::Ack { credits: 31 }.credit_limit(), None);
    }
}
