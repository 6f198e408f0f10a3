//! Hostile captures of other containers: big-endian files, ERF records.
//!
//! Big-endian files are the project's little-endian ones with each number of the container turned (draft-ietf-opsawg-pcap,
//! draft-ietf-opsawg-pcapng): frames and texts stay as they are.

use std::io::{self, Write};

use super::super::frames::{Packet, Pcap, Random, WRITE_ONLY, low};
use super::{FEW, FLOW, Kind, Memory, capture, cheap, claims, comments, interfaces, sections, stamped};

/// `LINKTYPE_ERF`.
const ERF: u32 = 197;
/// Bytes of a frame at which a record of ERF ends: its length is a number of 16 bits.
const MAX_RECORD: usize = 65_000;

#[rustfmt::skip]
pub(in super::super) const KINDS: &[Kind] = &[
    capture("big-endian", "a big-endian pcap, each packet a new flow of new hosts", FLOW, |n, out| turned(n, out, |n, out| super::packets(n, out, |i, p| { p.from = 2 * i; p.to = 2 * i + 1; p.qpn = i; }))),
    cheap("big-endian-claims", "a big-endian pcap, frames that claim 4 GiB", FEW, |n, out| turned(n, out, claims)),
    Kind { per_thousand: 80, ..capture("big-endian-interfaces", "a big-endian pcapng, as many interfaces as a section may have", FLOW, |n, out| turned(n, out, interfaces)) },
    cheap("big-endian-tiny", "a big-endian pcap, records of one byte", FEW, |n, out| turned(n, out, |n, out| stamped(n, out, |_| vec![0]))),
    capture("big-endian-options", "a big-endian pcapng, 300 options at each frame", FEW, |n, out| turned(n, out, comments)),
    capture("orders", "a pcapng whose sections have both byte orders in turn", FEW, orders),
    cheap("erf", "records of ERF, Ethernet and InfiniBand in turn", Memory::Fixed(384), |n, out| erf(n, out, |i| record(i, if i % 2 == 0 { 2 } else { 21 }, 0))),
    capture("erf-extensions", "records of ERF with 8,000 extension headers", FEW, |n, out| erf(n / 20 + 1, out, |i| record(i, 2, 8_000))),
    capture("erf-endless", "records of ERF whose extension headers do not end", FEW, |n, out| erf(n / 20 + 1, out, |i| record(i, 0x82, 8_000))),
    cheap("erf-types", "records of ERF of each type, with random lengths", FEW, |n, out| { let mut random = Random(5); erf(n, out, move |i| { let mut bytes = record(i, 0, 0); bytes[8..16].copy_from_slice(&random.next().to_be_bytes()); bytes[8] = i.to_le_bytes()[0]; bytes }) }),
];

/// Writes a file with every number of its container turned.
fn turned(
    n: u64,
    out: &mut dyn Write,
    content: impl Fn(u64, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    content(n, &mut bytes)?;
    match bytes.first_chunk() {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => turn_blocks(&mut bytes),
        _ => turn_records(&mut bytes),
    }
    out.write_all(&bytes)
}

fn number(bytes: &[u8], at: usize) -> usize {
    let found = bytes.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |found| u32::from_le_bytes(*found) as usize)
}

/// Turns the numbers of these lengths, in bytes, from `at` on. Returns what is behind them.
fn turn(bytes: &mut [u8], mut at: usize, lengths: &[usize]) -> usize {
    for length in lengths {
        if let Some(number) = bytes.get_mut(at..at + length) {
            number.reverse();
        }
        at += length;
    }
    at
}

/// A pcap: its header, and four numbers before each frame.
fn turn_records(bytes: &mut [u8]) {
    let mut at = turn(bytes, 0, &[4, 2, 2, 4, 4, 4, 4]);
    while at < bytes.len() {
        let length = number(bytes, at + 8);
        at = turn(bytes, at, &[4; 4]) + length;
    }
}

/// A pcapng of sections, interfaces and enhanced packets.
fn turn_blocks(bytes: &mut [u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let (kind, length) = (number(bytes, at), number(bytes, at + 4).max(12));
        let end = at + length - 4;
        let captured = number(bytes, at + 20).next_multiple_of(4);
        let options = match kind {
            1 => turn(bytes, at + 8, &[2, 2, 4]),
            6 => turn(bytes, at + 8, &[4; 5]) + captured,
            // A section without options.
            _ => turn(bytes, at + 8, &[4, 2, 2, 8]),
        };
        turn_options(bytes, options, end);
        turn(bytes, at, &[4, 4]);
        at = turn(bytes, end, &[4]);
    }
}

fn turn_options(bytes: &mut [u8], mut at: usize, end: usize) {
    while at + 4 <= end {
        let length = number(bytes, at) >> 16;
        at = turn(bytes, at, &[2, 2]) + length.next_multiple_of(4);
    }
}

/// A section for each packet, as in [`sections`], every second one turned.
fn orders(n: u64, out: &mut dyn Write) -> io::Result<()> {
    for i in 0..n {
        if i % 2 == 0 {
            sections(1, out)?;
        } else {
            turned(1, out, sections)?;
        }
    }
    Ok(())
}

/// Records of ERF, a microsecond between them.
fn erf(n: u64, out: &mut dyn Write, mut record: impl FnMut(u64) -> Vec<u8>) -> io::Result<()> {
    let mut file = Pcap::of_link(out, ERF)?;
    (0..n).try_for_each(|i| file.add(i * 1_000, &record(i)))
}

/// A record of a WRITE, with extension headers (Endace, "ERF types reference guide"). One of type 0x80 and above has no last of them.
fn record(i: u64, kind: u8, extensions: usize) -> Vec<u8> {
    let packet = Packet {
        psn: i,
        ..Packet::new(WRITE_ONLY)
    };
    let mut content = match kind {
        21 => lrh(&packet),
        _ => [&[0; 2][..], &packet.frame()].concat(),
    };
    let is_endless = kind & 0x80 != 0;
    let mut bytes = vec![0; 8];
    bytes.push(kind | if extensions > 0 { 0x80 } else { 0 });
    bytes.push(4);
    let length = (16 + 8 * extensions + content.len()).min(MAX_RECORD);
    bytes.extend(low::<2>(length as u64));
    bytes.extend([0, 0]);
    bytes.extend(low::<2>(content.len() as u64));
    for extension in 1..=extensions {
        let more = is_endless || extension < extensions;
        bytes.extend([if more { 0x80 } else { 0 }, 0, 0, 0, 0, 0, 0, 0]);
    }
    bytes.append(&mut content);
    bytes.truncate(MAX_RECORD);
    bytes
}

/// The packet behind a local route header (IBTA 7.7).
fn lrh(packet: &Packet) -> Vec<u8> {
    let transport = packet.transport();
    let mut bytes = vec![0, 2, 0, 2];
    bytes.extend(low::<2>((transport.len() as u64 + 8) / 4));
    bytes.extend([0, 1]);
    bytes.extend(transport);
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::super::frames::{Pcapng, option};
    use super::*;

    /// The numbers by hand, in big-endian order: magic, version 2.4, zone, precision, 262,144 bytes, Ethernet; 1 s, 2 ns, 1 byte of 3.
    #[test]
    fn a_pcap_is_turned() {
        let mut found = Vec::new();
        turned(1, &mut found, |_, out| {
            Pcap::new(out)?.cut(1_000_000_002, &[7], 3)
        })
        .unwrap();
        let mut expected = vec![
            0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1,
        ];
        expected.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_pcapng_is_turned() {
        let mut found = Vec::new();
        turned(1, &mut found, |_, out| {
            let mut file = Pcapng::new(out);
            file.section()?;
            file.interface("e")?;
            file.frame(0, 5, &[7], &option(1, b"?"))
        })
        .unwrap();
        let big =
            |values: &[u32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_be_bytes()).collect() };
        let mut expected = big(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 0x0001_0000, u32::MAX, u32::MAX, 28]);
        expected.extend(big(&[1, 40, 0x0001_0000, 0, 0x0002_0001]));
        expected.extend(b"e\0\0\0");
        expected.extend(big(&[0x0009_0001, 0x0900_0000, 0, 40]));
        expected.extend(big(&[6, 44, 0, 0, 5, 1, 1]));
        expected.extend([7, 0, 0, 0, 0, 1, 0, 1, b'?', 0, 0, 0]);
        expected.extend(big(&[44]));
        assert_eq!(found, expected);
    }
}
