//! Files that write to a terminal. Text from outside passes `roce_model::text` in each of them; a file
//! that is not listed may neither print nor take a standard stream.

use std::fs;
use std::path::Path;

use crate::captures::root;

/// Files that take a standard stream, and what keeps text from outside from steering a terminal there.
const WRITERS: &[(&str, &str)] = &[
    (
        "analyzer/cli/src/lib.rs",
        "the help on one screen and the version: our own text",
    ),
    (
        "analyzer/cli/src/extcap.rs",
        "lines of Wireshark's protocol: names of devices are cleaned",
    ),
    (
        "analyzer/cli/src/limits.rs",
        "it looks whether the standard output is open, and writes nothing",
    ),
    (
        "analyzer/cli/src/command/analyse.rs",
        "JSON and HTML escape what they write",
    ),
    (
        "analyzer/cli/src/command/analyse/fleet.rs",
        "one line of JSON, escaped",
    ),
    ("analyzer/cli/src/output/dataset.rs", "one line of JSON, escaped"),
    (
        "analyzer/cli/src/output/running.rs",
        "tables and documents whose makers clean and escape",
    ),
    (
        "analyzer/cli/src/command/dataset/map.rs",
        "JSON is escaped, paths are cleaned",
    ),
    ("analyzer/cli/src/command/dataset/compact.rs", "days and numbers"),
    (
        "analyzer/cli/src/command/dataset/join.rs",
        "paths and keys are cleaned",
    ),
    (
        "analyzer/cli/src/command/compare.rs",
        "reports clean, JSON and HTML escape",
    ),
    (
        "analyzer/cli/src/command/explain/completion.rs",
        "texts of logs are cleaned, JSON is escaped",
    ),
    (
        "analyzer/cli/src/command/demo.rs",
        "lessons are our own; pages of a report clean",
    ),
    (
        "analyzer/cli/src/command/devices.rs",
        "reports clean, JSON escapes",
    ),
    ("analyzer/cli/src/command/annotate.rs", "lines of JSON, escaped"),
    (
        "analyzer/cli/src/command/mcp.rs",
        "messages in JSON, whose texts are cleaned",
    ),
    (
        "analyzer/cli/src/command/mcp/queries.rs",
        "lines of JSON for the process that started it",
    ),
    (
        "analyzer/cli/src/command/live/fleet.rs",
        "one line of JSON for each part, escaped",
    ),
    ("analyzer/cli/src/command/man.rs", "our own text"),
    ("analyzer/cli/src/command/completions.rs", "our own text"),
    (
        "analyzer/cli/src/command/query.rs",
        "tables and CSV clean what they write, JSON is escaped; the text of --print is our own with checked paths",
    ),
    (
        "analyzer/cli/src/command/metrics.rs",
        "roce_metrics escapes label values",
    ),
    (
        "analyzer/cli/src/command/metrics/files.rs",
        "our own text; targets are escaped",
    ),
    (
        "analyzer/cli/src/command/fabric/sflow.rs",
        "JSON is escaped, names in CSV are cleaned",
    ),
    (
        "analyzer/cli/src/command/fabric/print.rs",
        "tables clean names, JSON is escaped",
    ),
    (
        "analyzer/cli/src/command/host/counters.rs",
        "roce_report::samples cleans names and escapes JSON",
    ),
    (
        "analyzer/cli/src/command/fabric/configure.rs",
        "each line is cleaned, JSON is escaped",
    ),
    (
        "analyzer/cli/src/command/doctor/archive.rs",
        "a compressed recording, for a program",
    ),
    ("analyzer/cli/src/command/doctor/json.rs", "JSON escapes"),
    (
        "analyzer/cli/src/command/doctor/text.rs",
        "cleaned where it is laid out",
    ),
    (
        "analyzer/cli/src/command/host/hca.rs",
        "cleaned where it is written",
    ),
    (
        "analyzer/cli/src/command/host/gpus.rs",
        "names are cleaned, JSON is escaped",
    ),
    (
        "analyzer/cli/src/command/traffic",
        "tables are cleaned where they are laid out, documents are escaped",
    ),
    (
        "analyzer/cli/src/command/fleet/run.rs",
        "names and lines are cleaned",
    ),
    (
        "analyzer/cli/src/command/fleet/table.rs",
        "the table cleans its cells",
    ),
    ("analyzer/cli/src/command/explain/rules.rs", "our own text"),
    (
        "analyzer/cli/src/command/live.rs",
        "reports clean, JSON and HTML escape",
    ),
    (
        "analyzer/cli/src/command/live/host.rs",
        "cleaned where it is written",
    ),
    (
        "analyzer/cli/src/command/metrics/collect.rs",
        "JSON in a pipe, label values are escaped",
    ),
    ("analyzer/cli/src/command/player.rs", "reports clean"),
    (
        "analyzer/cli/src/command/report.rs",
        "cleaned where it is written",
    ),
    (
        "analyzer/cli/src/command/simulate.rs",
        "paths are cleaned where they are written, JSON is escaped",
    ),
    (
        "analyzer/cli/src/output",
        "messages, the screen and the progress bar: each cleans",
    ),
    ("analyzer/probe/src/btf.rs", "a test that says why it is skipped"),
];

/// Names of everything that writes to a terminal.
const WAYS: [&str; 8] = [
    "stdout()",
    "stderr()",
    "println!",
    "print!(",
    "eprintln!",
    "eprint!(",
    "dbg!",
    "/dev/tty",
];

fn each(folder: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn only_these_files_write_to_a_terminal() {
    let root = root();
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("analyzer")).unwrap() {
        each(&entry.unwrap().path().join("src"), &mut |path, text| {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let prints = code
                .into_iter()
                .any(|line| WAYS.iter().any(|way| line.contains(way)));
            if prints {
                found.push(name.to_owned());
            }
        });
    }
    let is_listed = |name: &&String| WRITERS.iter().any(|(file, _)| name.starts_with(file));
    let others: Vec<_> = found.iter().filter(|name| !is_listed(name)).collect();
    assert!(
        others.is_empty(),
        "write to a terminal, and are not listed: {others:?}"
    );
    let idle: Vec<_> = WRITERS
        .iter()
        .filter(|(file, _)| !found.iter().any(|name| name.starts_with(file)))
        .collect();
    assert!(idle.is_empty(), "are listed, and do not: {idle:?}");
}
