//! Packets of UET, as the analysis takes them.

use roce_model::{Between, MrcSack, MrcState, Packet, UetHeaders, UetPacket};
use roce_wire::Roce;
use roce_wire::transport::uet::{self, AckState, Delivery, Prologue};

use super::Decoder;
use super::path::ChosenPath;

impl Decoder {
    /// Takes a packet of UET, which is in no flow.
    pub(super) fn uet(
        &mut self,
        bytes: &[u8],
        (packet, roce): (&Packet, &Roce),
        (at, is_short): (usize, bool),
        between: &mut Vec<Between>,
    ) {
        if !self.shard.takes(roce) {
            return;
        }
        if self.filter.as_ref().is_some_and(|filter| !filter.matches(roce)) || self.chosen.is_some() {
            self.totals.filtered += 1;
            return;
        }
        self.totals.uet_packets += 1;
        if let Some(found) = read(bytes, (packet, roce), at, is_short) {
            self.totals.uet_encrypted += u64::from(matches!(found.headers, UetHeaders::Secure { .. }));
            between.push(Between::Uet(Box::new(found)));
        }
    }
}

/// Multiplier of the hash of headers.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The packet of a frame, which comes before the one at `before` of its batch. `frame_packet` has its time, tap and length, `roce` the
/// fields of its network. `None`: its headers are not whole.
fn read(
    frame: &[u8],
    (frame_packet, roce): (&Packet, &Roce),
    before: usize,
    is_short: bool,
) -> Option<UetPacket> {
    let start = usize::from(roce.bth_offset);
    let bytes = frame.get(start..)?;
    let headers = uet::parse(bytes)?;
    let prologue = Prologue(*bytes.first_chunk()?);
    let kind = prologue.kind()?;
    let is_trimmed = is_short && kind.carries_data();
    let rest = (roce.payload_bytes as usize).saturating_sub(headers.header_bytes);
    let payload = headers.stated_payload.map_or(rest, |stated| stated.min(rest));
    let path = ChosenPath::read(frame, roce)?;
    Some(UetPacket {
        before,
        time: frame_packet.time,
        tap: frame_packet.tap,
        wire_bytes: frame_packet.wire_bytes,
        source: roce.source,
        destination: roce.destination,
        udp_source_port: roce.udp_source_port,
        flow_label: path.flow_label,
        traffic_class: roce.traffic_class,
        hop_limit: roce.hop_limit,
        outer: path.outer,
        payload_bytes: if is_trimmed {
            0
        } else {
            u32::try_from(payload).unwrap_or(0)
        },
        is_trimmed,
        is_again: prologue.is_again() && !matches!(headers.delivery, Delivery::Secure(_)),
        hash: hash(bytes.get(..headers.header_bytes).unwrap_or(bytes), roce),
        headers: delivery(&headers.delivery, kind),
        semantics: headers.semantics,
    })
}

/// A hash of headers, and of what tells two packets with equal headers.
fn hash(bytes: &[u8], roce: &Roce) -> u32 {
    let ends = u64::from(roce.ip_id) << 16 | u64::from(roce.udp_source_port);
    let add = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(SPREAD);
    let (words, rest) = bytes.as_chunks::<4>();
    let hash = words
        .iter()
        .fold(ends, |hash, word| add(hash, u32::from_le_bytes(*word).into()));
    let hash = rest.iter().fold(hash, |hash, byte| add(hash, (*byte).into()));
    (add(hash, 1) >> 32) as u32
}

fn delivery(headers: &Delivery<'_>, kind: uet::Kind) -> UetHeaders {
    match headers {
        Delivery::Secure(secure) => UetHeaders::Secure {
            domain: secure.domain(),
            source: secure.source(),
        },
        Delivery::Request(request) => UetHeaders::Request {
            is_ordered: kind == uet::Kind::OrderedRequest,
            psn: request.psn(),
            ids: request.ids(),
            first_psn: request.first_psn(),
        },
        Delivery::Connectionless if kind == uet::Kind::Datagram => UetHeaders::Datagram,
        Delivery::Connectionless => UetHeaders::Idempotent,
        Delivery::Ack(ack, state) => UetHeaders::Ack {
            sack: MrcSack {
                advice: u8::from(ack.prologue().is_marked()),
                answers_probe: ack.prologue().answers_probe(),
                named: ack.named_offset(),
                entropy: None,
                ids: ack.ids(),
                cumulative: ack.cumulative(),
                window: 0,
                offset: state.map_or(0, |state| state.bitmap_offset()),
                bitmap: state.map_or(0, |state| state.bitmap()),
                state: state.filter(AckState::has_signals).map(|state| MrcState {
                    stamp: None,
                    out_of_order: state.out_of_order(),
                    penalty: state.penalty(),
                }),
            },
            asks_close: ack.prologue().asks() == 2,
        },
        Delivery::Nack(nack) => UetHeaders::Nack {
            code: nack.code(),
            psn: (!nack.prologue().is_about_id()).then_some(nack.psn()),
            ids: nack.ids(),
        },
        Delivery::Control(control) => UetHeaders::Control {
            kind: control.prologue().next(),
            probe: control.probe(),
            ids: control.ids(),
        },
    }
}
