//! Headers around each frame or packet.

use crate::answer::GivenRun;
use crate::draw::Draw;
use crate::input::Input;
use crate::packet::{self, is_bare};
use crate::tape::{Record, Tape};
use crate::transformation::InputCopy;

const ETHERNET: usize = 14;

/// Every RoCE frame as `change` makes it; other frames stay what they are.
fn around(input: &Input, mut change: impl FnMut(&Record) -> Vec<u8>) -> Option<InputCopy> {
    if !input.tapes.iter().all(Tape::is_ethernet) {
        return None;
    }
    let other = input.map(|tape| {
        let mut tape = tape.clone();
        let links: Vec<_> = tape.records.iter().map(|record| tape.link(record)).collect();
        let mut most = 0;
        for (record, link) in tape.records.iter_mut().zip(links) {
            if packet::roce(link, record).is_some() {
                let data = change(record);
                let more = u32::try_from(data.len()).unwrap_or_default();
                let less = u32::try_from(record.data.len()).unwrap_or_default();
                record.original = record.original + more - less;
                record.data = data;
            }
            most = most.max(u32::try_from(record.data.len()).unwrap_or_default());
        }
        for interface in &mut tape.interfaces {
            if interface.snaplen > 0 {
                interface.snaplen = interface.snaplen.max(most);
            }
        }
        tape
    });
    Some(GivenRun::of(&other).into())
}

/// True if all packets are bare, and no pause frame is among them: a tunnel carries none, and what comes through a mirror's session
/// is another tap than what comes beside it.
fn can_be_carried(input: &Input) -> bool {
    let records = || {
        input
            .tapes
            .iter()
            .flat_map(|tape| tape.records.iter().map(|record| (tape.link(record), record)))
    };
    records().all(|(link, record)| {
        !packet::is_pause(link, record) && packet::roce(link, record).is_none_or(|roce| is_bare(&roce))
    })
}

pub(super) fn vlan(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    // Priority 3, VLAN 5.
    around(input, |record| {
        [&record.data[..12], &[0x81, 0, 0x60, 5], &record.data[12..]].concat()
    })
}

pub(super) fn qinq(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    around(input, |record| {
        [
            &record.data[..12],
            &[0x88, 0xa8, 0x60, 9, 0x81, 0, 0x60, 5],
            &record.data[12..],
        ]
        .concat()
    })
}

/// Ethernet and IPv4 headers from 192.0.2.1 to 192.0.2.2 in front of `length` bytes of a protocol.
fn outer(protocol: u8, length: usize) -> Vec<u8> {
    let mut header = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 8, 0];
    header.extend([
        0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ]);
    let total = u16::try_from(length + 20).unwrap_or(u16::MAX);
    header[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&total.to_be_bytes());
    packet::mend_ipv4_checksum(&mut header[ETHERNET..]);
    header
}

pub(super) fn vxlan(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    if !can_be_carried(input) {
        return None;
    }
    around(input, |record| {
        let length = record.original as usize + 16;
        let mut frame = outer(17, length);
        // UDP to port 4789 without a checksum; VNI 77 (RFC 7348).
        frame.extend([0xc0, 1, 0x12, 0xb5]);
        frame.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        frame.extend([0, 0, 0x08, 0, 0, 0, 0, 0, 77, 0]);
        frame.extend(&record.data);
        frame
    })
}

/// Where the network header of a frame begins, and the type of it.
fn network(frame: &[u8]) -> (usize, [u8; 2]) {
    let mut place = 12;
    while matches!(frame[place..place + 2], [0x81, 0] | [0x88, 0xa8]) {
        place += 4;
    }
    (place + 2, [frame[place], frame[place + 1]])
}

pub(super) fn gre(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    if !can_be_carried(input) {
        return None;
    }
    around(input, |record| {
        let (begin, kind) = network(&record.data);
        let mut frame = outer(47, record.original as usize - begin + 4);
        frame.extend([0, 0, kind[0], kind[1]]);
        frame.extend(&record.data[begin..]);
        frame
    })
}

pub(super) fn erspan(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    if !can_be_carried(input) || input.tapes.iter().any(|tape| tape.interfaces.len() > 1) {
        return None;
    }
    let mut sequence: u32 = 0;
    around(input, |record| {
        let mut frame = outer(47, record.original as usize + 16);
        // GRE with a sequence number and ERSPAN II: version 1, session 5 (draft-foschiano-erspan).
        frame.extend([0x10, 0, 0x88, 0xbe]);
        frame.extend(sequence.to_be_bytes());
        frame.extend([0x10, 0, 0, 5, 0, 0, 0, 1]);
        frame.extend(&record.data);
        sequence = sequence.wrapping_add(1);
        frame
    })
}

pub(super) fn in_ipv6(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    if !can_be_carried(input) {
        return None;
    }
    around(input, |record| {
        let (begin, kind) = network(&record.data);
        let mut frame = record.data[..12].to_vec();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(
            u16::try_from(record.original as usize - begin)
                .unwrap_or(u16::MAX)
                .to_be_bytes(),
        );
        // IPv4 or IPv6 follows (RFC 2473).
        frame.extend([if kind == [8, 0] { 4 } else { 41 }, 64]);
        for end in [1, 2] {
            let mut address = [0; 16];
            (address[0], address[1], address[15]) = (0xfd, 0x66, end);
            frame.extend(address);
        }
        frame.extend(&record.data[begin..]);
        frame
    })
}
