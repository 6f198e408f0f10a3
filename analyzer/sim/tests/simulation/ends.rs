//! How connections end, where the scenario says it.

use roce_sim::truth::{ConnectionEnd, Outcome};

use super::truth_of;

/// The end of one connection between two hosts at a cable.
fn end_of(nic: &str, flow: &str) -> ConnectionEnd {
    let truth = truth_of(&format!(
        r#"
        duration = "1500ms"
        [network]
        hosts = 2
        topology = "direct"
        rate = "10Gbps"
        [nic]
        {nic}
        [[flow]]
        from = "h1"
        to = "h2"
        message = "1KiB"
        pace = "100Mbps"
        {flow}
        [[tap]]
        at = "h1"
        "#
    ));
    assert_eq!(truth.ends.len(), 1);
    truth.ends[0].clone()
}

#[test]
fn a_fatal_nak_refuses() {
    assert_eq!(end_of("", "fatal = \"1ms\"").outcome, Outcome::Refused);
}

#[test]
fn a_dead_peer_is_given_up_after_all_retries() {
    let nic = "timeout = \"1ms\"\nretries = 7";
    let never = end_of(nic, "dies = \"0us\"");
    assert_eq!((never.outcome, never.repeats), (Outcome::NeverAnswered, 7));
    // The eighth transmission leaves after 1 + 2 + 4 + ... + 64 ms.
    assert!((127_000_000..128_000_000).contains(&never.last_sent), "{never:?}");
    let later = end_of(nic, "dies = \"5ms\"");
    assert_eq!((later.outcome, later.repeats), (Outcome::RetriesUnanswered, 7));
}

#[test]
fn a_request_that_is_not_repeated_is_silence() {
    // 4.096 us x 2^18 is 1.07 s.
    let silent = end_of("timeout = \"100s\"", "dies = \"5ms\"");
    assert_eq!((silent.outcome, silent.repeats), (Outcome::Silent, 0));
    let short = end_of("timeout = \"100s\"", "dies = \"1000ms\"");
    assert_eq!(short.outcome, Outcome::Unfinished);
}

#[test]
fn without_buffers_a_sender_gives_up() {
    let end = end_of("rnr_retries = 3", "op = \"send\"\nreceives = 10");
    // The fourth RNR NAK in a row is one too many: three times sent again.
    assert_eq!((end.outcome, end.repeats), (Outcome::RnrExhausted, 3));
    assert!(end.outcome.has_failed());
}

#[test]
fn all_answered_is_closed() {
    let end = end_of("", "count = 20");
    assert_eq!((end.outcome, end.psn), (Outcome::Closed, None));
}
