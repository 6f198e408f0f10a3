//! Where the time of flows went: sums, and cases whose division is arithmetic.

use roce_sim::truth::{FlowTimes, TimeState, TriggerKind};
use roce_sim::{Scenario, Truth, demos, simulate_in_memory};

use super::truth_of;

/// Checks that each row is a division of its life, and returns the number of rows.
fn check(name: &str, truth: &Truth) -> usize {
    for row in &truth.times {
        let life = row.last_time - row.first_time;
        assert_eq!(row.states.len(), TimeState::ALL.len(), "{name}");
        assert_eq!(row.states.values().sum::<u64>(), life, "{name}: {row:?}");
        for open in &row.open {
            let parts = row.open.iter().filter(|other| other.state == open.state);
            let sum: u64 = parts.map(|part| part.ns).sum();
            assert!(sum <= row.states[&open.state], "{name}: {row:?}");
        }
    }
    truth.times.len()
}

/// The row of the flow from one host to another.
fn row<'a>(truth: &'a Truth, from: &str, to: &str) -> &'a FlowTimes {
    let mut flows = truth.flows.iter();
    let flow = flows.find(|flow| flow.source == from && flow.destination == to && flow.data_packets > 0);
    let flow = &flow.unwrap().flow_id;
    truth.times.iter().find(|row| row.flow_id == *flow).unwrap()
}

fn share(row: &FlowTimes, state: TimeState) -> f64 {
    row.states[&state] as f64 / (row.last_time - row.first_time) as f64
}

/// Two hosts at a cable of 10 Gbit/s and 1 us, with a tap at the sender.
fn cable(more: &str) -> String {
    format!(
        r#"
        duration = "10ms"
        [network]
        hosts = 2
        topology = "direct"
        rate = "10Gbps"
        delay = "1us"
        [[tap]]
        at = "h1"
        {more}
        "#
    )
}

#[test]
fn the_sum_is_the_life_in_every_demo() {
    for demo in demos::DEMOS {
        let (truth, _) = simulate_in_memory(&Scenario::parse(demo.toml).unwrap()).unwrap();
        // The truth of MRC says nothing of times.
        assert_eq!(
            check(demo.name, &truth) > 0,
            truth.mrc.is_empty(),
            "{}",
            demo.name
        );
    }
}

#[test]
fn a_sender_at_line_rate_sends_all_the_time() {
    let truth = truth_of(&cable(
        "[[flow]]\nfrom = \"h1\"\nto = \"h2\"\nmessage = \"64KiB\"\noutstanding = 8",
    ));
    check("line rate", &truth);
    assert!(share(row(&truth, "h1", "h2"), TimeState::Sending) > 0.999);
}

#[test]
fn bursts_at_line_rate_leave_the_rest_idle() {
    let truth = truth_of(&cable(
        "[[flow]]\nfrom = \"h1\"\nto = \"h2\"\nmessage = \"64KiB\"\ninterval = \"200us\"",
    ));
    check("bursts", &truth);
    let row = row(&truth, "h1", "h2");
    // 64 frames of 1,024 + 62 (Ethernet, IPv4, UDP, BTH, ICRC, of one RETH 16 more) + 24 bytes on the line: 71,056 bytes take 56.8 us.
    let expected = 71_056.0 * 8.0 / 10e9 / 200e-6;
    assert!(
        (share(row, TimeState::Sending) - expected).abs() < 0.02,
        "{row:?}"
    );
    assert!(
        (share(row, TimeState::Idle) - (1.0 - expected)).abs() < 0.02,
        "{row:?}"
    );
    // The answer of each message is on its way for 2 us and two frames of 200 us.
    let open: u64 = row.open.iter().map(|open| open.ns).sum();
    assert!(open < row.states[&TimeState::Idle] / 20, "{row:?}");
}

#[test]
fn silences_before_timeouts_are_the_time_of_timeouts() {
    let truth = truth_of(&cable(
        r#"
        [nic]
        timeout = "500us"
        [[flow]]
        from = "h1"
        to = "h2"
        message = "1KiB"
        interval = "50us"
        count = 100
        [[impairment]]
        from = "h1"
        to = "h2"
        only = "data"
        drop = [99]
        "#,
    ));
    check("timeout", &truth);
    let runs = truth.retransmission_runs.iter();
    let runs = runs.filter(|run| run.trigger == TriggerKind::Timeout);
    let silences: u64 = runs.map(|run| run.silence_ns).sum();
    assert!((450_000..=550_000).contains(&silences), "{silences}");
    assert_eq!(row(&truth, "h1", "h2").states[&TimeState::Timeout], silences);
}

#[test]
fn a_wait_for_a_receive_buffer_has_the_length_of_the_timer() {
    // Code 14 of the RNR timer is 1.28 ms (IBTA table 45).
    let truth = truth_of(&cable(
        r#"
        [nic]
        rnr_timer = 14
        [[flow]]
        from = "h1"
        to = "h2"
        op = "send"
        message = "1KiB"
        count = 3
        receives = 1
        refill = "1ms"
        "#,
    ));
    check("rnr", &truth);
    let rnr = row(&truth, "h1", "h2").states[&TimeState::Rnr];
    let naks = truth.naks.len() as u64;
    assert!(naks > 0);
    assert_eq!(rnr, naks * 1_280_000);
}

#[test]
fn a_storm_pauses_who_has_something_to_send() {
    let truth = truth_of(
        r#"
        duration = "10ms"
        [network]
        hosts = 2
        topology = "direct"
        rate = "10Gbps"
        [[flow]]
        from = "h1"
        to = "h2"
        message = "64KiB"
        outstanding = 8
        [[pause]]
        host = "h2"
        begin = "1ms"
        on = "300us"
        off = "700us"
        [[tap]]
        at = "h1"
        "#,
    );
    check("storm", &truth);
    let row = row(&truth, "h1", "h2");
    // Nine pauses of 0.3 ms in 10 ms; what was sent before them may be answered in them.
    assert!((share(row, TimeState::Paused) - 0.27).abs() < 0.01, "{row:?}");
    assert!((share(row, TimeState::Sending) - 0.73).abs() < 0.01, "{row:?}");
}

#[test]
fn a_full_window_waits_for_its_answers() {
    let truth = truth_of(&cable(
        r#"
        [nic]
        window = "4KiB"
        [[flow]]
        from = "h1"
        to = "h2"
        message = "1MiB"
        "#,
    ));
    check("window", &truth);
    let row = row(&truth, "h1", "h2");
    assert!(
        share(row, TimeState::Window) + share(row, TimeState::Sending) > 0.99,
        "{row:?}"
    );
}
