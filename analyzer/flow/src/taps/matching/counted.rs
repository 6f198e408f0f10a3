//! Choice of the tap whose row of a flow counts where several taps saw the same traffic: the tap that
//! saw most of it. Among equals it is the one that saw more marks, which are added along the path.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

use roce_model::{FlowRow, TapId};

/// Rows held back until all is known, at most.
const MAX_HELD: usize = 1 << 16;

/// Packets of each flow at its taps. Bounded: every row of further flows counts.
#[derive(Debug)]
pub(crate) struct Sides {
    most: usize,
    flows: HashMap<u64, Side, foldhash::fast::RandomState>,
    /// Rows of flows that closed while packets were still coming, with the traffic that they are of.
    held: VecDeque<(u64, FlowRow)>,
    /// No packets come any more, and all flows that are live were added.
    complete: bool,
}

/// Packets of one flow at one tap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SeenByTap {
    pub(crate) tap: TapId,
    pub(crate) packets: u64,
    /// Number of its data packets that are marked.
    pub(crate) marked: u64,
}

/// Packets of one flow at the taps.
#[derive(Debug, Default)]
struct Side {
    seen: Vec<SeenByTap>,
    /// The tap that counts, once one had to be named.
    named: Option<TapId>,
}

impl Side {
    fn name(&mut self) -> Option<TapId> {
        if self.named.is_none() {
            let most = self
                .seen
                .iter()
                .max_by_key(|seen| (seen.packets, seen.marked, Reverse(seen.tap)));
            self.named = most.map(|seen| seen.tap);
        }
        self.named
    }
}

impl Sides {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            flows: HashMap::default(),
            held: VecDeque::new(),
            complete: false,
        }
    }

    /// Adds what a tap saw of some traffic.
    pub(crate) fn add(&mut self, traffic: u64, seen: SeenByTap) {
        if self.flows.len() >= self.most && !self.flows.contains_key(&traffic) {
            return;
        }
        let side = self.flows.entry(traffic).or_default();
        match side.seen.iter_mut().find(|known| known.tap == seen.tap) {
            Some(sum) => {
                sum.packets += seen.packets;
                sum.marked += seen.marked;
            }
            None => side.seen.push(seen),
        }
    }

    /// All flows that are live were added: no more packets come.
    pub(crate) fn complete(&mut self) {
        self.complete = true;
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Takes the row of a flow that other taps saw, too. Returns a decided row: this one, when all is
    /// known; another one, when too many wait.
    pub(crate) fn close(&mut self, traffic: u64, row: FlowRow) -> Option<FlowRow> {
        if self.complete {
            return Some(self.decide(traffic, row));
        }
        let seen = SeenByTap {
            tap: row.tap,
            packets: row.packets,
            marked: row.ce,
        };
        self.add(traffic, seen);
        self.held.push_back((traffic, row));
        if self.held.len() <= MAX_HELD {
            return None;
        }
        let (traffic, row) = self.held.pop_front()?;
        Some(self.decide(traffic, row))
    }

    /// The rows that were held back, once all is known.
    pub(crate) fn release(&mut self) -> Vec<FlowRow> {
        let held = core::mem::take(&mut self.held);
        held.into_iter()
            .map(|(traffic, row)| self.decide(traffic, row))
            .collect()
    }

    fn decide(&mut self, traffic: u64, row: FlowRow) -> FlowRow {
        let named = self.flows.get_mut(&traffic).and_then(Side::name);
        FlowRow {
            counted: named.is_none_or(|tap| tap == row.tap),
            ..row
        }
    }
}
