//! Datagrams that nobody means well with: none panics, none takes more than its bytes, and what is whole in them counts.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, Ipv4Addr};

use roce_model::Time;
use roce_sflow::{Datagram, Payload, Sample, SampleCollector};
use roce_wire::LinkType;

const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The beginning of a datagram of 10.0.0.1 that claims `count` samples.
fn head(number: u32, count: u32) -> Vec<u8> {
    words(&[5, 1, 0x0a00_0001, 0, number, 1_000, count])
}

/// A compact flow sample of interface 5 with a record of `header`, which is a whole number of words.
fn flow(header: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(header.len()).unwrap();
    let mut sample = words(&[1, 32 + 8 + 16 + bytes, 1, 5, 100, 100, 0, 5, 7, 1]);
    sample.extend(words(&[1, 16 + bytes, 1, bytes + 4, 4, bytes]));
    sample.extend(header);
    sample
}

fn added(bytes: &[u8]) -> (Result<(), roce_sflow::Fault>, roce_sflow::SampleSummary) {
    let mut collector = SampleCollector::default();
    let added = collector.add(Time(1), SENDER, bytes);
    (added, collector.summary(10))
}

#[test]
fn a_datagram_may_end_anywhere() {
    let whole = [head(1, 2), flow(&[0; 64]), flow(&[0; 64])].concat();
    for length in 0..whole.len() {
        let (added, summary) = added(&whole[..length]);
        assert!(added.is_err(), "{length}");
        let samples: u64 = summary
            .agents
            .iter()
            .map(|agent| agent.places.first().map_or(0, |all| all.1.samples))
            .sum();
        // The first sample ends at 28 + 128 bytes.
        assert_eq!(samples, u64::from(length >= 28 + 128), "{length}");
    }
    let (added, summary) = added(&whole);
    assert_eq!(added, Ok(()));
    assert_eq!(summary.agents[0].places[0].1.samples, 2);
}

#[test]
fn lengths_and_counts_of_2_32_are_ends() {
    let most = u32::MAX;
    for (bytes, is_broken) in [
        (head(1, most), true),
        ([head(1, most), words(&[1, most])].concat(), true),
        // Unknown samples without a byte, as many as fit: each takes 8 bytes.
        ([head(1, most), vec![0xff; 0]].concat(), true),
        ([head(1, 2), words(&[77, 0, 4_097, 0])].concat(), false),
        // A flow sample that claims records, and a record that claims bytes.
        (
            [head(1, 1), words(&[1, 32, 1, 5, 100, 0, 0, 5, 7, most])].concat(),
            true,
        ),
        (
            [head(1, 1), words(&[1, 40, 1, 5, 100, 0, 0, 5, 7, 1, 1, most])].concat(),
            true,
        ),
        // A header longer than its record.
        (
            [
                head(1, 1),
                words(&[1, 56, 1, 5, 100, 0, 0, 5, 7, 1, 1, 16, 1, 64, 4, most]),
            ]
            .concat(),
            true,
        ),
        // A flow sample that is too short for its own fields.
        ([head(1, 1), words(&[1, 8, 1, 5])].concat(), true),
        (vec![0; 1_400], true),
        (words(&[5, 9, 1, 2, 3, 4, 5]), true),
        (Vec::new(), true),
    ] {
        assert_eq!(added(&bytes).0.is_err(), is_broken, "{bytes:x?}");
    }
}

#[test]
fn a_broken_sample_hides_no_other() {
    let broken = words(&[1, 40, 1, 5, 100, 0, 0, 5, 7, 1, 1, u32::MAX]);
    let bytes = [
        head(1, 4),
        broken,
        flow(&[0; 64]),
        words(&[4_097, 5, 0x6162_6364, 0x6500_0000]),
        flow(&[0; 8]),
    ]
    .concat();
    let (added, summary) = added(&bytes);
    let fault = added.unwrap_err();
    // The record's bytes begin at 28 + 8 + 32 + 8.
    assert_eq!((fault.offset, fault.expected, fault.had), (76, u32::MAX, 0));
    let agent = &summary.agents[0];
    assert_eq!((agent.counts.broken, agent.counts.unknown), (1, 1));
    assert_eq!(agent.places[0].1.samples, 2);
}

#[test]
fn time_is_linear_in_the_bytes() {
    // 65,535 bytes have 8,188 samples of 8 bytes, whatever is claimed.
    let bytes = [head(1, u32::MAX), words(&vec![0; 16_376])].concat();
    let datagram = Datagram::parse(&bytes).unwrap();
    let steps = datagram.samples().count();
    assert_eq!(steps, 8_188 + 1);
    assert!(matches!(datagram.samples().last(), Some(Sample::Broken(_))));
}

#[test]
fn ever_new_agents_sources_and_ways_stay_within_bounds() {
    let mut collector = SampleCollector::default();
    for number in 0..200_000_u32 {
        let agent = if number < 100_000 { number } else { 0 };
        let bytes = [
            words(&[5, 1, agent, 0, number, 1_000, 1]),
            words(&[
                3,
                68,
                number,
                0,
                number,
                100,
                number,
                0,
                0,
                number,
                0,
                number.wrapping_mul(7),
                1,
            ]),
            words(&[1, 16, 1, 64, 4, 0]),
        ]
        .concat();
        collector.add(Time(number.into()), SENDER, &bytes).unwrap();
    }
    let summary = collector.summary(10);
    assert_eq!(summary.agents.len(), 1_024);
    assert_eq!(summary.left_out, 100_000 - 1_024);
    let counts = &summary.agents[0].counts;
    assert_eq!(counts.sources, 4_096);
    // Agent 0 has its first sample, and those of the second half.
    assert_eq!(counts.left_out, 100_001 - 4_096);
}

#[test]
fn any_bytes_are_read_to_an_end() {
    // Marsaglia, "Xorshift RNGs" (2003).
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let whole = [head(1, 3), flow(&[7; 64]), flow(&[9; 32]), flow(&[0; 128])].concat();
    let mut collector = SampleCollector::default();
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..random() % 6 {
            let place = usize::try_from(random()).unwrap() % bytes.len();
            bytes[place] = random().to_be_bytes()[0];
        }
        // Whatever it says, it ends.
        let _ = collector.add(Time(random() >> 2), SENDER, &bytes);
        let _ = Payload::find(LinkType::ETHERNET, &bytes, 6343);
    }
    let summary = collector.summary(3);
    assert_eq!(summary.datagrams, 20_000);
    for (_, found) in summary.agents.iter().flat_map(|agent| &agent.places) {
        assert!(found.packets.value.is_finite() && found.packets.low <= found.packets.high);
        for share in [found.roce, found.uet, found.marked, found.not_capable, found.cnps] {
            let Some(share) = share.share else { continue };
            assert!(
                0.0 <= share.low
                    && share.low <= share.value
                    && share.value <= share.high
                    && share.high <= 1.0
            );
        }
    }
}

#[test]
fn datagrams_are_found_below_every_link() {
    let payload = head(1, 0);
    let udp = [&[0xc0, 0, 0x18, 0xc7, 0, 36, 0, 0], payload.as_slice()].concat();
    let ipv4 = [
        &[0x45, 0, 0, 56, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 9],
        udp.as_slice(),
    ]
    .concat();
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, 36, 17, 64];
    ipv6.extend(
        [0xfd; 16]
            .into_iter()
            .chain([0xfe; 16])
            .chain(udp.iter().copied()),
    );
    let ethernet = [[2; 12].as_slice(), &[8, 0], &ipv4].concat();
    let tagged = [[2; 12].as_slice(), &[0x81, 0, 0, 5, 0x86, 0xdd], &ipv6].concat();
    let cooked = [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0], ipv4.as_slice()].concat();
    let cooked2 = [
        &[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0],
        ipv4.as_slice(),
    ]
    .concat();
    let loopback = [&[2, 0, 0, 0], ipv4.as_slice()].concat();
    for (link, frame) in [
        (LinkType::ETHERNET, &ethernet),
        (LinkType::ETHERNET, &tagged),
        (LinkType::LINUX_SLL, &cooked),
        (LinkType::LINUX_SLL2, &cooked2),
        (LinkType::NULL, &loopback),
        (LinkType::RAW, &ipv4),
        (LinkType::RAW, &ipv6),
    ] {
        let found = Payload::find(link, frame, 6343).unwrap();
        assert_eq!((found.bytes, found.is_cut), (payload.as_slice(), false), "{link}");
        assert_eq!(Payload::find(link, frame, 6344), None);
        // The capture cut the last four bytes.
        let cut = Payload::find(link, &frame[..frame.len() - 4], 6343).unwrap();
        assert!(cut.is_cut && cut.bytes.len() == 24, "{link}");
    }
    // A first fragment has a part of its datagram.
    let mut fragment = ethernet;
    fragment[14 + 6] = 0x20;
    assert_eq!(Payload::find(LinkType::ETHERNET, &fragment, 6343), None);
}

#[test]
fn numbers_that_several_sources_share_are_no_losses() {
    // Each datagram arrives; the agent numbers the samples of its 64 interfaces in one row.
    let mut collector = SampleCollector::default();
    for number in 0..6_400_u32 {
        let port = number % 64 + 1;
        let bytes = [
            head(number, 1),
            words(&[1, 56, number, port, 100, 0, 0, port, 99, 1]),
            words(&[1, 16, 1, 64, 4, 0]),
        ]
        .concat();
        collector.add(Time(number.into()), SENDER, &bytes).unwrap();
    }
    let agent = &collector.summary(1).agents[0];
    assert_eq!(
        (agent.counts.lost_datagrams, agent.counts.missing_samples),
        (0, 0)
    );
    // 6,400 samples of 1 in 100.
    assert!((agent.places[0].1.packets.value - 640_000.0).abs() < 1e-6);
}
