//! Hostile traffic of other transports and headers: MRC, UET, NCCL's credits, telemetry, InfiniBand, IPv6, tunnels.
//!
//! The layouts are those of `analyzer/wire` and the documents that it names.

use std::io::{self, Write};

use super::super::frames::{
    ACK, CNP, Packet, Pcap, Pcapng, Random, WRITE_MIDDLE, WRITE_ONLY, cm, ethernet, host, ip, ip6, low,
    option, udp, words,
};
use super::{FEW, FLOW, Kind, Memory, capture, cheap, packets, stamped, timed};

const MRC_WRITE: u8 = 0xca;
const MRC_SACK: u8 = 0xdc;
const MRC_NACK: u8 = 0xdd;
const MRC_PROBE: u8 = 0xde;
const WRITE_IMMEDIATE: u8 = 0x0b;
const COMPARE_AND_SWAP: u8 = 0x13;
const XRC_SEND: u8 = 0xa4;

/// Memory of the most connections of UET that are kept.
const UET: Memory = Memory::Fixed(640);

#[rustfmt::skip]
pub(in super::super) const KINDS: &[Kind] = &[
    capture("mrc-connections", "each packet a new connection of MRC", FLOW, |n, out| packets(n, out, |i, p| { *p = mrc_write(i, 0); p.qpn = i + 16; })),
    cheap("mrc-paths", "one connection of MRC, each packet on a path of its own", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = mrc_write(i, i))),
    cheap("mrc-holes", "MRC, every second packet missing, and SACKs between", FEW, |n, out| packets(n, out, |i, p| *p = if i % 2 == 0 { mrc_write(i, i % 8) } else { sack(i / 2, i) })),
    cheap("mrc-sacks", "SACKs of random PSNs and paths", Memory::Fixed(384), |n, out| { let mut random = Random(3); packets(n, out, move |i, p| *p = if i == 0 { mrc_write(0, 0) } else { sack(random.below(1 << 24), random.next()) }) }),
    cheap("mrc-nacks", "NACKs of every reason, each of another PSN and path", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = if i == 0 { mrc_write(0, 0) } else { nack(i) })),
    cheap("mrc-probes", "probes of new paths that nobody answers", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = if i == 0 { mrc_write(0, 0) } else { probe(i) })),
    capture("uet-connections", "each packet a new connection of UET", UET, |n, out| stamped(n, out, |i| uet(i, i))),
    cheap("uet-psns", "one connection of UET with random PSNs", Memory::Fixed(384), |n, out| stamped(n, out, |i| uet(0, i.wrapping_mul(0x9e37_79b9)))),
    cheap("uet-random", "random bytes on UET's port", UET, |n, out| stamped(n, out, |i| { let mut random = Random(i + 1); let bytes: Vec<u8> = (0..8).flat_map(|_| random.next().to_le_bytes()).collect(); ethernet(1, 2, 0x0800, &ip(host(1), host(2), 17, 2, &[], &udp(0xc400, 4793, &bytes))) })),
    capture("hops", "telemetry in each packet, of a new switch", Memory::PerItem(2_048), |n, out| stamped(n, out, |i| telemetry(i, 1))),
    capture("hops-of-many", "telemetry of 20 switches in each packet", Memory::Fixed(512), |n, out| stamped(n, out, |i| telemetry(i % 16, 20))),
    cheap("trimmed", "packets cut by a switch, each of another PSN", FEW, |n, out| packets(n, out, |i, p| { *p = Packet::new(WRITE_MIDDLE); p.psn = i; p.rest.truncate(8); })),
    cheap("credits", "credits of NCCL to new addresses, and WRITEs to others", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = if i % 2 == 0 { credit(i) } else { written(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i % 4_096) })),
    cheap("keys", "WRITEs to random addresses by 4,096 keys", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = written(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i % 4_096))),
    cheap("atomics", "atomic requests that nobody answers", FEW, |n, out| packets(n, out, |i, p| { *p = Packet::new(COMPARE_AND_SWAP); p.rest = vec![0; 28]; p.psn = i; })),
    cheap("shared-queues", "XRC to new shared queues", Memory::PerItem(2_048), |n, out| packets(n, out, |i, p| { *p = Packet::new(XRC_SEND); p.rest = [&low::<4>(i)[..], &[0; 64]].concat(); p.psn = i; })),
    cheap("opcodes", "each opcode in turn, headers of zeros", Memory::Fixed(384), |n, out| packets(n, out, |i, p| { *p = Packet::new(i as u8); p.psn = i; p.rest = vec![0; 64]; })),
    cheap("partitions", "a new partition key in each packet", FEW, |n, out| packets(n, out, |i, p| { p.psn = i; p.partition = i as u16; })),
    cheap("ports", "a new source port in each packet", FEW, |n, out| packets(n, out, |i, p| { p.psn = i; p.port = i as u16; })),
    cheap("requests", "REQs that nobody answers", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = cm(1, 2, 0x10, i, i))),
    cheap("rejects", "each REQ is rejected, and sent again", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = if i % 2 == 0 { cm(1, 2, 0x10, i / 2, 0x40) } else { cm(2, 1, 0x12, i / 2, 0) })),
    cheap("disconnects", "DREQs of unknown connections", Memory::Fixed(384), |n, out| packets(n, out, |i, p| *p = cm(1, 2, 0x15, i, i))),
    capture("reconnects", "a queue pair that is connected again for each packet", Memory::Fixed(512), |n, out| packets(n, out, |i, p| match i % 3 { 0 => *p = cm(1, 2, 0x10, i, 0x40), 1 => *p = cm(2, 1, 0x13, i - 1, 0x50), _ => { p.qpn = 0x50; p.psn = i; } })),
    capture("hosts-ipv6", "each packet a new flow of new hosts, by IPv6", FLOW, |n, out| stamped(n, out, |i| { let mut packet = Packet::new(WRITE_ONLY); packet.qpn = i; ethernet(1, 2, 0x86dd, &ip6(2 * i, 2 * i + 1, 17, &udp(0xc000, 4791, &packet.transport()))) })),
    capture("roce-v1", "each packet a new pair of GIDs of RoCEv1", FLOW, |n, out| stamped(n, out, |i| ethernet(1, 2, 0x8915, &ip6(2 * i, 2 * i + 1, 27, &Packet::new(WRITE_ONLY).transport())))),
    capture("lids", "each packet a new pair of LIDs of InfiniBand", FLOW, lids),
    cheap("geneve", "Geneve with 60 options", FEW, |n, out| stamped(n, out, geneve)),
    cheap("labels", "40 labels of MPLS", FEW, |n, out| stamped(n, out, |i| { let mut inner = Vec::new(); for label in 0..40 { inner.extend([0, 1, u8::from(label == 39), 64]); } let mut packet = Packet::new(WRITE_ONLY); packet.psn = i; inner.extend(&packet.frame()[14..]); ethernet(1, 2, 0x8847, &inner) })),
    cheap("go-back", "a NAK behind every eighth packet, and all eight again", FEW, |n, out| packets(n, out, |i, p| { *p = Packet::new(WRITE_MIDDLE); let (round, at) = (i / 17, i % 17); p.psn = round * 8 + at % 8; if at == 8 { *p = Packet::new(ACK); (p.from, p.to) = (2, 1); p.psn = round * 8; p.rest[0] = 0x60; } })),
    cheap("timeouts", "each packet twice, a second between", FEW, |n, out| timed(n, out, |i, p| { p.psn = i / 2; i * 1_000_000_000 })),
    cheap("slowed", "4,096 flows, marks and CNPs in turn", Memory::Fixed(768), |n, out| packets(n, out, |i, p| { let flow = i / 2 % 4_096; if i % 2 == 0 { *p = Packet::new(WRITE_MIDDLE); p.ce = true; p.psn = i / 8_192; } else { *p = Packet::new(CNP); (p.from, p.to) = (2, 1); } p.qpn = flow + 16; })),
    cheap("processes", "a new process behind each frame", Memory::Fixed(384), |n, out| processes(n, out, 65_536)),
    cheap("processes-again", "blocks of one process again and again", FEW, |n, out| processes(n, out, 1)),
];

/// An Only of MRC with a METH and a RETH; `path` is its entropy.
fn mrc_write(psn: u64, path: u64) -> Packet {
    Packet {
        psn,
        port: path as u16 | 0x4000,
        rest: [&[0; 4][..], &[0; 12], &64_u32.to_be_bytes(), &[0; 64]].concat(),
        ..Packet::new(MRC_WRITE)
    }
}

/// The answer to [`mrc_write`]'s connection from its receiver.
fn answer(opcode: u8, psn: u64, rest: Vec<u8>) -> Packet {
    Packet {
        from: 2,
        to: 1,
        qpn: 0x12,
        psn,
        rest,
        ..Packet::new(opcode)
    }
}

/// A SETH of 40 bytes: everything up to a PSN, no bits beyond it.
fn sack(psn: u64, path: u64) -> Packet {
    let mut header = vec![0; 4];
    header.extend(low::<4>(path));
    header.extend([0, 0x11, 0, 0x12, 0]);
    header.extend(low::<3>(psn));
    header.resize(40, 0);
    answer(MRC_SACK, psn, header)
}

/// A NETH of 20 bytes.
fn nack(i: u64) -> Packet {
    let mut header = vec![0, 0, (i % 32) as u8, 0];
    header.extend(low::<4>(i));
    header.extend([0, 0x11, 0, 0x12, 0]);
    header.extend(low::<3>(i));
    header.extend([0; 4]);
    answer(MRC_NACK, i, header)
}

/// A PETH of 16 bytes.
fn probe(i: u64) -> Packet {
    let mut header = vec![0; 4];
    header.extend(low::<2>(i));
    header.extend([0, 0, 0, 0x11, 0, 0x12, 0, 0, 0, 1]);
    Packet {
        port: i as u16,
        rest: header,
        ..Packet::new(MRC_PROBE)
    }
}

/// A request of UET's reliable unordered delivery, with its semantic header.
fn uet(connection: u64, psn: u64) -> Vec<u8> {
    let mut bytes = (2_u16 << 11 | 1 << 7).to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(low::<4>(psn));
    bytes.extend(low::<2>(connection));
    bytes.extend(low::<2>(connection >> 16));
    bytes.extend([1, 0x2b, 2, 0, 0x77, 0xab, 0xcd, 0xef, 6, 0x78, 9, 0xab]);
    bytes.extend([0; 40]);
    ethernet(
        1,
        2,
        0x0800,
        &ip(host(1), host(2), 17, 2, &[], &udp(0xc400, 4793, &bytes)),
    )
}

/// A WRITE of a credit's 32 bytes with an immediate, to an address that grows.
fn credit(i: u64) -> Packet {
    let mut rest = low::<8>(0x7f00_0000_0000 + 64 * i).to_vec();
    rest.extend(7_u32.to_be_bytes());
    rest.extend(32_u32.to_be_bytes());
    rest.extend(low::<4>(i));
    rest.extend(low::<8>(i << 20));
    rest.resize(20 + 32, 0);
    Packet {
        from: 2,
        to: 1,
        qpn: 0x12,
        psn: i,
        rest,
        ..Packet::new(WRITE_IMMEDIATE)
    }
}

fn written(address: u64, key: u64) -> Packet {
    let mut packet = Packet::new(WRITE_ONLY);
    packet.rest[..8].copy_from_slice(&low::<8>(address));
    packet.rest[8..12].copy_from_slice(&low::<4>(key));
    packet.psn = address >> 40;
    packet
}

/// IFA 2.0 in IPv4: its header, UDP, the head of the metadata, and hops of 32 bytes.
fn telemetry(i: u64, hops: u64) -> Vec<u8> {
    let mut packet = Packet::new(WRITE_ONLY);
    packet.psn = i;
    let datagram = udp(0xc000, 4791, &packet.transport());
    let mut bytes = vec![0x2f, 17, 4, 255];
    bytes.extend(&datagram[..8]);
    bytes.extend([0xff, 0, 250, (hops * 8) as u8]);
    for hop in 0..hops {
        bytes.extend(words_be(&[
            1 << 28 | ((i * hops + hop) as u32 & 0xf_ffff) << 8 | 63,
            7 << 28,
            0x11_0021,
            1_000,
            600,
            4_096,
            0,
            0,
        ]));
    }
    bytes.extend(&datagram[8..]);
    ethernet(1, 2, 0x0800, &ip(host(1), host(2), 253, 2, &[], &bytes))
}

fn words_be(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// LRH, then a BTH (link type 247).
fn lids(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcap::of_link(out, 247)?;
    for i in 0..n {
        let transport = Packet {
            qpn: i,
            ..Packet::new(WRITE_ONLY)
        }
        .transport();
        let mut frame = vec![0, 2];
        frame.extend(low::<2>(i + 1));
        frame.extend(low::<2>((transport.len() as u64 + 8) / 4));
        frame.extend(low::<2>(i + 2));
        frame.extend(transport);
        file.add(i * 1_000, &frame)?;
    }
    Ok(())
}

/// Geneve (RFC 8926) around a frame.
fn geneve(i: u64) -> Vec<u8> {
    let mut inner = vec![60, 0, 0x65, 0x58, 0, 0, 7, 0];
    for _ in 0..60 {
        inner.extend([0x01, 0x02, 3, 0]);
    }
    let mut packet = Packet::new(WRITE_ONLY);
    packet.psn = i;
    inner.extend(packet.frame());
    ethernet(
        8,
        9,
        0x0800,
        &ip(host(8), host(9), 17, 0, &[], &udp(0xc000, 6081, &inner)),
    )
}

/// Wireshark's blocks of `of` processes in turn, each before its frame.
fn processes(n: u64, out: &mut dyn Write, of: u64) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    file.section()?;
    file.interface("eth0")?;
    for i in 0..n {
        let pid = (i % of) as u32;
        let name = option(2, format!("process {i}").as_bytes());
        let entry = words(&[32_622, 3, name.len() as u32 + 4, pid]);
        file.block(0x0bad, &[entry, name].concat())?;
        let mut packet = Packet::new(WRITE_ONLY);
        packet.psn = i;
        let owner = [option(8, &words(&[pid, pid])), option(0, &[])].concat();
        file.frame(0, i * 1_000, &packet.frame(), &owner)?;
    }
    Ok(())
}
