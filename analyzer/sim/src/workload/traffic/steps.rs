//! Steps of a run: messages of sources.

use crate::engine::events::{EndpointId, Event};
use crate::engine::run::Simulation;
use crate::scenario::Operation;
use crate::units::Picos;

impl Simulation<'_> {
    /// A source posts: the first messages of a closed loop, or the next of an open one.
    pub(crate) fn post(&mut self, number: u32) {
        let now = self.now;
        let Some(source) = self.sources.get_mut(number as usize) else {
            return;
        };
        let (end, phase) = (source.end, source.next_phase(now));
        if let Some((next, true)) = phase {
            self.events.at(next, Event::Post { source: number });
            return;
        }
        let wait = source.wait();
        let (paced, free) = (
            source.pace.is_some(),
            source.outstanding.saturating_sub(source.in_flight),
        );
        let count = match wait {
            Some(_) => source.burst,
            None if paced => 1,
            None => free,
        };
        if self.ends[end.index()].closed {
            return;
        }
        if paced && free == 0 {
            source.blocked = true;
            return;
        }
        let mut bytes = None;
        for _ in 0..count {
            bytes = self.post_one(number);
        }
        let next = match (wait, paced, phase) {
            (Some(wait), ..) => Some(now.plus(wait.max(Picos(1)))),
            (None, true, _) => bytes.map(|bytes| self.produced(number, bytes)),
            // The closed loop goes on by itself until the next rest.
            (None, false, Some((next, _))) => Some(next),
            (None, false, None) => None,
        };
        if let Some(next) = next {
            self.events.at(next, Event::Post { source: number });
        }
        self.kick(end);
    }

    /// Time at which a paced application has produced the message after one of `bytes`.
    fn produced(&self, number: u32, bytes: u64) -> Picos {
        let pace = self.sources.get(number as usize).and_then(|source| source.pace);
        pace.map_or(Picos::NEVER, |pace| self.now.plus(pace.time_of(bytes.max(1))))
    }

    /// Posts the next message of a source, if there is one. Returns its length.
    fn post_one(&mut self, number: u32) -> Option<u64> {
        let now = self.now;
        let source = self.sources.get_mut(number as usize)?;
        let (end, operation) = (source.end, source.operation);
        let bytes = source.next(now)?;
        source.in_flight += 1;
        self.give(end, operation, bytes, number);
        Some(bytes)
    }

    /// Gives a message to a queue pair.
    pub(crate) fn give(&mut self, end: EndpointId, operation: Operation, bytes: u64, source: u32) {
        let own = &mut self.ends[end.index()];
        own.requester.post(operation, bytes, source);
        own.busy_since.get_or_insert(self.now);
    }

    /// Messages of an end are done: a closed loop posts the next.
    pub(crate) fn messages_done(&mut self, end: EndpointId, sources: &[u32]) {
        for &source in sources {
            if let Some(flow) = self.log.flows.get_mut(end.index()) {
                flow.messages += 1;
            }
            let Some(state) = self.sources.get_mut(source as usize) else {
                continue;
            };
            state.in_flight = state.in_flight.saturating_sub(1);
            if core::mem::take(&mut state.blocked) {
                self.events.at(self.now, Event::Post { source });
            } else if state.interval.is_none() && state.pace.is_none() {
                let rests = state.next_phase(self.now).is_some_and(|(_, rests)| rests);
                if !rests {
                    self.post_one(source);
                }
            }
        }
        let own = &mut self.ends[end.index()];
        if !own.requester.is_busy() {
            own.busy_since = None;
        }
    }

    /// A receive buffer is posted.
    pub(crate) fn refill(&mut self, end: EndpointId) {
        let connection = end.connection();
        let Some(table) = self.table(connection) else {
            return;
        };
        let (Some(most), Some(every)) = (table.receives, table.refill) else {
            return;
        };
        let own = &mut self.ends[end.index()];
        own.responder.receives = own.responder.receives.map(|left| (left + 1).min(most));
        self.events
            .at(self.now.plus(every.max(Picos(1))), Event::Refill { end });
    }
}
