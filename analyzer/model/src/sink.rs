//! Where results go.

use crate::{
    CnpReceiver, EpisodeRow, EventColumns, FindingRow, FlowKey, FlowRow, HopRow, InputSummary, Nanos, Span,
    StepRow, TapRow, TimelineColumns, Totals, VantageRow,
};

/// What a sink failed with; it says which file or stream.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// The whole of a run, at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSummary {
    /// Version of the program.
    pub version: String,
    /// When the run began.
    pub started: Nanos,
    /// How long it took.
    pub elapsed: Nanos,
    /// Width of a timeline bin.
    pub bin: Nanos,
    /// The options that shape the results: name and value.
    pub options: Vec<(String, String)>,
    /// The inputs, in the order given.
    pub inputs: Vec<InputSummary>,
    /// First and last captured frame.
    pub span: Option<Span>,
    /// All counts.
    pub totals: Totals,
    /// The points of observation.
    pub taps: Vec<TapRow>,
    /// Who was told to slow down, the most often first.
    pub cnp_receivers: Vec<CnpReceiver>,
    /// Where the taps stand.
    pub vantages: Vec<VantageRow>,
    /// What happened between taps that saw the same traffic.
    pub hops: Vec<HopRow>,
    /// What was congested and when, in the order of time.
    pub episodes: Vec<EpisodeRow>,
    /// The steps of a training job, in the order of time.
    pub steps: Vec<StepRow>,
    /// The verdicts, the worst first.
    pub findings: Vec<FindingRow>,
}

/// What there is to say of a run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// The flows that are live, as they stand: rows that will still change. Rows of what another tap saw more of have
    /// `counted = false`.
    pub flows: Vec<FlowRow>,
    /// What was congested, the latest last; what still goes on ends with its last sign so far.
    pub episodes: Vec<EpisodeRow>,
    /// The findings of the rules that nothing later can take back, the worst first; their numbers may still grow.
    pub findings: Vec<FindingRow>,
    /// More flows are live than are looked at: nothing is said of any.
    pub too_many: bool,
}

/// How far a run that goes on has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress<'a> {
    /// All rows and events of bins that begin before this time have come.
    pub complete: Nanos,
    /// What there is to say, when it was asked for since the last time.
    pub so_far: Option<&'a SoFar>,
}

/// Takes rows as they come and the summary at the end.
///
/// Rows of one bin come together, bins in time order; only what was stamped out of order by more than the analysis
/// waits for comes later, as rows in parts. After an error nothing more is sent.
pub trait Sink {
    /// Before the first row: the width of a bin.
    ///
    /// # Errors
    /// When the sink cannot begin.
    fn begin(&mut self, _bin: Nanos) -> Result<(), SinkError> {
        Ok(())
    }

    /// Flows that were seen for the first time (or again, after they had been closed early), before any row of theirs.
    ///
    /// # Errors
    /// When the sink cannot go on.
    fn flows_opened(&mut self, _keys: &[FlowKey]) -> Result<(), SinkError> {
        Ok(())
    }

    /// An interval of a live run has passed; all rows that are complete by now have come.
    ///
    /// # Errors
    /// When the sink cannot go on.
    fn interval(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Somebody looks at a run that goes on: all rows that are complete by now have come.
    ///
    /// # Errors
    /// When the sink cannot go on.
    fn progress(&mut self, _progress: &Progress<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// Rows of the timeline.
    ///
    /// # Errors
    /// When they cannot be written.
    fn timeline(&mut self, _rows: &TimelineColumns) -> Result<(), SinkError> {
        Ok(())
    }

    /// Events.
    ///
    /// # Errors
    /// When they cannot be written.
    fn events(&mut self, _rows: &EventColumns) -> Result<(), SinkError> {
        Ok(())
    }

    /// Flows that are complete.
    ///
    /// # Errors
    /// When they cannot be written.
    fn flows_closed(&mut self, _rows: &[FlowRow]) -> Result<(), SinkError> {
        Ok(())
    }

    /// The end.
    ///
    /// # Errors
    /// When the result cannot be completed.
    fn finish(&mut self, _run: &RunSummary) -> Result<(), SinkError> {
        Ok(())
    }
}
