//! Counting: what every packet adds to its flow's open row, and what requests and responses add beside.

use roce_model::{EventKind, EventRow, FlowId, Packet, RemoteWrite};
use roce_wire::{AethKind, Ecn, ExtendedHeaders, Nak, Operation};

use crate::analysis::Analysis;
use crate::analysis::request_history::note_losses;
use crate::key::FlowSlot;
use crate::psn::request::Verdict;
use crate::psn::tracker::Tracker;

impl Analysis {
    /// Counts a packet of a flow in its open row.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "called for every packet from one place, and from another that is rare"
    )]
    pub(super) fn count(
        &mut self,
        at: FlowSlot,
        packet: &Packet,
        verdict: Verdict,
        write: Option<&RemoteWrite>,
    ) {
        self.tally.packet(packet);
        let roce = &packet.roce;
        let traits = roce.bth.opcode().traits();
        let ecn = roce.traffic_class & 3;
        let has_ip = roce.carrier.has_ip();
        self.tally.ecn(ecn, has_ip);
        let data = traits.carries_data() && roce.payload_bytes > 0;
        let is_marked = data && has_ip && ecn == Ecn::Ce as u8;
        let mut hot = &mut self.table.hot[at];
        hot.pace = hot.pace.wrapping_sub(1);
        if (hot.pace == 0) | is_marked {
            self.pace_or_mark(at, packet.time, is_marked);
            hot = &mut self.table.hot[at];
        }
        hot.last_time = hot.last_time.max(packet.time);
        let counts = &mut hot.counts;
        counts.packets += 1;
        counts.wire_bytes += u64::from(packet.wire_bytes);
        counts.payload_bytes += u64::from(roce.payload_bytes);
        counts.data_packets += u32::from(data);
        counts.ecn[usize::from(ecn)] += u32::from(data && has_ip);
        if let Some(good) = packet.icrc {
            hot.icrc_checked += 1;
            if !good {
                let cold = &mut self.table.cold[at];
                cold.trouble.get_or_insert_default().icrc_bad += 1;
            }
        }
        if hot.has_other_attributes(packet, data) {
            hot.change_attributes(&mut self.table.cold[at], packet, data);
        }
        hot.dscp_run += u32::from(data);
        if traits.is_response() {
            return self.response(at, packet);
        }
        if verdict == Verdict::InOrder && traits.is_middle() && !roce.bth.ack_request() {
            // The middle of a message: nothing to it but its payload.
            hot.sent_bytes = hot.sent_bytes.wrapping_add(roce.payload_bytes);
            return hot.messages.add(roce.payload_bytes);
        }
        if traits.is_reliable_write() {
            self.note_write(at, packet, verdict, write);
        }
        self.count_request(at, packet, verdict);
        self.note_outstanding_request(at, packet);
    }

    fn response(&mut self, at: FlowSlot, packet: &Packet) {
        self.count_response(at, packet);
        self.answers(at, packet);
        if let Some((first, missing)) = self.read_gap.take() {
            self.count_read_gap(at, first, u64::from(missing), packet.time);
        }
    }

    fn count_request(&mut self, at: FlowSlot, packet: &Packet, verdict: Verdict) {
        if verdict != Verdict::InOrder && !self.count_unusual(at, packet, verdict) {
            return;
        }
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let roce = &packet.roce;
        // Seen for the first time. Out of its place it would spoil the sum of its message.
        let in_place = matches!(verdict, Verdict::InOrder | Verdict::Gap { .. });
        match roce.bth.opcode().operation() {
            Operation::ReadRequest => cold.kinds.reads += 1,
            Operation::Atomic => cold.kinds.atomics += 1,
            _ => {}
        }
        if roce.bth.opcode().is_last() {
            hot.counts.messages += 1;
        }
        if in_place && let Some(length) = hot.messages.observe(roce) {
            cold.lengths.add(length);
        }
        if in_place && roce.bth.opcode().traits().is_sequenced() {
            hot.sent_bytes = hot.sent_bytes.wrapping_add(roce.payload_bytes);
            self.note_sent(at, packet, verdict);
        }
        if in_place && roce.bth.opcode().is_last() && is_program_message(packet) {
            self.note_message(at, packet);
        }
    }

    /// Counts what is unusual of a request; says whether it is seen for the first time.
    fn count_unusual(&mut self, at: FlowSlot, packet: &Packet, verdict: Verdict) -> bool {
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let roce = &packet.roce;
        match verdict {
            Verdict::InOrder => true,
            Verdict::Undecided { captured_before } => !captured_before,
            Verdict::Duplicate => {
                cold.trouble.get_or_insert_default().duplicates_network += 1;
                false
            }
            Verdict::Unknown => {
                cold.trouble.get_or_insert_default().unknown_packets += 1;
                true
            }
            Verdict::Gap { first, missing } => {
                let counts = hot.counts.rare_mut();
                counts.missing += u64::from(missing);
                counts.lost.note(packet.time);
                hot.messages.interrupt();
                self.bins.events.push(EventRow {
                    kind: EventKind::Gap,
                    psn: Some(first.value()),
                    value: Some(u64::from(missing)),
                    ..event_of(packet, cold.id)
                });
                true
            }
            Verdict::Retransmission { captured_before } => {
                let counts = hot.counts.rare_mut();
                counts.retransmitted_packets += 1;
                counts.lost.note(packet.time);
                counts.retransmitted_bytes += u64::from(roce.payload_bytes);
                if captured_before {
                    let position = Tracker::position(&hot.requests, roce.bth.psn());
                    let is_acknowledged = cold.tracker.has_acknowledged(position);
                    let trouble = cold.trouble.get_or_insert_default();
                    trouble.wasted_bytes += u64::from(roce.payload_bytes);
                    trouble.acknowledged_again += u64::from(roce.payload_bytes) * u64::from(is_acknowledged);
                    if let Some(measures) = &mut self.measures {
                        measures.at(hot.tap).wasted_bytes += u64::from(roce.payload_bytes);
                    }
                }
                !captured_before
            }
            Verdict::Late { captured_before } => {
                hot.counts.rare_mut().late += 1;
                self.bins.events.push(EventRow {
                    kind: EventKind::Late,
                    value: Some(1),
                    ..event_of(packet, cold.id)
                });
                !captured_before
            }
            Verdict::Stale | Verdict::NewEpoch(_) => {
                cold.trouble.get_or_insert_default().stale += 1;
                false
            }
        }
    }

    fn count_response(&mut self, at: FlowSlot, packet: &Packet) {
        let hot = &mut self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let roce = &packet.roce;
        let opcode = roce.bth.opcode();
        if opcode.is_read_response() {
            note_losses(hot, cold, self.taps.losses(packet.tap));
            if !opcode.is_last() {
                hot.messages.learn(roce.payload_bytes);
            } else if opcode.is_first() {
                cold.responses.learn_only(roce.payload_bytes);
            }
            self.read_gap = cold.responses.observe(opcode, roce.bth.psn());
            return;
        }
        if opcode.operation() != Operation::Acknowledge || !roce.seen.has(ExtendedHeaders::AETH) {
            return;
        }
        match roce.aeth.kind() {
            AethKind::Ack { .. } => hot.counts.acks += 1,
            AethKind::RnrNak { timer } => {
                hot.counts.rare_mut().rnr_naks += 1;
                self.recent_naks.note_refusal(hot.tap, &cold.key, packet.time);
                self.bins.events.push(EventRow {
                    kind: EventKind::RnrNak,
                    value: Some(timer.nanos()),
                    ..event_of(packet, cold.id)
                });
            }
            AethKind::Nak(code) => {
                hot.counts.rare_mut().naks += 1;
                let place = match code {
                    Nak::PsnSequenceError => 0,
                    Nak::InvalidRequest => 1,
                    Nak::RemoteAccessError => 2,
                    Nak::RemoteOperationalError => 3,
                    Nak::InvalidRdRequest => 4,
                };
                cold.trouble.get_or_insert_default().naks[place] += 1;
                cold.last_nak = packet.time;
                let (psn, time) = (roce.bth.psn(), packet.time);
                if code == Nak::PsnSequenceError {
                    self.recent_naks.note(hot.tap, &cold.key, psn, time);
                } else {
                    self.recent_naks.note_fatal(hot.tap, &cold.key, psn, time);
                }
                self.bins.events.push(EventRow {
                    kind: EventKind::Nak,
                    value: Some(u64::from(roce.aeth.syndrome())),
                    detail: Some(code.name().into()),
                    ..event_of(packet, cold.id)
                });
                if code == Nak::PsnSequenceError {
                    self.explain_notification(at, packet.time);
                }
            }
            AethKind::Reserved(_) => {}
        }
    }
}

/// True of a SEND or WRITE of a reliable connection.
fn is_program_message(packet: &Packet) -> bool {
    let opcode = packet.roce.bth.opcode();
    opcode.service().is_reliable() && matches!(opcode.operation(), Operation::Send | Operation::Write)
}

/// An event of a packet, but for its kind.
fn event_of(packet: &Packet, flow: FlowId) -> EventRow {
    EventRow {
        time: packet.time,
        tap: packet.tap,
        flow_id: Some(flow),
        psn: Some(packet.roce.bth.psn().value()),
        ..EventRow::default()
    }
}
