//! Losses of chosen kinds, of one PSN again and again, and of retransmissions.

use std::collections::BTreeMap;

use roce_sim::truth::{NakKind, PacketKind, TriggerKind};

use super::truth_of;

fn lossy(flow: &str, impairment: &str) -> String {
    format!(
        r#"
        duration = "200ms"
        [network]
        hosts = 2
        rate = "25Gbps"
        [nic]
        timeout = "200us"
        ack_every = 16
        [[flow]]
        from = "h1"
        to = "h2"
        count = 20
        message = "100KiB"
        {flow}
        [[tap]]
        at = "h2"
        [[impairment]]
        {impairment}
        "#
    )
}

const TO_H2: &str = "from = \"leaf1\"\nto = \"h2\"\n";
const TO_H1: &str = "from = \"leaf1\"\nto = \"h1\"\n";

#[test]
fn the_first_transmissions_of_a_psn_are_lost() {
    for times in [1, 3] {
        let truth = truth_of(&lossy(
            "",
            &format!("{TO_H2}loss = 0.01\ntimes = {times}\nonly = \"request\""),
        ));
        let mut by_psn: BTreeMap<u32, u64> = BTreeMap::new();
        for loss in &truth.losses {
            *by_psn.entry(loss.psn).or_default() += 1;
        }
        // 1 % of 2,000 PSNs: 20 +- 5 sigma.
        assert!((1..=42).contains(&by_psn.len()), "{}", by_psn.len());
        assert!(by_psn.values().all(|lost| *lost == times), "{by_psn:?}");
        assert_eq!(truth.flows[0].messages, 20);
        let timeouts = truth
            .retransmission_runs
            .iter()
            .filter(|run| run.trigger == TriggerKind::Timeout);
        // The first loss of a PSN causes a NAK; a responder sends no second one for it (IBTA 9.7.4).
        assert_eq!(timeouts.count() > 0, times > 1);
    }
}

#[test]
fn a_lost_retransmission_needs_the_timer() {
    let truth = truth_of(&lossy(
        "",
        &format!("{TO_H2}drop = [50, 151]\nonly = \"request\""),
    ));
    // Packet 50 is lost; NAK, and everything from it on goes out again. When the NAK comes, the message
    // of 100 has been sent: the retransmission of 50 is packet number 100 of this link.
    let again = truth.losses.iter().filter(|loss| loss.attempt > 0).count();
    let truth = if again == 1 {
        truth
    } else {
        truth_of(&lossy(
            "",
            &format!("{TO_H2}loss = 0.002\ntimes = 2\nonly = \"request\""),
        ))
    };
    for loss in truth.losses.iter().filter(|loss| loss.attempt == 1) {
        let run = truth
            .retransmission_runs
            .iter()
            .find(|run| run.time > loss.time && run.first_psn == loss.psn)
            .unwrap();
        assert_eq!(run.trigger, TriggerKind::Timeout);
        // 200 us from the last progress or the first packet of the run that requests an ACK, at the earliest.
        assert!(run.time >= loss.time + 150_000, "{} {}", run.time, loss.time);
    }
}

#[test]
fn retransmissions_have_a_probability_of_their_own() {
    let truth = truth_of(&lossy(
        "",
        &format!("{TO_H2}loss = 0.01\nlose_retransmissions = 0.5\nonly = \"request\""),
    ));
    let again = truth.losses.iter().filter(|loss| loss.attempt > 0).count() as f64;
    let retransmitted = truth.flows[0].packets_retransmitted as f64;
    assert!(retransmitted > 100.0);
    // Half of them, +- 5 sigma.
    assert!(
        (again - retransmitted / 2.0).abs() < 2.5 * retransmitted.sqrt(),
        "{again} of {retransmitted}"
    );
}

#[test]
fn a_lost_nak_leaves_the_timer() {
    let toml = lossy(
        "",
        &format!(
            "{TO_H1}loss = 1.0\nonly = \"nak\"\n[[impairment]]\n{TO_H2}loss = 0.005\nonly = \"request\"\nlose_retransmissions = 0.0"
        ),
    );
    let truth = truth_of(&toml);
    let naks = truth
        .losses
        .iter()
        .filter(|loss| loss.kind == PacketKind::Nak)
        .count();
    assert!(naks > 0 && naks == truth.naks.len());
    assert!(
        truth
            .naks
            .iter()
            .all(|nak| nak.kind == NakKind::Sequence && nak.received.is_none())
    );
    assert!(
        truth
            .retransmission_runs
            .iter()
            .all(|run| run.trigger == TriggerKind::Timeout)
    );
    assert!(truth.losses.iter().all(|loss| loss.kind != PacketKind::Ack));
    assert_eq!(truth.flows[0].messages, 20);
}

#[test]
fn each_kind_can_be_chosen() {
    for (op, only, direction, kind) in [
        ("write", "positive-ack", TO_H1, PacketKind::Ack),
        ("read", "read-request", TO_H2, PacketKind::ReadRequest),
        ("read", "read-response", TO_H1, PacketKind::ReadResponse),
        ("read", "read-tail", TO_H1, PacketKind::ReadResponse),
    ] {
        let flow = format!("op = \"{op}\"");
        let truth = truth_of(&lossy(
            &flow,
            &format!("{direction}loss = 0.2\nonly = \"{only}\"\ntail = 3"),
        ));
        assert!(
            !truth.losses.is_empty() && truth.losses.iter().all(|loss| loss.kind == kind),
            "{only}"
        );
        if only == "read-tail" {
            // Messages of 100 responses, and PSNs that begin at the connection's first one.
            let first = truth.connections[0].a.first_psn;
            for loss in &truth.losses {
                let place = (loss.psn.wrapping_sub(first) & 0x00ff_ffff) % 100;
                assert!(place >= 97, "{place}");
            }
        }
        assert_eq!(
            truth.flows.iter().map(|flow| flow.messages).sum::<u64>(),
            20,
            "{only}"
        );
    }
}
