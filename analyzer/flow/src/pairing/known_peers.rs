//! Pairings that are known before their flows, or longer than them: those of the connection manager's messages, and those
//! of flows that were closed early. Bounded: the oldest is forgotten.

use roce_model::{FlowKey, TapId};
use roce_wire::{Address, Qpn};

use crate::pairing::bounded_map::{BoundedMap, bounded_map};
use crate::pairing::evidence::PairingEvidence;

/// Direction of a flow of any connected service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Direction {
    tap: TapId,
    source: Address,
    destination: Address,
    destination_qpn: Qpn,
    vlan: Option<u16>,
    vni: Option<u32>,
}

impl Direction {
    pub(crate) fn new(tap: TapId, key: &FlowKey) -> Self {
        Self {
            tap,
            source: key.source,
            destination: key.destination,
            destination_qpn: key.destination_qpn,
            vlan: key.vlan,
            vni: key.vni,
        }
    }
}

/// The other direction of a flow: the queue pair of its packets, and the evidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KnownPeer {
    pub(crate) qpn: Qpn,
    pub(crate) how: PairingEvidence,
    pub(crate) matches: Option<u64>,
}

/// Pairings of flows that are not in the table, or not yet.
#[derive(Debug)]
pub(crate) struct KnownPeers(BoundedMap<Direction, KnownPeer>);

impl Default for KnownPeers {
    fn default() -> Self {
        Self(bounded_map())
    }
}

impl KnownPeers {
    /// Remembers the other direction of a flow.
    pub(crate) fn remember(&mut self, of: Direction, known: KnownPeer) {
        self.0.put(of, known);
    }

    /// Known peer of a flow.
    pub(crate) fn get(&self, direction: &Direction) -> Option<KnownPeer> {
        self.0.peek(direction).copied()
    }

    /// It no longer holds.
    pub(crate) fn forget(&mut self, of: &Direction) {
        self.0.pop(of);
    }

    /// True if there are none: then no flow need be looked up.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
