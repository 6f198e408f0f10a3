//! The rows of a bin, as far as episodes look at them, out of their columns.

use roce_model::{FlowId, TapId, Values};

use super::open::FlowBin;
use crate::bin_rows::{BinRows, PairTraffic, plain};

/// Columns of a bin. One that is empty has no values that count.
pub(super) struct View<'a> {
    flow: &'a [u64],
    tap: &'a [u32],
    pub(super) payload_bytes: &'a [u64],
    retransmitted_bytes: &'a [u64],
    data_packets: &'a [u32],
    ect0: &'a [u32],
    ect1: &'a [u32],
    ce: &'a [u32],
    missing: &'a [u64],
    retransmitted: &'a [u32],
    rnr_naks: &'a [u32],
    pause_ns: &'a Values<u64>,
    cnp: &'a Values<u32>,
    lost: &'a Values<u32>,
    pair_of_row: &'a [u32],
    traffic: &'a [PairTraffic],
    bin: &'a BinRows,
}

impl<'a> View<'a> {
    pub(super) fn new(bin: &'a BinRows) -> Self {
        let columns = &bin.columns;
        Self {
            flow: plain(&columns.flow_id),
            tap: plain(&columns.tap),
            payload_bytes: plain(&columns.payload_bytes),
            retransmitted_bytes: plain(&columns.retransmitted_bytes),
            data_packets: plain(&columns.data_packets),
            ect0: plain(&columns.ect0),
            ect1: plain(&columns.ect1),
            ce: plain(&columns.ce),
            missing: plain(&columns.missing),
            retransmitted: plain(&columns.retransmitted_packets),
            rnr_naks: plain(&columns.rnr_naks),
            pause_ns: &columns.pause_ns,
            cnp: &columns.cnp,
            lost: &columns.lost_downstream,
            pair_of_row: &bin.pair_of_row,
            traffic: &bin.traffic,
            bin,
        }
    }

    /// A row without signs of trouble, to this destination.
    #[inline]
    pub(super) fn calm_row(&self, row: usize, destination: u32) -> FlowBin {
        let number = |values: &[u32]| values.get(row).copied().unwrap_or_default();
        let sum = |values: &[u64]| values.get(row).copied().unwrap_or_default();
        FlowBin {
            flow: FlowId(sum(self.flow)),
            destination,
            payload_bytes: sum(self.payload_bytes),
            retransmitted_bytes: sum(self.retransmitted_bytes),
            tap: TapId(number(self.tap)),
            data_packets: number(self.data_packets),
            markable: number(self.ect0).saturating_add(number(self.ect1)),
            ..FlowBin::default()
        }
    }

    /// A row, whatever it has.
    pub(super) fn row(&self, row: usize) -> FlowBin {
        let pair = self.pair_of_row.get(row);
        let traffic = pair.and_then(|pair| self.traffic.get(*pair as usize));
        let hosts = traffic.map(|traffic| traffic.hosts).unwrap_or_default();
        let number = |values: &[u32]| values.get(row).copied().unwrap_or_default();
        let sum = |values: &[u64]| values.get(row).copied().unwrap_or_default();
        let ce = number(self.ce);
        // Retransmissions of MRC say nothing of a loss: most were trimmed or overtaken, and its own rules judge them.
        let is_mrc = self.bin.is_mrc(row);
        let is_notified = traffic.is_some_and(PairTraffic::is_notified);
        FlowBin {
            flow: FlowId(sum(self.flow)),
            destination: hosts.destination,
            source: hosts.source,
            payload_bytes: sum(self.payload_bytes),
            retransmitted_bytes: if is_mrc { 0 } else { sum(self.retransmitted_bytes) },
            pause_ns: self.pause_ns.at(row).copied().unwrap_or_default(),
            tap: TapId(number(self.tap)),
            data_packets: number(self.data_packets),
            markable: number(self.ect0)
                .saturating_add(number(self.ect1))
                .saturating_add(ce),
            ce,
            cnp: self
                .cnp
                .at(row)
                .copied()
                .filter(|_| is_notified)
                .unwrap_or_default(),
            missing: u32::try_from(sum(self.missing)).unwrap_or(u32::MAX),
            lost: self.lost.at(row).copied().unwrap_or_default(),
            retransmitted: if is_mrc { 0 } else { number(self.retransmitted) },
            rnr_naks: number(self.rnr_naks),
        }
    }
}
