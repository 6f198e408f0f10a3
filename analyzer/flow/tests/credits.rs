//! Credits of NCCL and the data that came for them. Layouts are those of `struct ncclIbSendFifo` in NCCL, `src/transport/net_ib.cc`.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use roce_flow::{Analysis, Conclusion, JoinedCredits, Options, join_credits};
use roce_model::{
    Between, CreditedMessage, Packet, PacketBatch, PacketFlags, RemoteWrite, TapId, Time, WriteTarget,
};
use roce_wire::{Address, Aeth, Bth, Opcode, Qpn, Roce};

const SENDER: Address = Address::v4([10, 0, 0, 1]);
const RECEIVER: Address = Address::v4([10, 0, 0, 2]);
/// Queue pairs of the two: data go to the receiver's, credits and acknowledgements to the sender's.
const RECEIVER_QPN: u32 = 0x22;
const SENDER_QPN: u32 = 0x11;
/// Where the ring begins at the sender.
const RING: u64 = 0x7f00_0000_0000;
/// The first buffer, and the distance to the next of eight.
const BUFFER: u64 = 0x7e00_0000_0000;
const BUFFER_BYTES: u64 = 1 << 19;
const KEY: u32 = 0x1234;
const MTU: u32 = 4096;

/// One release's credits.
#[derive(Clone, Copy)]
struct Release {
    element: u32,
    stride: u64,
    slots: u64,
    credit: fn(u64, u64) -> Vec<u8>,
}

/// Words in little endian order.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Address, length, and the rest of a credit; the rank that it names is 5.
fn element(buffer: u64, rest: &[u32], number: Option<u64>, length: usize) -> Vec<u8> {
    let mut bytes = buffer.to_le_bytes().to_vec();
    bytes.extend(words(rest));
    bytes.extend(
        number
            .map(|number| (number + 1).to_le_bytes())
            .into_iter()
            .flatten(),
    );
    bytes.resize(length, 0);
    bytes
}

/// The low half of a number.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}

const SIZE: u32 = 1 << 19;
const V2_7: Release = Release {
    element: 24,
    stride: 24,
    slots: 128,
    credit: |buffer, number| element(buffer, &[SIZE, low(number), KEY, 1], None, 24),
};
const V2_11: Release = Release {
    element: 32,
    stride: 32,
    slots: 8,
    credit: |buffer, number| element(buffer, &[SIZE, low(number), KEY, 1], None, 32),
};
const V2_18: Release = Release {
    element: 32,
    stride: 256,
    slots: 64,
    credit: |buffer, number| element(buffer, &[SIZE, KEY, 1, 5], Some(number), 32),
};
const V2_19: Release = Release { slots: 256, ..V2_18 };
const V2_23: Release = Release {
    element: 64,
    stride: 512,
    slots: 256,
    credit: |buffer, number| element(buffer, &[SIZE, KEY, 0, 1, 5, 0], Some(number), 64),
};
const V2_27: Release = Release {
    credit: |buffer, number| element(buffer, &[SIZE, 0, KEY, 0, 0, 0, 1, 5], Some(number), 64),
    ..V2_23
};
const V2_30: Release = Release {
    credit: |buffer, number| {
        element(
            buffer,
            &[SIZE, 0, KEY, 0, 0, 0, 0, 0, 0, 0, 1, 5],
            Some(number),
            64,
        )
    },
    ..V2_23
};

/// Address, key, length, count of one byte, what stands before the number, the number, and what stands behind it (amd-anp, `src/net_ib.cc`; RCCL,
/// `net_ib_cast`).
fn packed(buffer: u64, before: &[u8], number: u64, length: usize) -> Vec<u8> {
    let mut bytes = buffer.to_le_bytes().to_vec();
    bytes.extend(words(&[KEY, SIZE]));
    bytes.push(1);
    bytes.extend(before);
    bytes.extend(low(number + 1).to_le_bytes());
    bytes.resize(length, 0);
    bytes
}

const ANP: Release = Release {
    element: 24,
    stride: 256,
    slots: 256,
    credit: |buffer, number| packed(buffer, &[5, 0], number, 24),
};
/// The place of the request, then the rank.
const RCCL_INLINE: Release = Release {
    element: 64,
    stride: 512,
    slots: 256,
    credit: |buffer, number| packed(buffer, &[77, 0, 5, 0], number, 64),
};
/// Packets of a run, with what their headers say.
#[derive(Default)]
struct Traffic {
    packets: Vec<(Packet, Option<RemoteWrite>)>,
}

impl Traffic {
    fn packet(&mut self, time: u64, opcode: u8, to_receiver: bool, qpn: u32, psn: u32, payload: u32) {
        let hosts = [SENDER, RECEIVER];
        let (source, destination) = if to_receiver {
            (hosts[0], hosts[1])
        } else {
            (hosts[1], hosts[0])
        };
        let (qpn, psn) = (qpn.to_be_bytes(), psn.to_be_bytes());
        let packet = Packet {
            time: Time(time),
            wire_bytes: payload + 74,
            roce: Roce {
                source,
                destination,
                bth: Bth([
                    opcode, 0, 0xff, 0xff, 0, qpn[1], qpn[2], qpn[3], 0x80, psn[1], psn[2], psn[3],
                ]),
                aeth: Aeth([0x1f, 0, 0, 0]),
                payload_bytes: payload,
                udp_source_port: 0xc000 + u16::from(opcode),
                seen: Opcode(opcode).extended(),
                ..Roce::default()
            },
            ..Packet::default()
        };
        self.packets.push((packet, None));
    }

    fn says(&mut self, target: Option<(u64, u32)>, immediate: Option<u32>, start: &[u8]) {
        let (packet, write) = self.packets.last_mut().unwrap();
        packet.flags = packet.flags.with(PacketFlags::REMOTE_WRITE, true);
        packet.roce.dma_length = target.map_or(0, |(_, length)| length);
        let mut payload = [0; RemoteWrite::MAX_PAYLOAD];
        payload[..start.len()].copy_from_slice(start);
        *write = Some(RemoteWrite {
            packet: 0,
            target: target.map(|(address, length)| WriteTarget {
                address,
                key: KEY,
                length,
            }),
            immediate,
            payload_bytes: u8::try_from(start.len()).unwrap(),
            payload,
        });
    }

    /// The credit with this number, of which `captured` bytes of payload are there.
    fn credit(&mut self, time: u64, release: Release, number: u64, captured: usize) {
        let psn = u32::try_from(number).unwrap();
        self.packet(time, 0x0a, false, SENDER_QPN, psn, release.element);
        let payload = (release.credit)(buffer(number), number);
        let slot = RING + number % release.slots * release.stride;
        self.says(
            Some((slot, release.element)),
            None,
            &payload[..captured.min(payload.len())],
        );
    }

    /// Data of two packets for the credit with this number.
    fn data(&mut self, time: u64, number: u64) {
        let psn = u32::try_from(2 * number).unwrap();
        self.packet(time, 0x06, true, RECEIVER_QPN, psn, MTU);
        self.says(Some((buffer(number), 2 * MTU)), None, &[]);
        self.packet(time + 400, 0x09, true, RECEIVER_QPN, psn + 1, MTU);
        self.says(None, Some((2 * MTU).swap_bytes()), &[]);
    }

    fn acknowledge(&mut self, time: u64, psn: u32) {
        self.packet(time, 0x11, false, SENDER_QPN, psn, 0);
    }

    /// Messages in turn: a credit, data 1 us later, and their acknowledgement after 2 us more.
    fn messages(&mut self, release: Release, numbers: core::ops::Range<u64>, captured: usize) {
        for number in numbers {
            let time = 1_000_000 + 10_000 * number;
            self.credit(time, release, number, captured);
            self.data(time + 1_000, number);
            self.acknowledge(time + 3_000, u32::try_from(2 * number + 1).unwrap());
        }
    }

    /// Removes packets, as a capture that lost them.
    fn lose(&mut self, lost: impl Fn(&Packet) -> bool) {
        self.packets.retain(|(packet, _)| !lost(packet));
    }

    fn joined(self) -> JoinedCredits {
        join_credits(&self.concluded().credits)
    }

    fn concluded(mut self) -> Conclusion {
        self.packets.sort_by_key(|(packet, _)| packet.time);
        let writes = self.packets.iter().enumerate().filter_map(|(at, (_, write))| {
            let write = (*write)?;
            Some(Between::Write(RemoteWrite { packet: at, ..write }))
        });
        let between = writes.collect();
        let packets: Vec<Packet> = self.packets.iter().map(|(packet, _)| *packet).collect();
        let mut analysis = Analysis::new(Options::default());
        analysis.push(&PacketBatch {
            packets: packets.into(),
            between,
            ..PacketBatch::default()
        });
        analysis.finish().1
    }
}

fn buffer(number: u64) -> u64 {
    BUFFER + number % 8 * BUFFER_BYTES
}

/// The only connection's messages, with the numbers of the first.
fn messages(joined: &JoinedCredits) -> &[CreditedMessage] {
    assert_eq!(joined.connections.len(), 1);
    &joined.connections[0].messages
}

#[test]
fn each_layout_is_known_across_the_end_of_the_ring() {
    let layouts = [
        (V2_7, "2.3 to 2.7", None),
        (V2_11, "2.8 to 2.11", None),
        (V2_18, "2.12 to 2.18", Some(5)),
        (V2_19, "2.19", Some(5)),
        (V2_23, "2.20 to 2.23", Some(5)),
        (V2_27, "2.24 to 2.28", Some(5)),
        (V2_30, "2.30", Some(5)),
        (ANP, "amd-anp", Some(5)),
        (RCCL_INLINE, "RCCL with inline credits", Some(5)),
    ];
    for (release, name, rank) in layouts {
        let mut traffic = Traffic::default();
        // 245 and on, so that rings of 8 to 256 slots begin again.
        traffic.messages(release, 245..275, 64);
        let joined = traffic.joined();
        let connection = &joined.connections[0];
        assert_eq!((connection.layout, connection.sender_rank), (Some(name), rank));
        assert_eq!((connection.sender, connection.receiver), (SENDER, RECEIVER));
        let messages = messages(&joined);
        assert_eq!((messages.len(), connection.left_out), (30, 0), "{name}");
        for (message, number) in messages.iter().zip(245_u64..) {
            let time = 1_000_000 + 10_000 * number;
            assert_eq!((message.bytes, message.buffer), (8192, buffer(number)));
            // The credit is answered 1 us later, the data 2.6 us after their last packet: the tap is beside the sender.
            assert_eq!(message.credit.arrival, Some(Time(time)));
            assert_eq!(message.first.departure, Some(Time(time + 1_000)));
            assert_eq!(message.last.departure, Some(Time(time + 1_400)));
            assert_eq!(message.acknowledgement.arrival, Some(Time(time + 3_000)));
            assert_eq!(message.last.arrival, None, "no tap there");
            if rank.is_some() {
                assert_eq!(message.number, number);
            }
        }
    }
}

#[test]
fn a_short_frame_still_names_the_buffer() {
    // 78 bytes of an IPv4 frame have 8 of the payload: the address.
    let mut traffic = Traffic::default();
    traffic.messages(V2_30, 0..20, 8);
    let joined = traffic.joined();
    assert_eq!(messages(&joined).len(), 20);
    let connection = &joined.connections[0];
    assert_eq!((connection.layout, connection.sender_rank), (None, None));
}

#[test]
fn a_credit_that_comes_twice_is_one() {
    let mut traffic = Traffic::default();
    traffic.messages(V2_30, 0..20, 64);
    // A PSN comes once more, before its data; and slot 8 once more from another queue pair.
    traffic.credit(1_000_000 + 50_500, V2_30, 5, 64);
    traffic.credit(1_000_000 + 80_500, V2_30, 8, 64);
    let (again, _) = traffic.packets.last_mut().unwrap();
    again.roce.bth = Bth([0x0a, 0, 0xff, 0xff, 0, 0, 0, 0x13, 0x80, 0, 0, 77]);
    let joined = traffic.joined();
    let messages = messages(&joined);
    assert_eq!((messages.len(), joined.connections[0].left_out), (20, 0));
    assert_eq!(
        messages[5].credit.arrival,
        Some(Time(1_050_000)),
        "the first time"
    );
    assert_eq!(messages[8].credit.arrival, Some(Time(1_080_000)));
    assert_eq!(joined.rows[0].credit_flows, 2);
}

#[test]
fn a_message_with_a_missing_record_is_left_out() {
    let lost = |opcode: u8, psn: u32| {
        move |packet: &Packet| {
            packet.roce.bth.opcode() == Opcode(opcode) && packet.roce.bth.psn().value() == psn
        }
    };
    // The credit, the first and the last packet of message 9; the next ones are not shifted.
    for lose in [lost(0x0a, 9), lost(0x06, 18), lost(0x09, 19)] {
        let mut traffic = Traffic::default();
        traffic.messages(V2_30, 0..20, 64);
        traffic.lose(lose);
        let joined = traffic.joined();
        let numbers: Vec<u64> = messages(&joined).iter().map(|message| message.number).collect();
        let expected: Vec<u64> = (0..20).filter(|number| *number != 9).collect();
        assert_eq!(numbers, expected);
        assert_eq!(joined.connections[0].left_out, 1);
    }
}

#[test]
fn data_before_the_first_credit_and_credits_without_data_are_counted() {
    let mut traffic = Traffic::default();
    traffic.messages(V2_30, 4..20, 64);
    // The capture begins after four credits, and ends before data of the last three.
    for number in 0..4 {
        traffic.data(1_000_000 + 1_000 * number, number);
    }
    for number in 20..23 {
        traffic.credit(2_000_000 + number, V2_30, number, 64);
    }
    let joined = traffic.joined();
    assert_eq!(messages(&joined).len(), 16);
    assert_eq!(joined.connections[0].left_out, 4);
    assert_eq!(joined.rows[0].credits_unused, 3);
}

#[test]
fn data_for_a_used_credit_belong_to_none() {
    // A whole turn of buffers later, without the credits in between: those were lost by the capture.
    let mut traffic = Traffic::default();
    traffic.messages(V2_30, 0..24, 64);
    traffic.lose(|packet| {
        packet.roce.bth.opcode() == Opcode(0x0a) && (8..16).contains(&packet.roce.bth.psn().value())
    });
    let joined = traffic.joined();
    let numbers: Vec<u64> = messages(&joined).iter().map(|message| message.number).collect();
    let expected: Vec<u64> = (0..8).chain(16..24).collect();
    assert_eq!(numbers, expected);
    assert_eq!(joined.connections[0].left_out, 8);
}

#[test]
fn adaptive_routing_ends_a_message_with_an_empty_write() {
    let mut traffic = Traffic::default();
    for number in 0..20_u64 {
        let (time, psn) = (1_000_000 + 10_000 * number, u32::try_from(3 * number).unwrap());
        traffic.credit(time, V2_30, number, 64);
        traffic.packet(time + 1_000, 0x06, true, RECEIVER_QPN, psn, MTU);
        traffic.says(Some((buffer(number), 2 * MTU)), None, &[]);
        traffic.packet(time + 1_400, 0x08, true, RECEIVER_QPN, psn + 1, MTU);
        traffic.packet(time + 1_500, 0x0b, true, RECEIVER_QPN, psn + 2, 0);
        traffic.says(Some((0, 0)), Some(2 * MTU), &[]);
        traffic.acknowledge(time + 3_500, psn + 2);
    }
    let joined = traffic.joined();
    for (message, number) in messages(&joined).iter().zip(0_u64..) {
        let time = 1_000_000 + 10_000 * number;
        assert_eq!((message.number, message.bytes), (number, 8192));
        assert_eq!(message.last.departure, Some(Time(time + 1_500)));
        assert_eq!(message.acknowledgement.arrival, Some(Time(time + 3_500)));
    }
    assert_eq!((messages(&joined).len(), joined.connections[0].left_out), (20, 0));
}

#[test]
fn what_was_answered_in_two_parts_is_sent_again_for_no_newer_credit() {
    let mut traffic = Traffic::default();
    // Both the data and the empty WRITE behind them are acknowledged.
    let data = |traffic: &mut Traffic, time: u64, number: u64| {
        let psn = u32::try_from(3 * number).unwrap();
        traffic.packet(time, 0x06, true, RECEIVER_QPN, psn, MTU);
        traffic.says(Some((buffer(number), 2 * MTU)), None, &[]);
        traffic.packet(time + 400, 0x08, true, RECEIVER_QPN, psn + 1, MTU);
        traffic.acknowledge(time + 401, psn + 1);
        traffic.packet(time + 500, 0x0b, true, RECEIVER_QPN, psn + 2, 0);
        traffic.says(Some((0, 0)), Some(2 * MTU), &[]);
        traffic.acknowledge(time + 501, psn + 2);
    };
    for number in 0..16_u64 {
        let time = 1_000_000 + 10_000 * number;
        traffic.credit(time, V2_30, number, 64);
        data(&mut traffic, time + 1_000, number);
    }
    // Behind the tap the last answers are lost. Their buffers are offered again, and the sender's timer repeats three messages.
    for number in 16..24_u64 {
        traffic.credit(1_160_000 + number, V2_30, number, 64);
    }
    for number in 13..16_u64 {
        data(&mut traffic, 3_000_000 + 1_000 * number, number);
    }
    for number in 16..24_u64 {
        data(&mut traffic, 3_100_000 + 1_000 * number, number);
    }
    let joined = traffic.joined();
    for (message, number) in messages(&joined).iter().zip(0_u64..) {
        let time = match number {
            0..16 => 1_001_000 + 10_000 * number,
            _ => 3_100_000 + 1_000 * number,
        };
        assert_eq!((message.number, message.bytes), (number, 8192));
        assert_eq!(message.first.arrival, Some(Time(time)), "{number}");
    }
    assert_eq!((messages(&joined).len(), joined.connections[0].left_out), (24, 0));
}

#[test]
fn small_writes_of_other_programs_are_no_credits() {
    // 64 bytes to the same address, to rising ones of a log, and to any: nobody writes to the addresses in their payload.
    let address: [fn(u64) -> u64; 3] = [
        |_| RING,
        |number| RING + 512 * number,
        |number| RING + number.wrapping_mul(0x9e37_79b9) % (1 << 20) / 64 * 64,
    ];
    for address in address {
        let mut traffic = Traffic::default();
        for number in 0..600_u64 {
            let psn = u32::try_from(number).unwrap();
            traffic.packet(1_000_000 + 1_000 * number, 0x0a, false, SENDER_QPN, psn, 64);
            traffic.says(Some((address(number), 64)), None, &[0; 64]);
            traffic.data(1_000_300 + 1_000 * number, number);
        }
        assert_eq!(traffic.joined().connections.len(), 0);
    }
}

#[test]
fn two_taps_tell_departures_and_arrivals_whatever_their_clocks() {
    let mut traffic = Traffic::default();
    traffic.messages(V2_30, 0..20, 64);
    // The receiver's tap is 700 ns away, and its clock 20 us behind.
    let there: Vec<_> = traffic
        .packets
        .iter()
        .map(|(packet, write)| {
            let way = if packet.roce.source == SENDER {
                20_000 - 700
            } else {
                20_000 + 700
            };
            let time = Time(packet.time.0 - way);
            (
                Packet {
                    time,
                    tap: TapId(1),
                    ..*packet
                },
                *write,
            )
        })
        .collect();
    traffic.packets.extend(there);
    let joined = traffic.joined();
    for (message, number) in messages(&joined).iter().zip(0_u64..) {
        let (here, there) = (1_000_000 + 10_000 * number, 980_000 + 10_000 * number);
        assert_eq!(message.number, number);
        assert_eq!(message.credit.departure, Some(Time(there - 700)));
        assert_eq!(message.credit.arrival, Some(Time(here)));
        assert_eq!(message.first.departure, Some(Time(here + 1_000)));
        assert_eq!(message.first.arrival, Some(Time(there + 1_700)));
        assert_eq!(message.acknowledgement.departure, Some(Time(there + 2_300)));
        assert_eq!(message.acknowledgement.arrival, Some(Time(here + 3_000)));
    }
    assert_eq!(Qpn::new(RECEIVER_QPN).value(), RECEIVER_QPN);
}

#[test]
fn credits_without_their_addresses_are_counted() {
    for release in [V2_7, V2_11, V2_19, V2_23, V2_30] {
        for (captured, credits, cut_rings) in [(2, 40, 1), (2, 8, 0), (6, 40, 0)] {
            let mut capture = Traffic::default();
            capture.messages(release, 0..credits, captured);
            let conclusion = capture.concluded();
            let which = format!("stride {}, {captured} bytes of {credits}", release.stride);
            assert_eq!(conclusion.cut_rings, cut_rings, "{which}");
            assert_eq!(conclusion.credits.is_empty(), captured < 6, "{which}");
        }
    }
}
