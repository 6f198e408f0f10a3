//! Headers of packets that may be of MRC, as the analysis takes them.

use roce_model::{MrcHeaders, MrcPacket, MrcSack, MrcState, MrcWrite, Packet};
use roce_wire::Bth;
use roce_wire::network::udp::{self, Udp};
use roce_wire::transport::mrc::{self, Headers};

use super::path::ChosenPath;

/// The headers of a packet, which is the one at `place` of its batch.
pub(super) fn headers(frame: &[u8], packet: &Packet, place: usize) -> Option<MrcPacket> {
    let roce = &packet.roce;
    if !roce.carrier.has_ip() {
        return None;
    }
    let start = usize::from(roce.bth_offset);
    let udp = Udp(frame.get(start.checked_sub(Udp::BYTES)?..)?.first_chunk()?);
    let parsed = mrc::parse(frame.get(start..)?)?;
    let header_bytes = mrc::header_bytes(&roce.bth)?;
    // A port that is not that of RoCEv2 leads here for MRC alone.
    let has_own_port = udp.destination_port() != udp::ROCE_V2;
    let transport_bytes = usize::from(udp.length()).saturating_sub(Udp::BYTES);
    let frame_bytes = (packet.wire_bytes as usize).saturating_sub(start);
    let overhead = Bth::BYTES + header_bytes + usize::from(roce.bth.pad_count()) + 4;
    let path = ChosenPath::read(frame, roce)?;
    let is_trimmed = transport_bytes > frame_bytes;
    let payload = transport_bytes.min(frame_bytes).saturating_sub(overhead);
    Some(MrcPacket {
        packet: place,
        headers: fields(&parsed),
        flow_label: path.flow_label.unwrap_or_default(),
        outer: path.outer,
        payload_bytes: if is_trimmed {
            0
        } else {
            u32::try_from(payload).unwrap_or(0)
        },
        is_trimmed,
        is_proof: has_own_port || parsed.is_proof(transport_bytes),
        udp_port: udp.destination_port(),
    })
}

fn fields(headers: &Headers<'_>) -> MrcHeaders {
    match headers {
        Headers::Write { meth, time, reth, .. } => MrcHeaders::Write(MrcWrite {
            message: meth.message_number(),
            stamp: time.map(|time| time.time()),
            address: reth.virtual_address(),
            key: reth.remote_key(),
            length: reth.dma_length(),
        }),
        Headers::Acknowledge(aeth) => MrcHeaders::Acknowledge {
            syndrome: aeth.syndrome(),
            messages: aeth.msn(),
        },
        Headers::Sack(seth, state) => MrcHeaders::Sack(MrcSack {
            advice: seth.advice(),
            answers_probe: seth.answers_probe(),
            named: seth.named_offset(),
            entropy: Some(seth.entropy()),
            ids: seth.ids(),
            cumulative: seth.cumulative().value(),
            window: seth.window(),
            offset: seth.bitmap_offset(),
            bitmap: seth.bitmap(),
            state: state.map(|state| MrcState {
                stamp: Some(state.reflected_time()),
                out_of_order: state.out_of_order(),
                penalty: state.penalty(),
            }),
        }),
        Headers::Nack(neth) => MrcHeaders::Nack {
            reason: neth.reason(),
            entropy: neth.entropy(),
            ids: neth.ids(),
            psn: neth.psn().value(),
            stamp: neth.reflected_time(),
        },
        Headers::Probe(peth) => MrcHeaders::Probe {
            number: peth.number(),
            ids: peth.ids(),
        },
        Headers::Request(erth) => MrcHeaders::Request {
            operation: erth.operation(),
            ports: erth.ports(),
        },
        Headers::Response(_) => MrcHeaders::Response,
    }
}
