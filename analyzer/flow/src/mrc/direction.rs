//! The way of data: from which host to which queue pair, or numbered connection, of which other one.

use roce_model::Packet;
use roce_wire::Address;

/// The way to one queue pair: source, destination, queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Direction {
    pub(crate) source: Address,
    pub(crate) destination: Address,
    pub(crate) qpn: u32,
}

impl Direction {
    pub(super) fn from_packet(packet: &Packet) -> Self {
        Self {
            source: packet.roce.source,
            destination: packet.roce.destination,
            qpn: packet.roce.bth.destination_qpn().value(),
        }
    }

    /// Its queue pair by the low 16 bits, as ids in answers name it.
    pub(super) const fn by_low_bits(self) -> Self {
        Self {
            qpn: self.qpn & 0xffff,
            ..self
        }
    }

    /// The way back, to a queue pair.
    pub(crate) fn back(self, qpn: u32) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            qpn,
        }
    }
}
