//! The heap of events: what happens next, in the order of (time, sequence), so that a run is the same each time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::units::Picos;

/// A port, by its place among all ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PortId(pub u32);

/// One end of a connection, by its place among all; also the flow that it sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct EndpointId(pub u32);

/// A packet, by its place in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PacketId(pub u32);

impl PortId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl EndpointId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The other end: ends are made in pairs.
    pub(crate) fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// The connection that it is an end of.
    pub(crate) fn connection(self) -> usize {
        (self.0 >> 1) as usize
    }
}

impl PacketId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something that happens in a job with NCCL's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JobEvent {
    /// A rank's host gives the operation of the next step to the proxy threads.
    Enqueued { rank: u32 },
    /// A rank's kernel starts.
    KernelStarts { rank: u32 },
    /// A worker of the GPU has finished its operation.
    OpDone { worker: u32 },
    /// The receiver's proxy posts the next credit.
    Credit { lane: u32 },
    /// The sender's proxy has a credit and a full buffer.
    Send { lane: u32 },
    /// The GPU of the receiver knows of the next message.
    Received { lane: u32 },
    /// The sender's proxy knows that the next message is acknowledged.
    SendDone { lane: u32 },
}

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The last bit of a packet came in at a port.
    Arrive { port: PortId, packet: PacketId },
    /// A packet comes out of one of several paths, into the switch that it went in by.
    OutOfPath {
        switch: u32,
        ingress: PortId,
        packet: PacketId,
    },
    /// A packet comes out of one of several paths of a cable between two hosts.
    Merge { port: PortId, packet: PacketId },
    /// The last bit of a packet left a port.
    Sent { port: PortId },
    /// A pause of a port may be over.
    PauseOver { port: PortId, class: u8 },
    /// A port that keeps its neighbour paused says so again.
    PauseRefresh { port: PortId, class: u8 },
    /// A flow of a host may continue.
    Pace { host: u32 },
    /// The retransmission timer of a queue pair.
    Timeout { end: EndpointId },
    /// A PSN that is missing at an end may count as lost now.
    Gap { end: EndpointId },
    /// The wait of a queue pair after an RNR NAK is over.
    RnrOver { end: EndpointId, wait: u32 },
    /// An ACK has been held back long enough.
    AckDelay { end: EndpointId },
    /// A receive buffer is posted.
    Refill { end: EndpointId },
    /// A traffic source posts messages.
    Post { source: u32 },
    /// A connection begins.
    Open { connection: u32 },
    /// A connection is destroyed; the next one takes its queue pair numbers.
    Replace { connection: u32 },
    /// The connection manager has waited long enough for an answer.
    ManagerRetry { connection: u32, sent: u32 },
    /// A host begins a pause of its own accord.
    StormBegin { storm: u32 },
    /// It ends it.
    StormEnd { storm: u32 },
    /// A slow host's buffer may be down to its threshold.
    Drained { host: u32 },
    /// All ranks of a job begin their first step.
    Train { job: u32 },
    /// All counters are read.
    Read,
    /// Something happens in a job with NCCL's messages.
    Collective { job: u32, event: JobEvent },
    /// A rank has finished computing.
    Computed { job: u32, rank: u32 },
}

struct Entry<E> {
    time: Picos,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    /// Turned around: the earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

/// All events to come.
pub(crate) struct Events<E> {
    heap: BinaryHeap<Entry<E>>,
    sequence: u64,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl<E> Events<E> {
    pub(crate) fn at(&mut self, time: Picos, event: E) {
        self.sequence += 1;
        self.heap.push(Entry {
            time,
            sequence: self.sequence,
            event,
        });
    }

    /// The next event that is not later than `end`.
    pub(crate) fn next(&mut self, end: Picos) -> Option<(Picos, E)> {
        if self.heap.peek()?.time > end {
            return None;
        }
        self.heap.pop().map(|entry| (entry.time, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_as_they_were_made() {
        let mut events = Events::default();
        let pace = |host| Event::Pace { host };
        events.at(Picos(5), pace(1));
        events.at(Picos(3), pace(2));
        events.at(Picos(5), pace(3));
        events.at(Picos(9), pace(4));
        let mut order = Vec::new();
        while let Some((time, Event::Pace { host })) = events.next(Picos(8)) {
            order.push((time.0, host));
        }
        assert_eq!(order, [(3, 2), (5, 1), (5, 3)]);
    }
}
