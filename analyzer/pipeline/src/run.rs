//! The data path: frames come from a feed (files or devices), are decoded, analysed and emitted to the
//! sinks, on one thread or on several.
//!
//! With several threads, one reads, and each of the others handles one shard of the host pairs. The
//! caller's thread puts their results in the order of time. One of the shards says whose each frame is ([`RouteFinder`]), for all of them. Every
//! shard learns of every stretch of frames, so all of them number taps alike and know the watermark.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use roce_capture::Merge;
use roce_flow::{Analysis, Collector, Conclusion, Options, Output};
use roce_model::{Filter, PacketBatch, Period, Sink, SinkError, Totals};
use roce_verdict::{Settings, Verdicts};
use roce_wire::AssignedNumbers;

use crate::batches::{Inlet, read, ways};
use crate::decode::Decoder;
use crate::feed::{Feed, MergedInputs, Next, Work};
use crate::processes::Processes;
use crate::routes::{FRAME_BATCH, PickedFrames, RouteFinder, Shard};
use crate::taps::{Apart, Taps};

/// Closed flows whose rows, of 1.5 KB each, are emitted together: they stay in the second cache level.
const CLOSE_BATCH: usize = 256;

/// Request to a running analysis from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tick {
    /// An interval has passed, and the sinks learn of it.
    Interval,
    /// A screen is watched: the sinks get the run's progress.
    Look {
        /// Requests a snapshot, which the sinks get with one of the next looks.
        snapshot: bool,
    },
}

/// Maximum number of live flows in the snapshot of one shard: about 25 MB. With more of them no snapshot is made.
const MAX_SNAPSHOT: usize = 1 << 14;

/// Results at the end besides those of the sinks.
pub struct RunOutcome<F> {
    /// The feed, at its end.
    pub feed: F,
    pub(crate) decoder: Decoder,
    pub(crate) conclusion: Conclusion,
}

impl<F> RunOutcome<F> {
    /// First and last captured frame.
    pub fn span(&self) -> Option<Period> {
        self.decoder.span
    }

    /// Replaces the feed by one made of it.
    pub fn map_feed<G>(self, make: impl FnOnce(F) -> G) -> RunOutcome<G> {
        RunOutcome {
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

/// Plan for the frames.
pub struct Plan {
    /// Threads that analyse; 1 does everything on the caller's.
    pub threads: u32,
    /// Options of the analysis.
    pub options: Options,
    /// Settings of the verdicts. The width of a bin and the speed of links are those of `options`.
    pub settings: Settings,
    /// Only packets for which it holds.
    pub filter: Option<Filter>,
    /// Only what belongs to these processes; empty: everything.
    pub processes: Processes,
    /// Only frames of this time, in nanoseconds since the epoch.
    pub range: Range<u64>,
    /// Interfaces or captures that make one tap.
    pub lags: Vec<Vec<String>>,
    /// Numbers that the network has set.
    pub assigned: AssignedNumbers,
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
                priority_of_dscp: options.priority_of_dscp,
                ..Settings::default()
            },
            filter: None,
            processes: Processes::default(),
            range: 0..u64::MAX,
            lags: Vec::new(),
            assigned: AssignedNumbers::default(),
            match_taps: false,
            apart: Arc::default(),
        }
    }

    /// A feed of the merged inputs of this run.
    pub fn source(&self, merge: Merge) -> MergedInputs {
        MergedInputs::new(merge, &self.apart)
    }

    fn worker(&self, shard: Shard) -> ShardWorker {
        let mut decoder = Decoder::new(
            shard,
            self.filter.clone(),
            self.processes.chosen(),
            self.range.clone(),
            Taps::new(&self.lags, Arc::clone(&self.apart)),
        );
        decoder.assigned = self.assigned;
        // All shards together keep at most `max_flows`.
        let max_flows = self.options.max_flows.div_ceil(shard.of as usize);
        let mut analysis = Analysis::new(Options {
            max_flows,
            ..self.options
        });
        if self.match_taps {
            analysis.match_taps();
        }
        ShardWorker {
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
) -> Result<(RunOutcome<MergedInputs>, Verdicts), SinkError> {
    let mut collector = Collector::new(plan.threads as usize, plan.settings.clone(), sinks);
    let source = plan.source(merge);
    let progress = |source: &MergedInputs| progress(&source.merge);
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
pub(crate) fn run_live<F: Feed>(
    feed: F,
    plan: &Plan,
    sinks: Vec<&mut dyn Sink>,
    ticks: &Receiver<Tick>,
) -> Result<(RunOutcome<F>, Verdicts), SinkError> {
    let mut collector = Collector::new(plan.threads as usize, plan.settings.clone(), sinks);
    let done = threaded(feed, plan, &mut collector, |_| (), ticks)?;
    Ok((done, collector.finish()?))
}

/// The system gives no thread.
fn no_thread(error: &std::io::Error) -> SinkError {
    format!("no thread for the analysis: {error}\nhint: --threads 1, or more processes (ulimit -u, pids.max)")
        .into()
}

/// Runs on the caller's thread alone.
fn single<F: Feed>(
    mut feed: F,
    plan: &Plan,
    collector: &mut Collector<'_>,
    mut progress: impl FnMut(&F),
) -> Result<RunOutcome<F>, SinkError> {
    let mut worker = plan.worker(Shard::ALL);
    worker.analysis.share_room(collector.spare());
    while let Next::Work(work) = feed.next() {
        worker.take(&work, &mut PickedFrames::All, |output| collector.push(0, output))?;
        if worker.analysis.has_output() {
            collector.push(0, worker.analysis.take_output())?;
        }
        feed.recycle(work);
        progress(&feed);
    }
    while let Some(output) = worker.close() {
        collector.push(0, output)?;
    }
    let (output, decoder, conclusion) = worker.finish();
    collector.push(0, output)?;
    Ok(RunOutcome {
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
) -> Result<RunOutcome<F>, SinkError> {
    let (stop, snapshot_wanted) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let shards = plan.threads;
        let (results, from_shards) = bounded(shards as usize * 8);
        let (outlet, inlets) = ways(shards, &RouteFinder::new(shards, plan.range.clone()));
        let mut workers = Vec::new();
        for (index, inlet) in (0..).zip(inlets) {
            let results = results.clone();
            let mut worker = plan.worker(Shard { index, of: shards });
            worker.analysis.share_room(collector.spare());
            let thread = std::thread::Builder::new();
            let analyse = move || work_on_shard(index as usize, worker, &inlet, &results);
            workers.push(
                thread
                    .spawn_scoped(scope, analyse)
                    .map_err(|error| no_thread(&error))?,
            );
        }
        drop(results);
        let (stop, snapshot_wanted) = (&stop, &snapshot_wanted);
        let thread = std::thread::Builder::new();
        let read = move || read(feed, outlet, (stop, snapshot_wanted), progress);
        let reader = thread
            .spawn_scoped(scope, read)
            .map_err(|error| no_thread(&error))?;
        let emitted = emit_results(&from_shards, ticks, collector, |error, wanted| {
            stop.fetch_or(error, Ordering::Relaxed);
            snapshot_wanted.fetch_or(wanted, Ordering::Relaxed);
        });
        let feed = reader.join().map_err(|_| "the reading thread panicked")?;
        let (decoder, conclusion) = join(workers)?;
        emitted?;
        Ok(RunOutcome {
            feed,
            decoder,
            conclusion,
        })
    })
}

/// Gives the shards' results to the collector until all shards have ended. `notify` learns that a sink failed, and that a snapshot is
/// wanted. A failed sink ends the reading; results of shards are taken all the same, so that they can end.
fn emit_results(
    from_shards: &Receiver<(usize, Output)>,
    ticks: &Receiver<Tick>,
    collector: &mut Collector<'_>,
    notify: impl Fn(bool, bool),
) -> Result<(), SinkError> {
    let mut whole = Ok(());
    loop {
        let result = select! {
            recv(from_shards) -> output => match output {
                Ok((shard, output)) if whole.is_ok() => collector.push(shard, output),
                Ok(_) => Ok(()),
                Err(_) => return whole,
            },
            recv(ticks) -> tick => match tick {
                Ok(Tick::Interval) if whole.is_ok() => collector.interval(),
                Ok(Tick::Look { snapshot }) if whole.is_ok() => {
                    notify(false, snapshot);
                    collector.progress()
                }
                _ => Ok(()),
            },
        };
        if result.is_err() {
            notify(true, false);
            whole = result;
        }
    }
}

/// Waits for the shards, and adds their counts.
fn join(
    workers: Vec<ScopedJoinHandle<'_, (Decoder, Conclusion)>>,
) -> Result<(Decoder, Conclusion), SinkError> {
    let mut whole: Option<(Decoder, Conclusion)> = None;
    let mut others = Vec::new();
    for worker in workers {
        let (decoder, conclusion) = worker.join().map_err(|_| "an analysing thread panicked")?;
        match &mut whole {
            None => whole = Some((decoder, conclusion)),
            Some((all, _)) => {
                all.add(&decoder);
                others.push(conclusion);
            }
        }
    }
    let mut whole = whole.ok_or("no thread was started")?;
    if !others.is_empty() {
        whole.1.add(&others);
    }
    Ok(whole)
}

/// The thread of a shard: analyses batch by batch, and sends the results.
fn work_on_shard(
    index: usize,
    mut worker: ShardWorker,
    inlet: &Inlet,
    results: &Sender<(usize, Output)>,
) -> (Decoder, Conclusion) {
    while let Some(batch) = inlet.next() {
        let mut picked = inlet.routes(&batch).of(index);
        for work in &batch.works {
            let sent = worker.take(work, &mut picked, |output| {
                results.send((index, output)).map_err(drop)
            });
            if sent.is_err() {
                break;
            }
        }
        let (now, snapshot) = (batch.now, batch.snapshot);
        drop(batch);
        worker.analyse();
        if let Some(now) = now {
            worker.analysis.advance_to(now);
        }
        if snapshot {
            worker.analysis.take_snapshot(MAX_SNAPSHOT);
        }
        // The watermark of this shard is a result, too: others wait for it.
        let _ = results.send((index, worker.analysis.take_output()));
    }
    while let Some(output) = worker.close() {
        let _ = results.send((index, output));
    }
    let (output, decoder, conclusion) = worker.finish();
    let _ = results.send((index, output));
    (decoder, conclusion)
}

/// Worker of one shard: decoder and analysis.
struct ShardWorker {
    decoder: Decoder,
    analysis: Analysis,
    batch: PacketBatch,
    /// Number of packets that are analysed together; the first time more.
    together: usize,
}

impl ShardWorker {
    /// Takes frames. Of many closed flows the rows are emitted meanwhile: the first batch of a file can have 100,000 frames.
    fn take<E>(
        &mut self,
        work: &Work,
        picked: &mut PickedFrames<'_>,
        mut emit: impl FnMut(Output) -> Result<(), E>,
    ) -> Result<(), E> {
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
            self.decoder.decode(work, from..to, picked, &mut self.batch);
            // Where inputs alternate, runs are short: their packets are analysed together all the same.
            if self.batch.packets.len().max(self.batch.between.len()) >= self.together {
                self.analyse();
                if self.analysis.closed_flows() >= CLOSE_BATCH {
                    emit(self.analysis.take_output())?;
                }
            }
            from = to;
            if from >= all.end {
                return Ok(());
            }
        }
    }

    /// Analyses what was decoded.
    fn analyse(&mut self) {
        for resolution in self.decoder.taps.resolutions(self.analysis.resolutions()) {
            self.analysis.add_resolution(resolution);
        }
        self.analysis.push(&self.batch);
        self.analysis.samples(&mut self.batch.samples);
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
