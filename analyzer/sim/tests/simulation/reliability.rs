//! Loss and recovery: retransmissions, their causes, and the evidence that taps have.

use roce_capture::{Options, Reader};
use roce_sim::truth::{HoleClass, LossReason, NakKind, TriggerKind};
use roce_sim::{Scenario, simulate_in_memory};
use roce_wire::{Content, LinkType, decode, icrc};

use super::truth_of;

fn two_hosts(flow: &str, more: &str) -> String {
    format!(
        r#"
        duration = "4ms"
        [network]
        hosts = 2
        rate = "25Gbps"
        [nic]
        timeout = "200us"
        [[tap]]
        at = "h1"
        [[tap]]
        at = "h2"
        [[flow]]
        from = "h1"
        to = "h2"
        {flow}
        {more}
        "#
    )
}

const DROP: &str = "[[impairment]]\nfrom = \"leaf1\"\nto = \"h2\"\n";

#[test]
fn a_lost_packet_is_asked_for() {
    let truth = truth_of(&two_hosts(
        "count = 1\nmessage = \"100KiB\"",
        &format!("{DROP}drop = [10]"),
    ));
    let [loss] = truth.losses.as_slice() else {
        panic!("{:?}", truth.losses);
    };
    assert_eq!((loss.attempt, loss.place.as_str()), (0, "leaf1->h2"));
    assert_eq!(loss.recorded_by, ["h1"]);
    let [nak] = truth.naks.as_slice() else {
        panic!("{:?}", truth.naks);
    };
    assert_eq!((nak.kind, nak.psn), (NakKind::Sequence, loss.psn));
    let [run] = truth.retransmission_runs.as_slice() else {
        panic!("{:?}", truth.retransmission_runs);
    };
    assert_eq!((run.trigger, run.first_psn), (TriggerKind::Nak, loss.psn));
    assert!(run.packets > 1, "go-back-N");
    // The receiver's tap has the hole, the sender's tap the packet.
    let [hole] = truth.taps[1].holes.as_slice() else {
        panic!("{:?}", truth.taps[1].holes);
    };
    assert_eq!(
        (hole.psn, hole.class, hole.observable),
        (loss.psn, HoleClass::NetworkLost, true)
    );
    assert!(truth.taps[0].holes.is_empty());
    assert_eq!(truth.taps[0].lost_downstream[0].psn, loss.psn);
    assert!(truth.taps[1].lost_downstream.is_empty());
    assert_eq!(truth.flows[0].messages, 1);
}

#[test]
fn a_second_loss_in_the_window_is_ambiguous() {
    let truth = truth_of(&two_hosts(
        "count = 1\nmessage = \"100KiB\"",
        &format!("{DROP}drop = [10, 12]"),
    ));
    let holes: Vec<_> = truth.taps[1]
        .holes
        .iter()
        .map(|hole| (hole.class, hole.cause))
        .collect();
    assert_eq!(
        holes,
        [
            (HoleClass::NetworkLost, HoleClass::NetworkLost),
            (HoleClass::Ambiguous, HoleClass::NetworkLost)
        ]
    );
    assert_eq!(truth.naks.len(), 1, "one NAK for the window");
}

#[test]
fn selective_recovery_sends_only_what_was_lost() {
    let toml = two_hosts(
        "count = 1\nmessage = \"100KiB\"",
        &format!("{DROP}drop = [10, 12]"),
    );
    let truth = truth_of(&toml.replace("[nic]", "[nic]\nrecovery = \"selective\""));
    let retransmitted: u64 = truth.retransmission_runs.iter().map(|run| run.packets).sum();
    assert_eq!((truth.naks.len(), retransmitted), (2, 2));
    assert!(
        truth.taps[1]
            .holes
            .iter()
            .all(|hole| hole.class == HoleClass::NetworkLost)
    );
    assert_eq!(truth.flows[0].messages, 1);
}

#[test]
fn the_loss_of_a_last_packet_needs_the_timer() {
    // 10 KiB are 10 packets: the last one is number 9.
    let truth = truth_of(&two_hosts(
        "count = 1\nmessage = \"10KiB\"",
        &format!("{DROP}drop = [9]"),
    ));
    assert!(truth.naks.is_empty());
    let [run] = truth.retransmission_runs.as_slice() else {
        panic!("{:?}", truth.retransmission_runs);
    };
    assert_eq!(run.trigger, TriggerKind::Timeout);
    assert!((200_000..210_000).contains(&run.silence_ns), "{}", run.silence_ns);
    assert_eq!(truth.flows[0].messages, 1);
}

#[test]
fn a_lost_read_response_implies_a_nak() {
    let drop = "[[impairment]]\nfrom = \"h2\"\nto = \"leaf1\"\nonly = \"data\"\ndrop = [5]";
    let truth = truth_of(&two_hosts("op = \"read\"\ncount = 1\nmessage = \"20KiB\"", drop));
    let [run] = truth.retransmission_runs.as_slice() else {
        panic!("{:?}", truth.retransmission_runs);
    };
    assert_eq!((run.trigger, run.packets), (TriggerKind::ImpliedNak, 1));
    assert_eq!(
        truth.taps[0]
            .flows
            .iter()
            .map(|flow| flow.response_missing)
            .sum::<u64>(),
        1
    );
    assert_eq!(truth.flows[0].messages, 1);
}

#[test]
fn a_receiver_without_buffers_says_so() {
    let truth = truth_of(&two_hosts(
        "op = \"send\"\nmessage = \"1KiB\"\ncount = 6\noutstanding = 6\nreceives = 2\nrefill = \"300us\"",
        "",
    ));
    assert!(truth.naks.iter().all(|nak| nak.kind == NakKind::Rnr));
    assert!(!truth.naks.is_empty());
    assert!(
        truth
            .retransmission_runs
            .iter()
            .all(|run| run.trigger == TriggerKind::Rnr)
    );
    assert_eq!(truth.flows[0].messages, 6);
    assert_eq!(truth.losses.len(), 0);
}

#[test]
fn what_a_tap_loses_is_not_lost_by_the_network() {
    let toml = two_hosts("interval = \"50us\"\nmessage = \"20KiB\"", "");
    let truth = truth_of(&toml.replace("at = \"h2\"", "at = \"h2\"\nloss = { every = 100, lose = 1 }"));
    assert!(truth.losses.is_empty() && truth.retransmission_runs.is_empty());
    let tap = &truth.taps[1];
    assert!(tap.records_lost > 5);
    assert!(!tap.holes.is_empty());
    for hole in &tap.holes {
        assert_eq!(hole.class, HoleClass::CaptureLost);
    }
}

#[test]
fn what_is_overtaken_is_reordered() {
    let drop = format!("{DROP}reorder = 0.01\nreorder_delay = \"2us\"");
    let toml = two_hosts("interval = \"50us\"\nmessage = \"20KiB\"", &drop);
    let truth = truth_of(&toml.replace("[nic]", "[nic]\nrecovery = \"selective\""));
    assert!(truth.losses.is_empty());
    let holes = &truth.taps[1].holes;
    assert!(!holes.is_empty());
    assert!(holes.iter().all(|hole| hole.class == HoleClass::Reordered));
}

#[test]
fn a_damaged_packet_is_recorded_and_dropped() {
    let drop = format!("{DROP}corrupt = 0.01");
    let toml = two_hosts("interval = \"50us\"\nmessage = \"20KiB\"", &drop);
    let scenario = Scenario::parse(&toml.replace("at = \"h2\"", "at = \"h2\"\nsnaplen = 0")).unwrap();
    let (truth, captures) = simulate_in_memory(&scenario).unwrap();
    assert!(!truth.losses.is_empty());
    assert!(truth.losses.iter().all(|loss| loss.reason == LossReason::Icrc));
    // The receiver's tap has them all, with an ICRC that is wrong.
    let file = std::io::Cursor::new(captures[1].bytes.clone());
    let mut reader = Reader::from_read("h2", Box::new(file), &Options::default()).unwrap();
    let mut bad = 0;
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            let bytes = batch.bytes(frame);
            let Content::Roce(roce) = decode(LinkType::ETHERNET, bytes, frame.original).content else {
                panic!("no RoCE");
            };
            bad += usize::from(icrc::check(bytes, &roce) == icrc::Icrc::Bad);
        }
    }
    assert_eq!(bad, truth.losses.len());
    let finding = truth
        .findings
        .iter()
        .find(|finding| finding.id == "icrc.bad")
        .unwrap();
    assert_eq!(finding.taps, ["h2"]);
}

#[test]
fn a_fatal_nak_ends_a_connection() {
    let truth = truth_of(&two_hosts("interval = \"50us\"\nfatal = \"1ms\"", ""));
    let [nak] = truth.naks.as_slice() else {
        panic!("{:?}", truth.naks);
    };
    assert_eq!(nak.kind, NakKind::Fatal);
    assert!(truth.flows[0].last_time.unwrap() < 1_100_000);
}
