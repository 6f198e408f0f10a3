//! Several paths between two hosts: what arrives when, and what receivers make of it.

use std::collections::BTreeMap;

use roce_sim::Scenario;
use roce_sim::truth::{HoleClass, TriggerKind};

use super::{SeenFrame, frames, truth_of};

/// One flow at a quarter of the line's rate, so that nothing queues.
fn sprayed(network: &str, rate: u64, mtu: u32, spray: &str, more: &str) -> String {
    format!(
        r#"
        duration = "8ms"
        [network]
        rate = "{rate}Gbps"
        spray = {{ {spray} }}
        {network}
        [nic]
        mtu = {mtu}
        out_of_order = true
        timeout = "4ms"
        [[flow]]
        from = "h1"
        to = "h2"
        count = 1
        message = "{message}"
        rate_limit = "{limit}Gbps"
        [[tap]]
        at = "h1"
        [[tap]]
        at = "h2"
        {more}
        "#,
        message = mtu * 400,
        limit = (rate / 4).max(1),
    )
}

/// By PSN, when a WRITE packet left the sender and came to the receiver.
fn transits(toml: &str) -> Vec<(u64, u64)> {
    let scenario = Scenario::parse(toml).unwrap();
    let times = |tap| -> BTreeMap<u32, u64> {
        let frames = frames(&scenario, tap);
        let writes = frames.iter().filter(|frame| frame.is_write());
        writes.map(|frame| (frame.psn, frame.time)).collect()
    };
    let (sent, received) = (times(0), times(1));
    assert_eq!((sent.len(), received.len()), (400, 400));
    sent.iter().map(|(psn, sent)| (*sent, received[psn])).collect()
}

#[test]
fn a_path_adds_at_most_the_skew() {
    let shapes = [
        ("hosts = 2\ntopology = \"direct\"", 25, 1024),
        ("hosts = 2", 10, 256),
        ("hosts = 2", 800, 256),
        ("hosts = 2\ntopology = \"leaf-spine\"", 100, 4096),
    ];
    for (network, rate, mtu) in shapes {
        let toml = sprayed(network, rate, mtu, "paths = 4, skew = \"12us\"", "");
        let transits = transits(&toml);
        let delays: Vec<u64> = transits.iter().map(|(sent, received)| received - sent).collect();
        let (least, most) = (*delays.iter().min().unwrap(), *delays.iter().max().unwrap());
        // Packets of several paths that come together wait for one another at the last port: at a quarter of the rate at
        // most as long as the four packets take, which are less than 82 bytes longer than their payload.
        let packet = u64::from(mtu + 82) * 8 / rate + 1;
        let extra = most - least;
        assert!(
            (12_000 - 4 * packet.min(3_000)..=12_000 + 4 * packet).contains(&extra),
            "{network}: {extra}"
        );
        let mut arrivals: Vec<u64> = transits.iter().map(|(_, received)| *received).collect();
        assert!(!arrivals.is_sorted(), "{network}: nothing is overtaken");
        // No link carries more than its rate: stamps are rounded down to a nanosecond.
        arrivals.sort_unstable();
        let shortest = arrivals.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
        assert!(shortest + 1 >= u64::from(mtu) * 8 / rate, "{network}: {shortest}");
    }
}

#[test]
fn packets_of_one_path_keep_their_order() {
    // Two paths, 12 us apart, at 25 Gb/s: a packet took the long one when it needed 6 us more than the fastest. Jitter of 2
    // us does not change that.
    for jitter in ["0", "\"2us\""] {
        let spray = format!("paths = 2, skew = \"12us\", jitter = {jitter}");
        let transits = transits(&sprayed("hosts = 2", 25, 1024, &spray, ""));
        let least = transits
            .iter()
            .map(|(sent, received)| received - sent)
            .min()
            .unwrap();
        let (long, short): (Vec<_>, Vec<_>) = transits
            .iter()
            .partition(|(sent, received)| received - sent > least + 6_000);
        assert!(long.len() > 100 && short.len() > 100);
        for path in [long, short] {
            assert!(path.is_sorted_by_key(|(_, received)| *received));
        }
    }
}

#[test]
fn a_flowlet_is_not_reordered() {
    let spray = "paths = 4, skew = \"12us\", mode = \"flowlet\", flowlet_gap = \"20us\"";
    let transits = transits(&sprayed("hosts = 2", 25, 1024, spray, ""));
    assert!(transits.is_sorted_by_key(|(_, received)| *received));
    // Bursts that are 15 us apart may change their path, and the path may be 12 us shorter: still in order, because
    // the gap is longer than the skew.
    let truth = truth_of(
        r#"
        duration = "4ms"
        network = { hosts = 2, rate = "25Gbps", spray = { paths = 8, skew = "12us", mode = "flowlet", flowlet_gap = "15us" } }
        flow = [{ from = "h1", to = "h2", interval = "40us", message = "16KiB" }]
        tap = [{ at = "h2" }]
        "#,
    );
    assert!(truth.naks.is_empty() && truth.taps[0].holes.is_empty());
    // A gap that is shorter than the skew reorders.
    let truth = truth_of(
        r#"
        duration = "4ms"
        network = { hosts = 2, rate = "25Gbps", spray = { paths = 8, skew = "100us", mode = "flowlet", flowlet_gap = "15us" } }
        nic = { out_of_order = true }
        flow = [{ from = "h1", to = "h2", interval = "40us", message = "16KiB" }]
        tap = [{ at = "h2" }]
        "#,
    );
    assert!(!truth.taps[0].holes.is_empty());
}

#[test]
fn without_order_go_back_n_sends_again_what_nobody_lost() {
    // IBTA 9.7.4: a PSN beyond the expected one causes a NAK, and nothing is accepted before the
    // expected one comes.
    for (topology, mode) in [("leaf", "packet"), ("direct", "two-paths")] {
        let truth = truth_of(&format!(
            r#"
            duration = "20ms"
            [network]
            hosts = 2
            rate = "25Gbps"
            topology = "{topology}"
            spray = {{ paths = 4, skew = "8us", mode = "{mode}", choose = "turn" }}
            [[flow]]
            from = "h1"
            to = "h2"
            count = 20
            message = "16KiB"
            [[tap]]
            at = "h1"
            [[tap]]
            at = "h2"
            "#
        ));
        assert!(truth.losses.is_empty());
        assert!(!truth.naks.is_empty());
        let runs = &truth.retransmission_runs;
        assert!(
            runs.iter().any(|run| run.trigger == TriggerKind::Nak),
            "{topology}"
        );
        assert_eq!(truth.flows[0].messages, 20, "{topology}: {runs:?}");
        let late = truth.taps[1].holes.iter();
        assert!(late.filter(|hole| hole.class == HoleClass::Reordered).count() > 0);
        // The sender's tap has no holes, and NAKs of packets that nobody lost.
        assert!(truth.taps[0].holes.is_empty());
        assert!(truth.taps[0].lost_downstream.iter().all(|lost| lost.reordered));
        assert!(!truth.taps[0].lost_downstream.is_empty());
    }
}

#[test]
fn cnps_and_read_responses_take_paths_too() {
    let toml = r#"
        duration = "3ms"
        [network]
        hosts = 3
        rate = "25Gbps"
        spray = { paths = 4, skew = "20us" }
        [nic]
        out_of_order = true
        timeout = "16ms"
        [switch]
        kmin = "10KB"
        kmax = "100KB"
        pmax = 0.5
        [dcqcn]
        set = "nvidia"
        [[flow]]
        from = "h1..h2"
        to = "h3"
        message = "1MiB"
        qps = 4
        [[flow]]
        from = "h3"
        to = "h2"
        op = "read"
        message = "64KiB"
        [[tap]]
        at = "h3"
        [[tap]]
        at = "h1"
        "#;
    let truth = truth_of(toml);
    // From the queue of h3's port to a sender and back: a CNP alone takes up to the skew of 20 us.
    let cnps: Vec<u64> = truth
        .cnps
        .iter()
        .filter_map(|cnp| Some(cnp.received? - cnp.sent))
        .collect();
    let (least, most) = (cnps.iter().min().unwrap(), cnps.iter().max().unwrap());
    assert!(cnps.len() > 20 && most - least > 19_000, "{least} {most}");
    let frames = frames(&Scenario::parse(toml).unwrap(), 0);
    let responses: Vec<&SeenFrame> = frames
        .iter()
        .filter(|frame| (13..=16).contains(&frame.opcode))
        .collect();
    let qpn = responses[0].qpn;
    let psns = responses
        .iter()
        .filter(|frame| frame.qpn == qpn)
        .map(|frame| frame.psn);
    assert!(!psns.is_sorted(), "responses are overtaken");
    assert!(truth.flows.iter().all(|flow| flow.packets_retransmitted == 0));
}
