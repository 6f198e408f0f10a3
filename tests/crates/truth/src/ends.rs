//! Ends of connections. An item: a connection that failed. Observable: both directions were recorded without losses, from before the last request to
//! the end of the run, and what shows the end is there: the refusal, or three equal sends. Said: rows of the table `ends` with an outcome other
//! than `closed`; right when it is the true one. A connection that still waits at the end of the run is not judged.

use roce_model::EndKind;
use roce_sim::scenario::TapDirection;
use roce_sim::truth::{ConnectionEnd, Outcome, Tap};

use crate::case::Case;
use crate::score::StatedConfidence;
use crate::scores::Scores;

/// Repeats that show a timer.
const REPEATS: u16 = 2;
const CLASS: &str = "connection ends";

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for tap in &case.truth.taps {
        for end in &case.truth.ends {
            let known = tap
                .flows
                .iter()
                .any(|flow| flow.flow_id == end.flow_id && flow.packets > 0);
            if known && is_alone(case, &end.flow_id) {
                one(case, tap, end, scores);
            }
        }
    }
}

/// True if no other connection has the numbers of a flow.
fn is_alone(case: &Case, flow: &str) -> bool {
    case.flow(flow).is_some_and(|flow| flow.epochs == 1)
}

fn one(case: &Case, tap: &Tap, end: &ConnectionEnd, scores: &mut Scores) {
    let mut rows = case.seen.summary.ends.iter();
    let row = rows.find(|row| case.is_at(tap, row.tap.0) && row.flow_id.to_string() == end.flow_id);
    let said = row
        .map(|row| row.outcome)
        .filter(|outcome| *outcome != EndKind::Closed);
    let is_right = said.is_some_and(|said| said.name() == end.outcome.name());
    let text = || {
        let said = row.map_or("nothing", |row| row.outcome.name());
        format!(
            "{}: {}: {}, said {said}",
            tap.name,
            end.flow_id,
            end.outcome.name()
        )
    };
    let score = scores.of_class(CLASS);
    if end.outcome.has_failed() {
        if is_shown(case, tap, end) {
            score.expect(is_right, text);
        } else {
            score.hidden();
        }
    }
    if let (Some(row), Some(_)) = (row, said)
        && end.outcome != Outcome::Unfinished
    {
        score.tell_with(StatedConfidence::of(row.confidence), is_right, text);
    }
}

fn is_shown(case: &Case, tap: &Tap, end: &ConnectionEnd) -> bool {
    let whole = case.table(tap).is_some_and(|table| {
        table.direction == TapDirection::Both && table.until.is_none() && table.from.nanos() < end.last_sent
    });
    let evident = match end.outcome {
        Outcome::Refused => case
            .truth
            .naks
            .iter()
            .any(|nak| nak.flow_id == end.flow_id && nak.recorded_by.contains(&tap.name)),
        Outcome::NeverAnswered | Outcome::RetriesUnanswered => end.repeats >= REPEATS,
        _ => true,
    };
    whole && evident && tap.records_lost == 0
}
