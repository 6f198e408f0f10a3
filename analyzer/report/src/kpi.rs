//! The benchmark draft's key figures of a run: each with its formula, its value and what it was computed from, or why packets cannot
//! give it.
//!
//! Source of all names and formulas: draft-calabria-bmwg-ai-fabric-training-bench-00. Where the draft has no formula, that is said.

mod figure;
mod figures;
mod page;

use std::collections::HashSet;
use std::io::Write;

use foldhash::fast::RandomState;
use roce_model::{FlowKey, FlowRow, RunSummary, Sink, SinkError, Span, TimelineColumns};
use serde::Serialize;

use crate::Error;
use crate::series::SeriesStore;
pub use figure::Kpi;
use figure::SOURCE;
use figures::FlowSums;

/// Form of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KpiForm {
    /// One page without scripts.
    Html,
    /// One JSON document.
    Json,
}

/// Writes the key figures when the run ends.
#[derive(Debug)]
pub struct KpiReport<W> {
    out: W,
    form: KpiForm,
    sums: FlowSums,
    gathered: SeriesStore,
}

impl<W: Write> KpiReport<W> {
    /// Will write to `out`, which should be buffered.
    pub fn new(out: W, form: KpiForm) -> Self {
        Self {
            out,
            form,
            sums: FlowSums::default(),
            gathered: SeriesStore::new(Span(0)),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    source: &'static str,
    run_id: &'a str,
    kpis: Vec<JsonKpi<'a>>,
}

/// A key figure whose inputs are an object.
#[derive(Serialize)]
struct JsonKpi<'a> {
    id: &'a str,
    name: &'a str,
    formula: &'a str,
    unit: &'a str,
    value: Option<f64>,
    inputs: serde_json::Map<String, serde_json::Value>,
    remark: &'a str,
}

fn json(run: &RunSummary, kpis: &[Kpi]) -> Result<String, serde_json::Error> {
    let kpis = kpis.iter().map(|kpi| JsonKpi {
        id: kpi.id,
        name: kpi.name,
        formula: kpi.formula,
        unit: kpi.unit,
        value: kpi.value,
        inputs: kpi
            .inputs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect(),
        remark: &kpi.remark,
    });
    let document = Document {
        schema_version: 1,
        source: SOURCE,
        run_id: &run.key.run_id,
        kpis: kpis.collect(),
    };
    serde_json::to_string_pretty(&document)
}

impl<W: Write> Sink for KpiReport<W> {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.gathered.begin(bin)
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.gathered.flows_opened(keys)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.gathered.timeline(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            self.sums.flow(row);
        }
        self.gathered.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let width = self.gathered.width();
        let shown = self.gathered.take(&HashSet::<_, RandomState>::default());
        let kpis = figures::kpis(run, &self.sums, (&shown, width));
        let text = match self.form {
            KpiForm::Html => page::page(run, &kpis),
            KpiForm::Json => json(run, &kpis)? + "\n",
        };
        let failed = match self.form {
            KpiForm::Html => Error::Html,
            KpiForm::Json => Error::Json,
        };
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        written.map_err(failed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
