//! Who sends to whom, as numbers: what is kept of a destination, or of two hosts, from bin to bin is found by its place, with
//! one lookup for a row. How many hosts send to a destination at the same time in the bin is counted here as well:
//! hosts of which one had ended before the other began are not at once there, though a wide bin has both.

use std::collections::HashMap;

use roce_model::{Active, Groups, Nanos, prefetch};

type Numbers = HashMap<u64, u32, foldhash::fast::RandomState>;

/// Number of pairs from which the next bin starts numbers again: about 4 MB.
const MAX_PAIRS: usize = 1 << 16;

/// From one host to another at one tap.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostPair {
    /// Its own number.
    pub number: u32,
    /// The number of its destination.
    pub destination: u32,
    /// The number of its source, as a destination.
    pub source: u32,
}

#[derive(Debug)]
struct Destination {
    /// Hash of tap and host.
    hash: u64,
    senders: u32,
    /// The bin of which these are.
    bin: u64,
    /// The pairs to it whose source has sent lately.
    lately: Vec<u32>,
}

/// A host goes on sending for so long after a packet: many that share a link send in turns (at 10 Gbit/s 64 hosts with packets of
/// 4 KB come round in 211 us). So the count does not depend on how narrow bins are.
const GOES_ON: u64 = 200_000;

/// Time in which one host has sent to another: from the first packet to the last one of those that are no further apart.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    first: u64,
    last: u64,
    /// That time within the current bin, in ns after its begin.
    in_bin: Option<Active>,
    /// It is in the list of its destination.
    listed: bool,
}

/// All pairs of which rows were seen, and all destinations.
#[derive(Debug, Default)]
pub struct HostPairs {
    /// Bins are counted from 1.
    bin: u64,
    numbers: Numbers,
    /// With the bin in which application data was last sent.
    all: Vec<(HostPair, u64)>,
    spans: Vec<Span>,
    /// Their groups, which are seldom looked at.
    groups: Vec<Groups>,
    destination_numbers: Numbers,
    destinations: Vec<Destination>,
    /// Destinations to which somebody sends in the bin.
    sent_to: Vec<u32>,
    /// Room for counting: times at which a host begins (1) or has ended (-1).
    edges: Vec<(u64, i32)>,
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
        let number = pair.number as usize;
        if let (Some(groups), Some(all), Some(span)) = (
            self.groups.get(number),
            self.all.get(number),
            self.spans.get(number),
        ) {
            prefetch(groups);
            prefetch(all);
            prefetch(span);
        }
    }

    /// A bin begins, in which nobody has sent yet. Returns true if all numbers are void that were given before.
    pub fn begin_bin(&mut self) -> bool {
        self.bin += 1;
        self.sent_to.clear();
        let is_full = self.all.len() >= MAX_PAIRS;
        if is_full {
            *self = Self {
                bin: self.bin,
                ..Self::default()
            };
        }
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
        self.all[number as usize].0
    }

    #[inline(never)]
    fn add(&mut self, groups: Groups) -> HostPair {
        let pair = HostPair {
            number: next(self.all.len()),
            destination: self.destination(groups.destination),
            source: self.destination(groups.source),
        };
        self.numbers.insert(groups.pair, pair.number);
        self.all.push((pair, 0));
        self.spans.push(Span::default());
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
            destinations.push(Destination {
                hash,
                senders: 0,
                bin: 0,
                lately: Vec::new(),
            });
            next(destinations.len() - 1)
        })
    }

    /// The hash of tap and host of a destination.
    pub(crate) fn hash(&self, destination: u32) -> u64 {
        self.destinations[destination as usize].hash
    }

    /// Application data is sent between the pair in the bin, during that time.
    #[inline]
    pub fn sends(&mut self, pair: HostPair, active: Active) {
        let span = &mut self.spans[pair.number as usize];
        if core::mem::replace(&mut self.all[pair.number as usize].1, self.bin) == self.bin {
            if let Some(all) = &mut span.in_bin {
                all.first = all.first.min(active.first);
                all.last = all.last.max(active.last);
            }
            return;
        }
        span.in_bin = Some(active);
        let to = &mut self.destinations[pair.destination as usize];
        if core::mem::replace(&mut to.bin, self.bin) != self.bin {
            self.sent_to.push(pair.destination);
        }
        if !core::mem::replace(&mut span.listed, true) {
            to.lately.push(pair.number);
        }
    }

    /// All rows of the bin from `begin` on were given: counts the most hosts that sent to a destination at the same time in it.
    pub fn count_senders(&mut self, begin: Nanos, width: Nanos) {
        let spans = &mut self.spans;
        for number in &self.sent_to {
            let to = &mut self.destinations[*number as usize];
            let (mut last_begin, mut first_end) = (begin.0, u64::MAX);
            to.lately.retain(|pair| {
                let span = &mut spans[*pair as usize];
                if let Some(Active { first, last }) = span.in_bin.take() {
                    let first = begin.0.saturating_add(first);
                    let last = begin.0.saturating_add(last.min(width.0.saturating_sub(1)));
                    if first > span.last.saturating_add(GOES_ON) {
                        span.first = first;
                    }
                    span.last = span.last.max(last);
                }
                let until = span.last.saturating_add(GOES_ON);
                span.listed = until >= begin.0;
                if span.listed {
                    (last_begin, first_end) = (last_begin.max(span.first), first_end.min(until));
                }
                span.listed
            });
            to.senders = if last_begin < first_end {
                // All of them at the time when the last one begins, as nearly always: nothing has to be put in order.
                next(to.lately.len())
            } else {
                self.edges.clear();
                for span in to.lately.iter().map(|pair| &spans[*pair as usize]) {
                    let until = span.last.saturating_add(GOES_ON);
                    self.edges.extend([(span.first.max(begin.0), 1), (until, -1)]);
                }
                most_at_once(&mut self.edges)
            };
        }
    }

    /// How many hosts send application data to a destination at the same time in the bin, at most.
    #[inline]
    pub fn senders(&self, destination: u32) -> u32 {
        let to = &self.destinations[destination as usize];
        if to.bin == self.bin { to.senders } else { 0 }
    }
}

/// The most that have begun and not ended at one time.
fn most_at_once(edges: &mut [(u64, i32)]) -> u32 {
    // Where one begins when another has ended, the end comes first.
    edges.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, step) in edges.iter() {
        now += step;
        most = most.max(now);
    }
    u32::try_from(most).unwrap_or_default()
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
        pairs.count_senders(Nanos(MS), Nanos(MS));
        assert_eq!(pairs.senders(one.destination), 2);
        assert_eq!((back.destination, back.source), (one.source, one.destination));
        assert_eq!(pairs.senders(back.destination), 0);
        pairs.begin_bin();
        assert_eq!(pairs.senders(one.destination), 0);
        pairs.sends(pairs.by_number(other.number), Active::ALL);
        pairs.count_senders(Nanos(3 * MS), Nanos(MS));
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
        pairs.count_senders(Nanos(MS), Nanos(MS));
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
        pairs.count_senders(Nanos(2 * MS), Nanos(MS));
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
            pairs.count_senders(Nanos(bin * 10_000), Nanos(10_000));
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
