//! Steps of a run: training jobs.

use crate::engine::events::{EndpointId, Event};
use crate::engine::log::RankStep;
use crate::engine::run::Simulation;
use crate::network::topology::number;
use crate::scenario::Operation;
use crate::units::Picos;
use crate::workload::traffic::NO_SOURCE;

impl Simulation<'_> {
    /// A rank begins to compute.
    pub(crate) fn compute(&mut self, job: u32, rank: u32) {
        let Some(state) = self.jobs.get_mut(job as usize) else {
            return;
        };
        let Some(table) = self.scenario.training.get(state.table) else {
            return;
        };
        let Some(own) = state.ranks.get_mut(rank as usize) else {
            return;
        };
        if table.steps.is_some_and(|steps| own.step >= steps) {
            return;
        }
        let mut seconds = table.compute.seconds();
        if let Some(stream) = &mut own.stream {
            seconds *= 1.0 + table.spread * (2.0 * stream.unit() - 1.0);
        }
        if table.slow_rank == Some(rank) {
            seconds *= table.slow_factor;
        }
        own.computing = true;
        own.entry = self.log.steps.len();
        self.log.steps.push(RankStep {
            job,
            step: own.step,
            rank,
            compute: self.now,
            begin: Picos::NEVER,
            end: None,
        });
        let done = self.now.plus(Picos::from_seconds(seconds));
        self.events.at(done, Event::Computed { job, rank });
    }

    /// A rank has finished computing: its all-reduce begins.
    pub(crate) fn computed(&mut self, job: u32, rank: u32) {
        let now = self.now;
        let Some(own) = self
            .jobs
            .get_mut(job as usize)
            .and_then(|state| state.ranks.get_mut(rank as usize))
        else {
            return;
        };
        own.computing = false;
        if let Some(entry) = self.log.steps.get_mut(own.entry) {
            entry.begin = now;
        }
        self.reduce(job, rank);
    }

    /// Sends the phases that a rank may send; ends the step if all have come.
    fn reduce(&mut self, job: u32, rank: u32) {
        let now = self.now;
        let Some(state) = self.jobs.get_mut(job as usize) else {
            return;
        };
        let phases = state.phases();
        let ranks = state.ranks.len() as u64;
        let Some(bytes) = self.scenario.training.get(state.table).map(|t| t.bytes.0) else {
            return;
        };
        let Some(own) = state.ranks.get_mut(rank as usize) else {
            return;
        };
        if own.computing {
            return;
        }
        let base = u64::from(own.step) * phases;
        let mut gives = 0;
        while own.sent < base + phases && own.received >= own.sent {
            own.sent += 1;
            gives += 1;
        }
        let finished = own.sent == base + phases && own.received >= base + phases;
        let ends = own.ends.clone();
        if finished {
            own.step += 1;
            if let Some(entry) = self.log.steps.get_mut(own.entry) {
                entry.end = Some(now);
            }
        }
        let share = bytes.div_ceil(ranks).div_ceil(ends.len().max(1) as u64);
        for _ in 0..gives {
            for end in &ends {
                self.give(*end, Operation::Write, share, NO_SOURCE);
            }
        }
        for end in &ends {
            self.kick(*end);
        }
        if finished {
            self.compute(job, rank);
        }
    }

    /// Messages came to an end.
    pub(crate) fn delivered(&mut self, end: EndpointId, messages: u32) {
        let Some((job, rank)) = self.connections[end.connection()].rank else {
            return;
        };
        let Some(own) = self
            .jobs
            .get_mut(job as usize)
            .and_then(|state| state.ranks.get_mut(rank as usize))
        else {
            return;
        };
        own.parts += u64::from(messages);
        let parts = own.ends.len().max(1) as u64;
        while own.parts >= parts {
            own.parts -= parts;
            own.received += 1;
        }
        if messages > 0 {
            self.reduce(job, rank);
        }
    }

    /// All ranks of all jobs begin their first step.
    pub(crate) fn begin_training(&mut self, job: u32) {
        let ranks = self.jobs.get(job as usize).map_or(0, |state| state.ranks.len());
        for rank in 0..number(ranks) {
            self.compute(job, rank);
        }
    }
}
