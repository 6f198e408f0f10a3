//! `fleet` over hosts that are network namespaces at one bridge: without ssh, and over a real sshd in each. Only root can make those:
//! elsewhere these tests say why they are skipped.

mod ends;
mod floods;
mod hosts;
mod over_ssh;
mod runs;

use std::process::Command;

use crate::captures::root;
use crate::cli::refusal;

/// Runs Python code in which the Spark programs can be imported; they need nothing but its standard library until a session begins.
/// `None` without a Python.
fn with_programs(code: &str) -> Option<(String, String)> {
    let mut python = Command::new("python3");
    python.args(["-c", code]).env("PYTHONPATH", root().join("spark"));
    python.env("PYTHONDONTWRITEBYTECODE", "1").current_dir("/");
    let ran = python.output().ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some((text(ran.stdout), text(ran.stderr)))
}

#[test]
fn spark_programs_give_workers_absolute_paths() {
    let code = "import worker as w; print(w.place_of('raw'), w.place_of('s3://lake/raw'), w.program_of('roce-analyze'), w.program_of('bin/roce'))";
    if let Some((said, errors)) = with_programs(code) {
        assert_eq!(
            (said.as_str(), errors.as_str()),
            ("/raw s3://lake/raw roce-analyze /bin/roce\n", "")
        );
    }
}

#[test]
fn spark_sql_says_that_the_program_is_not_there() {
    let code =
        "import sys, sql; sys.argv = ['sql.py', 'DS', 'pairs', '--binary', 'no-such-program']; sql.main()";
    if let Some((said, errors)) = with_programs(code) {
        assert_eq!(said, "");
        assert!(errors.starts_with("error: no-such-program: "), "{errors}");
        assert!(
            errors.contains("hint: --binary PATH") && !errors.contains("Traceback"),
            "{errors}"
        );
    }
}

#[test]
fn wrong_arguments_of_fleet() {
    let says = |arguments: &[&str], text: &str| {
        let message = refusal(arguments);
        assert!(message.contains(text), "{arguments:?}: {message}");
    };
    says(&["fleet", "capture", "gpu1"], "--output");
    says(
        &[
            "fleet",
            "capture",
            "-o",
            "run",
            "--duration",
            "1s",
            "--until-interrupted",
        ],
        "cannot be used with",
    );
    says(
        &[
            "fleet",
            "capture",
            "gpu1",
            "-o",
            "run",
            "--by",
            "tcpdump",
            "--counters",
        ],
        "--counters needs `roce-analyze live`",
    );
    says(
        &[
            "fleet",
            "capture",
            "gpu1",
            "-o",
            "run",
            "--remote-folder",
            "/tmp/$(reboot)",
        ],
        "absolute path",
    );
    says(&["fleet", "capture", "-o", "run"], "there is no host");
    says(
        &["fleet", "capture", "-oProxyCommand=x", "-o", "run"],
        "cannot be used multiple times",
    );
    says(&["fleet", "run", "gpu1"], "<COMMAND>");
    says(&["fleet", "collect", "captures"], "fleet.json");
}
