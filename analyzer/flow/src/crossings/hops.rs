//! What happened between two taps: how long packets were on their way, and which were marked or lost there.

use std::cmp::Reverse;
use std::collections::HashMap;

use roce_model::{FlowId, HopRow, Nanos, Span, TapId};

use super::gaps::{Gaps, LostBy};
use crate::distribution::{Distribution, Summary};

/// A flow between two taps, in the order in which a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ends {
    /// The flow's name at the tap that saw the packet before.
    pub(crate) before: FlowId,
    /// Its name at the tap that sees it now.
    pub(crate) now: FlowId,
}

/// A packet as one tap saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sighted {
    pub(crate) tap: TapId,
    /// `None`: one of several transmissions.
    pub(crate) time: Option<Nanos>,
    pub(crate) hop_limit: u8,
    pub(crate) marked: bool,
}

/// A flow's name at the lower one of two taps, and the taps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Between {
    flow: FlowId,
    low: TapId,
    high: TapId,
}

/// All of them. Bounded: of more flows nothing is kept.
#[derive(Debug)]
pub(crate) struct Hops {
    most: usize,
    list: Vec<Hop>,
    /// Places in the list.
    by_ends: HashMap<Between, u32, foldhash::fast::RandomState>,
}

/// Where a flow's last packet that another tap had seen was noted: nearly all that follow are noted there, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LastHop {
    /// The place of its flow at the other tap.
    flow: u32,
    tap: TapId,
    /// In the list of hops.
    place: u32,
}

impl LastHop {
    /// None yet: no flow has this place.
    pub(crate) const NONE: Self = Self {
        flow: u32::MAX,
        tap: TapId(u32::MAX),
        place: u32::MAX,
    };
}

/// One flow between two taps, as seen going from the lower tap to the higher one.
#[derive(Clone, Debug, Default)]
struct Hop {
    /// The flow's name at the higher tap: another one where only one of the two sees a tag or an overlay.
    name: FlowId,
    matched: u64,
    /// Marked at the higher tap and not at the lower one; the other way round.
    marked: [u64; 2],
    delays: Signed,
    /// Packets that show by themselves that they passed the lower tap first, less those that show the opposite.
    shown: i64,
    /// The same by their times.
    timed: i64,
    /// From the first to the last packet that both saw.
    span: Option<Span>,
}

/// A distribution of times that can be negative: clocks agree only so far.
#[derive(Clone, Debug, Default)]
struct Signed {
    /// How far below zero.
    below: Distribution,
    above: Distribution,
}

impl Hop {
    fn is_upwards(&self) -> bool {
        if self.shown == 0 {
            self.timed >= 0
        } else {
            self.shown > 0
        }
    }
}

impl Hops {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            list: Vec::new(),
            by_ends: HashMap::default(),
        }
    }

    /// Notes a packet that one tap saw before and another one sees now. `known`: the place where the flow's last such
    /// packet was noted, and from which flow it came; `names` gives the flow's names at both taps.
    pub(super) fn note(
        &mut self,
        known: &mut LastHop,
        flow: u32,
        names: impl FnOnce() -> Option<Ends>,
        before: &Sighted,
        now: &Sighted,
    ) {
        if known.flow != flow || known.tap != before.tap {
            let Some(place) = names().and_then(|ends| self.place(ends, before.tap, now.tap)) else {
                return;
            };
            *known = LastHop {
                flow,
                tap: before.tap,
                place,
            };
        }
        let Some(hop) = self.list.get_mut(known.place as usize) else {
            return;
        };
        let upwards = before.tap < now.tap;
        let (low, high) = if upwards { (before, now) } else { (now, before) };
        for time in [before.time, now.time].into_iter().flatten() {
            match &mut hop.span {
                Some(span) => span.include(time),
                none => *none = Some(Span::at(time)),
            }
        }
        hop.matched += 1;
        hop.marked[0] += u64::from(high.marked && !low.marked);
        hop.marked[1] += u64::from(low.marked && !high.marked);
        // Marks stay and hop limits fall.
        hop.shown += i64::from(high.marked) - i64::from(low.marked);
        hop.shown += i64::from(low.hop_limit > high.hop_limit) - i64::from(high.hop_limit > low.hop_limit);
        if let (Some(low), Some(high)) = (low.time, high.time) {
            hop.timed += i64::from(high > low) - i64::from(low > high);
            if high >= low {
                hop.delays.above.add(high.since(low).0);
            } else {
                hop.delays.below.add(low.since(high).0);
            }
        }
    }

    /// The place of a hop in the list; none where there are too many.
    fn place(&mut self, ends: Ends, before: TapId, now: TapId) -> Option<u32> {
        let (between, name) = if before < now {
            (Between::new(ends.before, before, now), ends.now)
        } else {
            (Between::new(ends.now, now, before), ends.before)
        };
        if let Some(place) = self.by_ends.get(&between) {
            return Some(*place);
        }
        let place = u32::try_from(self.list.len()).ok()?;
        if self.list.len() >= self.most {
            return None;
        }
        self.by_ends.insert(between, place);
        self.list.push(Hop {
            name,
            ..Hop::default()
        });
        Some(place)
    }

    /// The table, with what the gaps at the taps say of losses between them.
    pub(crate) fn rows(&self, gaps: &Gaps) -> Vec<HopRow> {
        let mut ways: Vec<Way> = self
            .by_ends
            .iter()
            .filter_map(|(between, place)| Some(self.list.get(*place as usize)?.way(*between)))
            .collect();
        // Of several taps before one, the nearest is that which shares most packets with it.
        ways.sort_unstable_by_key(|way| (way.end(), Reverse(way.row.matched), way.row.from_tap));
        for to in ways.chunk_by_mut(|a, b| a.end() == b.end()) {
            let Some((name, tap)) = to.first().map(Way::end) else {
                continue;
            };
            for gap in gaps.of(name, tap) {
                let mut left = gap.whole();
                for Way { row, span, .. } in to.iter_mut() {
                    if !span.is_some_and(|span| (span.first..=span.last).contains(&gap.time)) {
                        // That tap was not looking.
                        continue;
                    }
                    let seen = left.take_seen(gap, gaps.of(row.flow_id, row.from_tap));
                    match gap.lost_by {
                        Some(LostBy::Network) => row.lost += seen,
                        Some(LostBy::Capture) => row.not_captured += seen,
                        None => {}
                    }
                }
            }
        }
        let mut rows: Vec<HopRow> = ways.into_iter().map(|way| way.row).collect();
        rows.sort_unstable_by_key(|row| (row.flow_id, row.from_tap, row.to_tap));
        rows
    }
}

/// A row of the table in the making.
struct Way {
    row: HopRow,
    /// The flow's name where it ends.
    name: FlowId,
    span: Option<Span>,
}

impl Way {
    fn end(&self) -> (FlowId, TapId) {
        (self.name, self.row.to_tap)
    }
}

impl Between {
    fn new(flow: FlowId, low: TapId, high: TapId) -> Self {
        Self { flow, low, high }
    }
}

impl Hop {
    fn way(&self, between: Between) -> Way {
        let upwards = self.is_upwards();
        let delays = self.delays.summary();
        let at = |percent| delays.quantile(percent, upwards);
        let Between { flow, low, high } = between;
        let (from_tap, flow_id, to_tap, name) = if upwards {
            (low, flow, high, self.name)
        } else {
            (high, self.name, low, flow)
        };
        let row = HopRow {
            flow_id,
            from_tap,
            to_tap,
            matched: self.matched,
            marked: self.marked[usize::from(!upwards)],
            lost: 0,
            not_captured: 0,
            delay_min_ns: at(0),
            delay_p50_ns: at(50),
            delay_p99_ns: at(99),
            delay_max_ns: at(100),
        };
        Way {
            row,
            name,
            span: self.span,
        }
    }
}

impl Signed {
    fn summary(&self) -> SignedSummary {
        SignedSummary {
            below: self.below.summary(),
            above: self.above.summary(),
        }
    }
}

struct SignedSummary {
    below: Summary,
    above: Summary,
}

impl SignedSummary {
    /// The value that `percent` of the samples do not exceed (nearest rank), 0 being the least; of the samples with the
    /// opposite sign when they are not `upwards`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "times between two taps: 2^53 ns are 104 days"
    )]
    fn quantile(&self, percent: u64, upwards: bool) -> Option<f64> {
        let (below, above) = if upwards {
            (&self.below, &self.above)
        } else {
            (&self.above, &self.below)
        };
        let rank = ((below.count() + above.count()) * percent).div_ceil(100).max(1);
        let exact = |summary: &Summary, from_top: bool| if from_top { summary.max() } else { summary.min() };
        let value = match rank.checked_sub(below.count() + 1) {
            // The furthest below zero is the least.
            None if rank == 1 => -(exact(below, true)? as f64),
            None => -(below.ranked(below.count() + 1 - rank)? as f64),
            Some(0) => exact(above, false)? as f64,
            Some(past) => above.ranked(past + 1)? as f64,
        };
        // Zero has no sign.
        Some(value + 0.0)
    }
}
