//! Batches of frames on their way from the thread that reads to the shards. That thread looks into no frame: the first shard that comes to a
//! batch finds the routes of its frames for all of them, and each shard does so for a batch ahead before it analyses one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use roce_capture::{Frame, FrameRun};
use roce_model::Time;

use crate::feed::{Feed, Next, Work};
use crate::routes::{RouteFinder, Routes};

/// Frames at which a batch for the threads ends: it has the whole run of frames in which that number is reached.
const BATCH_FRAMES: usize = 4096;
/// Bytes at which a batch ends, although it has room for more frames.
const BATCH_BYTES: usize = 1 << 20;
/// Runs of frames at which a batch ends: some have no frames, only losses.
const BATCH_RUNS: usize = 4096;
/// Maximum number of batches that wait for a thread.
const MAX_WAITING: usize = 4;

/// One batch of work for the shards.
#[derive(Debug)]
pub(crate) struct FrameBatch {
    pub(crate) works: Vec<Work>,
    routes: OnceLock<Routes>,
    /// Watermark behind the frames.
    pub(crate) now: Option<Time>,
    /// True if each shard makes a snapshot of its flows behind them.
    pub(crate) snapshot: bool,
}

/// The way of batches to the shards.
pub(crate) struct Outlet {
    shards: Vec<Sender<Arc<FrameBatch>>>,
    unrouted: Sender<Arc<FrameBatch>>,
    spare: Sender<Routes>,
    emitted: VecDeque<Arc<FrameBatch>>,
}

/// The batches that come to a shard.
#[derive(Debug)]
pub(crate) struct Inlet {
    batches: Receiver<Arc<FrameBatch>>,
    finder: RouteFinder,
    /// Batches whose frames still need routes. Each of them is on its way to all shards, too, which bounds their number.
    unrouted: Receiver<Arc<FrameBatch>>,
    /// Routes of old batches, for their room.
    spare: Receiver<Routes>,
}

/// A way to each of `shards`.
pub(crate) fn ways(shards: u32, finder: &RouteFinder) -> (Outlet, Vec<Inlet>) {
    let (unrouted, to_route) = unbounded();
    let (spare, room) = bounded(2 * MAX_WAITING);
    let (senders, inlets) = (0..shards)
        .map(|_| {
            let (sender, batches) = bounded(MAX_WAITING);
            let inlet = Inlet {
                batches,
                finder: finder.clone(),
                unrouted: to_route.clone(),
                spare: room.clone(),
            };
            (sender, inlet)
        })
        .unzip();
    let outlet = Outlet {
        shards: senders,
        unrouted,
        spare,
        emitted: VecDeque::new(),
    };
    (outlet, inlets)
}

impl Inlet {
    /// The next batch, in the order of the file; `None` at the end.
    pub(crate) fn next(&self) -> Option<Arc<FrameBatch>> {
        let batch = self.batches.recv().ok()?;
        while let Ok(ahead) = self.unrouted.try_recv() {
            if ahead.routes.get().is_none() {
                self.routes(&ahead);
                break;
            }
        }
        Some(batch)
    }

    /// The routes of the frames of a batch. Waits where another shard is finding them.
    pub(crate) fn routes<'a>(&self, batch: &'a FrameBatch) -> &'a Routes {
        batch.routes.get_or_init(|| {
            let mut routes = self.spare.try_recv().unwrap_or_default();
            for work in &batch.works {
                self.finder.route(work, &mut routes);
            }
            routes
        })
    }
}

impl Outlet {
    fn send(&mut self, batch: FrameBatch) {
        let batch = Arc::new(batch);
        // A worker that is gone has panicked, which joining it shows.
        let _ = self.unrouted.send(Arc::clone(&batch));
        for sender in &self.shards {
            let _ = sender.send(Arc::clone(&batch));
        }
        self.emitted.push_back(batch);
    }

    /// Takes back what no shard uses any more.
    fn recycle(&mut self, feed: &mut impl Feed) {
        while self
            .emitted
            .front()
            .is_some_and(|batch| Arc::strong_count(batch) == 1)
        {
            let Some(batch) = self.emitted.pop_front().and_then(Arc::into_inner) else {
                continue;
            };
            if let Some(routes) = batch.routes.into_inner() {
                // A full channel has enough of them.
                drop(self.spare.try_send(routes.cleared()));
            }
            for work in batch.works {
                feed.recycle(work);
            }
        }
    }
}

/// The reading thread: every shard gets every frame.
pub(crate) fn read<F: Feed>(
    mut feed: F,
    mut outlet: Outlet,
    (stop, snapshot_wanted): (&AtomicBool, &AtomicBool),
    mut progress: impl FnMut(&F),
) -> F {
    let mut works = Vec::new();
    let (mut frames, mut bytes) = (0, 0);
    loop {
        let next = feed.next();
        let (goes_on, ended) = (matches!(next, Next::Work(_)), matches!(next, Next::Ended));
        let now = match &next {
            Next::Quiet(now) => *now,
            _ => None,
        };
        if let Next::Work(work) = next {
            frames += work.run.range.len();
            bytes += held_bytes(&work.run);
            works.push(work);
        }
        let full = frames >= BATCH_FRAMES || bytes >= BATCH_BYTES || works.len() >= BATCH_RUNS;
        let snapshot = snapshot_wanted.swap(false, Ordering::Relaxed);
        if full || snapshot || now.is_some() || !goes_on && !works.is_empty() {
            outlet.send(FrameBatch {
                works: std::mem::take(&mut works),
                routes: OnceLock::new(),
                now,
                snapshot,
            });
            (frames, bytes) = (0, 0);
            progress(&feed);
        }
        if ended || stop.load(Ordering::Relaxed) {
            return feed;
        }
        outlet.recycle(&mut feed);
    }
}

/// Bytes that a run keeps in memory: its frames and, with the first run of a buffer, what lies between the buffer's frames. Blocks that are
/// skipped or are notes can be all of it.
fn held_bytes(run: &FrameRun) -> usize {
    let (range, data) = (&run.range, run.batch.data().len());
    if *range == (0..run.batch.frame_count()) {
        return data;
    }
    let bytes = |frames: &[Frame]| -> usize { frames.iter().map(|frame| frame.captured as usize).sum() };
    let between = if range.start == 0 {
        data.saturating_sub(bytes(run.batch.frames()))
    } else {
        0
    };
    bytes(run.frames()) + between
}

#[cfg(test)]
mod tests;
