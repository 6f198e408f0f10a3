//! Links of equal cost: by taps on them and by counters of their ports.

use roce_model::{Counter, TapRow};

use super::super::super::Settings;
use super::super::super::rows::{at_tap, flow_to};
use super::readings::{RATE, SECOND, leaf_spine, long, reads, run, shows, text};
use super::*;

/// Taps on uplinks that were captured from 0 to 10 ms.
fn taps(count: u32) -> Vec<TapRow> {
    (0..count)
        .map(|tap| TapRow {
            tap: TapId(tap),
            input: format!("uplink{}.pcap", tap + 1).into(),
            first_time: Some(Time(0)),
            last_time: Some(Time(10 * MS)),
            ..TapRow::default()
        })
        .collect()
}

/// Uplinks from h1 to h3 with the given numbers of flows, the bytes of each flow, and `ce` marked packets in each flow of the first.
fn uplinks(links: &[(u32, u64)], ce: u64, link_rate: Option<u64>) -> RunSummary {
    let mut run = TestRun::with(Settings {
        link_rate,
        ..Settings::default()
    });
    run.summary.taps = taps(u32::try_from(links.len()).unwrap());
    let mut qpn = 0x100;
    for (tap, (flows, wire_bytes)) in (0..).zip(links) {
        for _ in 0..*flows {
            let mut row = flow_to(1, 3, qpn);
            qpn += 1;
            row.wire_bytes = *wire_bytes;
            if tap == 0 {
                (row.ce, row.ect0) = (ce, 1_000 - ce);
            }
            run.closed(&at_tap(row, tap));
        }
    }
    run.conclude()
}

/// Bytes of a flow, for a link that eight of them fill.
const EIGHTH: u64 = 1_082_000;

#[test]
fn flows_share_a_link_that_carries_as_many_bytes_as_the_other() {
    let found = uplinks(&[(8, EIGHTH), (1, 8 * EIGHTH)], 200, None);
    let finding = fired(&found, "path.imbalance");
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert_eq!(
        (
            count(finding, "flows"),
            count(finding, "flows_on_busiest"),
            count(finding, "flows_on_idlest")
        ),
        (9, 8, 1)
    );
    assert_eq!(
        (text(finding, "busiest"), text(finding, "idlest")),
        ("uplink1", "uplink2")
    );
    // Spread, 4.5 would share a link: 1 - 4.5/8.
    assert!((number(finding, "lost_share") - 0.4375).abs() < 1e-9);
    // 8 flows over a mean of 4.5.
    assert!((number(finding, "flows_over_mean") - 16.0 / 9.0).abs() < 1e-9);
    // 1,082,000 bytes in 10 ms.
    assert!((number(finding, "rate_bps") - 865_600_000.0).abs() < 1.0);
    assert!((number(finding, "idlest_rate_bps") - 6_924_800_000.0).abs() < 1.0);
}

#[test]
fn three_flows_collide_while_links_idle() {
    // Flows of three pairs of hosts on uplink1; a few packets from h1 to h6 took uplink2.
    let mut run = TestRun::new();
    run.summary.taps = taps(2);
    for (from, to) in [(1, 4), (2, 5), (3, 6)] {
        let mut row = flow_to(from, to, 0x100);
        (row.ce, row.ect0) = (100, 900);
        run.closed(&row);
    }
    let mut small = flow_to(1, 6, 0x200);
    (small.wire_bytes, small.data_packets, small.ect0) = (1_000, 1, 1);
    run.closed(&at_tap(small, 1));
    let found = run.conclude();
    let finding = fired(&found, "path.imbalance");
    assert_eq!(
        (count(finding, "flows_on_busiest"), count(finding, "idle_links")),
        (3, 1)
    );
    // Spread, 1.5 would share a link.
    assert!((number(finding, "lost_share") - 0.5).abs() < 1e-9);
    assert!(
        finding.summary.contains("1 of 2 links idle"),
        "{}",
        finding.summary
    );
}

#[test]
fn what_costs_nothing_is_no_finding() {
    let links = [(8, EIGHTH), (1, 8 * EIGHTH)];
    // No mark, and nobody knows how fast the links are.
    assert!(finding(&uplinks(&links, 0, None), "path.imbalance").is_none());
    // 8 flows of 1.082 MB in 10 ms are 6.92 Gbit/s: at 11.6 Gbit/s 59.7 %, at 11.5 Gbit/s 60.2 %.
    assert!(finding(&uplinks(&links, 0, Some(11_600_000_000)), "path.imbalance").is_none());
    let found = uplinks(&links, 0, Some(11_500_000_000));
    assert!(fired(&found, "path.imbalance").summary.contains("60 %"));
    // Three to one is 1.5 times the mean; five to two is less.
    assert!(
        finding(
            &uplinks(&[(6, EIGHTH), (2, 3 * EIGHTH)], 200, None),
            "path.imbalance"
        )
        .is_some()
    );
    assert!(
        finding(
            &uplinks(&[(5, EIGHTH), (2, 3 * EIGHTH)], 200, None),
            "path.imbalance"
        )
        .is_none()
    );
    // A flow that is as fast as each of eight others leaves room on its link.
    assert!(finding(&uplinks(&[(8, EIGHTH), (1, EIGHTH)], 200, None), "path.imbalance").is_some());
    // Two flows and one: no other place is better.
    assert!(
        finding(
            &uplinks(&[(2, EIGHTH), (1, 2 * EIGHTH)], 200, None),
            "path.imbalance"
        )
        .is_none()
    );
}

#[test]
fn a_link_below_nine_tenths_of_its_rate_may_not_be_the_limit() {
    let at = |link_rate: u64| {
        let found = uplinks(&[(8, EIGHTH), (1, 8 * EIGHTH)], 0, Some(link_rate));
        let finding = fired(&found, "path.imbalance");
        (finding.severity, finding.confidence)
    };
    // 8 flows of 1,082,000 bytes in 10 ms are 6.9248 Gbit/s: 90.05 % of 7.69 Gbit/s, 89.93 % of 7.7 Gbit/s.
    assert_eq!(at(7_690_000_000), (Severity::Warning, Confidence::Medium));
    assert_eq!(at(7_700_000_000), (Severity::Info, Confidence::Low));
}

#[test]
fn so_few_flows_cannot_be_spread() {
    // One flow on each of two links, of which one sends much more.
    let mut run = TestRun::new();
    run.summary.taps = taps(2);
    let mut large = flow_to(1, 3, 0x100);
    (large.wire_bytes, large.ce) = (100_000_000, 500);
    run.closed(&at_tap(large, 0));
    run.closed(&at_tap(flow_to(1, 3, 0x101), 1));
    assert!(finding(&run.conclude(), "path.imbalance").is_none());
}

#[test]
fn taps_along_one_way_are_no_alternatives() {
    // Both taps see all flows.
    let mut run = TestRun::new();
    run.summary.taps = taps(2);
    for number in 0..9 {
        let mut row = flow_to(1, 3, 0x100 + number);
        row.ce = 200;
        run.closed(&at_tap(row.clone(), 0));
        if number < 2 {
            run.closed(&at_tap(row, 1));
        }
    }
    assert!(finding(&run.conclude(), "path.imbalance").is_none());
    // Links of different hosts: no two hosts have flows on both.
    let mut run = TestRun::new();
    run.summary.taps = taps(2);
    for number in 0..9 {
        let mut row = flow_to(if number < 8 { 1 } else { 2 }, 3, 0x100 + number);
        row.ce = 200;
        run.closed(&at_tap(row, u32::from(number >= 8)));
    }
    assert!(finding(&run.conclude(), "path.imbalance").is_none());
}

/// Uplinks of leaf1 that sent these shares of their rate for two seconds.
fn ports(one: f64, other: f64, flows: &[FlowRow]) -> RunSummary {
    let sent = |at: &str, share: f64| {
        reads(
            at,
            Counter::SwitchInterfaceTransmittedBytes,
            3,
            &[share * RATE, share * RATE],
        )
    };
    let readings = [
        sent("leaf1:u1", one),
        sent("leaf1:u2", other),
        shows("leaf1:u1", Counter::SwitchInterfaceRate, RATE),
        shows("leaf1:u2", Counter::SwitchInterfaceRate, RATE),
    ];
    run(&leaf_spine(2), flows, &readings)
}

#[test]
fn ports_of_one_switch_by_their_counters() {
    let flows = [long(1, 3), long(2, 3), long(1, 4), long(2, 4)];
    let found = ports(0.95, 0.2, &flows);
    let finding_of = fired(&found, "path.imbalance");
    assert_eq!(
        (finding_of.severity, finding_of.confidence),
        (Severity::Info, Confidence::Low),
        "one flow alone may fill it"
    );
    assert_eq!(
        (text(finding_of, "busiest"), text(finding_of, "idlest")),
        ("leaf1 u1", "leaf1 u2")
    );
    assert_eq!(finding_of.first_time, Some(Time(3 * SECOND)));
    // Nobody knows the flows.
    let found = ports(0.95, 0.2, &[]);
    let unknown = fired(&found, "path.imbalance");
    assert_eq!(
        (unknown.severity, unknown.confidence),
        (Severity::Info, Confidence::Low)
    );
    // One flow cannot use two links; the flow within leaf1 uses none of them.
    assert!(finding(&ports(0.95, 0.2, &[long(1, 3), long(1, 2)]), "path.imbalance").is_none());
    // Below 60 % of the rate it costs nothing; 0.6 and 0.21 are less than 1.5 times their mean.
    assert!(finding(&ports(0.59, 0.0, &flows), "path.imbalance").is_none());
    assert!(finding(&ports(0.6, 0.21, &flows), "path.imbalance").is_none());
    assert!(finding(&ports(0.6, 0.19, &flows), "path.imbalance").is_some());
}

#[test]
fn ports_down_from_a_spine_are_no_alternatives() {
    let sent = |at: &str, share: f64| reads(at, Counter::SwitchInterfaceTransmittedBytes, 3, &[share * RATE]);
    let readings = [
        sent("spine1:d1", 0.95),
        sent("spine1:d2", 0.0),
        shows("spine1:d1", Counter::SwitchInterfaceRate, RATE),
        shows("spine1:d2", Counter::SwitchInterfaceRate, RATE),
    ];
    let found = run(&leaf_spine(2), &[long(3, 1), long(4, 1)], &readings);
    assert!(finding(&found, "path.imbalance").is_none());
}
