//! EVs of a queue pair: which are in use, which are skipped, which were left.

use crate::engine::rng::Stream;

/// An EV in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ev {
    pub value: u32,
    pub plane: u32,
    pub path: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    ev: Ev,
    /// SKIP: the next turn passes it.
    skip: bool,
    /// Losses since the last arrival.
    losses: u32,
}

/// An EV that is assumed to be bad.
#[derive(Clone, Copy, Debug)]
struct LeftEv {
    slot: usize,
    ev: Ev,
}

/// The EVs of a queue pair, as many on each plane.
#[derive(Debug)]
pub(crate) struct Evs {
    slots: Vec<Slot>,
    left: Vec<LeftEv>,
    turn: usize,
    paths: u32,
    narrow: bool,
    used: Vec<u32>,
    random: Stream,
}

impl Evs {
    /// `count` EVs; `narrow` ones have 16 bits, as with IPv4.
    pub(crate) fn new(count: u32, planes: u32, paths: u32, narrow: bool, random: Stream) -> Self {
        let mut evs = Self {
            slots: Vec::new(),
            left: Vec::new(),
            turn: 0,
            paths,
            narrow,
            used: Vec::new(),
            random,
        };
        for number in 0..count {
            let ev = Ev {
                value: evs.draw(),
                plane: number % planes.max(1),
                path: number / planes.max(1) % paths.max(1),
            };
            evs.slots.push(Slot {
                ev,
                skip: false,
                losses: 0,
            });
        }
        evs
    }

    /// A value that no EV of the pair has had.
    fn draw(&mut self) -> u32 {
        let mask = if self.narrow { 0xffff } else { u32::MAX };
        loop {
            // The UDP port is in the lower or the upper half: neither is 0.
            let value = (self.random.bits() & u64::from(mask)) as u32 | 0x4000 | (mask & 0x4000_0000);
            if !self.used.contains(&value) {
                self.used.push(value);
                return value;
            }
            if self.used.len() >= 0x4000 {
                return value;
            }
        }
    }

    /// The next EV in turn, of planes that `usable` allows.
    pub(crate) fn next(&mut self, usable: impl Fn(u32) -> bool) -> Option<Ev> {
        // Twice around: an EV that is skipped once is taken in the second turn.
        for _ in 0..2 * self.slots.len() {
            let place = self.turn % self.slots.len();
            self.turn = place + 1;
            let slot = &mut self.slots[place];
            if !usable(slot.ev.plane) {
                continue;
            }
            if std::mem::take(&mut slot.skip) {
                continue;
            }
            return Some(slot.ev);
        }
        None
    }

    /// A path was congested: SKIP.
    pub(crate) fn skip(&mut self, value: u32) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.ev.value == value) {
            slot.skip = true;
        }
    }

    /// A packet arrived by an EV.
    pub(crate) fn arrived(&mut self, value: u32) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.ev.value == value) {
            slot.losses = 0;
        }
    }

    /// A packet was lost by an EV. Returns it if it is left now, after `most` losses.
    pub(crate) fn lost(&mut self, value: u32, most: u32) -> Option<Ev> {
        let slot = self.slots.iter_mut().find(|slot| slot.ev.value == value)?;
        slot.losses += 1;
        (slot.losses >= most).then_some(())?;
        self.leave(value)
    }

    /// ASSUMED_BAD: another EV of the same plane takes its place.
    pub(crate) fn leave(&mut self, value: u32) -> Option<Ev> {
        let place = self.slots.iter().position(|slot| slot.ev.value == value)?;
        let ev = self.slots[place].ev;
        let path = if self.paths > 1 {
            let step = 1 + self.random.below(u64::from(self.paths - 1)) as u32;
            (ev.path + step) % self.paths
        } else {
            ev.path
        };
        let value = self.draw();
        self.slots[place] = Slot {
            ev: Ev {
                value,
                plane: ev.plane,
                path,
            },
            skip: false,
            losses: 0,
        };
        self.left.push(LeftEv { slot: place, ev });
        Some(ev)
    }

    /// An EV that was left, and is so still.
    pub(crate) fn is_left(&self, value: u32) -> Option<Ev> {
        let left = self.left.iter().find(|left| left.ev.value == value)?;
        Some(left.ev)
    }

    /// A probe of an EV that was left was answered: it has its place again.
    pub(crate) fn back(&mut self, value: u32) {
        if let Some(at) = self.left.iter().position(|left| left.ev.value == value) {
            let left = self.left.swap_remove(at);
            if let Some(slot) = self.slots.get_mut(left.slot) {
                *slot = Slot {
                    ev: left.ev,
                    skip: false,
                    losses: 0,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evs() -> Evs {
        Evs::new(8, 4, 2, false, Stream::new(1, "evs", 0))
    }

    #[test]
    fn turns_go_round_and_skip_once() {
        let mut evs = evs();
        let first: Vec<Ev> = (0..8).filter_map(|_| evs.next(|_| true)).collect();
        assert_eq!(
            first.iter().map(|ev| ev.plane).collect::<Vec<_>>(),
            [0, 1, 2, 3, 0, 1, 2, 3]
        );
        evs.skip(first[2].value);
        let second: Vec<u32> = (0..7)
            .filter_map(|_| evs.next(|_| true))
            .map(|ev| ev.value)
            .collect();
        assert!(!second.contains(&first[2].value));
        let third: Vec<u32> = (0..8)
            .filter_map(|_| evs.next(|_| true))
            .map(|ev| ev.value)
            .collect();
        assert!(third.contains(&first[2].value));
        assert!(
            (0..8)
                .filter_map(|_| evs.next(|plane| plane == 1))
                .all(|ev| ev.plane == 1)
        );
        assert_eq!(evs.next(|_| false), None);
    }

    #[test]
    fn a_bad_one_is_replaced_on_its_plane_and_comes_back() {
        let mut evs = evs();
        let bad = evs.next(|_| true).unwrap();
        assert_eq!(evs.lost(bad.value, 2), None);
        evs.arrived(bad.value);
        assert_eq!(evs.lost(bad.value, 2), None);
        assert_eq!(evs.lost(bad.value, 2), Some(bad));
        let now: Vec<Ev> = (0..8).filter_map(|_| evs.next(|_| true)).collect();
        assert!(now.iter().all(|ev| ev.value != bad.value));
        assert_eq!(now.iter().filter(|ev| ev.plane == bad.plane).count(), 2);
        assert_eq!(evs.is_left(bad.value), Some(bad));
        evs.back(bad.value);
        assert_eq!(evs.is_left(bad.value), None);
        assert!((0..8).filter_map(|_| evs.next(|_| true)).any(|ev| ev == bad));
    }
}
