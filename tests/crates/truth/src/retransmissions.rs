//! Triggers of retransmission runs. An item: a run of which a tap recorded packets. Observable: as the truth says (both directions
//! recorded, the run from its first packet on, that one behind the highest PSN, and the NAK if there was one), and no packets of
//! an earlier run of the flow come after its first one: of two runs that repeat the same PSNs at once, nobody can tell where the
//! second begins. Said: an event `retransmission_run` with its trigger; right when a run of the flow began then for that reason. `unknown`
//! claims nothing. One that begins in the middle of a run whose begin the records do not tell is left out; of a run that comes
//! among another's packets it must name the reason.

use std::collections::{BTreeMap, BTreeSet};

use roce_sim::truth::{RetransmissionRun, RunAtTap, TriggerKind};

use crate::case::Case;
use crate::scores::Scores;

fn name(trigger: TriggerKind) -> &'static str {
    match trigger {
        TriggerKind::Nak => "nak",
        TriggerKind::ImpliedNak => "implied_nak",
        TriggerKind::Rnr => "rnr",
        TriggerKind::Timeout => "timeout",
    }
}

/// The triggers that an event can claim; `unknown` claims nothing.
const CLAIMED: [&str; 4] = ["nak", "implied_nak", "rnr", "timeout"];

fn class(trigger: &str) -> String {
    format!("trigger {trigger}")
}

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for tap in &case.truth.taps {
        let near = case.stamp_error(tap);
        let runs: Vec<(&RetransmissionRun, &RunAtTap)> = case
            .truth
            .retransmission_runs
            .iter()
            .flat_map(|run| run.taps.iter().map(move |here| (run, here)))
            .filter(|(_, here)| here.tap == tap.name)
            .collect();
        let mut matched: BTreeMap<usize, &str> = BTreeMap::new();
        let mut found: BTreeSet<usize> = BTreeSet::new();
        for event in case.events_at(tap, "retransmission_run") {
            let is_near = |place: &usize| {
                let (run, here) = runs[*place];
                run.flow_id == event.flow
                    && !matched.contains_key(place)
                    && case.stamp(tap, here.time).abs_diff(event.time) <= near
            };
            // It is the run with its PSN, of several within the uncertainty of stamps.
            let with_psn =
                (0..runs.len()).find(|place| runs[*place].1.first_psn == event.psn && is_near(place));
            let place = with_psn.or_else(|| (0..runs.len()).find(is_near));
            let at = event.time.saturating_sub(case.truth.start_ns);
            let text = format!("{}: {} run at PSN {} at {at}", tap.name, event.flow, event.psn);
            let Some(place) = place else {
                // The packets of a run whose start the records do not show may look like another.
                let within = runs.iter().any(|(run, here)| {
                    let is_hidden = !here.observable
                        || event.detail == name(run.trigger) && joins_others(&runs, run, here);
                    run.flow_id == event.flow
                        && is_hidden
                        && (case.stamp(tap, here.time)..=case.stamp(tap, here.end) + near)
                            .contains(&event.time)
                });
                if within {
                    continue;
                }
                if CLAIMED.contains(&event.detail.as_str()) {
                    let score = scores.of_class(&class(&event.detail));
                    score.tell(false, || format!("{text}: none, said {}", event.detail));
                }
                continue;
            };
            matched.insert(place, &event.detail);
            let (run, here) = runs[place];
            let is_observable = here.observable && !begins_among_others(&runs, run, here);
            let right = event.detail == name(run.trigger);
            if is_observable && right {
                found.insert(place);
            }
            if CLAIMED.contains(&event.detail.as_str()) && (is_observable || !joins_others(&runs, run, here))
            {
                let score = scores.of_class(&class(&event.detail));
                score.tell(right, || {
                    format!("{text}: {}, said {}", name(run.trigger), event.detail)
                });
            }
        }
        for (place, (run, here)) in runs.iter().enumerate() {
            let score = scores.of_class(&class(name(run.trigger)));
            if !here.observable || begins_among_others(&runs, run, here) {
                score.hidden();
                continue;
            }
            score.expect(found.contains(&place), || {
                format!(
                    "{}: {} run at PSN {} at {}, {} packets: {}, said {}",
                    tap.name,
                    run.flow_id,
                    here.first_psn,
                    here.time,
                    here.packets,
                    name(run.trigger),
                    matched.get(&place).unwrap_or(&"nothing")
                )
            });
        }
    }
}

/// True if another run of the flow was recorded within this one: its packets may look like a part of it.
fn joins_others(runs: &[(&RetransmissionRun, &RunAtTap)], run: &RetransmissionRun, here: &RunAtTap) -> bool {
    runs.iter().any(|(other, there)| {
        other.flow_id == run.flow_id
            && (other.time, other.first_psn) != (run.time, run.first_psn)
            && there.time <= here.end
            && here.time <= there.end
    })
}

/// True if packets of an earlier run of the flow were recorded after the first packet of this one.
fn begins_among_others(
    runs: &[(&RetransmissionRun, &RunAtTap)],
    run: &RetransmissionRun,
    here: &RunAtTap,
) -> bool {
    runs.iter().any(|(other, there)| {
        other.flow_id == run.flow_id
            && (other.time, other.first_psn) != (run.time, run.first_psn)
            && there.time <= here.time
            && here.time <= there.end
    })
}
