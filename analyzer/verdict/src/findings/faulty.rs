//! The finding about paths on which packets die while other paths between the same two hosts lose none.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::cast::float;
use roce_model::{
    Address, Confidence, EventKind, EventRow, Evidence, FindingRow, FlowId, FlowRow, Severity, TapId, Time,
};

use super::super::chance::at_least;
use super::super::directory::Directory;
use super::super::numbers::{NEARLY_ALL, counted, percent, reaches, some};
use super::super::thresholds::Thresholds;
use super::rule::{FindingOf as _, Rule};
use super::worst::Worst;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

pub(super) const FAULTY: Rule = Rule {
    id: "path.faulty",
    title: "packets die on some of several paths",
    meaning: "Packets of some flows between two hosts are lost, or arrive damaged, while other flows between them lose none at the same time. They \
              differ in the path that switches choose by the UDP source port: a link or a port on it is faulty, or full.",
    method: "Flows with one UDP source port, by pair of hosts; a path is a source port at a tap. Signs are moments with losses (at least 1 ms \
             apart), or packets with a wrong ICRC. The paths with the most signs for their packets are told from the others where they have 90 % of \
             all signs with 80 % of the packets and of the flows at most, and fewer than one of 1,000 captures without a faulty path shows as \
             much: the chance that so many of the signs fall on them, times the number of ways to choose paths and pairs. Flows that did not \
             send during half of the time with losses are left out.",
    source: "IBTA annex A17.9.4 (ECMP by the source port). Chernoff's bound of the binomial distribution; Bonferroni's correction.",
    thresholds: &["icrc_systematic"],
    severity: Severity::Warning,
    otherwise: "info where it is one flow",
    confidence: "medium: that flows differ is no chance, that the path is why is concluded; low where one flow alone has the signs, which may have \
                 trouble of its own",
    ..Rule::TALLIED
};

/// Flows that are kept at most: some 7 MB.
const MAX_FLOWS: usize = 1 << 16;
/// Losses of a flow that are closer than this are one moment: one burst, or one lost packet and what followed from it.
const APART: u64 = 1_000_000;
/// Paths that carry more than this share are no exception among the others.
const MAX_SHARE: f64 = 0.8;
/// One capture in so many may show as much by chance.
const CHANCE: f64 = 0.001;
/// Paths that a finding names.
const NAMED: usize = 4;

/// Losses of a flow, close ones joined.
#[derive(Clone, Copy, Debug)]
struct LossMoments {
    count: u64,
    first: Time,
    last: Time,
}

/// A flow that keeps one source port.
#[derive(Clone, Debug)]
struct PortFlow {
    flow: FlowId,
    tap: TapId,
    port: u16,
    packets: u64,
    bad_icrcs: u64,
    first: Time,
    last: Time,
}

/// Flows and signs of one path.
#[derive(Clone, Debug, Default)]
struct PathSigns {
    flows: Vec<FlowId>,
    packets: u64,
    signs: u64,
}

/// A kind of sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SignKind {
    Loss,
    BadIcrc,
}

/// The faulty paths of one pair of hosts.
#[derive(Debug)]
struct FaultyPaths {
    pair: (Address, Address),
    kind: SignKind,
    paths: Vec<((TapId, u16), PathSigns)>,
    all_paths: u64,
    signs: u64,
    all_signs: u64,
    /// Share of the packets of all paths.
    share: f64,
    chance: f64,
}

#[derive(Debug, Default)]
pub(super) struct FaultyTally {
    moments: Map<(TapId, FlowId), LossMoments>,
    flows: Vec<((Address, Address), PortFlow)>,
}

impl FaultyTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        let is_loss = match event.kind {
            EventKind::Hole => event.detail.as_deref() == Some("network_lost"),
            EventKind::LostAgain | EventKind::LostDownstream => true,
            _ => false,
        };
        let Some(flow) = event.flow_id.filter(|_| is_loss) else {
            return;
        };
        let key = (event.tap, flow);
        if self.moments.len() >= MAX_FLOWS && !self.moments.contains_key(&key) {
            return;
        }
        let time = event.time;
        let moments = self.moments.entry(key).or_insert(LossMoments {
            count: 0,
            first: time,
            last: time,
        });
        if moments.count == 0 || time.0 >= moments.last.0.saturating_add(APART) {
            moments.count += 1;
        }
        moments.first = moments.first.min(time);
        moments.last = moments.last.max(time);
    }

    /// A flow that counts.
    pub(super) fn flow(&mut self, row: &FlowRow, thresholds: &Thresholds) {
        let Some(port) = row
            .source_port
            .filter(|_| row.source_ports == 1 && row.data_packets > 0)
        else {
            return;
        };
        if self.flows.len() >= MAX_FLOWS {
            return;
        }
        // No path is the reason where a sender computes them wrong.
        let is_systematic = reaches(row.icrc_bad, row.icrc_checked, thresholds.icrc_systematic);
        let flow = PortFlow {
            flow: row.flow_id,
            tap: row.tap,
            port,
            packets: row.data_packets,
            bad_icrcs: if is_systematic { 0 } else { row.icrc_bad },
            first: row.first_time,
            last: row.last_time,
        };
        self.flows.push(((row.source, row.destination), flow));
    }

    /// The finding and its flows.
    pub(super) fn faulty(&self, directory: &Directory) -> Option<(FindingRow, BTreeSet<FlowId>)> {
        // Where some flows were left out, the others are no whole.
        if self.flows.len() >= MAX_FLOWS || self.moments.len() >= MAX_FLOWS {
            return None;
        }
        let mut tried = 0u64;
        let mut found = Vec::new();
        let mut by_pair: Vec<_> = self.flows.iter().collect();
        by_pair.sort_by_key(|(pair, _)| *pair);
        for flows in by_pair.chunk_by(|(one, _), (next, _)| one == next) {
            let Some((pair, _)) = flows.first() else { continue };
            for kind in [SignKind::Loss, SignKind::BadIcrc] {
                let paths = self.paths(flows, kind);
                if paths.len() > 1 && paths.iter().any(|(_, path)| path.signs > 0) {
                    tried += 1;
                    found.extend(split(*pair, kind, paths));
                }
            }
        }
        found.retain(|faulty| faulty.chance * float(tried) < CHANCE);
        found.sort_by(|a, b| {
            a.chance
                .total_cmp(&b.chance)
                .then(a.pair.cmp(&b.pair))
                .then((a.kind as u8).cmp(&(b.kind as u8)))
        });
        let first = found.iter().filter_map(|faulty| self.first(faulty)).min();
        let row = row_of(&found, tried, first, directory)?;
        let flows = found.iter().flat_map(FaultyPaths::flows);
        Some((row, flows.copied().collect()))
    }

    fn first(&self, faulty: &FaultyPaths) -> Option<Time> {
        let paths = faulty.paths.iter();
        let moments = paths.flat_map(|((tap, _), path)| {
            let flows = path.flows.iter();
            flows.filter_map(|flow| self.moments.get(&(*tap, *flow)))
        });
        moments.map(|moments| moments.first).min()
    }

    /// The paths of a pair of hosts with their signs, of flows that sent when there were signs.
    fn paths(
        &self,
        flows: &[&((Address, Address), PortFlow)],
        kind: SignKind,
    ) -> Vec<((TapId, u16), PathSigns)> {
        let flows = flows.iter().map(|(_, flow)| flow);
        let moments = |flow: &PortFlow| self.moments.get(&(flow.tap, flow.flow));
        let known = flows.clone().filter_map(moments);
        let times = known.map(|moments| (moments.first, moments.last));
        let times = times.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        let was_there = |flow: &&PortFlow| {
            let Some((begin, end)) = times.filter(|_| kind == SignKind::Loss) else {
                return true;
            };
            let (from, to) = (flow.first.max(begin), flow.last.min(end));
            from <= to && to.since(from).0 >= end.since(begin).0 / 2
        };
        let mut paths: BTreeMap<(TapId, u16), PathSigns> = BTreeMap::new();
        let mut counted: BTreeSet<(TapId, FlowId)> = BTreeSet::new();
        for flow in flows.filter(was_there) {
            let path = paths.entry((flow.tap, flow.port)).or_default();
            path.packets = path.packets.saturating_add(flow.packets);
            let is_new = counted.insert((flow.tap, flow.flow));
            if is_new {
                path.flows.push(flow.flow);
            }
            let signs = match kind {
                SignKind::BadIcrc => flow.bad_icrcs,
                // Moments are of all epochs of a flow.
                SignKind::Loss if is_new => moments(flow).map_or(0, |moments| moments.count),
                SignKind::Loss => 0,
            };
            path.signs = path.signs.saturating_add(signs);
        }
        paths.into_iter().collect()
    }
}

impl FaultyPaths {
    fn flows(&self) -> impl Iterator<Item = &FlowId> {
        self.paths.iter().flat_map(|(_, path)| &path.flows)
    }

    fn ports(&self) -> String {
        let ports: BTreeSet<u16> = self.paths.iter().map(|((_, port), _)| *port).collect();
        let ports: Vec<u16> = ports.into_iter().collect();
        some(&ports, NAMED, ports.len())
    }
}

/// Tells the paths with the most signs for their packets from the others, where hardly chance has it. `chance`: that so many signs or more
/// fall on these paths, if each sign meets a path as often as packets or flows do (whichever is more often), times the choices of as many
/// paths, times the numbers of paths that are tried. With 4 of 8 equal paths and 20 of 20 signs: 0.5^20 x 70 x 8 = 0.0005.
fn split(
    pair: (Address, Address),
    kind: SignKind,
    mut paths: Vec<((TapId, u16), PathSigns)>,
) -> Option<FaultyPaths> {
    let rate = |path: &PathSigns| float(path.signs) / float(path.packets.max(1));
    paths.sort_by(|a, b| rate(&b.1).total_cmp(&rate(&a.1)).then(a.0.cmp(&b.0)));
    // Signs, packets and flows of the first paths, by their number.
    let mut sums = vec![(0u64, 0u64, 0u64)];
    let mut sum = (0u64, 0u64, 0u64);
    for (_, path) in &paths {
        sum.0 = sum.0.saturating_add(path.signs);
        sum.1 = sum.1.saturating_add(path.packets);
        sum.2 += path.flows.len() as u64;
        sums.push(sum);
    }
    let (all_signs, all_packets, all_flows) = sum;
    let count = paths.len();
    let mut choices = 1.0;
    let mut best: Option<(f64, usize, f64)> = None;
    for (most, &(signs, packets, flows)) in sums.iter().enumerate().take(count).skip(1) {
        choices *= float((count - most + 1) as u64) / float(most as u64);
        let share = float(packets) / float(all_packets.max(1));
        // A flow that loses packets sends fewer.
        let expected = share.max(float(flows) / float(all_flows.max(1)));
        if expected > MAX_SHARE || !reaches(signs, all_signs, NEARLY_ALL) {
            continue;
        }
        let chance = at_least(signs, all_signs, expected) * choices * float(count as u64);
        if best.is_none_or(|(known, ..)| chance < known) {
            best = Some((chance, most, share));
        }
    }
    let (chance, most, share) = best?;
    let signs = sums[most].0;
    paths.truncate(most);
    Some(FaultyPaths {
        pair,
        kind,
        paths,
        all_paths: count as u64,
        signs,
        all_signs,
        share,
        chance,
    })
}

fn row_of(
    found: &[FaultyPaths],
    tried: u64,
    first: Option<Time>,
    directory: &Directory,
) -> Option<FindingRow> {
    let worst = found.first()?;
    let flows: u64 = found.iter().map(|faulty| faulty.flows().count() as u64).sum();
    let mut names = Worst::default();
    for ((tap, _), path) in found.iter().flat_map(|faulty| &faulty.paths) {
        for flow in &path.flows {
            names.add(path.signs, || directory.name(*tap, *flow));
        }
    }
    let (source, destination) = worst.pair;
    let faulty = worst.paths.len() as u64;
    let mut evidence = Evidence::default();
    evidence
        .count("pairs", found.len() as u64)
        .count("flows", flows)
        .count("paths", worst.all_paths)
        .count("faulty_paths", faulty)
        .count("signs", worst.signs)
        .count("signs_elsewhere", worst.all_signs.saturating_sub(worst.signs))
        .number("packets_share", worst.share)
        .number("chance", (worst.chance * float(tried)).min(1.0))
        .text("source_ports", worst.ports())
        .text("worst", names.list());
    let (what, signs) = match worst.kind {
        SignKind::Loss => ("lost packets", "moments with losses"),
        SignKind::BadIcrc => ("damaged packets", "packets with a wrong ICRC"),
    };
    let more = match found.len() as u64 - 1 {
        0 => String::new(),
        others => format!("; likewise between {} of hosts", counted(others, "other pair")),
    };
    // One flow may have trouble of its own.
    let confidence = if flows > 1 {
        Confidence::Medium
    } else {
        Confidence::Low
    };
    Some(FAULTY.finding(
        (Severity::Warning, confidence),
        format!(
            "{faulty} of {} from {source} to {destination} {what}: {} of {} {signs}, with {} of the packets: UDP source {} {}{more}",
            counted(worst.all_paths, "path"),
            worst.signs,
            worst.all_signs,
            percent(worst.share),
            if faulty == 1 { "port" } else { "ports" },
            worst.ports(),
        ),
        evidence,
        "Compare the error and discard counters of the parallel links between {senders} and {receivers}; a traceroute over UDP with these source ports shows \
         which of them the flows take.",
        first,
    ))
}
