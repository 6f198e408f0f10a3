//! A root with its price, its times, and how sure it is.

use roce_model::Confidence;

use crate::graph::{Graph, Owner, RankEvent};
use crate::job::Job;
use crate::middle::median;
use crate::outcome::{LateKind, LateRoot, LateStart};
use crate::roots::{MIN_COST, Suspect, SuspectPlace};
use crate::rows::{job_rank, nanos};
use crate::view::View;

/// Collectives that a root of high confidence is compared over, at least.
const MIN_COLLECTIVES: usize = 5;

/// Clocks are surer than the cost of a collective by this factor for high confidence, and by the other for medium.
const SURE_CLOCKS: (i64, i64) = (10, 2);

/// A rank posts in time if its receives are posted before the start by this part of what is usual for the others.
const IN_TIME_DIVISOR: i64 = 2;

/// When the first receive of a collective was posted on the last one of a rank's connections: of ranks that share a host, one may be late.
fn last_post(job: &Job, collective: usize, rank: usize) -> Option<i64> {
    let links = job.links.iter().filter(|link| link.receiver == rank);
    let posts = links.filter_map(|link| {
        let first = job.starts.get(collective)? + link.base;
        let message = link.messages.get(link.message(first)?)?;
        Some(message.credit_out)
    });
    posts.max()
}

/// Nanoseconds from the post of the first receive to the start of a rank, in the middle of these collectives. Receives of the
/// first collective may have been posted at any time before.
fn lead(job: &Job, graph: &Graph, collectives: &[usize], rank: usize) -> Option<i64> {
    let mut leads: Vec<i64> = collectives
        .iter()
        .filter(|&&collective| collective > 0)
        .filter_map(|&collective| {
            let start = graph.rank_event(RankEvent::Start, collective, rank)?;
            Some(graph.time(start) - last_post(job, collective, rank)?)
        })
        .collect();
    (!leads.is_empty()).then(|| median(&mut leads))
}

/// Part of a rank that began late: receives that are posted late, too, are the host's.
fn late_start(job: &Job, graph: &Graph, rank: usize, (affected, typical): (&[usize], i64)) -> LateStart {
    let mut others: Vec<i64> = (0..job.ranks.len())
        .filter(|&other| other != rank)
        .filter_map(|other| lead(job, graph, affected, other))
        .collect();
    let Some(own) = lead(job, graph, affected, rank) else {
        return LateStart::Unclear;
    };
    let usual = if others.is_empty() { 0 } else { median(&mut others) };
    if usual < typical / IN_TIME_DIVISOR {
        // The others post when they start: the first credit is the start itself.
        if own >= typical / IN_TIME_DIVISOR {
            LateStart::Gpu
        } else {
            LateStart::Unclear
        }
    } else if own >= usual {
        LateStart::Gpu
    } else if own < usual / IN_TIME_DIVISOR {
        LateStart::Host
    } else {
        LateStart::Unclear
    }
}

fn kind(suspect: &Suspect, job: &Job, graph: &Graph, affected: (&[usize], i64)) -> LateKind {
    let rank = |rank: usize| job_rank(job.ranks[rank]);
    match suspect.place {
        SuspectPlace::Receiver(of) => LateKind::Receiver(rank(of)),
        SuspectPlace::Sender(of) => LateKind::Sender(rank(of)),
        SuspectPlace::Start(of) => LateKind::Start(rank(of), late_start(job, graph, of, affected)),
        SuspectPlace::Way(from, to) => LateKind::Way(from, to),
        SuspectPlace::Port(host) => LateKind::Port(host),
        SuspectPlace::Rank(of) => LateKind::Rank(rank(of)),
        SuspectPlace::Before(of) => LateKind::Before(rank(of)),
        SuspectPlace::Behind(of) => LateKind::Behind(rank(of)),
    }
}

/// Messages of the suspect's ways that were retransmitted.
fn retransmitted(suspect: &Suspect, job: &Job, graph: &Graph) -> u64 {
    let ways: Vec<Owner> = suspect
        .owners
        .iter()
        .map(|&owner| graph.owners[owner as usize])
        .collect();
    job.links
        .iter()
        .filter(|link| {
            let (from, to) = (job.ranks[link.sender].host, job.ranks[link.receiver].host);
            ways.contains(&Owner::Way(from, to))
        })
        .flat_map(|link| &link.messages)
        .filter(|message| message.retransmissions > 0)
        .count() as u64
}

/// True if the taps stand where they show the root: beside a rank, or at both ends of each way.
fn is_shown(suspect: &Suspect, job: &Job) -> bool {
    let tapped = |rank: usize| job.tapped[rank];
    match suspect.place {
        SuspectPlace::Receiver(of) | SuspectPlace::Start(of) | SuspectPlace::Rank(of) => tapped(of),
        SuspectPlace::Way(..) | SuspectPlace::Port(_) => job.tapped.iter().all(|&tapped| tapped),
        // A slow port holds data back before the tap: packets alone do not tell it from a host that sends late.
        SuspectPlace::Sender(_) | SuspectPlace::Before(_) | SuspectPlace::Behind(_) => false,
    }
}

fn confidence(
    suspect: &Suspect,
    (job, graph, view): (&Job, &Graph, &View),
    (typical, is_cut): (i64, bool),
) -> Confidence {
    let is_bounded = matches!(suspect.place, SuspectPlace::Before(_) | SuspectPlace::Behind(_));
    let clocks = suspect
        .owners
        .iter()
        .map(|&owner| graph.uncertainty[owner as usize])
        .max()
        .unwrap_or(0);
    let costly = |&collective: &usize| suspect.costs[collective] >= MIN_COST;
    let affected = (0..job.collectives()).filter(costly);
    let complete = affected
        .clone()
        .filter(|&place| job.left_out[place].0 == 0)
        .count();
    if !is_cut || is_bounded || clocks * SURE_CLOCKS.1 > typical {
        Confidence::Low
    } else if view.is_whole
        && is_shown(suspect, job)
        && job.collectives() >= MIN_COLLECTIVES
        && complete * 2 > affected.count()
        && clocks * SURE_CLOCKS.0 <= typical
    {
        Confidence::High
    } else {
        Confidence::Medium
    }
}

/// The root that a suspect is. `length` is the time of the job, in nanoseconds.
pub(crate) fn root(
    suspect: &Suspect,
    job: &Job,
    (graph, view): (&Graph, &View),
    (length, is_cut): (i64, bool),
) -> LateRoot {
    let affected: Vec<usize> = (0..job.collectives())
        .filter(|&collective| suspect.costs[collective] >= MIN_COST)
        .collect();
    let mut costs: Vec<i64> = affected.iter().map(|&place| suspect.costs[place]).collect();
    let typical = median(&mut costs);
    let ends = graph.collective_ends(job.collectives(), |event| graph.time(event));
    let last = affected.last().map_or(job.collectives() - 1, |&last| last);
    let begin = affected.first().copied().unwrap_or(0);
    let first = (0..job.ranks.len())
        .filter_map(|rank| graph.rank_event(RankEvent::Start, begin, rank))
        .map(|event| graph.time(event))
        .min()
        .unwrap_or(0);
    LateRoot {
        kind: kind(suspect, job, graph, (&affected, typical)),
        cost_ns: u64::try_from(suspect.cost).unwrap_or(0),
        share: share(suspect.cost, length),
        typical_ns: u64::try_from(typical).unwrap_or(0),
        collectives: u32::try_from(affected.len()).unwrap_or(u32::MAX),
        first_time: nanos(first),
        last_time: nanos(ends.get(last).copied().unwrap_or(first).max(first)),
        retransmitted_messages: retransmitted(suspect, job, graph),
        confidence: confidence(suspect, (job, graph, view), (typical, is_cut)),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share of lengths of time: 2^53 ns are 104 days"
)]
fn share(cost: i64, length: i64) -> f64 {
    (cost as f64 / length.max(1) as f64).min(1.0)
}
