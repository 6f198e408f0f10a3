//! Packets that a switch has trimmed because its queue was full: the headers came, and the data did not. Their PSN is one that has not
//! arrived, lost before the tap.

use roce_model::{EventKind, EventRow, Packet};
use roce_verdict::PacketTimes;

use crate::analysis::Analysis;
use crate::bins::BinPlace;
use crate::counts::{Counts, Rare};
use crate::key::FlowSlot;
use crate::psn::holes::LossClass;
use crate::psn::request::{FlowHistory, Request, RequestPacket};
use crate::psn::tracker::trimmed::TrimmedPlace;
use crate::table::lookup::FoundFlow;

impl Analysis {
    /// Takes a packet that is shorter than its lengths say, if it is one that a switch has trimmed; says whether it is.
    #[cold]
    pub(super) fn observe_short(&mut self, found: &FoundFlow, packet: &Packet) -> bool {
        let Some(at) = self.table.find_now(&found.key) else {
            return false;
        };
        let hot = &mut self.table.hot[at];
        if !self.table.cold[at].is_trimmed(hot, packet) {
            return false;
        }
        let sighting = self.recent.look(found.fingerprint, packet);
        hot.referenced = true;
        if hot.evidence.is_copy(sighting, packet.roce.ip_id) {
            self.tally.copy(packet);
        } else {
            self.observe_trimmed(at, packet);
        }
        true
    }

    fn observe_trimmed(&mut self, at: FlowSlot, packet: &Packet) {
        let earlier = match self.bins.place(packet.time) {
            BinPlace::Current => None,
            BinPlace::Later(bin) => {
                self.begin_bin(bin);
                None
            }
            BinPlace::Earlier(bin) => Some(bin),
        };
        let bin = earlier.unwrap_or_else(|| self.bins.current());
        let place = self.find_trimmed(at, bin, packet);
        self.tally.packet(packet);
        self.tally
            .ecn(packet.roce.traffic_class & 3, packet.roce.carrier.has_ip());
        let counts = trimmed_counts(packet, place);
        let hot = &mut self.table.hot[at];
        hot.last_time = hot.last_time.max(packet.time);
        hot.messages.interrupt();
        let cold = &mut self.table.cold[at];
        let trouble = cold.trouble.get_or_insert_default();
        trouble.trimmed += 1;
        trouble.trim_dscps.add(packet.roce.dscp(), 1);
        if let Some(bin) = earlier {
            self.add_earlier(at, bin, &counts);
        } else {
            if !hot.active {
                hot.active = true;
                self.bins.begin_flow(at, packet.time);
            }
            hot.counts.add(&counts);
        }
        self.report_trimmed(at, packet, place);
        self.settle(at);
    }

    /// Where a trimmed packet is among the PSNs of its flow. Where the capture has just lost records, and of READ responses, the packets
    /// that follow show it.
    fn find_trimmed(&mut self, at: FlowSlot, bin: u64, packet: &Packet) -> TrimmedPlace {
        let is_sequenced = packet.roce.bth.opcode().traits().is_sequenced();
        let max_holes = self.table.max_holes();
        let hot = &mut self.table.hot[at];
        if !is_sequenced || hot.losses != self.taps.losses(packet.tap) {
            return TrimmedPlace::default();
        }
        let request = Request {
            packet: RequestPacket {
                psn: packet.roce.bth.psn(),
                span: Some(1),
                time: packet.time,
                bin,
                ..RequestPacket::default()
            },
            flow: FlowHistory {
                silence: packet.time.since(hot.last_request),
                max_holes,
                ..FlowHistory::default()
            },
            ..Request::default()
        };
        let place = self.table.cold[at].tracker.trimmed(&mut hot.requests, &request);
        hot.last_request = hot.last_request.max(packet.time);
        place
    }

    fn report_trimmed(&mut self, at: FlowSlot, packet: &Packet, place: TrimmedPlace) {
        let psn = packet.roce.bth.psn().value();
        let event = EventRow {
            time: packet.time,
            tap: packet.tap,
            flow_id: Some(self.table.cold[at].id),
            ..EventRow::default()
        };
        if let Some((first, missing)) = place.skipped {
            self.bins.events.push(EventRow {
                kind: EventKind::Gap,
                psn: Some(first.value()),
                value: Some(u64::from(missing)),
                ..event.clone()
            });
        }
        if place.is_lost {
            self.bins.events.push(EventRow {
                kind: EventKind::Hole,
                psn: Some(psn),
                value: Some(1),
                detail: Some(LossClass::NetworkLost.name().into()),
                ..event.clone()
            });
        }
        self.bins.events.push(EventRow {
            kind: EventKind::Trimmed,
            psn: Some(psn),
            value: Some(u64::from(packet.roce.dscp())),
            ..event
        });
    }
}

/// Counts of a trimmed packet: its frame was there, and no data.
fn trimmed_counts(packet: &Packet, place: TrimmedPlace) -> Counts {
    let mut lost = PacketTimes::default();
    lost.note(packet.time);
    Counts {
        packets: 1,
        wire_bytes: u64::from(packet.wire_bytes),
        ..Counts::from(Rare {
            trimmed: 1,
            missing: place.skipped.map_or(0, |(_, missing)| u64::from(missing)),
            lost,
            ..Rare::default()
        })
    }
}
