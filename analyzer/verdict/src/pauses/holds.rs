//! Cables on which one port stopped the other by pauses: from captured frames, from counters of either end, or both.

use std::collections::{BTreeMap, HashMap};

use roce_model::{Address, Confidence, EpisodeKind, MacAddress, TapId};

use super::flows::FlowFacts;
use super::known::KnownFacts;
use super::link_ends::Pauser;
use super::net::{Direction, Passes};
use super::ports::PortNumber;
use super::readings::Quantity;
use super::series::{Series, Window, union};

/// Cables with pauses that are judged, at most: those with the most frames.
pub(super) const MAX_HOLDS: usize = 128;
/// Pauses of one sender that are kept apart.
const MAX_WINDOWS: usize = 256;

/// One end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct End {
    pub(super) port: Option<PortNumber>,
    /// The host's address, where it is a host's.
    pub(super) host: Option<Address>,
}

/// A port that another one stopped.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    /// Who was stopped.
    pub(super) tail: End,
    /// Who sent the pauses.
    pub(super) head: End,
    pub(super) priority: Option<u8>,
    /// In the order of time.
    pub(super) windows: Vec<Window>,
    pub(super) frames: u64,
    pub(super) paused_ns: Option<u64>,
    /// Time that it was surely paused, by the captured frames.
    pub(super) surely_ns: u64,
    pub(super) resolution: u64,
    /// Where its frames were captured.
    pub(super) captured: Option<(TapId, MacAddress)>,
    /// Hosts behind the router that sent the frames.
    routed: Vec<Address>,
    pub(super) confidence: Confidence,
}

impl Hold {
    pub(super) fn start(&self) -> u64 {
        self.windows.first().map_or(0, |window| window.from)
    }

    pub(super) fn end(&self) -> u64 {
        self.windows.last().map_or(0, |window| window.to)
    }

    /// The latest time at which the first pause can have begun.
    pub(super) fn latest_start(&self) -> u64 {
        match self.captured {
            Some(_) => self.start().saturating_add(self.resolution),
            None => self.windows.first().map_or(0, |window| window.to),
        }
    }

    /// True if a flow's packets go where the pauses stopped them.
    pub(super) fn passes(&self, known: &KnownFacts<'_>, flow: &FlowFacts) -> Passes {
        if flow.has_priority(self.priority) == Some(false) || !flow.is_in(&self.windows) {
            return Passes::No;
        }
        let surely = |is: bool| if is { Passes::Surely } else { Passes::No };
        let found = match (self.tail, self.head) {
            (_, End { host: Some(host), .. }) => surely(flow.destination == host),
            (End { host: Some(host), .. }, _) => surely(flow.source == host),
            (End { port: Some(from), .. }, End { port: Some(to), .. }) => known.net.passes(
                &known.readings.ports,
                Direction { from, to },
                flow.source,
                flow.destination,
            ),
            _ if self.captured.is_some_and(|(tap, _)| tap == flow.tap) => {
                surely(self.routed.contains(&flow.destination))
            }
            _ => Passes::No,
        };
        // A priority that is not known may be another one.
        match flow.has_priority(self.priority) {
            None => found.min(Passes::Possibly),
            Some(_) => found,
        }
    }
}

/// Counters of one end of a cable.
#[derive(Default)]
struct CountedEnd<'a> {
    received: Option<&'a Series>,
    sent: Option<&'a Series>,
    /// Seconds.
    stopped: Option<f64>,
}

type Key = (End, End, Option<u8>);

/// All of them, those with the most frames first; and how many were left out.
pub(super) fn collect(known: &KnownFacts<'_>) -> (Vec<Hold>, usize) {
    let mut holds: HashMap<Key, Hold, foldhash::fast::RandomState> = HashMap::default();
    for (key, counted) in counted(known) {
        if let Some(hold) = sampled(key, &counted) {
            holds.insert(key, hold);
        }
    }
    for (key, hold) in captured(known) {
        match holds.get_mut(&key) {
            // Frames show the times; counters may show how long.
            Some(of_counters) => {
                let paused_ns = hold.paused_ns.or(of_counters.paused_ns);
                *of_counters = Hold { paused_ns, ..hold };
            }
            None => {
                holds.insert(key, hold);
            }
        }
    }
    // Counters of all priorities together say nothing beside those of one.
    let known_priorities: Vec<(End, End)> = holds
        .values()
        .filter(|hold| {
            hold.priority
                .is_some_and(|priority| priority < super::readings::LINK)
        })
        .map(|hold| (hold.tail, hold.head))
        .collect();
    let mut all: Vec<Hold> = holds
        .into_values()
        .filter(|hold| hold.priority.is_some() || !known_priorities.contains(&(hold.tail, hold.head)))
        .filter(|hold| is_noticeable(known, hold))
        .collect();
    all.sort_by_key(|hold| {
        (
            core::cmp::Reverse(hold.frames),
            hold.tail,
            hold.head,
            hold.priority,
        )
    });
    let left_out = all.len().saturating_sub(MAX_HOLDS);
    all.truncate(MAX_HOLDS);
    (all, left_out)
}

/// Bursts that PFC absorbed are no wait.
fn is_noticeable(known: &KnownFacts<'_>, hold: &Hold) -> bool {
    let thresholds = &known.settings.thresholds;
    match hold.paused_ns {
        Some(paused) => paused >= thresholds.pause_least.0,
        None => {
            hold.surely_ns >= thresholds.pause_least.0.max(1) || hold.frames >= thresholds.wait_frames.max(1)
        }
    }
}

/// The cable and direction that a port's counters are about. `is_stopped`: the port itself had to wait.
fn cable(known: &KnownFacts<'_>, port: PortNumber, is_stopped: bool) -> (End, End) {
    let end = |port: PortNumber| End {
        port: Some(port),
        host: known.net.address_of(port),
    };
    let port = known.net.cabled_port(&known.readings.ports, port);
    let own = end(port);
    let other = known.net.peer(port).map(end).unwrap_or_default();
    if is_stopped { (own, other) } else { (other, own) }
}

/// Counters of both ends by cable, direction and priority.
fn counted<'a>(known: &KnownFacts<'a>) -> BTreeMap<Key, CountedEnd<'a>> {
    let mut all: BTreeMap<Key, CountedEnd<'a>> = BTreeMap::new();
    let better = |known: Option<&'a Series>, series: &'a Series| match known {
        // One port under two names.
        Some(known) if known.sum >= series.sum => Some(known),
        _ => Some(series),
    };
    for (quantity, is_stopped) in [
        (Quantity::PausesReceived, true),
        (Quantity::PausesSent, false),
        (Quantity::Stopped, true),
        (Quantity::StoppedNeighbor, false),
    ] {
        for (key, series) in known.readings.of(quantity) {
            if known.readings.is_internal(key.port) {
                continue;
            }
            let (tail, head) = cable(known, key.port, is_stopped);
            let counted = all.entry((tail, head, key.priority)).or_default();
            match quantity {
                Quantity::PausesReceived => counted.received = better(counted.received, series),
                Quantity::PausesSent => counted.sent = better(counted.sent, series),
                _ => counted.stopped = Some(counted.stopped.unwrap_or_default().max(series.sum)),
            }
        }
    }
    all
}

/// A hold by the counters of its ends; `None`: they counted no pauses.
fn sampled((tail, head, priority): Key, counted: &CountedEnd<'_>) -> Option<Hold> {
    let risen = [counted.received, counted.sent].into_iter().flatten();
    let windows = union(risen.clone().flat_map(Series::risen).copied().collect());
    let resolution = windows.iter().map(Window::length).max()?;
    let frames = risen.map(|series| series.sum).fold(0.0, f64::max);
    // Both ends were read, and one of them counted nothing.
    let differs = matches!((counted.received, counted.sent), (Some(received), Some(sent))
        if received.sum == 0.0 || sent.sum == 0.0);
    let is_whole = tail.port.is_some() && head.port.is_some();
    Some(Hold {
        tail,
        head,
        priority,
        windows,
        frames: whole(frames),
        paused_ns: counted.stopped.map(|seconds| whole(seconds * 1e9)),
        surely_ns: 0,
        resolution,
        captured: None,
        routed: Vec::new(),
        confidence: if is_whole && !differs {
            Confidence::Medium
        } else {
            Confidence::Low
        },
    })
}

/// A count or a time as an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "beyond 64 bits it is the largest, below 0 it is 0"
)]
pub(in super::super) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Holds by the captured frames.
fn captured(known: &KnownFacts<'_>) -> BTreeMap<Key, Hold> {
    let mut all: BTreeMap<Key, Hold> = BTreeMap::new();
    let pauses = known
        .episodes
        .iter()
        .filter(|episode| episode.row.kind == EpisodeKind::Pause);
    for episode in pauses {
        let (row, facts) = (&episode.row, episode.facts.pause);
        let Some((facts, mac)) = facts.and_then(|facts| Some((facts, facts.source?))) else {
            continue;
        };
        let Some(sender) = known.links.who(row.tap, mac) else {
            continue;
        };
        let end = |host: Address| End {
            port: known.net.attached(host),
            host: Some(host),
        };
        let facing = |end: End| End {
            port: end.port.and_then(|port| known.net.peer(port)),
            host: None,
        };
        let (tail, head, routed, confidence) = match sender {
            Pauser::Host(host) => (facing(end(host)), end(host), Vec::new(), Confidence::High),
            Pauser::Facing(host) => (end(host), facing(end(host)), Vec::new(), Confidence::Medium),
            Pauser::Router(hosts) => (End::default(), End::default(), hosts, Confidence::Low),
        };
        let quantum = known.run.tap(row.tap).map_or(0, |tap| tap.stamp_quantum_ns);
        let hold = all
            .entry((tail, head, Some(facts.priority)))
            .or_insert_with(|| Hold {
                tail,
                head,
                priority: Some(facts.priority),
                windows: Vec::new(),
                frames: 0,
                paused_ns: None,
                surely_ns: known.receivers.surely(row.tap, facts.priority, mac),
                resolution: quantum.max(1),
                captured: Some((row.tap, mac)),
                routed,
                confidence,
            });
        let count = facts.frames.max(facts.intervals);
        hold.frames = hold.frames.saturating_add(count);
        if let Some(total) = facts.total_ns {
            hold.paused_ns = Some(hold.paused_ns.unwrap_or_default().saturating_add(total));
        }
        if hold.windows.len() < MAX_WINDOWS {
            hold.windows.push(Window {
                from: row.start_time.0,
                to: row.end_time.0.max(row.start_time.0.saturating_add(1)),
                by: roce_model::value_of(count),
            });
        }
    }
    for hold in all.values_mut() {
        hold.windows = union(core::mem::take(&mut hold.windows));
    }
    all
}
