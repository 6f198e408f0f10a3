//! Packets that are lost, discarded or broken.

use super::*;

#[test]
fn losses_are_joined_with_the_class_that_lost_them() {
    let port = "mlx5_0:1";
    let of = |losses, is_on: f64| {
        [
            count(port, Counter::PortOutOfSequencePackets, 5.0, 5.0 + losses),
            count(port, Counter::PortReceivedPackets, 0.0, 1e8),
            count("ens1", Counter::PriorityReceivedBytes, 0.0, 4e11).priority(0),
            count("ens1", Counter::PriorityReceivedBytes, 0.0, 0.0).priority(3),
            count("ens1", Counter::PfcEnabled, is_on, is_on).priority(0),
            count("ens1", Counter::PriorityDiscards, 0.0, 0.0)
                .priority(0)
                .details(&["buffer"]),
            // Another adapter's interface says nothing about this port.
            count("ens9", Counter::NetdevDiscards, 0.0, 0.0).details(&["received"]),
        ]
    };
    let found = found_in(&of(120_000.0, 0.0), 10);
    assert_eq!(ids(&found), [("counters.lossy_class", Severity::Warning)]);
    assert_eq!(
        found[0].text,
        "120,000 packets out of sequence (0.12 % of those received) in 10.0 s: priority 0 of ens1 has 100.0 % of the bytes and no PFC: a lossy class"
    );
    // 900 of 1e8 packets are less than one in 100,000.
    assert_eq!(
        ids(&found_in(&of(900.0, 0.0), 10)),
        [("counters.lossy_class", Severity::Info)]
    );
    // PFC is on: where they are lost is not said.
    let elsewhere = found_in(&of(120_000.0, 1.0), 10);
    assert_eq!(ids(&elsewhere), [("counters.losses", Severity::Info)]);
    assert!(
        elsewhere[0].text.contains("lost, or reordered on the way"),
        "{}",
        elsewhere[0].text
    );
}

#[test]
fn discards_and_broken_frames_state_their_share() {
    let port = "Ethernet1/2";
    let of = |counter, details, value| {
        [
            count(port, counter, 0.0, value).details(details),
            count(port, Counter::SwitchInterfaceTransmittedPackets, 0.0, 1e9).details(&["port", "unicast"]),
            count(port, Counter::SwitchInterfaceReceivedPackets, 0.0, 1e9).details(&["port", "unicast"]),
        ]
    };
    let discarded = |value| {
        only(&of(
            Counter::SwitchInterfaceDiscards,
            &["port", "transmitted"],
            value,
        ))
    };
    // 20,000 of 1e9: 0.002 %.
    assert_eq!(discarded(20_000.0).severity, Severity::Warning);
    assert!(
        discarded(20_000.0)
            .text
            .contains("20,000 packets to be sent discarded, 0.0020 % of those transmitted")
    );
    assert_eq!(discarded(9_000.0).severity, Severity::Info);
    let broken = |value| only(&of(Counter::SwitchInterfaceFcsErrors, &["port"], value));
    // IEEE 802.3 allows ten frames in 1e9.
    assert_eq!(broken(10.0).severity, Severity::Info);
    assert_eq!(
        (broken(731.0).id, broken(731.0).severity),
        ("counters.broken_frames", Severity::Warning)
    );
    // A vmnic of ESXi; what it dropped for lack of buffers is no broken frame.
    let vmnic = |details: &'static [&'static str]| {
        let errors = count("vmnic5", Counter::HypervisorErrors, 0.0, 321.0).details(details);
        found_in(
            &[
                errors,
                count("vmnic5", Counter::HypervisorReceivedPackets, 0.0, 1e6),
            ],
            10,
        )
    };
    assert_eq!(
        ids(&vmnic(&["received", "crc"])),
        [("counters.broken_frames", Severity::Warning)]
    );
    assert_eq!(ids(&vmnic(&["received", "missed"])), []);
}

#[test]
fn a_loss_that_several_counters_show_is_one() {
    let port = "mlx5_0:1";
    let counted = |behind, naks, timeouts| {
        let found = only(&[
            count(port, Counter::PortOutOfSequencePackets, 5.0, 5.0 + behind),
            count(port, Counter::PortPacketSequenceErrors, 7.0, 7.0 + naks),
            count(port, Counter::PortAckTimeouts, 2.0, 2.0 + timeouts),
        ]);
        let losses = found.evidence.0.iter().find(|(name, _)| *name == "losses");
        (found.text, losses.unwrap().1.clone())
    };
    let (text, losses) = counted(480.0, 500.0, 20.0);
    assert!(
        text.starts_with("480 packets out of sequence, 500 sequence NAKs, 20 timeouts in 10.0 s"),
        "{text}"
    );
    assert_eq!(losses, roce_model::Fact::Number(500.0));
}

#[test]
fn losses_of_a_lossless_class_are_another_finding() {
    let port = "mlx5_0:1";
    let of = |is_on: f64| {
        found_in(
            &[
                count(port, Counter::PortOutOfSequencePackets, 0.0, 4_000.0),
                count(port, Counter::PortReceivedPackets, 0.0, 2e7),
                count("ens1", Counter::PriorityReceivedPackets, 0.0, 2e7).priority(3),
                count("ens1", Counter::PfcEnabled, is_on, is_on).priority(3),
                // One packet under two names, and in the port's sum.
                count("ens1", Counter::PriorityDiscards, 0.0, 4_000.0)
                    .priority(3)
                    .details(&["all"]),
                count("ens1", Counter::PriorityDiscards, 0.0, 4_000.0)
                    .priority(3)
                    .details(&["buffer"]),
                count("ens1", Counter::NetdevDiscards, 0.0, 4_000.0).details(&["received"]),
            ],
            10,
        )
    };
    let lossless = of(1.0);
    assert_eq!(
        ids(&lossless),
        [
            ("counters.lossless_loss", Severity::Warning),
            ("counters.discards", Severity::Warning)
        ]
    );
    assert!(
        lossless[0]
            .text
            .starts_with("4,000 packets of priority 3 discarded although PFC is on for it"),
        "{}",
        lossless[0].text
    );
    let lossy = of(0.0);
    assert_eq!(lossy[0].id, "counters.lossy_class");
    assert!(
        lossy[0]
            .text
            .contains("discarded meanwhile: 4,000 packets of priority 3 by ens1"),
        "{}",
        lossy[0].text
    );
}

#[test]
fn one_broken_frame_in_a_day_is_a_note() {
    let of = |frames: f64, seconds| {
        let pairs = [
            count("ens1", Counter::PhyCrcErrors, 4.0, 4.0 + frames),
            count("ens1", Counter::PriorityReceivedPackets, 0.0, 2e7).priority(3),
        ];
        found_in(&pairs, seconds)
    };
    assert_eq!(
        ids(&of(1.0, 86_400)),
        [("counters.broken_frames", Severity::Info)]
    );
    // 23 in a day is less than one an hour; 25 is more.
    assert_eq!(of(23.0, 86_400)[0].severity, Severity::Info);
    assert_eq!(of(25.0, 86_400)[0].severity, Severity::Warning);
    assert_eq!(of(1.0, 10)[0].severity, Severity::Info);
}

#[test]
fn drops_of_a_queue_say_whether_it_is_lossless() {
    let of = |no_drop: f64| {
        only(&[
            count("Ethernet0", Counter::SwitchQueueDroppedPackets, 5.0, 45_005.0)
                .queue("UC0")
                .details(&["port", "unicast"]),
            count("Ethernet0", Counter::SwitchQueueTransmittedPackets, 0.0, 1e8)
                .queue("UC0")
                .details(&["port", "unicast"]),
            count("Ethernet0", Counter::SwitchQueueNoDrop, no_drop, no_drop)
                .queue("UC0")
                .details(&["port"]),
        ])
    };
    let lossy = of(0.0);
    assert_eq!(
        (lossy.id, lossy.severity),
        ("counters.queue_drops", Severity::Info)
    );
    // 45,000 of 100,045,000.
    assert!(
        lossy
            .text
            .starts_with("queue UC0 dropped 45,000 packets, 0.04 % of its packets in 10.0 s: it is lossy"),
        "{}",
        lossy.text
    );
    let lossless = of(1.0);
    assert_eq!(lossless.severity, Severity::Warning);
    assert!(lossless.text.contains("it is lossless"));
    let unknown = |dropped: f64| {
        only(&[
            count("Ethernet0", Counter::SwitchQueueDroppedPackets, 0.0, dropped).queue("UC0"),
            count("Ethernet0", Counter::SwitchQueueTransmittedPackets, 0.0, 1e6).queue("UC0"),
        ])
    };
    // 0.02 % and 0.2 %.
    assert_eq!(unknown(200.0).severity, Severity::Info);
    assert_eq!(unknown(2_000.0).severity, Severity::Warning);
}

#[test]
fn settings_beside_losses_say_whether_the_class_is_lossless() {
    let port = "mlx5_0:1";
    let of = |on: &[u8]| {
        let mut all = vec![
            count(port, Counter::PortPacketSequenceErrors, 0.0, 4_000.0),
            count(port, Counter::PortReceivedPackets, 0.0, 2e7),
        ];
        all.extend((0..8).map(|priority| {
            let is_on = f64::from(u8::from(on.contains(&priority)));
            count("ens1", Counter::PfcEnabled, is_on, is_on).priority(priority)
        }));
        all
    };
    let lossless = only(&of(&[3]));
    assert_eq!(
        (lossless.id, lossless.severity),
        ("counters.losses", Severity::Info)
    );
    assert!(
        lossless
            .text
            .contains("PFC is on for priority 3 of ens1: that class is lossless, others are lossy"),
        "{}",
        lossless.text
    );
    // The priority with the data is known.
    let mut all = of(&[3]);
    all.push(count("ens1", Counter::PriorityReceivedBytes, 0.0, 9e9).priority(3));
    let text = only(&all).text;
    assert!(
        text.contains("priority 3 of ens1 has 100.0 % of the bytes and PFC: a lossless class"),
        "{text}"
    );
    let lossy = only(&of(&[]));
    assert_eq!(lossy.id, "counters.lossy_class");
    assert!(
        lossy
            .text
            .contains("PFC is off for all priorities of ens1: each class is lossy"),
        "{}",
        lossy.text
    );
    // Pauses of 802.3x hold all classes.
    let mut all = of(&[]);
    all.push(count("ens1", Counter::PauseTransmittedFrames, 5.0, 5.0));
    assert_eq!(only(&all).id, "counters.losses");
}
