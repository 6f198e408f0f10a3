//! Soft-RoCE over a switch that loses, delays and duplicates packets, captured before it and behind it at once (`tests/data/real`).
//!
//! Expected values are those of `tests/independent/check_impaired.py`, which follows each transmission from one file to the other, and
//! of the counters of netem and the driver; the README beside the captures says how. A run is read at one end, at the other, and at both.
//!
//! Where the analysis is known to differ, `real/open.txt` names the run, the flow and the column. All else has to agree, and a line
//! whose column agrees has to go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::command::{document, flows};

mod run;
mod witnesses;

use run::{ENDS, Key, Kind, RealRun, RunLine, all, folder, key};

/// Results of a document for one flow at one end: the sum over its epochs.
struct FlowResults<'a>(Vec<&'a Value>);

impl<'a> FlowResults<'a> {
    fn of(document: &'a Value, file: &str, flow: &Key) -> Self {
        let taps = document["taps"].as_array().unwrap();
        let tap = taps.iter().find(|tap| tap["input"] == file).unwrap();
        let rows = flows(document).iter().filter(|row| {
            row["tap"] == tap["tap"]
                && row["source"] == flow.0
                && row["destination"] == flow.1
                && row["destination_qpn"] == flow.2
        });
        Self(rows.collect())
    }

    /// The sum of a column. A value that is absent counts nothing.
    #[track_caller]
    fn number(&self, column: &str) -> u64 {
        let values = self.0.iter().map(|row| row.get(column));
        values
            .map(|value| value.unwrap_or_else(|| panic!("no column {column}")).as_u64())
            .map(|value| value.unwrap_or(0))
            .sum()
    }

    fn has(&self, column: &str) -> bool {
        self.0.iter().any(|row| row.get(column).is_some())
    }
}

/// Known differences from the truth, one in a line: the kind of reading, the run, the flow and the
/// column.
const OPEN: &str = include_str!("real/open.txt");

/// Differences from the truth: the place, and the reported value.
#[derive(Default)]
struct Wrong(BTreeMap<String, String>);

impl Wrong {
    fn same(&mut self, what: &str, said: u64, truth: u64) {
        self.within(what, said, truth, truth);
    }

    fn within(&mut self, what: &str, said: u64, least: u64, most: u64) {
        if said < least || said > most {
            self.add(what.to_owned(), format!("{said}, truth {least} to {most}"));
        }
    }

    fn add(&mut self, what: String, said: String) {
        self.0.insert(what, said);
    }

    /// These runs, read in this manner, have only known differences.
    #[track_caller]
    fn only_open(&self, reading: &str, runs: &[&RealRun]) {
        let of_runs = |line: &&str| {
            runs.iter().any(|run| {
                line.strip_prefix(run.name.as_str())
                    .is_some_and(|rest| rest.starts_with(' '))
            })
        };
        let open: BTreeSet<&str> = OPEN
            .lines()
            .filter_map(|line| line.split('\t').next()?.strip_prefix(reading)?.strip_prefix(": "))
            .filter(of_runs)
            .collect();
        let new: Vec<String> = self
            .0
            .iter()
            .filter(|(what, _)| !open.contains(what.as_str()))
            .map(|(what, said)| format!("wrong: {reading}: {what}: {said}"))
            .collect();
        let right: Vec<String> = open
            .iter()
            .filter(|what| !self.0.contains_key(**what))
            .map(|what| {
                format!("agrees now, to be removed from tests/command/real/open.txt: {reading}: {what}")
            })
            .collect();
        assert!(
            new.is_empty() && right.is_empty(),
            "{}",
            [new, right].concat().join("\n")
        );
    }
}

/// Compares the results for the flows at one end, which is read alone or not. Values that one end alone
/// cannot know have bounds.
fn tap(run: &RealRun, end: &str, is_alone: bool, found: &Value, wrong: &mut Wrong) {
    for truth in run.taps.iter().filter(|line| line.text("tap") == end) {
        let flow = key(truth);
        let said = FlowResults::of(found, &run.file(end), &flow);
        let what = |column: &str| format!("{} {end} {}>{}: {column}", run.name, flow.0, flow.2);
        for (column, of_truth) in [
            ("packets", "packets"),
            ("retransmitted_packets", "resent"),
            ("nak_sequence", "naks"),
        ] {
            wrong.same(&what(column), said.number(column), truth.number(of_truth));
        }
        if truth.number("duplicates") > 0 || said.has("duplicates_network") {
            let said = said.number("duplicates_network");
            wrong.same(&what("duplicates_network"), said, truth.number("duplicates"));
        }
        holes(run, end, truth, &said, wrong);
        responses(run, end, truth, &said, wrong);
        if let (Some(runs), Some(unclear)) = (truth.known("runs"), truth.known("runs_unclear")) {
            wrong.same(
                &what("retransmission_runs"),
                said.number("retransmission_runs"),
                runs,
            );
            for column in ["runs_nak", "runs_timeout"] {
                let sure = truth.number(column);
                wrong.within(&what(column), said.number(column), sure, sure + unclear);
            }
        }
        lost_behind(run, end, &flow, &said, is_alone, wrong);
    }
}

/// Requests of a flow that an end missed.
///
/// The table counts each PSN once, when the highest rose beyond it. A retransmission that is lost or
/// overtaken makes another gap, or none: both counts are right. A gap in a go-back-N run may be left
/// open, since the receiver discards packets there. But every class that is given must be true.
fn holes(run: &RealRun, end: &str, truth: &RunLine, said: &FlowResults<'_>, wrong: &mut Wrong) {
    let flow = key(truth);
    let what = |column: &str| format!("{} {end} {}>{}: {column}", run.name, flow.0, flow.2);
    let way = run.way(&flow);
    let (lost, overtaken) = if way.text("to") == end && truth.number("requests") > 0 {
        (way.number("lost"), way.number("overtaken"))
    } else {
        (0, 0)
    };
    let open = said.number("ambiguous") + said.number("unresolved");
    for (column, least, most) in [
        ("missing", truth.number("missing"), lost + overtaken),
        ("network_lost", truth.number("lost").saturating_sub(open), lost),
        (
            "reordered",
            truth.number("reordered").saturating_sub(open),
            overtaken,
        ),
        // An original that comes behind its retransmission fills no gap. It is late all the same.
        ("late", truth.number("late"), overtaken),
        // tcpdump dropped nothing.
        ("capture_lost", 0, 0),
    ] {
        wrong.within(&what(column), said.number(column), least, most);
    }
}

/// READ responses of a flow that an end missed. Those that are missing twice count twice.
fn responses(run: &RealRun, end: &str, truth: &RunLine, said: &FlowResults<'_>, wrong: &mut Wrong) {
    let flow = key(truth);
    let way = run.way(&flow);
    let (lost, overtaken) = if way.text("to") == end {
        (way.number("lost"), way.number("overtaken"))
    } else {
        (0, 0)
    };
    let what = |column: &str| format!("{} {end} {}>{}: {column}", run.name, flow.0, flow.2);
    let requested = truth.number("responses_asked");
    let (missing, network) = (
        said.number("response_missing"),
        said.number("response_network_lost"),
    );
    wrong.within(&what("response_missing"), missing, requested, lost + overtaken);
    wrong.within(&what("response_network_lost"), network, requested, lost);
    wrong.same(
        &what("response_capture_lost"),
        said.number("response_capture_lost"),
        0,
    );
}

/// Packets of a flow that are lost behind an end.
///
/// PSNs that the other end requests again were lost on their way to it, or late: one end alone cannot
/// know which. Where nothing is late, each NAK is for another loss. With both ends read, nothing is lost
/// that arrived.
fn lost_behind(
    run: &RealRun,
    end: &str,
    flow: &Key,
    said: &FlowResults<'_>,
    is_alone: bool,
    wrong: &mut Wrong,
) {
    let way = run.way(flow);
    let (least, most) = if way.text("from") != end {
        (0, 0)
    } else if run.kind == Kind::Losses {
        (
            run.of_peer(end, flow, "naks").min(way.number("lost")),
            way.number("lost"),
        )
    } else if is_alone {
        let from = way.text("to");
        let requested = run.of_peer(end, flow, "naks") + run.of_peer(from, flow, "runs");
        (0, requested + way.number("lost"))
    } else {
        (0, way.number("lost"))
    };
    let what = format!("{} {end} {}>{}: lost_downstream", run.name, flow.0, flow.2);
    wrong.within(&what, said.number("lost_downstream"), least, most);
}

/// The verdict: losses are found, and none with high confidence where there are none.
fn verdict(run: &RealRun, which: &str, found: &Value, wrong: &mut Wrong) {
    let said = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["id"] == "loss.network");
    let is_sure = said.is_some_and(|finding| finding["confidence"] == "high");
    let lost: u64 = run.ways.iter().map(|way| way.number("lost")).sum();
    if lost == 0 && is_sure {
        wrong.add(
            format!("{} {which}: loss.network with high confidence", run.name),
            "nothing was lost".to_owned(),
        );
    }
    if lost > 0 && said.is_none() {
        wrong.add(
            format!("{} {which}: no loss.network", run.name),
            format!("{lost} lost"),
        );
    }
}

/// Compares the results of both ends for the path between them, for data and for answers.
fn ways(run: &RealRun, found: &Value, wrong: &mut Wrong) {
    let taps = found["taps"].as_array().unwrap();
    let number = |file: &str| taps.iter().find(|tap| tap["input"] == file).unwrap()["tap"].clone();
    for way in &run.ways {
        let flow = key(way);
        let (from, to) = (run.file(way.text("from")), run.file(way.text("to")));
        let rows = FlowResults::of(found, &from, &flow);
        let what = |column: &str| format!("{} {}>{}, from {from}: {column}", run.name, flow.0, flow.2);
        let hop = found["hops"].as_array().unwrap().iter().find(|hop| {
            hop["flow_id"] == rows.0[0]["flow_id"]
                && hop["from_tap"] == number(&from)
                && hop["to_tap"] == number(&to)
        });
        let Some(hop) = hop else {
            wrong.add(what("no hop"), "packets passed".to_owned());
            continue;
        };
        for (column, truth) in [
            ("matched", way.number("received")),
            ("lost", way.number("lost")),
            ("not_captured", 0),
            ("marked", 0),
        ] {
            wrong.same(&what(column), hop[column].as_u64().unwrap(), truth);
        }
    }
}

/// Compares the runs of a kind, read at one end alone.
fn at(end: &str, kind: Kind) {
    let mut wrong = Wrong::default();
    let runs = all();
    let runs: Vec<&RealRun> = runs.iter().filter(|run| run.kind == kind).collect();
    for run in &runs {
        let found = document(&folder(), [run.file(end)]);
        tap(run, end, true, &found, &mut wrong);
        verdict(run, end, &found, &mut wrong);
    }
    wrong.only_open(end, &runs);
}

/// Compares the runs of a kind, read at both ends.
fn at_both(kind: Kind) {
    let mut wrong = Wrong::default();
    let runs = all();
    let runs: Vec<&RealRun> = runs.iter().filter(|run| run.kind == kind).collect();
    for run in &runs {
        let found = document(&folder(), ENDS.map(|end| run.file(end)));
        for end in ENDS {
            tap(run, end, false, &found, &mut wrong);
        }
        ways(run, &found, &mut wrong);
        verdict(run, "both", &found, &mut wrong);
    }
    wrong.only_open("both", &runs);
}

#[test]
fn there_are_four_kinds_and_both_files_of_each_run() {
    let runs = all();
    let kinds: BTreeSet<Kind> = runs.iter().map(|run| run.kind).collect();
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    assert!(runs.len() >= 12);
    let mut bytes = 0;
    for run in &runs {
        for end in ENDS {
            bytes += fs::metadata(folder().join(run.file(end))).unwrap().len();
        }
    }
    assert!(bytes < 1_500_000, "{bytes} bytes of captures");
}

#[test]
fn losses_at_the_receiver() {
    at("receiver", Kind::Losses);
}

#[test]
fn losses_at_the_sender() {
    at("sender", Kind::Losses);
}

#[test]
fn losses_at_both_ends() {
    at_both(Kind::Losses);
}

#[test]
fn reordering_at_the_receiver() {
    at("receiver", Kind::Reordering);
}

#[test]
fn reordering_at_the_sender() {
    at("sender", Kind::Reordering);
}

#[test]
fn reordering_at_both_ends() {
    at_both(Kind::Reordering);
}

#[test]
fn duplicates_at_the_receiver() {
    at("receiver", Kind::Duplicates);
}

#[test]
fn duplicates_at_the_sender() {
    at("sender", Kind::Duplicates);
}

#[test]
fn duplicates_at_both_ends() {
    at_both(Kind::Duplicates);
}

#[test]
fn losses_and_reordering_at_the_receiver() {
    at("receiver", Kind::LossesAndReordering);
}

#[test]
fn losses_and_reordering_at_the_sender() {
    at("sender", Kind::LossesAndReordering);
}

#[test]
fn losses_and_reordering_at_both_ends() {
    at_both(Kind::LossesAndReordering);
}

#[test]
fn losses_reordering_and_duplicates_at_the_receiver() {
    at("receiver", Kind::All);
}

#[test]
fn losses_reordering_and_duplicates_at_the_sender() {
    at("sender", Kind::All);
}

#[test]
fn losses_reordering_and_duplicates_at_both_ends() {
    at_both(Kind::All);
}
