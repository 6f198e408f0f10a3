//! Datagrams of sFlow. Each byte is read once, no estimate is outside its bounds, and no sample comes from nothing.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use roce_model::Time;
use roce_sflow::{Datagram, Payload, SampleCollector};
use roce_wire::LinkType;

fuzz_target!(|data: &[u8]| {
    if let Ok(datagram) = Datagram::parse(data) {
        assert!(datagram.samples().count() <= data.len() / 8 + 1);
    }
    let sender = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut collector = SampleCollector::default();
    for time in 0..3 {
        let _ = collector.add(Time(time), sender, data);
    }
    if let Some(payload) = Payload::find(LinkType::ETHERNET, data, 6343) {
        let _ = collector.add(Time(9), payload.sender, payload.bytes);
    }
    let mut samples = 0;
    for (_, found) in collector.summary(5).agents.iter().flat_map(|agent| &agent.places) {
        samples += found.samples;
        assert!(found.packets.low <= found.packets.value && found.packets.value <= found.packets.high);
        for share in [found.roce, found.uet, found.marked, found.not_capable, found.cnps] {
            let Some(share) = share.share else { continue };
            assert!(0.0 <= share.low && share.low <= share.high && share.high <= 1.0);
        }
    }
    // A sample has 32 bytes at least, is in three places at most, and was added four times at most.
    assert!(samples <= data.len() as u64 / 32 * 12);
});
