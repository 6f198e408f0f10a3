//! Messages of a connection: from the first packet to the SACK after which all of it has arrived.

use std::collections::VecDeque;

use roce_model::Time;

use crate::timing::distribution::Distribution;

/// Messages that are open at once, at most. The oldest is given up.
const MAX_OPEN: usize = 1024;
/// Messages before the latest one that a packet may be of.
const RECENT: usize = 8;

/// Ends of a message that a packet is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageEnds {
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// One message that is not complete.
#[derive(Clone, Copy, Debug)]
struct OpenMessage {
    number: u16,
    /// Positions of its captured packets.
    first: u64,
    last: u64,
    has_first: bool,
    has_last: bool,
    begun: Time,
    arrived: u64,
}

impl OpenMessage {
    const fn is_whole(&self) -> bool {
        self.has_first && self.has_last
    }
}

/// Messages of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    /// In the order of positions.
    open: VecDeque<OpenMessage>,
    pub(super) seen: u64,
    pub(super) complete: u64,
    pub(super) times: Distribution,
}

impl Messages {
    /// A packet of a message at a position, sent for the first time.
    pub(super) fn sent(&mut self, number: u16, ends: MessageEnds, position: u64, time: Time) {
        let MessageEnds { is_first, is_last } = ends;
        let mut recent = self.open.iter_mut().rev().take(RECENT);
        if let Some(open) = recent.find(|open| open.number == number) {
            open.first = open.first.min(position);
            open.last = open.last.max(position);
            open.has_first |= is_first;
            open.has_last |= is_last;
            open.begun = open.begun.min(time);
            return;
        }
        self.seen += 1;
        if self.open.len() >= MAX_OPEN {
            self.open.pop_front();
        }
        let at = self.open.partition_point(|open| open.first < position);
        self.open.insert(
            at,
            OpenMessage {
                number,
                first: position,
                last: position,
                has_first: is_first,
                has_last: is_last,
                begun: time,
                arrived: 0,
            },
        );
    }

    /// A captured packet arrived for the first time.
    pub(super) fn arrived(&mut self, position: u64, now: Time) {
        let at = self.open.partition_point(|open| open.last < position);
        let Some(open) = self.open.get_mut(at).filter(|open| open.first <= position) else {
            return;
        };
        open.arrived += 1;
        if open.is_whole() && open.arrived > open.last - open.first {
            let begun = open.begun;
            self.open.remove(at);
            self.end(begun, now);
        }
    }

    /// All packets up to a position arrived. A message whose ends were not captured is complete when a later one has begun.
    pub(super) fn all_until(&mut self, position: u64, now: Time) {
        while let Some(open) = self.open.front().copied()
            && open.last <= position
            && (open.is_whole() || self.open.get(1).is_some_and(|next| next.first <= position))
        {
            self.open.pop_front();
            self.end(open.begun, now);
        }
    }

    fn end(&mut self, begun: Time, now: Time) {
        self.complete += 1;
        self.times.add(now.since(begun).0);
    }
}
