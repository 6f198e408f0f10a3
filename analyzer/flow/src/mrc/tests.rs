//! Hostile and rare packets. Whole connections with their truth are in `tests/command/mrc.rs`.

use roce_model::{MrcConnectionRow, MrcSack, MrcState, TapId, Time};
use roce_wire::{Bth, Carrier, Roce};

use super::*;

const A: Address = Address::v4([10, 0, 0, 1]);
const B: Address = Address::v4([10, 0, 0, 2]);

/// A packet with a BTH, at a time.
fn packet(source: Address, destination: Address, bth: [u8; 12], time: u64) -> Packet {
    Packet {
        time: Time(time),
        roce: Roce {
            source,
            destination,
            bth: Bth(bth),
            carrier: Carrier::RoceV2Ipv4,
            ..Roce::default()
        },
        ..Packet::default()
    }
}

fn bth(opcode: u8, qpn: u8, flags: u8, psn: u32) -> [u8; 12] {
    let [_, a, b, c] = psn.to_be_bytes();
    [opcode, 0, 0xff, 0xff, 0, 0, 0, qpn, flags, a, b, c]
}

fn of(headers: MrcHeaders) -> MrcPacket {
    MrcPacket {
        packet: 0,
        headers,
        flow_label: 0,
        outer: None,
        payload_bytes: 1024,
        is_trimmed: false,
        is_proof: !matches!(headers, MrcHeaders::Write(_) | MrcHeaders::Acknowledge { .. }),
        udp_port: 4791,
    }
}

fn write(message: u16, address: u64) -> MrcHeaders {
    MrcHeaders::Write(MrcWrite {
        message,
        stamp: None,
        address,
        key: 1,
        length: 8192,
    })
}

fn sack(cumulative: u32, offset: i16, bitmap: u64) -> MrcHeaders {
    MrcHeaders::Sack(MrcSack {
        advice: 0,
        answers_probe: false,
        named: 0,
        entropy: Some(0),
        ids: [7, 8],
        cumulative,
        window: 8,
        offset,
        bitmap,
        state: Some(MrcState {
            stamp: Some(0),
            out_of_order: 0,
            penalty: 0,
        }),
    })
}

/// A SACK that a packet has caused which came by a UDP source port.
fn naming(cumulative: u32, named: u32, port: u16, bitmap: u64) -> MrcHeaders {
    let MrcHeaders::Sack(plain) = sack(cumulative, 1, bitmap) else {
        unreachable!("it is a SACK");
    };
    MrcHeaders::Sack(MrcSack {
        named: i16::try_from(i64::from(named) - i64::from(cumulative)).unwrap(),
        entropy: Some(port.into()),
        ..plain
    })
}

/// Observes packets of A to queue pair 7 of B, and answers to queue pair 8 of A.
struct Wire {
    mrc: Mrc,
    now: u64,
    events: Vec<EventRow>,
}

impl Wire {
    fn new() -> Self {
        Self {
            mrc: Mrc::default(),
            now: 1_000_000,
            events: Vec::new(),
        }
    }

    fn see(&mut self, packet: Packet, headers: MrcHeaders) -> SeenMrc {
        self.now += 1_000;
        let headers = of(headers);
        self.mrc.recognise(&packet, &headers);
        self.mrc.observe(&packet, &headers, &mut self.events)
    }

    fn send(&mut self, psn: u32, again: bool) -> SeenMrc {
        let flags = if again { 0x20 } else { 0 };
        let data = packet(A, B, bth(0xc7, 7, flags, psn), self.now);
        self.see(data, write(1, u64::from(psn) * 1024))
    }

    /// 26 is missing 3 us after it was sent, and no round trip took longer than 1 us.
    fn with_a_packet_missing() -> Self {
        let mut wire = Self::new();
        for psn in 1..=25 {
            wire.send_by(psn, 1, false);
            wire.answer(naming(psn, psn, 1, 0));
        }
        for psn in 26..=28 {
            wire.send_by(psn, 1, false);
        }
        wire.answer(naming(25, 28, 1, 0b110));
        wire
    }

    /// A packet by a UDP source port.
    fn send_by(&mut self, psn: u32, port: u16, again: bool) -> SeenMrc {
        let flags = if again { 0x20 } else { 0 };
        let mut data = packet(A, B, bth(0xc7, 7, flags, psn), self.now);
        data.roce.udp_source_port = port;
        self.see(data, write(1, u64::from(psn) * 1024))
    }

    fn answer(&mut self, headers: MrcHeaders) -> SeenMrc {
        let answer = packet(B, A, bth(0xdc, 8, 0, 0), self.now);
        self.see(answer, headers)
    }

    fn row(self) -> MrcConnectionRow {
        self.mrc.conclude(&mut Vec::new()).connections[0].clone()
    }
}

#[test]
fn a_queue_pair_is_known_by_a_control_packet_or_by_two_writes() {
    let is_known = |mrc: &Mrc, qpn| mrc.is_proven(A, B, Qpn::new(qpn));
    let mut wire = Wire::new();
    wire.send(1, false);
    assert!(!is_known(&wire.mrc, 7), "one WRITE may be of DC");
    wire.send(2, false);
    assert!(is_known(&wire.mrc, 7) && !is_known(&wire.mrc, 6));
    let mut wire = Wire::new();
    wire.answer(sack(1, 1, 0));
    assert!(is_known(&wire.mrc, 7), "the SACK names it");
    assert!(wire.mrc.is_proven(B, A, Qpn::new(8)));
    // Packets of another transport: addresses, keys and lengths by chance.
    let mut wire = Wire::new();
    for number in 0..1_000_u32 {
        let data = packet(A, B, bth(0xc7, 5, 0, number), wire.now);
        let random = number.wrapping_mul(2_654_435_761);
        let headers = MrcHeaders::Write(MrcWrite {
            message: 1,
            stamp: None,
            address: u64::from(random),
            key: random,
            length: random,
        });
        wire.see(data, headers);
    }
    assert!(!is_known(&wire.mrc, 5));
}

/// Holes that fill are reordering; what is sent again after a hole was lost or late; what had arrived was needless.
#[test]
fn each_retransmission_has_its_cause() {
    let mut wire = Wire::new();
    for psn in 0..20 {
        wire.send(psn, false);
    }
    // All up to 3; 5, 7 and 8 as well. 4 and 6 are holes.
    assert_eq!(wire.answer(sack(3, 1, 0b1_1010)).holes, 2);
    // 4 came late.
    wire.answer(sack(5, 1, 0b110));
    assert!(wire.send(6, true).is_again);
    wire.send(2, true);
    wire.answer(sack(19, 1, 0));
    let causes: Vec<&str> = wire
        .events
        .iter()
        .filter_map(|event| event.detail.as_deref())
        .collect();
    assert_eq!(causes, ["hole", "unknown"]);
    let row = wire.row();
    // 6 was missing 14 us after it was sent. The only round trip that is known took 17 us: it may have been late.
    assert_eq!(
        (row.rtx_hole, row.lost, row.undecided, row.spurious, row.reordered),
        (1, 0, 1, 1, 1)
    );
    assert_eq!((row.open, row.data_packets, row.packets), (0, 20, 22));
}

/// PSNs wrap after 2^24, and a SACK's offset may leave some out.
#[test]
fn positions_go_on_where_psns_wrap() {
    let mut wire = Wire::new();
    for step in 0..40 {
        wire.send((0xff_fff0 + step) & 0xff_ffff, false);
    }
    // All up to 0xffffff; not a word about the next three; then 3 and 5.
    assert_eq!(wire.answer(sack(0xff_ffff, 4, 0b101)).holes, 1);
    wire.answer(sack(0x17, 1, 0));
    let row = wire.row();
    assert_eq!((row.first_psn, row.last_psn), (Some(0xff_fff0), Some(0x17)));
    assert_eq!((row.reordered, row.open, row.lost), (1, 0, 0));
}

/// A second tap sees the same packets: nothing counts twice.
#[test]
fn packets_of_two_taps_count_once() {
    let mut wire = Wire::new();
    for psn in 0..10 {
        wire.send(psn, false);
        let mut again = packet(A, B, bth(0xc7, 7, 0, psn), wire.now);
        again.tap = TapId(1);
        assert_eq!(
            wire.see(again, write(1, u64::from(psn) * 1024)),
            SeenMrc::default()
        );
    }
    let mut other = packet(B, A, bth(0xdc, 8, 0, 0), wire.now);
    wire.answer(sack(9, 1, 0));
    other.tap = TapId(1);
    wire.see(other, sack(9, 1, 0));
    let row = wire.row();
    assert_eq!(
        (row.packets, row.sacks, row.taps, row.retransmitted_packets),
        (10, 1, 2, 0)
    );
}

/// A mirror may show a packet twice. A requestor never sends the same bytes again: its retransmissions say so and have another EV.
#[test]
fn a_copy_at_the_same_tap_is_no_sending() {
    let mut wire = Wire::with_a_packet_missing();
    // 26 to 28 again 3 us later, and the retransmission of 26 with its copy.
    for psn in 26..=28 {
        assert_eq!(wire.send_by(psn, 1, false), SeenMrc::default());
    }
    assert!(wire.send_by(26, 2, true).is_again);
    wire.now -= 900;
    assert_eq!(wire.send_by(26, 2, true), SeenMrc::default());
    wire.answer(naming(28, 26, 2, 0));
    let row = wire.row();
    assert_eq!((row.packets, row.retransmitted_packets, row.spurious), (29, 1, 0));
}

/// Queue pairs that are set up again begin with PSNs that were sent before: that is another connection, not retransmissions.
#[test]
fn a_queue_pair_that_begins_again_is_another_connection() {
    let mut wire = Wire::with_a_packet_missing();
    wire.answer(naming(28, 26, 1, 0));
    wire.now += 10_000_000;
    for psn in 1..=25 {
        wire.send_by(psn, 1, false);
        wire.answer(naming(psn, psn, 1, 0));
    }
    let conclusion = wire.mrc.conclude(&mut Vec::new());
    let rows = conclusion.connections.iter();
    let counts: Vec<_> = rows
        .map(|row| (row.packets, row.sacks, row.retransmitted_packets, row.spurious))
        .collect();
    assert_eq!(counts, [(28, 27, 0, 0), (25, 25, 0, 0)]);
    // A packet that was not acknowledged is sent again after a silence, whatever its flag says.
    let mut wire = Wire::with_a_packet_missing();
    wire.now += 10_000_000;
    wire.send_by(26, 2, false);
    let conclusion = wire.mrc.conclude(&mut Vec::new());
    assert_eq!(conclusion.connections.len(), 1);
    assert_eq!(conclusion.connections[0].retransmitted_packets, 1);
}

/// Random headers, PSNs and queue pairs: nothing falls over, and nothing grows beyond its bound.
#[test]
fn anything_is_taken() {
    let mut state = 1_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut wire = Wire::new();
    #[expect(clippy::cast_possible_truncation, reason = "random numbers")]
    for _ in 0..200_000 {
        let (a, b) = (next(), next());
        let psn = match a % 4 {
            0 => a as u32 & 0xff_ffff,
            _ => (a >> 8) as u32 & 0xff,
        };
        let ids = [(b >> 8) as u16 & 3, (b >> 16) as u16 & 3];
        let headers = match b % 8 {
            0..3 => write((a >> 40) as u16, a),
            3 => MrcHeaders::Sack(MrcSack {
                advice: (a >> 50) as u8 & 3,
                answers_probe: a & 64 != 0,
                named: (a >> 20) as i16,
                entropy: Some(b as u32),
                ids,
                cumulative: psn,
                window: 0,
                offset: (b >> 24) as i16,
                bitmap: next(),
                state: None,
            }),
            4 => MrcHeaders::Nack {
                reason: (a >> 30) as u8 & 15,
                entropy: a as u32,
                ids,
                psn,
                stamp: 0,
            },
            5 => MrcHeaders::Probe {
                number: a as u16,
                ids,
            },
            6 => MrcHeaders::Acknowledge {
                syndrome: a as u8,
                messages: 0,
            },
            _ => MrcHeaders::Request {
                operation: 0,
                ports: a as u32,
            },
        };
        let (from, to) = if matches!(headers, MrcHeaders::Write(_)) {
            (A, B)
        } else {
            (B, A)
        };
        let opcode = if matches!(headers, MrcHeaders::Write(_)) {
            0xc6 + (a >> 60) as u8 % 6
        } else {
            0xdc
        };
        let mut packet = packet(
            from,
            to,
            bth(opcode, (b >> 32) as u8 & 3, (b >> 40) as u8 & 0x20, psn),
            wire.now,
        );
        packet.roce.udp_source_port = (a >> 12) as u16;
        packet.tap = TapId((b >> 48) as u32 & 1);
        packet.extended = b as u32;
        wire.see(packet, headers);
        wire.events.clear();
    }
    let conclusion = wire.mrc.conclude(&mut Vec::new());
    assert!(conclusion.connections.len() <= 16);
    assert!(conclusion.paths.len() <= 1024 * conclusion.connections.len());
    for row in &conclusion.connections {
        assert!(
            row.lost <= row.retransmitted_packets && row.messages_complete <= row.messages,
            "{row:?}"
        );
    }
}

/// A SACK that comes sooner after a retransmission than any answer can come speaks of the first sending, which others had overtaken.
#[test]
fn what_arrives_before_its_retransmission_can_was_not_lost() {
    for (sooner, lost) in [(500, 0), (0, 1)] {
        let mut wire = Wire::new();
        // 1 us from each packet to its SACK.
        for psn in 1..=25 {
            wire.send(psn, false);
            wire.answer(sack(psn, 1, 0));
        }
        for psn in 26..=28 {
            wire.send(psn, false);
        }
        wire.answer(naming(25, 28, 0, 0b110));
        wire.send(26, true);
        wire.now -= sooner;
        wire.answer(naming(28, 26, 0, 0));
        let row = wire.row();
        assert_eq!(
            (row.rtx_hole, row.lost, row.spurious),
            (1, lost, 1 - lost),
            "{sooner}"
        );
    }
}

/// A SACK that names an earlier sending says that it was late, also when so many packets followed that nothing else is known of it.
#[test]
fn what_comes_very_late_was_not_lost() {
    for is_late in [false, true] {
        let mut wire = Wire::with_a_packet_missing();
        wire.send_by(26, 2, true);
        wire.answer(naming(28, 26, 2, 0));
        for psn in 29..=600 {
            wire.send_by(psn, 1, false);
            wire.now -= 999;
        }
        if is_late {
            wire.answer(naming(28, 26, 1, 0));
        }
        let row = wire.row();
        assert_eq!((row.lost, row.spurious), if is_late { (0, 1) } else { (1, 0) });
    }
}

/// A packet is lost, sent again, overtaken and sent once more: the first sending was lost, and the second one was not.
#[test]
fn each_sending_of_a_packet_has_its_own_fate() {
    let mut wire = Wire::with_a_packet_missing();
    wire.send_by(26, 2, true);
    wire.send_by(29, 1, false);
    wire.answer(naming(25, 29, 1, 0b1110));
    wire.send_by(26, 3, true);
    // The SACK names the second sending.
    wire.answer(naming(29, 26, 2, 0));
    wire.answer(naming(29, 26, 3, 0));
    let conclusion = wire.mrc.conclude(&mut Vec::new());
    let lost: Vec<_> = conclusion.paths.iter().map(|path| path.lost).collect();
    assert_eq!(lost, [1, 0, 0]);
    let row = &conclusion.connections[0];
    assert_eq!((row.retransmitted_packets, row.lost, row.spurious), (2, 1, 1));
}

/// Reason 25 ends a connection, if it falls silent then.
#[test]
fn a_connection_that_goes_on_has_not_failed() {
    for goes_on in [false, true] {
        let mut wire = Wire::new();
        wire.send(1, false);
        wire.send(2, false);
        wire.answer(MrcHeaders::Nack {
            reason: 25,
            entropy: 0,
            ids: [7, 8],
            psn: 2,
            stamp: 0,
        });
        if goes_on {
            wire.send(3, false);
        }
        let row = wire.row();
        assert_eq!((row.nacks_failed, row.failed), (1, !goes_on));
    }
}
