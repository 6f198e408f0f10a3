//! Starts the command and takes what it says. Leaves to others which captures there are.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Output of a run of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its exit code.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command, in a folder, without what the tester's own environment would change.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roce-analyze"));
    for name in [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "LC_ALL",
        "LC_CTYPE",
        "TERM",
    ] {
        command.env_remove(name);
    }
    command
        .env("LANG", "C.UTF-8")
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the command starts");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
    }
}

/// Runs the command in a folder.
pub(crate) fn run<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Ran {
    ran(command(folder).args(arguments))
}

/// Runs the command with bytes on its standard input.
pub(crate) fn run_with_input<A: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = A>,
    input: &[u8],
) -> Ran {
    let mut command = command(folder);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A command that ends early does not take all of it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("all is written");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
    }
}

impl Ran {
    /// The run, when it succeeded and said nothing on standard error but where the results are, and that it is about to write them.
    #[track_caller]
    pub(crate) fn good(mut self) -> Self {
        let lines = self.stderr.split_inclusive('\n');
        self.stderr = lines
            .filter(|line| !line.starts_with("wrote: ") && !line.starts_with("note: signal: stopping"))
            .collect();
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// The JSON document on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The document of a run that succeeds: `--format json` is added.
#[track_caller]
pub(crate) fn document<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Value {
    let mut command = command(folder);
    command.args(["--format", "json"]).args(arguments);
    ran(&mut command).good().json()
}

/// A number of the document's `totals`.
#[track_caller]
pub(crate) fn total(document: &Value, name: &str) -> u64 {
    document["totals"][name]
        .as_u64()
        .unwrap_or_else(|| panic!("totals.{name}: {}", document["totals"][name]))
}

/// The flows of a document.
#[track_caller]
pub(crate) fn flows(document: &Value) -> &[Value] {
    document["flows"].as_array().expect("a list of flows")
}

/// The sum of a column over rows.
#[track_caller]
pub(crate) fn sum(rows: &[Value], column: &str) -> u64 {
    rows.iter()
        .map(|row| {
            row[column]
                .as_u64()
                .unwrap_or_else(|| panic!("{column}: {}", row[column]))
        })
        .sum()
}

/// The document without what differs from run to run.
pub(crate) fn lasting(mut document: Value) -> Value {
    for key in ["run_id", "started", "elapsed_ns"] {
        assert!(document["run"][key].take() != Value::Null, "run.{key} is missing");
    }
    document
}
