//! Congestion notifications: which flow each one slows. One from B to A for the queue pair q slows what A sends with q:
//! the other direction of the connection whose packets from B are for q; the UD flow whose packets name q as their source;
//! else the only flow from A to B with CE marks just before, where no packet for q was captured. What is not known yet waits in `cnp`.

use roce_model::{EventKind, EventRow, FlowId, FlowKey, Nanos, Packet};
use roce_verdict::PacketTimes;
use roce_wire::{Qpn, Service};

use crate::analysis::Analysis;
use crate::bins::Place;
use crate::congestion::cnp_receivers::{CnpAttribution, Cnps, Observed, Receiver};
use crate::congestion::progress::{Progress, WINDOW_PACKETS};
use crate::congestion::reaction::Attribution;
use crate::congestion::recent_marks as marks;
use crate::counts::{Counts, Rare};
use crate::key::FlowSlot;
use crate::table::state::Hosts;

/// Time after a NAK in which a notification counts as its companion: adapters send one with it, without
/// any mark.
const AFTER_NAK: Nanos = Nanos(100_000);
/// A notification that leaves before its NAK does so by less than this: the receiver's adapter makes both from one packet.
const BEFORE_NAK: Nanos = Nanos(20_000);
/// UD flows remembered of one queue pair and host: with more destinations its notifications go to one of these.
const MAX_DESTINATIONS: usize = 64;

/// Flow of a notification, as far as it is known.
#[derive(Clone, Copy, Debug)]
enum Slowed {
    Known(FlowSlot, Attribution),
    /// The only flow that was marked, if it is one alone.
    Perhaps(Option<(FlowSlot, FlowId)>),
}

impl Analysis {
    /// A packet at `time` whose turn it is, or that is marked, and not counted yet.
    #[inline(never)]
    pub(super) fn pace_or_mark(&mut self, at: FlowSlot, time: Nanos, is_marked: bool) {
        if self.table.hot[at].pace == 0 {
            self.pace(at, time);
        }
        let hot = &self.table.hot[at];
        if is_marked && (hot.marked_in != marks::tick(time) || !hot.is_marked) {
            self.note_mark(at, time);
        }
    }

    fn note_mark(&mut self, at: FlowSlot, time: Nanos) {
        let hot = &mut self.table.hot[at];
        (hot.marked_in, hot.is_marked) = (marks::tick(time), true);
        hot.counts.rare_mut().marked.note(time);
        let cold = &mut self.table.cold[at];
        cold.congestion.get_or_insert_default().marked(time);
        self.marks.note(cold.groups.pair, at, cold.id, time);
    }

    /// A flow sends at `time` after a window of packets; without a consumer of its rate, after 256
    /// packets.
    fn pace(&mut self, at: FlowSlot, time: Nanos) {
        let now = self.progress(at, time);
        let hot = &mut self.table.hot[at];
        let last = hot.last_time;
        let in_message = self.is_in_message(at);
        let cold = &mut self.table.cold[at];
        cold.meter.get_or_insert_default().mark(now);
        if let Some(congestion) = &mut cold.congestion {
            congestion.mark(now, last, in_message);
            self.table.hot[at].pace = congestion.step();
        }
    }

    fn progress(&self, at: FlowSlot, time: Nanos) -> Progress {
        let counts = &self.table.hot[at].counts;
        let totals = &self.table.cold[at].totals;
        Progress {
            time,
            packets: totals.packets + u64::from(counts.packets),
            payload_bytes: totals.payload_bytes + counts.payload_bytes,
            wire_bytes: totals.wire_bytes + counts.wire_bytes,
        }
    }

    fn is_in_message(&self, at: FlowSlot) -> bool {
        self.table.hot[at].messages.is_open() || self.table.cold[at].responses.is_open()
    }

    /// A notification.
    pub(super) fn observe_cnp(&mut self, fingerprint: u64, packet: &Packet) {
        let sighting = self.recent.look(fingerprint, packet);
        let bin = match self.bins.place(packet.time) {
            Place::Current => self.bins.current(),
            Place::Later(bin) => {
                self.begin_bin(bin);
                bin
            }
            Place::Earlier(bin) => bin,
        };
        let observed = self.cnp.observe(packet, sighting);
        if observed == Observed::Copy {
            return self.copy(packet);
        }
        self.totals.cnp += 1;
        self.totals.roce_packets += 1;
        self.totals.wire_bytes += u64::from(packet.wire_bytes);
        self.count_packet(packet);
        if let Some(good) = packet.icrc {
            self.totals.icrc_checked += 1;
            self.totals.icrc_bad += u64::from(!good);
        }
        let (mut slowed, after_nak) = self.slowed(packet);
        if let Slowed::Perhaps(Some((_, id))) = slowed {
            self.cnp.mean(packet.tap, id, packet.roce.bth.destination_qpn());
            if !self.cnp.is_meant_alone(packet.tap, id) {
                slowed = Slowed::Perhaps(None);
            }
        }
        let cnps = Cnps {
            cnp: 1,
            after_nak: u32::from(after_nak),
        };
        self.totals.cnp_after_nak += u64::from(after_nak);
        let measured = match slowed {
            Slowed::Known(at, _) | Slowed::Perhaps(Some((at, _))) => Some(at),
            Slowed::Perhaps(None) => None,
        };
        if let Some(at) = measured {
            let is_sure = matches!(slowed, Slowed::Known(..));
            self.measure(at, packet.time, is_sure, after_nak);
            self.slow_down(at, packet.time);
        }
        let class = match slowed {
            Slowed::Known(at, how) => {
                self.charge((at, Some(packet.time)), bin, cnps, how);
                CnpAttribution::Charged(self.table.cold[at].id)
            }
            Slowed::Perhaps(sole) => CnpAttribution::Waiting(sole),
        };
        let Observed::Of(place) = observed else {
            if matches!(class, CnpAttribution::Waiting(_)) {
                self.totals.cnp_unattributed += 1;
            }
            return;
        };
        let (is_new, class) = self.cnp.add(place, bin, cnps, class);
        if class == CnpAttribution::Unattributed {
            self.totals.cnp_unattributed += 1;
        }
        if is_new && !self.bins.notified_at(bin, place) {
            // The bin has been emitted: its events come after it.
            let mut events = Vec::new();
            self.tell(place, bin, &mut events);
            self.bins.events.extend(events);
        }
    }

    /// Flow that a notification slows, and true if it came after a NAK of the same connection.
    fn slowed(&self, packet: &Packet) -> (Slowed, bool) {
        let key = FlowKey::from_packet(&packet.roce);
        let qpn = key.destination_qpn;
        for service in [Service::Rc, Service::Xrc, Service::Uc] {
            let key = FlowKey { service, ..key };
            let Some(at) = self.table.find_key(packet.tap, &key) else {
                continue;
            };
            let last_nak = self.table.cold[at].last_nak;
            let after_nak =
                last_nak.0 != 0 && packet.time.since(last_nak) <= AFTER_NAK && last_nak <= packet.time;
            let hot = &self.table.hot[at];
            if hot.is_paired() && self.has_packets(hot.peer) {
                return (Slowed::Known(hot.peer, Attribution::Pairing), after_nak);
            }
            let pair = self.table.cold[at].back;
            // Answers for the queue pair pass here: until they fit a flow, nothing shows that its data does, too.
            let sole = match service {
                Service::Uc => self.sole(pair, packet.time),
                _ => None,
            };
            return (Slowed::Perhaps(sole), after_nak);
        }
        let pair = Hosts::from_packet(packet).back;
        if let Some(at) = self.datagrams_from(pair, qpn, packet.time) {
            return (Slowed::Known(at, Attribution::Deth), false);
        }
        (Slowed::Perhaps(self.sole(pair, packet.time)), false)
    }

    /// The only marked flow whose queue pair at its source is not known to be another one.
    fn sole(&self, pair: u64, time: Nanos) -> Option<(FlowSlot, FlowId)> {
        self.marks.sole(pair, time, |at, id| self.may_be_meant(at, id))
    }

    fn may_be_meant(&self, at: FlowSlot, id: FlowId) -> bool {
        let (Some(hot), Some(cold)) = (self.table.hot.get(at), self.table.cold.get(at)) else {
            return false;
        };
        hot.live
            && cold.id == id
            && !hot.is_paired()
            && cold.key.service != Service::Ud
            && self.has_packets(at)
    }

    /// A flow without counted packets will have no row.
    fn has_packets(&self, at: FlowSlot) -> bool {
        self.table.cold[at].totals.packets > 0 || self.table.hot[at].counts.packets > 0
    }

    /// The UD flow that the queue pair `qpn` sends between hosts with the hash `pair`; of several the one that was marked
    /// within a millisecond, else the one that sent last.
    fn datagrams_from(&self, pair: u64, qpn: Qpn, time: Nanos) -> Option<FlowSlot> {
        let flows = self.datagrams.get(&(pair, qpn))?;
        let seen = |at: &FlowSlot| {
            let hot = &self.table.hot[*at];
            let congestion = self.table.cold[*at].congestion.as_ref();
            let last_ce = congestion.map(|congestion| congestion.last_ce);
            let marked = last_ce.filter(|last_ce| time.since(*last_ce) <= Nanos(1_000_000));
            (marked, hot.last_time)
        };
        let flows = flows.iter().copied().filter(|at| self.has_packets(*at));
        flows.max_by_key(seen)
    }

    /// A flow was opened.
    pub(super) fn enter_datagrams(&mut self, at: FlowSlot) {
        let cold = &self.table.cold[at];
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

    /// A flow goes.
    pub(super) fn leave_datagrams(&mut self, at: FlowSlot) {
        let cold = &self.table.cold[at];
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

    /// Takes the times of a notification that slows a flow, surely or perhaps.
    fn measure(&mut self, at: FlowSlot, time: Nanos, is_sure: bool, after_nak: bool) {
        let now = self.progress(at, time);
        let in_message = self.is_in_message(at);
        let hot = &mut self.table.hot[at];
        hot.is_marked = false;
        hot.pace = hot.pace.clamp(1, WINDOW_PACKETS);
        let cold = &mut self.table.cold[at];
        let congestion = cold.congestion.get_or_insert_default();
        let meter = cold.meter.as_deref().copied().unwrap_or_default();
        congestion.notified(&meter, now, hot.last_time, in_message);
        congestion.is_unexplained &= !after_nak;
        if let Some(legal) = self.legal.as_ref().filter(|_| is_sure) {
            congestion.surely_notified(legal, now);
        }
    }

    /// Charges notifications of a bin to the flow that they slow; `time`: when a single one came.
    fn charge(&mut self, (at, time): (FlowSlot, Option<Nanos>), bin: u64, cnps: Cnps, how: Attribution) {
        let cold = &mut self.table.cold[at];
        let congestion = cold.congestion.get_or_insert_default();
        congestion.charge(cnps.cnp, cnps.after_nak, how);
        let mut marked = PacketTimes::default();
        if let Some(time) = time.filter(|_| cnps.after_nak < cnps.cnp) {
            marked.note(time);
        }
        let counts = Counts::from(Rare {
            cnp: cnps.cnp,
            cnp_by_nak: cnps.after_nak,
            marked,
            ..Rare::default()
        });
        self.add_rare(at, bin, &counts);
    }

    /// Adds rare counts of a flow to its row of a bin.
    fn add_rare(&mut self, at: FlowSlot, bin: u64, counts: &Counts) {
        if bin < self.bins.current() {
            return self.add_earlier(at, bin, counts);
        }
        self.table.hot[at].counts.add(counts);
        self.activate(at);
    }

    /// A sequence NAK of the flow at `at` came at `time`: a notification for the same connection just before it, that no mark asked for,
    /// belongs to it.
    pub(super) fn explain_notification(&mut self, at: FlowSlot, time: Nanos) {
        let peer = self.table.hot[at].peer;
        if peer == FlowSlot::NONE {
            return;
        }
        let congestion = self.table.cold[peer].congestion.as_mut();
        let Some(notified) = congestion.and_then(|congestion| congestion.explain_by_nak(time, BEFORE_NAK))
        else {
            return;
        };
        self.totals.cnp_after_nak += 1;
        let bin = match self.bins.place(notified) {
            Place::Earlier(bin) => bin,
            Place::Current | Place::Later(_) => self.bins.current(),
        };
        let counts = Counts::from(Rare {
            cnp_by_nak: 1,
            ..Rare::default()
        });
        self.add_rare(peer, bin, &counts);
    }

    /// The other direction of a flow became known: the notifications for its queue pair slow that.
    pub(super) fn charge_waiting(&mut self, at: FlowSlot) {
        let (hot, key) = (&self.table.hot[at], &self.table.cold[at].key);
        let peer = hot.peer;
        let receiver = Receiver {
            tap: hot.tap,
            source: key.source,
            destination: key.destination,
            qpn: key.destination_qpn,
        };
        let Some(place) = self.cnp.waiting_of(&receiver) else {
            return;
        };
        if !self.has_packets(peer) {
            return;
        }
        let id = self.table.cold[peer].id;
        for part in 0..self.cnp.parts(place).len() {
            let waiting = self.cnp.parts(place)[part];
            if matches!(waiting.class, CnpAttribution::Waiting(_)) {
                self.charge((peer, None), waiting.bin, waiting.cnps, Attribution::Pairing);
                self.cnp.decide(place, part, CnpAttribution::Charged(id));
            }
        }
        self.cnp.forget(place);
    }

    /// The end, all flows still open: what waits is charged to the flow that alone was marked, if it is there.
    pub(super) fn end_waiting(&mut self) {
        for place in self.cnp.all_waiting() {
            self.settle_sole(place, None, true);
        }
    }

    /// Charges waiting notifications of one bin, or of all, to the flow that alone was marked.
    fn settle_sole(&mut self, place: usize, bin: Option<u64>, over: bool) {
        for part in 0..self.cnp.parts(place).len() {
            let waiting = self.cnp.parts(place)[part];
            let CnpAttribution::Waiting(sole) = waiting.class else {
                continue;
            };
            if bin.is_some_and(|bin| bin != waiting.bin) {
                continue;
            }
            let receiver = self.cnp.receiver(place);
            let sole = sole.filter(|(at, id)| {
                self.may_be_meant(*at, *id)
                    && self.cnp.is_meant_alone(receiver.tap, *id)
                    && !self.is_answered(*at, &receiver)
            });
            if let Some((at, id)) = sole {
                self.charge((at, None), waiting.bin, waiting.cnps, Attribution::Sole);
                self.cnp.decide(place, part, CnpAttribution::Charged(id));
            } else if over {
                self.totals.cnp_unattributed += u64::from(waiting.cnps.cnp);
                self.cnp.decide(place, part, CnpAttribution::Unattributed);
            }
        }
        self.cnp.forget(place);
    }

    /// The bin that is emitted next can still change, once: its notifications are attributed as far as
    /// possible, and emitted.
    pub(super) fn settle_notified(&mut self, all: bool) {
        let Some((bin, receivers)) = self.bins.notified_in_done(all) else {
            return;
        };
        let mut events = Vec::new();
        for place in receivers {
            self.settle_sole(place, Some(bin), false);
            self.tell(place, bin, &mut events);
        }
        self.bins.add_to_oldest(events);
    }

    /// True if packets for the queue pair of `receiver` were captured, as the flow at `at` would have them in its other direction: an
    /// answer of the same service. They have not shown that this is its other direction.
    fn is_answered(&self, at: FlowSlot, receiver: &Receiver) -> bool {
        let key = FlowKey {
            source: receiver.source,
            destination: receiver.destination,
            destination_qpn: receiver.qpn,
            source_qpn: Qpn::new(0),
            ..self.table.cold[at].key
        };
        key.service.is_reliable() && self.table.find_key(receiver.tap, &key).is_some()
    }

    /// Writes the events of a receiver's notifications in a bin: one for each flow that they slow, and
    /// one for those without a known flow.
    fn tell(&mut self, place: usize, bin: u64, events: &mut Vec<EventRow>) {
        let Receiver {
            tap,
            source,
            destination,
            qpn,
        } = self.cnp.receiver(place);
        let parts = self.cnp.parts(place).iter().filter(|part| part.bin == bin);
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
        let time = self.bins.time(bin);
        events.extend(sums.into_iter().map(|(flow_id, cnp)| EventRow {
            time,
            kind: EventKind::Cnp,
            tap,
            flow_id,
            value: Some(cnp),
            detail: Some(format!("{source} tells {destination} QP {qpn} to slow down").into()),
            ..EventRow::default()
        }));
        self.cnp.reported(place, bin);
    }
}
