//! Captures of random scenarios, and healthy traffic to lay beside others.

use std::io::Cursor;
use std::sync::OnceLock;

use roce_model::SinkError;
use roce_sim::{Scenario, simulate_in_memory};
use roce_truth::{Family, family_of};
use roce_wire::LinkType;

use crate::input::InputSource;
use crate::packet;
use crate::tape::{Record, Tape};

/// The scenarios of seeds, each family in turn.
pub fn simulated_sources(seeds: std::ops::Range<u64>) -> Vec<InputSource> {
    seeds
        .map(|seed| InputSource::Simulated(family_of(seed), seed))
        .collect()
}

/// The captures of a random scenario, and the options that belong to it.
pub(crate) fn tapes(family: &Family, seed: u64) -> Result<(Vec<Tape>, Vec<String>), SinkError> {
    let scenario = family.scenario(seed);
    Ok((simulated(&scenario.toml)?, scenario.arguments))
}

fn simulated(toml: &str) -> Result<Vec<Tape>, SinkError> {
    let (_, captures) = simulate_in_memory(&Scenario::parse(toml)?)?;
    let mut tapes = Vec::new();
    for capture in captures {
        let name = format!("{}.pcapng", capture.name.replace(['/', ':', '>', ' '], "-"));
        tapes.push(Tape::read(&name, Box::new(Cursor::new(capture.bytes)))?);
    }
    Ok(tapes)
}

/// Two hosts that send each other messages at a fortieth of 10 Gbit/s, for two milliseconds.
const HEALTHY: &str = r#"
title = "healthy"
seed = 7
duration = "2ms"

[network]
hosts = 2
topology = "direct"
rate = "10Gbps"
delay = "1us"

[nic]
mtu = 1024

[[flow]]
from = "h1"
to = "h2"
message = "4KiB"
interval = "130us"

[[flow]]
from = "h2"
to = "h1"
message = "4KiB"
interval = "170us"

[[tap]]
at = "h2"
snaplen = 96
"#;

/// Records of healthy traffic between hosts of its own, the first at time 0. All packets are answered.
pub(crate) fn healthy() -> &'static [Record] {
    static RECORDS: OnceLock<Vec<Record>> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let tapes = simulated(HEALTHY).unwrap_or_default();
        let mut records = tapes
            .into_iter()
            .next()
            .map(|tape| tape.records)
            .unwrap_or_default();
        let first = records.first().map_or(0, |record| record.time);
        for record in &mut records {
            record.time -= first;
            record.interface = 0;
            // Addresses that no other input has: 198.18.0.0/15 is for benchmarks (RFC 2544); locally administered MACs.
            for place in [0, 6] {
                record.data[place..place + 3].copy_from_slice(&[0x02, 0xbe, 0xef]);
            }
            if let Some(roce) = packet::roce(LinkType::ETHERNET, record) {
                packet::change(LinkType::ETHERNET, record, &roce, |data, roce| {
                    let addresses = usize::from(roce.network_offset) + 12;
                    data[addresses..addresses + 2].copy_from_slice(&[198, 18]);
                    data[addresses + 4..addresses + 6].copy_from_slice(&[198, 18]);
                });
            }
        }
        records
    })
}
