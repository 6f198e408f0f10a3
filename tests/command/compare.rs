//! `compare`: simulated runs with a known difference differ, and those with only another seed do not.
//! Captures and datasets compare alike.

use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{command, ran, run};

/// Simulates the demo `incast` for 60 ms; what receiver and first sender see is in `NAME-h7.pcapng` and `NAME-h2.pcapng`.
fn simulate(dir: &Path, name: &str, seed: u32, changes: &[&str]) {
    let mut command = command(dir);
    command.args(["simulate", "incast", "-o", &format!("{name}.pcapng")]);
    let seed = format!("seed={seed}");
    let always = [
        "duration=60ms",
        "switch.queue_limit=200KB",
        "nic.timeout=300us",
        &seed,
    ];
    for change in always.iter().chain(changes) {
        command.args(["--set", change]);
    }
    assert_eq!(ran(&mut command).code, Some(0));
}

/// The document of a comparison.
fn compared(dir: &Path, a: &str, b: &str) -> Value {
    run(dir, ["compare", a, b, "--bin", "200us", "--format", "json"])
        .good()
        .json()
}

/// A quantity of the whole run.
#[track_caller]
fn whole<'a>(document: &'a Value, metric: &str) -> &'a Value {
    let found = document["scopes"][0]["compared"].as_array().unwrap().iter();
    found
        .clone()
        .find(|compared| compared["metric"] == metric)
        .unwrap_or_else(|| panic!("no {metric}"))
}

#[test]
fn a_known_difference_is_told_and_another_seed_is_none() {
    let folder = tempdir().unwrap();
    let dir = folder.path();
    simulate(dir, "with", 31, &[]);
    simulate(dir, "without", 32, &["dcqcn.ecn=false"]);
    for seed in 33..36 {
        simulate(dir, &format!("again{seed}"), seed, &[]);
    }

    let document = compared(dir, "with-h7.pcapng", "without-h7.pcapng");
    assert_eq!(document["schema_version"], 1);
    // Nothing is marked, and nothing could be: that is not better.
    assert_eq!(whole(&document, "ce_share")["outcome"], "one_sided");
    let cnp = whole(&document, "cnp_per_gb");
    assert_eq!((&cnp["outcome"], &cnp["b"]), (&"different".into(), &0.0.into()));
    let new = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|change| change["id"] == "ecn.not-capable");
    assert_eq!(new.unwrap()["regression"], true);

    for seed in 33..36 {
        let document = compared(dir, "with-h7.pcapng", &format!("again{seed}-h7.pcapng"));
        for compared in document["scopes"][0]["compared"].as_array().unwrap() {
            let outcome = compared["outcome"].as_str().unwrap();
            assert!(
                !["worse", "better", "different"].contains(&outcome),
                "{seed}: {compared}"
            );
        }
    }

    // The bottleneck runs at four fifths of its speed: so much less gets through.
    simulate(dir, "slower", 36, &["network.rate=20Gbps"]);
    let document = compared(dir, "with-h7.pcapng", "slower-h7.pcapng");
    let goodput = whole(&document, "goodput_bps");
    assert_eq!(goodput["outcome"], "worse");
    let of = |key: &str| goodput[key].as_f64().unwrap();
    assert!((of("relative") + 0.2).abs() < 0.02, "{goodput}");
    assert!(
        of("low") < -0.2 * of("a") && -0.2 * of("a") < of("high"),
        "{goodput}"
    );

    // A link that loses four times as many packets: of a million 1,000 and 4,000. Some 40,000 are sent, so 40 +- 6 and 160 +- 13 are lost.
    for (name, loss) in [("good", "0.001"), ("bad", "0.004")] {
        let set = [
            "duration=100ms".to_owned(),
            format!("impairment.0.loss={loss}"),
            format!("seed={}", name.len()),
        ];
        let mut command = command(dir);
        command.args(["simulate", "lossy", "-o", &format!("{name}.pcapng")]);
        for change in &set {
            command.args(["--set", change]);
        }
        assert_eq!(ran(&mut command).code, Some(0));
    }
    let document = compared(dir, "good.pcapng", "bad.pcapng");
    let lost = whole(&document, "lost_per_million");
    assert_eq!(lost["outcome"], "worse", "{lost}");
    for (side, expected) in [("a", 1_000.0), ("b", 4_000.0)] {
        assert!(
            (lost[side].as_f64().unwrap() / expected - 1.0).abs() < 0.4,
            "{lost}"
        );
    }
    assert_eq!(whole(&document, "retransmitted_share")["outcome"], "worse");

    // The exit code is for scripts.
    let failed = |a: &str, b: &str, percent: &str| {
        let ran = run(
            dir,
            [
                "compare",
                a,
                b,
                "--bin",
                "200us",
                "--fail-on",
                &format!("regression>={percent}%"),
            ],
        );
        (ran.code, ran.stderr)
    };
    let (code, said) = failed("good.pcapng", "bad.pcapng", "50");
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with("failed: --fail-on: ") && said.contains("retransmitted_share"),
        "{said}"
    );
    assert_eq!(
        failed("with-h7.pcapng", "with-h7.pcapng", "0"),
        (Some(0), String::new())
    );
}

#[test]
fn what_is_compared_is_what_was_simulated() {
    let folder = tempdir().unwrap();
    let dir = folder.path();
    simulate(dir, "one", 41, &[]);
    let document = compared(dir, "one-h7.pcapng", "one-h7.pcapng");
    let run = run(dir, ["one-h7.pcapng", "--format", "json"]).good().json();
    let total = |name: &str| run["totals"][name].as_f64().unwrap();
    let is = |metric: &str, expected: f64| {
        let compared = whole(&document, metric);
        let (a, b) = (compared["a"].as_f64().unwrap(), compared["b"].as_f64().unwrap());
        assert!(
            [a, b]
                .iter()
                .all(|value| (value - expected).abs() <= 1e-9 * expected.abs()),
            "{metric}: {a} {b} {expected}"
        );
        assert_ne!(compared["outcome"], "worse");
    };
    // All data packets of this scenario can be marked.
    is("ce_share", total("data_ce") / total("data_packets"));
    is(
        "retransmitted_share",
        total("retransmitted_bytes") / total("payload_bytes"),
    );
    is(
        "lost_per_million",
        (total("network_lost") + total("lost_downstream") + total("response_network_lost")) * 1e6
            / total("data_packets"),
    );
}

#[cfg(feature = "parquet")]
#[test]
fn datasets_compare_as_their_captures_do() {
    let folder = tempdir().unwrap();
    let dir = folder.path();
    simulate(dir, "one", 51, &[]);
    simulate(dir, "other", 52, &["dcqcn.ecn=false"]);
    for name in ["one", "other"] {
        let capture = format!("{name}-h2.pcapng");
        run(
            dir,
            [capture.as_str(), "--bin", "200us", "--format", "none", "-o", name],
        )
        .good();
    }
    let of_captures = compared(dir, "one-h2.pcapng", "other-h2.pcapng");
    let of_datasets = run(dir, ["compare", "one", "other", "--format", "json"])
        .good()
        .json();
    // A capture takes the bins of a dataset.
    let mixed = run(dir, ["compare", "one", "other-h2.pcapng", "--format", "json"])
        .good()
        .json();
    for other in [&of_datasets, &mixed] {
        for key in ["scopes", "findings", "notes", "confidence"] {
            assert_eq!(other[key], of_captures[key], "{key}");
        }
    }
    let refused = run(dir, ["compare", "one", "other", "--flow", "qpn 1"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("--flow is for captures, and both sides are datasets\nhint: "),
        "{}",
        refused.stderr
    );
    // Bins of other widths: what depends on them is left out, and said.
    let wider = run(
        dir,
        [
            "compare",
            "one",
            "other-h2.pcapng",
            "--bin",
            "1ms",
            "--format",
            "json",
        ],
    )
    .good()
    .json();
    let note = wider["notes"][0].as_str().unwrap();
    assert!(note.starts_with("A has bins of 200 us, B of 1.00 ms: "), "{note}");
    let keys = |side: &Value| -> Vec<String> {
        let compared = side["scopes"][0]["compared"].as_array().unwrap();
        compared
            .iter()
            .map(|line| line["metric"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(
        keys(&of_captures).contains(&"ack_time_median_ns".to_owned())
            || keys(&of_captures).contains(&"message_time_median_ns".to_owned())
    );
    assert!(keys(&wider).contains(&"goodput_bps".to_owned()));
    assert!(
        !keys(&wider)
            .iter()
            .any(|key| key.starts_with("ack_time") || key.starts_with("message_time")),
        "{:?}",
        keys(&wider)
    );
    std::fs::create_dir(dir.join("empty")).unwrap();
    let refused = run(dir, ["compare", "empty", "one"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("empty: holds no results: there is no run.json"),
        "{}",
        refused.stderr
    );
}

#[test]
fn pages_for_people() {
    let captures = root().join("captures");
    let [a, b] = ["clean_write_bw.pcap", "write_bw_loss.pcap"];
    for width in ["80", "160"] {
        let mut command = command(&captures);
        command.env("COLUMNS", width).args(["compare", a, b]);
        let page = ran(&mut command).good().stdout;
        insta::assert_snapshot!(format!("compare_{width}"), page);
    }
    let folder = tempdir().unwrap();
    let page = folder.path().join("page.html");
    let written = run(
        &captures,
        ["compare", a, b, "--format", "html", "-o", page.to_str().unwrap()],
    )
    .good();
    assert_eq!(written.stdout, "");
    // A file that is there is somebody's.
    let page = page.to_str().unwrap();
    std::fs::write(page, "mine").unwrap();
    let compared = ["compare", a, b, "--format", "html", "-o", page];
    let refused = run(&captures, compared);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("already exists\nhint: give another name, or --overwrite"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_to_string(page).unwrap(), "mine");
    run(&captures, [&compared[..], &["--overwrite"]].concat()).good();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("write_bw_loss.pcap"));
    // Nothing from elsewhere, and nothing that runs.
    for word in ["http", "<script", "src=", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    let refused = run(&captures, ["compare", "-", "-"]);
    assert!(
        refused.stderr.contains("standard input can be one side only"),
        "{}",
        refused.stderr
    );
    let refused = run(&captures, ["compare", a, "nothing.pcap"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("nothing.pcap"), "{}", refused.stderr);
}
