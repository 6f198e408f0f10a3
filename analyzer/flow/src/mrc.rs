//! Connections of MRC: what was sent on which path, what arrived, and why it was sent again. This folder knows no table of flows; it gets
//! each packet once, whatever its tap, and gives rows at the end. `pool` has the connections, which those of UET share.

mod causes;
mod close;
mod conclusion;
mod connection;
mod direction;
mod messages;
mod paths;
mod pool;
mod ports;
mod seen;
mod sent;
mod sighting;

use std::collections::{HashMap, HashSet};

use roce_model::{EventRow, FlowKey, MrcHeaders, MrcPacket, MrcWrite, Packet};
use roce_wire::transport::mrc;
use roce_wire::{Address, Carrier, Qpn};

pub use conclusion::MrcConclusion;
use connection::Connection;
pub(crate) use direction::Direction;
pub(crate) use messages::MessageEnds;
pub(crate) use paths::CarriedEntropy;
pub(crate) use pool::Pool;
use ports::Ports;
pub(crate) use seen::SeenMrc;
pub(crate) use sighting::{Sighting, SightingKind, Subject};

/// Queue pairs that are known to speak MRC, at most. Further ones are those of a vendor.
const MAX_QUEUE_PAIRS: usize = 1 << 18;
/// Bits of a PSN of MRC.
const PSN_BITS: u32 = 24;
/// First WRITEs of queue pairs that are compared with later ones, at most.
const MAX_CANDIDATES: usize = 1 << 16;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A WRITE by which later ones of its message are compared.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    write: MrcWrite,
    payload: u32,
}

/// All connections of a run.
#[derive(Debug, Default)]
pub(crate) struct Mrc {
    connections: Pool,
    /// By the data's source, destination and queue pair.
    by_data: Map<Direction, usize>,
    /// By the data's source and destination, and the requestor's queue pair.
    by_requestor: Map<Direction, usize>,
    /// By the data's source and destination, and the low 16 bits of the responder's queue pair.
    by_low_bits: Map<Direction, usize>,
    proven: HashSet<Direction, foldhash::fast::RandomState>,
    /// Queue pairs that control packets name, by their low 16 bits.
    named: HashSet<Direction, foldhash::fast::RandomState>,
    candidates: Map<Direction, Candidate>,
    ports: Ports,
}

impl Mrc {
    /// True if nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.proven.is_empty()
    }

    /// True if what is sent to a queue pair is known to be MRC.
    pub(crate) fn is_proven(&self, source: Address, destination: Address, qpn: Qpn) -> bool {
        let to = Direction {
            source,
            destination,
            qpn: qpn.value(),
        };
        !self.is_empty() && (self.proven.contains(&to) || self.named.contains(&to.by_low_bits()))
    }

    /// Looks whether a packet shows that its queue pair speaks MRC: by the form of a control packet, by its port, or by two WRITEs of a
    /// message, of which each says the length of the whole and its own address.
    pub(crate) fn recognise(&mut self, packet: &Packet, headers: &MrcPacket) {
        let to = Direction::from_packet(packet);
        if self.proven.contains(&to) || self.proven.len() >= MAX_QUEUE_PAIRS {
            return;
        }
        if headers.is_proof {
            self.proven.insert(to);
            let ids = match headers.headers {
                MrcHeaders::Sack(sack) => sack.ids,
                MrcHeaders::Nack { ids, .. } | MrcHeaders::Probe { ids, .. } => ids,
                _ => return,
            };
            self.named.insert(to.back(u32::from(other_id(ids, to.qpn))));
            return;
        }
        if let MrcHeaders::Write(write) = headers.headers {
            self.compare(to, write, headers.payload_bytes);
        }
    }

    fn compare(&mut self, to: Direction, write: MrcWrite, payload: u32) {
        if let Some(first) = self.candidates.get(&to) {
            let larger = u64::from(first.payload.max(payload)).max(1);
            let apart = first.write.address.abs_diff(write.address);
            let is_one = first.write.message == write.message
                && (first.write.key, first.write.length) == (write.key, write.length);
            if is_one && apart > 0 && apart.is_multiple_of(larger) && apart < u64::from(write.length) {
                self.candidates.remove(&to);
                self.proven.insert(to);
                return;
            }
            if first.write.message == write.message {
                return;
            }
        }
        if self.candidates.len() < MAX_CANDIDATES {
            self.candidates.insert(to, Candidate { write, payload });
        }
    }

    /// Takes a packet of a queue pair that is known to speak MRC. Events are added to `events`.
    pub(crate) fn observe(
        &mut self,
        packet: &Packet,
        headers: &MrcPacket,
        events: &mut Vec<EventRow>,
    ) -> SeenMrc {
        let to = Direction::from_packet(packet);
        let seen = sighting(packet, headers);
        let (at, opposite) = match headers.headers {
            MrcHeaders::Write(_) | MrcHeaders::Probe { .. } => (self.of_data(to, &seen), None),
            MrcHeaders::Sack(sack) => (self.of_ids(to, sack.ids), Some(sack.ids)),
            MrcHeaders::Nack { ids, .. } => (self.of_ids(to, ids), Some(ids)),
            MrcHeaders::Acknowledge { .. } => (self.by_requestor.get(&to.back(to.qpn)).copied(), None),
            MrcHeaders::Request { operation, ports } => {
                if operation == 0 {
                    self.ports.report(packet, ports, events);
                }
                return SeenMrc::default();
            }
            MrcHeaders::Response => return SeenMrc::default(),
        };
        let Some(at) = at else {
            return SeenMrc::default();
        };
        if let (Some(ids), Some(connection)) = (opposite, self.connections.get_mut(at)) {
            connection.named(to.qpn, ids);
        }
        self.connections.observe(at, &seen, events)
    }

    /// The connection of data and probes to a queue pair; a new one if there is none, or if the packet shows that the known one has ended.
    fn of_data(&mut self, to: Direction, seen: &Sighting) -> Option<usize> {
        if let Some(at) = self.by_data.get(&to).copied() {
            let known = self.connections.get_mut(at);
            let ended = known.and_then(|known| known.ends_before(seen).then_some(known.requestor_qpn));
            let Some(requestor) = ended else {
                return Some(at);
            };
            if let Some(qpn) = requestor {
                self.by_requestor.remove(&Direction { qpn, ..to });
            }
        }
        let low = to.by_low_bits();
        // SACKs came before its first packet of data.
        let waiting = self.by_low_bits.get(&low).copied();
        let waiting = waiting.filter(|at| self.connections.get(*at).is_some_and(Connection::awaits_data));
        let at = match waiting {
            Some(at) => at,
            None => self.open(to, low)?,
        };
        if let Some(connection) = self.connections.get_mut(at) {
            connection.responder_qpn = Some(to.qpn);
        }
        self.by_data.insert(to, at);
        Some(at)
    }

    /// The connection whose data an answer to a queue pair is about.
    fn of_ids(&mut self, to: Direction, ids: [u16; 2]) -> Option<usize> {
        let back = to.back(to.qpn);
        if let Some(at) = self.by_requestor.get(&back) {
            return Some(*at);
        }
        let low = to.back(u32::from(other_id(ids, to.qpn)));
        let at = match self.by_low_bits.get(&low) {
            Some(at) => *at,
            None => self.open(back, low)?,
        };
        self.by_requestor.insert(back, at);
        Some(at)
    }

    fn open(&mut self, data: Direction, low: Direction) -> Option<usize> {
        let at = self.connections.open(data.source, data.destination, PSN_BITS)?;
        self.by_low_bits.insert(low, at);
        Some(at)
    }

    /// The rows at the end.
    pub(crate) fn conclude(self, events: &mut Vec<EventRow>) -> MrcConclusion {
        let mut conclusion = self.connections.conclude(events);
        conclusion.reports.ports = self.ports.lost;
        conclusion
    }
}

/// A packet as connections take it.
fn sighting(packet: &Packet, headers: &MrcPacket) -> Sighting {
    let roce = &packet.roce;
    let (mut psn, code) = (roce.bth.psn().value(), roce.bth.0[0]);
    let what = match headers.headers {
        MrcHeaders::Write(write) => SightingKind::Data {
            message: write.message,
            ends: MessageEnds {
                is_first: mrc::is_first(code),
                is_last: mrc::is_last(code),
            },
            stamp: write.stamp,
        },
        MrcHeaders::Sack(sack) => SightingKind::Sack(sack),
        MrcHeaders::Nack {
            reason,
            entropy,
            psn: refused,
            stamp,
            ..
        } => {
            psn = refused;
            SightingKind::Nack {
                reason,
                entropy: Some(entropy),
                stamp: Some(stamp),
            }
        }
        MrcHeaders::Acknowledge { syndrome, .. } => SightingKind::Acknowledge { syndrome },
        MrcHeaders::Probe { number, .. } => SightingKind::Probe { number },
        MrcHeaders::Request { .. } | MrcHeaders::Response => SightingKind::Other,
    };
    let is_ipv6 = roce.carrier == Carrier::RoceV2Ipv6;
    Sighting {
        time: packet.time,
        tap: packet.tap,
        hop_limit: roce.hop_limit,
        udp_port: headers.udp_port,
        carried: CarriedEntropy {
            port: roce.udp_source_port,
            label: is_ipv6.then_some(headers.flow_label),
        },
        outer: headers.outer,
        subject: Subject::Flow(FlowKey::from_packet(roce)),
        psn,
        payload_bytes: headers.payload_bytes,
        is_trimmed: headers.is_trimmed,
        is_again: mrc::is_again(&roce.bth),
        hash: packet.extended ^ roce.bth.psn().value(),
        what,
    }
}

/// The queue pair that an answer to `qpn` names besides it, by its low 16 bits.
fn other_id([first, second]: [u16; 2], qpn: u32) -> u16 {
    if u32::from(first) == qpn & 0xffff {
        second
    } else {
        first
    }
}

#[cfg(test)]
mod tests;
