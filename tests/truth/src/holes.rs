//! Missing packets.
//!
//! *Loss class*: an item is a request PSN that a tap jumped over. Observable: as the truth says (the NAK, the resend, the
//! ACK that tells its class was recorded). Told: a PSN of an event `hole`, with its class; PSNs whose class cannot be told
//! from the records are left out.
//!
//! *Lost downstream*: an item is a PSN that a tap recorded and a NAK asked for again; observable where the tap recorded the
//! NAK.
//!
//! *READ responses*: an item is a READ response missing inside a message at a tap; compared by flow. Those between two
//! messages may be told or not.

use std::collections::BTreeMap;

use roce_sim::truth::{HoleClass, Tap};

use crate::case::Case;
use crate::score::Score;

const PSNS: u32 = 1 << 24;

fn name(class: HoleClass) -> &'static str {
    match class {
        HoleClass::Reordered => "reordered",
        HoleClass::NetworkLost => "network_lost",
        HoleClass::CaptureLost => "capture_lost",
        HoleClass::Ambiguous => "ambiguous",
        HoleClass::Unresolved => "unresolved",
    }
}

/// What happened to a PSN of a flow, and what was told of it; in the order of time.
#[derive(Default)]
struct Both<'a> {
    happened: Vec<(&'static str, bool)>,
    told: Vec<&'a str>,
}

type ByPsn<'a> = BTreeMap<(String, u32), Both<'a>>;

fn count(score: &mut Score, tap: &Tap, places: &ByPsn<'_>) {
    for ((flow, psn), both) in places {
        for at in 0..both.happened.len().max(both.told.len()) {
            let told = both.told.get(at).copied();
            let text = |happened: &str| {
                let told = told.unwrap_or("nothing");
                format!("{}: {flow} PSN {psn}: {happened}, told {told}", tap.name)
            };
            match both.happened.get(at) {
                None => score.tell(false, || text("nothing")),
                Some((_, false)) => score.hidden(),
                Some((class, true)) => {
                    let right = told == Some(*class);
                    score.expect(right, || text(class));
                    if told.is_some() {
                        score.tell(right, || text(class));
                    }
                }
            }
        }
    }
}

pub(crate) fn classes(case: &Case) -> Score {
    let mut score = Score::default();
    for tap in &case.truth.taps {
        let mut places = ByPsn::default();
        for hole in &tap.holes {
            let place = places.entry((hole.flow_id.clone(), hole.psn)).or_default();
            place.happened.push((name(hole.class), hole.observable));
        }
        for event in case.events_at(tap, "hole") {
            let psns = u32::try_from(event.value.unwrap_or(1)).unwrap_or(PSNS);
            for psn in 0..psns {
                let key = (event.flow.clone(), (event.psn + psn) % PSNS);
                places.entry(key).or_default().told.push(&event.detail);
            }
        }
        count(&mut score, tap, &places);
    }
    score
}

pub(crate) fn downstream(case: &Case) -> Score {
    let mut score = Score::default();
    for tap in &case.truth.taps {
        let mut places = ByPsn::default();
        for lost in &tap.lost_downstream {
            let place = places.entry((lost.flow_id.clone(), lost.psn)).or_default();
            place.happened.push(("lost", lost.observable));
        }
        for event in case.events_at(tap, "lost_downstream") {
            let key = (event.flow.clone(), event.psn);
            places.entry(key).or_default().told.push("lost");
        }
        count(&mut score, tap, &places);
    }
    score
}

pub(crate) fn responses(case: &Case) -> Score {
    let mut score = Score::default();
    for tap in &case.truth.taps {
        let mut flows: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for flow in &tap.flows {
            let (least, most, _) = flows.entry(flow.flow_id.clone()).or_default();
            *least += flow.response_missing;
            *most += flow.response_missing_most;
        }
        for row in case.flows_at(tap) {
            flows.entry(row.flow_id.to_string()).or_default().2 += row.response_missing;
        }
        for (flow, (missing, most, told)) in flows {
            score.items += missing;
            if tap.told_by_record {
                // Nothing is counted missing where the capture says that it lost it.
                continue;
            }
            score.observable += missing;
            score.found += missing.min(told);
            score.told += told;
            score.right += most.min(told);
            if !(missing..=most).contains(&told) {
                score.notes.push(format!(
                    "{}: {flow}: {missing} READ responses missing, told {told}",
                    tap.name
                ));
            }
        }
    }
    score
}
