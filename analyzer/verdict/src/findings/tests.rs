//! Each rule from rows made by hand: one run in which it fires, one near its threshold in which it does not. A flow is
//! 1,000 data packets with ECT(0) of 1,024 bytes.

mod adapters;
mod anything;
mod blind;
mod causes;
mod classes;
mod collectives;
mod congestion;
mod documents;
mod evidence;
mod gpus;
mod idle;
mod imbalance;
mod job;
mod late;
mod losses;
mod missed;
mod mrc;
mod overrun;
mod paths;
mod pauses;
mod plan;
mod programs;
mod readings;
mod silences;
mod switches;
mod trimmed;
mod unmoved;
mod unpassed;
mod waits;

use roce_model::{
    CnpReceiver, Confidence, EventKind, Evidence, Fact, FindingRow, FlowRow, Qpn, RunSummary, Severity,
    TapId, Time,
};

use super::super::rows::{MS, TestRun, back, event, flow, host};
use super::super::thresholds::Thresholds;
use super::causes::in_order;
use super::place_of;
use super::rule::{FindingOf as _, Rule};
use super::{RULES, loss, pause, quality, stall};

/// The run over these flows.
fn run_of(rows: &[&FlowRow]) -> RunSummary {
    let mut run = TestRun::new();
    for row in rows {
        run.closed(row);
    }
    run.conclude()
}

fn finding<'a>(run: &'a RunSummary, id: &str) -> Option<&'a FindingRow> {
    assert!(RULES.iter().any(|rule| rule.id == id), "{id}");
    run.findings.iter().find(|finding| finding.id == id)
}

fn fired<'a>(run: &'a RunSummary, id: &str) -> &'a FindingRow {
    finding(run, id).unwrap_or_else(|| panic!("{id} did not fire: {:?}", run.findings))
}

fn count(finding: &FindingRow, name: &str) -> u64 {
    match finding.evidence.0.iter().find(|(known, _)| *known == name) {
        Some((_, Fact::Count(value))) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

fn number(finding: &FindingRow, name: &str) -> f64 {
    match finding.evidence.0.iter().find(|(known, _)| *known == name) {
        Some((_, Fact::Number(value))) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

/// CNPs from host `from` to host `to`.
fn cnps(from: u8, to: u8, cnp: u64) -> CnpReceiver {
    CnpReceiver {
        tap: TapId(0),
        source: host(from),
        destination: host(to),
        qpn: Qpn::new(7),
        cnp,
        dscp: Some(48),
        pcp: None,
        first_time: Time(MS),
        last_time: Time(2 * MS),
    }
}

#[test]
fn every_rule_is_explained() {
    for (at, rule) in RULES.iter().enumerate() {
        assert!(
            RULES[..at].iter().all(|other| other.id != rule.id),
            "{} twice",
            rule.id
        );
        for text in [rule.title, rule.meaning, rule.method, rule.source] {
            assert!(!text.is_empty() && !text.contains("  "), "{}: {text}", rule.id);
        }
        // The text about confidence begins with one of its words.
        let known = Confidence::ALL
            .iter()
            .any(|word| rule.confidence.starts_with(word.name()));
        assert!(
            known && !rule.confidence.contains("  "),
            "{}: {}",
            rule.id,
            rule.confidence
        );
        for name in rule.thresholds {
            assert!(Thresholds::named(name).is_ok(), "{}: {name}", rule.id);
        }
    }
    let used = |name: &str| RULES.iter().any(|rule| rule.thresholds.contains(&name));
    for threshold in Thresholds::ALL {
        assert!(used(threshold.name), "{} decides nothing", threshold.name);
    }
}

#[test]
fn clean_traffic_has_no_findings() {
    let data = flow(1, 2);
    let run = run_of(&[&data, &back(&data)]);
    assert_eq!(run.findings, []);
    assert_eq!(run_of(&[]).findings, [], "an empty run");
}

#[test]
fn management_traffic_is_no_data() {
    let mut connecting = flow(1, 2);
    (connecting.destination_qpn, connecting.service) = (1, "UD");
    (connecting.ect0, connecting.not_ect) = (0, 1_000);
    (connecting.dscp_values, connecting.path_mtu) = (3, Some(256));
    connecting.payload_bytes = 10_000_000;
    assert_eq!(run_of(&[&connecting]).findings, []);
}

#[test]
fn the_worst_come_first() {
    let mut lossy = flow(1, 2);
    (lossy.network_lost, lossy.not_ect, lossy.ect0) = (1, 1_000, 0);
    let mut refused = back(&lossy);
    refused.nak_remote_access = 1;
    // Another capture missed a packet.
    let mut missed = crate::rows::at_tap(flow(3, 4), 1);
    missed.capture_lost = 1;
    let run = run_of(&[&lossy, &refused, &missed]);
    let seen: Vec<_> = run.findings.iter().map(|row| (row.severity, row.id)).collect();
    assert_eq!(
        seen,
        [
            (Severity::Critical, "nak.fatal"),
            (Severity::Warning, "loss.network"),
            (Severity::Warning, "ecn.not-capable"),
            (Severity::Info, "loss.capture"),
        ]
    );
}

#[test]
fn rows_that_are_not_counted_add_nothing() {
    let mut data = flow(1, 2);
    (data.network_lost, data.runs_timeout, data.capture_lost) = (5, 1, 1);
    (data.not_ect, data.ect0, data.dscp_values, data.rnr_naks) = (1_000, 0, 2, 1);
    data.counted = false;
    // But what the capture lost is missing at this tap alone.
    let run = run_of(&[&data]);
    let seen: Vec<_> = run.findings.iter().map(|row| row.id).collect();
    assert_eq!(seen, ["loss.capture"]);
}

#[test]
fn findings_have_one_order_whatever_came_first() {
    let finding = |rule: &Rule, verdict| {
        let next = "Look.";
        Some(rule.finding(verdict, rule.title.to_owned(), Evidence::default(), next, None))
    };
    let all = [
        finding(&stall::STALL, (Severity::Warning, Confidence::High)),
        finding(&loss::TIMEOUT, (Severity::Warning, Confidence::Medium)),
        finding(&pause::STORM, (Severity::Critical, Confidence::High)),
        finding(&quality::CAPTURE, (Severity::Info, Confidence::High)),
        // A finding that is only likely is no warning, and comes behind those that are known.
        finding(&loss::NETWORK, (Severity::Critical, Confidence::Low)),
    ];
    let expected = [
        "pause.storm",
        "retransmit.timeout",
        "stall",
        "capture.quality",
        "loss.network",
    ];
    for first in 0..all.len() {
        let mut turned = all.clone();
        turned.rotate_left(first);
        let order: Vec<&str> = in_order(turned.into_iter().flatten().collect(), |row| row, place_of)
            .iter()
            .map(|row| row.id)
            .collect();
        assert_eq!(order, expected);
    }
}
