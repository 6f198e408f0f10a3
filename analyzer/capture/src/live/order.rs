//! The frames of several devices in one order of time, with a bounded wait: a device that has nothing to show holds the
//! others back only until it is known that nothing before them will come from it.

use std::collections::VecDeque;
use std::sync::Arc;

use roce_model::Time;

use crate::batch::Batch;
use crate::merge::FrameRun;

/// Frames and losses of one read of a device.
#[derive(Debug)]
pub(super) struct Portion {
    pub(super) batch: Batch,
    /// The time of a batch without frames; one of losses alone comes as early as it can.
    pub(super) time: Time,
    /// Every later item of the device has a later stamp than this.
    pub(super) until: Time,
}

/// One device, or who else adds to the stream.
#[derive(Debug, Default)]
struct OrderedSource {
    /// Each with the time that it has without frames.
    batches: VecDeque<(Time, Arc<Batch>)>,
    /// The next frame of the first batch.
    next: usize,
    until: Time,
    ended: bool,
}

impl OrderedSource {
    /// Time of the next frame.
    fn head(&self) -> Option<Time> {
        let (time, batch) = self.batches.front()?;
        Some(batch.frames.get(self.next).map_or(*time, |frame| frame.time))
    }

    /// Nothing before this time will come any more.
    fn settled(&self) -> Time {
        match self.head() {
            Some(head) => head,
            None if self.ended => Time(u64::MAX),
            None => self.until,
        }
    }
}

/// Longest wait of frames for notes that may precede them, in ns of the stream.
const PATIENCE: u64 = 100_000_000;

/// Merges devices in order of time.
#[derive(Debug)]
pub(super) struct Order {
    sources: Vec<OrderedSource>,
    /// The latest stamp of a frame that came.
    newest: Time,
}

impl Order {
    /// Order of a number of `devices`, and of a source of notes with the next number. Notes delay frames
    /// only after their source has reported a time.
    pub(super) fn new(devices: usize) -> Self {
        let notes = OrderedSource {
            ended: true,
            ..OrderedSource::default()
        };
        Self {
            sources: (0..devices)
                .map(|_| OrderedSource::default())
                .chain([notes])
                .collect(),
            newest: Time(0),
        }
    }

    /// Before this time nothing will come any more of a source.
    fn settled(&self, at: usize) -> Time {
        let Some((notes, devices)) = self.sources.split_last() else {
            return Time(u64::MAX);
        };
        let Some(device) = devices.get(at) else {
            let nobody = notes.until == Time(0) || devices.iter().all(|device| device.ended);
            return match notes.head() {
                Some(head) => head,
                None if nobody => Time(u64::MAX),
                None => notes.until.max(Time(self.newest.0.saturating_sub(PATIENCE))),
            };
        };
        device.settled()
    }

    pub(super) fn push(&mut self, device: usize, portion: Portion) {
        let Some(source) = self.sources.get_mut(device) else {
            return;
        };
        source.until = source.until.max(portion.until);
        let Batch {
            frames, lost, notes, ..
        } = &portion.batch;
        let newest = frames.iter().map(|frame| frame.time).max();
        self.newest = self.newest.max(newest.unwrap_or_default());
        if !(frames.is_empty() && lost.is_empty() && notes.is_empty()) {
            source.batches.push_back((portion.time, Arc::new(portion.batch)));
        }
    }

    pub(super) fn end(&mut self, device: usize) {
        if let Some(source) = self.sources.get_mut(device) {
            source.ended = true;
        }
    }

    /// True if nothing is left and nothing will come.
    pub(super) fn has_ended(&self) -> bool {
        self.sources
            .iter()
            .all(|source| source.ended && source.batches.is_empty())
    }

    /// The next frames, as far as their place is settled: at equal times the device with the lower number comes first.
    pub(super) fn next(&mut self) -> Option<FrameRun> {
        let heads = self.sources.iter().enumerate();
        let (_, device) = heads
            .filter_map(|(device, source)| Some((source.head()?, device)))
            .min()?;
        // Earliest time of the other sources, and the place of an equal time.
        let others = (0..self.sources.len()).filter(|at| *at != device);
        let limit = others.map(|at| (self.settled(at), at)).min();
        let before_limit = |time: Time| limit.is_none_or(|limit| (time, device) < limit);
        let source = self.sources.get_mut(device)?;
        let (time, batch) = source.batches.front()?;
        let rest = batch.frames.get(source.next..).unwrap_or_default();
        let ready = rest
            .iter()
            .position(|frame| !before_limit(frame.time))
            .unwrap_or(rest.len());
        if ready == 0 && !(rest.is_empty() && before_limit(*time)) {
            return None;
        }
        let range = source.next..source.next + ready;
        let batch = Arc::clone(batch);
        source.next = range.end;
        if source.next == batch.frames.len() {
            source.batches.pop_front();
            source.next = 0;
        }
        Some(FrameRun {
            input: 0,
            batch,
            range,
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::frame::{Direction, Frame, LostFrames, Note};

    fn portion(device: u32, times: &[u64], until: u64) -> Portion {
        let frames = times.iter().map(|time| Frame {
            time: Time(*time),
            offset: 0,
            captured: 0,
            original: 60,
            interface: device,
            fcs_bytes: 0,
            direction: Direction::Unknown,
            process: 0,
        });
        Portion {
            batch: Batch::new(Bytes::new(), frames.collect(), Vec::new()),
            time: Time(0),
            until: Time(until),
        }
    }

    /// Device and time of each frame that is ready.
    fn ready(order: &mut Order) -> Vec<(u32, u64)> {
        let mut frames = Vec::new();
        while let Some(run) = order.next() {
            frames.extend(run.frames().iter().map(|frame| (frame.interface, frame.time.0)));
        }
        frames
    }

    #[test]
    fn one_device_waits_for_nobody() {
        let mut order = Order::new(1);
        order.push(0, portion(0, &[5, 3, 9], 0));
        assert_eq!(ready(&mut order), [(0, 5), (0, 3), (0, 9)]);
        order.end(0);
        assert!(order.has_ended());
    }

    #[test]
    fn a_quiet_device_holds_others_back_until_it_is_settled() {
        let mut order = Order::new(2);
        order.push(0, portion(0, &[10, 20, 30], 0));
        assert_eq!(ready(&mut order), []);
        // The other source has nothing up to 20. A frame of time 20 from it would come behind the lower
        // number's.
        order.push(1, portion(1, &[], 20));
        assert_eq!(ready(&mut order), [(0, 10), (0, 20)]);
        order.push(1, portion(1, &[25, 40], 21));
        assert_eq!(ready(&mut order), [(1, 25), (0, 30)]);
        order.end(0);
        assert_eq!(ready(&mut order), [(1, 40)]);
        assert!(!order.has_ended());
        order.end(1);
        assert!(order.has_ended());
    }

    #[test]
    fn what_comes_too_late_stands_where_it_came() {
        let mut order = Order::new(2);
        order.push(0, portion(0, &[10, 30], 30));
        order.push(1, portion(1, &[], 100));
        assert_eq!(ready(&mut order), [(0, 10), (0, 30)]);
        order.push(1, portion(1, &[15], 100));
        order.push(0, portion(0, &[], 100));
        assert_eq!(ready(&mut order), [(1, 15)]);
    }

    #[test]
    fn frames_wait_for_notes_that_may_precede_them() {
        let mut order = Order::new(1);
        order.push(1, portion(0, &[], 15));
        order.push(0, portion(0, &[10, 20, 30], 40));
        // A frame of time 20 may still come, and would follow the other's.
        assert_eq!(ready(&mut order), [(0, 10)]);
        order.push(1, note(20));
        order.push(1, portion(0, &[], 25));
        let came: Vec<_> = std::iter::from_fn(|| order.next())
            .map(|run| (run.frames().len(), run.notes().len()))
            .collect();
        assert_eq!(came, [(1, 0), (0, 1)]);
        // A silent source delays the others by at most 100 ms of the stream.
        order.push(0, portion(0, &[40, 100_000_035], 100_000_035));
        assert_eq!(ready(&mut order), [(0, 30)]);
        order.end(0);
        assert_eq!(ready(&mut order), [(0, 40), (0, 100_000_035)]);
        assert!(order.has_ended());
    }

    fn note(time: u64) -> Portion {
        let mut portion = portion(0, &[], 0);
        portion.time = Time(time);
        portion.batch.notes.push(Note {
            before: 0,
            kind: 1 << 31,
            offset: 0,
            length: 0,
        });
        portion
    }

    #[test]
    fn a_note_waits_for_earlier_frames_and_holds_none_back() {
        let mut order = Order::new(1);
        order.push(1, note(20));
        order.push(1, note(50));
        assert!(order.next().is_none(), "frames before it may come");
        order.push(0, portion(0, &[10, 30], 40));
        let mut came = Vec::new();
        while let Some(run) = order.next() {
            came.push((run.frames().len(), run.notes().len()));
        }
        // 10, the note of 20, 30; that of 50 waits.
        assert_eq!(came, [(1, 0), (0, 1), (1, 0)]);
        order.push(0, portion(0, &[], 60));
        assert_eq!(order.next().unwrap().notes().len(), 1);
    }

    #[test]
    fn losses_come_before_their_frame_or_alone_at_the_end() {
        let mut order = Order::new(2);
        let mut lossy = portion(0, &[10, 20], 0);
        lossy.batch.lost.push(LostFrames {
            before: 0,
            interface: 0,
            records: 7,
        });
        order.push(0, lossy);
        order.push(1, portion(1, &[15], 0));
        let run = order.next().unwrap();
        assert_eq!((run.range.clone(), run.lost().len()), (0..1, 1));
        assert_eq!(ready(&mut order), [(1, 15)], "20 waits for the second device");
        let mut alone = portion(1, &[], u64::MAX);
        alone.batch.lost.push(LostFrames {
            before: 0,
            interface: 1,
            records: 2,
        });
        order.push(1, alone);
        order.end(0);
        order.end(1);
        let lost: Vec<(u32, u64)> = std::iter::from_fn(|| order.next())
            .flat_map(|run| {
                run.lost()
                    .iter()
                    .map(|lost| (lost.interface, lost.records))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(lost, [(1, 2)]);
    }
}
