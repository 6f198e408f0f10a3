//! Relates a trace's clock to the capture's: collectives are compared with bursts in the traffic.
//!
//! 1. The time in collectives and the traffic are two series; their correlation at all lags gives candidates.
//! 2. For each candidate the ends of collectives are joined with the ends of bursts. Ends are sharp: a rank may wait in a collective before
//!    anything is sent, but the collective ends when its last bytes have come.
//! 3. The offset and the drift are a line through these pairs. What is left of them says how sure it is.
//! 4. A candidate has to explain most of the collectives, and the odds against any other one have to be high. Otherwise the answer is no.

use roce_model::cast::{float, whole};
use roce_model::{Span, Time};

use super::correlate::correlation;
use super::edges::{Activity, Block, Bursts, Interval, blocks, median};

/// Slots of the two series together.
const MAX_SLOTS: u64 = 1 << 20;
/// Fewer collectives than this do not tell one time from another.
const MIN_BLOCKS: usize = 8;
/// Candidates that are looked at closely.
const MAX_CANDIDATES: usize = 32;
/// Correlation that a candidate has at least.
const MIN_CORRELATION: f64 = 0.3;
/// Share of collectives that an answer explains at least, above what chance would.
const MIN_QUALITY: f64 = 0.6;
/// Logarithm of the least odds of an answer against any other one: 22,000 to 1.
const MIN_LEAD: f64 = 10.0;
/// Share of collectives whose ends may be anywhere.
const STRAY_SHARE: f64 = 0.2;
/// Collectives and length from which on a drift is measured.
const DRIFT_BLOCKS: usize = 16;
const DRIFT_SPAN_NS: f64 = 1e9;
/// Largest drift of a clock: crystals of servers are within 100 in a million.
const MAX_DRIFT: f64 = 200e-6;
/// Drift that a clock may have where none is measured.
const USUAL_DRIFT: f64 = 50e-6;
/// A collective ends up to this time behind its last packet: completions, and the kernel's last steps.
const TAIL_NS: f64 = 100_000.0;
/// An end of a collective meets the end of a burst when they differ by this or less.
const MIN_TOLERANCE_NS: f64 = 200_000.0;
/// A stated epoch is confirmed, or corrected, by up to this.
pub(super) const MAX_STATED_ERROR_NS: i64 = 2_000_000_000;

/// The relation of two clocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Clock {
    /// Added to the trace's times.
    base: i128,
    /// Added to it at `middle`.
    offset: f64,
    /// Time by the trace's clock from which drift counts.
    middle: i64,
    pub(super) drift: Option<f64>,
    pub(super) uncertainty: u64,
    pub(super) matched: u64,
}

impl Clock {
    /// A time of the trace on the capture's clock.
    #[expect(clippy::cast_possible_truncation, reason = "bounded to some hundred years")]
    pub(super) fn at(&self, time: i64) -> Time {
        let from_middle = i128::from(time) - i128::from(self.middle);
        #[expect(clippy::cast_precision_loss, reason = "a drift of a millionth of it counts")]
        let drifted = self.offset + self.drift.unwrap_or_default() * from_middle as f64;
        let moved = i128::from(time) + self.base + drifted.clamp(-1e18, 1e18).round() as i128;
        Time(u64::try_from(moved.max(0)).unwrap_or(u64::MAX))
    }

    /// Nanoseconds that are added to the trace's times at their middle.
    #[expect(
        clippy::cast_precision_loss,
        reason = "for people: exact to 256 ns where it is an epoch"
    )]
    pub(super) fn offset(&self) -> f64 {
        self.base as f64 + self.offset
    }
}

/// One candidate after a closer look.
#[derive(Clone, Copy, Debug)]
struct Fit {
    /// Time of the capture less that of the trace, both from their starts, at the middle.
    offset: f64,
    drift: Option<f64>,
    /// Share of collectives that it explains, above what chance would.
    quality: f64,
    /// Logarithm of the odds that ends of collectives lie this near to ends of bursts, against ends that lie anywhere in the window.
    evidence: f64,
    /// Median of the distance between ends of collectives and of bursts.
    spread: f64,
    matched: u64,
    /// Middle of the matched collectives, from the trace's start.
    middle: f64,
    span: f64,
}

/// Finds the relation of the clocks. `near`: the capture's clock is known to within so many ns.
///
/// # Errors
/// In words: nothing fits, or several things do.
pub(super) fn find(activity: &Activity, calls: &[Interval], near: Option<i64>) -> Result<Clock, String> {
    let blocks = blocks(calls);
    if blocks.len() < MIN_BLOCKS {
        return Err(format!(
            "it has {} collectives apart from each other, and fewer than {MIN_BLOCKS} do not tell one time from another",
            blocks.len()
        ));
    }
    let (Some((begin, end)), Some(origin)) = (activity.span(), calls.first().map(|call| call.start)) else {
        return Err("the capture has no traffic".to_owned());
    };
    let length = median(blocks.iter().map(Block::length).collect());
    let trace_length = blocks.last().map_or(0.0, |block| block.end);
    let mut width = activity.width.max(1);
    while float(end - begin) / float(width) + trace_length / float(width) > float(MAX_SLOTS) {
        width *= 2;
    }
    if float(width) > length / 2.0 {
        return Err(format!(
            "its collectives take {}, and the traffic is only known in steps of {}\nhint: a smaller --bin, or a shorter capture",
            Span(whole(length)),
            Span(width)
        ));
    }
    let base = i128::from(begin) - i128::from(origin);
    let bursts = Bursts::new(activity, begin, length);
    let candidates = candidates(activity, (begin, end), &blocks, (width, length), base, near);
    let mut fits: Vec<Fit> = candidates
        .into_iter()
        .filter_map(|offset| fit(offset, &blocks, calls, &bursts, length))
        .collect();
    fits.sort_by(|a, b| b.evidence.total_cmp(&a.evidence));
    let best = fits.first().filter(|best| best.quality >= MIN_QUALITY);
    let Some(best) = best else {
        return Err("its collectives fit the bursts of the traffic nowhere".to_owned());
    };
    let unit = float(activity.width);
    let rival = fits.iter().skip(1).find(|other| {
        let is_same = (other.offset - best.offset).abs() <= 2.0 * unit;
        !is_same && other.evidence > best.evidence - MIN_LEAD
    });
    if let Some(rival) = rival {
        let apart = Span(whole((rival.offset - best.offset).abs()));
        return Err(format!(
            "its collectives fit the traffic at several times, {apart} apart: steps that are alike do not say which is which"
        ));
    }
    let mut uncertainty = unit / 2.0 + 2.0 * 1.4826 * best.spread + TAIL_NS;
    if best.drift.is_none() {
        uncertainty += USUAL_DRIFT * best.span / 2.0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a length of time within the trace"
    )]
    let middle = origin.saturating_add(best.middle.round() as i64);
    Ok(Clock {
        base,
        offset: best.offset,
        middle,
        drift: best.drift,
        uncertainty: whole(uncertainty.ceil()),
        matched: best.matched,
    })
}

/// Offsets at which the two series look alike, the best first.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "numbers of slots, of which there are at most a million"
)]
fn candidates(
    activity: &Activity,
    (begin, end): (u64, u64),
    blocks: &[Block],
    (width, length): (u64, f64),
    base: i128,
    near: Option<i64>,
) -> Vec<f64> {
    let unit = width as f64;
    let mut traffic = vec![0.0; ((end - begin).div_ceil(width)) as usize];
    for (slot, bytes) in &activity.slots {
        let at = (slot.saturating_mul(activity.width) - begin) / width;
        if let Some(sum) = traffic.get_mut(at as usize) {
            *sum += float(*bytes);
        }
    }
    // No burst outweighs those of other rates.
    let mut busy: Vec<f64> = traffic.iter().copied().filter(|bytes| *bytes > 0.0).collect();
    busy.sort_by(f64::total_cmp);
    let full = busy.get(busy.len() * 95 / 100).copied().unwrap_or(1.0);
    for bytes in &mut traffic {
        *bytes = (*bytes / full).min(1.0);
    }

    let last = blocks.last().map_or(0.0, |block| block.end);
    let mut called = vec![0.0; (last / unit).ceil() as usize + 1];
    let mut ends = vec![0u32; called.len() + 1];
    for block in blocks {
        for at in (block.start / unit) as usize..=(block.end / unit) as usize {
            let covered = block.end.min((at + 1) as f64 * unit) - block.start.max(at as f64 * unit);
            if let Some(sum) = called.get_mut(at) {
                *sum = f64::min(*sum + covered / unit, 1.0);
            }
        }
        if let Some(count) = ends.get_mut((block.end / unit) as usize + 1) {
            *count += 1;
        }
    }
    let sums = correlation(&traffic, &called);
    let (of_traffic, of_called) = (Prefix::new(&traffic), Prefix::new(&called));
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    let mut scored: Vec<(f64, f64)> = Vec::new();
    for (sum, lag) in sums.iter().zip(1 - called.len() as i64..) {
        let offset = lag as f64 * unit;
        if near.is_some_and(|near| (base as f64 + offset).abs() > near as f64) {
            continue;
        }
        let low = lag.max(0) as usize;
        let high = traffic.len().min((called.len() as i64 + lag).max(0) as usize);
        if high <= low {
            continue;
        }
        let (from, to) = ((low as i64 - lag) as usize, (high as i64 - lag) as usize);
        let whole_ones = ends[to.min(ends.len() - 1)] - ends[from.min(ends.len() - 1)];
        if (whole_ones as usize) < MIN_BLOCKS {
            continue;
        }
        let count = (high - low) as f64;
        let (a, aa) = of_traffic.between(low, high);
        let (b, bb) = of_called.between(from, to);
        let scale = ((aa - a * a / count) * (bb - b * b / count)).sqrt();
        let score = (sum - a * b / count) / scale;
        if score >= MIN_CORRELATION {
            scored.push((score, offset));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut chosen: Vec<f64> = Vec::new();
    for (_, offset) in scored {
        if chosen.iter().all(|other| (other - offset).abs() > length / 2.0) {
            chosen.push(offset);
            if chosen.len() >= MAX_CANDIDATES {
                break;
            }
        }
    }
    chosen
}

/// Sums of a series and of its squares up to each place.
struct Prefix(Vec<(f64, f64)>);

impl Prefix {
    fn new(values: &[f64]) -> Self {
        let mut sums = Vec::with_capacity(values.len() + 1);
        let (mut sum, mut squares) = (0.0, 0.0);
        sums.push((sum, squares));
        for value in values {
            sum += value;
            squares += value * value;
            sums.push((sum, squares));
        }
        Self(sums)
    }

    fn between(&self, low: usize, high: usize) -> (f64, f64) {
        let at = |place: usize| self.0.get(place).or(self.0.last()).copied().unwrap_or_default();
        let (low, high) = (at(low), at(high));
        (high.0 - low.0, high.1 - low.1)
    }
}

/// Joins the ends of collectives with the ends of bursts, and lays a line through them.
fn fit(offset: f64, blocks: &[Block], calls: &[Interval], bursts: &Bursts, length: f64) -> Option<Fit> {
    let window = (4.0 * bursts.width).max(length / 4.0);
    let overlapping: Vec<&Block> = blocks
        .iter()
        .filter(|block| block.start + offset >= -window && block.end + offset <= bursts.end + window)
        .collect();
    if overlapping.len() < MIN_BLOCKS {
        return None;
    }
    // From the middle outwards, so that a drift is followed.
    let middle = overlapping.len() / 2;
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    let mut follow = |blocks: &mut dyn Iterator<Item = &&Block>| {
        let mut current = offset;
        for block in blocks {
            let Some(edge) = bursts.end_near(block.end + current, window) else {
                continue;
            };
            let found = edge - bursts.width / 2.0 - block.end;
            pairs.push((block.end, found));
            current += 0.3 * (found - current);
        }
    };
    follow(&mut overlapping.iter().skip(middle));
    follow(&mut overlapping.iter().take(middle).rev());
    if pairs.len() < MIN_BLOCKS {
        return None;
    }
    let (first, last) = pairs.iter().fold((f64::MAX, f64::MIN), |(low, high), pair| {
        (low.min(pair.0), high.max(pair.0))
    });
    let at = f64::midpoint(first, last);
    let (offset, drift) = line(&pairs, at, last - first);
    let distance = |pair: &(f64, f64)| pair.1 - offset - drift.unwrap_or_default() * (pair.0 - at);
    let spread = median(pairs.iter().map(|pair| distance(pair).abs()).collect());
    let tolerance = (3.0 * bursts.width).max(MIN_TOLERANCE_NS);
    let matched = pairs
        .iter()
        .filter(|pair| distance(pair).abs() <= tolerance)
        .count() as u64;
    let share = float(matched) / float(overlapping.len() as u64);
    let chance = bursts.chance(tolerance);
    let deviation = (1.4826 * spread).max(bursts.width / 2.0);
    let height = 2.0 * window * (1.0 - STRAY_SHARE) / (deviation * std::f64::consts::TAU.sqrt());
    let odds = |pair: &(f64, f64)| {
        let bell = (-0.5 * (distance(pair) / deviation).powi(2)).exp();
        height.mul_add(bell, STRAY_SHARE).ln()
    };
    let strays = float((overlapping.len() - pairs.len()) as u64) * STRAY_SHARE.ln();
    let evidence = pairs.iter().map(odds).sum::<f64>() + strays;
    let sizes = bursts.agreement(
        calls,
        offset + drift.unwrap_or_default() * -at,
        drift.unwrap_or_default(),
    );
    Some(Fit {
        offset,
        drift,
        quality: ((share - chance) / (1.0 - chance)) * sizes,
        evidence: evidence * sizes,
        spread,
        matched,
        middle: at,
        span: last - first,
    })
}

/// Offset at `middle`, and the drift where it can be measured. Pairs far from the line do not count.
fn line(pairs: &[(f64, f64)], middle: f64, span: f64) -> (f64, Option<f64>) {
    let centre = median(pairs.iter().map(|pair| pair.1).collect());
    if pairs.len() < DRIFT_BLOCKS || span < DRIFT_SPAN_NS {
        return (centre, None);
    }
    let (mut offset, mut drift) = (centre, 0.0);
    for _ in 0..4 {
        let distance = |pair: &&(f64, f64)| (pair.1 - offset - drift * (pair.0 - middle)).abs();
        let limit = 4.0 * median(pairs.iter().map(|pair| distance(&pair)).collect()) + 1.0;
        let kept: Vec<&(f64, f64)> = pairs.iter().filter(|pair| distance(pair) <= limit).collect();
        let count = float(kept.len() as u64);
        let (x, y) = kept
            .iter()
            .fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 - middle, sum.1 + pair.1));
        let (x, y) = (x / count, y / count);
        let (mut across, mut along) = (0.0, 0.0);
        for pair in &kept {
            across += (pair.0 - middle - x) * (pair.1 - y);
            along += (pair.0 - middle - x).powi(2);
        }
        if along <= 0.0 {
            return (centre, None);
        }
        drift = (across / along).clamp(-MAX_DRIFT, MAX_DRIFT);
        offset = y - drift * x;
    }
    (offset, Some(drift))
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "times of some minutes"
)]
mod tests;
