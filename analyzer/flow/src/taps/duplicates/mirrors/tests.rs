use super::*;
use roce_wire::{Address, Bth, Roce};

const DATA: u8 = 0x07;
const ACK: u8 = 0x11;
const READ_REQUEST: u8 = 0x0c;
const READ_RESPONSE: u8 = 0x10;

/// A tap, its packets by time, and its judgement of second sightings.
#[derive(Default)]
struct MirrorTap {
    mirrors: Mirrors,
    /// Each packet is another one: its tag.
    tags: u32,
    /// Second sightings, and those that were taken for copies.
    seconds: u32,
    copies: u32,
}

/// A packet from host 1 to host 2 or, if it is an answer, back. An identification of 0 is none.
fn packet(opcode: u8, us: u64, id: u16) -> Packet {
    let [one, two] = [1, 2].map(|host| Address::v4([10, 0, 0, host]));
    let is_answer = [ACK, READ_RESPONSE].contains(&opcode);
    let (source, destination) = if is_answer { (two, one) } else { (one, two) };
    let roce = Roce {
        bth: Bth([opcode, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0]),
        payload_bytes: u32::from(opcode != ACK && opcode != READ_REQUEST) * 1_024,
        source,
        destination,
        ip_id: id,
        ..Roce::default()
    };
    Packet {
        time: Time(1_000_000 + us * 1_000),
        roce,
        ..Packet::default()
    }
}

/// Microseconds in units of [`super::TIME_SHIFT`]: 1,000 / 64 are 15.6.
fn units(us: u64) -> u64 {
    (us * 1_000) >> super::super::TIME_SHIFT
}

impl MirrorTap {
    fn first(&mut self, packet: &Packet) -> u32 {
        self.mirrors.sample_all();
        // Odd, so that all places have their turn.
        self.tags = self.tags.wrapping_add(0x9e37_79b1);
        self.mirrors.first(self.tags, packet);
        self.tags
    }

    fn second(&mut self, tag: u32, packet: &Packet, us: u64) -> bool {
        let mut again = *packet;
        again.time.0 += us * 1_000;
        let is_copy = self.mirrors.second(tag, &again, units(us));
        self.seconds += 1;
        self.copies += u32::from(is_copy);
        is_copy
    }

    /// A request each 2 us and its ACK 1 us behind it, for `count` requests. Of each opcode one of this
    /// number is seen once more, `us` later; 0: none.
    fn flow(&mut self, count: u64, numbered: bool, [data, acks]: [u64; 2], us: u64) {
        for n in 0..count {
            let id = |of: u64| {
                if numbered {
                    u16::try_from((n * of + 1) % 65_536).unwrap()
                } else {
                    0
                }
            };
            for (packet, every) in [
                (packet(DATA, n * 2, id(1)), data),
                (packet(ACK, n * 2 + 1, id(3)), acks),
            ] {
                let tag = self.first(&packet);
                if every > 0 && n % every == 0 {
                    self.second(tag, &packet, us);
                }
            }
        }
    }
}

#[test]
fn a_tap_that_doubles_both_directions_is_known() {
    for numbered in [true, false] {
        // 3 us later: 46 units lie in the class from 40 to 47, so copies are taken up to 48 + 48 / 4 = 60 units, 3.8 us.
        let mut tapped = MirrorTap::default();
        tapped.flow(1_000, numbered, [1, 1], 3);
        // The 513th packet takes the place of the first sample, which counts then; 63 packets later the tap is looked at for the
        // first time. So 576 of 2,000 packets are over before; two more or less depend on which of them is looked at first.
        assert!(
            (1_423..=1_426).contains(&tapped.copies),
            "{numbered}: {}",
            tapped.copies
        );
        for (n, (us, is_copy)) in (1..).zip([(1, true), (3, true), (5, false), (100, false)]) {
            // Without a NAK in the last millisecond no sender repeats a packet: a copy that comes later than the others is still one.
            let data = packet(DATA, n * 2_100, 9);
            let mut refusal = packet(ACK, n * 2_100, 9);
            let tag = tapped.first(&data);
            assert!(tapped.second(tag, &data, us), "{us}");
            refusal.roce.aeth.0[0] = 0x60;
            tapped.first(&refusal);
            let tag = tapped.first(&data);
            assert_eq!(tapped.second(tag, &data, us), is_copy, "{us}, after a NAK");
        }
    }
}

#[test]
fn a_mirror_that_shows_few_packets_twice_is_known_by_both_directions() {
    // Numbered packets of both sides come twice in 5 % (1 in 20), others in 17 % (1 in 6): a sender might
    // repeat those.
    for (numbered, every, is_known) in [(true, 20, true), (false, 20, false), (false, 6, true)] {
        let mut tapped = MirrorTap::default();
        tapped.flow(4_000, numbered, [every, every], 20);
        assert_eq!(tapped.copies > 0, is_known, "{numbered} {every}");
        if is_known {
            assert!(
                tapped.copies * 2 > tapped.seconds,
                "{} of {}",
                tapped.copies,
                tapped.seconds
            );
        }
    }
}

#[test]
fn duplicates_of_a_network_pass_in_one_direction() {
    for numbered in [true, false] {
        // 5 % of the data, and none of the ACKs.
        let mut tapped = MirrorTap::default();
        tapped.flow(4_000, numbered, [20, 0], 20);
        assert_eq!((tapped.seconds, tapped.copies), (200, 0));
    }
}

#[test]
fn half_of_numbered_packets_in_one_direction_is_more_than_a_network_doubles() {
    let mut tapped = MirrorTap::default();
    tapped.flow(1_000, true, [2, 0], 20);
    assert!(tapped.copies > 300, "{}", tapped.copies);
}

#[test]
fn a_burst_and_its_copies_behind_it_are_counted_together() {
    // Bursts of 250 packets, 20 ns apart, their copies 60 us later, and 500 us of silence: at no time do as many copies as
    // originals come.
    let mut tapped = MirrorTap::default();
    let mut is_copy = false;
    for burst in 0..20 {
        let originals: Vec<(u32, Packet)> = (0..250)
            .map(|n| {
                let mut packet = packet(DATA, burst * 500, 1 + n);
                packet.time.0 += u64::from(n) * 20;
                (tapped.first(&packet), packet)
            })
            .collect();
        for (tag, packet) in originals {
            is_copy = tapped.second(tag, &packet, 60);
        }
    }
    assert!(is_copy);
}

#[test]
fn what_is_repeated_behind_a_nak_is_no_copy() {
    // Data of a sender without identifications, all twice, and their ACKs once; a NAK each 200 us.
    let mut tapped = MirrorTap::default();
    for n in 0..1_000 {
        if n % 50 == 0 {
            let mut nak = packet(ACK, n * 4, 0);
            nak.roce.aeth.0[0] = 0x20 | 4;
            tapped.first(&nak);
        }
        for packet in [packet(DATA, n * 4, 0), packet(ACK, n * 4 + 1, 0)] {
            let tag = tapped.first(&packet);
            if packet.roce.payload_bytes > 0 {
                tapped.second(tag, &packet, 12);
            }
        }
    }
    assert_eq!((tapped.seconds, tapped.copies), (1_000, 0));
}

/// Packets of MRC have a hash where others have an AETH: by chance it looks like a NAK of three in four.
#[test]
fn packets_of_mrc_refuse_nothing() {
    let mut tapped = MirrorTap::default();
    for n in 0..1_000_u64 {
        for (mut packet, us) in [(packet(DATA, n * 4, 0), 0), (packet(ACK, n * 4, 0), 1)] {
            packet.time.0 += us * 1_000;
            packet.roce.bth.0[0] = if us == 0 { 0xc7 } else { 0xdc };
            packet.roce.aeth.0[0] = n.to_le_bytes()[0].wrapping_mul(37);
            let tag = tapped.first(&packet);
            tapped.second(tag, &packet, 3);
        }
    }
    assert!(tapped.copies > 1_400, "{}", tapped.copies);
}

#[test]
fn what_comes_more_than_twice_was_sent_again() {
    let mut tapped = MirrorTap::default();
    for n in 0..1_000 {
        for packet in [packet(DATA, n * 4, 0), packet(ACK, n * 4 + 1, 0)] {
            let tag = tapped.first(&packet);
            assert!(!tapped.second(tag, &packet, 20));
            tapped.mirrors.third(tag, &packet);
        }
    }
}

#[test]
fn reads_sent_again_are_no_copies() {
    // One of `every` READs is seen once more `us` later, or up to 40 us after that, and so is its answer; nobody sends a NAK. All of them:
    // a mirror. One of 3 after different times: a requester that asks again. One of 10 after the same time: a mirror that shows a part.
    for (every, varies, is_known) in [(3, 40, false), (1, 1, true), (10, 1, true), (40, 1, false)] {
        let mut tapped = MirrorTap::default();
        for n in 0..4_000 {
            for packet in [
                packet(READ_REQUEST, n * 4, 0),
                packet(READ_RESPONSE, n * 4 + 2, 0),
            ] {
                let tag = tapped.first(&packet);
                if n % every == 0 {
                    tapped.second(tag, &packet, 10 + n % varies);
                }
            }
        }
        assert_eq!(tapped.copies > 0, is_known, "every {every}");
    }
}

#[test]
fn notifications_one_after_the_other_teach_nothing() {
    let mut cnp = packet(ACK, 0, 0);
    cnp.roce.bth.0[0] = 0x81;
    let mut tapped = MirrorTap::default();
    for n in 0..1_000 {
        cnp.time = Time(1_000_000 + n * 4_000);
        let tag = tapped.first(&cnp);
        assert!(!tapped.second(tag, &cnp, 2));
    }
    // Where everything is doubled, these are doubled, too.
    tapped.flow(1_000, true, [1, 1], 3);
    let tag = tapped.first(&cnp);
    assert!(tapped.second(tag, &cnp, 2));
}

#[test]
fn a_short_capture_is_judged_as_a_whole() {
    for (firsts, is_known) in [(3, false), (4, true), (20, true)] {
        let mut tapped = MirrorTap::default();
        for n in 0..firsts {
            let packet = packet(if n % 2 == 0 { DATA } else { ACK }, n * 2, 0);
            let tag = tapped.first(&packet);
            tapped.second(tag, &packet, 3);
        }
        // The last copy comes 3 us behind its original.
        tapped
            .mirrors
            .conclude(Time(1_000_000 + (firsts * 2 + 1) * 1_000));
        assert_eq!(tapped.mirrors.has_any(), is_known, "{firsts}");
    }
}

#[test]
fn a_mirror_that_ends_is_forgotten() {
    let mut tapped = MirrorTap::default();
    tapped.flow(1_000, true, [1, 1], 3);
    assert!(tapped.mirrors.has_any());
    // 512 samples are halved each time: after ten times as many, hardly any copy is left in the counts.
    tapped.flow(5_000, true, [0, 0], 3);
    assert!(!tapped.mirrors.has_any());
}

#[test]
fn distances_lie_in_their_classes() {
    for distance in 0..MAX_DISTANCE {
        let class = scale(distance);
        assert!(class < SCALES && distance < end_of(class), "{distance}");
        assert!(class == 0 || end_of(class - 1) <= distance, "{distance}");
    }
}
