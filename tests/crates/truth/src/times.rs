//! Where the time of flows went. An item: a flow that sends requests, at a tap. Observable: the tap recorded all of both directions by one
//! steady clock, the pauses that stopped the sender, and the first transmission of what a timeout repeats. At the receiver's side answers are never
//! late and hardly anything is outstanding: a sender that waits for answers, or for its turn at a port that it shares, is
//! not seen there. Said: the columns `time_*_ns` of the flow's rows; right when the differences by state
//! add up to 3 % of the flow's life at most. What the definitions leave open may be said in each state that fits.

use std::collections::BTreeMap;

use roce_model::FlowRow;
use roce_sim::scenario::TapDirection;
use roce_sim::truth::{FlowTimes, Tap, TimeState, TriggerKind};
use roce_sim::units::Picos;

use crate::case::Case;
use crate::counts::column;
use crate::scores::{Confusion, Scores};

/// Differences of all states together, in parts of the life: 3 %.
const WITHIN: (u64, u64) = (3, 100);
/// Lives below this are a few packets: the way to the tap alone is a part of them.
const MIN_LIFE_NS: u64 = 100_000;
/// A stamp is coarse when a life has fewer than so many steps of it.
const STEPS: u64 = 500;

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for row in &case.truth.times {
        if let Some(tap) = case.truth.taps.iter().find(|tap| tap.name == row.tap) {
            one(case, tap, row, scores);
        }
    }
}

fn name(state: TimeState) -> String {
    format!("time_{}_ns", state.name())
}

/// The time that the analysis says of each state; `None` where it says nothing.
fn said(case: &Case, tap: &Tap, row: &FlowTimes) -> Option<BTreeMap<TimeState, u64>> {
    let rows: Vec<&FlowRow> = case
        .flows_at(tap)
        .filter(|seen| seen.flow_id.to_string() == row.flow_id)
        .collect();
    let mut any = false;
    let mut times = BTreeMap::new();
    for state in TimeState::ALL {
        let values = rows.iter().filter_map(|seen| column(seen, &name(state)));
        let values: Vec<u64> = values.collect();
        any |= !values.is_empty();
        times.insert(state, values.iter().sum());
    }
    any.then_some(times)
}

fn one(case: &Case, tap: &Tap, row: &FlowTimes, scores: &mut Scores) {
    let life = row.last_time - row.first_time;
    let score = scores.of_class("time by state");
    if life < MIN_LIFE_NS || !is_observable(case, tap, row) {
        return score.hidden();
    }
    let Some(said) = said(case, tap, row) else {
        return score.expect(false, || {
            format!("{}: {}: nothing said of {life} ns", tap.name, row.flow_id)
        });
    };
    let truth = settle(row, &said);
    let wrong: u64 = TimeState::ALL
        .iter()
        .map(|state| truth[state].abs_diff(said[state]))
        .sum();
    let is_right = wrong * WITHIN.1 <= life * WITHIN.0;
    let text = || {
        let parts = TimeState::ALL
            .iter()
            .filter(|state| truth[state].abs_diff(said[state]) * 200 > life);
        let parts = parts.map(|state| format!("{} {} said {}", state.name(), truth[state], said[state]));
        format!(
            "{}: {}: {} of 1000 wrong, life {life} ns: {}",
            tap.name,
            row.flow_id,
            wrong * 1_000 / life,
            parts.collect::<Vec<_>>().join(", ")
        )
    };
    score.expect(is_right, text);
    score.tell(is_right, text);
    confuse(&truth, &said, &mut scores.confusion);
}

/// The true times, with each open part in the state that fits what is said best.
fn settle(row: &FlowTimes, said: &BTreeMap<TimeState, u64>) -> BTreeMap<TimeState, u64> {
    let mut truth = row.states.clone();
    let mut open: Vec<_> = row.open.iter().collect();
    open.sort_by_key(|part| part.also.len());
    for part in open {
        let mut left = part.ns;
        for other in &part.also {
            let too_much = truth[&part.state].saturating_sub(said[&part.state]);
            let moved = left.min(too_much).min(said[other].saturating_sub(truth[other]));
            left -= moved;
            *truth.entry(part.state).or_default() -= moved;
            *truth.entry(*other).or_default() += moved;
        }
    }
    truth
}

/// Adds what agrees, and spreads what does not over the states of which too much is said, by their parts.
fn confuse(truth: &BTreeMap<TimeState, u64>, said: &BTreeMap<TimeState, u64>, confusion: &mut Confusion) {
    let too_much: Vec<(TimeState, u64)> = TimeState::ALL
        .into_iter()
        .map(|state| (state, said[&state].saturating_sub(truth[&state])))
        .collect();
    let sum: u128 = too_much.iter().map(|(_, ns)| u128::from(*ns)).sum();
    for state in TimeState::ALL {
        *confusion.entry((state, state)).or_default() += truth[&state].min(said[&state]);
        let missed = u128::from(truth[&state].saturating_sub(said[&state]));
        for (other, ns) in &too_much {
            let part = (missed * u128::from(*ns)).checked_div(sum).unwrap_or(0);
            *confusion.entry((state, *other)).or_default() += u64::try_from(part).unwrap_or(u64::MAX);
        }
    }
}

fn is_observable(case: &Case, tap: &Tap, row: &FlowTimes) -> bool {
    let Some(flow) = case.flow(&row.flow_id) else {
        return false;
    };
    let peer = case.peer(&row.flow_id);
    let lost = tap
        .capture_losses
        .iter()
        .any(|loss| loss.flow_id == row.flow_id || Some(loss.flow_id.as_str()) == peer);
    let life = row.last_time - row.first_time;
    let steady = case.table(tap).is_some_and(|table| {
        let steps = (table.quantum.nanos() + table.poll.map_or(0, Picos::nanos)) * STEPS;
        table.direction == TapDirection::Both
            && table.late.is_none()
            && table.clock_step_at.is_none()
            && table.doubled.is_none()
            && steps <= life
    });
    let paired = flow.service != "RC" || case.is_paired_at(tap, &row.flow_id);
    let far = tap.node != flow.source && tap.neighbour != flow.source;
    let waits = row.states[&TimeState::Window] + row.states[&TimeState::Network];
    steady
        && paired
        && !lost
        && flow.epochs == 1
        && (!far || is_little(waits, life) && !shares_port(case, &flow.source))
        && is_little(unseen_timeouts(case, tap, row), life)
        && shows_pauses(case, tap, row, &flow.source)
}

/// True if several queue pairs of a host send data: far from it, one that waits for its turn looks idle.
fn shares_port(case: &Case, host: &str) -> bool {
    let flows = case.truth.flows.iter();
    flows
        .filter(|flow| flow.source == host && flow.data_packets > 0 && !flow.management)
        .count()
        > 1
}

/// True if a time is no more than half of what may be wrong.
fn is_little(time: u64, life: u64) -> bool {
    time * 2 * WITHIN.1 <= life * WITHIN.0
}

/// Silences before timeouts whose repeated packets look new at a tap, or did not pass it.
fn unseen_timeouts(case: &Case, tap: &Tap, row: &FlowTimes) -> u64 {
    let runs = case.truth.retransmission_runs.iter();
    let runs = runs.filter(|run| run.flow_id == row.flow_id && run.trigger == TriggerKind::Timeout);
    let unseen = runs.filter(|run| {
        !run.taps
            .iter()
            .any(|here| here.tap == tap.name && here.observable)
    });
    unseen.map(|run| run.silence_ns).sum()
}

/// True if the tap recorded the pauses of the sender's port, or there were hardly any.
fn shows_pauses(case: &Case, tap: &Tap, row: &FlowTimes, host: &str) -> bool {
    let pauses = case.truth.pauses.iter();
    let unseen = pauses.filter(|pause| {
        pause.place.split("->").next() == Some(host) && !pause.recorded_by.contains(&tap.name)
    });
    let unseen = unseen.map(|pause| {
        pause
            .end
            .min(row.last_time)
            .saturating_sub(pause.begin.max(row.first_time))
    });
    is_little(unseen.sum(), row.last_time - row.first_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_sim::truth::OpenTime;

    fn times(parts: &[(TimeState, u64)]) -> BTreeMap<TimeState, u64> {
        let mut all: BTreeMap<_, _> = TimeState::ALL.into_iter().map(|state| (state, 0)).collect();
        all.extend(parts.iter().copied());
        all
    }

    #[test]
    fn open_parts_go_where_they_are_said() {
        let row = FlowTimes {
            tap: "h1".to_owned(),
            flow_id: "1".to_owned(),
            first_time: 0,
            last_time: 100,
            states: times(&[(TimeState::Idle, 60), (TimeState::Sending, 40)]),
            open: vec![OpenTime {
                state: TimeState::Idle,
                also: vec![TimeState::Window, TimeState::Network],
                ns: 10,
            }],
        };
        let said = times(&[
            (TimeState::Idle, 40),
            (TimeState::Window, 4),
            (TimeState::Network, 16),
            (TimeState::Sending, 40),
        ]);
        // Ten of the sixty may be said otherwise: four as window, six as network.
        let truth = settle(&row, &said);
        let expected = times(&[
            (TimeState::Idle, 50),
            (TimeState::Window, 4),
            (TimeState::Network, 6),
            (TimeState::Sending, 40),
        ]);
        assert_eq!(truth, expected);
        let mut confusion = Confusion::default();
        confuse(&truth, &said, &mut confusion);
        assert_eq!(confusion[&(TimeState::Idle, TimeState::Network)], 10);
        assert_eq!(confusion.values().sum::<u64>(), 100);
    }
}
