//! A run over captures: a request says what is analysed and how, and becomes a summary.
//!
//! A request is opened before it runs: whoever makes sinks may need to know which captures can be read, and when their first frame was.

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use roce_capture::{Merge, Reader};
use roce_model::{RunKey, RunSummary, Sink, SinkError, Span, Time};
use roce_verdict::{Thresholds, Verdicts};

use crate::align::KnownClock;
use crate::annotate::{KnownResults, ListedFrame, Selection, WrittenCounts};
use crate::captures::{AnalysedRun, Captures};
use crate::clock::RunStart;
use crate::feed::MergedInputs;
use crate::inputs::as_live;
use crate::pace::Pace;
use crate::paced::PacedFrames;
use crate::run::{Plan, RunOutcome, Tick, run, run_live};
use crate::samples::{MovedSamples, StoredSamples};
use crate::traces::Traces;

/// Captures, and everything that shapes their analysis.
pub struct RunRequest {
    /// Paths of pcap and pcapng files, plain or compressed; `-` is standard input.
    pub captures: Vec<PathBuf>,
    /// Number of threads, width of a bin, thresholds, and the frames that count.
    pub plan: Plan,
    /// Corrects times where packets that several taps saw show that their clocks differ.
    pub align: bool,
    /// Bytes of each capture that are read, decompressed. A longer one ends there with an error.
    pub max_input: Option<u64>,
    /// Knowledge of captures beside their packets, in their order; it may be shorter than `captures`.
    pub known: Vec<KnownCapture>,
    /// Traces of ranks that are merged with the results.
    pub traces: Option<Traces>,
    /// Samples of other runs that are joined.
    pub samples: Vec<StoredSamples>,
    /// Pace at which frames are taken; `None`: as fast as they are analysed.
    pub pace: Option<Replay>,
    /// Start of the run.
    pub begun: RunStart,
    /// Names of the run in all tables.
    pub key: RunKey,
    /// Options that shaped the run, by name, for its summary.
    pub options: Vec<(String, String)>,
    /// Puts the SHA-256 of each capture into the summary; each is read once more.
    pub hash: bool,
}

/// Knowledge of one capture beside its packets.
#[derive(Clone, Debug, Default)]
pub struct KnownCapture {
    /// Name in results in place of its path.
    pub name: Option<String>,
    /// Offset of the clock that stamped it.
    pub clock: Option<KnownClock>,
    /// True of the recording of a live run: results describe the devices, not the file.
    pub is_live: bool,
}

/// Pace of a replay, and requests to it from outside.
pub struct Replay {
    /// Speed and position, which others may change and read.
    pub pace: Arc<Pace>,
    /// Frames are taken this long before their time.
    pub lead: Span,
    /// Intervals and looks that the sinks learn of.
    pub ticks: Receiver<Tick>,
}

/// News of a run while it goes on, for who shows it to people.
#[non_exhaustive]
pub enum Notice<'a> {
    /// Frames were read; comes often.
    Progress(&'a Merge),
    /// An input ended early, or a trace could not be merged.
    Error(&'a str),
    /// Results are not what one may expect: of what, and why.
    Warning(&'a str, &'a str),
    /// The sinks are finished next, with this summary.
    Concluded(&'a RunSummary),
}

/// Result of a run over captures.
#[derive(Debug)]
pub struct FinishedRun {
    /// All that the sinks got at the end: totals, taps, findings.
    pub summary: RunSummary,
    /// True if all captures and traces were opened and read to their end.
    pub is_whole: bool,
}

impl RunRequest {
    /// All frames of `captures` with default options, on one thread, with clocks aligned.
    pub fn new(captures: Vec<PathBuf>) -> Self {
        Self {
            captures,
            plan: Plan::default(),
            align: true,
            max_input: None,
            known: Vec::new(),
            traces: None,
            samples: Vec::new(),
            pace: None,
            begun: RunStart::now(),
            key: RunKey::default(),
            options: Vec::new(),
            hash: false,
        }
    }

    /// Opens the captures, and compares their clocks. One that cannot be opened does not stop the others.
    pub fn open(self) -> OpenRun {
        let clocks: Vec<Option<KnownClock>> = self.known.iter().map(|known| known.clock).collect();
        let captures = Captures::open(
            &self.captures,
            self.plan.threads,
            self.align,
            self.max_input,
            &clocks,
        );
        OpenRun {
            request: self,
            captures,
        }
    }

    /// Takes everything to the sinks, from beginning to end.
    ///
    /// # Errors
    /// When none of the captures can be opened, or a sink fails.
    pub fn run(self, sinks: Vec<&mut dyn Sink>) -> Result<FinishedRun, SinkError> {
        self.open().run(sinks, &mut |_| ())
    }
}

/// A run whose captures are open.
pub struct OpenRun {
    request: RunRequest,
    captures: Captures,
}

impl OpenRun {
    /// True if none of the captures could be opened.
    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }

    /// Why captures could not be opened.
    pub fn errors(&self) -> impl Iterator<Item = &str> {
        self.captures.errors()
    }

    /// Time of the first frame; `None` where no capture has one.
    pub fn first_time(&mut self) -> Option<Time> {
        self.captures.first_time()
    }

    /// Takes only frames of this time, in nanoseconds since the epoch.
    pub fn set_range(&mut self, range: Range<u64>) {
        self.request.plan.range = range;
    }

    /// Takes everything to the sinks, which neither have begun nor are finished. `observe` gets news meanwhile, also from other threads.
    ///
    /// # Errors
    /// When none of the captures could be opened, an input cannot be hashed, samples cannot be read, or a sink fails.
    pub fn run(
        self,
        mut sinks: Vec<&mut dyn Sink>,
        observe: &mut (dyn FnMut(Notice<'_>) + Send),
    ) -> Result<FinishedRun, SinkError> {
        if self.is_empty() {
            let errors: Vec<&str> = self.errors().collect();
            return Err(format!("none of the captures could be read: {}", errors.join("; ")).into());
        }
        let Self {
            mut request,
            captures,
        } = self;
        let (bin, range) = (request.plan.options.bin, request.plan.range.clone());
        let thresholds = request.plan.settings.thresholds.clone();
        let mut takers = borrowed(&mut sinks);
        if let Some(traces) = &mut request.traces {
            takers.push(traces);
        }
        for taker in &mut takers {
            taker.begin(bin)?;
        }
        let replay = request.pace.take();
        let mut analysed = captures.run(request.plan, takers, |merge, plan, sinks| match &replay {
            Some(replay) => replay.run(merge, plan, sinks, observe),
            None => run(merge, plan, sinks, |merge| observe(Notice::Progress(merge))),
        })?;
        for error in analysed.errors() {
            observe(Notice::Error(error));
        }
        for samples in &request.samples {
            join(samples, &mut analysed, &range, &mut sinks, observe)?;
        }
        let mut inputs = analysed.inputs(request.hash)?;
        for (input, known) in inputs.iter_mut().zip(&request.known) {
            match &known.name {
                Some(name) if known.is_live => as_live(input, name),
                Some(name) => input.input.clone_from(name),
                None => {}
            }
        }
        let mut is_whole = analysed.is_whole();
        let mut summary = RunSummary {
            key: request.key,
            ..analysed.summary(request.begun, inputs, request.options)
        };
        if let Some(traces) = &mut request.traces {
            is_whole &= merge_traces(traces, &mut summary, &thresholds, observe);
        }
        note_range(&range, &mut summary);
        observe(Notice::Concluded(&summary));
        for sink in sinks {
            sink.finish(&summary)?;
        }
        Ok(FinishedRun { summary, is_whole })
    }

    /// Writes the frames of the captures as one pcapng file, with comments by what a run of the same request has `known`.
    ///
    /// # Errors
    /// If `output` fails, or the captures have more interfaces than a file may.
    pub fn annotate<W: Write>(
        self,
        known: KnownResults,
        selection: &Selection,
        output: W,
    ) -> io::Result<WrittenCounts> {
        self.captures
            .annotate(&self.request.plan, known, selection, output)
    }

    /// Gives `take` the frames of the captures that have a comment, each with its number in its own capture.
    ///
    /// # Errors
    /// If `take` fails, or frames cannot be numbered, because records were sorted or several captures have them.
    pub fn list_frames(
        self,
        known: KnownResults,
        selection: &Selection,
        take: &mut dyn FnMut(&ListedFrame<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.captures
            .list_frames(&self.request.plan, known, selection, take)
    }
}

impl Replay {
    /// Takes all frames to the sinks at their pace.
    fn run(
        &self,
        merge: Merge,
        plan: &Plan,
        sinks: Vec<&mut dyn Sink>,
        observe: &mut (dyn FnMut(Notice<'_>) + Send),
    ) -> Result<(RunOutcome<MergedInputs>, Verdicts), SinkError> {
        // Time outside of the range is not waited for.
        let from = Time(plan.range.start);
        let feed = PacedFrames::new(plan.source(merge), Arc::clone(&self.pace), from, self.lead);
        let (done, verdicts) = run_live(feed, plan, sinks, &self.ticks)?;
        if done.feed.ended_early {
            let (last, _) = self.pace.handed();
            let after = last.since(done.span().map_or(last, |span| span.first));
            let text =
                format!("it was ended {after} after its first frame, and the results are about that part");
            observe(Notice::Warning("the replay", &text));
        }
        Ok((done.map_feed(|paced| paced.source), verdicts))
    }
}

/// References to all sinks, which can be lent again.
fn borrowed<'a>(sinks: &'a mut [&mut dyn Sink]) -> Vec<&'a mut dyn Sink> {
    sinks
        .iter_mut()
        .map(|sink| &mut **sink as &mut dyn Sink)
        .collect()
}

/// Gives the sinks and the verdicts the samples of another run, on the clock of the captures.
fn join(
    samples: &StoredSamples,
    analysed: &mut AnalysedRun,
    range: &Range<u64>,
    sinks: &mut [&mut dyn Sink],
    observe: &mut (dyn FnMut(Notice<'_>) + Send),
) -> Result<(), SinkError> {
    let beside = analysed.reader_in(samples.dir());
    if beside.is_none() && analysed.is_corrected() {
        observe(Notice::Warning(
            &samples.dir().display().to_string(),
            "the clocks of the captures differ, and no capture lies in this folder: its samples keep their times",
        ));
    }
    let moved = MovedSamples {
        range: range.clone(),
        correction: beside.and_then(Reader::correction),
    };
    let mut all = borrowed(sinks);
    all.push(analysed);
    if let Some(text) = samples.replay(&moved, &mut all)? {
        observe(Notice::Warning(&samples.place().display().to_string(), &text));
    }
    Ok(())
}

/// Adds the traces to the summary of a run. False: one could not be merged.
fn merge_traces(
    traces: &mut Traces,
    run: &mut RunSummary,
    thresholds: &Thresholds,
    observe: &mut (dyn FnMut(Notice<'_>) + Send),
) -> bool {
    let failed = traces.conclude(run, thresholds);
    for text in &failed {
        observe(Notice::Error(text));
    }
    failed.is_empty()
}

/// Adds a warning to each capture of which no frame lies in the time that is taken.
fn note_range(range: &Range<u64>, summary: &mut RunSummary) {
    if *range == (0..u64::MAX) || summary.totals.frames > 0 {
        return;
    }
    for input in summary.inputs.iter_mut().filter(|input| input.frames > 0) {
        let text = format!("none of its {} frames lies between --from and --to", input.frames);
        input.warnings.push(text);
    }
}
