//! The feed of a replay: frames of files, emitted when their time has come.

use std::sync::Arc;
use std::time::Duration;

use roce_capture::FrameRun;
use roce_model::{Span, Time};

use crate::feed::{Feed, MergedInputs, Next, Work};
use crate::pace::Pace;

/// The time of the next frame is looked at so often.
const NAP: Duration = Duration::from_millis(5);

/// Frames that are paced.
pub(crate) struct PacedFrames {
    /// The captures.
    pub(crate) source: MergedInputs,
    pace: Arc<Pace>,
    /// Frames before this are not waited for.
    from: Time,
    /// By so much frames are emitted before their time: so their rows are complete when it comes.
    lead: Span,
    /// Rest of the next item that is not yet due.
    waiting: Option<Work>,
    /// The last watermark.
    watermark: Option<Time>,
    /// It was ended before the end of the files.
    pub(crate) ended_early: bool,
}

impl PacedFrames {
    /// Paces `source`: from the time `from` on, and each frame by `lead` before its time.
    pub(crate) fn new(source: MergedInputs, pace: Arc<Pace>, from: Time, lead: Span) -> Self {
        Self {
            source,
            pace,
            from,
            lead,
            waiting: None,
            watermark: None,
            ended_early: false,
        }
    }

    /// Up to where frames are emitted by now; `next` is the time of the next one.
    fn until(&self, next: Time) -> Option<Time> {
        let position = self.pace.begun(next.max(self.from))?;
        Some(position + self.lead)
    }

    /// The part of `work` that is due; the rest waits.
    fn due(&mut self, work: Work) -> Option<Work> {
        let frames = work.run.frames();
        let Some(first) = frames.first() else {
            return Some(work);
        };
        let many = match self.until(first.time) {
            None => frames.len(),
            Some(until) => frames.iter().take_while(|frame| frame.time < until).count(),
        };
        let last = many.checked_sub(1).and_then(|last| frames.get(last));
        let Some(last) = last.map(|frame| frame.time) else {
            self.waiting = Some(work);
            return None;
        };
        self.pace.emitted(many as u64, last);
        if many == frames.len() {
            return Some(work);
        }
        // Notes between the two go with the second.
        let (begin, end) = (work.run.range.start, work.run.range.end);
        let part = |range| FrameRun {
            range,
            ..work.run.clone()
        };
        let (now, later) = (part(begin..begin + many), part(begin + many..end));
        self.waiting = Some(Work {
            run: later,
            ended: Vec::new(),
            ..work.clone()
        });
        Some(Work { run: now, ..work })
    }
}

impl Feed for PacedFrames {
    fn next(&mut self) -> Next {
        if self.pace.is_stopped() {
            self.ended_early = true;
            return Next::Ended;
        }
        let Some(work) = self.waiting.take().or_else(|| self.source.work()) else {
            return Next::Ended;
        };
        if let Some(work) = self.due(work) {
            return Next::Work(work);
        }
        self.pace.wait(NAP);
        // All that lies before the next frame has been emitted.
        let next = self.waiting.as_ref().and_then(|work| work.run.frames().first());
        let until = next.and_then(|frame| Some(self.until(frame.time)?.min(frame.time)));
        let now = until.filter(|until| Some(*until) > self.watermark);
        self.watermark = now.or(self.watermark);
        Next::Quiet(now)
    }

    fn recycle(&mut self, work: Work) {
        self.source.recycle(work);
    }
}
