//! A place where an agent samples: its rate, what passed it, and the samples that did not arrive.

use roce_model::cast::float;

use crate::datagram::FlowSample;

/// The farthest that numbers of samples jump ahead by losses. Beyond it the source began to count again.
const MAX_JUMP: u32 = 1 << 20;
/// Samples by which one comes late at most. Beyond it the source began to count again.
const MAX_LATE: u32 = 4_096;
/// Samples from which the count of packets is preferred to the rate: below, the error of the rate is more than 36 %.
const MIN_SAMPLES: u64 = 30;
/// Packets between two samples that no random choice makes, in multiples of the rate: it comes once in e^64.
const MAX_GAP: u64 = 64;
/// The pool and the rate say nearly the same. A pool that differs by more than this factor counts something else.
const MAX_DIFFERENCE: f64 = 2.0;

/// Basis of a source's totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TotalBasis {
    /// The agent's count of packets.
    Pool,
    /// The sampling rate: there are few samples.
    Rate,
    /// The sampling rate: the agent's count of packets does not fit its samples.
    RateForWrongPool,
}

/// Counts of a source.
#[derive(Clone, Default, Debug)]
pub(crate) struct SampledSource {
    last: Option<LastSample>,
    /// Samples that arrived, and what they stand for by their rates.
    pub(crate) samples: u64,
    pub(crate) weight: f64,
    /// The lowest and the highest N of 1 in N, and how often it changed.
    pub(crate) lowest_rate: u32,
    pub(crate) highest_rate: u32,
    pub(crate) rate_changes: u64,
    /// Samples that were made and did not arrive, by their numbers.
    pub(crate) missing: u64,
    /// Samples that the agent could not make.
    pub(crate) drops: u64,
    /// Packets that passed between samples, by the agent's count.
    pool: u64,
    /// The count went back, or jumped.
    is_pool_wrong: bool,
}

/// Counts of the latest sample.
#[derive(Clone, Copy, Debug)]
struct LastSample {
    sequence: u32,
    rate: u32,
    pool: u32,
    drops: u32,
}

impl SampledSource {
    /// Takes a sample, and returns the packets that it stands for by its rate.
    pub(crate) fn take(&mut self, sample: &FlowSample<'_>) -> f64 {
        let rate = sample.rate.max(1);
        self.samples += 1;
        self.weight += f64::from(rate);
        if self.lowest_rate == 0 {
            self.lowest_rate = rate;
        }
        self.lowest_rate = self.lowest_rate.min(rate);
        self.highest_rate = self.highest_rate.max(rate);
        let next = LastSample {
            sequence: sample.sequence,
            rate,
            pool: sample.pool,
            drops: sample.drops,
        };
        let Some(last) = self.last else {
            self.last = Some(next);
            return f64::from(rate);
        };
        let ahead = next.sequence.wrapping_sub(last.sequence);
        if (1..=MAX_JUMP).contains(&ahead) {
            self.missing += u64::from(ahead - 1);
            self.rate_changes += u64::from(rate != last.rate);
            self.add_counts(last, next, ahead);
        } else if last.sequence.wrapping_sub(next.sequence) < MAX_LATE && next.pool <= last.pool {
            // It came late. What passed is counted already.
            self.missing = self.missing.saturating_sub(1);
            return f64::from(rate);
        }
        self.last = Some(next);
        f64::from(rate)
    }

    fn add_counts(&mut self, last: LastSample, next: LastSample, ahead: u32) {
        // A count that went back was reset.
        let drops = next.drops.saturating_sub(last.drops);
        self.drops += u64::from(drops);
        let passed = u64::from(next.pool.wrapping_sub(last.pool));
        let chosen = u64::from(ahead) + u64::from(drops);
        let farthest = u64::from(last.rate.max(next.rate)).saturating_mul(chosen);
        if passed > farthest.saturating_mul(MAX_GAP) {
            self.is_pool_wrong = true;
        } else {
            self.pool += passed;
        }
    }

    /// Packets for each packet that the samples stand for by their rates, and by what. `counts_missing`: the numbers of samples say which
    /// did not arrive.
    pub(crate) fn factor(&self, counts_missing: bool) -> (f64, TotalBasis) {
        if self.samples == 0 {
            return (1.0, TotalBasis::Rate);
        }
        let missing = if counts_missing { self.missing } else { 0 };
        let made = float(self.samples + missing + self.drops);
        let by_rate = made / float(self.samples);
        if self.samples < MIN_SAMPLES {
            return (by_rate, TotalBasis::Rate);
        }
        // The count runs from the first sample to the last. As much as between two passed before the first one, and behind the last one.
        let by_pool = float(self.pool) * (made + 1.0) / (made - 1.0) / self.weight;
        let is_near = (by_rate / MAX_DIFFERENCE..=by_rate * MAX_DIFFERENCE).contains(&by_pool);
        if is_near && !self.is_pool_wrong {
            (by_pool, TotalBasis::Pool)
        } else {
            (by_rate, TotalBasis::RateForWrongPool)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{Datagram, Sample};

    /// A sample of 1 in `rate`, with the agent's counts.
    fn take(source: &mut SampledSource, [sequence, rate, pool, drops]: [u32; 4]) {
        let words = [sequence, 5, rate, pool, drops, 5, 7, 0];
        let mut bytes: Vec<u8> = [5, 1, 0x0a00_0001, 0, 1, 1, 1, 1, 32]
            .iter()
            .chain(&words)
            .flat_map(|word: &u32| word.to_be_bytes())
            .collect();
        bytes.extend([0; 4]);
        let datagram = Datagram::parse(&bytes).unwrap();
        let Some(Sample::Flow(sample)) = datagram.samples().next() else {
            panic!("{datagram:?}");
        };
        source.take(&sample);
    }

    fn source(samples: impl Iterator<Item = [u32; 4]>) -> SampledSource {
        let mut source = SampledSource::default();
        samples.for_each(|sample| take(&mut source, sample));
        source
    }

    #[test]
    fn the_pool_counts_what_samples_missed() {
        // 101 samples of 1 in 100, with 110 packets between two: 11,000 packets pass between the first one and the last, 110 before and 110 behind.
        let found = source((0..101).map(|n| [n, 100, n * 110, 0]));
        let (factor, basis) = found.factor(true);
        assert!(
            basis == TotalBasis::Pool && (factor - 11_220.0 / 10_100.0).abs() < 1e-9,
            "{factor}"
        );
        // Half of the samples did not arrive: those that did stand for twice as much. 20,000 packets in 200 intervals, and 2 more: 20,200.
        let found = source((0..101).map(|n| [2 * n, 100, 2 * n * 100, 0]));
        assert_eq!(found.missing, 100);
        assert!((found.factor(true).0 - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_pool_that_does_not_count_is_left_out() {
        for pool in [0, 7] {
            let found = source((0..101).map(|n| [n, 100, pool, n]));
            // 100 drops for 101 samples.
            assert_eq!(found.drops, 100);
            let (factor, basis) = found.factor(true);
            assert!(
                basis == TotalBasis::RateForWrongPool && (factor - 201.0 / 101.0).abs() < 1e-9,
                "{factor}"
            );
        }
        // It counts ten times too much.
        let found = source((0..101).map(|n| [n, 100, n * 1_000, 0]));
        assert_eq!(found.factor(true), (1.0, TotalBasis::RateForWrongPool));
        // It goes back.
        let found = source((0..101).map(|n| [n, 100, (200 - n) * 100, 0]));
        assert_eq!(found.factor(true), (1.0, TotalBasis::RateForWrongPool));
    }

    #[test]
    fn counts_wrap_and_rates_change() {
        let found = source((0..101_u32).map(|n| [n.wrapping_sub(50), 100, (n * 100).wrapping_sub(5_000), 0]));
        // 10,000 packets in 100 intervals, 102 of them for 101 samples of 1 in 100.
        let (factor, basis) = found.factor(true);
        assert_eq!((found.missing, basis), (0, TotalBasis::Pool));
        assert!((factor - 10_200.0 / 10_100.0).abs() < 1e-9, "{factor}");
        let found = source((0..10).map(|n| [n, if n < 5 { 100 } else { 200 }, 0, 0]));
        assert_eq!(
            (found.lowest_rate, found.highest_rate, found.rate_changes),
            (100, 200, 1)
        );
    }
}
