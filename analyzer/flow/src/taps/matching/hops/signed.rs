//! Times between two taps, which can be negative.

use crate::timing::distribution::{Distribution, Summary};

/// A distribution of times that can be negative, because clocks agree only approximately.
#[derive(Clone, Debug, Default)]
pub(super) struct SignedDistribution {
    /// Negative times, by their absolute values.
    pub(super) below: Distribution,
    pub(super) above: Distribution,
}

impl SignedDistribution {
    pub(super) fn summary(&self) -> SignedSummary {
        SignedSummary {
            below: self.below.summary(),
            above: self.above.summary(),
        }
    }
}

/// Results of such a distribution.
pub(super) struct SignedSummary {
    below: Summary,
    above: Summary,
}

impl SignedSummary {
    /// The value that `percent` of the samples do not exceed (nearest rank), 0 being the least; of the samples with the
    /// opposite sign when they are not `upwards`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "times between two taps: 2^53 ns are 104 days"
    )]
    pub(super) fn quantile(&self, percent: u64, upwards: bool) -> Option<f64> {
        let (below, above) = if upwards {
            (&self.below, &self.above)
        } else {
            (&self.above, &self.below)
        };
        let rank = ((below.count() + above.count()) * percent).div_ceil(100).max(1);
        let exact = |summary: &Summary, from_top: bool| if from_top { summary.max() } else { summary.min() };
        let value = match rank.checked_sub(below.count() + 1) {
            // The furthest below zero is the least.
            None if rank == 1 => -(exact(below, true)? as f64),
            None => -(below.ranked(below.count() + 1 - rank)? as f64),
            Some(0) => exact(above, false)? as f64,
            Some(past) => above.ranked(past + 1)? as f64,
        };
        // Zero has no sign.
        Some(value + 0.0)
    }
}
