//! The results of an earlier run on their way to a sink, with traces that are merged at the end.

use roce_model::{
    EventColumns, FlowKey, FlowRow, RunSummary, SampleColumns, Sink, SinkError, Span, TimelineColumns,
};
use roce_pipeline::Traces;
use roce_verdict::Thresholds;

use crate::output::messages;

/// Gives a sink the results of an earlier run together with traces.
pub(crate) struct MergingSink<'a> {
    inner: &'a mut dyn Sink,
    traces: &'a mut Traces,
    /// True if all traces could be merged.
    pub(crate) is_whole: bool,
}

impl<'a> MergingSink<'a> {
    /// Will give all to `inner`.
    pub(crate) fn new(inner: &'a mut dyn Sink, traces: &'a mut Traces) -> Self {
        Self {
            inner,
            traces,
            is_whole: true,
        }
    }
}

impl Sink for MergingSink<'_> {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.traces.begin(bin)?;
        self.inner.begin(bin)
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.traces.flows_opened(keys)?;
        self.inner.flows_opened(keys)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.traces.timeline(rows)?;
        self.inner.timeline(rows)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.inner.events(rows)
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.inner.samples(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.traces.flows_closed(rows)?;
        self.inner.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let mut run = run.clone();
        // Findings of an earlier merge are about other documents.
        let of_documents = ["collective.slowed", "job.stuck", "rank.last"];
        run.findings.retain(|finding| !of_documents.contains(&finding.id));
        let failed = self.traces.conclude(&mut run, &Thresholds::default());
        for text in &failed {
            messages::error(text);
        }
        self.is_whole = failed.is_empty();
        self.inner.finish(&run)
    }
}
