//! An ordinary user with four capabilities can do everything; without one of them, the probe says which, and how to grant it.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use roce_probe::{Options, Packets, Probe};

use crate::{classifier, open, skip};

const CHILD: &str = "ROCE_PROBE_TEST_RIGHTS";
const ALL: [&str; 4] = ["net_raw", "bpf", "perfmon", "net_admin"];
/// The user "nobody" of Debian and others.
const NOBODY: &str = "65534";

/// Runs the test below as that user with some capabilities, and returns what it says.
fn as_nobody(program: &std::path::Path, capabilities: &[&str]) -> Result<String, String> {
    let list: Vec<String> = capabilities.iter().map(|name| format!("+{name}")).collect();
    let only = format!("-all,{}", list.join(","));
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .args([
            "--inh-caps",
            &only,
            "--ambient-caps",
            &only,
            "--bounding-set",
            &only,
        ])
        .arg(program)
        .args(["--exact", "rights::the_ordinary_user", "--nocapture"])
        .env(CHILD, "1")
        .current_dir("/")
        .output()
        .map_err(|error| format!("cannot run setpriv: {error}"))?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok(said)
}

#[test]
fn four_capabilities_are_enough_and_needed() {
    let test = "an ordinary user with capabilities";
    if open(test, &classifier()).is_none() {
        return;
    }
    // The folder in which this test was built may be closed to other users.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("kernel");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let said = match as_nobody(&program, &ALL) {
        Ok(said) => said,
        Err(reason) => return skip(test, &reason),
    };
    if said.contains("setpriv: ") {
        return skip(test, &said);
    }
    assert!(said.contains("it works"), "{said}");
    for missing in ALL {
        let others: Vec<&str> = ALL.into_iter().filter(|name| *name != missing).collect();
        let said = as_nobody(&program, &others).unwrap();
        assert!(
            said.contains(&format!("lacks capabilities: cap_{missing} (")),
            "without {missing}: {said}"
        );
        assert!(
            said.contains("setcap cap_net_raw,cap_bpf,cap_perfmon,cap_net_admin+ep"),
            "{said}"
        );
    }
}

#[test]
fn the_ordinary_user() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let options = Options {
        interfaces: vec!["lo".to_owned()],
        packets: Packets::All,
        host_events: true,
        object: None,
        ..classifier()
    };
    let said = match Probe::open(&options) {
        Ok((mut probe, _)) => {
            probe.drop_capabilities().unwrap();
            // A process that has given up everything can open nothing any more, but read.
            assert!(Probe::open(&options).is_err());
            let mut events = Vec::new();
            probe.events(&mut events).unwrap();
            probe.packets(|_| {}).unwrap();
            probe.counts().unwrap();
            "it works".to_owned()
        }
        Err(error) => error.to_string(),
    };
    writeln!(std::io::stdout(), "{said}").unwrap();
}
