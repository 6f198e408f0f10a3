//! Facts of a frame beyond its addresses: what its headers and its first bytes of payload show.

use roce_model::{Between, Management, Packet, PacketFlags, RemoteWrite, WriteTarget};
use roce_wire::transport::imm_dt::ImmDt;
use roce_wire::transport::mrc;
use roce_wire::transport::reth::Reth;
use roce_wire::{Aeth, Bth, ExtendedHeaders, Opcode, Roce};

/// True if the destination and the source of an Ethernet frame are one address, which is not zero as on a loopback interface. Headers of
/// other links have no two equal halves there.
#[inline]
pub(super) fn is_to_itself(frame: &[u8]) -> bool {
    const ZERO: &[u8] = &[0; 6];
    let halves = frame.first_chunk::<12>().map(|addresses| addresses.split_at(6));
    halves.is_some_and(|(destination, source)| destination == source && source != ZERO)
}

/// SEND Only of a reliable connection (IBTA table 38).
pub(super) const SEND_ONLY: Opcode = Opcode(0x04);

/// True of an NVMe capsule with an Asynchronous Event Request: 64 bytes, opcode 0Ch, and SGLs (PSDT 01b) without fused operation, as
/// NVMe-oF demands (NVMe Base 2.0, figure 86 and 5.2; NVMe over Fabrics 1.1, 2.2). Its answer comes with the next event.
pub(super) fn is_open_request(frame: &[u8], roce: &Roce) -> bool {
    let from = usize::from(roce.bth_offset) + Bth::BYTES;
    roce.payload_bytes == 64 && frame.get(from..from + 2) == Some(&[0x0c, 0x40])
}

/// Keeps what the extended headers of a packet say, where they are more than an AETH.
pub(super) fn keep_headers(packet: &mut Packet, bytes: &[u8], at: usize, between: &mut Vec<Between>) {
    let roce = &packet.roce;
    packet.extended = extended(bytes, roce);
    if roce.seen == ExtendedHeaders::MRC {
        if let Some(headers) = super::mrc::headers(bytes, packet, at) {
            // Each sending of a packet has an entropy of its own, and perhaps nothing else.
            let entropy = u32::from(headers.flow_label) << 16 | u32::from(packet.roce.udp_source_port);
            packet.extended ^= entropy.wrapping_mul(0x9e37_79b9);
            // SACKs with one cumulative PSN differ in their headers alone.
            packet.roce.aeth = Aeth(packet.extended.to_be_bytes());
            packet.flags = packet.flags.with(PacketFlags::MRC, true);
            between.push(Between::Mrc(headers));
        }
    } else if tells_of_write(roce.bth.opcode())
        && let Some(write) = remote_write(bytes, roce, at)
    {
        packet.flags = packet.flags.with(PacketFlags::REMOTE_WRITE, true);
        between.push(Between::Write(write));
    }
}

/// A hash of the extended headers. Of an AETH alone none is needed: its four bytes are in `roce`.
#[inline]
pub(super) fn extended(frame: &[u8], roce: &Roce) -> u32 {
    let length = match mrc::header_bytes(&roce.bth) {
        Some(bytes) if roce.seen == ExtendedHeaders::MRC => bytes,
        _ => usize::from(roce.seen.bytes()),
    };
    let from = usize::from(roce.bth_offset) + Bth::BYTES;
    let headers = frame.get(from..from + length);
    let (words, _) = headers.unwrap_or_default().as_chunks::<4>();
    let hash = words.iter().fold(0_u64, |hash, word| {
        (hash.rotate_left(23) ^ u64::from(u32::from_le_bytes(*word))).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (hash >> 32) as u32
}

/// True of the packets of a reliable connection's WRITE that say more than how long it is: First, Last with Immediate, Only,
/// Only with Immediate (IBTA table 38).
#[inline]
pub(super) const fn tells_of_write(opcode: Opcode) -> bool {
    matches!(opcode.0, 0x06 | 0x09..=0x0b)
}

/// Headers of a WRITE, the `packet`th of its batch. None if they were cut.
pub(super) fn remote_write(frame: &[u8], roce: &Roce, packet: usize) -> Option<RemoteWrite> {
    const ONLY: Opcode = Opcode(0x0a);
    let opcode = roce.bth.opcode();
    let mut rest = frame.get(usize::from(roce.bth_offset) + Bth::BYTES..)?;
    let mut write = RemoteWrite {
        packet,
        target: None,
        immediate: None,
        payload_bytes: 0,
        payload: [0; RemoteWrite::MAX_PAYLOAD],
    };
    if opcode.extended().has(ExtendedHeaders::RETH) {
        let (bytes, behind) = rest.split_first_chunk::<{ Reth::BYTES }>()?;
        let reth = Reth(bytes);
        write.target = Some(WriteTarget {
            address: reth.virtual_address(),
            key: reth.remote_key(),
            length: reth.dma_length(),
        });
        rest = behind;
    }
    if opcode.extended().has(ExtendedHeaders::IMM_DT) {
        // An Only whose immediate was cut has its target all the same.
        write.immediate = rest.first_chunk().map(|bytes| ImmDt(bytes).data());
        return (write.immediate.is_some() || write.target.is_some()).then_some(write);
    }
    if opcode == ONLY && roce.dma_length <= RemoteWrite::MAX_SHORT {
        let captured = rest
            .len()
            .min(roce.payload_bytes as usize)
            .min(RemoteWrite::MAX_PAYLOAD);
        write.payload[..captured].copy_from_slice(&rest[..captured]);
        write.payload_bytes = u8::try_from(captured).unwrap_or(0);
    }
    Some(write)
}

/// The message of the connection manager in a datagram, which is the `packet`th of its batch.
pub(super) fn connection_message(frame: &[u8], roce: &Roce, packet: usize) -> Option<Management> {
    use roce_wire::management::{cm::Message, mad::Datagram};
    let message = Message::parse(&Datagram::parse(frame, roce)?)?;
    let local_id = message.local_id().map(|id| id.0);
    let remote_id = message.remote_id().map(|id| id.0);
    let (name, local_qpn, starting_psn) = match message {
        Message::Req(req) => (
            "REQ",
            Some(req.local_qpn()),
            req.detail().map(|detail| detail.starting_psn()),
        ),
        Message::Rep(rep) => ("REP", Some(rep.local_qpn()), Some(rep.starting_psn())),
        Message::Rtu(_) => ("RTU", None, None),
        Message::Rej(_) => ("REJ", None, None),
        Message::Dreq(_) => ("DREQ", None, None),
        Message::Drep(_) => ("DREP", None, None),
        Message::Mra(_) => ("MRA", None, None),
        Message::Other(_) => return None,
    };
    let (service, reason) = match message {
        Message::Req(req) => (Some(req.service_id()), None),
        Message::Rej(rej) => (None, Some(rej.reason())),
        _ => (None, None),
    };
    Some(Management {
        packet,
        name,
        local_id,
        remote_id,
        local_qpn,
        starting_psn,
        service,
        reason,
    })
}

#[cfg(test)]
mod tests;
