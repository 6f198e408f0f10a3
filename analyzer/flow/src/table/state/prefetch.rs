//! Prefetching of a flow's state before it is needed, by purpose.

use crate::table::state::{Cold, Hot};
use crate::timing::distribution::Distribution;
use crate::timing::latency::Times;
use roce_model::prefetch;

impl Hot {
    /// Prefetches what every packet needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.packed);
        prefetch(&self.last_request);
        prefetch(&self.counts);
    }

    /// Prefetches all of it.
    #[inline]
    pub(crate) fn prefetch_all(&self) {
        self.prefetch();
        prefetch(&self.icrc_checked);
    }
}

impl Cold {
    /// Prefetches what closing a row needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.id);
        self.totals.prefetch();
    }

    /// Prefetches what a request needs.
    #[inline]
    pub(crate) fn prefetch_for_request(&self) {
        prefetch(&self.times);
    }

    /// Prefetches what the answer to one needs.
    #[inline]
    pub(crate) fn prefetch_for_answer(&self) {
        prefetch(&self.times);
        prefetch(&self.tracker);
    }

    /// Prefetches what a request after a silence needs.
    #[inline]
    pub(crate) fn prefetch_for_silence(&self) {
        prefetch(&self.division);
        self.tracker.prefetch_for_silence();
    }

    /// Prefetches what such a request needs behind pointers.
    #[inline]
    pub(crate) fn prefetch_behind_silence(&self) {
        if let Some(division) = self.division.as_deref() {
            division.prefetch();
        }
        if let Some(answers) = self.tracker.answers() {
            prefetch(answers);
        }
    }

    /// Prefetches what is needed to look at the flow's rate, or to note a mark.
    #[inline]
    pub(crate) fn prefetch_for_pace(&self) {
        self.prefetch();
        prefetch(&self.meter);
        prefetch(&self.congestion);
        prefetch(&self.responses);
    }

    /// Prefetches all that neither a row nor a packet needs.
    #[inline]
    pub(crate) fn prefetch_rest(&self) {
        prefetch(&self.kinds);
        prefetch(&self.first_time);
        prefetch(&self.tracker);
        prefetch(&self.pending_read);
    }

    /// Prefetches what the flow's end needs behind pointers.
    #[inline]
    pub(crate) fn prefetch_behind(&self) {
        if let Some(times) = self.times.as_deref() {
            times.prefetch_for_answer();
        }
        if let Some(congestion) = self.congestion.as_deref() {
            congestion.prefetch();
        }
    }

    /// Its distributions.
    #[inline]
    fn distributions(&self) -> impl Iterator<Item = &Distribution> {
        let times = self.times.as_deref().map(Times::distributions);
        times.into_iter().flatten().chain([&self.lengths])
    }

    /// Prefetches what these have counted.
    #[inline]
    pub(crate) fn prefetch_samples(&self) {
        self.distributions().for_each(Distribution::prefetch_all);
    }

    /// Prefetches the counts of it.
    #[inline]
    pub(crate) fn prefetch_counts(&self) {
        self.distributions().for_each(Distribution::prefetch_all_counts);
    }
}
