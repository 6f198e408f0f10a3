//! Exchanges of the connection manager, which name the two queue pairs of a connection. Bounded: the oldest is forgotten.

use roce_model::TapId;
use roce_wire::{Address, Psn, Qpn};

use crate::pairing::bounded_map::{BoundedMap, bounded_map};

/// Name of a connection at its two ends: the tap of the REQ, its sender and its receiver, and the id that the sender gave.
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

    /// Ends a connection, or a failed attempt: returns its known queue pairs, the REQ's first.
    pub(crate) fn end(&mut self, key: &ExchangeKey) -> Option<(Qpn, Option<Qpn>)> {
        let exchange = self.0.pop(key)?;
        Some((exchange.requester.0, exchange.responder.map(|(qpn, _)| qpn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::bounded_map::MAX_KNOWN;

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
