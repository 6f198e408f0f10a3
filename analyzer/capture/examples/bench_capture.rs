//! Makes the captures that `cargo xtask bench` measures with: always the same bytes for the same arguments.
//!
//!     bench_capture OUT --packets N --flows F --captured 96|full --per-row K [--marked-in M] [--notified-in C]
//!
//! The file is pcap with ns stamps. F/2 RoCEv2 connections over IPv4, between 64 senders and 64
//! receivers, make F flows: data in one direction, ACKs in the other. Each connection sends RC RDMA
//! WRITEs of 16 KiB (First, 14 Middle, Last; path MTU 1024), and one ACK answers each. PSNs rise by one,
//! so nothing is missing. Data is ECT(0), and one in M of it is CE (default 100). A CNP follows one in C of
//! the marks (default 10). Headers, lengths, checksums and ICRCs are right. With `--captured 96`, longer
//! frames are cut to 96 bytes and give their full length.
//!
//! With `--hostile`, each packet is a flow of its own: the first of a message, to another queue pair.
//!
//! K is how many packets a row of the timeline has on average, with bins of 1 ms: every connection that is active
//! in a bin sends a burst of it in that bin. All connections are active in every bin, unless stamps would be
//! closer than 1 ns; then as many as fit, the next ones in the next bin. The packets of all bursts of a bin are
//! mixed, in another order in every round, so that neighbours in the file are of different flows: the least
//! friendly case for caches. The time between packets follows from that: 134 ns at 4,096 flows and K = 3.
//!
//! Random numbers are splitmix64 from seed 0x526f434576322121. Says at its end how many packets, flows and rows
//! (pairs of flow and bin) there are, as `key value` lines.

#![expect(clippy::print_stdout, reason = "an example for a terminal")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "fields of headers take the low bits; burst lengths are small"
)]

use std::env;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// 2027-01-15 08:00:00 UTC, in ns: the begin of a bin.
const START: u64 = 1_800_000_000_000_000_000;
const BIN: u64 = 1_000_000;
const MESSAGE_PACKETS: u32 = 16;
const MTU: usize = 1024;
const SEED: u64 = 0x526f_4345_7632_2121;

const WRITE_FIRST: u8 = 0x06;
const WRITE_MIDDLE: u8 = 0x07;
const WRITE_LAST: u8 = 0x08;
const ACK: u8 = 0x11;
const CNP: u8 = 0x81;

fn main() -> io::Result<()> {
    let options = Options::parse(env::args().skip(1))
        .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
    let file = BufWriter::with_capacity(1 << 20, File::create(&options.out)?);
    let made = Generator::new(&options, file).run()?;
    println!(
        "packets {}\nflows {}\nrows {}",
        made.packets, made.flows, made.rows
    );
    Ok(())
}

struct Options {
    out: String,
    packets: u64,
    flows: usize,
    captured: usize,
    per_row: f64,
    marked_in: u64,
    notified_in: u64,
    hostile: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let usage = "bench_capture OUT --packets N --flows F --captured 96|full --per-row K [--marked-in M] [--notified-in C] [--hostile]";
        let mut options = Self {
            out: String::new(),
            packets: 10_000_000,
            flows: 4096,
            captured: 96,
            per_row: 30.0,
            marked_in: 100,
            notified_in: 10,
            hostile: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} needs a value\nhint: {usage}"))
            };
            let wrong = |text: &str| format!("'{text}' is not a number\nhint: {usage}");
            match argument.as_str() {
                "--packets" => options.packets = value()?.parse().map_err(|_| wrong("--packets"))?,
                "--flows" => options.flows = value()?.parse().map_err(|_| wrong("--flows"))?,
                "--marked-in" => options.marked_in = value()?.parse().map_err(|_| wrong("--marked-in"))?,
                "--notified-in" => {
                    options.notified_in = value()?.parse().map_err(|_| wrong("--notified-in"))?;
                }
                "--hostile" => options.hostile = true,
                "--per-row" => options.per_row = value()?.parse().map_err(|_| wrong("--per-row"))?,
                "--captured" => {
                    let text = value()?;
                    options.captured = if text == "full" {
                        usize::MAX
                    } else {
                        text.parse().map_err(|_| wrong(&text))?
                    };
                }
                _ if options.out.is_empty() => options.out = argument,
                other => return Err(format!("'{other}' is not understood\nhint: {usage}")),
            }
        }
        if options.out.is_empty() || options.flows < 2 || !(1.1..=100.0).contains(&options.per_row) {
            return Err(format!(
                "an output, two flows or more, and 1.1 to 100 packets a row\nhint: {usage}"
            ));
        }
        Ok(options)
    }

    /// Data packets of one connection in one bin such that rows have `per_row` packets on average.
    fn burst(&self) -> f64 {
        let message = f64::from(MESSAGE_PACKETS);
        let with_ack = message + 1.0;
        // A message and its ACK are 17 packets. Bursts shorter than a message: 16 / burst rows of data and one row
        // of the ACK. Longer ones: one row of data and one of ACKs, and (burst / 16) * 17 packets.
        let short = message * self.per_row / (with_ack - self.per_row);
        if self.per_row < with_ack && short <= message {
            short
        } else {
            2.0 * self.per_row * message / with_ack
        }
    }
}

/// splitmix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True once in `one_in` times.
    fn once_in(&mut self, one_in: u64) -> bool {
        self.next().is_multiple_of(one_in)
    }

    /// 0 to 1, without 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One connection: what its sender does.
#[derive(Clone)]
struct Connection {
    sender: u8,
    receiver: u8,
    sport: u16,
    /// At the sender: ACKs and CNPs go to it.
    sender_qpn: u32,
    /// At the receiver: data go to it.
    receiver_qpn: u32,
    psn: u32,
    /// Packets of the message that were sent.
    sent: u32,
    messages: u32,
    /// The bins in which it last sent and was last answered; for counting rows.
    data_bin: u64,
    ack_bin: u64,
    /// Data packets left of its burst in this bin.
    left: u16,
}

impl Connection {
    fn new(number: usize, random: &mut Random) -> Self {
        let sender_qpn = 0x0100 + 2 * number as u32;
        let receiver_qpn = 0x1_0000 + 3 * number as u32;
        Self {
            sender: (number % 64) as u8,
            receiver: ((number / 64 + 7 * (number % 64)) % 64) as u8,
            sport: source_port(sender_qpn, receiver_qpn),
            sender_qpn,
            receiver_qpn,
            psn: random.next() as u32 & 0xff_ffff,
            sent: 0,
            messages: 0,
            data_bin: u64::MAX,
            ack_bin: u64::MAX,
            left: 0,
        }
    }
}

/// The UDP source port as Linux chooses it (`rdma_calc_flow_label`, `rdma_flow_label_to_udp_sport`).
fn source_port(a: u32, b: u32) -> u16 {
    let mut v = u64::from(a) * u64::from(b);
    v ^= v >> 20;
    v ^= v >> 40;
    let label = v as u32 & 0xf_ffff;
    0xc000 | ((label & 0x3fff) ^ ((label & 0xf_c000) >> 14)) as u16
}

/// Contents of a packet, besides its addresses.
struct Packet {
    opcode: u8,
    qpn: u32,
    psn: u32,
    ack_request: bool,
    tos: u8,
    /// Headers behind the BTH, and for a CNP its 16 reserved bytes.
    extended: [u8; 16],
    extended_length: usize,
    payload: usize,
}

struct Generator<'a, W> {
    options: &'a Options,
    output: W,
    random: Random,
    connections: Vec<Connection>,
    packets: u64,
    rows: u64,
    crc: Crc,
    /// The frame that is put together; its payload never changes.
    frame: [u8; 1200],
}

struct MadeCapture {
    packets: u64,
    flows: usize,
    rows: u64,
}

impl<'a, W: Write> Generator<'a, W> {
    fn new(options: &'a Options, output: W) -> Self {
        let mut random = Random(SEED);
        let connections = (0..options.flows / 2)
            .map(|number| Connection::new(number, &mut random))
            .collect();
        Self {
            options,
            output,
            random,
            connections,
            packets: 0,
            rows: 0,
            crc: Crc::new(),
            frame: [0x5a; 1200],
        }
    }

    fn run(mut self) -> io::Result<MadeCapture> {
        let snaplen = self.options.captured.min(262_144) as u32;
        for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, snaplen, 1] {
            self.output.write_all(&u32::to_le_bytes(word))?;
        }
        let burst = self.options.burst();
        // Two in a hundred more than the data and their ACKs, for CNPs and uneven bursts.
        let of_each = burst * f64::from(MESSAGE_PACKETS + 1) / f64::from(MESSAGE_PACKETS) * 1.02;
        let active = self
            .connections
            .len()
            .min(((BIN as f64 / of_each) as usize).max(1));
        let step_ps = (BIN as f64 * 1000.0 / (of_each * active as f64)) as u64;
        let mut first = 0;
        for bin in 0.. {
            if !self.bin(bin, first, active, burst, step_ps.max(1))? {
                break;
            }
            first = (first + active) % self.connections.len();
        }
        self.output.flush()?;
        Ok(MadeCapture {
            packets: self.packets,
            flows: 2 * self.connections.len(),
            rows: self.rows,
        })
    }

    /// One bin: bursts of the connections `first..first + active`, mixed. False when that was the last packet.
    fn bin(&mut self, bin: u64, first: usize, active: usize, burst: f64, step_ps: u64) -> io::Result<bool> {
        let mut longest = 0;
        for number in 0..active {
            let more = self.random.fraction() < burst.fract();
            let left = burst as u16 + u16::from(more);
            longest = longest.max(left);
            let number = (first + number) % self.connections.len();
            self.connections[number].left = left;
        }
        let mut in_bin = 0;
        let room = active.next_power_of_two();
        for _ in 0..longest {
            // A linear congruence with a full period over the next power of two: every connection once, in an
            // order of its own.
            let multiplier = (self.random.next() as usize & !3) | 1;
            let increment = self.random.next() as usize | 1;
            let mut at = self.random.next() as usize & (room - 1);
            for _ in 0..room {
                at = at.wrapping_mul(multiplier).wrapping_add(increment) & (room - 1);
                let number = (first + at) % self.connections.len();
                if at >= active || self.connections[number].left == 0 {
                    continue;
                }
                self.connections[number].left -= 1;
                if !self.send(number, bin, step_ps, &mut in_bin)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Writes the next packet of a connection, and the ACK or CNP that answers it. False after the last
    /// packet.
    fn send(&mut self, number: usize, bin: u64, step_ps: u64, in_bin: &mut u64) -> io::Result<bool> {
        let marked = self.random.once_in(self.options.marked_in);
        let notified = marked && self.random.once_in(self.options.notified_in);
        let connection = &mut self.connections[number];
        if self.options.hostile {
            connection.sent = 0;
            // 24 bits of queue pair and six of host: 2^30 flows before one comes again.
            connection.receiver_qpn = (connection.receiver_qpn + self.options.flows as u32) & 0xff_ffff;
        }
        let psn = connection.psn;
        connection.psn = (psn + 1) & 0xff_ffff;
        let mut extended = [0; 16];
        let mut extended_length = 0;
        let opcode = match connection.sent {
            0 => {
                // RETH: virtual address, remote key, length of the message.
                let address = 0x7f00_0000_0000 + (u64::from(connection.messages & 0x3ff) << 14);
                extended[..8].copy_from_slice(&address.to_be_bytes());
                extended[8..12].copy_from_slice(&connection.sender_qpn.to_be_bytes());
                extended[12..].copy_from_slice(&(MESSAGE_PACKETS * MTU as u32).to_be_bytes());
                extended_length = 16;
                WRITE_FIRST
            }
            sent if sent == MESSAGE_PACKETS - 1 => WRITE_LAST,
            _ => WRITE_MIDDLE,
        };
        let last = opcode == WRITE_LAST;
        connection.sent = if last { 0 } else { connection.sent + 1 };
        connection.messages += u32::from(last);
        self.rows += u64::from(connection.data_bin != bin) + u64::from(last && connection.ack_bin != bin);
        connection.data_bin = bin;
        if last {
            connection.ack_bin = bin;
        }
        let (there, back) = (
            (connection.sender, 128 + connection.receiver),
            (128 + connection.receiver, connection.sender),
        );
        let (sport, sender_qpn, messages) = (connection.sport, connection.sender_qpn, connection.messages);
        let data = Packet {
            opcode,
            qpn: connection.receiver_qpn,
            psn,
            ack_request: last,
            tos: 26 << 2 | if marked { 3 } else { 2 },
            extended,
            extended_length,
            payload: MTU,
        };
        if !self.write(there, sport, &data, time(bin, step_ps, in_bin))? {
            return Ok(false);
        }
        if notified {
            let cnp = Packet {
                opcode: CNP,
                qpn: sender_qpn,
                psn: 0,
                ack_request: false,
                tos: 48 << 2,
                extended: [0; 16],
                extended_length: 16,
                payload: 0,
            };
            if !self.write(back, sport, &cnp, time(bin, step_ps, in_bin))? {
                return Ok(false);
            }
        }
        if last {
            let mut aeth = [0; 16];
            aeth[..4].copy_from_slice(&(0x1f00_0000 | messages & 0xff_ffff).to_be_bytes());
            let ack = Packet {
                opcode: ACK,
                qpn: sender_qpn,
                psn,
                ack_request: false,
                tos: 26 << 2 | 2,
                extended: aeth,
                extended_length: 4,
                payload: 0,
            };
            return self.write(back, sport, &ack, time(bin, step_ps, in_bin));
        }
        Ok(true)
    }

    /// Writes a packet from one host to another. False when that was the last packet.
    fn write(&mut self, (from, to): (u8, u8), sport: u16, packet: &Packet, time: u64) -> io::Result<bool> {
        let udp = 8 + 12 + packet.extended_length + packet.payload + 4;
        let frame = &mut self.frame;
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        let ip = &mut frame[14..34];
        ip[..2].copy_from_slice(&[0x45, packet.tos]);
        ip[2..4].copy_from_slice(&(20 + udp as u16).to_be_bytes());
        // The identification tells CNPs apart, which are equal otherwise.
        ip[4..6].copy_from_slice(&(self.packets as u16).to_be_bytes());
        ip[6..12].copy_from_slice(&[0x40, 0, 64, 17, 0, 0]);
        ip[12..16].copy_from_slice(&[10, 0, from >> 7, from & 0x7f]);
        ip[16..].copy_from_slice(&[10, 0, to >> 7, to & 0x7f]);
        let sum: u32 = ip
            .chunks_exact(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        ip[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        frame[34..36].copy_from_slice(&sport.to_be_bytes());
        frame[36..38].copy_from_slice(&4791_u16.to_be_bytes());
        frame[38..40].copy_from_slice(&(udp as u16).to_be_bytes());
        frame[40..42].copy_from_slice(&[0, 0]);
        let bth = &mut frame[42..54];
        bth[..4].copy_from_slice(&[packet.opcode, 0x40, 0xff, 0xff]);
        bth[4..8].copy_from_slice(&packet.qpn.to_be_bytes());
        bth[8..].copy_from_slice(&packet.psn.to_be_bytes());
        bth[4] = if packet.opcode == CNP { 0x40 } else { 0 };
        bth[8] = if packet.ack_request { 0x80 } else { 0 };
        let end = 54 + packet.extended_length;
        frame[54..end].copy_from_slice(&packet.extended[..packet.extended_length]);
        // A First packet's RETH lies where other packets have payload.
        frame[end..70.max(end)].fill(0x5a);
        let length = 34 + udp;
        let captured = length.min(self.options.captured);
        if captured == length {
            let icrc = self.crc.icrc(&frame[14..length - 4]);
            frame[length - 4..length].copy_from_slice(&icrc.to_le_bytes());
        }
        let mut header = [0; 16];
        let words = [
            (time / 1_000_000_000) as u32,
            (time % 1_000_000_000) as u32,
            captured as u32,
            length as u32,
        ];
        for (place, word) in header.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.output.write_all(&header)?;
        self.output.write_all(&frame[..captured])?;
        frame[length - 4..length].fill(0x5a);
        self.packets += 1;
        Ok(self.packets < self.options.packets)
    }
}

/// The time of the next packet of a bin; what does not fit is stamped with the end of the bin.
fn time(bin: u64, step_ps: u64, in_bin: &mut u64) -> u64 {
    let at = (*in_bin * step_ps / 1000).min(BIN - 1);
    *in_bin += 1;
    START + bin * BIN + at
}

/// CRC-32 of Ethernet, eight bytes at a time.
struct Crc([[u32; 256]; 8]);

impl Crc {
    fn new() -> Self {
        let mut table = [[0; 256]; 8];
        for byte in 0..256_u32 {
            let mut value = byte;
            for _ in 0..8 {
                value = if value & 1 == 1 {
                    value >> 1 ^ 0xedb8_8320
                } else {
                    value >> 1
                };
            }
            table[0][byte as usize] = value;
        }
        for byte in 0..256 {
            for slice in 1..8 {
                let before = table[slice - 1][byte];
                table[slice][byte] = before >> 8 ^ table[0][(before & 0xff) as usize];
            }
        }
        Self(table)
    }

    fn update(&self, mut register: u32, bytes: &[u8]) -> u32 {
        let table = &self.0;
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let low = register ^ u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
            register = table[7][(low & 0xff) as usize]
                ^ table[6][(low >> 8 & 0xff) as usize]
                ^ table[5][(low >> 16 & 0xff) as usize]
                ^ table[4][(low >> 24) as usize]
                ^ table[3][chunk[4] as usize]
                ^ table[2][chunk[5] as usize]
                ^ table[1][chunk[6] as usize]
                ^ table[0][chunk[7] as usize];
        }
        for byte in chunks.remainder() {
            register = register >> 8 ^ table[0][((register ^ u32::from(*byte)) & 0xff) as usize];
        }
        register
    }

    /// The invariant CRC of an IPv4 packet without it: what routers change counts as ones (IBTA A17).
    fn icrc(&self, packet: &[u8]) -> u32 {
        let mut headers = [0; 40];
        headers.copy_from_slice(&packet[..40]);
        for masked in [1, 8, 10, 11, 26, 27, 32] {
            headers[masked] = 0xff;
        }
        // The register behind eight bytes of ones.
        let register = self.update(0xdebb_20e3, &headers);
        !self.update(register, &packet[40..])
    }
}
