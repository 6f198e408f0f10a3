//! One transmission of a packet, as it is remembered to find it at other taps.

use roce_model::{Packet, Span, TapId, Time};
use roce_wire::{Ecn, Psn, Roce, Service};

use crate::key::FlowSlot;

/// A PSN and which of a flow's streams it counts in: requests, READ responses, or answers, which repeat the PSNs of requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Number(pub(super) u32);

impl Number {
    pub(super) const REQUEST: u32 = 0;
    pub(super) const READ_RESPONSE: u32 = 1 << 24;
    pub(super) const ANSWER: u32 = 2 << 24;

    #[inline]
    pub(super) fn from_packet(roce: &Roce) -> Self {
        let opcode = roce.bth.opcode();
        let stream = match opcode.traits().is_sequenced() {
            true => Self::REQUEST,
            false if opcode.is_read_response() => Self::READ_RESPONSE,
            false => Self::ANSWER,
        };
        Self(roce.bth.psn().value() | stream)
    }

    pub(super) fn psn(self) -> Psn {
        Psn::new(self.0)
    }

    /// True if the sender of this packet repairs its loss.
    pub(super) fn is_repaired(self, of: &Roce) -> bool {
        !self.is_answer() && of.bth.opcode().service().is_reliable()
    }

    /// Change of the number of packets of which an acknowledgement shows that they were here: a request adds itself, and takes itself back when
    /// it is sent again.
    pub(super) fn shown(self, is_repaired: bool, is_again: bool) -> i8 {
        match (is_repaired && !self.is_response(), is_again) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => -1,
        }
    }

    fn is_answer(self) -> bool {
        self.0 & Self::ANSWER != 0
    }

    pub(super) fn is_response(self) -> bool {
        self.0 & Self::READ_RESPONSE != 0
    }

    /// The one directly before it.
    pub(super) fn before(self) -> Self {
        let stream = self.0 & !(Psn::COUNT - 1);
        Self(self.0.wrapping_sub(1) & (Psn::COUNT - 1) | stream)
    }
}

/// Evidence that a packet that a tap did not see was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Repair {
    /// Its PSN is sent again: a request or a READ response.
    #[default]
    SentAgain,
    /// Nobody repeats it: an ACK, a NAK or the response of an atomic operation.
    Answer,
    /// Nobody repeats it: its service is unreliable.
    Unreliable,
}

/// A later sighting is of another packet with this identity.
pub(super) const WINDOW: Span = Span(4 * Span::SECOND.0);

/// Clocks of two taps that were brought together differ by less.
pub(super) const CLOCKS_DIFFER: Span = Span(100_000);

/// One transmission of a packet, as the tap saw it that saw it last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) time: Time,
    /// The taps that saw it, a bit for each; taps 32 apart share one.
    pub(super) taps: u32,
    pub(super) tag: u32,
    /// The place of its flow.
    pub(super) flow: FlowSlot,
    pub(super) tap: TapId,
    pub(super) number: Number,
    pub(super) is_used: bool,
    pub(super) hop_limit: u8,
    pub(super) flags: Flags,
    /// Number among the flows that had the place: see [`SentPackets::generation`].
    pub(super) generation: u8,
}

/// Flags of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Flags(u8);

impl Flags {
    pub(super) const MARKED: u8 = 1;
    /// It was counted as matched at this tap.
    pub(super) const COUNTED: u8 = 2;
    /// Its PSN was sent once more after it.
    pub(super) const SENT_AGAIN: u8 = 4;
    /// It is the first of a run of retransmissions.
    pub(super) const BEGINS: u8 = 8;
    /// Its PSN was sent before it.
    pub(super) const AGAIN: u8 = 16;
    /// It is of an unreliable service: nobody sends it again.
    pub(super) const UNRELIABLE: u8 = 32;
    /// It is of a service whose repairs are not known.
    pub(super) const OTHER: u8 = 64;

    pub(super) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn set(&mut self, flag: u8) {
        self.0 |= flag;
    }

    pub(super) fn set_if(&mut self, flag: u8, condition: bool) {
        if condition {
            self.0 |= flag;
        }
    }
}

impl Entry {
    /// Evidence of the packet's loss; `None` without any.
    pub(super) fn repair(&self) -> Option<Repair> {
        if self.flags.has(Flags::OTHER) {
            None
        } else if self.flags.has(Flags::UNRELIABLE) {
            Some(Repair::Unreliable)
        } else if self.number.is_answer() {
            Some(Repair::Answer)
        } else {
            Some(Repair::SentAgain)
        }
    }

    pub(super) fn new(tag: u32, at: FlowSlot, generation: u8, packet: &Packet) -> Self {
        let mut flags = Flags::default();
        flags.set_if(Flags::MARKED, packet.roce.ecn() == Ecn::Ce);
        let service = packet.roce.bth.opcode().service();
        let is_unreliable = matches!(service, Service::Uc | Service::Ud);
        flags.set_if(Flags::UNRELIABLE, is_unreliable);
        flags.set_if(Flags::OTHER, !is_unreliable && !service.is_reliable());
        Self {
            time: packet.time,
            taps: bit(packet.tap),
            tag,
            flow: at,
            tap: packet.tap,
            number: Number::from_packet(&packet.roce),
            is_used: true,
            hop_limit: packet.roce.hop_limit,
            flags,
            generation,
        }
    }
}

pub(super) fn bit(tap: TapId) -> u32 {
    1 << (tap.0 % 32)
}
