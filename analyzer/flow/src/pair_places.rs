//! Numbers that one shard gives to pairs of hosts, from one to the other at one tap, and the place of each pair in the list of the
//! current bin. So the sums of a row's pair are found without a lookup.

use std::collections::HashMap;

use roce_model::{Groups, TapId, prefetch};
use roce_verdict::PairTraffic;

/// Number of pairs from which the next bin starts numbers again: about 4 MB.
const MAX_PAIRS: usize = 1 << 16;

/// The pairs of a shard.
#[derive(Debug)]
pub(crate) struct PairPlaces {
    /// Bins are counted from 1.
    bin: u64,
    numbers: HashMap<u64, u32, foldhash::fast::RandomState>,
    known: Vec<KnownPair>,
}

/// A pair, by its hash, and where it is in the list of the bin that last had it.
#[derive(Clone, Copy, Debug)]
struct KnownPair {
    hash: u64,
    bin: u64,
    place: u32,
}

impl Default for PairPlaces {
    fn default() -> Self {
        Self {
            bin: 1,
            numbers: HashMap::default(),
            known: Vec::new(),
        }
    }
}

impl PairPlaces {
    /// Another bin begins, whose list is empty.
    pub(crate) fn next_bin(&mut self) {
        self.bin += 1;
        if self.known.len() >= MAX_PAIRS {
            self.known.clear();
            self.numbers.clear();
        }
    }

    /// Prefetches what is known of the pair with this number.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        if let Some(known) = self.known.get(number as usize) {
            prefetch(known);
        }
    }

    /// The place of the pair of these groups in the list of the bin. `number` is the pair's, as far as it is remembered.
    #[inline]
    pub(crate) fn place(
        &mut self,
        number: &mut u32,
        groups: &Groups,
        tap: TapId,
        list: &mut Vec<PairTraffic>,
    ) -> u32 {
        let is_known = self
            .known
            .get(*number as usize)
            .is_some_and(|known| known.hash == groups.pair);
        if !is_known {
            *number = self.find_or_add(groups.pair);
        }
        let known = &mut self.known[*number as usize];
        if core::mem::replace(&mut known.bin, self.bin) != self.bin {
            known.place = next(list.len());
            list.push(PairTraffic::new(*groups, tap, *number));
        }
        known.place
    }

    #[inline(never)]
    fn find_or_add(&mut self, hash: u64) -> u32 {
        let known = &mut self.known;
        *self.numbers.entry(hash).or_insert_with(|| {
            known.push(KnownPair {
                hash,
                bin: 0,
                place: 0,
            });
            next(known.len() - 1)
        })
    }
}

/// The number of what comes after so many.
fn next(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_one_place_in_a_bin() {
        let groups = |pair| Groups {
            destination: 1,
            source: 2,
            pair,
        };
        let (mut places, mut list) = (PairPlaces::default(), Vec::new());
        // Numbers that nobody gave, and one that is another pair's.
        let (mut first, mut second, mut wrong) = (u32::MAX, 7, 0);
        assert_eq!(places.place(&mut first, &groups(10), TapId(0), &mut list), 0);
        assert_eq!(places.place(&mut second, &groups(11), TapId(0), &mut list), 1);
        assert_eq!(places.place(&mut wrong, &groups(11), TapId(0), &mut list), 1);
        assert_eq!((first, second, wrong, list.len()), (0, 1, 1, 2));
        places.next_bin();
        list.clear();
        assert_eq!(places.place(&mut second, &groups(11), TapId(0), &mut list), 0);
        assert_eq!(list[0].number, 1);
    }

    #[test]
    fn numbers_start_again_when_there_are_too_many() {
        let (mut places, mut list) = (PairPlaces::default(), Vec::new());
        let mut number = u32::MAX;
        for pair in 0..MAX_PAIRS as u64 + 5 {
            let groups = Groups {
                pair,
                ..Groups::default()
            };
            places.place(&mut number, &groups, TapId(0), &mut list);
        }
        assert_eq!(list.len(), MAX_PAIRS + 5, "a bin has them all");
        places.next_bin();
        list.clear();
        places.place(
            &mut number,
            &Groups {
                pair: 3,
                ..Groups::default()
            },
            TapId(0),
            &mut list,
        );
        assert_eq!((number, list.len()), (0, 1));
    }
}
