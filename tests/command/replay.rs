//! Recordings of live runs, made here, with their blocks besides frames.

use std::fs::File;
use std::path::Path;

use roce_analyze::analyse_arguments;
use roce_capture::write::{ByteOrder, InterfaceOptions, PcapngWriter};
use roce_model::{
    Address, Columns, CounterChange, EventColumns, HostChange, HostEvent, Process, Qpn, QueuePairChange,
    QueuePairKind, QueuePairState, RecordingStart, Sink, SinkError, Time,
};
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::{Capture, Record};
use crate::command::{document, flows, run, total};

/// Writes a recording of `frames`, with events of the host before the first of them that is later.
pub(crate) fn record(path: &Path, recorded: &RecordingStart, frames: &[Record], events: &[HostEvent]) {
    let notes = events
        .iter()
        .map(|event| (event.time, HostEvent::BLOCK, event.encode()));
    record_notes(path, recorded, frames, notes.collect());
}

/// Writes a recording of `frames`, with notes (time, kind and body of a block) before the first of them that is later.
pub(crate) fn record_notes(
    path: &Path,
    recorded: &RecordingStart,
    frames: &[Record],
    notes: Vec<(Time, u32, Vec<u8>)>,
) {
    let mut writer = PcapngWriter::new(File::create(path).unwrap(), ByteOrder::Little).unwrap();
    writer
        .interface(&InterfaceOptions {
            name: Some("v1".to_owned()),
            ..InterfaceOptions::default()
        })
        .unwrap();
    writer.block(RecordingStart::BLOCK, &recorded.encode()).unwrap();
    let mut notes = notes.into_iter().peekable();
    for frame in frames {
        while let Some((_, kind, body)) = notes.next_if(|(time, ..)| *time <= frame.time) {
            writer.block(kind, &body).unwrap();
        }
        writer.write(0, frame.time, frame.original, &frame.data).unwrap();
    }
    for (_, kind, body) in notes {
        writer.block(kind, &body).unwrap();
    }
    writer.finish().unwrap();
}

pub(crate) fn recorded(arguments: &[&str]) -> RecordingStart {
    RecordingStart {
        input: "v1".to_owned(),
        seed: 7,
        arguments: arguments.iter().map(ToString::to_string).collect(),
    }
}

/// Kind, source, time, value and detail of an event.
type Event = (String, String, u64, Option<u64>, Option<String>);

/// Events that are not the capture's.
#[derive(Default)]
struct OfTheHost(Vec<Event>);

impl Sink for OfTheHost {
    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            let source = rows.source.at(row).unwrap().to_string();
            if source != "capture" {
                self.0.push((
                    rows.kind.at(row).unwrap().to_string(),
                    source,
                    *rows.time.at(row).unwrap(),
                    rows.value.at(row).copied(),
                    rows.detail.at(row).map(ToString::to_string),
                ));
            }
        }
        Ok(())
    }
}

/// A recording in `dir` of frames and what the sender's host said of them: how many frames, when it said the first, and when the last
/// frame came.
fn said_by_a_host(dir: &Path) -> (u64, Time, Time) {
    said_of(dir, "ib_send_bw")
}

/// Events of a process with this command.
pub(crate) fn said_of(dir: &Path, comm: &str) -> (u64, Time, Time) {
    std::fs::create_dir(dir).unwrap();
    // A SEND from 10.77.0.1 to 10.77.0.2: both queue pairs have the number 0x11.
    let frames = Capture::named("send_bw_ce_synthetic_cnp").frames();
    let (first, last) = (frames[0].time, frames[frames.len() - 1].time);
    let process = Process {
        pid: 71,
        comm: comm.into(),
        cgroup: 9,
        claims: false,
    };
    let event = |time, what| HostEvent {
        time,
        device: Some("rxe0".into()),
        process: Some(process.clone()),
        what,
    };
    let qpn = Qpn::new(0x11);
    let set = QueuePairChange {
        state: Some(QueuePairState::ReadyToReceive),
        destination_qpn: Some(qpn),
        source: Some(Address::v4([10, 77, 0, 1])),
        destination: Some(Address::v4([10, 77, 0, 2])),
        ..QueuePairChange::default()
    };
    let before = Time(first.0 - 5_000_000);
    let kind = QueuePairKind::Rc;
    let counter = HostChange::Counter {
        change: CounterChange::FirstDrop,
        name: "port_out_of_buffer_drops".into(),
        priority: None,
        detail: None,
        by: 1_280,
    };
    let events = [
        event(before, HostChange::Created { qpn, kind }),
        event(
            before,
            HostChange::Modified {
                qpn,
                set: Box::new(set),
            },
        ),
        event(Time(last.0 + 1), counter),
        event(Time(last.0 + 2), HostChange::Destroyed { qpn }),
    ];
    let path = dir.join("recording.pcapng.zst");
    record(
        &path,
        // Builds without the probe understand what started it, too.
        &recorded(&["live", "-i", "v1", "--probe", "--capture", "tc", "--bin", "10ms"]),
        &frames,
        &events,
    );
    (frames.len() as u64, before, last)
}

#[test]
fn what_a_host_said_is_replayed() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    let (frames, before, last) = said_by_a_host(&dir);
    let replayed = document(folder.path(), ["dir"]);
    assert_eq!(total(&replayed, "frames"), frames);
    assert_eq!(replayed["run"]["inputs"][0]["input"], "v1");
    // The options of the run, where the command line says nothing else.
    let bin = |document: &Value| document["run"]["options"]["bin_ns"].clone();
    assert_eq!(bin(&replayed), "10000000");
    assert_eq!(bin(&document(folder.path(), ["dir", "--bin", "1ms"])), "1000000");
    let found = flows(&replayed);
    assert_eq!(found.len(), 2);
    for flow in found {
        assert_eq!(flow["pairing"], "host");
        assert_eq!((&flow["pid"], &flow["comm"]), (&71.into(), &"ib_send_bw".into()));
        assert_eq!(flow["cgroup"], 9);
    }

    for threads in ["1", "3"] {
        let mut seen = OfTheHost::default();
        let arguments = [dir.to_str().unwrap(), "--format", "none", "--threads", threads];
        analyse_arguments(arguments.map(Into::into), &mut seen).unwrap();
        let row = |kind: &str, source: &str, time: Time, value, detail: &str| {
            let detail = format!("rxe0: {detail} (ib_send_bw 71)");
            (
                kind.to_owned(),
                source.to_owned(),
                time.0,
                Some(value),
                Some(detail),
            )
        };
        let connected = "QP 0x11 set to rtr, to QP 0x11, source 10.77.0.1, destination 10.77.0.2";
        let expected = [
            row("qp_created", "ebpf", before, 0x11, "QP 0x11 created, RC"),
            row("qp_modified", "ebpf", before, 0x11, connected),
            row(
                "counter",
                "counter",
                Time(last.0 + 1),
                1_280,
                "port_out_of_buffer_drops +1280 after none",
            ),
            row(
                "qp_destroyed",
                "ebpf",
                Time(last.0 + 2),
                0x11,
                "QP 0x11 destroyed",
            ),
        ];
        assert_eq!(seen.0, expected, "{threads} threads");
    }
}

#[test]
fn processes_are_picked_out() {
    let folder = tempdir().unwrap();
    said_by_a_host(&folder.path().join("dir"));
    let replayed = document(folder.path(), ["dir"]);
    // The host has reported one connection: both its directions belong to the process.
    for chosen in [["--comm", "ib_send_bw"], ["--pid", "71"], ["--cgroup", "9"]] {
        let of_it = document(folder.path(), ["dir", chosen[0], chosen[1]]);
        assert_eq!(of_it["flows"], replayed["flows"], "{chosen:?}");
        assert_eq!(of_it["run"]["options"][&chosen[0][2..]], chosen[1]);
    }
    let of_another = document(folder.path(), ["dir", "--pid", "72", "--comm", "ib_send"]);
    assert_eq!(flows(&of_another).len(), 0);
    assert_eq!(total(&of_another, "filtered"), total(&replayed, "roce_packets"));
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("dir");
    std::fs::create_dir(&dir).unwrap();
    let path = dir.join("recording.pcapng.zst");
    let frames = Capture::named("rping").frames();
    let refused_with = |arguments: &[&str]| {
        record(&path, &recorded(arguments), &frames, &[]);
        let ran = run(folder.path(), ["dir"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        ran.stderr
    };
    assert!(refused_with(&["demo"]).contains("not the recording of a live run"));
    assert!(refused_with(&["live", "--from-the-future"]).contains("its command line is not understood"));
    std::fs::write(&path, Capture::named("rping").bytes()).unwrap();
    let ran = run(folder.path(), ["dir"]);
    assert!(ran.stderr.contains("not a recording of this version"), "{ran:?}");
}

/// A replay that would take a minute, once it prints lines, so that signals reach it and not its start.
#[cfg(feature = "live")]
fn long_replay() -> (std::process::Child, std::io::BufReader<std::process::ChildStdout>) {
    use std::io::BufRead;

    let mut command = crate::command::command(&crate::captures::root());
    command.args(["replay", "captures/write_bw_loss.pcap", "--speed", "0.015x"]);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    (child, lines)
}

#[cfg(feature = "live")]
#[test]
fn two_signals_at_once_end_a_run_with_its_results() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::Read;

    for gap in [0, 2, 100] {
        let (child, mut lines) = long_replay();
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(gap));
        // It may have ended already.
        let _ = kill_process(pid, Signal::INT);
        let mut said = String::new();
        lines.read_to_string(&mut said).unwrap();
        let ended = child.wait_with_output().unwrap();
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{gap} ms: {errors}");
        assert!(!errors.contains("given up"), "{gap} ms: {errors}");
        assert!(said.contains(" frames "), "{gap} ms: {said}");
    }
}
