//! Pairings that are known before their flows, or longer than them: what the connection manager's messages say, and the
//! pairings of flows that were closed early. Bounded: the oldest is forgotten.

use core::hash::Hash;
use core::num::NonZeroUsize;

use lru::LruCache;
use roce_model::{FlowKey, TapId};
use roce_wire::{Address, Psn, Qpn};

use crate::pairing::evidence::Pairing;

/// Maximum number of entries of one map: CM exchanges, known peers, connections that hosts reported.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("not zero");

/// A map that forgets the entry that was set longest ago. Lookups by `peek` do not make an entry newer.
pub(crate) type BoundedMap<K, V> = LruCache<K, V, foldhash::fast::RandomState>;

/// A map of [`MAX_KNOWN`] entries at most.
pub(crate) fn bounded_map<K: Eq + Hash, V>() -> BoundedMap<K, V> {
    LruCache::with_hasher(MAX_KNOWN, foldhash::fast::RandomState::default())
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

/// Relation of a REQ or REP to earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A retransmission.
    Repeated,
    /// The first of its kind; of a REP, with the queue pair that the REQ named.
    New(Option<Qpn>),
}

/// The connection manager's exchanges (IBTA 12.6): REQ and REP of one connection name the two queue pairs.
#[derive(Debug)]
pub(crate) struct Exchanges(BoundedMap<ExchangeKey, Exchange>);

impl Default for Exchanges {
    fn default() -> Self {
        Self(bounded_map())
    }
}

impl Exchanges {
    /// A REQ.
    pub(crate) fn request(&mut self, key: ExchangeKey, end: End) -> Step {
        let known = self.0.peek(&key).map(|exchange| exchange.requester);
        if known == Some(end) {
            return Step::Repeated;
        }
        let exchange = Exchange {
            requester: end,
            responder: None,
        };
        self.0.put(key, exchange);
        Step::New(None)
    }

    /// A REP to the REQ of `key`.
    pub(crate) fn reply(&mut self, key: &ExchangeKey, end: End) -> Step {
        let Some(exchange) = self.0.peek_mut(key) else {
            return Step::New(None);
        };
        if exchange.responder.replace(end) == Some(end) {
            return Step::Repeated;
        }
        Step::New(Some(exchange.requester.0))
    }

    /// The connection is over, or did not come about: its two queue pairs, the REQ's first, as far as they are known.
    pub(crate) fn end(&mut self, key: &ExchangeKey) -> Option<(Qpn, Option<Qpn>)> {
        let exchange = self.0.pop(key)?;
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
    fn the_oldest_exchange_is_forgotten() {
        let mut exchanges = Exchanges::default();
        let most = u32::try_from(MAX_KNOWN.get()).unwrap();
        exchanges.request(key(0), end(0x11));
        exchanges.request(key(1), end(0x12));
        // The first one ends and is made again: from now on the second one is the oldest.
        assert_eq!(exchanges.end(&key(0)), Some((Qpn::new(0x11), None)));
        exchanges.request(key(0), end(0x11));
        for id in 2..=most {
            exchanges.request(key(id), end(0x13));
        }
        assert_eq!(exchanges.end(&key(1)), None);
        assert_eq!(exchanges.end(&key(0)), Some((Qpn::new(0x11), None)));
        assert_eq!(exchanges.end(&key(2)), Some((Qpn::new(0x13), None)));
    }
}
