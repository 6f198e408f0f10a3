//! Packets that were sent again after a hole or a silence. They may have been lost, or only overtaken: the answer to the retransmission
//! decides. A responder answers a retransmission at once, by a SACK that names it (OCP-MRC-1.0, 7.5.2); where another SACK acknowledged
//! the packet before, an earlier sending had arrived. Where the answer comes sooner than the longest round trip, nothing decides.

use roce_model::{EventKind, EventRow, Span, Time};

use super::Connection;
use super::waiting::WaitingPacket;
use crate::mrc::sent::{Slot, SlotFlags, Transmission};

/// Packets whose loss is likely and not certain, at most. About the oldest one beyond it is decided at once.
const MAX_WAITING: usize = 512;
/// SACKs after which the shortest time from a packet to its SACK is known.
const MIN_SACKS: u64 = 20;
/// A loss is certain after this many of the longest round trips: until then paths show how long theirs take.
const PATIENCE: u64 = 8;

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
            since: now,
        });
    }

    /// A SACK names a packet that was sent again: by the stamp that it reflects, or by its path.
    pub(super) fn name(&mut self, position: u64, by: (Option<u16>, Option<u16>), now: Time) {
        let Some(slot) = self.sent.get(position).copied() else {
            return;
        };
        let Some(latest) = slot.sent.filter(|_| slot.flags.has(SlotFlags::AGAIN)) else {
            return;
        };
        let after = now.since(latest.time);
        let named = which(&slot, by.0, by.1);
        if named == NamedSending::Earlier {
            if !slot.flags.has(SlotFlags::SPURIOUS) && slot.refused.is_none() {
                self.was_needless(position, after);
            }
        } else if slot.flags.has(SlotFlags::UNDECIDED) {
            let is_early = named == NamedSending::Unknown && self.is_too_soon(after);
            if is_early || slot.flags.has(SlotFlags::ANSWERED) {
                self.was_needless(position, after);
            } else {
                self.wait_for_certainty(position, now);
            }
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
            self.was_needless(position, after);
        } else {
            self.wait_for_certainty(position, now);
        }
    }

    /// A first sending comes after its retransmission.
    pub(super) fn came_late(&mut self, position: u64, now: Time) {
        let slot = self.sent.get(position).copied().unwrap_or_default();
        if let Some(latest) = slot.sent.filter(|_| slot.flags.has(SlotFlags::UNDECIDED)) {
            self.was_needless(position, now.since(latest.time));
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
            self.withdraw(position);
        }
        is_earlier
    }

    /// True if no answer to a packet comes so soon after it.
    fn is_too_soon(&self, after: Span) -> bool {
        let knows_times = self.counts.sacks >= MIN_SACKS && self.taps.len() == 1;
        knows_times && self.shortest.is_some_and(|shortest| after < shortest)
    }

    /// True if the sending in doubt would have been answered in time, had it arrived.
    fn had_time(&self, waiting: &WaitingPacket) -> bool {
        let longest = self.longest;
        waiting
            .before
            .is_none_or(|before| waiting.since.since(before.time) >= longest)
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
            // Where a path takes longer, the packet may have come behind its retransmission, and nothing has to say so.
            if self.had_time(&oldest) {
                self.lose(&oldest, now, events);
            }
        }
    }

    /// Decides what is left at the end.
    pub(in crate::mrc) fn stop_all_waiting(&mut self, events: &mut Vec<EventRow>) {
        self.stop_waiting(Time(u64::MAX), events);
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

    /// The sending before the latest one had arrived, as an answer shows some time after that.
    fn was_needless(&mut self, position: u64, after: Span) {
        self.withdraw(position);
        let payload = self.sent.get(position).map_or(0, |slot| slot.payload);
        self.note_spurious(position, payload.into());
        self.skew = self.skew.max(Some(after));
    }

    /// The doubt about the sending before the latest one is gone.
    fn withdraw(&mut self, position: u64) {
        let Some(slot) = self.sent.get_mut(position) else {
            return;
        };
        let waits = slot.flags.has(SlotFlags::UNDECIDED) && slot.flags.has(SlotFlags::WAITS);
        slot.flags.set(SlotFlags::UNDECIDED, false);
        let waiting = &mut self.waiting;
        let at = waiting.iter().rposition(|waiting| waiting.position == position);
        if let Some(at) = at.filter(|_| waits) {
            waiting.remove(at);
        }
    }
}
