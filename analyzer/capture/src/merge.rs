//! Several captures in one order of time.
//!
//! Leaves reading each of them to its `Reader`, and the order of a file whose own times go backwards to `sorter`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use roce_model::Time;

use crate::batch::Batch;
use crate::error::Error;
use crate::frame::{Frame, LostFrames, Note};
use crate::reader::Reader;
use crate::sorter::Sorter;

/// From this many inputs on, those whose time has not come are closed where they can be.
const CLOSE_FROM: usize = 64;

/// Bytes of captures that wait to be put in order, in all, and at least of each.
const MAX_HELD_BYTES: usize = 64 << 20;
const MIN_HELD_BYTES: usize = 1 << 20;

/// Merges captures by the time of the frame that is next in each; at equal times the input with the lower
/// index comes first.
///
/// It holds the frames of each open input within 1 ms, 64 MiB of all together, and 256 KiB as long as all was
/// in order: where records are not in the order of their stamps, they are sorted over that. With 64 inputs or
/// more, plain files are looked into once and then [parked](Reader::park) until their time comes; a caller with
/// thousands of them parks each after opening it, so that they are never all open.
#[derive(Debug)]
pub struct Merge {
    readers: Vec<Reader>,
    sorters: Vec<Sorter>,
    /// Inputs that have been read to their end: how that was.
    over: Vec<Option<Result<(), Error>>>,
    current: Vec<Option<Current>>,
    /// The time of each input's next frame, and the input.
    heads: BinaryHeap<Reverse<(Time, usize)>>,
    /// The input whose batch was used up by the last run.
    exhausted: Option<usize>,
    primed: bool,
    ended: Vec<usize>,
    errors: Vec<(usize, Error)>,
}

/// Rest of an input's batch: `batch.frames()[next..]`.
#[derive(Debug)]
struct Current {
    batch: Arc<Batch>,
    next: usize,
}

/// Consecutive frames of one input, next in the order of time.
#[derive(Clone, Debug)]
pub struct FrameRun {
    /// The input's index.
    pub input: usize,
    /// The batch that they are part of.
    pub batch: Arc<Batch>,
    /// Indices of the run's frames; empty where a batch has only losses or notes.
    pub range: Range<usize>,
}

impl FrameRun {
    /// The frames.
    pub fn frames(&self) -> &[Frame] {
        self.batch.frames().get(self.range.clone()).unwrap_or_default()
    }

    /// Losses before each of these frames and, at the batch's end, after the last one. Every loss of a
    /// batch is in exactly one of its runs.
    pub fn lost(&self) -> &[LostFrames] {
        self.within(self.batch.lost(), |lost| lost.before)
    }

    /// Blocks of local use, at the same places as losses.
    pub fn notes(&self) -> &[Note] {
        self.within(self.batch.notes(), |note| note.before)
    }

    /// Items before one of these frames or, at the batch's end, after the last one.
    fn within<'a, T>(&self, all: &'a [T], before: impl Fn(&T) -> u32) -> &'a [T] {
        let from = all.partition_point(|one| (before(one) as usize) < self.range.start);
        let at_end = self.range.end == self.batch.frame_count();
        let to = if at_end {
            all.len()
        } else {
            all.partition_point(|one| (before(one) as usize) < self.range.end)
        };
        all.get(from..to).unwrap_or_default()
    }
}

impl Merge {
    /// Merges these captures.
    pub fn new(mut readers: Vec<Reader>) -> Self {
        // The times of all frames are needed where there are others to be put between them.
        if let [only] = readers.as_mut_slice() {
            only.make_frames_later();
        }
        let current = readers.iter().map(|_| None).collect();
        let over = readers.iter().map(|_| None).collect();
        let share = (MAX_HELD_BYTES / readers.len().max(1)).max(MIN_HELD_BYTES);
        let sorters = readers.iter().map(|_| Sorter::new(share)).collect();
        Self {
            readers,
            sorters,
            over,
            current,
            heads: BinaryHeap::new(),
            exhausted: None,
            primed: false,
            ended: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The next frames; `None` when all inputs have ended. An input that fails ends alone: see
    /// [`take_errors`](Self::take_errors).
    pub fn next_run(&mut self) -> Option<FrameRun> {
        self.prime();
        if let Some(input) = self.exhausted.take() {
            self.load(input);
        }
        loop {
            let Reverse((_, input)) = self.heads.pop()?;
            let Some(Current { batch, next }) = self.current.get_mut(input).and_then(Option::take) else {
                // Parked, and its time has come as far as was known: now its head is found again.
                self.load(input);
                continue;
            };
            let count = batch.frame_count();
            let later = self.heads.peek().and_then(|Reverse(other)| {
                let rest = batch.frames().get(next + 1..).unwrap_or_default();
                let mut times = rest.iter().map(|frame| frame.time);
                let later = times.position(|time| (time, input) > *other)?;
                Some((next + 1 + later, rest.get(later)?.time))
            });
            let end = later.map_or(count, |(end, _)| end);
            if let Some((_, time)) = later {
                self.heads.push(Reverse((time, input)));
                if let Some(current) = self.current.get_mut(input) {
                    *current = Some(Current {
                        batch: Arc::clone(&batch),
                        next: end,
                    });
                }
            } else {
                self.exhausted = Some(input);
            }
            return Some(FrameRun {
                input,
                batch,
                range: next..end,
            });
        }
    }

    /// Takes back a run that is not used any more: see [`Reader::recycle`].
    pub fn recycle(&mut self, run: FrameRun) {
        if let (Some(batch), Some(reader)) = (Arc::into_inner(run.batch), self.readers.get_mut(run.input)) {
            reader.recycle(batch);
        }
    }

    /// The inputs that have no more frames (they have ended, or failed) since the last call.
    pub fn take_ended(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.ended)
    }

    /// The time of the first frame of all.
    pub fn first_time(&mut self) -> Option<Time> {
        self.prime();
        self.heads.peek().map(|Reverse((time, _))| *time)
    }

    /// The captures, in the order they were given in.
    pub fn readers(&self) -> &[Reader] {
        &self.readers
    }

    /// The errors since the last call, each with the index of the input that it ended.
    pub fn take_errors(&mut self) -> Vec<(usize, Error)> {
        std::mem::take(&mut self.errors)
    }

    fn prime(&mut self) {
        if !self.primed {
            self.primed = true;
            for input in 0..self.readers.len() {
                self.peek(input);
            }
        }
    }

    /// Gets an input's first batch, and closes it again where there are many.
    fn peek(&mut self, input: usize) {
        self.load(input);
        let many = self.readers.len() >= CLOSE_FROM;
        if let (true, Some(reader), Some(current), Some(sorter), Some(over)) = (
            many,
            self.readers.get_mut(input),
            self.current.get_mut(input),
            self.sorters.get_mut(input),
            self.over.get_mut(input),
        ) && current.is_some()
            && reader.park()
        {
            *current = None;
            *sorter = Sorter::new(MIN_HELD_BYTES);
            *over = None;
        }
    }

    /// Gets an input's next batch.
    fn load(&mut self, input: usize) {
        let (Some(reader), Some(sorter), Some(over), Some(current)) = (
            self.readers.get_mut(input),
            self.sorters.get_mut(input),
            self.over.get_mut(input),
            self.current.get_mut(input),
        ) else {
            return;
        };
        let batch = loop {
            let batch = sorter.pop(over.is_some());
            for spent in sorter.take_spent() {
                reader.recycle(spent);
            }
            if batch.is_some() || over.is_some() {
                break batch;
            }
            let before = reader.steps_back();
            match reader.next_batch() {
                Ok(Some(batch)) => {
                    sorter.push(batch, reader.steps_back() == before, reader.interfaces());
                    reader.note_sorting(sorter.sorting());
                }
                Ok(None) => *over = Some(Ok(())),
                Err(error) => *over = Some(Err(error)),
            }
        };
        if let Some(batch) = batch {
            // A batch of losses or notes alone comes at the time of its input.
            let head = batch.frames.ends().map_or(sorter.gone(), |(first, _)| first);
            self.heads.push(Reverse((head, input)));
            *current = Some(Current {
                batch: Arc::new(batch),
                next: 0,
            });
            return;
        }
        reader.note_sorting(sorter.sorting());
        self.ended.push(input);
        if let Some(Err(error)) = over.replace(Ok(())) {
            self.errors.push((input, error));
        }
    }
}

#[cfg(test)]
mod tests;
