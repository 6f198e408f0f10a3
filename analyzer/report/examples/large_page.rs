//! Writes the page of a made run to standard output: how large it is, and how long it takes to gather and to draw.
//!
//! `cargo run --release -p roce-report --example large_page -- FLOWS BINS ACTIVE > page.html`: so many flows and bins, each flow
//! active in so many percent of the bins. What it took stands on standard error.

#![expect(clippy::print_stderr, reason = "a command for a person at a terminal")]

use std::io::{BufWriter, Error, Write};
use std::time::Instant;

use roce_model::{
    Address, Columns, EventColumns, EventKind, EventRow, FlowKey, FlowRow, InputSummary, Period, Qpn,
    RunSummary, Service, Sink, SinkError, Span, TapRow, Time, TimelineColumns, TimelineRow,
};
use roce_report::HtmlReport;

/// 2026-01-01.
const START: u64 = 1_767_225_600_000_000_000;
const BIN: u64 = 1_000_000;

/// Numbers of no meaning, the same in every run (splitmix64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A flow between two of 128 hosts.
fn key(flow: u32) -> FlowKey {
    let host = |number: u32| Address::v4((0x0a00_0001 + number).to_be_bytes());
    FlowKey {
        source: host(flow % 128),
        destination: host(flow / 128 % 128),
        destination_qpn: Qpn::new(0x100 + flow),
        source_qpn: Qpn::new(0),
        vlan: None,
        vni: None,
        service: Service::Rc,
    }
}

fn empty(key: &FlowKey, bins: u64) -> FlowRow {
    FlowRow {
        flow_id: key.id(),
        source: key.source,
        destination: key.destination,
        destination_qpn: key.destination_qpn.value(),
        service: "RC",
        carrier: "RoCEv2/IPv4",
        counted: true,
        first_time: Time(START),
        last_time: Time(START + bins * BIN),
        first_psn: Some(0),
        last_psn: Some(0xff_ffff),
        ..FlowRow::default()
    }
}

/// Makes a flow's row of a bin, and adds it to the flow.
fn act(flow: &mut FlowRow, time: Time, noise: &mut Noise) -> TimelineRow {
    let packets = 1 + noise.below(200);
    let ce = noise.below(20).saturating_sub(15).min(packets);
    let lost = u64::from(noise.below(500) == 0);
    flow.packets += packets;
    flow.data_packets += packets;
    flow.wire_bytes += packets * 1_082;
    flow.payload_bytes += packets * 1_024;
    flow.ce += ce;
    flow.missing += lost;
    flow.network_lost += lost;
    flow.retransmitted_packets += lost * 4;
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    TimelineRow {
        time,
        flow_id: flow.flow_id,
        packets: small(packets),
        wire_bytes: packets * 1_082,
        payload_bytes: packets * 1_024,
        data_packets: small(packets),
        ect0: small(packets - ce),
        ce: small(ce),
        cnp: Some(small(ce / 3)),
        retransmitted_packets: small(lost * 4),
        retransmitted_bytes: lost * 4_096,
        missing: lost,
        acks: small(packets / 8),
        ack_rtt_p50_ns: Some(8_000 + noise.below(4_000)),
        ack_rtt_max_ns: Some(12_000 + noise.below(40_000)),
        messages: small(packets / 16),
        inflight_bytes_max: Some(noise.below(200_000)),
        senders_to_destination: small(1 + noise.below(16)),
        ..TimelineRow::default()
    }
}

fn summary(flows: &[FlowRow], bins: u64) -> RunSummary {
    let span = Period {
        first: Time(START),
        last: Time(START + bins * BIN),
    };
    let mut run = RunSummary {
        version: "0".to_owned(),
        started: Time(START),
        bin: Span(BIN),
        inputs: vec![InputSummary {
            input: format!("{} flows, {bins} bins", flows.len()),
            first_time: Some(span.first),
            last_time: Some(span.last),
            ..InputSummary::default()
        }],
        span: Some(span),
        taps: vec![TapRow {
            input: "made".into(),
            link: "Ethernet".into(),
            ..TapRow::default()
        }],
        ..RunSummary::default()
    };
    run.totals.flows = flows.len() as u64;
    for flow in flows {
        run.totals.wire_bytes += flow.wire_bytes;
        run.totals.payload_bytes += flow.payload_bytes;
        run.totals.data_packets += flow.data_packets;
        run.totals.roce_packets += flow.packets;
        run.totals.data_ce += flow.ce;
        run.totals.network_lost += flow.network_lost;
        run.totals.missing += flow.missing;
        run.totals.retransmitted_packets += flow.retransmitted_packets;
    }
    run
}

fn main() -> Result<(), SinkError> {
    let arguments: Vec<u32> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let [flows, bins, active] = arguments.as_slice() else {
        return Err("FLOWS BINS ACTIVE".into());
    };
    let bins = u64::from(*bins);
    let mut page = HtmlReport::new(BufWriter::new(CountedOutput::default()));
    page.begin(Span(BIN))?;
    let keys: Vec<FlowKey> = (0..*flows).map(key).collect();
    page.flows_opened(&keys)?;
    let mut flows: Vec<FlowRow> = keys.iter().map(|key| empty(key, bins)).collect();
    let mut noise = Noise(1);
    let (mut timeline, mut events) = (TimelineColumns::default(), EventColumns::default());
    let mut made = 0;
    let begun = Instant::now();
    for bin in 0..bins {
        for flow in &mut flows {
            if noise.below(100) >= u64::from(*active) {
                continue;
            }
            let row = act(flow, Time(START + bin * BIN), &mut noise);
            if row.missing > 0 {
                events.push(&EventRow {
                    time: row.time,
                    kind: EventKind::Hole,
                    flow_id: Some(row.flow_id),
                    psn: u32::try_from(noise.below(1 << 24)).ok(),
                    value: Some(row.missing),
                    detail: Some("network_lost".into()),
                    ..EventRow::default()
                });
            }
            timeline.push(&row);
            made += 1;
            if timeline.len() >= 8_192 {
                page.timeline(&timeline)?;
                page.events(&events)?;
                timeline.clear();
                events.clear();
            }
        }
    }
    page.timeline(&timeline)?;
    page.events(&events)?;
    let gathered = begun.elapsed();
    page.flows_closed(&flows)?;
    let begun = Instant::now();
    page.finish(&summary(&flows, bins))?;
    let out = page.into_inner().into_inner();
    let bytes = out.map_err(|error| Error::other(error.to_string()))?.bytes;
    eprintln!(
        "{made} rows: gathered in {gathered:.2?} (making them counted), written in {:.2?}, {} kB",
        begun.elapsed(),
        bytes / 1_000
    );
    Ok(())
}

/// Standard output, and how much went there.
#[derive(Debug, Default)]
struct CountedOutput {
    bytes: u64,
}

impl Write for CountedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = std::io::stdout().write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stdout().flush()
    }
}
