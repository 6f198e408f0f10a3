//! A packet as the connections take it, whatever its transport.

use roce_model::{Address, EventKind, EventRow, FlowKey, MrcSack, TapId, Time};

use super::direction::Direction;
use super::messages::MessageEnds;
use super::paths::CarriedEntropy;

/// The name of a connection in events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// The flow of the packet.
    Flow(FlowKey),
    /// A connection of UET, which has no flow: the way of its data, with the number that its sender gave it.
    Numbered(Direction),
}

/// A packet of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub(crate) time: Time,
    pub(crate) tap: TapId,
    pub(crate) hop_limit: u8,
    pub(crate) udp_port: u16,
    pub(crate) carried: CarriedEntropy,
    /// Source and destination of the IPv6 header around it.
    pub(crate) outer: Option<[Address; 2]>,
    pub(crate) subject: Subject,
    /// Its own PSN; of an answer the one that it is about.
    pub(crate) psn: u32,
    pub(crate) payload_bytes: u32,
    /// A switch has cut it.
    pub(crate) is_trimmed: bool,
    /// Its sender says that it is sent again.
    pub(crate) is_again: bool,
    /// A hash of its headers: two taps that see one control packet see the same.
    pub(crate) hash: u32,
    pub(crate) what: SightingKind,
}

/// The contents of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SightingKind {
    /// Data of a message.
    Data {
        message: u16,
        ends: MessageEnds,
        stamp: Option<u16>,
    },
    /// A selective acknowledgement.
    Sack(MrcSack),
    /// A refusal.
    Nack {
        reason: u8,
        entropy: Option<u32>,
        stamp: Option<u16>,
    },
    /// Messages are complete.
    Acknowledge { syndrome: u8 },
    /// A probe.
    Probe { number: u16 },
    /// A packet that counts, and says nothing.
    Other,
}

impl Sighting {
    /// An event of it, but for its kind.
    pub(super) fn event(&self, kind: EventKind) -> EventRow {
        EventRow {
            time: self.time,
            kind,
            tap: self.tap,
            psn: Some(self.psn),
            ..self.subject.event()
        }
    }
}

impl Subject {
    /// An event about it, but for its kind, time and tap.
    pub(super) fn event(self) -> EventRow {
        let (flow, object) = match self {
            Self::Flow(key) => (Some(key.id()), None),
            Self::Numbered(of) => {
                let name = format!("{} to {} PDC {:#06x}", of.source, of.destination, of.qpn);
                (None, Some(name.into()))
            }
        };
        EventRow {
            flow_id: flow,
            object,
            ..EventRow::default()
        }
    }
}
