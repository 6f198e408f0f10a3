//! Wireshark's interface for programs that capture: what it asks is answered, and a capture comes through its FIFO.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::captures::root;
use crate::command::{command, document, ran, run, total};
use crate::live::{Net, whole};

#[test]
fn requests_are_answered() {
    let said = |words: &[&str]| run(&root(), words).good().stdout;
    let interfaces = said(&["--extcap-interfaces", "--extcap-version=4.0"]);
    assert!(interfaces.starts_with("extcap {version="), "{interfaces}");
    assert!(
        interfaces.contains("\ninterface {value=roce-ssh}{display="),
        "{interfaces}"
    );
    // Soft-RoCE runs on it, too.
    assert!(interfaces.contains("{value=roce-lo}"), "{interfaces}");
    let links = said(&["--extcap-interface", "roce-ssh", "--extcap-dlts"]);
    assert_eq!(links, "dlt {number=1}{name=EN10MB}{display=Ethernet}\n");
    let options = said(&["--extcap-interface", "roce-ssh", "--extcap-config"]);
    assert!(options.contains("{call=--remote-host}"), "{options}");
    let refused = run(&root(), ["--extcap-interfaces", "--extcap-moon"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .starts_with("error: a request of Wireshark is not understood"),
        "{refused:?}"
    );
}

/// A capture of a host behind ssh needs its name.
#[test]
fn a_remote_capture_needs_a_host() {
    let refused = ran(command(&root()).args([
        "--capture",
        "--extcap-interface",
        "roce-ssh",
        "--fifo",
        "/dev/null",
    ]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("no host is named"), "{refused:?}");
}

/// RoCE frames come through the FIFO, others do not, and the end of the program ends the file.
#[test]
fn frames_come_through_the_fifo() {
    let Some(net) = Net::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut capture = net.inside(folder.path(), Path::new(env!("CARGO_BIN_EXE_roce-analyze")));
    capture
        .args(["--capture", "--extcap-interface", "roce-v1", "--fifo"])
        .arg(&fifo);
    let mut child = capture.stderr(Stdio::piped()).spawn().unwrap();
    // It is opened by the program once its device is.
    let mut reader = fs::File::open(&fifo).unwrap();
    let mut frames = whole("rping");
    assert_eq!(frames.len(), 65);
    // The 66th is to another UDP port: bytes 36 and 37 behind Ethernet and IPv4 without options.
    let mut other = frames[10].clone();
    other[36..38].copy_from_slice(&[0x13, 0x88]);
    frames.push(other);
    net.send("v0", frames, None);
    // Frames are handed on after 200 ms of silence.
    std::thread::sleep(Duration::from_secs(2));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let file = folder.path().join("captured.pcapng");
    fs::write(&file, bytes).unwrap();
    assert_eq!(total(&document(&root(), [file.to_str().unwrap()]), "frames"), 65);
}
