//! Collectives as NCCL runs them over verbs: GPUs that fill and use buffers, proxy threads that post credits and send data.
//!
//! The receiver's proxy writes a credit into a ring at the sender when a buffer is free; the sender's proxy writes data to the address in it once
//! its GPU has filled a buffer (`recvProxyProgress` and `sendProxyProgress` of NVIDIA/nccl, src/transport/net.cc). A GPU works through its
//! operations one by one: each may need a message that came and a free buffer at its own proxy.

mod connections;
pub(crate) mod layout;
pub(crate) mod program;
mod steps;

use std::collections::VecDeque;

use crate::engine::events::EndpointId;
use crate::engine::rng::Stream;
use crate::units::Picos;
use layout::LaneMemory;
use program::Op;

/// A rank.
#[derive(Debug)]
pub(crate) struct Rank {
    pub host: u32,
    /// Its workers, by their places.
    pub workers: Vec<u32>,
    pub step: u32,
    /// Its kernel runs.
    pub runs: bool,
    /// Workers that have not finished the step.
    pub working: usize,
    /// Its entry in the log.
    pub entry: usize,
    pub stream: Stream,
}

/// A group of a GPU's threads that works through operations in order.
#[derive(Debug)]
pub(crate) struct Worker {
    pub rank: u32,
    /// The operations of each step.
    pub ops: Vec<Op>,
    pub next: usize,
    pub busy: bool,
    pub stream: Stream,
}

/// Buffers of one sender in a lane: messages that it has filled, and that its receiver has used, since the connection began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub filled: u64,
    pub used: u64,
}

/// A connection from a host to a rank: data one way, credits the other. Counts are those of messages since the simulation began.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Ranks that send in it: one, or several of a host.
    pub senders: Vec<u32>,
    pub receiver: u32,
    pub channel: u32,
    pub memory: LaneMemory,
    /// Buffers at each side.
    pub buffers: u64,
    /// Bytes of each message of a step that one sender sends.
    pub lengths: Vec<u64>,
    pub parts: Vec<Part>,
    /// Queue pairs, by their ends at the sender.
    pub ends: Vec<EndpointId>,
    /// Messages for which the receiver's host has given operations to its proxy.
    pub allowed: u64,
    /// Credits planned and posted.
    pub credits_planned: u64,
    pub credited: u64,
    /// Credits that reached the sender.
    pub credits: u64,
    /// Messages planned to be sent, and sent.
    pub sends_planned: u64,
    pub sent: u64,
    /// Messages that the sender's proxy knows to be acknowledged.
    pub done: u64,
    /// Messages that the receiver's GPU knows of.
    pub received: u64,
    /// Writes that are left of each message that is sent: not acknowledged, and not come.
    pub unacknowledged: VecDeque<u32>,
    pub missing: VecDeque<u32>,
    /// The place of each message in the log.
    pub log: Vec<u32>,
    /// Times of the last planned events: they keep their order.
    pub last: LastTimes,
    pub sender_stream: Stream,
    pub receiver_stream: Stream,
}

/// Times of the last planned events of each kind in a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastTimes {
    pub credit: Picos,
    pub send: Picos,
    pub received: Picos,
    pub done: Picos,
}

impl Default for LastTimes {
    fn default() -> Self {
        Self {
            credit: Picos::ZERO,
            send: Picos::ZERO,
            received: Picos::ZERO,
            done: Picos::ZERO,
        }
    }
}

impl Lane {
    /// Messages that all senders have filled.
    pub(crate) fn filled(&self) -> u64 {
        self.parts.iter().map(|part| part.filled).min().unwrap_or(0)
    }

    /// Messages whose buffers the receiver has used.
    pub(crate) fn used(&self) -> u64 {
        self.parts.iter().map(|part| part.used).min().unwrap_or(0)
    }

    /// Bytes of a message, by one sender.
    pub(crate) fn length(&self, number: u64) -> u64 {
        let place = number % (self.lengths.len().max(1) as u64);
        let place = usize::try_from(place).unwrap_or(0);
        self.lengths.get(place).copied().unwrap_or(0)
    }

    /// The step of a message.
    pub(crate) fn step(&self, number: u64) -> u32 {
        u32::try_from(number / (self.lengths.len().max(1) as u64)).unwrap_or(u32::MAX)
    }
}

/// The purpose of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WriteKind {
    Credit,
    /// Data, or a part of it.
    Data,
    /// Immediate data alone, or with lengths.
    Notice,
}

/// A write that a proxy thread has posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedWrite {
    pub kind: WriteKind,
    pub job: u32,
    pub lane: u32,
    /// Number of the message in its lane.
    pub number: u64,
    pub address: u64,
    pub key: u32,
    pub immediate: Option<u32>,
}

/// A job.
#[derive(Debug)]
pub(crate) struct NcclJob {
    /// Its table in the scenario, which is also its number among the jobs.
    pub table: usize,
    pub ranks: Vec<Rank>,
    pub lanes: Vec<Lane>,
    pub workers: Vec<Worker>,
}

/// The time between two limits that a stream draws.
pub(crate) fn between(stream: &mut Stream, least: Picos, most: Picos) -> Picos {
    least.plus(Picos(stream.below(most.since(least).0.saturating_add(1))))
}
