//! Packets of a job, and those that each one waited for. An event has the events that it needs, and happens some time after the last of
//! them: that time has an owner. With other lags, the graph says when everything would have happened.

use std::collections::BTreeMap;

use roce_wire::Address;

use crate::job::UNKNOWN;
use crate::middle::{lower_quartile, median};

/// Number of an event of a graph.
pub(crate) type EventId = u32;

/// Why one event follows another. Lags of one kind are comparable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LagKind {
    /// The rank computes between two collectives.
    Compute,
    /// The rank's host posts the receives of the next collective.
    Launch,
    /// A message follows the rank's start.
    Begin,
    /// A message follows its credit.
    OnCredit,
    /// A message follows the data that it passes on.
    OnInput,
    /// A message follows the one before it.
    OnTurn,
    /// A message follows the acknowledgement that frees its place.
    OnAnswer,
    /// Last packet after the first one.
    Send,
    /// Last packet on its way.
    Wire,
    /// A credit follows the host's post or the credit before.
    Post,
    /// A credit follows the use of its buffer.
    PostUsed,
    /// A credit on its way.
    CreditWire,
    /// An acknowledgement on its way.
    AnswerWire,
    /// A rank's collective ends with its last event.
    Join,
}

impl LagKind {
    /// True for lags between clocks of two hosts, and for those of a rank that waited for nothing: what is needed may be stamped later.
    pub(crate) const fn may_be_negative(self) -> bool {
        matches!(
            self,
            Self::Compute | Self::Launch | Self::Wire | Self::CreditWire | Self::AnswerWire
        )
    }
}

/// Who may be late.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Owner {
    /// A rank, before it begins a collective.
    Start(usize),
    /// A rank that has all it needs to send a message.
    Sender(usize),
    /// A rank that can give a credit.
    Receiver(usize),
    /// A rank that can give a credit while its port sends data: the credit may wait behind them before a tap sees it.
    BusyReceiver(usize),
    /// The way from one host to another.
    Way(Address, Address),
}

/// Events of a rank in a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RankEvent {
    /// The rank is ready to send.
    Start,
    /// The rank's host posts its first receive.
    Post,
    /// All data of the rank are there, and all that it sent are acknowledged.
    End,
}

impl RankEvent {
    /// Number of the event. `ranks` is the number of the first event of ranks, and the number of ranks.
    pub(crate) fn id(self, ranks: (u32, usize), collective: usize, rank: usize) -> EventId {
        let place = (collective * ranks.1 + rank) * 3 + self as usize;
        ranks.0 + u32::try_from(place).unwrap_or(u32::MAX / 2)
    }
}

/// An event that another one needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// The event that is needed.
    pub(crate) event: EventId,
    /// Nanoseconds that the other event is later, or would be at least.
    pub(crate) lag: i64,
    /// Kind of the lag.
    pub(crate) kind: LagKind,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// When it happened, in nanoseconds.
    pub(crate) time: i64,
    /// Its needs: place of the first one, of the one that came last, and behind the last one.
    pub(crate) needs: (u32, u32, u32),
    /// Collective that it belongs to.
    pub(crate) collective: u32,
    /// Place of the owner of its lag, or [`NOBODY`].
    pub(crate) owner: u32,
    /// Messages of one class are comparable: they have alike lengths, and as many connections share their ports.
    pub(crate) class: u16,
    /// True if something that it may have needed is left out: its lag is nobody's.
    pub(crate) is_blind: bool,
    /// True if packets of its message were sent more than once.
    pub(crate) is_repeated: bool,
}

/// Nobody owns a lag.
pub(crate) const NOBODY: u32 = u32::MAX;

/// All events of a job.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) events: Vec<Event>,
    pub(crate) needs: Vec<Need>,
    /// Events in an order in which each one follows those that it needs.
    pub(crate) order: Vec<EventId>,
    pub(crate) owners: Vec<Owner>,
    /// Number of the first event of ranks, and number of ranks.
    pub(crate) ranks: (u32, usize),
    /// Error of times between the hosts of each owner, at most, in nanoseconds.
    pub(crate) uncertainty: Vec<i64>,
}

impl Graph {
    /// The need of an event that came last.
    pub(crate) fn last_need(&self, event: EventId) -> Option<Need> {
        let (first, last, end) = self.events[event as usize].needs;
        (first < end).then(|| self.needs[last as usize])
    }

    /// Error of a lag, at most, in nanoseconds: that of two clocks, if the lag is from one host to another.
    pub(crate) fn error(&self, event: &Event, need: Need) -> i64 {
        match need.kind {
            LagKind::Wire | LagKind::CreditWire | LagKind::AnswerWire => {
                self.uncertainty[event.owner as usize]
            }
            _ => 0,
        }
    }

    /// Events whose lag has an owner, with their last need.
    pub(crate) fn owned(&self) -> impl Iterator<Item = (&Event, Need)> {
        (0_u32..).zip(&self.events).filter_map(|(id, event)| {
            let need = self.last_need(id)?;
            (event.owner != NOBODY && !event.is_blind).then_some((event, need))
        })
    }

    /// Time of an event.
    pub(crate) fn time(&self, event: EventId) -> i64 {
        self.events[event as usize].time
    }

    /// An event of a rank in a collective. None if it takes no part.
    pub(crate) fn rank_event(&self, kind: RankEvent, collective: usize, rank: usize) -> Option<EventId> {
        let id = kind.id(self.ranks, collective, rank);
        (self.events.get(id as usize)?.time != UNKNOWN).then_some(id)
    }

    /// When the last rank ended each collective.
    pub(crate) fn collective_ends(&self, collectives: usize, time: impl Fn(EventId) -> i64) -> Vec<i64> {
        (0..collectives)
            .map(|collective| {
                (0..self.ranks.1)
                    .filter_map(|rank| self.rank_event(RankEvent::End, collective, rank))
                    .map(&time)
                    .max()
                    .unwrap_or(UNKNOWN)
            })
            .collect()
    }

    /// When everything would have happened with other lags. `lag` gets an event and its own lag.
    pub(crate) fn replay(&self, lag: impl Fn(&Event, Need) -> i64) -> Vec<i64> {
        let mut times: Vec<i64> = self.events.iter().map(|event| event.time).collect();
        for &id in &self.order {
            let event = &self.events[id as usize];
            let (first, last, end) = event.needs;
            let time = (first..end)
                .map(|place| {
                    let need = self.needs[place as usize];
                    let lag = if place == last { lag(event, need) } else { need.lag };
                    times[need.event as usize] + lag
                })
                .max();
            if let Some(time) = time {
                times[id as usize] = time;
            }
        }
        times
    }

    /// Lags of needs that did not come last: they may have been as long as is usual for their kind, if there was time.
    /// One slow owner has many lags: each owner counts once, and the fast ones show what is possible.
    pub(crate) fn bound_spare_lags(&mut self) {
        let mut lags: BTreeMap<LagKind, BTreeMap<u32, Vec<i64>>> = BTreeMap::new();
        for event in &self.events {
            let (first, last, end) = event.needs;
            if first < end && !event.is_blind {
                let need = self.needs[last as usize];
                let of_kind = lags.entry(need.kind).or_default();
                of_kind.entry(event.owner).or_default().push(need.lag);
            }
        }
        let usual: BTreeMap<LagKind, i64> = lags
            .into_iter()
            .map(|(kind, owners)| {
                let medians = owners.into_values().map(|mut lags| median(&mut lags));
                (kind, lower_quartile(&mut medians.collect::<Vec<_>>()))
            })
            .collect();
        for event in &self.events {
            let (first, last, end) = event.needs;
            for place in (first..end).filter(|&place| place != last) {
                let need = &mut self.needs[place as usize];
                let usual = usual.get(&need.kind).copied().unwrap_or(0);
                need.lag = need.lag.min(usual.max(0));
            }
        }
    }
}
