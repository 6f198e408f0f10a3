//! The analysis: packets in, bins of rows and closed flows out. What a PSN says is judged in `judge`, what a packet adds
//! is counted in `count`.

mod count;
mod judge;

use std::hash::{BuildHasher, Hasher};

use roce_model::{
    CnpReceiver, EventKind, EventRow, FlowKey, FlowRow, LostRecords, Management, Nanos, Packet, PacketBatch,
    PauseFrame, Totals,
};
use roce_wire::{Psn, Qpn, Service};

use crate::asked::AskedFor;
use crate::bins::{Bin, Bins, Place, Row};
use crate::cnp::CnpReceivers;
use crate::copies::Recent;
use crate::counts::Counts;
use crate::state::{Cold, Hot};
use crate::table::{FlowTable, Found, TOGETHER};

/// What shapes the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Width of a timeline bin.
    pub bin: Nanos,
    /// Flows that can be live at once; more close the idle ones early.
    pub max_flows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bin: Nanos(1_000_000),
            max_flows: 1_000_000,
        }
    }
}

/// Results, as far as they cannot change any more.
#[derive(Debug, Default)]
pub struct Output {
    pub(crate) bins: Vec<Bin>,
    pub(crate) flows: Vec<FlowRow>,
    /// Every bin before this one has been handed on.
    pub(crate) done_before: u64,
}

/// What an analysis knows at its end besides its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// Counts of RoCE packets.
    pub totals: Totals,
    /// Who was told to slow down.
    pub cnp_receivers: Vec<CnpReceiver>,
    /// Copies dropped, by tap.
    pub copies: Vec<u64>,
}

/// Turns packets into flows. It reads no clock and no file: time is what the packets say.
#[derive(Debug)]
pub struct Analysis {
    table: FlowTable,
    bins: Bins,
    recent: Recent,
    asked: AskedFor,
    cnp: CnpReceivers,
    totals: Totals,
    /// RoCE packets over IP by ECN field, CNPs left out.
    ecn: [u64; 4],
    carriers: [u64; 5],
    copies: Vec<u64>,
    /// How often the capture lost records, by tap.
    losses: Vec<u32>,
    output: Output,
    /// Room for looking packets up.
    found: Box<[Found]>,
    /// The first epoch of a new flow: past all epochs of evicted ones, so that no key is used twice.
    first_epoch: u32,
    /// Hosts are hashed alike in every part of a run.
    hosts: foldhash::fast::FixedState,
}

/// Events of the current bin that wait for its end, at most.
const MOST_EVENTS: usize = 1 << 16;

impl Analysis {
    /// An analysis that has seen nothing.
    pub fn new(options: Options) -> Self {
        Self {
            table: FlowTable::new(options.max_flows),
            bins: Bins::new(options.bin),
            recent: Recent::default(),
            asked: AskedFor::default(),
            cnp: CnpReceivers::new(options.max_flows),
            totals: Totals::default(),
            ecn: [0; 4],
            carriers: [0; 5],
            copies: Vec::new(),
            losses: Vec::new(),
            output: Output::default(),
            found: vec![Found::default(); TOGETHER].into_boxed_slice(),
            first_epoch: 0,
            hosts: foldhash::fast::FixedState::with_seed(0),
        }
    }

    /// Takes packets in the order of time.
    pub fn push(&mut self, batch: &PacketBatch) {
        // Packets run up to the next thing that lies between them.
        let mut from = 0;
        let mut pauses = batch.pauses.iter().peekable();
        let mut lost = batch.lost.iter().peekable();
        let mut management = batch.management.iter().peekable();
        loop {
            let next = [
                pauses.peek().map(|pause| pause.before),
                lost.peek().map(|lost| lost.before),
                management.peek().map(|message| message.packet),
            ];
            let to = next
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(usize::MAX)
                .clamp(from, batch.packets.len());
            self.packets(&batch.packets[from..to]);
            from = to;
            if let Some(lost) = lost.next_if(|lost| lost.before <= to) {
                self.lost(lost);
            } else if let Some(pause) = pauses.next_if(|pause| pause.before <= to) {
                self.pause(pause);
            } else if let Some(message) = management.next_if(|message| message.packet <= to) {
                if let Some(packet) = batch.packets.get(message.packet) {
                    self.management(packet, message);
                }
            } else if from == batch.packets.len() {
                return;
            }
        }
    }

    /// A message of the connection manager: from the queue pair it names on, PSNs begin anew.
    fn management(&mut self, packet: &Packet, message: &Management) {
        self.advance_to(packet.time);
        self.bins.events.push(EventRow {
            time: packet.time,
            kind: EventKind::Connection,
            tap: packet.tap,
            flow_id: Some(FlowKey::of(&packet.roce).id()),
            psn: message.starting_psn.map(Psn::value),
            value: message.local_qpn.map(|qpn| u64::from(qpn.value())),
            detail: Some(message.name.into()),
            ..EventRow::default()
        });
        let Some(qpn) = message.local_qpn else { return };
        // Both services that are connected this way; what comes for the queue pair comes from the other host.
        for service in [Service::Rc, Service::Uc] {
            let key = FlowKey {
                source: packet.roce.destination,
                destination: packet.roce.source,
                destination_qpn: qpn,
                source_qpn: Qpn::default(),
                service,
                ..FlowKey::of(&packet.roce)
            };
            if let Some(at) = self.table.find_key(packet.tap, &key) {
                let hot = &mut self.table.hot[at as usize];
                self.table.cold[at as usize].tracker.connect(&mut hot.requests);
            }
        }
    }

    /// Time has come to `now`, whether or not there were packets.
    pub fn advance_to(&mut self, now: Nanos) {
        if let Place::Later(bin) = self.bins.place(now) {
            self.begin_bin(bin);
        }
    }

    /// Takes the results that cannot change any more.
    pub fn take_output(&mut self) -> Output {
        if self.bins.events.len() >= MOST_EVENTS {
            // Time hardly moves: what happened is handed on all the same, so that it does not pile up.
            self.output.bins.push(self.bins.overdue_events());
        }
        self.output.done_before = self.bins.done_before();
        core::mem::take(&mut self.output)
    }

    /// Whether results wait to be taken.
    pub fn has_output(&self) -> bool {
        !self.output.bins.is_empty() || !self.output.flows.is_empty() || self.bins.events.len() >= MOST_EVENTS
    }

    /// Before the end: closes up to `most` flows, so that their rows need not all be held at once; whether there may
    /// be more. No packet may follow.
    pub fn close_flows(&mut self, most: usize) -> bool {
        for at in self.table.live().take(most).collect::<Vec<_>>() {
            self.close_flow(at, false);
            self.table.remove(at);
        }
        self.table.live().next().is_some()
    }

    /// The end: everything that is open closes.
    pub fn finish(mut self) -> (Output, Conclusion) {
        while self.close_flows(usize::MAX) {}
        self.begin_bin(self.bins.current() + 1);
        self.hand_on(true);
        let mut output = self.take_output();
        output.done_before = u64::MAX;
        let [not_ect, ect1, ect0, ce] = self.ecn;
        let [v2_over_ipv4, v2_over_ipv6, roce_v1, local, global] = self.carriers;
        let totals = Totals {
            not_ect,
            ect1,
            ect0,
            ce,
            roce_v1,
            roce_v2: v2_over_ipv4 + v2_over_ipv6,
            infiniband: local + global,
            ..self.totals
        };
        (
            output,
            Conclusion {
                totals,
                cnp_receivers: self.cnp.list(),
                copies: self.copies,
            },
        )
    }

    fn packets(&mut self, packets: &[Packet]) {
        let mut found = core::mem::take(&mut self.found);
        for some in packets.chunks(TOGETHER) {
            self.table.find_all(some, &self.recent, &mut found);
            // A flow that is new to this portion may be opened, and another evicted, by a packet before: then what
            // was found no longer holds.
            let mut holds = true;
            for (packet, found) in some.iter().zip(found.iter()) {
                if packet.roce.bth.opcode().is_cnp() {
                    self.observe_cnp(found.fingerprint, packet);
                    continue;
                }
                let mut at = found.at;
                if at == Found::NONE || !holds {
                    at = if let Some(at) = self.table.find(found.hash, &found.key) {
                        at
                    } else {
                        holds &= !self.table.is_full();
                        self.open_flow(found, packet)
                    };
                }
                self.observe(at, found.fingerprint, packet);
            }
        }
        self.found = found;
    }

    fn hash_hosts(&self, packet: &Packet) -> (u64, u64) {
        let mut state = self.hosts.build_hasher();
        state.write_u32(packet.tap.0);
        state.write(packet.roce.destination.octets());
        let destination = state.finish();
        state.write(packet.roce.source.octets());
        (destination, state.finish())
    }

    fn open_flow(&mut self, found: &Found, packet: &Packet) -> u32 {
        if self.table.is_full()
            && let Some(idle) = self.table.idle()
        {
            self.close_flow(idle, true);
            self.table.remove(idle);
        }
        let (destination, pair) = self.hash_hosts(packet);
        let hot = Hot::new(packet, found.key);
        let cold = Cold::new(packet, self.first_epoch, destination, pair);
        self.table.insert(found.hash, hot, cold)
    }

    #[inline]
    fn observe(&mut self, at: u32, fingerprint: u64, packet: &Packet) {
        let sighting = self.recent.look(fingerprint, packet);
        let hot = &mut self.table.hot[at as usize];
        hot.referenced = true;
        if hot.evidence.is_copy(sighting, packet.roce.ip_id) {
            return self.copy(packet);
        }
        match self.bins.place(packet.time) {
            Place::Current => {}
            Place::Later(bin) => self.begin_bin(bin),
            Place::Earlier(bin) => return self.observe_earlier(at, bin, packet),
        }
        let verdict = self.judge(at, self.bins.current(), packet);
        let hot = &mut self.table.hot[at as usize];
        if !hot.active {
            hot.active = true;
            self.bins.active.push(at);
        }
        self.count(at, packet, verdict);
    }

    /// A packet whose stamp is out of order: it counts in the bin that it belongs to.
    #[cold]
    fn observe_earlier(&mut self, at: u32, bin: u64, packet: &Packet) {
        let verdict = self.judge(at, bin, packet);
        let current = core::mem::take(&mut self.table.hot[at as usize].counts);
        self.count(at, packet, verdict);
        let counts = core::mem::replace(&mut self.table.hot[at as usize].counts, current);
        self.add_earlier(at, bin, &counts);
    }

    /// Adds to a row of an earlier bin; once that has been handed on, the row comes in parts.
    fn add_earlier(&mut self, at: u32, bin: u64, counts: &Counts) {
        let cold = &mut self.table.cold[at as usize];
        cold.totals.add(counts);
        let row = cold.row(self.table.hot[at as usize].tap, *counts);
        match self.bins.earlier(bin, &row) {
            Some(sum) => sum.add(counts),
            None => self.output.bins.push(Bins::overdue(bin, row)),
        }
    }

    #[cold]
    fn copy(&mut self, packet: &Packet) {
        self.totals.copies += 1;
        let tap = packet.tap.0 as usize;
        if self.copies.len() <= tap {
            self.copies.resize(tap + 1, 0);
        }
        self.copies[tap] += 1;
    }

    fn observe_cnp(&mut self, fingerprint: u64, packet: &Packet) {
        let sighting = self.recent.look(fingerprint, packet);
        if let Place::Later(bin) = self.bins.place(packet.time) {
            self.begin_bin(bin);
        }
        if !self.cnp.observe(packet, sighting) {
            return self.copy(packet);
        }
        self.totals.cnp += 1;
        self.totals.roce_packets += 1;
        self.totals.wire_bytes += u64::from(packet.wire_bytes);
        self.count_packet(packet);
        if let Some(good) = packet.icrc {
            self.totals.icrc_checked += 1;
            self.totals.icrc_bad += u64::from(!good);
        }
    }

    fn pause(&mut self, frame: &PauseFrame) {
        self.advance_to(frame.time);
        self.totals.pause_frames += 1;
        let quanta = frame.pause.quanta.iter().copied().max().unwrap_or_default();
        self.bins.events.push(EventRow {
            time: frame.time,
            kind: EventKind::Pause,
            tap: frame.tap,
            value: Some(u64::from(quanta)),
            detail: Some(frame.pause.to_string().into()),
            ..EventRow::default()
        });
    }

    fn lost(&mut self, lost: &LostRecords) {
        self.advance_to(lost.time);
        let tap = lost.tap.0 as usize;
        if self.losses.len() <= tap {
            self.losses.resize(tap + 1, 0);
        }
        self.losses[tap] = self.losses[tap].wrapping_add(1);
        if lost.records == 0 {
            return;
        }
        self.bins.events.push(EventRow {
            time: lost.time,
            kind: if lost.by_mirror {
                EventKind::MirrorLost
            } else {
                EventKind::CaptureLost
            },
            tap: lost.tap,
            value: Some(lost.records),
            ..EventRow::default()
        });
    }

    /// Closes a flow's epoch: its row in the current bin, and its row in `flows`.
    fn close_flow(&mut self, at: u32, evicted: bool) {
        self.table.cold[at as usize].tracker.close();
        self.settle(at);
        if let Some(row) = self.close_row(at) {
            self.bins.rows.push(row);
        }
        let hot = &self.table.hot[at as usize];
        let cold = &self.table.cold[at as usize];
        if cold.totals.packets == 0 {
            // All it showed were copies of packets that were counted before it was evicted and came back.
            return;
        }
        let row = cold.flow_row(hot, evicted);
        cold.totals.add_to_run(&mut self.totals);
        self.totals.icrc_checked += hot.icrc_checked;
        self.totals.icrc_bad += cold.icrc_bad;
        if evicted {
            self.totals.evicted += 1;
            self.first_epoch = self.first_epoch.max(cold.epoch + 1);
            self.bins.events.push(EventRow {
                time: hot.last_time,
                kind: EventKind::Evicted,
                tap: hot.tap,
                flow_id: Some(cold.id),
                value: Some(row.packets),
                ..EventRow::default()
            });
        }
        self.output.flows.push(row);
    }

    /// Ends the open row of a flow, if it has one.
    #[inline]
    fn close_row(&mut self, at: u32) -> Option<Row> {
        let hot = &mut self.table.hot[at as usize];
        let cold = &mut self.table.cold[at as usize];
        if !core::mem::take(&mut hot.active) {
            return None;
        }
        let counts = core::mem::take(&mut hot.counts);
        cold.totals.add(&counts);
        Some(cold.row(hot.tap, counts))
    }

    /// Ends the current bin.
    fn begin_bin(&mut self, number: u64) {
        let active = core::mem::take(&mut self.bins.active);
        let mut rows = core::mem::take(&mut self.bins.rows);
        rows.reserve(active.len());
        for at in &active {
            rows.extend(self.close_row(*at));
        }
        self.bins.active = active;
        self.bins.active.clear();
        let begin = self.bins.time(self.bins.current());
        self.cnp.end_bin(begin, &mut self.bins.events);
        self.bins.advance(number, rows);
        self.hand_on(false);
    }

    /// Hands on the bins that cannot change any more.
    fn hand_on(&mut self, all: bool) {
        loop {
            for at in self.bins.undecided_in_done(all) {
                if self.table.hot[at as usize].live {
                    self.table.cold[at as usize].tracker.decide_alone();
                    self.settle(at);
                }
            }
            let Some(bin) = self.bins.take_done(all) else {
                return;
            };
            self.output.bins.push(bin);
        }
    }
}

impl Conclusion {
    /// Adds the conclusion of another part of the run.
    pub fn add(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.cnp_receivers.extend_from_slice(&other.cnp_receivers);
        crate::cnp::sort(&mut self.cnp_receivers);
        if self.copies.len() < other.copies.len() {
            self.copies.resize(other.copies.len(), 0);
        }
        for (sum, more) in self.copies.iter_mut().zip(&other.copies) {
            *sum += more;
        }
    }
}
