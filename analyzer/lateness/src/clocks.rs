//! Clocks of taps, against one another. A packet that went from one host to another and one that came back bound the
//! difference of their clocks from both sides, as in NTP (RFC 5905, section 8): half of the shortest round trip is
//! the error, whatever the clocks say.

use std::collections::BTreeMap;

use roce_model::{CreditedConnection, Passage};
use roce_wire::Address;

/// Differences of the clocks of hosts.
#[derive(Debug, Default)]
pub(crate) struct HostClocks {
    /// Nanoseconds by which a host's clock is ahead of the common one.
    offsets: BTreeMap<Address, i64>,
    /// Error of times between two hosts, at most, in nanoseconds.
    errors: BTreeMap<(Address, Address), i64>,
}

/// Shortest time from one host to another, each by its own clock, in nanoseconds.
type ShortestWays = BTreeMap<(Address, Address), i64>;

fn include(ways: &mut ShortestWays, hosts: (Address, Address), passage: Passage) {
    if let (Some(departure), Some(arrival)) = (passage.departure, passage.arrival) {
        let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX / 2);
        let way = signed(arrival.0) - signed(departure.0);
        let shortest = ways.entry(hosts).or_insert(way);
        *shortest = way.min(*shortest);
    }
}

fn shortest_ways(connections: &[CreditedConnection]) -> ShortestWays {
    let mut ways = ShortestWays::new();
    for connection in connections {
        let there = (connection.sender, connection.receiver);
        let back = (connection.receiver, connection.sender);
        for message in &connection.messages {
            include(&mut ways, there, message.first);
            include(&mut ways, there, message.last);
            include(&mut ways, back, message.credit);
            include(&mut ways, back, message.acknowledgement);
        }
    }
    ways
}

impl HostClocks {
    /// Compares the clocks of all hosts. `known` is the uncertainty of a host's clock in nanoseconds, where something
    /// else shows it: clocks that are surer than the packets, or
    /// that put all packets into a possible order, are taken as they are.
    pub(crate) fn new(connections: &[CreditedConnection], known: impl Fn(Address) -> Option<u64>) -> Self {
        let ways = shortest_ways(connections);
        let mut pairs: Vec<(i64, i64, Address, Address)> = ways
            .iter()
            .filter(|((from, to), _)| from < to)
            .filter_map(|(&(from, to), &there)| {
                let back = *ways.get(&(to, from))?;
                let error = (there.saturating_add(back) / 2).max(0);
                let ahead = there.saturating_sub(back) / 2;
                let told = known(from)
                    .zip(known(to))
                    .map(|(from, to)| i64::try_from(from.saturating_add(to)).unwrap_or(i64::MAX));
                let is_ordered = there >= 0 && back >= 0;
                Some(match told {
                    Some(told) if told <= error => (told, 0, from, to),
                    _ if is_ordered => (error, 0, from, to),
                    _ => (error, ahead, from, to),
                })
            })
            .collect();
        pairs.sort_unstable();
        let errors = pairs
            .iter()
            .flat_map(|&(error, _, from, to)| [((from, to), error), ((to, from), error)])
            .collect();
        Self {
            offsets: joined(&pairs),
            errors,
        }
    }

    /// Nanoseconds by which the host's clock is ahead of the common one.
    pub(crate) fn offset(&self, host: Address) -> i64 {
        self.offsets.get(&host).copied().unwrap_or(0)
    }

    /// Error of a time between two hosts, at most, in nanoseconds.
    pub(crate) fn uncertainty(&self, from: Address, to: Address) -> i64 {
        self.errors.get(&(from, to)).copied().unwrap_or(0)
    }
}

/// Offsets of all hosts, over the surest differences between them first: Kruskal's minimum spanning tree.
fn joined(pairs: &[(i64, i64, Address, Address)]) -> BTreeMap<Address, i64> {
    let mut trees: Vec<Vec<Address>> = Vec::new();
    let mut place: BTreeMap<Address, (usize, i64)> = BTreeMap::new();
    for &(_, ahead, from, to) in pairs {
        for host in [from, to] {
            place.entry(host).or_insert_with(|| {
                trees.push(vec![host]);
                (trees.len() - 1, 0)
            });
        }
        let ((one, base), (other, offset)) = (place[&from], place[&to]);
        if one == other {
            continue;
        }
        // The smaller tree moves, so that each host moves at most log n times.
        let shift = base + ahead - offset;
        let (stays, moves, shift) = if trees[one].len() >= trees[other].len() {
            (one, other, shift)
        } else {
            (other, one, -shift)
        };
        for host in std::mem::take(&mut trees[moves]) {
            let (_, offset) = place[&host];
            place.insert(host, (stays, offset + shift));
            trees[stays].push(host);
        }
    }
    place
        .into_iter()
        .map(|(host, (_, offset))| (host, offset))
        .collect()
}
