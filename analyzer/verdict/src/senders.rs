//! How many hosts send to a destination at the same time in a bin: hosts of which one had ended before the other began are
//! not at once there, though a wide bin has both.

use roce_model::{Active, Span, Time, prefetch};

use crate::host_pair::HostPair;

/// A host goes on sending for so long after a packet: many that share a link send in turns (at 10 Gbit/s 64 hosts with packets of
/// 4 KB come round in 211 us). So the count does not depend on how narrow bins are.
const GOES_ON: u64 = 200_000;

/// Time in which one host has sent to another: from the first packet to the last one of those that are no further apart.
#[derive(Clone, Copy, Debug, Default)]
struct SendingPeriod {
    /// The bin in which it last sent.
    bin: u64,
    first: u64,
    last: u64,
    /// That time within the current bin, in ns after its begin.
    in_bin: Option<Active>,
    /// It is in the list of its destination.
    listed: bool,
}

#[derive(Debug, Default)]
struct Destination {
    senders: u32,
    /// The bin of which these are.
    bin: u64,
    /// The pairs to it whose source has sent lately.
    lately: Vec<u32>,
}

/// Who sends, by the numbers of pairs and destinations.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    /// Bins are counted from 1.
    bin: u64,
    periods: Vec<SendingPeriod>,
    destinations: Vec<Destination>,
    /// Destinations to which somebody sends in the bin.
    sent_to: Vec<u32>,
    /// Room for counting: times at which a host begins (1) or has ended (-1).
    edges: Vec<(u64, i32)>,
}

impl Senders {
    #[inline]
    pub(crate) fn prefetch(&self, pair: HostPair) {
        if let Some(period) = self.periods.get(pair.number as usize) {
            prefetch(period);
        }
    }

    /// A bin begins, in which nobody has sent yet.
    pub(crate) fn begin(&mut self) {
        self.bin += 1;
        self.sent_to.clear();
    }

    /// Application data is sent between the pair in the bin, during that time.
    #[inline]
    pub(crate) fn sends(&mut self, pair: HostPair, active: Active) {
        let number = pair.number as usize;
        if number >= self.periods.len() {
            self.periods.resize(number + 1, SendingPeriod::default());
        }
        let period = &mut self.periods[number];
        if core::mem::replace(&mut period.bin, self.bin) == self.bin {
            if let Some(all) = &mut period.in_bin {
                all.first = all.first.min(active.first);
                all.last = all.last.max(active.last);
            }
            return;
        }
        period.in_bin = Some(active);
        let destination = pair.destination as usize;
        if destination >= self.destinations.len() {
            self.destinations
                .resize_with(destination + 1, Destination::default);
        }
        let to = &mut self.destinations[destination];
        if core::mem::replace(&mut to.bin, self.bin) != self.bin {
            self.sent_to.push(pair.destination);
        }
        if !core::mem::replace(&mut period.listed, true) {
            to.lately.push(pair.number);
        }
    }

    /// All rows of the bin from `begin` on were given: counts the most hosts that sent to a destination at the same time in it.
    pub(crate) fn count(&mut self, begin: Time, width: Span) {
        let periods = &mut self.periods;
        for number in &self.sent_to {
            let to = &mut self.destinations[*number as usize];
            let (mut last_begin, mut first_end) = (begin.0, u64::MAX);
            to.lately.retain(|pair| {
                let period = &mut periods[*pair as usize];
                if let Some(Active { first, last }) = period.in_bin.take() {
                    let first = begin.0.saturating_add(first);
                    let last = begin.0.saturating_add(last.min(width.0.saturating_sub(1)));
                    if first > period.last.saturating_add(GOES_ON) {
                        period.first = first;
                    }
                    period.last = period.last.max(last);
                }
                let until = period.last.saturating_add(GOES_ON);
                period.listed = until >= begin.0;
                if period.listed {
                    (last_begin, first_end) = (last_begin.max(period.first), first_end.min(until));
                }
                period.listed
            });
            to.senders = if last_begin < first_end {
                // All of them at the time when the last one begins, as nearly always: nothing has to be put in order.
                u32::try_from(to.lately.len()).unwrap_or(u32::MAX)
            } else {
                self.edges.clear();
                for period in to.lately.iter().map(|pair| &periods[*pair as usize]) {
                    let until = period.last.saturating_add(GOES_ON);
                    self.edges.extend([(period.first.max(begin.0), 1), (until, -1)]);
                }
                most_at_once(&mut self.edges)
            };
        }
    }

    /// How many hosts send application data to a destination at the same time in the bin, at most.
    #[inline]
    pub(crate) fn of(&self, destination: u32) -> u32 {
        let to = self.destinations.get(destination as usize);
        to.filter(|to| to.bin == self.bin).map_or(0, |to| to.senders)
    }
}

/// The most that have begun and not ended at one time.
fn most_at_once(edges: &mut [(u64, i32)]) -> u32 {
    // Where one begins when another has ended, the end comes first.
    edges.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, step) in edges.iter() {
        now += step;
        most = most.max(now);
    }
    u32::try_from(most).unwrap_or_default()
}
