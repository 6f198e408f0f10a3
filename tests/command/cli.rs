//! The command line: accepted and refused arguments, messages, exit codes, and options that select.

use std::fs;
use std::io::pipe;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use roce_capture::Container;
use roce_capture::write::ByteOrder;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::captures::{self, Capture, root};
use crate::command::{Ran, command, document, flows, ran, run, run_with_input, sum, total};
use crate::variants::pcap;

/// A pipe without a reader.
pub(crate) fn closed_pipe() -> Stdio {
    let (_, write) = pipe().expect("a pipe");
    write.into()
}

/// A folder with `good.pcap` (rping, 65 packets), `other.pcap` (atomic, 40 packets), and `bad.pcap` with what is given.
pub(crate) fn folder(bad: &[u8]) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("good.pcap"), Capture::named("rping").bytes()).unwrap();
    fs::write(folder.path().join("other.pcap"), Capture::named("atomic").bytes()).unwrap();
    fs::write(folder.path().join("bad.pcap"), bad).unwrap();
    folder
}

/// Exit code and standard error of a command that says nothing on standard output.
#[track_caller]
pub(crate) fn refused(ran: &Ran) -> String {
    assert_eq!(ran.stdout, "");
    format!("exit {}\n{}", ran.code.unwrap(), ran.stderr)
}

/// A refusal in a folder of its own.
#[track_caller]
pub(crate) fn refusal(arguments: &[&str]) -> String {
    refused(&run(folder(b"").path(), arguments))
}

#[test]
fn wrong_arguments() {
    assert_snapshot!("no_arguments", refusal(&[]));
    assert_snapshot!("unknown_format", refusal(&["good.pcap", "--format", "xml"]));
    assert_snapshot!("overwrite_without_output", refusal(&["good.pcap", "--overwrite"]));
    for (name, bin) in [
        ("bin_without_unit", "5"),
        ("bin_of_nothing", "0ms"),
        ("bin_too_wide", "2h"),
    ] {
        assert_snapshot!(name, refusal(&["good.pcap", "--bin", bin]));
    }
    assert_snapshot!("from_is_no_time", refusal(&["good.pcap", "--from", "yesterday"]));
    assert_snapshot!("to_is_no_duration", refusal(&["good.pcap", "--to", "+5"]));
    assert_snapshot!(
        "from_after_to",
        refusal(&["good.pcap", "--from", "+2s", "--to", "+1s"])
    );
    assert_snapshot!("no_threads", refusal(&["good.pcap", "--threads", "0"]));
    assert_snapshot!("no_flows", refusal(&["good.pcap", "--max-flows", "0"]));
    assert_snapshot!("unknown_shell", refusal(&["completions", "tcsh"]));
    for (name, option, value) in [
        ("link_rate_of_nothing", "--link-rate", "100"),
        ("link_rate_in_bytes", "--link-rate", "100GB/s"),
        ("dscp_map_of_nothing", "--dscp-map", "26"),
        ("dscp_map_beyond", "--dscp-map", "26=9"),
        ("fail_on_ok", "--fail-on", "ok"),
        (
            "training_pattern_without_groups",
            "--training-log-pattern",
            "step (\\d+)",
        ),
        ("training_pattern_open", "--training-log-pattern", "(?<step>\\d+"),
    ] {
        assert_snapshot!(name, refusal(&["good.pcap", option, value]));
    }
}

#[test]
fn a_wrong_filter_is_pointed_at() {
    for (name, filter) in [
        ("filter_unknown_word", "dst 10.77.0.2 and port 4791"),
        ("filter_not_an_address", "src 10.77.0.300"),
        ("filter_open_parenthesis", "(qpn 0x11 or qpn 0x12"),
        ("filter_number_too_large", "dscp 64"),
    ] {
        assert_snapshot!(name, refusal(&["good.pcap", "--flow", filter]));
    }
}

#[test]
fn inputs_that_are_no_captures() {
    assert_snapshot!("missing_file", refusal(&["missing.pcap"]));
    assert_snapshot!("empty_file", refusal(&["bad.pcap"]));
    assert_snapshot!("a_directory", refusal(&["."]));
    let text = folder(b"This is a text, not a capture.");
    assert_snapshot!("not_a_capture", refused(&run(text.path(), ["bad.pcap"])));
    assert_snapshot!(
        "two_not_captures",
        refused(&run(text.path(), ["bad.pcap", "missing.pcap"]))
    );
    assert_snapshot!(
        "nothing_on_standard_input",
        refused(&run_with_input(text.path(), ["-"], b""))
    );
}

#[test]
fn concatenated_captures_are_named() {
    // rping of 7,394 bytes, 65 frames; then another capture.
    let whole = [
        fs::read(root().join("captures/rping.pcap")).unwrap(),
        fs::read(root().join("captures/atomic.pcap")).unwrap(),
    ]
    .concat();
    let folder = folder(&whole);
    let ran = run(folder.path(), ["bad.pcap", "--format", "json"]);
    assert_eq!(ran.code, Some(2));
    let expected = format!(
        "error: bad.pcap: byte {}: another capture begins here\n\
         hint: give concatenated captures one by one; mergecap joins them into one file\n",
        fs::metadata(root().join("captures/rping.pcap")).unwrap().len()
    );
    assert_eq!(ran.stderr, expected);
    assert_eq!(total(&ran.json(), "frames"), 65);
}

#[test]
fn one_bad_input_does_not_stop_the_others() {
    let folder = folder(b"This is a text, not a capture.");
    let ran = run(
        folder.path(),
        ["good.pcap", "bad.pcap", "other.pcap", "--format", "json"],
    );
    assert_eq!(ran.code, Some(2));
    assert_snapshot!("one_bad_of_three", ran.stderr);
    let found = ran.json();
    // 65 of rping, 40 of atomic.
    assert_eq!(total(&found, "frames"), 105);
    assert_eq!(total(&found, "roce_packets"), 105);
    let inputs = found["run"]["inputs"].as_array().unwrap();
    let frames: Vec<&Value> = inputs.iter().map(|input| &input["frames"]).collect();
    assert_eq!(frames, [65, 0, 40]);
    let error = format!("error: {}\n", inputs[1]["error"].as_str().unwrap());
    assert_eq!(error, ran.stderr, "the document says it, too");
    assert_eq!(
        (&inputs[0]["error"], &inputs[2]["error"]),
        (&Value::Null, &Value::Null)
    );
}

/// Start of record `number` in a classic pcap file: 24 bytes for the file, 16 for each record.
fn offset(capture: &Capture, number: usize) -> usize {
    24 + capture.frames()[..number]
        .iter()
        .map(|record| 16 + record.data.len())
        .sum::<usize>()
}

#[test]
fn a_corrupt_record_ends_its_file_and_keeps_what_was_before() {
    let capture = Capture::named("clean_write_bw");
    let mut bytes = capture.bytes();
    let at = offset(&capture, 100);
    // The captured length: the third number of the record's header.
    bytes[at + 8..at + 12].copy_from_slice(&[0xff; 4]);
    let folder = folder(&bytes);
    for threads in ["1", "2"] {
        let ran = run(
            folder.path(),
            ["bad.pcap", "good.pcap", "--format", "json", "--threads", threads],
        );
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.stderr.starts_with(&format!("error: bad.pcap: byte {at}: ")),
            "{}",
            ran.stderr
        );
        assert_snapshot!("corrupt_record", ran.stderr);
        let found = ran.json();
        assert_eq!(found["run"]["inputs"][0]["frames"], 100);
        assert_eq!(
            total(&found, "frames"),
            165,
            "100 before it, 65 of the other file"
        );
        assert_eq!(
            format!(
                "error: {}\n",
                found["run"]["inputs"][0]["error"].as_str().unwrap()
            ),
            ran.stderr
        );
    }
    // Packets before the fault give the results of a whole file.
    let head = pcap(&capture.frames()[..100], Container::Pcap, ByteOrder::Little);
    fs::write(folder.path().join("head.pcap"), head).unwrap();
    let corrupt = run(folder.path(), ["bad.pcap", "--format", "json"]).json();
    let whole = document(folder.path(), ["head.pcap"]);
    assert_eq!(
        (&corrupt["totals"], &corrupt["flows"]),
        (&whole["totals"], &whole["flows"])
    );
}

#[test]
fn a_truncated_file_is_a_warning() {
    let capture = Capture::named("clean_write_bw");
    let mut bytes = capture.bytes();
    bytes.truncate(bytes.len() - 10);
    let folder = folder(&bytes);
    let ran = run(folder.path(), ["bad.pcap", "--format", "json"]);
    assert_eq!(ran.code, Some(0));
    let found = ran.json();
    // 340 frames, the last of which is incomplete.
    assert_eq!(total(&found, "frames"), 339);
    let input = &found["run"]["inputs"][0];
    assert_eq!(input["truncated"], true);
    let (begin, whole) = (
        offset(&capture, 339),
        offset(&capture, 340) - offset(&capture, 339),
    );
    let warning = format!(
        "the last record, at byte {begin}, is cut off: it needs {whole} bytes and has {}",
        whole - 10
    );
    assert_eq!(input["warnings"], serde_json::json!([warning]));
    // With JSON the warning goes to standard error; the terminal's summary includes it.
    assert_eq!(ran.stderr, format!("warning: bad.pcap: {warning}\n"));
    let text = run(folder.path(), ["bad.pcap"]).good().stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("warning bad.pcap: {warning}")), "{text}");
    // Cut between two records, it is a whole file.
    fs::write(folder.path().join("bad.pcap"), &capture.bytes()[..begin]).unwrap();
    assert_eq!(
        document(folder.path(), ["bad.pcap"])["run"]["inputs"][0]["truncated"],
        false
    );
}

#[test]
fn a_capture_without_frames_is_one() {
    let folder = folder(&Capture::named("rping").bytes()[..24]);
    let found = document(folder.path(), ["bad.pcap"]);
    assert_eq!((total(&found, "frames"), flows(&found).len()), (0, 0));
    assert_eq!(found["run"]["first_time"], Value::Null);
    assert_snapshot!("no_frames", run(folder.path(), ["bad.pcap"]).good().stdout);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    for arguments in [
        &["captures/rping.pcap"][..],
        &["captures/rping.pcap", "--format", "json"],
        &["captures/rping.pcap", "--threads", "2"],
        &["--help"],
        &["man"],
        &["completions", "bash"],
    ] {
        let ran = ran(command(&root()).args(arguments).stdout(closed_pipe()));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_one() {
    for arguments in [
        &["captures/rping.pcap"][..],
        &["captures/rping.pcap", "--format", "json"],
        &["--help"],
        &["devices", "--help"],
        &["--version"],
        &["-V"],
        &["completions", "bash"],
    ] {
        let full = fs::File::create("/dev/full").unwrap();
        let ran = ran(command(&root()).args(arguments).stdout(full));
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(
            ran.stderr.starts_with("error: ") && ran.stderr.contains("No space left on device"),
            "{ran:?}"
        );
    }
}

#[test]
#[cfg_attr(
    not(all(feature = "live", feature = "parquet")),
    ignore = "the help of a build without `live` or `parquet` is shorter"
)]
fn help_version_completions_and_manual() {
    let said = |arguments: &[&str]| run(&root(), arguments).good().stdout;
    assert_snapshot!("overview", said(&["--help"]));
    assert_eq!(said(&["-h"]), said(&["--help"]));
    assert_eq!(said(&["help"]), said(&["--help"]));
    assert_snapshot!("help", said(&["a.pcap", "--help"]));
    assert_snapshot!("help_in_short", said(&["a.pcap", "-h"]));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = said(&["completions", shell]);
        assert!(script.contains("roce-analyze"), "{shell}");
    }
    let manual = said(&["man"]);
    let first = manual
        .lines()
        .find(|line| !line.starts_with(".ie") && !line.starts_with(".el"))
        .unwrap();
    assert!(first.starts_with(".TH roce-analyze 1"), "{first}");
    for section in [
        ".SH NAME",
        ".SH SYNOPSIS",
        ".SH DESCRIPTION",
        ".SH OPTIONS",
        ".SH EXAMPLES",
        ".SH \"EXIT STATUS\"",
        ".SH ENVIRONMENT",
        ".SH \"SEE ALSO\"",
    ] {
        assert!(manual.contains(section), "{section}");
    }
}

#[test]
fn completions_are_scripts_that_their_shell_takes() {
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = run(&root(), ["completions", shell]).good().stdout;
        assert!(script.contains("ROCE_ANALYZE_COMPLETE"), "{shell}: {script}");
        // If there is such a shell, it reads the script without a message.
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), script).unwrap();
        if let Ok(output) = Command::new(shell).arg(check).arg(file.path()).output() {
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{shell}: {output:?}"
            );
        }
    }
}

/// Words that can follow `words`, the last of which is begun, as a shell's script asks for them.
fn completed(shell: &str, words: &[&str]) -> Vec<String> {
    let mut asked = command(&root());
    asked.env("ROCE_ANALYZE_COMPLETE", shell);
    // Bash and zsh name the place of the word that is completed; fish completes the last one.
    asked.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    asked.env("_CLAP_IFS", "\n");
    asked.args(["--", "roce-analyze"]).args(words);
    let output = ran(&mut asked).good().stdout;
    // zsh has the meaning behind a colon, fish behind a tabulator.
    let word = |line: &str| {
        line.split([':', '\t'])
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    output.lines().map(word).collect()
}

#[test]
#[cfg_attr(
    not(all(feature = "live", feature = "sim")),
    ignore = "a build without `live` or `sim` has fewer commands"
)]
fn shells_complete_commands_names_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let has = |words: &[&str], wanted: &[&str]| {
            let found = completed(shell, words);
            for word in wanted {
                assert!(
                    found.iter().any(|found| found == word),
                    "{shell}, {words:?}: {found:?}"
                );
            }
            found
        };
        let commands = has(&[""], &["compare", "explain", "fleet", "demo"]);
        assert!(
            !commands.iter().any(|word| word == "beside"),
            "{shell}: {commands:?}"
        );
        let below = has(&["fleet", ""], &["capture", "collect", "clean", "run"]);
        assert!(!below.iter().any(|word| word == "compare"), "{shell}: {below:?}");
        has(&["fleet", "capture", "--dur"], &["--duration"]);
        has(&["compare", "--fail-"], &["--fail-on"]);
        has(&["demo", "inc"], &["incast"]);
        has(&["explain", "loss.n"], &["loss.network"]);
        has(&["live", "--rot"], &["--rotate"]);
        has(&["metrics", "fi"], &["files"]);
    }
}

#[test]
fn bash_completes_by_its_script() {
    let script = run(&root(), ["completions", "bash"]).good().stdout;
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_roce-analyze"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    // As bash calls the function: the words so far, and the program, the word to complete and the one before as arguments.
    let call = format!(
        "{script}\nCOMP_WORDS=(roce-analyze compare --fail-)\nCOMP_CWORD=2\nCOMP_TYPE=9\n\
         _clap_complete_roce_analyze roce-analyze --fail- compare\necho \"${{COMPREPLY[@]}}\""
    );
    let Ok(output) = Command::new("bash")
        .args(["-c", &call])
        .env("PATH", path)
        .output()
    else {
        return;
    };
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "--fail-on");
}

#[test]
fn a_capture_named_like_a_subcommand() {
    let folder = folder(b"");
    fs::rename(folder.path().join("good.pcap"), folder.path().join("man")).unwrap();
    assert_eq!(total(&document(folder.path(), ["./man"]), "frames"), 65);
    assert!(run(folder.path(), ["man"]).good().stdout.contains(".TH"));
}

#[test]
fn filters_take_what_they_say() {
    // Name, filter, packets taken of packets: by tshark, see tests/data/golden.
    let cases = [
        ("write_bw_loss", "dst 10.77.0.2", 2598, 2689),
        ("write_bw_loss", "src 10.77.0.2", 91, 2689),
        ("write_bw_loss", "10.77.0.2 -> 10.77.0.1", 91, 2689),
        ("write_bw_loss", "10.77.0.1 <-> 10.77.0.2", 2689, 2689),
        ("write_bw_loss", "10.77.0.0/31", 2689, 2689),
        ("write_bw_loss", "10.77.0.4/30", 0, 2689),
        ("send_bw_ce_synthetic_cnp", "service cnp", 125, 1485),
        (
            "send_bw_ce_synthetic_cnp",
            "not service cnp and dst 10.77.0.1",
            80,
            1485,
        ),
        ("send_bw_ce_synthetic_cnp", "dscp 48 or dst 10.77.0.2", 1405, 1485),
        ("rping", "qpn 1", 5, 65),
        ("rping", "service ud", 5, 65),
        ("rping", "not (qpn 1 or dst 10.77.0.1)", 30, 65),
        ("rping", "qpn 0x19 and src 10.77.0.2", 30, 65),
    ];
    for (name, filter, taken, all) in cases {
        let path = Capture::named(name).path;
        for threads in ["1", "2"] {
            let found = document(&root(), [&path, "--only-flow", filter, "--threads", threads]);
            let what = format!("{name}: {filter}");
            assert_eq!(total(&found, "roce_packets"), taken, "{what}");
            assert_eq!(total(&found, "filtered"), all - taken, "{what}");
            assert_eq!(
                total(&found, "frames"),
                all,
                "{what}: frames are read all the same"
            );
            assert_eq!(
                sum(flows(&found), "packets") + total(&found, "cnp"),
                taken,
                "{what}"
            );
            assert_eq!(found["run"]["options"]["only_flow"], filter);
        }
    }
}

#[test]
fn times_take_what_lies_between() {
    let capture = Capture::named("send_bw_ce_synthetic_cnp");
    // By tshark the first frame is of 1795230312.266340000, which is 2026-11-21T03:05:12.26634Z.
    let first = capture.golden().of("first_time_ns");
    assert_eq!(first, 1_795_230_312_266_340_000);
    let times: Vec<u64> = capture.frames().iter().map(|record| record.time.0).collect();
    let between = |from: u64, to: u64| times.iter().filter(|time| (from..to).contains(*time)).count() as u64;
    let second = 1_000_000_000;
    let cases: [(&[&str], u64); 8] = [
        (&["--from", "+0s"], 1485),
        (
            &["--from", "+500ms", "--to", "+1s"],
            between(first + second / 2, first + second),
        ),
        (&["--to", "+1s"], between(0, first + second)),
        (&["--from", "+1s"], between(first + second, u64::MAX)),
        (
            &["--from", "2026-11-21T03:05:13Z"],
            between(1_795_230_313 * second, u64::MAX),
        ),
        (
            &[
                "--from",
                "2026-11-21T04:05:13+01:00",
                "--to",
                "2026-11-21T03:05:13.5Z",
            ],
            { between(1_795_230_313 * second, 1_795_230_313 * second + second / 2) },
        ),
        // The first frame is at its own time, and `to` is not part of the range.
        (&["--to", "2026-11-21T03:05:12.26634Z"], 0),
        (&["--to", "2026-11-21T03:05:12.266340001Z"], 1),
    ];
    for (range, frames) in cases {
        for threads in ["1", "2"] {
            let given = [&capture.path[..], "--threads", threads, "--format", "json"];
            let ran = run(&root(), given.iter().chain(range));
            // A time without a frame is worth a warning.
            assert_eq!(
                (ran.code, ran.stderr.is_empty()),
                (Some(0), frames > 0),
                "{ran:?}"
            );
            let found = ran.json();
            assert_eq!(total(&found, "frames"), frames, "{range:?}");
            assert_eq!(total(&found, "roce_packets"), frames, "{range:?}");
            assert_eq!(
                sum(found["taps"].as_array().unwrap(), "frames"),
                frames,
                "{range:?}"
            );
        }
    }
    // The halves make the whole.
    let half = |range: &[&str]| document(&root(), [&capture.path[..]].iter().chain(range));
    let (before, after) = (half(&["--to", "+1s"]), half(&["--from", "+1s"]));
    let whole = document(&root(), [&capture.path]);
    for key in [
        "frames",
        "wire_bytes",
        "payload_bytes",
        "ce",
        "cnp",
        "acks",
        "data_packets",
        "icrc_checked",
    ] {
        assert_eq!(
            total(&before, key) + total(&after, key),
            total(&whole, key),
            "{key}"
        );
    }
}

/// Times in texts count from the first frame of the capture, whatever `--from` leaves out.
#[test]
fn from_moves_no_zero() {
    let capture = "captures/write_bw_loss.pcap";
    let whole = document(&root(), [capture]);
    let later = document(&root(), [capture, "--from", "+400ms"]);
    assert_eq!(whole["run"]["zero_time"], whole["run"]["first_time"]);
    assert_eq!(later["run"]["zero_time"], whole["run"]["zero_time"]);
    let text = run(&root(), [capture, "--from", "+400ms"]).good().stdout;
    let sentence: Vec<&str> = text.split_whitespace().take(20).collect();
    // The first loss behind 400 ms: its PSN is missing from 410.6 ms on (tshark's frame.time_relative of frame 1,508).
    assert!(sentence.join(" ").contains("from +411 ms to"), "{text}");
    assert!(text.contains("+400 ms"), "the axis: {text}");
}

#[test]
fn top_chooses_what_the_table_shows() {
    let shown = |top: &str| run(&root(), ["captures/rping.pcap", "--top", top]).good().stdout;
    let rows = |text: &str| text.lines().filter(|line| line.starts_with(" 10.77.0.")).count();
    let counts: Vec<usize> = ["0", "1", "3", "4", "100"]
        .iter()
        .map(|top| rows(&shown(top)))
        .collect();
    assert_eq!(counts, [0, 1, 3, 4, 4]);
    // The largest has 768 of 2,240 bytes: 1,472 are left.
    assert!(
        shown("1").contains(" and 3 more flows with 1.47 kB (65.7 % of all payload)"),
        "{}",
        shown("1")
    );
}

#[test]
fn a_cap_on_flows_closes_them_early_and_says_so() {
    for capture in captures::samples() {
        let free = document(&root(), [&capture.path]);
        let capped = document(&root(), [&capture.path, "--max-flows", "1", "--threads", "1"]);
        let name = &capture.name;
        let rows = flows(&capped);
        let evicted = rows.iter().filter(|flow| flow["evicted"] == true).count() as u64;
        assert_eq!(total(&capped, "evicted"), evicted, "{name}");
        assert_eq!(evicted > 0, flows(&free).len() > 1, "{name}");
        assert_eq!(total(&capped, "flows"), rows.len() as u64, "{name}");
        let mut keys: Vec<String> = rows
            .iter()
            .map(|flow| format!("{} {}", flow["flow_id"], flow["epoch"]))
            .collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), rows.len(), "{name}: no key is used twice");
        // Results of single packets are not affected.
        for key in [
            "frames",
            "roce_packets",
            "wire_bytes",
            "payload_bytes",
            "data_packets",
            "acks",
            "naks",
            "rnr_naks",
        ] {
            assert_eq!(total(&capped, key), total(&free, key), "{name}: {key}");
        }
        assert_eq!(
            sum(rows, "packets") + total(&capped, "cnp"),
            total(&free, "roce_packets"),
            "{name}"
        );
        for key in [
            "payload_bytes",
            "data_packets",
            "acks",
            "naks",
            "rnr_naks",
            "missing",
            "retransmitted_packets",
        ] {
            assert_eq!(sum(rows, key), total(&capped, key), "{name}: {key}");
        }
        let text = run(&root(), [&capture.path, "--max-flows", "1", "--threads", "1"])
            .good()
            .stdout;
        let said = text.contains(" closed early for --max-flows");
        assert_eq!(said, evicted > 0, "{name}: {text}");
    }
}

#[test]
fn hash_is_that_of_sha256sum() {
    let path = "captures/clean_write_bw.pcap";
    // sha256sum captures/clean_write_bw.pcap
    let expected = "22f482684a92b1bc977b365578021baea4c912939a4a681d3e1f140beef89270";
    let with = document(&root(), [path, "--hash"]);
    assert_eq!(with["run"]["inputs"][0]["sha256"], expected);
    assert_eq!(
        document(&root(), [path])["run"]["inputs"][0]["sha256"],
        Value::Null
    );
}

#[test]
fn a_compressed_file_that_is_cut_keeps_what_was_before() {
    let capture = Capture::named("write_bw_loss");
    let whole = zstd::encode_all(&capture.bytes()[..], 1).unwrap();
    let folder = folder(&whole[..whole.len() - whole.len() / 4]);
    let ran = run(folder.path(), ["bad.pcap", "good.pcap", "--format", "json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .starts_with("error: bad.pcap: zstd stream fails after "),
        "{}",
        ran.stderr
    );
    let found = ran.json();
    let frames = found["run"]["inputs"][0]["frames"].as_u64().unwrap();
    assert!((1..2689).contains(&frames), "{frames}");
    assert_eq!(total(&found, "frames"), frames + 65);
}
