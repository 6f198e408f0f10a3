//! Paths between two hosts of which some lose packets.

use super::super::super::rows::flow_to;
use super::*;

/// Flows from h1 to h2 on ports of their own, each with so many moments with losses, 2 ms apart.
fn paths(moments: &[u64], change: fn(usize, &mut FlowRow)) -> RunSummary {
    let mut run = TestRun::new();
    for (qpn, (number, losses)) in (0x100..).zip(moments.iter().enumerate()) {
        let mut row = flow_to(1, 2, qpn);
        row.last_time = Time(100 * MS);
        row.network_lost = *losses;
        change(number, &mut row);
        for moment in 0..*losses {
            let lost = event(EventKind::Hole, &row, (1 + 2 * moment) * MS, 1, "network_lost");
            run.verdicts().event(&lost);
        }
        run.closed(&row);
    }
    run.conclude()
}

#[test]
fn flows_that_share_a_faulty_link() {
    let run = paths(&[6, 0, 7, 0, 0, 6, 0, 0], |_, _| {});
    let row = fired(&run, "path.faulty");
    assert_eq!(
        (row.severity, row.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert_eq!(
        (
            count(row, "paths"),
            count(row, "faulty_paths"),
            count(row, "signs")
        ),
        (8, 3, 19)
    );
    // All 19 on 3 of 8, 56 ways to choose 3, 7 numbers of paths and the whole: (3/8)^19 x 56 x 8.
    let expected = 0.375_f64.powi(19) * 56.0 * 8.0;
    assert!((number(row, "chance") / expected - 1.0).abs() < 1e-6);
    assert_eq!(row.first_time, Some(Time(MS)));
    assert!(
        row.summary.starts_with(
            "3 of 8 paths from 10.0.0.1 to 10.0.0.2 lost packets: 19 of 19 moments with losses, with 38 % of the packets"
        ),
        "{}",
        row.summary
    );
    // Losses there are explained.
    assert!(row.explains.has("loss.network"), "{:?}", row.explains);
}

#[test]
fn what_chance_may_do_is_no_faulty_path() {
    let is_found = |moments: &[u64]| finding(&paths(moments, |_, _| {}), "path.faulty").is_some();
    // Even, and uneven as chance has it.
    assert!(!is_found(&[3, 2, 3, 2, 4, 3, 2, 3]));
    assert!(!is_found(&[6, 0, 1, 2, 0, 3, 0, 1]));
    // (1/8)^n x 8 x 8 is below 0.001 from n = 6 on: 0.00024; of 5 it is 0.00195.
    assert!(!is_found(&[5, 0, 0, 0, 0, 0, 0, 0]));
    assert!(is_found(&[6, 0, 0, 0, 0, 0, 0, 0]));
    // Five of eight may share a link; nearly all paths are no exception: that one lost nothing says little.
    assert!(is_found(&[9, 9, 9, 9, 9, 0, 0, 0]));
    assert!(!is_found(&[9, 9, 9, 9, 9, 9, 9, 0]));
    assert!(!is_found(&[40]));
}

#[test]
fn one_flow_may_have_trouble_of_its_own() {
    let run = paths(&[9, 0, 0, 0], |_, _| {});
    let row = fired(&run, "path.faulty");
    assert_eq!((row.severity, row.confidence), (Severity::Info, Confidence::Low));
}

#[test]
fn flows_of_another_time_prove_nothing() {
    // The others were over before the losses.
    let run = paths(&[8, 8, 0, 0, 0, 0], |number, row| {
        if number > 1 {
            row.last_time = Time(MS / 2);
        }
    });
    assert!(finding(&run, "path.faulty").is_none());
    // A moment's losses are one sign: here all within 1 ms.
    let mut run = TestRun::new();
    for number in 0..8 {
        let mut row = flow_to(1, 2, 0x100 + number);
        row.network_lost = if number == 0 { 20 } else { 0 };
        for packet in 0..row.network_lost {
            let lost = event(EventKind::Hole, &row, MS + packet * 10_000, 1, "network_lost");
            run.verdicts().event(&lost);
        }
        run.closed(&row);
    }
    assert!(finding(&run.conclude(), "path.faulty").is_none());
}

#[test]
fn wrong_checksums_by_path() {
    let damaged = |number: usize, row: &mut FlowRow| {
        row.icrc_checked = 1_000;
        row.icrc_bad = if number < 2 { 8 } else { 0 };
    };
    let run = paths(&[0; 6], damaged);
    let row = fired(&run, "path.faulty");
    // 16 of 16 with a third of the packets.
    assert_eq!((count(row, "faulty_paths"), count(row, "signs")), (2, 16));
    assert!(row.summary.contains("damaged packets"), "{}", row.summary);
}
