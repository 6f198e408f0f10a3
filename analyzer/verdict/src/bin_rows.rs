//! The rows of one bin, as one shard of a run closes them: columns, and what verdicts need of them, summed up by way.
//!
//! A way leads from one host to another at one tap. Most rows count in the sums of their way alone; rows with signs of trouble, and
//! those on ways to destinations in trouble, are looked at one by one.

use roce_model::{Active, Columns, Groups, TapId, TimelineColumns, Values};

use crate::host_pairs::HostPair;

/// The rows of one bin.
#[derive(Clone, Debug, Default)]
pub struct BinRows {
    /// What the sinks get. `senders_to_destination` needs all shards: it stays empty until they have come together.
    pub columns: TimelineColumns,
    /// When each row's flow sent.
    pub active: Vec<Active>,
    /// The place of each row's way in `ways`.
    pub way_of_row: Vec<u32>,
    /// The ways of the rows.
    pub ways: Vec<Way>,
    /// The rows with signs of trouble, in order.
    signed: Vec<u32>,
}

/// What was sent on one way in one bin.
#[derive(Clone, Debug)]
pub struct Way {
    /// The hashes of its hosts.
    pub groups: Groups,
    /// Its tap.
    pub tap: TapId,
    /// Its number in the shard.
    pub number: u32,
    /// Its numbers in the run, once the shards have come together.
    pub(crate) pair: HostPair,
    /// From the first packet to the last one of its rows with application data.
    pub(crate) active: Active,
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

impl Way {
    /// A way without rows.
    pub fn new(groups: Groups, tap: TapId, number: u32) -> Self {
        Self {
            groups,
            tap,
            number,
            pair: HostPair::default(),
            active: Active {
                first: u64::MAX,
                last: 0,
            },
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
        self.way_of_row.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.way_of_row.is_empty()
    }

    /// The rows with signs of trouble, in order.
    pub(crate) fn signed(&self) -> &[u32] {
        &self.signed
    }

    /// The rows are complete: sums them up by way, and finds those with signs of trouble.
    pub fn sum_up(&mut self) {
        let columns = &self.columns;
        let rows = self.way_of_row.iter().zip(&self.active);
        let bytes = plain(&columns.payload_bytes)
            .iter()
            .zip(plain(&columns.wire_bytes));
        let packets = plain(&columns.data_packets).iter().zip(plain(&columns.ce));
        let (first_cnp, cnp) = columns.cnp.or_default();
        for (row, (((way, active), (payload, wire)), (data, ce))) in rows.zip(bytes).zip(packets).enumerate()
        {
            let Some(way) = self.ways.get_mut(*way as usize) else {
                continue;
            };
            way.all_wire_bytes = way.all_wire_bytes.saturating_add(*wire);
            if *payload == 0 {
                continue;
            }
            way.active.first = way.active.first.min(active.first);
            way.active.last = way.active.last.max(active.last);
            way.flows += 1;
            way.payload_bytes = way.payload_bytes.saturating_add(*payload);
            way.wire_bytes = way.wire_bytes.saturating_add(*wire);
            way.data_packets += u64::from(*data);
            way.ce += u64::from(*ce);
            let cnp = row.checked_sub(first_cnp).and_then(|at| cnp.get(at));
            way.cnp += u64::from(cnp.copied().unwrap_or_default());
        }
        let mut signs = vec![false; self.way_of_row.len()];
        note(&mut signs, &columns.ce);
        note(&mut signs, &columns.cnp);
        note(&mut signs, &columns.missing);
        note(&mut signs, &columns.lost_downstream);
        note(&mut signs, &columns.retransmitted_packets);
        note(&mut signs, &columns.rnr_naks);
        note(&mut signs, &columns.pause_ns);
        let signed = (0..).zip(&signs).filter(|(_, sign)| **sign);
        self.signed = signed.map(|(row, _)| row).collect();
    }

    /// Fills in `senders_to_destination` by the number of the destination.
    pub fn fill_senders(&mut self, senders: impl Fn(u32) -> u32) {
        let (columns, ways) = (&mut self.columns, &self.ways);
        columns.senders_to_destination.clear();
        columns.senders_to_destination.extend(&self.way_of_row, |way| {
            ways.get(*way as usize)
                .map_or(0, |way| senders(way.pair.destination))
        });
    }

    /// True if the columns have as many rows as there are ways of rows: for assertions.
    pub fn is_whole(&self) -> bool {
        self.columns.len() == self.len() && self.active.len() == self.len()
    }
}
