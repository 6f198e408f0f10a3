//! The example of sFlow.org's "Packet Sampling Basics" (<https://sflow.org/packetSamplingBasics/>): of 1,000,000 packets 2,500 are sampled, of which
//! 1,000 are of one class. With 95 % confidence the class has 381,000 to 419,000 packets.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, Ipv4Addr};

use roce_model::Time;
use roce_sflow::{Place, Port, SampleCollector};

/// Adds a sample of 1 in 400 of one source, a physical entity, of a packet that came by `input`.
fn add(collector: &mut SampleCollector, number: u32, input: u32) {
    let words = [5, 1, 0x0a00_0001, 0, number, number, 1];
    let sample = [3, 68, number, 2, 1, 400, number * 400, 0, 0, input, 0, 9, 1];
    let record = [1, 16, 1, 64, 4, 0];
    let all = words.iter().chain(&sample).chain(&record);
    let bytes: Vec<u8> = all.flat_map(|word: &u32| word.to_be_bytes()).collect();
    let sender = IpAddr::V4(Ipv4Addr::LOCALHOST);
    collector.add(Time(number.into()), sender, &bytes).unwrap();
}

#[test]
fn the_class_has_the_packets_of_the_paper() {
    let mut collector = SampleCollector::default();
    // Two of five packets are of the class: 1,000 of 2,500.
    for number in 1..=2_500 {
        add(&mut collector, number, if number % 5 < 2 { 1 } else { 2 });
    }
    let summary = collector.summary(1);
    let places = &summary.agents[0].places;
    let class = places
        .iter()
        .find(|(place, _)| *place == Place::Input(Port::Interface(1)));
    let (_, found) = class.unwrap();
    assert_eq!(found.samples, 1_000);
    // The paper rounds to thousands.
    assert!((found.packets.low - 381_000.0).abs() < 500.0, "{found:?}");
    assert!((found.packets.high - 419_000.0).abs() < 500.0, "{found:?}");
    // All packets are counted, but for those before the first sample and behind the last one.
    let (_, all) = places[0];
    assert!(
        (all.packets.value - 1_000_400.0).abs() < 1.0 && all.packets.high < 1_002_000.0,
        "{all:?}"
    );
}
