//! Frames of captures as their formats have them, read here once more: pcap (IETF draft-ietf-opsawg-pcap) and pcapng
//! (draft-ietf-opsawg-pcapng), Ethernet, IPv4, UDP, BTH (IBTA 9.2).

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Destination queue pair and PSN of a packet.
pub(super) type Place = (u64, u64);

/// Frames of a capture in the order of the file: of RoCEv2 packets their place.
pub(super) fn frames(path: &Path) -> Vec<Option<Place>> {
    let bytes = fs::read(path).unwrap();
    match bytes.get(..4) {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => pcapng(&bytes),
        _ => pcap(&bytes),
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn pcap(bytes: &[u8]) -> Vec<Option<Place>> {
    let (mut at, mut found) = (24, Vec::new());
    while at + 16 <= bytes.len() {
        let captured = number(bytes, at + 8);
        found.push(place(&bytes[at + 16..at + 16 + captured]));
        at += 16 + captured;
    }
    found
}

fn pcapng(bytes: &[u8]) -> Vec<Option<Place>> {
    let (mut at, mut found) = (0, Vec::new());
    while at + 12 <= bytes.len() {
        // Enhanced Packet Block: type 6, captured length behind three words.
        if number(bytes, at) == 6 {
            let captured = number(bytes, at + 20);
            found.push(place(&bytes[at + 28..at + 28 + captured]));
        }
        at += number(bytes, at + 4);
    }
    found
}

fn place(frame: &[u8]) -> Option<Place> {
    let at = match frame.get(12..14)? {
        [0x08, 0x00] => 14,
        [0x81, 0x00] => 18,
        _ => return None,
    };
    let header = usize::from(frame.get(at)? & 15) * 4;
    // UDP port of RoCEv2: 4791 (IANA).
    let is_roce = *frame.get(at + 9)? == 17 && frame.get(at + header + 2..at + header + 4)? == [0x12, 0xb7];
    let bth = frame.get(at + header + 8..at + header + 20).filter(|_| is_roce)?;
    let three = |at: usize| u64::from(bth[at]) << 16 | u64::from(bth[at + 1]) << 8 | u64::from(bth[at + 2]);
    Some((three(5), three(9)))
}

/// Captures that were read, by path.
#[derive(Default)]
pub(super) struct ReadCaptures(HashMap<String, Vec<Option<Place>>>);

impl ReadCaptures {
    /// True if the capture has a frame of this number, from 1.
    pub(super) fn has(&mut self, dir: &Path, file: &str, number: u64) -> bool {
        let at = usize::try_from(number).unwrap().checked_sub(1);
        at.is_some_and(|at| at < self.all(dir, file).len())
    }

    /// The place of the frame of this number, if it is RoCE.
    pub(super) fn place(&mut self, dir: &Path, file: &str, number: u64) -> Option<Place> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.all(dir, file).get(at).copied().flatten()
    }

    fn all(&mut self, dir: &Path, file: &str) -> &[Option<Place>] {
        self.0
            .entry(file.to_owned())
            .or_insert_with(|| frames(&dir.join(file)))
    }
}
