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
              while another one idles or has fewer: each of them gets less than if they were spread.",
    method: "Links of equal cost are ports of one switch to the same neighbour or the same tier, as --inventory or LLDP show them, or taps between \
             which flows of the same hosts are split, none of which two of them saw. With taps, bytes decide nothing: a full link carries as many, \
             whoever shares it. Fires when imbalance_most times the mean number of flows share a link, another one has two flows fewer and half \
             the mean at most, and sharing costs something: their packets are marked twice as often as those of that link, or their link sends at \
             imbalance_busy of its rate; and that link's flows are faster (by the medians, and a tenth), or it has room: it sends half as much at most. Flows \
             below a hundredth of the largest do not count. The fair share is what a flow had got with as many on each link. Counters of ports \
             do not show flows: there the busiest sends imbalance_most times the mean of bytes, at imbalance_busy of its rate.",
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
/// Flows of less than this part of the bytes of the largest do not count.
const MIN_SHARE: u64 = 100;
/// An idle link sends at most this share of the mean, or has this share of the mean number of flows.
const IDLE: f64 = 0.5;
/// Flows that get this share of what others get are not slowed.
const AS_FAST: f64 = 0.9;
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
    /// Its busiest link's flows over the mean; bytes where flows are not known.
    over_mean: f64,
    first: u64,
    confidence: Confidence,
}

impl Uneven {
    /// Share of its rate that a flow on the busiest link lost. `None`: the flows of the links are not known.
    fn cost(&self) -> Option<f64> {
        let here = self.links.get(self.most)?.flows.len() as u64;
        // With fewer flows than links each has a link of its own.
        let fair = (value_of(self.flows) / value_of(self.links.len() as u64)).max(1.0);
        (here > 0 && self.flows > 0).then(|| (1.0 - fair / value_of(here)).max(0.0))
    }
}

/// Uneven groups of links, those first of which the packets say most.
fn groups(context: &Context<'_>, fabric: &ConcludedPauses) -> Vec<Uneven> {
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
    found
}

/// The most uneven group.
pub(super) fn imbalance(context: &Context<'_>) -> Option<FindingRow> {
    let fabric = context.fabric?;
    let found = groups(context, fabric);
    let number = found.len() as u64;
    let group = found.first()?;
    let (most, least) = (group.links.get(group.most)?, group.links.get(group.least)?);
    let mut names = Worst::default();
    for flow in &most.flows {
        names.add(flow.wire_bytes, || flow.name());
    }
    let here = most.flows.len() as u64;
    let mut evidence = Evidence::default();
    evidence
        .count("groups", number)
        .count("links", group.links.len() as u64)
        .text("busiest", most.name.clone())
        .text("idlest", least.name.clone())
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
        let marked = share(least.ce, least.data_packets).unwrap_or_default();
        evidence.number("idlest_ce_share", marked);
    }
    let mut parts = Vec::new();
    if let Some(cost) = group.cost() {
        let rate = median_rate(&most.flows).unwrap_or_default();
        evidence
            .number("flows_over_mean", group.over_mean)
            .count("flows", group.flows)
            .count("flows_on_busiest", here)
            .count("flows_on_idlest", least.flows.len() as u64)
            .number("rate_bps", rate)
            .number("fair_rate_bps", rate / (1.0 - cost).max(f64::MIN_POSITIVE))
            .number("lost_share", cost)
            .text("worst", names.list());
        if let Some(other) = median_rate(&least.flows) {
            evidence.number("idlest_rate_bps", other);
        }
        let idle = group.links.iter().filter(|link| link.flows.is_empty()).count() as u64;
        evidence.count("idle_links", idle);
        parts.push(format!(
            "{here} of {} share {}, {} has {}: each of them gets {} less than its fair share",
            counted(group.flows, "flow"),
            most.name,
            least.name,
            least.flows.len(),
            percent(cost)
        ));
        if idle > 0 {
            parts.push(format!(
                "{} of {} idle",
                idle,
                counted(group.links.len() as u64, "link")
            ));
        }
        let source_ports: BTreeSet<u16> = most.flows.iter().filter_map(|flow| flow.source_port).collect();
        if here > 1 && source_ports.len() == 1 {
            parts.push("all with one UDP source port".to_owned());
        }
    } else {
        evidence.number("bytes_over_mean", group.over_mean);
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
    Some(IMBALANCE.finding(
        (Severity::Warning, group.confidence),
        parts.join("; "),
        evidence,
        MEND,
        Some(Time(group.first)),
    ))
}

/// Judges links by their bytes, where their flows are not known. `None`: even enough, or without cost.
fn judge_bytes(links: Vec<Link>, first: u64, thresholds: &Thresholds) -> Option<Uneven> {
    let all = links.iter().map(|link| link.bytes).fold(0, u64::saturating_add);
    let most = (0..links.len()).max_by_key(|place| (links[*place].bytes, core::cmp::Reverse(*place)))?;
    let least = (0..links.len()).min_by_key(|place| (links[*place].bytes, *place))?;
    let count = links.len() as u64;
    let of_mean = |place: usize| value_of(links[place].bytes) * value_of(count) / value_of(all.max(1));
    let over_mean = of_mean(most);
    let is_uneven = over_mean >= thresholds.imbalance_most && of_mean(least) <= IDLE;
    let is_full = links[most]
        .used
        .is_some_and(|used| used >= thresholds.imbalance_busy);
    (count > 1 && is_uneven && is_full).then_some(Uneven {
        links,
        most,
        least,
        flows: 0,
        over_mean,
        first,
        // One flow alone can fill a link: which flows share the busiest was not seen.
        confidence: Confidence::Low,
    })
}

/// Judges links by their flows: their number, their marks and their rates. A link that is full carries as many bytes as any other,
/// whoever shares it. `None`: even enough, or without cost.
fn judge_flows(mut links: Vec<Link>, first: u64, thresholds: &Thresholds) -> Option<Uneven> {
    let largest = links
        .iter()
        .flat_map(|link| &link.flows)
        .map(|flow| flow.wire_bytes)
        .max()?;
    for link in &mut links {
        link.flows
            .retain(|flow| flow.wire_bytes.saturating_mul(MIN_SHARE) >= largest);
        link.flows
            .sort_by_key(|flow| (core::cmp::Reverse(flow.wire_bytes), flow.flow));
    }
    let on = |place: usize| links[place].flows.len() as u64;
    let flows: u64 = (0..links.len()).map(on).sum();
    let count = links.len() as u64;
    let of_mean = |place: usize| value_of(on(place)) * value_of(count) / value_of(flows.max(1));
    let marked = |place: usize| share(links[place].ce, links[place].data_packets).unwrap_or_default();
    let least = (0..links.len()).min_by_key(|place| (on(*place), links[*place].bytes, *place))?;
    let is_crowded = |place: &usize| {
        // A flow that moved would be better off there.
        of_mean(*place) >= thresholds.imbalance_most
            && of_mean(least) <= IDLE
            && on(*place) >= on(least).saturating_add(2)
    };
    // Its flows are faster, or limited by themselves: then the link has room.
    let is_better = |place: &usize| {
        let (here, there) = (
            median_rate(&links[*place].flows),
            median_rate(&links[least].flows),
        );
        let has_room = value_of(links[least].bytes) <= IDLE * value_of(links[*place].bytes);
        has_room || here.is_some_and(|here| there.is_none_or(|there| here < AS_FAST * there))
    };
    let is_marked =
        |place: usize| links[place].ce >= thresholds.least_marks && marked(place) >= 2.0 * marked(least);
    let is_used = |place: usize, by: f64| links[place].used.is_some_and(|used| used >= by);
    let most = (0..links.len())
        .filter(is_crowded)
        .filter(is_better)
        .filter(|place| is_marked(*place) || is_used(*place, thresholds.imbalance_busy))
        .max_by_key(|place| (on(*place), links[*place].ce, core::cmp::Reverse(*place)))?;
    // Below that it may be the hosts' own links that limit the flows.
    let confidence = if is_marked(most) || is_used(most, FULL) {
        Confidence::Medium
    } else {
        Confidence::Low
    };
    let over_mean = of_mean(most);
    Some(Uneven {
        links,
        most,
        least,
        flows,
        over_mean,
        first,
        confidence,
    })
}

/// The median of the rates of flows, each from its first packet to its last, in bit/s.
fn median_rate(flows: &[FlowFacts]) -> Option<f64> {
    let rate = |flow: &FlowFacts| {
        8e9 * value_of(flow.wire_bytes) / value_of(flow.last.saturating_sub(flow.first).max(1))
    };
    let mut rates: Vec<f64> = flows.iter().map(rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

/// Groups of taps between which flows of the same hosts are split.
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
    let mut of_flow: Map<FlowId> = Map::default();
    let (mut of_source, mut of_destination): (Map<Address>, Map<Address>) = (Map::default(), Map::default());
    for flow in flows {
        if let Some(place) = place_of.get(&flow.tap) {
            *of_flow.entry(flow.flow).or_default() |= 1 << place;
            *of_source.entry(flow.source).or_default() |= 1 << place;
            *of_destination.entry(flow.destination).or_default() |= 1 << place;
        }
    }
    // By tap: others that saw one of its flows, and others to which one host's flows go, and from which another one's come. What a host sends
    // over two links is behind its own port, and what it receives over two is before it.
    let same = neighbours(of_flow.values());
    let (from, to) = (
        neighbours(of_source.values()),
        neighbours(of_destination.values()),
    );
    let parallel: Vec<u64> = from.iter().zip(&to).map(|(from, to)| from & to).collect();
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

/// By place of a tap, the places that masks have together with it.
fn neighbours<'a>(masks: impl Iterator<Item = &'a u64>) -> [u64; MAX_TAPS] {
    let mut neighbours = [0; MAX_TAPS];
    for mask in masks.filter(|mask| mask.count_ones() > 1) {
        for (place, known) in neighbours.iter_mut().enumerate() {
            if mask >> place & 1 == 1 {
                *known |= mask;
            }
        }
    }
    neighbours
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
    judge_flows(links, first, context.thresholds)
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
    let first = busy.iter().map(|window| window.from).min()?;
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
    judge_bytes(links, first, context.thresholds)
}
