//! The ranks that the taps of a job show: all of them, or only some and their neighbours.

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
}

/// True if no connection of the job can be without a tap: of at most one rank without, or of a closed ring.
fn is_whole(job: &Job) -> bool {
    if job.tapped.iter().filter(|&&tapped| !tapped).count() <= 1 {
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
        Self {
            is_whole: is_whole(job),
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

    /// True if all is seen that an owner may wait for.
    pub(crate) fn sees(&self, owner: Owner) -> bool {
        self.is_whole
            || match owner {
                Owner::Start(rank) | Owner::Sender(rank) | Owner::Receiver(rank) => self.tapped[rank],
                Owner::Way(..) => true,
            }
    }
}
