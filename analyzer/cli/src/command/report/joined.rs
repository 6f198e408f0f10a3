//! Results of several folders as those of one run: taps numbered on, rows and summaries joined, nothing concluded again.

use std::collections::HashMap;
use std::path::Path;

use roce_model::{
    EventColumns, FlowColumns, FlowId, FlowKey, FlowRow, Period, RunSummary, SampleColumns, Sink, SinkError,
    Span, TapId, TimelineColumns, Values,
};
use roce_parquet::Rows;
use roce_pipeline::stored;

use crate::options::settings::each_once;
use crate::output::messages::{self, sink_error};

/// Gives `sink` what all folders hold, each with its name.
///
/// # Errors
/// When a folder cannot be read, their bins differ, or the sink fails.
pub(super) fn replay(dirs: &[(String, &Path)], sink: &mut dyn Sink) -> anyhow::Result<()> {
    let owners = FlowOwners::from_folders(dirs)?;
    let mut all: Option<RunSummary> = None;
    for (folder, (name, dir)) in dirs.iter().enumerate() {
        let mut one = One {
            sink: &mut *sink,
            folder,
            first_tap: all
                .as_ref()
                .map_or(0, |all| u32::try_from(all.taps.len()).unwrap_or(u32::MAX)),
            bin: all.as_ref().map(|all| all.bin),
            owners: &owners,
            seen_again: 0,
            run: RunSummary::default(),
        };
        stored::replay(dir, &mut one).map_err(sink_error)?;
        let (first_tap, mut run) = (one.first_tap, one.run);
        renumber(
            &mut run,
            first_tap,
            name,
            all.as_ref().map_or(0, |all| all.episodes.len()),
        );
        all = Some(match all {
            None => run,
            Some(all) => join(all, run),
        });
    }
    let mut run = all.unwrap_or_default();
    run.options = each_once(std::mem::take(&mut run.options));
    run.findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    run.episodes
        .sort_by_key(|episode| (episode.start_time, episode.episode));
    run.steps.sort_by_key(|step| (step.start_time, step.tap));
    sink.finish(&run).map_err(sink_error)
}

/// A folder's part of a flow that counts there: first and last time, and packets.
struct CountedFlow {
    folder: usize,
    span: Period,
    packets: u64,
}

/// Limit of the flows that are compared between folders: about 130 MB. Others count in each folder that has them, and a warning
/// says so.
const MAX_COMPARED: usize = 1 << 20;

/// The folder that counts a flow that several folders have.
struct FlowOwners(HashMap<FlowId, Vec<CountedFlow>>);

impl FlowOwners {
    fn from_folders(dirs: &[(String, &Path)]) -> anyhow::Result<Self> {
        let mut flows: HashMap<FlowId, Vec<CountedFlow>> = HashMap::new();
        let mut others = 0_u64;
        for (folder, (_, dir)) in dirs.iter().enumerate() {
            for rows in Rows::<FlowColumns>::open(dir)? {
                for row in rows?.into_iter().filter(|row| row.counted) {
                    if flows.len() >= MAX_COMPARED && !flows.contains_key(&row.flow_id) {
                        others += 1;
                        continue;
                    }
                    let seen = flows.entry(row.flow_id).or_default();
                    match seen.iter_mut().find(|seen| seen.folder == folder) {
                        Some(seen) => {
                            seen.span.include(row.first_time);
                            seen.span.include(row.last_time);
                            seen.packets += row.packets;
                        }
                        None => seen.push(CountedFlow {
                            folder,
                            span: Period {
                                first: row.first_time,
                                last: row.last_time,
                            },
                            packets: row.packets,
                        }),
                    }
                }
            }
        }
        flows.retain(|_, seen| seen.len() > 1);
        if others > 0 {
            messages::warn(
                "report",
                &format!(
                    "{others} rows of flows beyond the first {MAX_COMPARED} flows count in each folder that has them"
                ),
            );
        }
        Ok(Self(flows))
    }

    /// True if it is this one: no other saw more of it at the same time; of equals the first.
    fn counts(&self, flow: FlowId, folder: usize) -> bool {
        let Some(seen) = self.0.get(&flow) else {
            return true;
        };
        let Some(own) = seen.iter().find(|seen| seen.folder == folder) else {
            return true;
        };
        let weight = |seen: &CountedFlow| (seen.packets, std::cmp::Reverse(seen.folder));
        seen.iter().all(|other| {
            let is_apart = other.span.last < own.span.first || own.span.last < other.span.first;
            is_apart || weight(other) <= weight(own)
        })
    }
}

/// The results of one folder on their way to the common sink.
struct One<'a> {
    sink: &'a mut dyn Sink,
    folder: usize,
    first_tap: u32,
    /// The bins of the folders before.
    bin: Option<Span>,
    owners: &'a FlowOwners,
    /// Packets in rows that another folder counts.
    seen_again: u64,
    run: RunSummary,
}

impl Sink for One<'_> {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        match self.bin {
            None => self.sink.begin(bin),
            Some(before) if before == bin => Ok(()),
            Some(before) => Err(format!(
                "the folders' bins differ: {before} and {bin}\nhint: analyse the captures with the same --bin"
            )
            .into()),
        }
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.sink.flows_opened(keys)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        let mut rows = rows.clone();
        rows.tap = moved(&rows.tap, self.first_tap);
        self.sink.timeline(&rows)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        let mut rows = rows.clone();
        rows.tap = moved(&rows.tap, self.first_tap);
        self.sink.events(&rows)
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.sink.samples(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        let mut rows = rows.to_vec();
        for row in &mut rows {
            row.tap.0 += self.first_tap;
            if row.counted && !self.owners.counts(row.flow_id, self.folder) {
                row.counted = false;
                self.seen_again += row.packets;
            }
        }
        self.sink.flows_closed(&rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.run = run.clone();
        self.run.totals.seen_again += self.seen_again;
        Ok(())
    }
}

fn moved(taps: &Values<u32>, by: u32) -> Values<u32> {
    let mut moved = Values::default();
    for tap in taps.iter() {
        moved.push(tap.copied().unwrap_or_default() + by);
    }
    moved
}

/// Taps and episodes get numbers of their own among all, and everything says which folder it is from.
fn renumber(run: &mut RunSummary, first_tap: u32, name: &str, episodes: usize) {
    let moved = |tap: &mut TapId| tap.0 += first_tap;
    let first_episode = u32::try_from(episodes).unwrap_or(u32::MAX);
    for input in &mut run.inputs {
        input.input = format!("{name}: {}", input.input);
    }
    for tap in &mut run.taps {
        moved(&mut tap.tap);
        tap.clock_reference.iter_mut().for_each(moved);
        tap.input = format!("{name}: {}", tap.input).into();
    }
    run.cnp_receivers
        .iter_mut()
        .for_each(|receiver| moved(&mut receiver.tap));
    run.vantages
        .iter_mut()
        .for_each(|vantage| moved(&mut vantage.tap));
    for hop in &mut run.hops {
        moved(&mut hop.from_tap);
        moved(&mut hop.to_tap);
    }
    for episode in &mut run.episodes {
        moved(&mut episode.tap);
        episode.episode += first_episode;
    }
    for step in &mut run.steps {
        moved(&mut step.tap);
        step.episode = step.episode.map(|episode| episode + first_episode);
    }
    for finding in &mut run.findings {
        finding.evidence.text("dataset", name);
    }
    for (_, value) in &mut run.options {
        *value = format!("{name}: {value}");
    }
}

fn join(mut all: RunSummary, run: RunSummary) -> RunSummary {
    all.started = all.started.min(run.started);
    all.elapsed.0 += run.elapsed.0;
    all.span = match (all.span, run.span) {
        (Some(mut span), Some(other)) => {
            span.include(other.first);
            span.include(other.last);
            Some(span)
        }
        (span, other) => span.or(other),
    };
    all.totals.add(&run.totals);
    all.options.extend(run.options);
    all.inputs.extend(run.inputs);
    all.taps.extend(run.taps);
    all.cnp_receivers.extend(run.cnp_receivers);
    all.vantages.extend(run.vantages);
    all.hops.extend(run.hops);
    all.episodes.extend(run.episodes);
    all.steps.extend(run.steps);
    all.findings.extend(run.findings);
    all
}
