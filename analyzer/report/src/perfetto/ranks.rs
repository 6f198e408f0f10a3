//! A process for each rank of a merged trace, with its collectives and what the network did in them; and a track for each rank whose credits
//! were captured.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use foldhash::fast::RandomState;
use roce_model::{
    CollectiveCallColumns, CollectiveCallRow, CollectiveWaitColumns, CollectiveWaitRow, RunSummary,
    TraceColumns,
};

use super::ending::{Arrows, LeftOut};
use super::facts::facts;
use super::form::Form;
use super::lanes::Lanes;
use super::track::Slice;

/// Collectives with their places in the table.
type Calls<'a> = Vec<(usize, &'a CollectiveCallRow)>;

/// Ranks that have a process.
const MAX_RANKS: usize = 1 << 10;

/// Writes the ranks.
pub(super) struct Ranks<'a, W> {
    pub(super) run: &'a RunSummary,
    pub(super) arrows: &'a Arrows,
    /// Arrows that begin somewhere.
    pub(super) begun: &'a HashSet<u64, RandomState>,
    pub(super) form: &'a mut Form<W>,
    pub(super) left_out: LeftOut,
}

impl<W: Write> Ranks<'_, W> {
    pub(super) fn write(&mut self) -> io::Result<()> {
        let mut ranks: BTreeMap<(Option<u32>, u32), Calls<'_>> = BTreeMap::new();
        for (place, call) in self.run.collective_calls.iter().enumerate() {
            ranks
                .entry((call.rank, call.trace))
                .or_default()
                .push((place, call));
        }
        for ((rank, number), calls) in ranks.iter().take(MAX_RANKS) {
            self.rank(*rank, *number, calls)?;
        }
        let rest = ranks.values().skip(MAX_RANKS).map(|calls| calls.len() as u64);
        self.left_out.slices += rest.sum::<u64>();
        self.lateness()
    }

    fn rank(
        &mut self,
        rank: Option<u32>,
        number: u32,
        calls: &[(usize, &CollectiveCallRow)],
    ) -> io::Result<()> {
        let trace = self.run.traces.iter().find(|trace| trace.trace == number);
        let file = trace.map_or("", |trace| &trace.file);
        let name = rank.map_or_else(|| format!("trace {file}"), |rank| format!("rank {rank} ({file})"));
        let process = self.form.process(&name)?;
        if let (Some(trace), Some((_, first))) = (trace, calls.first()) {
            let line = self.form.track(&process, "clock")?;
            let end = calls.iter().map(|(_, call)| call.end_time).max();
            self.form.slice(
                &line,
                &Slice {
                    start: first.start_time,
                    end,
                    name: &format!("clock: {}", trace.clock.name()),
                    category: "about",
                    facts: &facts::<TraceColumns>(trace),
                    out: &[],
                    into: &[],
                },
            )?;
        }
        let mut groups: BTreeMap<Option<&str>, Calls<'_>> = BTreeMap::new();
        for (place, call) in calls {
            groups
                .entry(call.communicator.as_deref())
                .or_default()
                .push((*place, call));
        }
        for (communicator, calls) in groups {
            let name = communicator.map_or_else(
                || "collectives".to_owned(),
                |communicator| format!("collectives of {communicator}"),
            );
            let mut lanes = Lanes::new(&process, &name);
            for (place, call) in calls {
                let into = self
                    .arrows
                    .calls
                    .get(&place)
                    .filter(|arrow| self.begun.contains(arrow))
                    .map_or(&[][..], std::slice::from_ref);
                let name = if call.is_slowed {
                    format!("{} (slowed)", call.kind)
                } else {
                    call.kind.to_string()
                };
                let slice = Slice {
                    start: call.start_time,
                    end: Some(call.end_time),
                    name: &name,
                    category: "collective",
                    facts: &facts::<CollectiveCallColumns>(call),
                    out: &[],
                    into,
                };
                lanes.add(&slice, self.form)?;
            }
            self.left_out.slices += lanes.left_out;
        }
        Ok(())
    }

    /// A track for each rank whose credits were captured: its part of each collective, and what it waited for.
    fn lateness(&mut self) -> io::Result<()> {
        let mut ranks: BTreeMap<(u32, Option<u32>, &str), Vec<&CollectiveWaitRow>> = BTreeMap::new();
        for row in &self.run.collective_waits {
            let rank = ranks.entry((row.job, row.rank, &row.address)).or_default();
            rank.push(row);
        }
        if ranks.is_empty() {
            return Ok(());
        }
        let process = self.form.process("who is late")?;
        for ((_, rank, host), rows) in ranks.iter().take(MAX_RANKS) {
            let name = rank.map_or_else(|| (*host).to_owned(), |rank| format!("rank {rank} ({host})"));
            let mut lanes = Lanes::new(&process, &name);
            for row in rows {
                let late = if row.is_root { " (late)" } else { "" };
                let slice = Slice {
                    start: row.start_time,
                    end: Some(row.end_time),
                    name: &format!("collective {}{late}", row.collective),
                    category: "collective",
                    facts: &facts::<CollectiveWaitColumns>(*row),
                    out: &[],
                    into: &[],
                };
                lanes.add(&slice, self.form)?;
            }
            self.left_out.slices += lanes.left_out;
        }
        let rest = ranks.values().skip(MAX_RANKS).map(|rows| rows.len() as u64);
        self.left_out.slices += rest.sum::<u64>();
        Ok(())
    }
}
