//! Links that drop long frames, switches with a watchdog, and taps that show packets late, at a set clock, or in a tunnel, too.

use roce_sim::Scenario;
use roce_sim::truth::{LossReason, TriggerKind};

use super::{frames, truth_of};

/// One message of 4,096 bytes and some of 900, from a host to another, with a switch between them.
fn black_hole(longest: u32) -> String {
    format!(
        r#"
        duration = "600ms"
        [network]
        hosts = 2
        rate = "25Gbps"
        [nic]
        mtu = 4096
        timeout = "1ms"
        [[flow]]
        from = "h1"
        to = "h2"
        message = 4096
        count = 1
        [[flow]]
        from = "h1"
        to = "h2"
        message = 900
        interval = "1ms"
        count = 20
        [[impairment]]
        from = "leaf1"
        to = "h2"
        loss = 1.0
        longer_than = {longest}
        [[tap]]
        at = "h1"
        "#
    )
}

#[test]
fn long_frames_are_lost_and_short_ones_pass() {
    // 14 + 20 + 8 + 12 + 16 + 4,096 + 4 = 4,170 bytes, and 974 for the small ones.
    let truth = truth_of(&black_hole(4_169));
    // Sent once, and again seven times (`retries`).
    assert_eq!(truth.losses.len(), 8);
    let runs = &truth.retransmission_runs;
    assert_eq!(runs.len(), 7);
    assert!(runs.iter().all(|run| run.trigger == TriggerKind::Timeout));
    // The timer is 1 ms, and doubled with each try: 1 + 2 + 4 + ... + 64 = 127 ms.
    let waited: u64 = runs.iter().map(|run| run.silence_ns).sum();
    assert!((127_000_000..127_100_000).contains(&waited), "{waited}");
    assert_eq!(truth_of(&black_hole(4_170)).losses.len(), 0);
}

/// A receiver that pauses its switch for 2 ms; the watchdog sees it after 500 us.
const WATCHED: &str = r#"
    duration = "5ms"
    [network]
    hosts = 2
    rate = "25Gbps"
    [switch]
    pause = "pfc"
    xoff = "32MB"
    xon = "16MB"
    headroom = "16MB"
    buffer = "256MB"
    ecn = false
    watchdog = "500us"
    [nic]
    mtu = 1024
    timeout = "10ms"
    [[flow]]
    from = "h1"
    to = "h2"
    service = "uc"
    message = 1024
    interval = "10us"
    [[pause]]
    host = "h2"
    begin = "1ms"
    on = "2ms"
    [[tap]]
    at = "h1"
    "#;

#[test]
fn the_watchdog_drops_what_comes_for_a_port_that_is_paused_for_long() {
    let truth = truth_of(WATCHED);
    // A packet each 10 us, from 1.5 ms to 3 ms: 150, and one at either end.
    assert!(
        (149..=151).contains(&truth.losses.len()),
        "{}",
        truth.losses.len()
    );
    assert!(
        truth
            .losses
            .iter()
            .all(|loss| loss.reason == LossReason::Watchdog && (1_500_000..=3_010_000).contains(&loss.time))
    );
    let none = truth_of(&WATCHED.replace("watchdog = \"500us\"", ""));
    assert_eq!(none.losses.len(), 0);
}

/// A packet each 10 us; `more` are keys of the tap.
fn tapped(more: &str) -> Scenario {
    Scenario::parse(&format!(
        r#"
        duration = "1ms"
        [network]
        hosts = 2
        rate = "25Gbps"
        [[flow]]
        from = "h1"
        to = "h2"
        service = "uc"
        message = 512
        interval = "10us"
        [[tap]]
        at = "h1"
        snaplen = 0
        {more}
        "#
    ))
    .unwrap()
}

#[test]
fn late_stamps_lie_in_their_range_and_a_set_clock_steps_once() {
    let right = frames(&tapped(""), 0);
    let late = frames(&tapped("late = \"5us..30us\""), 0);
    assert_eq!(right.len(), late.len());
    // The file has them in the order in which they passed.
    let by: Vec<u64> = right
        .iter()
        .zip(&late)
        .map(|(right, late)| {
            assert_eq!(right.psn, late.psn);
            late.time - right.time
        })
        .collect();
    assert!(by.iter().all(|by| (5_000..=30_000).contains(by)));
    assert!(late.windows(2).any(|two| two[1].time < two[0].time));
    let set = tapped("clock_step_at = \"500us\"\nclock_step_ns = 40000");
    let by: Vec<u64> = right
        .iter()
        .zip(&frames(&set, 0))
        .map(|(right, set)| {
            assert_eq!(
                set.time - right.time,
                if right.time < 500_000 { 0 } else { 40_000 }
            );
            set.time - right.time
        })
        .collect();
    assert!(by.contains(&0) && by.contains(&40_000));
}

#[test]
fn a_copy_in_a_tunnel_has_the_frame_inside() {
    let scenario = tapped("doubled = \"300ns\"\ndoubled_in = \"vxlan\"\nsession = 77");
    let all = frames(&scenario, 0);
    let bare = frames(&tapped(""), 0);
    assert_eq!(all.len(), bare.len() * 2);
    for two in all.chunks(2) {
        assert_eq!(two[1].time - two[0].time, 300);
        // 14 + 20 + 8 + 8 bytes of Ethernet, IPv4, UDP and VXLAN before it (RFC 7348, section 5); the identifier is bytes 46 to 48.
        assert_eq!(two[1].bytes[50..], two[0].bytes[..]);
        assert_eq!(two[1].bytes[46..49], [0, 0, 77]);
    }
}
