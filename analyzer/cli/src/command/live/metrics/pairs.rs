//! Pairs of hosts: the busiest ones have counts of their own, the rest is one sum.
//!
//! No count ever falls. A pair is listed with its first traffic as long as places are free, so that all of it counts. Later ones count
//! from the moment at which they get a place; what they did before stays in the sum of the others. One that loses its place vanishes,
//! and begins with 0 when it comes back, which a scraper takes for a restart.

use std::collections::HashMap;

use roce_wire::Address;

/// Pairs whose traffic is followed, listed or not: some 12 MB. Those of more count to the others.
const MAX_FOLLOWED: usize = 1 << 16;

/// A pair: the tap, the sender, the receiver.
pub(super) type PairKey = (u32, Address, Address);

/// Counts of a pair.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct PairCounts {
    pub(super) wire_bytes: u64,
    pub(super) data_packets: u64,
    pub(super) marked: u64,
    pub(super) cnps: u64,
    pub(super) retransmitted: u64,
}

impl PairCounts {
    fn add(&mut self, more: &Self) {
        self.wire_bytes += more.wire_bytes;
        self.data_packets += more.data_packets;
        self.marked += more.marked;
        self.cnps += more.cnps;
        self.retransmitted += more.retransmitted;
    }
}

#[derive(Default)]
struct Pair {
    /// Bytes of late: each interval a sixteenth of them is forgotten.
    recent: u64,
    /// Counts since it was listed.
    listed: Option<PairCounts>,
}

/// All pairs.
pub(super) struct Pairs {
    followed: HashMap<PairKey, Pair>,
    /// Places that no pair has.
    free: usize,
    others: PairCounts,
}

impl Pairs {
    /// `places` pairs can be listed.
    pub(super) fn new(places: usize) -> Self {
        Self {
            followed: HashMap::default(),
            free: places,
            others: PairCounts::default(),
        }
    }

    /// Counts traffic of a pair, or of nobody known.
    pub(super) fn add(&mut self, key: Option<PairKey>, counts: &PairCounts) {
        let has_room = self.followed.len() < MAX_FOLLOWED;
        let pair = match key {
            Some(key) if has_room => Some(self.followed.entry(key).or_default()),
            Some(key) => self.followed.get_mut(&key),
            None => None,
        };
        let Some(pair) = pair else {
            self.others.add(counts);
            return;
        };
        pair.recent = pair.recent.saturating_add(counts.wire_bytes);
        if pair.listed.is_none() && self.free > 0 {
            self.free -= 1;
            pair.listed = Some(PairCounts::default());
        }
        pair.listed.as_mut().unwrap_or(&mut self.others).add(counts);
    }

    /// An interval has passed: busy pairs take places of others. A listed pair keeps its place until another one is twice as busy.
    pub(super) fn interval(&mut self) {
        self.followed
            .retain(|_, pair| pair.recent > 0 || pair.listed.is_some());
        let mut listed: Vec<(u64, PairKey)> = Vec::new();
        let mut waiting: Vec<(u64, PairKey)> = Vec::new();
        for (key, pair) in &self.followed {
            if pair.listed.is_some() {
                listed.push((pair.recent, *key));
            } else {
                waiting.push((pair.recent, *key));
            }
        }
        listed.sort_unstable();
        // The busiest first; the keys make the order of equal ones that of any run.
        waiting.sort_unstable_by(|one, two| two.0.cmp(&one.0).then(one.1.cmp(&two.1)));
        // Pairs wait only where no place is free.
        for ((lowest, loser), (recent, key)) in listed.into_iter().zip(waiting) {
            if recent / 2 <= lowest {
                break;
            }
            self.list(&loser, None);
            self.list(&key, Some(PairCounts::default()));
        }
        for pair in self.followed.values_mut() {
            pair.recent -= pair.recent.div_ceil(16);
        }
    }

    fn list(&mut self, key: &PairKey, counts: Option<PairCounts>) {
        if let Some(pair) = self.followed.get_mut(key) {
            pair.listed = counts;
        }
    }

    /// The listed pairs.
    pub(super) fn listed(&self) -> impl Iterator<Item = (&PairKey, &PairCounts)> {
        self.followed
            .iter()
            .filter_map(|(key, pair)| Some((key, pair.listed.as_ref()?)))
    }

    /// The sum of all others.
    pub(super) fn others(&self) -> &PairCounts {
        &self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(sender: u8) -> PairKey {
        let address = |last| Address::from(std::net::IpAddr::from([10, 0, 0, last]));
        (0, address(sender), address(100))
    }

    fn bytes(wire_bytes: u64) -> PairCounts {
        PairCounts {
            wire_bytes,
            data_packets: 1,
            ..PairCounts::default()
        }
    }

    fn listed(pairs: &Pairs) -> Vec<(PairKey, u64)> {
        let mut listed: Vec<_> = pairs
            .listed()
            .map(|(key, counts)| (*key, counts.wire_bytes))
            .collect();
        listed.sort_unstable();
        listed
    }

    #[test]
    fn the_busiest_pairs_are_listed_and_the_rest_is_one_sum() {
        let mut pairs = Pairs::new(2);
        for (sender, sent) in [(1, 100), (2, 1000), (3, 5000)] {
            pairs.add(Some(key(sender)), &bytes(sent));
        }
        assert_eq!(listed(&pairs), [(key(1), 100), (key(2), 1000)], "two had room");
        assert_eq!(pairs.others().wire_bytes, 5000);
        pairs.interval();
        assert_eq!(
            listed(&pairs),
            [(key(2), 1000), (key(3), 0)],
            "the third is busier"
        );
        for sender in 1..=3 {
            pairs.add(Some(key(sender)), &bytes(10));
        }
        pairs.add(None, &bytes(7));
        assert_eq!(listed(&pairs), [(key(2), 1010), (key(3), 10)]);
        // 5,000 before, 10 of the first pair, 7 of nobody known.
        assert_eq!(
            pairs.others(),
            &PairCounts {
                wire_bytes: 5017,
                data_packets: 3,
                ..PairCounts::default()
            }
        );
    }

    #[test]
    fn a_burst_of_one_pair_is_its_own() {
        let mut pairs = Pairs::new(50);
        pairs.add(Some(key(1)), &bytes(1000));
        // It ended within the first interval.
        pairs.interval();
        assert_eq!(listed(&pairs), [(key(1), 1000)]);
        assert_eq!(pairs.others(), &PairCounts::default());
    }

    #[test]
    fn a_place_is_lost_to_who_is_twice_as_busy_and_no_sum_falls() {
        let mut pairs = Pairs::new(1);
        pairs.add(Some(key(1)), &bytes(1000));
        pairs.interval();
        // 1,000 less a sixteenth, rounded up, is 937: 1,500 is not twice as much.
        pairs.add(Some(key(2)), &bytes(1500));
        pairs.interval();
        assert_eq!(listed(&pairs), [(key(1), 1000)]);
        let others = pairs.others().wire_bytes;
        pairs.add(Some(key(2)), &bytes(1500));
        pairs.interval();
        assert_eq!(listed(&pairs), [(key(2), 0)]);
        assert!(pairs.others().wire_bytes >= others);
    }

    #[test]
    fn pairs_are_bounded_and_forgotten() {
        let mut pairs = Pairs::new(4);
        for sender in 0..MAX_FOLLOWED + 100 {
            let number = u32::try_from(sender).unwrap().to_be_bytes();
            let sender = Address::from(std::net::IpAddr::from(number));
            pairs.add(Some((0, sender, sender)), &bytes(1));
        }
        assert_eq!(pairs.followed.len(), MAX_FOLLOWED);
        // Four of them had room.
        assert_eq!(pairs.others().data_packets, MAX_FOLLOWED as u64 + 96);
        // One byte of late is forgotten after an interval, but listed pairs stay.
        pairs.interval();
        pairs.interval();
        assert_eq!(pairs.followed.len(), 4);
    }
}
