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
use crate::network::ifa::{self, Ifa};
use crate::network::ipv4::Ipv4;
use crate::network::ipv6::Ipv6;
use crate::network::lrh::Lrh;
use crate::{Bth, Carrier, Roce, Through};
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
/// The protocol number of UDP (IANA).
const UDP_PROTOCOL: u8 = 17;

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
    if roce.through.has(Through::IFA) {
        return check_before_ifa(frame, roce);
    }
    if !lengths_agree(frame, roce) {
        return Icrc::NotCheckable;
    }
    let Some(found) = chunk::<BYTES>(frame, end_of_payload(roce)) else {
        return Icrc::NotCheckable;
    };
    match compute(frame, roce) {
        Some(icrc) if icrc.to_le_bytes() == *found => Icrc::Good,
        // Its sender did not know what switches wrote into it.
        Some(_) if has_changeable_options(frame, roce) => Icrc::NotCheckable,
        Some(_) => Icrc::Bad,
        None => Icrc::NotCheckable,
    }
}

/// The sender computed the ICRC before switches inserted their telemetry: over IP with the protocol and the length that it had, UDP, and
/// what follows from the BTH on.
#[cold]
fn check_before_ifa(frame: &[u8], roce: &Roce) -> Icrc {
    icrc_before_ifa(frame, roce).unwrap_or(Icrc::NotCheckable)
}

fn icrc_before_ifa(frame: &[u8], roce: &Roce) -> Option<Icrc> {
    let (network, bth) = (usize::from(roce.network_offset), usize::from(roce.bth_offset));
    let found: &[u8; BYTES] = chunk(frame, end_of_payload(roce))?;
    let udp_length = u16::try_from(UDP + roce.transport_bytes() as usize).ok()?;
    // The headers as they were sent: IP, UDP, BTH.
    let mut sent = [0; Ipv6::BYTES + UDP + Bth::BYTES];
    let ip_bytes = match roce.carrier {
        Carrier::RoceV2Ipv4 => {
            let mut ip: [u8; Ipv4::BYTES] = *chunk(frame, network)?;
            if ip[0] != 0x45 {
                return None;
            }
            [ip[2], ip[3]] = udp_length.checked_add(20)?.to_be_bytes();
            ip[9] = UDP_PROTOCOL;
            sent[..ip.len()].copy_from_slice(&ip);
            ip.len()
        }
        Carrier::RoceV2Ipv6 => {
            let mut ip: [u8; Ipv6::BYTES] = *chunk(frame, network)?;
            if ip[6] != ifa::PROTOCOL {
                return None;
            }
            [ip[4], ip[5]] = udp_length.to_be_bytes();
            ip[6] = UDP_PROTOCOL;
            sent[..ip.len()].copy_from_slice(&ip);
            ip.len()
        }
        _ => return None,
    };
    let mut udp: [u8; UDP] = *chunk(frame, network + ip_bytes + Ifa::BYTES)?;
    [udp[4], udp[5]] = udp_length.to_be_bytes();
    sent[ip_bytes..ip_bytes + UDP].copy_from_slice(&udp);
    let behind = ip_bytes + UDP;
    sent[behind..behind + Bth::BYTES].copy_from_slice(frame.get(bth..bth + Bth::BYTES)?);
    let rest = frame.get(bth + Bth::BYTES..end_of_payload(roce))?;
    let icrc = over(&sent[..behind + Bth::BYTES], rest, roce.carrier)?;
    Some(if icrc.to_le_bytes() == *found {
        Icrc::Good
    } else {
        Icrc::Bad
    })
}

/// True if IPv6 hop-by-hop options that switches may change (RFC 8200, 4.2: the third highest bit of an option's type), such as those of
/// IOAM (RFC 9486), are in front of the packet.
fn has_changeable_options(frame: &[u8], roce: &Roce) -> bool {
    let network = usize::from(roce.network_offset);
    let is_hop_by_hop = roce.carrier == Carrier::RoceV2Ipv6
        && chunk(frame, network).is_some_and(|ip| Ipv6(ip).next_header() == 0);
    let options = chunk::<2>(frame, network + Ipv6::BYTES).and_then(|[_, units]| {
        let from = network + Ipv6::BYTES;
        frame.get(from + 2..from + 8 * (usize::from(*units) + 1))
    });
    let Some(mut rest) = options.filter(|_| is_hop_by_hop) else {
        return false;
    };
    while let [kind, behind @ ..] = rest {
        // A single byte of padding has no length.
        let length = match behind {
            [length, ..] if *kind != 0 => 1 + usize::from(*length),
            _ => 0,
        };
        if kind & 0x20 != 0 {
            return true;
        }
        rest = behind.get(length..).unwrap_or_default();
    }
    false
}

/// Expected invariant CRC, in the little-endian bytes that follow the payload. `None` if not all of the
/// bytes before it were captured.
pub fn compute(frame: &[u8], roce: &Roce) -> Option<u32> {
    let network = usize::from(roce.network_offset);
    let bth = usize::from(roce.bth_offset);
    let rest = frame.get(bth + Bth::BYTES..end_of_payload(roce))?;
    over(frame.get(network..bth + Bth::BYTES)?, rest, roce.carrier)
}

/// The CRC over a packet: `headers` begin with those of the network and end with the BTH.
#[inline]
fn over(headers: &[u8], rest: &[u8], carrier: Carrier) -> Option<u32> {
    let mut crc = match carrier {
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
