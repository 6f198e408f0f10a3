//! Ways, from one host to another at one tap, as one shard numbers them: the rows of a bin know their ways by places in a list of the
//! bin, so that what is summed up by way is found without a lookup.

use std::collections::HashMap;

use roce_model::{Groups, TapId};
use roce_verdict::Way;

/// Ways with so many of which numbers start again with the next bin: 4 MB or so.
const MAX_WAYS: usize = 1 << 16;

/// The ways of a shard.
#[derive(Debug)]
pub(crate) struct Ways {
    /// Bins are counted from 1.
    bin: u64,
    numbers: HashMap<u64, u32, foldhash::fast::RandomState>,
    known: Vec<Known>,
}

/// A way, by its hash, and where it is in the list of the bin that last had it.
#[derive(Clone, Copy, Debug)]
struct Known {
    hash: u64,
    bin: u64,
    place: u32,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            bin: 1,
            numbers: HashMap::default(),
            known: Vec::new(),
        }
    }
}

impl Ways {
    /// Another bin begins: no list has any way.
    pub(crate) fn next_bin(&mut self) {
        self.bin += 1;
        if self.known.len() >= MAX_WAYS {
            self.known.clear();
            self.numbers.clear();
        }
    }

    /// The place of the way of these groups in the list of the bin. `number` is the way's, as far as it is remembered.
    #[inline]
    pub(crate) fn place(
        &mut self,
        number: &mut u32,
        groups: &Groups,
        tap: TapId,
        list: &mut Vec<Way>,
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
            list.push(Way::new(*groups, tap, *number));
        }
        known.place
    }

    #[inline(never)]
    fn find_or_add(&mut self, hash: u64) -> u32 {
        let known = &mut self.known;
        *self.numbers.entry(hash).or_insert_with(|| {
            known.push(Known {
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
    fn a_way_has_one_place_in_a_bin() {
        let groups = |pair| Groups {
            destination: 1,
            source: 2,
            pair,
        };
        let (mut ways, mut list) = (Ways::default(), Vec::new());
        // Numbers that nobody gave, and one that is another way's.
        let (mut first, mut second, mut wrong) = (u32::MAX, 7, 0);
        assert_eq!(ways.place(&mut first, &groups(10), TapId(0), &mut list), 0);
        assert_eq!(ways.place(&mut second, &groups(11), TapId(0), &mut list), 1);
        assert_eq!(ways.place(&mut wrong, &groups(11), TapId(0), &mut list), 1);
        assert_eq!((first, second, wrong, list.len()), (0, 1, 1, 2));
        ways.next_bin();
        list.clear();
        assert_eq!(ways.place(&mut second, &groups(11), TapId(0), &mut list), 0);
        assert_eq!(list[0].number, 1);
    }

    #[test]
    fn numbers_start_again_when_there_are_too_many() {
        let (mut ways, mut list) = (Ways::default(), Vec::new());
        let mut number = u32::MAX;
        for pair in 0..MAX_WAYS as u64 + 5 {
            let groups = Groups {
                pair,
                ..Groups::default()
            };
            ways.place(&mut number, &groups, TapId(0), &mut list);
        }
        assert_eq!(list.len(), MAX_WAYS + 5, "a bin has them all");
        ways.next_bin();
        list.clear();
        ways.place(
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
