//! The probe leaves nothing behind.

use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::time::Duration;

use roce_probe::{Options, Probe, cleanup};

use crate::namespaces::Pair;
use crate::{PROBES, classifier, skip};

/// Set for the test that is started as a process of its own, to be killed.
const CHILD: &str = "ROCE_PROBE_TEST_CHILD";

fn options(filters: bool) -> Options {
    Options {
        interfaces: vec!["va".to_owned()],
        filters,
        ..classifier()
    }
}

/// Output of `tc` for the interface: qdiscs and filters of classifiers.
fn shown() -> String {
    let tc = |words: &[&str]| {
        let output = Command::new("tc").args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    tc(&["qdisc", "show", "dev", "va"])
        + &tc(&["filter", "show", "dev", "va", "ingress"])
        + &tc(&["filter", "show", "dev", "va", "egress"])
}

/// Open files of this process that belong to BPF.
fn open_files() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    targets
        .filter(|target| target.to_string_lossy().contains("bpf"))
        .count()
}

/// Namespaces, this thread in the sender's, and the right to attach; or word why not.
fn prepared(test: &str) -> Option<Pair> {
    let pair = match Pair::make() {
        Ok(pair) => pair,
        Err(reason) => {
            skip(test, &reason);
            return None;
        }
    };
    pair.enter('a');
    match Probe::open(&options(false)) {
        Ok(_) => Some(pair),
        Err(error) => {
            skip(test, &error.to_string());
            None
        }
    }
}

#[test]
fn a_hundred_times_on_and_off_leave_nothing() {
    let alone = PROBES.write().unwrap_or_else(PoisonError::into_inner);
    let Some(_pair) = prepared("a hundred times on and off") else {
        return;
    };
    let before = shown();
    assert!(!before.contains("clsact"), "{before}");
    let files = open_files();
    for round in 0..100 {
        let filters = round % 2 == 0;
        let (probe, _) = Probe::open(&options(filters)).unwrap();
        if filters {
            let during = shown();
            assert!(
                during.contains("clsact") && during.contains("roce_ingress"),
                "{during}"
            );
            assert!(during.contains("roce_egress"), "{during}");
        }
        drop(probe);
        assert_eq!(shown(), before, "round {round}");
        assert_eq!(open_files(), files, "round {round}");
    }
    drop(alone);
}

#[test]
fn what_others_made_stays() {
    let alone = PROBES.write().unwrap_or_else(PoisonError::into_inner);
    let Some(_pair) = prepared("somebody else's qdisc and filter") else {
        return;
    };
    let tc = |line: &str, last: &str| {
        let words = line.split(' ').chain([last]);
        assert!(
            Command::new("tc").args(words).status().unwrap().success(),
            "tc {line} {last}"
        );
    };
    // Somebody's qdisc before ours is opened.
    tc("qdisc add dev va", "clsact");
    drop(Probe::open(&options(true)).unwrap());
    assert!(shown().contains("clsact"), "{}", shown());
    assert!(!shown().contains("roce"), "{}", shown());
    tc("qdisc del dev va", "clsact");
    // Ours, and somebody's filter on it.
    let (probe, _) = Probe::open(&options(true)).unwrap();
    // Classic BPF that matches nothing: one instruction, return 0.
    tc(
        "filter add dev va egress prio 7 protocol all bpf bytecode",
        "1,6 0 0 0",
    );
    drop(probe);
    assert!(shown().contains("pref 7 bpf"), "{}", shown());
    assert!(!shown().contains("roce"), "{}", shown());
    drop(alone);
}

#[test]
fn a_killed_process_leaves_only_what_cleanup_removes() {
    let alone = PROBES.write().unwrap_or_else(PoisonError::into_inner);
    let Some(pair) = prepared("a killed process") else {
        return;
    };
    for filters in [false, true] {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &pair.namespace('a')])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "traces::the_process_to_be_killed", "--nocapture"])
            .env(CHILD, if filters { "filters" } else { "links" })
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert!(
            lines.any(|line| line.unwrap().contains("opened")),
            "the child opens the probe"
        );
        // `ip netns exec` becomes the process that it starts.
        child.kill().unwrap();
        child.wait().unwrap();
        let left = shown().contains("roce_ingress");
        assert_eq!(left, filters, "{}", shown());
        let cleaned = cleaned(&pair);
        assert_eq!(cleaned, if filters { vec!["va".to_owned()] } else { vec![] });
        assert!(!shown().contains("roce"), "{}", shown());
    }
    drop(alone);
}

/// `cleanup` looks for interfaces in /sys, which shows those of the namespace in which it was mounted.
fn cleaned(pair: &Pair) -> Vec<String> {
    let output = Command::new("ip")
        .args(["netns", "exec", &pair.namespace('a')])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "traces::the_process_that_cleans", "--nocapture"])
        .env(CHILD, "clean")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("cleaned "));
    let (_, names) = line.unwrap_or_else(|| panic!("{text}"));
    names.split_whitespace().map(str::to_owned).collect()
}

fn child_of(what: &[&str]) -> Option<String> {
    std::env::var(CHILD)
        .ok()
        .filter(|said| what.contains(&said.as_str()))
}

#[test]
fn the_process_that_cleans() {
    if child_of(&["clean"]).is_some() {
        use std::io::Write;
        let names = cleanup().unwrap().interfaces.join(" ");
        writeln!(std::io::stdout(), "cleaned {names}").unwrap();
    }
}

#[test]
fn the_process_to_be_killed() {
    if let Some(way) = child_of(&["links", "filters"]) {
        use std::io::Write;
        let _probe = Probe::open(&options(way == "filters")).unwrap();
        writeln!(std::io::stdout(), "opened").unwrap();
        std::thread::sleep(Duration::from_mins(1));
    }
}
