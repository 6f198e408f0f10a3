//! Congestion notifications apart from flows: who was notified, which flows were marked lately, and who sends datagrams.
//! `cnp` charges them to flows.

use std::collections::HashMap;

use roce_model::{EventKind, EventRow, FlowId, FlowKey, Packet, Span, Time};
use roce_wire::{Qpn, Service};

use crate::bins::Bins;
use crate::congestion::cnp_receivers::{CnpAttribution, CnpReceivers, Receiver};
use crate::congestion::dcqcn::bound::Legal;
use crate::congestion::progress::{Progress, WINDOW_PACKETS};
use crate::congestion::reaction::Attribution;
use crate::congestion::recent_marks::Marks;
use crate::key::FlowSlot;
use crate::table::FlowTable;
use crate::table::state::{Cold, Hosts};

/// Queue pairs whose notifications are counted: some 40 MB. Notifications of others are in the totals only.
const MAX_CNP_RECEIVERS: usize = 1 << 18;
/// Time after a NAK in which a notification counts as its companion: adapters send one with it, without
/// any mark.
const AFTER_NAK: Span = Span(100_000);
/// UD flows remembered of one queue pair and host: with more destinations its notifications go to one of these.
const MAX_DESTINATIONS: usize = 64;

/// Flow of a notification, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlowedFlow {
    Known(FlowSlot, Attribution),
    /// The only flow that was marked, if it is one alone.
    Perhaps(Option<(FlowSlot, FlowId)>),
}

/// Notifications of the run.
#[derive(Debug)]
pub(super) struct Notifications {
    /// Who was notified, with what waits for its flow.
    pub(super) receivers: CnpReceivers,
    /// Flows that were marked lately.
    pub(super) marks: Marks,
    /// UD flows by the hash of their hosts and by the queue pair that they come from.
    datagrams: HashMap<(u64, Qpn), Vec<FlowSlot>, foldhash::fast::RandomState>,
}

impl Notifications {
    /// No notifications yet; `max_flows` is the number of flows that can be live.
    pub(super) fn new(max_flows: usize) -> Self {
        Self {
            receivers: CnpReceivers::new(max_flows.min(MAX_CNP_RECEIVERS)),
            marks: Marks::default(),
            datagrams: HashMap::default(),
        }
    }

    /// The flow at `at` was opened.
    pub(super) fn enter(&mut self, cold: &Cold, at: FlowSlot) {
        if cold.key.service == Service::Ud {
            let flows = self
                .datagrams
                .entry((cold.groups.pair, cold.key.source_qpn))
                .or_default();
            if flows.len() < MAX_DESTINATIONS {
                flows.push(at);
            }
        }
    }

    /// The flow at `at` goes.
    pub(super) fn leave(&mut self, cold: &Cold, at: FlowSlot) {
        if cold.key.service != Service::Ud {
            return;
        }
        let key = (cold.groups.pair, cold.key.source_qpn);
        if let Some(flows) = self.datagrams.get_mut(&key) {
            flows.retain(|flow| *flow != at);
            if flows.is_empty() {
                self.datagrams.remove(&key);
            }
        }
    }

    /// Flow that a notification slows, and true if it came after a NAK of the same connection.
    pub(super) fn slowed(&self, table: &FlowTable, packet: &Packet) -> (SlowedFlow, bool) {
        let key = FlowKey::from_packet(&packet.roce);
        let qpn = key.destination_qpn;
        for service in [Service::Rc, Service::Xrc, Service::Uc] {
            let key = FlowKey { service, ..key };
            let Some(at) = table.find_key(packet.tap, &key) else {
                continue;
            };
            let last_nak = table.cold[at].last_nak;
            let after_nak =
                last_nak.0 != 0 && packet.time.since(last_nak) <= AFTER_NAK && last_nak <= packet.time;
            let hot = &table.hot[at];
            if hot.is_paired() && table.has_packets(hot.peer) {
                return (SlowedFlow::Known(hot.peer, Attribution::Pairing), after_nak);
            }
            let pair = table.cold[at].peering.back();
            // Answers for the queue pair pass here: until they fit a flow, nothing shows that its data does, too.
            let sole = match service {
                Service::Uc => self.sole(table, pair, packet.time),
                _ => None,
            };
            return (SlowedFlow::Perhaps(sole), after_nak);
        }
        let pair = Hosts::from_packet(packet).back;
        if let Some(at) = self.datagrams_from(table, pair, qpn, packet.time) {
            return (SlowedFlow::Known(at, Attribution::Deth), false);
        }
        (SlowedFlow::Perhaps(self.sole(table, pair, packet.time)), false)
    }

    /// The only marked flow whose queue pair at its source is not known to be another one.
    fn sole(&self, table: &FlowTable, pair: u64, time: Time) -> Option<(FlowSlot, FlowId)> {
        self.marks.sole(pair, time, |at, id| table.may_be_meant(at, id))
    }

    /// The UD flow that the queue pair `qpn` sends between hosts with the hash `pair`; of several the one that was marked
    /// within a millisecond, else the one that sent last.
    fn datagrams_from(&self, table: &FlowTable, pair: u64, qpn: Qpn, time: Time) -> Option<FlowSlot> {
        let flows = self.datagrams.get(&(pair, qpn))?;
        let seen = |at: &FlowSlot| {
            let hot = &table.hot[*at];
            let congestion = table.cold[*at].congestion.as_ref();
            let last_ce = congestion.map(|congestion| congestion.last_ce);
            let marked = last_ce.filter(|last_ce| time.since(*last_ce) <= Span(1_000_000));
            (marked, hot.last_time)
        };
        let flows = flows.iter().copied().filter(|at| table.has_packets(*at));
        flows.max_by_key(seen)
    }

    /// Writes the events of a receiver's notifications in a bin: one for each flow that they slow, and
    /// one for those without a known flow.
    pub(super) fn tell(&mut self, bins: &Bins, place: usize, bin: u64, events: &mut Vec<EventRow>) {
        let Receiver {
            tap,
            source,
            destination,
            qpn,
        } = self.receivers.receiver(place);
        let parts = self.receivers.parts(place).iter().filter(|part| part.bin == bin);
        let mut sums: Vec<(Option<FlowId>, u64)> = Vec::new();
        for part in parts.filter(|part| !part.was_emitted()) {
            let flow = match part.class {
                CnpAttribution::Charged(id) => Some(id),
                CnpAttribution::Waiting(_) | CnpAttribution::Unattributed => None,
            };
            match sums.iter_mut().find(|(of, _)| *of == flow) {
                Some((_, sum)) => *sum += u64::from(part.cnps.cnp),
                None => sums.push((flow, u64::from(part.cnps.cnp))),
            }
        }
        let time = bins.time(bin);
        events.extend(sums.into_iter().map(|(flow_id, cnp)| EventRow {
            time,
            kind: EventKind::Cnp,
            tap,
            flow_id,
            value: Some(cnp),
            detail: Some(format!("{source} tells {destination} QP {qpn} to slow down").into()),
            ..EventRow::default()
        }));
        self.receivers.reported(place, bin);
    }
}

impl FlowTable {
    /// How far a flow has come at `time`.
    pub(super) fn progress(&self, at: FlowSlot, time: Time) -> Progress {
        let counts = &self.hot[at].counts;
        let totals = &self.cold[at].totals;
        Progress {
            time,
            packets: totals.packets + u64::from(counts.packets),
            payload_bytes: totals.payload_bytes + counts.payload_bytes,
            wire_bytes: totals.wire_bytes + counts.wire_bytes,
        }
    }

    /// True if a message of the flow, or a response to it, is open.
    pub(super) fn is_in_message(&self, at: FlowSlot) -> bool {
        self.hot[at].messages.is_open() || self.cold[at].responses.is_open()
    }

    /// True if a flow is there still, and a notification without a known flow may slow it.
    pub(super) fn may_be_meant(&self, at: FlowSlot, id: FlowId) -> bool {
        let (Some(hot), Some(cold)) = (self.hot.get(at), self.cold.get(at)) else {
            return false;
        };
        hot.live
            && cold.id == id
            && !hot.is_paired()
            && cold.key.service != Service::Ud
            && self.has_packets(at)
    }

    /// A flow without counted packets will have no row.
    pub(super) fn has_packets(&self, at: FlowSlot) -> bool {
        self.cold[at].totals.packets > 0 || self.hot[at].counts.packets > 0
    }

    /// True if packets for the queue pair of `receiver` were captured, as the flow at `at` would have them in its other direction: an
    /// answer of the same service. They have not shown that this is its other direction.
    pub(super) fn is_answered(&self, at: FlowSlot, receiver: &Receiver) -> bool {
        let key = FlowKey {
            source: receiver.source,
            destination: receiver.destination,
            destination_qpn: receiver.qpn,
            source_qpn: Qpn::new(0),
            ..self.cold[at].key
        };
        key.service.is_reliable() && self.find_key(receiver.tap, &key).is_some()
    }

    /// Takes the times of a notification that slows a flow; `sure`: what it then may send at most, if it surely does.
    pub(super) fn measure(&mut self, at: FlowSlot, time: Time, sure: Option<&Legal>, after_nak: bool) {
        let now = self.progress(at, time);
        let in_message = self.is_in_message(at);
        let hot = &mut self.hot[at];
        hot.last_mark.is_pending = false;
        hot.pace = hot.pace.clamp(1, WINDOW_PACKETS);
        let cold = &mut self.cold[at];
        let congestion = cold.congestion.get_or_insert_default();
        let meter = cold.meter.as_deref().copied().unwrap_or_default();
        congestion.notified(&meter, now, hot.last_time, in_message);
        congestion.is_unexplained &= !after_nak;
        if let Some(legal) = sure {
            congestion.surely_notified(legal, now);
        }
    }
}
