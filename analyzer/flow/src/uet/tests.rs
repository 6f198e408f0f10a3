//! Rare and hostile packets. Whole connections are in `tests/command/uet.rs`.

use roce_model::{Address, MrcConnectionRow, MrcSack};

use super::*;

const A: Address = Address::v4([10, 0, 0, 1]);
const B: Address = Address::v4([10, 0, 0, 2]);

/// Observes packets of A's connection 7, which is 8 at B.
#[derive(Default)]
struct Wire {
    uet: Uet,
    now: u64,
    events: Vec<EventRow>,
}

impl Wire {
    fn see(&mut self, headers: UetHeaders, is_again: bool, tap: u32) {
        self.now += 10_000;
        let is_answer = matches!(headers, UetHeaders::Ack { .. } | UetHeaders::Nack { .. });
        let (source, destination) = if is_answer { (B, A) } else { (A, B) };
        let packet = UetPacket {
            before: 0,
            time: Time(1_000_000 + self.now),
            tap: TapId(tap),
            wire_bytes: 1000,
            source,
            destination,
            udp_source_port: 0x5000,
            flow_label: None,
            traffic_class: 0,
            hop_limit: 64,
            outer: None,
            payload_bytes: 900,
            is_trimmed: false,
            is_again,
            hash: Self::hash(headers, is_again),
            headers,
            semantics: None,
        };
        self.uet.observe(&packet, &mut self.events);
    }

    /// Equal headers have equal hashes.
    fn hash(headers: UetHeaders, is_again: bool) -> u32 {
        let text = format!("{headers:?}{is_again}");
        text.bytes()
            .fold(1_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte))
    }

    fn send(&mut self, psn: u32, first_psn: Option<u32>, is_again: bool) {
        let headers = UetHeaders::Request {
            is_ordered: false,
            psn,
            ids: [7, 8],
            first_psn,
        };
        self.see(headers, is_again, 0);
    }

    fn ack(&mut self, cumulative: u32, named: i16, bitmap: u64) {
        let sack = MrcSack {
            advice: 0,
            answers_probe: false,
            named,
            entropy: None,
            ids: [8, 7],
            cumulative,
            window: 0,
            offset: 1,
            bitmap,
            state: None,
        };
        let headers = UetHeaders::Ack {
            sack,
            asks_close: false,
        };
        self.see(headers, false, 0);
    }

    fn rows(self) -> Vec<MrcConnectionRow> {
        let mut conclusion = MrcConclusion::default();
        self.uet.conclude(&mut conclusion, &mut Vec::new());
        conclusion.connections
    }
}

#[test]
fn a_number_that_is_used_again_is_another_connection() {
    let mut wire = Wire::default();
    wire.send(100, Some(100), false);
    wire.send(101, None, false);
    wire.ack(101, 0, 0);
    // The first packet of a new one, and one that opens the same one.
    wire.send(7000, Some(7000), false);
    wire.send(7001, Some(7000), false);
    wire.ack(7001, 0, 0);
    let rows = wire.rows();
    let packets: Vec<u64> = rows.iter().map(|row| row.packets).collect();
    assert_eq!(packets, [2, 2]);
    assert!(rows.iter().all(|row| row.open == 0 && row.lost == 0));
}

#[test]
fn copies_of_one_tap_are_no_packets() {
    let mut wire = Wire::default();
    wire.send(100, None, false);
    wire.now -= 10_000;
    wire.send(100, None, false);
    wire.send(101, None, false);
    wire.ack(101, 0, 0);
    let rows = wire.rows();
    assert_eq!((rows[0].packets, rows[0].retransmitted_packets), (2, 0));
}

#[test]
fn an_answer_alone_opens_the_connection_that_its_data_join() {
    let mut wire = Wire::default();
    wire.ack(99, 0, 0);
    wire.send(100, None, false);
    wire.ack(99, 2, 0b10);
    let rows = wire.rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].sacks, rows[0].requestor_pdc, rows[0].responder_pdc),
        (2, Some(7), Some(8))
    );
}

#[test]
fn hostile_numbers_are_bounded() {
    let mut wire = Wire::default();
    let mut random = 1_u32;
    for _ in 0..20_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        wire.send(
            random,
            random.is_multiple_of(3).then_some(random ^ 5),
            random & 8 != 0,
        );
        wire.ack(
            random.rotate_left(7),
            i16::from_be_bytes([0x7f, random.to_be_bytes()[0]]),
            u64::from(random) << 20,
        );
    }
    assert!(wire.uet.facts.len() <= 1 << 14);
    let _ = wire.rows();
}
