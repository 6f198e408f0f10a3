//! Subjects of findings: flows with their ends, when, and for how long they waited. Rules count; this says of whom.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roce_model::{
    Address, EndKind, EpisodeKind, EventKind, EventRow, FindingRow, FlowId, FlowRow, RunSummary, Severity,
    TapId, Time,
};

use super::super::super::directory::lost_behind;
use super::super::super::episodes::Episode;
use super::super::super::numbers::ranked;
use super::super::super::numbers::{NEARLY_ALL, reaches};
use super::super::cnp::ignores_cnps;
use super::super::losses_there::LossesThere;
use super::super::rule::Context;
use super::super::{class, waste};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Flows with signs of trouble that are kept, at most: some 12 MB. Of more, findings name and explain nothing.
const MAX_FLOWS: usize = 1 << 16;

/// A sign of trouble that a flow shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Sign {
    Lost,
    Timeout,
    NotReady,
    Refused,
    Repeated,
    NotCapable,
    MarkedWithoutCnp,
    IgnoresCnp,
    BadIcrc,
    Late,
    ChangesClass,
    Trimmed,
}

impl Sign {
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The ends of a flow of data: who sends, to whom.
#[derive(Clone, Copy, Debug)]
struct FlowEnds {
    source: Address,
    destination: Address,
    ranks: [Option<u32>; 2],
    signs: u16,
    first: Time,
    last: Time,
    /// Time that it waited for timers, and for receive buffers.
    timers_ns: u64,
    buffers_ns: u64,
}

/// Signs that flows show, and when.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct FlowSigns {
    flows: Map<FlowId, FlowEnds>,
    times: Map<(FlowId, Sign), (Time, Time)>,
}

impl FlowSigns {
    pub(in super::super) fn event(&mut self, event: &EventRow) {
        let sign = match (event.kind, event.detail.as_deref()) {
            (EventKind::Hole | EventKind::ResponseHole, Some("network_lost"))
            | (EventKind::LostAgain | EventKind::LostDownstream, _) => Sign::Lost,
            (EventKind::Trimmed, _) => Sign::Trimmed,
            (EventKind::RetransmissionRun, Some("timeout")) => Sign::Timeout,
            (EventKind::RetransmissionRun, Some("rnr")) => Sign::NotReady,
            _ => return,
        };
        let Some(flow) = event.flow_id else { return };
        if self.times.len() < MAX_FLOWS || self.times.contains_key(&(flow, sign)) {
            let times = self.times.entry((flow, sign)).or_insert((event.time, event.time));
            *times = (times.0.min(event.time), times.1.max(event.time));
        }
    }

    /// A flow at any tap.
    pub(in super::super) fn flow(&mut self, row: &FlowRow) {
        let mut signs = 0;
        let mut shows = |sign: Sign, shown: bool| signs |= if shown { sign.bit() } else { 0 };
        let responses = row.response_network_lost.unwrap_or_default();
        let lost = row
            .network_lost
            .saturating_add(responses)
            .saturating_add(lost_behind(row));
        shows(Sign::Lost, lost > 0);
        shows(Sign::Timeout, row.runs_timeout > 0);
        shows(Sign::NotReady, row.runs_rnr > 0);
        shows(Sign::Repeated, waste::is_much(row));
        shows(Sign::NotCapable, row.not_ect > 0);
        shows(
            Sign::MarkedWithoutCnp,
            row.ce > 0 && row.cnp.unwrap_or_default() == 0,
        );
        shows(Sign::IgnoresCnp, ignores_cnps(row));
        shows(Sign::BadIcrc, row.icrc_bad > 0);
        shows(Sign::Late, row.late > 0);
        shows(Sign::ChangesClass, row.dscp_values > 1);
        // A flow that lost other packets as well is no flow whose losses trimming explains.
        shows(
            Sign::Trimmed,
            row.trimmed > 0 && reaches(row.trimmed, lost, NEARLY_ALL),
        );
        if signs > 0 {
            let ends = (row.source, row.destination, [row.rank, row.peer_rank]);
            self.add(row.flow_id, ends, signs, row);
            if let Some(kept) = self.flows.get_mut(&row.flow_id).filter(|_| row.counted) {
                kept.timers_ns = kept
                    .timers_ns
                    .saturating_add(row.time_timeout_ns.unwrap_or_default());
                kept.buffers_ns = kept
                    .buffers_ns
                    .saturating_add(row.time_rnr_ns.unwrap_or_default());
            }
        }
        // NAKs are about the requests of the other direction.
        let mut refuses = 0;
        let is_fatal =
            row.nak_invalid_request | row.nak_remote_access | row.nak_remote_operational | row.nak_other > 0;
        refuses |= if row.rnr_naks > 0 { Sign::NotReady.bit() } else { 0 };
        refuses |= if is_fatal { Sign::Refused.bit() } else { 0 };
        if refuses > 0 {
            let ends = (row.destination, row.source, [row.peer_rank, row.rank]);
            self.add(row.peer_flow_id.unwrap_or(row.flow_id), ends, refuses, row);
        }
    }

    fn add(
        &mut self,
        flow: FlowId,
        (source, destination, ranks): (Address, Address, [Option<u32>; 2]),
        signs: u16,
        row: &FlowRow,
    ) {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            return;
        }
        let kept = self.flows.entry(flow).or_insert(FlowEnds {
            source,
            destination,
            ranks,
            signs: 0,
            first: row.first_time,
            last: row.last_time,
            timers_ns: 0,
            buffers_ns: 0,
        });
        kept.signs |= signs;
        kept.first = kept.first.min(row.first_time);
        kept.last = kept.last.max(row.last_time);
    }

    /// True if so many flows showed something that some were left out: then what is kept is no whole.
    fn is_full(&self) -> bool {
        self.flows.len() >= MAX_FLOWS || self.times.len() >= MAX_FLOWS
    }

    fn showing(&self, sign: Sign) -> impl Iterator<Item = (FlowId, Subject)> {
        let shown = self
            .flows
            .iter()
            .filter(move |(_, ends)| ends.signs & sign.bit() > 0);
        shown.map(move |(flow, ends)| {
            let times = self.times.get(&(*flow, sign)).copied();
            let waited_ns = match sign {
                Sign::Timeout => ends.timers_ns,
                Sign::NotReady => ends.buffers_ns,
                _ => 0,
            };
            let subject = Subject {
                source: ends.source,
                destination: ends.destination,
                ranks: ends.ranks,
                times: times.unwrap_or((ends.first, ends.last)),
                waited_ns,
                tap: None,
            };
            (*flow, subject)
        })
    }
}

/// Flows that rules name themselves, by the id of the rule.
pub(in super::super) type FlowsByRule = BTreeMap<&'static str, BTreeSet<FlowId>>;

/// One flow that a finding is about.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Subject {
    pub(in super::super) source: Address,
    pub(in super::super) destination: Address,
    ranks: [Option<u32>; 2],
    /// First and last time of what the finding says of it.
    pub(in super::super) times: (Time, Time),
    pub(in super::super) waited_ns: u64,
    /// The tap at which it stood still.
    pub(in super::super) tap: Option<TapId>,
}

/// Flows, hosts and links that a finding is about.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Subjects {
    /// Its flows, in the order of their ids.
    pub(in super::super) flows: BTreeMap<FlowId, Subject>,
    /// Destinations, all flows to which it is about as well.
    pub(in super::super) destinations: BTreeMap<Address, (Time, Time)>,
    /// Destinations at whose port a queue was full: several senders sent there when packets were lost, and too many for a cable.
    pub(in super::super) full: BTreeSet<Address>,
    /// Hosts that sent pause frames.
    pub(in super::super) pausers: BTreeSet<Address>,
    /// Taps of links, all traffic of which it is about at these times, in the order of their begin.
    pub(in super::super) links: BTreeMap<TapId, Vec<(Time, Time)>>,
}

/// The hosts at one side of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Side {
    Source,
    Destination,
}

impl Subjects {
    /// First and last time of all.
    pub(in super::super) fn times(&self) -> Option<(Time, Time)> {
        let flows = self.flows.values().map(|flow| flow.times);
        let links = self.links.values().flatten().copied();
        let all = flows.chain(self.destinations.values().copied()).chain(links);
        all.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// The hosts at one side of its flows, those that waited longest first, as findings name them.
    pub(in super::super) fn hosts(&self, side: Side) -> Vec<String> {
        let hosts = self.ranked_hosts(side).into_iter();
        hosts.map(|(host, rank)| ranked(host, rank)).collect()
    }

    /// These hosts, each with its rank where it has one.
    pub(super) fn ranked_hosts(&self, side: Side) -> Vec<(Address, Option<u32>)> {
        let mut hosts: BTreeMap<Address, (u64, BTreeSet<Option<u32>>)> = BTreeMap::new();
        for flow in self.flows.values() {
            let (host, rank) = match side {
                Side::Source => (flow.source, flow.ranks[0]),
                Side::Destination => (flow.destination, flow.ranks[1]),
            };
            let kept = hosts.entry(host).or_default();
            kept.0 = kept.0.saturating_add(flow.waited_ns);
            kept.1.insert(rank);
        }
        let mut sorted: Vec<_> = hosts.into_iter().collect();
        sorted.sort_by_key(|(host, (waited, _))| (core::cmp::Reverse(*waited), *host));
        let named = sorted.into_iter().map(|(host, (_, ranks))| {
            (
                host,
                ranks.first().copied().flatten().filter(|_| ranks.len() == 1),
            )
        });
        named.collect()
    }
}

/// Facts of a run by which findings are about flows, hosts and links.
pub(super) struct RunFacts<'a> {
    signs: &'a FlowSigns,
    flows: &'a FlowsByRule,
    context: &'a Context<'a>,
}

impl<'a> RunFacts<'a> {
    /// Facts of signs that flows show, and of flows that rules name themselves.
    pub(super) fn new(signs: &'a FlowSigns, flows: &'a FlowsByRule, context: &'a Context<'a>) -> Self {
        Self {
            signs,
            flows,
            context,
        }
    }
}

impl RunFacts<'_> {
    fn names(&self, rule: &str, flow: FlowId) -> bool {
        self.flows.get(rule).is_some_and(|flows| flows.contains(&flow))
    }
}

/// The subjects of a rule's finding; none where its rule is not about flows.
pub(super) fn subjects_of(finding: &FindingRow, facts: &RunFacts<'_>) -> Subjects {
    let (id, signs, context) = (finding.id, facts.signs, facts.context);
    // Where no drop was counted, or the times alone agree, drops are no reason.
    let is_denied = id == "drops.switch" && finding.severity < Severity::Warning;
    if signs.is_full() || is_denied {
        return Subjects::default();
    }
    let mut subjects = Subjects::default();
    let sign = match id {
        "loss.network" | "drops.switch" => Sign::Lost,
        "loss.trimmed" => Sign::Trimmed,
        "retransmit.timeout" => Sign::Timeout,
        "retransmit.waste" => Sign::Repeated,
        "rnr" => Sign::NotReady,
        "nak.fatal" => Sign::Refused,
        "ecn.not-capable" => Sign::NotCapable,
        "ecn.marks-without-cnp" => Sign::MarkedWithoutCnp,
        "cnp.ignored" => Sign::IgnoresCnp,
        "icrc.bad" => Sign::BadIcrc,
        "path.spread" => Sign::Late,
        "dscp.mismatch" => Sign::ChangesClass,
        "mtu.exceeded" => {
            let stuck = signs.showing(Sign::Repeated).chain(signs.showing(Sign::Timeout));
            subjects.flows = stuck.filter(|(flow, _)| facts.names(id, *flow)).collect();
            return subjects;
        }
        "path.faulty" => {
            let suffered = signs.showing(Sign::BadIcrc).chain(signs.showing(Sign::Lost));
            subjects.flows = suffered.filter(|(flow, _)| facts.names(id, *flow)).collect();
            return subjects;
        }
        "network.late" => {
            add_slow(&mut subjects, finding, context);
            return subjects;
        }
        "connection.failed" => {
            add_failed(&mut subjects, context.run);
            return subjects;
        }
        "stall" | "incast" | "unfair" | "pause.storm" | "pause.origin" => {
            add_episodes(id, &mut subjects, facts);
            return subjects;
        }
        _ => return subjects,
    };
    subjects.flows = signs.showing(sign).collect();
    match id {
        "loss.network" => {
            add_answers(&mut subjects, context);
            let full = context.losses.iter();
            // Such a queue drops packets of each flow that comes by.
            for (there, losses) in full.filter(|(_, losses)| losses.are_of_a_full_queue()) {
                subjects.full.insert(*there);
                subjects.destinations.insert(*there, losses.times);
            }
        }
        "dscp.mismatch" => add_classes(&mut subjects, context),
        "cnp.ignored" => add_filled_ports(&mut subjects, context),
        "nak.fatal" => {
            let refused = context
                .run
                .ends
                .iter()
                .filter(|end| end.outcome == EndKind::Refused);
            for end in refused {
                if let Some(flow) = subjects.flows.get_mut(&end.flow_id) {
                    flow.times = (end.time, end.time);
                }
            }
        }
        _ => {}
    }
    subjects
}

/// Flows of the connections that waited for the network, while they did: those that waited at least half as long as the worst.
fn add_slow(subjects: &mut Subjects, finding: &FindingRow, context: &Context<'_>) {
    let Some(lateness) = context.lateness else { return };
    let times = finding.first_time.zip(finding.last_time).unwrap_or_default();
    let slow = lateness.connections.iter().map(|times| times.network_late_ns);
    let worst = slow.clone().max().unwrap_or(0);
    for (connection, slow) in context.run.credited.iter().zip(slow) {
        if worst == 0 || slow.saturating_mul(2) < worst {
            continue;
        }
        for flow in &connection.data_flows {
            let subject = Subject {
                source: connection.sender,
                destination: connection.receiver,
                ranks: [connection.sender_rank, connection.receiver_rank],
                times,
                waited_ns: slow,
                tap: None,
            };
            subjects.flows.insert(*flow, subject);
        }
    }
}

/// A flow of the directory that no sign is kept of.
fn unsigned(context: &Context<'_>, tap: TapId, flow: FlowId, times: (Time, Time)) -> Option<Subject> {
    let party = context.directory.party(tap, flow)?;
    let ranks = context.directory.ranks(tap, flow);
    Some(Subject {
        source: party.source,
        destination: party.destination,
        ranks: ranks.map_or([None; 2], |ranks| [ranks.rank, ranks.peer_rank]),
        times,
        waited_ns: 0,
        tap: Some(tap),
    })
}

fn of_run(context: &Context<'_>) -> (Time, Time) {
    let span = context.run.span;
    span.map_or((Time(0), Time(u64::MAX)), |span| (span.first, span.last))
}

/// Flows that lost packets between two taps, and those whose answers were among these: their requests had arrived.
fn add_answers(subjects: &mut Subjects, context: &Context<'_>) {
    for hop in context.run.hops.iter().filter(|hop| hop.lost > 0) {
        for tap in [hop.from_tap, hop.to_tap] {
            let peer = context
                .directory
                .party(tap, hop.flow_id)
                .and_then(|party| party.peer);
            let peer = peer.filter(|_| hop.answers_lost > 0);
            for flow in [Some(hop.flow_id), peer].into_iter().flatten() {
                if let Some(subject) = unsigned(context, tap, flow, of_run(context)) {
                    subjects.flows.entry(flow).or_insert(subject);
                }
            }
        }
    }
}

/// Flows of connections whose two directions differ in class.
fn add_classes(subjects: &mut Subjects, context: &Context<'_>) {
    for (tap, flow, peer) in class::differing(context) {
        for flow in [flow, peer] {
            if let Some(subject) = unsigned(context, tap, flow, of_run(context)) {
                subjects.flows.entry(flow).or_insert(subject);
            }
        }
    }
}

/// Connections that failed: from the last progress to the last packet.
fn add_failed(subjects: &mut Subjects, run: &RunSummary) {
    for end in run.ends.iter().filter(|end| end.outcome != EndKind::Closed) {
        let begin = Time(end.time.0.saturating_sub(end.waited_ns));
        let subject = Subject {
            source: end.source,
            destination: end.destination,
            ranks: [None; 2],
            times: (begin, Time(end.time.0.saturating_add(end.silence_ns))),
            waited_ns: end.waited_ns,
            tap: Some(end.tap),
        };
        subjects.flows.insert(end.flow_id, subject);
    }
}

/// Flows, destinations and links of episodes.
fn add_episodes(id: &str, subjects: &mut Subjects, facts: &RunFacts<'_>) {
    let context = facts.context;
    let kind = match id {
        "stall" => EpisodeKind::Stall,
        "incast" | "unfair" => EpisodeKind::Incast,
        _ => EpisodeKind::Pause,
    };
    let episodes: Vec<&Episode> = match kind {
        EpisodeKind::Stall => context
            .silences
            .counted
            .iter()
            .map(|(episode, _)| *episode)
            .collect(),
        _ if id == "incast" => context.incasts().chain(context.overruns()).collect(),
        _ => context.distinct(kind).collect(),
    };
    for episode in episodes {
        let row = &episode.row;
        let times = (row.start_time, row.end_time);
        for flow in &episode.facts.named {
            let Some(mut subject) = unsigned(context, row.tap, *flow, times) else {
                continue;
            };
            if let Some(facts) = episode.facts.stall.filter(|facts| facts.flow == *flow) {
                subject.waited_ns = facts.longest.0;
            }
            subjects
                .flows
                .entry(*flow)
                .and_modify(|known| {
                    known.times = (known.times.0.min(times.0), known.times.1.max(times.1));
                    known.waited_ns = known.waited_ns.saturating_add(subject.waited_ns);
                })
                .or_insert(subject);
        }
        match (kind, row.destination) {
            (EpisodeKind::Pause, _) => {
                subjects.links.entry(row.tap).or_default().push(times);
                let source = episode.facts.pause.and_then(|pause| pause.source);
                let host = source.and_then(|source| context.pausing_host(row.tap, source));
                subjects.pausers.extend(host);
            }
            (EpisodeKind::Incast, Some(there)) => {
                let known = subjects.destinations.entry(there).or_insert(times);
                *known = (known.0.min(times.0), known.1.max(times.1));
            }
            _ => {}
        }
    }
    for link in subjects.links.values_mut() {
        join(link);
    }
    if id == "stall" {
        for (flow, subject) in &mut subjects.flows {
            let party = subject.tap.and_then(|tap| context.directory.party(tap, *flow));
            let divided = party.map_or(0, |party| party.stood_still_ns);
            subject.waited_ns = divided.max(subject.waited_ns);
        }
    }
    if id == "incast" {
        let losses = context.losses;
        subjects
            .destinations
            .retain(|there, _| losses.get(there).is_none_or(LossesThere::are_explained));
    }
    if id == "pause.origin" {
        add_origin(subjects, context);
    }
}

/// Destinations whose port the flows of a finding fill: more than half of the data that goes there is theirs.
fn add_filled_ports(subjects: &mut Subjects, context: &Context<'_>) {
    let mut data: BTreeMap<Address, (u64, u64)> = BTreeMap::new();
    for (_, flow, party) in context.directory.flows().filter(|(.., party)| party.counted) {
        let (own, all) = data.entry(party.destination).or_default();
        *all = all.saturating_add(party.data_packets);
        if subjects.flows.contains_key(&flow) {
            *own = own.saturating_add(party.data_packets);
        }
    }
    for subject in subjects.flows.values() {
        let there = data.get(&subject.destination);
        if there.is_some_and(|(own, all)| own.saturating_mul(2) > *all) {
            let times = subjects
                .destinations
                .entry(subject.destination)
                .or_insert(subject.times);
            *times = (times.0.min(subject.times.0), times.1.max(subject.times.1));
        }
    }
}

/// Joins times that overlap, in the order of their begin.
fn join(times: &mut Vec<(Time, Time)>) {
    times.sort_unstable();
    times.dedup_by(|later, first| {
        let overlaps = later.0 <= first.1;
        if overlaps {
            first.1 = first.1.max(later.1);
        }
        overlaps
    });
}

/// The victims of the chain of waits that the finding is about. Where no pause frame was captured it is about no link.
fn add_origin(subjects: &mut Subjects, context: &Context<'_>) {
    subjects.flows.clear();
    let chain = context.fabric.and_then(|fabric| {
        let named = |place: &usize| fabric.flows.all.get(*place).is_some();
        let mut chains = fabric.chains.iter();
        Some((fabric, chains.find(|chain| chain.victims.iter().any(named))?))
    });
    let Some((fabric, chain)) = chain else { return };
    if !chain.is_captured {
        subjects.links.clear();
    }
    let last = of_run(context).1;
    for victim in chain
        .victims
        .iter()
        .filter_map(|place| fabric.flows.all.get(*place))
    {
        let times = (Time(chain.first), last);
        if let Some(subject) = unsigned(context, victim.tap, victim.flow, times) {
            subjects.flows.insert(victim.flow, subject);
        }
    }
}
