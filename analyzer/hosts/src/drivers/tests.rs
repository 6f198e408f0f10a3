//! Names of drivers and what they stand for.

use super::*;

fn netdev(name: &str) -> (Counter, Option<u8>, f64) {
    let mapped = mapped(CounterPlace::Netdev, name).unwrap();
    (mapped.counter, mapped.priority, mapped.factor)
}

#[test]
fn frames_durations_and_transitions_are_three_counters() {
    assert_eq!(
        netdev("rx_prio3_pause"),
        (Counter::PfcReceivedFrames, Some(3), 1.0)
    );
    assert_eq!(
        netdev("rx_prio3_pause_duration"),
        (Counter::PfcReceivePausedSeconds, Some(3), 1e-6)
    );
    assert_eq!(
        netdev("rx_prio3_pause_transition"),
        (Counter::PfcTransitions, Some(3), 1.0)
    );
    // bnxt_en, BNXT_RX_STATS_EXT_PFC_ENTRY.
    assert_eq!(
        netdev("pfc_pri3_rx_duration_us"),
        (Counter::PfcReceivePausedSeconds, Some(3), 1e-6)
    );
    assert_eq!(
        netdev("pfc_pri3_rx_transitions"),
        (Counter::PfcTransitions, Some(3), 1.0)
    );
    // mlx4 puts the priority last.
    assert_eq!(
        netdev("rx_pause_duration_prio_3"),
        (Counter::PfcReceivePausedSeconds, Some(3), 1e-6)
    );
}

/// The five statistics of a priority in the driver's order: a search for a part of a name takes the last one (F.2, trap 1).
#[test]
fn a_name_is_a_whole_name() {
    let lines = [
        ("rx_prio3_pause", Counter::PfcReceivedFrames, 1.0),
        ("rx_prio3_pause_duration", Counter::PfcReceivePausedSeconds, 1e-6),
        ("tx_prio3_pause", Counter::PfcTransmittedFrames, 1.0),
        ("tx_prio3_pause_duration", Counter::PfcTransmitPausedSeconds, 1e-6),
        ("rx_prio3_pause_transition", Counter::PfcTransitions, 1.0),
    ];
    for (name, counter, factor) in lines {
        assert_eq!(netdev(name), (counter, Some(3), factor), "{name}");
    }
    assert_eq!(netdev("rx_prio0_pause").1, Some(0));
    assert_eq!(netdev("rx_prio7_pause").1, Some(7));
}

#[test]
fn spellings_of_esxi_find_the_rule_and_mean_one_quantity() {
    let loose = |name: &str| mapped_loosely(name).map(|all| (all.counter, all.priority));
    assert_eq!(
        loose("rxPauseCtrlPhy"),
        Some((Counter::PauseControlReceivedFrames, None))
    );
    assert_eq!(
        loose("Rx_Prio3_Pause "),
        Some((Counter::PfcReceivedFrames, Some(3)))
    );
    assert_eq!(
        loose("rxprio3pauseduration"),
        Some((Counter::PfcReceivePausedSeconds, Some(3)))
    );
    assert_eq!(loose("rx_prio9_pause"), None);
    // Two rules that are spelled alike have to agree.
    for rule in RULES.iter().filter(|rule| rule.place == CounterPlace::Netdev) {
        let name = rule.name.replace('#', "3");
        assert_eq!(loose(&name).unwrap().0, rule.counter, "{name}");
    }
}

#[test]
fn the_sum_of_both_kinds_of_pause_is_neither() {
    assert_eq!(netdev("rx_pause_ctrl_phy").0, Counter::PauseControlReceivedFrames);
    assert_eq!(netdev("rx_global_pause").0, Counter::PauseReceivedFrames);
}

#[test]
fn blanks_around_a_name_do_not_count() {
    assert_eq!(
        netdev("tx_pause_storm_warning_events ").0,
        Counter::PauseStormEvents
    );
}

#[test]
fn a_priority_is_one_digit_up_to_7() {
    for name in [
        "rx_prio8_pause",
        "rx_prio33_pause",
        "rx_prio_pause",
        "rx_priox_pause",
    ] {
        let mapped = mapped(CounterPlace::Netdev, name).unwrap();
        assert_eq!(
            (mapped.counter, &*mapped.details[0]),
            (Counter::NetdevStatistic, name)
        );
    }
}

#[test]
fn objects_of_bnxt_are_gauges_and_settings_are_nothing() {
    let active = mapped(CounterPlace::Hardware, "active_qps").unwrap();
    assert_eq!(
        (active.counter, &*active.details[0]),
        (Counter::PortObjects, "qp")
    );
    assert_eq!(mapped(CounterPlace::Hardware, "lifespan"), None);
    let other = mapped(CounterPlace::Hardware, "unheard_of").unwrap();
    assert_eq!(
        (other.counter, &*other.details[0]),
        (Counter::PortHwCounter, "unheard_of")
    );
}

#[test]
fn the_same_name_is_another_quantity_elsewhere() {
    // bnxt_re's rx_bytes are RDMA's; an interface's are those of all traffic, which has no common name here.
    assert_eq!(
        mapped(CounterPlace::Hardware, "rx_bytes").unwrap().counter,
        Counter::PortReceivedBytes
    );
    assert_eq!(mapped(CounterPlace::Netdev, "rx_bytes"), None);
}

#[test]
fn shares_of_queues_are_left_out() {
    for name in [
        "rx0_xdp_drop",
        "tx12_dropped",
        "ch3_poll_errors",
        "[7]: rx_discards",
    ] {
        assert_eq!(mapped(CounterPlace::Netdev, name), None, "{name}");
    }
    assert!(mapped(CounterPlace::Netdev, "rx_steer_missed_packets").is_none());
    // veth has few queues, and no sum of them.
    assert!(mapped(CounterPlace::Netdev, "rx_queue_0_drops").is_some());
    assert!(mapped(CounterPlace::Netdev, "rx_oversize_pkts_sw_drop").is_some());
}

#[test]
fn details_fit_the_labels_of_their_counter() {
    let mut names = std::collections::BTreeSet::new();
    for rule in RULES {
        assert_eq!(rule.details.len(), rule.counter.labels().len(), "{}", rule.name);
        assert!(rule.name.matches('#').count() <= 1);
        assert!(
            names.insert((format!("{:?}", rule.place), rule.name)),
            "{} twice",
            rule.name
        );
    }
}

/// After Linux drivers/infiniband/hw/ionic and drivers/net/ethernet/pensando, bnxt_re since it takes mlx5's names, and mlx5 of 6.14.
#[test]
fn counters_of_further_drivers() {
    for (name, counter) in [
        ("resp_rx_outof_buf", Counter::PortOutOfBufferDrops),
        ("resp_rx_outouf_seq", Counter::PortOutOfSequencePackets),
        ("req_rx_pkt_seq_err", Counter::PortPacketSequenceErrors),
        ("req_tx_retry_excd_err", Counter::PortRetriesExceeded),
        ("tx_rdma_ack_timeout", Counter::PortAckTimeouts),
        ("rx_rdma_ecn_pkts", Counter::PortEcnMarkedPacketsReceived),
        ("tx_rdma_cnp_pkts", Counter::PortCnpSent),
        ("rx_rdma_cnp_pkts", Counter::PortCnpHandled),
        ("np_cnp_pkts", Counter::PortCnpSent),
        ("req_transport_retries_exceeded", Counter::PortRetriesExceeded),
        ("req_rnr_retries_exceeded", Counter::PortRnrRetriesExceeded),
        ("RetransSegs", Counter::PortRetransmittedPackets),
        ("rx_bps_limit_drop_cnt", Counter::NetdevDiscards),
        ("unresponsive_remote_events", Counter::PortRetriesExceeded),
    ] {
        assert_eq!(
            mapped(CounterPlace::Hardware, name).unwrap().counter,
            counter,
            "{name}"
        );
    }
    assert_eq!(
        netdev("rx_pripause_3_1us_count"),
        (Counter::PfcReceivePausedSeconds, Some(3), 1e-6)
    );
    assert_eq!(netdev("frames_rx_bad_fcs").0, Counter::PhyCrcErrors);
}

/// After Linux drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c: `rx_bytes_pri` is `rx_bytes_cos` of the priority's queue (`pri2cos_idx`).
#[test]
fn discards_of_bnxt_have_the_priority_of_their_queue() {
    let all = [
        ("rx_discard_packets_cos0", 2),
        ("rx_discard_packets_cos4", 70),
        ("tx_discard_packets_cos4", 1),
        ("rx_bytes_cos0", 10),
        ("rx_packets_cos0", 1),
        ("rx_bytes_cos4", 9_000),
        ("rx_packets_cos4", 6),
        // Priorities 0 and 1 share queue 0.
        ("rx_bytes_pri0", 10),
        ("rx_packets_pri0", 1),
        ("rx_bytes_pri1", 10),
        ("rx_packets_pri1", 1),
        ("rx_bytes_pri3", 9_000),
        ("rx_packets_pri3", 6),
    ];
    let found = of_classes(&all);
    let found: Vec<(&str, u64)> = found
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(
        found,
        [
            ("rx_discard_packets_cos", 72),
            ("tx_discard_packets_cos", 1),
            ("rx_discard_packets_pri3", 70)
        ]
    );
    let mapped = mapped(CounterPlace::Netdev, "rx_discard_packets_pri3").unwrap();
    assert_eq!(
        (mapped.counter, mapped.priority),
        (Counter::PriorityDiscards, Some(3))
    );
    assert!(of_classes(&[("rx_packets", 5)]).is_empty());
}
