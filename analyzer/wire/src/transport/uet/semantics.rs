//! The semantic layer of UET: operations, messages and jobs.

use crate::bytes::{chunk, part};

/// Bits of a length of payload. A CRC may follow the payload, and no field says whether it does: these lengths leave it out.
const LENGTH_MASK: u16 = 0x3fff;

/// View of the part that all requests of the semantic layer have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation<'a>(pub &'a [u8; 12]);

impl Operation<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 12;

    /// The operation, 6 bits.
    pub const fn code(&self) -> u8 {
        self.0[0] & 0x3f
    }

    /// True of the first packet of a message.
    pub const fn is_first(&self) -> bool {
        self.0[1] & 0x01 != 0
    }

    /// True of the last packet of a message.
    pub const fn is_last(&self) -> bool {
        self.0[1] & 0x02 != 0
    }

    /// Number of the message; of a small or medium request its length.
    pub const fn message(&self) -> u16 {
        u16::from_be_bytes(part::<2, 2, 12>(self.0))
    }

    /// Number of the job, 24 bits.
    pub const fn job(&self) -> u32 {
        u32::from_be_bytes(part::<4, 4, 12>(self.0)) & 0x00ff_ffff
    }

    /// Number of the process at its host, 12 bits.
    pub const fn process(&self) -> u16 {
        u16::from_be_bytes(part::<8, 2, 12>(self.0)) & 0x0fff
    }

    /// Number of the resource, 12 bits.
    pub const fn resource(&self) -> u16 {
        u16::from_be_bytes(part::<10, 2, 12>(self.0)) & 0x0fff
    }
}

/// The name of an operation.
pub const fn operation_name(code: u8) -> &'static str {
    const NAMES: [&str; 16] = [
        "NO_OP",
        "WRITE",
        "READ",
        "ATOMIC",
        "FETCHING_ATOMIC",
        "SEND",
        "RENDEZVOUS_SEND",
        "DATAGRAM_SEND",
        "DEFERRABLE_SEND",
        "TAGGED_SEND",
        "RENDEZVOUS_TSEND",
        "DEFERRABLE_TSEND",
        "DEFERRABLE_RTR",
        "TSEND_ATOMIC",
        "TSEND_FETCH_ATOMIC",
        "MSG_ERROR",
    ];
    match code {
        0x30..=0x3e => "vendor",
        _ if (code as usize) < NAMES.len() => NAMES[code as usize],
        _ => "reserved",
    }
}

/// The semantic layer of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Semantics {
    /// A request, or a part of one.
    Request {
        /// The operation.
        code: u8,
        /// Number of its message; `None`: a small or medium request is a message of its own.
        message: Option<u16>,
        /// First packet of its message.
        is_first: bool,
        /// Last packet of its message.
        is_last: bool,
        /// Number of the job.
        job: u32,
    },
    /// An answer.
    Response {
        /// 1: no error.
        code: u8,
        /// Number of the job.
        job: u32,
    },
}

impl Semantics {
    /// Number of the job.
    pub const fn job(self) -> u32 {
        match self {
            Self::Request { job, .. } | Self::Response { job, .. } => job,
        }
    }
}

/// The semantic layer as far as it was captured, its length, and the payload that it states.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadSemantics {
    pub(super) semantics: Option<Semantics>,
    pub(super) header_bytes: usize,
    pub(super) stated_payload: Option<usize>,
}

/// Reads the semantic layer, whose form `next` says, from the bytes behind packet delivery.
pub(super) fn read(next: u8, bytes: &[u8]) -> ReadSemantics {
    let mut found = ReadSemantics::default();
    let word = |at: usize| chunk(bytes, at).map(|bytes| u16::from_be_bytes(*bytes));
    let length = |word: u16| usize::from(word & LENGTH_MASK);
    match next {
        1..=3 => {
            let Some(operation) = chunk(bytes, 0).map(Operation) else {
                return found;
            };
            let is_standard = next == 3;
            found.semantics = Some(Semantics::Request {
                code: operation.code(),
                message: is_standard.then_some(operation.message()),
                is_first: !is_standard || operation.is_first(),
                is_last: !is_standard || operation.is_last(),
                job: operation.job(),
            });
            found.header_bytes += [20, 32, 44][usize::from(next) - 1];
            found.stated_payload = match (is_standard, operation.is_first(), operation.is_last()) {
                (false, ..) => Some(length(operation.message())),
                (true, false, _) => word(34).map(length),
                (true, true, true) => {
                    let bytes = chunk(bytes, 40).map(|bytes| u32::from_be_bytes(*bytes));
                    bytes.and_then(|bytes| usize::try_from(bytes).ok())
                }
                (true, true, false) => None,
            };
        }
        4..=6 => {
            let Some(bytes) = chunk::<8>(bytes, 0) else {
                return found;
            };
            found.semantics = Some(Semantics::Response {
                code: bytes[1] & 0x3f,
                job: u32::from_be_bytes(part::<4, 4, 8>(bytes)) & 0x00ff_ffff,
            });
            found.header_bytes += if next == 5 { 20 } else { 12 };
            found.stated_payload = match next {
                4 => Some(0),
                5 => word(10).map(|word| usize::from(word & 0x0fff)),
                _ => word(2).map(length),
            };
        }
        _ => {}
    }
    found
}
