//! Connections whose packets never pass because of their length.

use super::super::super::rows::{MS, back, flow};
use super::*;
use roce_model::FlowId;

/// A connection from host 1 to host 2 of which eight packets of 4,096 bytes were sent eight times, 16.8 ms apart.
fn stuck() -> FlowRow {
    let mut row = flow(1, 2);
    row.flow_id.0 += 1_000;
    (row.data_packets, row.ect0, row.packets) = (64, 64, 64);
    (row.retransmitted_packets, row.runs_timeout) = (56, 7);
    (row.path_mtu, row.message_bytes_max) = (Some(4_096), Some(32_768));
    (row.ack_rtt_count, row.peer_flow_id) = (0, None);
    (row.first_time, row.last_time) = (Time(MS), Time(130 * MS));
    row.timeout_wait_ns = 7 * 16_800_000;
    row
}

/// Messages of `length` bytes from host 1 to host 2 that are acknowledged meanwhile.
fn short(length: u64) -> FlowRow {
    let mut row = flow(1, 2);
    (row.path_mtu, row.message_bytes_max, row.ack_rtt_count) = (None, Some(length), 1_000);
    (row.first_time, row.last_time) = (Time(0), Time(140 * MS));
    row
}

/// The other direction of a connection.
fn answered(stuck: &FlowRow) -> FlowRow {
    let mut known = stuck.clone();
    known.peer_flow_id = Some(FlowId(77));
    back(&known)
}

#[test]
fn packets_that_never_pass_while_shorter_ones_do_are_named_with_timer_and_price() {
    let passes = short(900);
    // One queue pair that is gone looks the same as one whose packets are too long.
    let run = run_of(&[&stuck(), &passes, &back(&passes)]);
    let found = fired(&run, "mtu.exceeded");
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Info, Confidence::Low)
    );
    let mut second = stuck();
    (second.flow_id, second.destination_qpn) = (
        roce_model::FlowId(second.flow_id.0 + 1_000),
        second.destination_qpn + 1,
    );
    let run = run_of(&[&stuck(), &second, &passes, &back(&passes)]);
    let found = fired(&run, "mtu.exceeded");
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert_eq!(
        (count(found, "packet_bytes"), count(found, "passed_bytes")),
        (4_096, 900)
    );
    // Twice 7 waits of 16.8 ms; 4.096 us times 2^12 are 16.78 ms.
    assert_eq!(
        (count(found, "waited_ns"), count(found, "ack_timeout")),
        (235_200_000, 12)
    );
    assert_eq!(
        run.findings[0].id, "mtu.exceeded",
        "the cause comes first: {:?}",
        run.findings
    );
}

#[test]
fn a_receiver_that_names_the_first_packet_again_and_again_proves_it() {
    let mut stuck = stuck();
    let mut answers = answered(&stuck);
    (answers.acks, answers.nak_sequence, answers.naks) = (0, 7, 7);
    (stuck.runs_nak, stuck.runs_timeout) = (7, 0);
    (stuck.peer_flow_id, answers.peer_flow_id) = (Some(answers.flow_id), Some(stuck.flow_id));
    let passes = short(900);
    let run = run_of(&[&stuck, &answers, &passes, &back(&passes)]);
    assert_eq!(fired(&run, "mtu.exceeded").confidence, Confidence::High);
    // One acknowledgement, and it is not the length.
    answers.acks = 1;
    let run = run_of(&[&stuck, &answers, &passes, &back(&passes)]);
    assert!(finding(&run, "mtu.exceeded").is_none());
}

#[test]
fn other_reasons_of_silence_are_no_length() {
    let passes = short(900);
    let is_silent = |stuck: &FlowRow, passes: &FlowRow| {
        let run = run_of(&[stuck, passes, &back(passes)]);
        assert!(finding(&run, "mtu.exceeded").is_none(), "{:?}", run.findings);
    };
    // Packets as long pass.
    is_silent(&stuck(), &short(4_096));
    // Two repeats may be two losses; a sender that goes on between its repeats is not stuck.
    let mut twice = stuck();
    (twice.runs_timeout, twice.retransmitted_packets) = (2, 16);
    is_silent(&twice, &passes);
    let mut goes_on = stuck();
    goes_on.retransmitted_packets = 20;
    is_silent(&goes_on, &passes);
    // The others were over before it began, or went elsewhere, or no answer of theirs was captured.
    let mut before = short(900);
    before.last_time = Time(MS / 2);
    is_silent(&stuck(), &before);
    let mut elsewhere = short(900);
    elsewhere.destination = host(3);
    is_silent(&stuck(), &elsewhere);
    let mut unheard = short(900);
    unheard.ack_rtt_count = 0;
    is_silent(&stuck(), &unheard);
    // Answers that fit no connection may be its own.
    let mut stray = answered(&stuck());
    (stray.acks, stray.peer_flow_id) = (5, None);
    let run = run_of(&[&stuck(), &stray, &passes, &back(&passes)]);
    assert!(finding(&run, "mtu.exceeded").is_none());
}
