//! Links that go down, queue pairs that break, memory that stalls.

use super::*;

#[test]
fn links_of_infiniband_are_judged_by_change() {
    let port = "mlx5_0:1";
    let of = |symbols: [f64; 2], recoveries: [f64; 2], downs: [f64; 2]| {
        found_in(
            &[
                count(port, Counter::PhySymbolErrors, symbols[0], symbols[1]),
                count(port, Counter::PhyLinkRecoveries, recoveries[0], recoveries[1]),
                count(port, Counter::PhyLinkDowns, downs[0], downs[1]),
                count(port, Counter::PortReceivedPackets, 0.0, 1e9),
            ],
            10,
        )
    };
    // Totals of a life are nothing.
    assert_eq!(of([700.0, 700.0], [3.0, 3.0], [2.0, 2.0]), []);
    // 41 of 1e9 packets: 4.1e-8. One link of two events.
    let found = of([700.0, 741.0], [3.0, 5.0], [2.0, 3.0]);
    assert_eq!(
        ids(&found),
        [
            ("counters.broken_frames", Severity::Warning),
            ("counters.link_unsteady", Severity::Warning)
        ]
    );
    assert_eq!(
        found[0].text,
        "41 symbols received in error in 10.0 s: a cable, optics or a connector"
    );
    assert_eq!(
        found[1].text,
        "the link went down 1 time, and recovered from errors 2 times in 10.0 s: nothing passes meanwhile"
    );
    // IEEE 802.3's bit error ratio is ten in 1e9.
    assert_eq!(
        ids(&of([700.0, 709.0], [3.0, 3.0], [2.0, 2.0])),
        [("counters.broken_frames", Severity::Info)]
    );
    // 16 bits and 8 bits: they stop there, and no change is no sign.
    let full = of([65_535.0, 65_535.0], [255.0, 255.0], [2.0, 2.0]);
    assert_eq!(
        ids(&full),
        [
            ("counters.at_limit", Severity::Info),
            ("counters.at_limit", Severity::Info)
        ]
    );
    assert!(
        full[0].text.starts_with("symbol_error stands at 65,535"),
        "{}",
        full[0].text
    );
}

#[test]
fn changed_packets_are_a_share_of_those_received() {
    let port = "mlx5_0:1";
    let of = |errors: f64, packets: f64| {
        let mut pairs = vec![count(port, Counter::PortIcrcErrors, 4.0, 4.0 + errors)];
        if packets > 0.0 {
            pairs.push(count(port, Counter::PortReceivedPackets, 0.0, packets));
        }
        found_in(&pairs, 10)
    };
    assert_eq!(of(0.0, 1e9), []);
    let found = of(600.0, 1e9);
    assert_eq!(ids(&found), [("counters.icrc", Severity::Warning)]);
    assert_eq!(
        found[0].text,
        "600 packets with a wrong ICRC, less than 0.0001 % of those received in 10.0 s: a device on the way changed them, and the \
         adapter dropped them"
    );
    assert_eq!(ids(&of(9.0, 1e9)), [("counters.icrc", Severity::Info)]);
    assert_eq!(ids(&of(9.0, 0.0)), [("counters.icrc", Severity::Warning)]);
}

#[test]
fn used_up_retries_are_stated_with_their_timeouts() {
    let found = found_in(
        &[
            count("rxe0:1", Counter::PortRetriesExceeded, 2.0, 4.0),
            count("rxe0:1", Counter::PortAckTimeouts, 10.0, 24.0),
        ],
        10,
    );
    let of_retries = found
        .iter()
        .find(|finding| finding.id == "counters.retries_exceeded");
    let finding = of_retries.unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        finding.text,
        "2 queue pairs used up their retries, beside 14 timeouts in 10.0 s: the peer did not answer, and the connection broke"
    );
    assert_eq!(
        only(&[count("rxe0:1", Counter::PortRetriesExceeded, 2.0, 3.0)])
            .text
            .split(" in ")
            .next(),
        Some("1 queue pair used up its retries")
    );
}

#[test]
fn stalls_of_pcie_are_a_share_and_have_effects() {
    let stalls =
        |seconds: f64| count("ens1", Counter::PcieStalledSeconds, 100.0, 100.0 + seconds).details(&["write"]);
    let last = |share| count("ens1", Counter::PcieStalledRatio, 0.0, share).details(&["write"]);
    let found = found_in(&[stalls(6.0), last(0.45)], 10);
    assert_eq!(ids(&found), [("counters.pcie_stalled", Severity::Warning)]);
    assert_eq!(
        found[0].text,
        "PCIe writes stalled in 6 seconds, 60.0 % of the time, in 10.0 s"
    );
    // One second of a minute: 1.7 %.
    assert_eq!(
        ids(&found_in(&[stalls(1.0)], 60)),
        [("counters.pcie_stalled", Severity::Info)]
    );
    // Packets were dropped meanwhile.
    let dropped = [
        stalls(1.0),
        count("ens1", Counter::NetdevDiscards, 0.0, 9.0).details(&["received"]),
    ];
    let found = found_in(&dropped, 60);
    let finding = found
        .iter()
        .find(|finding| finding.id == "counters.pcie_stalled")
        .unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.text.ends_with(": it discarded 9 received packets"),
        "{}",
        finding.text
    );
    // A present value alone: 45 % of the last second.
    let found = found_in(&[last(0.45)], 10);
    assert_eq!(ids(&found), [("counters.pcie_stalled", Severity::Info)]);
    assert_eq!(found[0].text, "PCIe writes stalled for 45.0 % of the last second");
    assert_eq!(found_in(&[stalls(0.0), last(0.29)], 10), []);
}

#[test]
fn links_of_switches_that_flap_are_named() {
    let changes =
        only(&[count("Ethernet1", Counter::SwitchInterfaceLinkChanges, 4.0, 10.0).details(&["port"])]);
    assert_eq!(
        (changes.id, changes.severity),
        ("counters.link_unsteady", Severity::Warning)
    );
    assert!(
        changes
            .text
            .starts_with("the link changed its state, or was reset, 6 times"),
        "{}",
        changes.text
    );
    let down = only(&[count("Ethernet4", Counter::SwitchInterfaceUp, 1.0, 0.0).details(&["port"])]);
    assert_eq!(
        (down.id, down.severity),
        ("counters.link_unsteady", Severity::Warning)
    );
    let up = only(&[count("Ethernet4", Counter::SwitchInterfaceUp, 0.0, 1.0).details(&["port"])]);
    assert_eq!(up.severity, Severity::Info);
}

#[test]
fn more_stalled_seconds_than_passed_are_doubted() {
    let found = only(&[count("ens1", Counter::PcieStalledSeconds, 0.0, 5_000.0).details(&["write"])]);
    assert_eq!(
        (found.id, found.severity),
        ("counters.pcie_stalled", Severity::Info)
    );
    assert!(
        found.text.contains("more seconds than passed") && !found.text.contains('%'),
        "{}",
        found.text
    );
}

#[test]
fn access_errors_say_whose_request_it_was() {
    let found = only(&[count("mlx5_0:1", Counter::PortAccessErrors, 2.0, 7.0).details(&["responder"])]);
    assert_eq!(
        (found.id, found.severity),
        ("counters.access_errors", Severity::Warning)
    );
    assert!(
        found
            .text
            .starts_with("5 remote access errors in 10.0 s: requests of peers"),
        "{}",
        found.text
    );
}

#[test]
fn used_up_rnr_retries_are_the_peers_program() {
    let found = found_in(
        &[
            count("mlx5_0:1", Counter::PortRnrRetriesExceeded, 0.0, 2.0),
            count("mlx5_0:1", Counter::PortRnrNaksReceived, 0.0, 16.0),
        ],
        10,
    );
    let finding = found
        .iter()
        .find(|finding| finding.id == "counters.retries_exceeded")
        .unwrap();
    assert!(
        finding.text.starts_with(
            "2 queue pairs used up their retries, after 16 RNR NAKs in 10.0 s: the peer's program"
        ),
        "{}",
        finding.text
    );
}
