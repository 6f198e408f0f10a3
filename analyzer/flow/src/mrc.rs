//! Connections of MRC: what was sent on which path, what arrived, and why it was sent again. This folder knows no table of flows; it gets
//! each packet once, whatever its tap, and gives rows at the end.

mod causes;
mod close;
mod connection;
mod messages;
mod paths;
mod ports;
mod seen;
mod sent;

use std::collections::{HashMap, HashSet};

use roce_model::{
    EventRow, MrcConnectionRow, MrcHeaders, MrcPacket, MrcPathRow, MrcReports, MrcWrite, Packet, TapId,
};
use roce_wire::{Address, Qpn};

use connection::{Connection, Sighting};
use ports::Ports;
pub(crate) use seen::SeenMrc;

/// Connections that are followed, at most. Packets of further ones count in their flows alone.
const MAX_CONNECTIONS: usize = 1 << 14;
/// Packets that all connections of a shard remember together, at most: some 350 MB. Beyond it none remembers more than it does.
const MAX_REMEMBERED: usize = 1 << 22;
/// Paths of all connections of a shard together, at most: some 100 MB. Packets on further ones count for their connection alone.
const MAX_ALL_PATHS: usize = 1 << 18;
/// Queue pairs that are known to speak MRC, at most. Further ones are those of a vendor.
const MAX_QUEUE_PAIRS: usize = 1 << 18;
/// First WRITEs of queue pairs that are compared with later ones, at most.
const MAX_CANDIDATES: usize = 1 << 16;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The way to one queue pair: source, destination, queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Direction {
    pub(crate) source: Address,
    pub(crate) destination: Address,
    pub(crate) qpn: u32,
}

impl Direction {
    fn from_packet(packet: &Packet) -> Self {
        Self {
            source: packet.roce.source,
            destination: packet.roce.destination,
            qpn: packet.roce.bth.destination_qpn().value(),
        }
    }

    /// Its queue pair by the low 16 bits, as ids in answers name it.
    const fn by_low_bits(self) -> Self {
        Self {
            qpn: self.qpn & 0xffff,
            ..self
        }
    }

    /// The way back, to a queue pair.
    fn back(self, qpn: u32) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            qpn,
        }
    }
}

/// Rows of the connections of a shard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MrcConclusion {
    /// The connections.
    pub connections: Vec<MrcConnectionRow>,
    /// Their paths.
    pub paths: Vec<MrcPathRow>,
    /// Reports that are in no table.
    pub reports: MrcReports,
}

impl MrcConclusion {
    /// Adds those of another shard.
    pub(crate) fn add(&mut self, other: &Self) {
        let before = u32::try_from(self.connections.len()).unwrap_or(u32::MAX);
        self.connections
            .extend(other.connections.iter().map(|row| MrcConnectionRow {
                connection: row.connection + before,
                ..row.clone()
            }));
        self.paths.extend(other.paths.iter().map(|row| MrcPathRow {
            connection: row.connection + before,
            ..row.clone()
        }));
        self.reports.ports.extend_from_slice(&other.reports.ports);
        self.reports.taps.extend_from_slice(&other.reports.taps);
    }
}

/// A WRITE by which later ones of its message are compared.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    write: MrcWrite,
    payload: u32,
}

/// All connections of a run.
#[derive(Debug, Default)]
pub(crate) struct Mrc {
    connections: Vec<Connection>,
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
    /// Room for packets of all connections.
    room: usize,
    /// Paths of all connections.
    paths: usize,
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
        let (at, opposite) = match headers.headers {
            MrcHeaders::Write(_) | MrcHeaders::Probe { .. } => (self.of_data(to), None),
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
        let Some(connection) = at.and_then(|at| self.connections.get_mut(at)) else {
            return SeenMrc::default();
        };
        if let Some(ids) = opposite {
            connection.named(to.qpn, ids);
        }
        let (room, paths) = (connection.sent.room(), connection.paths.list.len());
        connection.paths.limit(self.paths >= MAX_ALL_PATHS);
        connection.sent.allow_growth(self.room + room <= MAX_REMEMBERED);
        let seen = connection.observe(&Sighting::new(packet, headers), events);
        self.room += connection.sent.room() - room;
        self.paths += connection.paths.list.len() - paths;
        seen
    }

    /// The connection of data and probes to a queue pair; a new one if there is none.
    fn of_data(&mut self, to: Direction) -> Option<usize> {
        if let Some(at) = self.by_data.get(&to) {
            return Some(*at);
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
        let at = self.connections.len();
        if at >= MAX_CONNECTIONS {
            return None;
        }
        let connection = Connection::new(data.source, data.destination);
        self.room += connection.sent.room();
        self.connections.push(connection);
        self.by_low_bits.insert(low, at);
        Some(at)
    }

    /// The rows at the end.
    pub(crate) fn conclude(self) -> MrcConclusion {
        let mut conclusion = MrcConclusion::default();
        for connection in self.connections {
            let number = u32::try_from(conclusion.connections.len()).unwrap_or(u32::MAX);
            let taps: Vec<TapId> = connection.data_taps().to_vec();
            let (row, paths) = connection.close(number);
            conclusion.connections.push(row);
            conclusion.paths.extend(paths);
            conclusion.reports.taps.push(taps);
        }
        conclusion.reports.ports = self.ports.lost;
        conclusion
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
