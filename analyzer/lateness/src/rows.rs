//! Times of each rank in each collective, and the ranks that it waited for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use roce_model::{CollectiveWaitRow, Confidence, Time, WaitReason};

use crate::graph::{Graph, LagKind, NOBODY, Owner, RankEvent};
use crate::job::{Job, Rank};
use crate::middle::median;
use crate::needs::{CREDIT_OUT, FIRST_OUT, MARKS};
use crate::normal::ExpectedLags;
use crate::outcome::{JobRank, RankWait};
use crate::roots::{MIN_COST, Suspect, SuspectPlace};
use crate::sums::excess;

/// Sums of one rank in one collective, in nanoseconds.
#[derive(Clone, Default)]
struct RankSums {
    own: i64,
    input: i64,
    credit: i64,
    buffers: i64,
    network: i64,
    on_path: i64,
    messages_left_out: bool,
    /// Waits for other ranks.
    waits: BTreeMap<(usize, u8), i64>,
}

/// Rows and waits of a job while they are collected.
pub(crate) struct RankTable<'a> {
    job: &'a Job,
    graph: &'a Graph,
    /// Number of the first event of each connection.
    first_events: Vec<u32>,
    /// `sums[collective][rank]`.
    sums: Vec<Vec<RankSums>>,
}

/// Reasons by their numbers.
const REASONS: [WaitReason; 4] = [
    WaitReason::Nothing,
    WaitReason::Input,
    WaitReason::Credit,
    WaitReason::Network,
];

/// The connection that an event belongs to.
fn link_of(first_events: &[u32], event: u32) -> usize {
    first_events
        .partition_point(|&first| first <= event)
        .saturating_sub(1)
}

/// Number of the first event of each connection of a job.
pub(crate) fn first_events(job: &Job) -> Vec<u32> {
    let mut next = 0;
    let counts = job.links.iter().map(|link| link.messages.len());
    counts
        .map(|count| {
            let first = next;
            next += u32::try_from(count).unwrap_or(0) * MARKS;
            first
        })
        .collect()
}

pub(crate) fn job_rank(rank: Rank) -> JobRank {
    JobRank {
        host: rank.host,
        number: rank.number,
    }
}

pub(crate) fn nanos(time: i64) -> Time {
    Time(u64::try_from(time).unwrap_or(0))
}

fn length(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

impl<'a> RankTable<'a> {
    pub(crate) fn new(job: &'a Job, graph: &'a Graph, expected: &ExpectedLags<'_>) -> Self {
        let ranks = vec![RankSums::default(); job.ranks.len()];
        let mut table = Self {
            job,
            graph,
            first_events: first_events(job),
            sums: vec![ranks; job.collectives()],
        };
        let mut event = 0;
        for link in 0..job.links.len() {
            for place in 0..job.links[link].messages.len() {
                table.add_message(link, place, (event, excess(graph, expected, event)));
                event += MARKS;
            }
        }
        table.add_paths(expected);
        table
    }

    /// Adds one message to its sender and its receiver.
    fn add_message(&mut self, link: usize, place: usize, (event, slow): (u32, i64)) {
        let link = &self.job.links[link];
        let message = &link.messages[place];
        let graph = self.graph;
        let owner = |id: u32| {
            let owner = graph.events[id as usize].owner;
            (owner != NOBODY).then(|| graph.owners[owner as usize])
        };
        let is_gap = place > 0 && message.number != link.messages[place - 1].number + 1;
        let sums = &mut self.sums[message.collective as usize];
        sums[link.sender].messages_left_out |= is_gap;
        sums[link.receiver].messages_left_out |= is_gap;
        if let (Some(need), Some(Owner::Receiver(_) | Owner::BusyReceiver(_))) =
            (graph.last_need(event + CREDIT_OUT), owner(event + CREDIT_OUT))
        {
            sums[link.receiver].buffers += need.lag.max(0);
        }
        let sender = &mut sums[link.sender];
        sender.network += slow;
        if slow > 0 {
            *sender
                .waits
                .entry((link.receiver, WaitReason::Network as u8))
                .or_default() += slow;
        }
        let Some(need) = graph.last_need(event + FIRST_OUT) else {
            return;
        };
        match owner(event + FIRST_OUT) {
            Some(Owner::Way(..)) => sender.network += need.lag,
            Some(_) => sender.own += need.lag,
            None => {}
        }
        // Since the message before, or since the rank was ready.
        let (first, _, end) = graph.events[(event + FIRST_OUT) as usize].needs;
        let since = (first..end)
            .map(|place| graph.needs[place as usize])
            .filter(|need| matches!(need.kind, LagKind::OnTurn | LagKind::Begin))
            .map(|need| graph.time(need.event))
            .max();
        let waited = since.map_or(0, |since| (graph.time(need.event) - since).max(0));
        let peer = match need.kind {
            LagKind::OnCredit => {
                sender.credit += waited;
                Some((link.receiver, WaitReason::Credit as u8))
            }
            LagKind::OnInput => {
                sender.input += waited;
                let from = &self.job.links[link_of(&self.first_events, need.event)];
                Some((from.sender, WaitReason::Input as u8))
            }
            _ => None,
        };
        if let Some(peer) = peer.filter(|_| waited > 0) {
            *sender.waits.entry(peer).or_default() += waited;
        }
    }

    /// Walks back from the end of each collective: each piece of time is its owner's.
    fn add_paths(&mut self, expected: &ExpectedLags<'_>) {
        let graph = self.graph;
        for collective in 0..self.sums.len() {
            let mut at = (0..self.job.ranks.len())
                .filter_map(|rank| graph.rank_event(RankEvent::End, collective, rank))
                .max_by_key(|&event| graph.time(event));
            while let Some(id) = at {
                let event = &graph.events[id as usize];
                if event.collective as usize != collective {
                    break;
                }
                let need = graph.last_need(id);
                if let Some(need) = need.filter(|_| event.owner != NOBODY) {
                    let lag = match need.kind {
                        LagKind::Compute | LagKind::Launch => need.lag - expected.lag(event, need),
                        _ => need.lag,
                    };
                    if let Owner::Start(rank)
                    | Owner::Sender(rank)
                    | Owner::Receiver(rank)
                    | Owner::BusyReceiver(rank) = graph.owners[event.owner as usize]
                    {
                        self.sums[collective][rank].on_path += lag.max(0);
                    }
                }
                at = need.map(|need| need.event).filter(|&next| next != id);
            }
        }
    }

    /// Who waited for whom over all collectives, the longest waits first.
    pub(crate) fn waits(&self) -> Vec<RankWait> {
        let mut all: BTreeMap<(usize, usize, u8), i64> = BTreeMap::new();
        for ranks in &self.sums {
            for (rank, sums) in ranks.iter().enumerate() {
                for (&(peer, reason), &time) in &sums.waits {
                    *all.entry((rank, peer, reason)).or_default() += time;
                }
            }
        }
        let mut waits: Vec<RankWait> = all
            .into_iter()
            .map(|((rank, peer, reason), time)| RankWait {
                rank: job_rank(self.job.ranks[rank]),
                waits_for: job_rank(self.job.ranks[peer]),
                reason: REASONS[usize::from(reason)],
                wait_ns: length(time),
            })
            .collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.wait_ns));
        waits
    }

    /// Rows of the job. `number` is the job's.
    pub(crate) fn rows(&self, number: u32, roots: &[Suspect], is_whole: bool) -> Vec<CollectiveWaitRow> {
        let mut rows = Vec::new();
        for collective in 0..self.sums.len() {
            for rank in 0..self.job.ranks.len() {
                if let Some(mut row) = self.row(collective, rank) {
                    row.job = number;
                    row.is_root = roots.iter().any(|root| {
                        root.costs[collective] >= MIN_COST
                            && matches!(
                                root.place,
                                SuspectPlace::Receiver(of)
                                    | SuspectPlace::Sender(of)
                                    | SuspectPlace::Start(of)
                                    | SuspectPlace::Rank(of) if of == rank
                            )
                    });
                    row.confidence = if self.sums[collective][rank].messages_left_out {
                        Confidence::Low
                    } else if is_whole && self.job.tapped[rank] {
                        Confidence::High
                    } else {
                        Confidence::Medium
                    };
                    rows.push(row);
                }
            }
        }
        rows
    }

    fn row(&self, collective: usize, rank: usize) -> Option<CollectiveWaitRow> {
        let graph = self.graph;
        let at = |kind, collective, rank| {
            let event = graph.rank_event(kind, collective, rank)?;
            Some(graph.time(event))
        };
        let computed = |rank| {
            let before = at(RankEvent::End, collective.checked_sub(1)?, rank)?;
            Some(at(RankEvent::Start, collective, rank)? - before)
        };
        let middle = |of: &dyn Fn(usize) -> Option<i64>| {
            let others = (0..self.job.ranks.len()).filter(|&other| other != rank);
            let mut values: Vec<i64> = others.filter_map(of).collect();
            (!values.is_empty()).then(|| median(&mut values))
        };
        let end = at(RankEvent::End, collective, rank)?;
        let start = at(RankEvent::Start, collective, rank).unwrap_or(end);
        let others = middle(&|other| at(RankEvent::Start, collective, other));
        let late = others.map_or(0, |others| (start - others).max(0));
        let compute = computed(rank);
        let own_late = match compute.zip(middle(&computed)) {
            Some((own, others)) => (own - others).clamp(0, late),
            None => late,
        };
        let sums = &self.sums[collective][rank];
        let longest = sums.waits.iter().max_by_key(|&(_, &time)| time);
        let peer = longest.map(|(&(peer, _), _)| self.job.ranks[peer]);
        let host = self.job.ranks[rank];
        Some(CollectiveWaitRow {
            collective: u32::try_from(collective).unwrap_or(u32::MAX),
            rank: host.number,
            address: Cow::Owned(host.host.to_string()),
            start_time: nanos(start),
            end_time: nanos(end),
            compute_ns: compute.map(length),
            late_start_ns: length(late),
            carried_over_ns: length(late - own_late),
            own_ns: length(sums.own),
            waits_input_ns: length(sums.input),
            waits_credit_ns: length(sums.credit),
            holds_buffers_ns: length(sums.buffers),
            network_ns: length(sums.network),
            on_path_ns: length(sums.on_path),
            waits_for_rank: peer.and_then(|peer| peer.number),
            waits_for_address: peer.map(|peer| Cow::Owned(peer.host.to_string())),
            reason: longest.map_or(WaitReason::Nothing, |(&(_, reason), _)| {
                REASONS[usize::from(reason)]
            }),
            ..CollectiveWaitRow::default()
        })
    }
}
