//! Programs that answer each other's SENDs: what is noted of messages, and what a closed flow leaves for the rules.

use roce_model::{FlowRow, Packet, PacketFlags, ProgramExchange, Time};
use roce_wire::{Operation, Qpn};

use crate::analysis::Analysis;
use crate::key::FlowSlot;

/// Connections of closed flows that are kept.
const MAX_EXCHANGES: usize = 1 << 16;

impl Analysis {
    /// A SEND or a WRITE of a reliable connection ended with this packet, seen for the first time.
    pub(super) fn note_message(&mut self, at: FlowSlot, packet: &Packet) {
        let operation = packet.roce.bth.opcode().operation();
        let peer = self.table.hot[at].peer;
        let is_paired = peer != FlowSlot::NONE;
        if operation != Operation::Send {
            // Programs that never SEND back answer with WRITEs.
            let only_answers = self.table.cold[at].kinds.sends.as_deref();
            if is_paired && only_answers.is_some_and(|sends| sends.first.is_none()) {
                self.answer_send(peer, packet.time);
            }
            return;
        }
        let other_asks = is_paired
            && self.table.cold[peer]
                .kinds
                .sends
                .as_deref()
                .is_some_and(|other| other.asks);
        let own_qpn = is_paired.then(|| self.table.cold[peer].key.destination_qpn);
        let own = self.table.cold[at].kinds.sends.get_or_insert_default();
        if own.first.is_none() {
            own.asks = !other_asks;
            own.own_qpn = own_qpn;
        }
        own.first = own.first.or(Some(packet.time));
        if own.asks {
            if !packet.flags.has(PacketFlags::OPEN_REQUEST) {
                own.ask(packet.time);
            }
            if is_paired {
                self.table.cold[peer].kinds.sends.get_or_insert_default();
            }
        } else if is_paired {
            self.answer_send(peer, packet.time);
        }
    }

    fn answer_send(&mut self, at: FlowSlot, time: Time) {
        if let Some(sends) = self.table.cold[at]
            .kinds
            .sends
            .as_deref_mut()
            .filter(|sends| sends.asks)
        {
            sends.answer(time);
        }
    }

    /// The flows at `one` and `other` turned out to be the two directions of a connection. SENDs of both may have been captured before.
    pub(super) fn pair_sends(&mut self, one: FlowSlot, other: FlowSlot) {
        let qpns = [other, one].map(|at| self.table.cold[at].key.destination_qpn);
        let mut both = [one, other].map(|at| self.table.cold[at].kinds.sends.take());
        for (sends, own_qpn) in both.iter_mut().zip(qpns) {
            if let Some(sends) = sends {
                sends.own_qpn = Some(own_qpn);
            }
        }
        if let [Some(first), Some(second)] = &mut both
            && (first.asks && second.asks)
        {
            first.settle(second);
        }
        let [first, second] = both;
        self.table.cold[one].kinds.sends = first;
        self.table.cold[other].kinds.sends = second;
    }

    /// The connection of the flow at `at` was closed in order.
    pub(super) fn sends_closed(&mut self, at: FlowSlot, time: Time) {
        if let Some(sends) = self.table.cold[at].kinds.sends.as_deref_mut() {
            sends.closed.get_or_insert(time);
        }
    }

    /// Keeps what a flow that closes says of its programs.
    pub(super) fn keep_exchange(&mut self, at: FlowSlot, row: &FlowRow) {
        let Some(sends) = self.table.cold[at].kinds.sends.as_deref() else {
            return;
        };
        let Some(own_qpn) = sends
            .own_qpn
            .filter(|_| sends.asks && sends.answered + u64::from(sends.pending) > 0)
        else {
            return;
        };
        if self.tally.exchanges.len() >= MAX_EXCHANGES {
            return;
        }
        let (times, last) = (sends.times.summary(), self.table.hot[at].last_time);
        let acknowledged = row
            .last_answer_time
            .zip(row.last_request_time)
            .filter(|(answer, request)| answer >= request && row.unanswered_time.is_none());
        let exchange = ProgramExchange {
            tap: row.tap,
            flow_id: row.flow_id,
            source: row.source,
            destination: row.destination,
            qpn: Qpn::new(row.destination_qpn),
            own_qpn,
            asked: sends.sends,
            answered: sends.answered,
            answer_p50_ns: times.quantile(50),
            answer_max_ns: times.max(),
            pending: sends.pending,
            most_pending: sends.most_pending,
            pending_time: sends.oldest,
            acknowledged_ns: acknowledged.map(|(answer, request)| answer.since(request).0),
            until: sends.closed.unwrap_or_else(|| last.max(self.ended)),
            is_closed: sends.closed.is_some(),
        };
        self.tally.exchanges.push(exchange);
    }
}
