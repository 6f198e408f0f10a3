//! The ranks that the taps of a job show: all of them, or only some and their neighbours.

use std::collections::{BTreeMap, BTreeSet};

use roce_wire::Address;

use crate::graph::{Graph, LagKind, Owner};
use crate::job::Job;
use crate::middle::median;

/// Without their input, ranks beside the taps may wait for so many hops of a ring.
const HOPS: i64 = 2;

/// Which ranks are seen in all that they need.
#[derive(Debug)]
pub(crate) struct View {
    /// True if every connection of the job is seen.
    pub(crate) is_whole: bool,
    /// True for each rank that has a tap beside it.
    pub(crate) tapped: Vec<bool>,
    /// Time for which a rank that is not seen as a whole may wait without being late, in nanoseconds.
    pub(crate) allowance: i64,
    /// Host of each rank.
    hosts: Vec<Address>,
    /// Hosts of which several others send to one, and those that send to several.
    gathering: BTreeSet<Address>,
    spreading: BTreeSet<Address>,
    /// True if hosts that are not seen may be such ones: the job is no ring.
    may_gather_elsewhere: bool,
}

/// True if some host gets from the one that it sends to, as in a tree, and not all are seen.
fn may_gather_elsewhere(job: &Job, is_whole: bool) -> bool {
    let ways: BTreeSet<(usize, usize)> = job
        .links
        .iter()
        .map(|link| (link.sender, link.receiver))
        .collect();
    !is_whole && ways.iter().any(|&(from, to)| ways.contains(&(to, from)))
}

/// Hosts with several others at the far end of their messages.
fn with_several(ends: impl Iterator<Item = (Address, Address)>) -> BTreeSet<Address> {
    let mut others: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
    for (host, other) in ends {
        others.entry(host).or_default().insert(other);
    }
    let several = others.into_iter().filter(|(_, others)| others.len() > 1);
    several.map(|(host, _)| host).collect()
}

/// True if no connection of the job can be without a tap: of at most one rank without, or of a closed ring. One tap alone sees two ranks
/// of a tree as it sees a ring of two.
fn is_whole(job: &Job) -> bool {
    let without = job.tapped.iter().filter(|&&tapped| !tapped).count();
    if without > 0 && job.tapped.len() - without < 2 {
        return false;
    }
    if without <= 1 {
        return has_both_ways(job);
    }
    let mut ways = vec![(0_u32, 0_u32); job.ranks.len()];
    for link in &job.links {
        ways[link.sender].0 += 1;
        ways[link.receiver].1 += 1;
    }
    ways.iter().all(|&way| way == ways[0] && way.0 == way.1)
}

/// True if each rank without a tap sends and receives.
fn has_both_ways(job: &Job) -> bool {
    (0..job.ranks.len())
        .filter(|&rank| !job.tapped[rank])
        .all(|rank| {
            job.links.iter().any(|link| link.sender == rank)
                && job.links.iter().any(|link| link.receiver == rank)
        })
}

impl View {
    pub(crate) fn new(job: &Job) -> Self {
        let host = |rank: usize| job.ranks[rank].host;
        let ways = || {
            let links = job.links.iter();
            links.map(|link| (host(link.sender), host(link.receiver)))
        };
        let is_whole = is_whole(job);
        Self {
            may_gather_elsewhere: may_gather_elsewhere(job, is_whole),
            hosts: job.ranks.iter().map(|rank| rank.host).collect(),
            gathering: with_several(ways().map(|(from, to)| (to, from))),
            spreading: with_several(ways()),
            is_whole,
            tapped: job.tapped.clone(),
            allowance: 0,
        }
    }

    /// Measures a hop of the ring: what a rank with a tap takes to pass a message on, and the way to the next rank.
    pub(crate) fn measure_hop(&mut self, graph: &Graph) {
        let mut lags: [Vec<i64>; 3] = Default::default();
        for (event, need) in graph.owned() {
            let kind = match need.kind {
                LagKind::OnInput | LagKind::OnCredit | LagKind::OnTurn => 0,
                LagKind::Send => 1,
                LagKind::Wire | LagKind::CreditWire | LagKind::AnswerWire => 2,
                _ => continue,
            };
            if self.sees(graph.owners[event.owner as usize]) {
                lags[kind].push(need.lag);
            }
        }
        let [pass, send, way] = lags.map(|mut lags| median(&mut lags));
        self.allowance = HOPS * (pass + send + 2 * way);
    }

    /// True if messages of the job itself meet at a port of the owner, so that some of them take long whatever the network and its ranks do.
    pub(crate) fn is_crowded(&self, owner: Owner) -> bool {
        let meet = |host: &Address| {
            self.may_gather_elsewhere || self.gathering.contains(host) || self.spreading.contains(host)
        };
        match owner {
            Owner::Way(from, to) => meet(&from) || meet(&to),
            Owner::Sender(rank) => meet(&self.hosts[rank]),
            _ => false,
        }
    }

    /// True if all is seen that an owner may wait for.
    pub(crate) fn sees(&self, owner: Owner) -> bool {
        self.is_whole
            || match owner {
                Owner::Start(rank)
                | Owner::Sender(rank)
                | Owner::Receiver(rank)
                | Owner::BusyReceiver(rank) => self.tapped[rank],
                Owner::Way(..) => true,
            }
    }
}
