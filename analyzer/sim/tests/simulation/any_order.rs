//! Receivers that take packets in any order, and selective recovery.

use roce_sim::truth::{NakKind, TriggerKind};

use super::truth_of;

/// A message of 400 packets over four paths, and what goes wrong.
fn spread(nic: &str, flow: &str, more: &str) -> String {
    format!(
        r#"
        duration = "20ms"
        [network]
        hosts = 2
        rate = "100Gbps"
        spray = {{ paths = 4, skew = "12us" }}
        [nic]
        out_of_order = true
        timeout = "1ms"
        {nic}
        [[flow]]
        from = "h1"
        to = "h2"
        count = 1
        message = "400KiB"
        {flow}
        [[tap]]
        at = "h1"
        [[tap]]
        at = "h2"
        {more}
        "#
    )
}

const DROP: &str = "[[impairment]]\nfrom = \"leaf1\"\nto = \"h2\"\nonly = \"request\"\n";
const DROP_BACK: &str = "[[impairment]]\nfrom = \"leaf1\"\nto = \"h1\"\nonly = \"read-response\"\n";

#[test]
fn reordering_alone_brings_no_nak() {
    for op in ["write", "send", "read"] {
        let truth = truth_of(&spread("", &format!("op = \"{op}\""), ""));
        assert!(
            truth.naks.is_empty() && truth.retransmission_runs.is_empty(),
            "{op}"
        );
        let messages: u64 = truth.flows.iter().map(|flow| flow.messages).sum();
        assert_eq!(messages, 1, "{op}");
        let data: u64 = truth.flows.iter().map(|flow| flow.data_packets).sum();
        assert_eq!(data, 400, "{op}");
    }
}

#[test]
fn a_loss_is_named_after_its_time() {
    let truth = truth_of(&spread(
        "ooo_nak_after = \"50us\"",
        "",
        &format!("{DROP}drop = [100, 102, 250]"),
    ));
    assert_eq!((truth.losses.len(), truth.naks.len()), (3, 3));
    for nak in &truth.naks {
        assert_eq!(nak.kind, NakKind::Sequence);
        let hole = truth.taps[1]
            .holes
            .iter()
            .find(|hole| hole.psn == nak.psn)
            .unwrap();
        // A hole is seen when a later packet comes; the tap stamps it when the NIC does.
        assert!(nak.sent >= hole.time + 50_000, "{} {}", nak.sent, hole.time);
        assert!(truth.losses.iter().any(|loss| loss.psn == nak.psn));
    }
    // Each lost packet is retransmitted, once, and nothing else.
    assert_eq!(truth.flows[0].packets_retransmitted, 3);
    assert_eq!(truth.flows[0].messages, 1);
}

#[test]
fn or_when_later_packets_are_far_enough() {
    // Four paths over 12 us at 100 Gb/s: some 135 packets of 1,106 bytes pass in that time. 200 tell a loss.
    let truth = truth_of(&spread(
        "ooo_nak_packets = 200",
        "",
        &format!("{DROP}drop = [20]"),
    ));
    assert_eq!((truth.naks.len(), truth.flows[0].packets_retransmitted), (1, 1));
    assert_eq!(truth.naks[0].psn, truth.losses[0].psn);
    // Three, as TCP without reordering has it, take late packets for lost ones, and they are sent twice.
    let truth = truth_of(&spread("ooo_nak_packets = 3", "", ""));
    assert!(truth.losses.is_empty() && !truth.naks.is_empty());
    assert!(truth.flows[0].packets_retransmitted > 0);
    assert_eq!(truth.flows[0].messages, 1);
}

#[test]
fn with_neither_the_timer_must_expire() {
    let truth = truth_of(&spread("ack_every = 1", "", &format!("{DROP}drop = [100]")));
    assert!(truth.naks.is_empty());
    let [run] = truth.retransmission_runs.as_slice() else {
        panic!("{:?}", truth.retransmission_runs);
    };
    assert_eq!(
        (run.trigger, run.packets, run.first_psn),
        (TriggerKind::Timeout, 1, truth.losses[0].psn)
    );
    assert_eq!(truth.flows[0].messages, 1);
}

#[test]
fn a_read_is_requested_again_for_what_is_missing() {
    let drop = format!("{DROP_BACK}drop = [100, 101, 103, 399]");
    let truth = truth_of(&spread("ooo_nak_after = \"50us\"", "op = \"read\"", &drop));
    assert_eq!(truth.losses.len(), 4);
    // Retransmitted responses: the lost ones, and no others.
    let responses = truth.flows.iter().find(|flow| flow.data_packets > 0).unwrap();
    assert_eq!(
        (responses.packets_retransmitted, responses.data_packets),
        (4, 404)
    );
    assert_eq!(truth.flows.iter().map(|flow| flow.messages).sum::<u64>(), 1);
    assert!(
        truth
            .retransmission_runs
            .iter()
            .any(|run| run.trigger == TriggerKind::ImpliedNak)
    );
}

#[test]
fn a_lost_read_request_is_sent_again() {
    for recovery in ["out_of_order = true", "out_of_order = false"] {
        let toml = spread(
            "ooo_nak_after = \"50us\"",
            "op = \"read\"",
            &format!("{DROP}only = \"read-request\"\ndrop = [2]"),
        );
        let toml = toml
            .replace("only = \"request\"\nonly", "only")
            .replace("out_of_order = true", recovery)
            .replace("spray = { paths = 4, skew = \"12us\" }", "")
            .replace("count = 1", "count = 6\noutstanding = 3");
        let truth = truth_of(&toml);
        assert_eq!(truth.losses.len(), 1, "{recovery}");
        assert_eq!(
            truth.flows.iter().map(|flow| flow.messages).sum::<u64>(),
            6,
            "{recovery}"
        );
    }
}

#[test]
fn selective_recovery_survives_lost_retransmissions() {
    // 2 % of 4,000 packets are some 80. A quarter of the retransmissions is lost too, and that needs the
    // timer.
    for nic in [
        "recovery = \"selective\"\nout_of_order = false",
        "ooo_nak_after = \"30us\"",
        "ooo_nak_packets = 200",
    ] {
        let toml = spread(
            nic,
            "",
            &format!("{DROP}loss = 0.02\nlose_retransmissions = 0.25"),
        )
        .replace("duration = \"20ms\"", "duration = \"1s\"")
        .replace("count = 1", "count = 10")
        .replace("timeout = \"1ms\"", "timeout = \"1ms\"\nack_every = 1");
        let toml = if nic.contains("false") {
            toml.replace("out_of_order = true\n", "")
                .replace("spray = { paths = 4, skew = \"12us\" }", "")
        } else {
            toml
        };
        let truth = truth_of(&toml);
        let sent_again = truth.flows[0].packets_retransmitted;
        assert_eq!(truth.flows[0].messages, 10, "{nic}");
        assert!(truth.losses.iter().any(|loss| loss.attempt > 0), "{nic}");
        // Each loss is repaired once, and a timer that expires while the ACK is on its way adds little.
        let lost = truth.losses.len() as u64;
        assert!(
            (lost..=lost + lost / 4).contains(&sent_again),
            "{nic}: {lost} lost, {sent_again} retransmitted"
        );
    }
}
