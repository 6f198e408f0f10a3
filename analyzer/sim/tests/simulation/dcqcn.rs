//! One bottleneck: how flows share it.

use super::{data_flows, jain, received, truth_of};

fn bottleneck(more: &str) -> String {
    format!(
        r#"
        duration = "60ms"
        [network]
        hosts = 5
        rate = "10Gbps"
        [switch]
        kmin = "20KB"
        kmax = "400KB"
        pmax = 0.2
        [nic]
        mtu = 4096
        ack_every = 16
        [[flow]]
        from = "h1..h4"
        to = "h5"
        message = "128KiB"
        outstanding = 4
        jitter = "100us"
        {more}
        "#
    )
}

#[test]
fn dcqcn_fills_the_link_and_is_fair() {
    let truth = truth_of(&bottleneck(""));
    let shares: Vec<f64> = data_flows(&truth)
        .iter()
        .map(|flow| received(flow, 30..60))
        .collect();
    assert_eq!(shares.len(), 4);
    // 10 Gb/s for 30 ms are 37.5 MB on the wire; 4096 of 4178 bytes of each packet are data (14 + 20 + 8 + 12 + 4 + 24 of
    // headers, ICRC and gap): 36.76 MB.
    let capacity = 37.5e6 * 4096.0 / 4178.0;
    let sum: f64 = shares.iter().sum();
    assert!(sum > 0.93 * capacity && sum <= capacity, "{sum} of {capacity}");
    assert!(jain(&shares) > 0.95, "{shares:?}");
    assert!(truth.losses.is_empty());
    assert!(truth.cnps.len() > 10);
}

#[test]
fn without_congestion_control_equal_windows_share_equally() {
    let truth = truth_of(&bottleneck("react = false\necn = false"));
    let shares: Vec<f64> = data_flows(&truth)
        .iter()
        .map(|flow| received(flow, 5..60))
        .collect();
    let mean = shares.iter().sum::<f64>() / 4.0;
    // The queue is never empty: the whole capacity, a quarter each (a message of 128 KiB more or less).
    let capacity = 1.25e9 * 0.055 * 4096.0 / 4178.0;
    assert!((mean * 4.0 / capacity - 1.0).abs() < 0.002, "{mean}");
    for share in shares {
        assert!((share - mean).abs() < 131_072.0, "{share} of {mean}");
    }
    assert!(truth.cnps.is_empty() && truth.ce_marks.is_empty());
}
