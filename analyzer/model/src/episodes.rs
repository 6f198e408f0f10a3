//! The tables `episodes` and `steps`: intervals of time in which something was congested, and the steps of a training
//! job.

use std::borrow::Cow;

use roce_wire::Address;

use crate::events::names;
use crate::table::table;
use crate::{TapId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    EpisodeRow, EpisodeColumns, "episodes", "One interval of congestion on the path to one destination, at one tap.";
    episode: u32, "", "Its number in this run.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    kind: EpisodeKind, "", "Kind of congestion: ecn, incast, loss, rnr, pause, stall.";
    start_time: Time, "ns", "Start of its first bin; of a pause or a stall, its own start.";
    end_time: Time, "ns", "End of its last bin; of a pause or a stall, its own end.";
    destination: Option<Address>, "", "Receiver of the traffic. Absent for pauses of a link.";
    priority: Option<u8>, "", "Pauses: the priority; 8 for the whole link.";
    flows: u32, "flows", "Flows with signs of it.";
    flow_ids: Cow<'static, str>, "", "At most 32 of these flows by flow_id, separated by spaces, most signs first.";
    senders_max: u32, "hosts", "Maximum number of senders to the destination at the same time: the incast degree.";
    data_packets: u64, "packets", "Data packets to the destination during the episode.";
    ce: u64, "packets", "Data packets marked Congestion Experienced.";
    ce_share_peak: Option<f64>, "", "Largest share of marked data packets in a bin. Absent without data packets that ECN can mark.";
    cnp: u64, "packets", "CNPs that slowed its flows.";
    lost: u64, "packets", "Lost packets, by holes and NAKs.";
    retransmitted_bytes: u64, "bytes", "Retransmitted application data.";
    rnr_naks: u64, "packets", "RNR NAKs.";
    pause_ns: Option<u64>, "ns", "Length of the pauses. Absent: needs the link's speed.";
    jain: Option<f64>, "", "Jain's index of the payload of its senders' flows: 1 is fair, 1/n is one flow with everything. Absent with fewer than two.";
    aggressors: Cow<'static, str>, "", "The flows that sent most of the bytes, with their shares; of an incast whose senders sent alike, their addresses.";
    victims: Cow<'static, str>, "", "Flows that suffered and sent little; without such, the destination of an incast or of marks, and else the senders that suffered.";
    cause: Cow<'static, str>, "", "Cause, as far as the evidence shows it.";
    confidence: Confidence, "", "Confidence in the cause: high, medium, low.";
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    StepRow, StepColumns, "steps", "One burst of a training job between two hosts: an all-reduce.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    step: u32, "", "Its number: 1 for the first captured step; equal for all pairs that take part.";
    host_a: Address, "", "Host with the lower address.";
    host_b: Address, "", "Host with the higher address.";
    start_time: Time, "ns", "Start of the burst's first bin.";
    end_time: Time, "ns", "End of its last bin.";
    duration_ns: u64, "ns", "From start_time to end_time.";
    payload_bytes: u64, "bytes", "Application data of both directions.";
    period_ns: u64, "ns", "Median time from the start of one burst of this pair to the next.";
    spread_ns: u64, "ns", "Time between the ends of the first and the last pair of this step.";
    outlier: bool, "", "True if it took longer than this pair's median by three standard deviations (from the median absolute deviation), a tenth and two bins.";
    episode: Option<u32>, "", "The episode at this tap that overlaps an outlier most, one on the path to its own hosts before any other: `episodes.episode`. Absent: there is none.";
    logged_ns: Option<u64>, "ns", "Length of this step's all-reduce in the training log: of the step that had started by the middle of the burst, or, in a log without times, of the step with the same distance from the first. Absent without --training-log.";
}

names! {
    /// Kind of congestion of an episode.
    EpisodeKind {
        /// Packets to one destination were marked.
        #[default]
        Ecn = "ecn",
        /// Several senders to one destination at once, with marks, notifications, losses or pauses.
        Incast = "incast",
        /// Packets were lost.
        Loss = "loss",
        /// A receiver had no buffers.
        Rnr = "rnr",
        /// A link or a priority was paused.
        Pause = "pause",
        /// A flow stood still in the middle of a message, or until an answer came.
        Stall = "stall",
    }
}

names! {
    /// How sure a statement is.
    Confidence {
        /// The packets show it.
        High = "high",
        /// It fits, and something else could look alike.
        #[default]
        Medium = "medium",
        /// A hint.
        Low = "low",
    }
}

/// The steps of a training log beside those in the packets. Times are medians, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrainingLogFit {
    /// Steps in the log.
    pub logged_steps: u64,
    /// Rows of steps in the packets that have one of the log.
    pub joined_rows: u64,
    /// The all-reduce by the log, and the burst in the packets, of the joined rows.
    pub allreduce: Option<(u64, u64)>,
    /// The whole step by the log, and the period of steps in the packets.
    pub total: Option<(u64, u64)>,
}

impl TrainingLogFit {
    /// An all-reduce by the log that is so many times as long as its burst is doubted: a rank waits for others in it, which packets do not
    /// show.
    const WAITING: u64 = 10;
    /// A burst that is so many times as long as the all-reduce of the log is doubted, and so is a step that differs so much.
    const APART: u64 = 3;

    /// True if the log is of another run, by its times.
    pub fn is_doubtful(&self) -> bool {
        let allreduce = self.allreduce.is_some_and(|(log, packets)| {
            log > packets.saturating_mul(Self::WAITING) || packets > log.saturating_mul(Self::APART)
        });
        let total = self.total.is_some_and(|(log, packets)| {
            log > packets.saturating_mul(Self::APART) || packets > log.saturating_mul(Self::APART)
        });
        allreduce || total
    }
}
