//! How programs answer each other's SENDs: a request in a SEND, and the message of the other side that answers it. The adapter's
//! acknowledgement is none.

use roce_model::{ProgramExchange, Time};
use roce_wire::Qpn;

use crate::timing::distribution::Distribution;

/// SENDs of one direction of a connection. The side whose SEND comes first asks, and the other answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendAnswers {
    /// The first SEND; `None`: this side only answers.
    pub(crate) first: Option<Time>,
    /// This side asks.
    pub(crate) asks: bool,
    /// The queue pair of this side, once the other direction is known.
    pub(crate) own_qpn: Option<Qpn>,
    pub(crate) sends: u64,
    pub(crate) answered: u64,
    /// SENDs that wait for an answer, and the most that did.
    pub(crate) pending: u32,
    pub(crate) most_pending: u32,
    /// When the oldest of them was sent, as far as answers come in their order.
    pub(crate) oldest: Time,
    latest: Time,
    /// Times from a SEND to its answer, of those that waited alone.
    pub(crate) times: Distribution,
    /// When the connection was closed in order.
    pub(crate) closed: Option<Time>,
}

impl SendAnswers {
    /// This side sent a request.
    pub(crate) fn ask(&mut self, time: Time) {
        self.sends += 1;
        if self.pending == 0 {
            self.oldest = time;
        }
        self.latest = time;
        self.pending = self.pending.saturating_add(1);
        self.most_pending = self.most_pending.max(self.pending);
    }

    /// A message of the other side.
    pub(crate) fn answer(&mut self, time: Time) {
        if self.pending == 0 {
            return;
        }
        if self.pending == 1 {
            self.times.add(time.since(self.oldest).0);
            self.answered += 1;
        }
        self.pending -= 1;
        self.oldest = self.latest;
    }

    /// The first SENDs of both sides were captured before it was known that they belong together: the later side answers, and what
    /// waits is not known.
    pub(crate) fn settle(&mut self, other: &mut Self) {
        let is_first = (self.first, self.own_qpn) <= (other.first, other.own_qpn);
        (self.asks, other.asks) = (is_first, !is_first);
        (self.pending, other.pending) = (0, 0);
    }
}

/// The one order of exchanges.
pub(crate) fn sort(all: &mut [ProgramExchange]) {
    all.sort_by_key(|exchange| (exchange.tap, exchange.flow_id, exchange.until));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_until_they_are_answered() {
        let mut sends = SendAnswers::default();
        sends.ask(Time(100));
        sends.answer(Time(206));
        // A second message of the same answer is none.
        sends.answer(Time(207));
        assert_eq!((sends.pending, sends.answered), (0, 1));
        assert_eq!(sends.times.summary().max(), Some(106));
        sends.ask(Time(1_000));
        assert_eq!(
            (sends.pending, sends.oldest, sends.most_pending),
            (1, Time(1_000), 1)
        );
    }

    #[test]
    fn the_side_that_sends_first_asks() {
        let side = |first| SendAnswers {
            first: Some(Time(first)),
            asks: true,
            pending: 1,
            ..SendAnswers::default()
        };
        let (mut late, mut early) = (side(20), side(10));
        late.settle(&mut early);
        assert!(early.asks && !late.asks);
        assert_eq!((early.pending, late.pending), (0, 0));
    }
}
