use std::collections::HashMap;

use proptest::prelude::*;
use roce_model::{PacketFlags, Time};
use roce_wire::{Address, Bth, Roce, VlanTag};

use super::*;
use crate::table::lookup::LOOKUP_BATCH;
use crate::table::state::Hosts;

fn packet(qpn: u16) -> Packet {
    let [high, low] = qpn.to_be_bytes();
    let roce = Roce {
        source: Address::v4([10, 0, 0, 1]),
        destination: Address::v4([10, 0, 0, 2]),
        bth: Bth([0x07, 0, 0, 0, 0, 0, high, low, 0, 0, 0, 0]),
        ..Roce::default()
    };
    Packet {
        time: Time(0),
        tap: TapId(0),
        wire_bytes: 100,
        path: 0,
        extended: 0,
        flags: PacketFlags::default(),
        icrc: None,
        roce,
    }
}

fn insert(table: &mut FlowTable, packet: &Packet) -> FlowSlot {
    let key = Key::from_packet(packet);
    table.insert(Hot::new(packet, key), Cold::new(packet, 0, 1, Hosts::default()))
}

fn find(table: &FlowTable, packet: &Packet) -> Option<FlowSlot> {
    let key = Key::from_packet(packet);
    table.find_now(&key)
}

#[test]
fn keys_differ_in_every_field() {
    let base = packet(0x11);
    let mut others = vec![base; 11];
    others[1].tap = TapId(1);
    others[2].tap = TapId(0x100);
    others[3].tap = TapId(0x100_0000);
    others[4].roce.source = base.roce.destination;
    others[5].roce.destination = base.roce.source;
    others[6].roce.source_qpn = 1;
    others[7].roce.vlan = Some(VlanTag(0));
    others[8].roce.vni = Some(0);
    others[9].roce.bth.0[0] = 0x27;
    others[10].roce.bth.0[7] = 0x12;
    for (i, one) in others.iter().enumerate() {
        for (j, other) in others.iter().enumerate() {
            assert_eq!(
                Key::from_packet(one) == Key::from_packet(other),
                i == j,
                "{i} {j}"
            );
        }
        let key = FlowKey::from_packet(&one.roce);
        assert!(Key::from_flow(one.tap, &key) == Key::from_packet(one), "{i}");
    }
    // Other taps, and the fields that one of two taps does not see.
    for (number, other) in others.iter().enumerate() {
        let same = Key::from_packet(&base).is_same_traffic(&Key::from_packet(other));
        assert_eq!(same, [0, 1, 2, 3, 7, 8].contains(&number), "{number}");
    }
    let tagged = |id| {
        let mut packet = base;
        packet.roce.vlan = Some(VlanTag(id));
        Key::from_packet(&packet)
    };
    assert!(tagged(7).is_same_traffic(&tagged(7)));
    assert!(!tagged(7).is_same_traffic(&tagged(8)));
    // Fields that are no part of a flow's identity.
    let mut same = base;
    same.roce.udp_source_port = 7;
    same.roce.vlan = None;
    same.roce.bth.0[0] = 0x0a;
    assert!(Key::from_packet(&same) == Key::from_packet(&base));
}

#[test]
fn seeds_are_those_of_their_generator() {
    // The first numbers of the reference implementation (prng.di.unimi.it/splitmix64.c) from the state 0.
    let Seeds(seeds) = Seeds::from_number(0);
    assert_eq!(
        seeds[..3],
        [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f
        ]
    );
}

#[test]
fn many_at_once_are_found_as_one_by_one() {
    let mut table = FlowTable::new(1_000, 0);
    let packets: Vec<Packet> = (0..100).map(packet).collect();
    for packet in packets.iter().step_by(2) {
        insert(&mut table, packet);
    }
    let mut found = [FoundFlow::default(); LOOKUP_BATCH];
    table.find_all(&packets[..LOOKUP_BATCH], &Recent::default(), &mut found);
    for (packet, found) in packets.iter().zip(&found) {
        assert_eq!(find(&table, packet).unwrap_or(FlowSlot::NONE), found.at);
    }
    assert_eq!(table.live().count(), 50);
    assert_eq!(
        table.find_key(TapId(0), &FlowKey::from_packet(&packets[2].roce)),
        find(&table, &packets[2])
    );
    assert_eq!(
        table.find_key(TapId(1), &FlowKey::from_packet(&packets[2].roce)),
        None
    );
}

/// Queue pairs whose flows the index with the seeds of 0 enters at one of its first 64 slots, out of `qpns`.
fn crowding(table: &FlowTable, qpns: impl Iterator<Item = u32>) -> Vec<Packet> {
    qpns.map(|qpn| {
        let [_, high, middle, low] = qpn.to_be_bytes();
        let mut packet = packet(0);
        packet.roce.bth.0[5..8].copy_from_slice(&[high, middle, low]);
        packet
    })
    .filter(|packet| table.seeds.hash(Key::from_packet(packet).words()) >> 50 == 0)
    .collect()
}

#[test]
fn flows_made_for_one_stretch_of_the_index_are_scattered() {
    let mut table = FlowTable::new(10_000, 0);
    // One of 2^14 queue pairs has a hash of this kind: 512 of all 2^23 are enough for a stretch of 512 entries.
    let crowd = crowding(&table, 0..1 << 23);
    assert!(crowd.len() > 2 * MAX_PROBES, "{}", crowd.len());
    let places: Vec<FlowSlot> = crowd.iter().map(|packet| insert(&mut table, packet)).collect();
    assert!(table.index_seeds.is_some());
    for (packet, place) in crowd.iter().zip(&places) {
        assert_eq!(find(&table, packet), Some(*place));
    }
    // Distances are short again: an index that is at most a quarter full has no long stretches.
    let longest = crowd.iter().map(|packet| {
        let hash = table.index_hash(&Key::from_packet(packet));
        let mut slot = table.slot(hash);
        let mut probes = 0;
        while (table.index[slot] ^ hash) >> 32 != 0 {
            slot = table.after(slot);
            probes += 1;
        }
        probes
    });
    assert!(longest.max().unwrap() < MAX_PROBES / 2);
    // The packets' own hashes are the old ones: results do not depend on the random seeds.
    let mut found = [FoundFlow::default(); LOOKUP_BATCH];
    table.find_all(&crowd[..LOOKUP_BATCH], &Recent::default(), &mut found);
    let plain = FlowTable::new(1, 0);
    let mut expected = [FoundFlow::default(); LOOKUP_BATCH];
    plain.find_all(&crowd[..LOOKUP_BATCH], &Recent::default(), &mut expected);
    for ((found, expected), place) in found.iter().zip(&expected).zip(&places) {
        assert_eq!((found.fingerprint, found.at), (expected.fingerprint, *place));
    }
    // They leave one by one.
    for (packet, place) in crowd.iter().zip(places) {
        table.remove(place);
        assert_eq!(find(&table, packet), None);
    }
    assert_eq!(table.len, 0);
}

#[test]
fn a_flow_that_was_seen_has_a_second_chance() {
    let mut table = FlowTable::new(3, 0);
    let places: Vec<FlowSlot> = (0..3).map(|qpn| insert(&mut table, &packet(qpn))).collect();
    assert!(table.is_full());
    // All are new: the hand takes every mark once, then the first one without.
    let first = table.idle().unwrap();
    table.remove(first);
    let new = insert(&mut table, &packet(3));
    assert_eq!(new, first, "its place is given away");
    // One of the two old flows is seen again: the other goes, though its turn may come later.
    let seen = places.iter().copied().find(|place| *place != first).unwrap();
    table.hot[seen].referenced = true;
    let second = table.idle().unwrap();
    assert!(second != seen && second != new, "{second:?}");
    assert!(!table.hot[second].referenced);
}

#[test]
fn a_table_of_nothing_has_nothing_idle() {
    let mut table = FlowTable::new(0, 0);
    assert!(!table.is_full(), "one flow can always be live");
    assert_eq!(table.idle(), None);
    let at = insert(&mut table, &packet(1));
    assert!(table.is_full());
    assert_eq!(table.idle(), Some(at));
}

proptest! {
    /// Flows that come and go are found as in a library's map, whatever stretches their entries form.
    #[test]
    fn as_a_map(steps in prop::collection::vec((any::<bool>(), 0u16..200), 0..600)) {
        let mut table = FlowTable::new(1_000, 0);
        let mut map = HashMap::new();
        for (comes, qpn) in steps {
            let packet = packet(qpn);
            prop_assert_eq!(find(&table, &packet), map.get(&qpn).copied());
            match map.get(&qpn).copied() {
                None if comes => {
                    map.insert(qpn, insert(&mut table, &packet));
                }
                Some(at) if !comes => {
                    table.remove(at);
                    map.remove(&qpn);
                }
                _ => {}
            }
        }
        for qpn in 0..200 {
            prop_assert_eq!(find(&table, &packet(qpn)), map.get(&qpn).copied());
        }
        let mut live: Vec<FlowSlot> = map.into_values().collect();
        live.sort_unstable();
        prop_assert_eq!(table.live().collect::<Vec<_>>(), live);
    }
}
