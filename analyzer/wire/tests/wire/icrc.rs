//! The invariant CRC against published packets. `icrc.json` names the origin of each: the test suites of scapy,
//! PcapPlusPlus and open-rdma-driver.

use crate::hex;
use roce_wire::icrc::{self, Icrc};
use roce_wire::{Carrier, Content, LinkType, Roce, decode};

struct Vector {
    name: String,
    frame: Vec<u8>,
    icrc: [u8; 4],
}

fn vectors() -> Vec<Vector> {
    let json: serde_json::Value = serde_json::from_str(include_str!("icrc.json")).expect("JSON");
    let text = |entry: &serde_json::Value, key: &str| entry[key].as_str().expect("a string").to_owned();
    let vector = |entry: &serde_json::Value| Vector {
        name: text(entry, "name"),
        frame: hex(&text(entry, "frame")),
        icrc: hex(&text(entry, "icrc_wire")).try_into().expect("4 bytes"),
    };
    json.as_array().expect("a list").iter().map(vector).collect()
}

fn roce_of(vector: &Vector) -> Roce {
    // Two of them begin at the IP header.
    let link = if vector.name.starts_with("dtld-") {
        LinkType::RAW
    } else {
        LinkType::ETHERNET
    };
    let original = u32::try_from(vector.frame.len()).expect("short");
    match decode(link, &vector.frame, original).content {
        Content::Roce(roce) => roce,
        other => panic!("{}: {other:?}", vector.name),
    }
}

#[test]
fn published_packets() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 8);
    for vector in &vectors {
        let roce = roce_of(vector);
        let wire = icrc::compute(&vector.frame, &roce).map(u32::to_le_bytes);
        assert_eq!(wire, Some(vector.icrc), "{}", vector.name);
        // The last one has an IPv4 total length of 0, as in front of segmentation offload, and an empty ICRC field:
        // what it should be can be computed, but a frame like that is not one that was on a wire.
        if vector.name == "dtld-ack-ip-len0" {
            assert_eq!(icrc::check(&vector.frame, &roce), Icrc::NotCheckable);
            assert_eq!(roce.payload_bytes, 4);
            continue;
        }
        assert_eq!(icrc::check(&vector.frame, &roce), Icrc::Good, "{}", vector.name);
    }
}

#[test]
fn switches_may_change_the_masked_fields() {
    for vector in vectors() {
        let roce = roce_of(&vector);
        if icrc::check(&vector.frame, &roce) != Icrc::Good {
            continue;
        }
        let (network, bth) = (usize::from(roce.network_offset), usize::from(roce.bth_offset));
        let masked = match roce.carrier {
            Carrier::RoceV2Ipv4 => vec![
                network + 1,
                network + 8,
                network + 10,
                network + 11,
                bth - 2,
                bth - 1,
                bth + 4,
            ],
            Carrier::RoceV2Ipv6 => vec![
                network,
                network + 1,
                network + 2,
                network + 3,
                network + 7,
                bth - 2,
                bth - 1,
                bth + 4,
            ],
            _ => vec![
                network,
                network + 1,
                network + 2,
                network + 3,
                network + 7,
                bth + 4,
            ],
        };
        for at in 0..vector.frame.len() {
            let mut frame = vector.frame.clone();
            frame[at] ^= 0x01;
            let found = icrc::check(&frame, &roce);
            if at < network || masked.contains(&at) {
                assert_eq!(found, Icrc::Good, "{} byte {at}", vector.name);
            } else {
                assert_ne!(found, Icrc::Good, "{} byte {at}", vector.name);
            }
        }
    }
}

#[test]
fn nothing_is_said_of_packets_that_are_not_whole() {
    for vector in vectors() {
        let roce = roce_of(&vector);
        for length in 0..vector.frame.len() {
            assert_eq!(icrc::check(&vector.frame[..length], &roce), Icrc::NotCheckable);
        }
    }
}

#[test]
fn native_infiniband_masks_its_virtual_lane() {
    // No published packet at hand: the RoCEv1 write in InfiniBand's clothes. With a GRH all of the LRH counts as
    // ones, which is what RoCE's dummy LRH is, so its ICRC stays good.
    let v1 = vectors()
        .into_iter()
        .find(|v| v.name == "rocev1-rc-write-only")
        .expect("a write");
    // 8 bytes of LRH, and from the GRH on 40 + 40 bytes: 88 bytes, 22 words. LNH 3.
    let mut frame = vec![0x00, 0x03, 0x00, 0x02, 0x00, 22, 0x00, 0x01];
    frame.extend(&v1.frame[14..]);
    let decoded = decode(LinkType::INFINIBAND, &frame, 88);
    let Content::Roce(roce) = decoded.content else {
        panic!("{decoded:?}")
    };
    assert_eq!(
        (roce.carrier, roce.network_offset, roce.bth_offset),
        (Carrier::InfinibandGlobal, 8, 48)
    );
    assert_eq!(icrc::check(&frame, &roce), Icrc::Good);
    frame[0] = 0x70;
    assert_eq!(icrc::check(&frame, &roce), Icrc::Good);
    // Without a GRH: the lane is masked, the rest of the LRH counts.
    let mut local = vec![0x00, 0x02, 0x00, 0x02, 0x00, 12, 0x00, 0x01];
    local.extend(&v1.frame[54..]);
    let decoded = decode(LinkType::INFINIBAND, &local, 48);
    let Content::Roce(roce) = decoded.content else {
        panic!("{decoded:?}")
    };
    assert_eq!(
        (roce.carrier, roce.payload_bytes, roce.bth_offset),
        (Carrier::InfinibandLocal, 5, 8)
    );
    let icrc = icrc::compute(&local, &roce).expect("whole");
    local[44..].copy_from_slice(&icrc.to_le_bytes());
    for (at, good) in [
        (0, true),
        (1, false),
        (3, false),
        (7, false),
        (12, true),
        (13, false),
        (40, false),
    ] {
        let mut frame = local.clone();
        frame[at] ^= 0x10;
        assert_eq!(icrc::check(&frame, &roce) == Icrc::Good, good, "byte {at}");
    }
}
