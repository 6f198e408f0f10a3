use super::*;
use roce_model::{PacketFlags, TapId, Time};
use roce_wire::{Bth, Roce};

fn packet(ns: u64, psn: u8, path: u16) -> Packet {
    let roce = Roce {
        bth: Bth([0x07, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, psn]),
        ip_id: 9,
        ..Roce::default()
    };
    Packet {
        time: Time(ns),
        tap: TapId(0),
        wire_bytes: 100,
        path,
        extended: 0,
        flags: PacketFlags::default(),
        icrc: None,
        roce,
    }
}

#[test]
fn sightings_within_a_millisecond() {
    let mut recent = Recent::default();
    let mut look = |flow, packet: Packet| recent.look(fingerprint(flow, &packet), &packet);
    assert_eq!(look(1, packet(1_000_000, 5, 1)), PacketSighting::New);
    assert_eq!(look(1, packet(1_000_100, 5, 1)), PacketSighting::SamePath);
    assert_eq!(look(1, packet(1_000_200, 5, 2)), PacketSighting::OtherPath);
    assert_eq!(
        look(1, packet(1_000_300, 5, 1)),
        PacketSighting::SamePath,
        "the first path stays remembered"
    );
    assert_eq!(
        look(1, packet(1_000_400, 6, 1)),
        PacketSighting::New,
        "another PSN"
    );
    assert_eq!(
        look(2, packet(1_000_500, 5, 1)),
        PacketSighting::New,
        "another flow"
    );
    assert_eq!(
        look(1, packet(2_000_400, 5, 2)),
        PacketSighting::LongAgo,
        "1.0001 ms later"
    );
    assert!(PacketSighting::LongAgo.is_repeated() && !PacketSighting::New.is_repeated());
}

#[test]
fn mirrors_take_at_most_131_microseconds() {
    let mut recent = Recent::default();
    let mut look = |packet: Packet| recent.look(fingerprint(1, &packet), &packet);
    assert_eq!(look(packet(1_000_000, 5, 1)), PacketSighting::New);
    // 2^11 units of 64 ns are 131,072 ns.
    assert_eq!(
        look(packet(1_000_000 + 131_072 + 64, 5, 1)),
        PacketSighting::LongAgo
    );
    assert_eq!(
        look(packet(1_000_000 + 140_000, 5, 1)),
        PacketSighting::SamePath,
        "its own copy"
    );
    assert_eq!(look(packet(1_000_000 + 271_000, 5, 2)), PacketSighting::OtherPath);
}

#[test]
fn more_room_keeps_what_is_remembered() {
    let mut recent = Recent::default();
    let of = |flow: u64| (fingerprint(flow, &packet(0, 5, 1)), packet(1_000_000, 5, 1));
    // 8,192 packets in 4,096 sets of four: nearly all are remembered.
    for flow in 0..8_192 {
        let (fingerprint, packet) = of(flow);
        recent.look(fingerprint, &packet);
    }
    let is_known = |recent: &Recent, flow| {
        let fingerprint = of(flow).0;
        recent.sets[recent.place(fingerprint)].has(tag(fingerprint))
    };
    let before: Vec<bool> = (0..8_192).map(|flow| is_known(&recent, flow)).collect();
    recent.make_room();
    let after: Vec<bool> = (0..8_192).map(|flow| is_known(&recent, flow)).collect();
    assert_eq!(before, after);
    // A set has two of 8,192 packets on average: by Poisson's law fewer than 3 % are crowded out.
    assert!(before.iter().filter(|known| **known).count() > 7_900);
    assert_eq!(recent.sets.len(), 32_768);
}

#[test]
fn a_full_set_may_have_forgotten() {
    let mut recent = Recent::default();
    let first = packet(1_000_000, 5, 1);
    assert!(recent.remembers(7, &first), "nothing had to make room");
    for number in 1..=4_u64 {
        // One place, four different packets.
        recent.look(7 | number << 32, &first);
    }
    assert!(!recent.remembers(7, &packet(10_900_000, 5, 1)), "9.9 ms");
    assert!(recent.remembers(7, &packet(11_100_000, 5, 1)), "10.1 ms");
}

#[test]
fn numbers_that_count_up_together_do_not_cancel_out() {
    // Answers to one READ each: PSN and MSN both count up, nothing else changes.
    let answer = |number: u8| {
        let mut answer = packet(u64::from(number), number, 1);
        answer.roce.ip_id = 0;
        answer.roce.aeth.0 = [0x1f, 0, 0, number];
        fingerprint(7, &answer)
    };
    let different: std::collections::HashSet<u64> = (0..=255).map(answer).collect();
    assert_eq!(different.len(), 256);
}

#[test]
fn answers_that_differ_in_extended_headers_or_length_are_different() {
    let plain = packet(0, 5, 1);
    let mut value = plain;
    value.extended = 1;
    assert_ne!(fingerprint(1, &plain), fingerprint(1, &value));
    let mut longer = plain;
    longer.roce.payload_bytes = 64;
    assert_ne!(fingerprint(1, &plain), fingerprint(1, &longer));
}

#[test]
fn ages_never_wrap() {
    // 2^30 ns are all that an entry's time can say.
    for waits in [
        &[1 << 30][..],
        &[2 << 30],
        &[1 << 28, 1 << 29, 1 << 30],
        &[1 << 40],
    ] {
        let mut recent = Recent::default();
        let mut look = |packet: Packet| recent.look(fingerprint(1, &packet), &packet);
        assert_eq!(look(packet(5_000_000, 5, 1)), PacketSighting::New);
        for wait in waits {
            assert_eq!(
                look(packet(5_000_000 + wait, 6, 1)).is_repeated(),
                *wait != waits[0],
                "{wait}"
            );
        }
        let last = waits.last().unwrap();
        assert_eq!(
            look(packet(5_000_000 + last, 5, 1)),
            PacketSighting::LongAgo,
            "{waits:?}"
        );
        assert_eq!(
            look(packet(5_000_100 + last, 5, 2)),
            PacketSighting::OtherPath,
            "{waits:?}"
        );
    }
    // A clock that steps back by a second makes nothing a copy either.
    let mut recent = Recent::default();
    let mut look = |packet: Packet| recent.look(fingerprint(1, &packet), &packet);
    assert_eq!(look(packet(1 << 31, 5, 1)), PacketSighting::New);
    assert_eq!(look(packet(1 << 30, 5, 1)), PacketSighting::LongAgo);
}

#[test]
fn packets_out_of_order_are_known_where_times_are_renewed() {
    let mut recent = Recent::default();
    let mut look = |packet: Packet| recent.look(fingerprint(1, &packet), &packet);
    assert_eq!(look(packet(1 << 28, 5, 1)), PacketSighting::New);
    let late = (2 << 28) + 1_000;
    assert_eq!(look(packet(late - 500, 6, 1)), PacketSighting::New);
    assert_eq!(look(packet(late, 7, 1)), PacketSighting::New);
    assert_eq!(look(packet(late + 64, 6, 2)), PacketSighting::OtherPath);
}

#[test]
fn what_a_link_changes_is_left_out_and_what_a_switch_marks_is_not() {
    let plain = packet(0, 5, 1);
    let mut other = plain;
    other.roce.hop_limit = 3;
    assert_eq!(fingerprint(1, &plain), fingerprint(1, &other));
    other.roce.traffic_class = 3;
    assert_ne!(fingerprint(1, &plain), fingerprint(1, &other));
}

#[test]
fn the_same_path_needs_evidence() {
    // One that is repeated among many was made twice by the network: it is no copy.
    let mut counted = CopyEvidence::default();
    for id in 0..100 {
        assert!(!counted.is_copy(PacketSighting::New, id));
    }
    assert!(!counted.is_copy(PacketSighting::SamePath, 99));
    assert_eq!(counted.ids(99).map(|ids| ids.age), Some(IdAge::Older));
    // Half of all are copies: some of the packets that the tap mirrors pass it twice.
    let mut half = CopyEvidence::default();
    let mut copies = 0;
    for id in 0..200 {
        assert!(!half.is_copy(PacketSighting::New, id));
        copies += u32::from(id % 3 > 0 && half.is_copy(PacketSighting::SamePath, id));
    }
    assert!(copies > 110, "{copies} of 133");

    let mut doubled = CopyEvidence::default();
    for _ in 0..3 {
        assert!(!doubled.is_copy(PacketSighting::New, 0));
        assert!(
            doubled.is_copy(PacketSighting::SamePath, 0),
            "doubled from the first packet on"
        );
    }

    let mut constant = CopyEvidence::default();
    assert!(!constant.is_copy(PacketSighting::New, 0));
    assert!(!constant.is_copy(PacketSighting::New, 0));
    assert!(
        constant.is_copy(PacketSighting::OtherPath, 0),
        "another path is evidence enough"
    );
    assert!(
        !constant.is_copy(PacketSighting::SamePath, 0),
        "a fast retransmission"
    );
}

/// Age of the flow's packet with `last`, after these identifications.
fn age_after(ids: impl Iterator<Item = u16>, last: u16) -> Option<IdAge> {
    let mut evidence = CopyEvidence::default();
    for id in ids {
        assert!(!evidence.is_copy(PacketSighting::New, id));
    }
    assert!(!evidence.is_copy(PacketSighting::New, last));
    evidence.ids(last).map(|ids| ids.age)
}

#[test]
fn identifications_that_count_up_tell_old_packets_from_new_ones() {
    // From 65,500 to 65,535 and from 0 to 63: the counter has 16 bits.
    let counted = || (0..100_u16).map(|n| n.wrapping_add(65_500));
    assert_eq!(age_after(counted(), 64), Some(IdAge::Newer));
    assert_eq!(age_after(counted(), 64 + 2_000), Some(IdAge::Newer));
    assert_eq!(age_after(counted(), 62), Some(IdAge::Older));
    assert_eq!(
        age_after(counted(), 63),
        Some(IdAge::Older),
        "the newest once more"
    );
    assert_eq!(age_after(counted(), 65_530), Some(IdAge::Older));
    // 10,000 packets before, of a counter that is the flow's own.
    assert_eq!(
        age_after(counted(), 63_u16.wrapping_sub(10_000)),
        Some(IdAge::Older)
    );
    assert_eq!(
        age_after(counted(), 63 + 10_000),
        None,
        "ahead by that much: it started again"
    );
    // One counter for 200 flows: each sees steps of 200.
    let shared = || (0..100_u16).map(|n| n.wrapping_mul(200));
    assert_eq!(age_after(shared(), 99 * 200 + 150), Some(IdAge::Newer));
    assert_eq!(age_after(shared(), 98 * 200), Some(IdAge::Older));
    assert_eq!(
        age_after(shared(), 99 * 200 - 10_000),
        None,
        "the others may have sent 55,536"
    );
    // A sprayed flow: pairs come in the reverse order, and 50 is behind 51 as ever.
    let sprayed = || (0..50_u16).flat_map(|n| [2 * n + 1, 2 * n]);
    assert_eq!(age_after(sprayed(), 100), Some(IdAge::Newer));
    assert_eq!(age_after(sprayed(), 90), Some(IdAge::Older));
}

#[test]
fn other_identifications_tell_nothing() {
    assert_eq!(age_after((0..100).map(|_| 0), 0), None, "constant, as over IPv6");
    assert_eq!(age_after((0..100).map(|_| 7), 8), None);
    // 40,503 is odd: all 65,536 values come, in steps of 25,033 backwards.
    let random = |n: u16| n.wrapping_mul(40_503);
    assert_eq!(age_after((0..1_000).map(random), 5), None);
    assert_eq!(age_after(0..16, 16), None, "15 steps are too few");
    assert_eq!(age_after(0..17, 17), Some(IdAge::Newer), "16 are enough");
    // Every packet twice with the same number, as with segments made of one: half of the steps are none.
    assert_eq!(age_after((0..200).map(|n| n / 2), 100), None);
    // It counts, and then it does not any more.
    let changes = (0..200_u16).chain((0..50).map(random));
    assert_eq!(age_after(changes, 5), None);
}

#[test]
fn two_packets_in_a_hundred_made_twice_by_the_network_do_not_hide_the_counter() {
    let twice = (0..5_000_u16).flat_map(|n| core::iter::repeat_n(n, 1 + usize::from(n % 50 == 0)));
    let mut evidence = CopyEvidence::default();
    let mut last = None;
    for id in twice {
        assert!(!evidence.is_copy(PacketSighting::New, id));
        let expected = if last == Some(id) {
            IdAge::Older
        } else {
            IdAge::Newer
        };
        if id > 200 {
            assert_eq!(evidence.ids(id).map(|ids| ids.age), Some(expected), "{id}");
        }
        last = Some(id);
    }
    assert!(size_of::<CopyEvidence>() <= 12);
}

#[test]
fn packets_alike_by_nature_need_identifications() {
    let mut cnps = CopyEvidence::default();
    assert!(!cnps.is_copy_among_alike(PacketSighting::New, 0));
    assert!(
        !cnps.is_copy_among_alike(PacketSighting::SamePath, 0),
        "the next notification"
    );
    assert!(cnps.is_copy_among_alike(PacketSighting::OtherPath, 0));
    assert!(!cnps.is_copy_among_alike(PacketSighting::New, 1));
    assert!(
        cnps.is_copy_among_alike(PacketSighting::SamePath, 1),
        "the sender counts"
    );
}
