//! The bursts of one pair of hosts, and whether they have a rhythm: most traffic has none, and then there are no steps.
//!
//! Within a step silences are short, between steps they are long: of all silences in order, the widest step from one to the next
//! (as a ratio) divides the two kinds. Where that leads to bursts at even distances and of even sizes, they are steps.

use roce_model::cast::float;

/// Traffic without a long silence in it. Times are in ns since the epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Burst {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Application data of both directions.
    pub(super) bytes: u64,
}

impl Burst {
    pub(super) fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Bursts at even distances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rhythm {
    pub(super) bursts: Vec<Burst>,
    /// Median time from one start to the next, in ns.
    pub(super) period: u64,
}

/// Fewer bursts are no rhythm. Of six at random times, the chance that all five distances agree (each of four lies within a fifth of
/// the median of an exponential distribution: 0.139) is 4 in 10,000 for one division.
const MIN_BURSTS: usize = 6;
/// One of this number of distances, and of sizes, may be off.
const MISFITS: usize = 8;
/// A distance fits within this part of the median, or when the silence in it does: a step that takes long moves the next
/// one, and what is computed between them takes as long as ever.
const DISTANCE: u64 = 5;
/// Least median of the distances, in bins, that gives a period of enough precision.
const MIN_PERIOD: u64 = 5;
/// A size fits within this share of the median, in percent: retransmissions make a step larger.
const SIZE_PERCENT: u64 = 30;
/// Bursts of less application data than this are heartbeats, not the gradients of a model.
const MIN_BYTES: u64 = 64 << 10;
/// Stretches of less than this part of a usual one are left out: barriers and heartbeats between the bursts.
const NOISE: u64 = 100;
/// Silences of two kinds differ at least by this factor: those in a step, in which all wait for a slow rank, can be more than half as long
/// as those between steps.
const RATIO: f64 = 1.5;
/// Divisions that are tried, the widest first.
const TRIED: usize = 8;

/// A division of the silences: those up to `silence` are within bursts.
#[derive(Clone, Copy, Debug)]
struct Division {
    silence: u64,
    ratio: f64,
}

/// The silences between stretches, in order.
pub(super) fn silences(stretches: &[Burst]) -> Vec<u64> {
    stretches
        .windows(2)
        .map(|two| two[1].start.saturating_sub(two[0].end))
        .collect()
}

/// The stretches, those with silences up to `silence` between them as one.
pub(super) fn join(stretches: &[Burst], silence: u64) -> Vec<Burst> {
    let mut joined: Vec<Burst> = Vec::new();
    for stretch in stretches {
        match joined.last_mut() {
            Some(last) if stretch.start.saturating_sub(last.end) <= silence => {
                last.end = last.end.max(stretch.end);
                last.bytes = last.bytes.saturating_add(stretch.bytes);
            }
            _ => joined.push(*stretch),
        }
    }
    joined
}

/// The bursts of these stretches of traffic, in bins of `bin` ns; `None`: they have no rhythm.
pub(super) fn rhythm(stretches: &[Burst], bin: u64) -> Option<Rhythm> {
    let loud = without_noise(stretches);
    let mut levels = silences(&loud);
    if levels.len() + 1 < MIN_BURSTS {
        return None;
    }
    // A silence of less than a bin cannot be seen.
    levels.push(bin);
    levels.sort_unstable();
    let mut divisions: Vec<Division> = levels
        .windows(2)
        .enumerate()
        .filter(|(below, _)| levels.len() - (below + 1) + 1 >= MIN_BURSTS)
        .map(|(_, two)| Division {
            silence: two[0],
            ratio: ratio(two[1], two[0]),
        })
        .filter(|division| division.ratio >= RATIO)
        .collect();
    divisions.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let mut found: Option<(Rhythm, usize)> = None;
    for division in divisions.iter().take(TRIED) {
        let Some((rhythm, misfits)) = regular(join(&loud, division.silence), bin) else {
            continue;
        };
        // A stall in a step divides it: then a few joints more fit better. Many more would be other bursts.
        let better = found.as_ref().is_none_or(|(best, most)| {
            let (now, before) = (rhythm.bursts.len(), best.bursts.len());
            misfits < *most && now < before && (before - now) * MISFITS <= before
        });
        if better {
            found = Some((rhythm, misfits));
        }
    }
    found.map(|(rhythm, _)| rhythm)
}

/// The stretches without those that are far smaller than the ones in which most bytes are.
fn without_noise(stretches: &[Burst]) -> Vec<Burst> {
    let mut sizes: Vec<u64> = stretches.iter().map(|stretch| stretch.bytes).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let total: u128 = sizes.iter().copied().map(u128::from).sum();
    let mut sum = 0;
    let usual = sizes.into_iter().find(|size| {
        sum += u128::from(*size);
        sum * 2 >= total
    });
    let least = usual.unwrap_or_default() / NOISE;
    let mut loud = stretches.to_vec();
    loud.retain(|stretch| stretch.bytes >= least);
    loud
}

/// The bursts as a rhythm, with how many distances and sizes do not fit; `None` when these are too many.
fn regular(bursts: Vec<Burst>, bin: u64) -> Option<(Rhythm, usize)> {
    if bursts.len() < MIN_BURSTS {
        return None;
    }
    let mut distances: Vec<u64> = bursts
        .windows(2)
        .map(|two| two[1].start.saturating_sub(two[0].start))
        .collect();
    let period = median(&mut distances);
    if period < bin.saturating_mul(MIN_PERIOD) {
        return None;
    }
    let pause = median(&mut silences(&bursts));
    let is_off = |time: u64, usual: u64| time.abs_diff(usual) > usual / DISTANCE;
    let late = bursts
        .windows(2)
        .filter(|two| {
            is_off(two[1].start.saturating_sub(two[0].start), period)
                && is_off(two[1].start.saturating_sub(two[0].end), pause)
        })
        .count();
    let mut sizes: Vec<u64> = bursts.iter().map(|burst| burst.bytes).collect();
    let size = median(&mut sizes);
    let odd = bursts
        .iter()
        .enumerate()
        .filter(|(place, burst)| {
            // The capture may have started or ended within the first and the last.
            let cut = (*place == 0 || place + 1 == bursts.len()) && burst.bytes < size;
            let off = u128::from(burst.bytes.abs_diff(size));
            !cut && off * 100 > u128::from(size) * u128::from(SIZE_PERCENT)
        })
        .count();
    let fits = size >= MIN_BYTES && late * MISFITS <= distances.len() && odd * MISFITS <= sizes.len();
    fits.then_some((Rhythm { bursts, period }, late + odd))
}

/// The middle one, the lower of two; 0 of none. Changes their order.
pub(super) fn median(values: &mut [u64]) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable(middle).1
}

fn ratio(one: u64, other: u64) -> f64 {
    float(one) / float(other.max(1))
}
