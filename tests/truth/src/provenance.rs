//! Roots of pauses: the rows `waits` of the analysis, and its finding `pause.origin`.
//!
//! *Pause roots*: an item is a root and a flow that waited for it, a victim: of contention those flows that are not in the root's
//! queue, of every other root all. Observable: pauses with that root held it up for [`MIN_SHARE`] of the run and for
//! [`MIN_PART`] of all its pauses or more, a tap recorded its data, and there are counters of all ports, or a tap with the pauses at each
//! port of a chain. Found: a row of the flow that is a root, with that kind and port, and overlaps the time.
//! Said: rows that are roots; right if the truth has that root for the flow and time, alone or beside another one.
//!
//! *Pause chain*: the other rows. Right if the two ports follow each other in a chain of the flow.
//!
//! *Finding pause.origin*: an item is a case with an observable victim. Said: findings of that id; right if their evidence names the
//! root of a stretch of the truth, whoever waited.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Fact, FindingRow, Severity};
use roce_sim::truth::{PauseRoot, PauseRootKind};

use crate::case::Case;
use crate::score::Said;
use crate::scores::Scores;
use crate::seen::Wait;

/// A hundredth of the run: less costs a flow nothing that anybody notices.
const MIN_SHARE: u64 = 100;
/// A quarter of the time that a flow was paused.
const MIN_PART: u64 = 4;
/// Readings of counters do not say when in between something happened; in ns.
const TOLERANCE: u64 = 2_000_000;
/// The finding about roots.
pub(crate) const FINDING: &str = "pause.origin";

/// Names of nodes beside their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes<'a> {
    /// The address of each host.
    addresses: BTreeMap<&'a str, &'a str>,
    /// The taps at each node.
    taps: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Nodes<'a> {
    /// Those of a case.
    pub(crate) fn new(case: &'a Case) -> Self {
        let connections = case.truth.connections.iter();
        let ends = connections.flat_map(|each| [&each.a, &each.b]);
        let taps = case.truth.taps.iter();
        Self {
            addresses: ends
                .map(|end| (end.host.as_str(), end.address.as_str()))
                .collect(),
            taps: taps.map(|tap| (tap.node.as_str(), tap.name.as_str())).collect(),
        }
    }

    fn address(&self, host: &str) -> Option<&'a str> {
        self.addresses.get(host).copied()
    }
}

/// True if the analysis means a node: by its own name, its address, or one of its taps.
fn is_node(nodes: &Nodes<'_>, name: &str, said: &str) -> bool {
    said == name || nodes.address(name) == Some(said) || nodes.taps.contains(&(name, said))
}

/// True if a node and port of the analysis are a port of the truth, `leaf1->h1`: as its switch calls it (`leaf1:h1`), as the truth does,
/// or by the neighbour alone.
fn is_port(nodes: &Nodes<'_>, place: &str, node: &str, port: &str) -> bool {
    let Some((own, peer)) = place.split_once("->") else {
        return false;
    };
    let names = [
        place.to_owned(),
        format!("{own}:{peer}"),
        peer.to_owned(),
        own.to_owned(),
    ];
    is_node(nodes, own, node) && (names.iter().any(|name| name == port) || nodes.address(peer) == Some(port))
}

/// True if a text names a port of the truth.
fn names_port(nodes: &Nodes<'_>, place: &str, text: &str) -> bool {
    let Some((own, peer)) = place.split_once("->") else {
        return false;
    };
    let has = |name: &str| {
        let mut rest = text;
        while let Some(found) = rest.find(name) {
            let behind = rest[found + name.len()..].chars().next();
            if !behind.is_some_and(|c| c.is_ascii_alphanumeric()) {
                return true;
            }
            rest = &rest[found + name.len()..];
        }
        false
    };
    if has(place) || has(&format!("{own}:{peer}")) {
        return true;
    }
    // The port of a host is the host.
    own.starts_with('h') && (has(own) || nodes.address(own).is_some_and(has))
}

fn overlaps(case: &Case, root: &PauseRoot, wait: &Wait) -> bool {
    let start = case.truth.start_ns;
    let (begin, end) = (start + root.begin, start + root.end);
    wait.from_time <= end.saturating_add(TOLERANCE) && begin <= wait.to_time.saturating_add(TOLERANCE)
}

/// True if a row says this root; `beside`: one of those that held the same pauses up counts as well.
fn is_root(nodes: &Nodes<'_>, root: &PauseRoot, wait: &Wait, beside: bool) -> bool {
    let port = |place: &str| is_port(nodes, place, &wait.waits_for_node, &wait.waits_for_port);
    let own = wait.root_kind == root.kind.name()
        && (port(&root.root) || root.circle.iter().any(|place| port(place)));
    let other = || {
        let mut also = root.also.iter();
        also.any(|other| wait.root_kind == other.kind.name() && port(&other.root))
    };
    own || beside && other()
}

/// True if two ports follow each other in a chain, or the second is its root or in its circle.
fn is_edge(nodes: &Nodes<'_>, root: &PauseRoot, wait: &Wait) -> bool {
    let mut ports: Vec<&str> = root.chain.iter().map(|port| port.place.as_str()).collect();
    ports.push(&root.root);
    let paused = |place: &str| is_port(nodes, place, &wait.paused_node, &wait.paused_port);
    let waits = |place: &str| is_port(nodes, place, &wait.waits_for_node, &wait.waits_for_port);
    let circle = root.circle.iter();
    let mut circle = circle.zip(root.circle.iter().cycle().skip(1));
    let other = || root.also.iter().any(|other| waits(&other.root));
    ports
        .windows(2)
        .any(|pair| paused(pair[0]) && (waits(pair[1]) || other()))
        || circle.any(|(a, b)| paused(a) && waits(b))
}

/// All stretches of a flow with one root, by whatever chain.
#[derive(Default)]
struct Item<'a> {
    stretches: Vec<&'a PauseRoot>,
    paused: u64,
}

/// True if everything that is needed to tell the root is there. `total` is the time that all roots held the flow up.
fn is_observable(case: &Case, flow: &str, item: &Item<'_>, total: u64) -> bool {
    let recorded = case.truth.taps.iter().any(|tap| {
        let mut flows = tap.flows.iter();
        flows.any(|seen| seen.flow_id == flow && seen.data_packets > 0)
    });
    let shown = |root: &&PauseRoot| root.chain.iter().all(|port| !port.recorded_by.is_empty());
    recorded
        && (case.scenario.counters || item.stretches.iter().any(shown))
        && item.paused * MIN_SHARE >= case.truth.duration_ns
        && item.paused * MIN_PART >= total
}

fn is_victim(root: &PauseRoot) -> bool {
    !root.contributes || root.kind != PauseRootKind::Contention
}

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    let nodes = Nodes::new(case);
    let mut items: BTreeMap<&str, BTreeMap<(PauseRootKind, &str), Item<'_>>> = BTreeMap::new();
    for root in case.truth.pause_roots.iter().filter(|root| is_victim(root)) {
        let own = items.entry(&root.flow_id).or_default();
        let item = own.entry((root.kind, root.root.as_str())).or_default();
        item.paused += root.paused_ns;
        item.stretches.push(root);
    }
    let mut any = false;
    for (flow, roots) in &items {
        let total: u64 = roots.values().map(|item| item.paused).sum();
        for item in roots.values() {
            let score = scores.of_class("pause roots");
            if !is_observable(case, flow, item, total) {
                score.hidden();
                continue;
            }
            any = true;
            let mut waits = case.seen.waits.iter();
            let found = waits.any(|wait| {
                wait.root
                    && wait.victim_flow == *flow
                    && item
                        .stretches
                        .iter()
                        .any(|root| overlaps(case, root, wait) && is_root(&nodes, root, wait, false))
            });
            score.expect(found, || {
                item.stretches.first().map_or_else(String::new, |root| text(root))
            });
        }
    }
    for wait in &case.seen.waits {
        one(case, &nodes, scores, wait);
    }
    findings(case, scores, any);
}

fn text(root: &PauseRoot) -> String {
    let chain: Vec<&str> = root.chain.iter().map(|port| port.place.as_str()).collect();
    format!(
        "{}: {} {} by {} from {} to {} us, {} us in all",
        root.flow_id,
        root.kind.name(),
        root.root,
        chain.join(", "),
        root.begin / 1_000,
        root.end / 1_000,
        root.paused_ns / 1_000
    )
}

/// Judges a row of the analysis. A flow without data waits with its ACKs alone, of which the truth says nothing.
fn one(case: &Case, nodes: &Nodes<'_>, scores: &mut Scores, wait: &Wait) {
    let flow = case.flow(&wait.victim_flow);
    if flow.is_some_and(|flow| flow.data_packets == 0) {
        return;
    }
    let own = case.truth.pause_roots.iter();
    let mut own = own.filter(|root| root.flow_id == wait.victim_flow && overlaps(case, root, wait));
    let (class, right) = if wait.root {
        ("pause roots", own.any(|root| is_root(nodes, root, wait, true)))
    } else {
        ("pause chain", own.any(|root| is_edge(nodes, root, wait)))
    };
    scores.of_class(class).tell_with(wait.said(), right, || {
        format!(
            "{}: {} {} waits for {} {} ({})",
            wait.victim_flow,
            wait.paused_node,
            wait.paused_port,
            wait.waits_for_node,
            wait.waits_for_port,
            wait.root_kind
        )
    });
}

/// True if the evidence of a finding names this port.
pub(crate) fn names(nodes: &Nodes<'_>, finding: &FindingRow, place: &str) -> bool {
    finding.evidence.0.iter().any(|(_, fact)| match fact {
        Fact::Text(text) => names_port(nodes, place, text),
        Fact::Count(_) | Fact::Number(_) => false,
    })
}

/// True if a finding about a root is right.
pub(crate) fn is_right(case: &Case, finding: &FindingRow) -> bool {
    let nodes = Nodes::new(case);
    case.truth.pause_roots.iter().any(|root| {
        let also = root.also.iter().map(|other| &other.root);
        let mut ports = [&root.root].into_iter().chain(&root.circle).chain(also);
        ports.any(|place| names(&nodes, finding, place))
    })
}

fn findings(case: &Case, scores: &mut Scores, expected: bool) {
    let said = case.seen.summary.findings.iter();
    let said: Vec<&FindingRow> = said
        .filter(|finding| finding.id == FINDING && finding.severity > Severity::Ok)
        .collect();
    let class = format!("finding {FINDING}");
    if expected {
        scores
            .of_class(&class)
            .expect(!said.is_empty(), || "flows waited for a root".to_owned());
    }
    for finding in said {
        let right = is_right(case, finding);
        let (degree, note) = (Said::of(finding.confidence), || finding.summary.to_string());
        scores
            .calibration
            .entry(finding.id)
            .or_default()
            .tell_with(degree, right, note);
        scores.of_class(&class).tell_with(degree, right, note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_part_of_a_longer_one() {
        let nodes = Nodes::default();
        assert!(names_port(&nodes, "leaf1->h1", "at leaf1:h1, 3 flows"));
        assert!(names_port(&nodes, "h1->leaf1", "the host h1"));
        assert!(!names_port(&nodes, "leaf1->h1", "at leaf1:h12"));
        assert!(!names_port(&nodes, "h1->leaf1", "the hosts h10 and h11"));
    }

    #[test]
    fn ports_have_several_names() {
        let nodes = Nodes::default();
        for port in ["leaf1:spine2", "leaf1->spine2", "spine2"] {
            assert!(is_port(&nodes, "leaf1->spine2", "leaf1", port), "{port}");
        }
        assert!(is_port(&nodes, "h4->leaf1", "h4", "h4"));
        assert!(!is_port(&nodes, "leaf1->spine2", "spine2", "leaf1->spine2"));
        assert!(!is_port(&nodes, "leaf1->spine2", "leaf1", "leaf1:spine1"));
    }
}
