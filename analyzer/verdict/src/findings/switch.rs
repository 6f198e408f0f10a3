//! Findings that compare what switches counted with what was captured: drops and losses, marks and thresholds.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::text::clean;
use roce_model::{
    Confidence, EpisodeKind, Evidence, Fact, FindingRow, HostVantage, Severity, Time, value_of,
};

use super::super::numbers::{counted, some};
use super::super::pauses::{ConcludedPauses, Key, Level, Passes, PortNumber, Quantity, Window, whole};
use super::rule::{Context, FindingOf as _, Rule};

pub(super) const DROPS: Rule = Rule {
    id: "drops.switch",
    title: "drops that a switch counted explain the losses",
    meaning: "Packets were lost in the network, and switches were read meanwhile: the queue that dropped them is named, or that no switch that \
              was read dropped any, which leaves cables, adapters, and switches that nobody read.",
    method: "Counters of drops of egress queues, and on ingress for lack of buffer, between readings that enclose a loss episode (a drop is \
             noticed up to 100 ms later), against the losses of loss.network. With --inventory only ports that flows with losses can pass. \
             Without a loss in the capture nothing is said.",
    source: "The switches' counters; loss.network.",
    thresholds: &["drops_agree"],
    severity: Severity::Warning,
    otherwise: "info when the switches counted no drop, or the confidence is low",
    confidence: "high when drops and losses agree by drops_agree, from 10 on, none were counted at other times, no counter was reset, and a flow \
                 with losses surely passes the port; medium when they agree and the way is not known, when at least half as many were \
                 dropped at these times alone, or when no drop was counted at all; low when the times alone agree",
    ..Rule::TALLIED
};

pub(super) const THRESHOLD: Rule = Rule {
    id: "ecn.threshold",
    title: "marks and thresholds contradict each other",
    meaning: "What a switch says of its marking does not fit what happened: it paused before it could mark, as its thresholds say, or the \
              packets that it marked are not those that arrived marked.",
    method: "A queue whose threshold of marking (minimum) is not below the one at which the same switch pauses its neighbours, where it \
             did send pauses. And, with --inventory, marks counted at the port to a host against marked packets that a tap at this host \
             saw: fewer than the readings within the capture counted, or, where all senders are at the same switch, more than the \
             readings around it did; each by more than marks_agree and least_marks.",
    source: "DCQCN (SIGCOMM 2015, section 4): ECN has to act before PFC.",
    thresholds: &["marks_agree", "least_marks"],
    severity: Severity::Warning,
    otherwise: "info when fewer packets arrived marked than the switch counted: other traffic may share the queue",
    confidence: "medium; low when fewer packets arrived marked than the switch counted",
    ..Rule::TALLIED
};

/// A drop is noticed up to this time later: by the next packet, or a timer.
const NOTICED_AFTER: u64 = 100_000_000;
/// Fewer losses than this agree by accident.
const MIN_LOST: u64 = 10;
/// Ports and queues that are named.
const MAX_NAMED: usize = 3;

/// Drops of one queue.
#[derive(Clone, Copy, Debug, Default)]
struct QueueDrops {
    /// At times of losses, and at others.
    inside: f64,
    outside: f64,
    resets: u64,
    passes: Option<Passes>,
}

/// Times of losses in the capture.
fn loss_times(context: &Context<'_>) -> Vec<Window> {
    let mut times: Vec<Window> = context
        .episodes
        .iter()
        .filter(|episode| episode.row.lost > 0 || episode.row.kind == EpisodeKind::Loss)
        .map(|episode| Window {
            from: episode.row.start_time.0.saturating_sub(NOTICED_AFTER),
            to: episode
                .row
                .end_time
                .0
                .max(episode.row.start_time.0.saturating_add(1)),
            by: 1.0,
        })
        .collect();
    times.sort_by_key(|window| (window.from, window.to));
    let mut all: Vec<Window> = Vec::new();
    for window in times {
        match all.last_mut() {
            Some(last) if window.from <= last.to => last.to = last.to.max(window.to),
            _ => all.push(window),
        }
    }
    all
}

/// Drops of the queues that flows with losses can pass.
#[derive(Default)]
struct Drops {
    queues: BTreeMap<Key, QueueDrops>,
    /// Switches whose readings enclose all losses.
    read: BTreeSet<String>,
}

impl Drops {
    fn new(fabric: &ConcludedPauses, times: &[Window]) -> Option<Self> {
        let (begin, end) = (
            times.first()?.from.saturating_add(NOTICED_AFTER),
            times.last()?.to,
        );
        let mut drops = Self::default();
        for quantity in [Quantity::QueueDrops, Quantity::IngressDrops] {
            for (key, series) in fabric.readings.of(quantity) {
                let passes = lossy_passes(fabric, key.port, quantity);
                let is_switch = fabric.readings.level(key.port) == Some(Level::Switch);
                if !is_switch || passes == Some(Passes::No) {
                    continue;
                }
                let is_enclosed = series.windows.first().is_some_and(|window| window.from <= begin)
                    && series.windows.last().is_some_and(|window| window.to >= end);
                if is_enclosed {
                    drops.read.insert(fabric.readings.ports.node_name(key.port));
                }
                let mut dropped = QueueDrops {
                    passes,
                    resets: series.resets,
                    ..QueueDrops::default()
                };
                for window in series.risen() {
                    let at = times.partition_point(|time| time.to <= window.from);
                    if times.get(at).is_some_and(|time| time.from < window.to) {
                        dropped.inside += window.by;
                    } else {
                        dropped.outside += window.by;
                    }
                }
                if dropped.inside > 0.0 {
                    drops.queues.insert(key, dropped);
                }
            }
        }
        Some(drops)
    }

    fn inside(&self) -> f64 {
        self.queues.values().map(|dropped| dropped.inside).sum()
    }

    fn outside(&self) -> f64 {
        self.queues.values().map(|dropped| dropped.outside).sum()
    }

    /// How well the drops fit `lost` packets.
    fn confidence(&self, lost: u64, does_agree: bool) -> Confidence {
        let inside = self.inside();
        let is_clean = self.outside() <= 0.0 && self.queues.values().all(|dropped| dropped.resets == 0);
        let mut queues = self.queues.values();
        let is_on_way = queues.all(|dropped| dropped.passes == Some(Passes::Surely));
        let is_near = 2.0 * inside >= value_of(lost) && inside <= 2.0 * value_of(lost);
        match () {
            () if does_agree && is_clean && is_on_way && lost >= MIN_LOST => Confidence::High,
            () if (does_agree || is_near) && is_clean => Confidence::Medium,
            () => Confidence::Low,
        }
    }

    /// The queues with their drops, the largest first.
    fn names(&self, fabric: &ConcludedPauses) -> String {
        let mut sorted: Vec<(&Key, &QueueDrops)> = self.queues.iter().collect();
        sorted.sort_by(|(one, a), (other, b)| b.inside.total_cmp(&a.inside).then(one.cmp(other)));
        let name = |(key, dropped): &(&Key, &QueueDrops)| {
            let port = fabric.readings.ports.name(key.port);
            let queue = key.queue.map(|queue| clean(fabric.readings.queue_name(queue)));
            let queue = queue.map_or_else(String::new, |queue| format!(" queue {queue}"));
            let side = match key.quantity {
                Quantity::IngressDrops => " on ingress",
                _ => "",
            };
            format!("{port}{queue}{side}: {}", whole(dropped.inside))
        };
        let names: Vec<String> = sorted.iter().map(name).collect();
        some(&names, MAX_NAMED, names.len())
    }
}

/// Drops that explain the losses that `finding` is about.
pub(super) fn drops(context: &Context<'_>, finding: Option<&FindingRow>) -> Option<FindingRow> {
    let (fabric, finding) = (context.fabric?, finding?);
    let lost = finding.evidence.0.iter().find_map(|(name, fact)| match fact {
        Fact::Count(count) if *name == "lost" => Some(*count),
        _ => None,
    })?;
    let drops = Drops::new(fabric, &loss_times(context))?;
    if drops.queues.is_empty() {
        return none_dropped(lost, &drops.read, finding);
    }
    let inside = drops.inside();
    let does_agree = (inside - value_of(lost)).abs() <= context.thresholds.drops_agree * value_of(lost);
    let confidence = match finding.confidence {
        Confidence::Low => Confidence::Low,
        _ => drops.confidence(lost, does_agree),
    };
    let names = drops.names(fabric);
    let mut evidence = Evidence::default();
    evidence
        .count("lost", lost)
        .count("dropped", whole(inside))
        .count("dropped_at_other_times", whole(drops.outside()))
        .count("queues", drops.queues.len() as u64)
        .count("switches_read", drops.read.len() as u64)
        .text("where", names.clone());
    let relation = if does_agree {
        "as many as were lost"
    } else if inside < value_of(lost) {
        "fewer than were lost: others were lost elsewhere"
    } else {
        "more than the capture shows: other traffic shares the queue, or the capture does not see all of it"
    };
    let severity = match confidence {
        Confidence::Low => Severity::Info,
        _ => Severity::Warning,
    };
    let losses = if lost == 1 {
        "1 loss".to_owned()
    } else {
        format!("{lost} losses")
    };
    Some(DROPS.finding(
        (severity, confidence),
        format!(
            "switches dropped {} in the time of {losses}: {names}; {relation}",
            counted(whole(inside), "packet"),
        ),
        evidence,
        "Look at this queue: its buffer and PFC (a lossless queue has to pause before it drops), its class map, and who sends into it.",
        finding.first_time,
    ))
}

/// The switches that were read dropped nothing.
fn none_dropped(lost: u64, read: &BTreeSet<String>, finding: &FindingRow) -> Option<FindingRow> {
    if read.is_empty() {
        return None;
    }
    let names: Vec<&String> = read.iter().collect();
    let names = some(&names, MAX_NAMED, read.len());
    let mut evidence = Evidence::default();
    evidence
        .count("lost", lost)
        .count("dropped", 0)
        .count("switches_read", read.len() as u64)
        .text("where", names.clone());
    let confidence = match finding.confidence {
        Confidence::Low => Confidence::Low,
        _ => Confidence::Medium,
    };
    Some(DROPS.finding(
        (Severity::Info, confidence),
        format!(
            "{names} counted no drop while {} lost: not in the queues that were read",
            if lost == 1 {
                "1 packet was".to_owned()
            } else {
                format!("{lost} packets were")
            }
        ),
        evidence,
        "Look at errors of cables and optics, at the adapters' own discards, and read the other switches on the way.",
        finding.first_time,
    ))
}

/// True if flows with losses pass the port; `None`: not known.
fn lossy_passes(fabric: &ConcludedPauses, port: PortNumber, quantity: Quantity) -> Option<Passes> {
    let peer = fabric.net.peer(port)?;
    let cable = match quantity {
        Quantity::IngressDrops => (peer, port),
        _ => (port, peer),
    };
    let lossy = fabric.flows.counted().filter(|(_, flow)| flow.lost > 0);
    let mut best: Option<Passes> = None;
    for (_, flow) in lossy {
        // Flows between hosts that nobody placed may pass anywhere.
        let (Some(_), Some(_)) = (
            fabric.net.attached(flow.source),
            fabric.net.attached(flow.destination),
        ) else {
            return None;
        };
        let passes = fabric
            .net
            .passes_cable(&fabric.readings.ports, cable, (flow.source, flow.destination));
        best = Some(best.map_or(passes, |best| best.max(passes)));
        if best == Some(Passes::Surely) {
            break;
        }
    }
    best
}

/// Marks that do not fit what was captured, and thresholds that do not fit each other.
pub(super) fn threshold(context: &Context<'_>) -> Option<FindingRow> {
    let fabric = context.fabric?;
    pauses_first(fabric).or_else(|| marks_differ(context, fabric))
}

/// A queue that pauses before it marks, in a switch that stopped.
fn pauses_first(fabric: &ConcludedPauses) -> Option<FindingRow> {
    let readings = &fabric.readings;
    let ports = &readings.ports;
    // By node and queue: the lowest threshold of pausing.
    let mut pauses: BTreeMap<(String, Option<u16>), f64> = BTreeMap::new();
    for (key, series) in readings.of(Quantity::PausesFrom) {
        if series.latest > 0.0 {
            let lowest = pauses
                .entry((ports.node_name(key.port), key.queue))
                .or_insert(series.latest);
            *lowest = lowest.min(series.latest);
        }
    }
    let mut sent: BTreeMap<String, (f64, u64)> = BTreeMap::new();
    for (key, series) in readings.of(Quantity::PausesSent) {
        if series.sum > 0.0 && !readings.is_internal(key.port) {
            let first = series.risen().map(|window| window.from).min().unwrap_or_default();
            let all = sent.entry(ports.node_name(key.port)).or_insert((0.0, first));
            all.0 += series.sum;
            all.1 = all.1.min(first);
        }
    }
    let mut found: Vec<(f64, f64, String, (f64, u64))> = Vec::new();
    for (key, series) in readings.of(Quantity::MarksFrom) {
        let node = ports.node_name(key.port);
        let stopped = sent.get(&node).copied();
        let from = pauses.get(&(node, key.queue)).copied();
        if let (Some(from), Some(stopped)) = (from, stopped)
            && series.latest >= from
        {
            let queue = key.queue.map_or("", |queue| readings.queue_name(queue));
            let name = format!("{} queue {}", ports.name(key.port), clean(queue));
            found.push((series.latest, from, name, stopped));
        }
    }
    let (marks_from, pauses_from, name, (frames, first)) = found.first()?.clone();
    let mut evidence = Evidence::default();
    evidence
        .count("queues", found.len() as u64)
        .text("where", name.clone())
        .count("marks_from_bytes", whole(marks_from))
        .count("pauses_from_bytes", whole(pauses_from))
        .count("pause_frames_sent", whole(frames));
    Some(THRESHOLD.finding(
        (Severity::Warning, Confidence::Medium),
        format!(
            "{name} marks from {} bytes on, the switch pauses its neighbours from {} bytes on: it sent {} before ECN could act",
            whole(marks_from),
            whole(pauses_from),
            counted(whole(frames), "pause frame"),
        ),
        evidence,
        "Lower the minimum threshold of marking below the one of pausing, divided by the ports that send at once.",
        Some(Time(first)),
    ))
}

/// Marks counted at the port to a host against those that a tap at this host saw.
fn marks_differ(context: &Context<'_>, fabric: &ConcludedPauses) -> Option<FindingRow> {
    let ports = &fabric.readings.ports;
    let marks = fabric.readings.of(Quantity::QueueMarks);
    if marks.is_empty() {
        return None;
    }
    let agree = context.thresholds.marks_agree;
    let least = value_of(context.thresholds.least_marks);
    let near = context
        .run
        .vantages
        .iter()
        .filter(|row| row.vantage == Some(HostVantage::Near));
    for row in near {
        let Some((leaf, port)) = fabric.net.leaf_of(ports, row.address) else {
            continue;
        };
        let Some(tap) = context.run.tap(row.tap) else {
            continue;
        };
        let (Some(begin), Some(end)) = (tap.first_time, tap.last_time) else {
            continue;
        };
        let (mut inside, mut around, mut is_read) = (0.0, 0.0, false);
        for (_, series) in marks.iter().filter(|(key, _)| key.port == port) {
            for window in &series.windows {
                is_read |= window.from <= begin.0 && window.to > begin.0;
                if window.from >= begin.0 && window.to <= end.0 {
                    inside += window.by;
                }
                if window.from <= end.0 && window.to >= begin.0 {
                    around += window.by;
                }
            }
        }
        if tap.records_lost() > 0 || !is_read {
            continue;
        }
        let flows = || {
            let all = fabric.flows.all.iter();
            all.filter(|flow| flow.tap == row.tap && flow.destination == row.address)
        };
        let seen: u64 = flows().map(|flow| flow.ce).fold(0, u64::saturating_add);
        let is_alone =
            flows().all(|flow| fabric.net.leaf_of(ports, flow.source).map(|(node, _)| node) == Some(leaf));
        let captured = value_of(seen);
        let too_few = inside - captured > agree * inside + least;
        let too_many = is_alone && captured - around > agree * around + least;
        if !too_few && !too_many {
            continue;
        }
        let mut evidence = Evidence::default();
        evidence
            .text("where", ports.name(port))
            .text("host", row.address.to_string())
            .count("marked_by_switch_within", whole(inside))
            .count("marked_by_switch_around", whole(around))
            .count("marked_captured", seen);
        let (severity, confidence, words, next_step) = if too_few {
            (
                Severity::Info,
                Confidence::Low,
                format!(
                    "{} marked {} for {}, and {seen} arrived marked: other traffic shares the queue, or marks are cleared behind it",
                    ports.name(port),
                    counted(whole(inside), "packet"),
                    row.address
                ),
                "Compare the queue's packets with those of the capture; look for a rewrite of the ECN bits in policies and overlays.",
            )
        } else {
            (
                Severity::Warning,
                Confidence::Medium,
                format!(
                    "{} arrived marked at {}, and {} counted at most {}: it does not count what it marks, or something else marks",
                    counted(seen, "packet"),
                    row.address,
                    ports.name(port),
                    whole(around)
                ),
                "Check which queue the traffic is in, and whether this switch counts marks by queue.",
            )
        };
        return Some(THRESHOLD.finding((severity, confidence), words, evidence, next_step, tap.first_time));
    }
    None
}
