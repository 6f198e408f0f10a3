//! Triggers of resend runs. An item: a run of which a tap recorded packets. Observable: as the truth says (both directions
//! recorded, the run from its first packet on, that one behind the highest PSN, and the NAK if there was one). Told: an
//! event `resend_run` with its trigger; one that begins with, or in, a run whose trigger the records do not tell is left out.

use std::collections::BTreeSet;

use roce_sim::truth::{ResendRun, RunAtTap, TriggerKind};

use crate::case::Case;
use crate::score::Score;

fn name(trigger: TriggerKind) -> &'static str {
    match trigger {
        TriggerKind::Nak => "nak",
        TriggerKind::ImpliedNak => "implied_nak",
        TriggerKind::Rnr => "rnr",
        TriggerKind::Timeout => "timeout",
    }
}

pub(crate) fn compare(case: &Case) -> Score {
    let mut score = Score::default();
    for tap in &case.truth.taps {
        let near = case.stamp_error(tap);
        let runs: Vec<(&ResendRun, &RunAtTap)> = case
            .truth
            .resend_runs
            .iter()
            .flat_map(|run| run.taps.iter().map(move |here| (run, here)))
            .filter(|(_, here)| here.tap == tap.name)
            .collect();
        let mut matched: BTreeSet<usize> = BTreeSet::new();
        let mut found: BTreeSet<usize> = BTreeSet::new();
        for event in case.events_at(tap, "resend_run") {
            let place = runs.iter().enumerate().position(|(place, (run, here))| {
                run.flow_id == event.flow
                    && !matched.contains(&place)
                    && case.stamp(tap, here.time).abs_diff(event.time) <= near
            });
            let at = event.time.saturating_sub(case.truth.start_ns);
            let text = format!("{}: {} run at PSN {} at {at}", tap.name, event.flow, event.psn);
            let Some(place) = place else {
                // The packets of a run of which the records do not tell the begin may look like another.
                let within = runs.iter().any(|(run, here)| {
                    run.flow_id == event.flow
                        && !here.observable
                        && (case.stamp(tap, here.time)..=case.stamp(tap, here.end) + near)
                            .contains(&event.time)
                });
                if within {
                    continue;
                }
                score.tell(false, || format!("{text}: none, told {}", event.detail));
                continue;
            };
            matched.insert(place);
            let (run, here) = runs[place];
            if here.observable {
                let right = event.detail == name(run.trigger);
                if right {
                    found.insert(place);
                }
                score.tell(right, || {
                    format!("{text}: {}, told {}", name(run.trigger), event.detail)
                });
            }
        }
        for (place, (run, here)) in runs.iter().enumerate() {
            if here.observable {
                score.expect(found.contains(&place), || {
                    format!(
                        "{}: {} run at PSN {} at {}, {} packets: {}{}",
                        tap.name,
                        run.flow_id,
                        here.first_psn,
                        here.time,
                        here.packets,
                        name(run.trigger),
                        if matched.contains(&place) {
                            ""
                        } else {
                            ", told nothing"
                        }
                    )
                });
            } else {
                score.hidden();
            }
        }
    }
    score
}
