//! Hops of flows, as switches wrote them into packets.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use roce_model::{FlowId, FlowKey, InbandHopRow, InbandHops, Packet, TapId, Time};
use roce_wire::{Hop, TelemetryKind};

use crate::timing::distribution::Distribution;

/// Rows, at most: some 100 MB. Hops of further ones count in the timeline alone.
const MAX_ROWS: usize = 1 << 17;

/// The hop that a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct HopKey {
    flow: FlowId,
    tap: TapId,
    kind: TelemetryKind,
    number: Option<u8>,
    device: Option<u32>,
    queue: Option<u8>,
    ports: [Option<u16>; 2],
    signal: [Option<u8>; 2],
}

/// The values of a hop.
#[derive(Clone, Debug)]
struct HopValues {
    packets: u64,
    copies: u64,
    congested: Option<u64>,
    queued: Distribution,
    residence: Distribution,
    buffers: Option<u32>,
    value: Option<(u32, u32)>,
    worst: Option<WorstPacket>,
    first: Time,
    last: Time,
}

/// The packet with the most bytes in the queue, else the longest time in the device.
#[derive(Clone, Copy, Debug)]
struct WorstPacket {
    measure: (Option<u32>, Option<u32>),
    time: Time,
    psn: u32,
}

/// Hops of all flows.
#[derive(Debug, Default)]
pub(crate) struct Inband {
    rows: HashMap<HopKey, HopValues, foldhash::fast::RandomState>,
}

impl Inband {
    /// Takes the hops of a packet.
    pub(crate) fn add(&mut self, found: &InbandHops) {
        let packet = &found.packet;
        let flow = FlowKey::from_packet(&packet.roce).id();
        for hop in found.hops.all() {
            let has_room = self.rows.len() < MAX_ROWS;
            let values = match self.rows.entry(key(flow, packet.tap, hop)) {
                Entry::Occupied(values) => values.into_mut(),
                Entry::Vacant(_) if !has_room => continue,
                Entry::Vacant(place) => place.insert(HopValues::begin(packet.time)),
            };
            values.add(hop, packet, found.is_copy);
        }
    }

    /// The rows, in the order of flows.
    pub(crate) fn conclude(self) -> Vec<InbandHopRow> {
        let mut rows: Vec<(HopKey, HopValues)> = self.rows.into_iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        rows.into_iter().map(|(key, values)| values.row(&key)).collect()
    }
}

fn key(flow: FlowId, tap: TapId, hop: &Hop) -> HopKey {
    HopKey {
        flow,
        tap,
        kind: hop.kind,
        number: hop.number,
        device: hop.device,
        queue: hop.queue,
        ports: [hop.ingress, hop.egress],
        signal: [hop.signal, hop.locator],
    }
}

impl HopValues {
    fn begin(time: Time) -> Self {
        Self {
            packets: 0,
            copies: 0,
            congested: None,
            queued: Distribution::default(),
            residence: Distribution::default(),
            buffers: None,
            value: None,
            worst: None,
            first: time,
            last: time,
        }
    }

    fn add(&mut self, hop: &Hop, packet: &Packet, is_copy: bool) {
        self.packets += 1;
        self.copies += u64::from(is_copy);
        (self.first, self.last) = (self.first.min(packet.time), self.last.max(packet.time));
        if let Some(is_congested) = hop.is_congested {
            *self.congested.get_or_insert(0) += u64::from(is_congested);
        }
        if let Some(bytes) = hop.queued_bytes {
            self.queued.add(bytes.into());
        }
        if let Some(time) = hop.residence_ns {
            self.residence.add(time.into());
        }
        self.buffers = self.buffers.max(hop.queued_buffers);
        if let Some(value) = hop.value {
            let (low, high) = self.value.unwrap_or((value, value));
            self.value = Some((low.min(value), high.max(value)));
        }
        let is_measured = hop.queued_bytes.is_some() || hop.residence_ns.is_some();
        let measure = (hop.queued_bytes, hop.residence_ns);
        if is_measured && self.worst.is_none_or(|worst| measure > worst.measure) {
            self.worst = Some(WorstPacket {
                measure,
                time: packet.time,
                psn: packet.roce.bth.psn().value(),
            });
        }
    }

    fn row(&self, key: &HopKey) -> InbandHopRow {
        let (queued, residence) = (self.queued.summary(), self.residence.summary());
        InbandHopRow {
            flow_id: key.flow,
            tap: key.tap,
            kind: key.kind.name().into(),
            hop: key.number.map(Into::into),
            device: key.device,
            queue: key.queue.map(Into::into),
            ingress_port: key.ports[0].map(Into::into),
            egress_port: key.ports[1].map(Into::into),
            signal: key.signal[0].map(Into::into),
            locator: key.signal[1].map(Into::into),
            packets: self.packets,
            copies: self.copies,
            congested: self.congested,
            queued_bytes_p50: queued.quantile(50),
            queued_bytes_max: queued.max(),
            queued_buffers_max: self.buffers.map(Into::into),
            residence_p50_ns: residence.quantile(50),
            residence_max_ns: residence.max(),
            value_min: self.value.map(|(low, _)| low.into()),
            value_max: self.value.map(|(_, high)| high.into()),
            worst_time: self.worst.map(|worst| worst.time),
            worst_psn: self.worst.map(|worst| worst.psn),
            first_time: self.first,
            last_time: self.last,
        }
    }
}
