//! Options become a request to the library, and its news become messages: what every command shares that analyses captures.

use std::ops::Range;
use std::process::ExitCode;

use anyhow::bail;
use roce_model::{RecordingStart, RunKey, RunSummary, Sink};
use roce_pipeline::{KnownCapture, Notice, OpenRun, Replay, RunRequest, RunStart, StoredSamples};

#[cfg(feature = "live")]
use crate::command::joined::joined;
use crate::options::arguments::RunOptions;
use crate::options::duration::Moment;
use crate::options::settings::RunSettings;
use crate::output::chosen::ChosenFlows;
use crate::output::common::Common;
use crate::output::exit_code::exit_code;
use crate::output::messages::{self, sink_error};
use crate::output::progress::Progress;

/// Captures that options name, and what is known of them.
pub(crate) struct FoundCaptures {
    /// The options, with files in place of the folder of a recorded run or of a fleet run.
    pub(crate) options: RunOptions,
    /// The live run that was recorded.
    pub(crate) recorded: Option<RecordingStart>,
    known: Vec<KnownCapture>,
}

impl FoundCaptures {
    /// Looks what the captures of `options` are.
    ///
    /// # Errors
    /// When a folder cannot be read, or this build knows no such folder.
    pub(crate) fn find(options: &RunOptions) -> anyhow::Result<Self> {
        #[cfg(feature = "live")]
        if let Some((options, recorded)) = crate::command::recorded::recorded(options)? {
            let known = KnownCapture {
                name: Some(recorded.input.clone()),
                is_live: true,
                ..KnownCapture::default()
            };
            return Ok(Self {
                options,
                recorded: Some(recorded),
                known: vec![known],
            });
        }
        #[cfg(not(feature = "live"))]
        if let Some(dir) = options
            .captures
            .iter()
            .find(|dir| dir.join(RecordingStart::FILE).is_file())
        {
            bail!(
                "{}: a recorded live run, and this roce-analyze was built without live runs\nhint: build it with `--features live`, or give it {}, \
                 whose packets it can read",
                dir.display(),
                RecordingStart::FILE
            );
        }
        #[cfg(feature = "live")]
        let (options, known) = joined(options)?.unwrap_or_else(|| (options.clone(), Vec::new()));
        #[cfg(not(feature = "live"))]
        let (options, known) = (options.clone(), Vec::new());
        Ok(Self {
            options,
            recorded: None,
            known,
        })
    }
}

/// A run over captures before they are opened: its options, settings and names.
pub(crate) struct PreparedRun {
    pub(crate) options: RunOptions,
    pub(crate) settings: RunSettings,
    pub(crate) key: RunKey,
    pub(crate) begun: RunStart,
    known: Vec<KnownCapture>,
    /// Seed of the packets' hashes of a recorded run.
    seed: Option<u64>,
}

impl PreparedRun {
    /// Reads the files that options name. With `fits_bin` the width of a bin follows from the captures, if no option gives it.
    ///
    /// # Errors
    /// When one of these files cannot be read.
    pub(crate) fn new(found: FoundCaptures, fits_bin: bool, begun: RunStart) -> anyhow::Result<Self> {
        let FoundCaptures {
            options,
            recorded,
            mut known,
        } = found;
        let settings = RunSettings::from_captures(&options, fits_bin && recorded.is_none())?;
        for (capture, text) in &settings.failed_looks {
            messages::warn(capture, text);
        }
        let key = options.names.key_of_captures(
            &options.captures,
            options.capture.as_deref(),
            recorded.as_ref().map(|recorded| recorded.input.as_str()),
            &settings.echo,
            begun.time(),
        );
        if let ([_], Some(capture)) = (options.captures.as_slice(), &options.capture) {
            known.resize_with(1, KnownCapture::default);
            known[0].name = Some(capture.clone());
        }
        Ok(Self {
            options,
            settings,
            key,
            begun,
            known,
            seed: recorded.map(|recorded| recorded.seed),
        })
    }

    /// The request to the library; traces are read for it.
    ///
    /// # Errors
    /// When a trace, or a folder of samples, cannot be read.
    pub(crate) fn request(&self) -> anyhow::Result<RunRequest> {
        let mut request = RunRequest {
            plan: self.settings.plan(),
            align: !self.options.no_align,
            max_input: self.options.max_input,
            known: self.known.clone(),
            traces: self.settings.merged.traces(),
            samples: other_samples(&self.options)?,
            begun: self.begun,
            key: self.key.clone(),
            options: self.settings.echo.clone(),
            hash: self.options.hash,
            ..RunRequest::new(self.options.captures.clone())
        };
        if let Some(seed) = self.seed {
            request.plan.options.seed = seed;
        }
        Ok(request)
    }

    /// Opens the captures, and says which of them cannot be read.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub(crate) fn open(&self, pace: Option<Replay>) -> anyhow::Result<OpenRun> {
        let request = RunRequest {
            pace,
            ..self.request()?
        };
        self.note_log();
        let open = request.open();
        for error in open.errors() {
            messages::error(error);
        }
        Ok(open)
    }

    /// Has only the frames analysed that options choose by their time.
    ///
    /// # Errors
    /// When no capture could be opened, or no frame can have such a time.
    pub(crate) fn narrow(&self, open: &mut OpenRun) -> anyhow::Result<()> {
        if open.is_empty() {
            bail!("none of the captures could be read");
        }
        let range = time_range(self.options.from, self.options.to, open)?;
        open.set_range(range);
        Ok(())
    }

    /// Takes the frames to the sinks. If `warns` is set, warnings about inputs go to standard error: the terminal's summary has them itself.
    ///
    /// # Errors
    /// When a sink fails.
    pub(crate) fn run(
        &self,
        open: OpenRun,
        sinks: Vec<&mut dyn Sink>,
        warns: bool,
        mut progress: Option<Progress>,
    ) -> anyhow::Result<ExitCode> {
        let mut observe = |notice: Notice<'_>| match notice {
            Notice::Progress(merge) => {
                if let Some(progress) = &mut progress {
                    progress.update(merge);
                }
            }
            other => {
                // The bar makes room for messages.
                progress = None;
                say(&other, warns);
            }
        };
        let finished = open.run(sinks, &mut observe).map_err(sink_error)?;
        Ok(exit_code(
            finished.is_whole,
            &finished.summary,
            &self.settings.fail_on,
        ))
    }

    /// Takes the frames to one sink, and prints nothing but messages.
    ///
    /// # Errors
    /// As [`Self::open`], [`Self::narrow`] and [`Self::run`].
    pub(crate) fn rows(&self, sink: &mut dyn Sink) -> anyhow::Result<ExitCode> {
        let mut said = self.warners();
        let mut sinks: Vec<&mut dyn Sink> = Vec::new();
        for warner in &mut said {
            sinks.push(&mut **warner);
        }
        sinks.push(sink);
        let mut open = self.open(None)?;
        self.narrow(&mut open)?;
        self.run(open, sinks, true, Some(Progress::new()))
    }

    /// Sinks that warn of odd choices of captures and flows.
    pub(crate) fn warners(&self) -> Vec<Box<dyn Sink>> {
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        if self.options.captures.len() > 1 {
            sinks.push(Box::new(Common::default()));
        }
        if self.settings.shape.flow.is_some() {
            sinks.push(Box::new(ChosenFlows::default()));
        }
        sinks
    }

    /// Says what the job's log gave, and which documents end early.
    fn note_log(&self) {
        for (file, reason) in &self.settings.merged.cut {
            messages::warn(file, reason);
        }
        if let Some(about) = &self.settings.about_log {
            if about.is_useless {
                messages::warn(&about.name, &about.text);
            } else if !self.options.shape.quiet {
                messages::note(&about.name, &about.text);
            }
        }
    }
}

/// Analyses captures for their rows alone; see [`PreparedRun::rows`].
///
/// # Errors
/// When the captures, or a file that an option names, cannot be read, or the sink fails.
pub(crate) fn rows(options: &RunOptions, sink: &mut dyn Sink) -> anyhow::Result<ExitCode> {
    PreparedRun::new(FoundCaptures::find(options)?, true, RunStart::now())?.rows(sink)
}

/// The frames between `from` and `to`, as nanoseconds since the epoch.
///
/// # Errors
/// When there can be none.
pub(crate) fn time_range(
    from: Option<Moment>,
    to: Option<Moment>,
    open: &mut OpenRun,
) -> anyhow::Result<Range<u64>> {
    let is_relative = |moment: &Moment| matches!(moment, Moment::After(_));
    let first = if [&from, &to].into_iter().flatten().any(is_relative) {
        open.first_time().unwrap_or_default()
    } else {
        roce_model::Time::default()
    };
    let from = from.map_or(0, |moment| moment.resolve(first).0);
    let to = to.map_or(u64::MAX, |moment| moment.resolve(first).0);
    if from >= to {
        bail!("--from is not before --to: no frame can be in between");
    }
    Ok(from..to)
}

/// Says on standard error what a run reports.
fn say(notice: &Notice<'_>, warns: bool) {
    match notice {
        Notice::Error(text) => messages::error(text),
        Notice::Warning(about, text) => messages::warn(about, text),
        Notice::Concluded(summary) if warns => say_warnings(summary),
        _ => {}
    }
}

/// Says on standard error what the terminal's summary has of its inputs.
fn say_warnings(summary: &RunSummary) {
    for input in &summary.inputs {
        for text in &input.warnings {
            messages::warn(&input.input, text);
        }
    }
}

/// Samples of other runs that are joined.
///
/// # Errors
/// A folder has none, or its recording is analysed itself, with its samples.
fn other_samples(options: &RunOptions) -> anyhow::Result<Vec<StoredSamples>> {
    let found = options.samples.iter().map(|dir| {
        let recording = dir.join(RecordingStart::FILE).canonicalize().ok();
        let mut captures = options.captures.iter();
        if recording.is_some() && captures.any(|capture| capture.canonicalize().ok() == recording) {
            bail!(
                "{}: the samples of a recording that is analysed are in the results already\nhint: omit --samples for this folder",
                dir.display()
            );
        }
        Ok(StoredSamples::find(dir)?)
    });
    found.collect()
}
