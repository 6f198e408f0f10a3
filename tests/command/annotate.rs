//! `annotate`: comments come back from the written file, their numbers are those of the results, and no frame changes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::tempdir;

use crate::captures::root;
use crate::command::{document, run, total};

/// Sizes and codes of pcapng (IETF draft, 4.1 and 4.3): the type of an Enhanced Packet Block, and of a Section Header Block.
const ENHANCED: u32 = 6;
const SECTION: u32 = 0x0a0d_0d0a;

/// Comments of a little-endian pcapng file: those of its section, and one place for each packet.
struct Comments {
    section: Vec<String>,
    packets: Vec<Option<String>>,
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// `opt_comment` (code 1) among the options of a block, which are padded to four bytes each.
fn comments_in(mut options: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while options.len() >= 4 {
        let code = u16::from_le_bytes([options[0], options[1]]);
        let length = usize::from(u16::from_le_bytes([options[2], options[3]]));
        if code == 0 {
            break;
        }
        if code == 1 {
            found.push(String::from_utf8(options[4..4 + length].to_vec()).unwrap());
        }
        options = &options[4 + length.next_multiple_of(4)..];
    }
    found
}

fn comments(path: &Path) -> Comments {
    let bytes = fs::read(path).unwrap();
    let mut all = Comments {
        section: Vec::new(),
        packets: Vec::new(),
    };
    let mut at = 0;
    while at + 12 <= bytes.len() {
        let (kind, length) = (number(&bytes, at), number(&bytes, at + 4) as usize);
        let body = &bytes[at + 8..at + length - 4];
        match kind {
            // Magic, version, length of the section.
            SECTION => all.section = comments_in(&body[16..]),
            ENHANCED => {
                let captured = number(body, 12) as usize;
                let options = &body[20 + captured.next_multiple_of(4)..];
                all.packets.push(comments_in(options).pop());
            }
            _ => {}
        }
        at += length;
    }
    assert_eq!(at, bytes.len());
    all
}

/// Captures of the repository.
fn captures() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root().join("captures"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pcap"))
        .collect();
    found.sort();
    assert!(found.len() >= 10, "{found:?}");
    found
}

fn annotated(folder: &Path, capture: &Path, more: &[&str]) -> PathBuf {
    let output = folder.join("annotated.pcapng");
    let mut arguments = vec![
        "annotate".to_owned(),
        capture.display().to_string(),
        "--overwrite".to_owned(),
        "-o".to_owned(),
        output.display().to_string(),
    ];
    arguments.extend(more.iter().map(ToString::to_string));
    run(folder, arguments).good();
    output
}

#[test]
fn counts_of_comments_are_those_of_the_results() {
    let folder = tempdir().unwrap();
    for capture in captures() {
        let results = document(folder.path(), [&capture]);
        let output = annotated(folder.path(), &capture, &[]);
        let found = comments(&output);
        let count = |text: &str| {
            let packets = found.packets.iter().flatten();
            packets.filter(|comment| comment.contains(text)).count() as u64
        };
        let place = capture.display();
        assert_eq!(
            count("retransmission of"),
            total(&results, "retransmitted_packets"),
            "{place}"
        );
        assert_eq!(count("CE: "), total(&results, "ce"), "{place}");
        assert_eq!(count("CNP"), total(&results, "cnp"), "{place}");
        assert_eq!(count("RNR NAK: "), total(&results, "rnr_naks"), "{place}");
        let findings = results["findings"].as_array().unwrap();
        for finding in findings {
            let id = finding["id"].as_str().unwrap();
            assert!(
                found.section.iter().any(|comment| comment.contains(id)),
                "{place}: {id}"
            );
        }
    }
}

#[test]
fn no_frame_changes() {
    let folder = tempdir().unwrap();
    for capture in captures() {
        let output = annotated(folder.path(), &capture, &["--all"]);
        let (before, after) = (
            document(folder.path(), [&capture]),
            document(folder.path(), [&output]),
        );
        // Each RoCE packet has a comment, and the file gives the results of the capture.
        let commented = comments(&output).packets.iter().flatten().count() as u64;
        assert!(
            commented >= total(&before, "roce_packets"),
            "{}",
            capture.display()
        );
        assert_eq!(before["totals"], after["totals"], "{}", capture.display());
        assert_eq!(before["findings"], after["findings"], "{}", capture.display());
    }
}

#[test]
fn frames_are_selected_by_comment_flow_and_time() {
    let folder = tempdir().unwrap();
    let capture = root().join("captures/write_bw_loss.pcap");
    let whole = comments(&annotated(folder.path(), &capture, &[]));
    let commented = comments(&annotated(folder.path(), &capture, &["--commented"]));
    assert_eq!(
        commented.packets.len(),
        whole.packets.iter().flatten().count(),
        "the others are left out"
    );
    // Frames that a comment names are in the file, and before it.
    for (at, comment) in commented.packets.iter().enumerate() {
        let named = comment.as_deref().and_then(|text| text.split("frame ").nth(1));
        let named = named.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        if let Some(named) = named.and_then(|digits| digits.parse::<usize>().ok()) {
            assert!((1..=at).contains(&named), "frame {}: {comment:?}", at + 1);
        }
    }
    // Both directions of the connection, and nothing else: the capture has one.
    let flow = annotated(
        folder.path(),
        &capture,
        &["--flow", "10.77.0.1 > 10.77.0.2 QP 0x13"],
    );
    let flow = document(folder.path(), [&flow]);
    assert_eq!(
        total(&flow, "naks"),
        total(&document(folder.path(), [&capture]), "naks")
    );
    let early = comments(&annotated(folder.path(), &capture, &["--to", "+1ms"]));
    assert!(early.packets.len() < whole.packets.len() && !early.packets.is_empty());
    assert_eq!(early.packets[..], whole.packets[..early.packets.len()]);
}

#[test]
fn what_would_be_lost_is_refused() {
    let folder = tempdir().unwrap();
    let capture = folder.path().join("a.pcap");
    fs::copy(root().join("captures/rping.pcap"), &capture).unwrap();
    let before = fs::read(&capture).unwrap();
    for arguments in [
        &["annotate", "a.pcap", "-o", "a.pcap"][..],
        &["annotate", "a.pcap", "-o", "a.pcap", "--overwrite"],
        &["annotate", "-", "-o", "b.pcapng"],
    ] {
        let ran = run(folder.path(), arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
    assert_eq!(fs::read(&capture).unwrap(), before);
}

#[test]
fn wireshark_reads_comments_and_profile() {
    let folder = tempdir().unwrap();
    if Command::new("tshark").arg("--version").output().is_err() {
        // The harness keeps what is printed by macros to itself.
        let line = b"SKIPPED: annotate::wireshark_reads_comments_and_profile: tshark is not installed\n";
        std::io::stdout().write_all(line).unwrap();
        return;
    }
    let capture = root().join("captures/send_bw_ce_synthetic_cnp.pcap");
    let output = annotated(folder.path(), &capture, &[]);
    run(folder.path(), ["annotate", "--profile", "profile"]);
    let script = format!(
        "lua_script:{}",
        folder.path().join("profile/roce_comments.lua").display()
    );
    let lines = |filter: &str, field: &str| {
        let ran = Command::new("tshark")
            .args(["-X", &script, "-r"])
            .arg(&output)
            .args(["-Y", filter, "-T", "fields", "-e", field])
            // The tester's own plugins stay out.
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success() && !said.contains("Lua"), "{said}");
        let text = String::from_utf8(ran.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let results = document(folder.path(), [&capture]);
    let count = |name: &str| usize::try_from(total(&results, name)).unwrap();
    assert_eq!(
        lines("frame.comment contains \"CE: \"", "frame.number").len(),
        count("ce")
    );
    let names = lines("infiniband.bth.opcode == 0x81", "roce.opcode");
    assert_eq!(
        (names.len(), names.iter().all(|name| name == "CNP")),
        (count("cnp"), true)
    );
    assert_eq!(lines("roce.episode", "frame.number").len(), count("ce"));
    let marks = lines("roce.cnp.mark", "roce.cnp.slows");
    assert_eq!(marks.len(), count("cnp"));
    assert_eq!(marks[0], "10.77.0.1 > 10.77.0.2 QP 0x11");
    // The filters of colours and buttons are filters.
    for file in ["colorfilters", "dfilter_buttons"] {
        let text = fs::read_to_string(folder.path().join("profile").join(file)).unwrap();
        let filters: Vec<String> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| match file {
                "colorfilters" => line.split('@').nth(2).unwrap().to_owned(),
                _ => line.split("\",\"").nth(2).unwrap().replace("\\\"", "\""),
            })
            .collect();
        assert!(filters.len() >= 7, "{file}");
        for filter in filters {
            lines(&filter, "frame.number");
        }
    }
}

#[test]
fn credits_and_their_messages_are_named() {
    let folder = tempdir().unwrap();
    let capture = root().join("tests/data/credits/adaptive-h1.pcap.gz");
    let output = annotated(folder.path(), &capture, &[]);
    let all: Vec<String> = comments(&output).packets.into_iter().flatten().collect();
    let has = |comment: &str| all.iter().any(|text| text == comment);
    // The first line of adaptive.csv: the credit arrives at 21,200 ns, the data leave from 2,050,698 to 2,061,104 ns, and the
    // acknowledgement arrives at 2,065,232 ns.
    assert!(has("credit 245: the receiver asks for a message"), "{all:?}");
    assert!(
        has("message 245 of 65536 bytes begins, 2.02 ms after its credit"),
        "{all:?}"
    );
    assert!(has("message 245 ends, 2.03 ms after its credit"), "{all:?}");
    assert!(
        has("acknowledges message 245, 2.04 ms after its credit"),
        "{all:?}"
    );
    // Four connections of twelve messages, each with a credit, a first and a last packet, and an acknowledgement.
    let named = all.iter().filter(|text| text.contains("message")).count();
    assert_eq!(named, 4 * 12 * 4);
}
