//! Who is late: a rank that begins after the others, a receiver that gives no credit, or the network. The input are
//! messages that their receiver asked for; the rules are those of NCCL's network transport.
//!
//! A job's messages are cut into collectives (`cut`). Each packet needs others before it (`needs`), and the time
//! after the last of them has an owner. Roots are the owners without whose excess the job would have ended earlier
//! (`roots`). A message that is left out blames nobody.

mod clocks;
mod cut;
mod graph;
mod inputs;
mod job;
mod middle;
mod needs;
mod normal;
mod outcome;
mod port;
mod roots;
mod rows;
mod starts;
mod stated;
mod sums;
mod sure;
mod view;

use std::collections::BTreeSet;

use roce_model::{CreditedConnection, JobWindow};
use roce_wire::Address;

use job::{Job, UNKNOWN};
use normal::UsualLags;
pub use outcome::{ConnectionTimes, JobLateness, JobRank, LateKind, LateRoot, LateStart, Lateness, RankWait};
use roots::RootSearch;
use rows::{RankTable, job_rank, nanos};
use view::View;

/// Finds who was late. `clock_uncertainty` is the error of the clock beside a host in nanoseconds, at most, where
/// something else than these messages shows it. `channels` has the channel of each connection, where a log names it.
/// `windows` are the times of collectives that documents of the job state, by any clock near that of the captures.
pub fn find_lateness(
    connections: &[CreditedConnection],
    clock_uncertainty: impl Fn(Address) -> Option<u64>,
    channels: &[Option<u32>],
    windows: &[JobWindow],
) -> Lateness {
    let clocks = clocks::HostClocks::new(connections, clock_uncertainty);
    let mut lateness = Lateness {
        jobs: Vec::new(),
        connections: vec![ConnectionTimes::default(); connections.len()],
    };
    for mut job in job::jobs(connections, &clocks, channels) {
        let is_cut = stated::cut(&mut job, windows) || cut::cut(&mut job);
        inputs::find_inputs(&mut job);
        let number = u32::try_from(lateness.jobs.len()).unwrap_or(u32::MAX);
        if let Some(found) = judge(&job, (number, is_cut), connections, &mut lateness.connections) {
            lateness.jobs.push(found);
        }
    }
    lateness
}

/// Lateness of one job, and the sums of its connections. None if it has no message.
fn judge(
    job: &Job,
    (number, is_cut): (u32, bool),
    connections: &[CreditedConnection],
    times: &mut [ConnectionTimes],
) -> Option<JobLateness> {
    let graph = needs::graph(job);
    let known = || {
        graph
            .events
            .iter()
            .map(|event| event.time)
            .filter(|&time| time != UNKNOWN)
    };
    let data = || job.links.iter().flat_map(|link| &link.messages);
    let (first, last) = (data().map(|message| message.first_out).min()?, known().max()?);
    let mut view = View::new(job);
    view.measure_hop(&graph);
    let usual = UsualLags::new(&graph, &view);
    let expected = usual.without(&graph, &BTreeSet::new());
    let search = RootSearch::new(job, (&graph, &usual, &view), last - first, is_cut);
    let collectives = u32::try_from(job.collectives()).unwrap_or(u32::MAX);
    let unclear = (0..collectives)
        .map(|collective| u32::from(job.is_unclear(collective)))
        .sum::<u32>();
    // The rest of what is mostly unknown proves nothing.
    let suspects = if unclear > collectives / 2 {
        Vec::new()
    } else {
        search.roots()
    };
    let table = RankTable::new(job, &graph, &expected);
    for (link, first_event) in job.links.iter().zip(rows::first_events(job)) {
        times[link.connection] = sums::connection_times((job, link), (&graph, &expected), first_event);
    }
    let found: u64 = job.links.iter().map(|link| link.messages.len() as u64).sum();
    let of_input = |link: &job::Link| {
        let connection = &connections[link.connection];
        connection.left_out + (connection.messages.len() - link.messages.len()) as u64
    };
    Some(JobLateness {
        ranks: job.ranks.iter().copied().map(job_rank).collect(),
        captured: captured(job),
        collectives: if is_cut { collectives } else { 0 },
        first_time: nanos(first),
        last_time: nanos(last),
        messages: found,
        left_out: job.links.iter().map(of_input).sum(),
        unclear_collectives: unclear,
        is_whole: view.is_whole,
        roots: suspects
            .iter()
            .map(|suspect| sure::root(suspect, job, (&graph, &view), (last - first, is_cut)))
            .collect(),
        waits: table.waits(),
        rows: table.rows(number, &suspects, view.is_whole),
    })
}

/// Ranks that have a tap beside them.
fn captured(job: &Job) -> Vec<JobRank> {
    let ranks = job.ranks.iter().zip(&job.tapped);
    ranks
        .filter(|&(_, &tapped)| tapped)
        .map(|(&rank, _)| job_rank(rank))
        .collect()
}
