//! Expressions, the packets and flows that they select, and what errors say.

use super::*;
use roce_wire::{Bth, Carrier};

/// RC WRITE Only from 10.0.0.1 to 10.0.0.2, QPN 0x11, DSCP 26.
fn packet() -> Roce {
    Roce {
        source: Address::v4([10, 0, 0, 1]),
        destination: Address::v4([10, 0, 0, 2]),
        bth: Bth([0x0a, 0, 0xff, 0xff, 0, 0, 0, 0x11, 0, 0, 0, 1]),
        traffic_class: 0x6a,
        carrier: Carrier::RoceV2Ipv4,
        vlan: Some(VlanTag(0x6064)),
        ..Roce::default()
    }
}

fn matches(expression: &str) -> bool {
    let filter = Filter::parse(expression).unwrap_or_else(|error| panic!("{error}"));
    let (packet, flow) = (packet(), FlowKey::from_packet(&packet()));
    let matches = filter.matches(&packet);
    assert_eq!(
        filter.matches_flow(&flow, Some(packet.dscp())),
        matches,
        "{expression}: the flow of the packet"
    );
    matches
}

#[test]
fn a_dscp_that_is_not_known_decides_nothing() {
    let flow = FlowKey::from_packet(&packet());
    let matches = |expression| Filter::parse(expression).unwrap().matches_flow(&flow, None);
    assert!(!matches("dscp 26") && !matches("not dscp 26"));
    assert!(!matches("qpn 17 and dscp 26") && matches("qpn 17 or dscp 26"));
    assert!(!matches("dscp 26 or dscp 26") && matches("not (dscp 26 and qpn 18)"));
}

#[test]
fn each_test_both_ways() {
    for yes in [
        "10.0.0.1",
        "host 10.0.0.2",
        "src 10.0.0.0/30",
        "dst 10.0.0.2",
        "10.0.0.1 -> 10.0.0.2",
        "10.0.0.1->10.0.0.2",
        // As results print flows, and as the documents' columns are named.
        "10.0.0.1 > 10.0.0.2 QP 0x11",
        "10.0.0.1>10.0.0.2 QP 17",
        "10.0.0.1 > 10.0.0.2 QP 0x11 [rank 3 > rank 11, channel 2]",
        "10.0.0.1 > 10.0.0.2 QP 0x11 [to rank 11] and dscp 26",
        "10.0.0.2 QPN 0x11",
        "source 10.0.0.1 and destination_qpn 0x11",
        "qp 0x11",
        "not 10.0.0.1 > 10.0.0.2 QP 0x12",
        "10.0.0.2 <-> 10.0.0.1 qp 0x11 and dscp 26",
        "10.0.0.2 <-> 10.0.0.1",
        "qpn 17",
        "qpn 0x11",
        "service RC",
        "dscp 26",
        "vlan 100",
        "0.0.0.0/0",
        "not qpn 18",
        "qpn 18 or qpn 17 and dscp 26",
        "NOT (qpn 18 or dscp 0)",
    ] {
        assert!(matches(yes), "{yes}");
    }
    for no in [
        "10.0.0.3",
        "src 10.0.0.2",
        "dst 10.0.0.1",
        "10.0.0.2 -> 10.0.0.1",
        "10.0.0.2 > 10.0.0.1 QP 0x11",
        "10.0.0.1 > 10.0.0.2 QP 0x12",
        "destination 10.0.0.1",
        "10.0.0.1 <-> 10.0.0.3",
        "qpn 18",
        "service ud",
        "dscp 0",
        "vlan 101",
        "vni 1",
        "2001:db8::/32",
        "not service rc",
        "(qpn 18 or qpn 17) and dscp 25",
    ] {
        assert!(!matches(no), "{no}");
    }
}

#[test]
fn an_ipv4_prefix_of_zero_is_not_ipv6() {
    let v6 = Roce {
        source: Address::v6([0x20; 16]),
        destination: Address::v6([0x21; 16]),
        ..packet()
    };
    assert!(!Filter::parse("0.0.0.0/0").unwrap().matches(&v6));
    assert!(Filter::parse("::/0").unwrap().matches(&v6));
}

#[test]
fn errors_point_at_the_character() {
    let cases = [
        ("qpn", 3, "expected a queue pair number, the expression ends"),
        (
            "qpn 99999999",
            4,
            "'99999999' is not a queue pair number of 0 to 16777215 (decimal or 0x hex)",
        ),
        ("10.0.0.1 and", 12, ""),
        ("10.0.0.300", 0, "'10.0.0.300' is not an IP address"),
        ("dst 10.0.0.1/33", 4, "'/33' is not a prefix length of 0 to 32"),
        ("(qpn 1", 6, "expected ')', the expression ends"),
        ("qpn 1 qpn 2", 6, "expected 'and', 'or' or the end, found 'qpn'"),
        (
            "service tcp",
            8,
            "expected a service: rc, uc, rd, ud, xrc, cnp, mrc or vendor, found 'tcp'",
        ),
        (
            "qpn 1 && qpn 2",
            6,
            "expected 'and', 'or' or the end, found '&&'; hint: did you mean 'and'?",
        ),
        (
            "10.0.0.1 => 10.0.0.2",
            9,
            "expected 'and', 'or' or the end, found '='; hint: did you mean '->'?",
        ),
        ("", 0, ""),
    ];
    for (expression, at, message) in cases {
        let error = Filter::parse(expression).unwrap_err();
        assert_eq!(error.at, at, "{expression}");
        assert!(
            message.is_empty() || error.message == message,
            "{expression}: {}",
            error.message
        );
    }
    for (expression, hint) in [
        ("servce rc", "did you mean 'service'?"),
        ("qpn=0x11", "hint: write a test without '='"),
        ("sport 4711", "hint: all RoCEv2 goes to UDP port 4791"),
        ("ip 10.0.0.1", "did you mean 'host'?"),
    ] {
        let error = Filter::parse(expression).unwrap_err();
        assert!(error.message.contains(hint), "{expression}: {}", error.message);
    }
    let shown = Filter::parse("qpn 1 xor qpn 2").unwrap_err().to_string();
    assert_eq!(
        shown,
        "expected 'and', 'or' or the end, found 'xor'\n  qpn 1 xor qpn 2\n        ^"
    );
}

#[test]
fn deep_nesting_is_refused_not_recursed() {
    assert!(Filter::parse(&"not ".repeat(100_000)).is_err());
    assert!(Filter::parse(&"(".repeat(100_000)).is_err());
}

#[test]
fn long_expressions_do_not_recurse() {
    for word in ["or", "and"] {
        let text = vec!["qpn 1"; 200_000].join(&format!(" {word} "));
        let filter = Filter::parse(&text).unwrap();
        assert!(!filter.matches(&packet()), "its queue pair is another one");
        drop(filter.clone());
    }
}
