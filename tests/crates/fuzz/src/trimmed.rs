//! Captures with a trimmed frame among whole ones.

use roce_wire::{Content, LinkType, decode};

/// Header of a pcap file with nanoseconds, of Ethernet.
const FILE: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1];
/// An Ethernet header.
const ETHERNET: usize = 14;
/// Frames of a capture. The one in the middle is trimmed, and the last one has its PSN.
const FRAMES: u32 = 5;

/// How a switch trims a frame.
#[derive(Clone, Copy, Debug)]
pub struct TrimForm {
    /// Bytes that are left, Ethernet's header included.
    pub bytes: usize,
    /// The traffic class that it writes.
    pub traffic_class: u8,
    /// True if it writes the new length into the IP header.
    pub rewrites_length: bool,
}

/// A capture of a frame with rising PSNs: whole, trimmed, and sent again.
pub fn trimmed_capture(frame: &[u8], trimming: TrimForm) -> Vec<u8> {
    let mut file = words(&FILE);
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let psn_at = match decode(LinkType::ETHERNET, frame, length).content {
        Content::Roce(roce) => Some(usize::from(roce.bth_offset) + 11),
        _ => None,
    };
    for number in 0..FRAMES {
        let mut copy = frame.to_vec();
        let psn = if number + 1 == FRAMES { FRAMES / 2 } else { number };
        if let Some(byte) = psn_at.and_then(|at| copy.get_mut(at)) {
            *byte = byte.wrapping_add(u8::try_from(psn).unwrap_or(0));
        }
        if number == FRAMES / 2 {
            trim(&mut copy, trimming);
        }
        let bytes = u32::try_from(copy.len()).unwrap_or(u32::MAX);
        file.extend(words(&[1, number * 1_000, bytes, bytes]));
        file.extend(copy);
    }
    file
}

fn trim(frame: &mut Vec<u8>, trimming: TrimForm) {
    frame.truncate(trimming.bytes);
    let left = u16::try_from(frame.len().saturating_sub(ETHERNET)).unwrap_or(u16::MAX);
    let Some(ip) = frame.get_mut(ETHERNET..ETHERNET + 20) else {
        return;
    };
    // The field of IPv6 does not count its header.
    let (length_at, length) = match ip[0] >> 4 {
        4 => {
            ip[1] = trimming.traffic_class;
            (2, left)
        }
        6 => {
            ip[0] = 0x60 | trimming.traffic_class >> 4;
            ip[1] = trimming.traffic_class << 4 | ip[1] & 0x0f;
            (4, left.saturating_sub(40))
        }
        _ => return,
    };
    if trimming.rewrites_length {
        ip[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
