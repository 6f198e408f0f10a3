//! Pairings that are known before their flows, or longer than them: what the connection manager's messages say, and the
//! pairings of flows that were closed early. Bounded: the oldest is forgotten.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use roce_model::{FlowKey, TapId};
use roce_wire::{Address, Psn, Qpn};

use crate::pairing::evidence::Pairing;

/// Exchanges, and promises, kept at once.
const MAX_KNOWN: usize = 1 << 16;

/// A map that forgets the oldest.
#[derive(Clone, Debug)]
pub(crate) struct Latest<K, V> {
    map: HashMap<K, V, foldhash::fast::RandomState>,
    /// Keys in the order in which they came; some are gone from the map.
    order: VecDeque<K>,
    most: usize,
}

impl<K: Copy + Eq + Hash, V> Latest<K, V> {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            map: HashMap::default(),
            order: VecDeque::new(),
            most,
        }
    }

    /// What is known of `key`.
    pub(crate) fn of(&self, key: &K) -> Option<V>
    where
        V: Copy,
    {
        self.map.get(key).copied()
    }

    /// Adds it unless it is known.
    pub(crate) fn or_insert(&mut self, key: K, value: V) {
        if !self.map.contains_key(&key) {
            self.insert(key, value);
        }
    }

    /// The same, where it is.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    /// Adds it, in place of what was known.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.map.insert(key, value).is_some() {
            return;
        }
        self.order.push_back(key);
        while self.order.len() > self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.map.remove(&oldest);
            }
        }
    }
}

/// One connection as its two ends name it: where the REQ was seen, who sent it to whom, and the id that its sender gave.
pub(crate) type ExchangeKey = (TapId, Address, Address, u32);

/// A queue pair, and the PSN with which the requests to it begin.
pub(crate) type End = (Qpn, Option<Psn>);

#[derive(Clone, Copy, Debug)]
struct Exchange {
    requester: End,
    responder: Option<End>,
}

/// What a REQ or REP is to what was seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Sent again.
    Repeated,
    /// The first of its kind; of a REP, with the queue pair that the REQ named.
    New(Option<Qpn>),
}

/// The connection manager's exchanges (IBTA 12.6): REQ and REP of one connection name the two queue pairs.
#[derive(Debug)]
pub(crate) struct Exchanges(Latest<ExchangeKey, Exchange>);

impl Default for Exchanges {
    fn default() -> Self {
        Self(Latest::new(MAX_KNOWN))
    }
}

impl Exchanges {
    /// A REQ.
    pub(crate) fn request(&mut self, key: ExchangeKey, end: End) -> Step {
        let known = self.0.map.get(&key).map(|exchange| exchange.requester);
        if known == Some(end) {
            return Step::Repeated;
        }
        let exchange = Exchange {
            requester: end,
            responder: None,
        };
        self.0.insert(key, exchange);
        Step::New(None)
    }

    /// A REP to the REQ of `key`.
    pub(crate) fn reply(&mut self, key: &ExchangeKey, end: End) -> Step {
        let Some(exchange) = self.0.map.get_mut(key) else {
            return Step::New(None);
        };
        if exchange.responder.replace(end) == Some(end) {
            return Step::Repeated;
        }
        Step::New(Some(exchange.requester.0))
    }

    /// The connection is over, or did not come about: its two queue pairs, the REQ's first, as far as they are known.
    pub(crate) fn end(&mut self, key: &ExchangeKey) -> Option<(Qpn, Option<Qpn>)> {
        let exchange = self.0.map.remove(key)?;
        Some((exchange.requester.0, exchange.responder.map(|(qpn, _)| qpn)))
    }
}

/// A flow of a connected service, whichever it is.
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

/// The other direction of a flow: for which queue pair its packets are, and how that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KnownPeer {
    pub(crate) qpn: Qpn,
    pub(crate) how: Pairing,
    pub(crate) matches: Option<u64>,
}

/// Pairings of flows that there are not, or not always.
#[derive(Debug)]
pub(crate) struct KnownPeers(Latest<Direction, KnownPeer>);

impl Default for KnownPeers {
    fn default() -> Self {
        Self(Latest::new(MAX_KNOWN))
    }
}

impl KnownPeers {
    /// Remembers the other direction of a flow.
    pub(crate) fn remember(&mut self, of: Direction, known: KnownPeer) {
        self.0.insert(of, known);
    }

    /// What is remembered of a flow.
    pub(crate) fn get(&self, direction: &Direction) -> Option<KnownPeer> {
        self.0.map.get(direction).copied()
    }

    /// It no longer holds.
    pub(crate) fn forget(&mut self, of: &Direction) {
        self.0.map.remove(of);
    }

    /// Whether there are none: then no flow need be looked up.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.map.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: u32) -> ExchangeKey {
        let host = |last| Address::v4([10, 0, 0, last]);
        (TapId(0), host(1), host(2), id)
    }

    fn end(qpn: u32) -> End {
        (Qpn::new(qpn), Some(Psn::new(7)))
    }

    #[test]
    fn an_exchange_names_both_queue_pairs() {
        let mut exchanges = Exchanges::default();
        assert_eq!(exchanges.request(key(5), end(0x11)), Step::New(None));
        assert_eq!(exchanges.request(key(5), end(0x11)), Step::Repeated);
        assert_eq!(
            exchanges.reply(&key(5), end(0x12)),
            Step::New(Some(Qpn::new(0x11)))
        );
        assert_eq!(exchanges.reply(&key(5), end(0x12)), Step::Repeated);
        assert_eq!(
            exchanges.reply(&key(6), end(0x12)),
            Step::New(None),
            "without its REQ"
        );
        let both = (Qpn::new(0x11), Some(Qpn::new(0x12)));
        assert_eq!(exchanges.end(&key(5)), Some(both));
        assert_eq!(exchanges.end(&key(5)), None);
        // The id is used again, for another queue pair.
        exchanges.request(key(5), end(0x13));
        assert_eq!(exchanges.request(key(5), end(0x14)), Step::New(None));
        assert_eq!(exchanges.end(&key(5)), Some((Qpn::new(0x14), None)));
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut latest = Latest::new(3);
        for key in 0..4 {
            latest.insert(key, ());
        }
        let mut left: Vec<_> = latest.map.keys().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [1, 2, 3]);
        latest.map.remove(&2);
        for key in 10..100 {
            latest.insert(key, ());
        }
        assert!(latest.map.len() <= 3 && latest.order.len() <= 3);
    }
}
