//! Results that an analysis hands out, kept for the last table.

use roce_model::{EventColumns, FlowRow, RunSummary, Sink, SinkError};

/// Keeps what the analysis hands out.
#[derive(Debug, Default)]
pub(crate) struct DemoResults {
    pub(super) flows: Vec<FlowRow>,
    pub(super) run: RunSummary,
    /// Time in pauses, in ns.
    pub(super) paused: u64,
}

impl Sink for DemoResults {
    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.kind.len() {
            if rows.kind.at(row).is_some_and(|kind| kind == "pause_interval") {
                self.paused += rows.value.at(row).copied().unwrap_or(0);
            }
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flows.extend_from_slice(rows);
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.run = run.clone();
        Ok(())
    }
}
