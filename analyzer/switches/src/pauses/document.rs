//! The result: rows, pairs of ends, pattern, order, chains.

use roce_model::{Severity, Span, Time};
use roce_rules::counters::CounterFinding;

use super::row::{Kind, Level, PauseFamily};

/// Name of the sign that two ends of a link differ, with its meaning.
pub const ENDS_DIFFER: (&str, &str) = (
    "pauses.ends_differ",
    "One end of a link sent more pause frames than the other received, or fewer, and the times of the readings do not explain it: the ends do not belong together, a counter does not count, or frames are lost.",
);

/// Times of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PauseTimes {
    /// Start of the command; without one, the first reading. Times in texts count from here.
    pub start: Time,
    /// Time before the command in which readings were made.
    pub before: Span,
    /// Time of the command; without one, the whole time.
    pub during: Span,
    /// Time behind the command.
    pub after: Span,
    /// Wanted time between two readings.
    pub every: Span,
    /// True if there was a command.
    pub has_command: bool,
}

impl PauseTimes {
    /// Time between the first reading and the last.
    pub fn whole(&self) -> Span {
        self.before + self.during + self.after
    }

    /// True if nobody knows when the readings were made: they are two recordings.
    pub fn is_unknown(&self) -> bool {
        self.whole() == Span(0)
    }
}

/// How a row looks to whoever reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sign {
    /// Nothing to say.
    #[default]
    None,
    /// As it should be.
    Good,
    /// Worth a look.
    Notice,
}

impl Sign {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Good => "good",
            Self::Notice => "notice",
        }
    }
}

/// Between two readings a quantity began to move: after `from`, and not later than `to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MovedInterval {
    /// The reading before.
    pub from: Time,
    /// The reading that shows the movement.
    pub to: Time,
}

impl MovedInterval {
    /// True if this movement surely began before `other`. Recordings whose times nobody knows have no order.
    pub fn is_before(self, other: Self) -> bool {
        self.to <= other.from && self.from < other.to
    }
}

/// One quantity of one adapter, port or buffer. Numbers are changes; absent: there are no two readings of it in this time.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The level.
    pub level: Level,
    /// The host, hypervisor or switch.
    pub node: String,
    /// The adapter or port.
    pub object: String,
    /// The quantity.
    pub kind: Kind,
    /// Change before the command.
    pub before: Option<f64>,
    /// Change during the command.
    pub during: Option<f64>,
    /// Change after the command.
    pub after: Option<f64>,
    /// Change per second during the command.
    pub per_second: Option<f64>,
    /// Change per second before the command.
    pub per_second_before: Option<f64>,
    /// First interval of the command in which it moved at more than twice its rate before.
    pub moved: Option<MovedInterval>,
    /// Changes of the first and of the last interval: as much can be hidden from a reading that is made one interval later.
    pub hidden: f64,
    /// Resets of its counters. What they counted between two readings with a reset is left out.
    pub resets: u64,
    /// Why there is no number; empty where there is one.
    pub why: String,
    /// The row in words.
    pub verdict: String,
    /// How it looks.
    pub sign: Sign,
}

impl Row {
    /// `node object`.
    pub fn place(&self) -> String {
        format!("{} {}", self.node, self.object)
    }

    /// Change over the whole time; `None` where there are no two readings.
    pub fn total(&self) -> Option<f64> {
        [self.before, self.during, self.after]
            .into_iter()
            .flatten()
            .reduce(|sum, change| sum + change)
    }

    /// True if it moved at any time.
    pub fn has_moved(&self) -> bool {
        self.total().is_some_and(|total| total > 0.0)
    }
}

/// How the numbers of two ends compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairState {
    /// Equal within 1 % and what one polling gap can hide.
    Agree,
    /// They differ by more.
    Differ,
    /// A counter was reset: they cannot be compared.
    Reset,
}

impl PairState {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::Reset => "reset",
        }
    }
}

/// Pauses that one end of a cable sent, and those that the other received.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// The kind of pauses.
    pub family: PauseFamily,
    /// The end that sent: `leaf1 Ethernet1/1/2`.
    pub sender: String,
    /// The end that received.
    pub receiver: String,
    /// Frames sent in the whole time.
    pub sent: f64,
    /// Frames received in the whole time.
    pub received: f64,
    /// The difference that one polling gap and 1 % can explain.
    pub allowed: f64,
    /// The comparison.
    pub state: PairState,
}

/// The pattern of marks and pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Neither marks nor pauses beyond what there was before.
    Nothing,
    /// Marks, no pauses.
    EcnAlone,
    /// Marks, then pauses: ECN acts before PFC, as it should.
    EcnThenPauses,
    /// Pauses, then marks: the threshold of ECN is too high.
    PausesThenEcn,
    /// Marks and pauses, whose order the readings cannot tell.
    EcnAndPauses,
    /// Pauses, no marks.
    PausesWithoutEcn,
    /// Marks or pauses were read nowhere.
    NotKnown,
}

impl Pattern {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::EcnAlone => "ecn_alone",
            Self::EcnThenPauses => "ecn_then_pauses",
            Self::PausesThenEcn => "pauses_then_ecn",
            Self::EcnAndPauses => "ecn_and_pauses",
            Self::PausesWithoutEcn => "pauses_without_ecn",
            Self::NotKnown => "not_known",
        }
    }
}

/// A way from a server's adapter over the hypervisor's to the switch's port, and where pauses moved first.
#[derive(Clone, PartialEq, Debug)]
pub struct Chain {
    /// Places from the server to the switch: `gpu5 ens192`, `esxi1 vmnic5`, `leaf1 Ethernet1/1/2`.
    pub places: Vec<String>,
    /// The places that moved first. Several: the readings cannot tell which of them was the first.
    pub first: Vec<String>,
    /// Ends that sent the pauses of this way. They are where the pauses come from.
    pub senders: Vec<String>,
    /// The chain in words.
    pub text: String,
}

/// A finding about the pauses of one device.
#[derive(Clone, PartialEq, Debug)]
pub struct JudgedPause {
    /// The host, hypervisor or switch.
    pub node: String,
    /// The finding, by the rules that `host counters` and `fabric counters` have, too.
    pub finding: CounterFinding,
}

/// A reset of a row's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reset {
    /// The host or switch.
    pub node: String,
    /// The place: `leaf1 Ethernet1/1/2`.
    pub place: String,
    /// The quantity.
    pub kind: Kind,
    /// The reading that shows the last one.
    pub time: Time,
    /// How often.
    pub count: u64,
}

/// Pauses at every level.
#[derive(Clone, PartialEq, Debug)]
pub struct Pauses {
    /// Times of the run.
    pub times: PauseTimes,
    /// Rows, from the inside of the switch to the servers, buffers last.
    pub rows: Vec<Row>,
    /// Pairs of ends.
    pub pairs: Vec<Pair>,
    /// The pattern.
    pub pattern: Pattern,
    /// The pattern in words.
    pub pattern_text: String,
    /// True if only links inside of switches were paused: hosts were not.
    pub is_inside_only: bool,
    /// First marks.
    pub first_marks: Option<MovedInterval>,
    /// First pauses.
    pub first_pauses: Option<MovedInterval>,
    /// The order of marks and pauses in words; empty where there is none.
    pub order: String,
    /// Ways from servers to switches on which pauses moved.
    pub chains: Vec<Chain>,
    /// Findings about shares of time, watchdogs and storms, the worst first: from the first reading of the command to the last.
    pub judged: Vec<JudgedPause>,
    /// Hosts and switches that restarted between two readings.
    pub restarts: Vec<String>,
    /// Resets.
    pub resets: Vec<Reset>,
    /// Rows beyond the largest number that is kept.
    pub left_out: u64,
    /// Devices beyond the largest number that is judged.
    pub unjudged: u64,
}

impl Pauses {
    /// The worst of what it shows, for exit codes: packets lost in a switch are critical; ends that differ, pauses before or without
    /// marks, and 802.3x pauses are a warning. Findings have their own severity.
    pub fn severity(&self) -> Severity {
        let judged = self.judged.iter().map(|judged| judged.finding.severity);
        judged.max().unwrap_or(Severity::Ok).max(self.of_rows())
    }

    fn of_rows(&self) -> Severity {
        let in_time = |row: &&Row| row.during.is_some_and(|change| change > 0.0);
        let mut rows = self.rows.iter().filter(in_time).peekable();
        if rows.peek().is_none() {
            return self.of_pairs(Severity::Ok);
        }
        let (mut has_losses, mut has_global) = (false, false);
        for row in rows {
            has_losses |= row.kind == Kind::Drops && row.level == Level::Buffer;
            has_global |= row.kind.family() == Some(PauseFamily::Global);
        }
        let is_odd = matches!(self.pattern, Pattern::PausesThenEcn | Pattern::PausesWithoutEcn);
        match () {
            () if has_losses => Severity::Critical,
            () if has_global || is_odd => Severity::Warning,
            () => self.of_pairs(Severity::Info),
        }
    }

    fn of_pairs(&self, other: Severity) -> Severity {
        let is_different = self.pairs.iter().any(|pair| pair.state == PairState::Differ);
        if is_different { Severity::Warning } else { other }
    }
}
