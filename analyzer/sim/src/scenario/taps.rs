//! The tables of taps: where packets are recorded, and how well.

use roce_model::{Span, Time};
use serde::Deserialize;

use crate::record::tap::{Loss, LossReport, MirrorDoubling, Queues};
use crate::units::{Picos, Rate, Size, TimeRange};

/// Tunnel that a mirror puts around frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MirrorName {
    /// ERSPAN type II.
    Erspan2,
    /// ERSPAN type III.
    Erspan3,
    /// VXLAN.
    Vxlan,
}

/// Directions of the frames that a tap sees, from its node's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TapDirection {
    /// Both.
    #[default]
    Both,
    /// Frames that the node receives.
    Rx,
    /// Frames that the node sends.
    Tx,
}

/// Kind of a tap's losses of records: see [`Loss`].
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum TapLoss {
    /// `loss = 0.01`: each with this probability.
    Probability(f64),
    /// `loss = { every = 500, lose = 3 }`: the last few of each round.
    Bursts(TapBursts),
    /// `loss = { buffer = "64KiB", rate = "1Gbps" }`: those that find no room in a buffer.
    Ring(TapRing),
    /// `loss = { from = "1ms", to = "2ms" }`: all in this time.
    Between(TapGap),
}

/// The last `lose` of each `every` frames are lost.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapBursts {
    /// The length of a round.
    pub every: u64,
    /// Number of lost records.
    pub lose: u64,
}

/// A buffer that is emptied at a steady rate.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapRing {
    /// Its size.
    pub buffer: Size,
    /// Rate at which it is emptied.
    pub rate: Rate,
}

/// A time in which all records are lost.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapGap {
    /// Its begin.
    pub from: Picos,
    /// Its end.
    pub to: Picos,
}

impl TapLoss {
    pub(crate) fn loss(self) -> Loss {
        match self {
            Self::Probability(probability) => Loss::Random { probability },
            Self::Bursts(TapBursts { every, lose }) => Loss::Bursts { every, lose },
            Self::Ring(TapRing { buffer, rate }) => Loss::Ring {
                bytes: buffer.0,
                rate: rate.0 / 8,
            },
            Self::Between(TapGap { from, to }) => Loss::Between {
                from: Time(from.nanos()),
                to: Time(to.nanos()),
            },
        }
    }
}

/// Report of lost records in a capture file: see [`LossReport`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossReportName {
    /// Nothing.
    #[default]
    Silent,
    /// Each record, and the statistics.
    Packets,
    /// The statistics.
    Statistics,
    /// The statistics say that none was lost.
    ClaimsNone,
}

impl LossReportName {
    pub(crate) fn report(self) -> LossReport {
        match self {
            Self::Silent => LossReport::Silent,
            Self::Packets => LossReport::Packets,
            Self::Statistics => LossReport::Statistics,
            Self::ClaimsNone => LossReport::ClaimsNone,
        }
    }
}

/// A place where packets are recorded: the end of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapTable {
    /// Place: `h3` (a host's NIC), or `leaf1:h3` (a switch's port towards h3).
    pub at: String,
    /// A name; where it is when not given.
    pub name: Option<String>,
    /// Taps with the same file are interfaces of one capture. When not given, a tap has a file of its own.
    pub file: Option<String>,
    /// Directions that it sees.
    #[serde(default)]
    pub direction: TapDirection,
    /// Bytes kept of each frame; 0: all.
    #[serde(default = "snaplen")]
    pub snaplen: u32,
    /// Tunnel around frames; a switch's mirror.
    pub mirror: Option<MirrorName>,
    /// Session or network identifier of the mirror.
    #[serde(default = "one")]
    pub session: u32,
    /// Offset of its clock, in nanoseconds; negative when behind.
    #[serde(default)]
    pub clock_offset_ns: i64,
    /// Rate error of its clock, in parts of 10^9; positive when fast.
    #[serde(default)]
    pub clock_drift_ppb: i64,
    /// The clock is set again at this time, by `clock_step_ns`.
    pub clock_step_at: Option<Picos>,
    /// By how much it then shows more, in nanoseconds; negative: less.
    #[serde(default)]
    pub clock_step_ns: i64,
    /// Stamps are so much later than the frames passed: a time, or a range such as `"10us..40us"`, at random for each frame.
    pub late: Option<TimeRange>,
    /// Stamps are multiples of this.
    #[serde(default)]
    pub quantum: Picos,
    /// Frames are stamped once in each such time, as libpcap's RDMA sniffer does; each when it passes when not given.
    pub poll: Option<Picos>,
    /// Lost records; none without it.
    pub loss: Option<TapLoss>,
    /// Report of these losses in the file.
    #[serde(default)]
    pub loss_report: LossReportName,
    /// PFC and pause frames are seen. Most capture points do not see them.
    #[serde(default)]
    pub pause_frames: bool,
    /// Start of recording: later than 0, the capture starts in the middle of traffic.
    #[serde(default)]
    pub from: Picos,
    /// Nothing is recorded from this on; the end of the simulation when not given.
    pub until: Option<Picos>,
    /// Receive queues of the capturing adapter: records are written queue by queue.
    #[serde(default = "one")]
    pub queues: u32,
    /// Time between two rounds of reading these queues, drawn for each round: it is also the longest
    /// distance of records from the order of their stamps.
    #[serde(default)]
    pub disorder: TimeRange,
    /// A mirror shows frames twice; the time from a frame to its copy.
    pub doubled: Option<TimeRange>,
    /// The probability that a frame is doubled.
    #[serde(default = "always")]
    pub doubled_share: f64,
    /// The copy was taken behind a router: its TTL is less by one, and it has other MAC addresses.
    #[serde(default)]
    pub doubled_routed: bool,
    /// The copy is in this tunnel, whose identifier is `session`; frames themselves are not.
    pub doubled_in: Option<MirrorName>,
}

impl TapTable {
    /// True if it records at a time.
    pub fn is_recording(&self, time: Picos) -> bool {
        self.from <= time && self.until.is_none_or(|until| time < until)
    }

    pub(crate) fn doubling(&self) -> Option<MirrorDoubling> {
        self.doubled.map(|range| MirrorDoubling {
            least: Span(range.from.nanos()),
            most: Span(range.to.nanos()),
            share: self.doubled_share,
            routed: self.doubled_routed,
            tunnel: None,
        })
    }

    pub(crate) fn receive_queues(&self) -> Option<Queues> {
        (self.queues > 1).then(|| Queues {
            count: self.queues,
            least: Span(self.disorder.from.nanos()),
            most: Span(self.disorder.to.nanos()),
        })
    }
}

fn always() -> f64 {
    1.0
}

fn snaplen() -> u32 {
    128
}

fn one() -> u32 {
    1
}
