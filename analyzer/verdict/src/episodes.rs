//! Episodes: intervals in which something was congested on the way to a destination, built cell by cell: a cell is a
//! millisecond, however wide bins are.
//!
//! Four kinds go on at a time for one destination at one tap. A cell is a sign of - `ecn`, when a data packet
//! in it is marked, or a CNP that belongs to no NAK slows one of the flows; - `incast`, when at least
//! `incast_senders` hosts sent to the destination at the same time in it, and packets were marked, CNPs came,
//! or flows were paused; or packets were retransmitted or missing while data came at half of its last link's
//! speed or faster; it is reported when more than missing packets showed; - `loss`, when packets are missing,
//! retransmitted, or requested again though they were captured; - `rnr`, when the destination answers with RNR
//! NAKs.
//!
//! An episode begins with the first packet that shows it, goes on while the next such cell begins less than `episode_quiet` after
//! its end, and ends with the last packet that shows it. Where no such packet is known (RNR NAKs, pauses), first and last are those of the data
//! to the destination in these cells. An ecn episode of whose cells an incast covers
//! `absorbed_share` is not reported beside it: the incast carries the marks. A loss episode is reported when packets
//! were retransmitted, or a NAK or a hole says that the network lost some: gaps that were mere reordering, or the
//! capture's own, are none; neither are the retransmissions that RNR NAKs bring about.
//!
//! Pauses come from pause frames (`pauses`), stalls from events (`stalls`); the words are put in `tell`. What is kept of
//! an episode that goes on stands in `open`.

mod arrived;
mod facts;
mod kinds;
mod open;
mod pauses;
mod place;
mod stalls;
mod tell;
mod view;

use std::collections::HashMap;

use roce_model::{EpisodeKind, EventKind, EventRow, FlowId, PauseFrame, TapId, Time};

pub(super) use arrived::fills_link;
use arrived::{ArrivedData, cell_end};
pub(super) use facts::{SilenceEnd, StallFacts};
use kinds::{ECN, INCAST, KINDS, LOSS};
pub(super) use open::FinishedEpisode;
use open::{FlowBin, Mode, NOWHERE, Open};
use pauses::Pauses;
pub(super) use pauses::sender_of;
use place::{EpisodePlace, Places};
use stalls::Stalls;
pub(super) use tell::{Episode, tell};
use view::View;

use super::directory::Directory;
use super::numbers::{reaches, share};
use crate::bin_rows::BinRows;
use crate::host_pairs::HostPairs;
use crate::settings::{CELL, Settings};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Destinations with episodes that go on, at most.
const MAX_PLACES: usize = 4096;
/// Flows kept of all episodes that go on, at most: some 20 MB.
const MAX_FLOWS: usize = 1 << 16;
/// Rows that are added together, so that waits for memory overlap.
const ROW_BATCH: usize = 16;
/// Episodes that have ended and are kept, at most: some 10 MB.
const MAX_FINISHED: usize = 1 << 14;

/// Follows the episodes of a run.
#[derive(Clone, Debug)]
pub(super) struct Episodes {
    settings: Settings,
    /// The cell that rows come from.
    begin: Time,
    /// The latest cell up to now.
    latest: Time,
    /// The rows of the cell with signs of trouble.
    signed: Vec<FlowBin>,
    /// Rows that are added together.
    rows: Vec<FlowBin>,
    places: Places,
    /// By destination, its place among those with signs in the cell that ends; [`NOWHERE`] between cells.
    signed_places: Vec<u32>,
    /// Where flows in episodes go, by the destination's number: their holes and runs are reported by flow.
    homes: Map<(TapId, FlowId), u32>,
    /// Such reports of this bin.
    reports: Vec<Report>,
    flows: usize,
    pauses: Pauses,
    stalls: Stalls,
    finished: Vec<FinishedEpisode>,
    dropped: u64,
}

/// A report about losses of a flow.
#[derive(Clone, Copy, Debug)]
struct Report {
    tap: TapId,
    flow: FlowId,
    what: ReportedLoss,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReportedLoss {
    /// Number of packets that were lost in the network.
    Lost(u64),
    /// A retransmission run that an RNR NAK brought about.
    RunForRnr,
    /// A retransmission run that a loss brought about.
    RunForLoss,
}

/// Signs of trouble in a cell's rows to one destination.
#[derive(Clone, Debug, Default)]
struct Signs {
    destination: u32,
    tap: TapId,
    senders: u32,
    congested: bool,
    lost: bool,
    paused: bool,
    rnr: bool,
    arrivals: ArrivedData,
}

impl Episodes {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            begin: Time::default(),
            latest: Time::default(),
            signed: Vec::new(),
            rows: Vec::new(),
            places: Places::default(),
            signed_places: Vec::new(),
            homes: Map::default(),
            reports: Vec::new(),
            flows: 0,
            pauses: Pauses::new(settings),
            stalls: Stalls::default(),
            finished: Vec::new(),
            dropped: 0,
        }
    }

    pub(super) fn begin_cell(&mut self, time: Time) {
        self.begin = time;
        if time > self.latest {
            self.latest = time;
            self.end_quiet(time);
            let finished = self.pauses.end_quiet(time);
            self.keep(finished);
        }
    }

    pub(super) fn event(&mut self, event: &EventRow) {
        match event.kind {
            EventKind::Stall | EventKind::RetransmissionRun => self.stalls.event(event),
            EventKind::PauseInterval => {
                let finished = self.pauses.interval(event);
                self.keep(finished);
            }
            _ => {}
        }
        let what = match (event.kind, event.detail.as_deref()) {
            (EventKind::Hole, Some("network_lost")) => ReportedLoss::Lost(event.value.unwrap_or(1)),
            (EventKind::RetransmissionRun, Some("rnr")) => ReportedLoss::RunForRnr,
            // Not after a NAK: a receiver without buffers asks for what followed with one, too.
            (EventKind::RetransmissionRun, Some("implied_nak" | "timeout")) => ReportedLoss::RunForLoss,
            _ => return,
        };
        if let Some(flow) = event.flow_id {
            self.reports.push(Report {
                tap: event.tap,
                flow,
                what,
            });
        }
    }

    pub(super) fn pause(&mut self, frame: &PauseFrame) {
        self.pauses.frame(frame);
    }

    /// The numbers of destinations have started again.
    pub(super) fn renumber(&mut self, pairs: &mut HostPairs) {
        let numbers = self.places.renumber(pairs);
        self.homes.retain(|_, home| {
            let number = numbers.get(home);
            *home = number.copied().unwrap_or_default();
            number.is_some()
        });
    }

    pub(super) fn end_cell<'a>(
        &mut self,
        pairs: &HostPairs,
        bins: impl Iterator<Item = (Time, &'a BinRows)> + Clone,
    ) {
        for (_, bin) in bins.clone().filter(|(_, bin)| !bin.signed().is_empty()) {
            let view = View::new(bin);
            let signed = bin.signed().iter();
            self.signed.extend(signed.map(|row| view.row(*row as usize)));
        }
        let mut signed = core::mem::take(&mut self.signed);
        if !signed.is_empty() {
            for row in signed.iter().filter(|row| row.pause_ns > 0) {
                self.pauses.paused(self.begin, row);
            }
            self.mark(&signed, pairs, bins.clone());
        }
        if !self.places.list.is_empty() {
            self.skip_overdue();
            let mut rest = signed.iter();
            for (_, bin) in bins {
                self.add_bin(bin, &mut rest);
            }
            self.close_cell();
            self.add_reports();
        }
        signed.clear();
        self.signed = signed;
        self.reports.clear();
    }

    /// Ends everything that goes on; the episodes in the order of time, and how many more there were.
    pub(super) fn conclude(mut self, directory: &Directory) -> (Vec<FinishedEpisode>, u64) {
        self.end_quiet(Time(u64::MAX));
        let finished = self.pauses.conclude();
        self.keep(finished);
        let stalls = core::mem::take(&mut self.stalls);
        self.dropped = self.dropped.saturating_add(stalls.dropped());
        self.keep(stalls.conclude(directory, CELL));
        self.finished.sort_by_key(|episode| {
            let destination = episode.destination.and_then(|hash| directory.host(hash));
            let kind = EpisodeKind::ALL.iter().position(|kind| *kind == episode.kind);
            let pause = episode.pause.map(|pause| (pause.priority, pause.source));
            (episode.start, episode.tap, kind, destination, episode.end, pause)
        });
        (self.finished, self.dropped)
    }

    fn keep(&mut self, finished: impl IntoIterator<Item = FinishedEpisode>) {
        for episode in finished {
            if self.finished.len() < MAX_FINISHED {
                self.finished.push(episode);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// Finds what the cell shows at each destination, and begins or prolongs its episodes.
    fn mark<'a>(
        &mut self,
        signed: &[FlowBin],
        pairs: &HostPairs,
        bins: impl Iterator<Item = (Time, &'a BinRows)>,
    ) {
        let mut order: Vec<Signs> = Vec::new();
        let mut places = core::mem::take(&mut self.signed_places);
        let mut at = |destination: u32, row: &FlowBin, signs: &mut Vec<Signs>| {
            let number = destination as usize;
            if places.len() <= number {
                places.resize(number + 1, NOWHERE);
            }
            if places[number] == NOWHERE {
                places[number] = u32::try_from(signs.len()).unwrap_or(NOWHERE);
                signs.push(Signs {
                    destination,
                    tap: row.tap,
                    ..Signs::default()
                });
            }
            places[number] as usize
        };
        for row in signed {
            if row.rnr_naks > 0 {
                let place = at(row.source, row, &mut order);
                order[place].rnr = true;
            }
            let (congested, lost) = (
                row.ce | row.cnp != 0,
                row.missing | row.lost | row.retransmitted != 0,
            );
            if congested || lost || row.pause_ns > 0 {
                let place = at(row.destination, row, &mut order);
                let signs = &mut order[place];
                signs.congested |= congested;
                signs.lost |= lost;
                signs.paused |= row.pause_ns > 0;
            }
        }
        for (begin, bin) in bins {
            for traffic in &bin.traffic {
                let at = places.get(traffic.hosts.destination as usize);
                if let Some(signs) = at.and_then(|at| order.get_mut(*at as usize)) {
                    signs.arrivals.add(begin, self.begin, traffic);
                }
            }
        }
        for signs in &order {
            places[signs.destination as usize] = NOWHERE;
        }
        self.signed_places = places;
        for signs in &mut order {
            signs.senders = pairs.senders_in_cell(signs.destination);
            self.sign(signs, pairs);
        }
    }

    fn sign(&mut self, signs: &Signs, pairs: &HostPairs) {
        let crowded = u64::from(signs.senders) >= self.settings.thresholds.incast_senders.max(1);
        let fills = signs.arrivals.fills(self.settings.link_rate);
        let thin = signs.arrivals.is_thin(self.settings.link_rate);
        let shown = [
            signs.congested,
            crowded && (signs.congested && !thin || signs.paused || signs.lost && fills),
            signs.lost,
            signs.rnr,
        ];
        if !shown.contains(&true) {
            return;
        }
        let begin = self.begin;
        let overdue = begin < self.latest;
        if self.places.get_mut(signs.destination).is_none() {
            if overdue {
                return;
            }
            if self.places.list.len() >= MAX_PLACES {
                self.dropped += 1;
                return;
            }
            let hash = pairs.hash(signs.destination);
            self.places
                .add(EpisodePlace::new(signs.destination, hash, signs.tap));
        }
        let Some(place) = self.places.get_mut(signs.destination).filter(|_| !overdue) else {
            return;
        };
        let kinds = place.open.iter_mut().zip(KINDS).zip(shown);
        for ((open, kind), _) in kinds.filter(|(_, shown)| *shown) {
            let times = signs.arrivals.times(kind, begin);
            let open = open.get_or_insert_with(|| Box::new(Open::new(times.0)));
            open.extend(begin, times, signs.senders);
            open.thin_cells += u64::from(thin);
        }
        place.signed = true;
        place.note_meanwhile(shown);
    }

    /// A cell that has ended before: what is late counts where an episode was going on then.
    fn skip_overdue(&mut self) {
        let (begin, end) = (self.begin, cell_end(self.begin));
        if begin < self.latest {
            for open in self.places.list.iter_mut().flat_map(EpisodePlace::opened) {
                let inside = open.start < end && begin <= open.end;
                open.mode = if inside { Mode::Count } else { Mode::Skip };
            }
        }
    }

    /// Adds the rows of the bin to the episodes of their destinations; `with_signs`: those with signs of trouble, from its first on.
    fn add_bin<'a>(&mut self, bin: &BinRows, with_signs: &mut impl Iterator<Item = &'a FlowBin>) {
        let view = View::new(bin);
        let mut signed = bin.signed().iter().peekable();
        let rows = bin.pair_of_row.iter().zip(view.payload_bytes).enumerate();
        for (row, (pair, payload_bytes)) in rows {
            if signed.next_if(|signed| **signed as usize == row).is_some() {
                if let Some(row) = with_signs.next() {
                    self.rows.push(*row);
                }
            } else {
                // Flows of ACKs only have nothing that an episode counts.
                let traffic = bin.traffic.get(*pair as usize).filter(|_| *payload_bytes > 0);
                let to = traffic.map(|traffic| traffic.hosts.destination);
                let Some(destination) = to.filter(|to| self.places.has(*to)) else {
                    continue;
                };
                self.rows.push(view.calm_row(row, destination));
            }
            if self.rows.len() == ROW_BATCH {
                self.add_rows();
            }
        }
        self.add_rows();
    }

    /// Adds some rows of the bin to the episodes of their destinations.
    fn add_rows(&mut self) {
        let mut slots = [[NOWHERE; 4]; ROW_BATCH];
        for (row, slots) in self.rows.iter().zip(&mut slots) {
            if let Some(place) = self.places.get_mut(row.destination) {
                *slots = place.slots_of(row.flow);
                place.prefetch(slots);
            }
        }
        for (row, slots) in self.rows.iter().zip(slots) {
            let room = self.flows < MAX_FLOWS;
            if let Some(place) = self.places.get_mut(row.destination) {
                let kept = place.add((row, self.begin), slots, room);
                self.flows += kept;
                if kept > 0 && self.homes.len() < MAX_FLOWS {
                    self.homes.insert((row.tap, row.flow), row.destination);
                }
            }
            if row.rnr_naks > 0
                && let Some(place) = self.places.get_mut(row.source)
            {
                self.flows += place.add_naks((row, self.begin), room);
            }
        }
        self.rows.clear();
    }

    /// Adds the reports about losses of flows to destinations with episodes.
    fn add_reports(&mut self) {
        for report in &self.reports {
            let home = self.homes.get(&(report.tap, report.flow));
            let Some(place) = home.and_then(|home| self.places.get_mut(*home)) else {
                continue;
            };
            let slots = place.slots_of(report.flow);
            let [_, incast, loss, _] = &mut place.open;
            match report.what {
                ReportedLoss::Lost(packets) => {
                    for (open, slot) in [(incast, slots[INCAST]), (loss, slots[LOSS])] {
                        if let Some(open) = open {
                            open.add_lost(slot, packets);
                        }
                    }
                }
                ReportedLoss::RunForRnr => {
                    if let Some(open) = loss {
                        open.rnr_meanwhile = true;
                    }
                }
                ReportedLoss::RunForLoss => {
                    if let Some(open) = loss {
                        open.retransmitted_for_loss = true;
                    }
                }
            }
        }
    }

    /// The cell is complete: its share of marked packets, and until the next one everything waits.
    fn close_cell(&mut self) {
        for place in &mut self.places.list {
            if place.signed && self.begin == self.latest {
                let marked = share(place.ce, place.markable);
                for open in place.opened().filter(|open| open.mode == Mode::Count) {
                    open.ce_share_peak = match (open.ce_share_peak, marked) {
                        (Some(peak), Some(marked)) => Some(peak.max(marked)),
                        (peak, marked) => peak.or(marked),
                    };
                }
            }
            (place.markable, place.ce, place.signed) = (0, 0, false);
            let sum = core::mem::take(&mut place.sum);
            for open in place.opened() {
                open.add_cell(&sum);
                open.mode = Mode::Wait;
            }
        }
    }

    /// Ends the episodes without a sign for too long before `time`.
    fn end_quiet(&mut self, time: Time) {
        if self.places.list.is_empty() {
            return;
        }
        let quiet = self.settings.thresholds.episode_quiet;
        let absorbed = self.settings.thresholds.absorbed_share;
        let mut finished = Vec::new();
        let flows = &mut self.flows;
        self.places.retain(|place| {
            for (at, kind) in KINDS.into_iter().enumerate() {
                let over = |open: &mut Box<Open>| {
                    let gap = time.since(open.end);
                    gap.0 > 0 && gap >= quiet
                };
                let Some(open) = place.open[at].take_if(over) else {
                    continue;
                };
                if at == INCAST
                    && let Some(ecn) = &mut place.open[ECN]
                {
                    ecn.covered_if = 0;
                }
                place.forget(at);
                *flows = flows.saturating_sub(open.flows());
                let counts = match at {
                    ECN => !reaches(open.covered, open.cells, absorbed),
                    LOSS => open.is_loss(),
                    // Holes alone, as the capture's own, show no queue.
                    INCAST => open.is_congestion(),
                    _ => true,
                };
                if counts {
                    finished.push(open.finish(kind, place.tap, place.hash));
                }
            }
            place.open.iter().any(Option::is_some)
        });
        if self.places.list.is_empty() {
            self.homes.clear();
        }
        self.keep(finished);
    }
}

#[cfg(test)]
mod tests;
