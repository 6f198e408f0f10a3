//! `doctor`: stories of hosts, each with the checks that have to fail; hostile recordings, ssh, and this host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use roce_hosts::doctor::{Host, Plan, Status, checks, judge};
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{Ran, command, ran, run};

type Tree = BTreeMap<String, Vec<u8>>;

/// Text with its escapes: `\n`, `\t`, `\xNN`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.extend(before.as_bytes());
        let (byte, length) = match after.as_bytes() {
            [b'n', ..] => (b'\n', 1),
            [b't', ..] => (b'\t', 1),
            [b'x', ..] => (u8::from_str_radix(&after[1..3], 16).unwrap(), 3),
            _ => panic!("{text}"),
        };
        out.push(byte);
        rest = &after[length..];
    }
    out.extend(rest.as_bytes());
    out
}

/// `space OFFSET:BYTES ...`, in hexadecimal digits.
fn space(words: &str, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for word in words.split_whitespace() {
        let (at, values) = word.split_once(':').unwrap();
        let at = usize::from_str_radix(at, 16).unwrap();
        for place in 0..values.len() / 2 {
            bytes[at + place] = u8::from_str_radix(&values[place * 2..place * 2 + 2], 16).unwrap();
        }
    }
    bytes
}

/// The files of a story.
fn tree(name: &str) -> Tree {
    let text = fs::read_to_string(root().join("tests/data/hosts").join(name).join("tree.txt")).unwrap();
    let mut tree = Tree::new();
    let mut links = serde_json::Map::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(base) = line.strip_prefix("base ") {
            tree = self::tree(base);
        } else if let Some(gone) = line.strip_prefix("- ") {
            let before = tree.len();
            let below = format!("{gone}/");
            tree.retain(|path, _| path != gone && !path.starts_with(&below));
            assert!(tree.len() < before, "{name}: nothing to remove: {line}");
        } else if let Some(link) = line.strip_prefix("link ") {
            let (from, to) = link.split_once(' ').unwrap();
            links.insert(from.to_owned(), to.into());
        } else {
            let (path, value) = line.split_once(" =").unwrap_or_else(|| panic!("{name}: {line}"));
            let value = value.strip_prefix(' ').unwrap_or(value);
            let bytes = if let Some(words) = value.strip_prefix("space64 ") {
                space(words, 64)
            } else if let Some(words) = value.strip_prefix("space ") {
                space(words, 4096)
            } else {
                unescaped(value)
            };
            tree.insert(path.to_owned(), bytes);
        }
    }
    if !links.is_empty() {
        let text = Value::Object(links).to_string();
        tree.insert("answers/links.json".to_owned(), text.into_bytes());
    }
    tree
}

/// Writes a story's files below a folder.
fn write(tree: &Tree, folder: &Path) {
    for (path, bytes) in tree {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Writes a story's files below a folder, for other tests.
pub(crate) fn story(name: &str, folder: &Path) {
    write(&tree(name), folder);
}

/// The names of all stories.
fn stories() -> Vec<String> {
    let entries = fs::read_dir(root().join("tests/data/hosts")).unwrap();
    let folders = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn arguments(name: &str) -> Vec<String> {
    let folder = root().join("tests/data/hosts").join(name);
    let text = fs::read_to_string(folder.join("arguments.txt")).unwrap_or_default();
    let in_folder = |word: &str| {
        let file = folder.join(word);
        if file.is_file() {
            file.to_str().unwrap().to_owned()
        } else {
            word.to_owned()
        }
    };
    text.split_whitespace().map(in_folder).collect()
}

/// Runs the command over a story.
fn examined(name: &str, more: &[&str]) -> Ran {
    let folder = tempdir().unwrap();
    let host = folder.path().join("gpu1");
    write(&tree(name), &host);
    let mut words: Vec<String> = ["doctor", "--read", "gpu1"].map(str::to_owned).into();
    words.extend(arguments(name));
    words.extend(more.iter().map(|word| (*word).to_owned()));
    run(folder.path(), words)
}

fn document(name: &str) -> Value {
    let ran = examined(name, &["--format", "json"]);
    assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// `STATUS ID OBJECT` of the checks with these statuses, each once.
fn lines(document: &Value, statuses: &[&str]) -> BTreeSet<String> {
    let all = document["checks"].as_array().unwrap().iter();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    all.filter(|check| statuses.contains(&text(check, "status").as_str()))
        .map(|check| {
            format!(
                "{} {} {}",
                text(check, "status"),
                text(check, "id"),
                text(check, "object")
            )
        })
        .collect()
}

#[test]
fn each_story_fails_the_checks_that_it_tells_of() {
    let mut wrong = Vec::new();
    for name in stories() {
        let path = root().join("tests/data/hosts").join(&name).join("expected.txt");
        let expected: BTreeSet<String> = fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        let found = lines(&document(&name), &["warning", "critical"]);
        for line in expected.difference(&found) {
            wrong.push(format!("{name}: missing: {line}"));
        }
        for line in found.difference(&expected) {
            wrong.push(format!("{name}: does not mention: {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn texts_of_the_stories() {
    for name in stories() {
        let ran = examined(&name, &[]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        assert!(!ran.stdout.contains('\u{1b}'), "{name}: {}", ran.stdout);
        assert_snapshot!(format!("doctor_{name}"), ran.stdout);
    }
}

/// Checks whose worst outcome is information, or not known.
const NEVER_FAIL: [&str; 8] = [
    "port.cabled",
    "ib.packets",
    "link.lanes",
    "hugepages",
    "sniffer",
    "vm",
    "firmware.hidden",
    "mtu.switch",
];
/// Checks over several hosts, which [`hosts_are_compared`] tests.
const OF_FLEETS: [&str; 6] = [
    "mtu.peers",
    "fleet.duplicate_address",
    "fleet.same",
    "fleet.rails",
    "fleet.gid_index",
    "fleet.not_ready",
];

#[test]
fn every_check_has_a_story_with_its_worst_outcome() {
    let mut worst: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in stories() {
        let document = document(&name);
        for check in document["checks"].as_array().unwrap() {
            let id = check["id"].as_str().unwrap().to_owned();
            worst
                .entry(id)
                .or_default()
                .insert(check["status"].as_str().unwrap().to_owned());
        }
    }
    let mut missing = Vec::new();
    for check in checks().filter(|check| !OF_FLEETS.contains(&check.id)) {
        let wanted = if NEVER_FAIL.contains(&check.id) {
            if check.id == "mtu.switch" {
                "unknown"
            } else {
                "info"
            }
        } else if check.method.contains("critical") {
            "critical"
        } else {
            "warning"
        };
        if !worst
            .get(check.id)
            .is_some_and(|statuses| statuses.contains(wanted))
        {
            missing.push(format!("{} {wanted}: {:?}", check.id, worst.get(check.id)));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// A host as the reader would give it.
fn host_of(tree: &Tree) -> Host {
    let mut host = Host::new("gpu1", true);
    for (path, bytes) in tree {
        host.insert(path, bytes.clone());
    }
    host
}

fn statuses(host: &Host) -> BTreeMap<(String, String), Status> {
    let mut all = BTreeMap::new();
    for judgement in judge(host, &Plan::default(), &[]) {
        let key = (judgement.id.to_owned(), judgement.outcome.object.clone());
        let status = all.entry(key).or_insert(judgement.outcome.status);
        *status = (*status).max(judgement.outcome.status);
    }
    all
}

/// Files whose absence means that there is nothing, as `ok` or another check says. Their garbage is never ok.
fn tells_by_absence(path: &str) -> bool {
    let starts = [
        "later/",
        "answers/env.json",
        "answers/links.json",
        "answers/programs.json",
        "sys/bus/pci/devices/",
        ".dockerenv",
    ];
    starts.iter().any(|start| path.starts_with(start))
        || path.contains("/default_roce_mode")
        || path.contains("/gids/")
        || path.contains("/hw_counters/")
        || path.contains("/ecn/")
        // Boards of different kinds are not compared.
        || path.ends_with("/board_id")
        || path.ends_with("/device/uevent")
}

#[test]
fn missing_and_odd_files_never_make_a_check_ok() {
    let mut wrong = Vec::new();
    for name in stories() {
        let tree = tree(&name);
        let before = statuses(&host_of(&tree));
        let failed: Vec<_> = before
            .iter()
            .filter(|(_, status)| **status >= Status::Warning)
            .collect();
        for path in tree.keys() {
            for garbage in [None, Some(&b"\xff\x00 garbage {"[..])] {
                let mut other = tree.clone();
                match garbage {
                    None => drop(other.remove(path)),
                    Some(bytes) => drop(other.insert(path.clone(), bytes.to_vec())),
                }
                if tells_by_absence(path) {
                    // It must not panic, all the same.
                    statuses(&host_of(&other));
                    continue;
                }
                let after = statuses(&host_of(&other));
                for (key, _) in &failed {
                    let now = after.get(*key).copied().unwrap_or(Status::Unknown);
                    if now == Status::Ok {
                        wrong.push(format!("{name}: {path} {}: {key:?}", garbage.is_some()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn recordings_do_not_become_commands() {
    let ran = examined("hostile", &["--fix-commands"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in ran.stdout.lines().filter(|line| !line.starts_with('#')) {
        assert!(
            !line.contains("reboot") && !line.contains("rm -rf") && !line.contains('\u{1b}'),
            "{line}"
        );
    }
}

#[test]
fn commands_that_mend_are_printed() {
    let ran = examined("pause_and_pfc", &["--fix-commands"]);
    assert_snapshot!(ran.stdout);
}

#[test]
fn the_document_has_its_keys() {
    let document = document("pause_and_pfc");
    assert_eq!(document["schema_version"], 1);
    assert_eq!(document["host"]["kernel"], "6.8.0");
    assert_eq!(document["recommended"][0]["nccl"]["NCCL_IB_HCA"], "=mlx5_0:1");
    assert_eq!(document["recommended"][0]["gid_index"], 3);
    let all = document["checks"].as_array().unwrap();
    let check = all.iter().find(|check| check["id"] == "pfc.and_pause").unwrap();
    assert_eq!(check["status"], "critical");
    assert_eq!(check["seen"][0]["source"], "ETHTOOL_GPAUSEPARAM ens1f0np0");
    assert_eq!(check["seen"][0]["value"], "rx on, tx on");
    assert_eq!(check["confidence"], "certain");
}

#[test]
fn exit_codes_follow_fail_on() {
    for (story, fail_on, code) in [
        ("pause_and_pfc", "critical", 1),
        ("mtu_1500", "critical", 0),
        ("mtu_1500", "warning", 1),
        ("mtu_1500", "mtu.interface", 1),
        ("mtu_1500", "pfc.enabled", 0),
        ("good", "warning", 0),
    ] {
        let ran = examined(story, &["--fail-on", fail_on]);
        assert_eq!(ran.code, Some(code), "{story} {fail_on}: {}", ran.stderr);
    }
    let ran = examined("good", &["--fail-on", "warnin"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("did you mean 'warning'"),
        "{}",
        ran.stderr
    );
    let ran = examined("good", &["--only", "pfcs"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("did you mean 'pfc'"),
        "{}",
        ran.stderr
    );
}

/// Two hosts: the second has the first one's address, another MTU and firmware, and its rails the other way round.
fn two_hosts(folder: &Path) -> [PathBuf; 2] {
    let (a, b) = (folder.join("a"), folder.join("b"));
    let mut tree = tree("good");
    write(&tree, &a);
    let gid =
        |device: usize, index: usize| format!("sys/class/infiniband/mlx5_{device}/ports/1/gids/{index}");
    for index in [2, 3] {
        // 10.0.104.9 and, twice in the network, 10.0.103.2.
        tree.insert(gid(0, index), b"0000:0000:0000:0000:0000:ffff:0a00:6809".to_vec());
        tree.insert(gid(1, index), b"0000:0000:0000:0000:0000:ffff:0a00:6702".to_vec());
    }
    tree.insert("sys/class/net/ens1f0np0/mtu".to_owned(), b"4200".to_vec());
    tree.insert(
        "sys/class/infiniband/mlx5_0/fw_ver".to_owned(),
        b"20.31.1014".to_vec(),
    );
    write(&tree, &b);
    [a, b]
}

#[test]
fn one_index_of_addresses_has_to_fit_all_hosts() {
    let folder = tempdir().unwrap();
    let mut tree = tree("good");
    write(&tree, &folder.path().join("a"));
    // As in a pod: the address is at 5, where 3 is RoCE v2 elsewhere.
    for device in 0..2 {
        let port = format!("sys/class/infiniband/mlx5_{device}/ports/1");
        let address = format!("0000:0000:0000:0000:0000:ffff:0a00:6{device}09");
        for (file, text) in [
            ("gids/5", address.as_str()),
            ("gid_attrs/types/5", "RoCE v2"),
            ("gid_attrs/types/3", "IB/RoCE v1"),
        ] {
            tree.insert(format!("{port}/{file}"), text.as_bytes().to_vec());
        }
    }
    let variables = b"{\"NCCL_IB_GID_INDEX\":\"3\"}".to_vec();
    tree.insert("answers/env.json".to_owned(), variables);
    write(&tree, &folder.path().join("b"));
    let words = ["doctor", "--read", "a", "--read", "b", "--format", "json"];
    let document = run(folder.path(), words).json();
    let fleet = document["fleet"].as_array().unwrap();
    let row = fleet.iter().find(|row| row["id"] == "fleet.gid_index").unwrap();
    assert_eq!(row["status"], "warning", "{row}");
    let summary = row["summary"].as_str().unwrap();
    assert_eq!(
        summary,
        "NCCL_IB_GID_INDEX=3, and no index of addresses fits all hosts"
    );
}

#[test]
fn packets_without_a_buffer_and_the_peers_naks_are_one_thing() {
    let folder = tempdir().unwrap();
    let of = |naks: &str| {
        for (host, name, first, later) in [
            ("a", "out_of_buffer", "5", "5005"),
            ("b", "rnr_nak_retry_err", "7", naks),
        ] {
            let mut tree = tree("good");
            for (before, value) in [("", first), ("later/", later)] {
                let path = format!("{before}sys/class/infiniband/mlx5_0/ports/1/hw_counters/{name}");
                tree.insert(path, value.as_bytes().to_vec());
            }
            write(&tree, &folder.path().join(host));
        }
        let words = ["doctor", "--read", "a", "--read", "b", "--format", "json"];
        let document = run(folder.path(), words).json();
        let fleet = document["fleet"].as_array().unwrap();
        let row = fleet.iter().find(|row| row["id"] == "fleet.not_ready");
        row.and_then(|row| row["summary"].as_str()).map(str::to_owned)
    };
    // 5,005 - 5 packets at a; 5,007 - 7 NAKs at b.
    let said = of("5007").unwrap();
    assert!(
        said.contains("5000 packets arrived at a") && said.contains("b received 5000"),
        "{said}"
    );
    // 2,000 NAKs are of something else, too.
    assert_eq!(of("2007"), None);
}

#[test]
fn hosts_are_compared() {
    let folder = tempdir().unwrap();
    two_hosts(folder.path());
    let ran = run(
        folder.path(),
        ["doctor", "--read", "a", "--read", "b", "--format", "json"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["hosts"].as_array().unwrap().len(), 2);
    let fleet = document["fleet"].as_array().unwrap();
    let warned = |id: &str, object: &str| {
        fleet
            .iter()
            .any(|check| check["id"] == id && check["object"] == object && check["status"] == "warning")
    };
    assert!(warned("fleet.duplicate_address", "10.0.103.2"), "{fleet:?}");
    assert!(
        warned("fleet.same", "firmware") && warned("fleet.same", "MTU"),
        "{fleet:?}"
    );
    assert!(!warned("fleet.same", "kernel"));
    assert!(warned("fleet.rails", "b"), "{fleet:?}");
    assert!(warned("mtu.peers", "10.0.104.0/24"), "{fleet:?}");
    let ran = run(
        folder.path(),
        ["doctor", "--read", "a", "--read", "b", "--only", "fleet"],
    );
    assert_snapshot!(ran.stdout);
}

#[test]
fn two_hosts_with_one_name_are_two_hosts() {
    let folder = tempdir().unwrap();
    for rack in ["rack1", "rack2"] {
        write(&tree("good"), &folder.path().join(rack).join("gpu1"));
    }
    let ran = run(
        folder.path(),
        [
            "doctor",
            "--read",
            "rack1/gpu1",
            "--read",
            "rack2/gpu1",
            "--format",
            "json",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("gpu1: several of the hosts have this name"),
        "{}",
        ran.stderr
    );
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let fleet = document["fleet"].as_array().unwrap();
    // The story's hosts have the same addresses.
    let twice: Vec<&str> = fleet
        .iter()
        .filter(|check| check["id"] == "fleet.duplicate_address" && check["status"] == "warning")
        .filter_map(|check| check["summary"].as_str())
        .collect();
    assert!(
        !twice.is_empty() && twice.iter().all(|summary| summary.contains("gpu1, gpu1 (2)")),
        "{fleet:?}"
    );
}

#[test]
fn this_host_is_checked_without_rights_and_in_time() {
    let folder = tempdir().unwrap();
    let start = std::time::Instant::now();
    let ran = run(folder.path(), ["doctor", "--format", "json"]);
    // It takes some 50 ms; the machine of the tests may be busy.
    assert!(start.elapsed().as_secs() < 20);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(document["checks"].as_array().unwrap().len() > 50);
}

#[test]
fn a_recording_of_this_host_is_read_back() {
    let folder = tempdir().unwrap();
    let ran = command(folder.path())
        .args(["doctor", "--record", "host.tar.zst"])
        .env("NCCL_IB_HCA", "=mlx5_0:1")
        .env("SOME_SECRET", "hunter2")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let bytes = zstd::decode_all(fs::read(folder.path().join("host.tar.zst")).unwrap().as_slice()).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("NCCL_IB_HCA") && !text.contains("hunter2"));
    let here = run(folder.path(), ["doctor", "--only", "host", "--format", "json"]);
    let back = run(
        folder.path(),
        [
            "doctor",
            "--only",
            "host",
            "--read",
            "host.tar.zst",
            "--format",
            "json",
        ],
    );
    let checks = |ran: &Ran| {
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        lines(&document, &["ok", "info", "warning", "critical"])
    };
    assert_eq!(checks(&here), checks(&back));
}

/// A folder with a program `ssh` that runs a script.
fn with_ssh(folder: &Path, script: &str) -> Ran {
    use std::os::unix::fs::PermissionsExt;
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let ssh = bin.join("ssh");
    fs::write(&ssh, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    ran(command(folder)
        .args(["doctor", "--host", "gpu1,gpu2"])
        .env("PATH", path))
}

#[test]
fn hosts_over_ssh_are_read_by_their_recordings() {
    let folder = tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_roce-analyze");
    // The last argument is the command, the one before it the host.
    fs::create_dir_all(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(program, folder.path().join("bin/roce-analyze")).unwrap();
    let ran = with_ssh(
        folder.path(),
        "for last; do :; done\n\
         case \"$last\" in \"sh -c 'roce-analyze doctor --record -'\") eval \"$last\" ;; *) exit 9 ;; esac",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(" fleet "), "{}", ran.stdout);
    let ran = with_ssh(folder.path(), "exit 127");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("gpu1: roce-analyze is not installed there"),
        "{}",
        ran.stderr
    );
    let ran = with_ssh(
        folder.path(),
        "echo 'Permission denied (publickey).' >&2; exit 255",
    );
    assert!(
        ran.stderr
            .contains("ssh cannot connect: Permission denied (publickey)."),
        "{}",
        ran.stderr
    );
    let ran = run(folder.path(), ["doctor", "--host=-oProxyCommand=reboot"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("is no name of a host"),
        "{}",
        ran.stderr
    );
}

#[test]
fn hosts_over_ssh_are_reached_as_the_inventory_says() {
    let folder = tempdir().unwrap();
    let inventory = "[[host]]\nname = \"gpu1\"\naddress = \"192.0.2.1\"\nuser = \"monitor\"\n";
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    let calls = folder.path().join("calls");
    let script = format!("echo \"$@\" >> '{}'; exit 255", calls.display());
    let ran = with_ssh(folder.path(), &script);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let calls = fs::read_to_string(calls).unwrap();
    assert!(
        calls.lines().any(|line| line.contains(" monitor@192.0.2.1 ")),
        "{calls}"
    );
    // A name that is not in the inventory is a host for ssh.
    assert!(calls.lines().any(|line| line.contains(" gpu2 ")), "{calls}");
    // It is for --host alone, and a mistake in it is one there.
    fs::write(folder.path().join("fabric.toml"), "[[host]]\n").unwrap();
    let ran = with_ssh(folder.path(), "exit 0");
    assert!(
        ran.code == Some(2) && ran.stderr.contains("fabric.toml:1: "),
        "{}",
        ran.stderr
    );
    let ran = run(folder.path(), ["doctor", "--inventory", "fabric.toml"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("--host"),
        "{}",
        ran.stderr
    );
}

#[test]
fn checks_are_explained() {
    let folder = tempdir().unwrap();
    for id in ["iommu.mode", "memlock"] {
        let own = run(folder.path(), ["explain", id]);
        assert_eq!(own.code, Some(0), "{}", own.stderr);
        let other = if id == "memlock" { "iommu.mode" } else { "memlock" };
        assert!(own.stdout.contains(other), "{}", own.stdout);
    }
    let ran = run(folder.path(), ["explain", "memlok"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("did you mean 'memlock'"),
        "{}",
        ran.stderr
    );
}

/// The program where every user can start it: the folders above a target folder may be its owner's alone.
fn for_everybody(folder: &Path) -> PathBuf {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.join("roce-analyze");
    // A copy is written: a process that another test starts meanwhile holds it open, and it cannot be run.
    let built = env!("CARGO_BIN_EXE_roce-analyze");
    fs::hard_link(built, &program).unwrap_or_else(|_| {
        fs::copy(built, &program).unwrap();
    });
    program
}

#[test]
fn a_fresh_machine_is_told_what_is_missing_and_how_to_get_it() {
    if fs::read_dir("/sys/class/infiniband").is_ok_and(|devices| devices.count() > 0) {
        crate::live::skip("this host has RDMA devices");
        return;
    }
    let folder = tempdir().unwrap();
    let program = for_everybody(folder.path());
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let answers = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(arguments).current_dir(&empty).env_clear();
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        let begun = Instant::now();
        let ran = ran(&mut command);
        // A build without optimisation takes a tenth of a second.
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let doctor = words(&answers(&["doctor"]).stdout);
    for expected in [
        "rdma.devices: there is no RDMA device, and no adapter that is known to be one",
        "seen /sys/class/infiniband: empty or not there",
        "fix rdma link add rxe0 type rxe netdev INTERFACE",
        "advice needs root, the package iproute2 and the module rdma_rxe",
        "note without an RDMA device,",
    ] {
        assert!(doctor.contains(expected), "{expected}: {doctor}");
    }
    // A limit that matters to RDMA alone is no trouble of this machine.
    assert!(!doctor.contains("critical"), "{doctor}");
    let once = answers(&["metrics", "once"]);
    assert!(
        once.stdout
            .contains("roce_collector_success{collector=\"host\"} 1\n"),
        "{}",
        once.stdout
    );
    assert!(
        once.stderr.contains("there is no RDMA device in /sys/class/infiniband: `roce-analyze doctor --only rdma` says what is missing"),
        "{}",
        once.stderr
    );
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "nothing is left behind");
}
