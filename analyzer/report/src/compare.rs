//! Two runs compared: what is compared, what came out, and how it is shown. Who computes it is left to others.
//!
//! [`json::write`] and [`html::page`] are for programs and browsers, [`text`](crate::terminal::comparison::text) is for the terminal. All three
//! show the same [`Comparison`].

pub mod html;
pub mod json;

use roce_model::{Severity, Span};

/// Rises when a key of the JSON document changes its meaning; a new key does not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// A compared quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each variant is what its description says")]
pub enum Quantity {
    Goodput,
    CeShare,
    Cnp,
    Lost,
    Unclear,
    Reordered,
    NotCaptured,
    RetransmittedShare,
    RnrNaks,
    AckTimeMedian,
    AckTimeLongest,
    MessageTimeMedian,
    MessageTimeLongest,
    PauseFrames,
    PausedShare,
    StepTime,
    StepPeriod,
}

/// Unit of its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each variant is the unit it names")]
pub enum Unit {
    BitsPerSecond,
    Share,
    Nanoseconds,
    PerMillionPackets,
    PerGigabyte,
    PerSecond,
}

impl Unit {
    /// Its name in the JSON document and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitsPerSecond => "bit/s",
            Self::Share => "share",
            Self::Nanoseconds => "ns",
            Self::PerMillionPackets => "per million data packets",
            Self::PerGigabyte => "per GB",
            Self::PerSecond => "per s",
        }
    }

    /// A difference smaller than this matters to nobody, however certain it is.
    pub const fn negligible(self) -> f64 {
        match self {
            // The relative threshold is enough for rates.
            Self::BitsPerSecond => 0.0,
            // A thousandth of all packets.
            Self::Share => 0.001,
            // Differences that switches and adapters add from one packet to the next.
            Self::Nanoseconds => 100.0,
            Self::PerMillionPackets | Self::PerGigabyte | Self::PerSecond => 1.0,
        }
    }
}

/// Description of a compared quantity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Metric {
    /// Its name in the JSON document.
    pub key: &'static str,
    /// Its name on the screen.
    pub title: &'static str,
    /// Unit of its numbers.
    pub unit: Unit,
    /// Direction in which it gets worse: up or down. `None`: that depends on the change.
    pub worse: Option<Direction>,
    /// Meaning of the quantity.
    pub meaning: &'static str,
}

/// Direction in which a number moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It grows.
    Up,
    /// It shrinks.
    Down,
}

impl Quantity {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 17] = [
        Self::Goodput,
        Self::CeShare,
        Self::Cnp,
        Self::Lost,
        Self::Unclear,
        Self::Reordered,
        Self::NotCaptured,
        Self::RetransmittedShare,
        Self::RnrNaks,
        Self::AckTimeMedian,
        Self::AckTimeLongest,
        Self::MessageTimeMedian,
        Self::MessageTimeLongest,
        Self::PauseFrames,
        Self::PausedShare,
        Self::StepTime,
        Self::StepPeriod,
    ];

    /// Description of the quantity.
    #[expect(clippy::too_many_lines, reason = "a table")]
    pub const fn describe(self) -> Metric {
        let (key, title, unit, worse, meaning) = match self {
            Self::Goodput => (
                "goodput_bps",
                "goodput",
                Unit::BitsPerSecond,
                Some(Direction::Down),
                "Application data, retransmissions left out, over the time from the first slice with data to the last.",
            ),
            Self::CeShare => (
                "ce_share",
                "CE share",
                Unit::Share,
                Some(Direction::Up),
                "Data packets marked Congestion Experienced, of those that ECN can mark: with ECT or CE.",
            ),
            Self::Cnp => (
                "cnp_per_gb",
                "CNPs",
                Unit::PerGigabyte,
                None,
                "Congestion notifications per GB of application data, of flows that CNPs can be charged to.",
            ),
            Self::Lost => (
                "lost_per_million",
                "lost",
                Unit::PerMillionPackets,
                Some(Direction::Up),
                "Packets that the network lost per million data packets: missing ones that were requested again, READ responses too, and those lost behind the tap.",
            ),
            Self::Unclear => (
                "unclear_per_million",
                "unclear",
                Unit::PerMillionPackets,
                None,
                "Missing packets of which it is not known who lost them (ambiguous, unresolved), per million data packets.",
            ),
            Self::Reordered => (
                "reordered_per_million",
                "reordered",
                Unit::PerMillionPackets,
                None,
                "Missing packets that came late, per million data packets.",
            ),
            Self::NotCaptured => (
                "not_captured_per_million",
                "not captured",
                Unit::PerMillionPackets,
                None,
                "Missing packets that the capture lost, per million data packets: of the capture, not of the network.",
            ),
            Self::RetransmittedShare => (
                "retransmitted_share",
                "retransmitted",
                Unit::Share,
                Some(Direction::Up),
                "Retransmitted application data, of all application data: what losses cost.",
            ),
            Self::RnrNaks => (
                "rnr_naks_per_million",
                "RNR NAKs",
                Unit::PerMillionPackets,
                Some(Direction::Up),
                "RNR NAKs per million data packets. Of the whole run only.",
            ),
            Self::AckTimeMedian => (
                "ack_time_median_ns",
                "ACK time, median",
                Unit::Nanoseconds,
                Some(Direction::Up),
                "Time from a request to the response that covers it: the mean, over all flows and bins, of the median in a bin (timeline.ack_rtt_p50_ns).",
            ),
            Self::AckTimeLongest => (
                "ack_time_longest_ns",
                "ACK time, peaks",
                Unit::Nanoseconds,
                Some(Direction::Up),
                "The same, of the longest in a bin (timeline.ack_rtt_max_ns): how far the tail reaches. A single one can be far longer.",
            ),
            Self::MessageTimeMedian => (
                "message_time_median_ns",
                "message, median",
                Unit::Nanoseconds,
                Some(Direction::Up),
                "Time from a message's first packet to its acknowledgement: the mean, over all flows and bins, of the median in a bin (timeline.message_time_p50_ns).",
            ),
            Self::MessageTimeLongest => (
                "message_time_longest_ns",
                "message, peaks",
                Unit::Nanoseconds,
                Some(Direction::Up),
                "The same, of the longest in a bin (timeline.message_time_max_ns): how far the tail reaches. A single one can be far longer.",
            ),
            Self::PauseFrames => (
                "pause_frames_per_s",
                "pause frames",
                Unit::PerSecond,
                None,
                "PFC and pause frames in a second. Of the whole run only.",
            ),
            Self::PausedShare => (
                "paused_share",
                "paused",
                Unit::Share,
                None,
                "Time for which priorities were paused over all time; several at once, or at several taps, add up. Needs --link-rate. Of the whole run only.",
            ),
            Self::StepTime => (
                "step_time_ns",
                "step time",
                Unit::Nanoseconds,
                Some(Direction::Up),
                "Mean time of a training step's bursts, from the first pair's begin to the last one's end. Of the whole run only.",
            ),
            Self::StepPeriod => (
                "step_period_ns",
                "step period",
                Unit::Nanoseconds,
                Some(Direction::Up),
                "Mean time from the begin of a training step to the next one's. Of the whole run only.",
            ),
        };
        Metric {
            key,
            title,
            unit,
            worse,
            meaning,
        }
    }
}

/// Result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Larger than the noise, and worse.
    Worse,
    /// Larger than the noise, and better.
    Better,
    /// Larger than the noise; the change decides whether that is good.
    Different,
    /// No larger than the noise.
    Alike,
    /// Larger than the noise, and too small to matter.
    Negligible,
    /// The runs are too short to tell.
    TooShort,
    /// Only one side has it.
    OneSided,
}

impl Outcome {
    /// Its name in the JSON document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Different => "different",
            Self::Alike => "alike",
            Self::Negligible => "negligible",
            Self::TooShort => "too_short",
            Self::OneSided => "one_sided",
        }
    }

    /// True if it exceeds the noise and matters.
    pub const fn stands_out(self) -> bool {
        matches!(self, Self::Worse | Self::Better | Self::Different)
    }
}

/// One quantity of both sides.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ComparedQuantity {
    /// The quantity.
    pub quantity: Quantity,
    /// Its value in A; `None` where A does not have it.
    pub a: Option<f64>,
    /// Its value in B.
    pub b: Option<f64>,
    /// The interval in which B less A lies; `None` where the runs are too short, or only one side has it.
    pub interval: Option<(f64, f64)>,
    /// A difference of this size would have been seen in four of five such pairs of runs; `None` as `interval`.
    pub visible: Option<f64>,
    /// Result of its comparison.
    pub outcome: Outcome,
}

impl ComparedQuantity {
    /// B less A.
    pub fn difference(&self) -> Option<f64> {
        Option::zip(self.a, self.b).map(|(a, b)| b - a)
    }

    /// The difference over A; `None` where A is nothing.
    pub fn relative(&self) -> Option<f64> {
        self.relative_to_a(self.difference()?)
    }

    /// A difference over A's value.
    pub fn relative_to_a(&self, difference: f64) -> Option<f64> {
        self.a.filter(|a| *a != 0.0).map(|a| difference / a)
    }
}

/// Scope of a comparison: the whole run, or the traffic of one host to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Scope {
    /// Source and destination; `None` for the whole run.
    pub pair: Option<(String, String)>,
    /// Compared quantities; those that neither side has are left out.
    pub compared: Vec<ComparedQuantity>,
}

/// A finding that is not the same in both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FindingChange {
    /// Its id.
    pub id: String,
    /// Severity in A; `None` where A has none.
    pub a: Option<Severity>,
    /// Severity in B.
    pub b: Option<Severity>,
    /// B's sentence, or A's where it is gone.
    pub summary: String,
    /// It rests on so few events that a run as A was may have had them, too.
    pub may_be_chance: bool,
}

impl FindingChange {
    /// True if it is a warning or more, was none before, and is not so for a few events alone.
    pub fn is_regression(&self) -> bool {
        self.is_new() && !self.may_be_chance
    }

    /// True if it is a warning or more, and was none before.
    pub(crate) fn is_new(&self) -> bool {
        self.a < Some(Severity::Warning) && self.b >= Some(Severity::Warning)
    }

    /// Its sentence, and the doubt about it.
    pub(crate) fn sentence(&self) -> String {
        if self.may_be_chance {
            format!("{} (chance may have brought this)", self.summary)
        } else {
            self.summary.clone()
        }
    }
}

/// One of the two runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Side {
    /// Its path: a capture, or a folder.
    pub path: String,
    /// Time from its first frame to its last.
    pub length: Span,
    /// Its flows, those left out that another tap saw more of.
    pub flows: u64,
    /// Application data of them, in bytes.
    pub payload_bytes: u64,
    /// Width of a bin of its timeline.
    pub bin: Span,
    /// Number of slices of time behind its noise.
    pub slices: u64,
    /// Width of a slice.
    pub slice: Span,
}

/// Two runs compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// A, the run before.
    pub a: Side,
    /// B, the run after.
    pub b: Side,
    /// The whole run, then pairs of hosts, those with most data first.
    pub scopes: Vec<Scope>,
    /// Pairs of hosts that were not compared one by one, since there are too many.
    pub pairs_left_out: u64,
    /// Findings that are not the same, the worst first.
    pub findings: Vec<FindingChange>,
    /// Notes for readers: differences in the making of both.
    pub notes: Vec<String>,
    /// Joint confidence of all intervals: 0.95.
    pub confidence: f64,
    /// Relative differences under this one do not matter.
    pub matters: f64,
}

impl Comparison {
    /// Everything that was compared, with where.
    pub fn all(&self) -> impl Iterator<Item = (&Scope, &ComparedQuantity)> {
        self.scopes
            .iter()
            .flat_map(|scope| scope.compared.iter().map(move |compared| (scope, compared)))
    }

    /// Number of new findings that are not by chance.
    pub(crate) fn new_findings(&self) -> usize {
        self.findings
            .iter()
            .filter(|change| change.is_regression())
            .count()
    }

    /// How many of these are critical.
    pub(crate) fn new_critical_findings(&self) -> usize {
        let new = self.findings.iter().filter(|change| change.is_regression());
        new.filter(|change| change.b == Some(Severity::Critical)).count()
    }

    /// Number of new findings that may be by chance.
    pub(crate) fn doubtful_findings(&self) -> usize {
        let doubtful = |change: &&FindingChange| change.is_new() && change.may_be_chance;
        self.findings.iter().filter(doubtful).count()
    }

    /// Number of quantities with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.all()
            .filter(|(_, compared)| compared.outcome == outcome)
            .count()
    }

    /// True if a quantity that exceeds the noise is worse by `least` (0.05 is 5 %) or more of A's value,
    /// or a finding of warning or worse is new.
    pub fn has_regression(&self, least: f64) -> bool {
        !self.regressions(least).is_empty()
    }

    /// Names, for a message, of quantities that are worse by that much, and of new findings. A quantity
    /// is named once, for any number of pairs of hosts.
    pub fn regressions(&self, least: f64) -> Vec<String> {
        let much =
            |compared: &ComparedQuantity| compared.relative().is_none_or(|relative| relative.abs() >= least);
        let worse = self
            .all()
            .filter(|(_, compared)| compared.outcome == Outcome::Worse && much(compared));
        let mut names: Vec<String> = Vec::new();
        for (_, compared) in worse {
            let name = compared.quantity.describe().key.to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let new = self.findings.iter().filter(|change| change.is_regression());
        names.extend(new.map(|change| format!("{} (new)", change.id)));
        names
    }
}
