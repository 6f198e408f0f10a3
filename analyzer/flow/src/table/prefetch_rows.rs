//! Prefetching of what closing rows and flows needs.

use roce_model::prefetch;

use crate::key::FlowSlot;
use crate::table::FlowTable;
use crate::table::state::Cold;

impl FlowTable {
    /// Prefetches what closing the row of the flow at `at` needs, but for what is behind pointers.
    #[inline]
    pub(crate) fn prefetch_row(&self, at: FlowSlot) {
        if let (Some(hot), Some(cold)) = (self.hot.get(at), self.cold.get(at)) {
            hot.prefetch_all();
            cold.prefetch();
            prefetch(&cold.times);
        }
    }

    /// Prefetches the times of the row of the flow at `at`, whose own state is here by now.
    #[inline]
    pub(crate) fn prefetch_times(&self, at: FlowSlot) {
        if self.hot.get(at).is_some_and(|hot| hot.timed)
            && let Some(times) = self.cold.get(at).and_then(|cold| cold.times.as_deref())
        {
            times.prefetch();
        }
    }

    /// Prefetches what closing the flows at `places` needs.
    pub(crate) fn prefetch_all(&self, places: &[FlowSlot]) {
        for at in places {
            self.prefetch_row(*at);
        }
        for at in places {
            self.prefetch_times(*at);
        }
        for hot in places.iter().filter_map(|at| self.hot.get(*at)) {
            let peer = hot.peer;
            if let (Some(hot), Some(cold)) = (self.hot.get(peer), self.cold.get(peer)) {
                hot.prefetch_all();
                cold.prefetch();
            }
        }
        let all = || places.iter().filter_map(|at| self.cold.get(*at));
        all().for_each(Cold::prefetch_rest);
        all().for_each(Cold::prefetch_behind);
        all().for_each(Cold::prefetch_samples);
        all().for_each(Cold::prefetch_counts);
    }
}
