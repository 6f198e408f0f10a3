//! Nothing is made of nothing, and nothing vanishes; and a run can be repeated.

use roce_sim::{Scenario, demos, simulate_in_memory};

#[test]
fn every_packet_arrives_or_is_lost_or_is_in_flight() {
    for demo in demos::DEMOS {
        let (truth, captures) = simulate_in_memory(&Scenario::parse(demo.toml).unwrap()).unwrap();
        let mut left = 0;
        for flow in &truth.flows {
            assert!(
                flow.packets_sent >= flow.packets_received + flow.packets_lost,
                "{}: {flow:?}",
                demo.name
            );
            left += flow.packets_sent - flow.packets_received - flow.packets_lost;
        }
        assert_eq!(left, truth.in_flight, "{}", demo.name);
        let lost: u64 = truth.flows.iter().map(|flow| flow.packets_lost).sum();
        let cnps = truth
            .losses
            .iter()
            .filter(|loss| loss.kind == roce_sim::truth::PacketKind::Cnp);
        assert_eq!(lost, (truth.losses.len() - cnps.count()) as u64, "{}", demo.name);
        for capture in captures {
            assert!(
                capture.bytes.len() < 300_000,
                "{}: {}",
                demo.name,
                capture.bytes.len()
            );
        }
    }
}

/// Everything that can go wrong at once, on a network and with NICs of one kind.
fn trouble(seed: u64, network: &str, leaf: &str, nic: &str) -> String {
    format!(
        r#"
        duration = "3ms"
        seed = {seed}
        [network]
        hosts = 2
        rate = "25Gbps"
        spray = {{ paths = 4, skew = "20us", jitter = "2us" }}
        {network}
        [nic]
        timeout = "100us"
        ack_every = 4
        {nic}
        [switch]
        kmin = "5KB"
        queue_limit = "60KB"
        [[flow]]
        from = "h1"
        to = "h2"
        qps = 3
        message = "30KiB"
        outstanding = 2
        direction = "both"
        [[flow]]
        from = "h1"
        to = "h2"
        op = "read"
        message = "30KiB"
        pace = "3Gbps"
        outstanding = 4
        [[flow]]
        from = "h2"
        to = "h1"
        op = "send"
        message = "3KiB"
        on = "100us"
        off = "200us"
        receives = 3
        refill = "20us"
        [[tap]]
        at = "h1"
        [[tap]]
        at = "h2"
        [[impairment]]
        from = "{leaf}"
        to = "h1"
        loss = 0.01
        lose_retransmissions = 0.2
        duplicate = 0.02
        duplicate_after = "0us..300us"
        corrupt = 0.005
        [[impairment]]
        from = "h1"
        to = "{back}"
        only = "data"
        loss = 0.005
        times = 2
        reorder = 0.01
        reorder_delay = "7us"
        "#,
        back = if leaf == "h2" { "h2" } else { leaf },
    )
}

#[test]
fn the_books_balance_in_all_trouble() {
    for (network, leaf) in [
        ("topology = \"direct\"", "h2"),
        ("topology = \"leaf\"", "leaf1"),
        ("topology = \"leaf-spine\"", "leaf1"),
    ] {
        for nic in [
            "recovery = \"go-back-n\"",
            "recovery = \"selective\"",
            "out_of_order = true",
            "out_of_order = true\nooo_nak_after = \"30us\"",
            "out_of_order = true\nooo_nak_packets = 60\nduplicate_ack = \"always\"",
        ] {
            let scenario = Scenario::parse(&trouble(7, network, leaf, nic)).unwrap();
            let (truth, _) = simulate_in_memory(&scenario).unwrap();
            let flows = || truth.flows.iter();
            let left: u64 = flows()
                .map(|flow| flow.packets_sent - flow.packets_received - flow.packets_lost)
                .sum();
            assert_eq!(left, truth.in_flight, "{network} {nic}");
            assert!(!truth.losses.is_empty() && !truth.duplicates.is_empty());
            // Go-back-N hardly makes progress over paths 20 us apart. Retransmissions are listed with
            // their causes.
            let messages: u64 = flows().map(|flow| flow.messages).sum();
            assert!(messages > 5, "{network} {nic}: {messages}");
            let again: u64 = flows().map(|flow| flow.packets_retransmitted).sum();
            assert_eq!(truth.retransmissions.len() as u64, again, "{network} {nic}");
            for tap in &truth.taps {
                let late: u64 = tap.flows.iter().map(|flow| flow.late).sum();
                assert_eq!(tap.late.len() as u64, late);
                let recorded = truth
                    .retransmissions
                    .iter()
                    .filter(|sent| sent.recorded_by.contains(&tap.name));
                let counted = tap.flows.iter().map(|flow| {
                    let by = flow.retransmitted_by;
                    by.nak + by.implied_nak + by.rnr + by.timeout + by.duplicate
                });
                assert_eq!(recorded.count() as u64, counted.sum::<u64>(), "{network} {nic}");
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_bytes_and_another_gives_others() {
    let demo = demos::named("lossy").unwrap();
    let run = |seed: &str| {
        let overrides = [("seed".to_owned(), seed.to_owned())];
        let scenario = Scenario::with_overrides(demo.toml, &overrides).unwrap();
        let (truth, captures) = simulate_in_memory(&scenario).unwrap();
        (truth.to_json().unwrap(), captures)
    };
    let first = run("5");
    assert_eq!(first, run("5"));
    assert_ne!(first.1, run("6").1);
}

#[test]
fn a_truth_can_be_read_back() {
    let demo = demos::named("no-ecn").unwrap();
    let (truth, _) = simulate_in_memory(&Scenario::parse(demo.toml).unwrap()).unwrap();
    let text = truth.to_json().unwrap();
    assert_eq!(roce_sim::Truth::from_json(&text).unwrap(), truth);
}

#[test]
fn each_demo_shows_what_it_is_for() {
    for (name, expected) in [
        ("clean", &[] as &[&str]),
        ("incast", &["ecn.working", "incast"]),
        ("no-ecn", &["ecn.not-capable", "loss.network", "incast"]),
        ("no-cnp", &["ecn.marks-without-cnp", "incast"]),
        ("cnp-ignored", &["cnp.ignored"]),
        ("shared-port", &[]),
        ("wrong-dscp", &["dscp.mismatch", "loss.network"]),
        ("lossy", &["loss.network"]),
        ("rnr", &["rnr"]),
        ("pause-storm", &["pause.storm"]),
        ("pause-origin", &["pause.storm"]),
        ("capture-loss", &["loss.capture"]),
        ("span-doubled", &[]),
        ("sprayed", &[]),
        ("ecmp-collision", &["ecmp.entropy"]),
        ("training", &[]),
        ("mrc-bad-path", &["mrc.path.dead"]),
    ] {
        let demo = demos::named(name).unwrap();
        let (truth, _) = simulate_in_memory(&Scenario::parse(demo.toml).unwrap()).unwrap();
        for id in expected {
            let found = truth.findings.iter().find(|finding| finding.id == *id);
            assert!(
                found.is_some_and(|finding| !finding.taps.is_empty()),
                "{name}: {id}"
            );
        }
        if expected.is_empty() {
            let shown = truth.findings.iter().filter(|finding| !finding.taps.is_empty());
            assert_eq!(shown.count(), 0, "{name}: {:?}", truth.findings);
        }
        let ignored = truth.findings.iter().any(|finding| finding.id == "cnp.ignored");
        assert_eq!(ignored, *name == *"cnp-ignored", "{name}: cnp.ignored");
    }
}
