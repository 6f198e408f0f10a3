//! Groups of captures that saw the same flows at the same time: what the second pass over a fleet analyses together. It knows flows and times, no
//! files.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Span, Time};

/// Captures of one task, at most. A packet's sightings have one bit for each of 32 taps.
pub const MAX_TASK: usize = 32;
/// Other captures' latest spans of one flow that are compared: a flow passes a few hosts.
const MAX_ACTIVE: usize = 64;

/// One flow in one capture.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowSpan {
    /// Identifier of the flow.
    pub flow: i64,
    /// Time of its first packet there.
    pub first: Time,
    /// Time of its last packet there.
    pub last: Time,
    /// Place of the capture in the caller's list.
    pub capture: usize,
    /// Address that the flow goes to.
    pub destination: String,
}

/// Captures that are analysed together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupTask {
    /// Their places in the caller's list, sorted.
    pub captures: Vec<usize>,
    /// Only hops of flows to this address: the group is cut. `None`: all hops.
    pub destination: Option<String>,
}

/// A capture as grouping knows it: its host and its times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupCapture {
    /// The host.
    pub host: String,
    /// Time of its first frame.
    pub first: Time,
    /// Time of its last frame.
    pub last: Time,
}

/// Sets of captures that are joined one by one.
struct JoinedSets(Vec<usize>);

impl JoinedSets {
    fn root(&mut self, mut at: usize) -> usize {
        while let Some(&up) = self.0.get(at) {
            if up == at {
                break;
            }
            // Each step halves the way of the next look-up.
            let above = self.0.get(up).copied().unwrap_or(up);
            if let Some(slot) = self.0.get_mut(at) {
                *slot = above;
            }
            at = above;
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if let Some(slot) = self.0.get_mut(one.max(other)) {
            *slot = one.min(other);
        }
    }
}

/// The groups of two captures and more that share a flow while their times overlap, directly or through others. Clocks of different hosts may
/// differ by `slack`; captures of one host have one clock, so files that follow each other do not overlap.
pub fn groups(captures: &[GroupCapture], spans: &mut Vec<FlowSpan>, slack: Span) -> Vec<Vec<usize>> {
    spans.sort_unstable();
    spans.retain(|span| span.capture < captures.len());
    let mut joined = JoinedSets((0..captures.len()).collect());
    let host = |span: &FlowSpan| captures.get(span.capture).map(|capture| capture.host.as_str());
    for flow in spans.chunk_by(|one, next| one.flow == next.flow) {
        let mut active: Vec<&FlowSpan> = Vec::new();
        for span in flow {
            active.retain(|other| other.last + slack >= span.first);
            for other in &active {
                if host(other) != host(span) || other.last >= span.first {
                    joined.join(other.capture, span.capture);
                }
            }
            if active.len() >= MAX_ACTIVE {
                active.remove(0);
            }
            active.push(span);
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for capture in 0..captures.len() {
        groups.entry(joined.root(capture)).or_default().push(capture);
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

/// The tasks of the groups. A group of more than `most` captures is cut by destination: the captures of the host that receives, and those of its
/// senders, so that all packets of a hop are in one task. Where the senders are too many, each task has all of the receiver and some of the senders.
/// Where even the receiver's own captures are, they are cut in the order of time, and a flow that goes over such an edge has a hop in both tasks.
pub fn tasks(
    captures: &[GroupCapture],
    groups: &[Vec<usize>],
    spans: &[FlowSpan],
    most: usize,
    slack: Span,
) -> Vec<GroupTask> {
    let most = most.max(2);
    let mut tasks = Vec::new();
    let large: BTreeMap<usize, usize> = groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group.len() > most)
        .flat_map(|(number, group)| group.iter().map(move |capture| (*capture, number)))
        .collect();
    // By group and destination: flows of each capture.
    let mut to: BTreeMap<(usize, &str), BTreeMap<usize, BTreeSet<i64>>> = BTreeMap::new();
    for span in spans {
        if let Some(group) = large.get(&span.capture) {
            let captures = to.entry((*group, &span.destination)).or_default();
            captures.entry(span.capture).or_default().insert(span.flow);
        }
    }
    for group in groups.iter().filter(|group| group.len() <= most) {
        tasks.push(GroupTask {
            captures: group.clone(),
            destination: None,
        });
    }
    for ((_, destination), flows) in to {
        let (receiver, senders) = ends(captures, &flows);
        if receiver.is_empty() || senders.is_empty() {
            continue;
        }
        for window in receiver.chunks((most / 2).max(1)) {
            let from = window
                .iter()
                .filter_map(|at| captures.get(*at))
                .map(|capture| capture.first.0)
                .min();
            let to = window
                .iter()
                .filter_map(|at| captures.get(*at))
                .map(|capture| capture.last.0)
                .max();
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            let meets = |at: &&usize| {
                captures.get(**at).is_some_and(|capture| {
                    capture.first.0 <= to.saturating_add(slack.0)
                        && from <= capture.last.0.saturating_add(slack.0)
                })
            };
            let near: Vec<usize> = senders.iter().filter(meets).copied().collect();
            for chunk in near.chunks(most - window.len().min(most - 1)) {
                let mut all = [window, chunk].concat();
                all.sort_unstable();
                tasks.push(GroupTask {
                    captures: all,
                    destination: Some(destination.to_owned()),
                });
            }
        }
    }
    tasks.sort();
    tasks
}

/// The captures of the host that receives these flows, and all others, both in the order of time. It is the host whose captures have the most of
/// the flows: each sender has its own alone.
fn ends(captures: &[GroupCapture], flows: &BTreeMap<usize, BTreeSet<i64>>) -> (Vec<usize>, Vec<usize>) {
    let mut by_host: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for (at, flows) in flows {
        if let Some(capture) = captures.get(*at) {
            by_host.entry(&capture.host).or_default().extend(flows);
        }
    }
    let receiver = by_host
        .iter()
        .max_by_key(|(host, flows)| (flows.len(), std::cmp::Reverse(*host)))
        .map(|(host, _)| *host);
    let mut all: Vec<usize> = flows.keys().copied().collect();
    all.sort_by_key(|at| (captures.get(*at).map(|capture| capture.first), *at));
    let is_receiver = |at: &usize| captures.get(*at).map(|capture| capture.host.as_str()) == receiver;
    all.into_iter().partition(is_receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(host: &str, first: u64, last: u64) -> GroupCapture {
        GroupCapture {
            host: host.to_owned(),
            first: Time(first),
            last: Time(last),
        }
    }

    fn span(capture: usize, flow: i64, first: u64, last: u64) -> FlowSpan {
        FlowSpan {
            flow,
            first: Time(first),
            last: Time(last),
            capture,
            destination: "10.0.0.9".to_owned(),
        }
    }

    #[test]
    fn captures_that_share_a_flow_in_time_are_a_group() {
        let captures = [
            capture("h1", 0, 10),
            capture("h2", 0, 10),
            capture("h3", 0, 10),
            capture("h4", 50, 60),
            capture("h5", 0, 10),
        ];
        let mut spans = vec![
            span(0, 1, 0, 10),
            span(1, 1, 2, 9),
            // The second capture has a flow of the third, too: all three are one group.
            span(1, 2, 5, 9),
            span(2, 2, 5, 10),
            // The flow comes again much later, and another flow comes.
            span(3, 1, 50, 60),
            span(4, 3, 0, 10),
        ];
        assert_eq!(groups(&captures, &mut spans, Span(0)), [vec![0, 1, 2]]);
        // Clocks that may be 45 apart.
        assert_eq!(groups(&captures, &mut spans, Span(45)), [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn rotated_files_of_one_host_are_joined_by_the_other_end_alone() {
        let captures = [capture("h1", 0, 10), capture("h1", 11, 20), capture("h2", 0, 20)];
        let mut spans = vec![span(0, 1, 0, 10), span(1, 1, 11, 20)];
        assert!(groups(&captures, &mut spans, Span(100)).is_empty());
        spans.push(span(2, 1, 0, 20));
        assert_eq!(groups(&captures, &mut spans, Span(0)), [vec![0, 1, 2]]);
    }

    #[test]
    fn large_groups_are_cut_by_destination_and_each_hop_is_in_one_task() {
        // All to all between six hosts: flow 10 * sender + receiver is in both captures.
        let captures: Vec<GroupCapture> = (0..6).map(|host| capture(&format!("h{host}"), 0, 10)).collect();
        let mut spans = Vec::new();
        for from in 0..6_usize {
            for to in (0..6).filter(|to| *to != from) {
                for at in [from, to] {
                    spans.push(FlowSpan {
                        destination: format!("10.0.0.{to}"),
                        ..span(at, i64::try_from(10 * from + to).unwrap(), 0, 10)
                    });
                }
            }
        }
        let groups = groups(&captures, &mut spans, Span(0));
        assert_eq!(groups, [vec![0, 1, 2, 3, 4, 5]]);
        assert_eq!(tasks(&captures, &groups, &spans, 6, Span(0)).len(), 1);
        let tasks = tasks(&captures, &groups, &spans, 4, Span(0));
        assert!(tasks.iter().all(|task| task.captures.len() <= 4), "{tasks:?}");
        let mut hops = Vec::new();
        for task in &tasks {
            let to: usize = task
                .destination
                .as_ref()
                .unwrap()
                .trim_start_matches("10.0.0.")
                .parse()
                .unwrap();
            assert!(task.captures.contains(&to), "{task:?}");
            hops.extend(
                task.captures
                    .iter()
                    .filter(|from| **from != to)
                    .map(|from| (*from, to)),
            );
        }
        hops.sort_unstable();
        let all: Vec<(usize, usize)> = (0..6)
            .flat_map(|from| (0..6).filter(move |to| *to != from).map(move |to| (from, to)))
            .collect();
        assert_eq!(hops, all, "each pair once");
    }
}
