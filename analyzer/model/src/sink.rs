//! Destinations of results.

use std::collections::HashMap;
use std::path::Path;

use crate::{
    CnpReceiver, CollectiveCallRow, CollectiveRow, CollectiveWaitRow, ConnectionAttempt, CreditRow,
    CreditedConnection, EndRow, EpisodeRow, EventColumns, FindingRow, FlowKey, FlowRow, HopRow,
    HopTimelineRow, InbandHopRow, InputSummary, JobSteps, MrcConnectionRow, MrcPathRow, MrcReports, Period,
    ProgramExchange, RankStateRow, RunKey, SampleColumns, Span, StepRow, TapId, TapMeasures, TapRow, Time,
    TimelineColumns, Totals, TraceRow, TrainingLogFit, UetTrafficRow, VantageRow, WaitRow,
};

/// Error of a sink; it names the file or stream.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// A clock that was set while it recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockStep {
    /// A tap that it stamped for.
    pub tap: TapId,
    /// When, by the stamps before the step.
    pub time: Time,
    /// By how much it was set forward, in nanoseconds; negative where it was set back.
    pub by_ns: i64,
}

/// A tap that shows nothing at all for this long, in nanoseconds, is quiet: what follows is judged by itself.
pub const QUIET: Span = Span(10_000_000);

/// The whole of a run, at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSummary {
    /// Names of the run in tables of many runs.
    pub key: RunKey,
    /// Version of the program.
    pub version: String,
    /// Start of the run.
    pub started: Time,
    /// Duration of the run.
    pub elapsed: Span,
    /// Width of a timeline bin.
    pub bin: Span,
    /// The options that shape the results: name and value.
    pub options: Vec<(String, String)>,
    /// The inputs, in the order given.
    pub inputs: Vec<InputSummary>,
    /// First and last captured frame.
    pub span: Option<Period>,
    /// First frame of the captures, also if it is before `--from`.
    pub first_frame: Option<Time>,
    /// All counts.
    pub totals: Totals,
    /// The points of observation.
    pub taps: Vec<TapRow>,
    /// Steps of the clocks of captures.
    pub clock_steps: Vec<ClockStep>,
    /// For each tap, the times without a silence of [`QUIET`] in between, the first ones of them.
    pub stretches: Vec<Vec<Period>>,
    /// Destinations of CNPs, the most frequent first.
    pub cnp_receivers: Vec<CnpReceiver>,
    /// Attempts of the connection manager, in the order of time. The JSON document does not have them.
    pub attempts: Vec<ConnectionAttempt>,
    /// Programs that answer each other's SENDs, in the order of flows. The JSON document does not have them.
    pub exchanges: Vec<ProgramExchange>,
    /// Vantages of the taps.
    pub vantages: Vec<VantageRow>,
    /// Hops between taps that saw the same traffic.
    pub hops: Vec<HopRow>,
    /// The hops by bin, in the order of time. The JSON document does not have them.
    pub hop_timeline: Vec<HopTimelineRow>,
    /// Connections whose receivers ask for each message, with these messages. The JSON document does not have them.
    pub credited: Vec<CreditedConnection>,
    /// Rings of credits at all taps whose frames were cut before the addresses that they offer. The JSON document does not have them.
    pub cut_rings: u64,
    /// Episodes of congestion, in the order of time.
    pub episodes: Vec<EpisodeRow>,
    /// Ends of connections: those that failed first.
    pub ends: Vec<EndRow>,
    /// Ports that waited for others because of pauses.
    pub waits: Vec<WaitRow>,
    /// Shapes in which ranks or hosts send to each other.
    pub collectives: Vec<CollectiveRow>,
    /// Each rank in each collective of a job, from credits.
    pub collective_waits: Vec<CollectiveWaitRow>,
    /// Connections whose receivers ask for each message.
    pub credits: Vec<CreditRow>,
    /// Connections of MRC and UET.
    pub mrc_connections: Vec<MrcConnectionRow>,
    /// Their paths.
    pub mrc_paths: Vec<MrcPathRow>,
    /// Reports about them that are in no table. The JSON document does not have them.
    pub mrc_reports: MrcReports,
    /// Hops of flows, as switches wrote them into packets.
    pub hops_inband: Vec<InbandHopRow>,
    /// Packets of UET by their hosts, jobs and secure domains.
    pub uet_traffic: Vec<UetTrafficRow>,
    /// The steps of a training job, in the order of time.
    pub steps: Vec<StepRow>,
    /// How the training log fits these steps; `None`: there is no log, or no step.
    pub training_log: Option<TrainingLogFit>,
    /// Traces of ranks that were merged, in the order given.
    pub traces: Vec<TraceRow>,
    /// Collectives of these traces, in the order of time.
    pub collective_calls: Vec<CollectiveCallRow>,
    /// Ranks as documents of the job state them, in the order of the documents.
    pub rank_states: Vec<RankStateRow>,
    /// The verdicts: roots before what they explain, the highest price first.
    pub findings: Vec<FindingRow>,
    /// Sentence for the top of every screen: what was wrong, for whom, when and at what price.
    pub sentence: String,
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Endings of captures' names.
const ENDINGS: [&str; 6] = ["gz", "zst", "pcap", "pcapng", "cap", "ntar"];

impl RunSummary {
    /// Zero of the times that people read: the first frame of the captures, as in Wireshark, whatever `--from` leaves out.
    pub fn zero(&self) -> Time {
        let first = self.span.map(|span| span.first);
        self.first_frame.or(first).unwrap_or_default()
    }

    /// The row of a tap. Taps are numbered in the order of their rows, where nothing was left out.
    pub fn tap(&self, tap: TapId) -> Option<&TapRow> {
        let at = usize::try_from(tap.0).unwrap_or(usize::MAX);
        let in_place = self.taps.get(at).filter(|row| row.tap == tap);
        in_place.or_else(|| self.taps.iter().find(|row| row.tap == tap))
    }

    /// Names of all taps for people, and their order. It looks at each tap once: whoever names several of them asks once.
    pub fn tap_names(&self) -> TapNames {
        let mut taps_of: Map<&str, u32> = Map::default();
        for row in &self.taps {
            *taps_of.entry(&row.input).or_default() += 1;
        }
        let mut order_of: Map<&str, usize> = Map::default();
        for (at, input) in self.inputs.iter().enumerate() {
            order_of.entry(&input.input).or_insert(at);
        }
        let name = |row: &TapRow| match &row.interface {
            Some(interface) if taps_of.get(&*row.input) != Some(&1) => interface.to_string(),
            _ => stem(&row.input),
        };
        let names: Vec<String> = self.taps.iter().map(name).collect();
        let mut alike: Map<&str, u32> = Map::default();
        for name in &names {
            *alike.entry(name).or_default() += 1;
        }
        let is_told_apart = |name: &&String| !name.is_empty() && alike.get(name.as_str()) == Some(&1);
        let mut of: Map<TapId, TapName> = Map::default();
        for (row, name) in self.taps.iter().zip(&names) {
            of.entry(row.tap).or_insert_with(|| TapName {
                name: Some(name).filter(is_told_apart).cloned(),
                order: order_of.get(&*row.input).copied(),
            });
        }
        TapNames { of }
    }
}

/// Names of a run's taps for people, and the order of their inputs.
#[derive(Clone, Debug, Default)]
pub struct TapNames {
    of: Map<TapId, TapName>,
}

#[derive(Clone, Debug)]
struct TapName {
    /// `None`: it does not tell the tap from the others.
    name: Option<String>,
    /// Place of its input among those of the run.
    order: Option<usize>,
}

impl TapNames {
    /// A tap for people: its file without folder and ending, or the interface where the file has several taps; its number where
    /// neither tells it from the others.
    pub fn name(&self, tap: TapId) -> String {
        let known = self.of.get(&tap).and_then(|known| known.name.clone());
        known.unwrap_or_else(|| format!("tap {}", tap.0))
    }

    /// Sort key of a tap: the order of the inputs.
    pub fn order(&self, tap: TapId) -> (usize, TapId) {
        let order = self.of.get(&tap).and_then(|known| known.order);
        (order.unwrap_or(usize::MAX), tap)
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

/// Snapshot of a run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Current rows of the live flows, which will still change. Rows of flows of which another tap saw
    /// more have `counted = false`.
    pub flows: Vec<FlowRow>,
    /// Episodes, the latest last. One that still goes on ends with its last sign.
    pub episodes: Vec<EpisodeRow>,
    /// The findings of the rules that nothing later can take back, the worst first; their numbers may still grow.
    pub findings: Vec<FindingRow>,
    /// More flows are live than a snapshot takes: it has none of them.
    pub too_many: bool,
    /// Measurements at each tap since the start; only where the run has metrics.
    pub measures: Vec<(TapId, TapMeasures)>,
    /// Steps of training jobs; only where the run has metrics.
    pub jobs: Vec<JobSteps>,
}

/// Watermark of a run that goes on, with a snapshot if one was requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress<'a> {
    /// All rows and events of bins that begin before this time have come.
    pub complete: Time,
    /// The snapshot, if one was requested since the last call.
    pub snapshot: Option<&'a Snapshot>,
}

/// A consumer of results: it takes rows while a run goes on, and the summary at its end.
///
/// # Order of calls
///
/// 1. [`begin`](Sink::begin), once.
/// 2. [`flows_opened`](Sink::flows_opened), [`timeline`](Sink::timeline), [`events`](Sink::events),
///    [`samples`](Sink::samples) and [`flows_closed`](Sink::flows_closed), any number of times.
/// 3. [`finish`](Sink::finish), once.
///
/// A flow is opened before its first row. It is closed once for each epoch; its last rows and events may follow, because
/// bins are emitted later. A flow that was closed early and is seen again is opened again.
///
/// Rows of one bin come together, and bins in the order of time. A packet that is stamped later than the analysis waits for
/// makes another row of a bin that has been emitted: the values of such rows add up.
///
/// # Files, stored results and live runs
///
/// All runs make the calls above. Live runs alone call [`interval`](Sink::interval), once for each reporting interval, and
/// [`progress`](Sink::progress), whenever the screen is due. Before both, all rows that are complete are emitted.
///
/// # Threads
///
/// All calls come from one thread, the one that called the pipeline. A sink that takes long holds up the analysis, and in a live run
/// packets are dropped and counted.
///
/// # Errors
///
/// An error ends the run: no sink is called again, not even `finish`, and the run returns the error. A
/// run that its input ends early, or that a signal ends, is finished as usual; [`RunSummary::inputs`]
/// has the input's error.
#[expect(
    clippy::missing_errors_doc,
    reason = "each error is the sink's own: see the trait"
)]
pub trait Sink {
    /// Start of the run: the width of a bin.
    fn begin(&mut self, _bin: Span) -> Result<(), SinkError> {
        Ok(())
    }

    /// Flows that are new, or were closed early and are seen again.
    fn flows_opened(&mut self, _keys: &[FlowKey]) -> Result<(), SinkError> {
        Ok(())
    }

    /// An interval of a live run has passed.
    fn interval(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// A live run has come to `progress.complete`. A snapshot is present if one was requested since the last call.
    fn progress(&mut self, _progress: &Progress<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// Rows of the timeline.
    fn timeline(&mut self, _rows: &TimelineColumns) -> Result<(), SinkError> {
        Ok(())
    }

    /// Events, in the order of time within a bin.
    fn events(&mut self, _rows: &EventColumns) -> Result<(), SinkError> {
        Ok(())
    }

    /// Samples: what hosts, switches and GPUs counted. Those of one series are in the order of time.
    fn samples(&mut self, _rows: &SampleColumns) -> Result<(), SinkError> {
        Ok(())
    }

    /// Flows, or epochs of flows, that are complete.
    fn flows_closed(&mut self, _rows: &[FlowRow]) -> Result<(), SinkError> {
        Ok(())
    }

    /// End of the run: the summary.
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
            input: path.to_owned(),
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
        let known = run.tap_names();
        let names: Vec<String> = (0..7).map(|tap| known.name(TapId(tap))).collect();
        assert_eq!(names, ["h2", "h1.v2", "eth0", "eth1", "tap 4", "tap 5", "tap 6"]);
        assert!(known.order(TapId(1)) < known.order(TapId(0)));
        assert!(
            known.order(TapId(0)) < known.order(TapId(2)),
            "of no input that is named"
        );
    }

    /// As many taps as a section of pcapng may have interfaces here. Looking at each tap for each name takes hours.
    #[test]
    fn many_taps_are_named_once() {
        let taps = 0..16_384;
        let row = |tap| TapRow {
            tap: TapId(tap),
            input: "all.pcapng".into(),
            interface: Some(format!("port{}", tap / 2 * 2).into()),
            ..TapRow::default()
        };
        let run = RunSummary {
            taps: taps.clone().map(row).collect(),
            ..RunSummary::default()
        };
        let known = run.tap_names();
        for tap in taps {
            assert_eq!(
                known.name(TapId(tap)),
                format!("tap {tap}"),
                "each name is taken twice"
            );
        }
    }

    #[test]
    fn the_row_of_a_tap_is_found_wherever_it_stands() {
        let tap = |tap| TapRow {
            tap: TapId(tap),
            ..TapRow::default()
        };
        let run = RunSummary {
            taps: vec![tap(0), tap(5), tap(2)],
            ..RunSummary::default()
        };
        let found = |of| run.tap(TapId(of)).map(|row| row.tap.0);
        assert_eq!([0, 1, 2, 5].map(found), [Some(0), None, Some(2), Some(5)]);
    }
}
