//! One connection: packets and answers in, what became of each packet.

mod answers;
mod undecided;
mod waiting;

use std::collections::VecDeque;

use roce_model::{Address, EventKind, EventRow, MrcIdsOrder, Span, TapId, Time};

use super::causes::{Cause, Union};
use super::messages::{MessageEnds, Messages};
use super::paths::{PATIENCE, Paths};
use super::seen::SeenMrc;
use super::sent::{SentPackets, Slot, SlotFlags, Transmission};
use super::sighting::{Sighting, SightingKind, Subject};
use waiting::WaitingPacket;

/// Probes that wait for an answer, at most. The oldest counts as unanswered.
const MAX_PROBES: usize = 64;
/// The latest control packets, by which those that a second tap saw are found.
const RECENT_CONTROLS: usize = 64;
/// Percent of the PSNs that a tap which sees all paths captures at least, whatever was lost before it.
pub(super) const NEARLY_ALL: u64 = 90;
/// Timeouts of one timer differ by less than this part of it.
const TIMER_SHARE: u64 = 100;
/// The unit of the local ACK timeout, which is 2^n of it (OCP-MRC-1.0).
const TIMER_UNIT: u64 = 1_024;
/// A mirror's copy follows its packet within this time.
const MAX_COPY: Span = Span(1_000_000);
/// No network delays a packet for longer.
const MAX_DELAY: Span = Span(10_000_000);
/// Maximum number of taps of a connection that are distinguished.
const MAX_TAPS: usize = 64;

/// Counts of a connection.
#[derive(Clone, Default, Debug)]
pub(super) struct MrcCounts {
    pub(super) packets: u64,
    pub(super) distinct: u64,
    pub(super) payload: u64,
    pub(super) again: u64,
    pub(super) again_bytes: u64,
    /// Retransmissions, by the place of their cause.
    pub(super) causes: [u64; Cause::PLACES],
    pub(super) lost: u64,
    /// Packets that were sent again, of which nothing shows if they were lost.
    pub(super) undecided: u64,
    /// Those of them whose path was not captured.
    pub(super) unplaced: u64,
    pub(super) trimmed: [u64; 2],
    pub(super) spurious: u64,
    pub(super) spurious_bytes: u64,
    pub(super) reordered: u64,
    pub(super) sacks: u64,
    pub(super) skip: u64,
    pub(super) avoid: u64,
    /// NACKs: trimmed, trimmed at the last hop, resources, window, failed, other.
    pub(super) refusals: [u64; 6],
    pub(super) window: Option<u32>,
    pub(super) penalty_max: u8,
    pub(super) penalties: u64,
    pub(super) out_of_order: u16,
    pub(super) probes: u64,
    pub(super) unanswered: u64,
}

/// A probe that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct OpenProbe {
    number: u16,
    path: Option<u16>,
    time: Time,
}

/// One direction of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) requestor: Address,
    pub(super) responder: Address,
    pub(super) requestor_qpn: Option<u32>,
    pub(super) responder_qpn: Option<u32>,
    /// UDP destination port: the highest one.
    pub(super) udp_port: u16,
    /// Bits of a PSN.
    pub(super) psn_bits: u32,
    /// The name of its data in events.
    pub(super) subject: Option<Subject>,
    pub(super) has_stamps: bool,
    pub(super) ids_order: MrcIdsOrder,
    pub(super) counts: MrcCounts,
    pub(super) paths: Paths,
    pub(super) messages: Messages,
    pub(super) sent: SentPackets,
    /// A position and its PSN: the highest one.
    reference: Option<(u64, u32)>,
    /// Lowest and highest position of captured data.
    pub(super) range: Option<(u64, u64)>,
    /// Everything up to it arrived.
    pub(super) cumulative: Option<u64>,
    /// The latest bitmap with its first position.
    bitmap: (u64, u64),
    probes: VecDeque<OpenProbe>,
    last_probe: Option<Time>,
    last_sack: Option<Time>,
    waiting: VecDeque<WaitingPacket>,
    /// Those of paths that may be slower than all that were measured: the end decides.
    held: Vec<WaitingPacket>,
    controls: VecDeque<(u32, TapId)>,
    data_taps: Vec<TapId>,
    pub(super) taps: Vec<TapId>,
    pub(super) longest: Span,
    /// By how much round trips of one path differ, at most.
    spread: Span,
    pub(super) shortest: Option<Span>,
    pub(super) skew: Option<Span>,
    /// The shortest time after which a packet was sent again in a silence: the local ACK timeout.
    timer: Option<Span>,
    /// Time until packets were sent again, by the place of their cause.
    pub(super) repair: [Union; Cause::PLACES],
    /// When data was last sent between its hosts, by any connection, unless a timer had it sent again. It waits in one queue for the port.
    pub(super) port_used: Option<Time>,
    /// Hop limits of data and answers.
    pub(super) data_hops: Option<u8>,
    pub(super) answer_hops: Option<u8>,
    pub(super) failed_at: Option<Time>,
    pub(super) first: Time,
    pub(super) last: Time,
    pub(super) last_data: Option<Time>,
}

impl Connection {
    pub(super) fn new(requestor: Address, responder: Address, psn_bits: u32) -> Self {
        Self {
            requestor,
            responder,
            requestor_qpn: None,
            responder_qpn: None,
            udp_port: 0,
            psn_bits,
            subject: None,
            has_stamps: false,
            ids_order: MrcIdsOrder::Unknown,
            counts: MrcCounts::default(),
            paths: Paths::default(),
            messages: Messages::default(),
            sent: SentPackets::default(),
            reference: None,
            range: None,
            cumulative: None,
            bitmap: (0, 0),
            probes: VecDeque::new(),
            last_probe: None,
            last_sack: None,
            waiting: VecDeque::new(),
            held: Vec::new(),
            controls: VecDeque::new(),
            data_taps: Vec::new(),
            taps: Vec::new(),
            longest: Span(0),
            spread: Span(0),
            shortest: None,
            skew: None,
            timer: None,
            port_used: None,
            repair: [Union::default(); Cause::PLACES],
            data_hops: None,
            answer_hops: None,
            failed_at: None,
            first: Time(u64::MAX),
            last: Time(0),
            last_data: None,
        }
    }

    /// True if answers alone have shown it.
    pub(super) const fn awaits_data(&self) -> bool {
        self.responder_qpn.is_none()
    }

    /// Taps that saw its data.
    pub(super) fn data_taps(&self) -> &[TapId] {
        &self.data_taps
    }

    /// An answer to the requestor's queue pair has these ids.
    pub(super) fn named(&mut self, qpn: u32, [first, second]: [u16; 2]) {
        self.requestor_qpn.get_or_insert(qpn);
        if self.ids_order == MrcIdsOrder::Unknown {
            let low = u32::from(first) == qpn & 0xffff;
            self.ids_order = match (first == second, low) {
                (true, _) => MrcIdsOrder::Equal,
                (_, true) => MrcIdsOrder::RequestorFirst,
                _ => MrcIdsOrder::SenderFirst,
            };
        }
    }

    /// Takes a packet of it.
    pub(super) fn observe(&mut self, seen: &Sighting, events: &mut Vec<EventRow>) -> SeenMrc {
        self.first = self.first.min(seen.time);
        self.last = self.last.max(seen.time);
        self.udp_port = self.udp_port.max(seen.udp_port);
        note_tap(&mut self.taps, seen.tap);
        if let SightingKind::Data { message, ends, stamp } = seen.what {
            return self.data(seen, (message, ends), stamp, events);
        }
        if self.is_seen_elsewhere(seen) {
            return SeenMrc::default();
        }
        match seen.what {
            SightingKind::Sack(sack) => self.sack(seen, &sack, events),
            SightingKind::Nack {
                reason,
                entropy,
                stamp,
            } => self.nack(seen, (reason, entropy, stamp), events),
            SightingKind::Acknowledge { syndrome } => {
                self.acknowledge(seen, syndrome);
                SeenMrc::default()
            }
            SightingKind::Probe { number } => {
                self.probe(number, self.paths.known(seen.carried), seen.time);
                SeenMrc::default()
            }
            SightingKind::Data { .. } | SightingKind::Other => SeenMrc::default(),
        }
    }

    /// True if another tap has seen this control packet.
    fn is_seen_elsewhere(&mut self, seen: &Sighting) -> bool {
        let (hash, tap) = (seen.hash, seen.tap);
        if self
            .controls
            .iter()
            .any(|(other, at)| *other == hash && *at != tap)
        {
            return true;
        }
        if self.controls.len() >= RECENT_CONTROLS {
            self.controls.pop_front();
        }
        self.controls.push_back((hash, tap));
        false
    }

    /// The position of a PSN: it counts on where PSNs wrap.
    fn position(&mut self, psn: u32) -> u64 {
        let Some((at, known)) = self.reference else {
            let first = (1 << 40) + u64::from(psn);
            self.reference = Some((first, psn));
            return first;
        };
        let unused = 32 - self.psn_bits;
        let apart = (psn.wrapping_sub(known) << unused).cast_signed() >> unused;
        let position = at.saturating_add_signed(apart.into());
        if position > at {
            self.reference = Some((position, psn));
        }
        position
    }

    /// The PSN of a position.
    fn psn_of(&self, position: u64) -> u32 {
        u32::try_from(position & ((1 << self.psn_bits) - 1)).unwrap_or_default()
    }

    /// True if a SACK said that a position arrived.
    fn has_arrived(&self, position: u64) -> bool {
        self.cumulative.is_some_and(|all| position <= all)
            || self
                .sent
                .get(position)
                .is_some_and(|slot| slot.flags.has(SlotFlags::ARRIVED))
    }

    fn data(
        &mut self,
        seen: &Sighting,
        (message, ends): (u16, MessageEnds),
        stamp: Option<u16>,
        events: &mut Vec<EventRow>,
    ) -> SeenMrc {
        note_tap(&mut self.data_taps, seen.tap);
        self.has_stamps |= stamp.is_some();
        self.data_hops.get_or_insert(seen.hop_limit);
        self.subject.get_or_insert(seen.subject);
        let position = self.position(seen.psn);
        let path = self.paths.of_data(seen.carried);
        let sending = Transmission {
            time: seen.time,
            tap: seen.tap,
            path,
            stamp,
        };
        let known = self.sent.get(position).copied();
        let again = seen.is_again;
        let is_asked = known.is_some_and(|slot| slot.refused.is_some() || slot.flags.has(SlotFlags::IS_HOLE));
        let is_known = |sent: &Transmission| {
            (sent.path, sent.stamp) == (path, stamp)
                && (sent.tap != seen.tap || self.is_copy(sent, (again, is_asked), seen.time))
        };
        let was_again = known.is_some_and(|slot| slot.flags.has(SlotFlags::AGAIN));
        if was_again == again && known.and_then(|slot| slot.sent).as_ref().is_some_and(is_known) {
            // Another tap has seen it, or this one shows it twice.
            return SeenMrc::default();
        }
        if was_again && !again {
            let before = known.and_then(|slot| slot.before);
            return self.overtaken(seen, position, path, before.as_ref().is_some_and(is_known));
        }
        let is_again = again || known.is_some_and(|slot| slot.sent.is_some());
        let payload = seen.payload_bytes;
        self.counts.packets += 1;
        self.counts.payload += u64::from(payload);
        let mut cause = None;
        if is_again {
            self.wait_for_certainty(position, seen.time);
            cause = Some(self.again(seen, position, known.as_ref(), sending, events));
        }
        if cause != Some(Cause::Timeout) {
            self.port_used = self.port_used.max(Some(seen.time));
        }
        if known.is_none_or(|slot| slot.sent.is_none()) {
            self.messages.sent(message, ends, position, seen.time);
        }
        self.last_data = self.last_data.max(Some(seen.time));
        self.enter(position, sending, (payload, is_again, seen.is_trimmed));
        let all = self.counts.packets;
        if let Some(path) = self.paths.get_mut(path) {
            path.sent += 1;
            path.again += u64::from(is_again);
            path.outer = path.outer.or(seen.outer);
            path.tap.get_or_insert(seen.tap);
            path.last_sent = path.last_sent.max(Some(seen.time));
            path.all_at_last = all;
        }
        SeenMrc {
            is_data: true,
            is_again,
            ..SeenMrc::default()
        }
    }

    /// True if a packet that differs in nothing from one at the same tap is a copy of it. A requestor sends a packet once. It sends it again with
    /// another stamp, or not sooner than an answer has asked for it.
    fn is_copy(&self, sent: &Transmission, (again, is_asked): (bool, bool), now: Time) -> bool {
        let after = now.since(sent.time);
        let is_sooner = || !is_asked && self.is_too_soon(after);
        after <= MAX_COPY && (!again || sent.stamp.is_some() || is_sooner())
    }

    /// True if a first sending shows that the queue pairs were set up again: its PSN was sent before a silence that is longer than any network
    /// delays a packet, and nothing asks for it.
    pub(super) fn ends_before(&mut self, seen: &Sighting) -> bool {
        let is_first = matches!(seen.what, SightingKind::Data { .. }) && !seen.is_again;
        let Some((_, highest)) = self.range.filter(|_| is_first) else {
            return false;
        };
        let position = self.position(seen.psn);
        seen.time.since(self.last) > MAX_DELAY
            && position <= highest
            && (self.counts.sacks == 0 || self.has_arrived(position))
    }

    /// A first sending that its own retransmission has overtaken. Behind that tap it was not lost.
    fn overtaken(&mut self, seen: &Sighting, position: u64, path: u16, is_known: bool) -> SeenMrc {
        if is_known {
            return SeenMrc::default();
        }
        self.counts.packets += 1;
        self.counts.payload += u64::from(seen.payload_bytes);
        if let Some(path) = self.paths.get_mut(path) {
            path.sent += 1;
            path.tap.get_or_insert(seen.tap);
            path.last_sent = path.last_sent.max(Some(seen.time));
        }
        if !seen.is_trimmed {
            self.came_late(position, seen.time);
        }
        SeenMrc {
            is_data: true,
            ..SeenMrc::default()
        }
    }

    /// Keeps a sending. What SACKs had acknowledged before, arrived.
    fn enter(
        &mut self,
        position: u64,
        sending: Transmission,
        (payload, is_again, is_trimmed): (u32, bool, bool),
    ) {
        let arrived = self.has_arrived(position);
        let (low, high) = self.range.unwrap_or((position, position));
        self.range = Some((low.min(position), high.max(position)));
        let Some(slot) = self.sent.enter(position) else {
            return;
        };
        self.counts.distinct += u64::from(slot.sent.is_none());
        slot.flags.set(
            SlotFlags::OFTEN,
            slot.before.is_some() || slot.flags.has(SlotFlags::OFTEN),
        );
        slot.before = slot.sent;
        slot.sent = Some(sending);
        slot.payload = payload;
        slot.refused = None;
        slot.flags
            .set(SlotFlags::AGAIN, is_again || slot.flags.has(SlotFlags::AGAIN));
        slot.flags.set(SlotFlags::IS_HOLE, false);
        slot.flags.set(SlotFlags::TRIMMED, is_trimmed);
        if arrived {
            let was_known = slot.flags.has(SlotFlags::ARRIVED);
            slot.flags.set(SlotFlags::ARRIVED, true);
            self.sent.settle(position);
            if !was_known && !is_again {
                self.count_arrival(position, sending, self.last);
            }
        }
    }

    /// A captured packet arrived for the first time.
    fn count_arrival(&mut self, position: u64, sending: Transmission, now: Time) {
        if let Some(path) = self.paths.get_mut(sending.path) {
            path.arrived += 1;
            path.last_arrived = path.last_arrived.max(Some(sending.time));
        }
        self.messages.arrived(position, now);
    }

    /// A packet is sent again: why, and what became of the sending before.
    fn again(
        &mut self,
        seen: &Sighting,
        position: u64,
        known: Option<&Slot>,
        sending: Transmission,
        events: &mut Vec<EventRow>,
    ) -> Cause {
        let slot = known.copied().unwrap_or_default();
        let cause = self.cause(&slot, sending.time);
        let bytes = u64::from(seen.payload_bytes);
        let counts = &mut self.counts;
        counts.again += 1;
        counts.again_bytes += bytes;
        counts.causes[cause.place()] += 1;
        events.push(EventRow {
            value: Some(bytes),
            detail: Some(cause.name().into()),
            ..seen.event(EventKind::MrcRetransmit)
        });
        if let Some(before) = slot.sent {
            self.repair[cause.place()].add(before.time, sending.time);
            if cause == Cause::Timeout {
                let after = sending.time.since(before.time);
                self.timer = Some(self.timer.map_or(after, |timer| timer.min(after)));
            }
        }
        if self.has_arrived(position) {
            self.note_spurious(position, bytes);
        } else if matches!(cause, Cause::Hole | Cause::Timeout) && !slot.flags.has(SlotFlags::TRIMMED) {
            self.doubt(position);
        }
        cause
    }

    fn note_spurious(&mut self, position: u64, bytes: u64) {
        self.counts.spurious += 1;
        self.counts.spurious_bytes += bytes;
        if let Some(slot) = self.sent.get_mut(position) {
            slot.flags.set(SlotFlags::SPURIOUS, true);
        }
    }

    /// The cause of a retransmission, by what was captured since the sending before.
    fn cause(&self, slot: &Slot, now: Time) -> Cause {
        if let Some(reason) = slot.refused {
            return Cause::Refused(reason);
        }
        // A tap that sees a part of the paths sees a part of the NACKs and SACKs: nothing is said of a sending that it did not see.
        if slot.sent.is_none() && !self.is_covered(NEARLY_ALL) {
            return Cause::Unknown;
        }
        // A SACK makes its sender act as soon as the port is free. In a silence nothing but a timer does.
        let is_quiet = |last: Option<Time>| last.is_some_and(|last| now.since(last) > self.longest);
        let is_silent = self.shortest.is_some() && is_quiet(self.last_sack) && is_quiet(self.port_used);
        let is_hole = slot.flags.has(SlotFlags::IS_HOLE);
        let is_due = slot
            .sent
            .is_some_and(|before| self.is_timeout(now.since(before.time)));
        if is_hole && !is_due && (!is_silent || slot.sent.is_none()) {
            return Cause::Hole;
        }
        let Some(since) = slot.sent.map(|before| before.time).or(self.last_data) else {
            return Cause::Unknown;
        };
        if self.last_probe.is_some_and(|probe| probe > since) {
            return Cause::Timeout;
        }
        if is_hole {
            return Cause::Timeout;
        }
        let is_long = self.shortest.is_some() && now.since(since).0 > 2 * self.longest.0;
        if is_long && slot.sent.is_some() && self.is_covered(NEARLY_ALL) {
            Cause::Timeout
        } else {
            Cause::Unknown
        }
    }

    /// True of the time between two sendings of a packet that a timer measures: SACKs that come before it expires say nothing then. It is that of a
    /// timeout before, or one that a queue pair can have, and many round trips; times of other causes lie so close above one of these in 1 of 70.
    fn is_timeout(&self, after: Span) -> bool {
        let is_equal = |timer: u64| after.0 >= timer && after.0 - timer <= timer / TIMER_SHARE;
        let possible = || {
            (after.0 / TIMER_UNIT)
                .checked_ilog2()
                .map(|power| TIMER_UNIT << power)
        };
        let is_long = self.shortest.is_some() && after.0 > PATIENCE * self.longest.0;
        self.timer.is_some_and(|timer| is_equal(timer.0)) || is_long && possible().is_some_and(is_equal)
    }

    /// True if at least `percent` of the PSNs between the lowest and the highest captured one were captured.
    pub(super) fn is_covered(&self, percent: u64) -> bool {
        let all = self.range.map_or(0, |(low, high)| high - low + 1);
        all > 0 && self.counts.distinct.saturating_mul(100) >= all.saturating_mul(percent)
    }

    fn probe(&mut self, number: u16, path: Option<u16>, time: Time) {
        self.counts.probes += 1;
        self.last_probe = self.last_probe.max(Some(time));
        if self.probes.len() >= MAX_PROBES
            && let Some(oldest) = self.probes.pop_front()
        {
            self.count_unanswered(&oldest, time);
        }
        self.probes.push_back(OpenProbe { number, path, time });
    }

    fn count_unanswered(&mut self, probe: &OpenProbe, now: Time) {
        self.counts.unanswered += 1;
        let is_mute = now.since(probe.time).0 > PATIENCE * self.longest.0;
        if let Some(path) = probe.path.and_then(|path| self.paths.get_mut(path)) {
            path.unanswered += 1;
            path.is_mute |= is_mute;
        }
    }

    /// Probes that nothing has answered, although there was time for it.
    pub(super) fn close_probes(&mut self) {
        for probe in core::mem::take(&mut self.probes) {
            if self.last.since(probe.time).0 > 2 * self.longest.0 {
                self.count_unanswered(&probe, self.last);
            }
        }
    }
}

/// Adds a tap to a list.
fn note_tap(taps: &mut Vec<TapId>, tap: TapId) {
    if taps.last() != Some(&tap) && !taps.contains(&tap) && taps.len() < MAX_TAPS {
        taps.push(tap);
    }
}
