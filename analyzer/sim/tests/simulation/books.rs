//! Nothing is made of nothing, and nothing vanishes; and a run can be repeated.

use roce_sim::{Scenario, demos, simulate_in_memory};

#[test]
fn every_packet_arrives_or_is_lost_or_is_under_way() {
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
        ("wrong-dscp", &["dscp.mismatch", "loss.network"]),
        ("lossy", &["loss.network"]),
        ("rnr", &["rnr"]),
        ("pause-storm", &["pause.storm"]),
        ("capture-loss", &["loss.capture"]),
        ("ecmp-collision", &["ecmp.entropy", "ecn.working"]),
        ("training", &[]),
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
            assert!(truth.findings.is_empty(), "{name}: {:?}", truth.findings);
        }
    }
}
