//! The tables `episodes` and `steps`: intervals of time in which something was congested, and the steps of a training
//! job.

use std::borrow::Cow;

use roce_wire::Address;

use crate::events::names;
use crate::table::table;
use crate::{Nanos, TapId};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    EpisodeRow, EpisodeColumns, "episodes", "One interval in which something was congested on the way to one destination, at one tap.";
    episode: u32, "", "Its number in this run.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    kind: EpisodeKind, "", "What it was: ecn, incast, loss, rnr, pause, stall.";
    start: Nanos, "ns", "Begin of its first bin; of a pause or a stall, its own begin.";
    end: Nanos, "ns", "End of its last bin; of a pause or a stall, its own end.";
    destination: Option<Address>, "", "Where the traffic goes. Absent for pauses of a link.";
    priority: Option<u8>, "", "Pauses: the priority; 8 for the whole link.";
    flows: u32, "flows", "Flows with signs of it.";
    flow_ids: Cow<'static, str>, "", "The first 32 of them, most signs first.";
    senders_max: u32, "hosts", "Most senders to the destination at the same time: the incast degree.";
    data_packets: u64, "packets", "Data packets to the destination while it lasted.";
    ce: u64, "packets", "Of these, marked.";
    ce_share_peak: Option<f64>, "", "Largest share of marked ones in a bin. Absent without data packets that ECN can mark.";
    cnp: u64, "packets", "CNPs that slowed its flows.";
    lost: u64, "packets", "Packets that holes and NAKs say were lost.";
    retransmitted_bytes: u64, "bytes", "Application data sent again.";
    rnr_naks: u64, "packets", "RNR NAKs.";
    pause_ns: Option<u64>, "ns", "How long pauses lasted. Absent: needs the link's speed.";
    jain: Option<f64>, "", "Jain's index of the payload of its senders' flows: 1 is fair, 1/n is one taking all. Absent with fewer than two.";
    aggressors: Cow<'static, str>, "", "The flows that sent most of the bytes.";
    victims: Cow<'static, str>, "", "Flows that suffered without having sent much of it.";
    cause: Cow<'static, str>, "", "What brought it about, as far as the evidence goes.";
    confidence: Confidence, "", "How sure that is: high, medium, low.";
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    StepRow, StepColumns, "steps", "One burst of a training job between two hosts: an all-reduce.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    step: u32, "", "Its number: 1 for the first one that was captured, the same for all pairs that take part.";
    host_a: Address, "", "One of the hosts, the lower address.";
    host_b: Address, "", "The other one.";
    start: Nanos, "ns", "Begin of the burst's first bin.";
    end: Nanos, "ns", "End of its last bin.";
    duration_ns: u64, "ns", "From start to end.";
    bytes: u64, "bytes", "Application data of both directions.";
    period_ns: u64, "ns", "Median time from the start of one burst of this pair to the next.";
    spread_ns: u64, "ns", "From the first to the last of the pairs of this step to end it.";
    outlier: bool, "", "It lasted longer than this pair's median by three standard deviations (from the median absolute deviation), a tenth and two bins.";
    episode: Option<u32>, "", "The episode at this tap that overlaps an outlier most, one on the way to its own hosts before any other: `episodes.episode`. Absent: there is none.";
    logged_ns: Option<u64>, "ns", "How long the training log says this step's all-reduce took: the step that had begun by the middle of the burst, or, in a log without times, the one whose number is as far from the first one's. Absent without --training-log.";
}

names! {
    /// What kind of congestion an episode is.
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
        /// A flow stood still in the middle of a message.
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
