//! The evidence itself: checksums and the capture's quality.

use roce_model::{Confidence, InputSummary, TapRow};

use super::*;

#[test]
fn wrong_checksums() {
    let verdict = |bad: u64, checked: u64| {
        let mut data = flow(1, 2);
        (data.icrc_bad, data.icrc_checked) = (bad, checked);
        let mut run = TestRun::new();
        (run.summary.totals.icrc_bad, run.summary.totals.icrc_checked) = (bad, checked);
        run.closed(&data);
        finding(&run.conclude(), "icrc.bad").cloned()
    };
    let row = verdict(3, 1_000).unwrap();
    assert_eq!(
        row.summary,
        "3 packets of 1000 checked have a wrong ICRC (0.3 %): 10.0.0.1 > 10.0.0.2 QP 0x11"
    );
    assert_eq!(
        (row.severity, row.confidence),
        (Severity::Warning, Confidence::High)
    );
    let row = verdict(100, 1_000).unwrap();
    assert_eq!(
        (row.severity, row.confidence),
        (Severity::Info, Confidence::Low),
        "a tenth: systematic"
    );
    assert_eq!(verdict(99, 1_000).unwrap().severity, Severity::Warning);
    assert_eq!(verdict(0, 1_000), None);
}

#[test]
fn wrong_checksums_are_judged_by_sender() {
    // One sender whose packets are all wrong: the capture, as long as they are acknowledged; whoever else sends.
    let verdict = |healthy: u8, refused: bool| {
        let mut wrong = flow(1, 99);
        (wrong.icrc_bad, wrong.icrc_checked) = (1_000, 1_000);
        if refused {
            (wrong.retransmitted_packets, wrong.ack_rtt_count) = (500, 0);
        }
        let mut run = TestRun::new();
        run.closed(&wrong);
        for host in 0..healthy {
            let mut fine = flow(2 + host, 99);
            fine.icrc_checked = 1_000;
            run.closed(&fine);
        }
        (run.summary.totals.icrc_bad, run.summary.totals.icrc_checked) =
            (1_000, 1_000 * (u64::from(healthy) + 1));
        let row = finding(&run.conclude(), "icrc.bad").cloned().unwrap();
        (row.severity, row.confidence)
    };
    for healthy in [0, 1, 90] {
        assert_eq!(
            verdict(healthy, false),
            (Severity::Info, Confidence::Low),
            "{healthy}"
        );
        // The receiver takes none of them: the sender computes them wrong.
        assert_eq!(
            verdict(healthy, true),
            (Severity::Warning, Confidence::High),
            "{healthy}"
        );
    }
}

#[test]
fn packets_with_a_wrong_icrc_that_are_asked_for_again_are_one_finding() {
    let mut data = flow(1, 2);
    (data.icrc_bad, data.icrc_checked, data.lost_downstream) = (3, 1_000, Some(3));
    let of = |data: &FlowRow| {
        let mut run = TestRun::new();
        (run.summary.totals.icrc_bad, run.summary.totals.icrc_checked) = (3, 1_000);
        run.closed(data);
        let findings = run.conclude().findings;
        findings
            .iter()
            .map(|row| (row.id, row.summary.to_string()))
            .collect::<Vec<_>>()
    };
    let summary = "3 packets of 1000 checked have a wrong ICRC (0.3 %): the receiver dropped them, 3 packets were asked for again: \
                   10.0.0.1 > 10.0.0.2 QP 0x11";
    assert_eq!(of(&data), [("icrc.bad", summary.to_owned())]);
    // A fourth was lost for another reason.
    data.lost_downstream = Some(4);
    let ids: Vec<_> = of(&data).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["loss.network", "icrc.bad"]);
}

fn quality(change: fn(&mut RunSummary)) -> Option<FindingRow> {
    let mut run = TestRun::new();
    let data = flow(1, 2);
    run.closed(&data).closed(&back(&data));
    change(&mut run.summary);
    finding(&run.conclude(), "capture.quality").cloned()
}

#[test]
fn what_the_capture_could_not_show() {
    let row = quality(|run| {
        run.taps = vec![TapRow {
            frames_lost: 142,
            mirror_lost: 1,
            out_of_order_max_ns: 10_000_001,
            stamp_quantum_ns: 1_000_000,
            ..TapRow::default()
        }];
        run.totals.cut_by_snaplen = 7;
        run.totals.evicted = 2;
        run.inputs = vec![InputSummary {
            truncated: true,
            ..InputSummary::default()
        }];
    })
    .unwrap();
    assert_eq!(
        row.summary,
        "142 records lost by the capture; 1 frame lost by a mirror; the snaplen cut headers of 7 packets; stamps step back \
         by up to 10.0 ms; stamps have a resolution of 1.00 ms; 1 input ended early; 2 flows closed early for --max-flows"
    );
    assert_eq!((row.severity, count(&row, "frames_lost")), (Severity::Info, 142));
    let fine = quality(|run| {
        run.taps = vec![TapRow {
            out_of_order: 9,
            out_of_order_max_ns: 10_000_000,
            stamp_quantum_ns: 1_000,
            ..TapRow::default()
        }];
    });
    assert_eq!(fine, None, "microseconds, and what the analysis waits for");
}

#[test]
fn a_tap_that_saw_one_direction() {
    let verdict = |change: fn(&mut FlowRow)| {
        let mut data = flow(1, 2);
        (data.peer_flow_id, data.pairing, data.data_packets) = (None, None, 100);
        change(&mut data);
        finding(&run_of(&[&data]), "capture.quality").cloned()
    };
    let row = verdict(|_| {}).unwrap();
    assert_eq!(row.summary, "1 tap saw one direction only: no ACK was captured");
    assert_eq!(
        verdict(|row| row.data_packets = 99),
        None,
        "too few to expect an ACK"
    );
    assert_eq!(verdict(|row| row.acks = 1), None);
    assert_eq!(verdict(|row| row.service = "UC"), None, "UC has no ACKs");
}

#[test]
fn captures_that_were_put_right_say_so() {
    let tap = |copies, sorted_frames| roce_model::TapRow {
        roce_packets: 90,
        copies,
        sorted_frames,
        sorted_max_ns: 12_000,
        sorted_first_time: Some(Time(7)),
        ..roce_model::TapRow::default()
    };
    let of = |tap: roce_model::TapRow| {
        let mut run = TestRun::new();
        run.summary.taps = vec![tap];
        run.conclude()
    };
    let run = of(tap(45, 3));
    let quality = fired(&run, "capture.quality");
    assert_eq!(
        (count(quality, "sorted_frames"), count(quality, "copies")),
        (3, 45)
    );
    assert!(
        quality
            .summary
            .contains("3 frames stood up to 12.0 us behind later ones"),
        "{}",
        quality.summary
    );
    assert!(
        quality.summary.contains("a mirror shows packets twice"),
        "{}",
        quality.summary
    );
    assert_eq!(quality.first_time, Some(Time(7)));
    // A few copies in 90 packets are no mirror of both directions.
    assert!(finding(&of(tap(29, 0)), "capture.quality").is_none());
}
