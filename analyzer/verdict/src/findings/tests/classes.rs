//! Classes of traffic, source ports, path MTUs.

use super::super::super::rows::flow_to;
use super::*;

fn class_of(dscp: Option<u8>, pcp: Option<u8>, change: fn(&mut FlowRow)) -> Option<FindingRow> {
    let mut run = TestRun::new();
    run.summary.cnp_receivers = vec![CnpReceiver {
        dscp,
        pcp,
        ..cnps(2, 1, 7)
    }];
    let mut data = flow(1, 2);
    change(&mut data);
    run.closed(&data);
    finding(&run.conclude(), "cnp.class").cloned()
}

#[test]
fn cnps_need_a_class_of_their_own() {
    assert_eq!(class_of(Some(48), None, |_| {}), None, "48 beside the data's 26");
    let none = class_of(Some(0), None, |_| {}).unwrap();
    assert_eq!(
        none.summary,
        "7 CNPs with DSCP 0, 10.0.0.2 to 10.0.0.1 (data DSCP 26)"
    );
    assert_eq!(
        (none.severity, none.first_time),
        (Severity::Warning, Some(Time(MS)))
    );
    let shared = class_of(Some(26), None, |_| {}).unwrap();
    assert_eq!(
        shared.summary,
        "7 CNPs in the class of the data, 10.0.0.2 to 10.0.0.1 (data DSCP 26)"
    );
    assert_eq!(shared.severity, Severity::Info);
    // Nothing is classed at all: CNPs share the data's class.
    assert_eq!(
        class_of(Some(0), None, |row| row.dscp = Some(0))
            .unwrap()
            .severity,
        Severity::Info
    );
    // A priority of their own is enough.
    assert_eq!(class_of(Some(26), Some(6), |row| row.pcp = Some(3)), None);
    assert!(class_of(Some(26), Some(3), |row| row.pcp = Some(3)).is_some());
    assert_eq!(class_of(None, None, |_| {}), None, "no IP header");
    assert_eq!(
        class_of(Some(26), None, |row| row.destination = host(3)),
        None,
        "no data that they slow"
    );
}

#[test]
fn directions_of_a_connection_in_different_classes() {
    let verdict = |there: fn(&mut FlowRow), back_again: fn(&mut FlowRow)| {
        let mut data = flow(1, 2);
        let mut other = flow(2, 1);
        other.flow_id = data.peer_flow_id.unwrap();
        other.peer_flow_id = Some(data.flow_id);
        there(&mut data);
        back_again(&mut other);
        finding(&run_of(&[&data, &other]), "dscp.mismatch").cloned()
    };
    let row = verdict(|_| {}, |row| (row.dscp, row.data_packets) = (Some(0), 100)).unwrap();
    assert_eq!((row.severity, count(&row, "connections")), (Severity::Warning, 1));
    assert!(
        row.summary
            .starts_with("the directions of 1 connection differ in class: "),
        "{}",
        row.summary
    );
    assert!(
        row.summary.contains("DSCP 26") && row.summary.contains("DSCP 0"),
        "{}",
        row.summary
    );
    assert_eq!(
        verdict(|_| {}, |row| (row.dscp, row.data_packets) = (Some(0), 99)),
        None,
        "too few"
    );
    assert_eq!(verdict(|_| {}, |_| {}), None);
    assert!(verdict(|row| row.pcp = Some(3), |row| row.pcp = Some(0)).is_some());
    assert_eq!(
        verdict(|row| row.pcp = Some(3), |_| {}),
        None,
        "a tag on one side only says nothing"
    );
    // A flow that changes its DSCP.
    let row = verdict(|row| row.dscp_values = 2, |_| {}).unwrap();
    assert_eq!(
        row.summary,
        "1 flow changed the DSCP: 10.0.0.1 > 10.0.0.2 QP 0x11"
    );
    assert_eq!(
        verdict(|row| (row.dscp_values, row.data_packets) = (2, 99), |_| {}),
        None
    );
}

#[test]
fn many_queue_pairs_on_few_ports() {
    let verdict = |flows: u16, ports: u16, change: fn(&mut FlowRow)| {
        let mut run = TestRun::new();
        for at in 0..flows {
            let mut row = flow_to(1, 2, 0x100 + u32::from(at));
            row.source_port = Some(0xc000 + at % ports);
            change(&mut row);
            run.closed(&row);
        }
        finding(&run.conclude(), "ecmp.entropy").cloned()
    };
    let row = verdict(8, 2, |_| {}).unwrap();
    assert_eq!(
        row.summary,
        "ECMP cannot spread 1 pair of hosts: 10.0.0.1 to 10.0.0.2: 8 flows on 2 ports"
    );
    assert_eq!((row.severity, count(&row, "ports")), (Severity::Info, 2));
    assert_eq!(
        verdict(8, 2, |row| row.ce = 1).unwrap().severity,
        Severity::Warning
    );
    assert_eq!(verdict(7, 1, |_| {}), None, "few flows");
    assert_eq!(verdict(8, 3, |_| {}), None, "3 of 8 is more than a quarter");
    assert_eq!(
        verdict(8, 1, |row| row.source_ports = 5),
        None,
        "each flow sprays"
    );
    assert_eq!(verdict(8, 1, |row| row.payload_bytes = 0), None, "ACKs only");
}

#[test]
fn packets_smaller_than_they_could_be() {
    let verdict = |mtu: u32, others: &[(u8, u8, u32)], payload: u64| {
        let mut small = flow(1, 2);
        (small.path_mtu, small.payload_bytes) = (Some(mtu), payload);
        let mut run = TestRun::new();
        run.closed(&small);
        for (source, destination, mtu) in others {
            let mut row = flow(*source, *destination);
            row.path_mtu = Some(*mtu);
            run.closed(&row);
        }
        finding(&run.conclude(), "mtu").cloned()
    };
    let row = verdict(512, &[], 1_000_000).unwrap();
    assert_eq!(
        row.summary,
        "1 flow with a path MTU below what the hosts take: 10.0.0.1 > 10.0.0.2 QP 0x11 with 512 instead of 1024"
    );
    assert_eq!((row.severity, count(&row, "path_mtu")), (Severity::Info, 512));
    assert_eq!(verdict(512, &[], 999_999), None);
    assert_eq!(verdict(1024, &[], 1_000_000), None);
    // Both hosts use 4096 with others.
    let row = verdict(1024, &[(1, 3, 4096), (4, 2, 4096)], 1_000_000).unwrap();
    assert_eq!(count(&row, "possible"), 4096);
    assert_eq!(
        verdict(1024, &[(1, 3, 4096)], 1_000_000),
        None,
        "only one of them does"
    );
}
