//! Traffic sources: which messages queue pairs are given, and when.

use crate::engine::events::{EndpointId, Event};
use crate::engine::rng::Stream;
use crate::engine::run::Simulation;
use crate::scenario::{FlowTable, Operation, ServiceName};
use crate::units::{Rate, Time};

/// No source: messages of training jobs.
pub(crate) const NO_SOURCE: u32 = u32::MAX;

/// Source of a queue pair's messages.
#[derive(Debug)]
pub(crate) struct MessageSource {
    pub end: EndpointId,
    operation: Operation,
    sizes: Vec<u64>,
    turn: usize,
    outstanding: u32,
    interval: Option<Time>,
    poisson: bool,
    burst: u32,
    left: u64,
    stop: Time,
    stream: Stream,
    pace: Option<Rate>,
    /// The application posts for `on`, then rests for `off`.
    on: Option<Time>,
    off: Time,
    /// Time of the first request for a message.
    origin: Option<Time>,
    /// Messages that are not done.
    in_flight: u32,
    /// It has produced a message and waits for the end of an earlier one.
    blocked: bool,
}

impl MessageSource {
    /// The source of a flow table for one queue pair.
    pub(crate) fn new(table: &FlowTable, end: EndpointId, mtu: u32, stop: Time, stream: Stream) -> Self {
        let most = if table.service == ServiceName::Ud {
            u64::from(mtu)
        } else {
            u64::from(u32::MAX)
        };
        let sizes = std::iter::once(&table.message)
            .chain(&table.messages_of)
            .map(|size| size.0.min(most));
        Self {
            end,
            operation: table.op,
            sizes: sizes.collect(),
            turn: 0,
            outstanding: table.outstanding,
            interval: table.interval,
            poisson: table.poisson,
            burst: table.burst,
            left: table.count.unwrap_or(u64::MAX),
            stop,
            stream,
            pace: table.pace,
            on: table.on,
            off: table.off.unwrap_or(Time::ZERO),
            origin: None,
            in_flight: 0,
            blocked: false,
        }
    }

    /// The length of the next message, if there is one.
    fn next(&mut self, now: Time) -> Option<u64> {
        if self.left == 0 || now >= self.stop {
            return None;
        }
        self.left -= 1;
        let size = self.sizes.get(self.turn % self.sizes.len().max(1)).copied();
        self.turn += 1;
        size
    }

    /// The begin of the next time in which the application posts, and whether it rests until then.
    fn next_phase(&mut self, now: Time) -> Option<(Time, bool)> {
        let on = self.on?;
        let origin = *self.origin.get_or_insert(now);
        let period = on.plus(self.off).0.max(1);
        let phase = Time(now.since(origin).0 % period);
        Some((now.plus(Time(period).since(phase)), phase >= on))
    }

    /// The time to the next messages of an open loop.
    fn wait(&mut self) -> Option<Time> {
        let interval = self.interval?;
        Some(if self.poisson {
            Time::from_seconds(interval.seconds() * self.stream.exponential())
        } else {
            interval
        })
    }
}

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
            (Some(wait), ..) => Some(now.plus(wait.max(Time(1)))),
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
    fn produced(&self, number: u32, bytes: u64) -> Time {
        let pace = self.sources.get(number as usize).and_then(|source| source.pace);
        pace.map_or(Time::NEVER, |pace| self.now.plus(pace.time_of(bytes.max(1))))
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
            .at(self.now.plus(every.max(Time(1))), Event::Refill { end });
    }
}
