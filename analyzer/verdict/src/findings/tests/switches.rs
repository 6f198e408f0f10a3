//! Drops and marks of switches against what was captured.

use roce_model::{Counter, HostVantage, SampleRow, TapRow, Vantage, VantageRow, Wiring};

use super::readings::{SECOND, leaf_spine, long, of_queue, reads, shows, take, test_run, text};
use super::*;

/// Losses of `lost` packets from h1 to h3 at 5.5 s, and these readings.
fn losses(lost: u64, wiring: &Wiring, readings: &[Vec<SampleRow>]) -> RunSummary {
    let mut run = test_run(wiring);
    take(&mut run, readings);
    let mut lossy = long(1, 3);
    (lossy.network_lost, lossy.losses_proven) = (lost, lost);
    let ms = 5_500;
    let events: Vec<_> = (0..lost)
        .map(|at| event(EventKind::Hole, &lossy, ms * MS + at, 1, "network_lost"))
        .collect();
    run.bin(
        ms,
        &[(&lossy, |row| {
            row.missing = 1;
            row.retransmitted_packets = 1;
            row.retransmitted_bytes = 1_024;
        })],
        &events,
    );
    run.closed(&lossy);
    run.conclude()
}

fn dropped(at: &str, drops: &[f64]) -> Vec<SampleRow> {
    of_queue(reads(at, Counter::SwitchQueueDroppedPackets, 3, drops), "3")
}

#[test]
fn drops_explain_losses_of_the_same_number_and_time() {
    let found = losses(40, &leaf_spine(1), &[dropped("leaf2:p1", &[0.0, 0.0, 41.0, 0.0])]);
    let drops = fired(&found, "drops.switch");
    assert_eq!(
        (drops.severity, drops.confidence),
        (Severity::Warning, Confidence::High)
    );
    assert_eq!((count(drops, "lost"), count(drops, "dropped")), (40, 41));
    assert_eq!(text(drops, "where"), "leaf2 p1 queue 3: 41");
    // Nobody knows whether the flow passes there.
    let found = losses(
        40,
        &Wiring::default(),
        &[dropped("leaf2:p1", &[0.0, 0.0, 41.0, 0.0])],
    );
    assert_eq!(fired(&found, "drops.switch").confidence, Confidence::Medium);
    // More than a tenth off; fewer than ten; others at another time; a reset.
    let found = losses(40, &leaf_spine(1), &[dropped("leaf2:p1", &[0.0, 0.0, 45.0, 0.0])]);
    assert_eq!(fired(&found, "drops.switch").confidence, Confidence::Medium);
    let found = losses(9, &leaf_spine(1), &[dropped("leaf2:p1", &[0.0, 0.0, 9.0, 0.0])]);
    assert_eq!(fired(&found, "drops.switch").confidence, Confidence::Medium);
    let found = losses(40, &leaf_spine(1), &[dropped("leaf2:p1", &[7.0, 0.0, 40.0, 0.0])]);
    assert_eq!(fired(&found, "drops.switch").confidence, Confidence::Low);
    let mut rows = dropped("leaf2:p1", &[0.0, 0.0, 40.0, 0.0]);
    rows[1].reset = true;
    let found = losses(40, &leaf_spine(1), &[rows]);
    assert_eq!(fired(&found, "drops.switch").confidence, Confidence::Low);
}

#[test]
fn switches_that_dropped_nothing_are_named() {
    let found = losses(40, &leaf_spine(1), &[dropped("leaf2:p1", &[0.0; 4])]);
    let drops = fired(&found, "drops.switch");
    assert_eq!(
        (drops.severity, drops.confidence),
        (Severity::Info, Confidence::Medium)
    );
    assert!(
        drops
            .summary
            .starts_with("leaf2 counted no drop while 40 packets were lost"),
        "{}",
        drops.summary
    );
    // Drops at another time than the losses are no explanation.
    let found = losses(40, &leaf_spine(1), &[dropped("leaf2:p1", &[40.0, 0.0, 0.0, 0.0])]);
    assert_eq!(count(fired(&found, "drops.switch"), "dropped"), 0);
    // Readings that end before the loss, or of a port where the flow does not pass, say nothing.
    let found = losses(40, &leaf_spine(1), &[dropped("leaf2:p1", &[0.0, 0.0])]);
    assert!(finding(&found, "drops.switch").is_none());
    let found = losses(40, &leaf_spine(1), &[dropped("leaf2:p2", &[0.0, 0.0, 40.0, 0.0])]);
    assert!(finding(&found, "drops.switch").is_none());
    // Without readings, and without losses.
    assert!(finding(&losses(40, &leaf_spine(1), &[]), "drops.switch").is_none());
    let found = losses(0, &leaf_spine(1), &[dropped("leaf2:p1", &[0.0, 0.0, 40.0, 0.0])]);
    assert!(finding(&found, "drops.switch").is_none());
}

fn thresholds(marks: f64, pauses: f64, sent: f64) -> RunSummary {
    let mut min = of_queue(shows("leaf2:p1", Counter::SwitchEcnThreshold, marks), "3");
    min[0].detail = Some("port,min".into());
    let mut max = of_queue(shows("leaf2:p1", Counter::SwitchEcnThreshold, 9e9), "3");
    max[0].detail = Some("port,max".into());
    let mut run = test_run(&leaf_spine(1));
    take(
        &mut run,
        &[
            min,
            max,
            of_queue(shows("leaf2:u1", Counter::SwitchQueuePauseThreshold, pauses), "3"),
            reads(
                "leaf2:u1",
                Counter::SwitchPriorityPfcTransmittedFrames,
                3,
                &[sent],
            ),
        ],
    );
    run.conclude()
}

#[test]
fn a_switch_that_pauses_before_it_marks() {
    let found = thresholds(150_000.0, 150_000.0, 12.0);
    let finding_of = fired(&found, "ecn.threshold");
    assert_eq!(
        (finding_of.severity, finding_of.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert_eq!(
        (
            count(finding_of, "marks_from_bytes"),
            count(finding_of, "pauses_from_bytes")
        ),
        (150_000, 150_000)
    );
    assert!(finding(&thresholds(149_999.0, 150_000.0, 12.0), "ecn.threshold").is_none());
    // Without a pause it is a setting, not a finding of a run.
    assert!(finding(&thresholds(150_000.0, 150_000.0, 0.0), "ecn.threshold").is_none());
}

/// h3's own tap saw `ce` marked packets from 0 to 10 s; its port marked these.
fn marks(ce: u64, from: u8, marked: &[f64]) -> RunSummary {
    let mut run = test_run(&leaf_spine(1));
    run.summary.taps = vec![TapRow {
        first_time: Some(Time(SECOND / 2)),
        last_time: Some(Time(9 * SECOND)),
        ..TapRow::default()
    }];
    take(
        &mut run,
        &[of_queue(
            reads("leaf2:p1", Counter::SwitchQueueEcnMarkedPackets, 0, marked),
            "3",
        )],
    );
    let mut row = long(from, 3);
    row.vantage = Some(Vantage::Receiver);
    (row.ce, row.ect0) = (ce, 1_000 - ce);
    run.closed(&row);
    let found = run.conclude();
    let is_near = |row: &VantageRow| row.address == host(3) && row.vantage == Some(HostVantage::Near);
    assert!(found.vantages.iter().any(is_near));
    found
}

#[test]
fn marks_of_the_switch_against_those_that_arrive() {
    // 500 within the capture, and 500 arrived; the readings at its edges have 20 more.
    let around = [10.0, 250.0, 250.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0];
    assert!(finding(&marks(500, 4, &around), "ecn.threshold").is_none());
    // 1.1 x 520 + 10 may arrive from a host at the same switch; from another one the spine may have marked.
    assert!(finding(&marks(582, 4, &around), "ecn.threshold").is_none());
    let found = marks(583, 4, &around);
    let many = fired(&found, "ecn.threshold");
    assert_eq!(
        (many.severity, many.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert!(finding(&marks(583, 1, &around), "ecn.threshold").is_none());
    // 500 - 50 - 10.
    assert!(finding(&marks(440, 1, &around), "ecn.threshold").is_none());
    let found = marks(439, 1, &around);
    let few = fired(&found, "ecn.threshold");
    assert_eq!((few.severity, few.confidence), (Severity::Info, Confidence::Low));
}
