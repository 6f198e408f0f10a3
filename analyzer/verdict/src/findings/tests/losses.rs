//! Losses, timeouts, receivers that refuse, stalls.

use roce_model::{Confidence, HopRow, Period, TapRow, TimelineRow};

use super::*;

#[test]
fn one_packet_lost_in_the_network_is_a_warning() {
    let mut data = flow(1, 2);
    (data.network_lost, data.ambiguous) = (1, 3);
    (data.retransmitted_bytes, data.wasted_bytes) = (4_096, Some(3_072));
    let run = run_of(&[&data, &back(&data)]);
    let lost = fired(&run, "loss.network");
    assert_eq!(
        (lost.severity, lost.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    data.losses_proven = 1;
    let run = run_of(&[&data, &back(&data)]);
    let lost = fired(&run, "loss.network");
    assert_eq!(lost.confidence, Confidence::High);
    assert_eq!(
        lost.summary,
        "the network lost at least 1 packet of 1 flow (0.1 %), before this tap; 4.10 kB retransmitted, 3.07 kB of it wasted: \
         10.0.0.1 > 10.0.0.2 QP 0x11",
        "three others may be lost, too"
    );
    assert_eq!(
        (count(lost, "ambiguous"), count(lost, "data_packets")),
        (3, 1_000)
    );
    data.network_lost = 0;
    data.reordered = 5;
    data.unresolved = 2;
    assert!(finding(&run_of(&[&data]), "loss.network").is_none());
}

#[test]
fn more_than_one_in_a_thousand_is_critical() {
    // 100 of 100,000 are one in a thousand: not more.
    let mut data = flow(1, 2);
    (data.network_lost, data.data_packets) = (100, 100_000);
    assert_eq!(
        fired(&run_of(&[&data]), "loss.network").severity,
        Severity::Warning
    );
    data.network_lost = 101;
    assert_eq!(
        fired(&run_of(&[&data]), "loss.network").severity,
        Severity::Critical
    );
    // A large share of few.
    (data.network_lost, data.data_packets) = (99, 1_000);
    assert_eq!(
        fired(&run_of(&[&data]), "loss.network").severity,
        Severity::Warning
    );
}

#[test]
fn where_packets_were_lost() {
    let mut data = flow(1, 2);
    data.lost_downstream = Some(2);
    let run = run_of(&[&data]);
    let lost = fired(&run, "loss.network");
    assert!(
        lost.summary
            .contains("lost 2 packets of 1 flow (0.2 %), behind this tap"),
        "{}",
        lost.summary
    );
    assert!(
        lost.next_step.contains("between this tap and 10.0.0.2:"),
        "{}",
        lost.next_step
    );
    (data.response_network_lost, data.network_lost) = (Some(1), 0);
    let run = run_of(&[&data]);
    let lost = fired(&run, "loss.network");
    assert!(lost.summary.contains("lost 3 packets") && lost.summary.contains("before and behind this tap"));
}

#[test]
fn what_was_overtaken_behind_the_tap_is_no_loss() {
    let mut data = flow(1, 2);
    (data.lost_downstream, data.overtaken_downstream) = (Some(5), Some(0));
    let run = run_of(&[&data]);
    let lost = fired(&run, "loss.network");
    assert_eq!(
        (lost.severity, lost.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    // Two of five came without a retransmission: the others may have, too.
    data.overtaken_downstream = Some(2);
    let run = run_of(&[&data]);
    let lost = fired(&run, "loss.network");
    assert!(lost.summary.contains("lost 3 packets"), "{}", lost.summary);
    assert_eq!(
        (lost.severity, lost.confidence),
        (Severity::Info, Confidence::Low)
    );
    data.overtaken_downstream = Some(5);
    assert!(finding(&run_of(&[&data]), "loss.network").is_none());
}

/// Two files; the second one's packets came first, so its tap has the lower number.
fn two_taps() -> TestRun {
    let mut run = TestRun::new();
    let tap = |tap: u32, input: &str| TapRow {
        tap: TapId(tap),
        input: input.to_owned().into(),
        ..TapRow::default()
    };
    run.summary.taps = vec![tap(0, "b/h2.pcapng.gz"), tap(1, "a/h1.pcap")];
    let input = |path: &str| roce_model::InputSummary {
        input: path.to_owned(),
        ..roce_model::InputSummary::default()
    };
    run.summary.inputs = vec![input("a/h1.pcap"), input("b/h2.pcapng.gz")];
    run
}

#[test]
fn what_was_lost_between_two_taps_is_one_loss() {
    // 10 are lost between the taps: the first tap says "behind", the second one "before", and of one of them neither knows. The
    // second one knows of 2 behind it as well.
    let mut before = flow(1, 2);
    (before.tap, before.counted, before.lost_downstream) = (TapId(1), false, Some(9));
    let mut behind = flow(1, 2);
    (behind.tap, behind.network_lost, behind.lost_downstream) = (TapId(0), 9, Some(2));
    let hop = HopRow {
        flow_id: before.flow_id,
        from_tap: TapId(1),
        to_tap: TapId(0),
        lost: 10,
        first_lost_psn: Some(4_711),
        first_lost_time: Some(Time(5 * MS)),
        ..HopRow::default()
    };
    let mut run = two_taps();
    run.summary.hops.push(hop.clone());
    run.closed(&before);
    run.closed(&behind);
    let run = run.conclude();
    let lost = fired(&run, "loss.network");
    assert_eq!(count(lost, "lost"), 12);
    assert!(
        lost.summary.starts_with(
            "the network lost 12 packets of 1 flow (1.2 %), between h1 and h2: 10 lost, first PSN 4711"
        ),
        "{}",
        lost.summary
    );
    assert!(
        lost.summary.contains("; behind the last tap: 2: "),
        "{}",
        lost.summary
    );
    assert_eq!(lost.first_time, Some(Time(5 * MS)));

    // Neither tap alone names a loss.
    (
        before.lost_downstream,
        behind.network_lost,
        behind.lost_downstream,
    ) = (Some(0), 0, Some(0));
    let mut run = two_taps();
    run.summary.hops.push(hop.clone());
    run.closed(&before);
    run.closed(&behind);
    let run = run.conclude();
    assert_eq!(count(fired(&run, "loss.network"), "lost"), 10);

    // Both saw all of it: what one tap alone would say is wrong.
    (before.lost_downstream, behind.network_lost) = (Some(33), 30);
    let mut run = two_taps();
    run.summary.hops.push(HopRow { lost: 0, ..hop });
    run.closed(&before);
    run.closed(&behind);
    assert!(finding(&run.conclude(), "loss.network").is_none());
}

/// The flow of the answers lost nothing: only the data's direction is named.
#[test]
fn the_first_sentence_names_the_direction_of_the_loss() {
    let (mut data, mut answers) = (flow(1, 2), flow(2, 1));
    (data.tap, data.network_lost) = (TapId(0), 7);
    (data.peer_flow_id, answers.peer_flow_id) = (Some(answers.flow_id), Some(data.flow_id));
    let mut run = two_taps();
    run.summary.hops.push(HopRow {
        flow_id: data.flow_id,
        from_tap: TapId(1),
        to_tap: TapId(0),
        lost: 7,
        ..HopRow::default()
    });
    for row in [&data, &answers] {
        run.closed(row);
    }
    let run = run.conclude();
    let expected = "The network lost 7 packets from 10.0.0.1 to 10.0.0.2";
    assert!(run.sentence.starts_with(expected), "{}", run.sentence);
}

#[test]
fn a_tap_that_shows_a_part_of_its_flows_is_no_certain_witness() {
    let confidence = |missed: u64| {
        let (mut before, mut behind) = (flow(1, 2), flow(1, 2));
        (before.tap, before.counted, before.lost_downstream) = (TapId(1), false, Some(9));
        (behind.tap, behind.capture_lost) = (TapId(0), missed);
        let mut run = two_taps();
        run.summary.hops.push(HopRow {
            flow_id: before.flow_id,
            from_tap: TapId(1),
            to_tap: TapId(0),
            lost: 9,
            ..HopRow::default()
        });
        run.closed(&before);
        run.closed(&behind);
        fired(&run.conclude(), "loss.network").confidence
    };
    assert_eq!(confidence(0), Confidence::High);
    // It has 1,000 packets. A third of 1,500 is missing, and less than a third of 1,499.
    assert_eq!(confidence(499), Confidence::High);
    assert_eq!(confidence(500), Confidence::Medium);
    assert_eq!(confidence(1_999), Confidence::Medium);
    // Two thirds of 3,000 are missing.
    assert_eq!(confidence(2_000), Confidence::Low);
}

#[test]
fn answers_that_were_lost_on_the_way_back_are_no_packets_lost() {
    // The receiver's answers pass its tap first; 3 of 50 do not come to the sender's.
    let (mut data, answers) = (flow(1, 2), flow(2, 1));
    (data.runs_timeout, data.retransmission_runs) = (2, 2);
    let hop = HopRow {
        flow_id: answers.flow_id,
        from_tap: TapId(0),
        to_tap: TapId(1),
        matched: 47,
        lost: 3,
        answers_lost: 3,
        ..HopRow::default()
    };
    let mut run = two_taps();
    run.summary.hops.push(hop.clone());
    run.closed(&data);
    let run = run.conclude();
    let lost = fired(&run, "loss.network");
    assert_eq!((count(lost, "lost"), count(lost, "answers_lost")), (3, 3));
    assert!(
        lost.summary
            .starts_with("the network lost 3 answers on the way back of 1 flow; what they answer had arrived, and 2 timeouts followed, "),
        "{}",
        lost.summary
    );
    assert_eq!(count(lost, "timeouts_by_lost_answers"), 2);
    let timeout = fired(&run, "retransmit.timeout");
    assert!(
        timeout.next_step.starts_with("The packets had arrived"),
        "{}",
        timeout.next_step
    );
    assert_eq!(lost.severity, Severity::Warning);

    // Later answers acknowledged what those were for: nobody waited, and nothing was sent again.
    (data.runs_timeout, data.retransmission_runs) = (0, 0);
    let mut run = two_taps();
    run.summary.hops.push(hop);
    run.closed(&data);
    assert_eq!(fired(&run.conclude(), "loss.network").severity, Severity::Info);
}

#[test]
fn waste_is_told_with_its_reason() {
    // 300 of 1,000 data packets are sent again after 40 NAKs.
    let mut data = flow(1, 2);
    (
        data.retransmitted_packets,
        data.retransmitted_bytes,
        data.runs_nak,
    ) = (300, 1_228_800, 40);
    // 35 came late, nothing was lost.
    data.late = 35;
    let run = run_of(&[&data]);
    let waste = fired(&run, "retransmit.waste");
    assert_eq!(
        (waste.severity, waste.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert!(
        waste.summary.contains(
            "30 % of their data packets again, 1.23 MB: packets overtake each other (35 came late)"
        ),
        "{}",
        waste.summary
    );
    // 20 were lost: that is the reason, and said there.
    data.network_lost = 20;
    assert!(finding(&run_of(&[&data]), "retransmit.waste").is_none());
    // Nothing came late either: nothing tells the reason.
    (data.network_lost, data.late) = (0, 0);
    let run = run_of(&[&data]);
    assert_eq!(fired(&run, "retransmit.waste").severity, Severity::Info);
    // At the sender nothing is late. Of 40 packets that NAKs name 12 were acknowledged before they can have come again: the rest was overtaken, too.
    let mut sent = data.clone();
    (sent.lost_downstream, sent.overtaken_downstream) = (Some(40), Some(12));
    sent.recovery = Some("go_back_n");
    let run = run_of(&[&sent]);
    assert_eq!(fired(&run, "retransmit.waste").severity, Severity::Warning);
    assert!(finding(&run, "loss.network").is_none());
    // 3 of 40 may be chance.
    sent.overtaken_downstream = Some(3);
    let run = run_of(&[&sent]);
    assert_eq!(count(fired(&run, "loss.network"), "lost"), 37);
    // 60 of 1,000 are little, and 12 of 100 are few.
    data.retransmitted_packets = 60;
    assert!(finding(&run_of(&[&data]), "retransmit.waste").is_none());
}

#[test]
fn what_the_capture_lost_is_told_apart() {
    let mut data = flow(1, 2);
    (data.capture_lost, data.response_capture_lost) = (2, Some(1));
    let run = run_of(&[&data]);
    let lost = fired(&run, "loss.capture");
    assert_eq!(lost.severity, Severity::Info);
    assert_eq!(
        lost.summary,
        "the capture missed 3 packets of 1 flow that were acknowledged and never retransmitted"
    );
    assert!(finding(&run, "loss.network").is_none());
    assert!(lost.next_step.contains("a smaller snaplen"), "{}", lost.next_step);
    // Frames that are cut have a short snaplen already.
    let mut cut = TestRun::new();
    cut.summary.taps[0].cut_frames = 1_000;
    cut.closed(&data);
    let cut = cut.conclude();
    let next = &fired(&cut, "loss.capture").next_step;
    assert!(!next.contains("snaplen"), "{next}");
    (data.capture_lost, data.response_capture_lost) = (0, Some(0));
    assert!(finding(&run_of(&[&data]), "loss.capture").is_none());
}

#[test]
fn timeouts_are_told_with_the_silence_before_them() {
    let mut data = flow(1, 2);
    (data.retransmission_runs, data.runs_timeout, data.runs_nak) = (3, 2, 1);
    (data.runs_timeout_sure, data.time_timeout_ns) = (2, Some(890 * MS));
    let mut run = TestRun::new();
    run.summary.span = Some(Period {
        first: Time(0),
        last: Time(1_000 * MS),
    });
    run.bin(
        900,
        &[(&data, |_| {})],
        &[
            event(EventKind::Stall, &data, 10 * MS, 890 * MS, ""),
            event(EventKind::RetransmissionRun, &data, 900 * MS, 4, "timeout"),
        ],
    );
    run.closed(&data);
    let run = run.conclude();
    let timeout = fired(&run, "retransmit.timeout");
    assert_eq!(
        timeout.summary,
        "1 flow stood still 890 ms of 1.00 s (89 %) in 2 timeouts: 10.0.0.1 > 10.0.0.2 QP 0x11"
    );
    assert_eq!(
        (timeout.severity, timeout.first_time),
        (Severity::Warning, Some(Time(900 * MS)))
    );
    assert_eq!(count(timeout, "stood_still_ns"), 890 * MS);
    (data.runs_timeout, data.runs_unknown) = (0, 2);
    assert!(finding(&run_of(&[&data]), "retransmit.timeout").is_none());
}

#[test]
fn waits_shorter_than_any_timer_are_no_sign_of_one() {
    // Two timers run for 8.192 us at least.
    let stood_still = |time: u64| {
        let mut data = flow(1, 2);
        (data.runs_timeout, data.runs_timeout_sure) = (2, 2);
        data.time_timeout_ns = Some(time);
        let run = run_of(&[&data]);
        let timeout = fired(&run, "retransmit.timeout");
        (timeout.severity, timeout.confidence)
    };
    assert_eq!(stood_still(8_192).0, Severity::Warning);
    assert_eq!(stood_still(8_191), (Severity::Info, Confidence::Low));
}

#[test]
fn a_flow_of_two_epochs_is_one() {
    let mut data = flow(1, 2);
    (data.runs_timeout, data.runs_timeout_sure) = (2, 2);
    let again = FlowRow {
        epoch: 1,
        ..data.clone()
    };
    let run = run_of(&[&data, &again]);
    assert_eq!(
        fired(&run, "retransmit.timeout").summary,
        "1 flow retransmitted after 4 timeouts: 10.0.0.1 > 10.0.0.2 QP 0x11"
    );
}

#[test]
fn a_stall_is_silence_in_a_message_and_not_a_short_one() {
    let data = flow(1, 2);
    let stalled = |length: u64, lost: u64, change: fn(&mut TimelineRow)| {
        let mut run = TestRun::new();
        run.summary.taps = vec![TapRow {
            frames_lost: lost,
            ..TapRow::default()
        }];
        run.bin(
            2,
            &[(&data, change)],
            &[event(EventKind::Stall, &data, MS, length, "")],
        );
        run.conclude()
    };
    let nothing: fn(&mut TimelineRow) = |_| {};
    let run = stalled(10 * MS, 0, nothing);
    let stall = fired(&run, "stall");
    assert_eq!(
        stall.summary,
        "1 stall in the middle of a message; stood still for 10.0 ms; the longest: 10.0.0.1 > 10.0.0.2 QP 0x11 for 10.0 ms"
    );
    // A host that is busy with something else: nothing is wrong with the network.
    assert_eq!(
        (stall.severity, stall.confidence),
        (Severity::Info, Confidence::Medium)
    );
    assert_eq!(
        (count(stall, "longest_ns"), stall.first_time),
        (10 * MS, Some(Time(MS)))
    );
    assert_eq!(
        fired(&stalled(10 * MS, 1, nothing), "stall").confidence,
        Confidence::Low
    );
    assert!(finding(&stalled(10 * MS - 1, 0, nothing), "stall").is_none());
    let severity = |length, change| fired(&stalled(length, 0, change), "stall").severity;
    assert_eq!(severity(500 * MS, nothing), Severity::Warning);
    assert_eq!(severity(500 * MS - 1, nothing), Severity::Info);
    assert_eq!(
        severity(10 * MS, |row| row.lost_downstream = Some(1)),
        Severity::Warning,
        "meanwhile packets to the same host were lost"
    );
}

#[test]
fn a_flow_that_stood_still_twice_is_one_flow() {
    let data = flow(1, 2);
    let mut run = TestRun::new();
    let stall = |time| event(EventKind::Stall, &data, time, 10 * MS, "");
    run.bin(12, &[(&data, |_| ())], &[stall(MS)]);
    run.bin(112, &[(&data, |_| ())], &[stall(101 * MS)]);
    let run = run.conclude();
    let stall = fired(&run, "stall");
    assert_eq!((count(stall, "stalls"), count(stall, "flows")), (2, 1));
}

#[test]
fn receivers_without_buffers() {
    let data = flow(1, 2);
    let mut naks = back(&data);
    naks.rnr_naks = 2;
    let mut run = TestRun::new();
    let nak = |time| event(EventKind::RnrNak, &naks, time, 10_000, "");
    run.bin(0, &[(&naks, |row| row.rnr_naks = 2)], &[nak(1), nak(2)]);
    run.closed(&data).closed(&naks);
    let run = run.conclude();
    let rnr = fired(&run, "rnr");
    assert_eq!(
        rnr.summary,
        "2 RNR NAKs of 1 receiver: no receive buffer was posted; their timers add up to 20.0 us (each 10.0 us, code 1): 10.0.0.2"
    );
    assert_eq!((rnr.severity, count(rnr, "rnr_naks")), (Severity::Warning, 2));
    naks.rnr_naks = 0;
    naks.naks = 3;
    assert!(finding(&run_of(&[&data, &naks]), "rnr").is_none());
}

#[test]
fn errors_that_end_a_connection_are_critical() {
    let data = flow(1, 2);
    let mut naks = back(&data);
    (
        naks.naks,
        naks.nak_sequence,
        naks.nak_invalid_request,
        naks.nak_remote_access,
    ) = (6, 3, 1, 2);
    let mut run = TestRun::new();
    let nak = |time, syndrome| event(EventKind::Nak, &naks, time, syndrome, "");
    run.bin(0, &[(&naks, |_| {})], &[nak(5, 0x60), nak(7, 0x61), nak(9, 0x62)]);
    run.closed(&naks);
    let run = run.conclude();
    let fatal = fired(&run, "nak.fatal");
    assert_eq!(
        fatal.summary,
        "3 fatal NAKs (invalid request: 1, remote access error: 2) ended connections: 10.0.0.2 > 10.0.0.1 QP 0x12"
    );
    assert_eq!(
        (fatal.severity, fatal.first_time),
        (Severity::Critical, Some(Time(7)))
    );
    (naks.nak_invalid_request, naks.nak_remote_access) = (0, 0);
    assert!(
        finding(&run_of(&[&naks]), "nak.fatal").is_none(),
        "sequence NAKs only"
    );
}
