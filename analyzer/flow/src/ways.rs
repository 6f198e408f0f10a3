//! Who sends to whom, as numbers: what is kept of a destination, or of two hosts, from bin to bin is found by its place, with
//! one lookup for a row. How many hosts send to a destination in the bin is counted here as well.

use std::collections::HashMap;

use crate::hosts::Groups;

type Numbers = HashMap<u64, u32, foldhash::fast::RandomState>;

/// Ways with so many of which numbers begin anew with the next bin: 4 MB or so.
const MOST: usize = 1 << 16;

/// From one host to another at one tap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) number: u32,
    /// The number of its destination.
    pub(crate) destination: u32,
    /// The number of its source, as a destination.
    pub(crate) source: u32,
}

#[derive(Debug)]
struct Destination {
    /// Hash of tap and host.
    hash: u64,
    senders: u32,
    /// The bin of which these are.
    bin: u64,
}

/// All ways that rows were seen of, and all destinations.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// Bins are counted from 1.
    bin: u64,
    numbers: Numbers,
    /// With the bin in which application data was last sent.
    all: Vec<(Way, u64)>,
    /// Their groups, which are seldom looked at.
    groups: Vec<Groups>,
    destination_numbers: Numbers,
    destinations: Vec<Destination>,
}

impl Ways {
    /// A bin begins, in which nobody has sent yet. Says whether all numbers given so far are void.
    pub(crate) fn begin_bin(&mut self) -> bool {
        self.bin += 1;
        let is_full = self.all.len() >= MOST;
        if is_full {
            *self = Self {
                bin: self.bin,
                ..Self::default()
            };
        }
        is_full
    }

    /// The way between the hosts of these groups.
    #[inline]
    pub(crate) fn of(&mut self, groups: Groups) -> Way {
        match self.numbers.get(&groups.pair) {
            Some(number) => self.by_number(*number),
            None => self.add(groups),
        }
    }

    /// The way with this number.
    #[inline]
    pub(crate) fn by_number(&self, number: u32) -> Way {
        self.all[number as usize].0
    }

    #[inline(never)]
    fn add(&mut self, groups: Groups) -> Way {
        let way = Way {
            number: next(self.all.len()),
            destination: self.destination(groups.destination),
            source: self.destination(groups.source),
        };
        self.numbers.insert(groups.pair, way.number);
        self.all.push((way, 0));
        self.groups.push(groups);
        way
    }

    /// The groups of a way.
    pub(crate) fn groups(&self, way: Way) -> Groups {
        self.groups[way.number as usize]
    }

    /// The number of a destination.
    pub(crate) fn destination(&mut self, hash: u64) -> u32 {
        let destinations = &mut self.destinations;
        *self.destination_numbers.entry(hash).or_insert_with(|| {
            destinations.push(Destination {
                hash,
                senders: 0,
                bin: 0,
            });
            next(destinations.len() - 1)
        })
    }

    /// The hash of tap and host of a destination.
    pub(crate) fn hash(&self, destination: u32) -> u64 {
        self.destinations[destination as usize].hash
    }

    /// Application data is sent on the way in the bin.
    #[inline]
    pub(crate) fn sends(&mut self, way: Way) {
        if core::mem::replace(&mut self.all[way.number as usize].1, self.bin) == self.bin {
            return;
        }
        let to = &mut self.destinations[way.destination as usize];
        if core::mem::replace(&mut to.bin, self.bin) != self.bin {
            to.senders = 0;
        }
        to.senders += 1;
    }

    /// How many hosts send application data to a destination in the bin.
    #[inline]
    pub(crate) fn senders(&self, destination: u32) -> u32 {
        let to = &self.destinations[destination as usize];
        if to.bin == self.bin { to.senders } else { 0 }
    }
}

/// The number of what comes after so many.
fn next(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(source: u64, destination: u64) -> Groups {
        Groups {
            destination,
            source,
            pair: source << 32 | destination,
        }
    }

    #[test]
    fn senders_are_of_their_bin() {
        let mut ways = Ways::default();
        ways.begin_bin();
        let (one, other, back) = (
            ways.of(groups(1, 9)),
            ways.of(groups(2, 9)),
            ways.of(groups(9, 1)),
        );
        for way in [one, other, one] {
            ways.sends(way);
        }
        assert_eq!(ways.senders(one.destination), 2);
        assert_eq!((back.destination, back.source), (one.source, one.destination));
        assert_eq!(ways.senders(back.destination), 0);
        ways.begin_bin();
        assert_eq!(ways.senders(one.destination), 0);
        ways.sends(ways.by_number(other.number));
        assert_eq!(ways.senders(one.destination), 1);
        assert_eq!(ways.of(groups(1, 9)).number, one.number);
    }

    #[test]
    fn numbers_begin_anew_when_there_are_too_many() {
        let mut ways = Ways::default();
        assert!(!ways.begin_bin());
        for source in 0..MOST as u64 {
            ways.of(groups(source + 10, 1));
        }
        assert_eq!(ways.of(groups(7, 1)).number as usize, MOST, "a bin has them all");
        assert!(ways.begin_bin());
        let way = ways.of(groups(7, 1));
        assert_eq!(
            (way.number, ways.hash(way.destination), ways.hash(way.source)),
            (0, 1, 7)
        );
    }
}
