//! The plan against the packets: classes and path MTUs that are expected.

use roce_model::Expectation;

use super::super::super::Settings;
use super::super::super::rows::flow_to;
use super::*;

fn expecting(text: &[(&str, &str)]) -> Settings {
    let mut expectation = Expectation::default();
    for (key, value) in text {
        expectation.state(key, value).unwrap();
    }
    Settings {
        expectation,
        ..Settings::default()
    }
}

fn conclude(plan: &[(&str, &str)], rows: &[FlowRow]) -> RunSummary {
    let mut run = TestRun::with(expecting(plan));
    run.summary.cnp_receivers = vec![cnps(2, 1, 7)];
    for row in rows {
        run.closed(row);
    }
    run.conclude()
}

fn with_dscp(row: FlowRow, dscp: u8) -> FlowRow {
    FlowRow {
        dscp: Some(dscp),
        ..row
    }
}

#[test]
fn data_in_another_class_than_planned() {
    let rows = [with_dscp(flow(1, 2), 0), with_dscp(flow(3, 2), 0)];
    let run = conclude(&[("dscp", "26")], &rows);
    let found = finding(&run, "dscp.plan").unwrap();
    // 26 x 4 + ECT(0) = 106.
    assert_eq!(
        found.summary,
        "100 % of RoCE data (2000 packets, from 2 senders) has DSCP 0 = priority 0, the plan is 26: NCCL_IB_TC=106"
    );
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Warning, Confidence::High)
    );
    assert!(finding(&run, "dscp.none").is_none(), "the plan says it");
    // As planned, also by priority: 26 >> 3 = 3.
    let planned = conclude(&[("dscp", "26"), ("priority", "3")], &[flow(1, 2)]);
    assert!(finding(&planned, "dscp.plan").is_none());
}

#[test]
fn a_tag_decides_the_priority() {
    let tagged = FlowRow {
        pcp: Some(0),
        ..flow(1, 2)
    };
    let run = conclude(&[("priority", "3")], &[tagged, flow(3, 4)]);
    assert_eq!(
        finding(&run, "dscp.plan").unwrap().summary,
        "50 % of RoCE data (1000 packets, from 10.0.0.1) has DSCP 26 and VLAN priority 0, the plan is priority 3"
    );
}

#[test]
fn a_few_packets_of_another_class_are_no_warning() {
    let few = FlowRow {
        data_packets: 99,
        ..with_dscp(flow(3, 4), 0)
    };
    let run = conclude(&[("dscp", "26")], &[flow(1, 2), few]);
    assert_eq!(finding(&run, "dscp.plan").unwrap().severity, Severity::Info);
}

#[test]
fn no_class_at_all_without_a_plan() {
    let zero = with_dscp(flow(1, 2), 0);
    let run = conclude(&[], std::slice::from_ref(&zero));
    let found = finding(&run, "dscp.none").unwrap();
    assert_eq!(found.severity, Severity::Info);
    assert!(
        found
            .summary
            .starts_with("all RoCE data (1000 packets of 1 flow) has DSCP 0 = priority 0")
    );
    let mixed = conclude(&[], &[zero.clone(), flow(3, 4)]);
    assert!(finding(&mixed, "dscp.none").is_none());
    let tagged = FlowRow { pcp: Some(3), ..zero };
    assert!(finding(&conclude(&[], &[tagged]), "dscp.none").is_none());
}

#[test]
fn other_path_mtus_than_planned() {
    let large = FlowRow {
        path_mtu: Some(4096),
        ..flow_to(3, 4, 0x99)
    };
    let run = conclude(&[("mtu", "4096")], &[flow(1, 2), large.clone()]);
    let found = finding(&run, "mtu").unwrap();
    assert_eq!(
        found.summary,
        "1 flow with path MTU 1024, the plan is 4096: 10.0.0.1 > 10.0.0.2 QP 0x11"
    );
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Warning, Confidence::High)
    );
    assert!(finding(&conclude(&[("mtu", "4096")], &[large]), "mtu").is_none());
}

#[test]
fn cnps_in_another_class_than_planned() {
    let found = |plan: &[(&str, &str)]| finding(&conclude(plan, &[flow(1, 2)]), "cnp.class").cloned();
    // These CNPs have DSCP 48.
    assert_eq!(found(&[("cnp-dscp", "48"), ("cnp-priority", "6")]), None);
    assert_eq!(
        found(&[("cnp-dscp", "26")]).unwrap().summary,
        "7 of 7 CNPs with DSCP 48 = priority 6, 10.0.0.2 to 10.0.0.1; the plan is DSCP 26"
    );
    let by_priority = found(&[("cnp-priority", "7")]).unwrap();
    assert_eq!(by_priority.severity, Severity::Warning);
}
