//! Bytes of hostile packets: frames, and the capture files that contain them.

#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers of items are cut to the fields of their packets"
)]

use std::io::{self, Write};

/// Numbers that look random and are the same in every run: SplitMix64 (Steele et al., OOPSLA 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// The last bytes of a number, big-endian.
pub(super) fn low<const N: usize>(number: u64) -> [u8; N] {
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().rev().enumerate() {
        *byte = number
            .checked_shr(8 * u32::try_from(at).unwrap_or(64))
            .unwrap_or(0) as u8;
    }
    bytes
}

/// IPv4 address of host `number`: in 10.0.0.0/8, then in the nets behind it.
pub(super) fn host(number: u64) -> [u8; 4] {
    low(0x0a00_0000 + number)
}

/// One RoCEv2 packet: what differs from an unmarked WRITE Only between two hosts.
#[derive(Clone)]
pub(super) struct Packet {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) opcode: u8,
    pub(super) qpn: u64,
    pub(super) psn: u64,
    pub(super) ce: bool,
    /// Source port of UDP.
    pub(super) port: u16,
    /// Partition key.
    pub(super) partition: u16,
    /// Bytes between BTH and ICRC.
    pub(super) rest: Vec<u8>,
    /// Bytes of IPv4 options, a multiple of 4 up to 40.
    pub(super) options: Vec<u8>,
}

pub(super) const SEND_MIDDLE: u8 = 0x01;
pub(super) const WRITE_MIDDLE: u8 = 0x07;
pub(super) const WRITE_ONLY: u8 = 0x0a;
pub(super) const READ_REQUEST: u8 = 0x0c;
pub(super) const READ_MIDDLE: u8 = 0x0e;
pub(super) const ACK: u8 = 0x11;
pub(super) const UD_SEND: u8 = 0x64;
pub(super) const CNP: u8 = 0x81;

impl Packet {
    /// `opcode` with the extended headers that it has, zero but for a WRITE's length.
    pub(super) fn new(opcode: u8) -> Self {
        let rest = match opcode {
            WRITE_ONLY => [&[0; 12][..], &64_u32.to_be_bytes(), &[0; 64]].concat(),
            READ_REQUEST => [&[0; 12][..], &65_536_u32.to_be_bytes()].concat(),
            ACK => vec![0x1f, 0, 0, 0],
            CNP => vec![0; 16],
            UD_SEND => [&[0x80, 1, 0, 0, 0, 0, 0, 1][..], &[0; 256]].concat(),
            _ => vec![0; 64],
        };
        Self {
            from: 1,
            to: 2,
            opcode,
            qpn: 0x11,
            psn: 0,
            ce: false,
            port: 0xc000,
            partition: 0xffff,
            rest,
            options: Vec::new(),
        }
    }

    /// From the BTH on, with the ICRC's room.
    pub(super) fn transport(&self) -> Vec<u8> {
        let mut bytes = vec![self.opcode, 0x40];
        bytes.extend(self.partition.to_be_bytes());
        bytes.push(0);
        bytes.extend(low::<3>(self.qpn));
        bytes.push(0);
        bytes.extend(low::<3>(self.psn));
        bytes.extend(&self.rest);
        bytes.extend([0; 4]);
        bytes
    }

    /// From the IPv4 header on.
    fn ip(&self) -> Vec<u8> {
        let transport = self.transport();
        let udp = udp(self.port, 4791, &transport);
        let tos = 0x68 | if self.ce { 3 } else { 2 };
        ip(host(self.from), host(self.to), 17, tos, &self.options, &udp)
    }

    /// The Ethernet frame.
    pub(super) fn frame(&self) -> Vec<u8> {
        ethernet(self.from, self.to, 0x0800, &self.ip())
    }
}

/// A UDP datagram.
pub(super) fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = from.to_be_bytes().to_vec();
    bytes.extend(to.to_be_bytes());
    bytes.extend(low::<2>(payload.len() as u64 + 8));
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// An IPv6 packet between two hosts of fd00::/64, or of a GRH.
pub(super) fn ip6(from: u64, to: u64, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(low::<2>(payload.len() as u64));
    bytes.extend([next, 64]);
    for host in [from, to] {
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(low::<8>(host));
    }
    bytes.extend(payload);
    bytes
}

/// An IPv4 packet. Its header checksum is 0, which nobody checks.
pub(super) fn ip(
    from: [u8; 4],
    to: [u8; 4],
    protocol: u8,
    tos: u8,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let words = 5 + options.len() / 4;
    let mut bytes = vec![0x40 | words as u8, tos];
    bytes.extend(low::<2>((words * 4 + payload.len()) as u64));
    bytes.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend(from);
    bytes.extend(to);
    bytes.extend(options);
    bytes.extend(payload);
    bytes
}

/// An Ethernet frame between the link addresses of two hosts.
pub(super) fn ethernet(from: u64, to: u64, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2];
    bytes.extend(low::<5>(to));
    bytes.push(2);
    bytes.extend(low::<5>(from));
    bytes.extend(kind.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A PFC frame of `from` that pauses class 3 (IEEE 802.1Q 36).
pub(super) fn pfc(from: u64, quanta: u16) -> Vec<u8> {
    let mut payload = vec![0x01, 0x01, 0, 0x08];
    for class in 0..8 {
        payload.extend(if class == 3 { quanta.to_be_bytes() } else { [0, 0] });
    }
    payload.resize(46, 0);
    let mut frame = ethernet(from, 0, 0x8808, &payload);
    let (to, _) = frame.split_at_mut(6);
    to.copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 1]);
    frame
}

/// A message of the connection manager: 0x10 REQ, 0x12 REJ, 0x13 REP, 0x15 DREQ (IBTA 12.6), with a communication id and a queue pair.
pub(super) fn cm(from: u64, to: u64, attribute: u8, id: u64, qpn: u64) -> Packet {
    let mut data = vec![0; 232];
    let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &low::<4>(id));
    if attribute == 0x10 {
        put(32, &low::<3>(qpn));
    } else {
        put(4, &low::<4>(id));
        put(12, &low::<3>(qpn));
    }
    let mut mad = vec![1, 7, 2, 3, 0, 0, 0, 0];
    mad.extend(low::<8>(id));
    mad.extend([0, attribute, 0, 0, 0, 0, 0, 0]);
    mad.extend(data);
    Packet {
        from,
        to,
        qpn: 1,
        rest: [&[0x80, 1, 0, 0, 0, 0, 0, 1][..], &mad].concat(),
        ..Packet::new(UD_SEND)
    }
}

/// A pcap file with stamps in nanoseconds.
pub(super) struct Pcap<W>(W);

impl<W: Write> Pcap<W> {
    pub(super) fn new(out: W) -> io::Result<Self> {
        Self::of_link(out, 1)
    }

    /// A file whose frames begin with this header.
    pub(super) fn of_link(mut out: W, link: u32) -> io::Result<Self> {
        out.write_all(&words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, link]))?;
        Ok(Self(out))
    }

    /// A record. `length` is that of the frame before it was cut.
    pub(super) fn cut(&mut self, time: u64, frame: &[u8], length: u32) -> io::Result<()> {
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        let captured = frame.len() as u32;
        self.0
            .write_all(&words(&[seconds as u32, nanos as u32, captured, length]))?;
        self.0.write_all(frame)
    }

    pub(super) fn add(&mut self, time: u64, frame: &[u8]) -> io::Result<()> {
        self.cut(time, frame, frame.len() as u32)
    }
}

/// A pcapng file.
pub(super) struct Pcapng<W>(W);

impl<W: Write> Pcapng<W> {
    pub(super) fn new(out: W) -> Self {
        Self(out)
    }

    pub(super) fn section(&mut self) -> io::Result<()> {
        self.0
            .write_all(&words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]))
    }

    pub(super) fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let padding = body.len().next_multiple_of(4) - body.len();
        let total = (body.len() + padding + 12) as u32;
        self.0.write_all(&words(&[kind, total]))?;
        self.0.write_all(body)?;
        self.0.write_all(&[0; 4][..padding])?;
        self.0.write_all(&words(&[total]))
    }

    /// An Ethernet interface with a name, stamps in nanoseconds.
    pub(super) fn interface(&mut self, name: &str) -> io::Result<()> {
        let mut body = words(&[1, 0]);
        body.extend(option(2, name.as_bytes()));
        body.extend(option(9, &[9]));
        body.extend(option(0, &[]));
        self.block(1, &body)
    }

    pub(super) fn frame(
        &mut self,
        interface: u32,
        time: u64,
        frame: &[u8],
        options: &[u8],
    ) -> io::Result<()> {
        let length = frame.len() as u32;
        let mut body = words(&[interface, (time >> 32) as u32, time as u32, length, length]);
        body.extend(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(options);
        self.block(6, &body)
    }
}

/// An option of a pcapng block.
pub(super) fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = code.to_le_bytes().to_vec();
    bytes.extend((value.len() as u16).to_le_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub(super) fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
