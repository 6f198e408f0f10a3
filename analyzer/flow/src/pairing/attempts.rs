//! Attempts of the connection manager to make a connection: how often they were repeated, and how they were answered. Bounded: the oldest
//! is forgotten.

use roce_model::{AttemptResult, ConnectionAttempt, Management, Packet, Span, Time};

use crate::pairing::bounded_map::{BoundedMap, bounded_map};
use crate::pairing::cm_exchanges::ExchangeKey;

/// Attempts by the id of who asks.
#[derive(Debug)]
pub(crate) struct Attempts {
    open: BoundedMap<ExchangeKey, ConnectionAttempt>,
    /// Attempts whose id was used again.
    done: Vec<ConnectionAttempt>,
}

/// A REQ that comes again sooner is a copy of a mirror: a requester repeats one after the way there and back, and the time in which the other
/// program answers.
const MIN_REPEAT: Span = Span(1_000_000);

/// Attempts whose ids were used again that are kept.
const MAX_DONE: usize = 1 << 14;

impl Default for Attempts {
    fn default() -> Self {
        Self {
            open: bounded_map(),
            done: Vec::new(),
        }
    }
}

impl Attempts {
    /// A REQ, of which `key` is the name.
    pub(crate) fn request(&mut self, key: ExchangeKey, packet: &Packet, message: &Management) {
        let qpn = message.local_qpn.unwrap_or_default();
        let time = packet.time;
        if let Some(known) = self.open.peek_mut(&key) {
            if known.qpn == qpn {
                // A REQ that crosses its answer repeats nothing that anybody waits for, and a copy of a mirror nothing at all.
                let is_copy = time.since(known.last_time) < MIN_REPEAT;
                if known.result == AttemptResult::Unanswered && !is_copy {
                    known.requests = known.requests.saturating_add(1);
                    (known.last_time, known.end_time) = (time, time);
                }
                return;
            }
            if self.done.len() < MAX_DONE {
                self.done.push(*known);
            }
        }
        let attempt = ConnectionAttempt {
            tap: packet.tap,
            source: packet.roce.source,
            destination: packet.roce.destination,
            qpn,
            service: message.service,
            requests: 1,
            first_time: time,
            last_time: time,
            end_time: time,
            result: AttemptResult::Unanswered,
        };
        self.open.put(key, attempt);
    }

    /// The answer to the REQ of `key`: its first one counts.
    pub(crate) fn answer(&mut self, key: &ExchangeKey, time: Time, result: AttemptResult) {
        if let Some(known) = self.open.peek_mut(key)
            && known.result == AttemptResult::Unanswered
        {
            (known.result, known.end_time) = (result, time);
        }
    }

    /// All of them, in the order of time.
    pub(crate) fn list(&self) -> Vec<ConnectionAttempt> {
        let open = self.open.iter().map(|(_, attempt)| *attempt);
        let mut all: Vec<ConnectionAttempt> = self.done.iter().copied().chain(open).collect();
        sort(&mut all);
        all
    }
}

/// The one order of attempts.
pub(crate) fn sort(all: &mut [ConnectionAttempt]) {
    all.sort_by_key(|attempt| {
        (
            attempt.first_time,
            attempt.tap,
            attempt.source,
            attempt.destination,
            attempt.qpn,
        )
    });
}
