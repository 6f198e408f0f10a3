//! The truth of single transmissions, against the captures and against arithmetic.

use std::collections::BTreeMap;

use roce_sim::Scenario;
use roce_sim::truth::{Evidence, Flow, LossSide, PacketKind, TriggerKind};

use super::{data_flows, frames, truth_of};

fn two_hosts(network: &str, nic: &str, flow: &str, more: &str) -> String {
    format!(
        r#"
        duration = "4ms"
        [network]
        hosts = 2
        rate = "25Gbps"
        {network}
        [nic]
        timeout = "200us"
        {nic}
        [[flow]]
        from = "h1"
        to = "h2"
        psn = "zero"
        {flow}
        [[tap]]
        at = "h1"
        [[tap]]
        at = "h2"
        {more}
        "#
    )
}

const TO_H2: &str = "[[impairment]]\nfrom = \"leaf1\"\nto = \"h2\"\n";

#[test]
fn what_is_late_is_what_the_capture_shows() {
    for op in ["write", "read"] {
        let toml = two_hosts(
            "spray = { paths = 4, skew = \"10us\", jitter = \"1us\" }",
            "out_of_order = true",
            &format!("op = \"{op}\"\ncount = 2\nmessage = \"200KiB\"\noutstanding = 2"),
            "",
        );
        let truth = truth_of(&toml);
        assert!(truth.retransmission_runs.is_empty(), "{op}");
        // Data arrives at h2 by WRITE and at h1 by READ.
        let tap = usize::from(op == "write");
        let mut highest: Option<u32> = None;
        let mut first_beyond: BTreeMap<u32, u64> = BTreeMap::new();
        let mut expected = Vec::new();
        let data = frames(&Scenario::parse(&toml).unwrap(), tap);
        for frame in data
            .iter()
            .filter(|frame| frame.is_write() || (13..=16).contains(&frame.opcode))
        {
            match highest {
                Some(top) if frame.psn < top => {
                    let since = first_beyond.get(&frame.psn).copied().unwrap();
                    expected.push((
                        frame.psn,
                        u64::from(top - frame.psn),
                        frame.time,
                        frame.time - since,
                    ));
                }
                _ => {
                    for psn in highest.map_or(0, |top| top + 1)..frame.psn {
                        first_beyond.insert(psn, frame.time);
                    }
                    highest = Some(frame.psn);
                }
            }
        }
        let late: Vec<_> = truth.taps[tap]
            .late
            .iter()
            .filter(|late| late.kind != PacketKind::Ack)
            .map(|late| (late.psn, late.depth, late.time, late.behind_ns))
            .collect();
        assert!(expected.len() > 50, "{op}");
        assert_eq!(late.len(), expected.len(), "{op}");
        for (late, expected) in late.iter().zip(&expected) {
            // Both times are rounded down to a nanosecond, and so is their difference.
            assert_eq!(
                (late.0, late.1, late.2),
                (expected.0, expected.1, expected.2),
                "{op}"
            );
            assert!(late.3.abs_diff(expected.3) <= 1, "{op}");
        }
        let counted = truth.taps[tap]
            .flows
            .iter()
            .map(|flow| flow.late_depth_most)
            .max();
        assert_eq!(counted, late.iter().map(|late| late.1).max());
    }
}

#[test]
fn duplicates_are_known_at_the_tap() {
    let toml = two_hosts(
        "",
        "",
        "count = 20\ninterval = \"50us\"",
        &format!("{TO_H2}duplicate = 0.1\nduplicate_after = \"0us..1ms\""),
    );
    let truth = truth_of(&toml);
    let tap = &truth.taps[1];
    assert_eq!(tap.duplicates.len(), truth.duplicates.len());
    assert!(truth.taps[0].duplicates.is_empty());
    assert!(tap.late.is_empty() && tap.holes.is_empty());
    assert!(truth.retransmissions.is_empty());
}

#[test]
fn a_loss_is_decidable_where_its_nak_is_seen() {
    let truth = truth_of(&two_hosts(
        "",
        "",
        "count = 1\nmessage = \"100KiB\"",
        &format!("{TO_H2}drop = [10, 12]"),
    ));
    let [first, second] = truth.losses.as_slice() else {
        panic!("{:?}", truth.losses);
    };
    let view = |loss: &roce_sim::truth::Loss| -> Vec<_> {
        let taps = loss.at_taps.iter();
        taps.map(|tap| {
            (
                tap.tap.clone(),
                tap.side,
                tap.evidence,
                tap.in_retransmission_window,
                tap.decidable,
            )
        })
        .collect()
    };
    let (h1, h2) = ("h1".to_owned(), "h2".to_owned());
    assert_eq!(
        view(first),
        [
            (h1.clone(), LossSide::Behind, Evidence::Nak, false, true),
            (h2.clone(), LossSide::Before, Evidence::Nak, false, true)
        ]
    );
    // It lies in the window that is retransmitted: nothing shows that it was lost too.
    assert_eq!(
        view(second),
        [
            (h1, LossSide::Behind, Evidence::None, true, false),
            (h2, LossSide::Before, Evidence::None, true, false)
        ]
    );
    assert_eq!(truth.flows[0].requests_lost, 2);
}

#[test]
fn the_loss_of_a_last_packet_leaves_no_hole() {
    let truth = truth_of(&two_hosts(
        "",
        "ack_every = 1",
        "count = 1\nmessage = \"10KiB\"",
        &format!("{TO_H2}drop = [9]"),
    ));
    let at: Vec<_> = truth.losses[0]
        .at_taps
        .iter()
        .map(|tap| (tap.side, tap.evidence, tap.decidable))
        .collect();
    // The sender's tap has the packet twice: it may be the ACK that was lost. The receiver's tap has it once.
    assert_eq!(
        at,
        [
            (LossSide::Behind, Evidence::Timeout, false),
            (LossSide::Before, Evidence::Timeout, false)
        ]
    );
    // With another packet behind it, and the NAK lost, there is a hole that only the timer fills.
    let more = format!(
        "{TO_H2}drop = [8]\n[[impairment]]\nfrom = \"h2\"\nto = \"leaf1\"\nonly = \"nak\"\nloss = 1.0"
    );
    let truth = truth_of(
        &two_hosts("", "ack_every = 1", "count = 1\nmessage = \"10KiB\"", &more)
            .replace("at = \"h2\"", "at = \"h2\"\ndirection = \"rx\""),
    );
    let loss = &truth.losses[0];
    assert_eq!(
        (loss.at_taps[1].side, loss.at_taps[1].evidence),
        (LossSide::Before, Evidence::Timeout)
    );
}

#[test]
fn lost_read_responses_are_requested_again() {
    let more = "[[impairment]]\nfrom = \"leaf1\"\nto = \"h1\"\nonly = \"read-response\"\ndrop = [5]";
    let truth = truth_of(&two_hosts(
        "",
        "",
        "op = \"read\"\ncount = 1\nmessage = \"20KiB\"",
        more,
    ));
    let loss = &truth.losses[0];
    assert_eq!(loss.kind, PacketKind::ReadResponse);
    let at: Vec<_> = loss
        .at_taps
        .iter()
        .map(|tap| (tap.side, tap.evidence, tap.decidable))
        .collect();
    assert_eq!(
        at,
        [
            (LossSide::Before, Evidence::ImpliedNak, true),
            (LossSide::Behind, Evidence::ImpliedNak, true)
        ]
    );
    let responses = truth.flows.iter().find(|flow| flow.data_packets > 0).unwrap();
    assert_eq!(
        (
            responses.read_responses_lost,
            responses.retransmitted_by.implied_nak
        ),
        (1, responses.packets_retransmitted)
    );
    // The request once, and the responses 5 to 19, one of which had not arrived.
    assert_eq!(truth.retransmissions.len(), 1 + 15);
    assert!(
        truth
            .retransmissions
            .iter()
            .all(|retransmitted| retransmitted.cause == Some(TriggerKind::ImpliedNak))
    );
}

#[test]
fn each_retransmission_has_its_cause() {
    let toml = two_hosts(
        "",
        "ack_every = 8",
        "message = \"100KiB\"",
        &format!("{TO_H2}loss = 0.01\nlose_retransmissions = 0.1"),
    );
    let truth = truth_of(&toml);
    let flow = data_flows(&truth)[0];
    let by = flow.retransmitted_by;
    assert_eq!(
        by.nak + by.implied_nak + by.rnr + by.timeout + by.duplicate,
        flow.packets_retransmitted
    );
    assert_eq!(truth.retransmissions.len() as u64, flow.packets_retransmitted);
    assert!(by.nak > 0 && by.timeout > 0);
    for retransmitted in &truth.retransmissions {
        let run = &truth.retransmission_runs[retransmitted.run.unwrap() as usize];
        assert!(
            Some(run.trigger) == retransmitted.cause && (run.time..=run.end).contains(&retransmitted.time)
        );
        assert!(retransmitted.recorded_by.contains(&"h1".to_owned()));
    }
    assert!(
        truth
            .retransmission_runs
            .iter()
            .all(|run| run.needed || run.trigger == TriggerKind::Timeout)
    );
    // Reordering alone: no retransmission was needed.
    let spray = "spray = { paths = 4, skew = \"8us\" }";
    let truth = truth_of(&two_hosts(spray, "", "count = 3\nmessage = \"20KiB\"", ""));
    assert!(!truth.retransmission_runs.is_empty() && truth.retransmission_runs.iter().all(|run| !run.needed));
}

/// Times that a flow waited for each limit, as shares of the run.
fn shares(flow: &Flow, duration: u64) -> [f64; 6] {
    let l = &flow.limits;
    let all = [
        l.demand_ns,
        l.blocked_ns,
        l.dcqcn_ns,
        l.rate_limit_ns,
        l.port_ns,
        l.paused_ns,
    ];
    let sum: u64 = all.iter().sum();
    assert!(sum.abs_diff(duration) <= 6, "{sum}: each is rounded down");
    let in_ms: u64 = l.dcqcn_ns_per_ms.iter().sum();
    assert!(in_ms.abs_diff(l.dcqcn_ns) <= 100);
    all.map(|ns| ns as f64 / duration as f64)
}

#[test]
fn a_flow_has_one_limit_at_a_time() {
    let share = |flow: &str, place: usize| {
        let truth = truth_of(&two_hosts("", "mtu = 4096\nack_every = 16", flow, ""));
        shares(data_flows(&truth)[0], truth.duration_ns)[place]
    };
    // A quarter of the link's rate: the application, or the configured limit. 25 Gb/s and 6.25 Gb/s on the line.
    let demand = share("message = \"16KiB\"\npace = \"6.25Gbps\"", 0);
    // Three of a message's four packets of 1.337 us wait for the one before: 4.01 of 20.97 us.
    assert!((0.80..0.82).contains(&demand), "{demand}");
    let limit = share(
        "message = \"1MiB\"\noutstanding = 2\nrate_limit = \"6.25Gbps\"",
        3,
    );
    assert!(limit > 0.99, "{limit}");
    let port = share("message = \"1MiB\"\noutstanding = 4", 4);
    assert!(port > 0.99, "{port}");
}

#[test]
fn a_share_of_the_port_can_be_below_the_limiter() {
    // Eight queue pairs of h1 have an eighth of 25 Gb/s each, 3.1 Gb/s. Their first CNP halves a limit of 25 Gb/s: 12.5 Gb/s
    // bind nobody.
    let truth = truth_of(
        r#"
        duration = "5ms"
        [network]
        hosts = 3
        rate = "25Gbps"
        [switch]
        kmin = "20KB"
        kmax = "200KB"
        pmax = 0.2
        [nic]
        mtu = 4096
        ack_every = 16
        [[flow]]
        from = "h1"
        to = "h3"
        qps = 8
        message = "256KiB"
        outstanding = 2
        [[flow]]
        from = "h2"
        to = "h3"
        message = "256KiB"
        outstanding = 2
        [[tap]]
        at = "h3"
        "#,
    );
    let mut seen = 0;
    for flow in truth.flows.iter().filter(|flow| flow.source == "h1") {
        let first = truth
            .cnps
            .iter()
            .find(|cnp| cnp.flow_id == flow.flow_id && cnp.received.is_some());
        if let Some(cnp) = first {
            seen += 1;
            assert!(cnp.cut && !cnp.binding);
            assert_eq!(
                (cnp.rate_before_bps, cnp.rate_after_bps),
                (25_000_000_000, 12_500_000_000)
            );
        }
    }
    assert!(seen >= 4, "{seen}");
    // Cuts go on until the limits bind: those of h2's one queue pair do at once.
    assert!(truth.cnps.iter().any(|cnp| cnp.binding));
    let h2 = truth.flows.iter().find(|flow| flow.source == "h2").unwrap();
    assert!(h2.reacts && shares(h2, truth.duration_ns)[2] > 0.5);
    // Marks within the interval of 50 us cause no CNP: a marked packet is answered or counted.
    let (ce, paced): (u64, u64) = truth
        .flows
        .iter()
        .fold((0, 0), |(ce, paced), f| (ce + f.ce, paced + f.ce_paced));
    let arrived = truth.cnps.len() as u64 + paced;
    assert!(
        paced > 0 && arrived <= ce && arrived + 60 > ce,
        "{arrived} of {ce}"
    );
}

#[test]
fn a_port_paces_cnps_for_all_its_queue_pairs() {
    let keys = |scope: &str| {
        let truth = truth_of(&format!(
            r#"
            duration = "5ms"
            network = {{ hosts = 3, rate = "25Gbps" }}
            switch = {{ kmin = "20KB", kmax = "200KB", pmax = 0.2 }}
            nic = {{ mtu = 4096, ack_every = 16 }}
            dcqcn = {{ cnp_scope = "{scope}" }}
            flow = [{{ from = "h1..h2", to = "h3", qps = 4, message = "256KiB", outstanding = 2 }}]
            "#
        ));
        let key = |cnp: &roce_sim::truth::Cnp| match scope {
            "qp" => cnp.flow_id.clone(),
            "ip" => cnp.to.clone(),
            _ => String::new(),
        };
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        for cnp in &truth.cnps {
            if let Some(before) = last.insert(key(cnp), cnp.sent) {
                assert!(cnp.sent - before >= 50_000, "{scope}");
            }
        }
        last.len()
    };
    // Eight queue pairs, two senders, one port.
    assert_eq!(["qp", "ip", "port"].map(keys), [8, 2, 1]);
}
