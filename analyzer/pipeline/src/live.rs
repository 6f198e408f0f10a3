//! The feed of a live run: the devices' ordered stream goes to the analysis, and also to the files that
//! keep it.
//!
//! Everything behind the devices' queue sees the same stream, in the same order and with the same losses. Who has more to add to it, such as
//! events of the host, does so by [`Stream::notes`]: they are brought into the order of time, recorded and analysed with the frames.

use std::sync::Arc;
use std::time::{Duration, Instant};

use roce_capture::live::{Next as Captured, Notes, Stop, Stream};
use roce_capture::{FrameRun, Interface};
use roce_model::{InputSummary, RecordingStart, RunSummary, Span, Time};

use crate::align::Alignment;
use crate::clock::{RunStart, time_of_day};
use crate::error::Error;
use crate::feed::{Feed, Next, Work};
use crate::inputs::as_live;
use crate::packet_files::PacketFiles;
use crate::run::RunOutcome;
use crate::summary::ReadInput;

/// Time without a frame after which earlier ones go to the analysis.
const PATIENCE: Duration = Duration::from_millis(50);

/// Limit of the time from a device's stamp to the frame in the stream, with some room.
const SETTLED: u64 = 200_000_000;
/// Period of adding the watermark to a quiet stream, up to [`WATERMARK_LIMIT`].
const WATERMARK_PERIOD: u64 = 100_000_000;
/// Time after the last frame of a quiet stream to which the watermark advances: all rows are complete by then.
const WATERMARK_LIMIT: u64 = 5 * Span::SECOND.0;

/// The stream of devices.
pub struct LiveFeed {
    /// The stream itself.
    pub stream: Stream,
    notes: Notes,
    /// Last watermark in the stream.
    watermark: Time,
    name: Arc<str>,
    /// Width of a bin.
    bin: Span,
    interfaces: Arc<Vec<Interface>>,
    /// Files that keep the packets.
    files: Vec<PacketFiles>,
    stop: Stop,
    /// Limit of a file's size: the run ends before the frame that would exceed it.
    max_bytes: Option<u64>,
    /// The size that a file had when it ended the run.
    pub full: Option<u64>,
    /// Time at which the current part of the stream ends.
    part_end: Option<Instant>,
    has_ended: bool,
    /// [`PATIENCE`]; the worlds of tests have less.
    patience: Duration,
    /// Errors; the run ends at the first one.
    pub errors: Vec<Error>,
}

impl LiveFeed {
    /// The stream of devices called `name`, which `files` keep.
    pub fn new(stream: Stream, name: &str, bin: Span, files: Vec<PacketFiles>, stop: Stop) -> Self {
        let interfaces = Arc::new(stream.interfaces().to_vec());
        Self {
            notes: stream.notes(),
            watermark: Time(0),
            stream,
            name: name.into(),
            bin,
            interfaces,
            files,
            stop,
            max_bytes: None,
            full: None,
            part_end: None,
            has_ended: false,
            patience: PATIENCE,
            errors: Vec::new(),
        }
    }

    /// Begins a part of the stream, a run of its own, which ends at `end` or where the stream does. Counts start from 0.
    pub fn begin_part(&mut self, end: Instant) {
        self.stream.restart_counts();
        self.interfaces = Arc::new(self.stream.interfaces().to_vec());
        self.part_end = Some(end);
    }

    /// True behind the last part: the stream itself has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The feed that ends before the packets of a file have more than this many bytes on disk.
    #[must_use]
    pub fn until(self, max_bytes: Option<u64>) -> Self {
        Self { max_bytes, ..self }
    }

    /// Adds frames to the files, and ends the run at the first frame for which one of them has no room.
    fn write(&mut self, run: &FrameRun) {
        let (max_bytes, mut full) = (self.max_bytes, None);
        self.keep(|file| {
            if file.write(run, max_bytes)? {
                full = Some(file.bytes());
            }
            Ok(())
        });
        if full.is_some() {
            self.full = full;
            self.stop.stop();
        }
    }

    /// Adds the watermark to the stream while no frame carries the time: rows close then, and are shown.
    /// The note is a part of the stream, so a replay has it, too.
    fn add_watermark(&mut self) {
        let Some(last) = self.stream.summary().last_time else {
            return;
        };
        let now = Time(time_of_day().0.saturating_sub(SETTLED));
        if now > last
            && now.since(self.watermark).0 >= WATERMARK_PERIOD
            && now.since(last).0 < WATERMARK_LIMIT + 8 * self.bin.0
        {
            self.watermark = now;
            // When there is no room for it the stream is not quiet.
            let _ = self
                .notes
                .add(now, RecordingStart::TIME, &[now.0.to_le_bytes().to_vec()]);
        }
    }

    /// Has each file do something; one that fails is given up, and the run ends.
    fn keep(&mut self, mut keep: impl FnMut(&mut PacketFiles) -> Result<(), Error>) {
        let (stop, errors) = (&self.stop, &mut self.errors);
        self.files.retain_mut(|file| match keep(file) {
            Ok(()) => true,
            Err(error) => {
                errors.push(error);
                stop.stop();
                false
            }
        });
    }
}

impl Feed for LiveFeed {
    fn next(&mut self) -> Next {
        if self.part_end.is_some_and(|end| Instant::now() >= end) {
            return Next::Ended;
        }
        match self.stream.next(self.patience) {
            Captured::Run(run) => {
                // Frames behind the last one that has room are analysed, and not kept.
                if self.full.is_none() {
                    self.write(&run);
                }
                Next::Work(Work {
                    run,
                    capture: Arc::clone(&self.name),
                    interfaces: Arc::clone(&self.interfaces),
                    processes: Arc::default(),
                    ended: Vec::new(),
                    correction: None,
                })
            }
            Captured::Quiet => {
                self.keep(PacketFiles::flush);
                self.add_watermark();
                Next::Quiet(None)
            }
            Captured::Ended => {
                self.has_ended = true;
                for file in std::mem::take(&mut self.files) {
                    if let Err(error) = file.finish() {
                        self.errors.push(error);
                    }
                }
                let errors = self.stream.take_errors();
                self.errors.extend(errors.into_iter().map(Error::from));
                Next::Ended
            }
        }
    }

    fn recycle(&mut self, work: Work) {
        self.stream.recycle(work.run);
    }
}

impl RunOutcome<LiveFeed> {
    /// The summary of a live run on the devices called `name`, but for its bins, options and verdicts; `error` is what went wrong first.
    pub(crate) fn live_summary(&self, begun: RunStart, name: &str, error: Option<String>) -> RunSummary {
        let stream = &self.feed.stream;
        let counted = stream.summary();
        let mut input = InputSummary {
            frames: counted.frames,
            first_time: counted.first_time,
            last_time: counted.last_time,
            error,
            ..InputSummary::default()
        };
        as_live(&mut input, name);
        let read = [ReadInput {
            is_repeated: false,
            clock_steps: &[],
            summary: counted,
            interfaces: stream.interfaces(),
        }];
        RunSummary {
            inputs: vec![input],
            ..self.summary(begun, &read, |_| name.to_owned(), &Alignment::none(1))
        }
    }
}

#[cfg(test)]
mod tests;
