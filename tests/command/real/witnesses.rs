//! The tables agree with other witnesses of the runs: counters of netem and the driver, and IP
//! identifications.

use std::collections::BTreeSet;
use std::fs;

use super::run::{Key, all, folder, key};
use crate::captures::{Record, frames};

/// Addresses of the client, whose packets come from the sender's end, and of the server.
const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// The counters that netem, the driver and tcpdump have themselves, beside what was counted from the packets.
#[test]
fn the_truth_is_what_the_counters_say() {
    for run in all() {
        let text = fs::read_to_string(folder().join(format!("{}.toml", run.name))).unwrap();
        let said: toml::Table = text.parse().unwrap();
        let counter = |path: [&str; 3]| {
            let value = path.iter().fold(None, |at: Option<&toml::Value>, name| match at {
                None => said.get(*name),
                Some(at) => at.get(*name),
            });
            value.map(|value| u64::try_from(value.as_integer().unwrap()).unwrap())
        };
        let rose = |of, name| {
            counter(["after", of, name]).map(|after| after - counter(["before", of, name]).unwrap())
        };
        for (end, other, device, address, netem) in [
            ("sender", "receiver", "rxe0", ADDRESSES[0], "netem_to_server"),
            ("receiver", "sender", "rxe1", ADDRESSES[1], "netem_to_client"),
        ] {
            let name = &run.name;
            let count = |column| {
                let ways = run.ways.iter().filter(|way| way.text("source") == address);
                ways.map(|way| way.number(column)).sum::<u64>()
            };
            let device_there = if device == "rxe0" { "rxe1" } else { "rxe0" };
            let behind = count("received") + count("duplicated");
            assert_eq!(counter(["tcpdump", end, "dropped"]), Some(0), "{name}");
            assert_eq!(rose(device, "sent_pkts"), Some(count("sent")), "{name}");
            assert_eq!(rose(device_there, "rcvd_pkts"), Some(behind), "{name}");
            // Without netem nothing is lost.
            assert_eq!(rose(netem, "dropped").unwrap_or(0), count("lost"), "{name}");
            assert_eq!(rose(netem, "sent_packets").unwrap_or(behind), behind, "{name}");
            let records = |at: &str| {
                let lines = run.taps.iter().filter(|line| line.text("tap") == at);
                lines.map(|line| line.number("packets")).sum::<u64>()
            };
            assert_eq!(
                counter(["tcpdump", end, "captured"]),
                Some(records(end)),
                "{name}"
            );
            // Soft-RoCE counts the first request of each gap, for which it sends a NAK.
            let naks = run.taps.iter().filter(|line| line.text("tap") == other);
            let naks: u64 = naks
                .filter(|line| line.text("source") != address)
                .map(|line| line.number("naks"))
                .sum();
            assert_eq!(rose(device_there, "out_of_seq_request"), Some(naks), "{name}");
            let runs = run.taps.iter().filter(|line| line.text("source") == address);
            let runs: u64 = runs.filter_map(|line| line.known("runs")).sum();
            assert_eq!(rose(device, "completer_retry_err"), Some(runs), "{name}");
        }
    }
}

/// The packets of a flow in a file, each by its IP identification.
fn identifications(records: &[Record], flow: &Key) -> Vec<u16> {
    let address = |bytes: &[u8]| {
        let parts: Vec<String> = bytes.iter().map(u8::to_string).collect();
        parts.join(".")
    };
    // Ethernet has 14 bytes, IPv4 20, UDP 8; the queue pair is in bytes 5 to 7 of the BTH.
    let is_its = |data: &[u8]| {
        let qpn = u64::from(u32::from_be_bytes([0, data[47], data[48], data[49]]));
        (address(&data[26..30]), address(&data[30..34]), qpn) == *flow
    };
    let its = records.iter().filter(|record| is_its(&record.data));
    its.map(|record| u16::from_be_bytes([record.data[18], record.data[19]]))
        .collect()
}

/// The second witness: Linux counts IP identifications up, so that a file alone shows the order of sending.
#[test]
fn ip_identifications_say_the_same() {
    for run in all() {
        for way in &run.ways {
            let flow = key(way);
            let of = |end| identifications(&frames(&folder().join(run.file(end))), &flow);
            let is_newer = |one: u16, than: u16| (1..1 << 15).contains(&one.wrapping_sub(than));
            let sent = of(way.text("from"));
            assert!(
                sent.windows(2).all(|pair| is_newer(pair[1], pair[0])),
                "{} {flow:?}",
                run.name
            );
            let (mut seen, mut duplicated, mut overtaken) = (BTreeSet::new(), 0, 0);
            let mut newest = None;
            for identification in of(way.text("to")) {
                if !seen.insert(identification) {
                    duplicated += 1;
                } else if newest.is_some_and(|newest| !is_newer(identification, newest)) {
                    overtaken += 1;
                } else {
                    newest = Some(identification);
                }
            }
            let lost = sent
                .iter()
                .filter(|identification| !seen.contains(identification))
                .count() as u64;
            assert_eq!(
                (lost, duplicated, overtaken),
                (
                    way.number("lost"),
                    way.number("duplicated"),
                    way.number("overtaken")
                ),
                "{} {flow:?}",
                run.name
            );
        }
    }
}
