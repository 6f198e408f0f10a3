//! The requester of a reliable connection: messages in, request packets and retransmissions out.
//!
//! A state machine without network or clock. PSNs are counted from the first one on and do not wrap (`seq`). IBTA 9.7
//! (reliable service), 9.7.5 (responses), 9.7.6 (timeout and retry).

mod any_order;
mod any_order_state;
mod message;

use std::collections::VecDeque;

use any_order_state::AnyOrder;
use message::Message;
pub(crate) use message::{Failure, Limits, OutgoingPacket, Trigger};

use crate::scenario::{Operation, Recovery};
use crate::units::Picos;

/// The requester of one end.
#[derive(Debug)]
pub(crate) struct Requester {
    limits: Limits,
    messages: VecDeque<Message>,
    /// The PSN to be sent next.
    next: u64,
    /// The oldest that is not acknowledged.
    pub(crate) oldest: u64,
    /// After the highest that was ever sent.
    pub(crate) top: u64,
    /// After the last that was posted.
    end: u64,
    /// Number of retransmissions of each PSN from `oldest` to `top`.
    attempts: VecDeque<u16>,
    /// Selective recovery: PSNs to be retransmitted.
    again: VecDeque<(u64, Trigger)>,
    /// Cause of the run that the next retransmission starts.
    pending_run: Option<Trigger>,
    /// Until when an RNR NAK forbids to send; which wait it is.
    pub(crate) waiting: bool,
    pub(crate) waits: u32,
    /// Highest ack-requested PSN sent, plus 1.
    requested: u64,
    /// End of its wait.
    pub(crate) deadline: Picos,
    retries: u32,
    /// The PSN whose READ response was found missing last.
    implied: Option<u64>,
    /// READ responses may come in any order.
    any_order: Option<AnyOrder>,
    /// Why it has ended, if it has.
    pub(crate) failure: Option<Failure>,
    /// RNR NAKs in a row, without an acknowledgement of something new between them.
    refusals: u32,
    /// An answer of the peer has come.
    pub(crate) answered: bool,
}

impl Requester {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            messages: VecDeque::new(),
            next: 0,
            oldest: 0,
            top: 0,
            end: 0,
            attempts: VecDeque::new(),
            again: VecDeque::new(),
            pending_run: None,
            waiting: false,
            waits: 0,
            requested: 0,
            deadline: Picos::NEVER,
            retries: 0,
            implied: None,
            any_order: None,
            failure: None,
            refusals: 0,
            answered: false,
        }
    }

    /// Takes a message.
    pub(crate) fn post(&mut self, operation: Operation, bytes: u64, source: u32) {
        let packets = u32::try_from(bytes.div_ceil(self.limits.mtu).max(1)).unwrap_or(u32::MAX);
        let message = Message {
            first: self.end,
            packets,
            bytes,
            operation,
            source,
        };
        self.end = message.end();
        self.messages.push_back(message);
    }

    /// The oldest PSN that is not acknowledged, and how often it was sent again; `None`: nothing is outstanding.
    pub(crate) fn outstanding(&self) -> Option<(u64, u16)> {
        (self.oldest < self.top).then(|| (self.oldest, self.attempts.front().copied().unwrap_or(0)))
    }

    /// True if something is posted that is not done.
    pub(crate) fn is_busy(&self) -> bool {
        self.oldest < self.end && self.failure.is_none()
    }

    /// True if something that was posted has not been sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.next < self.end && self.failure.is_none()
    }

    /// The message of a PSN that is not acknowledged.
    fn message(&self, seq: u64) -> Option<&Message> {
        let after = self.messages.partition_point(|message| message.first <= seq);
        self.messages
            .get(after.checked_sub(1)?)
            .filter(|message| seq < message.end())
    }

    /// True if the next packet was sent before.
    pub(crate) fn sends_again(&self) -> bool {
        self.next < self.top || self.again.iter().any(|(seq, _)| *seq >= self.oldest)
    }

    /// True if a packet can leave now.
    pub(crate) fn can_send(&self) -> bool {
        if self.waiting || self.failure.is_some() {
            return false;
        }
        self.again.iter().any(|(seq, _)| *seq >= self.oldest) || self.can_send_next()
    }

    fn can_send_next(&self) -> bool {
        if self.next >= self.end || (self.next - self.oldest) * self.limits.mtu >= self.limits.window {
            return false;
        }
        match self.message(self.next) {
            Some(message) if message.operation == Operation::Read => {
                let open = self
                    .messages
                    .iter()
                    .take_while(|message| message.first < self.next);
                let open = open.filter(|message| message.operation == Operation::Read);
                open.count() < self.limits.reads as usize
            }
            message => message.is_some(),
        }
    }

    /// The next packet. Its sending begins at `now`.
    pub(crate) fn send(&mut self, now: Picos) -> Option<OutgoingPacket> {
        if self.waiting || self.failure.is_some() {
            return None;
        }
        while let Some((seq, trigger)) = self.again.pop_front() {
            if seq >= self.oldest {
                self.pending_run = Some(trigger);
                let mut packet = self.packet(seq)?;
                packet.ack_request = packet.operation != Operation::Read;
                self.shorten(&mut packet);
                self.note(&packet, now);
                return Some(packet);
            }
        }
        if !self.can_send_next() {
            return None;
        }
        let packet = self.packet(self.next)?;
        self.next += u64::from(packet.span);
        self.note(&packet, now);
        Some(packet)
    }

    /// The packet that begins at `seq`.
    fn packet(&mut self, seq: u64) -> Option<OutgoingPacket> {
        let message = *self.message(seq)?;
        let mtu = self.limits.mtu;
        let index = u32::try_from(seq - message.first).unwrap_or(u32::MAX);
        let offset = u64::from(index) * mtu;
        let left = message.bytes.saturating_sub(offset);
        let is_read = message.operation == Operation::Read;
        let last = index + 1 == message.packets;
        let every = self.limits.ack_every;
        let again = seq < self.top;
        let mut attempt = 0;
        if again {
            let place = usize::try_from(seq - self.oldest).unwrap_or(usize::MAX);
            if let Some(count) = self.attempts.get_mut(place) {
                *count = count.saturating_add(1);
                attempt = *count;
            }
        }
        Some(OutgoingPacket {
            seq,
            span: if is_read { message.packets - index } else { 1 },
            operation: message.operation,
            bytes: if is_read { left } else { left.min(mtu) },
            message_bytes: message.bytes,
            offset,
            index,
            packets: message.packets,
            ack_request: !is_read && (last || every > 0 && (index + 1).is_multiple_of(every)),
            attempt,
            begins_run: if again { self.pending_run.take() } else { None },
        })
    }

    /// Keeps the books of a packet that leaves.
    fn note(&mut self, packet: &OutgoingPacket, now: Picos) {
        let end = packet.seq + u64::from(packet.span);
        while self.top < end {
            self.top += 1;
            self.attempts.push_back(0);
        }
        if packet.ack_request || packet.operation == Operation::Read {
            self.requested = self.requested.max(end);
            if self.deadline == Picos::NEVER {
                self.deadline = now.plus(self.patience());
            }
        }
    }

    /// Wait for progress: doubled with each retry.
    fn patience(&self) -> Picos {
        self.limits.timeout.times(1 << self.retries.min(16))
    }

    /// Everything before `seq` is acknowledged. Returns the sources of the messages that are done.
    fn advance(&mut self, seq: u64, now: Picos) -> Vec<u32> {
        let seq = seq.min(self.top);
        if seq <= self.oldest {
            return Vec::new();
        }
        for _ in self.oldest..seq {
            self.attempts.pop_front();
        }
        self.oldest = seq;
        self.next = self.next.max(seq);
        self.retries = 0;
        self.refusals = 0;
        self.implied = None;
        self.deadline = if self.oldest < self.requested {
            now.plus(self.patience())
        } else {
            Picos::NEVER
        };
        let mut done = Vec::new();
        while let Some(message) = self.messages.front().filter(|message| message.end() <= seq) {
            done.push(message.source);
            self.messages.pop_front();
        }
        done
    }

    /// The first READ in `oldest .. seq` whose responses are not all there. An acknowledgement of
    /// anything after it shows that they are lost (an implied NAK; `check_psn` of Linux
    /// drivers/infiniband/sw/rxe/rxe_comp.c).
    fn open_read(&self, seq: u64) -> Option<u64> {
        self.messages
            .iter()
            .take_while(|message| message.first < seq)
            .find(|message| message.operation == Operation::Read && message.end() > self.oldest)
            .map(|message| message.first.max(self.oldest))
    }

    /// An ACK of everything before `seq`, or a NAK of it. Returns the sources whose messages are done.
    pub(crate) fn acknowledged(&mut self, seq: u64, now: Picos) -> Vec<u32> {
        if self.any_order.is_some() {
            return self.acknowledged_in_any_order(seq, now);
        }
        match self.open_read(seq.min(self.top)) {
            None => self.advance(seq, now),
            Some(missing) => {
                let done = self.advance(missing, now);
                self.imply(missing);
                done
            }
        }
    }

    /// A READ response came. Returns the sources whose messages are done, or `None` if it is not the one expected.
    pub(crate) fn response(&mut self, seq: u64, now: Picos) -> Option<Vec<u32>> {
        if seq < self.oldest || seq >= self.top {
            return None;
        }
        let message = *self.message(seq).filter(|m| m.operation == Operation::Read)?;
        if self.any_order.is_some() {
            return Some(self.response_in_any_order(seq, message.first, now));
        }
        // Requests before the READ are acknowledged by its response.
        let mut done = self.acknowledged(message.first, now);
        if self.oldest == seq {
            done.extend(self.advance(seq + 1, now));
            return Some(done);
        }
        let missing = self.oldest;
        self.imply(missing);
        None
    }

    /// A READ response is missing: the request for it goes out again, once.
    fn imply(&mut self, missing: u64) {
        if self.implied != Some(missing) {
            self.implied = Some(missing);
            self.rewind(missing, Trigger::ImpliedNak);
        }
    }

    /// Handles a NAK for a sequence error: `seq` is the PSN that the responder expects. Returns the
    /// sources whose messages are done, and true if the requester retransmits.
    pub(crate) fn refused(&mut self, seq: u64, now: Picos) -> (Vec<u32>, bool) {
        if seq < self.oldest || seq >= self.top {
            return (Vec::new(), false);
        }
        let done = self.acknowledged(seq, now);
        if self.oldest != seq && (self.any_order.is_none() || seq < self.oldest) {
            return (done, false);
        }
        match self.limits.recovery {
            Recovery::GoBackN => self.rewind(seq, Trigger::Nak),
            Recovery::Selective => self.again.push_back((seq, Trigger::Nak)),
        }
        (done, true)
    }

    /// An RNR NAK of `seq`. Returns the sources whose messages are done, and the number of the wait if there is one.
    pub(crate) fn not_ready(&mut self, seq: u64, now: Picos) -> (Vec<u32>, Option<u32>) {
        if seq < self.oldest || seq >= self.top {
            return (Vec::new(), None);
        }
        let done = self.acknowledged(seq, now);
        self.refusals += 1;
        if self.limits.rnr_retries.is_some_and(|most| self.refusals > most) {
            self.fail(Failure::RnrRetries);
            return (done, None);
        }
        self.rewind(seq, Trigger::Rnr);
        self.waiting = true;
        self.waits += 1;
        (done, Some(self.waits))
    }

    /// The wait after an RNR NAK is over.
    pub(crate) fn ready(&mut self, wait: u32) {
        if wait == self.waits {
            self.waiting = false;
        }
    }

    /// The timer expired: everything from the oldest on is retransmitted, or the oldest alone.
    pub(crate) fn timed_out(&mut self, now: Picos) {
        self.retries += 1;
        if self.retries > self.limits.retries {
            self.fail(Failure::Retries);
            return;
        }
        self.implied = None;
        let is_read = self
            .message(self.oldest)
            .is_some_and(|message| message.operation == Operation::Read);
        if self.limits.recovery == Recovery::Selective && (!is_read || self.any_order.is_some()) {
            self.again.clear();
            self.again.push_back((self.oldest, Trigger::Timeout));
            self.deadline = now.plus(self.patience());
        } else {
            self.rewind(self.oldest, Trigger::Timeout);
        }
    }

    /// The connection is over.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.deadline = Picos::NEVER;
    }

    fn rewind(&mut self, seq: u64, trigger: Trigger) {
        self.again.clear();
        self.next = seq;
        self.pending_run = Some(trigger);
        self.requested = seq;
        self.deadline = Picos::NEVER;
    }
}

#[cfg(test)]
mod tests;
