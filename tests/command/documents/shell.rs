//! Command lines of documents: taken apart, parsed as the command does, or run.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::captures::root;

/// Words after which the shell no longer takes arguments.
const ENDS: [&str; 9] = ["|", ">", ">>", "<", "2>", "&&", "||", ";", "&"];

/// The arguments of a command line, when it starts `roce-analyze`.
pub(crate) fn arguments(line: &str) -> Option<Vec<String>> {
    let words = shlex::split(line)?;
    let mut words = words
        .into_iter()
        .skip_while(|word| word == "sudo" || word.contains('='))
        .peekable();
    if words.peek().map(String::as_str) != Some("roce-analyze") {
        return None;
    }
    let words: Vec<String> = words
        .skip(1)
        .take_while(|word| !ENDS.contains(&word.as_str()) && !word.ends_with(';'))
        .collect();
    built(&words).then_some(words)
}

/// True if this build has the features that the arguments need.
fn built(words: &[String]) -> bool {
    let first = words.first().map_or("", String::as_str);
    let uses = |option: &str| words.iter().any(|word| word == option);
    (cfg!(feature = "live") || !matches!(first, "live" | "replay"))
        && (cfg!(feature = "parquet") || first != "report")
        && (cfg!(feature = "live") || !(uses("--probe") || uses("--capture") || uses("--cleanup")))
}

/// Parses arguments as the command does.
pub(crate) fn parse(arguments: &[String]) -> Result<(), String> {
    let program = std::iter::once("roce-analyze");
    let words = program.chain(arguments.iter().map(String::as_str));
    match roce_analyze::command_line().try_get_matches_from(words) {
        Ok(_) => Ok(()),
        // Help and the version are no errors.
        Err(error) if !error.use_stderr() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// A folder to run the commands of one page in. Captures and recorded devices of the project are in it.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("tests/data")).unwrap();
    for name in ["captures", "tests/data/fabric", "tests/data/sflow"] {
        let there = root().join(name).canonicalize().unwrap();
        std::os::unix::fs::symlink(there, folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs a line in the shell; what it prints, errors too.
pub(crate) fn output(folder: &Path, line: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_roce-analyze"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("{{ {line}\n}} 2>&1"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("PATH", path)
        .env("COLUMNS", "80")
        .env("LANG", "C.UTF-8")
        .env_remove("LC_ALL")
        .env_remove("LC_CTYPE")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("there is a shell");
    assert!(output.status.success(), "$ {line}\n{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// True if output is as expected: line by line, where a line `[...]` matches any number of lines. Spaces
/// at the ends of lines do not count.
pub(crate) fn matches(expected: &str, output: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().map(str::trim_end).collect();
    let output: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    let mut parts = expected.split(|line| *line == "[...]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = output.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some(at) = position(rest, part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
    }
    last.map_or(rest.is_empty(), |part| rest.ends_with(part))
}

/// Position of lines among others.
fn position(lines: &[&str], part: &[&str]) -> Option<usize> {
    (0..=lines.len().checked_sub(part.len())?).find(|at| lines[*at..].starts_with(part))
}

#[test]
fn command_lines_are_taken_apart() {
    let words = |line| arguments(line).map(|words| words.join(" "));
    assert_eq!(words("cargo xtask demo"), None);
    assert_eq!(words("roce-analyze a.pcap  # a comment").unwrap(), "a.pcap");
    assert_eq!(
        words("sudo roce-analyze a.pcap --flow \"qpn 1\" | head").unwrap(),
        "a.pcap --flow qpn 1"
    );
    assert_eq!(words("COLUMNS=80 roce-analyze devices > x").unwrap(), "devices");
    assert!(parse(&["a.pcap".to_owned(), "--nothing".to_owned()]).is_err());
    assert!(parse(&["--version".to_owned()]).is_ok());
}

#[test]
fn outputs_are_compared() {
    assert!(matches("a\nb", "a \nb\n"));
    assert!(!matches("a", "a\nb"));
    assert!(matches("a\n[...]", "a\nb"));
    assert!(matches("a\n[...]\nd", "a\nb\nc\nd"));
    assert!(matches("[...]\nb\n[...]\nd", "a\nb\nc\nd"));
    assert!(!matches("[...]\nc\n[...]\nb\n[...]", "a\nb\nc\nd"));
    assert!(!matches("a\n[...]\na", "a"));
}
