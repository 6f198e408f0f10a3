//! Equal frames in another file give equal results: formats, compressions, byte orders, rotation, standard
//! input, threads; and the results that survive when frames are cut.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use roce_capture::Container;
use roce_capture::write::{ByteOrder, InterfaceOptions, PcapOptions, PcapWriter, PcapngWriter};
use roce_model::Time;
use roce_wire::LinkType;
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::{self, Capture, Record, frames, root};
use crate::command::{command, document, flows, lasting, ran, run, run_with_input, sum, total};

/// A pcap file of these frames.
pub(crate) fn pcap(records: &[Record], container: Container, order: ByteOrder) -> Vec<u8> {
    let options = PcapOptions {
        container,
        order,
        ..PcapOptions::default()
    };
    let mut writer = PcapWriter::new(Vec::new(), options).unwrap();
    for record in records {
        writer.write(record.time, record.original, &record.data).unwrap();
    }
    writer.finish().unwrap()
}

fn pcapng(records: &[Record], order: ByteOrder) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new(), order).unwrap();
    let interface = writer.interface(&InterfaceOptions::default()).unwrap();
    for record in records {
        writer
            .write(interface, record.time, record.original, &record.data)
            .unwrap();
    }
    writer.finish().unwrap()
}

/// Every frame cut to `most` bytes.
fn cut(records: &[Record], most: usize) -> Vec<Record> {
    let mut records = records.to_vec();
    for record in &mut records {
        record.data.truncate(most);
    }
    records
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Holds that two documents tell the same flows and totals.
#[track_caller]
fn same(what: &str, original: &Value, variant: &Value) {
    assert_eq!(original["totals"], variant["totals"], "{what}: totals");
    assert_eq!(original["flows"], variant["flows"], "{what}: flows");
    for key in ["first_time", "last_time"] {
        assert_eq!(original["run"][key], variant["run"][key], "{what}: {key}");
    }
    let taps = |document: &Value| document["taps"].as_array().unwrap().len();
    assert_eq!(taps(original), taps(variant), "{what}: taps");
}

#[test]
fn a_capture_in_every_format() {
    for capture in captures::all() {
        let folder = tempdir().unwrap();
        let original = document(&root(), [&capture.path]);
        let records = capture.frames();
        let bytes = capture.bytes();
        let big = ByteOrder::Big;
        let variants = [
            ("pcapng", "pcapng", pcapng(&records, ByteOrder::Little)),
            ("big-endian pcapng", "pcapng", pcapng(&records, big)),
            ("gzip", "pcap, us in gzip", gzip(&bytes)),
            (
                "two members",
                "pcap, us in gzip",
                [gzip(&bytes[..1000]), gzip(&bytes[1000..])].concat(),
            ),
            (
                "zstd",
                "pcap, us in zstd",
                zstd::encode_all(&bytes[..], 1).unwrap(),
            ),
            (
                "zstd pcapng",
                "pcapng in zstd",
                zstd::encode_all(&pcapng(&records, big)[..], 1).unwrap(),
            ),
            ("big-endian", "pcap, us", pcap(&records, Container::Pcap, big)),
            (
                "modified",
                "pcap modified, us",
                pcap(&records, Container::PcapModified, ByteOrder::Little),
            ),
            (
                "nanoseconds",
                "pcap, ns",
                pcap(&records, Container::PcapNanos, ByteOrder::Little),
            ),
        ];
        for (what, format, content) in variants {
            let what = format!("{} as {what}", capture.name);
            // The name says nothing: the content does.
            fs::write(folder.path().join("capture"), &content).unwrap();
            assert_eq!(frames(&folder.path().join("capture")), records, "{what}: frames");
            let variant = document(folder.path(), ["capture"]);
            assert_eq!(variant["run"]["inputs"][0]["format"], format, "{what}");
            same(&what, &original, &variant);
        }
    }
}

/// A document without what a cut takes away: the ICRC is the last thing in a frame.
fn without_icrc(mut document: Value) -> Value {
    for key in ["icrc_checked", "icrc_bad", "cut_by_snaplen"] {
        document["totals"][key].take();
    }
    for flow in document["flows"].as_array_mut().unwrap() {
        for key in ["icrc_checked", "icrc_bad"] {
            flow[key].take();
        }
    }
    document
}

/// A document without what depends on when, and how, the two directions of a connection were found.
fn without_pairing(mut document: Value) -> Value {
    for flow in document["flows"].as_array_mut().unwrap() {
        for (column, value) in flow.as_object_mut().unwrap() {
            let of_answers = ["pairing", "ack_rtt_", "message_time_", "read_time_", "inflight_"];
            if of_answers.iter().any(|begin| column.starts_with(begin)) {
                value.take();
            }
        }
    }
    document
}

#[test]
fn a_capture_cut_to_96_bytes() {
    for capture in captures::all() {
        let folder = tempdir().unwrap();
        let records = capture.frames();
        let short = cut(&records, 96);
        fs::write(
            folder.path().join("short.pcap"),
            pcap(&short, Container::Pcap, ByteOrder::Little),
        )
        .unwrap();
        let variant = document(folder.path(), ["short.pcap"]);
        // An ICRC ends its frame: it is checkable where nothing was cut.
        let whole = records
            .iter()
            .filter(|record| record.original <= 96 && record.data.len() <= 96);
        assert_eq!(
            total(&variant, "icrc_checked"),
            whole.count() as u64,
            "{}",
            capture.name
        );
        assert_eq!(total(&variant, "icrc_bad"), 0, "{}", capture.name);
        // 96 bytes hold every header that these packets have.
        assert_eq!(total(&variant, "cut_by_snaplen"), 0, "{}", capture.name);
        let taps = variant["taps"].as_array().unwrap();
        let longer = records.iter().filter(|record| record.original > 96).count();
        assert_eq!(sum(taps, "cut_frames"), longer as u64, "{}", capture.name);
        let original = document(&root(), [&capture.path]);
        let (mut original, mut variant) = (without_icrc(original), without_icrc(variant));
        if capture.name == "rping" {
            // The connection manager's messages (256 bytes) are cut: the two directions are found later, by their PSNs.
            original = without_pairing(original);
            variant = without_pairing(variant);
        }
        same(&capture.name, &original, &variant);
    }
}

#[test]
fn a_capture_cut_to_60_bytes_has_no_icrc_to_check() {
    for capture in captures::all() {
        let folder = tempdir().unwrap();
        let short = cut(&capture.frames(), 60);
        fs::write(
            folder.path().join("short.pcap"),
            pcap(&short, Container::Pcap, ByteOrder::Little),
        )
        .unwrap();
        let variant = document(folder.path(), ["short.pcap"]);
        let original = document(&root(), [&capture.path]);
        assert_eq!(
            (total(&variant, "icrc_checked"), total(&variant, "icrc_bad")),
            (0, 0),
            "{}",
            capture.name
        );
        // Ethernet 14, IPv4 20, UDP 8, BTH 12, AETH 4: ends at 58. RETH (70), AtomicETH (82), AtomicAckETH (66), DETH (62) are cut.
        let count = |opcodes: &[&str]| -> u64 {
            opcodes
                .iter()
                .filter_map(|opcode| original["totals"]["opcodes"][opcode]["packets"].as_u64())
                .sum()
        };
        let cut = count(&["0x06", "0x0a", "0x0b", "0x0c", "0x12", "0x13", "0x14", "0x64"]);
        assert_eq!(total(&variant, "cut_by_snaplen"), cut, "{}", capture.name);
        for key in [
            "roce_packets",
            "wire_bytes",
            "payload_bytes",
            "acks",
            "naks",
            "rnr_naks",
            "cnp",
            "ce",
        ] {
            assert_eq!(
                total(&variant, key),
                total(&original, key),
                "{}: {key}",
                capture.name
            );
        }
        assert_eq!(
            variant["totals"]["opcodes"], original["totals"]["opcodes"],
            "{}",
            capture.name
        );
        let text = run(folder.path(), ["short.pcap"]).good().stdout;
        assert!(
            text.contains(" ICRC       not checkable\n"),
            "{}: {text}",
            capture.name
        );
    }
}

/// A place near `about` where a file can end so that the next one begins at a later time.
fn seam(records: &[Record], about: usize) -> usize {
    (about..records.len())
        .find(|at| records[at - 1].time < records[*at].time)
        .expect("times that differ")
}

#[test]
fn rotated_files_are_the_whole() {
    for capture in captures::all() {
        let folder = tempdir().unwrap();
        let records = capture.frames();
        let (a, b) = (
            seam(&records, records.len() / 3),
            seam(&records, records.len() * 2 / 3),
        );
        for (name, part) in [("1.pcap", 0..a), ("2.pcap", a..b), ("3.pcap", b..records.len())] {
            let part = pcap(&records[part], Container::Pcap, ByteOrder::Little);
            fs::write(folder.path().join(name), part).unwrap();
        }
        let original = document(&root(), [&capture.path]);
        for order in [
            ["1.pcap", "2.pcap", "3.pcap"],
            ["3.pcap", "1.pcap", "2.pcap"],
            ["2.pcap", "3.pcap", "1.pcap"],
        ] {
            for threads in ["1", "3"] {
                let parts = document(folder.path(), order.into_iter().chain(["--threads", threads]));
                same(
                    &format!("{} in {order:?}, {threads} threads", capture.name),
                    &original,
                    &parts,
                );
                assert_eq!(
                    parts["taps"][0]["input"], "1.pcap",
                    "{}: of rotated files, the first",
                    capture.name
                );
                let inputs = parts["run"]["inputs"].as_array().unwrap();
                let given: Vec<&str> = inputs
                    .iter()
                    .map(|input| input["input"].as_str().unwrap())
                    .collect();
                assert_eq!(given, order, "{}: in the order of the arguments", capture.name);
            }
        }
    }
}

#[test]
fn standard_input() {
    for capture in captures::all() {
        let original = document(&root(), [&capture.path]);
        for bytes in [capture.bytes(), gzip(&capture.bytes())] {
            let ran = run_with_input(&root(), ["-", "--format", "json"], &bytes).good();
            let variant = ran.json();
            same(&capture.name, &original, &variant);
            assert_eq!(variant["run"]["inputs"][0]["input"], "-");
            assert_eq!(
                variant["run"]["inputs"][0]["bytes"],
                Value::Null,
                "a stream has no size"
            );
        }
    }
}

/// The records behind another link header: what `change` makes of their bytes.
fn behind(records: &[Record], change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Record> {
    let changed = |record: &Record| {
        let data = change(&record.data);
        let kept = u32::try_from(record.data.len()).unwrap();
        let now = u32::try_from(data.len()).unwrap();
        Record {
            time: record.time,
            original: record.original - kept + now,
            data,
        }
    };
    records.iter().map(changed).collect()
}

/// Frames of other links than Ethernet, or other headers than IPv4, show their flow only after decoding:
/// each still counts once.
#[test]
fn threads_agree_behind_every_link_header() {
    let folder = tempdir().unwrap();
    for capture in captures::samples() {
        let records = capture.frames();
        // 802.1Q, priority 3, VLAN 5, between the addresses and the EtherType.
        let tag: [u8; 4] = [0x81, 0, 0x60, 5];
        let tagged = behind(&records, |frame| [&frame[..12], &tag[..], &frame[12..]].concat());
        // Linux cooked v2: EtherType, reserved, interface 2, Ethernet, outgoing, an address of 6 bytes in 8.
        let cooked = behind(&records, |frame| {
            [
                &frame[12..14],
                &[0, 0, 0, 0, 0, 2, 0, 1, 4, 6][..],
                &frame[6..12],
                &[0, 0],
                &frame[14..],
            ]
            .concat()
        });
        let raw = behind(&records, |frame| frame[14..].to_vec());
        // GRE in IPv4: version 4, 20 bytes, protocol 47, from 192.0.2.1 to 192.0.2.2, around IPv4 (0x0800).
        let tunnelled = behind(&records, |frame| {
            let mut outer = vec![
                0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 0, 8, 0,
            ];
            let inner = u16::from_be_bytes([frame[16], frame[17]]);
            outer[2..4].copy_from_slice(&(inner + 24).to_be_bytes());
            [&frame[..14], &outer, &frame[14..]].concat()
        });
        let links = [
            ("tagged", LinkType::ETHERNET, tagged),
            ("cooked", LinkType::LINUX_SLL2, cooked),
            ("raw", LinkType::RAW, raw),
            ("tunnelled", LinkType::ETHERNET, tunnelled),
            ("cut to 60", LinkType::ETHERNET, cut(&records, 60)),
        ];
        let golden = capture.golden();
        for (what, link, records) in links {
            let options = PcapOptions {
                link,
                ..PcapOptions::default()
            };
            let mut writer = PcapWriter::new(Vec::new(), options).unwrap();
            for record in &records {
                writer.write(record.time, record.original, &record.data).unwrap();
            }
            fs::write(folder.path().join("link.pcap"), writer.finish().unwrap()).unwrap();
            let one = lasting(document(folder.path(), ["link.pcap", "--threads", "1"]));
            for threads in ["2", "3"] {
                let several = lasting(document(folder.path(), ["link.pcap", "--threads", threads]));
                assert_eq!(one, several, "{} {what} with {threads} threads", capture.name);
            }
            assert_eq!(
                total(&one, "roce_packets"),
                golden.of("roce_packets"),
                "{} {what}",
                capture.name
            );
            assert_eq!(
                total(&one, "missing"),
                golden.of("skipped"),
                "{} {what}",
                capture.name
            );
        }
    }
}

#[test]
fn threads_do_not_change_the_result() {
    for capture in captures::all() {
        let one = lasting(document(&root(), [&capture.path, "--threads", "1"]));
        for threads in ["2", "4"] {
            let several = lasting(document(&root(), [&capture.path, "--threads", threads]));
            assert_eq!(one, several, "{} with {threads} threads", capture.name);
        }
    }
    let folder = tempdir().unwrap();
    let many = many_hosts(folder.path());
    let one = lasting(document(&root(), [&many, "--threads", "1"]));
    let text = |threads: &str| {
        ran(command(&root()).args([&many, "--threads", threads]))
            .good()
            .stdout
    };
    let shown = text("1");
    for threads in ["2", "4", "8"] {
        assert_eq!(
            one,
            lasting(document(&root(), [&many, "--threads", threads])),
            "{threads} threads"
        );
        assert_eq!(shown, text(threads), "{threads} threads");
    }
}

/// All samples side by side in one file, each between two hosts of its own, so that every thread has something to do.
/// Gives its path.
pub(crate) fn many_hosts(folder: &Path) -> String {
    let mut all = Vec::new();
    for (number, capture) in (1..).zip(captures::samples()) {
        let mut records = capture.frames();
        let first = records[0].time.0;
        for record in &mut records {
            record.time = Time(1_800_000_000_000_000_000 + record.time.0 - first);
            // The third byte of both IPv4 addresses: 10.77.0.1 becomes 10.77.N.1.
            record.data[28] = number;
            record.data[32] = number;
        }
        all.extend(records);
    }
    all.sort_by_key(|record| record.time);
    let path = folder.join("many.pcap");
    fs::write(&path, pcap(&all, Container::PcapNanos, ByteOrder::Little)).unwrap();
    path.display().to_string()
}

#[test]
fn many_hosts_in_one_file_are_the_sum_of_the_files() {
    let folder = tempdir().unwrap();
    let whole = document(&root(), [&many_hosts(folder.path())]);
    let singles: Vec<Value> = captures::samples()
        .iter()
        .map(|capture| document(&root(), [&capture.path]))
        .collect();
    for (key, value) in whole["totals"].as_object().unwrap() {
        // New addresses make every ICRC wrong.
        if key != "icrc_bad" && value.is_u64() {
            let expected: u64 = singles.iter().map(|single| total(single, key)).sum();
            assert_eq!(*value, expected, "{key}");
        }
    }
    assert_eq!(total(&whole, "icrc_bad"), total(&whole, "icrc_checked"));
    assert_eq!(
        flows(&whole).len(),
        singles.iter().map(|single| flows(single).len()).sum::<usize>()
    );
}

#[test]
fn many_rotated_files_are_the_whole() {
    let capture = Capture::named("write_bw_loss");
    let folder = tempdir().unwrap();
    let records = capture.frames();
    let original = document(&root(), [&capture.path]);
    // More files than are kept open at once: some 20 frames each.
    let mut cuts: Vec<usize> = (20..records.len() - 20)
        .step_by(20)
        .map(|about| seam(&records, about))
        .collect();
    cuts.dedup();
    cuts.insert(0, 0);
    cuts.push(records.len());
    let mut names = Vec::new();
    for (number, part) in cuts.windows(2).enumerate() {
        let name = format!("{number:03}.pcap");
        let part = pcap(&records[part[0]..part[1]], Container::Pcap, ByteOrder::Little);
        fs::write(folder.path().join(&name), part).unwrap();
        names.push(name);
    }
    assert!(names.len() > 100, "{}", names.len());
    same("in order", &original, &document(folder.path(), &names));
    names.reverse();
    same("the last one first", &original, &document(folder.path(), &names));
}

#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_a_pipe() {
    let capture = Capture::named("rnr");
    let piped = run_with_input(&root(), ["/dev/stdin", "--format", "json"], &capture.bytes())
        .good()
        .json();
    same("/dev/stdin", &document(&root(), [&capture.path]), &piped);
    assert_eq!(piped["run"]["inputs"][0]["bytes"], Value::Null);
}

/// A capture on several CPUs: every tenth frame is written three places too late. Returns the records
/// and the number of those that come after a later one.
pub(crate) fn mixed(capture: &Capture) -> (Vec<Record>, u64) {
    let mut records = capture.frames();
    let mut moved = 0;
    for at in (10..records.len() - 3).step_by(10) {
        let late = records.remove(at);
        moved += u64::from(late.time < records[at + 2].time);
        records.insert(at + 3, late);
    }
    (records, moved)
}

#[test]
fn times_out_of_order_change_no_count() {
    for capture in captures::all() {
        let folder = tempdir().unwrap();
        let (records, moved) = mixed(&capture);
        fs::write(
            folder.path().join("mixed.pcap"),
            pcap(&records, Container::Pcap, ByteOrder::Little),
        )
        .unwrap();
        let original = document(&root(), [&capture.path]);
        let mixed = document(folder.path(), ["mixed.pcap"]);
        let taps = mixed["taps"].as_array().unwrap();
        assert_eq!(sum(taps, "out_of_order"), moved, "{}", capture.name);
        for key in [
            "frames",
            "roce_packets",
            "wire_bytes",
            "payload_bytes",
            "ce",
            "cnp",
            "acks",
            "naks",
            "data_packets",
        ] {
            assert_eq!(
                total(&mixed, key),
                total(&original, key),
                "{}: {key}",
                capture.name
            );
        }
        assert_eq!(
            mixed["run"]["first_time"], original["run"]["first_time"],
            "{}",
            capture.name
        );
        assert_eq!(
            mixed["run"]["last_time"], original["run"]["last_time"],
            "{}",
            capture.name
        );
    }
}
