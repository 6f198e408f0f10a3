//! Traffic sources: which messages queue pairs are given, and when.

use crate::events::{EndpointId, Event};
use crate::rng::Stream;
use crate::run::Simulation;
use crate::scenario::{FlowTable, Operation, ServiceName};
use crate::units::Time;

/// No source: messages of training jobs.
pub(crate) const NO_SOURCE: u32 = u32::MAX;

/// What gives messages to one queue pair.
#[derive(Debug)]
pub(crate) struct Source {
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
}

impl Source {
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
        let Some(source) = self.sources.get_mut(number as usize) else {
            return;
        };
        let (end, wait) = (source.end, source.wait());
        let count = if wait.is_some() {
            source.burst
        } else {
            source.outstanding
        };
        if self.ends[end.index()].closed {
            return;
        }
        for _ in 0..count {
            self.post_one(number);
        }
        if let Some(wait) = wait {
            self.events
                .at(self.now.plus(wait.max(Time(1))), Event::Post { source: number });
        }
        self.kick(end);
    }

    fn post_one(&mut self, number: u32) {
        let now = self.now;
        let Some(source) = self.sources.get_mut(number as usize) else {
            return;
        };
        let (end, operation) = (source.end, source.operation);
        if let Some(bytes) = source.next(now) {
            self.give(end, operation, bytes, number);
        }
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
            let closed_loop = self
                .sources
                .get(source as usize)
                .is_some_and(|source| source.interval.is_none());
            if closed_loop {
                self.post_one(source);
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
