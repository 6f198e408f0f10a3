//! Places of taps: the host that each stands beside. All credits and data at a host's own port have that host as an end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::TapId;
use roce_wire::Address;

use super::at_tap::CreditsAtTap;
use super::message::{TapMessage, TapTimes};

/// Where a tap stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TapSide {
    /// Beside this host.
    Host(Address),
    /// On the way of several hosts.
    Between,
}

/// Where each tap stands, and those of two hosts alone, of which only times tell.
#[derive(Clone, Default, Debug)]
pub(super) struct TapSides {
    pub(super) sides: BTreeMap<TapId, TapSide>,
    of_two: BTreeSet<TapId>,
}

/// Where the taps stand.
pub(super) fn sides(all: &[&CreditsAtTap]) -> TapSides {
    let mut ends: BTreeMap<TapId, Vec<&CreditsAtTap>> = BTreeMap::new();
    for seen in all {
        ends.entry(seen.tap).or_default().push(seen);
    }
    let mut found = TapSides::default();
    for (tap, seen) in &ends {
        let [sender, receiver] = [seen[0].sender, seen[0].receiver];
        let mut hosts = vec![sender, receiver];
        for other in seen {
            hosts.retain(|host| *host == other.sender || *host == other.receiver);
        }
        let side = match hosts.as_slice() {
            [host] => TapSide::Host(*host),
            [one, other] => {
                found.of_two.insert(*tap);
                beside(seen, *one, *other)
            }
            _ => TapSide::Between,
        };
        found.sides.insert(*tap, side);
    }
    found
}

impl TapSides {
    /// Two taps saw a connection of two hosts alone: which of them is beside which follows from their times, whatever their clocks.
    /// The way of data from one tap to the other, and that of credits back, are both positive from the sender to the receiver.
    pub(super) fn compare(&mut self, one: &CreditsAtTap, other: &CreditsAtTap, offset: i64) {
        if !self.of_two.contains(&one.tap) || !self.of_two.contains(&other.tap) {
            return;
        }
        let first: HashMap<u64, &TapMessage> = one
            .messages
            .iter()
            .map(|message| (message.number, message))
            .collect();
        let both = other.messages.iter().filter_map(|message| {
            let number = message.number.checked_add_signed(-offset)?;
            let own = first
                .get(&number)
                .filter(|own| own.first.is_seen() && message.first.is_seen())?;
            let way = |here: TapTimes, there: TapTimes| i128::from(there.first.0) - i128::from(here.first.0);
            Some(way(own.first, message.first) - way(own.credit, message.credit))
        });
        let (near, far) = match both.map(i128::signum).sum::<i128>() {
            0 => return,
            1.. => (one.sender, one.receiver),
            _ => (one.receiver, one.sender),
        };
        self.sides.insert(one.tap, TapSide::Host(near));
        self.sides.insert(other.tap, TapSide::Host(far));
    }
}

/// The host of two that answers sooner. Data follow a credit at once only where the sender is near, and acknowledgements follow
/// data at once only where the receiver is.
fn beside(seen: &[&CreditsAtTap], one: Address, other: Address) -> TapSide {
    let mut soonest = [u64::MAX; 2];
    let mut note = |host: Address, took: u64| {
        let soonest = &mut soonest[usize::from(host != one)];
        *soonest = (*soonest).min(took);
    };
    for at_tap in seen {
        for message in &at_tap.messages {
            if message.first.is_seen() {
                note(at_tap.sender, message.first.first.since(message.credit.first).0);
            }
            if message.last.is_seen() && message.acknowledgement.0 != 0 {
                note(
                    at_tap.receiver,
                    message.acknowledgement.since(message.last.latest).0,
                );
            }
        }
    }
    match soonest {
        [near, far] if near < far => TapSide::Host(one),
        [near, far] if near > far => TapSide::Host(other),
        _ => TapSide::Between,
    }
}
