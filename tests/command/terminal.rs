//! Text from outside on a real terminal: names of files, arguments and configuration never steer it, whatever they contain.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::tempdir;

use crate::captures::Capture;
use crate::command::command;

/// Sets a terminal's title and its clipboard, links, moves the cursor by C1, turns text around, and hides.
const HOSTILE: &str =
    "a\u{1b}]0;owned\u{7}\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}31m\u{202e}gpj\u{2066}\u{200b}b\u{feff}.pcap";

/// Everything that the command writes to a terminal.
fn on_a_terminal(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let stream = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
    let mut command = command(folder);
    command
        .args(arguments)
        .env("TERM", "xterm")
        .stdout(stream(&theirs))
        .stderr(stream(&theirs));
    let mut child = command.spawn().unwrap();
    // The terminal hangs up when nobody else has it open.
    drop((theirs, command));
    let mut written = Vec::new();
    let mut ours = File::from(ours);
    let mut bytes = [0; 4096];
    // EIO: hung up.
    while let Ok(count @ 1..) = ours.read(&mut bytes) {
        written.extend_from_slice(&bytes[..count]);
    }
    let code = child.wait().unwrap().code();
    (code, String::from_utf8(written).unwrap())
}

/// Text without our own colours (ECMA-48 8.3.117, SGR) and the ends of lines.
fn without_style(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let digits = after.trim_start_matches(|glyph: char| glyph.is_ascii_digit() || glyph == ';');
        if let Some(after) = digits.strip_prefix('m') {
            rest = after;
        } else {
            plain.push('\u{1b}');
            rest = after;
        }
    }
    plain.push_str(rest);
    plain.replace("\r\n", "\n")
}

/// Characters that a terminal obeys, and those that hide or turn around what a person reads.
fn steers(glyph: char) -> bool {
    (glyph.is_control() && glyph != '\n')
        || matches!(glyph, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[track_caller]
fn is_harmless(folder: &Path, arguments: &[&str], code: i32, holds: &str) {
    let (ended, written) = on_a_terminal(folder, arguments);
    let plain = without_style(&written);
    assert!(plain.contains(holds), "{arguments:?}: no {holds:?}: {plain:?}");
    assert_eq!(ended, Some(code), "{plain:?}");
    let steering: Vec<char> = plain.chars().filter(|glyph| steers(*glyph)).collect();
    assert!(steering.is_empty(), "{arguments:?}: {steering:?} in {plain:?}");
}

#[test]
fn names_in_errors_do_not_steer() {
    let folder = tempdir().unwrap();
    is_harmless(folder.path(), &[HOSTILE], 2, "No such file");
    // Arguments that clap refuses.
    is_harmless(
        folder.path(),
        &["x.pcap", "--format", HOSTILE],
        2,
        "invalid value",
    );
    is_harmless(
        folder.path(),
        &["x.pcap", &format!("--{HOSTILE}")],
        2,
        "unexpected argument",
    );
    is_harmless(folder.path(), &["x.pcap", "--flow", HOSTILE], 2, "error");
    is_harmless(folder.path(), &["explain", HOSTILE], 2, "error");
    #[cfg(feature = "parquet")]
    is_harmless(folder.path(), &["report", HOSTILE], 2, "holds no results");
    // Errors of our own still have their colour: 1 bold, 31 red.
    let (_, written) = on_a_terminal(folder.path(), &[HOSTILE]);
    assert!(
        written.starts_with("\u{1b}[1m\u{1b}[31merror\u{1b}[0m: "),
        "{written:?}"
    );
}

#[test]
fn names_in_files_do_not_steer() {
    let folder = tempdir().unwrap();
    // TOML's escapes of eight digits.
    let key = HOSTILE.chars().fold(String::new(), |key, glyph| {
        key + &format!("\\U{:08X}", u32::from(glyph))
    });
    fs::write(folder.path().join("c.toml"), format!("\"{key}\" = 1\n")).unwrap();
    is_harmless(folder.path(), &["x.pcap", "--config", "c.toml"], 2, "c.toml:1");
    fs::write(folder.path().join(HOSTILE), Capture::named("rping").bytes()).unwrap();
    is_harmless(folder.path(), &[HOSTILE], 0, "verdict");
    is_harmless(folder.path(), &[HOSTILE, "--format", "json"], 0, "\"input\"");
    is_harmless(folder.path(), &["compare", HOSTILE, HOSTILE], 0, "gpj");
    is_harmless(
        folder.path(),
        &["compare", HOSTILE, HOSTILE, "--format", "json"],
        0,
        "gpj",
    );
    // Cut in the middle of a record: a message about an input.
    let bytes = Capture::named("rping").bytes();
    fs::write(folder.path().join(HOSTILE), &bytes[..bytes.len() - 7]).unwrap();
    is_harmless(folder.path(), &[HOSTILE, "--format", "none"], 0, "gpj");
}

/// A name that would add a line of its own to a message.
const LINES: &str = "a\nhint: run b\n.pcap";

#[test]
fn names_add_no_lines_to_messages() {
    let folder = tempdir().unwrap();
    let has_one_line = |arguments: &[&str], code: i32| {
        let (ended, written) = on_a_terminal(folder.path(), arguments);
        let plain = without_style(&written);
        assert_eq!(ended, Some(code), "{arguments:?}: {plain:?}");
        assert!(plain.contains("a?hint: run b?.pcap"), "{arguments:?}: {plain:?}");
        let mut lines = plain.lines();
        let fake = lines.find(|line| line.starts_with("hint: run b"));
        assert_eq!(fake, None, "{arguments:?}: {plain:?}");
    };
    has_one_line(&[LINES], 2);
    has_one_line(&[&format!("no/{LINES}/folder")], 2);
    has_one_line(&["compare", LINES, LINES], 2);
    has_one_line(&["x.pcap", "--format", LINES], 2);
    has_one_line(&["x.pcap", "--flow", LINES], 2);
    has_one_line(&["x.pcap", "--config", LINES], 2);
    has_one_line(&["x.pcap", &format!("--training-log={LINES}")], 2);
    has_one_line(&["explain", LINES], 2);
    has_one_line(&["simulate", LINES, "-o", "x.pcapng"], 2);
    #[cfg(feature = "parquet")]
    has_one_line(&["report", LINES], 2);
    // A capture that is cut: a warning, and the summary.
    let bytes = Capture::named("rping").bytes();
    fs::write(folder.path().join(LINES), &bytes[..bytes.len() - 7]).unwrap();
    has_one_line(&[LINES, "--format", "none"], 0);
    has_one_line(&[LINES], 0);
    has_one_line(&["compare", LINES, LINES], 0);
    // A note where results went.
    #[cfg(feature = "parquet")]
    {
        fs::write(folder.path().join("whole.pcap"), &bytes).unwrap();
        has_one_line(&["whole.pcap", "--format", "none", "-o", LINES], 2);
        has_one_line(&["whole.pcap", "-o", &format!("{LINES}.results")], 0);
    }
}

#[test]
fn json_gives_names_back_as_they_are() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join(HOSTILE), Capture::named("rping").bytes()).unwrap();
    let seen = crate::command::document(folder.path(), [HOSTILE]);
    assert_eq!(seen["run"]["inputs"][0]["input"], HOSTILE);
}

#[test]
fn a_binary_trace_is_not_written_to_a_terminal() {
    let capture = Capture::named("rnr");
    let (code, text) = on_a_terminal(&crate::captures::root(), &[&capture.path, "--format", "perfetto"]);
    assert_eq!(code, Some(2), "{text}");
    let text = without_style(&text);
    assert!(text.contains("standard output is a terminal"), "{text}");
    assert!(text.contains("hint: add `> trace.pftrace`"), "{text}");
}
