//! Pause frames: the arithmetic of headroom and quanta.

use super::truth_of;

/// Three hosts send to one at full rate; `headroom` is the switch's room for packets on their way.
fn lossless(headroom: &str) -> roce_sim::Truth {
    truth_of(&format!(
        r#"
        duration = "2ms"
        [network]
        hosts = 4
        rate = "25Gbps"
        delay = "500ns"
        [switch]
        ecn = false
        pause = "pfc"
        xoff = "60KB"
        xon = "40KB"
        headroom = "{headroom}"
        [nic]
        mtu = 4096
        ack_every = 16
        [[flow]]
        from = "h1..h3"
        to = "h4"
        message = "256KiB"
        outstanding = 4
        "#
    ))
}

#[test]
fn enough_headroom_loses_nothing() {
    // Bytes that come in after the threshold was crossed. The packet that crossed it has 4,154 bytes.
    // The neighbour sends until it stops: the pause frame waits for an ACK (86 bytes), takes 84 bytes
    // itself and 500 ns. Then the neighbour ends its packet (4,178), and the last bit needs 500 ns: 1 us
    // at 25 Gb/s are 3,125 bytes. 4,154 + 86 + 84 + 4,178 + 3,125 = 11,627, rounded up to whole packets:
    // 3 x 4,154 = 12,462.
    let truth = lossless("12462");
    assert!(truth.pauses.len() > 3);
    assert_eq!(truth.losses.len(), 0);
    assert!(truth.findings.iter().all(|finding| finding.id != "loss.network"));
}

#[test]
fn too_little_headroom_loses_packets() {
    // The packet that crossed the threshold fits, the next one does not.
    let truth = lossless("4154");
    assert!(!truth.losses.is_empty());
    assert!(
        truth
            .losses
            .iter()
            .all(|loss| loss.reason == roce_sim::truth::LossReason::Headroom)
    );
}

#[test]
fn pauses_reach_the_hosts() {
    let truth = lossless("100KB");
    for host in ["h1", "h2", "h3"] {
        let place = format!("{host}->leaf1");
        assert!(truth.pauses.iter().any(|pause| pause.place == place), "{host}");
    }
    assert!(truth.pauses.iter().all(|pause| pause.priority == Some(3)));
}

#[test]
fn a_pause_lasts_as_long_as_it_says() {
    // One frame of 4,883 quanta: at 25 Gb/s 512 bits are 20.48 ns, 100 us are 4,882.8 quanta. The frame that ends the
    // pause may wait for a packet that h2 is sending (an ACK).
    for (kind, priority) in [("pfc", Some(3)), ("802.3x", None)] {
        let truth = truth_of(&format!(
            r#"
            duration = "1ms"
            [network]
            hosts = 2
            rate = "25Gbps"
            [[flow]]
            from = "h1"
            to = "h2"
            outstanding = 2
            [[pause]]
            host = "h2"
            kind = "{kind}"
            begin = "300us"
            on = "100us"
            "#
        ));
        let [pause] = truth.pauses.as_slice() else {
            panic!("{:?}", truth.pauses);
        };
        assert_eq!((pause.place.as_str(), pause.priority), ("leaf1->h2", priority));
        let length = pause.end - pause.begin;
        assert!((99_900..=100_100).contains(&length), "{length}");
        // 84 bytes of the frame at 25 Gb/s are 26.88 ns, the cable 500 ns.
        assert!((300_526..300_600).contains(&pause.begin), "{}", pause.begin);
    }
}
