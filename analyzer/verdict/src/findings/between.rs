//! Losses of flows that several taps saw: what is lost between two taps is a loss behind the first one and before the second one, and
//! counts once. Each tap's own word counts only for what lies outside of all taps.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use roce_model::{FlowId, FlowKey, FlowRow, HopRow, RunSummary, TapId, TapNames, Time};

use super::alone::Facts;
use super::worst::Worst;
use crate::directory::{lost_behind, name_of};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Flows at taps of which losses are kept: some 10 MB.
const MAX_CLAIMS: usize = 1 << 16;

/// On which side of a tap packets were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LostAt {
    Before,
    Behind,
}

/// Losses of one flow as one tap claims them.
#[derive(Clone, Debug, Default)]
struct Claim {
    before: u64,
    behind: u64,
    /// Both sums, of rows that count alone.
    counted: [u64; 2],
    name: String,
}

/// The claims of all taps.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// By the flow's name without tags and overlays, which taps see differently.
    of: Map<(FlowId, TapId), Claim>,
    /// Those names of flows with a tag or an overlay.
    bare: Map<FlowId, FlowId>,
    /// When they were lost.
    times: Facts<LostAt>,
}

/// Losses between two taps, whichever of them packets passed first.
#[derive(Clone, Debug)]
pub(super) struct Between {
    /// In the order of the inputs.
    pub(super) taps: [TapId; 2],
    pub(super) lost: u64,
    /// Number of the lost packets that are answers.
    pub(super) answers: u64,
    /// The first one: when the tap before saw it, and its PSN.
    pub(super) first: Option<(Time, u32)>,
}

/// All losses, each once.
#[derive(Debug)]
pub(super) struct LossTotals {
    pub(super) before: u64,
    pub(super) behind: u64,
    pub(super) between: Vec<Between>,
    /// Packets of a flow that lost some between two taps were requested again.
    pub(super) confirmed: bool,
    /// Losses of which one tap alone tells: no other one recorded at that time.
    pub(super) alone: u64,
    pub(super) flows: Worst,
}

impl Claims {
    /// Packets of a flow were lost before or behind a tap, as that tap shows it.
    pub(super) fn note_time(&mut self, of: (FlowId, TapId), time: Time, at: LostAt, packets: u64) {
        self.times.note(of, time, at, packets);
    }

    /// Losses that taps claim at times when no other tap recorded, before and behind them; no more than all
    /// that they claim.
    fn alone(&self, run: &RunSummary) -> Map<(FlowId, TapId), [u64; 2]> {
        let mut alone: Map<(FlowId, TapId), [u64; 2]> = Map::default();
        self.times.each(
            run,
            |_, _| false,
            |flow, tap, at, packets| {
                let sums = alone.entry((self.bare(flow), tap)).or_default();
                add(&mut sums[usize::from(at == LostAt::Behind)], packets);
            },
        );
        alone.retain(|key, sums| {
            let claim = self
                .of
                .get(key)
                .map_or([0; 2], |claim| [claim.before, claim.behind]);
            for (sum, claim) in sums.iter_mut().zip(claim) {
                *sum = claim.min(*sum);
            }
            *sums != [0; 2]
        });
        alone
    }

    fn bare(&self, flow: FlowId) -> FlowId {
        self.bare.get(&flow).copied().unwrap_or(flow)
    }

    /// A row of a flow at any tap.
    pub(super) fn note(&mut self, row: &FlowRow) {
        let before = row
            .network_lost
            .saturating_add(row.response_network_lost.unwrap_or_default());
        let behind = lost_behind(row);
        if (row.vlan.is_some() || row.vni.is_some())
            && self.bare.len() < MAX_CLAIMS
            && let Some(key) = row.key()
        {
            let bare = FlowKey {
                vlan: None,
                vni: None,
                ..key
            };
            self.bare.insert(row.flow_id, bare.id());
        }
        let key = (self.bare(row.flow_id), row.tap);
        if before == 0 && behind == 0 || self.of.len() >= MAX_CLAIMS && !self.of.contains_key(&key) {
            return;
        }
        let claim = self.of.entry(key).or_default();
        add(&mut claim.before, before);
        add(&mut claim.behind, behind);
        if row.counted {
            add(&mut claim.counted[0], before);
            add(&mut claim.counted[1], behind);
        }
        if claim.name.is_empty() {
            claim.name = name_of(row);
        }
    }

    /// All losses of a run in which taps saw the same flows. `sums`: what rows that count say was lost before and behind their taps;
    /// `known` are the run's taps; `name` gives the name of a flow.
    pub(super) fn tell(
        &self,
        run: &RunSummary,
        known: &TapNames,
        sums: [u64; 2],
        name: impl Fn(TapId, FlowId) -> String,
    ) -> LossTotals {
        let mut hops: BTreeMap<FlowId, Vec<&HopRow>> = BTreeMap::new();
        for hop in &run.hops {
            hops.entry(self.bare(hop.flow_id)).or_default().push(hop);
        }
        let [mut before, mut behind] = sums;
        let mut flows = Worst::default();
        for ((flow, _), claim) in &self.of {
            if hops.contains_key(flow) {
                before = before.saturating_sub(claim.counted[0]);
                behind = behind.saturating_sub(claim.counted[1]);
            } else if claim.counted != [0, 0] {
                let [before, behind] = claim.counted;
                flows.add(before.saturating_add(behind), || claim.name.clone());
            }
        }
        let mut pairs: BTreeMap<[TapId; 2], Between> = BTreeMap::new();
        let mut confirmed = false;
        let taps_alone = self.alone(run);
        let mut alone = 0;
        for (flow, hops) in hops {
            let claim = |tap: Option<TapId>| tap.and_then(|tap| self.of.get(&(flow, tap)));
            let entered: HashSet<TapId> = hops.iter().map(|hop| hop.to_tap).collect();
            let left: HashSet<TapId> = hops.iter().map(|hop| hop.from_tap).collect();
            let first = hops
                .iter()
                .map(|hop| hop.from_tap)
                .find(|tap| !entered.contains(tap));
            let last = hops.iter().map(|hop| hop.to_tap).find(|tap| !left.contains(tap));
            let mut outside = [
                claim(first).map_or(0, |claim| claim.before),
                claim(last).map_or(0, |claim| claim.behind),
            ];
            let taps: BTreeSet<TapId> = hops.iter().flat_map(|hop| [hop.from_tap, hop.to_tap]).collect();
            for tap in taps {
                let [more_before, more_behind] = taps_alone.get(&(flow, tap)).copied().unwrap_or_default();
                let more = [
                    if Some(tap) == first { 0 } else { more_before },
                    if Some(tap) == last { 0 } else { more_behind },
                ];
                for (sum, more) in outside.iter_mut().zip(more) {
                    add(sum, more);
                    add(&mut alone, more);
                }
            }
            add(&mut before, outside[0]);
            add(&mut behind, outside[1]);
            let between = hops.iter().map(|hop| hop.lost);
            let all = between.chain(outside).fold(0, u64::saturating_add);
            if let (true, Some(hop)) = (all > 0, hops.first()) {
                flows.add(all, || name(hop.from_tap, hop.flow_id));
            }
            let is_missed = hops.iter().flat_map(|hop| [hop.from_tap, hop.to_tap]);
            let is_missed = is_missed.map(Some).any(|tap| claim(tap).is_some());
            confirmed |= is_missed && hops.iter().any(|hop| hop.lost > 0);
            for hop in hops.iter().filter(|hop| hop.lost > 0) {
                let mut taps = [hop.from_tap, hop.to_tap];
                taps.sort_unstable_by_key(|tap| known.order(*tap));
                let pair = pairs.entry(taps).or_insert_with(|| Between {
                    taps,
                    lost: 0,
                    answers: 0,
                    first: None,
                });
                add(&mut pair.lost, hop.lost);
                add(&mut pair.answers, hop.answers_lost);
                let first = hop.first_lost_time.zip(hop.first_lost_psn);
                pair.first = match (pair.first, first) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
            }
        }
        let mut between: Vec<Between> = pairs.into_values().collect();
        between.sort_by_key(|between| between.taps.map(|tap| known.order(tap)));
        LossTotals {
            before,
            behind,
            between,
            confirmed,
            alone,
            flows,
        }
    }
}

impl LossTotals {
    /// All of it.
    pub(super) fn lost(&self) -> u64 {
        let between = self.between.iter().map(|between| between.lost);
        between.fold(self.before.saturating_add(self.behind), u64::saturating_add)
    }

    /// Answers among them.
    pub(super) fn answers(&self) -> u64 {
        let answers = self.between.iter().map(|between| between.answers);
        answers.fold(0, u64::saturating_add)
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
