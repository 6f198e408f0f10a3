//! Who sends to whom, as numbers: what is kept of a destination, or of two hosts, from bin to bin is found by its place, with
//! one lookup for a row. How many hosts send to a destination at the same time is counted in `senders`.

use std::collections::HashMap;

use roce_model::{Active, Groups, Span, Time, prefetch};

use crate::host_pair::HostPair;
use crate::senders::Senders;

type Numbers = HashMap<u64, u32, foldhash::fast::RandomState>;

/// Number of pairs from which the next bin starts numbers again: about 4 MB.
const MAX_PAIRS: usize = 1 << 16;

/// All pairs of which rows were seen, and all destinations.
#[derive(Debug, Default)]
pub struct HostPairs {
    numbers: Numbers,
    all: Vec<HostPair>,
    /// Their groups, which are seldom looked at.
    groups: Vec<Groups>,
    destination_numbers: Numbers,
    /// Hash of tap and host of each destination.
    destinations: Vec<u64>,
    /// Who sends in a bin, and in a cell of several bins.
    in_bin: Senders,
    in_cell: Senders,
    has_cells: bool,
}

impl HostPairs {
    /// True if the number of a pair is still that of the pair with this hash.
    #[inline]
    pub(crate) fn is_current(&self, pair: HostPair, hash: u64) -> bool {
        let groups = self.groups.get(pair.number as usize);
        groups.is_some_and(|groups| groups.pair == hash)
    }

    /// Prefetches what entering a pair needs.
    #[inline]
    pub(crate) fn prefetch(&self, pair: HostPair) {
        if let Some(groups) = self.groups.get(pair.number as usize) {
            prefetch(groups);
        }
        self.in_bin.prefetch(pair);
    }

    /// True if the next bin starts numbers again.
    pub fn is_full(&self) -> bool {
        self.all.len() >= MAX_PAIRS
    }

    /// A bin begins, in which nobody has sent yet. Returns true if all numbers are void that were given before.
    pub fn begin_bin(&mut self) -> bool {
        let is_full = self.is_full();
        if is_full {
            *self = Self::default();
        }
        self.in_bin.begin();
        is_full
    }

    /// The pair of the hosts of these groups.
    #[inline]
    pub fn find_or_add(&mut self, groups: Groups) -> HostPair {
        match self.numbers.get(&groups.pair) {
            Some(number) => self.by_number(*number),
            None => self.add(groups),
        }
    }

    /// The pair with this number.
    #[inline]
    pub fn by_number(&self, number: u32) -> HostPair {
        self.all[number as usize]
    }

    #[inline(never)]
    fn add(&mut self, groups: Groups) -> HostPair {
        let pair = HostPair {
            number: next(self.all.len()),
            destination: self.destination(groups.destination),
            source: self.destination(groups.source),
        };
        self.numbers.insert(groups.pair, pair.number);
        self.all.push(pair);
        self.groups.push(groups);
        pair
    }

    /// The groups of a pair.
    pub(crate) fn groups(&self, pair: HostPair) -> Groups {
        self.groups[pair.number as usize]
    }

    /// The number of a destination.
    pub(crate) fn destination(&mut self, hash: u64) -> u32 {
        let destinations = &mut self.destinations;
        *self.destination_numbers.entry(hash).or_insert_with(|| {
            destinations.push(hash);
            next(destinations.len() - 1)
        })
    }

    /// The hash of tap and host of a destination.
    pub(crate) fn hash(&self, destination: u32) -> u64 {
        self.destinations[destination as usize]
    }

    /// Application data is sent between the pair in the bin, during that time.
    #[inline]
    pub fn sends(&mut self, pair: HostPair, active: Active) {
        self.in_bin.sends(pair, active);
    }

    /// All rows of the bin from `begin` on were given: counts the most hosts that sent to a destination at the same time in it.
    pub fn count_senders(&mut self, begin: Time, width: Span) {
        self.in_bin.count(begin, width);
    }

    /// How many hosts send application data to a destination at the same time in the bin, at most.
    #[inline]
    pub fn senders(&self, destination: u32) -> u32 {
        self.in_bin.of(destination)
    }

    /// A cell of several bins begins.
    pub fn begin_cell(&mut self) {
        self.has_cells = true;
        self.in_cell.begin();
    }

    /// As [`HostPairs::sends`], in the cell: `active` counts from its begin.
    pub fn sends_in_cell(&mut self, pair: HostPair, active: Active) {
        self.in_cell.sends(pair, active);
    }

    /// As [`HostPairs::count_senders`], of the cell.
    pub fn count_senders_of_cell(&mut self, begin: Time, width: Span) {
        self.in_cell.count(begin, width);
    }

    /// As [`HostPairs::senders`], in the cell. A bin that is as wide as a cell is one.
    pub(crate) fn senders_in_cell(&self, destination: u32) -> u32 {
        if self.has_cells {
            self.in_cell.of(destination)
        } else {
            self.in_bin.of(destination)
        }
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
        let mut pairs = HostPairs::default();
        pairs.begin_bin();
        let (one, other, back) = (
            pairs.find_or_add(groups(1, 9)),
            pairs.find_or_add(groups(2, 9)),
            pairs.find_or_add(groups(9, 1)),
        );
        for pair in [one, other, one] {
            pairs.sends(pair, Active::ALL);
        }
        pairs.count_senders(Time(MS), Span(MS));
        assert_eq!(pairs.senders(one.destination), 2);
        assert_eq!((back.destination, back.source), (one.source, one.destination));
        assert_eq!(pairs.senders(back.destination), 0);
        pairs.begin_bin();
        assert_eq!(pairs.senders(one.destination), 0);
        pairs.sends(pairs.by_number(other.number), Active::ALL);
        pairs.count_senders(Time(3 * MS), Span(MS));
        assert_eq!(pairs.senders(one.destination), 1);
        assert_eq!(pairs.find_or_add(groups(1, 9)).number, one.number);
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn senders_at_once_overlap_in_time() {
        let mut pairs = HostPairs::default();
        pairs.begin_bin();
        let mut send = |source, first, last| {
            let pair = pairs.find_or_add(groups(source, 9));
            pairs.sends(pair, Active { first, last });
            pair
        };
        // The first one ends at 144 us; five others begin at 500 us. One of them has two flows.
        let pair = send(1, 0, 144_000);
        for source in 2..7 {
            send(source, 500_000, 600_000);
        }
        send(6, 700_000, 799_999);
        pairs.count_senders(Time(MS), Span(MS));
        assert_eq!(pairs.senders(pair.destination), 5);
        // 200 us after its last packet a host has ended: the first one with the second, the second with the third, never all.
        pairs.begin_bin();
        let mut send = |source, first, last| {
            let pair = pairs.find_or_add(groups(source, 8));
            pairs.sends(pair, Active { first, last });
            pair
        };
        let pair = send(1, 0, 300_000);
        send(2, 500_000, 500_000);
        send(3, 600_000, 999_000);
        pairs.count_senders(Time(2 * MS), Span(MS));
        assert_eq!(pairs.senders(pair.destination), 2);
    }

    #[test]
    fn narrow_bins_have_the_same_senders() {
        // Five hosts send a packet each 15 us, one after the other: in each bin of 10 us there are three of them or four.
        let mut pairs = HostPairs::default();
        let mut seen = Vec::new();
        for bin in 0..30u64 {
            pairs.begin_bin();
            let mut last = None;
            for at in (bin * 10_000..bin * 10_000 + 10_000).step_by(3_000) {
                let (first, source) = (at - bin * 10_000, at / 3_000 % 5);
                let pair = pairs.find_or_add(groups(source, 9));
                pairs.sends(pair, Active { first, last: first });
                last = Some(pair);
            }
            pairs.count_senders(Time(bin * 10_000), Span(10_000));
            seen.extend(last.map(|pair| pairs.senders(pair.destination)));
        }
        assert_eq!(seen[2..], [5; 28]);
    }

    #[test]
    fn numbers_start_again_when_there_are_too_many() {
        let mut pairs = HostPairs::default();
        assert!(!pairs.begin_bin());
        for source in 0..MAX_PAIRS as u64 {
            pairs.find_or_add(groups(source + 10, 1));
        }
        assert_eq!(
            pairs.find_or_add(groups(7, 1)).number as usize,
            MAX_PAIRS,
            "a bin has them all"
        );
        assert!(pairs.begin_bin());
        let pair = pairs.find_or_add(groups(7, 1));
        assert_eq!(
            (pair.number, pairs.hash(pair.destination), pairs.hash(pair.source)),
            (0, 1, 7)
        );
    }
}
