//! Writes one frame of every kind to a pcapng file, for other readers of such files:
//! `cargo run -p roce-sim --example frames -- frames.pcapng`, then `tshark -r frames.pcapng -V`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use roce_capture::Direction;
use roce_model::{Span, Time};
use roce_sim::frame::cm::{Datagram, Message, Rep, Req};
use roce_sim::frame::{
    Ethernet, Frame, Granularity, Network, Pause, Payload, Pfc, Position, RemoteMemory, Roce, Transport,
    Tunnel, TunnelKind, Version, udp_source_port,
};
use roce_sim::tap::{Clock, LossReport, Mirror, Tap, TapRecording};
use roce_wire::management::cm::CommId;
use roce_wire::{Address, Ecn, MacAddress, Nak, Opcode, Psn, Qpn, RnrTimer};

const HERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const THERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const QPN: Qpn = Qpn::new(0x11);
const PEER: Qpn = Qpn::new(0x2345);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: frames FILE.pcapng")?;
    let file = BufWriter::new(File::create(&path)?);
    let mut recording = TapRecording::new(file, path.to_string_lossy(), &taps(), 1)?;
    let mut time = Time(0);
    let transports = transports();
    for (network, version) in carriers() {
        for transport in &transports {
            let plain = Frame::Roce(Roce {
                ethernet: Ethernet::new(HERE, THERE),
                network,
                version,
                transport: *transport,
            });
            recording.offer(0, time, Direction::Outbound, &plain)?;
            time.0 += 1_000;
        }
    }
    let others = [
        Frame::Pfc(Pfc::new(THERE, 3, 0xffff)),
        Frame::Pfc(Pfc::new(THERE, 3, 0)),
        Frame::Pause(Pause {
            source: THERE,
            quanta: 100,
        }),
    ];
    for frame in &others {
        recording.offer(0, time, Direction::Inbound, frame)?;
        time.0 += 1_000;
    }
    for (network, version) in carriers() {
        let tagged = Frame::Roce(Roce {
            ethernet: Ethernet::new(HERE, THERE).tagged(3, 100),
            network,
            version,
            transport: write(Position::Only, 1024),
        });
        for tap in 0..=4 {
            recording.offer(tap, time, Direction::Unknown, &tagged)?;
            time.0 += 1_000;
        }
    }
    recording.finish()?;
    Ok(())
}

/// The network headers that RoCE has.
fn carriers() -> [(Network, Version); 3] {
    let v4 = Network {
        dscp: 26,
        ecn: Ecn::Ce,
        identification: 0x1234,
        ..Network::new(Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]))
    };
    let end = |last| Address::v6([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    let v6 = Network {
        dscp: 26,
        flow_label: 0x12345,
        ..Network::new(end(1), end(2))
    };
    let v2 = Version::V2 {
        source_port: udp_source_port(QPN, PEER),
    };
    [(v4, v2), (v6, v2), (v4, Version::V1)]
}

fn write(position: Position, bytes: u16) -> Transport {
    let mut write = Transport::new(position.write(), PEER, Psn::new(100));
    write.payload = Payload::data(bytes);
    write.ack_request = true;
    write.extended.reth = RemoteMemory {
        address: 0x7f00_0000_1000,
        key: 0x1234,
        length: 4096,
    };
    write
}

/// Every defined opcode of RC, UC, UD and XRC, the answers, and a connection's messages.
fn transports() -> Vec<Transport> {
    let mut all = Vec::new();
    for opcode in (0..=u8::MAX).map(Opcode) {
        // RD (0x40 to 0x5f) was never built, and tshark does not know its headers.
        if !opcode.is_defined() || opcode.0 >> 5 == 2 || opcode.is_cnp() || opcode == Opcode::RC_ACKNOWLEDGE {
            continue;
        }
        let mut transport = write(Position::Only, if opcode.carries_data() { 1021 } else { 0 });
        transport.opcode = opcode;
        transport.extended.source_qpn = QPN;
        transport.extended.queue_key = 0x1111_1111;
        all.push(transport);
    }
    let psn = Psn::new(100);
    all.push(Transport::ack(PEER, psn, 1, 31));
    all.push(Transport::nak(PEER, psn, 1, Nak::PsnSequenceError));
    all.push(Transport::rnr_nak(PEER, psn, 1, RnrTimer::new(14)));
    all.push(Transport::cnp(PEER));
    let ids = [CommId(0x0100_0001), CommId(0x0200_0002)];
    let (source, destination) = (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]));
    let messages = [
        Message::Req(Req::new(source, destination, QPN, Psn::new(7))),
        Message::Rep(Rep::new(PEER, Psn::new(9))),
        Message::Rtu,
        Message::Dreq { remote_qpn: PEER },
        Message::Drep,
    ];
    for (number, message) in (0..).zip(messages) {
        let passive = matches!(message, Message::Rep(_) | Message::Drep);
        let [local_id, remote_id] = if passive { [ids[1], ids[0]] } else { ids };
        let datagram = Datagram {
            transaction: 0x1_0000_0001,
            local_id,
            remote_id,
            message,
        };
        all.push(Transport::management(Psn::new(number), datagram));
    }
    all
}

/// The NIC itself, and mirrors of each kind, one of them cutting.
fn taps() -> [Tap; 5] {
    let mirrored = |name, kind, truncate| Tap {
        mirror: Some(Mirror {
            tunnel: Tunnel {
                ethernet: Ethernet::new(THERE, HERE),
                network: Network {
                    ecn: Ecn::NotEct,
                    ..Network::new(Address::v4([192, 168, 0, 1]), Address::v4([192, 168, 0, 2]))
                },
                kind,
                truncate,
            },
            clock: Clock::default(),
            delay: Span(500),
            first_sequence: 1,
        }),
        ..Tap::new(name)
    };
    let type_2 = TunnelKind::ErspanII {
        session: 10,
        index: 3,
    };
    let type_3 = TunnelKind::ErspanIII {
        session: 11,
        hardware: 4,
        granularity: Granularity::HundredNanoseconds,
        egress: false,
    };
    let vxlan = TunnelKind::Vxlan {
        identifier: 5000,
        source_port: 0xd000,
    };
    [
        Tap {
            loss_report: LossReport::Statistics,
            ..Tap::new("nic")
        },
        mirrored("erspan2", type_2, None),
        mirrored("erspan3", type_3, None),
        mirrored("vxlan", vxlan, None),
        mirrored("erspan2-cut", type_2, Some(128)),
    ]
}
