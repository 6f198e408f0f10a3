//! Senders that have nothing to send, of flows made by hand.

use super::*;
use roce_model::{TimeByState, TimeState};

/// 1,000 packets of 1,082 bytes: with 24 bytes each that are not captured, 8.848 Mbit take 88.48 us at 100 Gbit/s.
fn idle(sending: u64, others: &[(TimeState, u64)]) -> FlowRow {
    let mut row = flow(1, 2);
    (row.packets, row.wire_bytes, row.messages) = (1_000, 1_082_000, 100);
    let mut times = TimeByState::default();
    times.add(TimeState::Sending, sending);
    for (state, time) in others {
        times.add(*state, *time);
    }
    row.set_time_by_state(&times);
    row
}

fn is_said(row: &FlowRow) -> bool {
    finding(&run_of(&[row]), "not.network").is_some()
}

#[test]
fn bursts_at_line_rate_and_idle_senders_are_not_the_network() {
    let row = idle(88_480, &[(TimeState::Idle, 280_000)]);
    let run = run_of(&[&row]);
    let found = fired(&run, "not.network");
    // 280 of 368.48 us.
    assert!(
        found.summary.contains("100 Gbit/s") && found.summary.contains("idle 76 %"),
        "{}",
        found.summary
    );
    assert_eq!(found.severity, Severity::Ok);
    assert_eq!(
        (count(found, "idle_ns"), count(found, "idle_by_message_ns")),
        (280_000, 2_800)
    );
    assert_eq!(
        found.confidence,
        Confidence::Medium,
        "nothing shows where the tap stands"
    );
}

#[test]
fn any_sign_of_the_network_takes_it_back() {
    let of = |others: &[(TimeState, u64)]| is_said(&idle(88_480, others));
    assert!(!of(&[(TimeState::Idle, 88_000)]), "less than half of the time");
    assert!(
        !of(&[(TimeState::Idle, 280_000), (TimeState::Network, 4_000)]),
        "more than 1 %"
    );
    assert!(
        !of(&[(TimeState::Idle, 280_000), (TimeState::Unknown, 60_000)]),
        "60 of 428 us are not known"
    );
    assert!(
        !is_said(&idle(120_000, &[(TimeState::Idle, 480_000)])),
        "73.7 Gbit/s are no speed of a port"
    );
    for change in [
        (|row| row.ce = 1) as fn(&mut FlowRow),
        |row| row.missing = 1,
        |row| row.rnr_naks = 1,
        |row| row.retransmission_runs = 1,
    ] {
        let mut row = idle(88_480, &[(TimeState::Idle, 280_000)]);
        change(&mut row);
        assert!(!is_said(&row));
    }
}
