//! `traffic`: runs between two hosts, and results of the samples in `tests/data/results`, by the command.

#[cfg(feature = "live")]
mod lab;
#[cfg(feature = "live")]
mod runs;

use std::fs;

use crate::captures::root;
use crate::command::run;

fn samples() -> std::path::PathBuf {
    root().join("tests/data/results")
}

#[test]
fn results_of_several_tools_are_one_table() {
    let ran = run(
        &samples(),
        [
            "traffic",
            "results",
            "tcp.json",
            "rdma_bw.txt",
            "rdma_lat.txt",
            "nccl.txt",
            "--link-rate",
            "40G",
        ],
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let line = |tool: &str| {
        let line = ran.stdout.lines().find(|line| line.contains(tool));
        line.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // 4,665 Mbit/s arrived, and 3 segments were sent again; 4555.02 x 2^20 x 8 bits.
    assert_eq!(
        line("iperf3"),
        "TCP iperf3 - 1 - 1500 4.67 Gbit/s - 12 % - 212 us* - 3 17 % tcp.json"
    );
    assert_eq!(
        line("ib_write_bw"),
        "RDMA WRITE ib_write_bw 64 KiB 1 - 2048 38.2 Gbit/s - 96 % - - - - - rdma_bw.txt"
    );
    // 38.21 / 4.665.
    assert!(
        ran.stdout
            .contains("goodput 8.19 : 1; not the same: MTU 2048 and 1500, size 64 KiB and unknown")
    );
}

#[test]
fn documents_have_base_units() {
    let arguments = ["traffic", "results", "bench.txt", "nccl.log", "--format", "json"];
    let found = run(&samples(), arguments).good().json();
    let row = &found["files"][0]["results"][0];
    assert_eq!(
        (&row["ranks"], &row["size_bytes"]),
        (&8.into(), &268_435_456.into())
    );
    let log = &found["files"][1];
    assert_eq!(log["nccl"]["edges"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&log["remarks"][0]["id"], &log["remarks"][0]["severity"]),
        (&"nccl.completion_error".into(), &"critical".into())
    );
}

#[test]
fn expectations_and_errors_have_exit_codes() {
    let code = |arguments: &[&str]| run(&samples(), [&["traffic", "results"], arguments].concat()).code;
    // 3.66 GB/s.
    assert_eq!(code(&["nccl.txt", "--fail-on", "nccl.busbw<3.5GB/s"]), Some(0));
    assert_eq!(code(&["nccl.txt", "--fail-on", "nccl.busbw<80GiB/s"]), Some(1));
    assert_eq!(code(&["nccl.txt", "--fail-on", "nccl.latency>5us"]), Some(1));
    assert_eq!(code(&["nccl.txt", "--fail-on", "nccl.busbw<80"]), Some(2));
    let folder = tempfile::tempdir().unwrap();
    fs::copy(samples().join("nccl.txt"), folder.path().join("nccl.txt")).unwrap();
    fs::write(folder.path().join("other.txt"), "hello\n").unwrap();
    let ran = run(
        folder.path(),
        ["traffic", "results", "absent.txt", "other.txt", "nccl.txt"],
    );
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("absent.txt"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("other.txt: no results of a traffic tool in it")
    );
    assert!(ran.stdout.contains("nccl-tests"), "the others are read");
}

#[test]
fn stages_say_what_each_file_changed() {
    let folder = tempfile::tempdir().unwrap();
    let before = fs::read_to_string(samples().join("rdma_bw.txt")).unwrap();
    fs::write(folder.path().join("a.txt"), &before).unwrap();
    // A quarter more: 5693.775 MB/s, 91,100 messages.
    let after = before
        .replace("4555.02", "5693.78")
        .replace("0.072880", "0.091100");
    fs::write(folder.path().join("b.txt"), after).unwrap();
    let ran = run(
        folder.path(),
        ["traffic", "results", "a.txt", "b.txt", "--stages"],
    );
    assert!(
        ran.stdout
            .lines()
            .any(|line| line.starts_with(" b.txt") && line.ends_with("+25.0 %")),
        "{}",
        ran.stdout
    );
}

#[test]
fn names_and_values_do_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("a.log"),
        "h:1:2 [0] NCCL INFO NCCL_X set to \u{1b}[2J\nh:1:2 [0] NCCL WARN \u{9b}31m\u{202e}x\n",
    )
    .unwrap();
    for format in ["text", "json"] {
        let ran = run(folder.path(), ["traffic", "results", "a.log", "--format", format]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            !ran.stdout.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
            "{:?}",
            ran.stdout
        );
    }
}

#[test]
fn folders_of_runs_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::copy(samples().join("rdma_bw.txt"), kept.join("1.client.gpu1.log")).unwrap();
    fs::write(folder.path().join("secret"), "hello\n").unwrap();
    // Streams that failed have no results, and a log is a file of the folder.
    let document = r#"{"streams":[
        {"state":"done","log":"1.client.gpu1.log","began":"2026-11-24T09:00:01Z","ended":"2026-11-24T09:00:03Z"},
        {"state":"failed","log":"2.client.gpu1.log"},
        {"state":"done","log":"../secret"}]}"#;
    fs::write(kept.join("run.json"), document).unwrap();
    let ran = run(folder.path(), ["traffic", "results", "kept"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stdout.contains("38.2 Gbit/s"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("kept/secret"),
        "not the file above: {}",
        ran.stderr
    );
    let ran = run(folder.path(), ["traffic", "results", "."]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("not a folder of a run"), "{}", ran.stderr);
}

/// A capture's dataset, and runs in its time and outside of it: the counts are those of the capture's own document.
#[test]
#[cfg(feature = "parquet")]
fn runs_beside_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let capture = root().join("captures/send_bw_ce_synthetic_cnp.pcap");
    let capture = capture.to_str().unwrap();
    let made = run(folder.path(), [capture, "-o", "dataset", "--format", "json"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let totals = made.json()["totals"].clone();
    for (name, end) in [("all", "2100-01-01T00:00:00Z"), ("early", "1971-01-02T00:00:00Z")] {
        let kept = folder.path().join(name);
        fs::create_dir(&kept).unwrap();
        let stream = serde_json::json!({ "state": "stopped", "began": "1971-01-01T00:00:00Z", "ended": end });
        let document = serde_json::json!({ "streams": [stream] });
        fs::write(kept.join("run.json"), document.to_string()).unwrap();
    }
    let arguments = [
        "traffic", "results", "all", "early", "--beside", "dataset", "--format", "json",
    ];
    let found = run(folder.path(), arguments).good().json();
    let runs = &found["beside"]["runs"];
    assert_eq!(runs[0]["run"], "all");
    for (key, total) in [
        ("payload_bytes", "payload_bytes"),
        ("data_packets", "data_packets"),
        ("cnps", "cnp"),
    ] {
        assert_eq!(runs[0][key], totals[total], "{key}");
    }
    // Each of its data packets can be marked.
    let count = |name: &str| totals[name].as_f64().unwrap();
    let share = runs[0]["ce_share"].as_f64().unwrap();
    assert!(
        (share - count("data_ce") / count("data_packets")).abs() < 1e-12,
        "{share}"
    );
    assert_eq!(runs[1]["payload_bytes"], serde_json::Value::Null);
    let refused = run(folder.path(), ["traffic", "results", "all", "--beside", "."]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn latency_and_losses_are_shown_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let before = fs::read_to_string(samples().join("rdma_lat.txt")).unwrap();
    fs::write(folder.path().join("a.txt"), &before).unwrap();
    fs::write(folder.path().join("b.txt"), &before).unwrap();
    let ran = run(
        folder.path(),
        ["traffic", "results", "a.txt", "b.txt", "--stages"],
    );
    let stage = ran.stdout.lines().find(|line| line.starts_with(" b.txt"));
    assert!(
        stage.is_some_and(|line| line.contains(" us ") && line.ends_with("+0.0 %")),
        "{}",
        ran.stdout
    );
    // iperf3's document of a test of UDP: 789 of 5,293 datagrams are 14.906 %.
    let lossy = "{\"start\":{\"connected\":[{\"remote_host\":\"192.0.2.2\"}],\"test_start\":{\"protocol\":\"UDP\",\"num_streams\":1,\"blksize\":9448}},\
                 \"intervals\":[],\"end\":{\"streams\":[],\"sum\":{\"seconds\":8,\"bits_per_second\":50008264,\"jitter_ms\":2.38,\"lost_packets\":789,\
                 \"packets\":5293,\"lost_percent\":14.906}}}";
    fs::write(folder.path().join("udp.json"), lossy).unwrap();
    let ran = run(folder.path(), ["traffic", "results", "udp.json"]).good();
    for part in ["lost", "14.9 %", "jitter", "2.38 ms"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

/// Nothing is said of the devices of a host that says nothing.
#[test]
#[cfg(feature = "live")]
fn a_host_that_answers_nothing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = run(
        folder.path(),
        [
            "traffic",
            "plan",
            "--pattern",
            "ring",
            "--device",
            "mlx5_0",
            "--host",
            "a",
            "--host",
            "b",
        ],
    );
    fs::write(folder.path().join("plan.toml"), plan.good().stdout).unwrap();
    let host = |name: &str| format!("[[host]]\nname = \"{name}\"\naddress = \"local\"\nprefix = \"true\"\n");
    fs::write(folder.path().join("fabric.toml"), host("a") + &host("b")).unwrap();
    let ran = run(folder.path(), ["traffic", "run", "plan.toml"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let all = ran.stdout + &ran.stderr;
    assert!(
        all.contains("b: it did not answer as a host of a run does") && !all.contains("no such RDMA device"),
        "{all}"
    );
}
