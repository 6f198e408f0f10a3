//! Kinds of hostile inputs: what each one writes for a number of items, and the memory that it may take.

#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers of items are cut to the fields of their packets"
)]

pub(super) mod containers;
pub(super) mod texts;
pub(super) mod transports;

use std::io::{self, Write};

use super::frames::{
    ACK, CNP, Packet, Pcap, Pcapng, READ_MIDDLE, READ_REQUEST, Random, SEND_MIDDLE, UD_SEND, WRITE_MIDDLE,
    WRITE_ONLY, cm, ethernet, host, ip, option, pfc, udp,
};

/// Memory that a run of one kind may take.
#[derive(Clone, Copy)]
pub(super) enum Memory {
    /// At most this many MB, however many items there are.
    Fixed(u64),
    /// At most 128 MB and this many bytes for each item: kinds whose items are flows, each of which has a row.
    PerItem(u64),
}

/// Where the items go.
pub(super) enum Form {
    /// A capture.
    Capture(fn(u64, &mut dyn Write) -> io::Result<()>),
    /// A capture that is compressed by a program: its ending.
    Compressed(&'static str, fn(u64, &mut dyn Write) -> io::Result<()>),
    /// Two captures of the same packets.
    Twice(fn(u64, &mut dyn Write) -> io::Result<()>),
    /// A file that this option names, beside a small capture.
    File(&'static str, fn(u64, &mut dyn Write) -> io::Result<()>),
}

pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Items for each thousand of the chosen size: cheap ones are more.
    pub(super) per_thousand: u64,
    pub(super) memory: Memory,
    pub(super) form: Form,
}

/// Bytes that a flow may take with its rows, in any output.
const FLOW: Memory = Memory::PerItem(16_384);
/// Memory of a run of few flows.
const FEW: Memory = Memory::Fixed(256);
/// Memory of a run of few flows whose packets come for bins that are over. Each makes a row of its own, in some sixty columns of one value,
/// while it waits between two threads.
const ROW_EACH: Memory = Memory::Fixed(512);

const fn capture(
    name: &'static str,
    about: &'static str,
    memory: Memory,
    write: fn(u64, &mut dyn Write) -> io::Result<()>,
) -> Kind {
    Kind {
        name,
        about,
        per_thousand: 1_000,
        memory,
        form: Form::Capture(write),
    }
}

/// A kind whose items take about a microsecond.
const fn cheap(
    name: &'static str,
    about: &'static str,
    memory: Memory,
    write: fn(u64, &mut dyn Write) -> io::Result<()>,
) -> Kind {
    Kind {
        per_thousand: 4_000,
        ..capture(name, about, memory, write)
    }
}

#[rustfmt::skip]
pub(super) const KINDS: &[Kind] = &[
    capture("flows", "each packet a new flow of new hosts", FLOW, |n, out| packets(n, out, |i, p| { p.from = 2 * i; p.to = 2 * i + 1; p.qpn = i; })),
    capture("queue-pairs", "each packet a new queue pair of two hosts", FLOW, |n, out| packets(n, out, |i, p| p.qpn = i + 16)),
    capture("senders", "new senders to one destination, all marked", FLOW, |n, out| packets(n, out, |i, p| { p.from = i + 10; p.qpn = i; p.ce = true; })),
    capture("destinations", "one sender to new destinations, all marked", FLOW, |n, out| packets(n, out, |i, p| { p.to = i + 10; p.qpn = i; p.ce = true; })),
    capture("datagrams", "UD from new queue pairs", FLOW, datagrams),
    cheap("connections", "new REQ and REP of the connection manager", Memory::Fixed(384), connections),
    capture("unanswered", "REQ of new hosts, each twice, that nobody answers", FLOW, unanswered),
    capture("connected", "a REQ and a REP for each data packet of a new queue pair", FLOW, connected),
    capture("half-open", "requests of new flows that nobody answers", FLOW, |n, out| packets(n, out, |i, p| { *p = Packet::new(READ_REQUEST); p.from = i + 10; p.qpn = i; })),
    capture("answers", "ACKs of new queue pairs without data", FLOW, |n, out| packets(n, out, |i, p| { *p = Packet::new(ACK); p.qpn = i + 16; })),
    cheap("cnps", "CNPs to queue pairs that nobody has", Memory::PerItem(768), |n, out| packets(n, out, |i, p| { *p = Packet::new(CNP); p.qpn = i + 16; })),
    cheap("cnp-receivers", "CNPs to new hosts", Memory::PerItem(768), |n, out| packets(n, out, |i, p| { *p = Packet::new(CNP); p.to = i + 16; })),
    cheap("gaps", "one flow, every second packet missing", FEW, |n, out| packets(n, out, |i, p| { *p = Packet::new(WRITE_MIDDLE); p.psn = 2 * i; })),
    cheap("gaps-of-many", "4,096 flows, every second packet missing", Memory::Fixed(768), |n, out| packets(n, out, |i, p| { *p = Packet::new(WRITE_MIDDLE); p.qpn = i % 4_096; p.psn = i / 4_096 * 2; })),
    cheap("wide-gaps", "jumps of 4 million PSNs to and fro", FEW, |n, out| packets(n, out, |i, p| { *p = Packet::new(SEND_MIDDLE); p.psn = i % 2 * 0x3f_ffff + i; })),
    capture("random-psns", "one flow with random PSNs", FEW, |n, out| scattered(n, out, 1)),
    cheap("random-psns-of-many", "4,096 flows with random PSNs", Memory::Fixed(768), |n, out| scattered(n, out, 4_096)),
    cheap("backwards", "PSNs that fall", FEW, |n, out| packets(n, out, |i, p| { *p = Packet::new(WRITE_MIDDLE); p.psn = 0xff_ffff - i; })),
    cheap("copies", "one packet again and again", FEW, |n, out| packets(n, out, |_, _| ())),
    cheap("naks", "NAKs for sequence errors, each of another PSN", FEW, |n, out| answers(n, out, 0x60)),
    cheap("rnr-naks", "RNR NAKs, each of another PSN", FEW, |n, out| answers(n, out, 0x21)),
    cheap("reads", "READ requests without responses", FEW, |n, out| packets(n, out, |i, p| { *p = Packet::new(READ_REQUEST); p.psn = 16 * i; })),
    cheap("responses", "READ responses with gaps, and requests among them", FEW, responses),
    cheap("pauses", "PFC frames of new senders", FEW, |n, out| stamped(n, out, |i| pfc(i, 0xffff))),
    cheap("pause-storm", "PFC frames of 1,000 senders, on and off", FEW, |n, out| stamped(n, out, |i| pfc(i % 1_000, if i % 2_000 < 1_000 { 0xffff } else { 0 }))),
    capture("bursts", "bursts of 64 senders, each to a new destination", FLOW, |n, out| timed(n, out, |i, p| { p.from = i % 64; p.to = i / 64 + 100; p.qpn = i; p.ce = true; i / 64 * 20_000_000 + i % 64 * 100 })),
    cheap("episodes", "4,096 destinations, congested again and again", Memory::Fixed(768), |n, out| timed(n, out, |i, p| { p.from = i % 3; p.to = i / 3 % 1_024 + 100; p.psn = i / 3_072; p.ce = true; i / 3_072 * 50_000_000 + i % 3_072 * 1_000 })),
    cheap("pairs", "2,000 pairs that alternate bursts and silence", Memory::Fixed(768), |n, out| timed(n, out, |i, p| { p.from = i % 2_000; p.to = i % 2_000 + 5_000; p.psn = i / 2_000; i / 2_000 * 30_000_000 + i % 2_000 * 1_000 })),
    cheap("sparse", "one flow, 10 s between packets", FEW, |n, out| timed(n, out, |i, p| { p.psn = i; i * 10_000_000_000 })),
    cheap("scattered-stamps", "stamps at random in one second", ROW_EACH, |n, out| { let mut random = Random(1); timed(n, out, move |i, p| { p.psn = i; random.below(1_000_000_000) }) }),
    cheap("falling-stamps", "each stamp before the last one", FEW, |n, out| timed(n, out, move |i, p| { p.psn = i; (n - i) * 1_000 })),
    cheap("jumping-stamps", "stamps that jump by 100 s to and fro", FEW, |n, out| timed(n, out, |i, p| { p.psn = i; i % 2 * 100_000_000_000 + i * 1_000 })),
    cheap("one-moment", "all packets in one nanosecond", FEW, |n, out| timed(n, out, |i, p| { p.psn = i; 0 })),
    cheap("tunnels", "eight tunnels in each other", FEW, |n, out| stamped(n, out, tunnels)),
    cheap("too-deep", "twenty tunnels in each other", FEW, |n, out| stamped(n, out, |i| nested(i, 20))),
    capture("networks", "a new overlay network for each packet", FLOW, |n, out| stamped(n, out, |i| vxlan(i, &Packet::new(WRITE_ONLY).frame()))),
    capture("mirrors", "a new mirror session for each packet", FLOW, |n, out| stamped(n, out, mirror)),
    cheap("options", "40 bytes of IPv4 options", FEW, |n, out| packets(n, out, |i, p| { p.psn = i; p.options = vec![1; 40]; })),
    cheap("extensions", "100 IPv6 extension headers", FEW, |n, out| stamped(n, out, extensions)),
    capture("tags", "300 VLAN tags", FEW, |n, out| stamped(n, out, |_| tags())),
    cheap("cut", "frames cut behind each byte in turn", FEW, cut),
    cheap("claims", "frames that claim 4 GiB", FEW, claims),
    cheap("fragments", "fragments of new datagrams", FEW, |n, out| stamped(n, out, fragment)),
    Kind { per_thousand: 10_000, ..capture("tiny", "records of one byte", FEW, |n, out| stamped(n, out, |_| vec![0])) },
    capture("sections", "a section for each packet", FEW, sections),
    Kind { per_thousand: 80, ..capture("interfaces", "as many interfaces as a section may have, each a tap with one flow", FLOW, interfaces) },
    Kind { per_thousand: 80, ..capture("taps-losses", "as many interfaces, each with a flow that the next one sees, too, but for a packet that is lost between them", Memory::PerItem(40_960), taps_losses) },
    cheap("drops", "a count of drops with each packet", FEW, drops),
    Kind { per_thousand: 200, ..capture("names", "blocks of names of 60 kB", FEW, |n, out| names(n, out, 4)) },
    Kind { per_thousand: 200, ..capture("unknown-blocks", "blocks of unknown types, 60 kB each", FEW, |n, out| names(n, out, 0x8000_1234)) },
    Kind { per_thousand: 1_000, ..capture("block-options", "300 options at each frame", FEW, comments) },
    cheap("host-queue-pairs", "reports of new queue pairs of a host", Memory::Fixed(384), |n, out| reports(n, out, 1)),
    cheap("host-counters", "reports of new counters of a host", Memory::Fixed(384), |n, out| reports(n, out, 13)),
    cheap("samples", "samples of new devices", Memory::Fixed(384), samples),
    Kind { per_thousand: 20_000, form: Form::Compressed("gz", |n, out| stamped(n, out, |_| vec![0; 60])), ..capture("bomb-gzip", "frames of zeros, in gzip", FEW, |_, _| Ok(())) },
    Kind { per_thousand: 20_000, form: Form::Compressed("zst", |n, out| stamped(n, out, |_| vec![0; 60])), ..capture("bomb-zstd", "frames of zeros, in zstd", FEW, |_, _| Ok(())) },
    Kind { form: Form::Twice(|n, out| packets(n, out, |i, p| { p.psn = i; p.qpn = i % 64; })), ..capture("two-taps", "two captures of the same packets", Memory::Fixed(384), |_, _| Ok(())) },
    Kind { form: Form::Twice(|n, out| packets(n, out, |_, _| ())), ..capture("two-taps-alike", "two captures of one packet again and again", Memory::Fixed(384), |_, _| Ok(())) },
    Kind { form: Form::Twice(|n, out| packets(n, out, |i, p| { p.from = 2 * i; p.to = 2 * i + 1; })), ..capture("two-taps-flows", "two captures of ever new flows", Memory::PerItem(40_960), |_, _| Ok(())) },
];

/// A microsecond between packets.
fn packets(n: u64, out: &mut dyn Write, mut change: impl FnMut(u64, &mut Packet)) -> io::Result<()> {
    timed(n, out, |i, packet| {
        change(i, packet);
        i * 1_000
    })
}

/// Packets, and the time of each in nanoseconds.
fn timed(n: u64, out: &mut dyn Write, mut change: impl FnMut(u64, &mut Packet) -> u64) -> io::Result<()> {
    let mut file = Pcap::new(out)?;
    for i in 0..n {
        let mut packet = Packet::new(WRITE_ONLY);
        let time = change(i, &mut packet);
        file.add(1_000_000_000_000 + time, &packet.frame())?;
    }
    Ok(())
}

/// Frames, a microsecond between them.
fn stamped(n: u64, out: &mut dyn Write, frame: impl Fn(u64) -> Vec<u8>) -> io::Result<()> {
    let mut file = Pcap::new(out)?;
    (0..n).try_for_each(|i| file.add(i * 1_000, &frame(i)))
}

fn datagrams(n: u64, out: &mut dyn Write) -> io::Result<()> {
    packets(n, out, |i, packet| {
        *packet = Packet::new(UD_SEND);
        packet.qpn = 0x20;
        packet.rest[5..8].copy_from_slice(&(i as u32).to_be_bytes()[1..]);
    })
}

fn connections(n: u64, out: &mut dyn Write) -> io::Result<()> {
    packets(n, out, |i, packet| {
        *packet = match i % 2 {
            0 => cm(1, 2, 0x10, i / 2, i),
            _ => cm(2, 1, 0x13, i / 2, i),
        };
    })
}

/// Each request is sent again once all were sent.
fn unanswered(n: u64, out: &mut dyn Write) -> io::Result<()> {
    packets(n, out, |i, packet| {
        let pair = i % n.div_ceil(2);
        *packet = cm(2 * pair, 2 * pair + 1, 0x10, pair, pair);
    })
}

fn connected(n: u64, out: &mut dyn Write) -> io::Result<()> {
    packets(n, out, |i, packet| match i % 3 {
        0 => *packet = cm(1, 2, 0x10, i / 3, i),
        1 => *packet = cm(2, 1, 0x13, i / 3, i),
        // To the queue pair of the REP.
        _ => packet.qpn = i - 1,
    })
}

fn scattered(n: u64, out: &mut dyn Write, flows: u64) -> io::Result<()> {
    let mut random = Random(2);
    timed(n, out, move |i, packet| {
        *packet = Packet::new(WRITE_MIDDLE);
        packet.qpn = i % flows;
        packet.psn = random.below(1 << 24);
        i * 1_000
    })
}

/// Data, and after each packet of it an answer of `syndrome` with a PSN of its own.
fn answers(n: u64, out: &mut dyn Write, syndrome: u8) -> io::Result<()> {
    packets(n, out, |i, packet| {
        if i % 2 == 0 {
            *packet = Packet::new(WRITE_MIDDLE);
            packet.psn = i;
        } else {
            *packet = Packet::new(ACK);
            (packet.from, packet.to) = (2, 1);
            packet.psn = i.wrapping_mul(7);
            packet.rest[0] = syndrome;
        }
    })
}

fn responses(n: u64, out: &mut dyn Write) -> io::Result<()> {
    packets(n, out, |i, packet| {
        if i % 8 == 0 {
            *packet = Packet::new(READ_REQUEST);
            packet.psn = i * 2;
        } else {
            *packet = Packet::new(READ_MIDDLE);
            (packet.from, packet.to, packet.qpn) = (2, 1, 0x12);
            packet.psn = i * 2;
        }
    })
}

fn vxlan(network: u64, frame: &[u8]) -> Vec<u8> {
    let mut inner = vec![8, 0, 0, 0];
    inner.extend(&((network as u32) << 8).to_be_bytes());
    inner.extend(frame);
    let udp = udp(0xc001, 4789, &inner);
    ethernet(8, 9, 0x0800, &ip(host(8), host(9), 17, 0, &[], &udp))
}

fn nested(i: u64, depth: u64) -> Vec<u8> {
    let mut packet = Packet::new(WRITE_ONLY);
    packet.psn = i;
    (0..depth).fold(packet.frame(), |frame, level| vxlan(level, &frame))
}

fn tunnels(i: u64) -> Vec<u8> {
    nested(i, 8)
}

/// ERSPAN type II in GRE with a sequence number, from a new source and session.
fn mirror(i: u64) -> Vec<u8> {
    let mut gre = vec![0x10, 0, 0x88, 0xbe];
    gre.extend((i as u32).to_be_bytes());
    gre.extend([0x10, 1]);
    gre.extend(((i % 1_024) as u16).to_be_bytes());
    gre.extend([0, 0, 0, 1]);
    gre.extend(Packet::new(WRITE_ONLY).frame());
    ethernet(8, 9, 0x0800, &ip(host(1_000 + i), host(9), 47, 0, &[], &gre))
}

/// Destination options of 8 bytes in each other (RFC 8200, 4.6), then UDP.
fn extensions(i: u64) -> Vec<u8> {
    let packet = Packet {
        psn: i,
        ..Packet::new(WRITE_ONLY)
    };
    let frame = packet.frame();
    let udp = frame.get(34..).unwrap_or_default();
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(((800 + udp.len()) as u16).to_be_bytes());
    bytes.extend([60, 64]);
    bytes.extend([0xfd; 32]);
    for header in 0..100 {
        bytes.extend([if header == 99 { 17 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
    }
    bytes.extend(udp);
    ethernet(1, 2, 0x86dd, &bytes)
}

fn tags() -> Vec<u8> {
    let mut payload = Vec::new();
    for _ in 1..300 {
        payload.extend([0, 7, 0x81, 0]);
    }
    payload.extend([0, 7, 8, 0]);
    payload.extend(&Packet::new(WRITE_ONLY).frame()[14..]);
    ethernet(1, 2, 0x8100, &payload)
}

fn cut(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcap::new(out)?;
    let frame = nested(1, 4);
    for i in 0..n {
        let end = i as usize % frame.len();
        file.cut(i * 1_000, &frame[..end], frame.len() as u32)?;
    }
    Ok(())
}

fn claims(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcap::new(out)?;
    for i in 0..n {
        let mut packet = Packet::new(WRITE_ONLY);
        packet.psn = i;
        let mut frame = packet.frame();
        // The length of the IPv4 packet and of UDP.
        frame[16..18].fill(0xff);
        frame[38..40].fill(0xff);
        file.cut(i * 1_000, &frame, u32::MAX)?;
    }
    Ok(())
}

fn fragment(i: u64) -> Vec<u8> {
    let mut frame = Packet::new(WRITE_ONLY).frame();
    frame[18..20].copy_from_slice(&(i as u16).to_be_bytes());
    frame[20..22].copy_from_slice(&[0x20, (i % 3) as u8]);
    frame
}

fn sections(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    for i in 0..n {
        file.section()?;
        file.interface("eth0")?;
        let mut packet = Packet::new(WRITE_ONLY);
        packet.psn = i;
        file.frame(0, i * 1_000, &packet.frame(), &[])?;
    }
    Ok(())
}

/// At most 16,384 interfaces are read.
fn interfaces(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    file.section()?;
    for i in 0..n {
        file.interface(&format!("{i:0>200}"))?;
    }
    let mut packet = Packet::new(WRITE_ONLY);
    for i in 0..n {
        packet.qpn = i;
        file.frame(i as u32, i * 1_000, &packet.frame(), &[])?;
    }
    Ok(())
}

/// Each flow passes two interfaces. The second one does not see PSN 3, which the sender repeats with all that follows (go-back-N).
fn taps_losses(n: u64, out: &mut dyn Write) -> io::Result<()> {
    const LOST: u64 = 3;
    let mut file = Pcapng::new(out);
    file.section()?;
    for i in 0..=n {
        file.interface(&format!("{i:0>200}"))?;
    }
    for i in 0..n {
        let mut packet = Packet::new(WRITE_ONLY);
        (packet.from, packet.to, packet.qpn) = (2 * i, 2 * i + 1, i + 16);
        for (at, psn) in (0..6).chain(LOST..8).enumerate() {
            packet.psn = psn;
            let time = (i * 16 + at as u64) * 10_000;
            file.frame(i as u32, time, &packet.frame(), &[])?;
            if at as u64 != LOST {
                file.frame(i as u32 + 1, time + 1_000, &packet.frame(), &[])?;
            }
        }
    }
    Ok(())
}

fn drops(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    file.section()?;
    file.interface("eth0")?;
    let dropped = option(4, &3_u64.to_le_bytes());
    let mut packet = Packet::new(WRITE_ONLY);
    for i in 0..n {
        packet.psn = i;
        file.frame(0, i * 1_000, &packet.frame(), &dropped)?;
    }
    Ok(())
}

fn names(n: u64, out: &mut dyn Write, kind: u32) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    file.section()?;
    file.interface("eth0")?;
    let mut body = option(1, &vec![0x41; 60_000]);
    body.extend(option(0, &[]));
    for i in 0..n {
        file.block(kind, &body)?;
        let mut packet = Packet::new(WRITE_ONLY);
        packet.psn = i;
        file.frame(0, i * 1_000, &packet.frame(), &[])?;
    }
    Ok(())
}

fn comments(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    file.section()?;
    file.interface("eth0")?;
    let options = option(1, b"?").repeat(300);
    let mut packet = Packet::new(WRITE_ONLY);
    for i in 0..n {
        packet.psn = i;
        file.frame(0, i * 1_000, &packet.frame(), &options)?;
    }
    Ok(())
}

/// Blocks of a recording (`analyzer/model/src/recording`): queue pairs that were created, or counters, each with a name of its own.
fn reports(n: u64, out: &mut dyn Write, tag: u8) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    file.section()?;
    file.interface("eth0")?;
    for i in 0..n {
        let mut body = (1_000_000_000 + i * 1_000).to_le_bytes().to_vec();
        let device = format!("mlx5_{}", i % 2_000);
        body.push(1);
        body.extend((device.len() as u16).to_le_bytes());
        body.extend(device.as_bytes());
        // No process.
        body.push(0);
        body.push(tag);
        if tag == 1 {
            body.extend((i as u32 & 0xff_ffff).to_le_bytes());
            body.extend([2, 0, b'R', b'C']);
        } else {
            for text in ["reset", &format!("counter_{i}")] {
                body.extend((text.len() as u16).to_le_bytes());
                body.extend(text.as_bytes());
            }
            // No priority and no further labels.
            body.extend([0, 0]);
            body.extend(i.to_le_bytes());
        }
        file.block(0x8072_6f68, &body)?;
        let mut packet = Packet::new(WRITE_ONLY);
        packet.psn = i;
        file.frame(0, 1_000_000_000 + i * 1_000, &packet.frame(), &[])?;
    }
    Ok(())
}

/// Samples of a recording: CNPs of ports that nobody has seen before.
fn samples(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Pcapng::new(out);
    file.section()?;
    file.interface("eth0")?;
    for i in 0..n {
        let time = 1_000_000_000 + i * 1_000;
        let mut body = time.to_le_bytes().to_vec();
        for text in ["host", "h1", &format!("mlx5_{i}:1"), "port_cnp_sent"] {
            body.extend((text.len() as u16).to_le_bytes());
            body.extend(text.as_bytes());
        }
        // No priority, queue and further labels; the value, its change, the interval in ns, and no reset.
        body.extend([0, 0, 0]);
        body.extend(5_f64.to_le_bytes());
        body.push(1);
        body.extend(5_f64.to_le_bytes());
        body.push(1);
        body.extend(1_000_u64.to_le_bytes());
        body.push(0);
        file.block(0x8072_6f73, &body)?;
        let mut packet = Packet::new(WRITE_ONLY);
        packet.psn = i;
        file.frame(0, time, &packet.frame(), &[])?;
    }
    Ok(())
}
