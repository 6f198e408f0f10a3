//! Packets that the network delivers twice, and the identification of packets.

use std::collections::{BTreeMap, BTreeSet};

use roce_sim::Scenario;
use roce_sim::truth::PacketKind;

use super::{frames, truth_of};

fn duplicated(flow: &str, nic: &str, impairment: &str) -> String {
    format!(
        r#"
        duration = "12ms"
        [network]
        hosts = 2
        rate = "25Gbps"
        [nic]
        {nic}
        [[flow]]
        from = "h1"
        to = "h2"
        count = 40
        message = "32KiB"
        interval = "50us"
        {flow}
        [[tap]]
        at = "h2"
        snaplen = 0
        [[impairment]]
        from = "leaf1"
        to = "h2"
        {impairment}
        "#
    )
}

#[test]
fn a_duplicate_is_the_same_packet_later() {
    let toml = duplicated(
        "",
        "",
        "duplicate = 0.05\nduplicate_after = \"0us..5ms\"\nonly = \"request\"",
    );
    let scenario = Scenario::parse(&toml).unwrap();
    let truth = truth_of(&toml);
    // 40 messages of 32 packets are 1,280 packets, 64 +- 5 sigma (5 * 7.8) of which are delivered twice.
    assert!(
        (25..=103).contains(&truth.duplicates.len()),
        "{}",
        truth.duplicates.len()
    );
    assert!(
        truth
            .duplicates
            .iter()
            .all(|duplicate| duplicate.recorded_by == ["h2"])
    );
    let mut seen: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    for frame in frames(&scenario, 0) {
        if frame.is_write() {
            seen.entry(frame.bytes).or_default().push(frame.time);
        }
    }
    let twice: Vec<_> = seen.values().filter(|times| times.len() == 2).collect();
    assert_eq!(twice.len(), truth.duplicates.len());
    assert!(twice.iter().all(|times| times[1] - times[0] <= 5_001_000));
    let latest = twice.iter().map(|times| times[1] - times[0]).max().unwrap();
    assert!(latest > 2_500_000, "uniform over 5 ms: {latest}");
    // Nothing is lost, NAKed or retransmitted for that, and no message is completed twice.
    assert!(truth.losses.is_empty() && truth.naks.is_empty() && truth.retransmission_runs.is_empty());
    assert_eq!(truth.flows[0].messages, 40);
    assert_eq!(truth.flows[0].packets_received, 1_280);
}

#[test]
fn duplicates_are_acknowledged_again() {
    // One ACK for a message; all packets come twice, one directly after the other. The last of each
    // message requests an ACK, and so does its duplicate: 2 a message. With `always` each of the 32
    // duplicates causes one: 33.
    for (nic, acks) in [("", 80), ("duplicate_ack = \"always\"", 40 * 33)] {
        let truth = truth_of(&duplicated("", nic, "duplicate = 1.0\nonly = \"request\""));
        assert_eq!(truth.duplicates.len(), 1_280);
        let back = truth.flows.iter().find(|flow| flow.data_packets == 0).unwrap();
        assert_eq!(back.packets_sent, acks, "{nic}");
    }
}

#[test]
fn a_duplicate_read_is_executed_again() {
    // `duplicate_request` of Linux rxe_resp.c replays the responses. Two of 40 requests come twice.
    let truth = truth_of(&duplicated(
        "op = \"read\"",
        "",
        "drop = []\nduplicate = 1.0\nonly = \"read-request\"\nend = \"70us\"",
    ));
    assert_eq!(truth.duplicates.len(), 2);
    assert!(
        truth
            .duplicates
            .iter()
            .all(|duplicate| duplicate.kind == PacketKind::ReadRequest)
    );
    let responses = truth.flows.iter().find(|flow| flow.data_packets > 0).unwrap();
    assert_eq!(
        (responses.data_packets, responses.packets_retransmitted),
        (42 * 32, 2 * 32)
    );
    assert_eq!(truth.flows.iter().map(|flow| flow.messages).sum::<u64>(), 40);
}

#[test]
fn duplicates_of_answers_change_nothing() {
    let toml = duplicated("", "", "duplicate = 1.0").replace(
        "from = \"leaf1\"\n        to = \"h2\"",
        "from = \"leaf1\"\n        to = \"h1\"",
    );
    let truth = truth_of(&toml);
    assert_eq!(truth.duplicates.len(), 40);
    assert!(truth.retransmission_runs.is_empty());
    assert_eq!(truth.flows[0].messages, 40);
}

#[test]
fn the_identification_follows_its_policy() {
    let ids = |policy: &str| -> Vec<(u32, u16)> {
        let toml = duplicated("qps = 2", &format!("ip_id = \"{policy}\""), "drop = [100]");
        let frames = frames(&Scenario::parse(&toml).unwrap(), 0);
        let from_h1 = frames.iter().filter(|frame| frame.is_write());
        from_h1.map(|frame| (frame.qpn, frame.identification)).collect()
    };
    let flow = ids("count-flow");
    for qpn in flow.iter().map(|(qpn, _)| *qpn).collect::<BTreeSet<_>>() {
        let own: Vec<u16> = flow
            .iter()
            .filter(|(other, _)| *other == qpn)
            .map(|(_, id)| *id)
            .collect();
        // Each packet has the next one, retransmissions included; one is lost, and no other flow counts.
        assert!(
            own.windows(2)
                .all(|pair| pair[1] == pair[0] + 1 || pair[1] == pair[0] + 2)
        );
        assert_eq!(own[0], 0);
    }
    let host = ids("count-host");
    let missing = host.windows(2).filter(|pair| pair[1].1 != pair[0].1 + 1).count();
    assert_eq!((host[0].1, missing), (0, 1), "the lost packet alone is missing");
    assert!(ids("zero").iter().all(|(_, id)| *id == 0));
    let random = ids("random");
    let distinct: BTreeSet<u16> = random.iter().map(|(_, id)| *id).collect();
    // n random numbers of 65,536: n^2 / 131,072 fewer distinct ones, some 50 for 2,600.
    assert!(
        distinct.len() > random.len() - 120,
        "{} of {}",
        distinct.len(),
        random.len()
    );
}
