//! Changes of the bytes of one RoCE packet that leave its checksums right.

use roce_wire::icrc::{self, Icrc};
use roce_wire::{Carrier, Content, LinkType, Roce, Through, decode};

use crate::tape::Record;

/// The RoCE packet of a record, if it is one.
pub(crate) fn roce(link: LinkType, record: &Record) -> Option<Roce> {
    match decode(link, &record.data, record.original).content {
        Content::Roce(roce) => Some(roce),
        _ => None,
    }
}

/// True if a record is a pause frame.
pub(crate) fn is_pause(link: LinkType, record: &Record) -> bool {
    matches!(
        decode(link, &record.data, record.original).content,
        Content::Pause(_)
    )
}

/// True if nothing but VLAN tags is in front of a packet's own headers.
pub(crate) fn is_bare(roce: &Roce) -> bool {
    (roce.through.is_nothing() || roce.through == Through::VLAN)
        && matches!(roce.carrier, Carrier::RoceV2Ipv4 | Carrier::RoceV2Ipv6)
}

/// Changes a packet. Its header checksum and its ICRC are right afterwards, if they were before.
pub(crate) fn change(
    link: LinkType,
    record: &mut Record,
    roce: &Roce,
    change: impl FnOnce(&mut [u8], &Roce),
) {
    let had = icrc::check(&record.data, roce);
    change(&mut record.data, roce);
    let network = usize::from(roce.network_offset);
    if roce.carrier == Carrier::RoceV2Ipv4
        && let Some(header) = record.data.get_mut(network..network + 20)
    {
        mend_ipv4_checksum(header);
    }
    if had != Icrc::Good {
        return;
    }
    let Some(now) = self::roce(link, record) else {
        return;
    };
    let end = usize::from(now.bth_offset) + now.transport_bytes() as usize;
    if let Some(crc) = icrc::compute(&record.data, &now)
        && let Some(place) = record.data.get_mut(end - 4..end)
    {
        place.copy_from_slice(&crc.to_le_bytes());
    }
}

/// Writes the checksum of an IPv4 header of 20 bytes (RFC 791, RFC 1071). One with options is left as it is.
pub(crate) fn mend_ipv4_checksum(header: &mut [u8]) {
    if header.first() != Some(&0x45) {
        return;
    }
    header[10..12].fill(0);
    let sum: u32 = header
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let checksum = !u16::try_from(folded).unwrap_or_default();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// A number of three bytes.
pub(crate) fn number24(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}

/// Writes a number of three bytes.
pub(crate) fn put24(bytes: &mut [u8], value: u32) {
    bytes[..3].copy_from_slice(&value.to_be_bytes()[1..]);
}
