//! Joins what several taps saw of one connection, by its flows and the PSNs of its credits, and gives each packet its times.

use std::collections::{BTreeMap, HashMap};

use roce_model::{
    CreditMatching, CreditRow, CreditedConnection, CreditedMessage, FlowId, Nanos, Passage, TapId,
};
use roce_wire::{Address, Psn};

use super::message::{Sighting, TapMessage};
use super::row::{Rest, row};
use super::side::{TapSide, sides};

/// Messages at all taps that are joined, at most. Of more the newest stay.
pub(super) const MAX_JOINED: usize = 1 << 19;

/// What one tap saw of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct CreditsAtTap {
    pub(super) tap: TapId,
    pub(super) sender: Address,
    pub(super) receiver: Address,
    pub(super) credit_flows: Vec<FlowId>,
    pub(super) data_flows: Vec<FlowId>,
    /// Addresses of its slots, as far as they were written.
    pub(super) low: u64,
    pub(super) high: u64,
    /// Credits say their numbers, which are the same at each tap.
    pub(super) says_numbers: bool,
    pub(super) rank: Option<u32>,
    pub(super) releases: Option<&'static str>,
    /// The highest number that data came for.
    pub(super) used: Option<u64>,
    /// Pieces of a message.
    pub(super) pieces: u8,
    pub(super) early: u64,
    pub(super) forgotten: u64,
    pub(super) messages: Vec<TapMessage>,
}

/// A message at the taps that saw it.
type TapMessages<'a> = Vec<(TapSide, &'a TapMessage)>;

impl CreditsAtTap {
    /// True if it is the same connection at another tap.
    fn is_same(&self, other: &Self) -> bool {
        self.tap != other.tap
            && self
                .credit_flows
                .iter()
                .any(|flow| other.credit_flows.contains(flow))
            && self.low <= other.high
            && other.low <= self.high
    }

    /// How much larger the numbers of `other` are than its own.
    fn offset_of(&self, other: &Self) -> Option<i64> {
        if self.says_numbers && other.says_numbers {
            return Some(0);
        }
        let own: HashMap<(Psn, u64), u64> = self
            .messages
            .iter()
            .map(|message| ((message.psn, message.buffer), message.number))
            .collect();
        other.messages.iter().find_map(|message| {
            let number = own.get(&(message.psn, message.buffer))?;
            Some(message.number.cast_signed() - number.cast_signed())
        })
    }

    /// True if all of a message was seen.
    fn is_whole(&self, message: &TapMessage) -> bool {
        message.is_whole() && (message.elements > 1 || message.begun == self.pieces)
    }
}

/// Connections with their rows of the table `credits`, in the same order.
#[derive(Debug, Default)]
pub struct JoinedCredits {
    /// The connections with their messages.
    pub connections: Vec<CreditedConnection>,
    /// Their rows.
    pub rows: Vec<CreditRow>,
}

/// Joins the taps of each connection. Ranks of receivers are those that their own credits name.
pub fn join(mut all: Vec<CreditsAtTap>) -> JoinedCredits {
    all.sort_by(|one, other| {
        let key = |seen: &CreditsAtTap| (seen.credit_flows.first().copied(), seen.low, seen.tap);
        key(one).cmp(&key(other))
    });
    keep_newest(&mut all);
    let mut sides = sides(&all);
    let mut groups: Vec<Vec<(&CreditsAtTap, i64)>> = Vec::new();
    let mut groups_of: HashMap<FlowId, Vec<usize>> = HashMap::new();
    for seen in &all {
        let known = seen
            .credit_flows
            .iter()
            .filter_map(|flow| groups_of.get(flow))
            .flatten();
        let same = known.copied().find_map(|group| {
            let (first, _) = groups[group].first()?;
            first
                .is_same(seen)
                .then(|| first.offset_of(seen).map(|offset| (group, offset)))?
        });
        if let Some((group, offset)) = same {
            if let [(first, _)] = groups[group][..] {
                sides.compare(first, seen, offset);
            }
            groups[group].push((seen, offset));
            continue;
        }
        for flow in &seen.credit_flows {
            groups_of.entry(*flow).or_default().push(groups.len());
        }
        groups.push(vec![(seen, 0)]);
    }
    let mut connections: Vec<(CreditedConnection, Rest)> = groups
        .iter()
        .filter_map(|group| connection(group, &sides.sides))
        .collect();
    connections.sort_by_key(|(connection, _)| {
        let first = connection.messages.first();
        (
            connection.sender,
            connection.receiver,
            connection.credit_flows.first().copied(),
            first.map(|message| (message.buffer, message.number)),
        )
    });
    let (mut connections, rests): (Vec<_>, Vec<_>) = connections.into_iter().unzip();
    name_receivers(&mut connections);
    let rows = connections
        .iter()
        .zip(&rests)
        .map(|(connection, rest)| row(connection, rest));
    JoinedCredits {
        rows: rows.collect(),
        connections,
    }
}

/// Forgets the oldest messages of too many.
fn keep_newest(all: &mut [CreditsAtTap]) {
    let time = |message: &TapMessage| message.credit.first;
    let mut times: Vec<Nanos> = all.iter().flat_map(|seen| &seen.messages).map(time).collect();
    let Some(surplus) = times.len().checked_sub(MAX_JOINED).filter(|surplus| *surplus > 0) else {
        return;
    };
    let (_, limit, _) = times.select_nth_unstable(surplus);
    for seen in all {
        let before = seen.messages.len();
        seen.messages.retain(|message| time(message) >= *limit);
        seen.forgotten += (before - seen.messages.len()) as u64;
    }
}

/// One connection of what its taps saw.
fn connection(
    group: &[(&CreditsAtTap, i64)],
    sides: &BTreeMap<TapId, TapSide>,
) -> Option<(CreditedConnection, Rest)> {
    let (first, _) = group.first()?;
    let mut numbers: BTreeMap<u64, TapMessages<'_>> = BTreeMap::new();
    let mut whole: Vec<u64> = Vec::new();
    let mut used = None;
    for (seen, offset) in group {
        let side = *sides.get(&seen.tap)?;
        let own = |number: u64| number.checked_add_signed(-offset);
        used = used.max(seen.used.and_then(own));
        for message in &seen.messages {
            let Some(number) = own(message.number) else {
                continue;
            };
            numbers.entry(number).or_default().push((side, message));
            if seen.is_whole(message) {
                whole.push(number);
            }
        }
    }
    whole.sort_unstable();
    whole.dedup();
    let start = numbers.keys().next().copied().unwrap_or_default();
    let span = used.map_or(0, |used: u64| (used + 1).saturating_sub(start));
    let early = group.iter().map(|(seen, _)| seen.early).max().unwrap_or_default();
    let messages = whole.iter().filter_map(|number| {
        let seen = numbers.get(number)?;
        Some(message(*number, seen, first))
    });
    let one = |named: &dyn Fn(&CreditsAtTap) -> Option<u32>| {
        let mut ranks: Vec<Option<u32>> = group.iter().map(|(seen, _)| named(seen)).collect();
        ranks.dedup();
        if let [rank] = ranks[..] { rank } else { None }
    };
    let rest = rest(&numbers, used);
    let connection = CreditedConnection {
        sender: first.sender,
        receiver: first.receiver,
        sender_rank: one(&|seen| seen.rank),
        receiver_rank: None,
        layout: group.iter().find_map(|(seen, _)| seen.releases),
        data_flows: joined(group, |seen| &seen.data_flows),
        credit_flows: joined(group, |seen| &seen.credit_flows),
        matching: CreditMatching::Address,
        messages: messages.collect(),
        left_out: early + span.saturating_sub(whole.len() as u64),
    };
    Some((connection, rest))
}

/// What is left of a connection: of a message each tap saw its own part.
fn rest(numbers: &BTreeMap<u64, TapMessages<'_>>, used: Option<u64>) -> Rest {
    let unused = numbers
        .keys()
        .filter(|number| used.is_none_or(|used| **number > used));
    let open = numbers.values().filter_map(|seen| {
        let bytes = seen.iter().map(|(_, message)| message.bytes).max()?;
        let is_open = seen
            .iter()
            .all(|(_, message)| message.acknowledged < message.begun);
        let is_known = seen.iter().any(|(_, message)| message.is_pending);
        (is_open && is_known).then_some(bytes)
    });
    let all = numbers.values().flatten().map(|(_, message)| message);
    Rest {
        credits_unused: unused.count() as u64,
        outstanding_bytes: open.sum(),
        last_time: all.map(|message| message.latest()).max(),
    }
}

fn joined(group: &[(&CreditsAtTap, i64)], flows: impl Fn(&CreditsAtTap) -> &[FlowId]) -> Vec<FlowId> {
    let mut all: Vec<FlowId> = group.iter().flat_map(|(seen, _)| flows(seen)).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A message of what its taps saw.
fn message(number: u64, seen: &TapMessages<'_>, of: &CreditsAtTap) -> CreditedMessage {
    let from_sender =
        |sighting: fn(&TapMessage) -> &Sighting| passage(seen, of.sender, of.receiver, sighting);
    let acknowledged = |host: Address| {
        let beside = seen
            .iter()
            .filter(|(side, _)| *side == TapSide::Host(host) || *side == TapSide::Between);
        let mut times = beside
            .filter(|(_, message)| message.acknowledgement.0 != 0 && message.acknowledged == message.begun);
        times.next().map(|(_, message)| message.acknowledgement)
    };
    let whole = seen
        .iter()
        .map(|(_, message)| message)
        .max_by_key(|message| message.bytes);
    CreditedMessage {
        number,
        buffer: whole.map_or(0, |message| message.buffer),
        bytes: whole.map_or(0, |message| message.bytes),
        credit: passage(seen, of.receiver, of.sender, |message| &message.credit),
        first: from_sender(|message| &message.first),
        last: from_sender(|message| &message.last),
        acknowledgement: Passage {
            departure: acknowledged(of.receiver),
            arrival: acknowledged(of.sender),
        },
        retransmissions: seen
            .iter()
            .map(|(_, message)| message.retransmissions)
            .max()
            .unwrap_or_default(),
    }
}

/// When a packet left one host and came to another. A tap between them tells both, but for the way that is left.
fn passage(
    seen: &TapMessages<'_>,
    from: Address,
    to: Address,
    sighting: fn(&TapMessage) -> &Sighting,
) -> Passage {
    let at = |host: Address| {
        let beside = seen
            .iter()
            .filter(move |(side, _)| *side == TapSide::Host(host) || *side == TapSide::Between);
        beside.map(|(_, message)| sighting(message))
    };
    let arrived = |sighting: &Sighting| sighting.is_seen().then_some(sighting.latest);
    Passage {
        departure: at(from).find_map(Sighting::departure),
        arrival: at(to).find_map(arrived),
    }
}

/// A host that is named by one rank in all its credits has that rank.
fn name_receivers(connections: &mut [CreditedConnection]) {
    let mut ranks: BTreeMap<Address, Option<u32>> = BTreeMap::new();
    for connection in &*connections {
        ranks
            .entry(connection.sender)
            .and_modify(|rank| {
                if *rank != connection.sender_rank {
                    *rank = None;
                }
            })
            .or_insert(connection.sender_rank);
    }
    for connection in connections {
        connection.receiver_rank = ranks.get(&connection.receiver).copied().flatten();
    }
}
