//! `fabric sflow`: what tshark reads of a collector's capture, and samples of captures whose truth is known.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::Stdio;

use roce_capture::{Options, Reader};
use roce_model::Time;
use roce_sflow::{
    AgentSummary, Datagram, Estimate, PORT, Payload, Place, Port, Sample, SampleCollector, SampleSummary,
};
use roce_wire::{Content, LinkType, decode};
use serde_json::Value;
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{command, run};

const CAPTURE: &str = "tests/data/sflow/two_switches.pcap";

/// Frames of a capture: time, bytes, and bytes on the wire.
fn frames(path: &str) -> Vec<(Time, Vec<u8>, u32)> {
    let mut reader = Reader::open(&root().join(path), &Options::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            frames.push((frame.time, batch.bytes(frame).to_vec(), frame.original));
        }
    }
    frames
}

/// Payloads of the capture's datagrams.
fn payloads() -> Vec<(Time, Vec<u8>)> {
    let found = frames(CAPTURE).into_iter().map(|(time, frame, _)| {
        let payload = Payload::find(LinkType::ETHERNET, &frame, PORT).unwrap();
        (time, payload.bytes.to_vec())
    });
    found.collect()
}

/// tshark's fields of each frame, by their names.
fn golden() -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(root().join("tests/data/sflow/two_switches.txt")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines
        .map(|line| names.iter().cloned().zip(line).collect())
        .collect()
}

/// Numbers with commas between them, in decimal or hexadecimal.
fn numbers(text: &str) -> Vec<u32> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    text.split(',')
        .filter(|text| !text.is_empty())
        .map(number)
        .collect()
}

#[test]
fn samples_have_the_fields_that_tshark_shows() {
    let mut compared = 0;
    for ((_, bytes), fields) in payloads().iter().zip(golden()) {
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let either = |one: &str, other: &str| numbers(&(field(one) + "," + &field(other)));
        let Ok(datagram) = Datagram::parse(bytes) else {
            continue;
        };
        assert_eq!(
            numbers(&field("sflow_245.sequence_number")),
            [datagram.sequence],
            "{fields:?}"
        );
        assert_eq!(numbers(&field("sflow_245.sub_agent_id")), [datagram.sub_agent]);
        let samples = datagram.samples().filter_map(|sample| match sample {
            Sample::Flow(sample) => Some(sample),
            _ => None,
        });
        let samples: Vec<_> = samples.collect();
        let of = |value: &dyn Fn(&roce_sflow::FlowSample<'_>) -> u32| {
            samples.iter().map(value).collect::<Vec<_>>()
        };
        let index = |port: Port| match port {
            Port::Interface(index) => index,
            other => panic!("{other:?}"),
        };
        let name = |rest: &str| format!("sflow.flow_sample.{rest}");
        assert_eq!(
            of(&|sample| sample.sequence),
            numbers(&field(&name("sequence_number")))
        );
        assert_eq!(of(&|sample| sample.rate), numbers(&field(&name("sampling_rate"))));
        assert_eq!(of(&|sample| sample.pool), numbers(&field(&name("sample_pool"))));
        assert_eq!(
            of(&|sample| sample.drops),
            numbers(&field(&name("dropped_packets")))
        );
        assert_eq!(
            of(&|sample| sample.source.index),
            either(&name("source_id_index"), &name("index"))
        );
        // tshark repeats the compact form's output in the other field.
        assert_eq!(
            of(&|sample| index(sample.output)),
            numbers(&field(&name("output_interface_value")))
        );
        let inputs = either(&name("input_interface"), &name("input_interface_value"));
        assert_eq!(of(&|sample| index(sample.input)), inputs);
        let roce = samples.iter().map(|sample| {
            let header = sample.header().unwrap().unwrap();
            match decode(
                LinkType::ETHERNET,
                header.bytes,
                header.frame_bytes - header.stripped,
            )
            .content
            {
                Content::Roce(roce) => (u32::from(roce.bth.opcode().0), u32::from(roce.traffic_class & 3)),
                other => panic!("{other:?}"),
            }
        });
        let (opcodes, marks): (Vec<_>, Vec<_>) = roce.unzip();
        assert_eq!(opcodes, numbers(&field("infiniband.bth.opcode")));
        // The first one is that of the datagram's own IP header.
        assert_eq!(marks, numbers(&field("ip.dsfield.ecn"))[1..]);
        compared += samples.len();
    }
    // 184 of the leaf, 203 of the spine, and 4 in the datagram that is there twice.
    assert_eq!(compared, 391);
}

fn document(arguments: &[&str]) -> Value {
    let ran = run(
        &root(),
        [&["fabric", "sflow", "--format", "json"], arguments].concat(),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()
}

#[test]
fn shares_are_those_of_tsharks_fields() {
    let found = document(&[CAPTURE]);
    let [leaf, spine] = found["agents"].as_array().unwrap().as_slice() else {
        panic!("{found:#}");
    };
    // Counted in two_switches.txt, each datagram once: 164 samples with data, 19 of them marked; 10 ACKs, 10 CNPs.
    let all = &leaf["places"][0];
    assert_eq!(leaf["agent"], "10.255.0.1");
    assert_eq!(
        (
            &all["samples"],
            &all["ce_of_roce_data"]["samples"],
            &all["ce_of_roce_data"]["of_samples"]
        ),
        (&184.into(), &19.into(), &164.into())
    );
    assert_eq!(
        (&all["cnp_of_roce"]["samples"], &all["cnp_of_roce"]["of_samples"]),
        (&10.into(), &184.into())
    );
    assert_eq!(leaf["counts"]["broken_samples"], 1);
    assert_eq!(leaf["counts"]["unknown_samples"], 1);
    assert_eq!(leaf["opcodes_of_roce"][0]["opcode"], 1);
    assert_eq!(leaf["opcodes_of_roce"][0]["of_roce"]["samples"], 143);
    // The pools of both ports at the end of the capture: 1,280 and 205 packets.
    let packets = &all["packets"];
    assert!(packets["low"].as_f64().unwrap() < 1_485.0 && packets["high"].as_f64().unwrap() > 1_485.0);

    assert_eq!(
        (&spine["agent"], &spine["sub_agent"]),
        (&"fd00::5".into(), &3.into())
    );
    let counts = &spine["counts"];
    for (name, value) in [
        ("datagrams", 51),
        ("lost_datagrams", 2),
        ("copies", 1),
        // Two datagrams of four; the number of the last sample is 211, and 203 are there.
        ("missing_samples", 8),
        ("dropped_samples", 18),
        ("rate_changes", 1),
        ("lowest_rate", 4),
        ("highest_rate", 8),
        ("sources_by_pool", 1),
    ] {
        assert_eq!(counts[name], value, "{name}");
    }
    let all = &spine["places"][0];
    assert_eq!(all["ce_of_roce_data"]["samples"], 15);
    // The pool goes from 3 to 1,279 over 228 intervals, and as much as in two of them passed before and behind: 1,287.2.
    assert!((all["packets"]["value"].as_f64().unwrap() - 1_276.0 * 230.0 / 228.0).abs() < 1e-6);
    // The truth of the capture they are made after (captures/README.md): 129 of 1,280 data packets are marked.
    for agent in [leaf, spine] {
        let share = &agent["places"][0]["ce_of_roce_data"]["share"];
        let truth = 129.0 / 1_280.0;
        assert!(
            share["low"].as_f64().unwrap() < truth && truth < share["high"].as_f64().unwrap(),
            "{share}"
        );
    }
    // Each pair by the agent that saw most of it, once.
    let pairs: Vec<_> = found["talkers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| pair["source"].clone())
        .collect();
    assert_eq!(pairs, ["10.77.0.1", "10.77.0.2"]);
    assert_eq!(found["broken_datagrams"], 2);
}

#[test]
fn text_fits_the_screen_and_rows_have_every_estimate() {
    for columns in [80, 160] {
        let mut command = command(&root());
        let command = command
            .args(["fabric", "sflow", CAPTURE])
            .env("COLUMNS", columns.to_string());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns, "{widest}:\n{text}");
        for word in [
            "agent 10.255.0.1: 184 samples of 1 in 8",
            "2 datagrams (3.77 %) did not arrive",
            "18 samples (8.14 %) could not be made",
            "never a loss",
        ] {
            let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains(word), "{word}:\n{text}");
        }
    }
    let lines = run(&root(), ["fabric", "sflow", CAPTURE, "--format", "jsonl"]);
    let rows: Vec<Value> = lines
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let csv = run(&root(), ["fabric", "sflow", CAPTURE, "--format", "csv"]);
    assert_eq!(csv.stdout.lines().count(), rows.len() + 1);
    let marked = rows
        .iter()
        .find(|row| row["agent"] == "fd00::5" && row["quantity"] == "ce_of_roce_data");
    assert_eq!(marked.unwrap()["samples"], 15);
    assert!(
        csv.stdout
            .starts_with("agent,sub_agent,place,interface,quantity,")
    );
    // The first broken place is named: the leaf's last datagram claims a sample of 2^32 - 1 bytes.
    assert!(
        csv.stderr.contains("two_switches.pcap, frame 93: byte 36 of the datagram: a sample of 4294967295 bytes expected, 0 are there"),
        "{}",
        csv.stderr
    );
}

#[test]
fn captures_without_samples_are_an_error_and_samples_without_roce_a_hint() {
    let folder = tempdir().unwrap();
    let ran = run(&root(), ["fabric", "sflow", "captures/rping.pcap"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("no datagram of sFlow version 5 to UDP port 6343"),
        "{}",
        ran.stderr
    );
    let ran = run(folder.path(), ["fabric", "sflow", "absent.pcap"]);
    assert_eq!(ran.code, Some(2));
    let ran = run(&root(), [CAPTURE]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr
            .contains(&format!("hint: roce-analyze fabric sflow {CAPTURE}")),
        "{}",
        ran.stderr
    );
    let ran = run(&root(), ["captures/rping.pcap"]);
    assert!(!ran.stderr.contains("sflow"), "{}", ran.stderr);
}

#[test]
fn datagrams_are_heard_as_they_arrive() {
    let mut child = command(&root())
        .args([
            "fabric",
            "sflow",
            "--listen",
            "127.0.0.1:0",
            "--duration",
            "3s",
            "--format",
            "json",
        ])
        .env("ROCE_ANALYZE_ATTEMPTS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line
        .trim_start_matches("note: ")
        .split(": listening")
        .next()
        .unwrap()
        .to_owned();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (_, payload) in payloads() {
        socket.send_to(&payload, &address).unwrap();
    }
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(child.wait().unwrap().success());
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    let attempts: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("warning: attempt: "))
        .collect();
    // Builds without debug assertions make none.
    assert_eq!(
        attempts.len(),
        if cfg!(debug_assertions) {
            crate::rights::ATTEMPTS
        } else {
            0
        },
        "{said}"
    );
    assert!(attempts.iter().all(|line| line.ends_with(": refused")), "{said}");
    let heard: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(heard["datagrams"], 95);
    assert_eq!(heard["agents"], document(&[CAPTURE])["agents"]);
}

/// Bytes of a datagram with one sample of a frame that came by interface 1, after the specification.
fn datagram([number, rate, pool]: [u32; 3], frame: &[u8], wire: u32) -> Vec<u8> {
    let kept = frame.get(..128).unwrap_or(frame);
    let padded = kept.len().next_multiple_of(4);
    let [kept_bytes, padded_bytes] = [kept.len(), padded].map(|bytes| u32::try_from(bytes).unwrap());
    let record = padded_bytes + 16;
    let mut words = vec![5, 1, 0x0aff_0001, 0, number, number, 1];
    words.extend([1, 32 + 8 + record, number, 1, rate, pool, 0, 1, 2, 1]);
    words.extend([1, record, 1, wire + 4, 4, kept_bytes]);
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.extend(kept);
    bytes.extend(vec![0; padded - kept.len()]);
    bytes
}

/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014): 64 bits of a seed that counts up.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Estimates by 1 in `rate` of the frames. With `counts_packets` the agent counts those that pass.
fn sampled(frames: &[(Time, Vec<u8>, u32)], rate: u32, seed: u64, counts_packets: bool) -> SampleSummary {
    let mut collector = SampleCollector::default();
    let (mut number, mut seed) = (0, seed << 32);
    for (passed, (time, frame, wire)) in (1_u32..).zip(frames) {
        if random(&mut seed).is_multiple_of(u64::from(rate)) {
            number += 1;
            let pool = if counts_packets { passed } else { 0 };
            let bytes = datagram([number, rate, pool], frame, *wire);
            collector
                .add(*time, IpAddr::V4(Ipv4Addr::LOCALHOST), &bytes)
                .unwrap();
        }
    }
    collector.summary(4)
}

fn all(agent: &AgentSummary) -> roce_sflow::Estimates {
    assert_eq!(agent.places[0].0, Place::All);
    agent.places[0].1
}

/// The truth lies in the bounds for 95 of 100 samplings at least. tshark counts in the capture (tests/data/golden): 1,485 packets, 1,280 with data,
/// of these 129 marked, 1,120 SEND Middle; 125 CNPs; 1,280 packets from 10.77.0.1 to 10.77.0.2.
#[test]
fn truth_lies_within_the_bounds() {
    const SEEDS: u64 = 400;
    let frames = frames("captures/send_bw_ce_synthetic_cnp.pcap");
    let wire: u32 = frames.iter().map(|(_, _, wire)| wire + 4).sum();
    assert_eq!(frames.len(), 1_485);
    for rate in [4, 8, 16] {
        let mut held: BTreeMap<&str, u64> = BTreeMap::new();
        for seed in 0..SEEDS {
            let found = sampled(&frames, rate, seed, seed % 2 == 0);
            let agent = &found.agents[0];
            let estimates = all(agent);
            let middle = agent.opcodes.iter().find(|found| found.opcode.0 == 1).unwrap();
            for (name, truth, found) in [
                ("CE", 129.0 / 1_280.0, estimates.marked.share),
                ("CNP", 125.0 / 1_485.0, estimates.cnps.share),
                ("SEND Middle", 1_120.0 / 1_485.0, middle.share.share),
                ("talker", 1_280.0 / 1_485.0, found.talkers[0].share.share),
                ("packets", 1_485.0, Some(estimates.packets)),
                ("bytes", f64::from(wire), Some(estimates.bytes)),
            ] {
                let Estimate { low, high, .. } = found.unwrap();
                *held.entry(name).or_default() += u64::from((low..=high).contains(&truth));
            }
        }
        for (name, held) in held {
            assert!(
                held * 100 >= SEEDS * 95,
                "1 in {rate}: {name} in {held} of {SEEDS}"
            );
        }
    }
}
