//! Packets that were sent again after a hole or a silence. They may have been lost, or only overtaken. An answer proves the loss that shows
//! the packet as missing when its sending is older than round trips on its path are. A responder answers a retransmission at once, by a SACK that
//! names it (OCP-MRC-1.0, 7.5.2); where another SACK acknowledged the packet before, or one names an earlier sending, that had arrived.
//! Nothing shows of all others if they were lost: they are counted as undecided.

use roce_model::{EventKind, EventRow, Span, Time};

use super::Connection;
use super::waiting::WaitingPacket;
use crate::mrc::paths::{PATIENCE, Path, SOME_SAMPLES};
use crate::mrc::sent::{Slot, SlotFlags, Transmission};

/// Packets whose loss is likely and not certain, at most. About the oldest one beyond it is decided at once.
const MAX_WAITING: usize = 512;
/// SACKs after which the shortest time from a packet to its SACK is known.
const MIN_SACKS: u64 = 20;

/// A packet that takes longer than all others of its path by so many times of what those differ was lost: what was measured is a sample, and the
/// next one may take longer. Many samples come close to the longest time.
const MARGIN: u64 = 2;
/// SACKs of a connection that show by how much round trips of one path differ.
const MANY_SACKS: u64 = 128;
/// Round trips of a path that are many.
const MANY_SAMPLES: u64 = 32;

/// The sending of a packet that an answer names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NamedSending {
    Latest,
    Earlier,
    Unknown,
}

/// The sending that an answer names by a stamp, or else by a path: another EV is taken for each.
fn which(slot: &Slot, stamp: Option<u16>, path: Option<u16>) -> NamedSending {
    let Some(latest) = slot.sent else {
        return NamedSending::Unknown;
    };
    let has_path = |sending: Transmission| sending.path == latest.path;
    let has_stamp = |sending: Transmission| sending.stamp == latest.stamp;
    let is_latest = if stamp.is_some() && latest.stamp.is_some() && !slot.before.is_some_and(has_stamp) {
        latest.stamp == stamp
    } else if path.is_some() && !slot.before.is_some_and(has_path) {
        Some(latest.path) == path
    } else {
        return NamedSending::Unknown;
    };
    if is_latest {
        NamedSending::Latest
    } else {
        NamedSending::Earlier
    }
}

impl Connection {
    /// A packet is sent again after a hole or a silence: the answer decides about the sending before.
    pub(super) fn doubt(&mut self, position: u64) {
        if let Some(slot) = self.sent.enter(position) {
            slot.flags.set(SlotFlags::UNDECIDED, true);
            slot.flags.set(SlotFlags::ANSWERED, false);
            slot.flags.set(SlotFlags::WAITS, false);
        }
    }

    /// The loss of a packet that is in doubt is likely from now on: its retransmission was answered, or it is sent once more.
    pub(super) fn wait_for_certainty(&mut self, position: u64, now: Time) {
        let Some(slot) = self.sent.get_mut(position) else {
            return;
        };
        let is_new = slot.flags.has(SlotFlags::UNDECIDED) && !slot.flags.has(SlotFlags::WAITS);
        let Some(latest) = slot.sent.filter(|_| is_new) else {
            return;
        };
        slot.flags.set(SlotFlags::WAITS, true);
        self.waiting.push_back(WaitingPacket {
            position,
            before: slot.before,
            latest,
            missing: slot.missing,
            payload: slot.payload,
            since: now,
        });
    }

    /// A SACK names a packet that was sent again: by the stamp that it reflects, or by its path.
    pub(super) fn name(&mut self, position: u64, by: (Option<u16>, Option<u16>), now: Time) {
        let Some(slot) = self.sent.get(position).copied() else {
            return self.name_forgotten(position, by, now);
        };
        let Some(latest) = slot.sent.filter(|_| slot.flags.has(SlotFlags::AGAIN)) else {
            return;
        };
        let after = now.since(latest.time);
        let named = which(&slot, by.0, by.1);
        if named == NamedSending::Earlier {
            if !slot.flags.has(SlotFlags::SPURIOUS) && slot.refused.is_none() {
                let arrived = self.sending_named(position, by.0, by.1);
                self.was_needless(position, arrived, after);
            }
        } else if slot.flags.has(SlotFlags::UNDECIDED) {
            let is_early = named == NamedSending::Unknown && self.is_too_soon(after);
            let is_acknowledged = slot.flags.has(SlotFlags::ANSWERED)
                && !slot
                    .before
                    .is_some_and(|before| self.is_proven_lost(before, slot.missing));
            if is_early || is_acknowledged {
                self.was_needless(position, None, after);
            } else {
                self.wait_for_certainty(position, now);
            }
        }
    }

    /// A SACK names a packet so late that its place is another's: where its loss is likely, that may be the sending in doubt.
    fn name_forgotten(&mut self, position: u64, by: (Option<u16>, Option<u16>), now: Time) {
        if let Some((_, highest)) = self.range.filter(|(lowest, _)| position >= *lowest) {
            self.sent.reach(highest.saturating_sub(position));
        }
        let all = self.waiting.iter().chain(&self.held);
        let found = all.rev().find(|waiting| waiting.position == position).copied();
        let Some(waiting) = found else { return };
        let slot = Slot {
            sent: Some(waiting.latest),
            before: waiting.before,
            ..Slot::default()
        };
        let arrived = self.sending_named(position, by.0, by.1);
        if arrived.is_some() && which(&slot, by.0, by.1) == NamedSending::Earlier {
            self.take_back(position, waiting.latest.time, arrived);
            self.counts.spurious += 1;
            self.counts.spurious_bytes += u64::from(waiting.payload);
            self.skew = self.skew.max(Some(now.since(waiting.latest.time)));
        }
    }

    /// An answer acknowledges a packet without naming it.
    pub(super) fn answer_unnamed(&mut self, position: u64, is_sack: bool, now: Time) {
        let Some(slot) = self.sent.get_mut(position) else {
            return;
        };
        let Some(latest) = slot.sent.filter(|_| slot.flags.has(SlotFlags::UNDECIDED)) else {
            return;
        };
        let is_named = slot.flags.has(SlotFlags::WAITS);
        slot.flags.set(SlotFlags::ANSWERED, is_sack && !is_named);
        let after = now.since(latest.time);
        if self.is_too_soon(after) {
            self.was_needless(position, None, after);
        } else {
            self.wait_for_certainty(position, now);
        }
    }

    /// A first sending comes after its retransmission.
    pub(super) fn came_late(&mut self, position: u64, now: Time) {
        let slot = self.sent.get(position).copied().unwrap_or_default();
        if let Some(latest) = slot.sent.filter(|_| slot.flags.has(SlotFlags::UNDECIDED)) {
            self.was_needless(position, None, now.since(latest.time));
        }
    }

    /// A NACK refuses a packet. True if it is about a sending before the latest one, which was trimmed then, and not lost.
    pub(super) fn refuses_earlier(&mut self, position: u64, stamp: Option<u16>, path: Option<u16>) -> bool {
        let Some(slot) = self.sent.get_mut(position) else {
            return false;
        };
        let is_earlier =
            slot.flags.has(SlotFlags::AGAIN) && which(slot, stamp, path) == NamedSending::Earlier;
        if is_earlier {
            let trimmed = self.sending_named(position, stamp, path);
            self.withdraw(position, trimmed);
        }
        is_earlier
    }

    /// True if no answer to a packet comes so soon after it.
    pub(super) fn is_too_soon(&self, after: Span) -> bool {
        let knows_times = self.counts.sacks >= MIN_SACKS && self.taps.len() == 1;
        knows_times && self.shortest.is_some_and(|shortest| after < shortest)
    }

    /// True if an answer shows a packet as missing when it was older than round trips on its path are, with a margin.
    fn is_proven_lost(&self, sending: Transmission, missing: Option<Time>) -> bool {
        let Some(age) = missing.map(|missing| missing.since(sending.time).0) else {
            return false;
        };
        let Some(path) = self.paths.list.get(usize::from(sending.path)) else {
            return age >= PATIENCE * self.longest.0;
        };
        match (path.samples, path.within) {
            (1.., _) => age > self.latest_on(path),
            // No SACK names a packet of it, and one came in less than this time.
            (0, Some(within)) => age > within.0 + (MARGIN + 1) * self.spread.0,
            // It may be slower than all that were measured, unless its probe was not answered.
            (0, None) => age >= self.longest.0 && path.is_mute || age >= PATIENCE * self.longest.0,
        }
    }

    /// The longest time that a round trip on a path may take, in ns. Its own ones tell, or those of all paths together: by how much the longest
    /// and the shortest one of a path differ.
    fn latest_on(&self, path: &Path) -> u64 {
        let own = path.longest.0 - path.shortest.0;
        let by_own = match path.samples {
            MANY_SAMPLES.. => path.longest.0 + own / 2,
            SOME_SAMPLES.. => path.longest.0 + MARGIN * own,
            _ => u64::MAX,
        };
        let spread = self.spread.0;
        let margin = if self.counts.sacks >= MANY_SACKS {
            spread / 2
        } else {
            spread
        };
        by_own.min((path.shortest.0 + spread + margin).max(path.longest.0))
    }

    /// True if more answers may prove a loss.
    fn may_be_proven(&self, sending: Transmission, missing: Option<Time>) -> bool {
        let path = self.paths.list.get(usize::from(sending.path));
        let known = path.and_then(|path| Some(path.longest).filter(|_| path.samples > 0).or(path.within));
        missing.is_some_and(|missing| missing.since(sending.time) >= known.unwrap_or(self.longest))
    }

    /// Decides about those that have waited long enough.
    pub(super) fn stop_waiting(&mut self, now: Time, events: &mut Vec<EventRow>) {
        let patience = Span(PATIENCE * self.longest.0);
        while let Some(oldest) = self.waiting.front().copied() {
            if now.since(oldest.since) <= patience && self.waiting.len() <= MAX_WAITING {
                return;
            }
            self.waiting.pop_front();
            if let Some(slot) = self.sent.get_mut(oldest.position)
                && slot.sent.is_some_and(|sent| sent.time == oldest.latest.time)
            {
                slot.flags.set(SlotFlags::UNDECIDED, false);
            }
            // Where a path takes longer, the packet may have come behind its retransmission, and nothing has to say so. What a tap at the
            // receiver has not seen did not come there.
            let is_proven = |before| self.is_proven_lost(before, oldest.missing);
            let may_be = |before| self.may_be_proven(before, oldest.missing);
            if oldest.before.is_none_or(is_proven) {
                self.lose(&oldest, now, events);
            } else if oldest.before.is_some_and(may_be) && self.held.len() < MAX_WAITING {
                self.held.push(oldest);
            } else {
                self.counts.undecided += 1;
            }
        }
    }

    /// Decides what is left at the end, when it is known which paths were measured and which probes were not answered.
    pub(in crate::mrc) fn stop_all_waiting(&mut self, events: &mut Vec<EventRow>) {
        self.stop_waiting(Time(u64::MAX), events);
        self.close_probes();
        for held in core::mem::take(&mut self.held) {
            if held
                .before
                .is_some_and(|before| self.is_proven_lost(before, held.missing))
            {
                self.lose(&held, self.last, events);
            } else {
                self.counts.undecided += 1;
            }
        }
    }

    /// The sending in doubt was lost.
    fn lose(&mut self, waiting: &WaitingPacket, now: Time, events: &mut Vec<EventRow>) {
        self.counts.lost += 1;
        let path = waiting.before.and_then(|before| {
            let path = self.paths.get_mut(before.path)?;
            path.lose(before.time, waiting.latest.time);
            Some(before.path)
        });
        self.counts.unplaced += u64::from(path.is_none());
        let Some(subject) = self.subject else { return };
        events.push(EventRow {
            time: now.min(self.last),
            kind: EventKind::MrcLoss,
            tap: waiting.latest.tap,
            psn: Some(self.psn_of(waiting.position)),
            value: path.map(u64::from),
            ..subject.event()
        });
    }

    /// A sending before the latest one had arrived, as an answer shows some time after that: the one that is given, or nothing says which.
    fn was_needless(&mut self, position: u64, arrived: Option<Transmission>, after: Span) {
        self.withdraw(position, arrived);
        let payload = self.sent.get(position).map_or(0, |slot| slot.payload);
        self.note_spurious(position, payload.into());
        self.skew = self.skew.max(Some(after));
    }

    /// The doubt about a sending that came is gone: the one that is given, or that before the latest one. Of a packet that was lost twice the
    /// other loss remains.
    fn withdraw(&mut self, position: u64, came: Option<Transmission>) {
        let Some(slot) = self.sent.get_mut(position) else {
            return;
        };
        let before = slot.before.map(|before| before.time);
        if came.is_none_or(|came| Some(came.time) == before) {
            slot.flags.set(SlotFlags::UNDECIDED, false);
        }
        if let Some(latest) = slot.sent {
            self.take_back(position, latest.time, came);
        }
    }

    /// Takes back the likely loss of a sending that came, or of that before the latest one. Of sendings that were not captured nothing says which
    /// of them came.
    fn take_back(&mut self, position: u64, latest: Time, came: Option<Transmission>) {
        let is_other = |waiting: &WaitingPacket| {
            waiting.position != position
                || waiting.before.is_some_and(|before| match came {
                    Some(came) => before.time != came.time,
                    None => waiting.latest.time != latest,
                })
        };
        self.waiting.retain(is_other);
        self.held.retain(is_other);
    }

    /// The sending before the latest one that an answer names by a stamp, or else by a path.
    fn sending_named(&self, position: u64, stamp: Option<u16>, path: Option<u16>) -> Option<Transmission> {
        let all = self.waiting.iter().chain(&self.held);
        let likely = all.rev().filter(|waiting| waiting.position == position);
        let slot = self.sent.get(position);
        let mut sendings = slot
            .and_then(|slot| slot.before)
            .into_iter()
            .chain(likely.filter_map(|waiting| waiting.before));
        sendings.find(|sending| match (stamp, sending.stamp) {
            (Some(stamp), Some(known)) => stamp == known,
            _ => path == Some(sending.path),
        })
    }
}
