//! Counts of the recorded captures, made by a script when they were recorded, without tshark and without this project's code
//! (`tests/data/statistics.tsv`), and which packets are late by their IP identifications.
//!
//! Captures that were cut to a range of packets for the repository have other counts than their originals:
//! `ROCE_ANALYZE_ORIGINALS=FOLDER` compares the originals, too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::captures::{Capture, Record, frames, root};
use crate::command::{document, flows, sum, total};

/// A line of the table: values by the name of their column.
type StatisticsLine = BTreeMap<String, String>;

fn table() -> Vec<StatisticsLine> {
    let text = fs::read_to_string(root().join("tests/data/statistics.tsv")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let columns: Vec<String> = lines.next().unwrap().collect();
    lines
        .map(|values| columns.iter().cloned().zip(values).collect())
        .collect()
}

/// Compares the results for a file with its line.
fn compare(path: &Path, line: &StatisticsLine) {
    let name = path.display();
    let found = document(&root(), [path]);
    let counted = |column: &str| line[column].parse::<u64>().unwrap();
    let sequence = sum(flows(&found), "nak_sequence");
    for (column, said) in [
        ("packets", total(&found, "roce_packets")),
        ("ce", total(&found, "ce")),
        ("ect0", total(&found, "ect0")),
        ("acks", total(&found, "acks")),
        ("nak_sequence", sequence),
        ("nak_other", total(&found, "naks") - sequence),
        ("rnr_naks", total(&found, "rnr_naks")),
    ] {
        assert_eq!(said, counted(column), "{name}: {column}");
    }
    let missing = total(&found, "missing");
    let again = total(&found, "retransmitted_packets") + total(&found, "late");
    if line["skipped"] == "-" {
        // Datagrams have no sequence to skip in.
        assert_eq!((missing, again), (0, 0), "{name}");
    } else {
        assert_eq!(missing, counted("skipped"), "{name}: skipped");
        // A packet that fills a gap is a retransmission, or late.
        assert_eq!(again, counted("resends") + counted("filled"), "{name}: resends");
    }
    let opcodes: Vec<String> = found["totals"]["opcodes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(opcode, said): (&String, &Value)| format!("{opcode}:{}", said["packets"]))
        .collect();
    assert_eq!(opcodes.join(" "), line["opcodes"], "{name}: opcodes");
}

#[test]
fn recorded_captures_keep_their_counts() {
    let originals = std::env::var_os("ROCE_ANALYZE_ORIGINALS");
    let lines = table();
    assert_eq!(lines.len(), 13);
    for line in &lines {
        if line["whole"] == "yes" {
            compare(&root().join(Capture::named(&line["capture"]).path), line);
        }
        if let Some(folder) = &originals {
            compare(&Path::new(folder).join(&line["original"]), line);
        }
    }
}

/// State of one flow's requests up to the current packet.
#[derive(Default)]
struct Requests {
    /// The PSN behind the highest.
    expected: Option<u32>,
    /// PSNs that were jumped over, each with the IP identification of the packet that jumped.
    open: BTreeMap<u32, u16>,
    /// Those that were filled by a packet that had been sent before.
    late: u64,
}

impl Requests {
    fn push(&mut self, psn: u32, span: u32, identification: u16) {
        const PSNS: u32 = 1 << 24;
        let ahead = |psn: u32, of: u32| psn.wrapping_sub(of) % PSNS;
        let expected = *self.expected.get_or_insert(psn);
        let step = ahead(psn, expected);
        if step < PSNS / 2 {
            for index in 0..step {
                self.open.insert((expected + index) % PSNS, identification);
            }
            self.expected = Some((psn + span) % PSNS);
        } else if let Some(jumped) = self.open.remove(&psn) {
            // Linux counts identifications for each pair of addresses: a retransmission has a higher one
            // than the packet that jumped over it.
            let is_older = jumped.wrapping_sub(identification) < 1 << 15;
            self.late += u64::from(is_older);
        }
    }
}

/// Requests that filled a gap and had been sent before what left it: RC over Ethernet and IPv4, path MTU 1024.
fn late(path: &Path) -> u64 {
    let mut all: BTreeMap<(Vec<u8>, Vec<u8>), Requests> = BTreeMap::new();
    for Record { data, .. } in frames(path) {
        let (opcode, responses, read) = (data[42], 0x0d..=0x12, 0x0c);
        if opcode >= 0x20 || responses.contains(&opcode) {
            continue;
        }
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(*byte))
        };
        let span = if opcode == read {
            number(&data[66..70]).div_ceil(1024).max(1)
        } else {
            1
        };
        let identification = u16::from_be_bytes([data[18], data[19]]);
        let flow = (data[26..34].to_vec(), data[47..50].to_vec());
        all.entry(flow)
            .or_default()
            .push(number(&data[51..54]), span, identification);
    }
    all.values().map(|requests| requests.late).sum()
}

#[test]
fn the_identifications_say_what_is_late() {
    for line in table().iter().filter(|line| line["late"] != "-") {
        let path = root().join(Capture::named(&line["capture"]).path);
        assert_eq!(late(&path).to_string(), line["late"], "{}", line["capture"]);
    }
}

#[test]
fn nothing_else_is_late() {
    for line in table().iter().filter(|line| line["late"] == "0") {
        let found = document(&root(), [Capture::named(&line["capture"]).path]);
        let said = (total(&found, "late"), total(&found, "reordered"));
        assert_eq!(said, (0, 0), "{}", line["capture"]);
    }
}

/// After the blackout, two processors of the VM carried packets through the switch, and runs of them passed each other.
#[test]
#[ignore = "said: 62 late, 50 gaps reordered; true: 47 and 47. The identifications of the other 15 are new, and still they count as late"]
fn what_is_late_after_the_blackout_is_not_sent_again() {
    let line = table()
        .into_iter()
        .find(|line| line["capture"] == "blackout_600ms");
    let (line, path) = (line.unwrap(), Capture::named("blackout_600ms").path);
    let truth: u64 = line["late"].parse().unwrap();
    let found = document(&root(), [&path]);
    assert_eq!(
        (total(&found, "late"), total(&found, "reordered")),
        (truth, truth)
    );
    // 198 requests had been captured before, 62 filled gaps (tests/data/golden/blackout_600ms.txt). No identification is there twice, so
    // that the network made no copies.
    assert_eq!(total(&found, "retransmitted_packets"), 198 + 62 - truth);
    assert_eq!(sum(flows(&found), "duplicates_network"), 0);
}
