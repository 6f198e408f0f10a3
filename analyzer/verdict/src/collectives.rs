//! The shapes of collectives from traffic alone: who sends to whom, how much, and when. Rules are strict, since traffic has no word for them:
//! what is no clear ring, tree or all-to-all gives no row.
//!
//! Addresses that exchange data are members of one shape. Connections with less than a fiftieth of the data of their busiest end are left
//! out: NCCL's receivers announce buffers by small writes in the other direction. All others must carry the same within a quarter, and at
//! the same time for half of it. A ring is one circle; a tree has no circle, at most three neighbours for each member, and two members or more
//! that pass data on; all-to-all has every connection that is possible.
//!
//! Trees of NCCL come in pairs in which each rank is inside of one (Sanders, Speck, Träff: Two-tree algorithms, 2009). Over the same
//! addresses the two are no tree together, and give no row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::cast::float;
use roce_model::{
    Address, CollectiveEvidence, CollectiveRow, CollectiveShape, Confidence, FlowRow, Period, Span, StepRow,
};

/// Pairs of addresses that are kept, at most: some 8 MB. With more of them nothing is concluded.
const MAX_EDGES: usize = 1 << 16;
/// Members of a shape: the text that lists them stays below 100 KB.
const MAX_MEMBERS: usize = 2_048;
/// Shapes that are found.
const MAX_SHAPES: usize = 1_024;
/// A connection with less than this share of the data of the busiest one of its ends is control traffic.
const CONTROL_SHARE: u64 = 50;
/// The busiest connection carries at most this many times what the least busy one does.
const MAX_SPREAD: f64 = 1.25;
/// All connections are in use for at least this share of the time of the shape.
const MIN_OVERLAP: f64 = 0.5;
/// Members from which the traffic of a circle is no coincidence.
const SURE_MEMBERS: usize = 4;
/// Neighbours of a member of a tree: one above, two below.
const MAX_NEIGHBOURS: usize = 3;
/// Steps of a job that make a shape sure.
const MIN_STEPS: usize = 3;

/// Data from one address to another.
#[derive(Clone, Copy, Debug)]
struct SentData {
    bytes: u64,
    span: Period,
}

/// Who sent to whom.
#[derive(Debug, Default)]
pub(super) struct Collectives {
    sent: HashMap<(Address, Address), SentData, foldhash::fast::RandomState>,
    /// Ranks of addresses; `None`: several ranks send from it.
    ranks: HashMap<Address, Option<u32>, foldhash::fast::RandomState>,
    is_full: bool,
}

impl Collectives {
    /// A flow that is complete.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        if !row.counted || row.payload_bytes == 0 || row.source == row.destination {
            return;
        }
        let key = (row.source, row.destination);
        if self.sent.len() >= MAX_EDGES && !self.sent.contains_key(&key) {
            self.is_full = true;
            return;
        }
        if let Some(rank) = row.rank {
            let known = self.ranks.entry(row.source).or_insert(Some(rank));
            *known = known.filter(|known| *known == rank);
        }
        let span = Period {
            first: row.first_time,
            last: row.last_time,
        };
        let sent = self.sent.entry(key).or_insert(SentData { bytes: 0, span });
        sent.bytes = sent.bytes.saturating_add(row.payload_bytes);
        sent.span.include(span.first);
        sent.span.include(span.last);
    }

    /// The shapes, those with the most data first.
    pub(super) fn conclude(&self, steps: &[StepRow]) -> Vec<CollectiveRow> {
        if self.is_full {
            return Vec::new();
        }
        let mut busiest: HashMap<Address, u64> = HashMap::new();
        for ((from, to), sent) in &self.sent {
            for end in [from, to] {
                let most = busiest.entry(*end).or_default();
                *most = sent.bytes.max(*most);
            }
        }
        let of = |end: &Address| busiest.get(end).copied().unwrap_or_default();
        let mut edges: Vec<(Address, Address, SentData)> = self
            .sent
            .iter()
            .filter(|((from, to), sent)| sent.bytes.saturating_mul(CONTROL_SHARE) >= of(from).max(of(to)))
            .map(|((from, to), sent)| (*from, *to, *sent))
            .collect();
        edges.sort_unstable_by_key(|(from, to, _)| (*from, *to));
        let stepped = stepped(steps);
        let mut rows: Vec<CollectiveRow> = groups(&edges)
            .iter()
            .filter_map(|group| self.shape(group, &stepped))
            .collect();
        rows.sort_by(|one, other| {
            let bytes = other.payload_bytes.cmp(&one.payload_bytes);
            bytes.then_with(|| one.hosts.cmp(&other.hosts))
        });
        rows.truncate(MAX_SHAPES);
        number_rails(&mut rows);
        rows
    }

    /// The shape of connections between members that are linked with each other.
    fn shape(
        &self,
        edges: &[(Address, Address, SentData)],
        stepped: &BTreeMap<(Address, Address), usize>,
    ) -> Option<CollectiveRow> {
        let members: BTreeSet<Address> = edges.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        if members.len() < 3 || members.len() > MAX_MEMBERS {
            return None;
        }
        let most = edges.iter().map(|(.., sent)| sent.bytes).max()?;
        let least = edges.iter().map(|(.., sent)| sent.bytes).min()?;
        let spread = float(most) / float(least.max(1));
        if spread > MAX_SPREAD || overlap(edges) < MIN_OVERLAP {
            return None;
        }
        let graph = Graph::new(edges);
        let (shape, order, both) = graph.shape(&members)?;
        let has_steps = edges.iter().all(|(from, to, _)| {
            let pair = (*from.min(to), *from.max(to));
            stepped.get(&pair).is_some_and(|steps| *steps >= MIN_STEPS)
        });
        let confidence = match (has_steps, members.len()) {
            (true, SURE_MEMBERS..) => Confidence::High,
            (_, SURE_MEMBERS..) | (true, _) => Confidence::Medium,
            _ => Confidence::Low,
        };
        let span = edges.iter().map(|(.., sent)| sent.span);
        let bytes = edges
            .iter()
            .map(|(.., sent)| sent.bytes)
            .fold(0, u64::saturating_add);
        let rank = |host: &Address| self.ranks.get(host).copied().flatten();
        let named: Option<Vec<(u32, Vec<u32>)>> = order
            .iter()
            .map(|(host, below)| Some((rank(host)?, below.iter().map(rank).collect::<Option<_>>()?)))
            .collect();
        Some(CollectiveRow {
            shape,
            evidence: CollectiveEvidence::Traffic,
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
            ranks: named.map(|named| text(&named).into()),
            hosts: Some(text(&order).into()),
            both_directions: Some(both),
            payload_bytes: Some(bytes),
            spread: Some(spread),
            start_time: span.clone().map(|span| span.first).min(),
            end_time: span.map(|span| span.last).max(),
            confidence,
            ..CollectiveRow::default()
        })
    }
}

/// Members in order: `a > b > c`; of a tree `a > b, c; b > d`.
fn text<T: std::fmt::Display>(order: &[(T, Vec<T>)]) -> String {
    let is_tree = order.iter().any(|(_, below)| !below.is_empty());
    if !is_tree {
        let names: Vec<String> = order.iter().map(|(member, _)| member.to_string()).collect();
        return names.join(" > ");
    }
    let parts = order.iter().filter(|(_, below)| !below.is_empty());
    let parts: Vec<String> = parts
        .map(|(member, below)| {
            let below: Vec<String> = below.iter().map(ToString::to_string).collect();
            format!("{member} > {}", below.join(", "))
        })
        .collect();
    parts.join("; ")
}

/// Steps of a job between two addresses, the lower one first.
fn stepped(steps: &[StepRow]) -> BTreeMap<(Address, Address), usize> {
    let mut counts = BTreeMap::new();
    for step in steps {
        let pair = (step.host_a.min(step.host_b), step.host_a.max(step.host_b));
        *counts.entry(pair).or_default() += 1;
    }
    counts
}

/// The lowest address known of the group that an address is in. The way to it is halved, so that no later one is long.
fn root(above: &mut HashMap<Address, Address>, of: Address) -> Address {
    let mut at = of;
    while let Some(next) = above.get(&at).copied().filter(|next| *next != at) {
        let further = above.get(&next).copied().unwrap_or(next);
        above.insert(at, further);
        at = further;
    }
    at
}

/// Connections of members that are linked with each other, over others or directly.
fn groups(edges: &[(Address, Address, SentData)]) -> Vec<Vec<(Address, Address, SentData)>> {
    let mut above: HashMap<Address, Address> = HashMap::new();
    for (from, to, _) in edges {
        let (one, other) = (root(&mut above, *from), root(&mut above, *to));
        above.insert(one.max(other), one.min(other));
    }
    let mut groups: BTreeMap<Address, Vec<(Address, Address, SentData)>> = BTreeMap::new();
    for edge in edges {
        groups.entry(root(&mut above, edge.0)).or_default().push(*edge);
    }
    groups.into_values().collect()
}

/// Share of the whole time in which all connections are in use, from the first packet of each to the last.
fn overlap(edges: &[(Address, Address, SentData)]) -> f64 {
    let spans = edges.iter().map(|(.., sent)| sent.span);
    let first = spans.clone().map(|span| span.first).min().unwrap_or_default();
    let last = spans.clone().map(|span| span.last).max().unwrap_or_default();
    let latest = spans.clone().map(|span| span.first).max().unwrap_or_default();
    let earliest = spans.map(|span| span.last).min().unwrap_or_default();
    let whole = last.since(first);
    if whole == Span(0) {
        return 0.0;
    }
    float(earliest.since(latest).0) / float(whole.0)
}

/// Members in order, each with those below it.
type Order = Vec<(Address, Vec<Address>)>;

/// Connections as lists of neighbours.
struct Graph {
    to: BTreeMap<Address, BTreeSet<Address>>,
    edges: usize,
}

impl Graph {
    fn new(edges: &[(Address, Address, SentData)]) -> Self {
        let mut to: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        for (from, other, _) in edges {
            to.entry(*from).or_default().insert(*other);
            to.entry(*other).or_default();
        }
        Self {
            to,
            edges: edges.len(),
        }
    }

    /// The shape, the order of the members, and whether neighbours send both ways.
    fn shape(&self, members: &BTreeSet<Address>) -> Option<(CollectiveShape, Order, bool)> {
        let count = members.len();
        let alone = |order: Vec<Address>| order.into_iter().map(|member| (member, Vec::new())).collect();
        let is_symmetric = self.to.iter().all(|(from, to)| {
            to.iter()
                .all(|other| self.to.get(other).is_some_and(|back| back.contains(from)))
        });
        let degree = |wanted: usize| self.to.values().all(|to| to.len() == wanted);
        if degree(1) {
            return Some((CollectiveShape::Ring, alone(self.circle(members)?), false));
        }
        // Three members that all send to each other are a ring in both directions as well: it is not clear which.
        if count < SURE_MEMBERS {
            return None;
        }
        if degree(count - 1) {
            return Some((
                CollectiveShape::AllToAll,
                alone(members.iter().copied().collect()),
                true,
            ));
        }
        if is_symmetric && degree(2) {
            return Some((CollectiveShape::Ring, alone(self.circle(members)?), true));
        }
        let most = self.to.values().map(BTreeSet::len).max()?;
        let inner: Vec<&Address> = self
            .to
            .iter()
            .filter(|(_, to)| to.len() > 1)
            .map(|(member, _)| member)
            .collect();
        let is_tree = is_symmetric && self.edges == 2 * (count - 1);
        // A chain has no member with three neighbours, a star only one that passes data on: both have other reasons, too.
        (is_tree && most == MAX_NEIGHBOURS && inner.len() >= 2)
            .then(|| (CollectiveShape::Tree, self.tree(members), true))
    }

    /// The members along a circle from the lowest on, if one circle has them all.
    fn circle(&self, members: &BTreeSet<Address>) -> Option<Vec<Address>> {
        let first = *members.first()?;
        let mut order = vec![first];
        let mut before = first;
        let mut at = *self.to.get(&first)?.first()?;
        while at != first {
            if order.len() >= members.len() {
                return None;
            }
            order.push(at);
            let next = *self
                .to
                .get(&at)?
                .iter()
                .find(|next| **next != before || self.to.get(&at).is_some_and(|to| to.len() == 1))?;
            (before, at) = (at, next);
        }
        (order.len() == members.len()).then_some(order)
    }

    /// The members of a tree from its middle on: the root is not known from traffic, the middle has the shortest ways to all.
    fn tree(&self, members: &BTreeSet<Address>) -> Order {
        let mut left: BTreeMap<Address, usize> =
            self.to.iter().map(|(member, to)| (*member, to.len())).collect();
        let mut leaves: Vec<Address> = left
            .iter()
            .filter(|(_, degree)| **degree <= 1)
            .map(|(member, _)| *member)
            .collect();
        while left.len() > 2 {
            let mut next = Vec::new();
            for leaf in leaves {
                left.remove(&leaf);
                for other in self.to.get(&leaf).into_iter().flatten() {
                    if let Some(degree) = left.get_mut(other) {
                        *degree = degree.saturating_sub(1);
                        if *degree == 1 {
                            next.push(*other);
                        }
                    }
                }
            }
            leaves = next;
            if leaves.is_empty() {
                break;
            }
        }
        let middle = left
            .keys()
            .next()
            .or(members.first())
            .copied()
            .unwrap_or_default();
        let mut order = Vec::new();
        let mut seen = BTreeSet::from([middle]);
        let mut going = std::collections::VecDeque::from([middle]);
        while let Some(member) = going.pop_front() {
            let below: Vec<Address> = self
                .to
                .get(&member)
                .into_iter()
                .flatten()
                .filter(|other| seen.insert(**other))
                .copied()
                .collect();
            going.extend(&below);
            order.push((member, below));
        }
        order
    }
}

/// Numbers shapes of the same kind and size that run at the same time: they are rails of one job.
fn number_rails(rows: &mut [CollectiveRow]) {
    let mut kinds: BTreeMap<(&'static str, u32), Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        kinds
            .entry((row.shape.name(), row.members))
            .or_default()
            .push(place);
    }
    for places in kinds.into_values().filter(|places| places.len() > 1) {
        let times = |place: &usize| {
            let row = rows.get(*place)?;
            row.start_time.zip(row.end_time)
        };
        let latest = places.iter().filter_map(times).map(|(start, _)| start).max();
        let earliest = places.iter().filter_map(times).map(|(_, end)| end).min();
        if latest >= earliest {
            continue;
        }
        let mut sorted = places.clone();
        sorted.sort_by(|one, other| rows[*one].hosts.cmp(&rows[*other].hosts));
        for (number, place) in sorted.into_iter().enumerate() {
            if let Some(row) = rows.get_mut(place) {
                row.rail = u32::try_from(number).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests;
