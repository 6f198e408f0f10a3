//! Distributions of lengths and times, one or more to a flow: exact while they are small, then log buckets.
//!
//! A crate was looked for and not taken: those that keep a bounded error (HdrHistogram, DDSketch) start at several
//! kilobytes, and a flow has 3 KB in all.

use roce_model::prefetch;

/// A distribution of unsigned values.
///
/// Up to 16 samples are kept as they are. Beyond that 128 buckets of 4 bytes count them: eight to each power of two,
/// so that a quantile is within 6.25 % of a sample (half of a bucket, 1/8 wide). They cover the 16 powers of two
/// below the largest value; smaller ones share the lowest bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    /// The last sample, and how often it came in a row. Lengths repeat.
    last: u64,
    repeats: u32,
    /// Number of used places of `waiting`.
    waits: u8,
    /// Samples before the last one that are not counted yet: what counts them lies apart, seldom in a cache, and is touched
    /// for several at once.
    waiting: [u64; BUFFERED],
    /// All others, once there are some.
    counted: Option<Box<CountedSamples>>,
}

const BUFFERED: usize = 3;

/// State of the counted samples: a cache line that has the places of the counts that a sample changes.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct CountedSamples {
    count: u64,
    min: u64,
    max: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    store: Store,
}

#[derive(Clone, Debug, Default)]
enum Store {
    #[default]
    Empty,
    Exact(Box<[u64; EXACT]>),
    Buckets(Buckets),
}

const EXACT: usize = 16;
/// Number of buckets.
const WINDOW: u32 = 128;
const BUCKETS: usize = WINDOW as usize;

#[derive(Clone, Debug)]
struct Buckets {
    /// The bucket number of `counts[0]`.
    base: u32,
    counts: Box<[u32; BUCKETS]>,
}

/// The bucket of a value: values below 8 have one each, then the power of two and its next three bits.
fn bucket(value: u64) -> u32 {
    let Some(power) = value.checked_ilog2().filter(|power| *power >= 3) else {
        return u32::try_from(value).unwrap_or_default();
    };
    let eighth = u32::try_from(value >> (power - 3) & 7).unwrap_or_default();
    (power - 2) * 8 + eighth
}

/// The middle of a bucket.
fn middle(bucket: u32) -> u64 {
    if bucket < 8 {
        return bucket.into();
    }
    let power = bucket / 8 + 2;
    let low = (8 + u64::from(bucket) % 8) << (power - 3);
    low + (1 << (power - 3)) / 2
}

impl Buckets {
    /// None counted yet; `largest` has a bucket, and as many below it as there is room for.
    fn up_to(largest: u64) -> Self {
        Self {
            base: bucket(largest).saturating_sub(WINDOW - 1),
            counts: Box::new([0; BUCKETS]),
        }
    }

    #[inline]
    fn add(&mut self, value: u64, times: u64) {
        let bucket = bucket(value);
        if bucket.wrapping_sub(self.base) >= WINDOW {
            self.make_room(bucket);
        }
        let count = &mut self.counts[self.place(bucket)];
        *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
    }

    /// Place of a bucket's count, or of its future count.
    #[inline]
    fn place(&self, bucket: u32) -> usize {
        (bucket.saturating_sub(self.base) as usize).min(BUCKETS - 1)
    }

    /// Moves the counts, so that the bucket has one of its own if that can be.
    #[cold]
    fn make_room(&mut self, bucket: u32) {
        if bucket >= self.base {
            // The lowest ones are folded into one.
            let shift = bucket - self.base - (WINDOW - 1);
            let folded = (shift as usize).min(BUCKETS - 1);
            let sum = self.counts[..=folded]
                .iter()
                .fold(0, |sum: u32, count| sum.saturating_add(*count));
            self.counts.copy_within(folded.., 0);
            self.counts[BUCKETS - folded..].fill(0);
            self.counts[0] = sum;
            self.base += shift;
        } else if self.counts[0] == 0 {
            // Room at the top is room for smaller ones.
            let unused = self.counts.iter().rev().take_while(|count| **count == 0).count();
            let shift = u32::try_from(unused).unwrap_or(WINDOW).min(self.base - bucket);
            let places = shift as usize;
            self.counts.copy_within(..BUCKETS - places, places);
            self.counts[..places].fill(0);
            self.base -= shift;
        }
    }
}

impl Distribution {
    /// True if it has a sample.
    pub(super) fn has_samples(&self) -> bool {
        self.repeats > 0
    }

    /// Adds a sample.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        if value == self.last && self.repeats < u32::MAX {
            self.repeats += 1;
            return;
        }
        let waits = usize::from(self.waits);
        if self.repeats == 1 && waits < BUFFERED {
            self.waiting[waits] = self.last;
            self.waits += 1;
        } else {
            self.settle();
        }
        (self.last, self.repeats) = (value, 1);
    }

    /// The counters of its samples, when they are about to be needed.
    #[inline]
    fn needs(&self) -> Option<&CountedSamples> {
        self.counted
            .as_deref()
            .filter(|_| usize::from(self.waits) == BUFFERED)
    }

    /// Prefetches the counters of its samples, when they are about to be needed.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(counted) = self.needs() {
            prefetch(counted);
        }
    }

    /// Prefetches the counts that change then.
    #[inline]
    pub(crate) fn prefetch_counts(&self) {
        if let Some(Store::Buckets(buckets)) = self.needs().map(|counted| &counted.store) {
            for value in self.waiting.into_iter().chain([self.last]) {
                prefetch(&buckets.counts[buckets.place(bucket(value))]);
            }
        }
    }

    /// Prefetches the state of its samples.
    #[inline]
    pub(crate) fn prefetch_all(&self) {
        if let Some(counted) = self.counted.as_deref() {
            prefetch(counted);
        }
    }

    /// Prefetches their counts.
    #[inline]
    pub(crate) fn prefetch_all_counts(&self) {
        match self.counted.as_deref().map(|counted| &counted.store) {
            Some(Store::Exact(samples)) => samples.chunks(8).for_each(|line| prefetch(&line[0])),
            Some(Store::Buckets(buckets)) => buckets.counts.chunks(16).for_each(|line| prefetch(&line[0])),
            Some(Store::Empty) | None => {}
        }
    }

    /// Counts the samples that are not counted yet.
    fn settle(&mut self) {
        if self.repeats == 0 {
            return;
        }
        let mut counted = self.counted.take().unwrap_or_default();
        self.count_into(&mut counted);
        self.counted = Some(counted);
        (self.waits, self.repeats) = (0, 0);
    }

    /// Adds the samples that are not counted yet, in their order.
    fn count_into(&self, counted: &mut CountedSamples) {
        for value in &self.waiting[..usize::from(self.waits)] {
            counted.add(*value, 1);
        }
        counted.add(self.last, self.repeats.into());
    }

    /// Its summary, all samples counted.
    pub(crate) fn summary(&self) -> Summary {
        let mut all = self.counted.as_deref().cloned().unwrap_or_default();
        self.count_into(&mut all);
        if let Store::Exact(samples) = &mut all.store {
            samples[..exact(all.count)].sort_unstable();
        }
        Summary(all)
    }
}

impl CountedSamples {
    /// Counts a sample that came `times` times.
    #[expect(clippy::cast_precision_loss, reason = "mean and deviation are floating point")]
    fn add(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        // Two sets with known means and squares, one of them all alike, put together (Chan, Golub, LeVeque 1983).
        let (before, after) = (self.count as f64, (self.count + times) as f64);
        let distance = value as f64 - self.mean;
        self.mean += distance * times as f64 / after;
        self.squares += distance * distance * before * times as f64 / after;
        let from = usize::try_from(self.count).unwrap_or(usize::MAX);
        self.count += times;
        let to = usize::try_from(self.count).unwrap_or(usize::MAX);
        match &mut self.store {
            store @ Store::Empty if to <= EXACT => {
                let mut samples = Box::new([0; EXACT]);
                samples[..to].fill(value);
                *store = Store::Exact(samples);
            }
            Store::Exact(samples) if to <= EXACT => samples[from..to].fill(value),
            Store::Buckets(buckets) => buckets.add(value, times),
            store => {
                let mut buckets = Buckets::up_to(self.max);
                if let Store::Exact(samples) = store {
                    samples[..from].iter().for_each(|sample| buckets.add(*sample, 1));
                }
                buckets.add(value, times);
                *store = Store::Buckets(buckets);
            }
        }
    }
}

/// Number of samples that are kept exactly while all of `count` are.
fn exact(count: u64) -> usize {
    usize::try_from(count).unwrap_or(EXACT).min(EXACT)
}

/// A distribution whose samples are all counted; those that are kept exactly are in order.
pub(crate) struct Summary(CountedSamples);

impl Summary {
    /// Number of samples.
    pub(crate) const fn count(&self) -> u64 {
        self.0.count
    }

    /// The smallest sample.
    pub(crate) fn min(&self) -> Option<u64> {
        (self.0.count > 0).then_some(self.0.min)
    }

    /// The largest sample.
    pub(crate) fn max(&self) -> Option<u64> {
        (self.0.count > 0).then_some(self.0.max)
    }

    /// Standard deviation of the samples (of the whole population, not an estimate from a part of it).
    #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
    pub(crate) fn stddev(&self) -> Option<f64> {
        let CountedSamples { count, squares, .. } = self.0;
        (count > 0).then(|| (squares / count as f64).max(0.0).sqrt())
    }

    /// The value that `percent` of the samples do not exceed (nearest rank).
    pub(crate) fn quantile(&self, percent: u64) -> Option<u64> {
        self.ranked((self.0.count * percent).div_ceil(100).max(1))
    }

    /// The smallest sample with `rank` samples, itself included, that are not larger.
    pub(crate) fn ranked(&self, rank: u64) -> Option<u64> {
        match &self.0.store {
            Store::Empty => None,
            Store::Exact(samples) => {
                let place = usize::try_from(rank - 1).ok()?;
                samples[..exact(self.0.count)].get(place).copied()
            }
            Store::Buckets(buckets) => {
                let mut below = 0;
                for (bucket, count) in (buckets.base..).zip(buckets.counts.iter()) {
                    below += u64::from(*count);
                    if below >= rank {
                        return Some(middle(bucket).clamp(self.0.min, self.0.max));
                    }
                }
                Some(self.0.max)
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "numbers of a test")]
mod tests {
    use super::*;

    fn summary_of(values: impl IntoIterator<Item = u64>) -> Summary {
        let mut distribution = Distribution::default();
        values.into_iter().for_each(|value| distribution.add(value));
        distribution.summary()
    }

    #[test]
    fn few_samples_are_exact() {
        let d = summary_of([5, 1, 9, 3]);
        assert_eq!((d.min(), d.max()), (Some(1), Some(9)));
        // Nearest rank: p50 of 4 is the 2nd, p90 and p99 the 4th.
        assert_eq!(
            (d.quantile(50), d.quantile(90), d.quantile(99)),
            (Some(3), Some(9), Some(9))
        );
        // mean 4.5, squares 0.25 + 12.25 + 20.25 + 2.25 = 35, 35 / 4 = 8.75.
        assert!((d.stddev().unwrap() - 8.75f64.sqrt()).abs() < 1e-12);
        assert_eq!(Distribution::default().summary().quantile(50), None);
    }

    #[test]
    fn many_samples_stay_within_the_stated_error() {
        let d = summary_of(1..=100_000);
        for percent in [1, 10, 50, 90, 99, 100] {
            let exact = 1_000.0 * percent as f64;
            let got = d.quantile(percent).unwrap() as f64;
            assert!(
                (got - exact).abs() / exact <= 0.0625,
                "p{percent}: {got} for {exact}"
            );
        }
        assert_eq!((d.min(), d.max()), (Some(1), Some(100_000)));
        // A uniform distribution's deviation: sqrt((n^2 - 1) / 12).
        assert!((d.stddev().unwrap() - ((1e10 - 1.0) / 12.0f64).sqrt()).abs() < 1e-3);
    }

    #[test]
    fn buckets_follow_the_largest_value_and_fold_the_smallest() {
        // 1 and 2^40 are 40 powers of two apart; 16 are kept.
        let d = summary_of((0..17).map(|_| 1).chain((0..100).map(|_| 1 << 40)));
        let p50 = d.quantile(50).unwrap() as f64;
        assert!((p50 / 2f64.powi(40) - 1.0).abs() <= 0.0625);
        assert_eq!(d.min(), Some(1));
        // In the other direction: a small window grows downwards while there is room.
        let d = summary_of((0..17).map(|_| 1 << 20).chain((0..100).map(|_| 1 << 10)));
        let p50 = d.quantile(50).unwrap() as f64;
        assert!((p50 / 1024.0 - 1.0).abs() <= 0.0625, "{p50}");
    }

    #[test]
    fn repeated_samples_count_each() {
        let d = summary_of((0..10).map(|_| 4).chain((0..30).map(|_| 8)));
        assert_eq!(
            (d.quantile(25), d.quantile(26), d.quantile(100)),
            (Some(4), Some(8), Some(8))
        );
        // mean 7: 10 * 9 + 30 * 1 = 120, 120 / 40 = 3.
        assert!((d.stddev().unwrap() - 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(
            summary_of([0, 0, 0]).max(),
            Some(0),
            "the first sample may be the initial value"
        );
    }

    #[test]
    fn bucket_borders() {
        assert_eq!(bucket(7), 7);
        assert_eq!(bucket(8), 8);
        assert_eq!(bucket(15), 15);
        assert_eq!(bucket(16), 16);
        assert_eq!(bucket(u64::MAX), 61 * 8 + 7);
        for value in [1u64, 8, 100, 1024, 5_000_000, 1 << 50, u64::MAX / 3] {
            let error = (middle(bucket(value)) as f64 / value as f64 - 1.0).abs();
            assert!(error <= 0.0625, "{value}: {error}");
        }
    }
}
