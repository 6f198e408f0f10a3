//! Every capture of the repository through the classifier, by BPF_PROG_TEST_RUN: its counts are those of the userspace decoder,
//! and of tshark where there is a golden file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use roce_capture::{Options as ReadOptions, Reader};
use roce_probe::{FlowCounts, Options, Packets, Probe};
use roce_wire::{AethKind, Content, ExtendedHeaders, LinkType, decode};

use crate::{classifier, open};

/// Source, destination, QPN.
type Counts = BTreeMap<(String, String, u32), FlowCounts>;

fn root() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn captures() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["captures", "captures/demos", "tests/data"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|ending| ending == "pcap" || ending == "pcapng")
        })
        .collect();
    found.sort();
    found
}

/// The most that BPF_PROG_TEST_RUN takes everywhere: a page less what the kernel keeps before and behind it.
const LONGEST: usize = 3_000;

/// A frame as a shorter payload would have made it: Ethernet, IPv4 without options, UDP.
fn shortened(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.len() > LONGEST {
        assert_eq!(frame[12..15], [0x08, 0x00, 0x45], "only such frames are long");
        let less = u16::try_from(frame.len() - LONGEST).unwrap();
        for at in [16, 38] {
            let length = u16::from_be_bytes([frame[at], frame[at + 1]]) - less;
            frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
        frame.truncate(LONGEST);
    }
    frame
}

/// The frames of a capture, as long as they were on the wire: what a snaplen cut off is zeros.
fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(path, &ReadOptions::default()).unwrap();
    let mut frames = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            let mut bytes = batch.bytes(frame).to_vec();
            bytes.resize(frame.original as usize, 0);
            frames.push(shortened(bytes));
        }
    }
    frames
}

/// Expected counts: those of the userspace decoder, with its general path.
fn expected(frames: &[Vec<u8>]) -> Counts {
    let mut counts = Counts::new();
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        let decoded = decode(LinkType::ETHERNET, frame, length);
        let Content::Roce(roce) = decoded.content else {
            continue;
        };
        let key = (
            roce.source.to_string(),
            roce.destination.to_string(),
            roce.bth.destination_qpn().value(),
        );
        let flow = counts.entry(key).or_default();
        flow.packets += 1;
        flow.wire_bytes += u64::from(length);
        flow.payload_bytes += u64::from(roce.payload_bytes);
        flow.ecn[roce.ecn() as usize] += 1;
        if roce.bth.opcode().is_cnp() {
            flow.cnps += 1;
            continue;
        }
        flow.operations[roce.bth.opcode().operation() as usize] += 1;
        if roce.seen.has(ExtendedHeaders::AETH) {
            match roce.aeth.kind() {
                AethKind::Nak(nak) => flow.naks[nak as usize] += 1,
                AethKind::RnrNak { .. } => flow.rnr_naks += 1,
                AethKind::Ack { .. } | AethKind::Reserved(_) => {}
            }
        }
    }
    counts
}

fn counted(probe: &Probe) -> Counts {
    let flows = probe.counts().unwrap().into_iter().map(|flow| {
        let key = (
            flow.source.to_string(),
            flow.destination.to_string(),
            flow.qpn.value(),
        );
        (key, flow.counts)
    });
    flows.collect()
}

#[test]
fn counts_are_those_of_the_decoder() {
    let options = classifier();
    for path in captures() {
        let Some(mut probe) = open("captures through the classifier", &options) else {
            return;
        };
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let frames = frames(&path);
        for frame in &frames {
            probe.try_frame(frame, 1).unwrap();
        }
        let expected = expected(&frames);
        assert!(!expected.is_empty(), "{name}");
        assert_eq!(counted(&probe), expected, "{name}");
        let losses = probe.losses().unwrap();
        assert_eq!((losses.untracked, losses.undecoded), (0, 0), "{name}");
    }
}

#[test]
fn counts_are_those_of_tshark() {
    let options = classifier();
    for path in captures() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if path.parent().is_some_and(|folder| folder.ends_with("demos")) {
            continue;
        }
        let golden = std::fs::read_to_string(root().join(format!("tests/data/golden/{stem}.txt"))).unwrap();
        let Some(mut probe) = open("captures, against tshark", &options) else {
            return;
        };
        let frames = frames(&path);
        for frame in &frames {
            probe.try_frame(frame, 1).unwrap();
        }
        let of = |key: &str| -> u64 {
            let line = golden
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{stem}: no {key}"))
                .parse()
                .unwrap()
        };
        let flows = counted(&probe);
        let sum = |what: fn(&FlowCounts) -> u64| flows.values().map(what).sum::<u64>();
        assert_eq!(sum(|flow| flow.packets), of("roce_packets"), "{stem}");
        let whole = frames.iter().all(|frame| frame.len() < LONGEST);
        if whole {
            assert_eq!(sum(|flow| flow.wire_bytes), of("wire_bytes"), "{stem}");
        }
        assert_eq!(sum(|flow| flow.cnps), of("cnp"), "{stem}");
        assert_eq!(sum(|flow| flow.naks.iter().sum()), of("naks"), "{stem}");
        assert_eq!(sum(|flow| flow.rnr_naks), of("rnr_naks"), "{stem}");
        for ((source, destination, qpn), flow) in &flows {
            if *qpn > 1 && flow.cnps == 0 {
                let key = format!("flow.{source}>{destination}>0x{qpn:06x}");
                assert_eq!(flow.packets, of(&format!("{key}.packets")), "{stem} {key}");
                if whole {
                    assert_eq!(flow.wire_bytes, of(&format!("{key}.wire_bytes")), "{stem} {key}");
                }
            }
        }
    }
}

/// Frames that the captures do not have: RoCEv1, IPv6, tags, and what is nearly RoCE.
#[test]
fn odd_frames_are_counted_or_reported() {
    let options = classifier();
    let Some(mut probe) = open("odd frames", &options) else {
        return;
    };
    let path = root().join("captures/clean_write_bw.pcap");
    let plain = frames(&path).remove(0);
    let mut tagged = plain.clone();
    tagged.splice(12..12, [0x81, 0x00, 0x60, 0x05]);
    let mut twice = tagged.clone();
    twice.splice(12..12, [0x88, 0xa8, 0x00, 0x07]);
    // RoCEv1: the BTH and what follows behind a GRH (IBTA 8.3): version 6, payload length, next header 0x1b.
    let mut v1 = plain[..12].to_vec();
    v1.extend([0x89, 0x15, 0x60, 0, 0, 0]);
    let rest = &plain[42..];
    v1.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    v1.extend([0x1b, 64]);
    v1.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    v1.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    v1.extend(rest);
    // RoCEv2 over IPv6: the UDP header, too (RFC 8200: version, length, next header 17).
    let mut v6 = plain[..12].to_vec();
    v6.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    let rest = &plain[34..];
    v6.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    v6.extend([17, 64]);
    v6.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    v6.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    v6.extend(rest);
    let roce = vec![plain.clone(), tagged, twice, v1, v6];
    for frame in &roce {
        probe.try_frame(frame, 1).unwrap();
    }
    assert_eq!(counted(&probe), expected(&roce));
    assert_eq!(counted(&probe).values().map(|flow| flow.packets).sum::<u64>(), 5);

    // Another UDP port, TCP, ARP: ignored. A wrong total length: reported.
    let mut dns = plain.clone();
    dns[36..38].copy_from_slice(&53_u16.to_be_bytes());
    let mut tcp = plain.clone();
    tcp[23] = 6;
    let mut arp = plain.clone();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let mut lying = plain.clone();
    lying[16..18].copy_from_slice(&9_000_u16.to_be_bytes());
    for frame in [&dns, &tcp, &arp, &lying] {
        probe.try_frame(frame, 1).unwrap();
    }
    assert_eq!(
        counted(&probe),
        expected(&roce),
        "nothing of it is counted as a flow"
    );
    assert_eq!(probe.losses().unwrap().undecoded, 1);
    // Every prefix of a frame: the program reads nothing that is not there.
    // (With less than an IP header the kernel does not take it for a test.)
    for length in 34..plain.len() {
        probe.try_frame(&plain[..length], 1).unwrap();
    }
    assert_eq!(counted(&probe), expected(&roce));
}

#[test]
fn packets_that_only_claim_to_be_roce_are_sent_with_the_others() {
    let options = Options {
        packets: Packets::All,
        ..classifier()
    };
    let Some(mut probe) = open("records of packets with wrong lengths", &options) else {
        return;
    };
    let plain = frames(&root().join("captures/clean_write_bw.pcap")).remove(0);
    // IPv4's total length (RFC 791, bytes 2 and 3 of the header) is more than the frame has.
    let mut lying = plain.clone();
    lying[16..18].copy_from_slice(&9_000_u16.to_be_bytes());
    let mut sent = Vec::new();
    probe.try_frame(&lying, 1).unwrap();
    let lost = probe.packets(|packet| packet.frame(&mut sent)).unwrap();
    assert_eq!(lost, 0);
    assert_eq!(sent, lying[..lying.len().min(384)]);
    assert_eq!(probe.losses().unwrap().undecoded, 1);
}

#[test]
fn what_nobody_reads_is_not_counted_by_flow() {
    let options = Options {
        packets: Packets::All,
        counts: false,
        ..classifier()
    };
    let Some(mut probe) = open("packets without counts", &options) else {
        return;
    };
    let all = frames(&root().join("captures/clean_write_bw.pcap"));
    for frame in &all {
        probe.try_frame(frame, 1).unwrap();
    }
    assert!(probe.counts().unwrap().is_empty());
    let losses = probe.losses().unwrap();
    assert_eq!((losses.untracked, losses.undecoded), (0, 0));
    let mut sent = 0;
    probe.packets(|_| sent += 1).unwrap();
    assert_eq!(sent, all.len());
}

#[test]
fn messages_of_the_connection_manager_are_sent_whole() {
    let options = Options {
        packets: Packets::All,
        ..classifier()
    };
    let Some(mut probe) = open("records of the connection manager", &options) else {
        return;
    };
    let all = frames(&root().join("captures/rping.pcap"));
    let mut sent = Vec::new();
    for frame in &all {
        probe.try_frame(frame, 1).unwrap();
    }
    let lost = probe.packets(|packet| packet.frame(&mut sent)).unwrap();
    assert_eq!(lost, 0);
    // Ethernet 14, IPv4 20, UDP 8, BTH 12, DETH 8, MAD 256, ICRC 4: a whole one has 322 bytes. The others are cut at 96.
    let kept = |frame: &Vec<u8>| {
        let is_management = frame[47..50] == [0, 0, 1];
        frame[..frame.len().min(if is_management { 384 } else { 96 })].to_vec()
    };
    let expected: Vec<u8> = all.iter().flat_map(kept).collect();
    assert!(
        all.iter()
            .any(|frame| frame[47..50] == [0, 0, 1] && frame.len() == 322)
    );
    assert!(
        sent == expected,
        "{} bytes, {} expected",
        sent.len(),
        expected.len()
    );
}

#[test]
fn congestion_alone_is_sent_when_asked_for() {
    let options = Options {
        packets: Packets::Congestion,
        ..classifier()
    };
    let Some(mut probe) = open("records of congestion", &options) else {
        return;
    };
    let mut sent = Vec::new();
    let all: Vec<Vec<u8>> = ["write_bw_loss", "rnr", "send_bw_ce_synthetic_cnp"]
        .iter()
        .flat_map(|name| frames(&root().join(format!("captures/{name}.pcap"))))
        .collect();
    for frame in &all {
        probe.try_frame(frame, 1).unwrap();
        let lost = probe
            .packets(|packet| {
                let mut bytes = Vec::new();
                packet.frame(&mut bytes);
                assert_eq!(packet.original as usize, frame.len());
                sent.push(bytes);
            })
            .unwrap();
        assert_eq!(lost, 0);
    }
    let reported = |frame: &&Vec<u8>| {
        let length = u32::try_from(frame.len()).unwrap();
        let Content::Roce(roce) = decode(LinkType::ETHERNET, frame, length).content else {
            return false;
        };
        let failed = roce.seen.has(ExtendedHeaders::AETH)
            && matches!(roce.aeth.kind(), AethKind::Nak(_) | AethKind::RnrNak { .. });
        roce.traffic_class & 3 == 3 || roce.bth.opcode().is_cnp() || failed
    };
    let expected: Vec<Vec<u8>> = all
        .iter()
        .filter(reported)
        .map(|frame| frame[..frame.len().min(96)].to_vec())
        .collect();
    assert!(expected.len() > 50, "{}", expected.len());
    assert!(
        sent == expected,
        "{} records, {} expected",
        sent.len(),
        expected.len()
    );
}
