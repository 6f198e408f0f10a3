//! Equal-cost links: bytes are those of the flows, and fair shares are those of arithmetic.

use roce_sim::Truth;
use roce_sim::truth::UplinkGroup;

use super::truth_of;

/// Two leaves of two hosts each below two spines.
fn network(uplink: &str, flows: &str) -> Truth {
    truth_of(&format!(
        r#"
        duration = "2ms"
        [network]
        hosts = 4
        topology = "leaf-spine"
        rate = "25Gbps"
        uplink_rate = "{uplink}"
        [switch]
        queue_limit = "1MB"
        kmin = "50KB"
        kmax = "500KB"
        [nic]
        mtu = 4096
        ack_every = 16
        {flows}
        "#
    ))
}

fn group<'a>(truth: &'a Truth, node: &str) -> &'a UplinkGroup {
    truth.uplinks.iter().find(|group| group.node == node).unwrap()
}

#[test]
fn one_port_for_all_is_a_collision_that_costs_half() {
    let truth = network(
        "12.5Gbps",
        "[[flow]]\nfrom = \"h1\"\nto = \"h3\"\nqps = 4\nsource_port = 50000\noutstanding = 2\n",
    );
    let leaf = group(&truth, "leaf1");
    let used: Vec<_> = leaf.ports.iter().filter(|port| port.bytes > 0).collect();
    let [used] = used.as_slice() else {
        panic!("{leaf:?}")
    };
    assert_eq!(used.flows.len(), 4);
    assert_eq!(used.bytes, used.flows.iter().map(|flow| flow.bytes).sum::<u64>());
    let [collision] = leaf.collisions.as_slice() else {
        panic!("{leaf:?}")
    };
    assert_eq!(
        (collision.place.as_str(), collision.flows.len()),
        (used.place.as_str(), 4)
    );
    assert_eq!((collision.other_bytes, collision.costs), (0, true));
    // 12.5 Gbit/s for four flows are 3.125 each; both uplinks together carry 25, as much as h1's link: 6.25 each. Of 4,178 bytes on
    // the line 4,096 are data.
    let data = 4096.0 / 4178.0;
    for rate in truth.fair_rates.iter().filter(|rate| rate.reached_bps > 0) {
        assert!((rate.path_bps as f64 - 3.125e9 * data).abs() < 2.0, "{rate:?}");
        assert!((rate.fair_bps as f64 - 6.25e9 * data).abs() < 2.0, "{rate:?}");
        assert!(rate.reached_bps < rate.fair_bps * 7 / 10, "{rate:?}");
    }
    // Nothing is sent the other way but ACKs.
    assert!(group(&truth, "leaf2").ports.iter().all(|port| port.bytes == 0));
}

#[test]
fn fast_uplinks_make_a_collision_free_of_cost() {
    let truth = network(
        "100Gbps",
        "[[flow]]\nfrom = \"h1\"\nto = \"h3\"\nqps = 4\nsource_port = 50000\noutstanding = 2\n",
    );
    let [collision] = group(&truth, "leaf1").collisions.as_slice() else {
        panic!()
    };
    assert!(!collision.costs);
}

#[test]
fn a_flow_alone_collides_with_nobody() {
    let truth = network("12.5Gbps", "[[flow]]\nfrom = \"h1\"\nto = \"h3\"\n");
    assert!(group(&truth, "leaf1").collisions.is_empty());
}

#[test]
fn sprayed_packets_have_no_uplink() {
    let truth = network("12.5Gbps", "[[flow]]\nfrom = \"h1\"\nto = \"h3\"\n");
    assert_eq!(truth.uplinks.len(), 2);
    let sprayed = truth_of(
        "duration = \"1ms\"\n[network]\nhosts = 4\ntopology = \"leaf-spine\"\nrate = \"25Gbps\"\nspray = { paths = 2, skew = \"1us\" }\n[[flow]]\nfrom = \"h1\"\nto = \"h3\"\n",
    );
    assert!(sprayed.uplinks.is_empty() && sprayed.fair_rates.is_empty());
}
