//! Losses by destination, and whether a queue before it overran: several senders lost packets there, and so close to each other as a cable
//! loses none.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::{Address, EpisodeKind, EventKind, EventRow, FlowId, Psn, TapId};

use super::super::numbers::share;
use super::losses_there::{Losses, LossesThere};
use super::rule::Context;
use crate::chance::{UNLIKELY, at_least};
use crate::episodes::{Episode, fills_link};

/// Flows with gaps that are kept at most.
const MAX_FLOWS: usize = 1 << 16;
/// Gaps of a flow with so few packets between them are close: a full queue takes a packet, drops the next ones, and so on. How many it
/// takes depends on the number of senders and on their rates.
const CLOSE: [u32; 4] = [1, 2, 4, 8];
const TESTS: u8 = 4;

/// The gaps of one flow at one tap that were no packets out of order.
#[derive(Clone, Copy, Debug)]
struct FlowGaps {
    /// The latest one.
    first: u32,
    end: u32,
    /// Gaps behind the first one, and those of them that are close to the one before.
    followed: u64,
    close: [u64; CLOSE.len()],
}

/// The distances between gaps, by flow.
#[derive(Clone, Debug, Default)]
pub(super) struct GapDistances {
    flows: HashMap<(TapId, FlowId), FlowGaps, foldhash::fast::RandomState>,
}

impl GapDistances {
    pub(super) fn event(&mut self, event: &EventRow) {
        // A packet that the capture may have missed counts as no loss: in a thinned capture such gaps are close to each other.
        let is_lost = event.detail.as_deref() == Some("network_lost");
        let (EventKind::Hole, true, Some(flow), Some(first)) =
            (event.kind, is_lost, event.flow_id, event.psn)
        else {
            return;
        };
        let missing = u32::try_from(event.value.unwrap_or(1)).unwrap_or(u32::MAX);
        let end = first.wrapping_add(missing) % Psn::COUNT;
        let key = (event.tap, flow);
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            return;
        }
        let new = FlowGaps {
            first,
            end,
            followed: 0,
            close: [0; CLOSE.len()],
        };
        let Some(known) = self.flows.get_mut(&key) else {
            self.flows.insert(key, new);
            return;
        };
        let between = |end: u32, first: u32| first.wrapping_sub(end) % Psn::COUNT;
        let packets = between(known.end, first).min(between(end, known.first));
        // Parts of one gap follow each other.
        if packets > 0 {
            known.followed += 1;
            for (close, most) in known.close.iter_mut().zip(CLOSE) {
                *close += u64::from(packets <= most);
            }
        }
        (known.first, known.end) = (first, end);
    }

    /// Destinations to which several senders lost packets closer to each other than by chance.
    fn crowded(&self, context: &Context<'_>) -> BTreeSet<Address> {
        let mut sums: BTreeMap<Address, CloseGaps> = BTreeMap::new();
        for ((tap, flow), gaps) in &self.flows {
            let party = context.directory.party(*tap, *flow);
            let Some(party) = party.filter(|party| party.counted) else {
                continue;
            };
            let sum = sums.entry(party.destination).or_default();
            sum.followed = sum.followed.saturating_add(gaps.followed);
            for (senders, (sum, close)) in sum.senders.iter_mut().zip(sum.close.iter_mut().zip(gaps.close)) {
                *sum = sum.saturating_add(close);
                if close > 0 {
                    senders.insert(party.source);
                }
            }
            sum.data = sum.data.saturating_add(party.data_packets);
        }
        let crowded = sums.into_iter().filter(|(_, sum)| sum.are_no_chance());
        crowded.map(|(there, _)| there).collect()
    }
}

/// Gaps of all flows to a destination.
#[derive(Clone, Debug, Default)]
struct CloseGaps {
    /// Senders whose gaps are as close as [`CLOSE`] says, and number of such gaps.
    senders: [BTreeSet<Address>; CLOSE.len()],
    close: [u64; CLOSE.len()],
    followed: u64,
    data: u64,
}

impl CloseGaps {
    /// True if gaps of several senders are closer than those of losses that do not depend on each other.
    fn are_no_chance(&self) -> bool {
        let rate = share(self.followed, self.data).unwrap_or(1.0).min(1.0);
        let each = self.senders.iter().zip(self.close).zip(CLOSE);
        each.into_iter().any(|((senders, close), most)| {
            let by_chance = 1.0 - (1.0 - rate).powf(f64::from(most));
            // One of several tests passes by chance as often as all of them together do.
            let chance = at_least(close, self.followed, by_chance) * f64::from(TESTS);
            senders.len() > 1 && chance < UNLIKELY
        })
    }
}

/// Losses of a run by destination.
pub(super) fn losses_by_destination(gaps: &GapDistances, context: &Context<'_>) -> Losses {
    let mut losses = Losses::new();
    for episode in context.distinct(EpisodeKind::Loss) {
        let row = &episode.row;
        if let Some(there) = row.destination {
            let times = (row.start_time, row.end_time);
            let there = losses.entry(there).or_insert(LossesThere {
                times,
                ..LossesThere::default()
            });
            there.times = (there.times.0.min(times.0), there.times.1.max(times.1));
            there.lost = there.lost.saturating_add(row.lost);
            let is_of_a_queue = context.may_be_of_a_queue(episode);
            if episode.facts.incast_meanwhile && is_of_a_queue {
                there.in_incast = there.in_incast.saturating_add(row.lost);
            }
            if row.senders_max > 1 && is_of_a_queue {
                there.of_several = there.of_several.saturating_add(row.lost);
                there.data_of_several = there.data_of_several.saturating_add(row.data_packets);
            }
        }
    }
    if losses.is_empty() {
        return losses;
    }
    for episode in context.incasts() {
        if let Some(there) = episode.row.destination.and_then(|there| losses.get_mut(&there)) {
            there.data_in_incast = there.data_in_incast.saturating_add(episode.row.data_packets);
        }
    }
    for (_, _, party) in context.directory.flows().filter(|(.., party)| party.counted) {
        if let Some(there) = losses.get_mut(&party.destination) {
            there.data = there.data.saturating_add(party.data_packets);
        }
    }
    let crowded = gaps.crowded(context);
    let busy = context.distinct(EpisodeKind::Loss).filter(|episode| {
        let row = &episode.row;
        let lasted = row.end_time.since(row.start_time);
        row.senders_max > 1 && fills_link(episode.facts.sum.payload_bytes, lasted, context.link_rate)
    });
    for there in busy.filter_map(|episode| episode.row.destination) {
        if let Some(losses) = losses.get_mut(&there) {
            losses.is_crowded |= crowded.contains(&there);
        }
    }
    losses
}

impl Context<'_> {
    /// True if a queue at the way to an address overran.
    pub(super) fn overran(&self, there: Option<Address>) -> bool {
        there
            .and_then(|there| self.losses.get(&there))
            .is_some_and(LossesThere::overran)
    }

    /// True unless nothing but losses shows a queue, and one sender has them all, whose class is another one: a full queue takes packets of
    /// everybody.
    fn may_be_of_a_queue(&self, episode: &Episode) -> bool {
        let is_of_one = self
            .losing_class
            .as_ref()
            .is_some_and(|class| class.sender.is_some());
        !(is_of_one && episode.facts.shows_losses_alone())
    }

    /// Episodes of many senders at once whose signs are those of a queue.
    pub(super) fn incasts(&self) -> impl Iterator<Item = &Episode> {
        let all = self.distinct(EpisodeKind::Incast);
        all.filter(|episode| self.may_be_of_a_queue(episode))
    }

    /// Times in which fewer senders than an incast has overran the queue before a destination: episodes of losses.
    pub(super) fn overruns(&self) -> impl Iterator<Item = &Episode> {
        self.distinct(EpisodeKind::Loss).filter(|episode| {
            let is_of_few = episode.row.senders_max > 1 && !episode.facts.incast_meanwhile;
            is_of_few && episode.row.lost > 0 && self.overran(episode.row.destination)
        })
    }
}
