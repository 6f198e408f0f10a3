//! The transport of a RoCE packet: BTH, extended headers, payload and padding.
//!
//! Which extended headers a packet has follows from its opcode ([`Opcode::extended`]). The ICRC after it all needs
//! the network header, too, and is the frame's matter.

use roce_wire::{Aeth, Nak, Opcode, Psn, Qpn, RnrTimer};

use super::cm;
use super::credit::Credits;

/// BTH, extended headers and payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Operation of the packet.
    pub opcode: Opcode,
    /// Solicited event.
    pub solicited: bool,
    /// Migration state (MigReq).
    pub migration: bool,
    /// The partition key.
    pub partition_key: u16,
    /// Forward explicit congestion notification.
    pub fecn: bool,
    /// Backward explicit congestion notification.
    pub becn: bool,
    /// The queue pair that it is for.
    pub destination_qpn: Qpn,
    /// True if the packet requests an acknowledgement.
    pub ack_request: bool,
    /// The packet sequence number.
    pub psn: Psn,
    /// Fields of the extended headers. Those that the opcode has no header for are not written.
    pub extended: ExtendedFields,
    /// Payload of the packet. A CNP has its 16 zero bytes in any case.
    pub payload: Payload,
}

/// The fields of all extended headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExtendedFields {
    /// RDETH: the end-to-end context, 24 bits.
    pub context: u32,
    /// DETH: the queue key.
    pub queue_key: u32,
    /// DETH: the sender's queue pair.
    pub source_qpn: Qpn,
    /// XRCETH: the shared receive queue, 24 bits.
    pub receive_queue: u32,
    /// FETH: placement (4 bits) and selectivity (2 bits), as in its last byte.
    pub flush: u8,
    /// RETH.
    pub reth: RemoteMemory,
    /// AtomicETH.
    pub atomic: Atomic,
    /// AETH.
    pub aeth: Aeth,
    /// AtomicAckETH: what the memory held before.
    pub original: u64,
    /// ImmDt.
    pub immediate: u32,
    /// IETH: the key to invalidate.
    pub invalidate: u32,
}

/// A range of the responder's memory (RETH).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemoteMemory {
    /// The virtual address.
    pub address: u64,
    /// The remote key.
    pub key: u32,
    /// The length of the whole message in bytes.
    pub length: u32,
}

/// The operands of an atomic operation (AtomicETH).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Atomic {
    /// The virtual address.
    pub address: u64,
    /// The remote key.
    pub key: u32,
    /// Value that is swapped in or added.
    pub swap_or_add: u64,
    /// Value that a CmpSwap compares with.
    pub compare: u64,
}

/// Payload of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Data of an application: byte n is `first + n * step`, modulo 256.
    Data {
        /// Number of bytes.
        bytes: u16,
        /// The first byte.
        first: u8,
        /// The difference between a byte and the next.
        step: u8,
    },
    /// A message of the connection manager.
    Management(cm::Datagram),
    /// Credits of a receiver.
    Credits(Credits),
    /// Lengths of several messages, of four bytes each, little-endian.
    Lengths {
        /// The length of each.
        length: u32,
        /// Number of messages.
        count: u8,
    },
}

/// The reserved bytes of a CNP (IBTA A17.9.3).
const CNP_BYTES: u16 = 16;
const BTH_BYTES: u32 = 12;
const ICRC_BYTES: u32 = 4;

impl Payload {
    /// No payload.
    pub const NONE: Self = Self::data(0);
    /// The most data that a packet carries: the largest path MTU, 4096 bytes. More is cut to it.
    pub const MAX_BYTES: u16 = 4096;

    /// Bytes that count up from 0.
    pub const fn data(bytes: u16) -> Self {
        Self::Data {
            bytes,
            first: 0,
            step: 1,
        }
    }

    /// Its length in bytes, without padding.
    pub const fn bytes(&self) -> u16 {
        match *self {
            Self::Data { bytes, .. } if bytes > Self::MAX_BYTES => Self::MAX_BYTES,
            Self::Data { bytes, .. } => bytes,
            Self::Management(_) => cm::Datagram::BYTES,
            Self::Credits(ref credits) => credits.bytes(),
            Self::Lengths { count, .. } => 4 * count as u16,
        }
    }
}

impl Transport {
    /// A packet without payload, its flags clear, its extended headers zero, in the default partition.
    pub const fn new(opcode: Opcode, destination_qpn: Qpn, psn: Psn) -> Self {
        Self {
            opcode,
            solicited: false,
            migration: false,
            partition_key: 0xffff,
            fecn: false,
            becn: false,
            destination_qpn,
            ack_request: false,
            psn,
            extended: ExtendedFields {
                context: 0,
                queue_key: 0,
                source_qpn: Qpn::new(0),
                receive_queue: 0,
                flush: 0,
                reth: RemoteMemory {
                    address: 0,
                    key: 0,
                    length: 0,
                },
                atomic: Atomic {
                    address: 0,
                    key: 0,
                    swap_or_add: 0,
                    compare: 0,
                },
                aeth: Aeth([0; 4]),
                original: 0,
                immediate: 0,
                invalidate: 0,
            },
            payload: Payload::NONE,
        }
    }

    /// A congestion notification to the queue pair that must slow down (IBTA A17.9.3).
    pub const fn cnp(destination_qpn: Qpn) -> Self {
        let mut cnp = Self::new(Opcode::CNP, destination_qpn, Psn::new(0));
        cnp.becn = true;
        cnp
    }

    /// An RC Acknowledge that acknowledges everything up to `psn`. `msn` counts the messages that the responder has
    /// completed; `credits` is the credit count code, 31 for no limit (IBTA 9.7.7.2).
    pub const fn ack(destination_qpn: Qpn, psn: Psn, msn: u32, credits: u8) -> Self {
        Self::acknowledge(destination_qpn, psn, msn, credits & 0x1f)
    }

    /// An RC Acknowledge that refuses `psn`: for a sequence error the PSN that is expected next (IBTA 9.7.5.2).
    pub const fn nak(destination_qpn: Qpn, psn: Psn, msn: u32, reason: Nak) -> Self {
        Self::acknowledge(destination_qpn, psn, msn, 0x60 | reason as u8)
    }

    /// An RC Acknowledge that requests `psn` again after a while (IBTA 9.7.5.2.8).
    pub const fn rnr_nak(destination_qpn: Qpn, psn: Psn, msn: u32, timer: RnrTimer) -> Self {
        Self::acknowledge(destination_qpn, psn, msn, 0x20 | timer.code())
    }

    const fn acknowledge(destination_qpn: Qpn, psn: Psn, msn: u32, syndrome: u8) -> Self {
        let mut acknowledge = Self::new(Opcode::RC_ACKNOWLEDGE, destination_qpn, psn);
        let [_, high, middle, low] = msn.to_be_bytes();
        acknowledge.extended.aeth = Aeth([syndrome, high, middle, low]);
        acknowledge
    }

    /// A message of the connection manager, from queue pair 1 to queue pair 1 (IBTA chapters 12 and 13).
    pub const fn management(psn: Psn, datagram: cm::Datagram) -> Self {
        let mut management = Self::new(Opcode::UD_SEND_ONLY, Qpn::GENERAL_SERVICES, psn);
        management.extended.queue_key = cm::QUEUE_KEY;
        management.extended.source_qpn = Qpn::GENERAL_SERVICES;
        management.payload = Payload::Management(datagram);
        management
    }

    /// Its payload in bytes, the zero bytes of a CNP among them, padding not.
    pub const fn payload_bytes(&self) -> u32 {
        if self.opcode.is_cnp() {
            CNP_BYTES as u32
        } else {
            self.payload.bytes() as u32
        }
    }

    /// Bytes of padding: payloads end at multiples of 4 (IBTA 9.2).
    pub const fn pad_count(&self) -> u8 {
        (self.payload_bytes().wrapping_neg() & 3) as u8
    }

    /// From the BTH to the end of the ICRC.
    pub(super) fn bytes(&self) -> u32 {
        let extended = u32::from(self.opcode.extended_bytes());
        BTH_BYTES + extended + self.payload_bytes() + u32::from(self.pad_count()) + ICRC_BYTES
    }

    /// Appends BTH and extended headers.
    pub(super) fn encode_headers(&self, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = flag(self.solicited, 0x80) | flag(self.migration, 0x40) | self.pad_count() << 4;
        out.extend_from_slice(&[self.opcode.0, flags]);
        out.extend_from_slice(&self.partition_key.to_be_bytes());
        out.push(flag(self.fecn, 0x80) | flag(self.becn, 0x40));
        triple(self.destination_qpn.value(), out);
        out.push(flag(self.ack_request, 0x80));
        triple(self.psn.value(), out);
        self.extended.encode(self.opcode.extended(), out);
    }

    /// Appends the first `most` bytes of the payload, without padding.
    pub(super) fn encode_payload(&self, most: usize, out: &mut Vec<u8>) {
        let kept = most.min(usize::try_from(self.payload_bytes()).unwrap_or(usize::MAX));
        match &self.payload {
            _ if self.opcode.is_cnp() => out.resize(out.len() + kept, 0),
            Payload::Data { first, step, .. } => {
                let mut byte = *first;
                out.extend((0..kept).map(|_| {
                    let this = byte;
                    byte = byte.wrapping_add(*step);
                    this
                }));
            }
            Payload::Management(datagram) => {
                let bytes = datagram.encode();
                out.extend_from_slice(bytes.get(..kept).unwrap_or(&bytes));
            }
            Payload::Credits(credits) => {
                let bytes = credits.encode();
                out.extend_from_slice(bytes.get(..kept).unwrap_or(&bytes));
            }
            Payload::Lengths { length, .. } => {
                out.extend(length.to_le_bytes().iter().cycle().take(kept));
            }
        }
    }
}

impl ExtendedFields {
    /// Appends the headers of the set `which`, in the order of IBTA 9.2.1.
    fn encode(&self, which: roce_wire::ExtendedHeaders, out: &mut Vec<u8>) {
        use roce_wire::ExtendedHeaders as Set;
        if which.has(Set::RDETH) {
            out.push(0);
            triple(self.context, out);
        }
        if which.has(Set::DETH) {
            out.extend_from_slice(&self.queue_key.to_be_bytes());
            out.push(0);
            triple(self.source_qpn.value(), out);
        }
        if which.has(Set::XRCETH) {
            out.push(0);
            triple(self.receive_queue, out);
        }
        if which.has(Set::FETH) {
            out.extend_from_slice(&[0, 0, 0, self.flush & 0x3f]);
        }
        if which.has(Set::RETH) {
            out.extend_from_slice(&self.reth.address.to_be_bytes());
            out.extend_from_slice(&self.reth.key.to_be_bytes());
            out.extend_from_slice(&self.reth.length.to_be_bytes());
        }
        if which.has(Set::ATOMIC_ETH) {
            out.extend_from_slice(&self.atomic.address.to_be_bytes());
            out.extend_from_slice(&self.atomic.key.to_be_bytes());
            out.extend_from_slice(&self.atomic.swap_or_add.to_be_bytes());
            out.extend_from_slice(&self.atomic.compare.to_be_bytes());
        }
        if which.has(Set::AETH) {
            out.extend_from_slice(&self.aeth.0);
        }
        if which.has(Set::ATOMIC_ACK_ETH) {
            out.extend_from_slice(&self.original.to_be_bytes());
        }
        if which.has(Set::IMM_DT) {
            out.extend_from_slice(&self.immediate.to_be_bytes());
        }
        if which.has(Set::IETH) {
            out.extend_from_slice(&self.invalidate.to_be_bytes());
        }
    }
}

/// Appends the low 24 bits of `value`.
fn triple(value: u32, out: &mut Vec<u8>) {
    let [_, high, middle, low] = value.to_be_bytes();
    out.extend_from_slice(&[high, middle, low]);
}
