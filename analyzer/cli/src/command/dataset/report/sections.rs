//! Sections of the page: which question each shows, which rows are worth a line, and how their columns are written.

use crate::command::query::Answer;

/// Rows that a section shows.
const MAX_ROWS: usize = 30;

/// How the values of a column are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// As it is.
    Plain,
    /// A share, in percent.
    Share,
    /// A share, in percent, with a bar.
    Bar,
    /// Bytes, with a decimal unit.
    Bytes,
    /// Nanoseconds, with a unit.
    Time,
    /// A run, by its host and capture, linked to its page.
    Run,
    /// Mbit/s.
    Rate,
    /// `true` or `false` in words.
    Flag,
}

/// A column of a section: its name in the answer, its title, its form.
pub(super) type ShownColumn = (&'static str, &'static str, Form);

/// A section.
#[derive(Debug)]
pub(super) struct Section {
    /// The question's name.
    pub(super) question: &'static str,
    /// Its heading.
    pub(super) heading: &'static str,
    /// One and many of its rows, for the first sentence of the page.
    pub(super) counted: (&'static str, &'static str),
    /// Meaning of the section's rows.
    pub(super) lead: &'static str,
    /// The column that must be true, or greater than 0, for a row to be shown. Empty: all rows.
    pub(super) keep: &'static str,
    /// Its columns.
    pub(super) columns: &'static [ShownColumn],
}

/// Rows of an answer that a section shows.
#[derive(Debug)]
pub(super) struct ChosenRows<'a> {
    /// The answer.
    pub(super) answer: &'a Answer,
    /// Places of the rows that are shown.
    pub(super) rows: Vec<usize>,
    /// Number of rows worth a line, shown or not.
    pub(super) telling: usize,
}

impl Section {
    /// Chooses rows, in the answer's order.
    pub(super) fn choose<'a>(&self, answer: &'a Answer) -> ChosenRows<'a> {
        let keep = answer.place(self.keep);
        let is_telling = |row: &usize| {
            let cell = keep.and_then(|keep| answer.rows.get(*row)?.get(keep));
            match cell.map(|cell| &cell.0) {
                None => self.keep.is_empty(),
                Some(serde_json::Value::Bool(flag)) => *flag,
                Some(value) => value.as_f64().is_some_and(|value| value > 0.0),
            }
        };
        let telling: Vec<usize> = (0..answer.rows.len()).filter(is_telling).collect();
        ChosenRows {
            answer,
            telling: telling.len(),
            rows: telling.into_iter().take(MAX_ROWS).collect(),
        }
    }
}

impl ChosenRows<'_> {
    /// Identifiers of the runs that the rows name.
    pub(super) fn runs(&self) -> impl Iterator<Item = &str> {
        let place = self.answer.place("run_id");
        self.rows
            .iter()
            .filter_map(move |row| self.answer.rows.get(*row)?.get(place?)?.0.as_str())
    }
}

/// All sections, in their order.
pub(super) const SECTIONS: [Section; 7] = [
    Section {
        question: "destinations",
        heading: "Congested destinations",
        counted: ("congested destination", "congested destinations"),
        lead: "Hosts whose packets were marked, missing or retransmitted, by hour. Seen at the host itself where it was captured, else at its senders.",
        keep: "",
        columns: &[
            ("host", "host", Form::Plain),
            ("ce_share", "marked", Form::Bar),
            ("hour", "hour (UTC)", Form::Plain),
            ("run_id", "run", Form::Run),
            ("destination", "address", Form::Plain),
            ("rack", "rack", Form::Plain),
            ("senders_at_once", "senders at once", Form::Plain),
            ("data_packets", "data packets", Form::Plain),
            ("missing", "missing", Form::Plain),
            ("retransmitted_packets", "retransmitted", Form::Plain),
            ("seen_at", "seen at", Form::Plain),
        ],
    },
    Section {
        question: "incasts",
        heading: "Incasts",
        counted: ("incast", "incasts"),
        lead: "Three or more hosts that sent to one destination within the same millisecond, seen at the senders.",
        keep: "",
        columns: &[
            ("host", "host", Form::Plain),
            ("senders_at_once", "senders at once", Form::Plain),
            ("ce_share", "marked", Form::Bar),
            ("start_second", "start (UTC)", Form::Plain),
            ("run_id", "receiver's run", Form::Run),
            ("destination", "address", Form::Plain),
            ("racks", "racks", Form::Plain),
            ("payload_bytes", "data", Form::Bytes),
            ("missing", "missing", Form::Plain),
        ],
    },
    Section {
        question: "pairs",
        heading: "Pairs against their own week",
        counted: ("pair worse than its week", "pairs worse than their week"),
        lead: "Pairs of hosts that were worse on a day than on the mean of the up to seven days before.",
        keep: "worse_in",
        columns: &[
            ("source_host", "from", Form::Plain),
            ("destination_host", "to", Form::Plain),
            ("worse", "worse", Form::Plain),
            ("day", "day", Form::Plain),
            ("run_id", "sender's run", Form::Run),
            ("rate_mbps", "rate", Form::Rate),
            ("week_rate_mbps", "week", Form::Rate),
            ("retransmitted_share", "retransmitted", Form::Share),
            ("week_retransmitted_share", "week", Form::Share),
            ("ce_share", "marked", Form::Share),
            ("week_ce_share", "week", Form::Share),
            ("rtt_ns", "round trip", Form::Time),
            ("week_rtt_ns", "week", Form::Time),
        ],
    },
    Section {
        question: "racks",
        heading: "Racks",
        counted: ("pair of racks with congestion", "pairs of racks with congestion"),
        lead: "From which racks congested destinations got their bytes. An aggressor sent 1.5 times its fair part or more, a victim less than half of it and shows signs.",
        keep: "",
        columns: &[
            ("source_rack", "from rack", Form::Plain),
            ("destination_rack", "to rack", Form::Plain),
            ("share_of_bytes", "of the bytes", Form::Bar),
            ("episodes", "episodes", Form::Plain),
            ("senders", "senders", Form::Plain),
            ("aggressors", "aggressors", Form::Plain),
            ("victims", "victims", Form::Plain),
            ("payload_bytes", "data", Form::Bytes),
            ("ce", "marked packets", Form::Plain),
            ("retransmitted_packets", "retransmitted", Form::Plain),
        ],
    },
    Section {
        question: "ends",
        heading: "Packets that did not arrive",
        counted: ("flow that lost packets", "flows that lost packets"),
        lead: "Packets that left the sender's host less those that came to the receiver's, by second, where both were captured.",
        keep: "lost",
        columns: &[
            ("source_host", "from", Form::Plain),
            ("destination_host", "to", Form::Plain),
            ("lost_share", "lost", Form::Bar),
            ("start_second", "second (UTC)", Form::Plain),
            ("lost", "packets", Form::Plain),
            ("sent", "sent", Form::Plain),
            ("arrived", "arrived", Form::Plain),
            ("under_way", "under way", Form::Plain),
            ("retransmitted_packets", "retransmitted", Form::Plain),
            ("at_edge", "at an edge", Form::Flag),
        ],
    },
    Section {
        question: "clocks",
        heading: "Clocks",
        counted: ("bad clock", "bad clocks"),
        lead: "Hosts whose clocks disagree with those of more than half of the hosts that they speak with, by more than 10 us.",
        keep: "is_bad",
        columns: &[
            ("host", "host", Form::Plain),
            ("ahead_ns", "ahead by", Form::Time),
            ("day", "day", Form::Plain),
            ("within_ns", "within", Form::Time),
            ("disagreeing_peers", "disagreeing peers", Form::Plain),
            ("peers", "of", Form::Plain),
        ],
    },
    Section {
        question: "jobs",
        heading: "Jobs",
        counted: ("job slowed", "jobs slowed"),
        lead: "Jobs with steps that took longer than their pair's median by more than noise. The longest pair of a step counts.",
        keep: "slow_ns",
        columns: &[
            ("job", "job", Form::Plain),
            ("slow_ns", "lost", Form::Time),
            ("day", "day", Form::Plain),
            ("slow_steps", "slow steps", Form::Plain),
            ("steps", "of", Form::Plain),
            ("slowest_pair", "slowest pair", Form::Plain),
            ("pause_ns", "paused", Form::Time),
            ("timeouts", "timeouts", Form::Plain),
            ("retransmitted_bytes", "retransmitted", Form::Bytes),
            ("ce_share", "marked", Form::Share),
        ],
    },
];
