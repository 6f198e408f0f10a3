//! True if senders slow down, as their packets' arrivals show it behind the congested place: while packets to a destination
//! are marked a queue stands, and they arrive at the bottleneck's rate. When notifications have come, no packet is
//! marked any more, as many flows as before go on sending, and still less arrives, then the queue has drained and the
//! senders are slower than the bottleneck.

use std::collections::HashMap;

use roce_model::{Address, Span, Time};

use super::directory::Directory;
use super::numbers::share;
use crate::bin_rows::PairTraffic;
use crate::host_pairs::HostPairs;

/// Destinations that are kept, at most.
const MAX_DESTINATIONS: usize = 1 << 14;
/// A window of fewer data packets shows no rate: one more or less is 3 % of these.
const MIN_PACKETS: u64 = 32;
/// Number of data packets with whose bin a window ends.
const ENOUGH_PACKETS: u64 = 2 * MIN_PACKETS;
/// Longest window, in ns, so that windows do not depend on how narrow bins are.
const LONGEST: u64 = 1_000_000;
/// For so many times its length after the last marked window arrivals are compared with it.
const AFTERWARDS: u64 = 64;
/// Senders to a destination in a window that are told apart.
const MAX_PAIRS: usize = 64;

/// Arrivals at a destination in one window.
#[derive(Clone, Debug, Default)]
struct Sum {
    begin: Time,
    /// In ns; 0: it has not begun.
    length: u64,
    bytes: u64,
    packets: u64,
    ce: u64,
    cnp: u64,
    /// The most flows at once of each pair of hosts.
    flows: Vec<(u32, u64)>,
}

impl Sum {
    /// One that has not begun, with the room of this one.
    fn cleared(mut self) -> Self {
        self.flows.clear();
        Self {
            flows: self.flows,
            ..Self::default()
        }
    }

    fn is_over(&self) -> bool {
        self.packets >= ENOUGH_PACKETS || self.length >= LONGEST
    }

    fn end(&self) -> u64 {
        self.begin.0.saturating_add(self.length)
    }

    fn all_flows(&self) -> u64 {
        self.flows.iter().map(|(_, flows)| flows).sum()
    }

    /// Bytes in a millisecond.
    fn rate(&self) -> u64 {
        let rate = u128::from(self.bytes) * 1_000_000 / u128::from(self.length.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// A destination.
#[derive(Clone, Debug, Default)]
struct DestinationSums {
    /// The window that goes on.
    current: Sum,
    /// It has traffic of the current bin.
    is_touched: bool,
    /// It follows another window without a gap.
    follows: bool,
    /// The window before, and whether it follows another one: then it is no border of the traffic.
    before: Option<(Sum, bool)>,
    /// The marked window with the highest rate of this congestion, and when the last marked one was.
    marked: Option<(Sum, Time)>,
    notified: bool,
}

/// How far arrivals at a destination fell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fell {
    /// Windows with less than the share that counts as a fall.
    pub(super) windows: u64,
    /// The sum of their shares.
    shares: f64,
}

impl Fell {
    /// The mean share of the bottleneck's rate in those windows.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub(super) fn mean(&self) -> Option<f64> {
        (self.windows > 0).then(|| self.shares / self.windows as f64)
    }
}

/// Follows what arrives at destinations.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    width: Span,
    fell_below: f64,
    begin: Time,
    places: Vec<DestinationSums>,
    touched: Vec<u32>,
    /// By hash of tap and destination.
    fell: HashMap<u64, Fell, foldhash::fast::RandomState>,
}

impl Arrivals {
    pub(super) fn new(width: Span, fell_below: f64) -> Self {
        Self {
            width,
            fell_below,
            begin: Time::default(),
            places: Vec::new(),
            touched: Vec::new(),
            fell: HashMap::default(),
        }
    }

    pub(super) fn begin_bin(&mut self, time: Time) {
        self.begin = time;
    }

    /// Application data came from one host to another.
    #[inline]
    pub(super) fn sent(&mut self, traffic: &PairTraffic) {
        let at = traffic.hosts.destination as usize;
        if at >= self.places.len() {
            if at >= MAX_DESTINATIONS {
                return;
            }
            self.places.resize(at + 1, DestinationSums::default());
        }
        let place = &mut self.places[at];
        if !core::mem::replace(&mut place.is_touched, true) {
            self.touched.push(traffic.hosts.destination);
            place.begin_bin(self.begin);
        }
        let current = &mut place.current;
        current.bytes = current.bytes.saturating_add(traffic.wire_bytes);
        current.packets = current.packets.saturating_add(traffic.data_packets);
        current.ce = current.ce.saturating_add(traffic.ce);
        current.cnp = current.cnp.saturating_add(traffic.cnp);
        let pair = traffic.hosts.number;
        // A bin has each pair once: in the first one of a window none is known.
        let begun = if current.length > 0 {
            current.flows.as_mut_slice()
        } else {
            &mut []
        };
        if let Some((_, flows)) = begun.iter_mut().find(|(known, _)| *known == pair) {
            *flows = traffic.flows.max(*flows);
        } else if current.flows.len() < MAX_PAIRS {
            current.flows.push((pair, traffic.flows));
        }
    }

    /// The numbers of destinations have started again.
    pub(super) fn renumber(&mut self) {
        self.places.clear();
        self.touched.clear();
    }

    pub(super) fn end_bin(&mut self, pairs: &HostPairs) {
        for number in self.touched.drain(..) {
            let place = &mut self.places[number as usize];
            place.is_touched = false;
            place.current.length = (self.begin + self.width).since(place.current.begin).0;
            if !place.current.is_over() {
                continue;
            }
            let before = place.before.take();
            if let Some((before, true)) = before.as_ref().filter(|_| place.follows)
                && let Some(part) = place.judge(before)
                && part <= self.fell_below
                && (self.fell.len() < MAX_DESTINATIONS || self.fell.contains_key(&pairs.hash(number)))
            {
                let fell = self.fell.entry(pairs.hash(number)).or_default();
                fell.windows += 1;
                fell.shares += part;
            }
            let next = before.map_or_else(Sum::default, |(sum, _)| sum.cleared());
            place.before = Some((core::mem::replace(&mut place.current, next), place.follows));
        }
    }

    /// The destinations at which arrivals fell.
    pub(super) fn conclude(&self, directory: &Directory) -> HashMap<Address, Fell> {
        let mut all: HashMap<Address, Fell> = HashMap::new();
        for (hash, fell) in &self.fell {
            let Some(host) = directory.host(*hash) else {
                continue;
            };
            let most = all.entry(host).or_default();
            if fell.windows > most.windows {
                *most = *fell;
            }
        }
        all
    }
}

impl DestinationSums {
    /// Data comes in the bin that begins at `begin`, the first of it.
    fn begin_bin(&mut self, begin: Time) {
        let current = &mut self.current;
        if current.length > 0 && current.end() == begin.0 {
            return;
        }
        if current.length > 0 {
            // A gap: what came before it shows no rate.
            *current = core::mem::take(current).cleared();
            self.before = None;
        }
        current.begin = begin;
        let before = self.before.as_ref();
        self.follows = before.is_some_and(|(before, _)| before.end() == begin.0);
    }

    /// A window between two others: the share of the bottleneck's rate that arrived in it, where that says something.
    fn judge(&mut self, window: &Sum) -> Option<f64> {
        let near =
            |marked: &Sum, last: Time| window.begin.since(last).0 <= marked.length.saturating_mul(AFTERWARDS);
        if window.ce > 0 {
            let known = self.marked.take().filter(|(marked, last)| near(marked, *last));
            if known.is_none() {
                self.notified = false;
            }
            self.notified |= window.cnp > 0;
            let most = match known {
                Some((most, _)) if most.rate() >= window.rate() => most,
                _ => window.clone(),
            };
            self.marked = Some((most, window.begin));
            return None;
        }
        self.notified |= window.cnp > 0;
        let (marked, _) = self
            .marked
            .as_ref()
            .filter(|(marked, last)| near(marked, *last))?;
        let same_senders = window.all_flows() >= marked.all_flows();
        if !self.notified || !same_senders || marked.packets < MIN_PACKETS {
            return None;
        }
        share(window.rate(), marked.rate())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{TestRun, flow};
    use roce_model::{TimelineRow, Vantage};

    use roce_model::FindingRow;

    fn working(after: fn(&mut TimelineRow), notify: bool) -> FindingRow {
        let mut data = flow(1, 9);
        (data.ce, data.cnp, data.vantage) = (100, Some(5), Some(Vantage::Receiver));
        let mut run = TestRun::new();
        let marked: fn(&mut TimelineRow) = if notify {
            |row| {
                (row.ce, row.data_packets, row.cnp) = (20, 100, Some(1));
                row.wire_bytes = 100_000;
            }
        } else {
            |row| {
                (row.ce, row.data_packets) = (20, 100);
                row.wire_bytes = 100_000;
            }
        };
        for ms in 0..4 {
            run.bin(ms, &[(&data, marked)], &[]);
        }
        for ms in 4..11 {
            run.bin(ms, &[(&data, after)], &[]);
        }
        run.closed(&data);
        let found = run.conclude().findings;
        found.into_iter().find(|row| row.id == "ecn.working").unwrap()
    }

    #[test]
    fn arrivals_below_the_bottleneck_show_slower_senders() {
        // Six of the seven bins afterwards lie between others: 60,000 of 100,000 bytes.
        let seen = working(|row| row.wire_bytes = 60_000, true);
        assert!(
            seen.summary.ends_with(
                "arrivals at 1 receiver fell to 60 % of the bottleneck's rate after CNPs (seen from arrivals at the \
                 receiver's side)"
            ),
            "{}",
            seen.summary
        );
    }

    #[test]
    fn arrivals_at_the_bottlenecks_rate_show_nothing() {
        let blind = |row: FindingRow| row.summary.ends_with("cannot be seen from here");
        assert!(blind(working(|row| row.wire_bytes = 90_000, true)));
        // Packets are still marked.
        assert!(blind(working(
            |row| {
                row.wire_bytes = 60_000;
                row.ce = 1;
            },
            true
        )));
        // Nobody was notified: another reason.
        assert!(blind(working(|row| row.wire_bytes = 60_000, false)));
    }
}
