//! Roots of pauses in networks whose root is known by construction.

use roce_sim::Truth;
use roce_sim::truth::{PauseRoot, PauseRootKind};

use super::truth_of;

/// Two leaves with three hosts each below one spine, whose links are as fast as all hosts of a leaf together.
fn two_levels(more: &str) -> Truth {
    truth_of(&format!(
        r#"
        duration = "3ms"
        [network]
        hosts = 6
        topology = "leaf-spine"
        spines = 1
        rate = "25Gbps"
        uplink_rate = "100Gbps"
        [switch]
        pause = "pfc"
        ecn = false
        xoff = "60KB"
        xon = "40KB"
        headroom = "100KB"
        [nic]
        mtu = 4096
        ack_every = 16
        timeout = "50ms"
        {more}
        "#
    ))
}

/// The stretches of victims: flows that have nothing to do with the root.
fn victims(truth: &Truth) -> Vec<&PauseRoot> {
    let rows = truth.pause_roots.iter();
    rows.filter(|row| !row.contributes).collect()
}

fn chain(row: &PauseRoot) -> Vec<&str> {
    row.chain.iter().map(|port| port.place.as_str()).collect()
}

fn flow<'a>(truth: &'a Truth, from: &str, to: &str) -> &'a str {
    let mut flows = truth.flows.iter();
    let found = flows.find(|flow| flow.source == from && flow.destination == to && flow.data_packets > 0);
    &found.unwrap().flow_id
}

/// The total time that a flow waited for a root.
fn waited(truth: &Truth, flow: &str, kind: PauseRootKind, root: &str) -> u64 {
    let rows = truth.pause_roots.iter();
    let rows = rows.filter(|row| row.flow_id == flow && row.kind == kind && row.root == root);
    rows.map(|row| row.paused_ns).sum()
}

/// h1, h2 and h5 send to h4, h3 sends to h6.
const INCAST: &str = r#"
    [[flow]]
    from = "h1, h2, h5"
    to = "h4"
    message = "256KiB"
    outstanding = 2
    [[flow]]
    from = "h3"
    to = "h6"
    message = "256KiB"
    outstanding = 2
"#;

#[test]
fn contention_at_a_leaf_reaches_a_victim_two_switches_away() {
    let truth = two_levels(INCAST);
    assert!(truth.losses.is_empty());
    let victim = flow(&truth, "h3", "h6");
    let found: Vec<_> = victims(&truth)
        .into_iter()
        .filter(|row| row.flow_id == victim)
        .collect();
    assert!(!found.is_empty());
    for row in &found {
        assert_eq!(
            (row.kind, row.root.as_str()),
            (PauseRootKind::Contention, "leaf2->h4"),
            "{row:?}"
        );
        assert_eq!(*chain(row).last().unwrap(), "spine1->leaf2", "{row:?}");
    }
    let whole = ["h3->leaf1", "leaf1->spine1", "spine1->leaf2"];
    assert!(found.iter().any(|row| chain(row) == whole), "{found:?}");
    // The three flows to h4 have all of the root's queue, the victim nothing.
    let senders: Vec<&str> = ["h1", "h2", "h5"].map(|host| flow(&truth, host, "h4")).to_vec();
    for row in &found {
        let sum: f64 = row.shares.iter().map(|share| share.share).sum();
        assert!((sum - 1.0).abs() < 1e-9 && row.shares.len() == 3);
        assert!(
            row.shares
                .iter()
                .all(|share| senders.contains(&share.flow_id.as_str()))
        );
    }
    // No other flow is a victim.
    assert!(victims(&truth).iter().all(|row| row.flow_id == victim));
}

#[test]
fn a_slow_receiver_is_the_root_also_when_it_is_nearly_fast_enough() {
    for drain in ["2.5Gbps", "12Gbps", "20Gbps", "22.5Gbps"] {
        let truth = two_levels(&format!(
            r#"
            [[host]]
            name = "h4"
            drain = "{drain}"
            xoff = "60KB"
            xon = "40KB"
            [[flow]]
            from = "h1"
            to = "h4"
            message = "256KiB"
            outstanding = 4
            [[flow]]
            from = "h1"
            to = "h6"
            message = "64KiB"
            interval = "400us"
            "#
        ));
        let victim = flow(&truth, "h1", "h6");
        assert!(
            waited(&truth, victim, PauseRootKind::SlowReceiver, "h4->leaf2") > 0,
            "{drain}"
        );
        for row in &truth.pause_roots {
            assert_eq!(
                (row.kind, row.root.as_str()),
                (PauseRootKind::SlowReceiver, "h4->leaf2"),
                "{drain}: {row:?}"
            );
            assert_eq!(row.contributes, row.flow_id != victim);
            assert!(row.also.is_empty());
        }
    }
}

#[test]
fn incast_to_a_nearly_healthy_receiver_is_contention() {
    let truth = two_levels(&format!(
        "[[host]]\nname = \"h4\"\ndrain = \"23.5Gbps\"\nxoff = \"20KB\"\nxon = \"10KB\"\n{INCAST}"
    ));
    let victim = flow(&truth, "h3", "h6");
    let contention = waited(&truth, victim, PauseRootKind::Contention, "leaf2->h4");
    let slow = waited(&truth, victim, PauseRootKind::SlowReceiver, "h4->leaf2");
    // h4 takes 6 % less than its link brings, three hosts send 200 % more.
    assert!(contention > slow * 10, "{contention} {slow}");
}

#[test]
fn incast_to_a_very_slow_receiver_is_its_fault_and_contention_also() {
    let truth = two_levels(&format!("[[host]]\nname = \"h4\"\ndrain = \"5Gbps\"\n{INCAST}"));
    let victim = flow(&truth, "h3", "h6");
    let contention = waited(&truth, victim, PauseRootKind::Contention, "leaf2->h4");
    let slow = waited(&truth, victim, PauseRootKind::SlowReceiver, "h4->leaf2");
    assert!(slow > contention * 4, "{slow} {contention}");
    let also = truth.pause_roots.iter().flat_map(|row| &row.also);
    let also: Vec<&str> = also.map(|other| other.root.as_str()).collect();
    assert!(also.contains(&"leaf2->h4"), "{also:?}");
    assert!(
        also.iter().all(|root| ["leaf2->h4", "h4->leaf2"].contains(root)),
        "{also:?}"
    );
}

#[test]
fn a_storm_is_the_root_while_it_lasts() {
    let truth = two_levels(
        r#"
        [[flow]]
        from = "h1"
        to = "h4"
        message = "64KiB"
        interval = "60us"
        [[flow]]
        from = "h1"
        to = "h6"
        message = "64KiB"
        interval = "60us"
        [[pause]]
        host = "h4"
        begin = "500us"
        end = "1500us"
        on = "300us"
        off = "100us"
        "#,
    );
    let victim = flow(&truth, "h1", "h6");
    assert!(waited(&truth, victim, PauseRootKind::PauseStorm, "h4->leaf2") > 300_000);
    for row in &truth.pause_roots {
        assert_eq!(
            (row.kind, row.root.as_str()),
            (PauseRootKind::PauseStorm, "h4->leaf2"),
            "{row:?}"
        );
        assert!(row.begin >= 500_000);
    }
}

/// Four leaves in a ring; what each host sends goes two leaves on.
fn ring(hosts: &str, xoff: &str) -> Truth {
    truth_of(&format!(
        r#"
        duration = "3ms"
        [network]
        hosts = 8
        topology = "ring"
        leaves = 4
        rate = "25Gbps"
        [switch]
        pause = "pfc"
        ecn = false
        xoff = "{xoff}"
        xon = "20KB"
        headroom = "100KB"
        [nic]
        mtu = 4096
        timeout = "50ms"
        {hosts}
        "#
    ))
}

fn around(pairs: &[(u32, u32)]) -> String {
    let flows = pairs.iter().map(|(from, to)| {
        format!("[[flow]]\nfrom = \"h{from}\"\nto = \"h{to}\"\nmessage = \"256KiB\"\noutstanding = 4\n")
    });
    flows.collect()
}

#[test]
fn buffers_that_wait_for_each_other_in_a_circle_are_a_deadlock() {
    // Each link of the ring carries what its own two hosts send and what the two hosts before send: four times its rate.
    let pairs = [(1, 5), (2, 6), (3, 7), (4, 8), (5, 1), (6, 2), (7, 3), (8, 4)];
    let truth = ring(&around(&pairs), "40KB");
    let stuck: Vec<_> = truth
        .pause_roots
        .iter()
        .filter(|row| row.kind == PauseRootKind::Deadlock)
        .collect();
    assert!(!stuck.is_empty(), "{:?}", truth.pause_roots);
    for row in &stuck {
        assert_eq!(
            row.circle,
            ["leaf1->leaf2", "leaf2->leaf3", "leaf3->leaf4", "leaf4->leaf1"]
        );
        assert_eq!((row.root.as_str(), row.end), ("leaf1->leaf2", 3_000_000));
    }
    // Nothing moves any more: no data arrives in the last millisecond.
    let last: u64 = truth
        .flows
        .iter()
        .filter_map(|flow| flow.received_bytes_per_ms.get(2))
        .sum();
    assert_eq!(last, 0);
}

#[test]
fn a_chain_of_pauses_without_a_circle_is_no_deadlock() {
    // The switches are as before; no flow passes the link from leaf4 to leaf1, but for ACKs.
    let truth = ring(&around(&[(1, 5), (2, 5), (3, 7), (4, 7)]), "40KB");
    assert!(!truth.pause_roots.is_empty());
    assert!(
        truth
            .pause_roots
            .iter()
            .all(|row| row.kind == PauseRootKind::Contention),
        "{:?}",
        truth.pause_roots
    );
}

#[test]
fn nobody_waits_where_nobody_pauses() {
    let truth = two_levels("[[flow]]\nfrom = \"h1\"\nto = \"h4\"\nmessage = \"64KiB\"\n");
    assert!(truth.pauses.is_empty() && truth.pause_roots.is_empty());
}
