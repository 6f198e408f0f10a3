//! The analysis: packets in, bins of rows and closed flows out. `request` and `response` judge PSNs, `count` adds a packet to its
//! bin, `request_history` gathers what one is judged by, `lifecycle` opens and closes flows, `host_events` takes what hosts report. `pair` and `connect` find which flows belong together.
//! `cnp` finds the flows that congestion notifications slow, `credits` follows WRITEs, and `taps` matches what several taps saw. `limits` has the bounds,
//! `time_states` divides flows' time, `snapshot` has the state of live runs, `measures` what they measure besides, `output` the results of a step.

mod beside;
mod cnp;
mod connect;
mod connections;
mod count;
mod credits;
mod early;
mod host_events;
mod lifecycle;
mod limits;
mod measures;
mod mrc;
mod notifications;
mod output;
mod pair;
mod programs;
mod request;
mod request_history;
mod response;
mod run_causes;
mod snapshot;
mod tally;
mod tap_states;
mod taps;
mod time_states;
mod trimmed;

use roce_model::{
    Between, EventKind, EventRow, LostRecords, MrcPacket, PRIORITY_OF_DSCP, Packet, PacketBatch, PacketFlags,
    PauseFrame, RemoteWrite, SampleRow, Span, TapPlace, Time,
};
use roce_wire::Psn;

use crate::bins::{BinPlace, Bins};
use crate::congestion::dcqcn::Parameters;
use crate::counts::Counts;
use crate::key::FlowSlot;
use crate::psn::causes::HostPairTimes;
use crate::psn::recent_naks::RecentNaks;
use crate::spare::Spare;
use crate::table::FlowTable;
use crate::table::lookup::{FoundFlow, LOOKUP_BATCH};
use crate::taps::duplicates::{PacketSighting, Recent, fingerprint};
use crate::timing::send_answers;

use connections::Connections;
use limits::SenderLimits;
use measures::Measures;
use notifications::Notifications;
pub(crate) use output::LiveFlows;
pub use output::{Conclusion, Output};
use tally::Tally;
use tap_states::TapStates;

/// Options of the analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Width of a timeline bin.
    pub bin: Span,
    /// Flows that can be live at once; more close the idle ones early.
    pub max_flows: usize,
    /// Speed of the links, in bit/s, if given.
    pub link_rate: Option<u64>,
    /// How senders react to congestion notifications; `None` when they do not by DCQCN.
    pub dcqcn: Option<Parameters>,
    /// True if the user stated these parameters: only then they alone say what a sender may do at most.
    pub dcqcn_stated: bool,
    /// The priority (0 to 7) of untagged packets, by DSCP.
    pub priority_of_dscp: [u8; 64],
    /// The seed of the packets' hashes, which decide what stays remembered of the latest packets to recognise copies. Equal seeds give
    /// equal results. Live runs draw a random one and record it, so that nobody can send packets that displace those of others.
    pub seed: u64,
    /// Where the only tap stood, if the user says it.
    pub tap_at: Option<TapPlace>,
    /// Counts [`roce_model::TapMeasures`] for snapshots.
    pub measures: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bin: Span(1_000_000),
            max_flows: 500_000,
            link_rate: None,
            dcqcn: Some(Parameters::default()),
            dcqcn_stated: false,
            priority_of_dscp: PRIORITY_OF_DSCP,
            seed: 0,
            tap_at: None,
            measures: false,
        }
    }
}

/// How a packet was looked for among the latest ones.
#[derive(Clone, Copy)]
struct CopyCheck {
    sighting: PacketSighting,
    fingerprint: u64,
    /// The newest IPv4 identification of its flow before it.
    newest_id: u16,
}

/// Turns packets into flows. It reads no clock and no file: time is what the packets say.
#[derive(Debug)]
pub struct Analysis {
    table: FlowTable,
    bins: Bins,
    recent: Recent,
    recent_naks: RecentNaks,
    causes: HostPairTimes,
    notifications: Notifications,
    connections: Connections,
    limits: SenderLimits,
    /// Responses that are missing before the READ response being counted, as far as that alone shows.
    read_gap: Option<(Psn, u32)>,
    tally: Tally,
    /// The latest stamp of a packet, and that of the whole capture once that has ended; before, 0.
    latest: Time,
    ended: Time,
    taps: TapStates,
    /// Measurements at each tap, where they are wanted.
    measures: Option<Measures>,
    output: Output,
    /// Room for looking packets up.
    found: Box<[FoundFlow]>,
}

/// Headers that a batch has beside a packet.
#[derive(Clone, Copy)]
enum HeadersBeside<'a> {
    Write(&'a RemoteWrite),
    Mrc(&'a MrcPacket),
}

impl<'a> HeadersBeside<'a> {
    const fn from_between(between: &'a Between) -> Option<Self> {
        match between {
            Between::Write(write) => Some(Self::Write(write)),
            Between::Mrc(mrc) => Some(Self::Mrc(mrc)),
            _ => None,
        }
    }
}

/// Flows that close together, so that waits for memory overlap.
const CLOSE_BATCH: usize = 16;

/// Rows between the prefetch of what is behind a flow's pointers and its turn. Its own state is prefetched twice as early.
const CLOSE_AHEAD: usize = 8;

/// Events of the current bin that wait for its end, at most.
const MAX_EVENTS: usize = 1 << 16;

/// Rows and events that wait for the end of their bins, at most, but twice as many as flows may be live: some 250 bytes each.
const MAX_HELD: usize = 1 << 19;

impl Analysis {
    /// Number of packets that should come together at the beginning. At 800 Gbit/s packets of 1 KiB fill 0.17
    /// ms, longer than mirrors take for their copies.
    pub const FIRST_PACKETS: usize = 16_384;

    /// An analysis that has seen nothing.
    pub fn new(options: Options) -> Self {
        Self {
            table: FlowTable::new(options.max_flows, options.seed),
            bins: Bins::for_timeline(options.bin),
            recent: Recent::default(),
            recent_naks: RecentNaks::default(),
            causes: HostPairTimes::default(),
            latest: Time(0),
            ended: Time(0),
            notifications: Notifications::new(options.max_flows),
            connections: Connections::default(),
            limits: SenderLimits::new(
                options.link_rate,
                options.dcqcn,
                options.dcqcn_stated,
                options.priority_of_dscp,
            ),
            read_gap: None,
            tally: Tally::default(),
            taps: TapStates::new(options.tap_at),
            measures: options.measures.then(Measures::default),
            output: Output::default(),
            found: vec![FoundFlow::default(); LOOKUP_BATCH].into_boxed_slice(),
        }
    }

    /// Takes room for rows from what the collector gives back.
    pub fn share_room(&mut self, spare: &Spare) {
        self.bins.spare = spare.clone();
    }

    /// Takes packets in the order of time. What shows only in many packets, as that a tap shows each of them twice, is learned from
    /// the first batches before they are judged: [`Analysis::FIRST_PACKETS`] should come together.
    pub fn push(&mut self, batch: &PacketBatch) {
        if self.recent.learned() < Self::FIRST_PACKETS && !batch.packets.is_empty() {
            let table = &self.table;
            let print = |packet: &Packet| fingerprint(table.hash_of(packet), packet);
            self.recent.learn(&batch.packets, print);
        }
        let mut from = 0;
        let mut headers = batch.between.iter().filter_map(HeadersBeside::from_between);
        for between in &batch.between {
            // Headers go with their packet, and do not part others.
            match between {
                Between::Write(_) => continue,
                Between::Mrc(mrc) => {
                    if let Some(packet) = batch.packets.get(mrc.packet) {
                        self.connections.mrc.recognise(packet, mrc);
                    }
                    continue;
                }
                _ => {}
            }
            let to = between.before().clamp(from, batch.packets.len());
            self.packets(&batch.packets[from..to], &mut headers);
            from = to;
            self.between(between, batch.packets.get(to));
        }
        self.packets(&batch.packets[from..], &mut headers);
    }

    /// Takes what comes between packets: `next` is the packet behind it, which carries a message of the connection manager.
    fn between(&mut self, between: &Between, next: Option<&Packet>) {
        match between {
            Between::Link(link) => {
                // A bin does not change by what is learned after it.
                self.advance_to(link.time);
                self.limits.pauses.link(link);
                self.bins.links.push(*link);
            }
            Between::Lost(lost) => self.lost(lost),
            Between::Host(report) => self.host(report),
            Between::Process(found) => self.named(found),
            Between::Pause(pause) => self.pause(pause),
            Between::Write(_) | Between::Mrc(_) => {}
            Between::Uet(packet) => self.uet(packet),
            Between::Inband(hops) => self.inband(hops),
            Between::Management(message) => {
                if let Some(packet) = next {
                    self.management(packet, message);
                }
            }
        }
    }

    /// Time has come to `now`, whether or not there were packets.
    pub fn advance_to(&mut self, now: Time) {
        if let BinPlace::Later(bin) = self.bins.place(now) {
            self.begin_bin(bin);
        }
    }

    /// Takes the results that cannot change any more.
    pub fn take_output(&mut self) -> Output {
        // Time hardly moves: what happened is emitted all the same, so that it does not pile up.
        if self.holds_too_much() {
            self.close_rows();
            self.bins.cut();
            self.emit(false);
        } else if self.bins.events.len() >= MAX_EVENTS {
            self.output.bins.push(self.bins.overdue_events());
        }
        for bin in &mut self.output.bins {
            bin.rows.sum_up();
        }
        self.output.watermark = self.bins.watermark();
        core::mem::take(&mut self.output)
    }

    /// Number of closed flows whose rows wait to be taken.
    pub fn closed_flows(&self) -> usize {
        self.output.flows.len()
    }

    /// True if results wait to be taken.
    pub fn has_output(&self) -> bool {
        let output = &self.output;
        let has_rows = !output.bins.is_empty() || !output.flows.is_empty() || !output.samples.is_empty();
        has_rows || self.bins.events.len() >= MAX_EVENTS || self.holds_too_much()
    }

    /// True if more rows and events wait for the end of their bins than live flows explain: evicted flows follow each other.
    fn holds_too_much(&self) -> bool {
        self.bins.held() > MAX_HELD.max(2 * self.table.most())
    }

    /// Samples, which leave with the next output as they are.
    pub fn samples(&mut self, rows: &mut Vec<SampleRow>) {
        self.output.samples.append(rows);
    }

    /// Before the end: closes up to `most` flows, so that their rows need not all be held at once; whether there may
    /// be more. No packet may follow.
    pub fn close_flows(&mut self, most: usize) -> bool {
        self.end_waiting();
        self.choose_taps();
        self.ended = self.latest;
        let closing: Vec<FlowSlot> = self.table.live().take(most).collect();
        self.output.flows.reserve(closing.len());
        for some in closing.chunks(CLOSE_BATCH) {
            self.table.prefetch_all(some);
            for at in some {
                self.close_flow(*at, false);
                self.drop_flow(*at);
            }
        }
        self.table.live().next().is_some()
    }

    /// The end: everything that is open closes.
    pub fn finish(mut self) -> (Output, Conclusion) {
        while self.close_flows(usize::MAX) {}
        self.limits.pauses.finish(self.bins.end(), &mut self.bins.events);
        let mrc = self.connections.conclude_multipath(&mut self.bins.events);
        self.begin_bin(self.bins.current() + 1);
        self.emit(true);
        let mut output = self.take_output();
        output.watermark = u64::MAX;
        let mut exchanges = core::mem::take(&mut self.tally.exchanges);
        send_answers::sort(&mut exchanges);
        let (totals, copies) = self.tally.conclude();
        let (matched, hops, hop_timeline) = self.taps.conclude();
        let hops_inband = self.connections.inband.conclude();
        let cut_rings = self.connections.credits.cut_rings();
        (
            output,
            Conclusion {
                totals,
                cnp_receivers: self.notifications.receivers.list(),
                attempts: self.connections.attempts.list(),
                exchanges,
                copies,
                matched,
                hops,
                hop_timeline,
                credits: self.connections.credits.conclude(),
                cut_rings,
                mrc,
                hops_inband,
            },
        )
    }

    /// Takes packets in a row, and as many of `headers` as they have.
    fn packets<'a>(&mut self, packets: &[Packet], headers: &mut impl Iterator<Item = HeadersBeside<'a>>) {
        self.latest = packets
            .last()
            .map_or(self.latest, |last| self.latest.max(last.time));
        let mut found = core::mem::take(&mut self.found);
        for some in packets.chunks(LOOKUP_BATCH) {
            self.table.find_all(some, &self.recent, &mut found);
            if let Some(matcher) = &self.taps.matcher {
                matcher.prefetch(some);
            }
            // A flow that is new to this batch may be opened, and another evicted, by a packet before: then what
            // was found no longer holds.
            let mut holds = true;
            for (packet, found) in some.iter().zip(found.iter()) {
                let beside = if packet.flags.is_special() {
                    let beside = if packet.flags.has_headers() {
                        headers.next()
                    } else {
                        None
                    };
                    let is_short =
                        packet.flags.has(PacketFlags::SHORT) && !packet.flags.has(PacketFlags::MRC);
                    if is_short && self.observe_short(found, packet) {
                        continue;
                    }
                    beside
                } else {
                    None
                };
                if self.recent.is_shown_bare(packet) {
                    self.tally.copy(packet);
                    continue;
                }
                if packet.roce.bth.opcode().is_cnp() {
                    self.observe_cnp(found.fingerprint, packet);
                    continue;
                }
                let mut at = found.at;
                if at == FlowSlot::NONE || !holds {
                    at = if let Some(at) = self.table.find_now(&found.key) {
                        at
                    } else {
                        holds &= !self.table.is_full();
                        self.open_flow(found, packet)
                    };
                }
                let write = match beside {
                    None => None,
                    Some(HeadersBeside::Write(write)) => Some(write),
                    Some(HeadersBeside::Mrc(mrc)) => {
                        self.observe_mrc(at, found.fingerprint, packet, mrc);
                        continue;
                    }
                };
                self.observe(at, found.fingerprint, packet, write);
            }
        }
        self.found = found;
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "called for nearly every packet, from one place"
    )]
    fn observe(&mut self, at: FlowSlot, fingerprint: u64, packet: &Packet, write: Option<&RemoteWrite>) {
        let sighting = self.recent.look(fingerprint, packet);
        let hot = &mut self.table.hot[at];
        hot.referenced = true;
        let newest_id = hot.evidence.newest_id();
        if hot.evidence.is_copy(sighting, packet.roce.ip_id) {
            return self.tally.copy(packet);
        }
        if self.taps.matcher.is_some() {
            self.cross(at, packet);
        }
        let seen = CopyCheck {
            sighting,
            fingerprint,
            newest_id,
        };
        match self.bins.place(packet.time) {
            BinPlace::Current => {}
            BinPlace::Later(bin) => self.begin_bin(bin),
            BinPlace::Earlier(bin) => return self.observe_earlier(at, bin, seen, (packet, write)),
        }
        let verdict = self.judge(at, self.bins.current(), seen, (packet, write));
        let hot = &mut self.table.hot[at];
        if !hot.active {
            hot.active = true;
            self.bins.begin_flow(at, packet.time);
        }
        self.count(at, packet, verdict, write);
    }

    /// A packet whose stamp is out of order: it counts in the bin that it belongs to.
    #[cold]
    fn observe_earlier(
        &mut self,
        at: FlowSlot,
        bin: u64,
        seen: CopyCheck,
        (packet, write): (&Packet, Option<&RemoteWrite>),
    ) {
        let verdict = self.judge(at, bin, seen, (packet, write));
        let current = core::mem::take(&mut self.table.hot[at].counts);
        self.count(at, packet, verdict, write);
        let counts = core::mem::replace(&mut self.table.hot[at].counts, current);
        self.add_earlier(at, bin, &counts);
    }

    /// Adds to a row of an earlier bin; once that has been emitted, the row comes in parts.
    fn add_earlier(&mut self, at: FlowSlot, bin: u64, counts: &Counts) {
        let cold = &mut self.table.cold[at];
        cold.totals.add(counts);
        let hot = &self.table.hot[at];
        let row = cold.row(hot.tap, hot.trust.was_known, counts.clone());
        if !self.bins.add_at(bin, cold.row_at, &row)
            && let Some(overdue) = self.bins.add_earlier(bin, row, &cold.groups)
        {
            self.output.bins.push(overdue);
        }
    }

    fn lost(&mut self, lost: &LostRecords) {
        self.advance_to(lost.time);
        self.taps.lost(lost.tap, lost.time);
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

    /// A pause frame: every shard of a run sees it, one reports it.
    fn pause(&mut self, frame: &PauseFrame) {
        self.advance_to(frame.time);
        self.limits.pauses.frame(frame, &mut self.bins.events);
        if !frame.reported {
            return;
        }
        self.tally.totals.pause_frames += 1;
        self.bins.pauses.push(*frame);
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

    /// Ends the current bin.
    fn begin_bin(&mut self, number: u64) {
        self.close_rows();
        self.limits
            .pauses
            .end_bin(self.bins.time(number), &mut self.bins.events);
        self.bins.advance(number);
        self.emit(false);
    }

    /// Ends the open rows of all flows.
    fn close_rows(&mut self) {
        let active = core::mem::take(&mut self.bins.active);
        let since = self.bins.take_since();
        let mut since_of = since.iter().copied().chain(core::iter::repeat(Time(0)));
        for at in active.iter().take(2 * CLOSE_AHEAD) {
            self.table.prefetch_row(*at);
        }
        for (place, at) in active.iter().enumerate() {
            if let Some(later) = active.get(place + 2 * CLOSE_AHEAD) {
                self.table.prefetch_row(*later);
            }
            if let Some(later) = active.get(place + CLOSE_AHEAD) {
                self.table.prefetch_times(*later);
                if let Some(cold) = self.table.cold.get(*later) {
                    self.bins.prefetch_pair(cold.pair);
                }
            }
            self.close_row(*at, since_of.next().unwrap_or_default());
        }
        self.bins.reuse_since(since);
        self.bins.active = active;
        self.bins.active.clear();
    }

    /// Emits the bins that cannot change any more.
    fn emit(&mut self, all: bool) {
        loop {
            for at in self.bins.undecided_in_done(all) {
                if self.table.hot[at].live {
                    self.table.cold[at].tracker.decide_alone();
                    self.settle(at);
                }
            }
            self.settle_notified(all);
            let Some(bin) = self.bins.take_done(all) else {
                return;
            };
            self.output.bins.push(bin);
        }
    }
}
