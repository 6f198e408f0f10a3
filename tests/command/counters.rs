//! `simulate --counters`: its files, and `--samples` that joins their rows to an analysis.

#[cfg(feature = "live")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;
#[cfg(feature = "live")]
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{document, run};

/// Simulates the demo `pause-origin` into a folder: its captures, truth and counters, which are read three times.
fn simulated(folder: &Path) -> Value {
    simulated_every(folder, "1ms")
}

/// As above, with another time between two readings.
fn simulated_every(folder: &Path, every: &str) -> Value {
    let arguments = [
        "simulate",
        "pause-origin",
        "-o",
        "pause.pcapng",
        "--truth",
        "truth.json",
        "--counters",
        "counters",
        "--counters-every",
        every,
    ];
    let said = run(folder, arguments).good().stdout;
    assert!(said.contains("counters/samples.jsonl\n") && said.contains("counters/neighbors.json\n"));
    serde_json::from_str(&fs::read_to_string(folder.join("truth.json")).unwrap()).unwrap()
}

#[test]
fn counters_join_the_captures_of_their_run() {
    let folder = tempdir().unwrap();
    let truth = simulated(folder.path());
    let lines = fs::read_to_string(folder.path().join("counters/samples.jsonl")).unwrap();
    // A document has 1,000 samples at most.
    let few: Vec<&str> = lines
        .lines()
        .filter(|line| line.contains("switch_priority_pfc"))
        .collect();
    fs::write(folder.path().join("few.jsonl"), few.join("\n")).unwrap();
    let document = document(folder.path(), ["pause-leaf1-h3.pcapng", "--samples", "few.jsonl"]);
    let stored: Vec<Value> = few
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let samples = document["samples"].as_array().unwrap();
    assert!(
        !samples.is_empty() && samples.iter().all(|row| stored.contains(row)),
        "{:?}",
        samples.first()
    );
    // The port to the full one's spine was paused: its switch said so, and the truth has the pauses.
    let paused = stored.iter().rev().find(|row| {
        row["object"] == "spine1:leaf2"
            && row["counter"] == "switch_priority_pfc_transitions"
            && row["priority"] == 3
    });
    let in_truth = truth["pauses"].as_array().unwrap().iter();
    let in_truth = in_truth.filter(|pause| pause["place"] == "spine1->leaf2").count();
    assert!(in_truth > 0);
    assert_eq!(
        paused.unwrap()["value"].as_f64(),
        Some(f64::from(u32::try_from(in_truth).unwrap()))
    );
}

#[test]
fn the_root_of_the_demo_is_the_full_port() {
    let folder = tempdir().unwrap();
    let truth = simulated(folder.path());
    let victim = truth["flows"].as_array().unwrap().iter();
    let victim = victim
        .clone()
        .find(|flow| flow["source"] == "h3" && flow["destination"] == "h6");
    let victim = &victim.unwrap()["flow_id"];
    let roots = truth["pause_roots"].as_array().unwrap().iter();
    // After a long pause its own packets come at once, and fill another queue for a moment: that one it is part of.
    let own = roots.filter(|row| row["flow_id"] == *victim && row["contributes"] == false);
    let own: Vec<&Value> = own.collect();
    assert!(!own.is_empty());
    for row in own {
        assert_eq!(
            (&row["kind"], &row["root"]),
            (&"contention".into(), &"leaf2->h4".into()),
            "{row}"
        );
    }
}

#[test]
fn counters_alone_are_an_output() {
    let folder = tempdir().unwrap();
    run(folder.path(), ["simulate", "clean", "--counters", "c"]).good();
    assert!(folder.path().join("c/leaf1/after").is_dir());
    let refused = run(
        folder.path(),
        ["simulate", "clean", "--counters", "c", "--counters-every", "0us"],
    );
    assert_eq!(refused.code, Some(2));
    let few = run(folder.path(), ["simulate", "clean", "--counters-every", "1ms"]);
    assert_eq!(few.code, Some(2));
}

#[test]
fn a_line_that_is_no_row_is_an_error() {
    let folder = tempdir().unwrap();
    simulated(folder.path());
    fs::write(folder.path().join("bad.jsonl"), "{\"time\":1}\n").unwrap();
    let refused = run(folder.path(), ["pause-leaf1-h3.pcapng", "--samples", "bad.jsonl"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("bad.jsonl: line 1 "),
        "{}",
        refused.stderr
    );
}

/// A switch's port as the truth names it: `leaf2->h4`.
fn place(row: &Value) -> String {
    row["waits_for_port"].as_str().unwrap().replacen(':', "->", 1)
}

#[test]
fn counters_and_an_inventory_name_the_root_of_pauses() {
    let folder = tempdir().unwrap();
    // A port that is full for 1.2 ms of a run of 1.5 ms is seen by readings that are much shorter.
    let truth = simulated_every(folder.path(), "100us");
    for (capture, flows) in [("pause-leaf2-spine1.pcapng", 2), ("pause-leaf2-h4.pcapng", 3)] {
        let arguments = [
            capture,
            "--samples",
            "counters/samples.jsonl",
            "--inventory",
            "counters/fabric.toml",
        ];
        let document = document(folder.path(), arguments);
        let waits = document["waits"].as_array().unwrap();
        let of_truth = truth["pause_roots"].as_array().unwrap();
        let contended = waits.iter().filter(|row| row["root_kind"] == "contention");
        let contended: Vec<&Value> = contended.collect();
        assert!(contended.len() >= flows, "{waits:?}");
        for row in &contended {
            assert_eq!(row["is_root"], true);
            let is_of_truth = of_truth.iter().any(|of| {
                of["kind"] == "contention" && of["root"] == place(row) && of["flow_id"] == row["victim_flow"]
            });
            assert!(is_of_truth, "{row}");
        }
        let roots: BTreeSet<String> = contended.iter().map(|row| place(row)).collect();
        assert_eq!(roots, BTreeSet::from(["leaf2->h4".to_owned()]));
        // The victim's way: its host, both leaves and the spine between them.
        for (node, waits_for) in [
            ("h3", "leaf1:h3"),
            ("leaf1", "spine1:leaf1"),
            ("spine1", "leaf2:spine1"),
        ] {
            let mut rows = waits.iter();
            assert!(
                rows.any(|row| row["node"] == node && row["waits_for_port"] == waits_for),
                "{node} waits for {waits_for}"
            );
        }
        let findings = document["findings"].as_array().unwrap();
        let origin = findings.iter().find(|finding| finding["id"] == "pause.origin");
        let origin = origin.expect("a finding about the origin");
        assert_eq!(
            (&origin["severity"], &origin["confidence"]),
            (&"warning".into(), &"medium".into())
        );
        let said = origin["summary"].as_str().unwrap();
        assert!(
            said.contains("leaf2:h4") && said.contains(&format!("{flows} flows compete")),
            "{said}"
        );
    }
}

/// The last value of each switch's port (named as a recorded SONiC switch names it), counter and priority in `samples.jsonl`.
#[cfg(feature = "live")]
type Values = BTreeMap<(String, String, Option<u64>), f64>;

#[cfg(feature = "live")]
#[test]
fn recorded_switches_have_the_numbers_of_the_rows() {
    let folder = tempdir().unwrap();
    simulated(folder.path());
    let neighbors = fs::read_to_string(folder.path().join("counters/neighbors.json")).unwrap();
    let neighbors: Value = serde_json::from_str(&neighbors).unwrap();
    let cables = neighbors["links"].as_array().unwrap();
    let ends = cables.iter().flat_map(|link| [&link["a"], &link["b"]]);
    let ends = ends.filter(|end| end["kind"] == "switch");
    let sonic: BTreeMap<&str, &str> = ends
        .map(|end| (end["port"].as_str().unwrap(), end["sonic_port"].as_str().unwrap()))
        .collect();
    let lines = fs::read_to_string(folder.path().join("counters/samples.jsonl")).unwrap();
    let rows: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut paused = 0.0;
    for switch in ["leaf1", "leaf2", "spine1"] {
        let mut expected = [Values::new(), Values::new()];
        let of_switch = rows.iter().filter(|row| {
            let counter = row["counter"].as_str().unwrap();
            row["node"] == switch && counter.contains("pfc_") && counter.ends_with("_frames")
        });
        for row in of_switch {
            let key = (
                sonic[row["object"].as_str().unwrap()].to_owned(),
                row["counter"].as_str().unwrap().to_owned(),
                row["priority"].as_u64(),
            );
            let value = row["value"].as_f64().unwrap();
            expected[0].entry(key.clone()).or_insert(value);
            expected[1].insert(key, value);
        }
        for (moment, expected) in ["before", "after"].iter().zip(expected) {
            let read = format!("counters/{switch}/{moment}");
            let arguments = [
                "fabric", "counters", "--kind", "sonic", "--format", "json", "--read", &read,
            ];
            let found = run(folder.path(), arguments);
            assert_eq!(found.code, Some(0), "{}", found.stderr);
            let found = found.json();
            let samples = found["devices"][0]["samples"].as_array().unwrap();
            for ((object, counter, priority), value) in expected {
                let same = samples.iter().find(|sample| {
                    sample["object"] == *object
                        && sample["counter"] == *counter
                        && sample["priority"].as_u64() == priority
                });
                let same = same.unwrap_or_else(|| panic!("{read}: {object} {counter} {priority:?}"));
                assert_eq!(same["value"].as_f64(), Some(value), "{read}: {same}");
                paused += value;
            }
        }
    }
    assert!(paused > 0.0, "the demo pauses ports");
}

/// B.35: three targets whose counters are those of one simulated run. What each port counted is known, so the table is exact.
#[cfg(feature = "live")]
#[test]
fn pauses_around_a_run_are_those_of_its_counters() {
    let folder = tempdir().unwrap();
    simulated(folder.path());
    let at = |name: &str| folder.path().join("counters").join(name);
    let neighbors: Value = serde_json::from_str(&fs::read_to_string(at("neighbors.json")).unwrap()).unwrap();
    let cables = neighbors["links"].as_array().unwrap();
    let ends = cables.iter().flat_map(|link| [&link["a"], &link["b"]]);
    let sonic: BTreeMap<&str, &str> = ends
        .filter(|end| end["kind"] == "switch")
        .map(|end| (end["port"].as_str().unwrap(), end["sonic_port"].as_str().unwrap()))
        .collect();
    // Frames of all priorities by switch, port and direction: the last reading less the first.
    let mut frames: BTreeMap<(String, String, &str), [f64; 2]> = BTreeMap::new();
    for line in fs::read_to_string(at("samples.jsonl")).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let kind = match row["counter"].as_str().unwrap() {
            "switch_pfc_received_frames" => "PFC received",
            "switch_pfc_transmitted_frames" => "PFC sent",
            _ => continue,
        };
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let port = sonic[text("object").as_str()].to_owned();
        let value = row["value"].as_f64().unwrap();
        frames
            .entry((text("node"), port, kind))
            .and_modify(|[_, last]| *last = value)
            .or_insert([value, value]);
    }
    // The command moves the switches from the beginning of the run to its end.
    let mut inventory = String::new();
    let mut command = String::new();
    for switch in ["leaf1", "leaf2", "spine1"] {
        std::os::unix::fs::symlink("before", at(switch).join("now")).unwrap();
        let files = format!("counters/{switch}/now");
        let _ = write!(
            inventory,
            "[[switch]]\nname = \"{switch}\"\nkind = \"sonic\"\nread = \"{files}\"\n"
        );
        let _ = write!(
            command,
            "ln -s after {files}.new && mv -T {files}.new {files} && "
        );
    }
    command.push_str("sleep 0.3");
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    let arguments = [
        "fabric",
        "pauses",
        "--format",
        "json",
        "--interval",
        "100ms",
        "--before",
        "300ms",
        "--after",
        "300ms",
        "--",
        "sh",
        "-c",
        &command,
    ];
    let document = run(folder.path(), arguments).good().json();
    let rows = document["rows"].as_array().unwrap();
    let mut paused = 0.0;
    for ((node, object, kind), [first, last]) in &frames {
        let row = rows
            .iter()
            .find(|row| row["node"] == **node && row["object"] == **object && row["kind"] == **kind)
            .unwrap_or_else(|| panic!("{node} {object} {kind}: {document}"));
        let found = ["before", "during", "after"].map(|phase| row[phase].as_f64());
        assert_eq!(found, [Some(0.0), Some(last - first), Some(0.0)], "{row}");
        paused += last - first;
    }
    assert!(paused > 0.0, "the demo pauses ports");
    // LLDP names the ports between switches: their two ends agree, and the leaf sends what its spine receives.
    let pairs = document["pairs"].as_array().unwrap();
    let spines = pairs.iter().filter(|pair| {
        let ends = [&pair["sender"], &pair["receiver"]].map(|end| end.as_str().unwrap());
        ends.iter().any(|end| end.starts_with("spine1 ")) && ends.iter().any(|end| end.starts_with("leaf2 "))
    });
    let spines: Vec<&Value> = spines.collect();
    assert!(!spines.is_empty(), "{document}");
    assert!(
        spines.iter().any(|pair| pair["sent"].as_f64() > Some(0.0)),
        "{spines:?}"
    );
    assert!(pairs.iter().all(|pair| pair["state"] != "differ"), "{pairs:?}");
}
