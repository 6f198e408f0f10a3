//! The options that shape verdicts and results, what explains them, and captures made from scenarios.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::captures::root;
use crate::cli::{folder, refusal, refused};
use crate::command::{command, document, ran, run, total};

#[test]
fn a_configuration_gives_defaults_and_the_command_line_is_stronger() {
    let folder = folder(b"");
    fs::write(
        folder.path().join("rack.toml"),
        "# rack 7\nbin = \"100us\"\nflow = \"service ud\"\nlink-rate = \"25G\"\ndscp-map = \"26=4\"\nmax-flows = 500\n",
    )
    .unwrap();
    let with = |more: &[&str]| {
        let given = ["good.pcap", "--config", "rack.toml"];
        document(folder.path(), given.iter().chain(more))
    };
    let found = with(&[]);
    assert_eq!(found["run"]["bin_ns"], 100_000);
    // rping has 65 packets, of which 5 are UD, see tests/data/golden. All are analysed; the flows of the 5 are
    // shown.
    assert_eq!(total(&found, "roce_packets"), 65);
    assert_eq!(shown_packets(&found), 5);
    let options = &found["run"]["options"];
    for (name, value) in [
        ("config", "rack.toml"),
        ("flow", "service ud"),
        ("link_rate_bps", "25000000000"),
        ("dscp_map", "26=4"),
        ("max_flows", "500"),
    ] {
        assert_eq!(options[name], value, "{options}");
    }
    let stronger = with(&["--bin", "1s", "--flow", "service rc", "--link-rate", "100G"]);
    assert_eq!(stronger["run"]["bin_ns"], 1_000_000_000);
    assert_eq!(shown_packets(&stronger), 60);
    let only = with(&["--only-flow", "service ud"]);
    assert_eq!(total(&only, "roce_packets"), 5);
    assert_eq!(only["run"]["options"]["only_flow"], "service ud");
    assert_eq!(stronger["run"]["options"]["link_rate_bps"], "100000000000");
    assert_eq!(stronger["run"]["options"]["dscp_map"], "26=4");
}

/// Packets of the flows in a document.
fn shown_packets(document: &serde_json::Value) -> u64 {
    let flows = document["flows"].as_array().unwrap();
    flows.iter().map(|flow| flow["packets"].as_u64().unwrap()).sum()
}

#[test]
fn a_finding_can_fail_the_run() {
    // RNR NAKs are a warning, and nothing in that capture is worse: see captures/README.md.
    let with = |arguments: &[&str]| run(&root(), ["captures/rnr.pcap"].iter().chain(arguments));
    let codes: Vec<Option<i32>> = [
        &[][..],
        &["--fail-on", "info"],
        &["--fail-on", "warning"],
        &["--fail-on", "critical"],
    ]
    .iter()
    .map(|arguments| with(arguments).code)
    .collect();
    assert_eq!(codes, [Some(0), Some(1), Some(1), Some(0)]);
    // The results are there all the same, and a line names the finding.
    let failed = with(&["--fail-on", "warning", "--format", "json"]);
    assert_eq!(failed.stderr, "failed: --fail-on: rnr (warning)\n");
    // By id, whatever its severity is, and in lists.
    for (names, code, said) in [
        ("rnr", 1, "failed: --fail-on: rnr (warning)\n"),
        ("loss.network", 0, ""),
        ("critical,rnr", 1, "failed: --fail-on: rnr (warning)\n"),
    ] {
        let ran = with(&["--fail-on", names]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), said), "{names}");
    }
    assert_snapshot!(
        "fail_on_nothing",
        refusal(&["good.pcap", "--fail-on", "loss.netwrk"])
    );
    let found = failed.json();
    let mut ids = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| &finding["id"]);
    assert!(ids.any(|id| id == "rnr"), "{}", found["findings"]);
    // An error is worse than a finding.
    let both = run(
        &root(),
        ["captures/rnr.pcap", "missing.pcap", "--fail-on", "warning"],
    );
    assert_eq!(both.code, Some(2));
}

#[test]
fn a_word_that_is_no_capture_gets_a_hint() {
    assert_snapshot!("command_probe", refusal(&["probe"]));
    assert_snapshot!("command_nearly", refusal(&["dmeo"]));
    assert_snapshot!("command_none", refusal(&["nosuchcommand"]));
}

#[test]
fn names_that_results_print_select_flows() {
    // The name of the flow as the verdict prints it.
    let path = "captures/write_bw_loss.pcap";
    let text = run(&root(), [path]).good().stdout;
    let name = "10.77.0.1 > 10.77.0.2 QP 0x13";
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(name), "{text}");
    for (expression, flows) in [(name, 1), ("qp 0x13", 2), ("10.77.0.2 QPN 0x13", 2)] {
        let found = document(&root(), [path, "--flow", expression]);
        assert_eq!(found["flows"].as_array().unwrap().len(), flows, "{expression}");
    }
}

#[test]
fn manual_pages_know_names() {
    let live = run(&root(), ["man", "live"]).good().stdout;
    assert!(
        live.contains("roce\\-analyze\\-live") && live.contains("promiscuous"),
        "{live}"
    );
    assert!(!run(&root(), ["man"]).good().stdout.contains("promiscuous"));
    let refused = refusal(&["man", "capture"]);
    assert!(
        refused.starts_with("exit 2\nerror: there is no command 'capture'\nhint: the commands are ")
            && refused.contains("compare"),
        "{refused}"
    );
}

#[test]
fn findings_are_explained() {
    let said = |arguments: &[&str]| run(&root(), arguments).good().stdout;
    assert_snapshot!("explain_loss", said(&["explain", "loss.network"]));
    assert_snapshot!("explain_list", said(&["explain", "list"]));
    assert_snapshot!("explain_nothing", refusal(&["explain", "loss.netwrk"]));
    let mut narrow = command(&root());
    narrow.args(["explain", "rnr"]).env("COLUMNS", "50");
    let text = ran(&mut narrow).good().stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
    // With a configuration, thresholds are those of it.
    let folder = folder(b"");
    fs::write(
        folder.path().join("rack.toml"),
        "[thresholds]\nincast_senders = 9\nepisode_quiet = \"2ms\"\n",
    )
    .unwrap();
    let explained = run(folder.path(), ["explain", "incast", "--config", "rack.toml"])
        .good()
        .stdout;
    assert!(
        explained.contains("incast_senders = 9 (the default is "),
        "{explained}"
    );
    assert!(
        explained.contains("episode_quiet = \"2ms\" (the default is "),
        "{explained}"
    );
    let options = &document(folder.path(), ["good.pcap", "--config", "rack.toml"])["run"]["options"];
    assert_eq!(options["threshold.incast_senders"], "9");
    assert_eq!(options["threshold.episode_quiet"], "2000000");
    for (name, text) in [
        ("threshold_no_time", "[thresholds]\nepisode_quiet = 5\n"),
        ("threshold_no_number", "[thresholds]\nincast_senders = \"5ms\"\n"),
        ("threshold_negative", "[thresholds]\nloss_critical = -0.5\n"),
    ] {
        fs::write(folder.path().join("rack.toml"), text).unwrap();
        assert_snapshot!(
            name,
            refused(&run(folder.path(), ["good.pcap", "--config", "rack.toml"]))
        );
    }
}

#[test]
fn a_wrong_configuration_is_pointed_at() {
    let refused_with = |text: &str| {
        let folder = folder(b"");
        fs::write(folder.path().join("rack.toml"), text).unwrap();
        refused(&run(folder.path(), ["good.pcap", "--config", "rack.toml"]))
    };
    assert_snapshot!(
        "config_unknown_key",
        refused_with("bin = \"1ms\"\nlinkrate = \"25G\"\n")
    );
    assert_snapshot!("config_wrong_value", refused_with("\nbin = \"1 parsec\"\n"));
    assert_snapshot!("config_no_toml", refused_with("bin = 1ms\n"));
    assert_snapshot!(
        "config_unknown_threshold",
        refused_with("[thresholds]\nincast_sender = 4\n")
    );
    assert_snapshot!(
        "config_missing",
        refusal(&["good.pcap", "--config", "missing.toml"])
    );
}

#[test]
fn a_training_log_is_read_or_refused() {
    let folder = folder(b"");
    let log = "Epoch 1\nIteration 10 | Loss: 2.3 | AllReduce: 45.2ms | Total: 156.3ms\n";
    fs::write(folder.path().join("train.log"), log).unwrap();
    let found = document(folder.path(), ["good.pcap", "--training-log", "train.log"]);
    assert_eq!(found["run"]["options"]["training_log"], "train.log");
    fs::write(folder.path().join("other.log"), "nothing\nof use\n").unwrap();
    assert_snapshot!(
        "training_log_without_steps",
        refused(&run(folder.path(), ["good.pcap", "--training-log", "other.log"]))
    );
    let pattern = "took (?<total_s>[0-9.]+) s in step (?<step>[0-9]+)";
    fs::write(folder.path().join("own.log"), "took 0.5 s in step 7\n").unwrap();
    let given = [
        "good.pcap",
        "--training-log",
        "own.log",
        "--training-log-pattern",
        pattern,
    ];
    assert_eq!(
        document(folder.path(), given)["run"]["options"]["training_log_pattern"],
        pattern
    );
    assert_snapshot!(
        "training_log_missing",
        refusal(&["good.pcap", "--training-log", "no.log"])
    );
}

#[test]
fn a_scenario_becomes_captures_and_their_truth() {
    let folder = folder(b"");
    let scenario = r#"
        duration = "1ms"
        network = { hosts = 2, rate = "25Gbps" }
        flow = [{ from = "h1", to = "h2", message = "64KiB", count = 1 }]
        tap = [{ at = "h2" }]
    "#;
    fs::write(folder.path().join("one.toml"), scenario).unwrap();
    let made = run(
        folder.path(),
        [
            "simulate",
            "one.toml",
            "-o",
            "one.pcapng",
            "--truth",
            "one.json",
            "--set",
            "flow.0.message=8KiB",
        ],
    )
    .good();
    assert_eq!(made.stdout, "one.pcapng\none.json\n");
    let truth = fs::read_to_string(folder.path().join("one.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    assert_eq!(truth["losses"].as_array().map(Vec::len), Some(0));
    let found = document(folder.path(), ["one.pcapng"]);
    // One message of 8 KiB, nothing lost.
    assert_eq!(total(&found, "payload_bytes"), 8_192);
    assert_eq!(
        (total(&found, "missing"), total(&found, "retransmitted_packets")),
        (0, 0)
    );
    // A simulation that runs again gives equal bytes.
    let first = fs::read(folder.path().join("one.pcapng")).unwrap();
    run(
        folder.path(),
        [
            "simulate",
            "one.toml",
            "-o",
            "two.pcapng",
            "--set",
            "flow.0.message=8KiB",
        ],
    )
    .good();
    assert_eq!(fs::read(folder.path().join("two.pcapng")).unwrap(), first);
    // Without a capture the truth can be written alone, to standard output.
    let alone = run(folder.path(), ["simulate", "one.toml", "--truth", "-"]).good();
    assert!(alone.json()["losses"].is_array());

    let refused_with = |arguments: &[&str]| refused(&run(folder.path(), arguments));
    assert_snapshot!(
        "simulate_what",
        refused_with(&["simulate", "two.toml", "-o", "x.pcapng"])
    );
    assert_snapshot!("simulate_where", refused_with(&["simulate", "one.toml"]));
    assert_snapshot!(
        "simulate_set_nothing",
        refused_with(&["simulate", "one.toml", "-o", "x.pcapng", "--set", "kmin"])
    );
    let wrong = run(
        folder.path(),
        [
            "simulate",
            "one.toml",
            "-o",
            "x.pcapng",
            "--set",
            "network.hots=3",
        ],
    );
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.starts_with("error: one.toml: scenario: "),
        "{wrong:?}"
    );
    assert!(wrong.stderr.contains("hots"), "{wrong:?}");
}

#[test]
fn a_run_that_shows_nothing_fails_who_asks_for_findings() {
    let folder = folder(b"");
    // A pcap header alone: what tcpdump writes beside an adapter that bypasses the kernel.
    let mut header = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    header.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    fs::write(folder.path().join("none.pcap"), header).unwrap();
    let of = |more: &[&str]| run(folder.path(), ["none.pcap"].iter().chain(more));
    assert_eq!(of(&[]).good().code, Some(0));
    for asked in ["warning", "no-roce", "loss.network"] {
        let failed = of(&["--fail-on", asked]);
        assert_eq!(failed.code, Some(1), "{asked}");
        let line = "failed: --fail-on: no-roce (no RoCE packet to judge)\n";
        assert_eq!(failed.stderr, line, "{asked}");
    }
    let fine = run(folder.path(), ["good.pcap", "--fail-on", "no-roce"]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
}

#[test]
fn a_time_without_frames_and_flows_that_do_not_exist_are_said() {
    let folder = root();
    let late = ["captures/write_bw_loss.pcap", "--from", "+5s"];
    // The capture is 0.84 s long (capinfos).
    let said = run(&folder, late).good().stdout;
    assert!(
        said.contains("nothing to judge: no frame lies between --from and --to"),
        "{said}"
    );
    let warned = run(&folder, late.iter().chain(&["--format", "json"]));
    let warning = "none of its 2689 frames lies between --from and --to";
    assert!(warned.stderr.contains(warning), "{}", warned.stderr);
    assert_eq!(warned.json()["run"]["inputs"][0]["warnings"][0], warning);

    let nobody = ["captures/write_bw_loss.pcap", "--flow", "10.77.0.9"];
    let said = run(&folder, nobody).good().stdout;
    assert!(said.contains("no flow matches 10.77.0.9"), "{said}");
    assert!(!said.contains("0 data packets"), "{said}");
    let warned = run(&folder, nobody.iter().chain(&["--format", "json"]));
    assert_eq!(warned.stderr, "warning: --flow: no flow matches\n");
}

#[test]
fn new_data_and_its_rate_stand_beside_the_payload() {
    let capture = "captures/write_bw_loss.pcap";
    let said = run(&root(), [capture]).good().stdout;
    // 2,660,352 bytes of payload less 1,714,176 of retransmissions (tshark, by PSN), over 843.9 ms: as `compare` says, too.
    assert!(
        said.contains("946 kB of it new") && said.contains("goodput 8.97 Mbit/s"),
        "{said}"
    );
    let found = document(&root(), [capture]);
    assert_eq!(total(&found, "new_payload_bytes"), 946_176);
    let goodput = found["run"]["goodput_bps"].as_f64().unwrap();
    assert!((goodput / 8.97e6 - 1.0).abs() < 0.001, "{goodput}");
}
