//! Where results go.

use std::path::Path;

use crate::{
    CnpReceiver, EpisodeRow, EventColumns, FindingRow, FlowKey, FlowRow, HopRow, InputSummary, Nanos, Span,
    StepRow, TapId, TapRow, TimelineColumns, Totals, VantageRow,
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

/// Endings of captures' names.
const ENDINGS: [&str; 6] = ["gz", "zst", "pcap", "pcapng", "cap", "ntar"];

impl RunSummary {
    /// A tap for people: its file without folder and ending, or the interface where the file has several taps; its number where
    /// neither tells it from the others.
    pub fn name_of_tap(&self, tap: TapId) -> String {
        let number = || format!("tap {}", tap.0);
        let Some(row) = self.taps.iter().find(|row| row.tap == tap) else {
            return number();
        };
        let name = |row: &TapRow| {
            let is_alone = self.taps.iter().filter(|other| other.input == row.input).count() == 1;
            match &row.interface {
                Some(interface) if !is_alone => interface.to_string(),
                _ => stem(&row.input),
            }
        };
        let named = name(row);
        let is_told_apart = self.taps.iter().filter(|other| name(other) == named).count() == 1;
        if is_told_apart && !named.is_empty() {
            named
        } else {
            number()
        }
    }

    /// What taps are sorted by to stand in the order of the inputs.
    pub fn order_of_tap(&self, tap: TapId) -> (usize, TapId) {
        let row = self.taps.iter().find(|row| row.tap == tap);
        let is_of = |input: &InputSummary| row.is_some_and(|row| row.input == input.path);
        let input = self.inputs.iter().position(is_of);
        (input.unwrap_or(usize::MAX), tap)
    }
}

/// A file's name without folder and the endings of captures.
fn stem(path: &str) -> String {
    let mut name = Path::new(path).file_name().unwrap_or_default();
    while let (Some(ending), Some(rest)) = (Path::new(name).extension(), Path::new(name).file_stem())
        && ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
    {
        name = rest;
    }
    name.to_string_lossy().into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_are_named_by_their_files() {
        let tap = |tap: u32, input: &'static str, interface: Option<&'static str>| TapRow {
            tap: TapId(tap),
            input: input.into(),
            interface: interface.map(Into::into),
            ..TapRow::default()
        };
        let input = |path: &str| InputSummary {
            path: path.to_owned(),
            ..InputSummary::default()
        };
        let run = RunSummary {
            taps: vec![
                tap(0, "b/h2.pcapng.gz", Some("eth0")),
                tap(1, "a/h1.v2.pcap", None),
                tap(2, "both.pcapng", Some("eth0")),
                tap(3, "both.pcapng", Some("eth1")),
                tap(4, "c/h3.pcap", None),
                tap(5, "d/h3.pcap", None),
            ],
            inputs: vec![input("a/h1.v2.pcap"), input("b/h2.pcapng.gz")],
            ..RunSummary::default()
        };
        let names: Vec<String> = (0..7).map(|tap| run.name_of_tap(TapId(tap))).collect();
        assert_eq!(names, ["h2", "h1.v2", "eth0", "eth1", "tap 4", "tap 5", "tap 6"]);
        assert!(run.order_of_tap(TapId(1)) < run.order_of_tap(TapId(0)));
        assert!(
            run.order_of_tap(TapId(0)) < run.order_of_tap(TapId(2)),
            "of no input that is named"
        );
    }
}
