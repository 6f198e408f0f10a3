//! How long each kind of lag usually is, for all owners but those that are looked at.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Event, Graph, LagKind, Need, Owner};
use crate::middle::{lower_quartile, median};
use crate::view::View;

/// A lag is far beyond its owner's usual one if it is so many times longer.
const FAR_BEYOND: i64 = 2;

/// Kind of a lag and class of its message.
type LagClass = (LagKind, u16);

/// Lags of a job by kind and owner.
#[derive(Debug)]
pub(crate) struct UsualLags {
    /// Usual lag of each owner.
    owners: BTreeMap<LagClass, BTreeMap<u32, i64>>,
    /// Lags between collectives: of each collective, by owner.
    between: BTreeMap<(LagKind, u32), Vec<(u32, i64)>>,
}

/// True for lags that are compared within one collective: ranks compute for longer in some steps than in others.
pub(crate) fn is_between(kind: LagKind) -> bool {
    matches!(kind, LagKind::Compute | LagKind::Launch)
}

/// Class of messages whose lags of a kind are compared: alike sizes, or all. What waits behind others of its port is compared with what
/// does so elsewhere, not with a rank's own time.
fn class(graph: &Graph, event: &Event, kind: LagKind) -> LagClass {
    match kind {
        LagKind::Send | LagKind::Wire | LagKind::CreditWire | LagKind::AnswerWire => (kind, event.class),
        _ => {
            let is_queued = matches!(graph.owners.get(event.owner as usize), Some(Owner::Way(..)));
            (kind, u16::from(is_queued))
        }
    }
}

/// Lags of a job that have no owner whose own ones are left out.
#[derive(Debug)]
pub(crate) struct ExpectedLags<'a> {
    graph: &'a Graph,
    usual: &'a UsualLags,
    without: BTreeSet<u32>,
    medians: BTreeMap<LagClass, Option<i64>>,
    /// The value of several owners that is typical.
    typical: fn(&mut [i64]) -> i64,
}

impl UsualLags {
    pub(crate) fn new(graph: &Graph, view: &View) -> Self {
        let mut lags: BTreeMap<LagClass, BTreeMap<u32, Vec<i64>>> = BTreeMap::new();
        let mut between: BTreeMap<(LagKind, u32), Vec<(u32, i64)>> = BTreeMap::new();
        for (event, need) in graph.owned() {
            if is_between(need.kind) {
                let lags = between.entry((need.kind, event.collective)).or_default();
                lags.push((event.owner, need.lag));
            } else {
                let lags = lags.entry(class(graph, event, need.kind)).or_default();
                lags.entry(event.owner).or_default().push(need.lag);
            }
        }
        let owners = lags
            .into_iter()
            .map(|(class, owners)| {
                let owners = owners.into_iter().map(|(owner, mut lags)| {
                    // A rank that is not seen as a whole may wait for what is not seen: only its short lags are its own.
                    let usual = if view.sees(graph.owners[owner as usize]) {
                        median(&mut lags)
                    } else {
                        let tenth = lags.len() / 10;
                        *lags.select_nth_unstable(tenth).1
                    };
                    (owner, usual)
                });
                (class, owners.collect())
            })
            .collect();
        Self { owners, between }
    }

    /// Lags as they are without some owners: those that are looked at, and those that have part in them.
    pub(crate) fn without<'a>(&'a self, graph: &'a Graph, looked_at: &BTreeSet<u32>) -> ExpectedLags<'a> {
        let mut hosts = BTreeSet::new();
        for &owner in looked_at {
            if let Owner::Way(from, to) = graph.owners[owner as usize] {
                hosts.extend([from, to]);
            }
        }
        let touches = |owner: u32| match graph.owners[owner as usize] {
            Owner::Way(from, to) => hosts.contains(&from) || hosts.contains(&to),
            _ => false,
        };
        // A port takes part in half of the ways of a small ring: the fast ones show what is possible.
        let typical = if looked_at.is_empty() {
            lower_quartile
        } else {
            median
        };
        let medians = self
            .owners
            .iter()
            .map(|(&class, owners)| {
                let of = |keep: &dyn Fn(u32) -> bool| {
                    let mut medians: Vec<i64> = owners
                        .iter()
                        .filter(|&(&owner, _)| keep(owner))
                        .map(|(_, &usual)| usual)
                        .collect();
                    (!medians.is_empty()).then(|| typical(&mut medians))
                };
                let others = of(&|owner| !looked_at.contains(&owner) && !touches(owner))
                    .or_else(|| of(&|owner| !looked_at.contains(&owner)));
                // Nobody else has such lags: only what is far beyond the owner's own ones is too long.
                let own = || {
                    let own = looked_at.iter().filter_map(|owner| owners.get(owner));
                    own.map(|lag| lag.saturating_mul(FAR_BEYOND)).max()
                };
                (class, others.or_else(own))
            })
            .collect();
        ExpectedLags {
            graph,
            usual: self,
            without: looked_at.clone(),
            medians,
            typical,
        }
    }
}

impl ExpectedLags<'_> {
    /// How long the lag would have been, if its owner were like the others: never longer than it was.
    pub(crate) fn lag(&self, event: &Event, need: Need) -> i64 {
        if is_between(need.kind) {
            let lags = self.usual.between.get(&(need.kind, event.collective));
            let mut others: Vec<i64> = lags
                .into_iter()
                .flatten()
                .filter(|(owner, _)| !self.without.contains(owner))
                .map(|&(_, lag)| lag)
                .collect();
            return if others.is_empty() {
                need.lag
            } else {
                need.lag.min((self.typical)(&mut others))
            };
        }
        let expected = self
            .medians
            .get(&class(self.graph, event, need.kind))
            .copied()
            .flatten();
        expected.map_or(need.lag, |expected| need.lag.min(expected.max(0)))
    }
}
