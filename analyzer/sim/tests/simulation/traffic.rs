//! Traffic of other kinds, and what connections look like.

use std::collections::BTreeSet;

use super::truth_of;

#[test]
fn unreliable_services_are_sent_and_not_acknowledged() {
    let truth = truth_of(
        r#"
        duration = "1ms"
        network = { hosts = 2, rate = "25Gbps" }
        [[flow]]
        from = "h1"
        to = "h2"
        service = "ud"
        op = "send"
        message = "1KiB"
        interval = "10us"
        end = "950us"
        [[flow]]
        from = "h1"
        to = "h2"
        service = "uc"
        message = "4KiB"
        interval = "20us"
        end = "950us"
        [[tap]]
        at = "h2"
        "#,
    );
    // One flow each: nothing comes back.
    assert_eq!(truth.flows.len(), 2);
    // 0, 10, ... 940 us, and 0, 20, ... 940 us; each message is 4 packets of UC.
    assert_eq!(truth.flows[0].packets_sent, 95);
    assert_eq!(truth.flows[1].packets_sent, 48 * 4);
    assert!(
        truth
            .connections
            .iter()
            .all(|c| c.taps.iter().all(|tap| !tap.observable))
    );
}

#[test]
fn the_connection_manager_goes_first() {
    let truth = truth_of(
        r#"
        duration = "1ms"
        network = { hosts = 2, rate = "25Gbps" }
        flow = [{ from = "h1", to = "h2", cm = true, count = 5 }]
        tap = [{ at = "h2" }]
        "#,
    );
    let management: Vec<_> = truth.flows.iter().filter(|flow| flow.management).collect();
    // REQ and RTU in one direction, REP in the other.
    let sent: Vec<_> = management
        .iter()
        .map(|flow| (flow.source.as_str(), flow.packets_sent))
        .collect();
    assert_eq!(sent, [("h1", 2), ("h2", 1)]);
    let data = truth.flows.iter().find(|flow| flow.data_packets > 0).unwrap();
    assert!(data.first_time > management[1].last_time);
    assert!(truth.connections[0].cm && truth.connections[0].taps[0].observable);
}

#[test]
fn queue_pair_numbers_are_used_again() {
    let truth = truth_of(
        r#"
        duration = "2ms"
        network = { hosts = 2, rate = "25Gbps" }
        flow = [{ from = "h1", to = "h2", interval = "50us", reuse = "1ms", qpn = "same" }]
        tap = [{ at = "h2" }]
        "#,
    );
    let [first, second] = truth.connections.as_slice() else {
        panic!("{:?}", truth.connections);
    };
    assert_eq!((first.a.qpn, first.b.qpn), (second.a.qpn, second.b.qpn));
    assert_eq!(first.a.qpn, first.b.qpn);
    assert_ne!(first.a.first_psn, second.a.first_psn);
    assert_eq!(first.a.flow_id, second.a.flow_id);
    let flow = truth.flows.iter().find(|flow| flow.data_packets > 0).unwrap();
    assert_eq!(flow.epochs, 2);
}

#[test]
fn ecmp_spreads_by_source_port() {
    let run = |port: &str| {
        truth_of(&format!(
            r#"
            duration = "500us"
            [network]
            hosts = 4
            topology = "leaf-spine"
            rate = "25Gbps"
            [[flow]]
            from = "h1"
            to = "h3"
            qps = 32
            source_port = {port}
            interval = "50us"
            "#
        ))
    };
    let uplinks = |truth: &roce_sim::Truth| {
        let places = truth.queues.iter().map(|queue| queue.place.clone());
        places
            .filter(|place| place.starts_with("leaf1->spine"))
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(uplinks(&run("\"random\"")).len(), 2);
    assert_eq!(uplinks(&run("49152")).len(), 1);
}

#[test]
fn training_waits_for_the_slowest() {
    let demo = roce_sim::demos::named("training").unwrap();
    let truth = truth_of(demo.toml);
    assert_eq!(truth.steps.len(), 8);
    for step in &truth.steps {
        assert_eq!(step.ranks.len(), 4);
        let slow = &step.ranks[2];
        // 2 ms x 1.2 +- 2 % against 2 ms +- 2 %.
        let computed = slow.begin - slow.compute;
        assert!((2_352_000..=2_448_000).contains(&computed), "{computed}");
        // No rank can end before the slow rank has started.
        assert!(step.ranks.iter().all(|rank| rank.end > slow.begin));
        // Each rank sends 6 shares of 32 KiB; at 25 Gb/s 10.7 us each, one after the other.
        assert!(step.end - slow.begin > 6 * 10_500);
    }
}

#[test]
fn jobs_of_another_kind_ipv6_and_vlans_run() {
    let truth = truth_of(
        r#"
        duration = "500us"
        [network]
        hosts = 2
        topology = "direct"
        rate = "100Gbps"
        ipv6 = true
        vlan = 100
        [[flow]]
        from = "h1"
        to = "h2"
        message = "8KiB"
        direction = "both"
        psn = "zero"
        [[tap]]
        at = "h1"
        mirror = "erspan3"
        session = 7
        "#,
    );
    assert_eq!(truth.connections[0].a.first_psn, 0);
    assert_eq!(truth.connections[0].a.address, "fd00::1");
    assert!(truth.taps[0].records > 100 && truth.taps[0].holes.is_empty());
}
