//! Evidence of hosts and switches is judged: pairs of recordings before and after, each with a truth that is written here.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::command::run;

/// Writes the files of a recording below a folder.
fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The words of two recordings for a command.
fn pair<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [command, &["--read", "a", "--read", "b"]].concat()
}

/// Text without line ends, so that sentences can be found that the terminal's width cut.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a command over the recordings `a` and `b`.
fn text_of(folder: &Path, command: &[&str]) -> String {
    joined(&run(folder, pair(command)).good().stdout)
}

/// A host's files: its uptime, CNPs, timeouts, and the statistics of its interface.
fn host(folder: &Path, uptime: &str, cnps: &str, timeouts: &str, statistics: &str) {
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    write(
        folder,
        &[
            (&format!("{port}/rate"), "100 Gb/sec (4X EDR)\n"),
            (&format!("{port}/link_layer"), "Ethernet\n"),
            (&format!("{port}/state"), "4: ACTIVE\n"),
            (&format!("{port}/gid_attrs/ndevs/0"), "ens1\n"),
            (&format!("{port}/hw_counters/rp_cnp_handled"), cnps),
            (&format!("{port}/hw_counters/local_ack_timeout_err"), timeouts),
            ("proc/uptime", uptime),
            ("commands/ethtool_-S_ens1.txt", statistics),
        ],
    );
}

#[test]
fn a_host_that_restarted_has_no_share_of_the_interval() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let statistics = |duration: u64, crc: u64| {
        format!(
            "NIC statistics:\n     rx_prio3_pause_duration: {duration}\n     rx_prio3_pause: 900\n     rx_crc_errors_phy: {crc}\n"
        )
    };
    host(
        &folder.join("a"),
        "86400.5 1.0\n",
        "5000\n",
        "3000000000\n",
        &statistics(90_000_000, 7),
    );
    // Up for 200 s: 30 s of pauses are 15 % of it. Timeouts of 32 bits did not wrap: they began again.
    host(
        &folder.join("b"),
        "200.0 1.0\n",
        "40\n",
        "12\n",
        &statistics(30_000_000, 9),
    );
    let text = text_of(folder, &["host", "counters"]);
    // CNPs, timeouts, duration; the frames stayed at 900, and CRC errors rose by what is not known. All 5 were above 0.
    assert!(
        text.contains("it restarted between the readings (up 86,401 seconds before, 200 seconds now): 3 of 5 counters above 0 fell"),
        "{text}"
    );
    assert!(
        text.contains("paused by the neighbour 15.0 % of the time: 30.00 s, 900 frames (PFC, priority 3) in the 200.0 s since the restart"),
        "{text}"
    );
    assert!(
        text.contains("at least 12 (reset)") && text.contains("unknown (reset)"),
        "{text}"
    );
    assert!(
        !text.contains("1,294,967,308") && !text.contains("can have wrapped"),
        "{text}"
    );
    let json = run(
        folder,
        [pair(&["host", "counters"]), vec!["--format", "json"]].concat(),
    )
    .json();
    assert_eq!(json["findings"][0]["id"], "counters.restarted");
    assert_eq!(json["findings"][0]["evidence"]["fallen_counters"], 3.0);
    assert!(
        json["counters"]
            .as_array()
            .unwrap()
            .iter()
            .all(|series| series["per_second"].is_null())
    );
}

/// The outcomes of a check of `doctor` over one recorded host.
fn outcomes(folder: &Path, check: &str) -> Vec<Value> {
    let document = run(folder, ["doctor", "--read", "host", "--format", "json"]).json();
    let checks = document["hosts"]
        .as_array()
        .map_or(&document["checks"], |hosts| &hosts[0]["checks"]);
    let checks = checks.as_array().unwrap().iter();
    checks.filter(|outcome| outcome["id"] == check).cloned().collect()
}

#[test]
fn doctor_says_that_a_host_restarted_while_it_was_watched() {
    let folder = tempdir().unwrap();
    let host = folder.path().join("host");
    crate::doctor::story("good", &host);
    write(
        &host,
        &[
            ("proc/uptime", "86400.0 1.0\n"),
            ("later/proc/uptime", "30.0 1.0\n"),
            (
                "later/commands/ethtool_-S_ens1f0np0.txt",
                "NIC statistics:\n     rx_prio3_pause: 0\n     rx_crc_errors_phy: 3\n     rx_corrected_bits_phy: 1\n",
            ),
        ],
    );
    let said = outcomes(folder.path(), "counters.interval");
    assert!(
        said.iter().any(|outcome| {
            let summary = outcome["summary"].as_str().unwrap();
            summary
                .starts_with("it restarted between the readings (up 86,400 seconds before, 30 seconds now)")
        }),
        "{said:#?}"
    );
    let errors = outcomes(folder.path(), "link.errors");
    assert!(
        errors.iter().any(|outcome| outcome["status"] == "unknown"),
        "{errors:#?}"
    );
    // Three broken frames since the start are none of the time that was watched.
    assert!(
        !errors.iter().any(|outcome| outcome["status"] == "warning"),
        "{errors:#?}"
    );
}

#[test]
fn pasted_counters_that_fell_began_again() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(
        folder,
        &[
            (
                "a/ens1.txt",
                "NIC statistics:\n     rx_prio3_pause: 41000\n     tx_prio3_pause: 12\n     rx_discards_phy: 3\n     rx_crc_errors_phy: 1\n",
            ),
            (
                "b/ens1.txt",
                "NIC statistics:\n     rx_prio3_pause: 700\n     tx_prio3_pause: 0\n     rx_discards_phy: 0\n     rx_crc_errors_phy: 9\n",
            ),
        ],
    );
    let words = ["host", "counters", "--read", "a/ens1.txt", "--read", "b/ens1.txt"];
    let text = joined(&run(folder, words).good().stdout);
    assert!(
        text.contains("between the readings 3 of 4 counters above 0 fell and began again"),
        "{text}"
    );
    // Nobody knows when: 8 broken frames more are not said.
    assert!(
        !text.contains("counters.broken_frames") && !text.contains("counters.paused"),
        "{text}"
    );
}

#[test]
fn texts_that_are_called_before_and_after_are_of_one_interface() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let statistics =
        |frames: u64| format!("NIC statistics:\n     rx_prio3_pause: {frames}\n     rx_discards_phy: 0\n");
    write(
        folder,
        &[
            ("ens1_before.txt", &statistics(5)),
            ("ens1_after.txt", &statistics(905)),
        ],
    );
    let words = ["--read", "ens1_before.txt", "--read", "ens1_after.txt"];
    let ran = run(folder, [&["host", "counters"], &words[..]].concat());
    assert!(
        ran.stderr.contains("taken for the interface of the first text"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.contains("+900") && ran.stdout.contains("ens1_before"),
        "{}",
        ran.stdout
    );
    let pauses = run(folder, [&["fabric", "pauses"], &words[..]].concat()).good();
    assert!(pauses.stdout.contains(" 900 "), "{}", pauses.stdout);
}

/// A SONiC switch's uptime and table of PFC frames at Ethernet0 and Ethernet4.
fn sonic(folder: &Path, uptime: &str, frames: [u64; 2]) {
    let table = format!(
        "  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\n---------  ------  ------  ------  ------  ------  ------  ------  ------\n\
         Ethernet0       0       0       0  {:>6}       0       0       0       0\nEthernet4       0       0       0  {:>6}       0       0       0       0\n",
        frames[0], frames[1]
    );
    write(
        folder,
        &[
            ("show_pfc_counters.txt", &table),
            ("cat__proc_uptime.txt", uptime),
        ],
    );
}

#[test]
fn a_switch_that_restarted_is_said_in_words() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    sonic(&folder.join("a"), "864000.0 1.0\n", [9_000_000, 50]);
    sonic(&folder.join("b"), "600.0 1.0\n", [120, 80]);
    let text = text_of(folder, &["fabric", "counters", "--kind", "sonic"]);
    assert!(
        text.contains("it restarted between the readings (up 864,000 seconds before, 600 seconds now): 2 of 4 counters above 0 fell"),
        "{text}"
    );
    // 120 frames in 600 s.
    assert!(
        text.contains("by 120 frames") && text.contains("in the 600.0 s since the restart"),
        "{text}"
    );
    // Ethernet4 did not fall: 80 is neither 30 more nor known to be new.
    assert!(
        !text.contains("by 30 frames") && !text.contains("by 80 frames") && !text.contains("+30"),
        "{text}"
    );
    let text = text_of(folder, &["fabric", "pauses"]);
    assert!(
        text.contains("pattern not known: counters began again between the readings"),
        "{text}"
    );
    assert!(
        text.contains("restart a restarted between the readings: 2 of its rows began again, and what they counted meanwhile is not known"),
        "{text}"
    );
    let json = run(
        folder,
        [pair(&["fabric", "pauses"]), vec!["--format", "json"]].concat(),
    )
    .json();
    assert_eq!(
        (&json["restarts"][0], &json["rows"][0]["during"]),
        (&"a".into(), &Value::Null)
    );
}

/// Answers of a SONiC switch whose watchdog fired, 100 s apart.
fn watched(folder: &Path, uptime: &str, fired: u64, lost: u64, paused_us: u64) {
    let stats = format!(
        "      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP\n\
         -----------  -----------  -------------------------  ------------  ------------  -----------------  -----------------\n\
         Ethernet0:3  operational                  {fired}/{fired}         0/{lost}           0/0                0/0                0/0\n"
    );
    let counters = format!(
        r#"{{"COUNTERS:oid:0x1": {{"type": "hash", "value": {{"SAI_PORT_STAT_PFC_3_RX_PKTS": "50", "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": "{paused_us}"}}}}}}"#
    );
    write(
        folder,
        &[
            ("cat__proc_uptime.txt", uptime),
            ("pfcwd_show_stats.txt", &stats),
            (
                "sonic-db-dump_-n_COUNTERS_DB_-k__COUNTERS___MAP__-y.json",
                r#"{"COUNTERS_PORT_NAME_MAP": {"type": "hash", "value": {"Ethernet0": "oid:0x1"}}}"#,
            ),
            (
                "sonic-db-dump_-n_COUNTERS_DB_-k__COUNTERS_oid____-y.json",
                &counters,
            ),
        ],
    );
}

#[test]
fn pauses_of_a_fabric_have_their_share_of_time_and_their_watchdog() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    watched(&folder.join("a"), "1000.0 1.0\n", 10, 320, 5_000_000);
    watched(&folder.join("b"), "1100.0 1.0\n", 180, 90_320, 26_700_000);
    let text = text_of(folder, &["fabric", "pauses"]);
    // 180 - 10, 90,320 - 320; 21.7 of 100 s. The frames stood still.
    assert!(
        text.contains(
            "critical counters.watchdog: a Ethernet0: the PFC watchdog shut queue 3 170 times and opened it 170 times, and dropped 90,000 packets \
             in 100.0 s"
        ),
        "{text}"
    );
    assert!(
        text.contains("counters.paused: a Ethernet0: paused by the neighbour 21.7 % of the time: 21.70 s (PFC, priority 3) in 100.0 s"),
        "{text}"
    );
    assert!(text.contains("the PFC watchdog shut a queue"), "{text}");
    let json = run(
        folder,
        [pair(&["fabric", "pauses"]), vec!["--format", "json"]].concat(),
    )
    .json();
    assert_eq!(
        (&json["severity"], &json["findings"][0]["id"]),
        (&"critical".into(), &"counters.watchdog".into())
    );
    // Nothing moved: nothing is judged.
    let quiet = run(folder, ["fabric", "pauses", "--read", "b", "--read", "b"])
        .good()
        .stdout;
    assert!(
        !quiet.contains("counters.") && quiet.contains("marks were not read"),
        "{quiet}"
    );
    let once = run(folder, ["fabric", "pauses", "--read", "b"]);
    assert!(
        once.stderr.contains("--read is given 1 time\n"),
        "{}",
        once.stderr
    );
}

#[test]
fn an_infiniband_port_that_loses_its_link_is_judged() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    for (name, symbols, recoveries, downs) in [("a", "120", "3", "1"), ("b", "161", "5", "2")] {
        let port = format!("{name}/sys/class/infiniband/mlx5_0/ports/1");
        write(
            folder,
            &[
                (&format!("{port}/link_layer"), "InfiniBand\n"),
                (&format!("{port}/rate"), "200 Gb/sec (4X HDR)\n"),
                (&format!("{port}/counters/symbol_error"), symbols),
                (&format!("{port}/counters/link_error_recovery"), recoveries),
                (&format!("{port}/counters/link_downed"), downs),
            ],
        );
    }
    let text = text_of(folder, &["host", "counters"]);
    assert!(
        text.contains("counters.broken_frames mlx5_0:1 41 symbols received in error between the recordings"),
        "{text}"
    );
    assert!(
        text.contains("the link went down 1 time, and recovered from errors 2 times between the recordings"),
        "{text}"
    );
    let once = joined(&run(folder, ["host", "counters", "--read", "b"]).good().stdout);
    assert!(
        !once.contains("counters.link_unsteady") && !once.contains("counters.broken_frames"),
        "{once}"
    );
}

#[test]
fn one_broken_frame_in_900_million_is_a_note_everywhere() {
    let folder = tempdir().unwrap();
    let host = folder.path().join("host");
    crate::doctor::story("good", &host);
    let statistics = |crc: u64, packets: u64| {
        format!(
            "NIC statistics:\n     rx_crc_errors_phy: {crc}\n     rx_pcs_symbol_err_phy: 0\n     rx_prio3_packets: {packets}\n"
        )
    };
    let written = |crc: u64| {
        write(
            &host,
            &[
                ("commands/ethtool_-S_ens1f0np0.txt", &statistics(5, 1_000)),
                (
                    "later/commands/ethtool_-S_ens1f0np0.txt",
                    &statistics(5 + crc, 900_001_000),
                ),
            ],
        );
        let all = outcomes(folder.path(), "link.errors");
        all.into_iter()
            .find(|outcome| outcome["object"] == "ens1f0np0")
            .unwrap()
    };
    let one = written(1);
    assert_eq!(one["status"], "info", "{one}");
    assert!(
        one["summary"]
            .as_str()
            .unwrap()
            .contains("1 frame with a wrong check sequence (FCS)"),
        "{one}"
    );
    // 10 of 900 million are more than 1e-8.
    assert_eq!(written(10)["status"], "warning");
    assert_eq!(written(0)["status"], "ok");
    // Evidence is in words.
    let text = run(folder.path(), ["doctor", "--read", "host", "--all"]).stdout;
    assert!(!text.contains("{\""), "{text}");
}
