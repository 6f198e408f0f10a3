//! Ends of collectives and of bursts in the traffic.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use roce_model::cast::float;

/// Share of the usual traffic of a busy slot from which on a slot belongs to a burst.
const MIN_SHARE: f64 = 0.05;
/// Silence in a burst, as a share of the usual collective's length.
const GAP_SHARE: f64 = 1.0 / 16.0;
/// Collectives with a known size that are compared at least.
const MIN_SIZES: usize = 8;
/// Bytes for each byte of a message agree when they differ by this share or less.
const SIZES_AGREE: f64 = 0.25;

/// Payload in time.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity {
    /// Width of a slot in ns.
    pub(super) width: u64,
    /// Numbers of slots since the epoch and their payload, in the order of time.
    pub(super) slots: Vec<(u64, u64)>,
}

impl Activity {
    /// The first and the end of the last slot; `None` without traffic.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.slots.first()?, self.slots.last()?);
        Some((
            first.0.saturating_mul(self.width),
            last.0.saturating_add(1).saturating_mul(self.width),
        ))
    }
}

/// A collective, by the trace's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) message_bytes: Option<u64>,
    /// A number for kind and communicator.
    pub(super) group: u32,
}

/// Collectives that overlap or follow each other closely. Times are ns from the first collective's start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Block {
    pub(super) start: f64,
    pub(super) end: f64,
}

impl Block {
    pub(super) const fn length(&self) -> f64 {
        self.end - self.start
    }
}

/// The median; 0 of nothing.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Nanoseconds from `origin`.
#[expect(
    clippy::cast_precision_loss,
    reason = "lengths of traces, exact up to 104 days"
)]
fn since(time: i64, origin: i64) -> f64 {
    time.saturating_sub(origin) as f64
}

/// The collectives, in the order of their starts, with those as one between which the network hardly rests.
pub(super) fn blocks(calls: &[Interval]) -> Vec<Block> {
    let Some(origin) = calls.first().map(|call| call.start) else {
        return Vec::new();
    };
    let gap = GAP_SHARE * median(calls.iter().map(|call| since(call.end, call.start)).collect());
    let mut blocks: Vec<Block> = Vec::new();
    for call in calls {
        let (start, end) = (since(call.start, origin), since(call.end, origin));
        match blocks.last_mut() {
            Some(last) if start <= last.end + gap => last.end = last.end.max(end),
            _ => blocks.push(Block { start, end }),
        }
    }
    blocks
}

/// Bursts of the traffic. Times are ns from the capture's first slot.
pub(super) struct Bursts {
    /// Ends of the last slots of bursts, in the order of time.
    ends: Vec<f64>,
    /// End of the last slot with traffic.
    pub(super) end: f64,
    /// Width of a slot.
    pub(super) width: f64,
    /// Bytes up to the end of each slot.
    sums: Vec<(f64, f64)>,
}

impl Bursts {
    /// The bursts of the traffic; `length` is that of a usual collective.
    pub(super) fn new(activity: &Activity, begin: u64, length: f64) -> Self {
        let width = float(activity.width);
        let mut sizes: Vec<u64> = activity
            .slots
            .iter()
            .map(|(_, bytes)| *bytes)
            .filter(|bytes| *bytes > 0)
            .collect();
        sizes.sort_unstable();
        let full = sizes.get(sizes.len() * 95 / 100).copied().unwrap_or_default();
        let gap = (2.0 * width).max(GAP_SHARE * length);
        let mut ends = Vec::new();
        let mut sums = vec![(0.0, 0.0)];
        let (mut last, mut sum) = (None, 0.0);
        for (slot, bytes) in &activity.slots {
            let start = float(slot.saturating_mul(activity.width).saturating_sub(begin));
            sum += float(*bytes);
            sums.push((start + width, sum));
            if float(*bytes) < MIN_SHARE * float(full) {
                continue;
            }
            if let Some(last) = last.filter(|last| start - last >= gap) {
                ends.push(last);
            }
            last = Some(start + width);
        }
        ends.extend(last);
        let end = sums.last().map_or(0.0, |(end, _)| *end);
        Self {
            ends,
            end,
            width,
            sums,
        }
    }

    /// The end of a burst that is nearest to a time, within a window.
    pub(super) fn end_near(&self, time: f64, window: f64) -> Option<f64> {
        let place = self.ends.partition_point(|end| *end < time);
        let near = [place.checked_sub(1), Some(place)];
        let near = near
            .into_iter()
            .flatten()
            .filter_map(|place| self.ends.get(place));
        let nearest = near.min_by(|a, b| (*a - time).abs().total_cmp(&(*b - time).abs()))?;
        ((nearest - time).abs() <= window).then_some(*nearest)
    }

    /// The share of all times that are this near to the end of a burst.
    pub(super) fn chance(&self, tolerance: f64) -> f64 {
        let near = 2.0 * tolerance * float(self.ends.len() as u64);
        (near / self.end.max(1.0)).min(0.9)
    }

    /// Bytes before a time.
    fn before(&self, time: f64) -> f64 {
        let place = self.sums.partition_point(|(end, _)| *end <= time);
        place
            .checked_sub(1)
            .and_then(|place| self.sums.get(place))
            .map_or(0.0, |(_, sum)| *sum)
    }

    /// The share of collectives whose traffic fits their message as that of their like does; 1 where sizes say nothing.
    pub(super) fn agreement(&self, calls: &[Interval], offset: f64, drift: f64) -> f64 {
        let origin = calls.first().map_or(0, |call| call.start);
        let place = |time: i64| {
            let time = since(time, origin);
            time + offset + drift * time
        };
        let mut of_group: HashMap<u32, Vec<(u64, f64)>, RandomState> = HashMap::default();
        for call in calls {
            let (start, end) = (place(call.start), place(call.end));
            let Some(size) = call
                .message_bytes
                .filter(|size| *size > 0 && start >= 0.0 && end <= self.end)
            else {
                continue;
            };
            let bytes = self.before(end + self.width) - self.before(start);
            of_group
                .entry(call.group)
                .or_default()
                .push((size, bytes / float(size)));
        }
        let (mut compared, mut agree) = (0u64, 0u64);
        for sizes in of_group.values() {
            let first = sizes.first().map_or(0, |(size, _)| *size);
            if sizes.len() < MIN_SIZES || sizes.iter().all(|(size, _)| *size == first) {
                continue;
            }
            let usual = median(sizes.iter().map(|(_, ratio)| *ratio).collect());
            let is_usual = |(_, ratio): &&(u64, f64)| (ratio - usual).abs() <= SIZES_AGREE * usual;
            compared += sizes.len() as u64;
            agree += sizes.iter().filter(is_usual).count() as u64;
        }
        if compared == 0 {
            1.0
        } else {
            float(agree) / float(compared)
        }
    }
}
