//! Marks, notifications, incasts, unequal shares, several paths.

use roce_model::{Address, Cable, HopRow, Port, TapRow, TimelineRow, Vantage, Wiring};

use super::super::super::rows::{Did, at_tap};
use super::super::super::settings::Settings;
use std::sync::Arc;

use super::*;

fn run_with(rows: &[&FlowRow], receivers: &[CnpReceiver]) -> RunSummary {
    let mut run = TestRun::new();
    run.summary.cnp_receivers = receivers.to_vec();
    for row in rows {
        run.closed(row);
    }
    run.conclude()
}

#[test]
fn ecn_works_when_marks_are_answered() {
    let mut data = flow(1, 2);
    (data.ce, data.ect0, data.cnp, data.vantage) = (200, 800, Some(12), Some(Vantage::Receiver));
    data.cnp_after_nak = Some(2);
    let run = run_of(&[&data, &back(&data)]);
    let working = fired(&run, "ecn.working");
    assert_eq!(
        working.summary,
        "ECN works for 1 flow: 200 packets with CE, 10 CNPs; whether senders slowed down cannot be seen from here"
    );
    assert_eq!(
        (working.severity, working.confidence),
        (Severity::Ok, Confidence::Medium)
    );
    assert!(finding(&run, "ecn.marks-without-cnp").is_none());
    // Another epoch of the flow is no other flow.
    let mut later = data.clone();
    later.epoch = 1;
    assert_eq!(
        count(
            fired(&run_of(&[&data, &later, &back(&data)]), "ecn.working"),
            "flows"
        ),
        1
    );
    // CNPs that follow NAKs answer no mark.
    data.cnp = Some(2);
    assert!(finding(&run_of(&[&data, &back(&data)]), "ecn.working").is_none());
}

#[test]
fn two_taps_tell_one_story() {
    // The sender's side shows no CE and the reaction, the receiver's side the marks; the totals count the first.
    let mut near = flow(1, 2);
    (near.cnp, near.vantage, near.cnp_trains, near.cnp_reaction_p50) =
        (Some(12), Some(Vantage::Sender), 6, Some(0.6));
    let mut far = at_tap(flow(1, 2), 1);
    (far.ce, far.cnp, far.vantage, far.counted) = (200, Some(12), Some(Vantage::Receiver), false);
    let run = run_of(&[&near, &far]);
    let working = fired(&run, "ecn.working");
    assert_eq!(
        working.summary,
        "ECN works for 1 flow: 200 packets with CE, 12 CNPs; 1 flow slowed to 60 % of the rate before (median; seen at \
         the sender's side)"
    );
    assert_eq!(working.confidence, Confidence::High);
}

#[test]
fn a_tap_at_the_senders_side_needs_no_advice_to_capture_there() {
    // Both sides, and no reaction that could be computed.
    let mut near = flow(1, 2);
    (near.cnp, near.vantage) = (Some(12), Some(Vantage::Sender));
    let mut far = at_tap(flow(1, 2), 1);
    (far.ce, far.cnp, far.vantage, far.counted) = (200, Some(12), Some(Vantage::Receiver), false);
    let mut run = TestRun::new();
    run.summary.taps = vec![
        TapRow::default(),
        TapRow {
            tap: TapId(1),
            ..TapRow::default()
        },
    ];
    run.closed(&near);
    run.closed(&far);
    let run = run.conclude();
    let working = fired(&run, "ecn.working");
    assert!(
        working
            .summary
            .ends_with("is not clear from the CNPs at the sender's side"),
        "{}",
        working.summary
    );
    assert!(
        !working.next_step.contains("Capture at a sender"),
        "{}",
        working.next_step
    );
}

#[test]
fn cnps_that_no_flow_was_found_for_answer_marks_of_their_hosts() {
    let mut data = flow(1, 2);
    (data.ce, data.cnp, data.peer_flow_id, data.pairing) = (200, None, None, None);
    let run = run_with(&[&data], &[cnps(2, 1, 9)]);
    assert_eq!(count(fired(&run, "ecn.working"), "cnp"), 9);
    assert!(finding(&run, "ecn.marks-without-cnp").is_none());
}

#[test]
fn marks_that_nobody_answers() {
    let mut data = flow(1, 2);
    (data.ce, data.ect0, data.vantage) = (10, 990, Some(Vantage::Receiver));
    let acks = back(&data);
    let run = run_of(&[&data, &acks]);
    let silent = fired(&run, "ecn.marks-without-cnp");
    assert_eq!(
        silent.summary,
        "10 packets with CE arrived and no CNP went back: 10.0.0.2 to 10.0.0.1"
    );
    assert_eq!(
        (silent.severity, silent.confidence),
        (Severity::Warning, Confidence::High)
    );
    assert!(finding(&run, "ecn.working").is_none());

    // One mark fewer.
    data.ce = 9;
    assert!(finding(&run_of(&[&data, &acks]), "ecn.marks-without-cnp").is_none());
    data.ce = 10;
    // A CNP for another queue pair of the sender: adapters pace by host, too.
    assert!(
        finding(
            &run_with(&[&data, &acks], &[cnps(2, 1, 1)]),
            "ecn.marks-without-cnp"
        )
        .is_none()
    );
    // CNPs the other way are no answer.
    assert!(
        finding(
            &run_with(&[&data, &acks], &[cnps(1, 2, 1)]),
            "ecn.marks-without-cnp"
        )
        .is_some()
    );
}

#[test]
fn answers_of_many_ways_show_that_cnps_would_pass() {
    // Where the tap stands is not known. Five ways beside the first are all the same one of two by 1 / 32, four by 1 / 16.
    for (senders, confidence) in [(6, Confidence::Medium), (5, Confidence::Low)] {
        let data: Vec<FlowRow> = (1..=senders)
            .map(|source| {
                let mut row = flow(source, 9);
                (row.ce, row.ect0) = (10, 990);
                row
            })
            .collect();
        let acks: Vec<FlowRow> = data
            .iter()
            .map(|row| FlowRow {
                source_port: row.source_port,
                ..back(row)
            })
            .collect();
        let all: Vec<&FlowRow> = data.iter().chain(&acks).collect();
        let run = run_of(&all);
        assert_eq!(fired(&run, "ecn.marks-without-cnp").confidence, confidence);
        // Answers to one of them take another way: CNPs may, too.
        let run = run_of(&all[..all.len() - 1]);
        assert_eq!(fired(&run, "ecn.marks-without-cnp").confidence, Confidence::Low);
    }
}

#[test]
fn absence_is_only_told_where_it_could_be_seen() {
    let mut data = flow(1, 2);
    (data.ce, data.vantage) = (500, Some(Vantage::Receiver));
    let acks = back(&data);
    let verdict = |data: &FlowRow, rows: &[&FlowRow]| {
        let mut all = vec![data];
        all.extend(rows);
        finding(&run_of(&all), "ecn.marks-without-cnp").map(|row| (row.severity, row.confidence))
    };
    let mut unpaired = data.clone();
    unpaired.peer_flow_id = None;
    assert_eq!(verdict(&unpaired, &[&acks]), None, "one direction only");
    let mut unanswered = data.clone();
    unanswered.ack_rtt_count = 0;
    assert_eq!(
        verdict(&unanswered, &[]),
        None,
        "what the receiver sends was not captured"
    );
    assert_eq!(
        verdict(&unanswered, &[&acks]),
        Some((Severity::Warning, Confidence::High))
    );
    data.vantage = Some(Vantage::Between);
    assert_eq!(
        verdict(&data, &[&acks]),
        Some((Severity::Warning, Confidence::Medium))
    );
    data.vantage = None;
    assert_eq!(verdict(&data, &[&acks]), Some((Severity::Info, Confidence::Low)));
    data.vantage = Some(Vantage::Sender);
    assert_eq!(verdict(&data, &[&acks]), None);
}

#[test]
fn data_without_ecn() {
    let mut data = flow(1, 2);
    (data.data_packets, data.ect0, data.not_ect) = (199, 99, 100);
    let verdict = |rows: &[&FlowRow]| finding(&run_of(rows), "ecn.not-capable").cloned();
    let row = verdict(&[&data]).unwrap();
    assert_eq!(
        row.summary,
        "1 flow sent 100 data packets as Not-ECT, which switches cannot mark"
    );
    assert_eq!((row.severity, row.first_time), (Severity::Info, Some(Time(0))));
    // Half of them are not more than half.
    data.ect0 = 100;
    assert_eq!(verdict(&[&data]), None);
    (data.ect0, data.not_ect) = (0, 99);
    assert_eq!(verdict(&[&data]), None, "too few packets to say");
    data.not_ect = 100;
    data.network_lost = 1;
    let row = verdict(&[&data]).unwrap();
    assert_eq!(row.severity, Severity::Warning);
    assert!(
        row.summary
            .ends_with("; 1 of them lost packets or stood still in a pause")
    );
    // Others are marked on the way to the same host.
    data.network_lost = 0;
    let mut other = flow(3, 2);
    other.ce = 1;
    assert_eq!(verdict(&[&data, &other]).unwrap().severity, Severity::Warning);
    let mut elsewhere = flow(3, 4);
    elsewhere.ce = 1;
    assert_eq!(verdict(&[&data, &elsewhere]).unwrap().severity, Severity::Info);
}

#[test]
fn senders_that_ignore_cnps() {
    let mut data = flow(1, 2);
    (data.cnp, data.vantage) = (Some(40), Some(Vantage::Sender));
    (data.cnp_windows, data.cnp_windows_over, data.cnp_over_p50) = (15, 8, Some(4.0));
    let verdict = |data: &FlowRow| finding(&run_of(&[data]), "cnp.ignored").cloned();
    let row = verdict(&data).unwrap();
    assert_eq!(
        row.summary,
        "1 flow sent 4.0 times what DCQCN allows at most after 40 CNPs (8 of 15 windows): 10.0.0.1 > 10.0.0.2 QP 0x11"
    );
    assert_eq!(
        (row.severity, row.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert!((number(&row, "rate_over_bound") - 4.0).abs() < 1e-12);
    assert!(finding(&run_of(&[&data]), "ecn.working").is_none());
    // A quarter of the windows is not more than a quarter.
    data.cnp_windows = 31;
    assert!(verdict(&data).is_some());
    data.cnp_windows = 32;
    assert_eq!(verdict(&data), None);
    (data.cnp_windows, data.cnp_windows_over) = (7, 7);
    assert_eq!(verdict(&data), None, "too few windows");
    // Four times 8, and nine in ten.
    (data.cnp_windows, data.cnp_windows_over) = (35, 32);
    data.cnp_interval_min_ns = Some(4_000);
    assert_eq!(verdict(&data).unwrap().confidence, Confidence::High);
    // CNPs as the paper paces them: NVIDIA's set was not replayed.
    data.cnp_interval_min_ns = Some(50_000);
    assert_eq!(verdict(&data).unwrap().confidence, Confidence::Medium);
    // Whatever the rate after a train was: a share of the port or the application may hold the flow.
    (data.cnp_windows_over, data.cnp_trains, data.cnp_reaction_p50) = (0, 50, Some(1.0));
    assert_eq!(verdict(&data), None);
    (data.cnp_windows_over, data.vantage) = (32, Some(Vantage::Receiver));
    assert_eq!(
        verdict(&data),
        None,
        "behind the bottleneck every sender looks like this"
    );
}

#[test]
fn a_port_that_others_may_share_has_no_known_speed() {
    let mut data = flow(1, 2);
    (data.cnp, data.vantage) = (Some(400), Some(Vantage::Sender));
    (data.cnp_windows, data.cnp_windows_over, data.cnp_interval_min_ns) = (40, 40, Some(4_000));
    let verdict = |rows: &[&FlowRow]| finding(&run_of(rows), "cnp.ignored").map(|row| row.confidence);
    let other = flow(1, 3);
    assert_eq!(
        verdict(&[&data, &other]),
        Some(Confidence::High),
        "from 800 Gbit/s"
    );
    // The speed is taken from how the flow's packets follow each other.
    data.cnp_port_bps = Some(100_000_000_000);
    assert_eq!(verdict(&[&data]), Some(Confidence::Medium));
    assert_eq!(verdict(&[&data, &back(&data)]), Some(Confidence::Medium));
    assert_eq!(
        verdict(&[&data, &other]),
        None,
        "a half of 200 Gbit/s looks like it"
    );
}

#[test]
fn the_first_of_two_taps_stands_at_the_sender() {
    let mut data = flow(1, 2);
    (data.cnp, data.cnp_windows, data.cnp_windows_over) = (Some(400), 40, 40);
    let with = |from: u32, to: u32, ce: u64| {
        let mut run = TestRun::new();
        run.summary.hops = vec![HopRow {
            flow_id: data.flow_id,
            from_tap: TapId(from),
            to_tap: TapId(to),
            matched: 1_000,
            ..HopRow::default()
        }];
        let mut row = data.clone();
        row.ce = ce;
        run.closed(&row);
        finding(&run.conclude(), "cnp.ignored").map(|row| row.confidence)
    };
    assert_eq!(with(0, 1, 0), Some(Confidence::Medium));
    assert_eq!(with(1, 0, 0), None, "another tap is before it");
    assert_eq!(with(0, 1, 1), None, "packets were marked before it");
    assert!(
        finding(&run_of(&[&data]), "cnp.ignored").is_none(),
        "nobody knows where the tap stands"
    );
}

#[test]
fn cnps_too_fast_or_too_late() {
    let mut data = flow(1, 2);
    (data.ce, data.cnp, data.vantage) = (100, Some(40), Some(Vantage::Receiver));
    (data.cnp_interval_count, data.cnp_interval_p50_ns) = (16, Some(3_999));
    let verdict = |rows: &[&FlowRow]| finding(&run_of(rows), "cnp.pacing").cloned();
    let row = verdict(&[&data]).unwrap();
    assert_eq!(
        row.summary,
        "CNPs for 1 flow come 4.00 us apart (median of 10.0.0.1 > 10.0.0.2 QP 0x11)"
    );
    assert_eq!(
        (row.severity, count(&row, "cnp_interval_p50_ns")),
        (Severity::Info, 3_999)
    );
    data.cnp_interval_p50_ns = Some(4_000);
    assert_eq!(verdict(&[&data]), None);
    (data.cnp_interval_p50_ns, data.cnp_interval_count) = (Some(100), 15);
    assert_eq!(verdict(&[&data]), None, "too few");
    // Stamps of microseconds cannot tell 3,999 ns.
    (data.cnp_interval_count, data.cnp_interval_p50_ns) = (16, Some(3_999));
    let mut coarse = TestRun::new();
    coarse.summary.taps[0].stamp_quantum_ns = 1_000;
    coarse.closed(&data);
    assert!(finding(&coarse.conclude(), "cnp.pacing").is_none());

    data.cnp_interval_p50_ns = None;
    (data.ce_to_cnp_count, data.ce_to_cnp_p50_ns) = (16, Some(500_001));
    let row = verdict(&[&data]).unwrap();
    assert_eq!(
        row.summary,
        "CNPs for 1 flow leave up to 500 us after the mark (median of 10.0.0.1 > 10.0.0.2 QP 0x11)"
    );
    assert_eq!(row.severity, Severity::Warning);
    // Another marked flow of the receiver may be served in between: 50 us more.
    let mut other = flow(3, 2);
    other.ce = 1;
    assert_eq!(verdict(&[&data, &other]), None);
    data.ce_to_cnp_p50_ns = Some(550_001);
    assert!(verdict(&[&data, &other]).is_some());
}

fn marked(row: &mut TimelineRow) {
    row.ce = 5;
}

/// The next step names the port of the inventory, the class, and two of the senders.
#[test]
fn an_incast_names_the_port_to_look_at() {
    let next = |wiring: Wiring| {
        let mut run = TestRun::with(Settings {
            wiring: Arc::new(wiring),
            ..Settings::default()
        });
        let flows = [1, 2, 3].map(|sender| FlowRow {
            dscp: Some(26),
            ..flow(sender, 9)
        });
        for ms in 0..10 {
            let rows: Vec<Did<'_>> = flows
                .iter()
                .map(|row| (row, marked as fn(&mut TimelineRow)))
                .collect();
            run.bin(ms, &rows, &[]);
        }
        fired(&run.conclude(), "incast").next_step.to_string()
    };
    assert_eq!(
        next(Wiring::default()),
        "Spread 10.0.0.1, 10.0.0.2 and 1 more in time or over more receivers, and check the marking thresholds of DSCP 26 at the \
         switch port to 10.0.0.9."
    );
    let (host, port) = (Port::new("gpu9", "eth0"), Port::new("leaf2", "Ethernet9"));
    let wiring = Wiring {
        cables: vec![Cable {
            a: port,
            b: host.clone(),
        }],
        switches: ["leaf2".to_owned()].into(),
        addresses: vec![(Address::v4([10, 0, 0, 9]), host)],
        groups: Vec::new(),
    };
    let next = next(wiring);
    assert!(
        next.ends_with("of DSCP 26 at leaf2:Ethernet9 to 10.0.0.9."),
        "{next}"
    );
}

#[test]
fn an_incast_is_told_with_its_worst_destination() {
    let flows = [
        flow(1, 9),
        flow(2, 9),
        flow(3, 9),
        flow(4, 9),
        flow(1, 8),
        flow(2, 8),
        flow(3, 8),
    ];
    let rows = |flows: &[usize]| -> Vec<usize> { flows.to_vec() };
    let during = |bins: u64, picked: Vec<usize>, change: fn(&mut TimelineRow)| {
        let mut run = TestRun::new();
        for ms in 0..bins {
            let rows: Vec<Did<'_>> = picked.iter().map(|at| (&flows[*at], change)).collect();
            run.bin(ms, &rows, &[]);
        }
        run.conclude()
    };
    let run = during(9, rows(&[0, 1, 2, 3]), marked);
    let incast = fired(&run, "incast");
    // 9 bins with 4 flows, 5 of 10 packets marked.
    assert_eq!(
        incast.summary,
        "4 senders at once into 10.0.0.9, up to 50 % marked; 9.00 ms in 1 episode to 1 destination"
    );
    assert_eq!(
        (incast.severity, incast.confidence),
        (Severity::Info, Confidence::High)
    );
    assert_eq!((count(incast, "ce"), count(incast, "senders_max")), (180, 4));
    assert_eq!(incast.first_time, Some(Time(0)));
    assert_eq!(
        fired(&during(10, rows(&[0, 1, 2]), marked), "incast").severity,
        Severity::Warning,
        "10 ms"
    );
    assert!(
        finding(&during(10, rows(&[0, 1]), marked), "incast").is_none(),
        "two senders"
    );
    assert!(
        finding(&during(10, rows(&[0, 1, 2, 3]), |_| {}), "incast").is_none(),
        "no sign of congestion"
    );
    // 3 x 300 kB in 1 ms are 7.2 Gbit/s: half of the slowest link and more. Losses alone prove no queue: for information.
    let lossy = |row: &mut TimelineRow| (row.lost_downstream, row.wire_bytes) = (Some(1), 300_000);
    let run = during(1, rows(&[0, 1, 2]), lossy);
    assert_eq!(
        (fired(&run, "incast").severity, fired(&run, "incast").confidence),
        (Severity::Info, Confidence::Low)
    );
    assert_eq!(
        fired(&run, "incast").summary,
        "3 senders at once into 10.0.0.9, 3 packets lost, none marked although ECN-capable: the marking threshold is above the \
         buffer; 1.00 ms in 1 episode to 1 destination"
    );
    let slow = |row: &mut TimelineRow| (row.lost_downstream, row.wire_bytes) = (Some(1), 2_000);
    assert!(
        finding(&during(1, rows(&[0, 1, 2]), slow), "incast").is_none(),
        "48 Mbit/s fill no link: random losses"
    );
    let refused = |row: &mut TimelineRow| (row.lost_downstream, row.cnp) = (Some(1), Some(1));
    assert_eq!(
        fired(&during(1, rows(&[0, 1, 2]), refused), "incast").severity,
        Severity::Warning
    );
    let two = during(1, rows(&[0, 1, 2, 3, 4, 5, 6]), marked);
    let evidence = fired(&two, "incast").evidence.to_string();
    assert!(
        evidence.contains(
            "10.0.0.8 (1 episode, up to 3 senders, 1.00 ms) and 10.0.0.9 (1 episode, up to 4 senders"
        ),
        "{evidence}"
    );
}

#[test]
fn an_incast_that_two_taps_saw_is_one() {
    let flows: Vec<FlowRow> = (1..4).map(|source| flow(source, 9)).collect();
    let elsewhere: Vec<FlowRow> = (1..4)
        .map(|source| {
            let mut row = at_tap(flow(source, 9), 1);
            row.counted = false;
            row
        })
        .collect();
    let mut run = TestRun::new();
    let rows: Vec<Did<'_>> = flows
        .iter()
        .chain(&elsewhere)
        .map(|flow| (flow, marked as _))
        .collect();
    run.bin(0, &rows, &[]);
    let run = run.conclude();
    assert_eq!(run.episodes.len(), 2, "each tap has its own");
    assert_eq!(count(fired(&run, "incast"), "episodes"), 1);
    // Where only the tap that does not count saw it, it is reported.
    let mut run = TestRun::new();
    let rows: Vec<Did<'_>> = elsewhere.iter().map(|flow| (flow, marked as _)).collect();
    run.bin(0, &rows, &[]);
    assert_eq!(count(fired(&run.conclude(), "incast"), "episodes"), 1);
}

#[test]
fn shares_that_are_not_fair() {
    let flows = [flow(1, 9), flow(2, 9), flow(3, 9)];
    let shared = |bins: u64, change: fn(&mut TimelineRow)| {
        let mut run = TestRun::new();
        for ms in 0..bins {
            let rows: Vec<Did<'_>> = vec![(&flows[0], change), (&flows[1], marked), (&flows[2], marked)];
            run.bin(ms, &rows, &[]);
        }
        run.conclude()
    };
    // 12 : 1 : 1, so (12 + 1 + 1)^2 / (3 (144 + 1 + 1)) = 196 / 438 = 0.447. 122,880 = 12 x 10,240. 150 packets.
    let run = shared(5, |row| row.payload_bytes = 122_880);
    let unfair = fired(&run, "unfair");
    assert_eq!(
        unfair.summary,
        "3 flows into 10.0.0.9 shared it with a Jain's index of 0.45 for 5.00 ms, most of it 10.0.0.1 > 10.0.0.9 QP 0x11 (86 %); 1 such episode in all"
    );
    assert_eq!(
        (unfair.severity, unfair.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert!((number(unfair, "jain") - 196.0 / 438.0).abs() < 1e-12);
    assert!(
        finding(&shared(4, |row| row.payload_bytes = 122_880), "unfair").is_none(),
        "too short"
    );
    // 4 : 1 : 1 is 36 / 54 = 0.67, 2 : 1 : 1 is 16 / 18 = 0.89.
    assert_eq!(
        fired(&shared(5, |row| row.payload_bytes = 40_960), "unfair").severity,
        Severity::Info
    );
    assert!(finding(&shared(5, |row| row.payload_bytes = 20_480), "unfair").is_none());
}

#[test]
fn packets_over_several_paths_are_no_loss() {
    let mut data = flow(1, 2);
    (data.late, data.reordered) = (16, 16);
    (data.reorder_depth_max, data.reorder_time_max_ns) = (Some(120), Some(25_000));
    let verdict = |data: &FlowRow| finding(&run_of(&[data]), "path.spread").cloned();
    let row = verdict(&data).unwrap();
    assert_eq!(
        row.summary,
        "1 flow came over several paths: 16 packets out of order, by up to 120 packets and 25.0 us, no loss: \
         10.0.0.1 > 10.0.0.2 QP 0x11"
    );
    // A mirror alone puts packets out of order, too. Only the receiver's word proves that it saw them late: it asked for half of them.
    assert_eq!(
        (row.severity, row.confidence),
        (Severity::Info, Confidence::Medium)
    );
    data.runs_nak = 8;
    assert_eq!(verdict(&data).unwrap().confidence, Confidence::High);
    data.network_lost = 2;
    let row = verdict(&data).unwrap();
    assert!(row.summary.contains("2 packets lost besides"), "{}", row.summary);
    assert_eq!(row.confidence, Confidence::Medium);
    data.late = 15;
    assert_eq!(verdict(&data), None);
}
