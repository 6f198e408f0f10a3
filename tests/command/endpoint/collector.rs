//! Readers of checks, GPUs and switches for `metrics serve` that are killed.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::tempdir;

use super::ServingCommand;

/// Children of a process, with their states (proc(5): the third field of `stat`).
fn children(of: u32) -> Vec<(u32, char)> {
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let about = entries.filter_map(|path| fs::read_to_string(path.join("stat")).ok());
    about
        .filter_map(|text| {
            let pid = text.split(' ').next()?.parse().ok()?;
            // The name, in brackets, may have spaces.
            let mut fields = text.rsplit_once(") ")?.1.split(' ');
            let state = fields.next()?.chars().next()?;
            (fields.next()?.parse() == Ok(of)).then_some((pid, state))
        })
        .collect()
}

#[track_caller]
fn wait(what: &str, is_done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_collector_is_said_reaped_and_started_again() {
    let folder = tempdir().unwrap();
    // An hour between readings: nothing but a new process makes a second one.
    let inventory = crate::fabric::inventory().replace("every = \"200ms\"", "every = \"1h\"");
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    let arguments = [
        "--inventory",
        "fabric.toml",
        "--no-gpus",
        "--no-sandbox",
        "--interval",
        "1s",
    ];
    let serving = ServingCommand::new(folder.path(), &arguments);
    let success = "roce_collector_success{collector=\"switch:leaf1\"}";
    let kill = |pid: u32| {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    };
    let server = serving.child.id();
    serving.at.until(success, |value| value > 0.0);
    let [(keeper, _)] = children(server)[..] else {
        panic!("one process beside the server: {:?}", children(server));
    };
    // First the one that reads, then the one that keeps it: the reader takes its place.
    for (round, victim) in [children(keeper)[0].0, keeper].into_iter().enumerate() {
        kill(victim);
        wait("its end is said", || {
            let ends = |line: &&String| line.contains("has ended (");
            serving.said().iter().filter(ends).count() > round
        });
        serving.at.until(success, |value| value == 0.0);
        assert!(
            !serving
                .at
                .get("/metrics")
                .contains("roce_switch_up{switch=\"leaf1\"}"),
            "no old values"
        );
        serving.at.until(success, |value| value > 0.0);
        assert!(
            children(server).iter().all(|(_, state)| *state != 'Z'),
            "it is waited for"
        );
    }
    assert!(
        serving
            .at
            .get("/metrics")
            .contains("\nroce_switch_up{switch=\"leaf1\"} 1\n")
    );
}

#[test]
#[cfg(feature = "nxapi")]
fn a_killed_sender_of_metrics_is_said_and_reaped() {
    let folder = tempdir().unwrap();
    // Nobody listens on port 9 of this host (RFC 863, discard).
    let arguments = [
        "--counters-only",
        "--no-sandbox",
        "--push",
        "http://127.0.0.1:9",
        "--push-every",
        "1s",
    ];
    let serving = ServingCommand::new(folder.path(), &arguments);
    let server = serving.child.id();
    let [(sender, _)] = children(server)[..] else {
        panic!("one process beside the server: {:?}", children(server));
    };
    kill_process(
        Pid::from_raw(i32::try_from(sender).unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    wait("its end is said", || {
        let ends = "the process that sends metrics has ended: no more are sent";
        serving.said().iter().any(|line| line.contains(ends))
    });
    assert_eq!(children(server), [], "it is waited for");
    assert!(
        serving.at.get("/metrics").contains("roce_"),
        "it goes on to serve"
    );
}

/// The process that sends metrics does not outlive whoever serves them by as long as a receiver takes to answer: here without end.
#[test]
#[cfg(feature = "nxapi")]
fn a_sender_of_metrics_ends_with_the_server() {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::path::Path;

    let folder = tempdir().unwrap();
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", receiver.local_addr().unwrap());
    let arguments = [
        "--counters-only",
        "--no-sandbox",
        "--push",
        &url,
        "--push-every",
        "1s",
    ];
    let serving = ServingCommand::new(folder.path(), &arguments);
    let server = serving.child.id();
    let (mut request, _) = receiver.accept().unwrap();
    request
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        .unwrap();
    let [(sender, _)] = children(server)[..] else {
        panic!("one process beside the server: {:?}", children(server));
    };
    serving.signal(Signal::TERM);
    let begun = Instant::now();
    while Path::new("/proc").join(sender.to_string()).exists() {
        // A request has 30 s, and the sender 2 s for what still waits.
        assert!(begun.elapsed() < Duration::from_secs(15), "the sender goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}
