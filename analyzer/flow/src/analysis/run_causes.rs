//! Causes of retransmission runs. A run whose cause is not sure when it ends waits: later runs between the same hosts show how long
//! their NAKs and timers take.

use roce_model::{EventKind, EventRow, Time};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::psn::cause::Trigger;
use crate::psn::causes::CauseFound;
use crate::psn::run::EndedRun;

/// Runs of one flow that wait; with more of them all are decided.
const MAX_WAITING: usize = 64;

/// Silences are equal that differ by this part at the most: timers of software count in jiffies.
const EQUAL: u64 = 8;

impl Analysis {
    /// A run of the flow at `at` has ended.
    pub(super) fn run_ended(&mut self, at: FlowSlot, run: &EndedRun) {
        let tap = self.table.hot[at].tap;
        let cold = &mut self.table.cold[at];
        let waits = cold.tracker.take_longest_waits();
        self.causes.note(tap, &cold.key, &run.before, &waits);
        let cause = self.causes.cause(tap, &cold.key, &run.before, run.seeming);
        // Before other runs show how long answers take, a slow answer to a NAK looks like the timer; answers may be captured of which it
        // is not known yet whose they are.
        let is_open = run.before.nak.is_some() || run.before.is_blind;
        let may_change = cause.trigger == Trigger::Timeout && is_open;
        if cause.is_sure && !may_change {
            return self.tell_run(at, run, cause);
        }
        let trouble = cold.trouble.get_or_insert_default();
        trouble.waiting_runs.push(*run);
        if trouble.waiting_runs.len() > MAX_WAITING {
            self.decide_runs(at);
        }
    }

    /// Decides the causes of all runs of the flow at `at` that wait.
    pub(super) fn decide_runs(&mut self, at: FlowSlot) {
        let tap = self.table.hot[at].tap;
        let Some(trouble) = &mut self.table.cold[at].trouble else {
            return;
        };
        let runs = core::mem::take(&mut trouble.waiting_runs);
        if runs.is_empty() {
            return;
        }
        let key = self.table.cold[at].key;
        let waits = self.table.cold[at].tracker.take_longest_waits();
        self.causes.learn(tap, &key, &waits);
        for run in &runs {
            let mut cause = self.causes.cause(tap, &key, &run.before, run.seeming);
            if cause.trigger == Trigger::Timeout && run.before.is_blind && self.had_answers(at, run.begin) {
                // Nobody looked at what they say.
                cause = CauseFound::UNKNOWN;
            }
            self.tell_run(at, run, cause);
        }
    }

    /// True if the flow at `at` was answered before `time`, as is known now.
    fn had_answers(&self, at: FlowSlot, time: Time) -> bool {
        let hot = &self.table.hot[at];
        hot.is_paired() && self.table.cold[hot.peer].first_time < time
    }

    /// Counts and reports a run of the flow at `at`.
    fn tell_run(&mut self, at: FlowSlot, run: &EndedRun, cause: CauseFound) {
        let trigger = cause.trigger;
        let cold = &mut self.table.cold[at];
        let trouble = cold.trouble.get_or_insert_default();
        trouble.runs[trigger as usize] += 1;
        let before = trouble.latest_run.replace((run.first, run.before.silence));
        let repeats = before.is_some_and(|(first, silence)| {
            first == run.first && silence.0.abs_diff(run.before.silence.0) <= silence.0 / EQUAL
        });
        // Without any answer nothing but a timer repeats the same packets after equal silences.
        let is_sure = cause.is_sure && (repeats || !run.before.is_blind);
        trouble.sure_runs[trigger as usize] += u64::from(is_sure);
        trouble.stood_still[trigger as usize] += run.before.stood_still().0;
        self.divide_run(at, run, trigger);
        let cold = &self.table.cold[at];
        self.bins.events.push(EventRow {
            time: run.begin,
            kind: EventKind::RetransmissionRun,
            tap: self.table.hot[at].tap,
            flow_id: Some(cold.id),
            psn: Some(run.first.value()),
            value: Some(run.packets),
            detail: Some(trigger.name().into()),
            ..EventRow::default()
        });
    }
}
