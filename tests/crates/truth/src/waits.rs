//! Time that senders stood still before their timeouts. An item: a flow at a tap that recorded runs by timeout. Observable: all of these
//! are, as [`crate::retransmissions`] says. Said: `time_timeout_ns` of the flow's rows; right within 2 % of the sum of the silences
//! before these runs.

use roce_sim::truth::{RetransmissionRun, Tap, TriggerKind};

use crate::case::Case;
use crate::counts::said;
use crate::scores::Scores;

/// One part of so many may be missing.
const WITHIN: u64 = 50;

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for tap in &case.truth.taps {
        for flow in &tap.flows {
            one(case, scores, tap, &flow.flow_id);
        }
    }
}

fn one(case: &Case, scores: &mut Scores, tap: &Tap, flow: &str) {
    let of_flow = |run: &&RetransmissionRun| run.flow_id == flow && run.trigger == TriggerKind::Timeout;
    let runs: Vec<&RetransmissionRun> = case.truth.retransmission_runs.iter().filter(of_flow).collect();
    let said = said(case, tap, flow, "time_timeout_ns");
    let is_observable = |run: &&RetransmissionRun| {
        let mut here = run.taps.iter().filter(|here| here.tap == tap.name);
        here.any(|here| here.observable)
    };
    let score = scores.of_class("time waited");
    if !runs.iter().all(is_observable) {
        return score.hidden();
    }
    let waited: u64 = runs.iter().map(|run| run.silence_ns).sum();
    let is_right = said.abs_diff(waited) <= waited / WITHIN;
    let text = || format!("{}: {flow}: {waited} ns, said {said}", tap.name);
    if !runs.is_empty() {
        score.expect(is_right, text);
    }
    if said > 0 {
        score.tell(is_right, text);
    }
}
