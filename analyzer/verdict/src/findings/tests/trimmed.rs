//! Packets that switches trimmed.

use super::*;

/// A flow of which `trimmed` packets came without their data, and `lost` were lost in all, so that 10 kB and 4 ms were for nothing.
fn run_with(trimmed: u64, lost: u64) -> RunSummary {
    let mut run = TestRun::new();
    let mut data = flow(1, 2);
    (data.trimmed, data.network_lost, data.losses_proven) = (trimmed, lost, lost);
    (data.retransmitted_packets, data.retransmitted_bytes) = (10, 10_000);
    data.time_recovering_ns = Some(4 * MS);
    for at in 0..trimmed {
        let mut cut = event(EventKind::Trimmed, &data, (10 + at) * MS, 10 + 10 * (at % 2), "");
        cut.detail = None;
        run.verdicts().event(&cut);
    }
    run.verdicts()
        .event(&event(EventKind::Hole, &data, 10 * MS, lost, "network_lost"));
    run.closed(&data);
    run.conclude()
}

#[test]
fn trimmed_packets_explain_the_losses_that_they_are() {
    let run = run_with(4, 4);
    let trimmed = fired(&run, "loss.trimmed");
    assert_eq!((count(trimmed, "trimmed"), count(trimmed, "flows")), (4, 1));
    assert_eq!(
        (count(trimmed, "repeated_bytes"), trimmed.waited_ns),
        (10_000, Some(4 * MS))
    );
    assert_eq!(
        (trimmed.severity, trimmed.confidence),
        (Severity::Warning, Confidence::High)
    );
    assert!(trimmed.is_root() && trimmed.explains.has("loss.network"));
    assert_eq!(
        fired(&run, "loss.network").explained_by.to_string(),
        "loss.trimmed"
    );
    assert!(
        run.sentence.starts_with(
            "A full queue before the tap took the data out of 4 packets from 10.0.0.1 to 10.0.0.2"
        ),
        "{}",
        run.sentence
    );
}

#[test]
fn a_few_trimmed_packets_do_not_explain_other_losses() {
    let run = run_with(4, 40);
    let trimmed = fired(&run, "loss.trimmed");
    assert!(trimmed.explains.0.is_empty());
    assert!(fired(&run, "loss.network").is_root());
    // A tenth of the losses has a tenth of their price: 10 kB, 4 ms.
    assert_eq!(
        (count(trimmed, "repeated_bytes"), count(trimmed, "waited_ns")),
        (1_000, 400_000)
    );
}

#[test]
fn losses_without_trimmed_packets_are_no_trims() {
    let run = run_with(0, 40);
    assert!(finding(&run, "loss.trimmed").is_none());
    assert!(fired(&run, "loss.network").is_root());
}

#[test]
fn the_tap_that_saw_most_of_a_flows_trimmed_packets_counts() {
    let mut run = TestRun::new();
    let mut before = flow(1, 2);
    before.retransmitted_packets = 5;
    let mut behind = before.clone();
    (behind.tap, behind.counted) = (TapId(1), false);
    (behind.trimmed, behind.network_lost) = (3, 3);
    let mut last = behind.clone();
    last.tap = TapId(2);
    for row in [&before, &behind, &last] {
        run.closed(row);
    }
    assert_eq!(count(fired(&run.conclude(), "loss.trimmed"), "trimmed"), 3);
}
