//! Processes that a pcapng file names as those of its frames.

use std::fs;

use roce_capture::write::{ByteOrder, InterfaceOptions, PcapngWriter};
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::Capture;
use crate::command::{document, flows, total};

/// The process that sends from 10.77.0.1.
const SENDER: [u8; 4] = [10, 77, 0, 1];
const PID: u32 = 4711;

/// A real capture as Wireshark writes one when it knows the processes: a block that names one (enterprise 32622, entry 3 of 20 bytes, the
/// process, option 2), and option 8 with process and thread at each frame from a host.
fn with_processes(capture: &Capture) -> Vec<u8> {
    let bytes = |words: &[u32]| {
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let mut writer = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap();
    writer.interface(&InterfaceOptions::default()).unwrap();
    let name = [
        2 | 11 << 16,
        u32::from_le_bytes(*b"ib_w"),
        u32::from_le_bytes(*b"rite"),
        u32::from_le_bytes(*b"_bw\0"),
    ];
    let about = [&[32_622, 3, 20, PID][..], &name].concat();
    writer.block(0x0bad, &bytes(&about)).unwrap();
    for frame in capture.frames() {
        let time = frame.time.0;
        let captured = u32::try_from(frame.data.len()).unwrap();
        let halves = [time >> 32, time & u64::from(u32::MAX)].map(|half| u32::try_from(half).unwrap());
        let mut body = bytes(&[0, halves[0], halves[1], captured, frame.original]);
        body.extend_from_slice(&frame.data);
        body.resize(body.len().next_multiple_of(4), 0);
        // The source of IPv4 behind Ethernet.
        if frame.data.get(26..30) == Some(&SENDER) {
            body.extend(bytes(&[8 | 8 << 16, PID, PID + 1, 0]));
        }
        writer.block(6, &body).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_flow_has_the_process_that_the_capture_names() {
    let folder = tempdir().unwrap();
    let capture = Capture::named("rnr");
    fs::write(folder.path().join("with.pcapng"), with_processes(&capture)).unwrap();
    fs::write(folder.path().join("without.pcap"), capture.bytes()).unwrap();
    let read = |arguments: &[&str]| document(folder.path(), arguments);
    let (with, without) = (read(&["with.pcapng"]), read(&["without.pcap"]));
    let mut named = 0;
    for (with, without) in flows(&with).iter().zip(flows(&without)) {
        let mut with = with.clone();
        if with["source"] == "10.77.0.1" {
            assert_eq!(
                (&with["pid"], &with["comm"]),
                (&PID.into(), &"ib_write_bw".into())
            );
            (with["pid"], with["comm"]) = (Value::Null, Value::Null);
            named += 1;
        }
        assert_eq!(with, *without, "nothing else changes");
    }
    assert!(named > 0);
    // The process chooses its own flows, alone or beside a host's report.
    let chosen = read(&["with.pcapng", "--comm", "ib_write_bw"]);
    assert!(flows(&chosen).iter().all(|flow| flow["source"] == "10.77.0.1"));
    assert_eq!(flows(&chosen).len(), named);
    assert_eq!(total(&read(&["with.pcapng", "--pid", "1"]), "roce_packets"), 0);
}
