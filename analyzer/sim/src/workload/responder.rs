//! The responder of a connection: which requests are taken, which are refused, and what is answered.
//!
//! A state machine without network or clock. IBTA 9.7.4 (checks of requests), 9.7.5.2.8 (RNR NAK), 9.8 (unreliable services).

use std::collections::BTreeMap;

use crate::scenario::Recovery;
use crate::units::Picos;
use crate::workload::gaps::{Gaps, Patience};

/// A request that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub seq: u64,
    pub span: u32,
    pub is_read: bool,
    /// READ: length of the requested data.
    pub length: u64,
    pub payload: u32,
    pub first: bool,
    pub last: bool,
    /// SEND: needs a receive buffer.
    pub receives: bool,
    pub ack_requested: bool,
}

/// An answer that is sent at once, or behind unfinished READ responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// Everything before this PSN is acknowledged.
    Ack(u64),
    /// This PSN is expected.
    Nak(u64),
    /// This PSN finds no receive buffer.
    NotReady(u64),
    /// The connection is over.
    Fatal(u64),
}

/// A READ to be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WaitingRead {
    pub seq: u64,
    pub packets: u32,
    pub length: u64,
}

/// Result of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    /// Messages that were completed.
    pub messages: u32,
    /// Application data taken, for the first time.
    pub payload: u64,
    pub reads: Vec<WaitingRead>,
    pub reply: Option<Reply>,
    /// An ACK is held back.
    pub holds: bool,
}

/// The responder of one end.
#[derive(Debug)]
pub(crate) struct Responder {
    recovery: Recovery,
    coalesce: u32,
    pub(crate) expected: u64,
    pub(crate) completed: u32,
    /// A NAK or RNR NAK for `expected` is out.
    refused: bool,
    /// Requests for an ACK that were held back.
    held: u32,
    /// Receive buffers posted; `None`: always enough.
    pub(crate) receives: Option<u32>,
    early: BTreeMap<u64, Request>,
    /// Packets may come in any order: what is missing.
    gaps: Option<Gaps>,
    /// True if every duplicate of a SEND or WRITE is acknowledged, even one that requests no ACK.
    pub(crate) acknowledges_all: bool,
    /// UC: true inside a message without losses.
    in_message: bool,
    pub(crate) fatal: bool,
}

impl Responder {
    pub(crate) fn new(recovery: Recovery, coalesce: u32, receives: Option<u32>) -> Self {
        Self {
            recovery,
            coalesce: coalesce.max(1),
            expected: 0,
            completed: 0,
            refused: false,
            held: 0,
            receives,
            early: BTreeMap::new(),
            gaps: None,
            acknowledges_all: false,
            in_message: false,
            fatal: false,
        }
    }

    /// From now on packets may come in any order.
    pub(crate) fn in_any_order(&mut self, patience: Patience) {
        self.recovery = Recovery::Selective;
        self.gaps = Some(Gaps::new(patience));
    }

    /// A request came: what it has overtaken is missing.
    pub(crate) fn note(&mut self, request: &Request, now: Picos) {
        if let Some(gaps) = &mut self.gaps {
            gaps.arrived(request.seq, request.span, now);
        }
    }

    /// A NAK of the PSN that is expected, if it has been missing for too long.
    pub(crate) fn overdue(&mut self, now: Picos) -> Option<Reply> {
        let expected = self.expected;
        let gaps = self.gaps.as_mut().filter(|_| !self.fatal)?;
        let lost = gaps.lost_first(now).filter(|seq| *seq == expected)?;
        self.held = 0;
        Some(Reply::Nak(lost))
    }

    /// Time at which the next NAK may be due.
    pub(crate) fn due(&self) -> Option<Picos> {
        self.gaps.as_ref()?.due_first()
    }

    /// True if a packet that comes before its turn is dropped.
    pub(crate) fn drops_early(&self) -> bool {
        self.recovery == Recovery::GoBackN
    }

    /// Takes a request of a reliable connection.
    pub(crate) fn reliable(&mut self, request: Request) -> Outcome {
        let mut outcome = Outcome::default();
        if self.fatal {
            return outcome;
        }
        if request.seq < self.expected {
            self.again(&request, &mut outcome);
            return outcome;
        }
        if request.seq > self.expected {
            if self.recovery == Recovery::Selective {
                self.early.insert(request.seq, request);
            }
            if !self.refused && self.gaps.is_none() {
                self.refused = true;
                self.held = 0;
                outcome.reply = Some(Reply::Nak(self.expected));
            }
            return outcome;
        }
        let mut next = Some(request);
        while let Some(request) = next {
            if !self.take(&request, &mut outcome) {
                return outcome;
            }
            next = self.early.remove(&self.expected);
        }
        // The packets that were kept start beyond another hole.
        if let Some((first, _)) = self.early.first_key_value()
            && *first > self.expected
            && self.gaps.is_none()
        {
            self.refused = true;
            self.held = 0;
            outcome.reply = Some(Reply::Nak(self.expected));
        }
        outcome
    }

    /// Takes the request that was expected. Returns false if it found no receive buffer.
    fn take(&mut self, request: &Request, outcome: &mut Outcome) -> bool {
        if request.receives && request.first && self.receives == Some(0) {
            self.refused = true;
            self.held = 0;
            outcome.reply = Some(Reply::NotReady(request.seq));
            return false;
        }
        self.refused = false;
        self.expected += u64::from(request.span);
        outcome.payload += u64::from(request.payload);
        if request.is_read {
            outcome.reads.push(read(request));
        }
        if request.receives && request.first {
            self.receives = self.receives.map(|left| left.saturating_sub(1));
        }
        if request.last {
            self.completed = self.completed.wrapping_add(1) & 0x00ff_ffff;
            outcome.messages += u32::from(!request.is_read);
        }
        if request.ack_requested {
            self.held += 1;
            if self.held >= self.coalesce {
                self.held = 0;
                outcome.holds = false;
                outcome.reply = Some(Reply::Ack(self.expected));
            } else {
                outcome.holds = true;
            }
        }
        true
    }

    /// A request that was taken before: a READ is answered again, others are acknowledged again.
    fn again(&mut self, request: &Request, outcome: &mut Outcome) {
        if request.is_read {
            outcome.reads.push(read(request));
        } else if request.ack_requested || self.acknowledges_all {
            self.held = 0;
            outcome.reply = Some(Reply::Ack(self.expected));
        }
    }

    /// The ACK that was held back, if it still is.
    pub(crate) fn release(&mut self) -> Option<Reply> {
        (self.held > 0).then(|| {
            self.held = 0;
            Reply::Ack(self.expected)
        })
    }

    /// Takes a packet of an unreliable connection: a message with a hole is dropped.
    pub(crate) fn unreliable(&mut self, request: Request) -> Outcome {
        let mut outcome = Outcome::default();
        if request.seq < self.expected {
            return outcome;
        }
        if request.seq > self.expected {
            self.in_message = false;
        }
        self.expected = request.seq + 1;
        if request.first {
            self.in_message = true;
        }
        outcome.payload = u64::from(request.payload);
        if request.last && self.in_message {
            self.completed = self.completed.wrapping_add(1) & 0x00ff_ffff;
            outcome.messages = 1;
            self.in_message = false;
        }
        outcome
    }
}

fn read(request: &Request) -> WaitingRead {
    WaitingRead {
        seq: request.seq,
        packets: request.span,
        length: request.length,
    }
}

#[cfg(test)]
mod tests;
