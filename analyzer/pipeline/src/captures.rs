//! A run over captures, from their names to the summary: they are opened, their clocks are compared, their frames go to the sinks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use roce_capture::{Merge, Reader};
use roce_model::{InputSummary, RunSummary, SampleColumns, Sink, SinkError, Span, Time};
use roce_verdict::Verdicts;

use crate::align::{Alignment, Clock, KnownClock, align, machines};
use crate::clock::RunStart;
use crate::error::{self, Error};
use crate::feed::MergedInputs;
use crate::inputs;
use crate::run::{Plan, RunOutcome};
use crate::summary::ReadInput;
use crate::taps::Apart;

/// Open captures, in the order of time.
pub(crate) struct Captures {
    paths: Vec<PathBuf>,
    /// For each reader, its place among the paths.
    places: Vec<usize>,
    /// Why captures could not be opened, by place.
    errors: Vec<(usize, String)>,
    alignment: Alignment,
    merge: Merge,
}

impl Captures {
    /// Opens the captures at `paths`. With `align` their times are corrected where packets that several
    /// taps saw show that their clocks differ. A capture that cannot be opened does not stop the others.
    /// One with more than `max_bytes`, decompressed, ends there with an error. `known` has what is known of clocks, in the order of `paths`.
    pub(crate) fn open(
        paths: &[PathBuf],
        threads: u32,
        align: bool,
        max_bytes: Option<u64>,
        known: &[Option<KnownClock>],
    ) -> Self {
        let mut opened = inputs::open(paths, threads > 1, max_bytes);
        let failed = std::mem::take(&mut opened.failed);
        let known: Vec<Option<KnownClock>> = opened
            .places
            .iter()
            .map(|place| known.get(*place).copied().flatten())
            .collect();
        let mut alignment = if align {
            align_clocks(paths, &mut opened, threads, &known)
        } else {
            let none = Alignment::none(opened.readers.len());
            Alignment {
                apart: none.apart.by_machine(machines(&known)),
                ..none
            }
        };
        let order = inputs::sort(&mut opened, paths, &mut alignment.warnings);
        let alignment = alignment.reordered(&order);
        Self {
            paths: paths.to_vec(),
            places: opened.places,
            errors: failed
                .iter()
                .map(|(place, error)| (*place, error::text(error)))
                .collect(),
            alignment,
            merge: Merge::new(opened.readers),
        }
    }

    /// None of them could be opened.
    pub(crate) fn is_empty(&self) -> bool {
        self.merge.readers().is_empty()
    }

    /// Why captures could not be opened.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|(_, error)| error.as_str())
    }

    /// The time of the first frame.
    pub(crate) fn first_time(&mut self) -> Option<Time> {
        self.merge.first_time()
    }

    /// True if some records are in several captures.
    pub(crate) fn shares_records(&self) -> bool {
        self.alignment.apart.recorders().iter().any(Option::is_some)
    }

    /// The frames in the order of time, and which inputs have the same packets.
    pub(crate) fn into_frames(self) -> (Merge, Arc<Apart>) {
        (self.merge, Arc::new(self.alignment.apart))
    }

    /// Moves all frames to the sinks by `through`: [`run`](crate::run::run), or a function that paces or shows it. The
    /// sinks have begun; they are finished with the summary.
    ///
    /// # Errors
    /// When a sink fails.
    pub(crate) fn run(
        self,
        plan: Plan,
        sinks: Vec<&mut dyn Sink>,
        through: impl FnOnce(
            Merge,
            &Plan,
            Vec<&mut dyn Sink>,
        ) -> Result<(RunOutcome<MergedInputs>, Verdicts), SinkError>,
    ) -> Result<AnalysedRun, SinkError> {
        let plan = Plan {
            match_taps: self.alignment.shared,
            apart: Arc::new(self.alignment.apart.clone()),
            ..plan
        };
        let (done, verdicts) = through(self.merge, &plan, sinks)?;
        let ended_early = done.feed.errors.iter().map(|(reader, error)| {
            let place = self.places.get(*reader).copied().unwrap_or_default();
            (place, error::text(error))
        });
        Ok(AnalysedRun {
            ended_early: ended_early.collect(),
            done,
            verdicts,
            bin: plan.options.bin,
            paths: self.paths,
            places: self.places,
            errors: self.errors,
            alignment: self.alignment,
        })
    }
}

/// A run whose rows the sinks have got.
pub(crate) struct AnalysedRun {
    done: RunOutcome<MergedInputs>,
    verdicts: Verdicts,
    bin: Span,
    paths: Vec<PathBuf>,
    places: Vec<usize>,
    errors: Vec<(usize, String)>,
    ended_early: Vec<(usize, String)>,
    alignment: Alignment,
}

impl AnalysedRun {
    /// Why inputs ended early.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        self.ended_early.iter().map(|(_, error)| error.as_str())
    }

    /// The reader of a capture in the folder `dir`: other things that were recorded there have its clock. `None`: no capture lies in it.
    pub(crate) fn reader_in(&self, dir: &Path) -> Option<&Reader> {
        let dir = dir.canonicalize().ok()?;
        let readers = self.done.feed.merge.readers().iter().zip(&self.places);
        let mut found = readers.filter(|(_, place)| {
            let path = self.paths.get(**place).and_then(|path| path.canonicalize().ok());
            path.is_some_and(|path| path.parent() == Some(&*dir))
        });
        found.next().map(|(reader, _)| reader)
    }

    /// Some clock was corrected.
    pub(crate) fn is_corrected(&self) -> bool {
        let mut readers = self.done.feed.merge.readers().iter();
        readers.any(|reader| reader.correction().is_some())
    }

    /// All inputs were opened and read to their end.
    pub(crate) fn is_whole(&self) -> bool {
        self.errors.is_empty() && self.ended_early.is_empty()
    }

    /// A summary of each input, in the order of the paths; with `hash` each is read once more.
    ///
    /// # Errors
    /// When one cannot be hashed.
    pub(crate) fn inputs(&self, hash: bool) -> Result<Vec<InputSummary>, Error> {
        let errors = [self.errors.as_slice(), self.ended_early.as_slice()].concat();
        let recorders = self.alignment.apart.recorders();
        let keys = crate::names::input_keys(&self.paths);
        let name = |reader: usize| {
            let place = self.places.get(reader);
            place
                .and_then(|place| keys.get(*place).cloned())
                .unwrap_or_default()
        };
        let left_out = inputs::left_out(&self.done.feed, recorders, name);
        let warnings = [self.alignment.warnings.as_slice(), left_out.as_slice()].concat();
        inputs::summaries(
            &self.paths,
            &self.done.feed.merge,
            &self.places,
            &errors,
            &warnings,
            hash,
        )
    }

    /// The summary of the run, with its verdicts.
    pub(crate) fn summary(
        self,
        begun: RunStart,
        inputs: Vec<InputSummary>,
        options: Vec<(String, String)>,
    ) -> RunSummary {
        let name = |input: usize| {
            let input = self.places.get(input).and_then(|place| inputs.get(*place));
            input.map(|input| input.input.clone()).unwrap_or_default()
        };
        let readers = self.done.feed.merge.readers().iter().enumerate();
        let read: Vec<ReadInput<'_>> = readers
            .map(|(input, reader)| ReadInput {
                summary: reader.summary(),
                clock_steps: reader.clock_steps(),
                is_repeated: reader.summary().frames > 0
                    && self.done.feed.left_out(input) == reader.summary().frames,
                interfaces: reader.interfaces(),
            })
            .collect();
        let summary = self.done.summary(begun, &read, name, &self.alignment);
        let mut summary = RunSummary {
            inputs,
            options,
            bin: self.bin,
            ..summary
        };
        self.verdicts.conclude(&mut summary);
        summary
    }
}

/// Samples of other runs that are joined: the verdicts take them, too.
impl Sink for AnalysedRun {
    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.verdicts.samples(rows);
        Ok(())
    }
}

/// Finds the distances of the inputs' clocks, and has their times corrected.
fn align_clocks(
    paths: &[PathBuf],
    opened: &mut inputs::OpenedInputs,
    threads: u32,
    known: &[Option<KnownClock>],
) -> Alignment {
    let paths: Vec<&PathBuf> = opened
        .places
        .iter()
        .filter_map(|place| paths.get(*place))
        .collect();
    let alignment = align(&paths, threads, known);
    for (input, at, by_ns) in &alignment.set_forward {
        if let Some(reader) = opened.readers.get_mut(*input) {
            reader.set_back(*at, *by_ns);
        }
    }
    for (reader, clock) in opened.readers.iter_mut().zip(&alignment.clocks) {
        if let Some(clock) = clock.filter(Clock::is_off) {
            reader.correct(clock.correction);
        }
    }
    alignment
}
