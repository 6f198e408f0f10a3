//! Episodes: intervals in which something was congested, put together from the truth's single items.
//!
//! Items of one kind and one place that are at most [`GAP`] apart belong together.

use std::collections::{BTreeMap, BTreeSet};

use super::names::Names;
use crate::engine::events::PortId;
use crate::engine::log::Reason;
use crate::engine::run::Simulation;
use crate::network::topology::number;
use crate::truth::{Episode, EpisodeKind, HoleClass, NakKind, TriggerKind, Truth};

/// Events further apart than this are two episodes: one bin of the analysis.
const GAP: u64 = 1_000_000;
/// A pause shorter than this between two of the same place does not end an episode.
const HOSTS_OF_INCAST: usize = 2;

/// All episodes, by begin.
pub(super) fn episodes(simulation: &Simulation<'_>, names: &Names, truth: &Truth) -> Vec<Episode> {
    let mut episodes = congestion(simulation, names);
    episodes.extend(losses(truth));
    episodes.extend(not_ready(truth));
    episodes.extend(pauses(truth));
    episodes.extend(stalls(simulation, names, truth));
    episodes.sort_by(|a, b| (a.begin, a.end, &a.place).cmp(&(b.begin, b.end, &b.place)));
    episodes
}

/// An item of an episode.
#[derive(Clone, Debug)]
struct Item {
    begin: u64,
    end: u64,
    flow: String,
    ce: bool,
    lost: bool,
    taps: Vec<String>,
}

/// Puts items that are close together into one.
fn group(mut items: Vec<Item>) -> Vec<Vec<Item>> {
    items.sort_by_key(|item| item.begin);
    let mut groups: Vec<Vec<Item>> = Vec::new();
    let mut end = 0;
    for item in items {
        let until = item.end;
        match groups.last_mut() {
            Some(group) if item.begin <= end + GAP => group.push(item),
            _ => {
                end = 0;
                groups.push(vec![item]);
            }
        }
        end = end.max(until);
    }
    groups
}

/// The episode of a group.
fn episode(
    kind: EpisodeKind,
    place: &str,
    destination: Option<String>,
    cause: &str,
    items: &[Item],
) -> Episode {
    let set = |of: &dyn Fn(&Item) -> Vec<String>| {
        let all: BTreeSet<String> = items.iter().flat_map(of).collect();
        all.into_iter().collect::<Vec<_>>()
    };
    Episode {
        kind,
        begin: items.iter().map(|item| item.begin).min().unwrap_or(0),
        end: items.iter().map(|item| item.end).max().unwrap_or(0),
        place: place.to_owned(),
        destination,
        flows: set(&|item| vec![item.flow.clone()]),
        senders: 0,
        ce: items.iter().filter(|item| item.ce).count() as u64,
        lost: items.iter().filter(|item| item.lost).count() as u64,
        cause: cause.to_owned(),
        taps: set(&|item| item.taps.clone()),
    }
}

/// Queues that mark (`ecn`), and those that mark or drop while several hosts send to one (`incast`).
fn congestion(simulation: &Simulation<'_>, names: &Names) -> Vec<Episode> {
    let log = &simulation.log;
    let mut marks: BTreeMap<PortId, Vec<Item>> = BTreeMap::new();
    let mut both: BTreeMap<PortId, Vec<Item>> = BTreeMap::new();
    for mark in log.marks.iter().filter(|mark| mark.kind.is_data()) {
        let item = Item {
            begin: mark.time.nanos(),
            end: mark.time.nanos(),
            flow: names.flow(mark.flow),
            ce: true,
            lost: false,
            taps: names.taps(mark.recorded),
        };
        marks.entry(mark.port).or_default().push(item.clone());
        both.entry(mark.port).or_default().push(item);
    }
    let dropped = log
        .losses
        .iter()
        .filter(|loss| matches!(loss.reason, Reason::TailDrop | Reason::Headroom));
    for loss in dropped.filter(|loss| loss.kind.is_data() || loss.kind.is_request()) {
        both.entry(loss.port).or_default().push(Item {
            begin: loss.time.nanos(),
            end: loss.time.nanos(),
            flow: names.flow(loss.flow),
            ce: false,
            lost: true,
            taps: names.taps(loss.recorded),
        });
    }
    let mut episodes = Vec::new();
    for (kind, ports) in [(EpisodeKind::Ecn, marks), (EpisodeKind::Incast, both)] {
        for (port, items) in ports {
            let host = simulation.topology.host_behind(port);
            let destination = host.map(|host| simulation.topology.hosts[host as usize].name.clone());
            for group in group(items) {
                let place = simulation.topology.place(port);
                let mut found = episode(kind, &place, destination.clone(), "queue", &group);
                if let Some(host) = host {
                    let (senders, flows, taps) = senders(simulation, names, host, &found);
                    found.senders = number(senders);
                    if kind == EpisodeKind::Incast {
                        found.flows = flows;
                        let all: BTreeSet<String> = found.taps.into_iter().chain(taps).collect();
                        found.taps = all.into_iter().collect();
                    }
                }
                if kind == EpisodeKind::Ecn || found.senders as usize >= HOSTS_OF_INCAST {
                    episodes.push(found);
                }
            }
        }
    }
    episodes
}

/// The hosts that send to one during an episode, their flows, and the taps that recorded all of these.
fn senders(
    simulation: &Simulation<'_>,
    names: &Names,
    host: u32,
    episode: &Episode,
) -> (usize, Vec<String>, Vec<String>) {
    let bin = |time: u64| usize::try_from(time / 1_000_000).unwrap_or(usize::MAX);
    let mut senders = BTreeSet::new();
    let mut flows = BTreeSet::new();
    let mut indices = Vec::new();
    for (flow, count) in simulation.log.flows.iter().enumerate() {
        let Some((from, to)) = simulation.hosts_of_flow(number(flow)) else {
            continue;
        };
        let range = bin(episode.begin)..=bin(episode.end);
        let active = range
            .into_iter()
            .any(|bin| count.sent_by_ms.get(bin).is_some_and(|bytes| *bytes > 0));
        if to == host && active {
            senders.insert(from);
            flows.insert(names.flow(number(flow)));
            indices.push(flow);
        }
    }
    let taps = simulation.observer.taps.iter().enumerate();
    let taps = taps.filter(|(_, tap)| {
        indices
            .iter()
            .all(|flow| tap.flows.get(*flow).is_some_and(Option::is_some))
    });
    let taps = taps.map(|(place, _)| names.taps[place].clone()).collect();
    (senders.len(), flows.into_iter().collect(), taps)
}

/// Packets lost by the network, until they were retransmitted.
fn losses(truth: &Truth) -> Vec<Episode> {
    let mut places: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for loss in &truth.losses {
        let run = truth.retransmission_runs.iter().find(|run| {
            run.flow_id == loss.flow_id && run.time >= loss.time && run.trigger != TriggerKind::Rnr
        });
        let sees = |tap: &&crate::truth::Tap| {
            let hole = tap.holes.iter().any(|hole| {
                hole.flow_id == loss.flow_id
                    && hole.psn == loss.psn
                    && hole.observable
                    && hole.class == HoleClass::NetworkLost
            });
            let lost = tap
                .lost_downstream
                .iter()
                .any(|lost| lost.flow_id == loss.flow_id && lost.psn == loss.psn && lost.observable);
            hole || lost
        };
        let taps = truth.taps.iter().filter(sees).map(|tap| tap.name.clone());
        let destination = truth.flows.iter().find(|flow| flow.flow_id == loss.flow_id);
        let destination = destination.map_or_else(String::new, |flow| flow.destination.clone());
        places.entry(destination).or_default().push(Item {
            begin: loss.time,
            end: run.map_or(loss.time, |run| run.end),
            flow: loss.flow_id.clone(),
            ce: false,
            lost: true,
            taps: taps.collect(),
        });
    }
    let mut episodes = Vec::new();
    for (destination, items) in places {
        for group in group(items) {
            let begin = group.first().map_or(0, |item| item.begin);
            let loss = truth.losses.iter().find(|loss| loss.time == begin);
            let place = loss.map_or_else(String::new, |loss| loss.place.clone());
            let cause = loss.map_or_else(String::new, |loss| word(&loss.reason));
            episodes.push(episode(
                EpisodeKind::Loss,
                &place,
                Some(destination.clone()),
                &cause,
                &group,
            ));
        }
    }
    episodes
}

/// Receivers without a buffer, until the sender tries again.
fn not_ready(truth: &Truth) -> Vec<Episode> {
    let mut places: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for nak in truth.naks.iter().filter(|nak| nak.kind == NakKind::Rnr) {
        let run = truth.retransmission_runs.iter().find(|run| {
            run.flow_id == nak.flow_id && run.time >= nak.sent && run.trigger == TriggerKind::Rnr
        });
        let flow = truth.flows.iter().find(|flow| flow.flow_id == nak.flow_id);
        let destination = flow.map_or_else(String::new, |flow| flow.destination.clone());
        places.entry(destination).or_default().push(Item {
            begin: nak.sent,
            end: run.map_or(nak.sent, |run| run.time),
            flow: nak.flow_id.clone(),
            ce: false,
            lost: false,
            taps: nak.recorded_by.clone(),
        });
    }
    let mut episodes = Vec::new();
    for (destination, items) in places {
        for group in group(items) {
            let name = Some(destination.clone());
            episodes.push(episode(
                EpisodeKind::Rnr,
                &destination,
                name,
                "no receive buffer",
                &group,
            ));
        }
    }
    episodes
}

/// Ports that must not send.
fn pauses(truth: &Truth) -> Vec<Episode> {
    let mut places: BTreeMap<(String, Option<u8>), Vec<Item>> = BTreeMap::new();
    for pause in &truth.pauses {
        places
            .entry((pause.place.clone(), pause.priority))
            .or_default()
            .push(Item {
                begin: pause.begin,
                end: pause.end,
                flow: String::new(),
                ce: false,
                lost: false,
                taps: pause.recorded_by.clone(),
            });
    }
    let mut episodes = Vec::new();
    for ((place, priority), items) in places {
        let cause = priority.map_or_else(|| "802.3x".to_owned(), |priority| format!("priority {priority}"));
        let behind = place.split_once("->").map(|(_, node)| node.to_owned());
        for group in group(items) {
            let mut found = episode(EpisodeKind::Pause, &place, behind.clone(), &cause, &group);
            found.flows.clear();
            episodes.push(found);
        }
    }
    episodes
}

/// Flows that send nothing although they have something to send.
fn stalls(simulation: &Simulation<'_>, names: &Names, truth: &Truth) -> Vec<Episode> {
    let mut episodes = Vec::new();
    for silence in &simulation.log.silences {
        let flow_id = names.flow(silence.flow);
        let cause = match silence.trigger {
            Some(trigger) => word(&super::names::trigger(trigger)),
            None if silence.paused => "pause".to_owned(),
            None => "waiting".to_owned(),
        };
        let flow = truth.flows.iter().find(|flow| flow.flow_id == flow_id);
        let taps = truth
            .taps
            .iter()
            .filter(|tap| tap.flows.iter().any(|seen| seen.flow_id == flow_id));
        let item = Item {
            begin: silence.begin.nanos(),
            end: silence.end.nanos(),
            flow: flow_id.clone(),
            ce: false,
            lost: false,
            taps: taps.map(|tap| tap.name.clone()).collect(),
        };
        let place = flow.map_or_else(String::new, |flow| flow.source.clone());
        let destination = flow.map(|flow| flow.destination.clone());
        episodes.push(episode(EpisodeKind::Stall, &place, destination, &cause, &[item]));
    }
    episodes
}

/// The word that a value is written as.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}
