//! An episode that goes on: what is summed up of it and of its flows, and what it comes to when it ends. When it begins
//! and ends is decided outside.

use roce_model::{EpisodeKind, FlowId, TapId, Time, prefetch};

use super::super::numbers::{jain, share};

/// Flows kept of one episode; more of them count in its sums only.
pub(super) const MAX_FLOWS: usize = 1024;
/// The slot of a flow that is not kept.
pub(super) const NOWHERE: u32 = u32::MAX;
/// Flows named of a finished episode.
const NAMED: usize = 32;
/// Aggressors and victims named of a finished episode.
const TELLING: usize = 5;

/// Counts of a flow, or of all flows to a destination, in some cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct Share {
    pub(in super::super) payload_bytes: u64,
    pub(in super::super) data_packets: u64,
    pub(in super::super) ce: u64,
    pub(in super::super) cnp: u64,
    pub(in super::super) lost: u64,
    pub(in super::super) retransmitted: u64,
    pub(in super::super) retransmitted_bytes: u64,
    pub(in super::super) rnr_naks: u64,
    pub(in super::super) pause_ns: u64,
    pub(in super::super) stalls: u64,
    /// Cells with payload.
    pub(in super::super) cells: u64,
}

impl Share {
    pub(super) fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.payload_bytes, other.payload_bytes);
        add(&mut self.data_packets, other.data_packets);
        add(&mut self.ce, other.ce);
        add(&mut self.cnp, other.cnp);
        add(&mut self.lost, other.lost);
        add(&mut self.retransmitted, other.retransmitted);
        add(&mut self.retransmitted_bytes, other.retransmitted_bytes);
        add(&mut self.rnr_naks, other.rnr_naks);
        add(&mut self.pause_ns, other.pause_ns);
        add(&mut self.stalls, other.stalls);
        add(&mut self.cells, other.cells);
    }

    /// The counts that [`Usual`] does not have.
    fn rest(&self) -> Self {
        Self {
            payload_bytes: 0,
            data_packets: 0,
            ce: 0,
            cnp: 0,
            cells: 0,
            ..*self
        }
    }

    /// How much it shows of what an episode of this kind is about.
    fn signs(&self, kind: EpisodeKind) -> u64 {
        let marks = self.ce.saturating_add(self.cnp);
        let losses = self.lost.saturating_add(self.retransmitted);
        match kind {
            EpisodeKind::Ecn => marks,
            EpisodeKind::Incast => marks
                .saturating_add(losses)
                .saturating_add(u64::from(self.pause_ns > 0)),
            EpisodeKind::Loss => losses,
            EpisodeKind::Rnr => self.rnr_naks,
            EpisodeKind::Pause => self.pause_ns,
            EpisodeKind::Stall => self.stalls,
        }
    }
}

/// The part of a [`Share`] that nearly every row has.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    payload_bytes: u64,
    data_packets: u64,
    ce: u64,
    cnp: u64,
    cells: u64,
}

/// A flow's [`Share`], small while it has nothing but the usual: there are many of them.
#[derive(Clone, Debug, Default)]
struct KeptShare {
    usual: Usual,
    /// The cell in which it last had payload.
    cell: Time,
    rest: Option<Box<Share>>,
}

impl KeptShare {
    /// Adds to it what a bin of `cell` has; a cell counts once.
    #[inline]
    fn add_in(&mut self, cell: Time, more: &Share) {
        let mut more = *more;
        if more.cells > 0 && core::mem::replace(&mut self.cell, cell) == cell {
            more.cells = 0;
        }
        self.add(&more);
    }

    #[inline]
    fn add(&mut self, more: &Share) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.usual.payload_bytes, more.payload_bytes);
        add(&mut self.usual.data_packets, more.data_packets);
        add(&mut self.usual.ce, more.ce);
        add(&mut self.usual.cnp, more.cnp);
        add(&mut self.usual.cells, more.cells);
        if more.lost
            | more.retransmitted
            | more.retransmitted_bytes
            | more.rnr_naks
            | more.pause_ns
            | more.stalls
            != 0
        {
            self.rest.get_or_insert_default().add(&more.rest());
        }
    }

    fn share(&self) -> Share {
        let Usual {
            payload_bytes,
            data_packets,
            ce,
            cnp,
            cells,
        } = self.usual;
        Share {
            payload_bytes,
            data_packets,
            ce,
            cnp,
            cells,
            ..self.rest.as_deref().copied().unwrap_or_default()
        }
    }
}

/// One row of a bin, as far as episodes look at it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowBin {
    pub(super) flow: FlowId,
    /// The numbers of its destination, and of its source as one.
    pub(super) destination: u32,
    pub(super) source: u32,
    pub(super) payload_bytes: u64,
    pub(super) retransmitted_bytes: u64,
    pub(super) pause_ns: u64,
    pub(super) tap: TapId,
    pub(super) data_packets: u32,
    /// Data packets that ECN can mark, the marked ones included.
    pub(super) markable: u32,
    pub(super) ce: u32,
    pub(super) cnp: u32,
    pub(super) missing: u32,
    pub(super) lost: u32,
    pub(super) retransmitted: u32,
    pub(super) rnr_naks: u32,
}

impl FlowBin {
    /// Its share in the episodes at its source: NAKs that it carries.
    pub(super) fn naks(&self) -> Share {
        Share {
            rnr_naks: self.rnr_naks.into(),
            ..Share::default()
        }
    }

    /// Its share in an episode at its destination. NAKs that it carries are about its source.
    pub(super) fn share(&self) -> Share {
        Share {
            payload_bytes: self.payload_bytes,
            data_packets: self.data_packets.into(),
            ce: self.ce.into(),
            cnp: self.cnp.into(),
            lost: self.lost.into(),
            retransmitted: self.retransmitted.into(),
            retransmitted_bytes: self.retransmitted_bytes,
            rnr_naks: 0,
            pause_ns: self.pause_ns,
            stalls: 0,
            cells: u64::from(self.payload_bytes > 0),
        }
    }
}

/// Treatment of a cell's rows by an episode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Mode {
    /// They count.
    Count,
    /// They count if the episode goes on.
    #[default]
    Wait,
    /// They are of another time.
    Skip,
}

/// An episode that may go on.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) start: Time,
    /// The last packet that shows it.
    pub(super) end: Time,
    /// Cells with signs, and begin of the last one.
    pub(super) cells: u64,
    last: Option<Time>,
    /// Cells in which data came at less than a quarter of its link's speed.
    pub(super) thin_cells: u64,
    /// Number of an ecn episode's cells that lie in an incast, or would if the incast goes on.
    pub(super) covered: u64,
    pub(super) covered_if: u64,
    pub(super) mode: Mode,
    pub(super) senders_max: u32,
    pub(super) ce_share_peak: Option<f64>,
    /// A loss episode during which its destination had no buffers, or many senders.
    pub(super) rnr_meanwhile: bool,
    pub(super) retransmitted_for_loss: bool,
    pub(super) incast_meanwhile: bool,
    pub(super) sum: Share,
    waiting: Share,
    /// Each flow's share: what counts, and what waits.
    flows: Vec<(FlowId, [KeptShare; 2])>,
}

impl Open {
    /// An episode that begins at `start`.
    pub(super) fn new(start: Time) -> Self {
        Self {
            start,
            end: start,
            cells: 0,
            last: None,
            thin_cells: 0,
            covered: 0,
            covered_if: 0,
            mode: Mode::Count,
            senders_max: 0,
            ce_share_peak: None,
            rnr_meanwhile: false,
            retransmitted_for_loss: false,
            incast_meanwhile: false,
            sum: Share::default(),
            waiting: Share::default(),
            flows: Vec::new(),
        }
    }

    /// The cell that begins at `begin` has signs of it, at these times.
    pub(super) fn extend(&mut self, begin: Time, (first, end): (Time, Time), senders: u32) {
        self.mode = Mode::Count;
        self.start = self.start.min(first);
        self.end = self.end.max(end);
        self.senders_max = self.senders_max.max(senders);
        if self.last != Some(begin) {
            self.cells += 1;
            self.last = Some(begin);
        }
        if self.waiting != Share::default() {
            self.sum.add(&core::mem::take(&mut self.waiting));
            for (_, [counts, waits]) in &mut self.flows {
                counts.add(&core::mem::take(waits).share());
            }
        }
    }

    /// Adds the sum of all rows to its destination in a cell.
    pub(super) fn add_cell(&mut self, share: &Share) {
        match self.mode {
            Mode::Count => self.sum.add(share),
            Mode::Wait => self.waiting.add(share),
            Mode::Skip => {}
        }
    }

    /// A flow's part of that; whether the flow was kept for it that was not there. `slot`: where it is, if it is. `room`: it may
    /// be kept.
    #[inline]
    pub(super) fn add_flow(
        &mut self,
        (flow, cell): (FlowId, Time),
        slot: &mut u32,
        share: &Share,
        room: bool,
    ) -> bool {
        let place = match self.mode {
            Mode::Count => 0,
            Mode::Wait => 1,
            Mode::Skip => return false,
        };
        if let Some((_, shares)) = self.flows.get_mut(*slot as usize) {
            shares[place].add_in(cell, share);
            return false;
        }
        let is_kept = self.flows.len() < MAX_FLOWS && room;
        if is_kept {
            *slot = u32::try_from(self.flows.len()).unwrap_or(NOWHERE);
            let mut shares = <[KeptShare; 2]>::default();
            shares[place].add_in(cell, share);
            self.flows.push((flow, shares));
        }
        is_kept
    }

    /// Prefetches the share of the flow in `slot`.
    #[inline]
    pub(super) fn prefetch(&self, slot: u32) {
        // Two or three lines.
        if let Some(flow) = self.flows.get(slot as usize) {
            let (_, [counts, waits]) = flow;
            prefetch(flow);
            prefetch(&counts.cell);
            prefetch(&waits.usual);
            prefetch(&waits.cell);
        }
    }

    /// Packets of the flow in `slot` that turned out to be lost.
    pub(super) fn add_lost(&mut self, slot: u32, lost: u64) {
        let share = Share {
            lost,
            ..Share::default()
        };
        self.sum.add(&share);
        if let Some((_, [counts, _])) = self.flows.get_mut(slot as usize) {
            counts.add(&share);
        }
    }

    /// Flows that are kept.
    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// True if packets were lost, as a loss episode says: what is retransmitted only because the receiver had no buffers
    /// is not.
    pub(super) fn is_loss(&self) -> bool {
        let only_for_rnr = self.rnr_meanwhile && !self.retransmitted_for_loss;
        self.sum.lost > 0 || (self.sum.retransmitted > 0 && !only_for_rnr)
    }

    /// True if packets were marked, lost or sent again, or flows notified or paused: gaps alone may be the capture's own.
    pub(super) fn is_congestion(&self) -> bool {
        let Share {
            ce,
            cnp,
            lost,
            retransmitted,
            pause_ns,
            ..
        } = self.sum;
        ce | cnp | lost | retransmitted | pause_ns != 0
    }

    /// The finished episode.
    pub(super) fn finish(&self, kind: EpisodeKind, tap: TapId, destination: u64) -> FinishedEpisode {
        let flows = self
            .flows
            .iter()
            .map(|(flow, [counts, _])| (*flow, counts.share()));
        FinishedEpisode {
            destination: Some(destination),
            senders_max: self.senders_max,
            ce_share_peak: self.ce_share_peak,
            cells: self.cells,
            incast_meanwhile: self.incast_meanwhile,
            is_thin: self.thin_cells.saturating_mul(2) > self.cells,
            ..FinishedEpisode::new(kind, tap, self.start, self.end, self.sum, flows.collect())
        }
    }
}

/// An episode that has ended.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct FinishedEpisode {
    pub(in super::super) kind: EpisodeKind,
    pub(in super::super) tap: TapId,
    pub(in super::super) start: Time,
    pub(in super::super) end: Time,
    /// Hash of tap and destination; `None` for pauses and stalls.
    pub(in super::super) destination: Option<u64>,
    pub(in super::super) cells: u64,
    pub(in super::super) senders_max: u32,
    pub(in super::super) ce_share_peak: Option<f64>,
    pub(in super::super) incast_meanwhile: bool,
    /// In most of its cells data came at less than a quarter of its link's speed.
    pub(in super::super) is_thin: bool,
    pub(in super::super) sum: Share,
    /// The longest pause of one flow; of a pause, of all of it. `None`: not known.
    pub(in super::super) pause_ns: Option<u64>,
    /// Flows with signs, and the first of them.
    pub(in super::super) flows: usize,
    pub(in super::super) named: Vec<FlowId>,
    /// Flows with payload, and those that sent most of it with their shares.
    pub(in super::super) senders: usize,
    pub(in super::super) aggressors: Vec<(FlowId, f64)>,
    pub(in super::super) victims: Vec<FlowId>,
    pub(in super::super) victims_all: usize,
    pub(in super::super) jain: Option<f64>,
    /// Jain's index of the flows that sent in at least half of the cells, and how many these are.
    pub(in super::super) jain_steady: Option<f64>,
    pub(in super::super) steady: usize,
    pub(in super::super) pause: Option<super::facts::PauseFacts>,
    pub(in super::super) stall: Option<super::facts::StallFacts>,
}

impl FinishedEpisode {
    /// An episode with these flows.
    pub(super) fn new(
        kind: EpisodeKind,
        tap: TapId,
        start: Time,
        end: Time,
        sum: Share,
        mut flows: Vec<(FlowId, Share)>,
    ) -> Self {
        flows.sort_by_key(|(flow, share)| (core::cmp::Reverse(share.signs(kind)), *flow));
        let signed = flows.iter().filter(|(_, share)| share.signs(kind) > 0);
        let named = signed.clone().take(NAMED).map(|(flow, _)| *flow).collect();
        let signed = signed.count();
        let senders = flows.iter().filter(|(_, share)| share.payload_bytes > 0).count();
        let fair = sum.payload_bytes / u64::try_from(senders).unwrap_or(u64::MAX).max(1);
        let mut victims = flows
            .iter()
            .filter(|(_, share)| share.signs(kind) > 0 && share.payload_bytes < fair / 2);
        let telling = victims
            .by_ref()
            .take(TELLING)
            .map(|(flow, _)| *flow)
            .collect::<Vec<_>>();
        let victims_all = telling.len() + victims.count();
        let active = flows
            .iter()
            .map(|(_, share)| share.cells)
            .max()
            .unwrap_or_default();
        let steady = || {
            flows
                .iter()
                .filter(move |(_, share)| share.cells > 0 && share.cells.saturating_mul(2) >= active)
        };
        Self {
            kind,
            tap,
            start,
            end,
            pause_ns: flows
                .iter()
                .map(|(_, share)| share.pause_ns)
                .max()
                .filter(|ns| *ns > 0),
            flows: signed,
            named,
            senders,
            victims: telling,
            victims_all,
            jain: jain(
                flows
                    .iter()
                    .map(|(_, share)| share.payload_bytes)
                    .filter(|bytes| *bytes > 0),
            ),
            jain_steady: jain(steady().map(|(_, share)| share.payload_bytes)),
            steady: steady().count(),
            sum,
            aggressors: aggressors(flows, sum.payload_bytes),
            ..Self::default()
        }
    }
}

impl FinishedEpisode {
    /// True if nothing but losses shows a queue.
    pub(in super::super) fn shows_losses_alone(&self) -> bool {
        let sum = &self.sum;
        sum.lost > 0 && sum.ce == 0 && sum.cnp == 0 && sum.pause_ns == 0
    }
}

/// The flows that sent most of the bytes: from the largest on, until half of them are explained. Where all sent about
/// alike, the largest less than 1.5 times its fair part, nobody is to blame.
fn aggressors(mut flows: Vec<(FlowId, Share)>, total: u64) -> Vec<(FlowId, f64)> {
    flows.retain(|(_, share)| share.payload_bytes > 0);
    flows.sort_by_key(|(flow, share)| (core::cmp::Reverse(share.payload_bytes), *flow));
    let fair = total / u64::try_from(flows.len()).unwrap_or(u64::MAX).max(1);
    let most = flows.first().map_or(0, |(_, share)| share.payload_bytes);
    if flows.len() > 1 && most.saturating_mul(2) < fair.saturating_mul(3) {
        return Vec::new();
    }
    let mut explained = 0u64;
    let mut telling = Vec::new();
    for (flow, part) in flows.into_iter().take(TELLING) {
        if explained.saturating_mul(2) >= total {
            break;
        }
        explained = explained.saturating_add(part.payload_bytes);
        telling.push((flow, share(part.payload_bytes, total).unwrap_or_default()));
    }
    telling
}
