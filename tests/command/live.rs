//! `live` over veth pairs in network namespaces of their own. Only root can make those: elsewhere these tests say why they are
//! skipped, past the test harness, so that `cargo xtask test` counts them.

#[cfg(feature = "live")]
mod fabric;
mod net;
#[cfg(feature = "parquet")]
mod parts;
mod runs;
mod vanished;

use std::os::unix::process::CommandExt;
use std::process::Command;

use insta::assert_snapshot;
use rustix::process::geteuid;

use crate::cli::{refusal, refused};
use crate::command::ran;
pub(crate) use net::{
    A_MOMENT, NOBODY, Net, RunningCommand, as_nobody, for_everybody, results, skip, text, whole,
};
#[cfg(feature = "live")]
pub(crate) use net::{ip, send_by};

#[test]
fn without_the_capability_it_says_how_to_give_it() {
    let (folder, program) = for_everybody();
    let mut command = Command::new(&program);
    command.args(["live", "-i", "lo"]).current_dir(folder.path());
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let message = refused(&ran(&mut command)).replace(text(folder.path()), "DIR");
    assert_snapshot!("without_capability", message);
}

#[test]
fn wrong_arguments_of_live() {
    assert_snapshot!("live_without_device", refusal(&["live"]));
    assert_snapshot!(
        "live_rotate_what",
        refusal(&["live", "-i", "lo", "--rotate", "often"])
    );
    assert_snapshot!(
        "live_buffer_too_small",
        refusal(&["live", "-i", "lo", "--buffer", "1kB"])
    );
    assert_snapshot!("live_record_where", refusal(&["live", "-i", "lo", "--record"]));
    if geteuid().is_root() {
        assert_snapshot!("live_no_device", refusal(&["live", "-i", "eth77"]));
    } else {
        skip("not root: which device is missing is said after which capability is");
    }
}

/// The packets that `tcpdump -U -w -` writes are analysed without any right, and the run ends with them.
#[test]
#[cfg(feature = "live")]
fn standard_input_is_a_device() {
    let (folder, program) = for_everybody();
    let capture = crate::captures::root().join("captures/write_bw_loss.pcap");
    let mut command = Command::new(&program);
    command
        .args(["live", "-i", "-", "--no-tui", "--format", "json"])
        .current_dir(folder.path())
        .stdin(std::fs::File::open(capture).unwrap());
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let run = ran(&mut command);
    let document: serde_json::Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    // The file's own frames: 2,689 (capinfos).
    assert_eq!(document["run"]["inputs"][0]["frames"], 2_689, "{}", run.stderr);
    let ids = document["findings"].as_array().unwrap().iter();
    assert!(
        ids.clone().any(|finding| finding["id"] == "loss.network"),
        "{document}"
    );
    // Bytes that are no pcap are refused.
    let mut command = Command::new(&program);
    let odd = folder.path().join("odd");
    std::fs::write(&odd, [b'x'; 100]).unwrap();
    command
        .args(["live", "-i", "-", "--no-tui"])
        .current_dir(folder.path())
        .stdin(std::fs::File::open(odd).unwrap());
    let message = refused(&ran(&mut command));
    assert!(message.contains("standard input is no pcap"), "{message}");
}

#[test]
#[cfg(feature = "live")]
fn help_of_live() {
    let mut command = crate::command::command(&crate::captures::root());
    command.args(["live", "--help"]).env("COLUMNS", "80");
    assert_snapshot!("live_help", ran(&mut command).good().stdout);
}
