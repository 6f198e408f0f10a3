//! Answers: which packets a SACK says arrived, which it shows as holes, and what a NACK refuses.

use roce_model::{EventKind, EventRow, MrcSack, Span, TapId, Time};
use roce_wire::transport::uet::nack_name;

use super::{Connection, Sighting};
use crate::mrc::causes::{BEYOND_WINDOW, FAILED, MISSED, RESOURCES, TRIMMED, TRIMMED_LASTHOP};
use crate::mrc::paths::SOME_SAMPLES;
use crate::mrc::seen::SeenMrc;
use crate::mrc::sent::{SlotFlags, Transmission};

/// Advice of a SACK: the path of the named packet, which was marked, is to be skipped once.
const SKIP: u8 = 1;
/// The path is to be avoided.
const AVOID: u8 = 2;
/// Bits of a bitmap.
const BITS: u64 = 64;

/// The place of a reason among the counts of refusals.
fn refusal_place(reason: u8) -> usize {
    match reason {
        TRIMMED => 0,
        TRIMMED_LASTHOP => 1,
        reason if RESOURCES.contains(&reason) => 2,
        BEYOND_WINDOW => 3,
        FAILED => 4,
        _ => 5,
    }
}

impl Connection {
    /// A SACK. All PSNs up to the cumulative one arrived; bit i of the bitmap is the PSN at its offset + i, the lowest bit first
    /// (OCP-MRC-1.0, 7.5.5). PSNs between the two are not spoken of.
    pub(super) fn sack(&mut self, seen: &Sighting, sack: &MrcSack, events: &mut Vec<EventRow>) -> SeenMrc {
        let now = seen.time;
        self.answer_hops.get_or_insert(seen.hop_limit);
        let penalty = self.count_sack(sack);
        let cumulative = self.position(sack.cumulative);
        let stamp = sack
            .state
            .and_then(|state| state.stamp)
            .filter(|_| self.has_stamps);
        let named = cumulative.saturating_add_signed(i64::from(sack.named));
        let named = (!sack.answers_probe).then_some(named);
        let sending = named.and_then(|named| self.sending_of(named, stamp));
        if let (Some(sending), Some(entropy)) = (sending, sack.entropy) {
            self.paths.learn(sending.path, entropy);
        }
        let at = match sack.entropy {
            Some(entropy) => Some(self.paths.named(entropy)),
            None => sending.map(|sending| sending.path),
        };
        let on_path = || self.sending_on(named?, sack.entropy.and(at)?);
        let named_sending = sending.or_else(on_path);
        if let Some(sending) = named_sending {
            self.sample(sending, seen.tap, now);
        }
        let age = self.age_of_sack(named_sending, now);
        if let Some(path) = at.and_then(|at| self.paths.get_mut(at)) {
            path.sacks += 1;
            path.marked += u64::from(sack.advice == SKIP);
        }
        if sack.answers_probe {
            let number = sack.named.cast_unsigned();
            self.probes.retain(|probe| probe.number != number);
        }
        if let Some(named) = named {
            self.name(named, (stamp, at.filter(|_| sack.entropy.is_some())), now);
        }
        if self.cumulative.is_none_or(|known| cumulative > known) {
            self.arrive_until(cumulative, true, now);
        }
        if let Some(named) = named.filter(|named| *named > cumulative) {
            self.arrive(named, true, now);
        }
        let first = cumulative.saturating_add_signed(i64::from(sack.offset));
        let made = Time(now.0.saturating_sub(age.0));
        let holes = self.bitmap(first, sack.bitmap, (now, made));
        self.note_missing(cumulative, (first, sack), made);
        self.stop_waiting(now, events);
        self.last_sack = Some(now);
        SeenMrc {
            holes,
            is_skip: matches!(sack.advice, SKIP | AVOID),
            penalty,
            ..SeenMrc::default()
        }
    }

    /// How much older a SACK may be than the fastest one: by so much the round trip that it ends is longer than the shortest one on its path, or on
    /// any, where its path is not known well.
    fn age_of_sack(&self, named: Option<Transmission>, now: Time) -> Span {
        let trip = named.map_or(self.longest, |sending| now.since(sending.time));
        let path = named.and_then(|sending| self.paths.list.get(usize::from(sending.path)));
        let own = path
            .filter(|path| path.samples >= SOME_SAMPLES)
            .map(|path| path.shortest);
        let shortest = own.or(self.shortest).unwrap_or(trip);
        Span(trip.0.saturating_sub(shortest.0))
    }

    /// An acknowledgement of messages, which complete in their order: everything up to its PSN arrived. A NAK ends the connection.
    pub(super) fn acknowledge(&mut self, seen: &Sighting, syndrome: u8) {
        /// The bits that tell ACK, RNR NAK and NAK (IBTA table 45), and those of a NAK.
        const KIND: u8 = 0x60;
        match syndrome & KIND {
            0 => {
                let position = self.position(seen.psn);
                if self.cumulative.is_none_or(|known| position > known) {
                    self.arrive_until(position, false, seen.time);
                }
            }
            KIND => self.failed_at = Some(seen.time),
            _ => {}
        }
    }

    /// Notes that the first packet behind the cumulative one had not arrived. The answer to a probe says that of all packets that it
    /// speaks of, also of those above the last one that arrived.
    fn note_missing(&mut self, cumulative: u64, (first, sack): (u64, &MrcSack), now: Time) {
        self.is_missing(cumulative.saturating_add(1), now);
        let mut open = if sack.answers_probe { !sack.bitmap } else { 0 };
        while open != 0 {
            self.is_missing(first.saturating_add(open.trailing_zeros().into()), now);
            open &= open - 1;
        }
    }

    fn is_missing(&mut self, position: u64, now: Time) {
        let slot = self.sent.get_mut(position);
        if let Some(slot) = slot.filter(|slot| !slot.flags.has(SlotFlags::ARRIVED)) {
            slot.missing = slot.missing.max(Some(now));
        }
    }

    fn count_sack(&mut self, sack: &MrcSack) -> u8 {
        let counts = &mut self.counts;
        counts.sacks += 1;
        counts.skip += u64::from(sack.advice == SKIP);
        counts.avoid += u64::from(sack.advice == AVOID);
        if sack.window > 0 {
            counts.window = counts.window.max(Some(u32::from(sack.window) * 128));
        }
        let Some(state) = sack.state else {
            return 0;
        };
        counts.penalties += u64::from(state.penalty > 0);
        counts.penalty_max = counts.penalty_max.max(state.penalty);
        counts.out_of_order = counts.out_of_order.max(state.out_of_order);
        state.penalty
    }

    /// The sending that an answer means: the one with the reflected stamp, or the only one.
    fn sending_of(&self, position: u64, stamp: Option<u16>) -> Option<Transmission> {
        let slot = self.sent.get(position)?;
        if stamp.is_none() {
            return slot.sent.filter(|_| !slot.flags.has(SlotFlags::AGAIN));
        }
        [slot.sent, slot.before]
            .into_iter()
            .flatten()
            .find(|sending| sending.stamp == stamp)
    }

    /// The sending of a packet on a path, if only one went there.
    fn sending_on(&self, position: u64, path: u16) -> Option<Transmission> {
        let slot = self
            .sent
            .get(position)
            .filter(|slot| !slot.flags.has(SlotFlags::OFTEN))?;
        let mut on_path = [slot.sent, slot.before]
            .into_iter()
            .flatten()
            .filter(|sending| sending.path == path);
        on_path.next().filter(|_| on_path.next().is_none())
    }

    fn sample(&mut self, sending: Transmission, tap: TapId, now: Time) {
        let time = now.since(sending.time);
        if sending.tap != tap || time == Span(0) {
            return;
        }
        self.longest = self.longest.max(time);
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        if let Some(path) = self.paths.get_mut(sending.path) {
            self.spread = self.spread.max(path.sample(time));
        }
    }

    /// Everything up to a position arrived.
    fn arrive_until(&mut self, cumulative: u64, is_sack: bool, now: Time) {
        self.cumulative = Some(cumulative);
        let mut word = 0;
        while let Some(position) = self.sent.next_waiting(cumulative, &mut word) {
            self.arrive(position, is_sack, now);
            self.sent.settle(position);
        }
        self.messages.all_until(cumulative, now);
    }

    /// A packet arrived.
    fn arrive(&mut self, position: u64, is_sack: bool, now: Time) {
        let Some(slot) = self.sent.enter(position) else {
            return;
        };
        if slot.flags.has(SlotFlags::ARRIVED) {
            return;
        }
        slot.flags.set(SlotFlags::ARRIVED, true);
        let filled_alone = slot.flags.has(SlotFlags::WAS_HOLE)
            && !slot.flags.has(SlotFlags::AGAIN)
            && slot.refused.is_none();
        // A refused packet came again on another way, which was not captured.
        let sent = slot.sent.filter(|_| slot.refused.is_none());
        self.counts.reordered += u64::from(filled_alone);
        let is_first = !slot.flags.has(SlotFlags::AGAIN);
        self.answer_unnamed(position, is_sack, now);
        self.sent.settle(position);
        if let Some(sending) = sent {
            self.count_arrival(position, sending, now);
            if let Some(path) = self.paths.get_mut(sending.path).filter(|_| is_first) {
                let time = now.since(sending.time);
                path.within = Some(path.within.map_or(time, |within| within.min(time)));
            }
        }
    }

    /// The bitmap of a SACK that is heard and was made at these times; gives the number of new holes. A bit that the bitmap before had is known.
    fn bitmap(&mut self, first: u64, bitmap: u64, (now, made): (Time, Time)) -> u32 {
        let (known_first, known) = self.bitmap;
        let shift = first.checked_sub(known_first).filter(|shift| *shift < BITS);
        let mut fresh = bitmap & !shift.map_or(0, |shift| known >> shift);
        self.bitmap = (first, bitmap);
        while fresh != 0 {
            self.arrive(first.saturating_add(fresh.trailing_zeros().into()), true, now);
            fresh &= fresh - 1;
        }
        let Some(highest) = bitmap.checked_ilog2() else {
            return 0;
        };
        let mut holes = !bitmap & ((1 << highest) - 1);
        let mut new_holes = 0;
        while holes != 0 {
            let position = first.saturating_add(holes.trailing_zeros().into());
            holes &= holes - 1;
            if self.cumulative.is_some_and(|all| position <= all) {
                continue;
            }
            let Some(slot) = self.sent.enter(position) else {
                continue;
            };
            if !slot.flags.has(SlotFlags::ARRIVED) {
                new_holes += u32::from(!slot.flags.has(SlotFlags::WAS_HOLE));
                slot.flags.set(SlotFlags::WAS_HOLE, true);
                slot.flags.set(SlotFlags::IS_HOLE, true);
                slot.missing = slot.missing.max(Some(made));
            }
        }
        new_holes
    }

    /// A NACK: its reason, and the entropy and the stamp of what it refuses, where it repeats them.
    pub(super) fn nack(
        &mut self,
        seen: &Sighting,
        (reason, entropy, stamp): (u8, Option<u32>, Option<u16>),
        events: &mut Vec<EventRow>,
    ) -> SeenMrc {
        let place = refusal_place(reason);
        self.counts.refusals[place] += 1;
        if reason == FAILED {
            self.failed_at = Some(seen.time);
        }
        let position = self.position(seen.psn);
        let stamp = stamp.filter(|_| self.has_stamps);
        let sending = self.sending_of(position, stamp);
        let path = match (sending, entropy) {
            (Some(sending), Some(entropy)) => {
                self.paths.learn(sending.path, entropy);
                Some(sending.path)
            }
            (Some(sending), None) => Some(sending.path),
            (None, Some(entropy)) => Some(self.paths.named(entropy)),
            (None, None) => None,
        };
        let is_trim = matches!(reason, TRIMMED | TRIMMED_LASTHOP);
        let kind = if is_trim {
            EventKind::MrcTrim
        } else {
            EventKind::MrcNack
        };
        events.push(EventRow {
            value: Some(u64::from(reason)),
            detail: (!is_trim).then(|| nack_name(reason).into()),
            ..seen.event(kind)
        });
        let is_earlier = self.refuses_earlier(position, stamp, path.filter(|_| entropy.is_some()));
        let Some(slot) = self.sent.enter(position) else {
            return SeenMrc::default();
        };
        if reason == MISSED {
            slot.flags.set(SlotFlags::WAS_HOLE, true);
            slot.flags.set(SlotFlags::IS_HOLE, true);
            slot.missing = slot.missing.max(Some(seen.time));
            return SeenMrc::default();
        }
        let is_first = is_earlier || slot.refused.is_none();
        if !is_earlier {
            slot.refused = Some(reason);
        }
        if is_trim && !is_earlier {
            slot.flags.set(SlotFlags::TRIMMED, true);
        }
        if is_trim && is_first {
            self.counts.trimmed[place] += 1;
            if let Some(path) = path.and_then(|path| self.paths.get_mut(path)) {
                path.trimmed[place] += 1;
            }
        }
        SeenMrc {
            is_trim,
            ..SeenMrc::default()
        }
    }
}
