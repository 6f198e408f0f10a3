//! Answers that a tap records before their requests.

use roce_wire::Psn;

use crate::analysis::Analysis;
use crate::key::FlowSlot;

impl Analysis {
    /// An answer for a request that the flow at `at` has not shown yet. Where the request is recorded later, the tap does not record in the
    /// order of the wire: it mirrors the two directions with different delays.
    #[cold]
    pub(super) fn note_early(&mut self, at: FlowSlot, psn: Psn) {
        let requests = &self.table.hot[at].requests;
        let cold = &mut self.table.cold[at];
        let trouble = cold.trouble.get_or_insert_default();
        let earlier = trouble.early.replace(psn);
        let came =
            earlier.filter(|earlier| requests.next != 0 && requests.expected().offset_from(*earlier) > 0);
        let is_recorded = came.is_some_and(|earlier| !cold.tracker.misses(requests, earlier));
        trouble.early_answers = trouble.early_answers.saturating_add(u32::from(is_recorded));
    }
}
