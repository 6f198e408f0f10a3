//! The flows that `--flow` chooses: where there are none, a warning says so.

use roce_model::{FlowRow, RunSummary, Sink, SinkError};

use crate::output::messages;

/// Looks whether any flow matched.
#[derive(Default)]
pub(crate) struct ChosenFlows {
    has_any: bool,
}

impl Sink for ChosenFlows {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.has_any |= !rows.is_empty();
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        if !self.has_any && run.totals.roce_packets > 0 {
            messages::warn("--flow", "no flow matches");
        }
        Ok(())
    }
}
