//! `fabric counters`, `fabric counters`, `fabric pauses` and `metrics once --inventory` over folders with recorded answers.
//!
//! Expected numbers are those of the fixtures in tests/data/fabric, which were written by hand.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::captures::root;
use crate::command::{Ran, command, ran, run};

/// A password that must not be in any output.
const CANARY: &str = "canary-2b41";

/// The folder of a fixture.
pub(crate) fn fixture(name: &str) -> PathBuf {
    root().join("tests/data/fabric").join(name)
}

fn fabric(folder: &Path, arguments: &[&str]) -> Ran {
    run(folder, [&["fabric"], arguments].concat())
}

/// The document of a command about a recorded device.
fn recorded(kind: &str, name: &str) -> Value {
    let folder = tempdir().unwrap();
    let path = fixture(name);
    let mut arguments = vec!["fabric"];
    arguments.extend([
        "counters",
        "--kind",
        kind,
        "--format",
        "json",
        "--read",
        path.to_str().unwrap(),
    ]);
    let ran = run(folder.path(), arguments);
    assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    document["devices"][0].clone()
}

/// The sum of a counter of an object; `queue` empty: of all queues. `None`: there is no such sample.
pub(crate) fn sum(device: &Value, object: &str, counter: &str, queue: &str) -> Option<f64> {
    let samples = device["samples"].as_array().unwrap().iter();
    let of = samples.filter(|sample| {
        sample["object"] == object
            && sample["counter"] == counter
            && (queue.is_empty() || sample["queue"] == queue)
    });
    of.map(|sample| sample["value"].as_f64().unwrap())
        .reduce(|sum, value| sum + value)
}

/// Kind, folder, object, counter, queue (empty: all), value (`None`: it is not known).
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<f64>,
);

/// Numbers of the fixtures.
const CASES: [Case; 12] = [
    (
        "nexus",
        "nexus-cloud-scale",
        "Ethernet1/51",
        "switch_queue_ecn_marked_packets",
        "3",
        Some(40_812_001.0),
    ),
    (
        "nexus",
        "nexus-cloud-scale",
        "Ethernet1/51",
        "switch_queue_depth_bytes",
        "3",
        Some(151_424.0),
    ),
    (
        "nexus",
        "nexus-cloud-scale",
        "Ethernet1/51",
        "switch_mmu_dropped_packets",
        "",
        Some(19_490.0),
    ),
    (
        "nexus",
        "nexus-first-generation",
        "Ethernet1/1/1",
        "switch_pfc_transmitted_frames",
        "",
        Some(22_787_490.0),
    ),
    (
        "nexus",
        "nexus-first-generation",
        "ii1/1/1",
        "switch_pfc_received_frames",
        "",
        Some(126_464_312.0),
    ),
    // The table has "--" for it: it is not known.
    (
        "nexus",
        "nexus-first-generation",
        "Ethernet1/1/10",
        "switch_queue_ecn_marked_packets",
        "",
        None,
    ),
    (
        "sonic",
        "sonic-leaf",
        "Ethernet0",
        "switch_queue_ecn_marked_packets",
        "3",
        Some(40_812_001.0),
    ),
    (
        "eos",
        "eos-leaf",
        "Ethernet1/1",
        "switch_queue_dropped_packets",
        "3",
        Some(4.0),
    ),
    // NVUE and ethtool answer about each port: the recording has a file for each.
    (
        "cumulus",
        "cumulus-leaf",
        "swp1",
        "switch_queue_ecn_marked_packets",
        "3",
        Some(40_812_001.0),
    ),
    (
        "cumulus",
        "cumulus-leaf",
        "swp1",
        "switch_pause_received_frames",
        "",
        Some(510.0),
    ),
    (
        "esxi",
        "esxi-pfc",
        "vmnic3",
        "hypervisor_pfc_received_frames",
        "",
        Some(41_210.0),
    ),
    (
        "esxi",
        "esxi-global-pause",
        "vmnic5",
        "hypervisor_pause_received_frames",
        "",
        Some(133_704_872.0),
    ),
];

#[test]
fn folders_of_each_kind_are_read() {
    for (kind, name, object, counter, queue, expected) in CASES {
        let device = recorded(kind, name);
        assert_eq!(
            sum(&device, object, counter, queue),
            expected,
            "{name} {object} {counter}"
        );
        assert_eq!(device["up"], true, "{name}");
    }
    // 802.3x frames are nowhere called PFC.
    let paused = recorded("esxi", "esxi-global-pause");
    let samples = paused["samples"].as_array().unwrap();
    let of_pfc = samples.iter().filter(|sample| {
        sample["counter"].as_str().unwrap().contains("_pfc_") && sample["value"].as_f64() > Some(0.0)
    });
    assert_eq!(of_pfc.count(), 0);
    assert_eq!(
        recorded("cumulus", "cumulus-leaf")["description"]["model"],
        "SN4700"
    );
}

#[test]
fn texts_fit_the_screen() {
    for (kind, name) in [
        ("nexus", "nexus-cloud-scale"),
        ("nexus", "nexus-first-generation"),
        ("sonic", "sonic-leaf"),
        ("eos", "eos-leaf"),
        ("cumulus", "cumulus-leaf"),
    ] {
        // With --all names of counters need their room.
        for (columns, more) in [(80, None), (160, Some("--all"))] {
            let ran = ran(command(&root())
                .env("COLUMNS", columns.to_string())
                .args(["fabric", "counters", "--kind", kind, "--read"])
                .arg(fixture(name))
                .args(more));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let wide: Vec<&str> = ran
                .stdout
                .lines()
                .filter(|line| line.chars().count() > columns)
                .collect();
            assert_eq!(wide, [""; 0], "{name}, {columns} columns");
            assert!(ran.stdout.contains("\n interfaces\n"), "{}", ran.stdout);
        }
    }
}

/// A copy of a fixture in which one text is another one.
fn changed(folder: &TempDir, name: &str, file: &str, from: &str, to: &str) -> PathBuf {
    let copy = folder.path().join("after");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let path = entry.unwrap().path();
        let mut text = fs::read_to_string(&path).unwrap();
        if path.file_name().unwrap() == file {
            assert!(text.contains(from), "{text}");
            text = text.replacen(from, to, 1);
        }
        fs::write(copy.join(path.file_name().unwrap()), text).unwrap();
    }
    copy
}

#[test]
fn two_recordings_show_what_changed() {
    let folder = tempdir().unwrap();
    let file = "vsish_-e_get__net_pNics_vmnic5_stats.txt";
    let after = changed(&folder, "esxi-global-pause", file, "133704872", "133704972");
    let before = fixture("esxi-global-pause");
    let both = [
        "--read",
        before.to_str().unwrap(),
        "--read",
        after.to_str().unwrap(),
    ];
    let ran = fabric(
        folder.path(),
        &[&["counters", "--kind", "esxi", "--format", "json"][..], &both].concat(),
    );
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let device = &document["devices"][0];
    assert_eq!(
        (device["name"].as_str(), device["readings"].as_u64()),
        (Some("esxi-global-pause"), Some(2))
    );
    let samples = device["samples"].as_array().unwrap();
    let paused = samples
        .iter()
        .find(|sample| sample["counter"] == "hypervisor_pause_received_frames")
        .unwrap();
    // Nobody says when the recordings were made.
    assert_eq!(
        (paused["change"].as_f64(), paused["per_second"].as_f64()),
        (Some(100.0), None)
    );
    let ran = fabric(
        folder.path(),
        &[&["counters", "--kind", "esxi"][..], &both].concat(),
    );
    assert!(
        ran.stdout.contains("changes between two recordings") && ran.stdout.contains("+100"),
        "{}",
        ran.stdout
    );
    let three = [&["counters", "--kind", "esxi"][..], &both, &both[..2]].concat();
    assert_eq!(fabric(folder.path(), &three).code, Some(2));
}

/// A link that was not read is not known to be down.
#[test]
fn what_is_hidden_is_said_as_it_is_known() {
    let folder = fixture("nexus-cloud-scale");
    let read = [
        "--read",
        folder.to_str().unwrap(),
        "--read",
        folder.to_str().unwrap(),
    ];
    let ran = fabric(&root(), &[&["counters", "--kind", "nexus"][..], &read].concat());
    assert!(
        ran.stdout
            .contains("\n 2 more counted nothing; --all shows them\n"),
        "{}",
        ran.stdout
    );
    let ran = fabric(
        &root(),
        &[
            "counters",
            "--kind",
            "cumulus",
            "--read",
            fixture("cumulus-leaf").to_str().unwrap(),
        ],
    );
    assert!(
        ran.stdout
            .contains("\n 1 more is down and counted nothing; --all shows it\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn findings_make_the_exit_code() {
    let path = fixture("esxi-global-pause");
    let code = |fail_on: &str| {
        let arguments = [
            "counters",
            "--kind",
            "esxi",
            "--read",
            path.to_str().unwrap(),
            "--fail-on",
            fail_on,
        ];
        let ran = fabric(&root(), &arguments);
        (ran.code, ran.stderr)
    };
    // 802.3x is on and counted, PFC is off.
    let (found, said) = code("hypervisor.global_pause_instead_of_pfc");
    assert_eq!(found, Some(1), "{said}");
    assert!(said.contains("vmnic5"), "{said}");
    assert_eq!(code("warning").0, Some(1));
    assert_eq!(code("switch.mmu_drops").0, Some(0));
    let (found, said) = code("switch.mmu_drop");
    assert_eq!(found, Some(2));
    assert!(said.contains("did you mean 'switch.mmu_drops'"), "{said}");
}

/// An inventory of recorded devices, and one folder that is missing.
pub(crate) fn inventory() -> String {
    let mut text = String::new();
    for (table, name, kind, files) in [
        ("switch", "leaf1", "nexus", "nexus-cloud-scale"),
        ("switch", "leaf2", "nexus", "nexus-first-generation"),
        ("switch", "leaf3", "sonic", "missing"),
        ("hypervisor", "esxi1", "esxi", "esxi-global-pause"),
    ] {
        let _ = write!(
            text,
            "[[{table}]]\nname = \"{name}\"\nkind = \"{kind}\"\nread = \"{}\"\nevery = \"200ms\"\n",
            fixture(files).display()
        );
    }
    text
}

#[test]
fn mistakes_name_the_file_and_the_line() {
    let folder = tempdir().unwrap();
    let none = fabric(folder.path(), &["counters", "leaf1"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr
            .contains("there is no inventory fabric.toml\nhint: --inventory FILE"),
        "{}",
        none.stderr
    );
    fs::write(
        folder.path().join("fabric.toml"),
        "[[switch]]\nname = \"a\"\nkind = \"nexus\"\npasswrd = \"x\"\n",
    )
    .unwrap();
    let wrong = fabric(folder.path(), &["counters", "a"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong
            .stderr
            .starts_with("error: fabric.toml:4: unknown field `passwrd`"),
        "{}",
        wrong.stderr
    );
    fs::write(folder.path().join("fabric.toml"), inventory()).unwrap();
    let unknown = fabric(folder.path(), &["counters", "leaf7", "--kind", "switch"]);
    assert!(
        unknown
            .stderr
            .contains("no [[switch]] 'leaf7'\nhint: did you mean 'leaf"),
        "{}",
        unknown.stderr
    );
    fs::create_dir(folder.path().join("x")).unwrap();
    let kind = fabric(folder.path(), &["counters", "--read", "x"]);
    assert!(kind.stderr.contains("--kind nexus"), "{}", kind.stderr);
    // A device that cannot be read has one value, and the others are shown.
    let ran = fabric(
        folder.path(),
        &["counters", "--kind", "switch", "--format", "json"],
    );
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(": no answer that is understood"),
        "{}",
        ran.stderr
    );
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let [first, _, third] = &document["devices"].as_array().unwrap()[..] else {
        panic!("{document}")
    };
    assert_eq!(
        (first["name"].as_str(), first["up"].as_bool()),
        (Some("leaf1"), Some(true))
    );
    assert_eq!(third["samples"].as_array().unwrap().len(), 1);
    assert_eq!(sum(third, "", "switch_up", ""), Some(0.0));
    assert_eq!(third["problems"][0]["reason"], "unreachable");
}

#[test]
fn a_recording_answers_as_the_device_did() {
    let folder = tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::create_dir(&secret).unwrap();
    for entry in fs::read_dir(fixture("nexus-first-generation")).unwrap() {
        let path = entry.unwrap().path();
        let mut text = fs::read_to_string(&path).unwrap();
        if path.file_name().unwrap() == "show_interface_flowcontrol.txt" {
            let _ = writeln!(text, "username admin password 5 {CANARY}");
        }
        fs::write(secret.join(path.file_name().unwrap()), text).unwrap();
    }
    let text = "[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\nread = \"secret\"\n";
    fs::write(folder.path().join("fabric.toml"), text).unwrap();
    let live = fabric(
        folder.path(),
        &[
            "counters",
            "--kind",
            "switch",
            "--raw",
            "raw",
            "--no-serials",
            "--format",
            "json",
        ],
    );
    assert_eq!(live.code, Some(0), "{}", live.stderr);
    let raw = folder.path().join("raw/leaf1");
    let mut files = 0;
    for entry in fs::read_dir(&raw).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(
            path.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
        let text = fs::read_to_string(&path).unwrap();
        // The second is the serial number of the fixture.
        assert!(
            !text.contains(CANARY) && !text.contains("SAL00000001"),
            "{}",
            path.display()
        );
        files += 1;
    }
    assert!(files > 5, "{files}");
    let again = fabric(
        folder.path(),
        &[
            "counters",
            "--kind",
            "nexus",
            "--format",
            "json",
            "--read",
            "raw/leaf1",
        ],
    );
    let samples = |ran: &Ran| {
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        document["devices"][0]["samples"].clone()
    };
    assert_eq!(samples(&again), samples(&live));
}

#[test]
fn devices_are_metrics() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("fabric.toml"), inventory()).unwrap();
    let ran = run(
        folder.path(),
        ["metrics", "once", "--no-gpus", "--inventory", "fabric.toml"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in [
        "roce_switch_up{switch=\"leaf1\"} 1",
        "roce_switch_up{switch=\"leaf3\"} 0",
        "roce_hypervisor_up{hypervisor=\"esxi1\"} 1",
        "roce_switch_pfc_received_frames_total{switch=\"leaf2\",interface=\"ii1/1/1\",kind=\"internal\"} 126464312",
        "roce_hypervisor_pause_received_frames_total{hypervisor=\"esxi1\",vmnic=\"vmnic5\"} 133704872",
        "roce_switch_neighbor_info{switch=\"leaf2\",interface=\"Ethernet1/1/1\",neighbor=\"esx1\",neighbor_interface=\"vmnic3\"} 1",
        "roce_collector_success{collector=\"switch:leaf1\"} 1",
        "roce_collector_success{collector=\"switch:leaf3\"} 0",
        "roce_collector_errors_total{collector=\"switch:leaf3\",reason=\"unreachable\"} 1",
        // Commands that the release does not know are counted by their reason.
        "roce_collector_errors_total{collector=\"switch:leaf2\",reason=\"unsupported\"} 5",
    ] {
        assert!(
            ran.stdout.lines().any(|found| found == line),
            "{line}\n{}",
            ran.stdout
        );
    }
    let of_down = ran
        .stdout
        .lines()
        .filter(|line| line.contains("switch=\"leaf3\""));
    assert_eq!(of_down.count(), 1, "nothing but down");
    // Each family once, in any number of switches.
    let heads: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("# TYPE "))
        .collect();
    let mut unique = heads.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(heads.len(), unique.len());
}

#[test]
fn passwords_are_in_no_message() {
    let folder = tempdir().unwrap();
    let password = folder.path().join("leaf1.password");
    fs::write(&password, CANARY).unwrap();
    let write = |more: &str| {
        let text = format!(
            "[ssh]\ntimeout = \"500ms\"\n[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\ntransport = \"nxapi\"\nuser = \"monitor\"\n\
             url = \"https://127.0.0.1:1/ins\"\n{more}\n"
        );
        fs::write(folder.path().join("fabric.toml"), text).unwrap();
    };
    let fingerprint = format!("fingerprint = \"sha256:{}\"", "0a".repeat(32));
    let in_file = format!("password_file = \"leaf1.password\"\n{fingerprint}");
    let in_variable = format!("password_env = \"ROCE_TEST_PASSWORD\"\n{fingerprint}");
    let mut expected = Vec::new();
    for (more, mode, variable, text) in [
        (&in_file, 0o644, false, "its mode is 0644"),
        (&in_file, 0o600, false, "cannot connect"),
        (&in_variable, 0o600, false, "ROCE_TEST_PASSWORD is not set"),
        (&in_variable, 0o600, true, "cannot connect"),
    ] {
        write(more);
        fs::set_permissions(&password, fs::Permissions::from_mode(mode)).unwrap();
        for arguments in [
            &["fabric", "counters", "--kind", "switch"][..],
            &[
                "fabric", "counters", "--kind", "switch", "--format", "json", "--raw", "raw",
            ],
            &["fabric", "pauses", "--duration", "100ms"],
            &["metrics", "once", "--no-gpus", "--inventory", "fabric.toml"],
        ] {
            let mut command = command(folder.path());
            if variable {
                command.env("ROCE_TEST_PASSWORD", CANARY);
            }
            let ran = ran(command.args(arguments));
            let all = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!all.contains("canary"), "{arguments:?}: {all}");
            if arguments == ["fabric", "counters", "--kind", "switch"] {
                expected.push((text, all));
            }
        }
    }
    for (text, all) in expected {
        let text = if cfg!(feature = "nxapi") {
            text
        } else {
            "the feature `nxapi`"
        };
        assert!(all.contains(text), "{text}: {all}");
    }
}

#[test]
fn pauses_are_read_around_a_command() {
    let folder = tempdir().unwrap();
    // Another host: `[ssh] command` runs the last word, which is a line for its shell.
    let program = PathBuf::from(env!("CARGO_BIN_EXE_roce-analyze"));
    let ssh = folder.path().join("ssh");
    let text = format!(
        "#!/bin/sh\nfor line; do :; done\nPATH={}:$PATH exec sh -c \"$line\"\n",
        program.parent().unwrap().display()
    );
    fs::write(&ssh, text).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let text = format!(
        "[ssh]\ncommand = \"{}\"\n[[host]]\nname = \"gpu1\"\n{}",
        ssh.display(),
        inventory().replace("missing", "sonic-leaf")
    );
    fs::write(folder.path().join("fabric.toml"), text).unwrap();
    let times = ["--interval", "100ms", "--before", "300ms", "--after", "300ms"];
    let ran = fabric(
        folder.path(),
        &[
            &["pauses", "--format", "json"][..],
            &times,
            &["--", "sh", "-c", "sleep 0.5; exit 7"],
        ]
        .concat(),
    );
    assert_eq!(ran.code, Some(7), "the command's own code: {}", ran.stderr);
    assert_eq!(ran.stderr, "");
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["time"]["has_command"], true);
    assert!(
        document["time"]["during_s"].as_f64().unwrap() >= 0.5,
        "{document}"
    );
    let rows = document["rows"].as_array().unwrap();
    let paused = rows
        .iter()
        .find(|row| row["node"] == "esxi1" && row["object"] == "vmnic5" && row["kind"] == "802.3x received");
    // A recording stands still.
    assert_eq!(paused.unwrap()["during"].as_f64(), Some(0.0), "{document}");
    // Without an inventory it is this host alone.
    fs::remove_file(folder.path().join("fabric.toml")).unwrap();
    let alone = fabric(
        folder.path(),
        &["pauses", "--duration", "200ms", "--interval", "100ms"],
    );
    // A machine without RDMA devices has nothing to read, which is an error.
    if alone.stderr.contains("nothing was read: ") {
        assert_eq!(alone.code, Some(2), "{}", alone.stderr);
    } else {
        assert_eq!(alone.code, Some(0), "{}", alone.stderr);
        assert!(alone.stdout.contains("pattern"), "{}", alone.stdout);
    }
}

/// A host that answers by a document, and by the address of its interface.
#[test]
fn a_host_says_why_it_has_no_pauses_and_is_found_by_its_address() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    // `[ssh] command` gets a line for the host's shell as its last word.
    let text = format!(
        "#!/bin/sh\nfor line; do :; done\ncase \"$line\" in\n*counters*) cat {} ;;\n*) echo 'ens1 0c:42:a1:88:0a:1c' ;;\nesac\n",
        path("host.json")
    );
    fs::write(path("ssh"), text).unwrap();
    fs::set_permissions(path("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    // The recorded switch names `gpu server 5` and this address as its neighbour at `Ethernet0`.
    let text = format!(
        "[ssh]\ncommand = \"{}\"\n[[host]]\nname = \"gpu5\"\naddress = \"192.0.2.5\"\n\
[[switch]]\nname = \"leaf1\"\nkind = \"sonic\"\nread = \"{}\"\n",
        path("ssh"),
        fixture("sonic-leaf").display()
    );
    fs::write(path("fabric.toml"), text).unwrap();
    let host = |sent: u64| {
        serde_json::json!({
            "schema_version": roce_report::json::SCHEMA_VERSION,
            "counters": [{"object": "ens1", "counter": "pfc_transmitted_frames", "priority": 3, "after": sent}],
            "notes": ["mlx5_2 is a virtual function: counters of the physical port, PFC and pauses are not visible here"],
        })
        .to_string()
    };
    fs::write(path("host.json"), host(5)).unwrap();
    fs::write(path("later.json"), host(12)).unwrap();
    // Frames that are counted 600 ms behind the command's end are no part of it: 12 - 5 frames.
    let arguments = [
        "pauses",
        "--format",
        "json",
        "--before",
        "200ms",
        "--after",
        "1500ms",
        "--",
        "sh",
        "-c",
        "(sleep 0.6; mv later.json host.json) > rest.txt 2>&1 &",
    ];
    let ran = fabric(folder.path(), &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let row = |object: &str, kind: &str| {
        let mut rows = rows.iter();
        let found = rows.find(|row| row["node"] == "gpu5" && row["object"] == object && row["kind"] == kind);
        found.unwrap_or_else(|| panic!("{object} {kind}: {document}"))
    };
    let sent = row("ens1", "PFC sent");
    assert_eq!(
        (sent["during"].as_f64(), sent["after"].as_f64()),
        (Some(0.0), Some(7.0)),
        "{sent}"
    );
    let unseen = row("mlx5_2", "PFC received");
    assert!(unseen["during"].is_null());
    assert!(
        unseen.to_string().contains("not visible in a virtual function"),
        "{unseen}"
    );
    let joined = document["pairs"].to_string();
    assert!(
        joined.contains("gpu5 ens1") && joined.contains("leaf1 Ethernet0"),
        "{joined}"
    );
}

/// Discards and broken frames of ports: a note of one reading, a warning of two.
#[test]
fn discards_and_broken_frames_of_ports_are_judged() {
    let folder = tempdir().unwrap();
    let table = |discards: u32, fcs: u32| {
        format!(
            "---------\nPort     Align-Err    FCS-Err   Xmit-Err    Rcv-Err  UnderSize OutDiscards\n---------\nmgmt0  --  --  --  --  --  --\n\
             Eth1/7    0  0  0  0  0  {discards}\nEth1/8    0  {fcs}  0  0  0  0\n"
        )
    };
    for (name, discards, fcs) in [("before", 9_100, 40), ("after", 12_600, 55)] {
        fs::create_dir(folder.path().join(name)).unwrap();
        let file = folder
            .path()
            .join(name)
            .join("show_interface_counters_errors.txt");
        fs::write(file, table(discards, fcs)).unwrap();
    }
    let read = |folders: &[&str]| {
        let mut words = vec!["fabric", "counters", "--kind", "nexus"];
        words.extend(folders.iter().flat_map(|folder| ["--read", *folder]));
        run(folder.path(), words).stdout
    };
    let once = read(&["before"]);
    assert!(
        once.contains("info counters.discards Ethernet1/7\n   9,100 packets to be sent discarded"),
        "{once}"
    );
    assert!(
        once.contains("info counters.broken_frames Ethernet1/8\n   40 frames with a wrong check sequence"),
        "{once}"
    );
    assert!(once.contains("discards") && !once.contains("warning"), "{once}");
    let twice = read(&["before", "after"]);
    // 12,600 - 9,100 and 55 - 40.
    for line in [
        "warning counters.discards Ethernet1/7\n   3,500 packets to be sent discarded between the recordings",
        "warning counters.broken_frames Ethernet1/8\n   15 frames with a wrong check sequence (FCS) between the recordings",
    ] {
        assert!(twice.contains(line), "{twice}");
    }
    assert!(!twice.contains("0.0 s"), "{twice}");
}

/// The watchdog of a SONiC switch that fires again and again between two recordings.
#[test]
fn a_watchdog_that_fires_again_states_what_it_dropped() {
    let folder = tempdir().unwrap();
    let recorded = root().join("tests/data/fabric/sonic-leaf");
    for name in ["before", "after"] {
        let to = folder.path().join(name);
        fs::create_dir(&to).unwrap();
        for entry in fs::read_dir(&recorded).unwrap() {
            let entry = entry.unwrap();
            let mut text = fs::read_to_string(entry.path()).unwrap();
            if name == "after" {
                for (counter, rise) in [("DETECTED", 12), ("RESTORED", 12), ("TX_DROPPED_PACKETS", 700)] {
                    let key = if counter.starts_with("TX") {
                        format!("\"PFC_WD_QUEUE_STATS_{counter}\": \"")
                    } else {
                        format!("\"PFC_WD_QUEUE_STATS_DEADLOCK_{counter}\": \"")
                    };
                    if let Some(at) = text.find(&key) {
                        let from = at + key.len();
                        let to = from + text[from..].find('"').unwrap();
                        let value: u64 = text[from..to].parse().unwrap();
                        text.replace_range(from..to, &(value + rise).to_string());
                    }
                }
            }
            fs::write(to.join(entry.file_name()), text).unwrap();
        }
    }
    let words = [
        "fabric", "counters", "--kind", "sonic", "--read", "before", "--read", "after", "--format", "json",
    ];
    let document: Value = serde_json::from_str(&run(folder.path(), words).stdout).unwrap();
    let findings = document["devices"][0]["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .find(|finding| finding["id"] == "counters.watchdog")
        .unwrap();
    assert_eq!(found["severity"], "critical");
    let summary = found["summary"].as_str().unwrap();
    assert!(
        summary.contains("12 times and opened it 12 times, and dropped 700 packets between the recordings"),
        "{summary}"
    );
}

/// A host without any counter is no host without pauses.
#[test]
fn pauses_without_a_reading_are_an_error() {
    let folder = tempdir().unwrap();
    let inventory =
        "[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\ntransport = \"files\"\nfiles = \"nothing\"\n";
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    fs::create_dir(folder.path().join("nothing")).unwrap();
    let ran = fabric(folder.path(), &["pauses", "--duration", "1s"]);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("nothing was read: leaf1: "), "{}", ran.stderr);
}

/// `switch` is a filter: the content says which system it is. Two recordings have to be of one device.
#[test]
fn recordings_are_recognised_and_compared_by_their_device() {
    let folder = tempdir().unwrap();
    let [sonic, nexus] = ["sonic-leaf", "nexus-cloud-scale"].map(|name| fixture(name).display().to_string());
    let ran = fabric(folder.path(), &["counters", "--kind", "switch", "--read", &sonic]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = fabric(folder.path(), &["counters", "--read", &sonic, "--read", &nexus]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("one is of sonic, the other of nexus"),
        "{}",
        ran.stderr
    );
    let ran = fabric(folder.path(), &["counters", "--read", "absent"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("No such file or directory"), "{}", ran.stderr);
}
