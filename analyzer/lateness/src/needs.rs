//! Builds the graph of a job: which event needs which others, and who owns the time after the last of them. The rules
//! are those of NCCL's proxy threads (`src/transport/net.cc`, `sendProxyProgress` and `recvProxyProgress`).

use std::collections::BTreeMap;

use roce_wire::Address;

use crate::graph::{Event, EventId, Graph, LagKind, NOBODY, Need, Owner, RankEvent};
use crate::job::{Job, Link, Message, UNKNOWN};
use crate::port::BusyPorts;
use crate::starts::RankTimes;

/// Events of one message, in the order of their numbers.
pub(crate) const CREDIT_OUT: u32 = 0;
const CREDIT_IN: u32 = 1;
pub(crate) const FIRST_OUT: u32 = 2;
pub(crate) const LAST_OUT: u32 = 3;
pub(crate) const LAST_IN: u32 = 4;
const ACKNOWLEDGED: u32 = 5;
/// Number of events of one message.
pub(crate) const MARKS: u32 = 6;

/// Messages of a connection that are on the way at once, at most (NCCL's `NCCL_STEPS`, `src/include/device.h`).
const MAX_ON_THE_WAY: usize = 8;

/// A later arrival is what a message waited for, if it explains all but this part of its time after everything else.
const UNEXPLAINED_DIVISOR: i64 = 4;

/// A shorter time after everything else is a rank's own, in nanoseconds.
const MIN_UNEXPLAINED: i64 = 10_000;

/// Needs of an event while they are collected.
#[derive(Default)]
struct NeedList {
    needs: Vec<(EventId, LagKind)>,
    is_blind: bool,
}

/// The graph of a job whose messages have their collectives and inputs.
pub(crate) fn graph(job: &Job) -> Graph {
    Builder::new(job).build()
}

/// A graph while it is built.
struct Builder<'a> {
    job: &'a Job,
    ports: BusyPorts,
    /// Number of the first message of each connection among all.
    offsets: Vec<u32>,
    /// Number of the first event of ranks, and number of ranks.
    ranks: (u32, usize),
    graph: Graph,
    owner_of: BTreeMap<Owner, u32>,
}

/// Class of a message: the logarithm of its length, and how many connections share the busier one of its ports.
fn class(message: &Message, sharing: u16) -> u16 {
    let length = message.bytes.checked_ilog2().unwrap_or(0);
    sharing
        .saturating_mul(64)
        .saturating_add(u16::try_from(length).unwrap_or(0))
}

/// Connections that share the busier port of each connection: that of its sender outwards, or of its receiver inwards.
fn sharing(job: &Job) -> Vec<u16> {
    let mut ports: BTreeMap<(Address, bool), u16> = BTreeMap::new();
    let ends = |link: &Link| {
        [
            (job.ranks[link.sender].host, true),
            (job.ranks[link.receiver].host, false),
        ]
    };
    for port in job.links.iter().flat_map(ends) {
        *ports.entry(port).or_default() += 1;
    }
    let busier = |link: &Link| ends(link).map(|port| ports[&port]).into_iter().max();
    job.links.iter().map(|link| busier(link).unwrap_or(1)).collect()
}

fn event(time: i64, collective: u32, (class, is_repeated): (u16, bool)) -> Event {
    Event {
        time,
        needs: (0, 0, 0),
        collective,
        owner: NOBODY,
        class,
        is_blind: false,
        is_repeated,
    }
}

impl<'a> Builder<'a> {
    fn new(job: &'a Job) -> Self {
        let mut next = 0;
        let mut events = Vec::new();
        let mut offsets = Vec::new();
        for (link, sharing) in job.links.iter().zip(sharing(job)) {
            offsets.push(next);
            for message in &link.messages {
                let times = [
                    message.credit_out,
                    message.credit_in,
                    message.first_out,
                    message.last_out,
                    message.last_in,
                    message.acknowledged,
                ];
                let class = (class(message, sharing), message.retransmissions > 0);
                events.extend(times.map(|time| event(time, message.collective, class)));
                next += 1;
            }
        }
        let ranks = (next * MARKS, job.ranks.len());
        Self {
            job,
            ports: BusyPorts::new(job),
            offsets,
            ranks,
            graph: Graph {
                events,
                needs: Vec::new(),
                order: Vec::new(),
                owners: Vec::new(),
                ranks,
                uncertainty: Vec::new(),
            },
            owner_of: BTreeMap::new(),
        }
    }

    /// The graph, with an owner for each lag.
    fn build(mut self) -> Graph {
        let times = RankTimes::new(self.job);
        self.add_rank_events(&times);
        for link in 0..self.job.links.len() {
            for place in 0..self.job.links[link].messages.len() {
                self.need_for_credit(link, place);
                self.need_for_data(link, place);
            }
        }
        self.need_for_ranks(&times);
        self.sort();
        self.graph.bound_spare_lags();
        self.graph
    }

    fn add_rank_events(&mut self, times: &RankTimes) {
        for (collective, ranks) in times.ranks.iter().enumerate() {
            let collective = u32::try_from(collective).unwrap_or(u32::MAX);
            for rank in ranks {
                for time in [rank.start, rank.post, rank.end] {
                    self.graph.events.push(event(time, collective, (0, false)));
                }
            }
        }
        // The origin: the first start of all.
        let first = times.ranks.first().into_iter().flatten();
        let origin = first
            .map(|rank| rank.start)
            .filter(|&start| start != UNKNOWN)
            .min();
        self.graph
            .events
            .push(event(origin.unwrap_or(UNKNOWN), 0, (0, false)));
    }

    fn owner(&mut self, owner: Owner, uncertainty: i64) -> u32 {
        let graph = &mut self.graph;
        let place = *self.owner_of.entry(owner).or_insert_with(|| {
            graph.owners.push(owner);
            graph.uncertainty.push(0);
            u32::try_from(graph.owners.len() - 1).unwrap_or(NOBODY)
        });
        let known = &mut graph.uncertainty[place as usize];
        *known = uncertainty.max(*known);
        place
    }

    fn id(&self, link: usize, place: usize, mark: u32) -> EventId {
        (self.offsets[link] + u32::try_from(place).unwrap_or(u32::MAX)) * MARKS + mark
    }

    /// Writes the needs of an event. One that happened later is none: order shows that it was not waited for. Returns
    /// the need that came last.
    fn set_needs(&mut self, id: EventId, wanted: &NeedList) -> Option<Need> {
        let graph = &mut self.graph;
        let (time, collective) = {
            let event = &graph.events[id as usize];
            (event.time, event.collective)
        };
        let place = |graph: &Graph| u32::try_from(graph.needs.len()).unwrap_or(u32::MAX);
        let first = place(graph);
        for &(needed, kind) in &wanted.needs {
            let at = graph.events[needed as usize].time;
            if at != UNKNOWN && time != UNKNOWN && (at <= time || kind.may_be_negative()) {
                graph.needs.push(Need {
                    event: needed,
                    lag: time - at,
                    kind,
                });
            }
        }
        let end = place(graph);
        let last = (first..end)
            .min_by_key(|&place| graph.needs[place as usize].lag)
            .unwrap_or(first);
        let event = &mut graph.events[id as usize];
        event.needs = (first, last, end);
        event.is_blind = wanted.is_blind || self.job.is_unclear(collective);
        (first < end).then(|| graph.needs[last as usize])
    }

    /// Adds the event of another message of the same collective as a need. One that is left out makes the event blind.
    fn want(
        &self,
        wanted: &mut NeedList,
        (link, number, collective): (usize, u64, u32),
        (mark, kind): (u32, LagKind),
    ) {
        let other = &self.job.links[link];
        match other.message(number) {
            Some(place) if other.messages[place].collective == collective => {
                wanted.needs.push((self.id(link, place, mark), kind));
            }
            Some(_) => {}
            None => wanted.is_blind = true,
        }
    }

    /// Messages are used in order, but come on several queue pairs: the one of a collective that came last, up to a
    /// number.
    fn latest_until(&self, link: usize, number: u64) -> u64 {
        let link = &self.job.links[link];
        let Some(place) = link.message(number) else {
            return number;
        };
        let last = link.messages[place];
        link.messages[..=place]
            .iter()
            .rev()
            .take(MAX_ON_THE_WAY)
            .take_while(|message| message.collective == last.collective)
            .max_by_key(|message| (message.last_in, message.number))
            .map_or(number, |message| message.number)
    }

    /// The input that came last before a message left, from a number backwards: where a slice more is needed than for most
    /// messages, order shows it.
    fn latest_before(&self, link: usize, number: u64, passed: &Message) -> u64 {
        let link = &self.job.links[link];
        let came = |&number: &u64| {
            let place = link.message(number);
            place.is_some_and(|place| {
                let message = &link.messages[place];
                message.collective == passed.collective && message.last_in <= passed.first_out
            })
        };
        let all = number.saturating_sub(MAX_ON_THE_WAY as u64)..=number;
        all.rev().find(came).unwrap_or(number)
    }

    /// A rank ends a round of chunks before it begins the next one: it has received some messages more by then than it needs elsewhere. Where a
    /// message leaves long after all else that it needs, and soon after one of these came, it waited for that.
    fn want_later_input(&self, wanted: &mut NeedList, link: &Link, message: &Message) {
        let inputs = link.inputs.iter();
        let inputs = inputs.filter(|&&(_, shift)| u64::from(message.place) >= shift);
        let later = inputs.flat_map(|&(from, shift)| {
            let number = message.number - link.base + self.job.links[from].base - shift;
            (number + 1..=number + shift).map(move |number| (from, number))
        });
        let left = (message.first_out, message.collective);
        self.want_arrival(wanted, left, (later, LagKind::OnInput));
    }

    /// The latest of these arrivals is a need of what left at a time, if it explains what else does not.
    fn want_arrival(
        &self,
        wanted: &mut NeedList,
        (left, collective): (i64, u32),
        (arrivals, kind): (impl Iterator<Item = (usize, u64)>, LagKind),
    ) {
        let times = wanted.needs.iter();
        let times = times.map(|&(needed, _)| self.graph.events[needed as usize].time);
        let Some(last) = times.filter(|&time| time != UNKNOWN && time <= left).max() else {
            return;
        };
        let unexplained = left - last;
        if unexplained < MIN_UNEXPLAINED || !self.job.is_captured() {
            return;
        }
        let soon = left - unexplained / UNEXPLAINED_DIVISOR..=left;
        let came = arrivals.filter_map(|(link, number)| {
            let place = self.job.links[link].message(number)?;
            let came = &self.job.links[link].messages[place];
            let is_need = came.collective == collective && soon.contains(&came.last_in);
            is_need.then_some((came.last_in, link, place))
        });
        if let Some((_, link, place)) = came.max() {
            wanted.needs.push((self.id(link, place, LAST_IN), kind));
        }
    }

    /// A buffer is used together with those of other connections that the same message is made of, and the credit may leave before that message.
    fn want_other_input(&self, wanted: &mut NeedList, place_of_link: usize, message: &Message) {
        let link = &self.job.links[place_of_link];
        let others = self.job.made_with(place_of_link, message.number - link.depth);
        let left = (message.credit_out, message.collective);
        self.want_arrival(wanted, left, (others, LagKind::PostUsed));
    }

    fn need_for_credit(&mut self, place_of_link: usize, place: usize) {
        let link = &self.job.links[place_of_link];
        let message = link.messages[place];
        let (receiver, depth) = (link.receiver, link.depth);
        let mut wanted = NeedList::default();
        let same = |number| (place_of_link, number, message.collective);
        if message.place == 0 {
            let post = RankEvent::Post.id(self.ranks, message.collective as usize, receiver);
            wanted.needs.push((post, LagKind::Post));
        } else {
            self.want(&mut wanted, same(message.number - 1), (CREDIT_OUT, LagKind::Post));
        }
        if u64::from(message.place) >= depth {
            let used = message.number - depth;
            self.want(
                &mut wanted,
                same(self.latest_until(place_of_link, used)),
                (LAST_IN, LagKind::PostUsed),
            );
            let start = RankEvent::Start.id(self.ranks, message.collective as usize, receiver);
            wanted.needs.push((start, LagKind::PostUsed));
            for &(to, shift) in &link.consumers {
                let next = &self.job.links[to];
                let number = used - link.base + shift + next.base;
                if next.messages.last().is_some_and(|last| number <= last.number) {
                    self.want_use(&mut wanted, (to, number, message));
                }
            }
            self.want_other_input(&mut wanted, place_of_link, &message);
        }
        if wanted.is_blind {
            let post = RankEvent::Post.id(self.ranks, message.collective as usize, receiver);
            wanted.needs.push((post, LagKind::Post));
        }
        let id = self.id(place_of_link, place, CREDIT_OUT);
        if let Some(need) = self.set_needs(id, &wanted) {
            let host = self.job.ranks[receiver].host;
            let owner = if self.is_busy(host, message.credit_out, need) {
                Owner::BusyReceiver(receiver)
            } else if message.place == 0 {
                // No buffer has been used yet: the host posts the receives of the collective.
                Owner::Start(receiver)
            } else {
                Owner::Receiver(receiver)
            };
            let owner = self.owner(owner, 0);
            self.graph.events[id as usize].owner = owner;
        }
    }

    /// True if a host's port sent data for most of the time from the last need of a packet until it left.
    fn is_busy(&self, host: Address, left: i64, need: Need) -> bool {
        self.ports.busy(host, left - need.lag, left) * 2 > need.lag
    }

    /// A buffer is used by making another message of it. Its first packet may leave after the credit, if it waits for a
    /// credit itself: then the message before, and the free place for it, are what the use waited for.
    fn want_use(&self, wanted: &mut NeedList, (to, number, freed): (usize, u64, Message)) {
        let next = &self.job.links[to];
        let at = |number| (to, number, freed.collective);
        let made = |number| next.message(number).map(|place| next.messages[place]);
        let is_later = |number| {
            made(number)
                .is_some_and(|made| made.collective == freed.collective && made.first_out > freed.credit_out)
        };
        let latest = (number.saturating_sub(next.depth)..=number)
            .rev()
            .find(|&number| !is_later(number));
        self.want(
            wanted,
            at(latest.unwrap_or(number)),
            (FIRST_OUT, LagKind::PostUsed),
        );
        self.want_place(wanted, (to, number), LagKind::PostUsed);
    }

    /// A message needs the place of one that is acknowledged, also if that was of the collective before.
    fn want_place(&self, wanted: &mut NeedList, (link, number): (usize, u64), kind: LagKind) {
        let own = &self.job.links[link];
        let before = number.checked_sub(own.depth);
        if let Some(place) = before.and_then(|before| own.message(before)) {
            wanted.needs.push((self.id(link, place, ACKNOWLEDGED), kind));
        }
    }

    fn need_for_data(&mut self, place_of_link: usize, place: usize) {
        let link = &self.job.links[place_of_link];
        let message = link.messages[place];
        let (there, back) = {
            let host = |rank: usize| self.job.ranks[rank].host;
            let (sender, receiver) = (host(link.sender), host(link.receiver));
            (Owner::Way(sender, receiver), Owner::Way(receiver, sender))
        };
        let uncertainty = link.uncertainty;
        self.need_for_first(place_of_link, place, there);
        for (mark, needed, kind, owner) in [
            (CREDIT_IN, CREDIT_OUT, LagKind::CreditWire, back),
            (LAST_OUT, FIRST_OUT, LagKind::Send, there),
            (LAST_IN, LAST_OUT, LagKind::Wire, there),
            (ACKNOWLEDGED, LAST_IN, LagKind::AnswerWire, back),
        ] {
            let id = self.id(place_of_link, place, mark);
            let needed = self.id(place_of_link, place, needed);
            let wanted = NeedList {
                needs: vec![(needed, kind)],
                is_blind: false,
            };
            if message.acknowledged != UNKNOWN || mark != ACKNOWLEDGED {
                self.set_needs(id, &wanted);
                let owner = self.owner(owner, uncertainty);
                self.graph.events[id as usize].owner = owner;
            }
        }
    }

    /// The first packet of a message needs the rank's start or the message before, its credit, the data that it passes
    /// on, and the end of the message that had its place among those that are not acknowledged.
    fn need_for_first(&mut self, place_of_link: usize, place: usize, way: Owner) {
        let link = &self.job.links[place_of_link];
        let message = link.messages[place];
        let same = |number| (place_of_link, number, message.collective);
        let mut wanted = NeedList::default();
        wanted
            .needs
            .push((self.id(place_of_link, place, CREDIT_IN), LagKind::OnCredit));
        if message.place == 0 {
            let start = RankEvent::Start.id(self.ranks, message.collective as usize, link.sender);
            wanted.needs.push((start, LagKind::Begin));
        } else {
            // Messages on several queue pairs overlap: then the next one follows the first packet of this one.
            let before = link.message(message.number - 1).map(|place| link.messages[place]);
            let mark = match before {
                Some(before) if before.last_out > message.first_out => FIRST_OUT,
                _ => LAST_OUT,
            };
            self.want(&mut wanted, same(message.number - 1), (mark, LagKind::OnTurn));
        }
        for &(from, shift) in &link.inputs {
            if u64::from(message.place) >= shift {
                let number = message.number - link.base + self.job.links[from].base - shift;
                let latest = self.latest_before(from, self.latest_until(from, number), &message);
                self.want(
                    &mut wanted,
                    (from, latest, message.collective),
                    (LAST_IN, LagKind::OnInput),
                );
            }
        }
        self.want_place(&mut wanted, (place_of_link, message.number), LagKind::OnAnswer);
        self.want_later_input(&mut wanted, link, &message);
        let (sender, uncertainty) = (link.sender, link.uncertainty);
        if wanted.is_blind {
            let start = RankEvent::Start.id(self.ranks, message.collective as usize, sender);
            wanted.needs.push((start, LagKind::Begin));
        }
        let id = self.id(place_of_link, place, FIRST_OUT);
        if let Some(need) = self.set_needs(id, &wanted) {
            let host = self.job.ranks[sender].host;
            // Without a tap beside it, nothing shows what its rank waits for.
            let is_seen = self.job.tapped[sender] && need.kind != LagKind::Begin;
            let owner = if is_seen && self.is_busy(host, message.first_out, need) {
                self.owner(way, uncertainty)
            } else {
                self.owner(Owner::Sender(sender), 0)
            };
            self.graph.events[id as usize].owner = owner;
        }
    }

    /// A rank starts and posts after the end of its collective before, and ends with the last event of this one.
    fn need_for_ranks(&mut self, times: &RankTimes) {
        for (collective, ranks) in times.ranks.iter().enumerate() {
            for (rank, known) in ranks.iter().enumerate() {
                let origin = RankEvent::Start.id(self.ranks, times.ranks.len(), 0);
                let before = collective
                    .checked_sub(1)
                    .map_or(origin, |before| RankEvent::End.id(self.ranks, before, rank));
                for (event, kind) in [
                    (RankEvent::Start, LagKind::Compute),
                    (RankEvent::Post, LagKind::Launch),
                ] {
                    let id = event.id(self.ranks, collective, rank);
                    let wanted = NeedList {
                        needs: vec![(before, kind)],
                        is_blind: known.is_blind || !known.is_ready && kind == LagKind::Compute,
                    };
                    if self.set_needs(id, &wanted).is_some() {
                        let owner = self.owner(Owner::Start(rank), 0);
                        self.graph.events[id as usize].owner = owner;
                    }
                }
            }
        }
        let mut ends: BTreeMap<EventId, NeedList> = BTreeMap::new();
        for (place_of_link, link) in self.job.links.iter().enumerate() {
            for (place, message) in link.messages.iter().enumerate() {
                let collective = message.collective as usize;
                let mut end = |rank, mark| {
                    let id = RankEvent::End.id(self.ranks, collective, rank);
                    let need = (self.id(place_of_link, place, mark), LagKind::Join);
                    ends.entry(id).or_default().needs.push(need);
                };
                end(link.receiver, LAST_IN);
                let waits = times.ranks[collective][link.sender].waits_for_answers;
                let is_answered = message.acknowledged != UNKNOWN;
                end(
                    link.sender,
                    if waits && is_answered {
                        ACKNOWLEDGED
                    } else {
                        FIRST_OUT
                    },
                );
            }
        }
        for (id, wanted) in ends {
            self.set_needs(id, &wanted);
        }
    }

    /// Puts events into an order in which each follows what it needs (Kahn's algorithm). Times do not order them: clocks
    /// of two hosts differ by more than the way between them takes. A circle, which only wrong clocks make, comes last.
    fn sort(&mut self) {
        let events = &self.graph.events;
        let needs = |event: &Event| event.needs.0 as usize..event.needs.2 as usize;
        let mut open = vec![0_u32; events.len()];
        let mut first = vec![0_u32; events.len() + 1];
        for event in events {
            for need in &self.graph.needs[needs(event)] {
                first[need.event as usize + 1] += 1;
            }
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut next = first.clone();
        let mut followers: Vec<EventId> = vec![0; self.graph.needs.len()];
        for (id, event) in (0_u32..).zip(events) {
            open[id as usize] = event.needs.2 - event.needs.0;
            for need in &self.graph.needs[needs(event)] {
                let place = &mut next[need.event as usize];
                followers[*place as usize] = id;
                *place += 1;
            }
        }
        let known = |&id: &EventId| events[id as usize].time != UNKNOWN;
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let mut order: Vec<EventId> = (0..count)
            .filter(|&id| open[id as usize] == 0 && known(&id))
            .collect();
        let mut done = 0;
        while let Some(&id) = order.get(done) {
            done += 1;
            let range = first[id as usize] as usize..first[id as usize + 1] as usize;
            for &follower in &followers[range] {
                open[follower as usize] -= 1;
                if open[follower as usize] == 0 {
                    order.push(follower);
                }
            }
        }
        let mut circles: Vec<EventId> = (0..count)
            .filter(|&id| open[id as usize] > 0 && known(&id))
            .collect();
        circles.sort_unstable_by_key(|&id| events[id as usize].time);
        order.extend(circles);
        self.graph.order = order;
    }
}
