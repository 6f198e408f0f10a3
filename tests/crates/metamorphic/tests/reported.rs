//! Captures that were answered wrongly once: what must be said of each, and what must not. Their origin is in
//! `tests/data/reported/README.md`.
//!
//! Answers that are still wrong are in `open.txt`, as `reported NAME`; the list and the answers have to agree.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};

use roce_metamorphic::{Analyst, Answer, GivenRun, Input, OpenList, Tape, root};
use roce_model::Severity::{self, Critical, Info, Warning};

/// Something that has to hold of an answer.
enum Rule {
    /// A finding of this rule is there, at least as bad.
    Says(&'static str, Severity),
    /// No finding of this rule is as bad as this or worse.
    Never(&'static str, Severity),
    /// No finding of this rule has high confidence.
    NeverHigh(&'static str),
    /// A finding about the capture itself is there.
    SaysHoles,
    /// A count of the run.
    Total(&'static str, u64),
    /// A number of a finding's evidence is in this range.
    Fact(&'static str, &'static str, f64, f64),
    /// No share is above 1.
    Shares,
    /// The answer to other files, or with other options, is the same.
    As(&'static [&'static str], &'static [&'static str]),
}

use Rule::{As, Fact, Never, NeverHigh, Says, SaysHoles, Shares, Total};

/// A name, files, and what has to hold.
type Case = (&'static str, &'static [&'static str], &'static [Rule]);

const CASES: &[Case] = &[
    // P1: what one capture shows stays when another is added.
    (
        "overlap_fatal",
        &["overlap_fatal-a", "overlap_fatal-b"],
        &[Says("nak.fatal", Critical)],
    ),
    (
        "overlap_fatal-reversed",
        &["overlap_fatal-b", "overlap_fatal-a"],
        &[Says("nak.fatal", Critical)],
    ),
    (
        "overlap_fatal-b",
        &["overlap_fatal-b"],
        &[Says("nak.fatal", Critical)],
    ),
    // P2: rotated files are the whole.
    (
        "ties",
        &["ties_reversed-p0", "ties_reversed-p1", "ties_reversed-p2"],
        &[
            Never("loss.capture", Warning),
            // One connection: a row for each direction.
            Total("flows", 2),
            As(&["ties_reversed-p2", "ties_reversed-p1", "ties_reversed-p0"], &[]),
            As(&["ties_reversed-p1", "ties_reversed-p2", "ties_reversed-p0"], &[]),
        ],
    ),
    // P3: holes of the capture are no losses of the network.
    (
        "thinned_loss_critical",
        &["thinned_loss_critical"],
        &[
            Never("loss.network", Warning),
            NeverHigh("loss.network"),
            NeverHigh("retransmit.timeout"),
            Shares,
        ],
    ),
    (
        "write_bw_loss_1in10",
        &["write_bw_loss_1in10"],
        &[
            Never("loss.network", Critical),
            NeverHigh("loss.network"),
            NeverHigh("retransmit.timeout"),
            SaysHoles,
            Shares,
        ],
    ),
    // P4: silence is silence of the sender.
    (
        "thinned_timeout_high",
        &["thinned_timeout_high"],
        &[Never("retransmit.timeout", Info)],
    ),
    // P5: less evidence, not more confidence.
    (
        "no_acks_timeout_min",
        &["no_acks_timeout_min"],
        &[NeverHigh("retransmit.timeout")],
    ),
    // P6: nothing is surer than what it follows from.
    (
        "capture_loss_unfair",
        &["capture_loss_unfair"],
        &[Never("unfair", Warning), Never("incast", Warning)],
    ),
    // P7: bins draw, they do not decide.
    (
        "bin100ms_incast",
        &["bin100ms_incast"],
        &[
            Never("incast", Warning),
            As(&[], &["--bin", "10us"]),
            As(&[], &["--bin", "10ms"]),
            As(&[], &["--bin", "100ms"]),
        ],
    ),
    (
        "bin100ms_loss_gone",
        &["bin100ms_loss_gone"],
        &[
            // Identifications 0x85f7 to 0x8602 come behind 0x8654: the packets themselves, 36 ms late.
            Total("network_lost", 0),
            As(&[], &["--bin", "10us"]),
            As(&[], &["--bin", "10ms"]),
            As(&[], &["--bin", "100ms"]),
        ],
    ),
    (
        "micro13",
        &["micro13"],
        &[
            // 13 * 28.08 us, and 13 * 30 us with the time that the last packet takes.
            Fact("incast", "lasted_ns", 360_000.0, 400_000.0),
            As(&[], &["--bin", "1ms"]),
            As(&[], &["--bin", "100ms"]),
        ],
    ),
    (
        "micro14",
        &["micro14"],
        &[
            Fact("incast", "lasted_ns", 388_000.0, 430_000.0),
            As(&[], &["--bin", "1ms"]),
            As(&[], &["--bin", "100ms"]),
        ],
    ),
    // P8: the same file twice proves nothing.
    (
        "same_file_twice",
        &["same_file_twice"],
        &[As(&["same_file_twice", "same_file_twice"], &[])],
    ),
    // P9: PSN 0 is a number.
    (
        "psn_zero_epoch",
        &["psn_zero_epoch"],
        &[Total("retransmitted_packets", 1)],
    ),
    (
        "psn_1000_epoch",
        &["psn_1000_epoch"],
        &[Total("retransmitted_packets", 1)],
    ),
    // A fatal NAK ends its request.
    (
        "fatal_then_other_request",
        &["fatal_then_other_request"],
        &[Says("nak.fatal", Critical), Never("retransmit.timeout", Info)],
    ),
    // Idle is no stall.
    (
        "idle_between_messages",
        &["idle_between_messages"],
        &[Never("stall", Info)],
    ),
    (
        "idle_between_messages_2pkt",
        &["idle_between_messages_2pkt"],
        &[Never("stall", Info)],
    ),
    // A NAK names a packet that the tap saw, wherever PSNs begin.
    (
        "nak_psn",
        &["nak_psn_elsewhere"],
        &[
            Says("loss.network", Info),
            Total("lost_downstream", 1),
            As(&["nak_psn_near_zero"], &[]),
        ],
    ),
];

fn answer(analyst: &Analyst, files: &[&str], options: &[&str]) -> Answer {
    let mut tapes = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let path = root().join(format!("tests/data/reported/{file}.pcap"));
        // A file that is given twice has two names.
        let name = format!("{number}-{file}.pcap");
        tapes.push(Tape::read(&name, Box::new(File::open(path).unwrap())).unwrap());
    }
    let input = Input {
        name: files.join("+"),
        tapes,
        arguments: options.iter().map(ToString::to_string).collect(),
    };
    analyst.answer(&GivenRun::of(&input)).unwrap().unwrap()
}

/// Text of a relation that does not hold.
fn broken(analyst: &Analyst, files: &[&str], answer: &Answer, rule: &Rule) -> Option<String> {
    let told = |id: &str| -> String {
        let verdicts = answer.verdicts.iter().filter(|verdict| verdict.id == id);
        verdicts
            .map(|verdict| format!("; {verdict}"))
            .collect::<Vec<_>>()
            .concat()
    };
    let worst = |id: &str| answer.of_id(id).map(|verdict| verdict.severity).max();
    match *rule {
        Says(id, least) => {
            (worst(id) < Some(least)).then(|| format!("{id} is not said as {}{}", least.name(), told(id)))
        }
        Never(id, from) => (worst(id) >= Some(from)).then(|| format!("{id} is said{}", told(id))),
        NeverHigh(id) => answer
            .of_id(id)
            .any(|verdict| verdict.sureness() == 2)
            .then(|| format!("{id} is said with high confidence{}", told(id))),
        SaysHoles => {
            let mut verdicts = answer.verdicts.iter();
            let says =
                verdicts.any(|verdict| verdict.id == "loss.capture" || verdict.id.starts_with("capture."));
            (!says).then(|| "the capture's holes are not said".to_owned())
        }
        Total(name, value) => {
            let is = answer.totals.get(name).copied().unwrap_or_default();
            (is != value).then(|| format!("{name} is {is}, not {value}"))
        }
        Fact(id, name, least, most) => {
            let is = answer
                .of_id(id)
                .next()
                .and_then(|verdict| verdict.facts.get(name).copied());
            (!is.is_some_and(|is| (least..=most).contains(&is)))
                .then(|| format!("{id}: {name} is {is:?}, not {least} to {most}"))
        }
        Shares => {
            let mut verdicts = answer.verdicts.iter();
            let found = verdicts.find(|verdict| verdict.facts.get("share").is_some_and(|share| *share > 1.0));
            found.map(|verdict| format!("a share above 1: {verdict}"))
        }
        As(others, options) => {
            let others = if others.is_empty() { files } else { others };
            let other = self::answer(analyst, others, options);
            let kind = |answer: &Answer| -> Vec<_> {
                let verdicts = answer.verdicts.iter();
                verdicts
                    .map(|verdict| {
                        (
                            verdict.id.clone(),
                            verdict.severity.name(),
                            verdict.confidence.clone(),
                            verdict.facts.clone(),
                        )
                    })
                    .collect()
            };
            let lost = |answer: &Answer| {
                ["network_lost", "capture_lost", "retransmitted_packets", "missing"]
                    .map(|name| answer.totals.get(name).copied())
            };
            (kind(answer) != kind(&other) || lost(answer) != lost(&other)).then(|| {
                let lines = |answer: &Answer| -> String {
                    answer
                        .verdicts
                        .iter()
                        .map(|verdict| format!("\n    {verdict}"))
                        .collect::<Vec<_>>()
                        .concat()
                };
                format!(
                    "{others:?} {options:?} gives another answer: {:?}{} -> {:?}{}",
                    lost(answer),
                    lines(answer),
                    lost(&other),
                    lines(&other)
                )
            })
        }
    }
}

#[test]
fn reported_inputs_have_their_answers() {
    let open =
        OpenList::parse(&fs::read_to_string(root().join("tests/crates/metamorphic/open.txt")).unwrap());
    let analyst = Analyst::new(None).unwrap();
    let mut wrong = Vec::new();
    let mut mended = Vec::new();
    for (name, files, rules) in CASES {
        let answer = answer(&analyst, files, &[]);
        let found: Vec<String> = rules
            .iter()
            .filter_map(|rule| broken(&analyst, files, &answer, rule))
            .collect();
        match (found.is_empty(), open.has("reported", name)) {
            (false, false) => wrong.push(format!("{name}:\n  {}", found.join("\n  "))),
            (true, true) => mended.push(*name),
            _ => {}
        }
    }
    let known: Vec<_> = open.entries().filter(|(kind, _)| *kind == "reported").collect();
    let gone: Vec<_> = known
        .iter()
        .filter(|(_, name)| CASES.iter().all(|case| case.0 != *name))
        .collect();
    assert!(wrong.is_empty(), "answered wrongly:\n{}", wrong.join("\n"));
    assert!(
        mended.is_empty() && gone.is_empty(),
        "right by now, to be taken from open.txt: {mended:?} {gone:?}"
    );
}
