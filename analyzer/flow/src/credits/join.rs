//! Joins what several taps saw of one connection, by its flows and the PSNs of its credits, and gives each packet its times.

use std::collections::{BTreeMap, HashMap};

use roce_model::{CreditRow, CreditedConnection, CreditedMessage, FlowId, Passage, TapId, Time};
use roce_wire::Address;

use super::at_tap::CreditsAtTap;
use super::message::{TapMessage, TapTimes};
use super::row::{Rest, row};
use super::side::{TapSide, sides};

/// Messages at all taps that are joined, at most. Of more the newest stay.
pub(super) const MAX_JOINED: usize = 1 << 19;

/// A message at a tap that saw something of it.
#[derive(Clone, Copy)]
struct TapView<'a> {
    side: TapSide,
    message: &'a TapMessage,
    /// All its pieces have begun, and all have ended.
    has_begun: bool,
    has_ended: bool,
}

impl<'a> TapView<'a> {
    /// A message as a tap saw it.
    fn new(tap: &CreditsAtTap, message: &'a TapMessage, side: TapSide) -> Self {
        let is_shared = message.elements == 1;
        let has_begun = message.first.is_seen() && (!is_shared || message.begun == tap.pieces);
        let ends = if tap.has_immediates {
            message.closed
        } else {
            message.ended
        };
        let all = if is_shared { message.begun } else { 1 };
        Self {
            side,
            message,
            has_begun,
            has_ended: has_begun && message.last.is_seen() && ends >= all,
        }
    }

    /// All of the message was seen.
    fn is_whole(&self) -> bool {
        self.message.credit.is_seen() && self.has_begun && self.has_ended
    }

    fn is_beside(&self, host: Address) -> bool {
        self.side == TapSide::Host(host) || self.side == TapSide::Between
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
pub fn join(all: &[CreditsAtTap]) -> JoinedCredits {
    let mut all: Vec<&CreditsAtTap> = all.iter().collect();
    all.sort_by(|one, other| {
        let key = |seen: &CreditsAtTap| (seen.credit_flows.first().copied(), seen.low, seen.tap);
        key(one).cmp(&key(other))
    });
    let since = start_of_newest(&all);
    let mut sides = sides(&all);
    let mut groups: Vec<Vec<(&CreditsAtTap, i64)>> = Vec::new();
    let mut groups_of: HashMap<FlowId, Vec<usize>> = HashMap::new();
    for seen in all {
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
        .filter_map(|group| connection(group, &sides.sides, since))
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

/// The time of the oldest message that is kept of too many.
fn start_of_newest(all: &[&CreditsAtTap]) -> Time {
    let messages = all.iter().flat_map(|seen| &seen.messages);
    let mut times: Vec<Time> = messages.map(|message| message.credit.first).collect();
    let Some(surplus) = times.len().checked_sub(MAX_JOINED).filter(|surplus| *surplus > 0) else {
        return Time(0);
    };
    let (_, limit, _) = times.select_nth_unstable(surplus);
    *limit
}

/// One connection of what its taps saw.
fn connection(
    group: &[(&CreditsAtTap, i64)],
    sides: &BTreeMap<TapId, TapSide>,
    since: Time,
) -> Option<(CreditedConnection, Rest)> {
    let (first, _) = group.first()?;
    let mut numbers: BTreeMap<u64, Vec<TapView<'_>>> = BTreeMap::new();
    let mut whole: Vec<u64> = Vec::new();
    let mut used = None;
    for (seen, offset) in group {
        let side = *sides.get(&seen.tap)?;
        let own = |number: u64| number.checked_add_signed(-offset);
        used = used.max(seen.used.and_then(own));
        let kept = seen
            .messages
            .iter()
            .filter(|message| message.credit.first >= since);
        for message in kept {
            let Some(number) = own(message.number) else {
                continue;
            };
            let view = TapView::new(seen, message, side);
            numbers.entry(number).or_default().push(view);
            if view.is_whole() {
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
        messages: messages.collect(),
        left_out: early + span.saturating_sub(whole.len() as u64),
    };
    Some((connection, rest))
}

/// The rest of a connection: each tap saw its own part of a message.
fn rest(numbers: &BTreeMap<u64, Vec<TapView<'_>>>, used: Option<u64>) -> Rest {
    let unused = numbers
        .keys()
        .filter(|number| used.is_none_or(|used| **number > used));
    let open = numbers.values().filter_map(|seen| {
        let bytes = seen.iter().map(|view| view.message.bytes).max()?;
        let is_open = seen
            .iter()
            .all(|view| view.message.acknowledged < view.message.begun);
        let is_known = seen.iter().any(|view| view.message.is_pending);
        (is_open && is_known).then_some(bytes)
    });
    let all = numbers.values().flatten().map(|view| view.message);
    Rest {
        credits_unused: unused.count() as u64,
        outstanding_bytes: open.sum(),
        last_time: all.map(TapMessage::latest).max(),
    }
}

fn joined(group: &[(&CreditsAtTap, i64)], flows: impl Fn(&CreditsAtTap) -> &[FlowId]) -> Vec<FlowId> {
    let mut all: Vec<FlowId> = group.iter().flat_map(|(seen, _)| flows(seen)).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A message of what its taps saw.
fn message(number: u64, seen: &[TapView<'_>], of: &CreditsAtTap) -> CreditedMessage {
    let (sender, receiver) = (of.sender, of.receiver);
    let acknowledged = |host: Address| {
        let mut times = seen.iter().filter(|view| {
            view.is_beside(host) && view.has_ended && view.message.acknowledged >= view.message.begun
        });
        let time = times.next()?.message.acknowledgement;
        (time.0 != 0).then_some(time)
    };
    let whole = seen
        .iter()
        .map(|view| view.message)
        .max_by_key(|message| message.bytes);
    let retransmissions = seen.iter().map(|view| view.message.retransmissions).max();
    CreditedMessage {
        number,
        buffer: whole.map_or(0, |message| message.buffer),
        bytes: whole.map_or(0, |message| message.bytes),
        credit: passage(seen, receiver, sender, |view| Some(&view.message.credit)),
        first: passage(seen, sender, receiver, |view| {
            view.has_begun.then_some(&view.message.first)
        }),
        last: passage(seen, sender, receiver, |view| {
            view.has_ended.then_some(&view.message.last)
        }),
        acknowledgement: Passage {
            departure: acknowledged(receiver),
            arrival: acknowledged(sender),
        },
        retransmissions: retransmissions.unwrap_or_default(),
    }
}

/// When a packet left one host and came to another. A tap between them tells both, but for the way that is left.
fn passage<'a>(
    seen: &[TapView<'a>],
    from: Address,
    to: Address,
    sighting: impl Fn(&TapView<'a>) -> Option<&'a TapTimes>,
) -> Passage {
    let at = |host: Address| {
        seen.iter()
            .filter(move |view| view.is_beside(host))
            .filter_map(&sighting)
    };
    let arrived = |sighting: &TapTimes| sighting.is_seen().then_some(sighting.latest);
    Passage {
        departure: at(from).find_map(TapTimes::departure),
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
