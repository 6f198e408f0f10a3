use std::sync::Arc;

use bytes::Bytes;
use roce_capture::{Batch, Direction, Frame, Interface, LostFrames};
use roce_wire::fast;

use super::*;

/// Ethernet, with a tag if there is one, and IPv4.
fn ipv4(source: [u8; 4], destination: [u8; 4], tag: Option<u16>) -> Vec<u8> {
    let mut frame = ethernet(tag, [0x08, 0x00]);
    // 20 bytes of IPv4, 8 of UDP, 12 of the BTH and 4 of the ICRC.
    frame.extend([0x45, 0, 0, 44, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(source);
    frame.extend(destination);
    rest(frame)
}

fn ipv6(source: [u8; 16], destination: [u8; 16], tag: Option<u16>) -> Vec<u8> {
    let mut frame = ethernet(tag, [0x86, 0xdd]);
    frame.extend([0x60, 0, 0, 0, 0, 24, 17, 64]);
    frame.extend(source);
    frame.extend(destination);
    rest(frame)
}

fn ethernet(tag: Option<u16>, ether_type: [u8; 2]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if let Some(tag) = tag {
        frame.extend([0x81, 0x00]);
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(ether_type);
    frame
}

/// UDP to port 4791, the BTH of an RC SEND Middle, and an ICRC.
fn rest(mut frame: Vec<u8>) -> Vec<u8> {
    frame.extend([0xc0, 0, 0x12, 0xb7, 0, 24, 0, 0]);
    frame.extend([0x01, 0, 0xff, 0xff, 0, 0, 0, 17, 0, 0, 0, 5, 0, 0, 0, 0]);
    frame
}

/// One run of these frames, 10 ns apart from the time 100 on.
fn work(frames: &[Vec<u8>], lost: Vec<LostFrames>) -> Work {
    let mut data = Vec::new();
    let records: Vec<Frame> = (10..)
        .zip(frames)
        .map(|(tens, bytes)| {
            let length = u32::try_from(bytes.len()).unwrap();
            let offset = u32::try_from(data.len()).unwrap();
            data.extend(bytes);
            Frame {
                time: Time(tens * 10),
                offset,
                captured: length,
                original: length,
                interface: 0,
                fcs_bytes: 0,
                direction: Direction::Unknown,
                process: 0,
            }
        })
        .collect();
    let interface = Interface {
        link: LinkType::ETHERNET,
        name: None,
        description: None,
        snaplen: 0,
        fcs_bytes: 0,
        quantum_ns: 1,
        dropped: None,
        section: 0,
    };
    Work {
        run: FrameRun {
            input: 0,
            range: 0..records.len(),
            batch: Arc::new(Batch::new(Bytes::from(data), records, lost)),
        },
        capture: "a.pcap".into(),
        interfaces: Arc::new(vec![interface]),
        processes: Arc::default(),
        ended: Vec::new(),
        correction: None,
    }
}

/// The places, in their works, of the frames that a shard looks at.
fn looked_at(routes: &Routes, shard: usize, works: &[&Work]) -> Vec<Vec<(usize, Owner)>> {
    let mut picked = routes.of(shard);
    let time = 0..u64::MAX;
    let places = works.iter().map(|work| {
        let mut places = Vec::new();
        let mut at = 0;
        while let Some(stretch) = picked.stretch(&work.run, at..work.run.range.end, &time) {
            while let Some((place, owner)) = picked.next(&stretch, at, false) {
                places.push((place, owner));
                at = place + 1;
            }
            picked.pass(&stretch);
            at = stretch.frames.end;
        }
        places
    });
    places.collect()
}

#[test]
fn shards_are_even_and_equal_in_both_directions() {
    // 64 hosts, each talking to the one with its own number: as in a rack.
    let mut taken = [0; 2];
    for n in 0..64 {
        let (a, b) = ([10, 0, 0, n], [10, 0, 1, n]);
        let packet = |source, destination| Roce {
            source: Address::v4(source),
            destination: Address::v4(destination),
            ..Roce::default()
        };
        for index in 0..2 {
            let shard = Shard { index, of: 2 };
            let there = shard.takes(&packet(a, b));
            assert_eq!(there, shard.takes(&packet(b, a)));
            taken[index as usize] += u32::from(there);
        }
    }
    assert_eq!(taken[0] + taken[1], 64);
    assert!(taken.iter().all(|taken| (20..=44).contains(taken)), "{taken:?}");
}

#[test]
fn a_plain_frame_is_looked_at_by_the_shard_of_its_packet_alone() {
    let mut frames = Vec::new();
    for n in 0..40 {
        let mut long = [[0xfe; 16], [0xfd; 16]];
        (long[0][15], long[1][9]) = (n, n);
        for tag in [None, Some(7)] {
            frames.push(ipv4([10, 0, 0, n], [10, 0, 1, n], tag));
            frames.push(ipv6(long[0], long[1], tag));
        }
    }
    let work = work(&frames, Vec::new());
    let (shards, mut routes) = (3, Routes::default());
    RouteFinder::new(shards, 0..u64::MAX).route(&work, &mut routes);
    for index in 0..shards {
        let shard = Shard { index, of: shards };
        let own = frames.iter().enumerate().filter(|(_, frame)| {
            let length = u32::try_from(frame.len()).unwrap();
            shard.takes(&fast::decode(LinkType::ETHERNET, frame, length).unwrap())
        });
        let own: Vec<_> = own.map(|(place, _)| (place, Owner::This)).collect();
        assert!(own.len() > 20, "{index}: {}", own.len());
        assert_eq!(looked_at(&routes, index as usize, &[&work]).concat(), own);
    }
}

#[test]
fn only_decoding_shows_whose_the_others_are() {
    let mut fragment = ipv4([10, 0, 0, 1], [10, 0, 1, 1], None);
    fragment[20] = 0x20;
    let mut options = ipv4([10, 0, 0, 1], [10, 0, 1, 1], None);
    options[14] = 0x46;
    let mut vxlan = ipv4([10, 0, 0, 1], [10, 0, 1, 1], None);
    vxlan[36..38].copy_from_slice(&4789_u16.to_be_bytes());
    let mut routing = ipv6([1; 16], [2; 16], None);
    routing[20] = 43;
    let cut = ipv4([10, 0, 0, 1], [10, 0, 1, 1], None)[..37].to_vec();
    let pause = ethernet(None, [0x88, 0x08]);
    let frames = [
        fragment,
        options,
        vxlan,
        routing,
        cut,
        pause,
        vec![1, 2],
        Vec::new(),
    ];
    let work = work(&frames, Vec::new());
    let mut routes = Routes::default();
    RouteFinder::new(2, 0..u64::MAX).route(&work, &mut routes);
    let all: Vec<_> = (0..frames.len()).map(|place| (place, Owner::Unknown)).collect();
    for shard in 0..2 {
        assert_eq!(looked_at(&routes, shard, &[&work]).concat(), all);
    }
}

#[test]
fn every_shard_learns_of_every_stretch() {
    let frames: Vec<_> = (0..5).map(|n| ipv4([10, 0, 0, n], [10, 0, 1, n], None)).collect();
    // A loss parts the first work. Of the second one the frames before 120 ns are of no interest.
    let lost = |before| LostFrames {
        before,
        interface: 0,
        records: 1,
    };
    let works = [work(&frames, vec![lost(2)]), work(&frames, Vec::new())];
    let time = 120..u64::MAX;
    let mut routes = Routes::default();
    let finder = RouteFinder::new(2, time.clone());
    for work in &works {
        finder.route(work, &mut routes);
    }
    for shard in 0..2 {
        let mut picked = routes.of(shard);
        for (work, ends) in works.iter().zip([vec![2, 5], vec![5]]) {
            let mut at = 0;
            for end in ends {
                let counted = Stretch::begin(&work.run, at..5, &time).unwrap();
                assert_eq!(counted.frames, at..end);
                assert_eq!(picked.stretch(&work.run, at..5, &time), Some(counted.clone()));
                // Nothing was taken of it: what was picked is passed over.
                picked.pass(&counted);
                at = end;
            }
            assert_eq!(picked.stretch(&work.run, 5..5, &time), None);
        }
    }
    let both: Vec<_> = [0, 1]
        .map(|shard| looked_at(&routes, shard, &[&works[0], &works[1]]))
        .into();
    let mut places: Vec<_> = both
        .iter()
        .map(|works| works.concat())
        .collect::<Vec<_>>()
        .concat();
    places.sort_by_key(|(place, _)| *place);
    // The frames from 120 ns on, of both works.
    assert_eq!(places.len(), 6);
    assert_eq!(places.first(), Some(&(2, Owner::This)));
}

#[test]
fn a_shard_can_look_at_every_frame_of_a_stretch() {
    let frames: Vec<_> = (0..20)
        .map(|n| ipv4([10, 0, 0, n], [10, 0, 1, n], None))
        .collect();
    let work = work(&frames, Vec::new());
    let mut routes = Routes::default();
    RouteFinder::new(2, 0..u64::MAX).route(&work, &mut routes);
    let own = looked_at(&routes, 1, &[&work]).concat();
    let mut picked = routes.of(1);
    let stretch = picked.stretch(&work.run, 0..20, &(0..u64::MAX)).unwrap();
    for place in 0..20 {
        let owner = if own.contains(&(place, Owner::This)) {
            Owner::This
        } else {
            Owner::Other
        };
        assert_eq!(picked.next(&stretch, place, true), Some((place, owner)));
    }
    assert_eq!(picked.next(&stretch, 20, true), None);
}
