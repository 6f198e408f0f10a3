//! Rows made by hand, for tests: flows of hosts 10.0.0.N, and bins of what they did.

use roce_model::{
    Active, Address, Columns, EpisodeRow, EventKind, EventRow, FlowId, FlowKey, FlowRow, Groups, Qpn,
    RunSummary, SampleRow, Service, TapId, TapRow, Time, TimelineRow,
};

use crate::Verdicts;
use crate::bin_rows::{BinRows, PairTraffic, TranslatedPairs};
use crate::host_pairs::HostPairs;
use crate::settings::{CELL, Settings};

pub(super) const MS: u64 = 1_000_000;

/// Host 10.0.0.`n`.
pub(super) fn host(n: u8) -> Address {
    Address::v4([10, 0, 0, n])
}

/// A clean RC flow of 1,000 data packets with ECT(0), paired, from host `source` to the queue pair 0x10 + `source` of
/// host `destination`.
pub(super) fn flow(source: u8, destination: u8) -> FlowRow {
    flow_to(source, destination, 0x10 + u32::from(source))
}

/// A row to another queue pair.
pub(super) fn flow_to(source: u8, destination: u8, qpn: u32) -> FlowRow {
    FlowRow {
        flow_id: id_of(source, destination, qpn),
        source: host(source),
        destination: host(destination),
        destination_qpn: qpn,
        service: "RC",
        carrier: "RoCEv2/IPv4",
        peer_flow_id: Some(id_of(destination, source, 0x10 + u32::from(destination))),
        pairing: Some("psn"),
        counted: true,
        first_time: Time(0),
        last_time: Time(10 * MS),
        packets: 1_000,
        wire_bytes: 1_082_000,
        payload_bytes: 1_024_000,
        data_packets: 1_000,
        ect0: 1_000,
        cnp: Some(0),
        ack_rtt_count: 100,
        path_mtu: Some(1024),
        dscp: Some(26),
        dscp_values: 1,
        source_port: Some(0xc000 | u16::try_from(qpn & 0x3fff).unwrap()),
        source_ports: 1,
        ..FlowRow::default()
    }
}

fn id_of(source: u8, destination: u8, qpn: u32) -> FlowId {
    FlowKey {
        source: host(source),
        destination: host(destination),
        destination_qpn: Qpn::new(qpn),
        source_qpn: Qpn::default(),
        vlan: None,
        vni: None,
        service: Service::Rc,
    }
    .id()
}

/// The flow of ACKs back from the destination of `of`.
pub(super) fn back(of: &FlowRow) -> FlowRow {
    FlowRow {
        flow_id: of.peer_flow_id.unwrap(),
        source: of.destination,
        destination: of.source,
        destination_qpn: 0x10 + u32::from(of.destination.octets()[15]),
        peer_flow_id: Some(of.flow_id),
        tap: of.tap,
        packets: 100,
        acks: 100,
        data_packets: 0,
        payload_bytes: 0,
        ect0: 0,
        not_ect: 0,
        path_mtu: None,
        ..flow(1, 2)
    }
}

/// A flow, and what its row of a bin has beside the ten packets of data.
pub(super) type Did<'a> = (&'a FlowRow, fn(&mut TimelineRow));

/// A run of verdicts over rows made by hand, with bins of 1 ms.
pub(super) struct TestRun {
    verdicts: Verdicts,
    pairs: HostPairs,
    flows: Vec<FlowRow>,
    pub(super) summary: RunSummary,
}

impl TestRun {
    pub(super) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self {
            verdicts: Verdicts::new(settings),
            pairs: HostPairs::default(),
            flows: Vec::new(),
            summary: RunSummary {
                taps: vec![TapRow::default()],
                ..RunSummary::default()
            },
        }
    }

    /// The bin that begins at `ms`, with a row for each flow and `change` of it, and events.
    pub(super) fn bin(&mut self, ms: u64, rows: &[Did<'_>], events: &[EventRow]) -> &mut Self {
        let time = Time(ms * MS);
        self.verdicts.begin_bin(time);
        let mut bin = BinRows::default();
        for (flow, change) in rows {
            let mut row = TimelineRow {
                time,
                flow_id: flow.flow_id,
                tap: flow.tap,
                packets: 10,
                payload_bytes: 10_240,
                data_packets: 10,
                ect0: 10,
                senders_to_destination: senders(rows, flow),
                ..TimelineRow::default()
            };
            change(&mut row);
            row.ect0 = row.ect0.saturating_sub(row.ce);
            let groups = Groups::new(flow.tap, flow.source, flow.destination);
            bin.add(&row, groups);
            if flow.service == Service::Mrc.name() {
                bin.note_mrc(bin.len() - 1);
            }
            if !self
                .flows
                .iter()
                .any(|known| (known.flow_id, known.tap) == (flow.flow_id, flow.tap))
            {
                self.flows.push((*flow).clone());
            }
        }
        for event in events {
            self.verdicts.event(event);
        }
        give(bin, time, &mut self.verdicts, &mut self.pairs);
        self
    }

    /// A reading of a counter.
    pub(super) fn sample(&mut self, row: &SampleRow) -> &mut Self {
        self.verdicts.sample(row);
        self
    }

    /// A closed flow.
    pub(super) fn closed(&mut self, row: &FlowRow) -> &mut Self {
        self.flows
            .retain(|known| (known.flow_id, known.tap, known.epoch) != (row.flow_id, row.tap, row.epoch));
        self.flows.push(row.clone());
        self
    }

    pub(super) fn verdicts(&mut self) -> &mut Verdicts {
        &mut self.verdicts
    }

    /// The end: the summary.
    pub(super) fn conclude(mut self) -> RunSummary {
        for row in &self.flows {
            self.verdicts.flow(row);
        }
        self.verdicts.conclude(&mut self.summary);
        self.summary
    }

    /// The end: the episodes.
    pub(super) fn episodes(self) -> Vec<EpisodeRow> {
        self.conclude().episodes
    }
}

impl BinRows {
    /// A row of a pair of its own.
    pub(super) fn add(&mut self, row: &TimelineRow, groups: Groups) {
        let number = u32::try_from(self.traffic.len()).unwrap();
        self.columns.push(row);
        self.active.push(Active::ALL);
        self.pair_of_row.push(number);
        self.traffic.push(PairTraffic::new(groups, row.tap, number));
    }

    /// As it comes from a shard, with the numbers of the run.
    pub(super) fn entered(mut self, pairs: &mut HostPairs) -> Self {
        self.sum_up();
        self.enter(pairs, &mut TranslatedPairs::default());
        self
    }
}

/// The end of a bin with these rows.
pub(super) fn give(rows: BinRows, time: Time, verdicts: &mut Verdicts, pairs: &mut HostPairs) {
    pairs.begin_bin();
    let rows = rows.entered(pairs);
    pairs.count_senders(time, CELL);
    verdicts.traffic(time, &rows, pairs);
    verdicts.end_bin(pairs);
    verdicts.end_cell(pairs, [(time, &rows)].into_iter());
}

fn senders(rows: &[Did<'_>], of: &FlowRow) -> u32 {
    let mut sources: Vec<Address> = rows
        .iter()
        .filter(|(flow, _)| flow.destination == of.destination && flow.tap == of.tap && flow.data_packets > 0)
        .map(|(flow, _)| flow.source)
        .collect();
    sources.sort_unstable();
    sources.dedup();
    u32::try_from(sources.len()).unwrap()
}

/// An event of a flow.
pub(super) fn event(kind: EventKind, of: &FlowRow, time: u64, value: u64, detail: &'static str) -> EventRow {
    EventRow {
        time: Time(time),
        kind,
        tap: of.tap,
        flow_id: Some(of.flow_id),
        value: Some(value),
        detail: Some(detail.into()),
        ..EventRow::default()
    }
}

/// Another tap.
pub(super) fn at_tap(mut row: FlowRow, tap: u32) -> FlowRow {
    row.tap = TapId(tap);
    row
}
