//! Sizes of what a packet passes through: lines of a function, fields of the structs that hold the state of flows. A function or a struct
//! that grows is cut along what it does or owns; a bound is lowered when it can be, and never raised.
//!
//! Sources are formatted by rustfmt: what begins with `fn` or `struct` ends with a brace of the same indentation.

use std::path::Path;

use super::{root, sources};

/// Folders and files with the path of a packet, from a file to its flow, and of a row to its columns.
const PATH_OF_A_PACKET: [&str; 8] = [
    "analyzer/capture/src",
    "analyzer/wire/src",
    "analyzer/pipeline/src/feed.rs",
    "analyzer/pipeline/src/records.rs",
    "analyzer/pipeline/src/run.rs",
    "analyzer/pipeline/src/decode.rs",
    "analyzer/flow/src",
    "analyzer/parquet/src/table.rs",
];

/// Lines of the longest function there, without its signature and the last brace.
const LONGEST_FUNCTION: usize = 60;

/// Structs with the state of a run, of a flow, and of a packet that is judged: file, name, fields at the most.
const STRUCTS: [(&str, &str, usize); 9] = [
    ("analyzer/flow/src/analysis.rs", "Analysis", 16),
    ("analyzer/flow/src/psn/tracker.rs", "Tracker", 13),
    ("analyzer/flow/src/psn/runs.rs", "Runs", 11),
    ("analyzer/flow/src/psn/acks.rs", "Answers", 21),
    ("analyzer/flow/src/table/state.rs", "Hot", 27),
    ("analyzer/flow/src/table/state.rs", "Cold", 29),
    ("analyzer/flow/src/psn/request.rs", "RequestPacket", 13),
    ("analyzer/flow/src/psn/request.rs", "FlowHistory", 11),
    ("analyzer/flow/src/psn/request.rs", "PairHistory", 8),
];

/// The files of a folder, or one file, without tests: name and text.
fn files(place: &str) -> Vec<(String, String)> {
    let path = root().join(place);
    let mut found = Vec::new();
    if path.is_dir() {
        sources(&path, &mut found, &path);
    } else {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        found.push((String::new(), code.to_owned()));
    }
    found
}

/// The lines between the brace that opens what begins at `begin` and the one that closes it; `None` without braces, or in one line.
fn body<'a>(lines: &'a [&'a str], begin: usize) -> Option<&'a [&'a str]> {
    let indentation = lines[begin].len() - lines[begin].trim_start().len();
    let opens = |line: &&str| line.ends_with(['{', ';', '}']);
    let open = begin + lines[begin..].iter().position(opens)?;
    if !lines[open].ends_with('{') {
        return None;
    }
    let closes = |line: &&str| line.len() == indentation + 1 && line.ends_with('}');
    let length = lines[open + 1..].iter().position(closes)?;
    Some(&lines[open + 1..open + 1 + length])
}

/// True if a line begins an item of this kind (`fn`, `struct`), whatever stands before the word.
fn begins(line: &str, kind: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_before =
        |word: &&str| word.starts_with("pub") || ["const", "unsafe", "async", "in", "extern"].contains(word);
    words.find(|word| !is_before(word) && !word.starts_with("crate")) == Some(kind)
}

#[test]
fn a_function_on_the_path_of_a_packet_is_one_screen() {
    let mut longer = Vec::new();
    let mut longest = 0;
    for folder in PATH_OF_A_PACKET {
        for (file, text) in files(folder) {
            let lines: Vec<&str> = text.lines().collect();
            for begin in (0..lines.len()).filter(|line| begins(lines[*line], "fn")) {
                let length = body(&lines, begin).map_or(0, <[&str]>::len);
                longest = longest.max(length);
                if length > LONGEST_FUNCTION {
                    longer.push(format!(
                        "{folder}/{file}: {length} lines: {}",
                        lines[begin].trim()
                    ));
                }
            }
        }
    }
    assert!(
        longer.is_empty(),
        "longer than {LONGEST_FUNCTION} lines:\n{}",
        longer.join("\n")
    );
    assert_eq!(longest, LONGEST_FUNCTION, "the bound can be lowered");
}

/// Lines of the longest source, without files of tests.
const LONGEST_FILE: usize = 600;

#[test]
fn files_are_short() {
    let mut longer = Vec::new();
    for folder in ["analyzer", "ebpf", "xtask"] {
        let below = root().join(folder);
        let mut sources = Vec::new();
        super::sources(&below, &mut sources, &below);
        for (file, _) in sources.iter().filter(|(file, _)| !file.contains("tests")) {
            let lines = std::fs::read_to_string(below.join(file)).unwrap().lines().count();
            if lines > LONGEST_FILE {
                longer.push(format!("{folder}/{file}: {lines} lines"));
            }
        }
    }
    assert!(
        longer.is_empty(),
        "longer than {LONGEST_FILE} lines:\n{}",
        longer.join("\n")
    );
}

#[test]
fn state_is_in_parts() {
    for (file, name, most) in STRUCTS {
        let text = std::fs::read_to_string(Path::new(&root()).join(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let is_it = |line: &&str| begins(line, "struct") && line.contains(&format!("struct {name} {{"));
        let begin = lines.iter().position(is_it).unwrap();
        let fields = body(&lines, begin).unwrap().iter().map(|line| line.trim());
        let fields =
            fields.filter(|line| !line.starts_with("//") && !line.starts_with("#[") && line.contains(": "));
        let fields = fields.count();
        assert_eq!(
            fields, most,
            "fields of {name} in {file}: more is too many, fewer lower the bound"
        );
    }
}

#[test]
fn lines_of_a_body_are_counted() {
    let lines = [
        "    pub(crate) fn one(",
        "        at: u64,",
        "    ) -> u64 {",
        "        if at > 0 {",
        "        }",
        "        at",
        "    }",
    ];
    assert_eq!(body(&lines, 0).map(<[&str]>::len), Some(3));
    assert_eq!(body(&["    fn of_a_trait(&self);"], 0), None);
    assert!(begins("pub(in crate::psn) fn one()", "fn") && !begins("// fn one", "fn"));
}
