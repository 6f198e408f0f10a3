//! The rows of one bin, as one shard of a run closes them: columns, and their sums for verdicts by pair of hosts.
//!
//! A pair is one host that sends to another at one tap. Most rows count in the sums of their pair alone. Rows with signs of trouble, and
//! all rows to destinations in trouble, are looked at one by one.

use roce_model::{Active, Columns, Groups, TapId, Time, TimelineColumns, Values, prefetch};

use crate::host_pair::HostPair;
use crate::host_pairs::HostPairs;

/// Numbers of a shard that are remembered, at most: 6 MB. A shard gives more of them only in a bin with more pairs.
const MAX_TRANSLATED: usize = 1 << 18;

/// Pairs between the prefetch of where a pair's state is, that of the state, and the pair's turn.
pub(crate) const PAIR_LAG: usize = 8;

/// The rows of one bin.
#[derive(Clone, Debug, Default)]
pub struct BinRows {
    /// Columns for the sinks. `senders_to_destination` needs all shards: it stays empty until they have come together.
    pub columns: TimelineColumns,
    /// When each row's flow sent.
    pub active: Vec<Active>,
    /// The place of each row's pair in `traffic`.
    pub pair_of_row: Vec<u32>,
    /// The sums of the rows by pair.
    pub traffic: Vec<PairTraffic>,
    /// The rows with signs of trouble, in order.
    signed: Vec<u32>,
    /// The rows whose retransmissions are those of MRC, which rules of its own judge; in order once they are summed up.
    mrc: Vec<u32>,
}

/// From the first to the last of some packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketTimes {
    /// Behind the last one: there is none.
    first: Time,
    last: Time,
}

impl Default for PacketTimes {
    fn default() -> Self {
        Self {
            first: Time(u64::MAX),
            last: Time(0),
        }
    }
}

impl PacketTimes {
    /// A packet.
    pub fn note(&mut self, time: Time) {
        self.add(&Self {
            first: time,
            last: time,
        });
    }

    /// Other packets.
    pub fn add(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    /// First and last, if there was any.
    pub(crate) fn get(&self) -> Option<(Time, Time)> {
        (self.first <= self.last).then_some((self.first, self.last))
    }
}

/// Traffic from one host to another at one tap in one bin.
#[derive(Clone, Debug)]
pub struct PairTraffic {
    /// The hashes of its hosts.
    pub groups: Groups,
    /// Its tap.
    pub tap: TapId,
    /// Its number in the shard.
    pub number: u32,
    /// Its numbers in the run, once the shards have come together.
    pub(crate) hosts: HostPair,
    /// From the first packet to the last one of its rows with application data.
    pub(crate) active: Active,
    /// Notifications of all of its rows, and those that belong to a NAK: adapters send one with it, without any mark.
    pub(crate) all_cnp: u64,
    /// Notifications of all of its rows that belong to a NAK.
    pub cnp_by_nak: u64,
    /// When data was marked, or its senders notified. Of a flow's marks the first in each 65.5 us.
    pub marked: PacketTimes,
    /// When packets were missing, retransmitted, or requested again.
    pub lost: PacketTimes,
    /// Bytes on the wire of all of its rows.
    pub(crate) all_wire_bytes: u64,
    /// Rows with application data, and the sums of these.
    pub(crate) flows: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) data_packets: u64,
    pub(crate) ce: u64,
    pub(crate) cnp: u64,
}

impl PairTraffic {
    /// True if a notification came that no NAK explains.
    pub(crate) fn is_notified(&self) -> bool {
        self.all_cnp > self.cnp_by_nak
    }

    /// No traffic yet.
    pub fn new(groups: Groups, tap: TapId, number: u32) -> Self {
        Self {
            groups,
            tap,
            number,
            hosts: HostPair::default(),
            active: Active {
                first: u64::MAX,
                last: 0,
            },
            all_cnp: 0,
            cnp_by_nak: 0,
            marked: PacketTimes::default(),
            lost: PacketTimes::default(),
            all_wire_bytes: 0,
            flows: 0,
            payload_bytes: 0,
            wire_bytes: 0,
            data_packets: 0,
            ce: 0,
            cnp: 0,
        }
    }
}

/// Pairs of the run by the numbers that one shard gives them. Either may start again: each is known by its hash.
#[derive(Debug, Default)]
pub struct TranslatedPairs(Vec<(u64, HostPair)>);

impl TranslatedPairs {
    #[inline]
    fn prefetch(&self, number: u32) {
        if let Some(entry) = self.0.get(number as usize) {
            prefetch(entry);
        }
    }

    #[cold]
    fn set(&mut self, number: u32, hash: u64, pair: HostPair) {
        let number = number as usize;
        if number >= self.0.len() {
            if number > MAX_TRANSLATED {
                return;
            }
            self.0.resize(number + 1, (0, HostPair::default()));
        }
        self.0[number] = (hash, pair);
    }
}

/// The values of a column in which none is absent.
pub(crate) fn plain<T: Default>(values: &Values<T>) -> &[T] {
    values.without_nulls().unwrap_or_default()
}

/// Notes in `signs` the rows whose values are not 0.
fn note<T: Default + PartialEq>(signs: &mut [bool], values: &Values<T>) {
    let (first, values) = values.or_default();
    let signs = signs.get_mut(first..).unwrap_or_default();
    for (sign, value) in signs.iter_mut().zip(values) {
        *sign |= *value != T::default();
    }
}

impl BinRows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.pair_of_row.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.pair_of_row.is_empty()
    }

    /// The rows with signs of trouble, in order.
    pub(crate) fn signed(&self) -> &[u32] {
        &self.signed
    }

    /// The retransmissions of a row are those of MRC.
    pub fn note_mrc(&mut self, row: usize) {
        self.mrc.extend(u32::try_from(row));
    }

    /// True if the retransmissions of a row are those of MRC.
    pub(crate) fn is_mrc(&self, row: usize) -> bool {
        u32::try_from(row).is_ok_and(|row| self.mrc.binary_search(&row).is_ok())
    }

    /// Fills in 0 up to the last row in the columns of what is rare: they are filled when that happens, or at the end.
    pub fn fill_up(&mut self) {
        fn fill<T: Default + Clone>(column: &mut Values<T>, rows: usize) {
            column.extend_with(T::default(), rows.saturating_sub(column.len()));
        }
        let (columns, rows) = (&mut self.columns, self.pair_of_row.len());
        fill(&mut columns.retransmitted_packets, rows);
        fill(&mut columns.retransmitted_bytes, rows);
        fill(&mut columns.missing, rows);
        fill(&mut columns.late, rows);
        fill(&mut columns.trimmed, rows);
        fill(&mut columns.naks, rows);
        fill(&mut columns.rnr_naks, rows);
        fill(&mut columns.trim_nacks, rows);
        fill(&mut columns.holes, rows);
        fill(&mut columns.skips, rows);
        fill(&mut columns.penalty, rows);
    }

    /// Makes room for as many rows as `other` has.
    pub fn reserve_like(&mut self, other: &Self) {
        self.columns.reserve_like(&other.columns);
        self.active.reserve(other.active.len());
        self.pair_of_row.reserve(other.pair_of_row.len());
        self.traffic.reserve(other.traffic.len());
    }

    /// Removes all rows, keeping the room.
    pub fn clear(&mut self) {
        self.columns.clear();
        self.active.clear();
        self.pair_of_row.clear();
        self.traffic.clear();
        self.signed.clear();
        self.mrc.clear();
    }

    /// The rows are complete: sums them up by pair, and finds those with signs of trouble.
    pub fn sum_up(&mut self) {
        self.fill_up();
        self.mrc.sort_unstable();
        self.mrc.dedup();
        let columns = &self.columns;
        let rows = self.pair_of_row.iter().zip(&self.active);
        let bytes = plain(&columns.payload_bytes)
            .iter()
            .zip(plain(&columns.wire_bytes));
        let packets = plain(&columns.data_packets).iter().zip(plain(&columns.ce));
        let (first_cnp, cnp) = columns.cnp.or_default();
        for (row, (((pair, active), (payload, wire)), (data, ce))) in rows.zip(bytes).zip(packets).enumerate()
        {
            let Some(traffic) = self.traffic.get_mut(*pair as usize) else {
                continue;
            };
            traffic.all_wire_bytes = traffic.all_wire_bytes.saturating_add(*wire);
            let cnp = row.checked_sub(first_cnp).and_then(|at| cnp.get(at));
            let cnp = u64::from(cnp.copied().unwrap_or_default());
            traffic.all_cnp += cnp;
            if *payload == 0 {
                continue;
            }
            traffic.active.first = traffic.active.first.min(active.first);
            traffic.active.last = traffic.active.last.max(active.last);
            traffic.flows += 1;
            traffic.payload_bytes = traffic.payload_bytes.saturating_add(*payload);
            traffic.wire_bytes = traffic.wire_bytes.saturating_add(*wire);
            traffic.data_packets += u64::from(*data);
            traffic.ce += u64::from(*ce);
            traffic.cnp += cnp;
        }
        let mut signs = vec![false; self.pair_of_row.len()];
        note(&mut signs, &columns.ce);
        note(&mut signs, &columns.cnp);
        note(&mut signs, &columns.missing);
        note(&mut signs, &columns.trimmed);
        note(&mut signs, &columns.lost_downstream);
        note(&mut signs, &columns.retransmitted_packets);
        note(&mut signs, &columns.rnr_naks);
        note(&mut signs, &columns.pause_ns);
        let signed = (0..).zip(&signs).filter(|(_, sign)| **sign);
        self.signed = signed.map(|(row, _)| row).collect();
    }

    /// The pairs between which application data was sent, and when in the bin.
    pub fn sending(&self) -> impl Iterator<Item = (HostPair, Active)> {
        let sending = self.traffic.iter().filter(|traffic| traffic.payload_bytes > 0);
        sending.map(|traffic| (traffic.hosts, traffic.active))
    }

    /// Finds the run's pair for each of the rows' pairs, and notes who sends. `known`: the pairs of the shard up to this bin.
    pub fn enter(&mut self, pairs: &mut HostPairs, known: &mut TranslatedPairs) {
        for at in 0..self.traffic.len() {
            if let Some(later) = self.traffic.get(at + 2 * PAIR_LAG) {
                known.prefetch(later.number);
            }
            if let Some(later) = self.traffic.get(at + PAIR_LAG)
                && let Some((_, pair)) = known.0.get(later.number as usize)
            {
                pairs.prefetch(*pair);
            }
            let traffic = &mut self.traffic[at];
            traffic.hosts = match known.0.get(traffic.number as usize) {
                Some((hash, pair)) if *hash == traffic.groups.pair && pairs.is_current(*pair, *hash) => *pair,
                _ => {
                    let pair = pairs.find_or_add(traffic.groups);
                    known.set(traffic.number, traffic.groups.pair, pair);
                    pair
                }
            };
            if traffic.payload_bytes > 0 {
                pairs.sends(traffic.hosts, traffic.active);
            }
        }
    }

    /// Fills in `senders_to_destination` by the number of the destination.
    pub fn fill_senders(&mut self, senders: impl Fn(u32) -> u32) {
        let (columns, traffic) = (&mut self.columns, &self.traffic);
        columns.senders_to_destination.clear();
        columns.senders_to_destination.extend(&self.pair_of_row, |pair| {
            traffic
                .get(*pair as usize)
                .map_or(0, |traffic| senders(traffic.hosts.destination))
        });
    }

    /// True if the columns have as many rows as there are pairs of rows: for assertions.
    pub fn is_whole(&self) -> bool {
        self.columns.len() == self.len() && self.active.len() == self.len()
    }
}

#[cfg(test)]
mod tests {
    use roce_model::TimelineRow;

    use super::*;

    fn groups(pair: u64) -> Groups {
        Groups {
            destination: 9,
            source: pair,
            pair,
        }
    }

    #[test]
    fn every_sign_of_trouble_is_found() {
        let changes: [fn(&mut TimelineRow); 9] = [
            |_| (),
            |row| row.ce = 1,
            |row| row.cnp = Some(1),
            |row| (row.cnp, row.lost_downstream, row.pause_ns) = (Some(0), Some(0), Some(0)),
            |row| row.missing = 1 << 40,
            |row| row.lost_downstream = Some(1),
            |row| row.retransmitted_packets = 1,
            |row| row.rnr_naks = 1,
            |row| row.pause_ns = Some(1),
        ];
        let mut rows = BinRows::default();
        for change in changes {
            let mut row = TimelineRow::default();
            change(&mut row);
            rows.add(&row, groups(1));
        }
        rows.sum_up();
        assert_eq!(rows.signed(), [1, 2, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn rows_with_application_data_are_summed_up_by_pair() {
        let row = |payload_bytes, wire_bytes, cnp| TimelineRow {
            payload_bytes,
            wire_bytes,
            cnp,
            data_packets: 2,
            ce: 1,
            ..TimelineRow::default()
        };
        let mut rows = BinRows::default();
        for row in [row(10, 20, None), row(0, 70, Some(9)), row(30, 40, Some(3))] {
            rows.add(&row, groups(1));
        }
        // All between the first one's hosts.
        rows.pair_of_row = vec![0, 0, 0];
        rows.active[0] = Active { first: 5, last: 6 };
        rows.active[2] = Active { first: 3, last: 4 };
        rows.sum_up();
        let traffic = &rows.traffic[0];
        assert_eq!((traffic.all_wire_bytes, traffic.flows), (130, 2), "20 + 70 + 40");
        assert_eq!((traffic.payload_bytes, traffic.wire_bytes), (40, 60));
        assert_eq!((traffic.data_packets, traffic.ce, traffic.cnp), (4, 2, 3));
        assert_eq!(traffic.active, Active { first: 3, last: 6 });
        rows.clear();
        assert!(rows.is_empty() && rows.is_whole());
    }

    #[test]
    fn columns_of_what_is_rare_are_filled_up() {
        let mut rows = BinRows::default();
        rows.add(&TimelineRow::default(), groups(1));
        rows.columns.missing.clear();
        assert!(rows.columns.missing.is_empty());
        rows.fill_up();
        assert_eq!(
            (rows.columns.missing.len(), rows.columns.missing.at(0)),
            (1, Some(&0))
        );
    }
}
