//! Counts of a flow: in one bin, and in all.

use roce_model::{FlowRow, Totals, prefetch};
use roce_verdict::PacketTimes;
use roce_wire::Ecn;

/// Counts of one flow in one bin of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) packets: u32,
    pub(crate) data_packets: u32,
    /// Data packets by ECN field, indexed by its value.
    pub(crate) ecn: [u32; 4],
    pub(crate) acks: u32,
    pub(crate) messages: u32,
    pub(crate) wire_bytes: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) rare: Option<Box<Rare>>,
}

/// Counts that are 0 in most rows, which are smaller without them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rare {
    pub(crate) naks: u32,
    pub(crate) rnr_naks: u32,
    /// Congestion notifications that slow the flow.
    pub(crate) cnp: u32,
    /// Number of the CNPs that belong to a NAK.
    pub(crate) cnp_by_nak: u32,
    pub(crate) late: u32,
    pub(crate) lost_downstream: u32,
    /// Packets that came without their data.
    pub(crate) trimmed: u32,
    pub(crate) retransmitted_packets: u32,
    pub(crate) missing: u64,
    pub(crate) retransmitted_bytes: u64,
    /// Answers of MRC.
    pub(crate) mrc: MrcAnswers,
    /// Most bytes in a queue, and longest time in ns, that switches wrote into packets.
    pub(crate) hop_queue: Option<u32>,
    pub(crate) hop_delay: Option<u32>,
    /// When its packets were marked, or its sender notified.
    pub(crate) marked: PacketTimes,
    /// When its packets were missing, retransmitted, or requested again.
    pub(crate) lost: PacketTimes,
}

/// Counts of answers of MRC, and of what they brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MrcAnswers {
    /// True if the retransmissions are those of MRC.
    pub(crate) has_again: bool,
    /// NACKs of trimmed packets.
    pub(crate) trimmed: u32,
    /// PSNs that SACKs show as missing.
    pub(crate) holes: u32,
    /// SACKs that ask to skip a path.
    pub(crate) skips: u32,
    /// SACKs with a penalty.
    pub(crate) penalty: u32,
}

impl MrcAnswers {
    fn add(&mut self, other: Self) {
        self.has_again |= other.has_again;
        self.trimmed += other.trimmed;
        self.holes += other.holes;
        self.skips += other.skips;
        self.penalty += other.penalty;
    }
}

impl From<Rare> for Counts {
    fn from(rare: Rare) -> Self {
        Self {
            rare: Some(Box::new(rare)),
            ..Self::default()
        }
    }
}

impl Counts {
    /// Adds `other`, for rows that come in parts.
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.data_packets += other.data_packets;
        for (sum, more) in self.ecn.iter_mut().zip(other.ecn) {
            *sum += more;
        }
        self.acks += other.acks;
        self.messages += other.messages;
        self.wire_bytes += other.wire_bytes;
        self.payload_bytes += other.payload_bytes;
        if let Some(other) = &other.rare {
            self.rare_mut().add(other);
        }
    }

    /// The rare counts, to be added to.
    #[cold]
    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(crate) const fn by_ecn(&self, ecn: Ecn) -> u32 {
        self.ecn[ecn as usize]
    }
}

impl Rare {
    fn add(&mut self, other: &Self) {
        self.naks += other.naks;
        self.rnr_naks += other.rnr_naks;
        self.cnp = self.cnp.saturating_add(other.cnp);
        self.cnp_by_nak = self.cnp_by_nak.saturating_add(other.cnp_by_nak);
        self.late += other.late;
        self.lost_downstream += other.lost_downstream;
        self.trimmed += other.trimmed;
        self.retransmitted_packets += other.retransmitted_packets;
        self.missing += other.missing;
        self.retransmitted_bytes += other.retransmitted_bytes;
        self.mrc.add(other.mrc);
        self.hop_queue = self.hop_queue.max(other.hop_queue);
        self.hop_delay = self.hop_delay.max(other.hop_delay);
        self.marked.add(&other.marked);
        self.lost.add(&other.lost);
    }
}

/// Counts of one flow in all: the sum of its [`Counts`]. What is rare stands behind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct FlowTotals {
    pub(crate) packets: u64,
    pub(crate) payload_bytes: u64,
    data_packets: u64,
    ecn: [u64; 4],
    acks: u64,
    messages: u64,
    pub(crate) wire_bytes: u64,
    naks: u64,
    rnr_naks: u64,
    pub(crate) cnp: u64,
    missing: u64,
    late: u64,
    pub(crate) lost_downstream: u64,
    retransmitted_packets: u64,
    retransmitted_bytes: u64,
}

impl FlowTotals {
    /// Packets with data.
    pub(crate) fn data_packets(&self) -> u64 {
        self.data_packets
    }

    /// Messages whose last packet was captured.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Prefetches the counts, but for what is rare.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.packets);
        prefetch(&self.wire_bytes);
    }

    /// Adds the counts of one bin: so the sum of a flow's timeline rows is its row in `flows`.
    #[inline]
    pub(crate) fn add(&mut self, counts: &Counts) {
        self.packets += u64::from(counts.packets);
        self.data_packets += u64::from(counts.data_packets);
        for (sum, more) in self.ecn.iter_mut().zip(counts.ecn) {
            *sum += u64::from(more);
        }
        self.acks += u64::from(counts.acks);
        self.messages += u64::from(counts.messages);
        self.wire_bytes += counts.wire_bytes;
        self.payload_bytes += counts.payload_bytes;
        if let Some(rare) = &counts.rare {
            self.naks += u64::from(rare.naks);
            self.rnr_naks += u64::from(rare.rnr_naks);
            self.cnp += u64::from(rare.cnp);
            self.missing += rare.missing;
            self.late += u64::from(rare.late);
            self.lost_downstream += u64::from(rare.lost_downstream);
            self.retransmitted_packets += u64::from(rare.retransmitted_packets);
            self.retransmitted_bytes += rare.retransmitted_bytes;
        }
    }

    /// Fills in the counts of a flow's row.
    pub(crate) fn write_flow(&self, row: &mut FlowRow) {
        row.packets = self.packets;
        row.wire_bytes = self.wire_bytes;
        row.payload_bytes = self.payload_bytes;
        row.data_packets = self.data_packets;
        row.not_ect = self.ecn[Ecn::NotEct as usize];
        row.ect0 = self.ecn[Ecn::Ect0 as usize];
        row.ect1 = self.ecn[Ecn::Ect1 as usize];
        row.ce = self.ecn[Ecn::Ce as usize];
        row.retransmitted_packets = self.retransmitted_packets;
        row.retransmitted_bytes = self.retransmitted_bytes;
        row.missing = self.missing;
        row.late = self.late;
        row.naks = self.naks;
        row.rnr_naks = self.rnr_naks;
        row.acks = self.acks;
        row.messages = self.messages;
    }

    /// Adds a closed flow to the run.
    pub(crate) fn add_to_run(&self, totals: &mut Totals) {
        totals.flows += 1;
        totals.roce_packets += self.packets;
        totals.wire_bytes += self.wire_bytes;
        totals.payload_bytes += self.payload_bytes;
        totals.data_packets += self.data_packets;
        totals.data_ce += self.ecn[Ecn::Ce as usize];
        totals.retransmitted_packets += self.retransmitted_packets;
        totals.retransmitted_bytes += self.retransmitted_bytes;
        totals.missing += self.missing;
        totals.late += self.late;
        totals.naks += self.naks;
        totals.rnr_naks += self.rnr_naks;
        totals.acks += self.acks;
    }
}
