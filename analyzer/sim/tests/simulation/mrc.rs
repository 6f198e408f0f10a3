//! Runs of MRC: what was injected is what the truth says, and nothing else.

use roce_sim::truth::{MrcCause, MrcConnection};
use roce_sim::{Scenario, Truth, simulate_in_memory};

/// Two hosts or more with four planes of two paths; `faults` are tables, `keys` of `[mrc]`, one a line.
fn parse(hosts: u32, keys: &str, faults: &str) -> Result<Scenario, roce_sim::Error> {
    let keys = keys.lines().filter_map(|line| line.split_once(" = "));
    let keys: Vec<_> = keys
        .map(|(key, value)| (format!("mrc.{key}"), value.to_owned()))
        .collect();
    Scenario::with_overrides(&toml(hosts, faults), &keys)
}

fn toml(hosts: u32, faults: &str) -> String {
    format!(
        "duration = \"400us\"\nnetwork = {{ hosts = {hosts}, rate = \"25Gbps\", ipv6 = true }}\nnic = {{ mtu = 1024 }}\n[mrc]\nplanes = 4\npaths = 2\n\
         evs = 8\nguard = 16\ntimeout = 6\nwindow = \"64KiB\"\n{faults}\n[[flow]]\ntransport = \"mrc\"\nfrom = \"h1..h{}\"\nto = \
         \"h{hosts}\"\nmessage = \"16KiB\"\noutstanding = 3\ncount = 60\n[[tap]]\nat = \"h1\"\n",
        hosts - 1
    )
}

fn run(hosts: u32, keys: &str, faults: &str) -> Truth {
    simulate_in_memory(&parse(hosts, keys, faults).unwrap())
        .unwrap()
        .0
}

fn only(truth: &Truth) -> &MrcConnection {
    assert_eq!(truth.mrc.len(), 1);
    &truth.mrc[0]
}

#[test]
fn without_a_fault_all_arrives_at_once() {
    let truth = run(2, "", "");
    let connection = only(&truth);
    // 60 messages of 16 packets.
    assert_eq!((connection.packets, connection.messages), (960, 60));
    assert!(connection.losses.is_empty() && connection.trims.is_empty());
    assert!(connection.retransmissions.is_empty() && connection.left.is_empty());
    assert!(truth.findings.is_empty());
    assert_eq!(run(2, "", ""), truth, "the same each time");
    assert_eq!(Truth::from_json(&truth.to_json().unwrap()).unwrap(), truth);
}

#[test]
fn a_dead_path_is_left_for_another_of_its_plane() {
    let dead = "[[mrc.path]]\nplane = 2\npath = 1\nloss = 1.0\nbegin = \"50us\"";
    let truth = run(2, "", dead);
    let connection = only(&truth);
    let lost = &connection.losses;
    assert!(lost.len() >= 2, "two in succession, and what was under way");
    assert!(
        lost.iter()
            .all(|loss| (loss.path.plane, loss.path.path) == (2, 1) && loss.place == "path")
    );
    assert!(lost.iter().all(|loss| loss.time >= 50_000 && loss.repaired));
    let again = &connection.retransmissions;
    assert_eq!(again.len(), lost.len());
    assert!(
        again
            .iter()
            .all(|again| again.needed && again.cause != MrcCause::Nack(1))
    );
    // The one that was in use, and whatever took its place on the same path.
    assert!(
        connection
            .left
            .iter()
            .all(|left| (left.path.plane, left.path.path) == (2, 1))
    );
    assert_eq!(connection.messages, 60);
    assert!(truth.findings.iter().any(|finding| finding.id == "mrc.path.dead"));
}

#[test]
fn trims_are_refused_and_sent_again_at_once() {
    let truth = run(2, "", "[[mrc.path]]\nplane = 1\npath = 0\ntrim = 0.1");
    let connection = only(&truth);
    // One packet in eight goes there, one in ten of them is trimmed: 12 of 960, +- 5 standard deviations of 3.4.
    assert!(
        (1..=29).contains(&connection.trims.len()),
        "{}",
        connection.trims.len()
    );
    assert!(
        connection
            .trims
            .iter()
            .all(|trim| trim.reason == 1 && trim.nacked && trim.path.plane == 1)
    );
    let causes = connection.retransmissions.iter().map(|again| again.cause);
    assert_eq!(
        causes.collect::<Vec<_>>(),
        vec![MrcCause::Nack(1); connection.trims.len()]
    );
    assert!(connection.losses.is_empty());
}

#[test]
fn senders_that_overload_a_host_are_trimmed_at_the_last_hop() {
    let truth = run(5, "queue = \"20KB\"\nguard = 1000\ntimeout = 9", "");
    let trims: Vec<_> = truth
        .mrc
        .iter()
        .flat_map(|connection| &connection.trims)
        .collect();
    assert!(trims.len() > 10 && trims.iter().all(|trim| trim.reason == 2));
    assert!(truth.mrc.iter().all(|connection| connection.losses.is_empty()));
    assert!(
        truth
            .findings
            .iter()
            .any(|finding| finding.id == "mrc.trim.lasthop")
    );
    // Without trimming the same queue drops.
    let dropped = run(5, "queue = \"20KB\"\ntrim = false\ntimeout = 9", "");
    let mut losses = dropped.mrc.iter().flat_map(|connection| &connection.losses);
    assert!(losses.clone().count() > 10 && losses.all(|loss| loss.place == "last-hop"));
}

#[test]
fn a_guard_below_the_skew_repeats_what_arrives() {
    let slow = "[[mrc.path]]\nplane = 0\ndelay = \"20us\"";
    let truth = run(2, "guard = 4\nsack_bytes = 1024", slow);
    let connection = only(&truth);
    assert!(connection.retransmissions.len() > 10 && connection.losses.is_empty());
    let cause = |again: &roce_sim::truth::MrcRetransmission| again.cause == MrcCause::Hole && !again.needed;
    assert!(connection.retransmissions.iter().all(cause));
}

#[test]
fn the_timeout_makes_up_for_what_nothing_overtakes() {
    // All is lost for a while, so that no later packet shows the hole.
    let dark = [0, 1, 2, 3]
        .map(|plane| format!("[[mrc.path]]\nplane = {plane}\nloss = 1.0\nbegin = \"30us\"\nend = \"40us\"\n"))
        .concat();
    let truth = run(2, "window = \"16KiB\"\nguard = 64\nlosses_to_leave = 100", &dark);
    let connection = only(&truth);
    let timeouts = connection.retransmissions.iter();
    let timeouts: Vec<_> = timeouts
        .filter(|again| again.cause == MrcCause::Timeout)
        .collect();
    assert!(!timeouts.is_empty());
    // 1.024 us x 2^6 behind the last sending, which is after 20 us.
    assert!(timeouts.iter().all(|again| again.time >= 20_000 + 65_536));
    // Where all stays dark the connection fails: at 7 timeouts and two that are longer, here of 2 us.
    let dark = dark.replace("\nend = \"40us\"", "");
    let truth = run(2, "timeout = 1\nretries = 8\nguard = 64", &dark);
    assert!(only(&truth).failed.is_some());
}

#[test]
fn a_port_that_is_down_is_used_no_more() {
    let down = "[[mrc.port]]\nhost = \"h2\"\nplane = 3\ndown = \"100us\"";
    let truth = run(2, "", down);
    let connection = only(&truth);
    assert!(
        connection
            .losses
            .iter()
            .all(|loss| loss.place == "port" && loss.path.plane == 3)
    );
    assert!(!connection.losses.is_empty() && connection.messages == 60);
    // The report takes 5 us and a way; then nothing is sent to the port.
    assert!(connection.losses.iter().all(|loss| loss.time < 110_000));
}

#[test]
fn a_penalty_slows_a_sender_down() {
    let asks = "[[mrc.responder]]\nhost = \"h2\"\npenalty = 120";
    let packets = |faults| only(&run(2, "window = \"32KiB\"", faults)).retransmissions.len();
    assert_eq!(packets(asks), 0);
    let slow = run(2, "window = \"32KiB\"", asks);
    let quick = run(2, "window = \"32KiB\"", "");
    assert!(only(&slow).messages < only(&quick).messages);
    assert!(
        slow.findings
            .iter()
            .any(|finding| finding.id == "mrc.responder.limit")
    );
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (change, text) in [
        ("planes = 9", "mrc.planes is 9"),
        ("evs = 6", "mrc.evs is 6"),
        ("trim_bytes = 64", "mrc.trim_bytes"),
        ("control_loss = 2.0", "mrc.control_loss"),
    ] {
        let error = parse(2, change, "").unwrap_err().to_string();
        assert!(error.contains(text), "{change}: {error}");
    }
    let faults = "[[mrc.path]]\nplane = 4";
    let error = parse(2, "", faults).unwrap_err().to_string();
    assert!(error.contains("there is no such path"), "{error}");
    let tap = toml(2, "").replace("at = \"h1\"", "at = \"h1:p4\"");
    let error = simulate_in_memory(&Scenario::parse(&tap).unwrap()).unwrap_err();
    assert!(error.to_string().contains("h1:p0 to h1:p3"), "{error}");
}
