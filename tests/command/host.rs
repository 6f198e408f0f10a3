//! `host counters`: recorded hosts before and after, commands in between, and hosts without RDMA devices.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use tempfile::tempdir;

use crate::command::{Ran, run};

fn set(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A recorded host: an adapter of mlx5 whose link has PFC on priority 3.
pub(crate) fn host(root: &Path, marked: u64, pause_frames: u64, out_of_sequence: u64) {
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    set(root, &format!("{port}/counters/port_xmit_data"), "1000\n");
    set(
        root,
        &format!("{port}/hw_counters/np_ecn_marked_roce_packets"),
        &format!("{marked}\n"),
    );
    set(
        root,
        &format!("{port}/hw_counters/out_of_sequence"),
        &format!("{out_of_sequence}\n"),
    );
    set(root, &format!("{port}/gid_attrs/ndevs/0"), "ens1f0np0\n");
    let text = format!(
        "NIC statistics:\n     rx_prio3_pause: {pause_frames}\n     rx_prio3_pause_duration: 12034511\n     rx_prio3_pause_transition: 20605\n"
    );
    set(root, "commands/ethtool_-S_ens1f0np0.txt", &text);
}

fn counters(folder: &Path, arguments: &[&str]) -> Ran {
    run(folder, [&["host", "counters"], arguments].concat())
}

#[test]
fn two_recordings_show_what_moved() {
    let folder = tempdir().unwrap();
    host(&folder.path().join("before"), 40_394_100, 41_210, 4_294_967_290);
    // The register of 32 bits wraps: 6 up to the wrap and 10 behind it.
    host(&folder.path().join("after"), 40_394_737, 41_215, 10);
    let ran = counters(folder.path(), &["--read", "before", "--read", "after"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_snapshot!(ran.stdout);

    let ran = counters(
        folder.path(),
        &["--read", "before", "--read", "after", "--format", "json"],
    );
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let change = |name: &str| {
        let all = document["counters"].as_array().unwrap();
        let series = all.iter().find(|series| series["counter"] == name).unwrap();
        (
            series["object"].as_str().unwrap().to_owned(),
            series["change"].as_f64(),
        )
    };
    assert_eq!(
        change("port_ecn_marked_packets_received"),
        ("mlx5_0:1".to_owned(), Some(637.0))
    );
    assert_eq!(
        change("port_out_of_sequence_packets"),
        ("mlx5_0:1".to_owned(), Some(16.0))
    );
    assert_eq!(change("pfc_received_frames"), ("ens1f0np0".to_owned(), Some(5.0)));
    assert_eq!(
        change("pfc_receive_paused_seconds"),
        ("ens1f0np0".to_owned(), Some(0.0))
    );
}

#[test]
fn one_recording_shows_its_values() {
    let folder = tempdir().unwrap();
    host(&folder.path().join("host"), 5, 41_210, 7);
    let ran = counters(folder.path(), &["--read", "host"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_snapshot!(ran.stdout);
}

#[test]
fn a_folder_that_is_no_recorded_host_is_refused() {
    let folder = tempdir().unwrap();
    let ran = counters(folder.path(), &["--read", "."]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(".: not a recorded host"), "{}", ran.stderr);
}

#[test]
fn a_command_gives_its_exit_code() {
    let folder = tempdir().unwrap();
    let ran = counters(folder.path(), &["--", "sh", "-c", "exit 7"]);
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    let ran = counters(folder.path(), &["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(ran.code, Some(128 + 9), "{}", ran.stderr);
    let ran = counters(folder.path(), &["--", "no such program"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("no such program: cannot be started"),
        "{}",
        ran.stderr
    );
}

#[test]
fn this_host_is_read_without_rights() {
    let folder = tempdir().unwrap();
    let ran = counters(folder.path(), &["--duration", "50ms", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(document["counters"].is_array());
}

#[test]
fn texts_of_other_people_are_read() {
    let folder = tempdir().unwrap();
    let text = |name: &str, sent: u64| {
        let link = format!(
            "link mlx5_0/1 out_of_sequence 7 np_cnp_sent {sent}\n    Optional-set: cc_rx_ce_pkts 5\n"
        );
        set(folder.path(), name, &link);
    };
    text("before.txt", 100);
    text("after.txt", 340);
    let ran = counters(
        folder.path(),
        &["--read", "before.txt", "--read", "after.txt", "--format", "json"],
    )
    .good();
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let found: Vec<(&str, &str, Option<f64>)> = document["counters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|series| {
            let text = |key: &str| series[key].as_str().unwrap_or_default();
            (text("counter"), text("detail"), series["change"].as_f64())
        })
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.contains(&("port_cnp_sent", "", Some(240.0))), "{found:?}");
    let optional = ("port_optional_counter", "cc_rx_ce_pkts", Some(0.0));
    assert!(found.contains(&optional), "{found:?}");

    // Two interfaces, one before and one after, have nothing in common.
    set(
        folder.path(),
        "eth0.txt",
        "NIC statistics:\n     rx_prio3_pause: 7\n",
    );
    set(
        folder.path(),
        "eth1.txt",
        "NIC statistics:\n     rx_prio3_pause: 9\n",
    );
    let ran = counters(folder.path(), &["--read", "eth0.txt", "--read", "eth1.txt"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("no counter is in both"), "{}", ran.stderr);

    set(folder.path(), "nothing.txt", "hello\n");
    let ran = counters(folder.path(), &["--read", "nothing.txt"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("no counters in this text"), "{}", ran.stderr);
}

/// `host counters` judges what grew between two recordings, and `proc/uptime` tells how long that was.
#[test]
fn changes_of_counters_are_judged() {
    let folder = tempdir().unwrap();
    for (name, uptime, marks, cnps, duration) in [
        ("before", "500.5", 70, 1_000, 100_000),
        ("after", "510.5", 70, 4_000, 2_600_000),
    ] {
        let root = folder.path().join(name);
        let port = root.join("sys/class/infiniband/mlx5_0/ports/1");
        for (file, text) in [
            (port.join("rate"), "100 Gb/sec (4X EDR)".to_owned()),
            (port.join("gid_attrs/ndevs/0"), "ens1".to_owned()),
            (
                port.join("hw_counters/np_ecn_marked_roce_packets"),
                marks.to_string(),
            ),
            (port.join("hw_counters/np_cnp_sent"), cnps.to_string()),
            (root.join("proc/uptime"), format!("{uptime} 7.0")),
            (
                root.join("commands/ethtool_-S_ens1.txt"),
                format!("NIC statistics:\n     rx_prio3_pause_duration: {duration}\n"),
            ),
        ] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text + "\n").unwrap();
        }
    }
    let read = |more: &[&str]| {
        let mut words = vec!["host", "counters", "--read", "before", "--read", "after"];
        words.extend(more);
        run(folder.path(), words).good().stdout
    };
    let text = read(&[]);
    // 2.5 of 10 s; 3,000 CNPs.
    assert!(
        text.contains("warning counters.paused ens1\n   paused by the neighbour 25.0 % of the time: 2.50 s"),
        "{text}"
    );
    let document: Value = serde_json::from_str(&read(&["--format", "json"])).unwrap();
    let found = document["findings"].as_array().unwrap();
    let ids: Vec<&str> = found
        .iter()
        .map(|finding| finding["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["counters.paused", "counters.cnp_unmarked"]);
    assert_eq!(found[1]["evidence"]["cnps_sent"], 3_000.0);
    // One reading has totals alone.
    let once = run(folder.path(), ["host", "counters", "--read", "after"])
        .good()
        .stdout;
    assert!(!once.contains("findings"), "{once}");
}

#[test]
fn interfaces_that_are_not_there_or_count_nothing_are_refused() {
    let folder = tempdir().unwrap();
    for (name, said) in [
        ("absent0", "there is no network interface of this name"),
        ("lo", "its driver has no statistics"),
    ] {
        let ran = counters(folder.path(), &["-i", name, "-d", "1ms"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}
