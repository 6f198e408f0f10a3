//! Reports of hosts about connections, early and late.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use roce_flow::{Analysis, Collector, Options};
use roce_model::{
    Between, FlowRow, HostChange, HostEvent, HostReport, Packet, PacketBatch, Process, QueuePairChange, Sink,
    SinkError, Span, Time,
};
use roce_verdict::Settings;
use roce_wire::{Address, Aeth, Bth, Opcode, Psn, Qpn, Roce};

const CLIENT: Address = Address::v4([10, 77, 0, 1]);
const SERVER: Address = Address::v4([10, 77, 0, 2]);
/// The server's queue pair, and the client's.
const SERVER_QPN: u8 = 0x12;
const CLIENT_QPN: u8 = 0x11;

/// The client's writes of one packet each, from `first` on, 1 us apart; each is acknowledged 200 ns later.
fn writes(from: u64, first: u8, count: u8) -> Vec<Packet> {
    let packet = |time, opcode: u8, (source, destination), qpn, psn| Packet {
        time: Time(time),
        wire_bytes: 1_082,
        roce: Roce {
            source,
            destination,
            bth: Bth([opcode, 0, 0xff, 0xff, 0, 0, 0, qpn, 0, 0, 0, psn]),
            aeth: Aeth([0x1f, 0, 0, 0]),
            payload_bytes: if opcode == 0x0a { 1_024 } else { 0 },
            // The host gives each connection a port of its own: no evidence.
            udp_source_port: if opcode == 0x0a { 0xc001 } else { 0xc777 },
            seen: Opcode(opcode).extended(),
            ..Roce::default()
        },
        ..Packet::default()
    };
    let one = |number: u8| {
        let (time, psn) = (from + 1_000 * u64::from(number), first + number);
        [
            packet(time, 0x0a, (CLIENT, SERVER), SERVER_QPN, psn),
            packet(time + 200, 0x11, (SERVER, CLIENT), CLIENT_QPN, psn),
        ]
    };
    (0..count).flat_map(one).collect()
}

/// The server says that its queue pair is connected, and that requests to it begin with `first`.
fn connected(time: u64, first: u32) -> HostEvent {
    HostEvent {
        time: Time(time),
        device: Some("rxe1".into()),
        process: Some(Process {
            pid: 72,
            comm: "ib_write_bw".into(),
            cgroup: 0,
            claims: false,
        }),
        what: HostChange::Modified {
            qpn: Qpn::new(SERVER_QPN.into()),
            set: Box::new(QueuePairChange {
                destination_qpn: Some(Qpn::new(CLIENT_QPN.into())),
                source: Some(SERVER),
                destination: Some(CLIENT),
                rq_psn: Some(Psn::new(first)),
                ..QueuePairChange::default()
            }),
        },
    }
}

#[derive(Default)]
struct Flows(Vec<FlowRow>);

impl Sink for Flows {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.0.extend_from_slice(rows);
        Ok(())
    }
}

/// Rows of the client's requests: epoch, packets, how they were paired, whose they are.
fn requests(
    packets: Vec<Packet>,
    said: &[(usize, HostEvent)],
) -> Vec<(u32, u64, Option<String>, Option<u32>)> {
    let mut flows = Flows::default();
    let mut collector = Collector::new(1, Settings::default(), vec![&mut flows]);
    let mut analysis = Analysis::new(Options::default());
    let report = |(before, event): &(usize, HostEvent)| {
        Between::Host(Box::new(HostReport {
            before: *before,
            event: event.clone(),
            reported: true,
        }))
    };
    analysis.push(&PacketBatch {
        packets: packets.into(),
        between: said.iter().map(report).collect(),
        ..PacketBatch::default()
    });
    collector.push(0, analysis.finish().0).unwrap();
    collector.finish().unwrap();
    let of_client = flows.0.into_iter().filter(|flow| flow.source == CLIENT);
    let mut rows: Vec<_> = of_client
        .map(|flow| {
            let pairing = flow.pairing.map(str::to_owned);
            (flow.epoch, flow.packets, pairing, flow.pid)
        })
        .collect();
    rows.sort();
    rows
}

const BEGIN: u64 = 1_000 * Span::SECOND.0;

#[test]
fn what_is_said_late_is_of_the_connection_that_has_begun() {
    // Said of a time before the first packet, and there behind the tenth, or behind all.
    for behind in [10, 40] {
        let rows = requests(writes(BEGIN, 5, 20), &[(behind, connected(BEGIN - 1_000, 5))]);
        assert_eq!(rows, [(0, 20, Some("host".to_owned()), Some(72))], "{behind}");
    }
}

#[test]
fn a_connection_made_after_packets_is_another_one() {
    let mut packets = writes(BEGIN, 5, 20);
    let next = BEGIN + 1_000_000;
    packets.extend(writes(next, 100, 10));
    // Both connections are reported, the second one while packets of the first were captured already.
    let said = [
        (0, connected(BEGIN - 1_000, 5)),
        (40, connected(next - 1_000, 100)),
    ];
    let rows = requests(packets, &said);
    let of = |epoch, packets| (epoch, packets, Some("host".to_owned()), Some(72));
    assert_eq!(rows, [of(0, 20), of(1, 10)]);
}
