//! Limits of a flow: its application, a configured rate, its share of the port.

use super::{data_flows, jain, received, truth_of};

fn sender(flow: &str, more: &str) -> String {
    format!(
        r#"
        duration = "20ms"
        [network]
        hosts = 2
        rate = "25Gbps"
        [nic]
        mtu = 4096
        ack_every = 16
        [[flow]]
        from = "h1"
        to = "h2"
        {flow}
        [[tap]]
        at = "h2"
        {more}
        "#
    )
}

#[test]
fn an_application_paces_its_messages() {
    // 4 Gb/s are 500,000 bytes in a millisecond; a message of 64 KiB more or less.
    let truth = truth_of(&sender("message = \"64KiB\"\npace = \"4Gbps\"", ""));
    let bytes = received(data_flows(&truth)[0], 2..18);
    assert!((bytes - 16.0 * 500_000.0).abs() <= 65_536.0, "{bytes}");
    // A pace beyond the link's rate is limited by `outstanding`: the link is as full as without.
    let truth = truth_of(&sender(
        "message = \"64KiB\"\npace = \"80Gbps\"\noutstanding = 4",
        "",
    ));
    let bytes = received(data_flows(&truth)[0], 2..18);
    let capacity = 25e9 / 8.0 * 0.016 * 4096.0 / 4178.0;
    assert!(bytes > 0.99 * capacity, "{bytes} of {capacity}");
}

#[test]
fn a_rate_limit_spreads_packets() {
    let toml = sender("message = \"1MiB\"\nrate_limit = \"5Gbps\"\noutstanding = 2", "");
    let frames = super::frames(&roce_sim::Scenario::parse(&toml).unwrap(), 0);
    let times: Vec<u64> = frames
        .iter()
        .filter(|frame| frame.is_write())
        .map(|frame| frame.time)
        .collect();
    // 4,096 bytes of data in 4,178 bytes on the line (the first packet of a message has 16 more): at 5 Gb/s 6,684.8 ns.
    for pair in times.windows(2) {
        assert!(
            (6_683..=6_711).contains(&(pair[1] - pair[0])),
            "{}",
            pair[1] - pair[0]
        );
    }
    assert!(times.len() > 2_900);
}

#[test]
fn an_application_rests() {
    let toml = sender(
        "message = \"16KiB\"\non = \"200us\"\noff = \"300us\"\noutstanding = 8",
        "",
    );
    let frames = super::frames(&roce_sim::Scenario::parse(&toml).unwrap(), 0);
    let phases: Vec<u64> = frames
        .iter()
        .filter(|frame| frame.is_write())
        .map(|frame| frame.time % 500_000)
        .collect();
    // Messages posted in the last moment are unfinished. Eight messages take 8 * 4 packets of 1.34 us,
    // and 3 us of cable and switch.
    assert!(
        phases.iter().all(|phase| *phase < 247_000),
        "{:?}",
        phases.iter().max()
    );
    assert!(phases.iter().filter(|phase| **phase > 150_000).count() > 100);
    // Two fifths of the line's 14,960 packets in 20 ms, and at most 32 packets after each of 40 phases.
    assert!((5_900..=7_270).contains(&phases.len()), "{}", phases.len());
}

#[test]
fn queue_pairs_share_a_port() {
    for qps in [1, 8, 64] {
        for rate in [10_u64, 800] {
            let truth = truth_of(&format!(
                r#"
                duration = "3ms"
                [network]
                hosts = 2
                rate = "{rate}Gbps"
                [nic]
                mtu = 4096
                ack_every = 16
                [[flow]]
                from = "h1"
                to = "h2"
                qps = {qps}
                message = "64KiB"
                outstanding = 16
                "#
            ));
            let shares: Vec<f64> = data_flows(&truth)
                .iter()
                .map(|flow| received(flow, 1..3))
                .collect();
            let sum: f64 = shares.iter().sum();
            let capacity = rate as f64 * 1e9 / 8.0 * 0.002 * 4096.0 / 4178.0;
            assert_eq!(shares.len(), qps);
            assert!(
                sum > 0.99 * capacity && sum < 1.01 * capacity,
                "{qps} {rate}: {sum} of {capacity}"
            );
            assert!(jain(&shares) > 0.98, "{qps} {rate}: {shares:?}");
        }
    }
}
