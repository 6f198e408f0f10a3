//! The busiest pairs of hosts, in a table of fixed size: Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and
//! Top-k Elements in Data Streams", 2005).
//!
//! When the table is full, a new pair takes the place of the least one and its weight, which is kept as the error. So a pair has between
//! `weight - error` and `weight`, and each pair with more than the whole weight / [`MAX_PAIRS`] is in the table.

use std::collections::{BTreeMap, BTreeSet};

use roce_wire::Address;

/// Pairs of hosts that are kept of an agent. A pair with more than 1 in 512 of its packets is always among them.
pub(crate) const MAX_PAIRS: usize = 512;

/// Sender and receiver.
pub(crate) type HostPair = (Address, Address);

/// Counts of a pair of hosts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PairWeight {
    /// Packets that its samples stand for, and those that may be of pairs that it replaced.
    pub(crate) weight: u64,
    pub(crate) error: u64,
    /// Samples since it is in the table.
    pub(crate) samples: u64,
    /// Bytes that they stand for.
    pub(crate) bytes: f64,
}

/// Pairs of hosts, the busiest for sure.
#[derive(Clone, Default, Debug)]
pub(crate) struct TalkerTable {
    pairs: BTreeMap<HostPair, PairWeight>,
    by_weight: BTreeSet<(u64, HostPair)>,
}

impl TalkerTable {
    /// Adds a sample that stands for `weight` packets and `bytes` bytes.
    pub(crate) fn add(&mut self, pair: HostPair, weight: u32, bytes: f64) {
        let known = self.pairs.get(&pair).copied();
        let mut entry = known.unwrap_or(PairWeight {
            weight: 0,
            error: 0,
            samples: 0,
            bytes: 0.0,
        });
        if known.is_some() {
            self.by_weight.remove(&(entry.weight, pair));
        } else if self.pairs.len() >= MAX_PAIRS
            && let Some((least, replaced)) = self.by_weight.pop_first()
        {
            self.pairs.remove(&replaced);
            (entry.weight, entry.error) = (least, least);
        }
        entry.weight = entry.weight.saturating_add(u64::from(weight));
        entry.samples += 1;
        entry.bytes += bytes;
        self.by_weight.insert((entry.weight, pair));
        self.pairs.insert(pair, entry);
    }

    /// The pairs with the most packets for sure, the first ones first.
    pub(crate) fn top(&self, count: usize) -> Vec<(HostPair, PairWeight)> {
        let mut pairs: Vec<_> = self.pairs.iter().map(|(pair, entry)| (*pair, *entry)).collect();
        pairs.sort_by_key(|(pair, entry)| (std::cmp::Reverse(entry.weight - entry.error), *pair));
        pairs.truncate(count);
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(number: u32) -> HostPair {
        let [a, b, c, d] = number.to_be_bytes();
        (Address::v4([a, b, c, d]), Address::v4([10, 0, 0, 1]))
    }

    #[test]
    fn a_busy_pair_stays_among_ever_new_ones() {
        let mut table = TalkerTable::default();
        for number in 0..20_000 {
            table.add(pair(1_000_000 + number), 10, 1_000.0);
            if number % 4 == 0 {
                table.add(pair(7), 10, 1_000.0);
            }
        }
        assert_eq!(table.pairs.len(), MAX_PAIRS);
        assert_eq!(table.by_weight.len(), MAX_PAIRS);
        let [(first, entry)] = table.top(1).try_into().unwrap();
        assert_eq!(first, pair(7));
        // 5,000 samples of 1 in 10, all of them since it came.
        assert_eq!((entry.weight, entry.error, entry.samples), (50_000, 0, 5_000));
        // The bound of the paper: no error is more than the whole weight / MAX_PAIRS.
        assert!(
            table
                .pairs
                .values()
                .all(|entry| entry.error <= 250_000 / MAX_PAIRS as u64)
        );
    }
}
