//! Origins of pauses: each kind of root, by readings and by frames; and what must not be named one.

use roce_model::{
    Counter, EventRow, LinkAddresses, MacAddress, Pause, PauseFrame, PauseKind, RootKind, SampleRow, TapRow,
    WaitRow, Wiring,
};

use super::super::super::Settings;
use super::readings::{RATE, SECOND, leaf_spine, long, of_queue, port, reads, run, shows, text, wiring};
use super::*;

use Counter::{
    PfcReceivedFrames, PortOutOfBufferDrops, SwitchInterfaceRate, SwitchInterfaceTransmittedBytes,
    SwitchPriorityPfcReceivePausedSeconds, SwitchPriorityPfcReceivedFrames, SwitchQueueEcnMarkedPackets,
};

/// Pauses that a port received in the sixth second, 1,000 frames.
fn stopped(at: &str) -> Vec<SampleRow> {
    let counter = if at.starts_with('h') {
        PfcReceivedFrames
    } else {
        SwitchPriorityPfcReceivedFrames
    };
    reads(at, counter, 5, &[1_000.0, 0.0])
}

/// Pauses all the way from leaf2 up to h1.
fn spread() -> Vec<Vec<SampleRow>> {
    vec![stopped("spine1:d2"), stopped("leaf1:u1"), stopped("h1:ens")]
}

fn roots(run: &RunSummary) -> Vec<&WaitRow> {
    run.waits.iter().filter(|row| row.is_root).collect()
}

#[test]
fn flows_compete_two_switches_away() {
    let flows = [long(1, 3), long(2, 3), long(1, 4)];
    let mut readings = spread();
    readings.push(of_queue(
        reads("leaf2:p1", SwitchQueueEcnMarkedPackets, 5, &[70_000.0, 0.0]),
        "3",
    ));
    readings.push(reads("leaf2:p1", SwitchPriorityPfcReceivedFrames, 5, &[0.0, 0.0]));
    let run = run(&leaf_spine(1), &flows, &readings);
    let origin = fired(&run, "pause.origin");
    assert_eq!(
        (origin.severity, origin.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert_eq!(
        (text(origin, "root"), text(origin, "root_kind")),
        ("leaf2 p1", "contention")
    );
    assert_eq!(
        text(origin, "way"),
        "h1 ens - leaf1 p1 - leaf1 u1 - spine1 d1 - spine1 d2 - leaf2 u1 - leaf2 p1"
    );
    // The flow to h4 has a free port: it only stands behind the others.
    assert_eq!(
        (count(origin, "victims"), count(origin, "victims_elsewhere")),
        (3, 1)
    );
    assert_eq!(
        (count(origin, "flows_competing"), count(origin, "resolution_ns")),
        (2, SECOND)
    );
    // Each of the two has sent 1,082,000 bytes.
    let shares: Vec<(Option<f64>, Option<&str>)> = roots(&run)
        .iter()
        .map(|row| (row.share, row.waits_for_port.as_deref()))
        .collect();
    assert_eq!(shares, [(Some(0.5), Some("p1")), (Some(0.5), Some("p1"))]);
    assert!(
        roots(&run)
            .iter()
            .all(|row| row.root_kind == Some(RootKind::Contention))
    );
    // Cables: 3 flows at spine1 and leaf1, the 2 of h1 there; within switches: spine1, leaf1, and leaf2 twice.
    assert_eq!(run.waits.len(), 3 + 3 + 2 + 1 + 1 + 2);
    assert_eq!(
        (run.waits[0].start_time, run.waits[0].end_time),
        (Time(5 * SECOND), Time(6 * SECOND))
    );
}

#[test]
fn without_a_sign_of_a_queue_the_root_is_unclear() {
    let flows = [long(1, 3), long(2, 3), long(1, 4)];
    let run = run(&leaf_spine(1), &flows, &spread());
    let origin = fired(&run, "pause.origin");
    assert_eq!(
        (origin.severity, origin.confidence),
        (Severity::Info, Confidence::Low)
    );
    assert_eq!(text(origin, "root_kind"), "unclear");
}

#[test]
fn of_two_ports_that_fit_none_is_named() {
    let flows = [long(1, 3), long(2, 3), long(1, 4), long(2, 4)];
    let mut readings = spread();
    for at in ["leaf2:p1", "leaf2:p2"] {
        readings.push(of_queue(
            reads(at, SwitchQueueEcnMarkedPackets, 5, &[70_000.0, 0.0]),
            "3",
        ));
    }
    let run = run(&leaf_spine(1), &flows, &readings);
    assert_eq!(text(fired(&run, "pause.origin"), "root_kind"), "unclear");
}

#[test]
fn a_receiver_without_buffers() {
    let flows = [long(1, 3), long(2, 4)];
    let mut readings = spread();
    readings.push(stopped("leaf2:p1"));
    readings.push(reads("h3:mlx5_0:1", PortOutOfBufferDrops, 5, &[12.0, 0.0]));
    let found = run(&leaf_spine(1), &flows, &readings);
    let origin = fired(&found, "pause.origin");
    assert_eq!(origin.confidence, Confidence::Medium);
    assert_eq!(
        (text(origin, "root"), text(origin, "root_kind")),
        ("h3 ens", "slow_receiver")
    );
    // The flow from h2 to h4 waits at leaf1 and spine1.
    assert_eq!(
        (count(origin, "victims"), count(origin, "victims_elsewhere")),
        (2, 1)
    );
    let [root] = roots(&found)[..] else {
        panic!("{:?}", found.waits)
    };
    assert_eq!(
        (
            root.node.as_deref(),
            root.waits_for_node.as_deref(),
            root.root_kind
        ),
        (Some("leaf2"), Some("h3"), Some(RootKind::SlowReceiver))
    );
    // Pauses that it counted at another time explain nothing.
    readings.pop();
    readings.push(reads("h3:mlx5_0:1", PortOutOfBufferDrops, 7, &[12.0]));
    let found = run(&leaf_spine(1), &flows, &readings);
    assert_eq!(text(fired(&found, "pause.origin"), "root_kind"), "unclear");
}

/// A host that paused for `paused` of a second in which `sent` bytes came.
fn storm(paused: f64, sent: f64) -> RunSummary {
    let readings = [
        stopped("leaf2:p1"),
        reads(
            "leaf2:p1",
            SwitchPriorityPfcReceivePausedSeconds,
            5,
            &[paused, 0.0],
        ),
        reads("leaf2:p1", SwitchInterfaceTransmittedBytes, 5, &[sent, 0.0]),
        shows("leaf2:p1", SwitchInterfaceRate, RATE),
    ];
    run(&leaf_spine(1), &[long(1, 3)], &readings)
}

#[test]
fn a_host_that_pauses_without_need() {
    // Less than a tenth of 12.5 GB in the second, and half of it paused.
    let found = storm(0.5, 0.09 * RATE);
    let origin = fired(&found, "pause.origin");
    assert_eq!(
        (text(origin, "root_kind"), origin.confidence, origin.severity),
        ("pause_storm", Confidence::Medium, Severity::Warning)
    );
    assert_eq!(count(origin, "paused_most_ns"), SECOND / 2);
    // A tenth of the rate: a receiver that is slow, as far as anything shows.
    let found = storm(0.5, 0.1 * RATE);
    let origin = fired(&found, "pause.origin");
    assert_eq!(
        (text(origin, "root_kind"), origin.confidence, origin.severity),
        ("slow_receiver", Confidence::Low, Severity::Info)
    );
    // Little came, and little was paused: nothing shows why.
    assert_eq!(
        text(fired(&storm(0.49, 0.09 * RATE), "pause.origin"), "root_kind"),
        "unclear"
    );
    // Pauses of less than 100 us in all are no wait.
    assert!(finding(&storm(0.000_09, 0.0), "pause.origin").is_none());
}

/// Switches in a ring, each with a host that sends to the one two switches further. Every cable between the switches is paused in each of the
/// seconds in which its ports sent `sent`, and `more` was read besides.
fn ring(count: u8, sent: &[f64], more: &[Vec<SampleRow>]) -> RunSummary {
    let names: Vec<String> = (1..=count).map(|place| format!("s{place}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut cables = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let next = names[(place + 1) % names.len()];
        cables.push((format!("h{}:ens", place + 1), format!("{name}:p")));
        cables.push((format!("{name}:east"), format!("{next}:west")));
    }
    let cables: Vec<(&str, &str)> = cables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let flows: Vec<FlowRow> = (1..=count)
        .map(|from| long(from, (from + 1) % count + 1))
        .collect();
    let mut readings = more.to_vec();
    for name in &names {
        let east = format!("{name}:east");
        let frames: Vec<f64> = sent.iter().map(|_| 1_000.0).collect();
        readings.push(reads(&east, SwitchPriorityPfcReceivedFrames, 5, &frames));
        readings.push(reads(&east, SwitchInterfaceTransmittedBytes, 5, sent));
        readings.push(shows(&east, SwitchInterfaceRate, RATE));
    }
    run(&wiring(&names, &cables, count), &flows, &readings)
}

fn kind_of(run: &RunSummary) -> (&str, Severity, Confidence) {
    let origin = fired(run, "pause.origin");
    (text(origin, "root_kind"), origin.severity, origin.confidence)
}

const DEADLOCK: (&str, Severity, Confidence) = ("loop", Severity::Critical, Confidence::Medium);
const UNCLEAR: (&str, Severity, Confidence) = ("unclear", Severity::Info, Confidence::Low);

#[test]
fn a_circle_that_stands_still_is_a_deadlock() {
    let found = ring(5, &[0.0], &[]);
    assert_eq!(kind_of(&found), DEADLOCK);
    assert_eq!(count(fired(&found, "pause.origin"), "victims"), 5);
    let kinds: Vec<Option<RootKind>> = roots(&found).iter().map(|row| row.root_kind).collect();
    // Two flows on each of five cables, and five pairs of ports within switches.
    assert_eq!(kinds, [Some(RootKind::Loop); 15]);
    // A circle that moves is none: a thousandth of the rate is still, two are not.
    assert_eq!(kind_of(&ring(5, &[0.002 * RATE], &[])), UNCLEAR);
}

#[test]
fn a_deadlock_may_form_late() {
    // They moved at half of their rate in the sixth second, and stand still in the two after it.
    assert_eq!(kind_of(&ring(5, &[0.5 * RATE, 0.0, 0.0], &[])), DEADLOCK);
    // In the last one they move again, or for the first time stand still within it: nothing shows a whole interval of it.
    assert_eq!(kind_of(&ring(5, &[0.5 * RATE, 0.0, 0.5 * RATE], &[])), UNCLEAR);
    assert_eq!(kind_of(&ring(5, &[0.5 * RATE, 0.5 * RATE], &[])), UNCLEAR);
}

#[test]
fn a_circle_may_wait_for_a_port_outside() {
    // h1 pauses its switch as well, up to the end: all may wait for h1 alone.
    assert_eq!(kind_of(&ring(5, &[0.0], &[stopped("s1:p")])), UNCLEAR);
    // It stopped pausing a second before the end, and nothing moves since.
    let early = reads("s1:p", SwitchPriorityPfcReceivedFrames, 5, &[1_000.0, 0.0]);
    assert_eq!(kind_of(&ring(5, &[0.0, 0.0], &[early])), DEADLOCK);
}

#[test]
fn routes_of_a_deadlock_are_not_the_shortest_ones() {
    // Each of three switches reaches every other one by one cable. The flow from h1 to h3 goes round by s2 all
    // the same.
    let hosts = ["h1:ens", "h2:ens", "h3:ens"].map(stopped);
    let found = ring(3, &[0.0], &hosts);
    assert_eq!(kind_of(&found), DEADLOCK);
    let origin = fired(&found, "pause.origin");
    assert_eq!(count(origin, "victims"), 3);
    assert_eq!(text(origin, "root"), "s1 east, s2 east, s3 east");
    // The switches' ports are what the hosts wait for, as far as anything shows.
    let mut within = found.waits.iter().filter(|row| row.node == row.waits_for_node);
    assert!(within.all(|row| row.confidence == Confidence::Low));
    // A circle that moves is no root of theirs.
    assert_eq!(kind_of(&ring(3, &[0.002 * RATE], &hosts)), UNCLEAR);
}

#[test]
fn of_two_uplinks_that_fit_none_is_said_to_be_the_one() {
    let within = |uplinks: &[&str]| {
        let mut readings = vec![stopped("h1:ens")];
        readings.extend(uplinks.iter().map(|at| stopped(at)));
        let found = run(&leaf_spine(2), &[long(1, 3)], &readings);
        let rows = found.waits.iter();
        rows.filter(|row| row.node.as_deref() == Some("leaf1") && row.node == row.waits_for_node)
            .count()
    };
    assert_eq!((within(&["leaf1:u1"]), within(&["leaf1:u1", "leaf1:u2"])), (1, 0));
}

#[test]
fn a_port_that_sends_at_nine_tenths_of_its_rate_is_contended() {
    let found = |share: f64| {
        let mut readings = spread();
        readings.push(reads(
            "leaf2:p1",
            SwitchInterfaceTransmittedBytes,
            5,
            &[share * RATE, 0.0],
        ));
        readings.push(shows("leaf2:p1", SwitchInterfaceRate, RATE));
        readings.push(reads("leaf2:p1", SwitchPriorityPfcReceivedFrames, 5, &[0.0, 0.0]));
        run(&leaf_spine(1), &[long(1, 3), long(2, 3)], &readings)
    };
    // 11.25 GB of 12.5 GB in the second in which the pauses came.
    let full = found(0.9);
    assert_eq!(
        kind_of(&full),
        ("contention", Severity::Warning, Confidence::Medium)
    );
    assert_eq!(
        text(fired(&full, "pause.origin"), "reason"),
        "it sent 90 % of its rate"
    );
    assert_eq!(kind_of(&found(0.899)), UNCLEAR);
}

#[test]
fn few_frames_are_no_wait() {
    let frames = |frames: f64| {
        let readings = [reads(
            "leaf2:p1",
            SwitchPriorityPfcReceivedFrames,
            5,
            &[frames, 0.0],
        )];
        run(&leaf_spine(1), &[long(1, 3)], &readings)
    };
    assert!(finding(&frames(9.0), "pause.origin").is_none());
    assert!(frames(9.0).waits.is_empty());
    assert!(finding(&frames(10.0), "pause.origin").is_some());
}

#[test]
fn ports_that_nobody_joins_have_rows_and_no_finding() {
    let readings = [stopped("leaf2:p1"), stopped("h1:ens"), stopped("other:x")];
    let found = run(&Wiring::default(), &[long(1, 3)], &readings);
    assert!(finding(&found, "pause.origin").is_none());
    assert_eq!(found.waits.len(), 3);
    for row in &found.waits {
        assert_eq!(
            (row.victim_flow, row.waits_for_node.as_deref(), row.confidence),
            (None, None, Confidence::Low)
        );
        assert_eq!(row.root_kind, Some(RootKind::Unclear));
    }
    // Without readings there is nothing at all.
    let found = run(&leaf_spine(1), &[long(1, 3)], &[]);
    assert!(found.waits.is_empty() && finding(&found, "pause.origin").is_none());
    // Pauses where no captured flow passes are none of its flows'.
    let found = run(&leaf_spine(1), &[long(1, 2)], &[stopped("leaf2:p1")]);
    assert!(finding(&found, "pause.origin").is_none());
    assert_eq!(found.waits.len(), 1);
}

#[test]
fn what_came_later_is_no_cause() {
    let flows = [long(1, 3)];
    let later = |second: u64| {
        let readings = [
            reads("spine1:d2", SwitchPriorityPfcReceivedFrames, 5, &[1_000.0; 4]),
            reads("leaf2:p1", SwitchPriorityPfcReceivedFrames, second, &[1_000.0]),
            reads("h3:ens", PortOutOfBufferDrops, 5, &[12.0; 4]),
        ];
        run(&leaf_spine(1), &flows, &readings)
    };
    let at_spine = |run: &RunSummary| {
        let rows = run.waits.iter();
        rows.filter(|row| row.node.as_deref() == Some("spine1"))
            .map(|row| row.root_kind)
            .collect::<Vec<_>>()
    };
    // In the same interval the order is not known, and the port behind can be the cause.
    assert_eq!(at_spine(&later(5)), [None]);
    // The spine was paused before the seventh second, the port behind it in that second first.
    assert_eq!(at_spine(&later(7)), [Some(RootKind::Unclear)]);
}

#[test]
fn two_ways_of_one_length_leave_it_open() {
    let readings = [stopped("spine1:d2"), stopped("leaf2:p1")];
    let found = run(&leaf_spine(2), &[long(1, 3), long(2, 4)], &readings);
    let origin = fired(&found, "pause.origin");
    // The flow to h3 surely waits at its last cable; that to h4 may have come by either spine.
    assert_eq!(
        (count(origin, "victims"), count(origin, "victims_possible")),
        (1, 1)
    );
}

#[test]
fn ends_of_a_cable_that_differ_are_unsure() {
    let received = stopped("leaf2:p1");
    let sent = reads("h3:ens", Counter::PfcTransmittedFrames, 5, &[0.0, 0.0]);
    let found = run(&leaf_spine(1), &[long(1, 3)], &[received, sent]);
    assert!(found.waits.iter().all(|row| row.confidence == Confidence::Low));
    let sent = reads("h3:ens", Counter::PfcTransmittedFrames, 5, &[990.0, 0.0]);
    let found = run(&leaf_spine(1), &[long(1, 3)], &[stopped("leaf2:p1"), sent]);
    // One cable, although both of its ends counted.
    assert_eq!(found.waits.len(), 1);
    assert_eq!(found.waits[0].confidence, Confidence::Medium);
}

#[test]
fn a_reset_counts_what_came_after_it() {
    let mut rows = reads("leaf2:p1", SwitchPriorityPfcReceivedFrames, 5, &[40.0, 0.0]);
    rows[0].reset = true;
    let found = run(&leaf_spine(1), &[long(1, 3)], &[rows]);
    assert_eq!(count(fired(&found, "pause.origin"), "pause_frames"), 40);
}

const H3: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);

/// The captured link of h3, of 100 Gbit/s, with h3's pauses of 30 ms in 40 ms, two flows to it, and `naks` RNR NAKs.
fn captured(naks: u64, wiring: &Wiring) -> RunSummary {
    captured_at(100_000_000_000, naks, wiring)
}

fn captured_at(link_rate: u64, naks: u64, wiring: &Wiring) -> RunSummary {
    let mut run = TestRun::with(Settings {
        link_rate: Some(link_rate),
        wiring: std::sync::Arc::new(wiring.clone()),
        ..Settings::default()
    });
    run.summary.taps = vec![TapRow {
        first_time: Some(Time(0)),
        last_time: Some(Time(100 * MS)),
        stamp_quantum_ns: 1,
        ..TapRow::default()
    }];
    let flows = [1, 2].map(|from| FlowRow {
        last_time: Time(100 * MS),
        ..flow(from, 3)
    });
    let nak = back(&flows[0]);
    let mut frame = PauseFrame {
        before: 0,
        time: Time(0),
        tap: TapId(0),
        reported: true,
        pause: Pause {
            source: H3,
            destination: MacAddress::PAUSE,
            kind: PauseKind::Priority,
            enabled: 0b1000,
            quanta: [u16::MAX; 8],
            present: 8,
        },
    };
    for (from, last) in [(1, 1), (2, 2)] {
        run.verdicts().link(&LinkAddresses {
            before: 0,
            time: Time(0),
            tap: TapId(0),
            source: host(from),
            destination: host(3),
            source_mac: MacAddress([2, 0, 0, 0, 0, last]),
            destination_mac: H3,
            hop_limit: 64,
        });
    }
    run.verdicts().link(&LinkAddresses {
        before: 0,
        time: Time(0),
        tap: TapId(0),
        source: host(3),
        destination: host(1),
        source_mac: H3,
        destination_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        hop_limit: 64,
    });
    for ms in 0..50 {
        let mut events = Vec::new();
        if (10..50).contains(&ms) {
            frame.time = Time(ms * MS);
            run.verdicts().pause(&frame);
            events.push(EventRow {
                time: Time(ms * MS),
                kind: EventKind::PauseInterval,
                psn: Some(3),
                value: Some(750_000),
                detail: Some("by 02:00:00:00:00:03, refreshed 2 times".into()),
                ..EventRow::default()
            });
        }
        if ms == 20 && naks > 0 {
            events.extend((0..naks).map(|_| event(EventKind::RnrNak, &nak, ms * MS, 1_000, "")));
        }
        run.bin(
            ms,
            &[
                (&flows[0], |row| row.wire_bytes = 10_820),
                (&flows[1], |row| {
                    (row.wire_bytes, row.pause_ns) = (10_820, Some(500_000));
                }),
            ],
            &events,
        );
    }
    run.closed(&nak);
    run.conclude()
}

#[test]
fn frames_and_rnr_naks_on_the_receivers_own_link_prove_it() {
    let found = captured(5, &Wiring::default());
    let origin = fired(&found, "pause.origin");
    assert_eq!(
        (text(origin, "root_kind"), origin.confidence, text(origin, "root")),
        ("slow_receiver", Confidence::High, "10.0.0.3")
    );
    assert_eq!((count(origin, "victims"), count(origin, "resolution_ns")), (2, 1));
    // 40 pauses of 0.75 ms.
    assert_eq!(count(origin, "paused_most_ns"), 30 * MS);
    assert_eq!(text(origin, "way"), "a switch - 10.0.0.3");
    // An inventory names the ports.
    let found = captured(5, &leaf_spine(1));
    assert_eq!(text(fired(&found, "pause.origin"), "way"), "leaf2 p1 - h3 ens");
}

#[test]
fn frames_while_hardly_anything_comes_prove_a_storm() {
    // 10.82 kB of each of two flows in a millisecond are 0.17 Gbit/s of 100; 75 % of the time is paused.
    let found = captured(0, &Wiring::default());
    let origin = fired(&found, "pause.origin");
    assert_eq!(
        (text(origin, "root_kind"), origin.confidence, origin.severity),
        // A root is as bad as what it explains: the storm of 75 % is critical.
        ("pause_storm", Confidence::High, Severity::Critical)
    );
    assert!(origin.explains.has("pause.storm"));
    assert!(fired(&found, "pause.storm").explained_by.has("pause.origin"));
}

#[test]
fn frames_while_data_comes_do_not_show_why() {
    // Now 0.17 Gbit/s are a sixth of 1 Gbit/s, more than a tenth: a slow receiver, or a storm that comes and
    // goes.
    let found = captured_at(1_000_000_000, 0, &Wiring::default());
    assert_eq!(
        kind_of(&found),
        ("slow_receiver", Severity::Info, Confidence::Low)
    );
    // A cause of low confidence explains nothing that is surer.
    assert!(fired(&found, "pause.storm").is_root());
    // Its RNR NAKs show it, and with it why the link was paused for a critical share.
    let found = captured_at(1_000_000_000, 5, &Wiring::default());
    assert_eq!(
        kind_of(&found),
        ("slow_receiver", Severity::Critical, Confidence::High)
    );
}

#[test]
fn a_fabric_of_ten_thousand_ports_is_bounded() {
    // 100 leaves with 96 hosts and 4 uplinks each; every port pauses.
    let mut wiring = Wiring::default();
    let mut readings = Vec::new();
    let mut flows = Vec::new();
    for leaf in 0..100u8 {
        wiring.switches.insert(format!("leaf{leaf}"));
        for place in 0..96u8 {
            let address = roce_model::Address::v4([10, 0, leaf, place]);
            let name = format!("h{leaf}-{place}:ens");
            let at = format!("leaf{leaf}:p{place}");
            wiring.cables.push(super::readings::cable(&name, &at));
            wiring.addresses.push((address, port(&name)));
            readings.push(stopped(&at));
            let mut row = long(1, 2);
            row.source = address;
            row.destination = roce_model::Address::v4([10, 0, (leaf + 1) % 100, place]);
            row.flow_id = roce_model::FlowId(u64::from(leaf) * 1_000 + u64::from(place));
            flows.push(row);
        }
        for uplink in 0..4 {
            let (up, down) = (format!("leaf{leaf}:u{uplink}"), format!("spine{uplink}:d{leaf}"));
            wiring.switches.insert(format!("spine{uplink}"));
            wiring.cables.push(super::readings::cable(&up, &down));
            readings.push(stopped(&up));
            readings.push(stopped(&down));
        }
    }
    let started = std::time::Instant::now();
    let found = run(&wiring, &flows, &readings);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    let origin = fired(&found, "pause.origin");
    assert!(found.waits.len() <= 4096);
    // There are 96 times 100, 4 times 100 and as many paused cables, of which 128 are judged.
    assert_eq!(count(origin, "cables_left_out"), 10_400 - 128);
}
