//! The times that causes take, for each ordered pair of hosts, and the runs that they are learned from.

use std::collections::HashMap;

use roce_model::{FlowKey, Span, TapId};
use roce_wire::Address;

use crate::psn::cause::Trigger;
use crate::psn::causes::circumstances::{Circumstances, keep_longest};
use crate::psn::causes::learned::{CauseFound, LearnedTimes};

/// With fewer runs between two hosts, what is assumed before the first one decides more than they do.
const ENOUGH_RUNS: usize = 8;
/// Runs kept of one pair of hosts at the most. Of more, every second one is kept, then every fourth.
const MAX_RUNS: usize = 512;
/// Pairs of hosts; those that find no room are judged as if they had no other runs.
const MAX_HOST_PAIRS: usize = 1_024;
/// Runs kept in all: 10 MB.
const MAX_RUNS_OF_ALL: usize = 1 << 16;

/// Times learned of all pairs of hosts: tap, requester and responder.
#[derive(Debug, Default)]
pub(crate) struct HostPairTimes(HashMap<(TapId, Address, Address), PairTimes, foldhash::fast::RandomState>);

impl HostPairTimes {
    /// Notes what was captured before a run of the flow of `key` at `tap`.
    /// `waits`: its longest waits for progress that ended without a run.
    pub(crate) fn note(&mut self, tap: TapId, key: &FlowKey, run: &Circumstances, waits: &[Span]) {
        let key = (tap, key.source, key.destination);
        let room = (MAX_RUNS_OF_ALL / (self.0.len() + 1)).min(MAX_RUNS);
        if self.0.len() < MAX_HOST_PAIRS || self.0.contains_key(&key) {
            self.0.entry(key).or_default().note(run, waits, room);
        }
    }

    /// Learns how long causes take between the hosts of `key` at `tap`. `waits`: as in [`HostPairTimes::note`].
    pub(crate) fn learn(&mut self, tap: TapId, key: &FlowKey, waits: &[Span]) {
        if let Some(pair) = self.0.get_mut(&(tap, key.source, key.destination)) {
            pair.note_waits(waits);
            pair.learn();
        }
    }

    /// The cause of `run` of the flow of `key` at `tap`, by what was learned so far. `seeming`: what it seemed to be at once.
    pub(crate) fn cause(
        &self,
        tap: TapId,
        key: &FlowKey,
        run: &Circumstances,
        seeming: Trigger,
    ) -> CauseFound {
        if seeming == Trigger::Rnr {
            // The receiver said how long to wait and where to go on, and the sender did (IBTA 9.7.5.2.8): that is no matter of likelihood.
            return CauseFound {
                trigger: seeming,
                is_sure: true,
            };
        }
        let seeming = match seeming {
            Trigger::Timeout if !run.shows_silence() => Trigger::Unknown,
            seeming => seeming,
        };
        let pair = self.0.get(&(tap, key.source, key.destination));
        let found = pair.map_or_else(|| run.cause_alone(), |pair| pair.learned.cause(run));
        let are_enough = pair.is_some_and(|pair| pair.noted >= ENOUGH_RUNS);
        if are_enough || run.is_blind || found.trigger == seeming {
            return found;
        }
        // Assumptions from before the first run decide more than the runs do here: the run keeps the cause that
        // it seemed to have at once.
        let is_alone = seeming == Trigger::Unknown && run.nak.is_none();
        if found.is_sure && (is_alone || found.trigger == Trigger::ImpliedNak) {
            found
        } else {
            CauseFound {
                trigger: seeming,
                is_sure: false,
            }
        }
    }
}

/// Times learned of requests from one host to another.
#[derive(Debug)]
struct PairTimes {
    runs: Vec<Circumstances>,
    /// One run of so many is kept.
    every: usize,
    /// Runs noted, and how many of them the times were learned from.
    noted: usize,
    learned_from: usize,
    learned: LearnedTimes,
    /// The longest waits for progress that ended without a run.
    waits: Vec<Span>,
}

impl Default for PairTimes {
    fn default() -> Self {
        Self {
            runs: Vec::new(),
            every: 1,
            noted: 0,
            learned_from: 0,
            learned: LearnedTimes::new(),
            waits: Vec::new(),
        }
    }
}

impl PairTimes {
    fn note_waits(&mut self, waits: &[Span]) {
        for wait in waits {
            keep_longest(&mut self.waits, *wait);
        }
        if !waits.is_empty() {
            self.learned.know(&self.waits);
        }
    }

    fn note(&mut self, run: &Circumstances, waits: &[Span], room: usize) {
        self.note_waits(waits);
        if self.noted.is_multiple_of(self.every) {
            while self.runs.len() >= room.max(2) {
                let mut place = 0usize;
                self.runs.retain(|_| {
                    place += 1;
                    !place.is_multiple_of(2)
                });
                self.every = self.every.saturating_mul(2);
            }
            self.runs.push(*run);
        }
        self.noted += 1;
    }

    /// Learns the times again if an eighth of the runs came since that was last done.
    fn learn(&mut self) {
        if self.noted - self.learned_from > self.learned_from / 8 {
            self.learned = LearnedTimes::from_runs(&self.runs, &self.waits);
            self.learned_from = self.noted;
        }
    }
}
