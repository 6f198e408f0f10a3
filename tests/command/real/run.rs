//! The runs of `tests/data/real`: their files, and the tables that say what happened to their packets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::captures::root;

/// The file of the client's end, and the file of the server's end.
pub(super) const ENDS: [&str; 2] = ["sender", "receiver"];

pub(super) fn folder() -> PathBuf {
    root().join("tests/data/real")
}

/// A line of a table: values by the name of their column.
#[derive(Debug)]
pub(super) struct RunLine(BTreeMap<String, String>);

impl RunLine {
    #[track_caller]
    pub(super) fn text(&self, column: &str) -> &str {
        self.0.get(column).unwrap_or_else(|| panic!("no column {column}"))
    }

    #[track_caller]
    pub(super) fn number(&self, column: &str) -> u64 {
        self.text(column).parse().unwrap()
    }

    /// A number that only some lines have.
    #[track_caller]
    pub(super) fn known(&self, column: &str) -> Option<u64> {
        (self.text(column) != "-").then(|| self.number(column))
    }
}

/// The lines of a table that are about a run.
fn table(name: &str, run: &str) -> Vec<RunLine> {
    let text = fs::read_to_string(folder().join(name)).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let columns: Vec<String> = lines.next().unwrap().collect();
    lines
        .map(|values| RunLine(columns.iter().cloned().zip(values).collect()))
        .filter(|line| line.text("run") == run)
        .collect()
}

/// Event that a packet of a run met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Losses,
    Reordering,
    Duplicates,
    LossesAndReordering,
    All,
}

impl Kind {
    fn of(ways: &[RunLine]) -> Self {
        let any = |column| ways.iter().any(|way| way.number(column) > 0);
        match (any("lost"), any("overtaken"), any("duplicated")) {
            (true, false, false) => Self::Losses,
            (false, true, false) => Self::Reordering,
            (false, false, true) => Self::Duplicates,
            (true, true, false) => Self::LossesAndReordering,
            (true, true, true) => Self::All,
            other => panic!("{other:?}"),
        }
    }
}

/// One run: its captures, and what happened to their packets.
pub(super) struct RealRun {
    pub(super) name: String,
    /// A line for each flow at each end.
    pub(super) taps: Vec<RunLine>,
    /// A line for each flow, from its sender's end to the other.
    pub(super) ways: Vec<RunLine>,
    pub(super) kind: Kind,
}

impl RealRun {
    fn named(name: &str) -> Self {
        let ways = table("ways.tsv", name);
        Self {
            name: name.to_owned(),
            taps: table("taps.tsv", name),
            kind: Kind::of(&ways),
            ways,
        }
    }

    pub(super) fn file(&self, end: &str) -> String {
        format!("{}.{end}.pcap", self.name)
    }

    /// The line of a flow's path, with its losses.
    pub(super) fn way(&self, flow: &Key) -> &RunLine {
        self.ways.iter().find(|way| key(way) == *flow).unwrap()
    }

    /// The value of the other direction's flow at an end: each end has a queue pair for each of the
    /// other's, in the same order.
    pub(super) fn of_peer(&self, end: &str, flow: &Key, column: &str) -> u64 {
        let of = |source: &str| -> Vec<&RunLine> {
            let lines = self.taps.iter().filter(|line| line.text("tap") == end);
            lines.filter(|line| line.text("source") == source).collect()
        };
        let place = of(&flow.0).iter().position(|line| key(line) == *flow).unwrap();
        of(&flow.1)[place].number(column)
    }
}

/// Every run, by the names of the files.
pub(super) fn all() -> Vec<RealRun> {
    let names: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.iter().map(|name| RealRun::named(name)).collect()
}

/// A flow: source, destination and queue pair.
pub(super) type Key = (String, String, u64);

pub(super) fn key(line: &RunLine) -> Key {
    let text = |column| line.text(column).to_owned();
    (text("source"), text("destination"), line.number("qpn"))
}
