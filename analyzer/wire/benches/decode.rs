//! Cost of decoding a frame: the fast path, the general path, and etherparse's LaxSlicedPacket alone;
//! and of the ICRC.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use etherparse::LaxSlicedPacket;
use roce_wire::transport::mrc;
use roce_wire::{Content, LinkType, decode, fast, general, icrc};

/// Ethernet, IPv4 and UDP around `bth_on`, ICRC bytes not filled in.
fn frame(bth_on: &[u8], flow: u8) -> Vec<u8> {
    let udp = u16::try_from(8 + bth_on.len()).unwrap_or(0);
    let mut bytes = vec![2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 0x08, 0x00];
    bytes.extend([0x45, 0x6a]);
    bytes.extend((udp + 20).to_be_bytes());
    bytes.extend([0, flow, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, flow, 10, 0, 1, flow]);
    bytes.extend([0xc0, flow, 0x12, 0xb7]);
    bytes.extend(udp.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(bth_on);
    bytes
}

/// From the BTH to the ICRC.
fn transport(opcode: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![opcode, 0, 0xff, 0xff, 0, 0, 1, 2, 0, 0, 3, 4];
    bytes.resize(length, 0x5a);
    bytes
}

struct CapturedFrame {
    bytes: Vec<u8>,
    original: u32,
}

/// A mix as on a wire: WRITEs of several packets, ACKs, READ responses, SENDs, CNPs; cut at 96 bytes.
fn mixed() -> Vec<CapturedFrame> {
    let kinds = [
        (0x06, 12 + 16 + 1024 + 4),
        (0x07, 12 + 1024 + 4),
        (0x07, 12 + 1024 + 4),
        (0x08, 12 + 512 + 4),
        (0x11, 12 + 4 + 4),
        (0x04, 12 + 256 + 4),
        (0x0d, 12 + 4 + 1024 + 4),
        (0x0e, 12 + 1024 + 4),
        (0x0c, 12 + 16 + 4),
        (0x64, 12 + 8 + 1024 + 4),
        (0x81, 12 + 16 + 4),
    ];
    (0..256_usize)
        .map(|i| {
            // Steps that share no factor with the number of kinds, so that no pattern can be learned quickly.
            let (opcode, length) = kinds[(i * i + i / 7) % kinds.len()];
            let mut bytes = frame(&transport(opcode, length), u8::try_from(i % 251).unwrap_or(0));
            let original = u32::try_from(bytes.len()).unwrap_or(0);
            bytes.truncate(96);
            CapturedFrame { bytes, original }
        })
        .collect()
}

/// Data, and for each fourth packet an answer: their opcodes, the bytes of their headers, and what is kept of a frame.
fn answered(kinds: [(u8, usize); 2], kept: usize) -> Vec<CapturedFrame> {
    (0..250_usize)
        .map(|i| {
            let (opcode, headers) = kinds[usize::from(i % 5 == 4)];
            let data = if i % 5 == 4 { 0 } else { 1024 };
            let mut transport = transport(opcode, 12 + headers + data + 4);
            // MRC: a stamp follows.
            transport[8] = if opcode >= 0xc0 { 0x10 } else { 0 };
            let mut bytes = frame(&transport, u8::try_from(i).unwrap_or(0));
            let original = u32::try_from(bytes.len()).unwrap_or(0);
            bytes.truncate(kept);
            CapturedFrame { bytes, original }
        })
        .collect()
}

/// A packet of MRC against one of RoCE: decoding, and the headers of MRC.
fn multipath(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode MRC");
    // WRITE Middle with METH, TSETH and RETH, and SACK; WRITE Middle, and ACK.
    for (name, frames) in [
        ("MRC", answered([(0xc7, 24), (0xdc, 36)], 192)),
        ("RoCE", answered([(0x07, 0), (0x11, 4)], 96)),
    ] {
        group.throughput(Throughput::Elements(frames.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                for f in black_box(&frames) {
                    let decoded = decode(LinkType::ETHERNET, &f.bytes, f.original);
                    if let Content::Roce(packet) = &decoded.content
                        && mrc::may_be(packet.bth.0[0])
                    {
                        black_box(mrc::parse(&f.bytes[usize::from(packet.bth_offset)..]));
                    }
                    black_box(&decoded);
                }
            });
        });
    }
    group.finish();
}

fn decoding(c: &mut Criterion) {
    let frames = mixed();
    let mut group = c.benchmark_group("decode");
    group.throughput(Throughput::Elements(frames.len() as u64));
    /// One pass over the frames; results are looked at where they are, not copied.
    macro_rules! batch {
        ($name:literal, $run:expr) => {
            group.bench_function($name, |b| {
                b.iter(|| {
                    for f in black_box(&frames) {
                        black_box(&$run(f));
                    }
                })
            });
        };
    }
    batch!("fast", |f: &CapturedFrame| fast::decode(
        LinkType::ETHERNET,
        &f.bytes,
        f.original
    ));
    batch!("decode", |f: &CapturedFrame| decode(
        LinkType::ETHERNET,
        &f.bytes,
        f.original
    ));
    batch!("general", |f: &CapturedFrame| general::decode(
        LinkType::ETHERNET,
        &f.bytes,
        f.original
    ));
    batch!("etherparse alone", |f: &CapturedFrame| {
        LaxSlicedPacket::from_ethernet(&f.bytes).is_ok()
    });
    group.finish();

    // Decodes into a vector that is reused, as a reader of batches does.
    let mut group = c.benchmark_group("decode into a batch");
    group.throughput(Throughput::Elements(frames.len() as u64));
    let mut packets = Vec::with_capacity(frames.len());
    group.bench_function("fast", |b| {
        b.iter(|| {
            packets.clear();
            packets.extend(
                frames
                    .iter()
                    .filter_map(|f| fast::decode(LinkType::ETHERNET, &f.bytes, f.original)),
            );
            black_box(packets.len())
        });
    });
    group.finish();

    let mut tcp = frame(&transport(0, 60), 1);
    tcp[14 + 9] = 6;
    c.bench_function("decode TCP", |b| {
        b.iter(|| black_box(decode(LinkType::ETHERNET, black_box(&tcp), 114)));
    });
    // VXLAN around a plain frame.
    let inner = frame(&transport(0x07, 60), 2);
    let mut udp = vec![8, 0, 0, 0, 0, 1, 2, 0];
    udp.extend(&inner);
    let mut vxlan = frame(&udp, 3);
    (vxlan[36], vxlan[37]) = (0x12, 0xb5);
    let original = u32::try_from(vxlan.len()).unwrap_or(0);
    c.bench_function("decode VXLAN", |b| {
        b.iter(|| black_box(decode(LinkType::ETHERNET, black_box(&vxlan), original)));
    });
}

fn checking(c: &mut Criterion) {
    let bytes = frame(&transport(0x07, 12 + 1024 + 4), 1);
    let roce = fast::decode(
        LinkType::ETHERNET,
        &bytes,
        u32::try_from(bytes.len()).unwrap_or(0),
    )
    .unwrap_or_default();
    let mut group = c.benchmark_group("icrc");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("check", |b| {
        b.iter(|| icrc::check(black_box(&bytes), black_box(&roce)));
    });
    group.bench_function("crc32fast alone", |b| {
        b.iter(|| crc32fast::hash(black_box(&bytes)));
    });
    group.finish();
}

criterion_group!(benches, decoding, multipath, checking);
criterion_main!(benches);
