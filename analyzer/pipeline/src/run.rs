//! The way of the data: frames come from a feed (files or devices), are decoded, analysed and handed to the sinks, on one
//! thread or on several.
//!
//! With several, one reads, each of the others takes its share of the host pairs, and the caller's thread brings their
//! results together in the order of time. Every part sees every frame, so that all number the taps alike and
//! know how far time has come.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use roce_capture::Merge;
use roce_flow::{Analysis, Collector, Conclusion, Options, Output};
use roce_model::{Filter, Nanos, PacketBatch, Sink, SinkError, Span, Totals};
use roce_verdict::{Settings, Verdicts};

use crate::decode::{Decoder, Share};
use crate::feed::{Feed, Next, Source, Work};
use crate::processes::Processes;
use crate::taps::{Apart, Taps};

/// Flows closed at a time, at the end: their rows, of 1.5 KB each, stay in the second cache level.
const CLOSE_BATCH: usize = 256;
/// Frames decoded and analysed together: their packets stay in the first cache levels.
const FRAME_BATCH: usize = 256;
/// Frames handed to a thread at once, at least, as long as there are more.
const HANDED_ON: usize = 4096;
/// A batch also ends at so many bytes, ...
const HANDED_ON_BYTES: usize = 1 << 20;
/// ... or runs: some have no frames, only losses.
const MAX_BATCH_RUNS: usize = 4096;
/// Such batches that wait for a thread, at most.
const MAX_WAITING: usize = 4;

/// What a run that goes on is told from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tick {
    /// An interval has passed: the sinks are told.
    Interval,
    /// Somebody looks: the sinks are told how far the run has come.
    Look {
        /// All that there is to say so far is wanted: the sinks get it with one of the next looks.
        snapshot: bool,
    },
}

/// Live flows of a part of which it is said how they stand, at most: some 25 MB.
const MAX_SNAPSHOT: usize = 1 << 14;

/// What is known at the end besides what the sinks got.
pub struct Done<F> {
    /// The feed, at its end.
    pub feed: F,
    pub(crate) decoder: Decoder,
    pub(crate) conclusion: Conclusion,
}

impl<F> Done<F> {
    /// First and last captured frame.
    pub fn span(&self) -> Option<Span> {
        self.decoder.span
    }

    /// The same run with another feed, which is made of the one that it had.
    pub fn map_feed<G>(self, make: impl FnOnce(F) -> G) -> Done<G> {
        Done {
            feed: make(self.feed),
            decoder: self.decoder,
            conclusion: self.conclusion,
        }
    }

    /// All counts but those of the capture's own losses.
    pub fn totals(&self) -> Totals {
        let mut totals = self.conclusion.totals.clone();
        totals.add(&self.decoder.totals);
        totals
    }
}

/// What is to be done with the frames.
pub struct Plan {
    /// Threads that analyse; 1 does everything on the caller's.
    pub threads: u32,
    /// Of the analysis.
    pub options: Options,
    /// Of the verdicts; the width of a bin and the speed of links are those of `options`.
    pub settings: Settings,
    /// Only packets for which it holds.
    pub filter: Option<Filter>,
    /// Only what belongs to these processes; empty: everything.
    pub processes: Processes,
    /// Only frames of this time, in nanoseconds since the epoch.
    pub range: Range<u64>,
    /// Interfaces or captures that make one tap.
    pub lags: Vec<Vec<String>>,
    /// Inputs may have seen the same packets.
    pub match_taps: bool,
    /// Inputs that surely have.
    pub(crate) apart: Arc<Apart>,
}

impl Default for Plan {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Plan {
    /// All frames on one thread, and verdicts with the usual thresholds.
    pub fn new(options: Options) -> Self {
        Self {
            threads: 1,
            options,
            settings: Settings {
                bin: options.bin,
                link_rate: options.link_rate,
                ..Settings::default()
            },
            filter: None,
            processes: Processes::default(),
            range: 0..u64::MAX,
            lags: Vec::new(),
            match_taps: false,
            apart: Arc::default(),
        }
    }

    fn part(&self, share: Share) -> Part {
        let decoder = Decoder::new(
            share,
            self.filter.clone(),
            self.processes.chosen(),
            self.range.clone(),
            Taps::new(&self.lags, Arc::clone(&self.apart)),
        );
        // All parts together keep as many flows as one.
        let max_flows = self.options.max_flows.div_ceil(share.of as usize);
        let mut analysis = Analysis::new(Options {
            max_flows,
            ..self.options
        });
        if self.match_taps {
            analysis.match_taps();
        }
        Part {
            decoder,
            analysis,
            batch: PacketBatch::default(),
            together: FRAME_BATCH.max(Analysis::FIRST_PACKETS),
        }
    }
}

/// Takes all frames of files to the sinks; `progress` is called now and then.
///
/// # Errors
/// When a sink fails.
pub fn run(
    merge: Merge,
    plan: &Plan,
    sinks: Vec<&mut dyn Sink>,
    mut progress: impl FnMut(&Merge) + Send,
) -> Result<(Done<Source>, Verdicts), SinkError> {
    let mut collector = Collector::new(plan.threads as usize, plan.settings.clone(), sinks);
    let source = Source::new(merge);
    let progress = |source: &Source| progress(&source.merge);
    let done = if plan.threads == 1 {
        single(source, plan, &mut collector, progress)
    } else {
        threaded(source, plan, &mut collector, progress, &never())
    }?;
    Ok((done, collector.finish()?))
}

/// Takes all frames of devices, or of a replay, to the sinks, and tells them what comes from `ticks`.
///
/// # Errors
/// When a sink fails.
pub fn run_live<F: Feed>(
    feed: F,
    plan: &Plan,
    sinks: Vec<&mut dyn Sink>,
    ticks: &Receiver<Tick>,
) -> Result<(Done<F>, Verdicts), SinkError> {
    let mut collector = Collector::new(plan.threads as usize, plan.settings.clone(), sinks);
    let done = threaded(feed, plan, &mut collector, |_| (), ticks)?;
    Ok((done, collector.finish()?))
}

/// Runs on the caller's thread alone.
fn single<F: Feed>(
    mut feed: F,
    plan: &Plan,
    collector: &mut Collector<'_>,
    mut progress: impl FnMut(&F),
) -> Result<Done<F>, SinkError> {
    let mut part = plan.part(Share::ALL);
    part.analysis.share_room(collector.spare());
    while let Next::Work(work) = feed.next() {
        part.take(&work);
        if part.analysis.has_output() {
            collector.push(0, part.analysis.take_output())?;
        }
        feed.recycle(work);
        progress(&feed);
    }
    while let Some(output) = part.close() {
        collector.push(0, output)?;
    }
    let (output, decoder, conclusion) = part.finish();
    collector.push(0, output)?;
    Ok(Done {
        feed,
        decoder,
        conclusion,
    })
}

/// Runs with threads that analyse, and one that reads.
fn threaded<F: Feed>(
    feed: F,
    plan: &Plan,
    collector: &mut Collector<'_>,
    progress: impl FnMut(&F) + Send,
    ticks: &Receiver<Tick>,
) -> Result<Done<F>, SinkError> {
    let (stop, asked) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let parts = plan.threads;
        let (results, from_parts) = bounded(parts as usize * 8);
        let mut to_parts = Vec::new();
        let mut workers = Vec::new();
        for index in 0..parts {
            let (sender, work) = bounded(MAX_WAITING);
            to_parts.push(sender);
            let results = results.clone();
            let mut part = plan.part(Share { index, of: parts });
            part.analysis.share_room(collector.spare());
            workers.push(scope.spawn(move || analyse(index as usize, part, &work, &results)));
        }
        drop(results);
        let (stop, asked) = (&stop, &asked);
        let reader = scope.spawn(move || read(feed, to_parts, stop, asked, progress));
        let mut failed = None;
        // A failed sink ends the reading; the parts' results are taken all the same, so that they can end.
        loop {
            let result = select! {
                recv(from_parts) -> output => match output {
                    Ok((part, output)) if failed.is_none() => collector.push(part, output),
                    Ok(_) => Ok(()),
                    Err(_) => break,
                },
                recv(ticks) -> tick => match tick {
                    Ok(Tick::Interval) if failed.is_none() => collector.interval(),
                    Ok(Tick::Look { snapshot }) if failed.is_none() => {
                        asked.fetch_or(snapshot, Ordering::Relaxed);
                        collector.progress()
                    }
                    _ => Ok(()),
                },
            };
            if let Err(error) = result {
                stop.store(true, Ordering::Relaxed);
                failed = Some(error);
            }
        }
        let feed = reader.join().map_err(|_| "the reading thread panicked")?;
        let mut whole: Option<(Decoder, Conclusion)> = None;
        for worker in workers {
            let (decoder, conclusion) = worker.join().map_err(|_| "an analysing thread panicked")?;
            match &mut whole {
                None => whole = Some((decoder, conclusion)),
                Some((all, concluded)) => {
                    all.add(&decoder);
                    concluded.add(&conclusion);
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let (decoder, conclusion) = whole.ok_or("no thread was started")?;
        Ok(Done {
            feed,
            decoder,
            conclusion,
        })
    })
}

/// The reading thread: every part gets every frame.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the parts end when their senders are gone"
)]
fn read<F: Feed>(
    mut feed: F,
    to_parts: Vec<Sender<Arc<Portion>>>,
    stop: &AtomicBool,
    asked: &AtomicBool,
    mut progress: impl FnMut(&F),
) -> F {
    let mut emitted: VecDeque<Arc<Portion>> = VecDeque::new();
    let mut portion = Vec::new();
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
            bytes += work
                .run
                .frames()
                .iter()
                .map(|frame| frame.captured as usize)
                .sum::<usize>();
            portion.push(work);
        }
        let full = frames >= HANDED_ON || bytes >= HANDED_ON_BYTES || portion.len() >= MAX_BATCH_RUNS;
        let snapshot = asked.swap(false, Ordering::Relaxed);
        if full || snapshot || now.is_some() || !goes_on && !portion.is_empty() {
            let all = Arc::new(Portion {
                works: std::mem::take(&mut portion),
                now,
                snapshot,
            });
            (frames, bytes) = (0, 0);
            for part in &to_parts {
                // A part that is gone has panicked: joining it tells.
                let _ = part.send(Arc::clone(&all));
            }
            emitted.push_back(all);
            progress(&feed);
        }
        if ended || stop.load(Ordering::Relaxed) {
            return feed;
        }
        while emitted.front().is_some_and(|work| Arc::strong_count(work) == 1) {
            for work in emitted
                .pop_front()
                .and_then(Arc::into_inner)
                .into_iter()
                .flat_map(|portion| portion.works)
            {
                feed.recycle(work);
            }
        }
    }
}

/// What the parts get at a time.
struct Portion {
    works: Vec<Work>,
    /// Behind them, time has come so far.
    now: Option<Nanos>,
    /// Behind them, each part is to say how its flows stand.
    snapshot: bool,
}

fn analyse(
    index: usize,
    mut part: Part,
    work: &Receiver<Arc<Portion>>,
    results: &Sender<(usize, Output)>,
) -> (Decoder, Conclusion) {
    for portion in work {
        for work in &portion.works {
            part.take(work);
        }
        let (now, snapshot) = (portion.now, portion.snapshot);
        drop(portion);
        part.analyse();
        if let Some(now) = now {
            part.analysis.advance_to(now);
        }
        if snapshot {
            part.analysis.take_snapshot(MAX_SNAPSHOT);
        }
        // How far this part has come is a result, too: others wait for it.
        let _ = results.send((index, part.analysis.take_output()));
    }
    while let Some(output) = part.close() {
        let _ = results.send((index, output));
    }
    let (output, decoder, conclusion) = part.finish();
    let _ = results.send((index, output));
    (decoder, conclusion)
}

/// One part of a run: decoder and analysis.
struct Part {
    decoder: Decoder,
    analysis: Analysis,
    batch: PacketBatch,
    /// So many packets are analysed together; the first time more.
    together: usize,
}

impl Part {
    fn take(&mut self, work: &Work) {
        for input in &work.ended {
            self.decoder.taps.ended(*input);
        }
        if work.interfaces.len() > 1 {
            self.analysis.match_taps();
        }
        let all = work.run.range.clone();
        let mut from = all.start;
        loop {
            let to = (from + FRAME_BATCH).min(all.end);
            self.decoder.decode(work, from..to, &mut self.batch);
            // Where inputs take turns, runs are short: their packets are analysed together all the same.
            if self.batch.len() >= self.together {
                self.analyse();
            }
            from = to;
            if from >= all.end {
                break;
            }
        }
    }

    /// Analyses what was decoded.
    fn analyse(&mut self) {
        self.analysis.push(&self.batch);
        if !self.batch.packets.is_empty() {
            self.together = FRAME_BATCH;
        }
        self.batch.clear();
        if let Some(now) = self.decoder.now() {
            self.analysis.advance_to(now);
        }
    }

    /// Before the end: the rows of some of the flows, so that they are not all held at once; `None` when there are no more.
    fn close(&mut self) -> Option<Output> {
        self.analyse();
        let more = self.analysis.close_flows(CLOSE_BATCH);
        more.then(|| self.analysis.take_output())
    }

    fn finish(mut self) -> (Output, Decoder, Conclusion) {
        self.analyse();
        let (output, conclusion) = self.analysis.finish();
        (output, self.decoder, conclusion)
    }
}
