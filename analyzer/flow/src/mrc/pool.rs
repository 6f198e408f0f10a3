//! The connections of one transport, with what all of them may remember together.

use std::collections::HashMap;

use roce_model::{Address, EventKind, EventRow, MrcPathRow, MrcPathState, TapId, Time};

use super::conclusion::MrcConclusion;
use super::connection::Connection;
use super::seen::SeenMrc;
use super::sighting::{Sighting, Subject};

/// Connections that are followed, at most. Packets of further ones count in their flows alone.
const MAX_CONNECTIONS: usize = 1 << 14;
/// Packets that all connections of a shard remember together, at most: some 350 MB. Beyond it none remembers more than it does.
const MAX_REMEMBERED: usize = 1 << 22;
/// Paths of all connections of a shard together, at most: some 100 MB. Packets on further ones count for their connection alone.
const MAX_ALL_PATHS: usize = 1 << 18;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// All connections of a transport.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    list: Vec<Connection>,
    /// Room for packets of all connections.
    room: usize,
    /// Paths of all connections.
    paths: usize,
    /// When data was last sent from one host to another, and of each connection its place there.
    port_used: Vec<Option<Time>>,
    places: Vec<usize>,
    by_hosts: Map<[Address; 2], usize>,
}

impl Pool {
    /// A new connection, whose PSNs have this many bits; `None`: there is no room.
    pub(crate) fn open(&mut self, requestor: Address, responder: Address, psn_bits: u32) -> Option<usize> {
        let at = self.list.len();
        if at >= MAX_CONNECTIONS {
            return None;
        }
        let connection = Connection::new(requestor, responder, psn_bits);
        self.room += connection.sent.room();
        self.list.push(connection);
        let ways = self.port_used.len();
        let place = *self.by_hosts.entry([requestor, responder]).or_insert(ways);
        if place == ways {
            self.port_used.push(None);
        }
        self.places.push(place);
        Some(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Connection> {
        self.list.get_mut(at)
    }

    pub(super) fn get(&self, at: usize) -> Option<&Connection> {
        self.list.get(at)
    }

    /// Gives a packet to its connection.
    pub(crate) fn observe(&mut self, at: usize, seen: &Sighting, events: &mut Vec<EventRow>) -> SeenMrc {
        let Some(connection) = self.list.get_mut(at) else {
            return SeenMrc::default();
        };
        let (room, paths) = (connection.sent.room(), connection.paths.list.len());
        connection.paths.limit(self.paths >= MAX_ALL_PATHS);
        connection.sent.allow_growth(self.room + room <= MAX_REMEMBERED);
        let way = self.places[at];
        connection.port_used = self.port_used[way];
        let answer = connection.observe(seen, events);
        self.port_used[way] = connection.port_used;
        self.room += connection.sent.room() - room;
        self.paths += connection.paths.list.len() - paths;
        answer
    }

    /// The rows at the end, in the order in which connections were opened. Events are added for paths that their senders left.
    pub(crate) fn conclude(self, events: &mut Vec<EventRow>) -> MrcConclusion {
        let mut conclusion = MrcConclusion::default();
        for mut connection in self.list {
            connection.stop_all_waiting(events);
            let number = u32::try_from(conclusion.connections.len()).unwrap_or(u32::MAX);
            let taps: Vec<TapId> = connection.data_taps().to_vec();
            let subject = connection.subject;
            let path_taps: Vec<Option<TapId>> = connection.paths.list.iter().map(|path| path.tap).collect();
            let (row, paths): (_, Vec<MrcPathRow>) = connection.close(number);
            let left = paths.iter().zip(path_taps);
            events.extend(left.filter_map(|(path, tap)| left_path(path, subject?, tap?)));
            conclusion.connections.push(row);
            conclusion.paths.extend(paths);
            conclusion.reports.taps.push(taps);
        }
        conclusion
    }
}

/// The event of a path that its sender left after a loss.
fn left_path(path: &MrcPathRow, subject: Subject, tap: TapId) -> Option<EventRow> {
    let is_left = matches!(path.state, MrcPathState::Dead | MrcPathState::Retired);
    Some(EventRow {
        time: path.last_sent_time.filter(|_| is_left)?,
        kind: EventKind::MrcPath,
        tap,
        value: Some(path.path.into()),
        detail: Some(path.state.name().into()),
        ..subject.event()
    })
}
