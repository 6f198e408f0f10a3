//! Steps in the training script's log, joined with the steps in the traffic. The command reads the file.

use std::collections::HashMap;

use roce_model::{StepRow, Time, TrainingLogFit};

/// One step as the training script logged it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoggedStep {
    /// Its number in the log.
    pub step: u64,
    /// Start of the step, when the log has it.
    pub begin: Option<Time>,
    /// Duration of its all-reduce, in ns.
    pub allreduce_ns: Option<u64>,
    /// Duration of the whole step, in ns.
    pub total_ns: Option<u64>,
}

/// A log, indexed for lookups.
///
/// Where the log has times of day, a burst belongs to the last step that had started by the burst's
/// middle, unless that step was over by then. Without times the log's first step is matched with the
/// first captured one, and the others follow by their numbers. So a log of every tenth step is joined
/// with every tenth burst; a capture should start with the training.
#[derive(Debug)]
pub(super) struct Log {
    by_time: Vec<(Time, LoggedStep)>,
    by_number: HashMap<u64, LoggedStep>,
}

impl Log {
    pub(super) fn new(steps: Vec<LoggedStep>) -> Self {
        let mut by_time: Vec<(Time, LoggedStep)> = steps
            .iter()
            .filter_map(|step| Some((step.begin?, *step)))
            .collect();
        by_time.sort_by_key(|(begin, _)| *begin);
        let mut by_number = HashMap::new();
        if by_time.is_empty() {
            let first = steps.first().map_or(0, |step| step.step);
            for step in steps {
                // A number that comes again is a restart: the first one stays.
                let number = step.step.checked_sub(first).and_then(|past| past.checked_add(1));
                if let Some(number) = number {
                    by_number.entry(number).or_insert(step);
                }
            }
        }
        Self { by_time, by_number }
    }

    /// The step of the log that a captured one is.
    pub(super) fn step_of(&self, row: &StepRow) -> Option<&LoggedStep> {
        if self.by_time.is_empty() {
            return self.by_number.get(&u64::from(row.step));
        }
        let middle = Time(row.start_time.0.midpoint(row.end_time.0));
        let after = self.by_time.partition_point(|(begin, _)| *begin <= middle);
        let (begin, step) = self.by_time.get(after.checked_sub(1)?)?;
        let over = step.total_ns.is_some_and(|total| middle.since(*begin).0 > total);
        (!over).then_some(step)
    }

    /// How the log fits captured steps; `None`: there is no log.
    pub(super) fn fit(&self, rows: &[StepRow]) -> Option<TrainingLogFit> {
        let logged = self.by_time.len().max(self.by_number.len());
        if logged == 0 {
            return None;
        }
        let joined: Vec<(&StepRow, &LoggedStep)> = rows
            .iter()
            .filter_map(|row| Some((row, self.step_of(row)?)))
            .collect();
        let pair = |of: &TimesOf<'_>| {
            let both = joined.iter().filter_map(|(row, step)| of(row, step));
            let (log, packets): (Vec<u64>, Vec<u64>) = both.unzip();
            Some((median(log)?, median(packets)?))
        };
        Some(TrainingLogFit {
            logged_steps: logged as u64,
            joined_rows: joined.len() as u64,
            allreduce: pair(&|row, step| Some((step.allreduce_ns?, row.duration_ns))),
            total: pair(&|row, step| Some((step.total_ns?, row.period_ns))),
        })
    }
}

/// A time of a step by the log, and in the packets.
type TimesOf<'a> = dyn Fn(&StepRow, &LoggedStep) -> Option<(u64, u64)> + 'a;

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
