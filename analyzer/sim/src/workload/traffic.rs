//! Traffic sources: which messages queue pairs are given, and when.

mod steps;

use crate::engine::events::EndpointId;
use crate::engine::rng::Stream;
use crate::scenario::{FlowTable, Operation, ServiceName};
use crate::units::{Picos, Rate};

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
    interval: Option<Picos>,
    poisson: bool,
    burst: u32,
    left: u64,
    stop: Picos,
    stream: Stream,
    pace: Option<Rate>,
    /// The application posts for `on`, then rests for `off`.
    on: Option<Picos>,
    off: Picos,
    /// Time of the first request for a message.
    origin: Option<Picos>,
    /// Messages that are not done.
    in_flight: u32,
    /// It has produced a message and waits for the end of an earlier one.
    blocked: bool,
}

impl MessageSource {
    /// The source of a flow table for one queue pair.
    pub(crate) fn new(table: &FlowTable, end: EndpointId, mtu: u32, stop: Picos, stream: Stream) -> Self {
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
            off: table.off.unwrap_or(Picos::ZERO),
            origin: None,
            in_flight: 0,
            blocked: false,
        }
    }

    /// True if as many messages are open as its application keeps outstanding at once.
    pub(crate) fn is_full(&self) -> bool {
        self.interval.is_none() && self.in_flight >= self.outstanding
    }

    /// The length of the next message, if there is one.
    fn next(&mut self, now: Picos) -> Option<u64> {
        if self.left == 0 || now >= self.stop {
            return None;
        }
        self.left -= 1;
        let size = self.sizes.get(self.turn % self.sizes.len().max(1)).copied();
        self.turn += 1;
        size
    }

    /// The begin of the next time in which the application posts, and whether it rests until then.
    fn next_phase(&mut self, now: Picos) -> Option<(Picos, bool)> {
        let on = self.on?;
        let origin = *self.origin.get_or_insert(now);
        let period = on.plus(self.off).0.max(1);
        let phase = Picos(now.since(origin).0 % period);
        Some((now.plus(Picos(period).since(phase)), phase >= on))
    }

    /// The time to the next messages of an open loop.
    fn wait(&mut self) -> Option<Picos> {
        let interval = self.interval?;
        Some(if self.poisson {
            Picos::from_seconds(interval.seconds() * self.stream.exponential())
        } else {
            interval
        })
    }
}
