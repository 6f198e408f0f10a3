//! Answers that a tap records before their requests.

use roce_wire::Psn;

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::psn::request::LARGEST_GAP;

impl Analysis {
    /// An answer for a request that the flow at `at` has not shown yet. Where the request is recorded later, the tap does not record in the
    /// order of the wire: it mirrors the two directions with different delays.
    #[cold]
    pub(super) fn note_early(&mut self, at: FlowSlot, psn: Psn) {
        let requests = &self.table.hot[at].requests;
        let cold = &mut self.table.cold[at];
        let trouble = cold.trouble.get_or_insert_default();
        if let Some(earlier) = trouble.early {
            let sent = requests.expected().offset_from(earlier);
            if requests.next != 0 && (-LARGEST_GAP..=0).contains(&sent) {
                // Its request has not come yet.
                return;
            }
            let is_recorded = requests.next != 0 && sent > 0 && !cold.tracker.misses(requests, earlier);
            trouble.early_answers = trouble.early_answers.saturating_add(u32::from(is_recorded));
        }
        trouble.early = Some(psn);
    }
}
