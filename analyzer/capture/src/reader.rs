//! Reads one capture, a batch of frames at a time.
//!
//! `open_capture` has the file that is open, and `merge` the order between files. This file keeps what
//! outlasts an open file: the summary and memory for reuse.

use std::fmt;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use roce_model::Time;

use crate::batch::Batch;
use crate::blocks::SPARE;
use crate::correction::Correction;
use crate::error::Error;
use crate::frame::{Frame, FrameProcess, Interface, LostFrames};
use crate::input::{self, Counts, OpenedFile, Stream};
use crate::open_capture::OpenCapture;
use crate::options::Options;
use crate::sorter::SortCounts;
use crate::steps::{ClockStep, ClockSteps};
use crate::summary::{Progress, Summary};
use crate::walk::FoundFrames;

/// Reads one capture: a file, a named pipe, standard input, or any stream of bytes.
///
/// The content identifies format and compression. A file that is still being written is read to its
/// current end.
pub struct Reader {
    name: String,
    options: Options,
    /// The plain file it can be opened from again.
    path: Option<PathBuf>,
    size: Option<u64>,
    stored: Arc<AtomicU64>,
    expanded: Arc<AtomicU64>,
    state: State,
    found: FoundFrames,
    summary: Summary,
    /// Correction that is subtracted from the times of its frames.
    correction: Option<Correction>,
    /// Steps of its clock, which are undone before it is corrected.
    steps: ClockSteps,
    /// Batches' vectors to be used again.
    spare: Vec<(Vec<Frame>, Vec<LostFrames>)>,
}

/// Progress of a reader.
enum State {
    Open(Box<OpenCapture>),
    /// Closed, to be opened again from the start.
    Parked,
    Ended,
}

impl Reader {
    /// Opens a file and recognises its format; `-` is standard input. Blocks until a pipe has brought the first
    /// few bytes.
    ///
    /// # Errors
    /// When it cannot be opened or read, is empty, or is no capture.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let name = if path == Path::new("-") {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let OpenedFile { stream, size, again } = match input::open(path) {
            Ok(opened) => opened,
            Err(source) => return Err(Error::Open { file: name, source }),
        };
        let mut reader = Self::start(name, stream, options)?;
        reader.size = size;
        reader.path = again.then(|| path.to_owned());
        Ok(reader)
    }

    /// Reads a stream of bytes; errors call it `name`.
    ///
    /// # Errors
    /// When it cannot be read, is empty, or is no capture.
    pub fn from_read(name: impl Into<String>, stream: Stream, options: &Options) -> Result<Self, Error> {
        Self::start(name.into(), stream, options)
    }

    fn start(name: String, stream: Stream, options: &Options) -> Result<Self, Error> {
        let options = Options {
            block_bytes: options.block_bytes.clamp(1, 64 << 20),
            ..*options
        };
        let stored = Arc::new(AtomicU64::new(0));
        let expanded = Arc::new(AtomicU64::new(0));
        let mut found = FoundFrames::default();
        let counts = Counts {
            stored: Arc::clone(&stored),
            expanded: Arc::clone(&expanded),
        };
        let (open, format) = OpenCapture::begin(&name, stream, counts, &options, &mut found)?;
        let summary = Summary::new(format);
        let state = State::Open(Box::new(open));
        Ok(Self {
            name,
            options,
            path: None,
            size: None,
            stored,
            expanded,
            state,
            found,
            summary,
            correction: None,
            steps: ClockSteps::default(),
            spare: Vec::new(),
        })
    }

    /// The next frames in the order of the file; `None` at its end. A batch may have no frames where it has
    /// losses or notes to tell.
    ///
    /// # Errors
    /// When the file cannot be read any further. Everything before that was delivered, and the file has ended.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        if matches!(self.state, State::Parked) {
            self.unpark()?;
        }
        loop {
            let State::Open(open) = &mut self.state else {
                return Ok(None);
            };
            let piece = match open.next() {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    self.summary.truncation = open.truncation();
                    self.state = State::Ended;
                    return Ok(None);
                }
                Err(error) => {
                    self.state = State::Ended;
                    return Err(error);
                }
            };
            (self.found.frames, self.found.lost) = self.spare.pop().unwrap_or_default();
            open.walk(&piece, &mut self.found);
            let data = piece.buffer.freeze();
            let mut batch = Batch {
                frames: open.take_frames(&data, &mut self.found),
                data,
                lost: mem::take(&mut self.found.lost),
                notes: mem::take(&mut self.found.notes),
            };
            if batch.frames.is_empty() && batch.lost.is_empty() && batch.notes.is_empty() {
                self.recycle(batch);
                continue;
            }
            let (first, newest, before) = (
                self.summary.frames,
                self.summary.last_time.unwrap_or_default(),
                self.steps_back(),
            );
            self.count(&batch);
            let in_order = self.steps_back() == before;
            self.steps
                .take(&mut batch, &self.found.interfaces, (first, newest, in_order));
            if let Some(correction) = &self.correction {
                for frame in batch.frames.iter_mut() {
                    frame.time = correction.correct(frame.time);
                }
            }
            return Ok(Some(batch));
        }
    }

    fn count(&mut self, batch: &Batch) {
        self.summary.frames += batch.frames.len() as u64;
        self.summary.untimed = self.found.untimed;
        let lost = batch.lost.iter().map(|lost| lost.records);
        self.summary.lost_records = lost.fold(self.summary.lost_records, u64::saturating_add);
        self.found.times.report(&mut self.summary);
    }

    /// Takes back a batch that is not used any more, so that its memory is used for the next ones. Without it,
    /// and for batches whose data was cloned, memory is allocated again.
    pub fn recycle(&mut self, batch: Batch) {
        let Batch {
            data,
            frames,
            mut lost,
            ..
        } = batch;
        let mut frames = frames.into_room();
        if let (State::Open(open), Ok(buffer)) = (&mut self.state, data.try_into_mut()) {
            open.blocks.give_back(buffer);
        }
        if self.spare.len() < SPARE {
            frames.clear();
            lost.clear();
            self.spare.push((frames, lost));
        }
    }

    /// Closes the file until the next call of [`next_batch`](Self::next_batch), which then opens it again and
    /// begins with the first frame. Only plain files can be parked; others stay as they are, and false is
    /// returned. What was known (interfaces, summary) stays known until then.
    ///
    /// Many files that follow each other in time are read this way, because the system limits open
    /// files.
    pub fn park(&mut self) -> bool {
        if self.path.is_some() {
            self.state = State::Parked;
        }
        self.path.is_some()
    }

    fn unpark(&mut self) -> Result<(), Error> {
        self.state = State::Ended;
        if let Some(path) = self.path.take() {
            let spare = mem::take(&mut self.spare);
            *self = Self::open(&path, &self.options)?;
            self.spare = spare;
        }
        Ok(())
    }

    /// Name in errors: its path, or `standard input`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interfaces seen until now, numbered through all sections of a file: frames' `interface` is an index
    /// into them. It grows while reading.
    pub fn interfaces(&self) -> &[Interface] {
        &self.found.interfaces
    }

    /// The processes that the file has named as those of frames until now.
    pub fn processes(&self) -> &[FrameProcess] {
        &self.found.processes
    }

    /// Progress of reading.
    pub fn progress(&self) -> Progress {
        Progress {
            bytes: self.stored.load(Ordering::Relaxed),
            total: self.size,
        }
    }

    /// Bytes of the capture that were read, decompressed.
    pub fn expanded(&self) -> u64 {
        self.expanded.load(Ordering::Relaxed)
    }

    /// From now on the frames of a file that is read ahead are made by the thread that asks for them, where that is possible. For one whose
    /// frames nobody needs in the thread that reads.
    pub(crate) fn make_frames_later(&mut self) {
        self.found.skims = self.options.read_ahead;
    }

    /// From now on the frames' times are those of another clock; what [`summary`](Self::summary) says stays as the file
    /// says it.
    pub fn correct(&mut self, correction: Correction) {
        self.correction = Some(correction);
    }

    /// Correction of the frames' times, if there is one. Times inside of notes are not corrected here.
    pub fn correction(&self) -> Option<Correction> {
        self.correction
    }

    /// The file's clock is known to have been set forward: frames that it stamped from `at` on are moved back by that, in nanoseconds.
    pub fn set_back(&mut self, at: Time, by_ns: u64) {
        self.steps.set_back(at, by_ns);
    }

    /// Steps of the file's clock up to the last batch. What is behind them has been moved.
    pub fn clock_steps(&self) -> &[ClockStep] {
        self.steps.all()
    }

    /// Number of stamps that stepped back, and of records without a fitting stamp.
    pub(crate) fn steps_back(&self) -> u64 {
        self.summary.disorder.records + self.summary.unstamped
    }

    /// Stores the counts of the sorter.
    pub(crate) fn note_sorting(&mut self, sorting: SortCounts) {
        self.summary.sorting = sorting;
    }

    /// Summary of the file up to the last batch.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("name", &self.name)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
