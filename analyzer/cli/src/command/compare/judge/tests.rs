//! Runs made by hand, and the expected comparisons.

use super::*;
use roce_model::{Address, FindingRow, Period, Severity, StepRow};

fn sums(payload: f64, marked: f64) -> Sums {
    Sums {
        seconds: 0.001,
        payload,
        data_packets: 100.0,
        ecn_capable: 100.0,
        ce: marked,
        ..Sums::default()
    }
}

/// A run whose payload alternates between two values, with a number of marks in each slice.
fn run(slices: usize, payload: f64, marked: f64) -> Slices {
    let swing = |slice: usize| if slice.is_multiple_of(2) { 1.02 } else { 0.98 };
    Slices {
        sums: (0..slices)
            .map(|slice| sums(payload * swing(slice), marked))
            .collect(),
    }
}

fn outcome(a: &Slices, b: &Slices, quantity: Quantity) -> ComparedQuantity {
    let pending = pending(&[], Some(a), Some(b), "test");
    let found = pending
        .iter()
        .find(|pending| pending.quantity == quantity)
        .unwrap();
    judge(found, 0.01)
}

#[test]
fn what_stands_out_has_a_direction() {
    let (slow, fast) = (run(100, 900_000.0, 0.0), run(100, 1_000_000.0, 5.0));
    let goodput = outcome(&fast, &slow, Quantity::Goodput);
    // 1 MB and 0.9 MB a millisecond: 8 and 7.2 Gbit/s.
    assert!((goodput.a.unwrap() - 8e9).abs() < 1.0 && (goodput.b.unwrap() - 7.2e9).abs() < 1.0);
    assert!((goodput.relative().unwrap() + 0.1).abs() < 1e-9);
    assert_eq!(goodput.outcome, Outcome::Worse);
    assert_eq!(outcome(&slow, &fast, Quantity::Goodput).outcome, Outcome::Better);
    let share = outcome(&slow, &fast, Quantity::CeShare);
    assert_eq!((share.outcome, share.relative()), (Outcome::Worse, None));
    assert!((share.b.unwrap() - 0.05).abs() < 1e-12);
}

#[test]
fn what_is_small_or_short_or_missing_does_not_stand_out() {
    let steady = run(100, 1_000_000.0, 5.0);
    assert_eq!(
        outcome(&steady, &steady, Quantity::Goodput).outcome,
        Outcome::Alike
    );
    // 3 % are certain, and less than what matters.
    let little = outcome(&steady, &run(100, 970_000.0, 5.0), Quantity::Goodput);
    assert_eq!(little.outcome, Outcome::Negligible);
    assert!(little.interval.unwrap().1 < 0.0);
    let short = outcome(&steady, &run(10, 500_000.0, 5.0), Quantity::Goodput);
    assert_eq!(
        (short.outcome, short.interval, short.visible),
        (Outcome::TooShort, None, None)
    );
    let mut unable = run(100, 1_000_000.0, 0.0);
    for slice in &mut unable.sums {
        slice.ecn_capable = 0.0;
    }
    let alone = outcome(&steady, &unable, Quantity::CeShare);
    assert_eq!((alone.outcome, alone.b), (Outcome::OneSided, None));
    // Quantities that neither has anything of are not there.
    assert!(
        pending(&[], Some(&steady), Some(&steady), "")
            .iter()
            .all(|pending| pending.quantity != Quantity::Lost)
    );
}

#[test]
fn steps_are_those_of_one_tap_over_all_their_pairs() {
    let step = |tap: u32, step: u32, from: u64, to: u64| StepRow {
        tap: TapId(tap),
        step,
        host_a: Address::v4([10, 0, 0, 1]),
        start_time: Time(from),
        end_time: Time(to),
        ..StepRow::default()
    };
    let run = RunSummary {
        steps: vec![
            step(1, 1, 0, 10),
            step(0, 1, 1, 10),
            step(0, 1, 2, 14),
            step(0, 2, 103, 115),
            step(0, 3, 200, 220),
        ],
        ..RunSummary::default()
    };
    let (times, periods) = steps(&run);
    assert_eq!(times, [(13.0, 1.0), (12.0, 1.0), (20.0, 1.0)]);
    assert_eq!(periods, [(102.0, 1.0), (97.0, 1.0)]);
    assert_eq!(steps(&RunSummary::default()), (Vec::new(), Vec::new()));
}

#[test]
fn findings_are_compared_by_their_worst() {
    let run = |findings: &[(&'static str, Severity)]| RunSummary {
        findings: findings
            .iter()
            .map(|(id, severity)| FindingRow {
                id,
                severity: *severity,
                ..FindingRow::default()
            })
            .collect(),
        ..RunSummary::default()
    };
    let a = run(&[
        ("ecn.working", Severity::Ok),
        ("mtu", Severity::Info),
        ("loss.network", Severity::Warning),
    ]);
    let b = run(&[
        ("mtu", Severity::Info),
        ("incast", Severity::Info),
        ("incast", Severity::Warning),
        ("loss.network", Severity::Critical),
    ]);
    let changes = findings(&a, &b);
    let notes: Vec<_> = changes
        .iter()
        .map(|change| (change.id.as_str(), change.a, change.b, change.is_regression()))
        .collect();
    assert_eq!(
        notes,
        [
            ("incast", None, Some(Severity::Warning), true),
            (
                "loss.network",
                Some(Severity::Warning),
                Some(Severity::Critical),
                false
            ),
            ("ecn.working", Some(Severity::Ok), None, false),
        ]
    );
}

#[test]
fn what_differs_in_how_they_were_made_is_noted() {
    let side = |options: &[(&str, &str)], measured: &'static str, lost: u64| {
        let mut side = CollectedRun::default();
        side.run.options = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        side.run.totals.frames_lost = lost;
        side.ack_rtt_kind.insert(measured);
        side
    };
    let a = side(&[("bin_ns", "1"), ("link_rate_bps", "25")], "rtt", 0);
    assert_eq!(
        notes(&a, &side(&[("bin_ns", "1"), ("link_rate_bps", "25")], "rtt", 0)),
        Vec::<String>::new()
    );
    let notes = super::notes(
        &a,
        &side(&[("bin_ns", "1"), ("flow", "vlan 3")], "turnaround", 12),
    );
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert!(notes[0].contains("rtt in A, turnaround in B"), "{notes:?}");
    assert!(
        notes[1].contains("flow is not given in A, vlan 3 in B"),
        "{notes:?}"
    );
    assert!(notes[3].contains("capture of B lost 12 frames"), "{notes:?}");
}

#[test]
fn few_events_may_be_chance() {
    // 2^-4 = 0.0625, 2^-5 = 0.031.
    assert!(may_be_chance(0, 2, 0.5) && may_be_chance(0, 4, 0.5));
    assert!(!may_be_chance(0, 5, 0.5));
    // 7 of 8 or more: (8 + 1) / 256 = 0.035; 6 of 7: (7 + 1) / 128 = 0.0625.
    assert!(!may_be_chance(1, 7, 0.5) && may_be_chance(1, 6, 0.5));
    // The second run is four times as long: 0.8^13 = 0.055, 0.8^14 = 0.044.
    assert!(may_be_chance(0, 13, 0.8) && !may_be_chance(0, 14, 0.8));
    // Equal numbers in both; a clear excess; unknown lengths.
    assert!(may_be_chance(300, 300, 0.5));
    assert!(!may_be_chance(0, 5_000, 0.5) && !may_be_chance(0, 1, f64::NAN));
}

#[test]
fn a_finding_of_few_events_is_no_regression() {
    let run = |timeouts: u64| {
        let mut finding = FindingRow {
            id: "retransmit.timeout",
            severity: Severity::Warning,
            ..FindingRow::default()
        };
        finding.evidence.count("runs_timeout", timeouts);
        RunSummary {
            span: Some(Period {
                first: Time(1_000),
                last: Time(61_000),
            }),
            findings: vec![finding],
            ..RunSummary::default()
        }
    };
    let none = RunSummary {
        findings: Vec::new(),
        ..run(0)
    };
    let notes = |timeouts| {
        let changes = findings(&none, &run(timeouts));
        (changes[0].may_be_chance, changes[0].is_regression())
    };
    assert_eq!(notes(2), (true, false));
    assert_eq!(notes(9), (false, true));
    // A finding that is gone is no regression, so no sentence about chance is needed.
    assert!(!findings(&run(2), &none)[0].may_be_chance);
}
