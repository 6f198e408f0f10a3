//! Who waits for whom: from paused cables to the next ones and to roots.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use roce_model::{Confidence, RootKind};

use super::contention::{Contention, contention, link_rate, lower, of_host};
use super::holds::{End, Hold, collect};
use super::known::KnownFacts;
use super::net::Passes;
use super::readings::Quantity;
use super::series::meet;

/// Flows kept of one paused cable.
const MAX_OF_HOLD: usize = 1024;
/// Roots of one paused cable beyond which it has none that is known.
const MAX_ROOTS: usize = 4;
/// A port that sends less than this share of its rate stands still.
const STILL: f64 = 0.001;

/// The root of pauses.
#[derive(Clone, Debug)]
pub(in super::super) struct Root {
    pub(in super::super) kind: RootKind,
    /// Where it is, for people.
    pub(in super::super) place: String,
    pub(in super::super) confidence: Confidence,
    pub(in super::super) reason: String,
    /// Contention: flows by their place, with their share.
    pub(in super::super) shares: Vec<(usize, f64)>,
}

/// A root, and everything that waits for it.
#[derive(Clone, Debug)]
pub(in super::super) struct Chain {
    pub(in super::super) root: Root,
    /// Flows that surely wait, by their place.
    pub(in super::super) victims: Vec<usize>,
    /// Flows that may.
    pub(in super::super) possible: u64,
    /// Victims that go to another host than the root or its port.
    pub(in super::super) elsewhere: u64,
    /// The longest way to the root, in words.
    pub(in super::super) path: String,
    pub(in super::super) holds: u64,
    pub(in super::super) frames: u64,
    pub(in super::super) paused_ns: Option<u64>,
    pub(in super::super) resolution: u64,
    pub(in super::super) is_captured: bool,
    pub(in super::super) first: u64,
    /// Cables with pauses that found no room.
    pub(in super::super) left_out: u64,
}

/// The next cable that a paused cable waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Next {
    /// Paused cables behind it, by their place.
    pub(super) holds: Vec<usize>,
    /// Its root, where it is the last one.
    pub(super) root: Option<usize>,
    pub(super) contention: Option<Contention>,
    /// It is in a circle.
    pub(super) is_circular: bool,
    /// No captured flow is known to pass what is behind it.
    pub(super) is_assumed: bool,
}

/// The whole graph.
pub(super) struct Graph {
    pub(super) holds: Vec<Hold>,
    /// Flows of each paused cable, by their place.
    pub(super) flows: Vec<Vec<(usize, Passes)>>,
    pub(super) next: Vec<Next>,
    pub(super) roots: Vec<Root>,
}

/// The graph, and its roots with all that waits for them.
pub(super) fn conclude(known: &KnownFacts<'_>) -> (Graph, Vec<Chain>) {
    let (holds, left_out) = collect(known);
    let mut graph = Graph {
        flows: holds.iter().map(|hold| flows_of(known, hold)).collect(),
        next: vec![Next::default(); holds.len()],
        roots: Vec::new(),
        holds,
    };
    graph.connect(known);
    graph.find_circles(known);
    graph.find_roots(known);
    let chains = graph.chains(known, left_out as u64);
    (graph, chains)
}

fn flows_of(known: &KnownFacts<'_>, hold: &Hold) -> Vec<(usize, Passes)> {
    let flows = known.flows.counted();
    let found = flows.map(|(place, flow)| (place, hold.passes(known, flow)));
    let mut found: Vec<(usize, Passes)> = found.filter(|(_, passes)| *passes > Passes::No).collect();
    if found.len() > MAX_OF_HOLD {
        let bytes = |place: usize| known.flows.all.get(place).map_or(0, |flow| flow.wire_bytes);
        found.sort_by_key(|(place, _)| (core::cmp::Reverse(bytes(*place)), *place));
        found.truncate(MAX_OF_HOLD);
        found.sort_by_key(|(place, _)| *place);
    }
    found
}

/// True if two sorted lists have a flow in common.
fn share_flow(one: &[(usize, Passes)], other: &[(usize, Passes)]) -> bool {
    let (mut at, mut of) = (0, 0);
    while let (Some((a, _)), Some((b, _))) = (one.get(at), other.get(of)) {
        match a.cmp(b) {
            core::cmp::Ordering::Equal => return true,
            core::cmp::Ordering::Less => at += 1,
            core::cmp::Ordering::Greater => of += 1,
        }
    }
    false
}

impl Graph {
    /// True if a flow surely passes both of two paused cables.
    pub(super) fn surely_share(&self, one: usize, other: usize) -> bool {
        let (Some(one), Some(other)) = (self.flows.get(one), self.flows.get(other)) else {
            return false;
        };
        let surely = |flows: &[(usize, Passes)]| -> Vec<(usize, Passes)> {
            let sure = flows.iter().filter(|(_, passes)| *passes == Passes::Surely);
            sure.copied().collect()
        };
        share_flow(&surely(one), &surely(other))
    }

    /// Finds the paused cables that each one waits for.
    fn connect(&mut self, known: &KnownFacts<'_>) {
        let mut next = core::mem::take(&mut self.next);
        for (one, of) in next.iter_mut().enumerate() {
            let others = 0..self.holds.len();
            of.holds = others
                .filter(|other| self.waits_for(known, one, *other))
                .collect();
        }
        self.next = next;
    }

    /// True if `one` can wait for `other`: the switch that paused the one is paused itself by the other, in the same time and not later,
    /// and flows pass both.
    fn waits_for(&self, known: &KnownFacts<'_>, one: usize, other: usize) -> bool {
        let (Some(hold), Some(behind)) = (self.holds.get(one), self.holds.get(other)) else {
            return false;
        };
        let (Some(flows), Some(flows_behind)) = (self.flows.get(one), self.flows.get(other)) else {
            return false;
        };
        let ports = &known.readings.ports;
        let is_same_priority = hold.priority == behind.priority
            || hold.priority.is_none()
            || behind.priority.is_none()
            || hold.priority == Some(super::readings::LINK)
            || behind.priority == Some(super::readings::LINK);
        if one == other
            || !is_same_priority
            || hold.head.host.is_some()
            || behind.start() > hold.latest_start()
            || !meet(&hold.windows, &behind.windows)
        {
            return false;
        }
        match (hold.head.port, behind.tail.port) {
            (Some(head), Some(tail)) => {
                let is_inside = ports.node_of(head) == ports.node_of(tail)
                    && head != tail
                    && known.net.is_switch(ports, head);
                // Without any captured flow there, every paused port of the switch may be it.
                is_inside && (flows.is_empty() || share_flow(flows, flows_behind))
            }
            // Nobody names the switches: flows show that they are on one way, which ends at the host behind.
            _ => behind.head.host.is_some() && share_flow(flows, flows_behind),
        }
    }

    /// True if a paused cable waits for itself.
    fn is_circular(&self, start: usize) -> bool {
        let mut seen = vec![false; self.holds.len()];
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            for next in self.next.get(at).into_iter().flat_map(|next| &next.holds) {
                if *next == start {
                    return true;
                }
                if let Some(seen @ false) = seen.get_mut(*next) {
                    *seen = true;
                    open.push(*next);
                }
            }
        }
        false
    }

    /// Marks paused cables that wait for themselves.
    fn find_circles(&mut self, known: &KnownFacts<'_>) {
        let count = self.holds.len();
        let circular: Vec<bool> = (0..count).map(|at| self.is_circular(at)).collect();
        for (next, is_circular) in self.next.iter_mut().zip(&circular) {
            next.is_circular = *is_circular;
        }
        if !circular.contains(&true) {
            return;
        }
        let members = circular.iter().enumerate().filter(|(_, is)| **is);
        let members: Vec<usize> = members.map(|(at, _)| at).collect();
        let root = self.circle(known, &members);
        let place = self.roots.len();
        self.roots.push(root);
        for member in members {
            if let Some(next) = self.next.get_mut(member) {
                next.root = Some(place);
            }
        }
    }

    /// The root that a circle is: a deadlock if none of its ports sends, else nothing that is known.
    fn circle(&self, known: &KnownFacts<'_>, members: &[usize]) -> Root {
        let holds: Vec<&Hold> = members.iter().filter_map(|at| self.holds.get(*at)).collect();
        // They may have moved before the circle closed: what counts is the end.
        let still_from = |hold: &&Hold| {
            let sent = known.readings.get(hold.tail.port?, Quantity::SentBytes)?;
            let most = STILL * link_rate(known, hold) / 8.0;
            let moved = sent.windows.iter().rev();
            let moved = moved
                .filter(|window| window.from < hold.end())
                .find(|window| window.by * 1e9 > most * roce_model::value_of(window.length()));
            Some(moved.map_or(0, |window| window.to))
        };
        let from: Option<Vec<u64>> = holds.iter().map(still_from).collect();
        let from = from.and_then(|from| from.into_iter().max());
        // Each of them was still paused in a whole interval behind that.
        let is_still = |hold: &Hold, from: u64| {
            let mut windows = hold.windows.iter().rev();
            windows.next().is_some_and(|window| {
                window
                    .from
                    .max(from)
                    .saturating_add(hold.resolution.min(window.length()))
                    <= window.to
            })
        };
        let still: Vec<Option<bool>> = holds
            .iter()
            .map(|hold| from.map(|from| is_still(hold, from)))
            .collect();
        // A port outside that one of the switches waits for, too, may be what all of them wait for.
        let next = members.iter().filter_map(|at| self.next.get(*at));
        let mut outside = next
            .flat_map(|next| &next.holds)
            .filter(|behind| members.binary_search(behind).is_err())
            .filter_map(|behind| self.holds.get(*behind));
        let last = holds.iter().map(|hold| hold.end()).min().unwrap_or_default();
        let resolution = holds.iter().map(|hold| hold.resolution).max().unwrap_or_default();
        let is_paused_to_the_end = |hold: &Hold| hold.end().saturating_add(resolution) > last;
        let has_exit =
            from.is_some_and(|from| outside.any(|hold| is_still(hold, from) && is_paused_to_the_end(hold)));
        let (kind, reason) = if has_exit {
            (
                RootKind::Unclear,
                "they wait for one another, and for a port outside of their circle",
            )
        } else if still.iter().all(|still| *still == Some(true)) {
            (RootKind::Loop, "in the end none of them sent anything")
        } else if still.contains(&Some(false)) {
            (RootKind::Unclear, "they wait for one another, but they moved")
        } else {
            (
                RootKind::Unclear,
                "they wait for one another; whether they moved was not counted",
            )
        };
        let confidence = match kind {
            RootKind::Loop => holds
                .iter()
                .fold(Confidence::Medium, |all, hold| lower(all, hold.confidence)),
            _ => Confidence::Low,
        };
        let names: Vec<String> = holds.iter().take(8).map(|hold| name(known, hold.tail)).collect();
        Root {
            kind,
            place: names.join(", "),
            confidence,
            reason: reason.to_owned(),
            shares: Vec::new(),
        }
    }

    /// Finds the roots of the paused cables that wait for no other one.
    fn find_roots(&mut self, known: &KnownFacts<'_>) {
        let mut at_place: BTreeMap<String, usize> = BTreeMap::new();
        for at in 0..self.holds.len() {
            let Some(next) = self.next.get(at) else { continue };
            if next.root.is_some() || !next.holds.is_empty() {
                continue;
            }
            let (root, contention) = self.root(known, at);
            let circle = match root.kind {
                RootKind::Unclear => self.circle_at(known, at),
                _ => Vec::new(),
            };
            if !circle.is_empty() {
                if let Some(next) = self.next.get_mut(at) {
                    (next.holds, next.is_assumed) = (circle, true);
                }
                continue;
            }
            let name = format!("{} {}", root.kind.name(), root.place);
            let place = *at_place.entry(name).or_insert_with(|| {
                self.roots.push(root.clone());
                self.roots.len() - 1
            });
            if let Some(kept) = self.roots.get_mut(place)
                && (kept.confidence == Confidence::Low || root.confidence == Confidence::High)
            {
                *kept = root;
            }
            if let Some(next) = self.next.get_mut(at) {
                next.root = Some(place);
                next.contention = contention;
            }
        }
    }

    /// Paused cables of a deadlock at the switch that paused this one, in the same time. Nothing leaves that switch by them. Routes that make a
    /// circle are not the shortest ones, so that cables do not show which flows pass it.
    fn circle_at(&self, known: &KnownFacts<'_>, at: usize) -> Vec<usize> {
        let ports = &known.readings.ports;
        let Some(hold) = self.holds.get(at) else {
            return Vec::new();
        };
        let Some(head) = hold.head.port else {
            return Vec::new();
        };
        let is_dead = |place: &usize| {
            let next = self.next.get(*place).filter(|next| next.is_circular);
            let root = next.and_then(|next| self.roots.get(next.root?));
            let other = self.holds.get(*place);
            root.is_some_and(|root| root.kind == RootKind::Loop)
                && other.is_some_and(|other| {
                    other.priority == hold.priority
                        && other.tail.port.and_then(|tail| ports.node_of(tail)) == ports.node_of(head)
                        && meet(&other.windows, &hold.windows)
                })
        };
        (0..self.holds.len()).filter(is_dead).collect()
    }

    fn root(&self, known: &KnownFacts<'_>, at: usize) -> (Root, Option<Contention>) {
        let unclear = |place: String, reason: &str| Root {
            kind: RootKind::Unclear,
            place,
            confidence: Confidence::Low,
            reason: reason.to_owned(),
            shares: Vec::new(),
        };
        let Some(hold) = self.holds.get(at) else {
            return (unclear(String::new(), ""), None);
        };
        let place = name(known, hold.head);
        let ports = &known.readings.ports;
        let is_host = hold.head.host.is_some()
            || hold
                .head
                .port
                .is_some_and(|port| !known.net.is_switch(ports, port));
        if is_host {
            let (kind, confidence, reason) = of_host(known, hold);
            let root = Root {
                kind,
                place,
                confidence,
                reason,
                shares: Vec::new(),
            };
            return (root, None);
        }
        let of = self.flows.get(at).map_or(&[][..], Vec::as_slice);
        let flows: Vec<usize> = of.iter().map(|(place, _)| *place).collect();
        let is_paused = |port| {
            let mut others = self.holds.iter();
            others.any(|other| other.tail.port == Some(port) && meet(&other.windows, &hold.windows))
        };
        match contention(known, hold, &flows, is_paused) {
            Some(found) => {
                let place = match found.port {
                    Some(port) => ports.name(port),
                    None => format!("the port to {}", found.destination),
                };
                let root = Root {
                    kind: RootKind::Contention,
                    place,
                    confidence: lower(found.confidence, hold.confidence),
                    reason: found.reason.clone(),
                    shares: found.shares.clone(),
                };
                (root, Some(found))
            }
            None if hold.head == End::default() => {
                let reason = "nothing shows which port paused it: --inventory names cables";
                (unclear("an unknown port".to_owned(), reason), None)
            }
            None => (unclear(place, "nothing that was read shows why it paused"), None),
        }
    }

    /// Roots of a paused cable, all that lie behind it, and the length of the longest way to each.
    fn roots_of(&self, at: usize) -> BTreeMap<usize, Vec<usize>> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        // Each is reached once, from the one before it.
        let mut before: Vec<Option<usize>> = vec![None; self.holds.len()];
        let mut open = VecDeque::from([at]);
        while let Some(last) = open.pop_front() {
            let Some(next) = self.next.get(last) else { continue };
            if let Some(root) = next.root {
                found.entry(root).or_insert_with(|| path(&before, at, last));
                continue;
            }
            for behind in &next.holds {
                if *behind != at
                    && let Some(place @ None) = before.get_mut(*behind)
                {
                    *place = Some(last);
                    open.push_back(*behind);
                }
            }
        }
        found
    }

    /// Roots with all that waits for them, the worst first.
    fn chains(&self, known: &KnownFacts<'_>, left_out: u64) -> Vec<Chain> {
        let mut chains: BTreeMap<usize, (Chain, BTreeSet<usize>, BTreeSet<usize>, usize)> = BTreeMap::new();
        for (at, hold) in self.holds.iter().enumerate() {
            let roots = self.roots_of(at);
            let is_alone = roots.len() == 1;
            for (place, path) in roots.into_iter().take(MAX_ROOTS) {
                let Some(root) = self.roots.get(place) else {
                    continue;
                };
                let (chain, victims, possible, length) = chains.entry(place).or_insert_with(|| {
                    let chain = Chain {
                        root: root.clone(),
                        victims: Vec::new(),
                        possible: 0,
                        elsewhere: 0,
                        path: String::new(),
                        holds: 0,
                        frames: 0,
                        paused_ns: None,
                        resolution: 0,
                        is_captured: false,
                        first: u64::MAX,
                        left_out,
                    };
                    (chain, BTreeSet::new(), BTreeSet::new(), 0)
                });
                chain.holds += 1;
                chain.frames = chain.frames.saturating_add(hold.frames);
                if let Some(paused) = hold.paused_ns {
                    chain.paused_ns = Some(chain.paused_ns.unwrap_or_default().max(paused));
                }
                chain.resolution = chain.resolution.max(hold.resolution);
                chain.is_captured |= hold.captured.is_some();
                chain.first = chain.first.min(hold.start());
                if path.len() > *length {
                    *length = path.len();
                    chain.path = self.in_words(known, &path, root);
                }
                for (flow, passes) in self.flows.get(at).into_iter().flatten() {
                    // With several roots behind it nobody knows which one a flow waits for.
                    if *passes == Passes::Surely && is_alone {
                        victims.insert(*flow);
                    } else {
                        possible.insert(*flow);
                    }
                }
            }
        }
        let mut all: Vec<Chain> = chains
            .into_values()
            .map(|(mut chain, victims, possible, _)| {
                chain.possible = possible.difference(&victims).count() as u64;
                let ends: BTreeSet<usize> = chain.root.shares.iter().map(|(flow, _)| *flow).collect();
                let is_elsewhere = |flow: &&usize| {
                    let goes_to = known.flows.all.get(**flow).map(|flow| flow.destination);
                    let is_root = goes_to.is_some_and(|to| self.is_place(known, &chain.root, to));
                    !is_root && !ends.contains(flow)
                };
                if chain.root.kind != RootKind::Unclear {
                    chain.elsewhere = victims.iter().filter(is_elsewhere).count() as u64;
                }
                chain.victims = victims.into_iter().collect();
                chain
            })
            .collect();
        all.sort_by_key(|chain| {
            let rank = match chain.root.kind {
                RootKind::Loop => 0,
                RootKind::Unclear => 2,
                _ => 1,
            };
            (
                chain.victims.is_empty(),
                rank,
                chain.root.confidence as u8,
                core::cmp::Reverse((chain.paused_ns, chain.frames)),
                chain.root.place.clone(),
            )
        });
        all
    }

    /// True if the root is at this host.
    fn is_place(&self, known: &KnownFacts<'_>, root: &Root, host: roce_model::Address) -> bool {
        let ends = self.holds.iter().map(|hold| hold.head);
        let mut ends = ends.filter(|end| end.host == Some(host));
        ends.any(|end| name(known, end) == root.place)
    }

    fn in_words(&self, known: &KnownFacts<'_>, path: &[usize], root: &Root) -> String {
        let mut names: Vec<String> = Vec::new();
        for hold in path.iter().filter_map(|at| self.holds.get(*at)) {
            for end in [hold.tail, hold.head] {
                let name = name(known, end);
                if names.last() != Some(&name) {
                    names.push(name);
                }
            }
        }
        if root.kind == RootKind::Contention && names.last() != Some(&root.place) {
            names.push(root.place.clone());
        }
        names.join(" - ")
    }
}

/// The way from `from` to `to`, each reached from the one before it.
fn path(before: &[Option<usize>], from: usize, to: usize) -> Vec<usize> {
    let mut path = vec![to];
    let mut at = to;
    while at != from
        && path.len() <= before.len()
        && let Some(Some(previous)) = before.get(at)
    {
        path.push(*previous);
        at = *previous;
    }
    path.reverse();
    path
}

/// An end for people.
pub(super) fn name(known: &KnownFacts<'_>, end: End) -> String {
    match (end.port, end.host) {
        (Some(port), _) => known.readings.ports.name(port),
        (None, Some(host)) => host.to_string(),
        (None, None) => "a switch".to_owned(),
    }
}
