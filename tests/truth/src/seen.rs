//! Results of the analysis for a case: its rows, kept as they come.

use roce_model::{Columns as _, EventColumns, FlowRow, RunSummary, Sink, SinkError};

/// An event, as the table has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Time, in nanoseconds since the epoch.
    pub time: u64,
    /// Its kind's name.
    pub kind: String,
    /// The tap's number.
    pub tap: u32,
    /// The flow; empty without one.
    pub flow: String,
    /// The PSN; 0 without one.
    pub psn: u32,
    /// The value; `None` without one.
    pub value: Option<u64>,
    /// The detail; empty without one.
    pub detail: String,
}

/// All results of one run of the analysis.
#[derive(Debug, Default)]
pub struct Seen {
    /// The flows.
    pub flows: Vec<FlowRow>,
    /// The events.
    pub events: Vec<Event>,
    /// The rest.
    pub summary: RunSummary,
}

impl Sink for Seen {
    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            self.events.push(Event {
                time: rows.time.at(row).copied().unwrap_or_default(),
                kind: rows.kind.at(row).map(ToString::to_string).unwrap_or_default(),
                tap: rows.tap.at(row).copied().unwrap_or_default(),
                flow: rows
                    .flow_id
                    .at(row)
                    .map(|id| format!("{id:016x}"))
                    .unwrap_or_default(),
                psn: rows.psn.at(row).copied().unwrap_or_default(),
                value: rows.value.at(row).copied(),
                detail: rows.detail.at(row).map(ToString::to_string).unwrap_or_default(),
            });
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flows.extend_from_slice(rows);
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.summary = run.clone();
        Ok(())
    }
}
