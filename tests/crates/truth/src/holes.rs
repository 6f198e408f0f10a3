//! Missing packets.
//!
//! *Network lost*, *reordered*, *capture lost*: an item is a request PSN of that class that a tap jumped over. Observable:
//! as the truth says (the NAK, the retransmission, the ACK that tells its class was recorded); others, such as further losses in a
//! go-back-N window, count neither for nor against recall. Said: a PSN of an event `hole`, with one of these classes; it is
//! right when that is the PSN's class, or what became of its first transmission. `ambiguous` and `unresolved` claim nothing.
//!
//! *Network lost, counts*: the same by flow, from the column `network_lost`. It counts packets: a READ request is one, whatever PSNs
//! its responses take. Of high confidence are those that the column `losses_proven` calls proven, of medium confidence the others.
//!
//! *Lost downstream*: an item is a PSN that a tap recorded and that was requested again: by a NAK, or, of READ responses, by a
//! READ from there on. Observable where the tap recorded this NAK or READ. What was only overtaken and requested again counts
//! neither way.

use std::collections::BTreeMap;

use roce_sim::truth::{Hole, HoleClass, PacketKind, Tap, TriggerKind};

use crate::case::Case;
use crate::counts::said;
use crate::score::{Score, StatedConfidence};
use crate::scores::Scores;

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

/// The class of the table for a class of holes; `None` for those that claim nothing.
fn class(name: &str) -> Option<&'static str> {
    match name {
        "reordered" => Some("reordered"),
        "network_lost" => Some("network lost"),
        "capture_lost" => Some("capture lost"),
        _ => None,
    }
}

/// Truth and result of a PSN of a flow; in the order of time.
#[derive(Default)]
struct Both<'a> {
    happened: Vec<&'a Hole>,
    said: Vec<&'a str>,
}

pub(crate) fn classes(case: &Case, scores: &mut Scores) {
    for tap in &case.truth.taps {
        let mut places: BTreeMap<(String, u32), Both<'_>> = BTreeMap::new();
        for hole in &tap.holes {
            let place = places.entry((hole.flow_id.clone(), hole.psn)).or_default();
            place.happened.push(hole);
        }
        for event in case.events_at(tap, "hole") {
            let psns = u32::try_from(event.value.unwrap_or(1)).unwrap_or(PSNS);
            for psn in 0..psns {
                let key = (event.flow.clone(), (event.psn + psn) % PSNS);
                places.entry(key).or_default().said.push(&event.detail);
            }
        }
        for ((flow, psn), both) in &places {
            for at in 0..both.happened.len().max(both.said.len()) {
                let happened = both.happened.get(at).copied();
                one(scores, tap, flow, *psn, happened, both.said.get(at).copied());
            }
        }
        counts(case, scores.of_class("network lost, counts"), tap);
    }
}

fn one(scores: &mut Scores, tap: &Tap, flow: &str, psn: u32, happened: Option<&Hole>, said: Option<&str>) {
    let text = || {
        let (class, cause) = happened.map_or(("no hole", ""), |hole| (name(hole.class), name(hole.cause)));
        format!(
            "{}: {flow} PSN {psn}: {class} ({cause}), said {}",
            tap.name,
            said.unwrap_or("nothing")
        )
    };
    if let Some(hole) = happened
        && let Some(class) = class(name(hole.class))
    {
        if hole.observable {
            scores
                .of_class(class)
                .expect(said == Some(name(hole.class)), text);
        } else {
            scores.of_class(class).hidden();
        }
    }
    if let Some(class) = said.and_then(class) {
        let right = happened.is_some_and(|hole| {
            let mut true_ones = [hole.class, hole.cause].into_iter();
            // Neither lost nor missed by the tap: it came, after its retransmission.
            true_ones.any(|true_one| said == Some(name(true_one)))
                || (said == Some("reordered") && hole.cause == HoleClass::Unresolved)
        });
        scores.of_class(class).tell(right, text);
    }
}

fn counts(case: &Case, score: &mut Score, tap: &Tap) {
    for flow in &tap.flows {
        let of_flow = |hole: &&Hole| hole.flow_id == flow.flow_id && !hole.continues;
        let holes = tap.holes.iter().filter(of_flow);
        let (mut sure, mut all) = (0, 0);
        for hole in holes {
            let class = hole.class == HoleClass::NetworkLost;
            sure += u64::from(class && hole.observable);
            all += u64::from(class || hole.cause == HoleClass::NetworkLost);
        }
        let proven = said(case, tap, &flow.flow_id, "losses_proven");
        let said = said(case, tap, &flow.flow_id, "network_lost");
        let proven = proven.min(said);
        let text = || {
            format!(
                "{}: {}: {sure} to {all} lost, said {said}, {proven} of them proven",
                tap.name, flow.flow_id
            )
        };
        score.items += all.saturating_sub(sure);
        score.expect_many(sure, said, text);
        let proven_right = proven.min(all);
        score.tell_many(StatedConfidence::High, proven, proven_right, text);
        let others = said - proven;
        score.tell_many(
            StatedConfidence::Medium,
            others,
            others.min(all - proven_right),
            text,
        );
    }
}

/// PSNs of READ responses that a tap recorded and that were requested again: READs that were retransmitted from there on because a
/// later response came, or, if the response was lost, because the timer ran out. The latter claim nothing: a lost request looks like them.
fn requested_again<'a>(case: &'a Case, tap: &'a Tap) -> impl Iterator<Item = (String, u32, bool)> + 'a {
    let runs = case.truth.retransmission_runs.iter();
    let runs = runs.filter(|run| matches!(run.trigger, TriggerKind::ImpliedNak | TriggerKind::Timeout));
    runs.filter_map(|run| {
        let responses = case.peer(&run.flow_id)?;
        let here = run.taps.iter().find(|here| here.tap == tap.name);
        let mut lost = case.truth.losses.iter().filter(|loss| {
            loss.kind == PacketKind::ReadResponse
                && loss.flow_id == responses
                && loss.psn == run.first_psn
                && loss.time <= run.time
        });
        let recorded = lost.any(|loss| loss.recorded_by.contains(&tap.name));
        let is_implied = run.trigger == TriggerKind::ImpliedNak;
        if !is_implied && !recorded {
            return None;
        }
        let shown = is_implied && recorded && here.is_some_and(|here| here.observable);
        Some((responses.to_owned(), run.first_psn, shown))
    })
}

/// Fate of a PSN that was requested again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamedByNak {
    /// It was lost, and the records show that it was requested again.
    Shown,
    /// It was lost.
    Lost,
    /// It was only overtaken, and requested again.
    Overtaken,
}

impl NamedByNak {
    fn lost(shown: bool) -> Self {
        if shown { Self::Shown } else { Self::Lost }
    }
}

pub(crate) fn downstream(case: &Case, score: &mut Score) {
    for tap in &case.truth.taps {
        let mut places: BTreeMap<(String, u32), (Vec<NamedByNak>, usize)> = BTreeMap::new();
        for lost in &tap.lost_downstream {
            let place = places.entry((lost.flow_id.clone(), lost.psn)).or_default();
            place.0.push(if lost.reordered {
                NamedByNak::Overtaken
            } else {
                NamedByNak::lost(lost.observable)
            });
        }
        for (flow, psn, shown) in requested_again(case, tap) {
            places
                .entry((flow, psn))
                .or_default()
                .0
                .push(NamedByNak::lost(shown));
        }
        for event in case.events_at(tap, "lost_downstream") {
            places.entry((event.flow.clone(), event.psn)).or_default().1 += 1;
        }
        for ((flow, psn), (happened, said)) in &places {
            for at in 0..happened.len().max(*said) {
                let is_said = at < *said;
                let happened = happened.get(at).copied();
                let text = || {
                    let happened = if happened.is_some() { "lost" } else { "not lost" };
                    let said = if is_said { "so" } else { "nothing" };
                    format!(
                        "{}: {flow} PSN {psn}: {happened} downstream, said {said}",
                        tap.name
                    )
                };
                match happened {
                    Some(NamedByNak::Shown) => score.expect(is_said, text),
                    Some(NamedByNak::Lost | NamedByNak::Overtaken) => score.hidden(),
                    None => {}
                }
                // Nothing tells at this tap what was overtaken from what was lost.
                if is_said && happened != Some(NamedByNak::Overtaken) {
                    score.tell(happened.is_some(), text);
                }
            }
        }
    }
}
