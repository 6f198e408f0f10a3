//! Output of an analysis: results while it runs, and a conclusion at its end.

use roce_model::{
    CnpReceiver, ConnectionAttempt, FlowKey, FlowRow, HopRow, HopTimelineRow, InbandHopRow, ProgramExchange,
    SampleRow, TapId, TapMeasures, Totals,
};

use crate::bins::Bin;
use crate::credits::CreditsAtTap;
use crate::mrc::MrcConclusion;

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
