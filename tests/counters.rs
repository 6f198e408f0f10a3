//! `simulate --counters`: its files, and `--samples` that joins their rows to an analysis.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{document, run};

/// Simulates the demo `pause-origin` into a folder: its captures, truth and counters, which are read three times.
fn simulated(folder: &std::path::Path) -> Value {
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
        "1ms",
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
