//! Results of the analysis for a case: its rows, kept as they come.

use roce_model::{Columns as _, EventColumns, FlowRow, RunSummary, Sink, SinkError};
use serde::{Deserialize, Deserializer};

use crate::score::StatedConfidence;

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

/// A row of the table `waits`: a port that waits for another one. Names are empty where the row has none.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// The flow that waits because of it; with a share the flow that the root's port carries.
    pub victim_flow: String,
    /// Node of the port that waits.
    pub node: String,
    /// The port that waits.
    pub port: String,
    /// The paused priority.
    pub priority: Option<u32>,
    /// Node of the port that it waits for.
    pub waits_for_node: String,
    /// The port that it waits for.
    pub waits_for_port: String,
    /// Begin, in nanoseconds since the epoch.
    #[serde(deserialize_with = "time")]
    pub start_time: u64,
    /// End.
    #[serde(deserialize_with = "time")]
    pub end_time: u64,
    /// The port that is waited for is the root.
    pub is_root: bool,
    /// Kind of the root.
    pub root_kind: String,
    /// The part of the root's queue that belongs to the flow.
    pub share: Option<f64>,
    /// How sure the analysis is.
    pub confidence: String,
}

impl Wait {
    /// The confidence of the row.
    pub(crate) fn said(&self) -> StatedConfidence {
        let mut all = StatedConfidence::ALL.into_iter();
        all.find(|said| said.name() == self.confidence)
            .unwrap_or(StatedConfidence::Plain)
    }
}

/// A time: a number, or its digits.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let text = value.as_str().and_then(|text| text.parse().ok());
    Ok(value.as_u64().or(text).unwrap_or_default())
}

/// The rows under the key `waits` of the document of a run; none without it. A column that is absent from a row or null has its
/// default.
fn waits(run: &RunSummary) -> Result<Vec<Wait>, SinkError> {
    let mut text = Vec::new();
    roce_report::json::document(run, &[], &mut text)?;
    let document: serde_json::Value = serde_json::from_slice(&text)?;
    let rows = document.get("waits").and_then(serde_json::Value::as_array);
    let rows = rows.into_iter().flatten().map(|row| {
        let mut row = row.clone();
        if let Some(fields) = row.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        serde_json::from_value(row)
    });
    Ok(rows.collect::<Result<_, _>>()?)
}

/// All results of one run of the analysis.
#[derive(Debug, Default)]
pub struct SeenRun {
    /// The flows.
    pub flows: Vec<FlowRow>,
    /// The events.
    pub events: Vec<Event>,
    /// Ports that wait for each other.
    pub waits: Vec<Wait>,
    /// The rest.
    pub summary: RunSummary,
}

impl Sink for SeenRun {
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
        self.waits = waits(run)?;
        Ok(())
    }
}
