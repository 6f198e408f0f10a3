//! Roots of pauses: the rows `waits` of the analysis, and its finding `pause.origin`.
//!
//! Rows are a graph: a flow is in the rows of the cables on which it waits, and rows lead from the port that is waited for to the
//! next one, up to a root. The analysis says a flow's root where its rows lead to one root alone.
//!
//! *Pause roots*: an item is a root and a flow that waited for it, a victim: of contention those flows that are not in the root's
//! queue, of every other root all. Observable: pauses with that root held it up for [`MIN_SHARE`] of the run and for
//! [`MIN_PART`] of all its pauses or more, a tap recorded its data, and there are counters of all ports, or a tap with the pauses at each
//! port of a chain. Found: the analysis says this root, with that kind and port, and overlaps the time.
//! Said: a flow and its root; right if the truth has that root for the flow and time, alone or beside another one.
//!
//! *Pause shares*: rows with a share. Right if the truth has that root in that time.
//!
//! *Pause chain*: the other rows. Right if the port was paused in that time, and if the flow was held up by it or, within a switch, if
//! both ports follow each other in a chain.
//!
//! *Finding pause.origin*: an item is a case with an observable victim. Found: a finding that says a kind. Said: findings at `warning`
//! or over, in the calibration those below that say a kind; right if the truth has the root and kind of it, whoever waited.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Fact, FindingRow, Severity};
use roce_sim::truth::{PauseRoot, PauseRootKind};

use crate::case::Case;
use crate::score::StatedConfidence;
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
    let is_host = port.is_empty() && nodes.address(own) == Some(node);
    let is_named = names.iter().any(|name| name == port) || nodes.address(peer) == Some(port);
    is_node(nodes, own, node) && (is_host || is_named)
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

/// The name that the analysis has for a kind.
fn kind_name(kind: PauseRootKind) -> &'static str {
    match kind {
        PauseRootKind::Deadlock => "loop",
        kind => kind.name(),
    }
}

/// True if a stretch of the truth is in the time of a row.
fn meets(case: &Case, begin: u64, end: u64, wait: &Wait) -> bool {
    let (begin, end) = (case.truth.start_ns + begin, case.truth.start_ns + end);
    wait.start_time <= end.saturating_add(TOLERANCE) && begin <= wait.end_time.saturating_add(TOLERANCE)
}

fn overlaps(case: &Case, root: &PauseRoot, wait: &Wait) -> bool {
    meets(case, root.begin, root.end, wait)
}

/// True if a row says this root; `beside`: one of those that held the same pauses up counts as well.
fn is_root(nodes: &Nodes<'_>, root: &PauseRoot, wait: &Wait, beside: bool) -> bool {
    let port = |place: &str| is_port(nodes, place, &wait.waits_for_node, &wait.waits_for_port);
    let waits = |place: &str| is_port(nodes, place, &wait.node, &wait.port);
    let in_circle = || root.circle.iter().any(|place| port(place) || waits(place));
    let own = wait.root_kind == kind_name(root.kind) && (port(&root.root) || in_circle());
    let other = || {
        let mut also = root.also.iter();
        also.any(|other| wait.root_kind == kind_name(other.kind) && port(&other.root))
    };
    own || beside && other()
}

/// The port at the other end of a cable.
fn peer(place: &str) -> String {
    place
        .split_once("->")
        .map_or_else(String::new, |(own, peer)| format!("{peer}->{own}"))
}

/// Ports of a chain, up to its root, or of a circle.
fn ways(root: &PauseRoot) -> Vec<Vec<&str>> {
    let mut chain: Vec<&str> = root.chain.iter().map(|port| port.place.as_str()).collect();
    let mut circle: Vec<&str> = root.circle.iter().map(String::as_str).collect();
    circle.extend(root.circle.first().map(String::as_str));
    let own = [root.root.as_str()];
    let also = root.also.iter().map(|other| other.root.as_str());
    let last = chain.last().copied();
    let mut ways: Vec<Vec<&str>> = last
        .iter()
        .flat_map(|last| also.clone().map(|other| vec![*last, other]))
        .collect();
    chain.extend(own);
    ways.extend([chain, circle]);
    ways
}

/// A flow and its root, as the rows say it.
struct Claim<'a> {
    flow: &'a str,
    /// The row of the flow.
    first: &'a Wait,
    /// The root's row.
    root: &'a Wait,
    said: StatedConfidence,
}

/// True if the port that one row waits for is the one that waits in the other row, in the same time.
fn leads(one: &Wait, other: &Wait) -> bool {
    let link = |priority: Option<u32>| priority.is_none_or(|priority| priority > 7);
    let is_same = one.priority == other.priority || link(one.priority) || link(other.priority);
    is_same
        && !one.waits_for_node.is_empty()
        && (&one.waits_for_node, &one.waits_for_port) == (&other.node, &other.port)
        && one.start_time <= other.end_time
        && other.start_time <= one.end_time
}

/// Rows of one cable or within one switch, without the flow.
fn edge(wait: &Wait) -> (&str, &str, &str, &str, Option<u32>) {
    (
        &wait.node,
        &wait.port,
        &wait.waits_for_node,
        &wait.waits_for_port,
        wait.priority,
    )
}

/// All flows with the only root that their rows lead to.
fn claims(waits: &[Wait]) -> Vec<Claim<'_>> {
    let mut edges: BTreeMap<_, &Wait> = BTreeMap::new();
    for wait in waits {
        edges.entry((edge(wait), wait.start_time)).or_insert(wait);
    }
    let edges: Vec<&Wait> = edges.into_values().collect();
    let mut claims: BTreeMap<(&str, &str, &str, &str), Claim<'_>> = BTreeMap::new();
    for first in waits
        .iter()
        .filter(|wait| wait.share.is_none() && !wait.victim_flow.is_empty())
    {
        let mut seen = vec![false; edges.len()];
        let mut open = vec![(first, first.said())];
        let mut roots: BTreeMap<(&str, &str, &str), (&Wait, StatedConfidence)> = BTreeMap::new();
        while let Some((wait, said)) = open.pop() {
            if wait.is_root {
                let place = match wait.root_kind.as_str() {
                    "loop" => ("", ""),
                    _ => (wait.waits_for_node.as_str(), wait.waits_for_port.as_str()),
                };
                roots
                    .entry((place.0, place.1, wait.root_kind.as_str()))
                    .or_insert((wait, said));
                continue;
            }
            for (next, seen) in edges.iter().zip(&mut seen) {
                if !*seen && leads(wait, next) {
                    *seen = true;
                    open.push((next, said.max(next.said())));
                }
            }
        }
        let mut roots = roots.into_values();
        if let (Some((root, said)), None) = (roots.next(), roots.next())
            && root.root_kind != "unclear"
        {
            let key = (
                first.victim_flow.as_str(),
                root.waits_for_node.as_str(),
                root.waits_for_port.as_str(),
                root.root_kind.as_str(),
            );
            let claim = Claim {
                flow: &first.victim_flow,
                first,
                root,
                said,
            };
            claims.entry(key).or_insert(claim);
        }
    }
    claims.into_values().collect()
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
    let claims = claims(&case.seen.waits);
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
            let found = claims.iter().any(|claim| {
                claim.flow == *flow
                    && item.stretches.iter().any(|root| {
                        overlaps(case, root, claim.root) && is_root(&nodes, root, claim.root, false)
                    })
            });
            score.expect(found, || {
                item.stretches.first().map_or_else(String::new, |root| text(root))
            });
        }
    }
    for claim in &claims {
        of_claim(case, &nodes, scores, claim);
    }
    for wait in &case.seen.waits {
        of_row(case, &nodes, scores, wait);
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

/// True for a flow without data: it waits with its ACKs alone, of which the truth says nothing.
fn is_silent(case: &Case, flow: &str) -> bool {
    case.flow(flow).is_some_and(|flow| flow.data_packets == 0)
}

/// Judges a flow and its root.
fn of_claim(case: &Case, nodes: &Nodes<'_>, scores: &mut Scores, claim: &Claim<'_>) {
    if is_silent(case, claim.flow) {
        return;
    }
    let own = case.truth.pause_roots.iter();
    let mut own = own.filter(|root| root.flow_id == claim.flow && overlaps(case, root, claim.root));
    let right = own.any(|root| is_root(nodes, root, claim.root, true));
    scores.of_class("pause roots").tell_with(claim.said, right, || {
        format!("{} by {}", row_text(claim.root), row_text(claim.first))
    });
}

fn row_text(wait: &Wait) -> String {
    format!(
        "{} {} waits for {} {} ({} {})",
        wait.node, wait.port, wait.waits_for_node, wait.waits_for_port, wait.root_kind, wait.victim_flow
    )
}

/// Judges a row by itself, the roots of hosts and of circles apart.
fn of_row(case: &Case, nodes: &Nodes<'_>, scores: &mut Scores, wait: &Wait) {
    let roots = || {
        let all = case.truth.pause_roots.iter();
        all.filter(|root| overlaps(case, root, wait))
    };
    if wait.share.is_some() {
        let right = roots().any(|root| is_root(nodes, root, wait, true));
        scores
            .of_class("pause shares")
            .tell_with(wait.said(), right, || row_text(wait));
        return;
    }
    let flow = wait.victim_flow.as_str();
    if wait.is_root || wait.node.is_empty() || wait.waits_for_node.is_empty() || is_silent(case, flow) {
        return;
    }
    let is_paused = |place: &str| is_port(nodes, place, &wait.node, &wait.port);
    let is_next = |place: &str| is_port(nodes, place, &wait.waits_for_node, &wait.waits_for_port);
    let right = if wait.node == wait.waits_for_node {
        let follows = |way: &Vec<&str>| {
            way.windows(2)
                .any(|pair| is_paused(&peer(pair[0])) && is_next(pair[1]))
        };
        roots().any(|root| ways(root).iter().any(follows))
    } else if flow.is_empty() {
        let mut pauses = case.truth.pauses.iter();
        pauses.any(|pause| meets(case, pause.begin, pause.end, wait) && is_paused(&pause.place))
    } else {
        let mut own = roots().filter(|root| root.flow_id == flow);
        own.any(|root| {
            let mut ports = root.chain.iter();
            ports.any(|port| is_paused(&port.place) && is_next(&peer(&port.place)))
        })
    };
    scores
        .of_class("pause chain")
        .tell_with(wait.said(), right, || row_text(wait));
}

/// True if the evidence of a finding names this port.
pub(crate) fn names(nodes: &Nodes<'_>, finding: &FindingRow, place: &str) -> bool {
    finding.evidence.0.iter().any(|(_, fact)| match fact {
        Fact::Text(text) => names_port(nodes, place, text),
        Fact::Count(_) | Fact::Number(_) => false,
    })
}

/// A text of a finding's evidence; empty without it.
fn fact<'a>(finding: &'a FindingRow, name: &str) -> &'a str {
    let mut facts = finding.evidence.0.iter();
    facts
        .find_map(|(own, fact)| match fact {
            Fact::Text(text) if *own == name => Some(text.as_ref()),
            _ => None,
        })
        .unwrap_or_default()
}

/// True if a text names a root: its port, or the host that a switch's port leads to.
fn names_root(nodes: &Nodes<'_>, place: &str, text: &str) -> bool {
    let to = || text.strip_prefix("the port to ");
    let leads_to = || {
        let host = place.split_once("->").and_then(|(_, peer)| nodes.address(peer));
        to().is_some_and(|address| host == Some(address))
    };
    if to().is_some() {
        leads_to()
    } else {
        names_port(nodes, place, text)
    }
}

/// True if a finding about a root is right.
pub(crate) fn is_right(case: &Case, finding: &FindingRow) -> bool {
    let nodes = Nodes::new(case);
    let (kind, text) = (fact(finding, "root_kind"), fact(finding, "root"));
    case.truth.pause_roots.iter().any(|root| {
        let own = [&root.root]
            .into_iter()
            .chain(&root.circle)
            .map(|place| (root.kind, place));
        let mut all = own.chain(root.also.iter().map(|other| (other.kind, &other.root)));
        all.any(|(own, place)| kind == kind_name(own) && names_root(&nodes, place, text))
    })
}

fn findings(case: &Case, scores: &mut Scores, expected: bool) {
    let said = case.seen.summary.findings.iter();
    let said: Vec<&FindingRow> = said
        .filter(|finding| finding.id == FINDING && finding.severity > Severity::Ok)
        .filter(|finding| fact(finding, "root_kind") != "unclear")
        .collect();
    let class = format!("finding {FINDING}");
    if expected {
        scores
            .of_class(&class)
            .expect(!said.is_empty(), || "flows waited for a root".to_owned());
    }
    for finding in said {
        let right = is_right(case, finding);
        let (degree, note) = (StatedConfidence::of(finding.confidence), || {
            finding.summary.to_string()
        });
        scores
            .calibration
            .entry(finding.id)
            .or_default()
            .tell_with(degree, right, note);
        if finding.severity >= Severity::Warning {
            scores.of_class(&class).tell_with(degree, right, note);
        }
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
        // Without an inventory a host has its address, and its port no name.
        let nodes = Nodes {
            addresses: [("h4", "10.0.0.4"), ("h5", "10.0.0.5")].into(),
            ..Nodes::default()
        };
        assert!(is_port(&nodes, "h4->leaf1", "10.0.0.4", ""));
        assert!(!is_port(&nodes, "h4->leaf1", "10.0.0.5", ""));
        assert!(!is_port(&nodes, "leaf1->h4", "10.0.0.4", ""));
    }
}
