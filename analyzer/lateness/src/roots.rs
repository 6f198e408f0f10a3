//! Roots: whose lags cost most. The price of a suspect is by how much earlier the job would have ended, had its lags been
//! as long as those of the others: what it hides behind another wait costs nothing.

use std::collections::{BTreeMap, BTreeSet};

use roce_wire::Address;

use crate::graph::{Event, Graph, LagKind, Need, Owner};
use crate::job::{Job, UNKNOWN};
use crate::normal::{ExpectedLags, UsualLags, is_between};
use crate::view::View;

/// Ways, and ranks, whose lags are looked at in one round.
const MAX_SUSPECTS: usize = 6;

/// Roots of a job, at most.
const MAX_ROOTS: usize = 3;

/// A suspect is taken for a narrower one, if that has this part of the price, in percent.
const NARROWER_PERCENT: i64 = 90;

/// A root costs at least this part of the job's time.
const MIN_SHARE_DIVISOR: i64 = 50;

/// A root costs at least this in each collective, in nanoseconds.
pub(crate) const MIN_COST: i64 = 50_000;

/// Where nothing cuts the job into collectives, a root costs at least this part of its time.
const MIN_UNCUT_SHARE_DIVISOR: i64 = 5;

/// A root is late for so many times longer than owners of its kind usually are: all have lags that vary.
const MIN_OUTLIER: i64 = 3;

/// Where a suspect is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum SuspectPlace {
    /// A rank that gives credits late.
    Receiver(usize),
    /// A rank that sends late although it has all that it needs.
    Sender(usize),
    /// A rank that starts late.
    Start(usize),
    /// The way from one host to another.
    Way(Address, Address),
    /// A host's port, in both directions.
    Port(Address),
    /// A rank that is late in all it does.
    Rank(usize),
    /// A rank without a tap whose data come late, or one before it.
    Before(usize),
    /// A rank without a tap whose credits come late, or one behind it.
    Behind(usize),
}

/// A suspect and what it costs.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) place: SuspectPlace,
    pub(crate) owners: BTreeSet<u32>,
    /// Nanoseconds by which the job would have ended earlier.
    pub(crate) cost: i64,
    /// Nanoseconds by which each collective would have been shorter.
    pub(crate) costs: Vec<i64>,
}

/// Roots of a job in order of their price.
pub(crate) struct RootSearch<'a> {
    job: &'a Job,
    graph: &'a Graph,
    usual: &'a UsualLags,
    view: &'a View,
    /// Time of the job, in nanoseconds.
    length: i64,
    is_cut: bool,
    /// Starts of each owner in collectives after the first one.
    starts: BTreeMap<u32, Vec<(&'a Event, Need)>>,
}

impl<'a> RootSearch<'a> {
    pub(crate) fn new(
        job: &'a Job,
        (graph, usual, view): (&'a Graph, &'a UsualLags, &'a View),
        length: i64,
        is_cut: bool,
    ) -> Self {
        let mut starts: BTreeMap<u32, Vec<(&Event, Need)>> = BTreeMap::new();
        for (event, need) in graph.owned() {
            if is_between(need.kind) && event.collective > 0 {
                starts.entry(event.owner).or_default().push((event, need));
            }
        }
        Self {
            job,
            graph,
            usual,
            view,
            length,
            is_cut,
            starts,
        }
    }

    /// Longest excess of an owner's starts in collectives after the first one, by kind. The first collective may have begun before the
    /// capture: a rank is no later in it than it is in another one.
    fn later_starts(&self, owner: u32) -> BTreeMap<LagKind, i64> {
        let mut longest: BTreeMap<LagKind, i64> = BTreeMap::new();
        let Some(starts) = self.starts.get(&owner) else {
            return longest;
        };
        let expected = self.usual.without(self.graph, &BTreeSet::from([owner]));
        for (event, need) in starts {
            let excess = need.lag - expected.lag(event, *need);
            let known = longest.entry(need.kind).or_insert(excess);
            *known = excess.max(*known);
        }
        longest
    }

    /// How long a lag should have been. A rank that is not seen as a whole may have waited for what is not seen, and when it began is known no
    /// better.
    fn expected(&self, expected: &ExpectedLags<'_>, event: &Event, need: Need) -> i64 {
        let lag = expected.lag(event, need);
        let owner = self.graph.owners[event.owner as usize];
        if self.view.is_crowded(owner) && !event.is_repeated {
            return need.lag;
        }
        let is_compared = self.view.is_whole || !is_between(need.kind);
        if is_compared && self.view.sees(owner) {
            lag
        } else {
            need.lag.min(lag.saturating_add(self.view.allowance))
        }
    }

    /// Ends of all collectives, if the lags of these owners had been as long as others'.
    fn ends_without(&self, owners: &BTreeSet<u32>) -> Vec<i64> {
        let expected = self.usual.without(self.graph, owners);
        let later: BTreeMap<u32, BTreeMap<LagKind, i64>> = owners
            .iter()
            .map(|&owner| (owner, self.later_starts(owner)))
            .collect();
        let times = self.graph.replay(|event, need| {
            if event.is_blind || !owners.contains(&event.owner) {
                return need.lag;
            }
            let lag = self.expected(&expected, event, need);
            let excess = need.lag - lag;
            if excess <= self.graph.error(event, need) {
                need.lag
            } else if event.collective == 0 && is_between(need.kind) {
                let later = later.get(&event.owner).and_then(|later| later.get(&need.kind));
                need.lag - excess.min(later.copied().unwrap_or(0))
            } else {
                lag
            }
        });
        self.graph
            .collective_ends(self.job.collectives(), |event| times[event as usize])
    }

    /// Time by which each owner's lags are longer than those of its kind usually are.
    fn excesses(&self) -> BTreeMap<u32, i64> {
        let usual = self.usual.without(self.graph, &BTreeSet::new());
        let mut excesses: BTreeMap<u32, i64> = BTreeMap::new();
        for (event, need) in self.graph.owned() {
            *excesses.entry(event.owner).or_default() += need.lag - self.expected(&usual, event, need);
        }
        excesses
    }

    /// All owners of ways that satisfy a condition.
    fn ways(&self, condition: impl Fn(Address, Address) -> bool) -> BTreeSet<u32> {
        (0_u32..)
            .zip(&self.graph.owners)
            .filter(|(_, owner)| matches!(owner, Owner::Way(from, to) if condition(*from, *to)))
            .map(|(place, _)| place)
            .collect()
    }

    fn suspect(&self, place: SuspectPlace) -> Suspect {
        let all = |condition: &dyn Fn(&Owner) -> bool| {
            (0_u32..)
                .zip(&self.graph.owners)
                .filter(|(_, owner)| condition(owner))
                .map(|(place, _)| place)
                .collect()
        };
        let owners = match place {
            SuspectPlace::Receiver(rank) => {
                all(&|owner| *owner == Owner::Receiver(rank) || *owner == Owner::BusyReceiver(rank))
            }
            SuspectPlace::Sender(rank) => all(&|owner| *owner == Owner::Sender(rank)),
            SuspectPlace::Start(rank) => all(&|owner| *owner == Owner::Start(rank)),
            SuspectPlace::Rank(rank) => all(&|owner| match *owner {
                Owner::Receiver(of) | Owner::BusyReceiver(of) | Owner::Sender(of) | Owner::Start(of) => {
                    of == rank
                }
                Owner::Way(..) => false,
            }),
            SuspectPlace::Before(rank) => {
                all(&|owner| *owner == Owner::Start(rank) || *owner == Owner::Sender(rank))
            }
            SuspectPlace::Behind(rank) => all(
                &|owner| matches!(*owner, Owner::Start(of) | Owner::Receiver(of) | Owner::BusyReceiver(of) if of == rank),
            ),
            SuspectPlace::Way(from, to) => {
                self.ways(|one, other| (one, other) == (from, to) || (other, one) == (from, to))
            }
            SuspectPlace::Port(host) => all(&|owner| match *owner {
                Owner::Way(from, to) => from == host || to == host,
                Owner::BusyReceiver(rank) => self.job.ranks[rank].host == host,
                _ => false,
            }),
        };
        Suspect {
            place,
            owners,
            cost: 0,
            costs: Vec::new(),
        }
    }

    /// Owners with most excess, and what contains them. The narrow ones come first.
    fn suspects(&self, excesses: &BTreeMap<u32, i64>, taken: &BTreeSet<u32>) -> Vec<Suspect> {
        let mut order: Vec<(i64, u32)> = excesses
            .iter()
            .filter(|(owner, excess)| !taken.contains(owner) && **excess > 0)
            .map(|(&owner, &excess)| (-excess, owner))
            .collect();
        order.sort_unstable();
        // Ways share their ports: a rank's own lags are found among those of ranks.
        let is_way = |owner: &u32| matches!(self.graph.owners[*owner as usize], Owner::Way(..));
        let (ways, ranks): (Vec<u32>, Vec<u32>) = order.iter().map(|&(_, owner)| owner).partition(is_way);
        let of_each = |owners: Vec<u32>| owners.into_iter().take(MAX_SUSPECTS);
        let mut places = BTreeSet::new();
        for owner in of_each(ways).chain(of_each(ranks)) {
            match self.graph.owners[owner as usize] {
                Owner::Start(rank)
                | Owner::Sender(rank)
                | Owner::Receiver(rank)
                | Owner::BusyReceiver(rank)
                    if !self.view.sees(self.graph.owners[owner as usize]) =>
                {
                    places.extend([SuspectPlace::Before(rank), SuspectPlace::Behind(rank)]);
                }
                Owner::Start(rank) => places.extend([SuspectPlace::Start(rank), SuspectPlace::Rank(rank)]),
                Owner::Sender(rank) => places.extend([SuspectPlace::Sender(rank), SuspectPlace::Rank(rank)]),
                Owner::Receiver(rank) | Owner::BusyReceiver(rank) => {
                    places.extend([SuspectPlace::Receiver(rank), SuspectPlace::Rank(rank)]);
                }
                Owner::Way(from, to) => {
                    places.insert(SuspectPlace::Way(from.min(to), from.max(to)));
                    // From one place, nothing shows on which side of the way packets wait.
                    if self.view.is_whole {
                        places.extend([SuspectPlace::Port(from), SuspectPlace::Port(to)]);
                    }
                }
            }
        }
        places.into_iter().map(|place| self.suspect(place)).collect()
    }

    /// True if the suspect's lags are far longer than those of others of its kind, which all vary.
    fn is_outlier(&self, suspect: &Suspect, excesses: &BTreeMap<u32, i64>) -> bool {
        let is_way = |owner: u32| matches!(self.graph.owners[owner as usize], Owner::Way(..));
        let own: i64 = suspect
            .owners
            .iter()
            .filter_map(|owner| excesses.get(owner))
            .sum();
        let ways = suspect.owners.iter().any(|&owner| is_way(owner));
        let mut others: Vec<i64> = excesses
            .iter()
            .filter(|&(owner, _)| !suspect.owners.contains(owner) && is_way(*owner) == ways)
            .map(|(_, &excess)| excess)
            .collect();
        others.is_empty() || own >= crate::middle::median(&mut others) * MIN_OUTLIER
    }

    /// Median time by which a rank began those collectives late that the suspect makes longer.
    fn usual_late_start(&self, suspect: &Suspect, rank: usize) -> i64 {
        let expected = self.usual.without(self.graph, &suspect.owners);
        let costly = |event: &Event| {
            let cost = suspect.costs.get(event.collective as usize);
            cost.is_some_and(|&cost| cost >= MIN_COST)
        };
        let own = |owner: &u32| self.graph.owners[*owner as usize] == Owner::Start(rank);
        let starts = suspect.owners.iter().filter(|owner| own(owner));
        let mut late: Vec<i64> = starts
            .filter_map(|owner| self.starts.get(owner))
            .flatten()
            .filter(|(event, need)| need.kind == LagKind::Compute && costly(event))
            .map(|(event, need)| need.lag - expected.lag(event, *need))
            .collect();
        if late.is_empty() {
            0
        } else {
            crate::middle::median(&mut late)
        }
    }

    /// A rank that is late in all it does has the name of the part that costs most of it. Where each part hides behind the others, it is its start
    /// if that is late by most of the price. Of a job that is not seen as a whole, the part is all that is said.
    fn named_by_part(&self, found: &Suspect, suspects: &[Suspect]) -> Suspect {
        let SuspectPlace::Rank(rank) = found.place else {
            return found.clone();
        };
        let is_part = |suspect: &&Suspect| {
            matches!(
                suspect.place,
                SuspectPlace::Start(of) | SuspectPlace::Receiver(of) | SuspectPlace::Sender(of) if of == rank
            )
        };
        let parts = suspects.iter().filter(is_part);
        match parts.max_by_key(|part| part.cost) {
            Some(part) if part.cost * 2 >= found.cost && !self.view.is_whole => part.clone(),
            Some(part) if part.cost * 2 >= found.cost => Suspect {
                place: part.place,
                ..found.clone()
            },
            _ => {
                let mut costs: Vec<i64> = found
                    .costs
                    .iter()
                    .copied()
                    .filter(|&cost| cost >= MIN_COST)
                    .collect();
                let is_start = self.view.is_whole
                    && !costs.is_empty()
                    && self.usual_late_start(found, rank) * 2 >= crate::middle::median(&mut costs);
                Suspect {
                    place: if is_start {
                        SuspectPlace::Start(rank)
                    } else {
                        found.place
                    },
                    ..found.clone()
                }
            }
        }
    }

    /// The roots.
    pub(crate) fn roots(&self) -> Vec<Suspect> {
        let observed = self
            .graph
            .collective_ends(self.job.collectives(), |event| self.graph.time(event));
        let excesses = self.excesses();
        let mut taken = BTreeSet::new();
        let mut before = observed.clone();
        let mut roots: Vec<Suspect> = Vec::new();
        let threshold = (self.length
            / if self.is_cut {
                MIN_SHARE_DIVISOR
            } else {
                MIN_UNCUT_SHARE_DIVISOR
            })
        .max(MIN_COST * i64::try_from(observed.len()).unwrap_or(i64::MAX));
        while roots.len() < MAX_ROOTS {
            let mut suspects = self.suspects(&excesses, &taken);
            for suspect in &mut suspects {
                let owners = &taken | &suspect.owners;
                suspect.costs = savings(&before, &self.ends_without(&owners));
                suspect.cost = suspect.costs.iter().sum();
            }
            let best = suspects.iter().map(|suspect| suspect.cost).max().unwrap_or(0);
            let least = roots
                .first()
                .map_or(threshold, |first| threshold.max(first.cost / 2));
            let found = suspects
                .iter()
                .filter(|suspect| suspect.cost >= least && self.is_outlier(suspect, &excesses))
                .find(|suspect| suspect.cost * 100 >= best * NARROWER_PERCENT);
            let Some(suspect) = found.map(|found| self.named_by_part(found, &suspects)) else {
                break;
            };
            taken.extend(&suspect.owners);
            before = self.ends_without(&taken);
            roots.push(suspect);
        }
        roots
    }
}

/// By how much each collective ends earlier, less what the one before already does.
fn savings(before: &[i64], after: &[i64]) -> Vec<i64> {
    let mut sum = 0;
    before
        .iter()
        .zip(after)
        .map(|(&before, &after)| {
            if before == UNKNOWN || after == UNKNOWN {
                return 0;
            }
            let saved = before - after - sum;
            sum += saved;
            saved
        })
        .collect()
}
