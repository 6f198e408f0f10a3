//! Targets of WRITEs in frames of every carrier, whole and cut.

use roce_model::WriteTarget;
use roce_wire::{Content, LinkType};

use super::*;

const TARGET: WriteTarget = WriteTarget {
    address: 0x7f22_0102_0304_0506,
    key: 0x0708_090a,
    length: 64,
};

/// A BTH with this opcode, a RETH of [`TARGET`], and what follows; the ICRC at the end.
fn transport(opcode: u8, has_reth: bool, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![opcode, 0x40, 0xff, 0xff, 0, 0, 0, 0x12, 0x80, 0, 0, 5];
    if has_reth {
        bytes.extend(TARGET.address.to_be_bytes());
        bytes.extend(TARGET.key.to_be_bytes());
        bytes.extend(TARGET.length.to_be_bytes());
    }
    bytes.extend(rest);
    bytes.extend([0; 4]);
    bytes
}

/// A UDP datagram to port 4791, or to the one of VXLAN.
fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap();
    let ports = [0xc001_u16, port, length, 0];
    ports
        .iter()
        .flat_map(|field| field.to_be_bytes())
        .chain(payload.iter().copied())
        .collect()
}

fn ipv4(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, 17, 0, 0];
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(payload);
    bytes
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![0x60, 0, 0, 0, length[0], length[1], next, 64];
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(payload);
    bytes
}

fn ethernet(kind: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], kind, payload].concat()
}

const ROCE: u16 = 4791;
const IPV4: &[u8] = &[0x08, 0x00];

/// The target in a frame of `original` bytes, by the path that decodes it.
fn write_of(frame: &[u8], original: usize) -> Option<RemoteWrite> {
    let original = u32::try_from(original).unwrap();
    let roce =
        roce_wire::fast::decode(LinkType::ETHERNET, frame, original).or_else(|| match roce_wire::decode(
            LinkType::ETHERNET,
            frame,
            original,
        )
        .content
        {
            Content::Roce(roce) => Some(roce),
            _ => None,
        })?;
    assert!(tells_of_write(roce.bth.opcode()));
    remote_write(frame, &roce, 3)
}

/// A payload of 64 bytes, each one more than the byte before.
fn payload() -> Vec<u8> {
    (0..64).collect()
}

#[test]
fn every_carrier_shows_target_and_payload() {
    let packet = transport(0x0a, true, &payload());
    let inner = ethernet(IPV4, &ipv4(&udp(ROCE, &packet)));
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0], inner.as_slice()].concat();
    let frames = [
        inner.clone(),
        ethernet(&[0x81, 0, 0, 7, 0x08, 0x00], &ipv4(&udp(ROCE, &packet))),
        ethernet(&[0x86, 0xdd], &ipv6(17, &udp(ROCE, &packet))),
        // A GRH: its next header is 27 (IBTA A16.4.1).
        ethernet(&[0x89, 0x15], &ipv6(27, &packet)),
        ethernet(IPV4, &ipv4(&udp(4789, &vxlan))),
    ];
    for frame in frames {
        let write = write_of(&frame, frame.len()).unwrap();
        assert_eq!(
            (write.packet, write.target, write.immediate),
            (3, Some(TARGET), None)
        );
        assert_eq!(write.start(), payload());
    }
}

#[test]
fn a_cut_frame_shows_what_it_has() {
    // Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16: the payload begins at 70.
    let packet = transport(0x0a, true, &payload());
    let frame = ethernet(IPV4, &ipv4(&udp(ROCE, &packet)));
    for captured in 54..=frame.len() {
        let write = write_of(&frame[..captured], frame.len());
        if captured < 70 {
            assert_eq!(write, None, "{captured}");
        } else {
            let write = write.unwrap();
            assert_eq!(write.target, Some(TARGET));
            assert_eq!(write.start(), &payload()[..(captured - 70).min(64)], "{captured}");
        }
    }
}

#[test]
fn immediates_are_in_network_byte_order() {
    let immediate = [0x12, 0x34, 0x56, 0x78];
    let only = ethernet(IPV4, &ipv4(&udp(ROCE, &transport(0x0b, true, &immediate))));
    let write = write_of(&only, only.len()).unwrap();
    assert_eq!((write.target, write.immediate), (Some(TARGET), Some(0x1234_5678)));
    // A Last has no RETH.
    let last = ethernet(IPV4, &ipv4(&udp(ROCE, &transport(0x09, false, &immediate))));
    let write = write_of(&last, last.len()).unwrap();
    assert_eq!((write.target, write.immediate), (None, Some(0x1234_5678)));
}
