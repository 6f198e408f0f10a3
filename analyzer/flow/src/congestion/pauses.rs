//! Pause frames become intervals: sender, priority, start and end (IEEE 802.1Q clause 36 and annex 31B
//! of IEEE 802.3), and the part of a bin that they took from a flow. `links` finds the direction in
//! which a pause stops traffic.

mod links;

use std::collections::HashMap;

use roce_model::{EventKind, EventRow, LinkAddresses, PauseFrame, Span, TapId, Time};
use roce_wire::{Address, MacAddress, PauseKind};

use links::Links;

/// Bits that are sent in one quantum (IEEE 802.3 31B.2).
const QUANTUM_BITS: u64 = 512;
/// Senders of pause frames that are followed, in all and at one tap: a link has two ends, a mirrored switch some ports.
/// Frames of others are counted, and no more.
const MAX_SENDERS: usize = 1024;
/// The class of a pause of the whole link; those below are the priorities of PFC.
const LINK: u8 = 8;
const CLASSES: usize = 9;
/// Assumed speed of a link when it is unknown, only to separate one pause from the next: RoCE runs at 10
/// Gb/s or more, and slower links make longer pauses.
const SLOWEST: u64 = 10_000_000_000;

/// The pauses at all taps. Everything is bounded: link addresses can be forged.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// In bit/s. Without it the end of a pause is known only from the frame that ends it.
    link_rate: Option<u64>,
    senders: Vec<Sender>,
    places: HashMap<(TapId, MacAddress), usize, foldhash::fast::RandomState>,
    /// By class, the senders with a pause in the current bin.
    active: [Vec<usize>; CLASSES],
    /// By tap.
    taps: Vec<Tap>,
    links: Links,
}

#[derive(Clone, Debug, Default)]
struct Tap {
    /// Time of the first pause frame.
    first: Option<Time>,
    senders: Vec<usize>,
}

/// Time for which a flow was paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PausedTime {
    /// In the current bin, in ns.
    pub(crate) in_bin: u64,
    /// Total since the first pause frame at the tap, up to the end of the bin, in ns. `None`: unknown.
    pub(crate) in_all: Option<u64>,
    /// Time of that frame.
    pub(crate) first: Time,
}

#[derive(Debug)]
struct Sender {
    tap: TapId,
    mac: MacAddress,
    classes: [Class; CLASSES],
}

/// One class of one sender.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    open: Option<Open>,
    /// Pauses of the current bin, and of all bins, that have been counted, in ns.
    in_bin: u64,
    in_all: u64,
    listed: bool,
}

/// A pause that goes on.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin: Time,
    /// The last frame that began or refreshed it.
    last: Time,
    /// It ends then, if nothing else comes.
    until: Time,
    /// Time up to which pauses are counted.
    since: Time,
    refreshed: u32,
    reported: bool,
}

/// A pause that is over.
#[derive(Clone, Copy, Debug)]
struct EndedPause {
    open: Open,
    end: Time,
}

impl Class {
    /// A frame pauses it for `length`, or, with 0, ends its pause. Gives the pause that is over.
    fn frame(&mut self, time: Time, length: u64, reported: bool, timed: bool) -> Option<EndedPause> {
        let mut ended = None;
        if let Some(open) = &mut self.open {
            let time = time.max(open.since);
            let stop = open.until.min(time);
            let paused = stop.since(open.since).0;
            self.in_bin += paused;
            self.in_all += paused;
            open.since = stop.max(open.since);
            if open.until < time {
                // Without the link's speed its end is not known: it lasted at least up to the last frame.
                let end = if timed { open.until } else { open.last };
                ended = Some(EndedPause { open: *open, end });
            } else if length == 0 {
                ended = Some(EndedPause {
                    open: *open,
                    end: time,
                });
            } else {
                open.last = time;
                open.until = Time(time.0.saturating_add(length));
                open.since = time;
                open.refreshed = open.refreshed.saturating_add(1);
                return None;
            }
            self.open = None;
        }
        if length > 0 {
            self.open = Some(Open {
                begin: time,
                last: time,
                until: Time(time.0.saturating_add(length)),
                since: time,
                refreshed: 0,
                reported,
            });
        }
        ended
    }

    /// Its pauses in the current bin, which ends at `end`, as far as they are known.
    fn in_bin(&self, end: Time) -> u64 {
        self.in_bin + self.still(end)
    }

    /// Total of all bins up to that time.
    fn in_all(&self, end: Time) -> u64 {
        self.in_all + self.still(end)
    }

    /// Part that is not counted yet.
    fn still(&self, end: Time) -> u64 {
        self.open
            .map_or(0, |open| open.until.min(end).since(open.since).0)
    }

    /// The current bin is over, the next one begins at `next`. Gives the pause that is over by then.
    fn end_bin(&mut self, next: Time, timed: bool) -> Option<EndedPause> {
        self.in_bin = 0;
        self.in_all += self.still(next);
        let open = self.open.as_mut()?;
        if open.until <= next {
            let end = if timed { open.until } else { open.last };
            let ended = EndedPause { open: *open, end };
            self.open = None;
            return Some(ended);
        }
        open.since = open.since.max(next);
        None
    }
}

impl Pauses {
    pub(crate) fn new(link_rate: Option<u64>) -> Self {
        Self {
            link_rate: link_rate.filter(|rate| *rate > 0),
            senders: Vec::new(),
            places: HashMap::default(),
            active: Default::default(),
            taps: Vec::new(),
            links: Links::default(),
        }
    }

    /// Takes a pause frame; pauses that it shows to be over become events.
    pub(crate) fn frame(&mut self, frame: &PauseFrame, events: &mut Vec<EventRow>) {
        let tap = frame.tap.0 as usize;
        if self.taps.len() <= tap {
            self.taps.resize(tap + 1, Tap::default());
        }
        self.taps[tap].first.get_or_insert(frame.time);
        let pause = &frame.pause;
        let classes = match pause.kind {
            PauseKind::Link => LINK..LINK + 1,
            PauseKind::Priority => 0..LINK,
        };
        let timed = self.link_rate.is_some();
        for class in classes {
            // For a link pause every priority says the same.
            let Some(quanta) = pause.quanta_of(class % LINK) else {
                continue;
            };
            let Some(place) = self.place(frame.tap, pause.source, quanta > 0) else {
                continue;
            };
            let length = length(quanta, self.link_rate);
            let sender = &mut self.senders[place];
            let state = &mut sender.classes[usize::from(class)];
            let ended = state.frame(frame.time, length, frame.reported, timed);
            if state.open.is_some() && !state.listed {
                state.listed = true;
                self.active[usize::from(class)].push(place);
            }
            events.extend(ended.and_then(|ended| event(sender, class, &ended)));
        }
    }

    /// The place of a sender; a new one when it pauses something and there is room.
    fn place(&mut self, tap: TapId, mac: MacAddress, pauses: bool) -> Option<usize> {
        if let Some(place) = self.places.get(&(tap, mac)) {
            return Some(*place);
        }
        if !pauses || self.senders.len() >= MAX_SENDERS || !self.links.pauser(tap, mac) {
            return None;
        }
        self.taps
            .get_mut(tap.0 as usize)?
            .senders
            .push(self.senders.len());
        self.places.insert((tap, mac), self.senders.len());
        self.senders.push(Sender {
            tap,
            mac,
            classes: [Class::default(); CLASSES],
        });
        Some(self.senders.len() - 1)
    }

    /// Notes between which link addresses two hosts talk.
    pub(crate) fn link(&mut self, link: &LinkAddresses) {
        self.links.note(link);
    }

    /// True if there is anything to ask [`Pauses::overlap`] for.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Time for which a flow of `priority` was paused up to the end of the current bin, which is `end`.
    /// `None`: unknown.
    ///
    /// Several pauses at once (PFC and the whole link, or two neighbours on one link) are not usual: in a bin the longest counts.
    pub(crate) fn overlap(
        &self,
        tap: TapId,
        (source, destination): (Address, Address),
        priority: Option<u8>,
        end: Time,
    ) -> Option<PausedTime> {
        self.link_rate?;
        let state = self.taps.get(tap.0 as usize)?;
        let first = state.first?;
        let classes = [priority? & 7, LINK].map(usize::from);
        let (mut in_bin, mut in_all) = (0, Some(0));
        for sender in state.senders.iter().filter_map(|place| self.senders.get(*place)) {
            let [one, link] = classes.map(|class| &sender.classes[class]);
            let all = one.in_all(end).max(link.in_all(end));
            if all == 0 {
                continue;
            }
            let now = one.in_bin(end).max(link.in_bin(end));
            match self.links.stops(tap, sender.mac, source, destination) {
                Some(true) => {
                    in_bin = in_bin.max(now);
                    in_all = in_all.map(|sum: u64| sum.saturating_add(all));
                }
                Some(false) => {}
                None if now > 0 => return None,
                None => in_all = None,
            }
        }
        Some(PausedTime {
            in_bin,
            in_all,
            first,
        })
    }

    /// The current bin is over, the next one begins at `next`.
    pub(crate) fn end_bin(&mut self, next: Time, events: &mut Vec<EventRow>) {
        let timed = self.link_rate.is_some();
        for (class, active) in (0..).zip(&mut self.active) {
            active.retain(|place| {
                let sender = &mut self.senders[*place];
                let state = &mut sender.classes[usize::from(class)];
                let ended = state.end_bin(next, timed);
                state.listed = state.open.is_some();
                let listed = state.listed;
                events.extend(ended.and_then(|ended| event(sender, class, &ended)));
                listed
            });
        }
    }

    /// The capture ends in the bin that ends at `end`: so do all pauses.
    pub(crate) fn finish(&mut self, end: Time, events: &mut Vec<EventRow>) {
        for sender in &mut self.senders {
            for class in 0..=LINK {
                if let Some(open) = &mut sender.classes[usize::from(class)].open {
                    open.until = open.until.min(end);
                }
            }
        }
        self.end_bin(end, events);
    }
}

/// Duration of `quanta`, in ns.
fn length(quanta: u16, link_rate: Option<u64>) -> u64 {
    u64::from(quanta) * QUANTUM_BITS * Span::SECOND.0 / link_rate.unwrap_or(SLOWEST)
}

/// The event of a pause; `None` where another shard of the run reports it.
fn event(sender: &Sender, class: u8, ended: &EndedPause) -> Option<EventRow> {
    let EndedPause { open, end } = ended;
    let mac = sender.mac;
    let refreshed = open.refreshed;
    open.reported.then(|| EventRow {
        time: open.begin,
        kind: EventKind::PauseInterval,
        tap: sender.tap,
        psn: Some(u32::from(class)),
        value: Some(end.since(open.begin).0),
        detail: Some(format!("by {mac}, refreshed {refreshed} times").into()),
        ..EventRow::default()
    })
}

#[cfg(test)]
mod tests;
