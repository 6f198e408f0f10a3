//! Output of an analysis: results while it runs, and a conclusion at its end.

use roce_model::{
    CnpReceiver, ConnectionAttempt, FlowKey, FlowRow, HopRow, HopTimelineRow, InbandHopRow, ProgramExchange,
    SampleRow, TapId, TapMeasures, Totals,
};

use crate::bins::Bin;
use crate::congestion::cnp_receivers;
use crate::credits::CreditsAtTap;
use crate::mrc::MrcConclusion;
use crate::pairing::attempts;
use crate::timing::send_answers;

/// Results, as far as they cannot change any more.
#[derive(Debug, Default)]
pub struct Output {
    /// Flows that were opened, with the DSCP of their first packet.
    pub(crate) opened: Vec<(FlowKey, Option<u8>)>,
    pub(crate) bins: Vec<Bin>,
    pub(crate) flows: Vec<FlowRow>,
    /// Samples read meanwhile, in the order of the stream.
    pub(crate) samples: Vec<SampleRow>,
    /// The flows that are live, where a snapshot was requested.
    pub(crate) snapshot: Option<LiveFlows>,
    /// Measurements at each tap since the start, with a snapshot.
    pub(crate) measures: Vec<(TapId, TapMeasures)>,
    /// Every bin before this one has been emitted.
    pub(crate) watermark: u64,
}

/// The flows that are live, as they stand.
#[derive(Debug)]
pub(crate) enum LiveFlows {
    /// Their rows.
    Rows(Vec<FlowRow>),
    /// There are more than the snapshot may have.
    TooMany,
}

/// Conclusion of an analysis at its end, besides its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// Counts of RoCE packets.
    pub totals: Totals,
    /// Who was notified of congestion.
    pub cnp_receivers: Vec<CnpReceiver>,
    /// Attempts of the connection manager, in the order of time.
    pub attempts: Vec<ConnectionAttempt>,
    /// Programs that answer each other's SENDs, in the order of flows.
    pub exchanges: Vec<ProgramExchange>,
    /// Copies dropped, by tap.
    pub copies: Vec<u64>,
    /// Packets that another tap saw, too, by tap.
    pub matched: Vec<u64>,
    /// Marks, losses and delays between two taps that saw the same traffic.
    pub hops: Vec<HopRow>,
    /// Those hops by bin, in the order of time.
    pub hop_timeline: Vec<HopTimelineRow>,
    /// Credits and their data, by connection and tap.
    pub credits: Vec<CreditsAtTap>,
    /// Rings of credits without the addresses that they offer, because frames were cut.
    pub cut_rings: u64,
    /// Connections of MRC and UET.
    pub mrc: MrcConclusion,
    /// Hops of flows, as switches wrote them into packets.
    pub hops_inband: Vec<InbandHopRow>,
}

impl Conclusion {
    /// Adds the conclusions of the other shards of the run.
    pub fn add(&mut self, others: &[Self]) {
        let receivers = others.iter().map(|other| other.cnp_receivers.len());
        self.cnp_receivers.reserve(receivers.sum());
        for other in others {
            self.add_one(other);
        }
        cnp_receivers::sort(&mut self.cnp_receivers);
        attempts::sort(&mut self.attempts);
        send_answers::sort(&mut self.exchanges);
        self.hops
            .sort_by_key(|hop| (hop.flow_id, hop.from_tap, hop.to_tap));
        self.hop_timeline
            .sort_by_key(|row| (row.time, row.flow_id, row.from_tap, row.to_tap));
    }

    fn add_one(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.cnp_receivers.extend_from_slice(&other.cnp_receivers);
        self.attempts.extend_from_slice(&other.attempts);
        self.exchanges.extend_from_slice(&other.exchanges);
        for (sums, more) in [
            (&mut self.copies, &other.copies),
            (&mut self.matched, &other.matched),
        ] {
            sums.resize(sums.len().max(more.len()), 0);
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum += more;
            }
        }
        self.hops.extend_from_slice(&other.hops);
        self.hop_timeline.extend_from_slice(&other.hop_timeline);
        self.credits.extend_from_slice(&other.credits);
        self.cut_rings += other.cut_rings;
        self.mrc.add(&other.mrc);
        self.hops_inband.extend_from_slice(&other.hops_inband);
    }
}
