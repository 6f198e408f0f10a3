//! Congestion notifications: which flow each one slows. One from B to A for the queue pair q slows what A sends with q:
//! the other direction of the connection whose packets from B are for q; the UD flow whose packets name q as their source;
//! else the only flow from A to B with CE marks just before, where no packet for q was captured. What is not known yet waits in `notifications`.

use roce_model::{Packet, Span, Time};
use roce_verdict::PacketTimes;

use crate::analysis::Analysis;
use crate::analysis::notifications::SlowedFlow;
use crate::bins::BinPlace;
use crate::congestion::cnp_receivers::{CnpAttribution, Cnps, ObservedCnp, Receiver};
use crate::congestion::reaction::Attribution;
use crate::congestion::recent_marks as marks;
use crate::counts::{Counts, Rare};
use crate::key::FlowSlot;

/// A notification that leaves before its NAK does so by less than this: the receiver's adapter makes both from one packet.
const BEFORE_NAK: Span = Span(20_000);

impl Analysis {
    /// A packet at `time` whose turn it is, or that is marked, and not counted yet.
    #[inline(never)]
    pub(super) fn pace_or_mark(&mut self, at: FlowSlot, time: Time, is_marked: bool) {
        if self.table.hot[at].pace == 0 {
            self.pace(at, time);
        }
        let hot = &self.table.hot[at];
        if is_marked && (hot.last_mark.unit != marks::tick(time) || !hot.last_mark.is_pending) {
            self.note_mark(at, time);
        }
    }

    fn note_mark(&mut self, at: FlowSlot, time: Time) {
        let hot = &mut self.table.hot[at];
        (hot.last_mark.unit, hot.last_mark.is_pending) = (marks::tick(time), true);
        hot.counts.rare_mut().marked.note(time);
        let cold = &mut self.table.cold[at];
        cold.congestion.get_or_insert_default().marked(time);
        let (id, pair) = (cold.id, cold.groups.pair);
        self.notifications.marks.note(pair, at, id, time);
        if !self.table.hot[at].trust.was_known {
            self.divide_notification(at, time);
        }
    }

    /// A flow sends at `time` after a window of packets; without a consumer of its rate, after 256
    /// packets.
    fn pace(&mut self, at: FlowSlot, time: Time) {
        let now = self.table.progress(at, time);
        let hot = &mut self.table.hot[at];
        let last = hot.last_time;
        let in_message = self.table.is_in_message(at);
        let cold = &mut self.table.cold[at];
        cold.meter.get_or_insert_default().mark(now);
        if let Some(congestion) = &mut cold.congestion {
            congestion.mark(now, last, in_message);
            self.table.hot[at].pace = congestion.step();
        }
        self.divide_sent(at, now);
    }

    /// A notification.
    pub(super) fn observe_cnp(&mut self, fingerprint: u64, packet: &Packet) {
        let sighting = self.recent.look(fingerprint, packet);
        let bin = match self.bins.place(packet.time) {
            BinPlace::Current => self.bins.current(),
            BinPlace::Later(bin) => {
                self.begin_bin(bin);
                bin
            }
            BinPlace::Earlier(bin) => bin,
        };
        let observed = self.notifications.receivers.observe(packet, sighting);
        if observed == ObservedCnp::Copy {
            return self.tally.copy(packet);
        }
        self.tally.notification(packet);
        let (mut slowed, after_nak) = self.notifications.slowed(&self.table, packet);
        if let SlowedFlow::Perhaps(Some((_, id))) = slowed {
            self.notifications
                .receivers
                .mean(packet.tap, id, packet.roce.bth.destination_qpn());
            if !self.notifications.receivers.is_meant_alone(packet.tap, id) {
                slowed = SlowedFlow::Perhaps(None);
            }
        }
        let cnps = Cnps {
            cnp: 1,
            after_nak: u32::from(after_nak),
        };
        self.tally.totals.cnp_after_nak += u64::from(after_nak);
        self.measure_slowed(&slowed, packet.time, after_nak);
        let class = match slowed {
            SlowedFlow::Known(at, how) => {
                self.charge((at, Some(packet.time)), bin, cnps, how);
                CnpAttribution::Charged(self.table.cold[at].id)
            }
            SlowedFlow::Perhaps(sole) => CnpAttribution::Waiting(sole),
        };
        let ObservedCnp::Of(place) = observed else {
            if matches!(class, CnpAttribution::Waiting(_)) {
                self.tally.totals.cnp_unattributed += 1;
            }
            return;
        };
        let (is_new, class) = self.notifications.receivers.add(place, bin, cnps, class);
        if class == CnpAttribution::Unattributed {
            self.tally.totals.cnp_unattributed += 1;
        }
        if is_new && !self.bins.notified_at(bin, place) {
            // The bin has been emitted: its events come after it.
            let mut events = Vec::new();
            self.notifications.tell(&self.bins, place, bin, &mut events);
            self.bins.events.extend(events);
        }
    }

    /// A notification at `time` slows a flow: what follows on it is measured.
    fn measure_slowed(&mut self, slowed: &SlowedFlow, time: Time, after_nak: bool) {
        let (at, is_sure) = match slowed {
            SlowedFlow::Known(at, _) => (*at, true),
            SlowedFlow::Perhaps(Some((at, _))) => (*at, false),
            SlowedFlow::Perhaps(None) => return,
        };
        let sure = self.limits.legal.as_ref().filter(|_| is_sure);
        self.table.measure(at, time, sure, after_nak);
        if is_sure && !after_nak {
            self.divide_notification(at, time);
        }
        self.limits.slow_down(&mut self.table, &self.bins, at, time);
    }

    /// Charges notifications of a bin to the flow that they slow; `time`: when a single one came.
    fn charge(&mut self, (at, time): (FlowSlot, Option<Time>), bin: u64, cnps: Cnps, how: Attribution) {
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
    pub(super) fn explain_notification(&mut self, at: FlowSlot, time: Time) {
        let peer = self.table.hot[at].peer;
        if peer == FlowSlot::NONE {
            return;
        }
        let congestion = self.table.cold[peer].congestion.as_mut();
        let Some(notified) = congestion.and_then(|congestion| congestion.explain_by_nak(time, BEFORE_NAK))
        else {
            return;
        };
        self.tally.totals.cnp_after_nak += 1;
        let bin = match self.bins.place(notified) {
            BinPlace::Earlier(bin) => bin,
            BinPlace::Current | BinPlace::Later(_) => self.bins.current(),
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
        let Some(place) = self.notifications.receivers.waiting_of(&receiver) else {
            return;
        };
        if !self.table.has_packets(peer) {
            return;
        }
        let id = self.table.cold[peer].id;
        for part in 0..self.notifications.receivers.parts(place).len() {
            let waiting = self.notifications.receivers.parts(place)[part];
            if matches!(waiting.class, CnpAttribution::Waiting(_)) {
                self.charge((peer, None), waiting.bin, waiting.cnps, Attribution::Pairing);
                self.notifications
                    .receivers
                    .decide(place, part, CnpAttribution::Charged(id));
            }
        }
        self.notifications.receivers.forget(place);
    }

    /// The end, all flows still open: what waits is charged to the flow that alone was marked, if it is there.
    pub(super) fn end_waiting(&mut self) {
        for place in self.notifications.receivers.all_waiting() {
            self.settle_sole(place, None, true);
        }
    }

    /// Charges waiting notifications of one bin, or of all, to the flow that alone was marked.
    fn settle_sole(&mut self, place: usize, bin: Option<u64>, over: bool) {
        for part in 0..self.notifications.receivers.parts(place).len() {
            let waiting = self.notifications.receivers.parts(place)[part];
            let CnpAttribution::Waiting(sole) = waiting.class else {
                continue;
            };
            if bin.is_some_and(|bin| bin != waiting.bin) {
                continue;
            }
            let receiver = self.notifications.receivers.receiver(place);
            let sole = sole.filter(|(at, id)| {
                self.table.may_be_meant(*at, *id)
                    && self.notifications.receivers.is_meant_alone(receiver.tap, *id)
                    && !self.table.is_answered(*at, &receiver)
            });
            if let Some((at, id)) = sole {
                self.charge((at, None), waiting.bin, waiting.cnps, Attribution::Sole);
                self.notifications
                    .receivers
                    .decide(place, part, CnpAttribution::Charged(id));
            } else if over {
                self.tally.totals.cnp_unattributed += u64::from(waiting.cnps.cnp);
                self.notifications
                    .receivers
                    .decide(place, part, CnpAttribution::Unattributed);
            }
        }
        self.notifications.receivers.forget(place);
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
            self.notifications.tell(&self.bins, place, bin, &mut events);
        }
        self.bins.add_to_oldest(events);
    }
}
