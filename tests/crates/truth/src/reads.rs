//! READs.
//!
//! *READ responses lost*: an item is a READ response that the network lost before a tap. Observable: the flow is paired
//! there, and the tap recorded the run that sent the READ again from that response on; or it lies right behind such a
//! one. What is lost behind it would have been retransmitted anyway: it counts neither way. Where a timer sent the READ again, or it was retransmitted
//!  before, and no response of it was recorded, its request may have been lost as well: that counts neither way, too.
//! Said: `response_network_lost`, by flow; right up to all that were lost.
//!
//! *READ requests lost*: an item is a READ request that was lost behind a tap that had recorded it. Observable: the tap
//! recorded the run that sent it again. Found: an event says at its PSN that it was lost, or its responses.
//!
//! *READ responses missing*: those missing inside a message at a tap, whoever lost them; by flow. Those between two
//! messages may be said or not.

use std::collections::{BTreeMap, BTreeSet};

use roce_sim::truth::{Loss, LossSide, PacketKind, Tap, TriggerKind};

use crate::case::Case;
use crate::counts::said;
use crate::runs::covers;
use crate::score::{Score, StatedConfidence};
use crate::scores::Scores;

/// Kinds of events of a READ that nobody answered.
const UNANSWERED: [&str; 3] = ["lost_downstream", "read_unanswered", "unanswered"];
const PSNS: u32 = 1 << 24;

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for tap in &case.truth.taps {
        for flow in &tap.flows {
            responses(case, scores.of_class("READ responses lost"), tap, &flow.flow_id);
            requests(case, scores.of_class("READ requests lost"), tap, &flow.flow_id);
        }
        missing(case, scores.of_class("READ responses missing"), tap);
    }
}

fn responses(case: &Case, score: &mut Score, tap: &Tap, flow: &str) {
    let lost: Vec<&Loss> = case
        .truth
        .losses
        .iter()
        .filter(|loss| loss.flow_id == flow && loss.kind == PacketKind::ReadResponse)
        .filter(|loss| Case::side(tap, loss) == Some(LossSide::Before))
        .filter(|loss| case.is_recording(tap, loss.time))
        .collect();
    let decides = lost.iter().filter(|loss| is_decidable(tap, loss));
    let sure = (decides.count() as u64).max(first_losses(case, tap, flow, &lost));
    let all = lost.len() as u64;
    let said = said(case, tap, flow, "response_network_lost");
    let text = || {
        format!(
            "{}: {flow}: {sure} to {all} READ responses lost, said {said}",
            tap.name
        )
    };
    score.items += all - sure;
    score.expect_many(sure, said, text);
    score.tell_many(StatedConfidence::Plain, said, said.min(all), text);
}

/// True if the tap's records alone prove a loss, and nothing before it made the sender send it again anyway.
fn is_decidable(tap: &Tap, loss: &Loss) -> bool {
    let mut here = loss.at_taps.iter();
    here.any(|here| here.tap == tap.name && here.decidable && !here.in_retransmission_window)
}

/// Number of the responses for which a READ was retransmitted, and that the tap's records show.
fn first_losses(case: &Case, tap: &Tap, flow: &str, lost: &[&Loss]) -> u64 {
    if !case.is_paired_at(tap, flow) {
        return 0;
    }
    let Some(requests) = case.peer(flow) else {
        return 0;
    };
    let runs = case.truth.retransmission_runs.iter();
    let runs: Vec<_> = runs.filter(|run| run.flow_id == requests).collect();
    let mut named: BTreeSet<(u32, u64)> = BTreeSet::new();
    for loss in lost {
        let run = runs
            .iter()
            .find(|run| run.time >= loss.time && covers(run.first_psn, loss.psn));
        let Some(run) = run.filter(|run| run.taps.iter().any(|here| here.tap == tap.name)) else {
            continue;
        };
        // After a silence, and of READs that were retransmitted, records do not always tell the loss of a response from that of its request.
        let is_sure = run.trigger != TriggerKind::Timeout && loss.attempt == 0;
        let is_shown = is_sure || is_decidable(tap, loss);
        let before = (loss.psn.wrapping_sub(1) % PSNS, run.time);
        if run.first_psn == loss.psn && is_shown || named.contains(&before) {
            named.insert((loss.psn, run.time));
        }
    }
    named.len() as u64
}

fn requests(case: &Case, score: &mut Score, tap: &Tap, flow: &str) {
    let lost = case.truth.losses.iter().filter(|loss| {
        loss.flow_id == flow && loss.kind == PacketKind::ReadRequest && loss.recorded_by.contains(&tap.name)
    });
    let peer = case.peer(flow).unwrap_or_default();
    for loss in lost {
        if !case.is_paired_at(tap, flow) || !case.is_sent_again(loss, &[tap]) {
            score.hidden();
            continue;
        }
        let mut events = case.seen.events.iter().filter(|event| case.is_at(tap, event.tap));
        let found = events.any(|event| {
            let ahead = loss.psn.wrapping_sub(event.psn) % PSNS;
            let inside = u64::from(ahead) < event.value.unwrap_or(1).max(1);
            (UNANSWERED.contains(&event.kind.as_str()) && event.flow == flow && event.psn == loss.psn)
                || (event.kind == "response_hole"
                    && (event.flow == peer || event.flow == flow)
                    && inside
                    && event.detail != "capture_lost")
        });
        score.expect(found, || {
            format!("{}: {flow}: READ request at PSN {} lost", tap.name, loss.psn)
        });
    }
}

fn missing(case: &Case, score: &mut Score, tap: &Tap) {
    let mut flows: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for flow in &tap.flows {
        let (least, most, _) = flows.entry(flow.flow_id.clone()).or_default();
        *least += flow.response_missing;
        *most += flow.response_missing_most;
    }
    for row in case.flows_at(tap) {
        flows.entry(row.flow_id.to_string()).or_default().2 += row.response_missing;
    }
    for (flow, (missing, most, said)) in flows {
        if tap.told_by_record {
            // Nothing is counted missing where the capture says that it lost it.
            score.items += missing;
            continue;
        }
        let lost = case
            .truth
            .losses
            .iter()
            .filter(|loss| loss.flow_id == flow && loss.kind == PacketKind::ReadResponse);
        let missed = tap.capture_losses.iter();
        let missed = missed.filter(|loss| loss.flow_id == flow && loss.kind == PacketKind::ReadResponse);
        // A tail that nothing follows is no jump; who counts it is right, too.
        let most = most.max((lost.count() + missed.count()) as u64);
        let text = || {
            format!(
                "{}: {flow}: {missing} to {most} READ responses missing, said {said}",
                tap.name
            )
        };
        score.expect_many(missing, said, text);
        score.tell_many(StatedConfidence::Plain, said, said.min(most), text);
    }
}
