//! The finding about links of equal cost that are used unevenly, and about the flows that share one of them while another idles.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::{Address, Confidence, Evidence, FindingRow, FlowId, QUIET, Severity, TapId, Time, value_of};

use super::super::numbers::{counted, jain, percent, share};
use super::super::pauses::{ConcludedPauses, FlowFacts, PortNumber, Quantity, Window};
use super::super::thresholds::Thresholds;
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

pub(super) const IMBALANCE: Rule = Rule {
    id: "path.imbalance",
    title: "links of equal cost are used unevenly",
    meaning: "Switches choose among equal links by a hash of a flow's addresses and ports. Here several flows share one link, which is full, \
              while another one idles: each of them gets less than if they were spread.",
    method: "Links of equal cost are ports of one switch to the same neighbour or the same tier, as --inventory or LLDP show them, or taps between \
             which flows of the same two hosts are split, none of which two of them saw. Fires when the busiest sends imbalance_most times \
             the mean and costs something: it sends at imbalance_busy of its rate, or its packets are marked twice as often as those of the idlest. \
             Flows below a hundredth of the bytes do not count. It says nothing with fewer flows than links, where an even use is \
             impossible, nor with a single flow on the busiest link. The fair share is what a flow had got with as many on each link.",
    source: "FlowTracer (2024): flows by link in clusters with static ECMP; RFC 2992: analysis of hash-based ECMP.",
    thresholds: &["imbalance_busy", "imbalance_most", "least_marks"],
    severity: Severity::Warning,
    otherwise: "info when the confidence is low",
    confidence: "medium: what the links carry is captured; that they are alternatives for the same flows is concluded from the flows; low by \
                 counters alone, which do not show the flows of a link, or when the busiest is below 90 % of its rate and not marked",
    ..Rule::TALLIED
};

/// Taps that are compared.
const MAX_TAPS: usize = 64;
/// Flows of less than this part of the bytes of all links do not count.
const MIN_SHARE: u64 = 100;
/// An idle link sends at most this share of the mean.
const IDLE: f64 = 0.5;
/// A link that sends this share of its rate limits its flows: headers between frames take the rest.
const FULL: f64 = 0.9;

const MEND: &str = "Give flows more source ports (flow labels), more queue pairs for a connection (NCCL_IB_QPS_PER_CONNECTION with \
                    NCCL_IB_SPLIT_DATA_ON_QPS), or let the switches choose by load (adaptive routing); compare the links again.";

/// Taps as bits.
type Map<K> = HashMap<K, u64, foldhash::fast::RandomState>;

/// One link of a group in one direction.
struct Link {
    name: String,
    bytes: u64,
    /// With a noticeable part of the bytes, the largest first.
    flows: Vec<FlowFacts>,
    ce: u64,
    data_packets: u64,
    /// Share of its rate, where that is known.
    used: Option<f64>,
}

/// A group of links that is used unevenly.
struct Uneven {
    links: Vec<Link>,
    most: usize,
    least: usize,
    flows: u64,
    /// Its busiest link's bytes over the mean.
    over_mean: f64,
    time_ns: u64,
    first: u64,
    confidence: Confidence,
}

impl Uneven {
    /// Share of its rate that a flow on the busiest link lost. `None`: the flows of the links are not known.
    fn cost(&self) -> Option<f64> {
        let here = self.links.get(self.most)?.flows.len() as u64;
        let fair = value_of(self.flows) / value_of(self.links.len() as u64);
        (here > 0 && self.flows > 0).then(|| (1.0 - fair / value_of(here)).max(0.0))
    }
}

/// The most uneven group.
pub(super) fn imbalance(context: &Context<'_>) -> Option<FindingRow> {
    let fabric = context.fabric?;
    let mut found = by_taps(context, fabric);
    found.extend(by_ports(context, fabric));
    if let Some(only) = context.only {
        found.retain(|group| {
            let mut flows = group.links.iter().flat_map(|link| &link.flows);
            flows.any(|flow| only.contains(&flow.flow))
        });
    }
    found.sort_by(|a, b| {
        (a.confidence as u8)
            .cmp(&(b.confidence as u8))
            .then(b.over_mean.total_cmp(&a.over_mean))
    });
    let groups = found.len() as u64;
    let group = found.first()?;
    let (most, least) = (group.links.get(group.most)?, group.links.get(group.least)?);
    let mut names = Worst::default();
    for flow in &most.flows {
        names.add(flow.wire_bytes, || flow.name());
    }
    let seconds = value_of(group.time_ns) / 1e9;
    let here = most.flows.len() as u64;
    let mut evidence = Evidence::default();
    evidence
        .count("groups", groups)
        .count("links", group.links.len() as u64)
        .text("busiest", most.name.clone())
        .text("idlest", least.name.clone())
        .number("bytes_over_mean", group.over_mean)
        .count("busiest_bytes", most.bytes)
        .count("idlest_bytes", least.bytes);
    if let Some(index) = jain(group.links.iter().map(|link| link.bytes)) {
        evidence.number("jain_bytes", index);
    }
    if let Some(used) = most.used {
        evidence.number("busiest_share_of_rate", used);
    }
    if most.data_packets > 0 {
        let marked = share(most.ce, most.data_packets).unwrap_or_default();
        evidence.number("busiest_ce_share", marked);
    }
    let mut parts = Vec::new();
    if let Some(cost) = group.cost() {
        let rate = 8.0 * value_of(most.bytes) / seconds / value_of(here);
        evidence
            .count("flows", group.flows)
            .count("flows_on_busiest", here)
            .count("flows_on_idlest", least.flows.len() as u64)
            .number("rate_bps", rate)
            .number("fair_rate_bps", rate / (1.0 - cost).max(f64::MIN_POSITIVE))
            .number("lost_share", cost)
            .text("worst", names.list());
        parts.push(format!(
            "{here} of {} share {}, {} has {}: each of them gets {} less than its fair share",
            counted(group.flows, "flow"),
            most.name,
            least.name,
            least.flows.len(),
            percent(cost)
        ));
        let source_ports: BTreeSet<u16> = most.flows.iter().filter_map(|flow| flow.source_port).collect();
        if here > 1 && source_ports.len() == 1 {
            parts.push("all with one UDP source port".to_owned());
        }
    } else {
        parts.push(format!(
            "{} carried {:.1} times the mean of {}, {} the least; which flows is not known",
            most.name,
            group.over_mean,
            counted(group.links.len() as u64, "link"),
            least.name
        ));
    }
    if let Some(used) = most.used {
        parts.push(format!("it is used to {}", percent(used)));
    }
    let severity = match group.confidence {
        Confidence::Low => Severity::Info,
        _ => Severity::Warning,
    };
    Some(IMBALANCE.finding(
        (severity, group.confidence),
        parts.join("; "),
        evidence,
        MEND,
        Some(Time(group.first)),
    ))
}

/// Judges links that carried these flows. `None`: even enough, without cost, or even use is impossible.
fn judge(
    mut links: Vec<Link>,
    (first, last): (u64, u64),
    thresholds: &Thresholds,
    confidence: Confidence,
) -> Option<Uneven> {
    let all = links.iter().map(|link| link.bytes).fold(0, u64::saturating_add);
    let mut flows = 0u64;
    for link in &mut links {
        link.flows
            .retain(|flow| flow.wire_bytes.saturating_mul(MIN_SHARE) >= all);
        link.flows
            .sort_by_key(|flow| (core::cmp::Reverse(flow.wire_bytes), flow.flow));
        flows += link.flows.len() as u64;
    }
    let busiest = (0..links.len()).max_by_key(|place| (links[*place].bytes, core::cmp::Reverse(*place)))?;
    let idlest = (0..links.len()).min_by_key(|place| (links[*place].bytes, *place))?;
    let count = links.len() as u64;
    let over_mean = value_of(links[busiest].bytes) * value_of(count) / value_of(all.max(1));
    let of_mean = value_of(links[idlest].bytes) * value_of(count) / value_of(all.max(1));
    let is_uneven = over_mean >= thresholds.imbalance_most && of_mean <= IDLE;
    let is_possible =
        flows == 0 && confidence == Confidence::Low || flows >= count && links[busiest].flows.len() > 1;
    let marked = |link: &Link| share(link.ce, link.data_packets).unwrap_or_default();
    let is_marked = links[busiest].ce >= thresholds.least_marks
        && marked(&links[busiest]) >= 2.0 * marked(&links[idlest]);
    let is_full = links[busiest]
        .used
        .is_some_and(|used| used >= thresholds.imbalance_busy);
    let is_costly = is_full || is_marked;
    // Below that it may be the hosts' own links that limit the flows.
    let is_limit = links[busiest].used.is_some_and(|used| used >= FULL);
    let confidence = if is_limit || is_marked {
        confidence
    } else {
        Confidence::Low
    };
    (count > 1 && is_uneven && is_possible && is_costly).then_some(Uneven {
        links,
        most: busiest,
        least: idlest,
        flows,
        over_mean,
        time_ns: last.saturating_sub(first).max(1),
        first,
        confidence,
    })
}

/// Groups of taps: flows of the same two hosts are split between them.
fn by_taps(context: &Context<'_>, fabric: &ConcludedPauses) -> Vec<Uneven> {
    let flows = &fabric.flows.all;
    let taps: Vec<TapId> = flows
        .iter()
        .map(|flow| flow.tap)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .take(MAX_TAPS)
        .collect();
    if taps.len() < 2 {
        return Vec::new();
    }
    let place_of: BTreeMap<TapId, usize> = taps
        .iter()
        .enumerate()
        .map(|(place, tap)| (*tap, place))
        .collect();
    let (mut of_flow, mut of_pair): (Map<FlowId>, Map<(Address, Address)>) = (Map::default(), Map::default());
    for flow in flows {
        if let Some(place) = place_of.get(&flow.tap) {
            *of_flow.entry(flow.flow).or_default() |= 1 << place;
            *of_pair.entry((flow.source, flow.destination)).or_default() |= 1 << place;
        }
    }
    // By tap: others that saw one of its flows, and others with flows of the same two hosts.
    let (mut same, mut parallel) = ([0u64; MAX_TAPS], [0u64; MAX_TAPS]);
    let spread = |masks: &Map<FlowId>, into: &mut [u64; MAX_TAPS]| {
        for mask in masks.values().filter(|mask| mask.count_ones() > 1) {
            (0..MAX_TAPS)
                .filter(|place| mask >> place & 1 == 1)
                .for_each(|place| into[place] |= mask);
        }
    };
    spread(&of_flow, &mut same);
    for mask in of_pair.values().filter(|mask| mask.count_ones() > 1) {
        (0..MAX_TAPS)
            .filter(|place| mask >> place & 1 == 1)
            .for_each(|place| parallel[place] |= mask);
    }
    let mut taken = 0u64;
    let mut found = Vec::new();
    for start in 0..taps.len() {
        if taken >> start & 1 == 1 {
            continue;
        }
        let mut group = 1u64 << start;
        for other in start + 1..taps.len() {
            let fits = (0..taps.len())
                .filter(|member| group >> member & 1 == 1)
                .all(|member| parallel[member] >> other & 1 == 1 && same[member] >> other & 1 == 0);
            if fits && taken >> other & 1 == 0 {
                group |= 1 << other;
            }
        }
        if group.count_ones() < 2 {
            continue;
        }
        taken |= group;
        let members: Vec<TapId> = (0..taps.len())
            .filter(|place| group >> place & 1 == 1)
            .filter_map(|place| taps.get(place).copied())
            .collect();
        found.extend(of_taps(context, fabric, &members));
    }
    found
}

/// A group of taps in both directions.
fn of_taps(context: &Context<'_>, fabric: &ConcludedPauses, members: &[TapId]) -> Option<Uneven> {
    let mut flows: Vec<&FlowFacts> = fabric
        .flows
        .all
        .iter()
        .filter(|flow| members.contains(&flow.tap))
        .collect();
    flows.sort_by_key(|flow| (core::cmp::Reverse(flow.wire_bytes), flow.flow, flow.tap));
    let (mut near, mut far) = (BTreeSet::new(), BTreeSet::new());
    let mut directions = [Vec::new(), Vec::new()];
    for flow in flows {
        let (from, to) = (flow.source, flow.destination);
        let is_back = far.contains(&from) || near.contains(&to);
        if is_back && (near.contains(&from) || far.contains(&to)) {
            // Hosts on both sides: the taps are not on links between two sets of hosts.
            return None;
        }
        if is_back {
            far.insert(from);
            near.insert(to);
        } else {
            near.insert(from);
            far.insert(to);
        }
        directions[usize::from(is_back)].push(*flow);
    }
    let mut found: Vec<Uneven> = directions
        .into_iter()
        .flat_map(at_once)
        .filter_map(|flows| one_way(context, members, &flows))
        .collect();
    found.sort_by(|a, b| b.over_mean.total_cmp(&a.over_mean));
    found.into_iter().next()
}

/// The flows in groups that overlap in time: what comes after a silence is judged by itself.
fn at_once(mut flows: Vec<FlowFacts>) -> Vec<Vec<FlowFacts>> {
    flows.sort_by_key(|flow| (flow.first, flow.flow, flow.tap));
    let mut groups: Vec<Vec<FlowFacts>> = Vec::new();
    let mut last = 0;
    for flow in flows {
        let goes_on = flow.first < u64::saturating_add(last, QUIET.0);
        match groups.last_mut().filter(|_| goes_on) {
            Some(group) => group.push(flow),
            None => groups.push(vec![flow]),
        }
        last = last.max(flow.last);
    }
    for group in &mut groups {
        group.sort_by_key(|flow| (core::cmp::Reverse(flow.wire_bytes), flow.flow, flow.tap));
    }
    groups
}

fn one_way(context: &Context<'_>, members: &[TapId], flows: &[FlowFacts]) -> Option<Uneven> {
    let first = flows.iter().map(|flow| flow.first).min()?;
    let last = flows.iter().map(|flow| flow.last).max()?;
    let seconds = value_of(last.saturating_sub(first).max(1)) / 1e9;
    let known = context.run.tap_names();
    let mut links = Vec::new();
    for tap in members {
        let own: Vec<FlowFacts> = flows.iter().filter(|flow| flow.tap == *tap).copied().collect();
        let row = context.run.tap(*tap)?;
        // Captured at another time it says nothing of this one.
        let (begin, end) = (row.first_time?.0.max(first), row.last_time?.0.min(last));
        if row.records_lost() > 0 || end.saturating_sub(begin) < last.saturating_sub(first) / 2 {
            return None;
        }
        let bytes = own
            .iter()
            .map(|flow| flow.wire_bytes)
            .fold(0, u64::saturating_add);
        links.push(Link {
            name: known.name(*tap),
            bytes,
            ce: own.iter().map(|flow| flow.ce).fold(0, u64::saturating_add),
            data_packets: own
                .iter()
                .map(|flow| flow.data_packets)
                .fold(0, u64::saturating_add),
            used: context
                .link_rate
                .filter(|rate| *rate > 0)
                .map(|rate| 8.0 * value_of(bytes) / seconds / value_of(rate)),
            flows: own,
        });
    }
    judge(links, (first, last), context.thresholds, Confidence::Medium)
}

/// Groups of a switch's ports, by their counters.
fn by_ports(context: &Context<'_>, fabric: &ConcludedPauses) -> Vec<Uneven> {
    let groups = fabric.net.groups(&fabric.readings.ports);
    groups
        .iter()
        .filter_map(|group| of_ports(context, fabric, group))
        .collect()
}

fn of_ports(context: &Context<'_>, fabric: &ConcludedPauses, group: &[PortNumber]) -> Option<Uneven> {
    let readings = &fabric.readings;
    let mut busy: Vec<Window> = Vec::new();
    let rate_of = |port: &PortNumber| {
        let read = readings.get(*port, Quantity::Rate).map(|rate| rate.latest);
        let stated = context.link_rate.map(|rate| value_of(rate) / 8.0);
        read.or(stated).filter(|rate| *rate > 0.0)
    };
    // Without the readings of one port, or its rate, the group says nothing.
    for port in group {
        let (sent, rate) = (readings.get(*port, Quantity::SentBytes)?, rate_of(port)?);
        let is_busy = |window: &&Window| {
            window.by * 1e9 >= context.thresholds.imbalance_busy * rate * value_of(window.length())
        };
        busy.extend(sent.windows.iter().filter(is_busy));
    }
    let (first, last) = (
        busy.iter().map(|window| window.from).min()?,
        busy.iter().map(|window| window.to).max()?,
    );
    busy.sort_by_key(|window| (window.from, window.to));
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for window in &busy {
        match spans.last_mut() {
            Some(span) if window.from <= span.1 => span.1 = span.1.max(window.to),
            _ => spans.push((window.from, window.to)),
        }
    }
    let flows = fabric.net.flows_over(&readings.ports, group, &fabric.flows);
    let mut links = Vec::new();
    for port in group {
        let sent = readings.get(*port, Quantity::SentBytes)?;
        let (mut bytes, mut time) = (0.0, 0u64);
        for (from, to) in &spans {
            let (by, covered) = sent.within(*from, *to);
            bytes += by;
            time = time.saturating_add(covered);
        }
        if time == 0 {
            return None;
        }
        links.push(Link {
            name: readings.ports.name(*port),
            bytes: super::super::pauses::whole(bytes),
            flows: Vec::new(),
            ce: 0,
            data_packets: 0,
            used: rate_of(port).map(|rate| bytes * 1e9 / value_of(time) / rate),
        });
    }
    // So few flows cannot be spread evenly. Which of them took which link was not seen.
    if flows > 0 && flows < group.len() as u64 {
        return None;
    }
    // One flow alone can fill a link: which flows share the busiest was not seen.
    judge(links, (first, last), context.thresholds, Confidence::Low)
}
