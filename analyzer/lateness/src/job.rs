//! Ranks, and the connections between them whose messages are counted together. Times become signed numbers of
//! nanoseconds here, on one clock.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{CreditedConnection, CreditedMessage, Time};
use roce_wire::Address;

use crate::clocks::HostClocks;

/// No time is known.
pub(crate) const UNKNOWN: i64 = i64::MIN;

/// Connections belong to one job if the larger count of messages is at most this many percent of the smaller one.
const MAX_COUNT_PERCENT: u64 = 125;

/// Counts of messages that differ by less are equal: the capture began or ended between them.
pub(crate) const COUNT_MARGIN: u64 = 16;

/// One of so many messages of a collective may be left out, 5 %. With more of them, nothing is said about it.
const MAX_LEFT_OUT_DIVISOR: u64 = 20;

/// A rank, or a host's port where nothing distinguishes its ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Rank {
    /// Address of its port.
    pub(crate) host: Address,
    /// Number of the rank.
    pub(crate) number: Option<u32>,
}

/// Times of one message, in nanoseconds of the common clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Number in its connection.
    pub(crate) number: u64,
    /// Length of the data, in bytes.
    pub(crate) bytes: u64,
    /// The receiver posted the credit.
    pub(crate) credit_out: i64,
    /// The credit was at the sender.
    pub(crate) credit_in: i64,
    /// The first packet left the sender.
    pub(crate) first_out: i64,
    /// The last packet left the sender.
    pub(crate) last_out: i64,
    /// The last packet was at the receiver.
    pub(crate) last_in: i64,
    /// The acknowledgement was at the sender, or [`UNKNOWN`].
    pub(crate) acknowledged: i64,
    /// Packets that were sent more than once.
    pub(crate) retransmissions: u32,
    /// Number of the collective.
    pub(crate) collective: u32,
    /// Place among the messages of its connection in the collective.
    pub(crate) place: u32,
}

/// One connection of a job.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// Place of the connection in the input.
    pub(crate) connection: usize,
    /// The rank that sends the data.
    pub(crate) sender: usize,
    /// The rank that gives credits.
    pub(crate) receiver: usize,
    /// True if a tap beside the sender saw it.
    pub(crate) sender_tapped: bool,
    /// True if a tap beside the receiver saw it.
    pub(crate) receiver_tapped: bool,
    /// Channel of the communicator, where a log names it.
    pub(crate) channel: Option<u32>,
    /// Messages by rising number.
    pub(crate) messages: Vec<Message>,
    /// Number of the message that is the first of the first collective.
    pub(crate) base: u64,
    /// Largest count of credits that were unused at once.
    pub(crate) depth: u64,
    /// Connections whose data this one passes on, and how many messages earlier.
    pub(crate) inputs: Vec<(usize, u64)>,
    /// Connections that pass on its data, and how many messages later.
    pub(crate) consumers: Vec<(usize, u64)>,
    /// Error of a time between its two hosts, at most, in nanoseconds.
    pub(crate) uncertainty: i64,
}

impl Link {
    /// The message with this number, unless it is left out.
    pub(crate) fn message(&self, number: u64) -> Option<usize> {
        let first = self.messages.first()?.number;
        let guess = usize::try_from(number.checked_sub(first)?).ok()?;
        match self.messages.get(guess) {
            Some(message) if message.number == number => Some(guess),
            _ => self
                .messages
                .binary_search_by_key(&number, |message| message.number)
                .ok(),
        }
    }
}

/// Connections whose messages are counted together, and their ranks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// Its ranks, by address and number.
    pub(crate) ranks: Vec<Rank>,
    /// True for each rank that has a tap beside it.
    pub(crate) tapped: Vec<bool>,
    /// Its connections.
    pub(crate) links: Vec<Link>,
    /// First numbers of the collectives, less the first number of the job. Empty: no collectives are told apart.
    pub(crate) starts: Vec<u64>,
    /// Messages of each collective that are left out, and all.
    pub(crate) left_out: Vec<(u64, u64)>,
}

impl Job {
    /// Number of collectives.
    pub(crate) fn collectives(&self) -> usize {
        self.starts.len()
    }

    /// The messages of other connections that one message is made of, together with the message `number` of the connection at `place`: the
    /// connection and the number of each.
    pub(crate) fn made_with(&self, place: usize, number: u64) -> impl Iterator<Item = (usize, u64)> {
        let link = &self.links[place];
        link.consumers.iter().flat_map(move |&(to, shift)| {
            let made = number - link.base + shift;
            let inputs = self.links[to].inputs.iter();
            inputs.filter_map(move |&(from, shift)| {
                let number = made.checked_sub(shift)? + self.links[from].base;
                (from != place).then_some((from, number))
            })
        })
    }

    /// True if each rank has a tap beside it. Else nothing shows when data came to some, and what they did with it.
    pub(crate) fn is_captured(&self) -> bool {
        self.tapped.iter().all(|&tapped| tapped)
    }

    /// True if so many messages of the collective are left out that nothing is said about it.
    pub(crate) fn is_unclear(&self, collective: u32) -> bool {
        self.left_out
            .get(collective as usize)
            .is_none_or(|&(missing, all)| missing * MAX_LEFT_OUT_DIVISOR > all)
    }
}

fn signed(time: Option<Time>) -> i64 {
    time.map_or(UNKNOWN, |time| i64::try_from(time.0).unwrap_or(i64::MAX / 2))
}

/// Length of the way between the hosts of a connection with one tap, in nanoseconds: half of its shortest round trip.
fn half_round_trip(connection: &CreditedConnection) -> i64 {
    connection
        .messages
        .iter()
        .filter_map(|message| {
            let at_sender = (message.last.departure, message.acknowledgement.arrival);
            let at_receiver = (message.credit.departure, message.first.arrival);
            match (at_sender, at_receiver) {
                ((Some(sent), Some(answered)), _) | (_, (Some(sent), Some(answered))) => {
                    Some(i64::try_from(answered.since(sent).0).unwrap_or(0) / 2)
                }
                _ => None,
            }
        })
        .min()
        .unwrap_or(0)
}

/// Times of a message where one side has a tap: the other side's are half a round trip away.
fn times(message: &CreditedMessage, way: i64, clocks: (i64, i64)) -> Option<Message> {
    let (sender, receiver) = clocks;
    let pair = |departure: i64, arrival: i64| match (departure == UNKNOWN, arrival == UNKNOWN) {
        (true, true) => None,
        (true, false) => Some((arrival - way, arrival)),
        (false, true) => Some((departure, departure + way)),
        (false, false) => Some((departure, arrival)),
    };
    let at = |time: Option<Time>, offset: i64| match signed(time) {
        UNKNOWN => UNKNOWN,
        time => time - offset,
    };
    let (credit_out, credit_in) = pair(
        at(message.credit.departure, receiver),
        at(message.credit.arrival, sender),
    )?;
    let (first_out, _) = pair(
        at(message.first.departure, sender),
        at(message.first.arrival, receiver),
    )?;
    let (last_out, last_in) = pair(
        at(message.last.departure, sender),
        at(message.last.arrival, receiver),
    )?;
    Some(Message {
        number: message.number,
        bytes: message.bytes,
        credit_out,
        credit_in,
        first_out,
        last_out: last_out.min(last_in).max(first_out),
        last_in,
        acknowledged: at(message.acknowledgement.arrival, sender),
        retransmissions: message.retransmissions,
        collective: 0,
        place: 0,
    })
}

/// True if some message has a time at this side.
fn is_tapped(connection: &CreditedConnection, sender: bool) -> bool {
    connection.messages.iter().any(|message| {
        if sender {
            message.first.departure.is_some() || message.credit.arrival.is_some()
        } else {
            message.first.arrival.is_some() || message.credit.departure.is_some()
        }
    })
}

/// True if the message has all times that its taps could show. Of a packet that was sent again, some copies may be lost.
fn is_whole(message: &CreditedMessage, sender: bool, receiver: bool) -> bool {
    if message.retransmissions > 0 {
        return true;
    }
    let passages = [message.first, message.last];
    (!sender
        || message.credit.arrival.is_some() && passages.iter().all(|passage| passage.departure.is_some()))
        && (!receiver
            || message.credit.departure.is_some() && passages.iter().all(|passage| passage.arrival.is_some()))
}

fn link(
    (place, connection): (usize, &CreditedConnection),
    ranks: (usize, usize),
    clocks: &HostClocks,
    channel: Option<u32>,
) -> Link {
    let (sender, receiver) = (is_tapped(connection, true), is_tapped(connection, false));
    let way = half_round_trip(connection);
    let offsets = (
        clocks.offset(connection.sender),
        clocks.offset(connection.receiver),
    );
    let mut messages: Vec<Message> = connection
        .messages
        .iter()
        .filter(|message| is_whole(message, sender, receiver))
        .filter_map(|message| times(message, way, offsets))
        .collect();
    messages.sort_unstable_by_key(|message| message.number);
    messages.dedup_by_key(|message| message.number);
    Link {
        connection: place,
        sender: ranks.0,
        receiver: ranks.1,
        sender_tapped: sender,
        receiver_tapped: receiver,
        channel,
        messages,
        base: 0,
        depth: 1,
        inputs: Vec::new(),
        consumers: Vec::new(),
        uncertainty: if sender && receiver {
            clocks.uncertainty(connection.sender, connection.receiver)
        } else {
            way
        },
    }
}

/// Number of each host's rank, where it is the only one that is named.
struct RankNames(BTreeMap<Address, BTreeSet<u32>>);

impl RankNames {
    fn new(connections: &[CreditedConnection]) -> Self {
        let mut names: BTreeMap<Address, BTreeSet<u32>> = BTreeMap::new();
        for connection in connections {
            for (host, rank) in [
                (connection.sender, connection.sender_rank),
                (connection.receiver, connection.receiver_rank),
            ] {
                names.entry(host).or_default().extend(rank);
            }
        }
        Self(names)
    }

    fn rank(&self, host: Address, number: Option<u32>) -> Rank {
        let only = self
            .0
            .get(&host)
            .filter(|names| names.len() == 1)
            .and_then(|names| names.first().copied());
        Rank {
            host,
            number: number.or(only),
        }
    }

    /// Ranks of the sender and the receiver.
    fn ends(&self, connection: &CreditedConnection) -> [Rank; 2] {
        [
            self.rank(connection.sender, connection.sender_rank),
            self.rank(connection.receiver, connection.receiver_rank),
        ]
    }
}

/// Count of a connection's messages, with those that are left out.
fn count(connection: &CreditedConnection) -> u64 {
    let numbers = || connection.messages.iter().map(|message| message.number);
    match (numbers().min(), numbers().max()) {
        (Some(first), Some(last)) => last - first + 1,
        _ => 0,
    }
}

/// Sets of connections that share ranks and have equal counts of messages. Each set is by rising place.
fn sets(connections: &[CreditedConnection], names: &RankNames) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..connections.len())
        .filter(|&place| count(&connections[place]) > 0)
        .collect();
    order.sort_by_key(|&place| (count(&connections[place]), place));
    let mut found = Vec::new();
    let mut alike: Vec<usize> = Vec::new();
    for place in order {
        let larger = count(&connections[place]);
        if let Some(&last) = alike.last() {
            let smaller = count(&connections[last]);
            if larger - smaller >= COUNT_MARGIN && larger * 100 > smaller * MAX_COUNT_PERCENT {
                found.extend(components(connections, names, &alike));
                alike.clear();
            }
        }
        alike.push(place);
    }
    found.extend(components(connections, names, &alike));
    for set in &mut found {
        set.sort_unstable();
    }
    found.sort();
    found
}

/// Divides connections into those that are joined by ranks.
fn components(connections: &[CreditedConnection], names: &RankNames, places: &[usize]) -> Vec<Vec<usize>> {
    let mut set_of: BTreeMap<Rank, usize> = BTreeMap::new();
    let mut parent: Vec<usize> = Vec::new();
    let root = |parent: &[usize], mut set: usize| {
        while parent[set] != set {
            set = parent[set];
        }
        set
    };
    for &place in places {
        let [sender, receiver] = names.ends(&connections[place]).map(|rank| {
            let new = parent.len();
            let set = *set_of.entry(rank).or_insert(new);
            if set == new {
                parent.push(new);
            }
            root(&parent, set)
        });
        parent[sender.max(receiver)] = sender.min(receiver);
    }
    let mut joined: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &place in places {
        let [sender, _] = names.ends(&connections[place]);
        joined
            .entry(root(&parent, set_of[&sender]))
            .or_default()
            .push(place);
    }
    joined.into_values().collect()
}

/// Jobs of connections. `channels` has the channel of each connection, where a log names it.
pub(crate) fn jobs(
    connections: &[CreditedConnection],
    clocks: &HostClocks,
    channels: &[Option<u32>],
) -> Vec<Job> {
    let names = RankNames::new(connections);
    sets(connections, &names)
        .into_iter()
        .map(|set| job(connections, &set, &names, (clocks, channels)))
        .collect()
}

fn job(
    connections: &[CreditedConnection],
    set: &[usize],
    names: &RankNames,
    (clocks, channels): (&HostClocks, &[Option<u32>]),
) -> Job {
    let all: BTreeSet<Rank> = set
        .iter()
        .flat_map(|&place| names.ends(&connections[place]))
        .collect();
    let ranks: Vec<Rank> = all.into_iter().collect();
    let place_of = |rank: Rank| ranks.partition_point(|&other| other < rank);
    let links: Vec<Link> = set
        .iter()
        .map(|&place| {
            let [sender, receiver] = names.ends(&connections[place]);
            link(
                (place, &connections[place]),
                (place_of(sender), place_of(receiver)),
                clocks,
                channels.get(place).copied().flatten(),
            )
        })
        .collect();
    let mut tapped = vec![false; ranks.len()];
    for link in &links {
        tapped[link.sender] |= link.sender_tapped;
        tapped[link.receiver] |= link.receiver_tapped;
    }
    Job {
        ranks,
        tapped,
        links,
        starts: Vec::new(),
        left_out: Vec::new(),
    }
}
