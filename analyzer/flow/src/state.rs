//! What is kept of a live flow: the part that every packet touches, and the rest.

use std::borrow::Cow;

use roce_model::{FlowId, FlowKey, FlowRow, Nanos, Packet, TapId};
use roce_wire::{Carrier, Psn, Service, Through, VlanTag};

use crate::bins::Row;
use crate::copies::CopyEvidence;
use crate::counts::{Counts, FlowTotals};
use crate::distribution::Distribution;
use crate::messages::{Messages, PendingRead};
use crate::requests::{Requests, Tracker};
use crate::responses::Responses;
use crate::table::Key;

/// What every packet of a flow touches: four cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Hot {
    // The first line: what finds the flow, and what its next request should be.
    /// The key and the tap, as the table compares them.
    pub(crate) packed: Key,
    pub(crate) requests: Requests,
    // The second one.
    pub(crate) last_request: Nanos,
    pub(crate) last_time: Nanos,
    pub(crate) messages: Messages,
    pub(crate) evidence: CopyEvidence,
    /// The tap's count of losses that the flow knows of.
    pub(crate) losses: u32,
    source_port: u16,
    dscp: u8,
    /// Seen since the clock hand of the eviction last came by.
    pub(crate) referenced: bool,
    /// Has counts in the current bin.
    pub(crate) active: bool,
    /// The slot holds a flow.
    pub(crate) live: bool,
    // The third and the fourth.
    pub(crate) counts: Counts,
    /// Data packets with this DSCP since the last change.
    dscp_run: u64,
    pub(crate) icrc_checked: u64,
    pub(crate) tap: TapId,
}

/// What is touched when something other than the usual happens, and when a row closes.
#[derive(Clone, Debug)]
pub(crate) struct Cold {
    pub(crate) key: FlowKey,
    pub(crate) id: FlowId,
    pub(crate) epoch: u32,
    destination: u64,
    pair: u64,
    first_time: Nanos,
    pub(crate) totals: FlowTotals,
    pub(crate) tracker: Tracker,
    pub(crate) lengths: Distribution,
    pub(crate) pending_read: Option<PendingRead>,
    pub(crate) responses: Responses,
    pub(crate) first_psn: Option<Psn>,
    /// NAKs by code, RNR NAKs left out: sequence, invalid request, remote access, remote operational, other.
    pub(crate) naks: [u64; 5],
    pub(crate) resend_runs: u64,
    pub(crate) stale: u64,
    pub(crate) response_missing: u64,
    pub(crate) read_requests: u64,
    pub(crate) atomics: u64,
    pub(crate) icrc_bad: u64,
    carrier: Carrier,
    through: Through,
    priority: Option<u8>,
    ports: Ports,
    dscps: Dscps,
}

/// Distinct UDP source ports, up to eight.
#[derive(Clone, Debug, Default)]
struct Ports {
    seen: [u16; Ports::MOST],
    count: u8,
    changes: u64,
}

impl Ports {
    const MOST: usize = 8;

    fn change_to(&mut self, port: u16) {
        self.changes += 1;
        let known = &self.seen[..usize::from(self.count)];
        if known.len() < Self::MOST && !known.contains(&port) {
            self.seen[usize::from(self.count)] = port;
            self.count += 1;
        }
    }
}

/// Packets by DSCP, for the first four values.
#[derive(Clone, Debug, Default)]
struct Dscps {
    seen: [(u8, u64); Dscps::MOST],
    count: usize,
    others: u64,
}

impl Dscps {
    const MOST: usize = 4;

    fn add(&mut self, dscp: u8, packets: u64) {
        if packets == 0 {
            return;
        }
        let known = &mut self.seen[..self.count];
        if let Some((_, sum)) = known.iter_mut().find(|(known, _)| *known == dscp) {
            *sum += packets;
        } else if self.count < Self::MOST {
            self.seen[self.count] = (dscp, packets);
            self.count += 1;
        } else {
            // Bits of the values beyond the fourth: 64 values, 64 bits.
            self.others |= 1 << (dscp & 63);
        }
    }

    fn most(&self) -> Option<u8> {
        let known = &self.seen[..self.count];
        known
            .iter()
            .rev()
            .max_by_key(|(_, packets)| *packets)
            .map(|(dscp, _)| *dscp)
    }

    fn distinct(&self) -> u32 {
        u32::try_from(self.count).unwrap_or_default() + self.others.count_ones()
    }
}

impl Hot {
    pub(crate) fn new(packet: &Packet, key: Key) -> Self {
        Self {
            packed: key,
            requests: Requests::default(),
            last_request: Nanos::default(),
            last_time: packet.time,
            messages: Messages::default(),
            evidence: CopyEvidence::default(),
            losses: 0,
            source_port: packet.roce.udp_source_port,
            dscp: packet.roce.dscp(),
            referenced: true,
            active: false,
            live: true,
            counts: Counts::default(),
            dscp_run: 0,
            icrc_checked: 0,
            tap: packet.tap,
        }
    }

    /// Reads a word of each cache line.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.last_time.0 ^ u64::from(self.counts.first()) ^ self.icrc_checked
    }

    /// The same flow from `time` on, in its next epoch.
    pub(crate) fn next_epoch(&mut self, time: Nanos) {
        self.last_time = time;
        self.messages.restart();
        self.icrc_checked = 0;
        self.dscp_run = 0;
    }

    /// Notes the attributes that a packet of the flow carries. `data`: its DSCP counts for the flow's.
    #[inline]
    pub(crate) fn attributes(&mut self, cold: &mut Cold, packet: &Packet, data: bool) {
        if packet.roce.udp_source_port != self.source_port {
            self.source_port = packet.roce.udp_source_port;
            cold.ports.change_to(self.source_port);
        }
        if data {
            if packet.roce.dscp() != self.dscp {
                cold.dscps.add(self.dscp, core::mem::take(&mut self.dscp_run));
                self.dscp = packet.roce.dscp();
            }
            self.dscp_run += 1;
        }
    }
}

impl Cold {
    /// The state of a flow that begins with `packet`. `destination` and `pair` are hashes of its hosts.
    pub(crate) fn new(packet: &Packet, epoch: u32, destination: u64, pair: u64) -> Self {
        let key = FlowKey::of(&packet.roce);
        let mut ports = Ports::default();
        if !matches!(
            packet.roce.carrier,
            Carrier::RoceV1 | Carrier::InfinibandLocal | Carrier::InfinibandGlobal
        ) {
            ports.change_to(packet.roce.udp_source_port);
        }
        Self {
            key,
            id: key.id(),
            epoch,
            destination,
            pair,
            first_time: packet.time,
            totals: FlowTotals::default(),
            tracker: Tracker::default(),
            lengths: Distribution::default(),
            pending_read: None,
            responses: Responses::default(),
            first_psn: None,
            naks: [0; 5],
            resend_runs: 0,
            stale: 0,
            response_missing: 0,
            read_requests: 0,
            atomics: 0,
            icrc_bad: 0,
            carrier: packet.roce.carrier,
            through: packet.roce.through,
            priority: packet.roce.vlan.map(VlanTag::priority),
            ports,
            dscps: Dscps::default(),
        }
    }

    /// The same flow from `time` on, in its next epoch: identity and attributes stay.
    pub(crate) fn next_epoch(&mut self, time: Nanos) {
        self.epoch += 1;
        self.first_time = time;
        self.totals = FlowTotals::default();
        self.lengths = Distribution::default();
        self.pending_read = None;
        self.responses = Responses::default();
        self.first_psn = None;
        self.naks = [0; 5];
        (self.resend_runs, self.stale, self.response_missing) = (0, 0, 0);
        (self.read_requests, self.atomics, self.icrc_bad) = (0, 0, 0);
        self.dscps = Dscps::default();
        self.ports.changes = 0;
    }

    /// An empty timeline row of the flow.
    pub(crate) fn row(&self, tap: TapId, counts: Counts) -> Row {
        Row {
            flow_id: self.id,
            tap,
            epoch: self.epoch,
            destination: self.destination,
            pair: self.pair,
            counts,
        }
    }

    /// The flow's row in `flows`.
    pub(crate) fn flow_row(&self, hot: &Hot, evicted: bool) -> FlowRow {
        let key = &self.key;
        let lengths = self.lengths.summary();
        let mut dscps = self.dscps.clone();
        dscps.add(hot.dscp, hot.dscp_run);
        let connected = !matches!(key.service, Service::Ud | Service::Rd);
        let [
            nak_sequence,
            nak_invalid_request,
            nak_remote_access,
            nak_remote_operational,
            nak_other,
        ] = self.naks;
        let mut row = FlowRow {
            flow_id: self.id,
            tap: hot.tap,
            epoch: self.epoch,
            source: key.source,
            destination: key.destination,
            destination_qpn: key.destination_qpn.value(),
            source_qpn: (!connected).then_some(key.source_qpn.value()),
            service: key.service.name(),
            carrier: self.carrier.name(),
            vlan: key.vlan,
            vni: key.vni,
            through: if self.through.is_nothing() {
                Cow::Borrowed("")
            } else {
                self.through.to_string().into()
            },
            first_time: self.first_time,
            last_time: hot.last_time,
            nak_sequence,
            nak_invalid_request,
            nak_remote_access,
            nak_remote_operational,
            nak_other,
            resend_runs: self.resend_runs,
            stale: self.stale,
            response_missing: self.response_missing,
            message_bytes_min: lengths.min(),
            message_bytes_p50: lengths.quantile(50),
            message_bytes_p90: lengths.quantile(90),
            message_bytes_p99: lengths.quantile(99),
            message_bytes_max: lengths.max(),
            message_bytes_stddev: lengths.stddev(),
            read_requests: self.read_requests,
            atomics: self.atomics,
            path_mtu: hot.messages.path_mtu(),
            dscp: self.carrier.has_ip().then(|| dscps.most().unwrap_or(hot.dscp)),
            dscp_values: dscps.distinct(),
            pcp: self.priority,
            source_ports: u32::from(self.ports.count),
            // Some ports over a life are new paths; many changes among several are spraying.
            multipath: self.ports.count > 3 && self.ports.changes > self.totals.packets / 16,
            first_psn: self.first_psn.map(Psn::value),
            last_psn: self
                .first_psn
                .map(|_| hot.requests.expected().plus(Psn::COUNT - 1).value()),
            icrc_checked: hot.icrc_checked,
            icrc_bad: self.icrc_bad,
            evicted,
            ..FlowRow::default()
        };
        self.totals.write_flow(&mut row);
        row
    }
}
