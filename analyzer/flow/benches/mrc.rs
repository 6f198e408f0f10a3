//! A packet of MRC against one of RoCE, through the whole flow step: data and, after each fourth packet, an answer. With MRC the answer is
//! a SACK whose bitmap has a hole, as on paths of different length.

#![expect(clippy::unwrap_used, reason = "a bench may fail")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use roce_flow::{Analysis, Options};
use roce_model::{
    Between, MrcHeaders, MrcPacket, MrcSack, MrcState, MrcWrite, Packet, PacketBatch, PacketFlags, Span,
    TapId, Time,
};
use roce_wire::{Address, Aeth, Bth, Carrier, Opcode, Roce};

/// Packets of a batch, as the pipeline makes them.
const BATCH: usize = 256;
/// Batches between two looks at the clock.
const BATCHES: usize = 8;
/// Items that a connection sends before the next one does.
const BURST: u32 = 20;
/// Data packets for each answer.
const ANSWERED: u32 = 4;
/// Packets that are on their way.
const AHEAD: u32 = 32;
/// Paths of a connection.
const PATHS: u32 = 16;
/// Packets of a message.
const MESSAGE: u32 = 64;
/// Time between packets, in ns.
const APART: u64 = 82;
/// Packets of a connection in one bin.
const PACKETS_A_ROW: u64 = 30;
const PAYLOAD: u32 = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Roce,
    Mrc,
}

/// Traffic without an end.
struct Traffic {
    protocol: Protocol,
    /// Items of each connection.
    sent: Vec<u32>,
    connection: usize,
    packets: u64,
}

impl Traffic {
    fn new(protocol: Protocol, connections: usize) -> Self {
        Self {
            protocol,
            sent: vec![0; connections],
            connection: 0,
            packets: 0,
        }
    }

    fn next(&mut self, place: usize) -> (Packet, Option<MrcPacket>) {
        if self.packets.is_multiple_of(BURST.into()) {
            // A step that shares no factor with the number of connections.
            self.connection = (self.connection + 37) % self.sent.len();
        }
        self.packets += 1;
        let item = self.sent[self.connection];
        self.sent[self.connection] += 1;
        let is_answer = item % (ANSWERED + 1) == ANSWERED;
        let data = item - item / (ANSWERED + 1);
        let psn = if is_answer {
            data.saturating_sub(AHEAD)
        } else {
            data
        };
        let (opcode, headers) = match (self.protocol, is_answer) {
            (Protocol::Roce, false) => (0x07, None),
            (Protocol::Roce, true) => (0x11, None),
            (Protocol::Mrc, false) => (0xc7, Some(write(data))),
            (Protocol::Mrc, true) => (0xdc, Some(sack(psn, self.connection))),
        };
        let roce = self.packet(opcode, psn, is_answer);
        let packet = Packet {
            time: Time(Span::SECOND.0 + self.packets * APART),
            tap: TapId(0),
            wire_bytes: if is_answer { 90 } else { 82 + PAYLOAD },
            path: 1,
            extended: u32::try_from(self.packets & 0xffff_ffff).unwrap(),
            flags: PacketFlags::default(),
            icrc: None,
            roce,
        };
        let headers = headers.map(|headers| MrcPacket {
            packet: place,
            headers,
            flow_label: 0,
            outer: None,
            payload_bytes: if is_answer { 0 } else { PAYLOAD },
            is_trimmed: false,
            is_proof: is_answer,
            udp_port: 4791,
        });
        (packet, headers)
    }

    fn packet(&self, opcode: u8, psn: u32, is_answer: bool) -> Roce {
        let [_, p @ ..] = psn.to_be_bytes();
        let number = u32::try_from(self.connection).unwrap() | u32::from(is_answer) << 16;
        let [_, q @ ..] = number.to_be_bytes();
        let host = u8::try_from(self.connection % 64).unwrap();
        let ends = [Address::v4([10, 0, 0, host]), Address::v4([10, 0, 1, host / 4])];
        let [source, destination] = if is_answer { [ends[1], ends[0]] } else { ends };
        let path = u16::try_from(psn % PATHS).unwrap();
        Roce {
            source,
            destination,
            carrier: Carrier::RoceV2Ipv4,
            // The bit of a stamp.
            bth: Bth([
                opcode, 0x40, 0xff, 0xff, 0, q[0], q[1], q[2], 0x10, p[0], p[1], p[2],
            ]),
            aeth: Aeth([0x1f, 0, 0, 1]),
            payload_bytes: if is_answer { 0 } else { PAYLOAD },
            udp_source_port: match self.protocol {
                Protocol::Mrc => 0xc000 | path,
                Protocol::Roce => 0xc000 | u16::from(host),
            },
            ip_id: u16::try_from(self.packets & 0xffff).unwrap(),
            traffic_class: 0x6a,
            hop_limit: 64,
            seen: Opcode(opcode).extended(),
            ..Roce::default()
        }
    }

    fn batches(&mut self) -> Vec<PacketBatch> {
        let mut batch = || {
            let mut batch = PacketBatch::default();
            for place in 0..BATCH {
                let (packet, headers) = self.next(place);
                batch.packets.push(packet);
                batch.between.extend(headers.map(Between::Mrc));
            }
            batch
        };
        (0..BATCHES).map(|_| batch()).collect()
    }
}

/// A stamp that no other packet on its way has.
fn stamp(psn: u32) -> u16 {
    u16::try_from(psn & 0xffff).unwrap()
}

/// A packet in the middle of a message.
fn write(psn: u32) -> MrcHeaders {
    MrcHeaders::Write(MrcWrite {
        message: u16::try_from((psn / MESSAGE) & 0xffff).unwrap(),
        stamp: Some(stamp(psn)),
        address: u64::from(psn) * u64::from(PAYLOAD),
        key: 1,
        length: MESSAGE * PAYLOAD,
    })
}

/// The SACK that a packet caused: of those before it one is missing, and comes before the next SACK.
fn sack(named: u32, connection: usize) -> MrcHeaders {
    let cumulative = named.saturating_sub(6);
    let low = u16::try_from(connection).unwrap();
    MrcHeaders::Sack(MrcSack {
        advice: 0,
        answers_probe: false,
        named: i16::try_from(named - cumulative).unwrap(),
        entropy: Some(0xc000 | (named % PATHS)),
        ids: [low, low],
        cumulative,
        window: 0,
        offset: 1,
        bitmap: 0b11_1101,
        state: Some(MrcState {
            stamp: Some(stamp(named)),
            out_of_order: 5,
            penalty: 0,
        }),
    })
}

fn mrc(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mrc");
    group.throughput(Throughput::Elements((BATCH * BATCHES) as u64));
    group
        .warm_up_time(Duration::from_secs(2))
        .measurement_time(Duration::from_secs(4))
        .sample_size(20);
    for connections in [64, 1_024] {
        for (name, protocol) in [("roce", Protocol::Roce), ("mrc", Protocol::Mrc)] {
            group.bench_function(format!("{name}/{connections}"), |bencher| {
                let mut traffic = Traffic::new(protocol, connections);
                let mut analysis = Analysis::new(Options {
                    bin: Span(connections as u64 * PACKETS_A_ROW * APART),
                    ..Options::default()
                });
                bencher.iter_batched_ref(
                    || traffic.batches(),
                    |batches| {
                        for batch in batches.iter() {
                            analysis.push(batch);
                        }
                        black_box(analysis.take_output());
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, mrc);
criterion_main!(benches);
