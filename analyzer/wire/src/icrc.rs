//! The invariant CRC: 4 bytes after payload and padding, over everything that no switch changes (IBTA 7.8.1; annexes
//! A16 and A17 for RoCE; Linux drivers/infiniband/sw/rxe/rxe_icrc.c).
//!
//! CRC-32 of Ethernet, written little-endian, over the packet from its LRH on, with these bits taken as ones:
//!
//! ```text
//! LRH      RoCE has none: 8 bytes of ones. InfiniBand: the virtual lane; all of it in front of a GRH
//! IPv4     TOS, TTL, header checksum
//! IPv6     traffic class, flow label, hop limit; GRH: the same
//! UDP      checksum
//! BTH      byte 4: FECN, BECN and the reserved bits
//! ```

use core::fmt;

use crate::bytes::chunk;
use crate::network::ipv4::Ipv4;
use crate::network::ipv6::Ipv6;
use crate::network::lrh::Lrh;
use crate::{Bth, Carrier, Roce};
use crc32fast::Hasher;

/// True if the invariant CRC of a packet is right.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Icrc {
    /// It is.
    Good,
    /// It is not.
    Bad,
    /// Not all bytes were captured, or the lengths do not give its place (fragments, segmentation
    /// offload).
    NotCheckable,
}

/// The CRC of the 8 bytes of ones that replace the LRH: the register 0xdebb20e3 of rxe_icrc.c, inverted.
const AFTER_DUMMY_LRH: u32 = !0xdebb_20e3;

/// The length of an ICRC.
const BYTES: usize = 4;
const UDP: usize = 8;

/// Checks the invariant CRC of the packet `roce` that was decoded from `frame`.
#[inline]
pub fn check(frame: &[u8], roce: &Roce) -> Icrc {
    // Most captures are cut. Two numbers show it before any byte is read.
    let least = usize::from(roce.bth_offset) + Bth::BYTES + roce.payload_bytes as usize + BYTES;
    if frame.len() < least {
        return Icrc::NotCheckable;
    }
    check_whole(frame, roce)
}

fn check_whole(frame: &[u8], roce: &Roce) -> Icrc {
    if !lengths_agree(frame, roce) {
        return Icrc::NotCheckable;
    }
    let Some(found) = chunk::<BYTES>(frame, end_of_payload(roce)) else {
        return Icrc::NotCheckable;
    };
    match compute(frame, roce) {
        Some(icrc) if icrc.to_le_bytes() == *found => Icrc::Good,
        Some(_) => Icrc::Bad,
        None => Icrc::NotCheckable,
    }
}

/// Expected invariant CRC, in the little-endian bytes that follow the payload. `None` if not all of the
/// bytes before it were captured.
pub fn compute(frame: &[u8], roce: &Roce) -> Option<u32> {
    let network = usize::from(roce.network_offset);
    let bth = usize::from(roce.bth_offset);
    let rest = frame.get(bth + Bth::BYTES..end_of_payload(roce))?;
    let headers = frame.get(network..bth + Bth::BYTES)?;
    let mut crc = match roce.carrier {
        Carrier::RoceV2Ipv4 => masked::<{ Ipv4::BYTES }, { UDP + 12 }>(headers, |ip, tail| {
            (ip[1], ip[8], ip[10], ip[11]) = (0xff, 0xff, 0xff, 0xff);
            (tail[6], tail[7]) = (0xff, 0xff);
        })?,
        Carrier::RoceV2Ipv6 => masked::<{ Ipv6::BYTES }, { UDP + 12 }>(headers, |ip, tail| {
            mask_ipv6(ip);
            (tail[6], tail[7]) = (0xff, 0xff);
        })?,
        Carrier::RoceV1 | Carrier::InfinibandGlobal => {
            masked::<{ Ipv6::BYTES }, 12>(headers, |grh, _| mask_ipv6(grh))?
        }
        Carrier::InfinibandLocal => {
            let mut bytes: [u8; 20] = *headers.first_chunk()?;
            bytes[0] |= 0xf0;
            bytes[8 + 4] = 0xff;
            let mut crc = Hasher::new();
            crc.update(&bytes);
            crc
        }
    };
    crc.update(rest);
    Some(crc.finalize())
}

/// Feeds `headers` with `mask` laid over its first `HEAD` and its last `TAIL` bytes, which end in the BTH. What is
/// between them (IPv4 options, IPv6 extension headers) counts as it is.
#[inline]
fn masked<const HEAD: usize, const TAIL: usize>(
    headers: &[u8],
    mask: impl FnOnce(&mut [u8; HEAD], &mut [u8; TAIL]),
) -> Option<Hasher> {
    /// Length of the longest pair of `HEAD` and `TAIL`.
    const LONGEST: usize = 60;
    const { assert!(HEAD + TAIL <= LONGEST, "both fit") };
    let mut head = *headers.first_chunk::<HEAD>()?;
    let between = headers.get(HEAD..headers.len().checked_sub(TAIL)?)?;
    let mut tail = *headers.last_chunk::<TAIL>()?;
    mask(&mut head, &mut tail);
    tail[TAIL - 12 + 4] = 0xff;
    let mut crc = Hasher::new_with_initial(AFTER_DUMMY_LRH);
    if between.is_empty() {
        // The usual case in one go.
        let mut both = [0; LONGEST];
        both[..HEAD].copy_from_slice(&head);
        both[HEAD..HEAD + TAIL].copy_from_slice(&tail);
        crc.update(&both[..HEAD + TAIL]);
    } else {
        crc.update(&head);
        crc.update(between);
        crc.update(&tail);
    }
    Some(crc)
}

fn mask_ipv6(header: &mut [u8; 40]) {
    header[0] |= 0x0f;
    (header[1], header[2], header[3], header[7]) = (0xff, 0xff, 0xff, 0xff);
}

fn end_of_payload(roce: &Roce) -> usize {
    usize::from(roce.bth_offset) + roce.transport_bytes() as usize - BYTES
}

/// True if the lengths in the headers say that the packet ends where `roce` says.
fn lengths_agree(frame: &[u8], roce: &Roce) -> bool {
    let network = usize::from(roce.network_offset);
    let transport = roce.transport_bytes() as usize;
    let before = usize::from(roce.bth_offset).saturating_sub(network);
    let whole = before + transport;
    let lrh_length = |at| chunk(frame, at).map(|b| usize::from(Lrh(b).packet_bytes()));
    match roce.carrier {
        // Not one that IP says is longer than itself: a first fragment has a UDP length beyond its own end.
        Carrier::RoceV2Ipv4 => {
            let fits = chunk(frame, network).is_some_and(|b| usize::from(Ipv4(b).total_length()) >= whole);
            fits && udp_length(frame, roce) == Some(UDP + transport)
        }
        Carrier::RoceV2Ipv6 => {
            let length = chunk(frame, network).map(|b| usize::from(Ipv6(b).payload_length()));
            length.is_some_and(|n| n + Ipv6::BYTES >= whole)
                && udp_length(frame, roce) == Some(UDP + transport)
        }
        Carrier::RoceV1 => {
            chunk(frame, network).is_some_and(|b| usize::from(Ipv6(b).payload_length()) == transport)
        }
        Carrier::InfinibandLocal => lrh_length(network) == Some(whole),
        Carrier::InfinibandGlobal => {
            network.checked_sub(Lrh::BYTES).and_then(lrh_length) == Some(whole + Lrh::BYTES)
        }
    }
}

fn udp_length(frame: &[u8], roce: &Roce) -> Option<usize> {
    let at = usize::from(roce.bth_offset).checked_sub(UDP - 4)?;
    chunk(frame, at).map(|b| usize::from(u16::from_be_bytes(*b)))
}

impl fmt::Display for Icrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::NotCheckable => "not checkable",
        })
    }
}
