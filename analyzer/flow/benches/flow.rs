//! The flow step alone: prepared packets through the analysis, at few and at many flows, in bursts and mixed; and
//! what merely finding each packet's flow would cost in the standard library's map.

#![expect(clippy::unwrap_used, reason = "a bench may fail")]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use roce_flow::{Analysis, Options};
use roce_model::{FlowKey, Packet, PacketBatch, PacketFlags, Span, TapId, Time};
use roce_wire::{Address, Bth, Opcode, Roce};

/// Packets of a batch, as the pipeline makes them.
const BATCH: usize = 256;
/// Batches between two looks at the clock: few, so that they do not push the flows out of the caches.
const BATCHES: usize = 8;
/// Packets that a flow sends before the next one does, in bursts.
const BURST: usize = 16;
/// Time between packets, in ns: 100 Gb/s of packets with 1024 bytes.
const APART: u64 = 82;
/// Packets of a flow in one bin: with few, the rows cost more than the packets.
const PACKETS_A_ROW: [u64; 2] = [30, 3];

/// Traffic without an end: the middles of WRITEs, in order in each flow.
struct Traffic {
    flows: Vec<(u32, u16)>,
    burst: usize,
    packets: u64,
    state: u64,
    flow: usize,
}

impl Traffic {
    fn new(flows: usize, burst: usize) -> Self {
        Self {
            flows: vec![(0, 0); flows],
            burst,
            packets: 0,
            state: 1,
            flow: 0,
        }
    }

    /// A number below `most`, from a fixed sequence (xorshift64*, Vigna 2014).
    fn random(&mut self, most: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        usize::try_from(high).unwrap() % most
    }

    fn next(&mut self) -> Packet {
        if self.packets.is_multiple_of(self.burst as u64) {
            self.flow = self.random(self.flows.len());
        }
        self.packets += 1;
        let (psn, ip_id) = &mut self.flows[self.flow];
        *psn = (*psn + 1) & 0x00ff_ffff;
        *ip_id = ip_id.wrapping_add(1);
        let [_, p @ ..] = psn.to_be_bytes();
        let [_, q @ ..] = u32::try_from(self.flow).unwrap().to_be_bytes();
        let host = u8::try_from(self.flow % 64).unwrap();
        let roce = Roce {
            source: Address::v4([10, 0, 0, host]),
            destination: Address::v4([10, 0, 1, host / 4]),
            bth: Bth([0x07, 0x40, 0xff, 0xff, 0, q[0], q[1], q[2], 0, p[0], p[1], p[2]]),
            payload_bytes: 1024,
            udp_source_port: 0xc000 | u16::from(host),
            ip_id: *ip_id,
            traffic_class: 0x6a,
            hop_limit: 64,
            seen: Opcode(0x07).extended(),
            ..Roce::default()
        };
        Packet {
            time: Time(Span::SECOND.0 + self.packets * APART),
            tap: TapId(0),
            wire_bytes: 1082,
            path: 1,
            extended: 0,
            flags: PacketFlags::default(),
            icrc: None,
            roce,
        }
    }

    fn batches(&mut self) -> Vec<PacketBatch> {
        let mut batch = || PacketBatch {
            packets: (0..BATCH).map(|_| self.next()).collect::<Vec<_>>().into(),
            ..PacketBatch::default()
        };
        (0..BATCHES).map(|_| batch()).collect()
    }
}

fn flow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flow");
    group.throughput(Throughput::Elements((BATCH * BATCHES) as u64));
    group
        .warm_up_time(Duration::from_secs(2))
        .measurement_time(Duration::from_secs(4))
        .sample_size(20);
    for flows in [4_096, 100_000] {
        for (name, burst, per_row) in [
            ("bursts", BURST, PACKETS_A_ROW[0]),
            ("mixed", 1, PACKETS_A_ROW[0]),
            ("mixed-many-rows", 1, PACKETS_A_ROW[1]),
        ] {
            group.bench_function(format!("push/{flows}/{name}"), |bencher| {
                let mut traffic = Traffic::new(flows, burst);
                let bin = Span(flows as u64 * per_row * APART);
                let mut analysis = Analysis::new(Options {
                    bin,
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
        for (name, burst) in [("bursts", BURST), ("mixed", 1)] {
            // Finding the flow and counting one number, nothing else: what `push` has to compare with.
            group.bench_function(format!("std-map-lookup/{flows}/{name}"), |bencher| {
                let mut traffic = Traffic::new(flows, burst);
                let mut places: HashMap<(TapId, FlowKey), u64> = HashMap::new();
                bencher.iter_batched_ref(
                    || traffic.batches(),
                    |batches| {
                        for packet in batches.iter().flat_map(|batch| batch.packets.iter()) {
                            *places
                                .entry((packet.tap, FlowKey::from_packet(&packet.roce)))
                                .or_default() += 1;
                        }
                        black_box(places.len());
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, flow);
criterion_main!(benches);
