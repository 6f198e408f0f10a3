//! Measures of a live run besides its tables: times in buckets, and the steps of a training job as they come.

use crate::{Span, TapId, Time, TimeByState};

/// Times in buckets whose bounds double, from 1 us to 65.536 ms; one more bucket has all longer times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeBuckets {
    counts: [u64; TimeBuckets::BOUNDS + 1],
    sum: u64,
}

impl TimeBuckets {
    /// Number of buckets that have an upper bound.
    pub const BOUNDS: usize = 17;

    /// Upper bound of a bucket, which is itself in the bucket: 1 us times a power of two.
    pub fn bound(bucket: usize) -> Span {
        Span(1_000 << bucket.min(Self::BOUNDS - 1))
    }

    /// Counts a time.
    #[inline]
    pub fn add(&mut self, took: Span) {
        // The smallest power of two of microseconds that the time does not exceed.
        let whole = took.0.saturating_sub(1) / 1_000;
        let bucket = (u64::BITS - whole.leading_zeros()) as usize;
        let count = &mut self.counts[bucket.min(Self::BOUNDS)];
        *count = count.saturating_add(1);
        self.sum = self.sum.saturating_add(took.0);
    }

    /// Adds the times of others.
    pub fn merge(&mut self, others: &Self) {
        for (count, more) in self.counts.iter_mut().zip(others.counts) {
            *count = count.saturating_add(more);
        }
        self.sum = self.sum.saturating_add(others.sum);
    }

    /// Number of times in each bucket; the last one has no upper bound.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Sum of all times.
    pub fn sum(&self) -> Span {
        Span(self.sum)
    }
}

/// Measurements at one tap since the start of a live run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapMeasures {
    /// Times from an ack-requested packet to the response that covers it, as in the columns `ack_rtt_*` of flows.
    pub ack_rtt: TimeBuckets,
    /// Times from the first packet of a message to its acknowledgement, as in the columns `message_time_*` of flows.
    pub message: TimeBuckets,
    /// Retransmitted application data that had been captured before.
    pub wasted_bytes: u64,
    /// Where the time of flows with requests went, up to what was decided last of each.
    pub times: TimeByState,
}

impl TapMeasures {
    /// Adds the measurements of others.
    pub fn merge(&mut self, others: &Self) {
        self.ack_rtt.merge(&others.ack_rtt);
        self.message.merge(&others.message);
        self.wasted_bytes = self.wasted_bytes.saturating_add(others.wasted_bytes);
        self.times.add_all(&others.times);
    }
}

/// Steps of the training job that sends most at a tap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSteps {
    /// The tap.
    pub tap: TapId,
    /// Starts of its steps that have ended, in the order of time. Of a long run, the latest ones.
    pub starts: Vec<Time>,
    /// Time from the first to the last packet of the last of them.
    pub last: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_in_its_bucket() {
        // 1 us x 2^n for n = 0..=16; 65.536 ms is the last bound.
        assert_eq!(TimeBuckets::bound(0), Span(1_000));
        assert_eq!(TimeBuckets::bound(16), Span(65_536_000));
        for (took, bucket) in [
            (0, 0),
            (1_000, 0),
            (1_001, 1),
            (2_000, 1),
            (2_001, 2),
            (65_536_000, 16),
            (65_536_001, 17),
            (u64::MAX, 17),
        ] {
            let mut times = TimeBuckets::default();
            times.add(Span(took));
            let found = times.counts().iter().position(|count| *count == 1);
            assert_eq!(found, Some(bucket), "{took} ns");
            assert_eq!(times.sum(), Span(took));
        }
    }

    #[test]
    fn shards_add_up() {
        let (mut one, mut other) = (TapMeasures::default(), TapMeasures::default());
        one.ack_rtt.add(Span(1_500));
        other.ack_rtt.add(Span(1_700));
        other.message.add(Span(40_000));
        (one.wasted_bytes, other.wasted_bytes) = (4_096, 1_024);
        one.merge(&other);
        assert_eq!((one.ack_rtt.counts()[1], one.ack_rtt.sum()), (2, Span(3_200)));
        // 40 us are more than 32 us, and not more than 64 us.
        assert_eq!(one.message.counts()[6], 1);
        assert_eq!(one.wasted_bytes, 5_120);
    }
}
