//! Packets that the capture itself missed, and findings about the network then.

use roce_model::{CapturePart, Confidence, TimelineRow};

use super::*;
use crate::coverage::leave_unclear;
use crate::rows::Did;

/// A flow of 1,000 packets in a capture that missed `missed` more, and what went back.
fn rows(missed: u64) -> [FlowRow; 2] {
    let mut data = flow(1, 2);
    data.capture_lost = missed;
    let back = back(&data);
    [data, back]
}

/// The run of these rows, in which gaps have these fates.
fn run_with(rows: &[FlowRow], gaps: &[&'static str]) -> RunSummary {
    let mut run = TestRun::new();
    let events: Vec<_> = gaps
        .iter()
        .map(|class| event(EventKind::Hole, &rows[0], 5 * MS, 1, class))
        .collect();
    run.bin(5, &[], &events);
    for row in rows {
        run.closed(row);
    }
    run.conclude()
}

#[test]
fn losses_are_as_sure_as_the_capture_is_whole() {
    let verdict = |missed: u64, lost: u64, runs: u64| {
        let mut rows = rows(missed);
        (rows[0].network_lost, rows[0].losses_proven) = (lost, lost);
        rows[0].retransmission_runs = runs;
        let gaps = vec!["network_lost"; usize::try_from(lost).unwrap()];
        let run = run_with(&rows, &gaps);
        let finding = fired(&run, "loss.network");
        (finding.severity, finding.confidence)
    };
    assert_eq!(verdict(0, 3, 3), (Severity::Warning, Confidence::High));
    // 1 in 101 packets was missed: that three runs of three meet such holes happens in 1 of 10^6 captures, one of ten in 1 of 11.
    assert_eq!(verdict(10, 3, 3), (Severity::Warning, Confidence::Medium));
    assert_eq!(verdict(10, 1, 10), (Severity::Info, Confidence::Low));
    // 200 of 1,200 are lost, which is critical; not where the capture lost 1 % by itself.
    assert_eq!(verdict(0, 200, 200).0, Severity::Critical);
    assert_eq!(verdict(10, 200, 200).0, Severity::Warning);
}

#[test]
fn a_share_is_never_above_one() {
    let [mut data, back] = rows(0);
    // A thousand packets captured, 3,000 lost before them: 75 %.
    data.network_lost = 3_000;
    let run = run_with(&[data, back], &[]);
    let lost = fired(&run, "loss.network");
    assert!((number(lost, "share") - 0.75).abs() < 1e-12);
    assert!(lost.summary.contains("(75 %)"), "{}", lost.summary);
}

#[test]
fn a_number_that_may_be_more_or_less_says_so() {
    let summary = |missed: u64, unresolved: u64| {
        let mut rows = rows(missed);
        (rows[0].network_lost, rows[0].unresolved) = (5, unresolved);
        let run = run_with(&rows, &[]);
        fired(&run, "loss.network").summary.to_string()
    };
    assert!(summary(0, 0).starts_with("the network lost 5 packets"));
    assert!(summary(0, 2).starts_with("the network lost at least 5 packets"));
    assert!(summary(1, 2).starts_with("the network lost about 5 packets"));
}

#[test]
fn a_sample_of_packets_shows_no_losses() {
    // 1 in 10 is here, and each of 100 packets has a gap before it. Ten runs began with one.
    let mut rows = rows(800);
    rows[0].packets = 110;
    (rows[0].retransmitted_packets, rows[0].unresolved) = (10, 100);
    (rows[0].retransmission_runs, rows[0].runs_timeout) = (10, 10);
    rows[0].network_lost = 90;
    rows[0].response_network_lost = Some(3);
    leave_unclear(&mut rows[0]);
    let mut gaps = vec!["capture_lost"; 80];
    gaps.extend(["network_lost"; 10]);
    let run = run_with(&rows, &gaps);
    let thin = fired(&run, "capture.thin");
    assert_eq!(
        (thin.severity, thin.confidence),
        (Severity::Info, Confidence::Medium)
    );
    assert!(
        thin.summary
            .starts_with("1 in 10 packets was captured (as the packets show)"),
        "{}",
        thin.summary
    );
    // Rules that need every packet are silent, and named.
    let Some((_, Fact::Text(unable))) = thin.evidence.0.iter().find(|(name, _)| *name == "cannot_tell")
    else {
        panic!("{thin:?}")
    };
    for id in ["loss.network", "retransmit.timeout", "stall"] {
        assert!(
            finding(&run, id).is_none() && unable.split(' ').any(|known| known == id),
            "{id}"
        );
    }
    assert!(finding(&run, "loss.capture").is_none() && finding(&run, "capture.quality").is_none());
    // RNR NAKs need no other packet.
    rows[1].rnr_naks = 3;
    let run = run_with(&rows, &gaps);
    fired(&run, "rnr");
}

#[test]
fn a_declared_sample_is_thin_whatever_its_packets_show() {
    let verdict = |sampled: Option<CapturePart>| {
        let mut run = TestRun::with(crate::Settings {
            sampled,
            ..crate::Settings::default()
        });
        let mut data = flow(1, 2);
        (data.network_lost, data.losses_proven, data.retransmission_runs) = (3, 3, 3);
        let mut back = back(&data);
        back.nak_remote_access = 1;
        run.closed(&data);
        run.closed(&back);
        let findings = run.conclude().findings;
        findings.iter().map(|finding| finding.id).collect::<Vec<_>>()
    };
    assert_eq!(verdict(None), ["nak.fatal", "loss.network"]);
    for part in [CapturePart::OneIn(10), CapturePart::Ends] {
        assert_eq!(verdict(Some(part)), ["nak.fatal", "capture.thin"]);
    }
}

#[test]
fn a_burst_of_lost_records_is_no_sample() {
    let rows = rows(900);
    let quality = |gaps: usize| {
        let run = run_with(&rows, &vec!["capture_lost"; gaps]);
        fired(&run, "capture.quality").summary.to_string()
    };
    // 1,000 of 1,900 are here: each of the 1,000 has a gap before it by the chance 9/19, so that 474 are expected.
    assert!(quality(3).contains("1000 of 1900 packets of 1 flow are here, the others are missing at once"));
    assert!(quality(474).contains("1 in 1.9, with gaps everywhere"));
}

#[test]
fn timeouts_beside_holes_of_the_capture_are_never_of_high_confidence() {
    let confidence = |missed: u64, timeouts: u64, runs: u64| {
        let mut rows = rows(missed);
        (rows[0].runs_timeout, rows[0].retransmission_runs) = (timeouts, runs);
        rows[0].runs_timeout_sure = timeouts;
        let run = run_with(&rows, &[]);
        fired(&run, "retransmit.timeout").confidence
    };
    assert_eq!(confidence(0, 2, 2), Confidence::High);
    assert_eq!(confidence(1, 2, 2), Confidence::Medium);
    // One of 20 runs: a NAK was missed by the chance of 1 in 11.
    assert_eq!(confidence(100, 1, 20), Confidence::Low);
}

#[test]
fn what_the_capture_lost_is_told_when_it_happened() {
    let run = run_with(&rows(2), &["capture_lost"]);
    assert_eq!(fired(&run, "loss.capture").first_time, Some(Time(5 * MS)));
}

#[test]
fn holes_of_the_capture_open_no_incast() {
    let flows = [flow(1, 9), flow(2, 9), flow(3, 9)];
    let shared = |sign: fn(&mut TimelineRow)| {
        let mut run = TestRun::new();
        for ms in 0..5 {
            // 7.2 Gbit/s: more than half of the slowest link.
            let large: fn(&mut TimelineRow) = |row| (row.payload_bytes, row.wire_bytes) = (900_000, 900_000);
            let rows: Vec<Did<'_>> = vec![(&flows[0], large), (&flows[1], sign), (&flows[2], sign)];
            run.bin(ms, &rows, &[]);
        }
        run.conclude()
    };
    let run = shared(|row| row.missing = 2);
    assert_eq!(run.findings, []);
    assert_eq!(run.episodes, []);
    // Retransmissions show a queue that dropped, perhaps: then the shares of it are no surer than that.
    let run = shared(|row| row.retransmitted_packets = 2);
    let unfair = fired(&run, "unfair");
    assert_eq!(
        (unfair.severity, unfair.confidence),
        (Severity::Info, Confidence::Low)
    );
}
