//! `simulate --counters`: its files, and `--samples` that joins their rows to an analysis.

use std::collections::{BTreeMap, BTreeSet};
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
            "--fabric",
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
#[cfg(feature = "probe")]
type Values = BTreeMap<(String, String, Option<u64>), f64>;

#[cfg(feature = "probe")]
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
                "fabric", "switch", "--kind", "sonic", "--format", "json", "--read", &read,
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
