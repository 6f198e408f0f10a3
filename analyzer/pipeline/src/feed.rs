//! Feeds: where the frames of a run come from. [`MergedInputs`] reads captures; devices and replays have feeds of their own.

use std::sync::Arc;

use roce_capture::{Correction, Error, FrameProcess, FrameRun, Interface, Merge};
use roce_model::Time;

use crate::records::RecordsOnce;
use crate::taps::Apart;

/// Source of frames in the order of time.
pub trait Feed: Send {
    /// Returns the next item.
    fn next(&mut self) -> Next;

    /// Takes back what is not used any more.
    fn recycle(&mut self, work: Work);
}

/// Next item of a feed.
pub enum Next {
    /// Frames.
    Work(Work),
    /// Nothing for now: earlier frames should be processed without waiting for more. The watermark,
    /// where it is known.
    Quiet(Option<Time>),
    /// The end.
    Ended,
}

/// Consecutive frames for the shards of a run, with the means to read them.
#[derive(Clone, Debug)]
pub struct Work {
    /// The frames.
    pub run: FrameRun,
    /// The input's name.
    pub capture: Arc<str>,
    /// The interfaces of the input, as far as they are known.
    pub interfaces: Arc<Vec<Interface>>,
    /// The processes that the input names as those of frames, as far as they are known.
    pub processes: Arc<Vec<FrameProcess>>,
    /// Inputs that have ended before this run.
    pub ended: Vec<usize>,
    /// Correction of the input's clock, which its frames already have. Times inside of notes still need it.
    pub correction: Option<Correction>,
}

/// The merged inputs, with what a decoder has to know of each.
pub struct MergedInputs {
    /// The inputs, with how far each was read.
    pub merge: Merge,
    captures: Vec<Arc<str>>,
    interfaces: Vec<Arc<Vec<Interface>>>,
    processes: Vec<Arc<Vec<FrameProcess>>>,
    once: RecordsOnce,
    /// Errors that ended inputs early.
    pub(crate) errors: Vec<(usize, Error)>,
}

impl MergedInputs {
    /// A feed of the merged inputs. What several of them recorded comes once.
    pub(crate) fn new(merge: Merge, apart: &Apart) -> Self {
        let inputs = merge.readers().len();
        let captures = merge
            .readers()
            .iter()
            .map(|reader| reader.name().into())
            .collect();
        Self {
            merge,
            captures,
            interfaces: vec![Arc::default(); inputs],
            processes: vec![Arc::default(); inputs],
            once: RecordsOnce::new(apart.recorders().to_vec()),
            errors: Vec::new(),
        }
    }

    /// Records of an input that another one has, too, and had shown before.
    pub(crate) fn left_out(&self, input: usize) -> u64 {
        self.once.left_out(input)
    }

    /// The next frames.
    pub(crate) fn work(&mut self) -> Option<Work> {
        let run = self.once.next_run(&mut self.merge);
        self.errors.extend(self.merge.take_errors());
        let run: FrameRun = run?;
        let known = self.interfaces.get_mut(run.input)?;
        let reader = self.merge.readers().get(run.input)?;
        let (interfaces, correction) = (reader.interfaces(), reader.correction());
        if known.len() != interfaces.len() {
            *known = Arc::new(interfaces.to_vec());
        }
        let processes = self.processes.get_mut(run.input)?;
        if processes.len() != reader.processes().len() {
            *processes = Arc::new(reader.processes().to_vec());
        }
        let processes = Arc::clone(processes);
        let ended = self.merge.take_ended();
        let capture = Arc::clone(self.captures.get(run.input)?);
        Some(Work {
            capture,
            interfaces: Arc::clone(known),
            processes,
            run,
            ended,
            correction,
        })
    }
}

impl Feed for MergedInputs {
    fn next(&mut self) -> Next {
        self.work().map_or(Next::Ended, Next::Work)
    }

    fn recycle(&mut self, work: Work) {
        self.merge.recycle(work.run);
    }
}
