//! Causes at the end of a chain of pauses: flows that compete for a switch's port, and hosts that take packets too slowly or pause without
//! need.

use std::collections::BTreeSet;

use roce_model::{Address, Confidence, EpisodeKind, RootKind, value_of};

use super::holds::{Hold, whole};
use super::known::KnownFacts;
use super::ports::PortNumber;
use super::readings::{Key, Quantity};
use super::series::{Series, Window, meet};

/// Destinations of one paused cable that are looked at.
const MAX_DESTINATIONS: usize = 64;
/// A port that sends this share of its rate has no room left: headers between frames take the rest.
const FULL: f64 = 0.9;
/// The slowest link of RoCE, in bit/s, where nothing tells its speed.
const SLOWEST: f64 = 10e9;

/// Flows that compete for one egress port.
#[derive(Clone, Debug)]
pub(super) struct Contention {
    pub(super) port: Option<PortNumber>,
    pub(super) destination: Address,
    /// Flows by their place, with their share of the bytes, the largest first.
    pub(super) shares: Vec<(usize, f64)>,
    pub(super) confidence: Confidence,
    pub(super) reason: String,
}

/// Sum of a counter that rises in any of the windows.
fn rises(series: &Series, windows: &[Window]) -> f64 {
    let risen: Vec<Window> = series.risen().copied().collect();
    if meet(&risen, windows) { series.sum } else { 0.0 }
}

/// Sum over all series of a quantity at one of the ports.
fn sum_at(
    known: &KnownFacts<'_>,
    quantity: Quantity,
    windows: &[Window],
    is_at: impl Fn(&Key) -> bool,
) -> f64 {
    let all = known.by_quantity(quantity).iter();
    all.filter(|(key, _)| is_at(key))
        .map(|(_, series)| rises(series, windows))
        .sum()
}

/// The contention that a paused cable into a switch waits for. `flows` go over it. `None`: nothing shows one, or several fit.
pub(super) fn contention(
    known: &KnownFacts<'_>,
    hold: &Hold,
    flows: &[usize],
    is_paused: impl Fn(PortNumber) -> bool,
) -> Option<Contention> {
    let mut destinations: BTreeSet<Address> = BTreeSet::new();
    for flow in flows.iter().filter_map(|flow| known.flows.all.get(*flow)) {
        if destinations.len() < MAX_DESTINATIONS {
            destinations.insert(flow.destination);
        }
    }
    let found: Vec<Contention> = destinations
        .into_iter()
        .filter_map(|destination| towards(known, hold, destination, &is_paused))
        .collect();
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

fn towards(
    known: &KnownFacts<'_>,
    hold: &Hold,
    destination: Address,
    is_paused: &impl Fn(PortNumber) -> bool,
) -> Option<Contention> {
    let ports = &known.readings.ports;
    let switch = hold.head.port.filter(|port| known.net.is_switch(ports, *port));
    let exit = match switch.and_then(|port| ports.node_of(port)) {
        Some(node) => match known.net.exits(ports, node, destination).as_slice() {
            [only] => Some(*only),
            [] => None,
            // One of several uplinks: which one is not known.
            _ => return None,
        },
        None => known
            .net
            .attached(destination)
            .and_then(|port| known.net.peer(port)),
    };
    if exit.is_some_and(is_paused) {
        return None;
    }
    let is_captured = known
        .episodes
        .iter()
        .filter(|episode| {
            let is_shared = episode.row.kind == EpisodeKind::Incast
                || episode.row.kind == EpisodeKind::Ecn && episode.row.senders_max > 1;
            is_shared && episode.row.destination == Some(destination)
        })
        .any(|episode| {
            let of = Window {
                from: episode.row.start_time.0,
                to: episode
                    .row
                    .end_time
                    .0
                    .max(episode.row.start_time.0.saturating_add(1)),
                by: 1.0,
            };
            episode.row.confidence != Confidence::Low && meet(&[of], &hold.windows)
        });
    let counted = exit.map(|exit| signs(known, exit, hold)).unwrap_or_default();
    if !is_captured && counted.is_none() {
        return None;
    }
    let mut shares = Vec::new();
    let mut bytes = 0u64;
    for (place, flow) in known.flows.counted() {
        if flow.destination == destination && flow.is_in(&hold.windows) {
            bytes = bytes.saturating_add(flow.wire_bytes);
            shares.push((place, flow.wire_bytes));
        }
    }
    // One flow alone does not compete: its rival was not captured.
    if shares.len() < 2 || bytes == 0 {
        return None;
    }
    shares.sort_by_key(|(place, bytes)| (core::cmp::Reverse(*bytes), *place));
    // The exit's own counters say that nobody pauses it.
    let is_free = exit.is_some_and(|exit| {
        let all = known.by_quantity(Quantity::PausesReceived).iter();
        let own: Vec<_> = all.filter(|(key, _)| key.port == exit).collect();
        !own.is_empty() && own.iter().all(|(_, series)| rises(series, &hold.windows) <= 0.0)
    });
    Some(Contention {
        port: exit,
        destination,
        shares: shares
            .into_iter()
            .map(|(place, own)| (place, value_of(own) / value_of(bytes)))
            .collect(),
        confidence: if is_free || is_captured && exit.is_none() {
            Confidence::Medium
        } else {
            Confidence::Low
        },
        reason: match (is_captured, counted) {
            (true, Some(signs)) => format!("senders to {destination} overlap, and {signs}"),
            (true, None) => format!("senders to {destination} overlap"),
            (false, signs) => signs.unwrap_or_default(),
        },
    })
}

/// Signs of a queue at a switch's port, in words.
fn signs(known: &KnownFacts<'_>, exit: PortNumber, hold: &Hold) -> Option<String> {
    let is_at = |key: &Key| key.port == exit;
    let marks = sum_at(known, Quantity::QueueMarks, &hold.windows, is_at);
    if marks > 0.0 {
        return Some(format!("its queue marked {} packets", whole(marks)));
    }
    let drops = sum_at(known, Quantity::QueueDrops, &hold.windows, is_at);
    if drops > 0.0 {
        return Some(format!("its queue dropped {} packets", whole(drops)));
    }
    let rate = known.readings.get(exit, Quantity::Rate)?.latest;
    let sent = known.readings.get(exit, Quantity::SentBytes)?;
    let per_second = mean_rate(sent, &hold.windows)?;
    (rate > 0.0 && per_second >= FULL * rate)
        .then(|| format!("it sent {:.0} % of its rate", 100.0 * per_second / rate))
}

/// Change in a second over the windows; `None` where there are no readings.
pub(super) fn mean_rate(series: &Series, windows: &[Window]) -> Option<f64> {
    let (mut sum, mut time) = (0.0, 0u64);
    for window in windows {
        let (by, covered) = series.within(window.from, window.to);
        sum += by;
        time = time.saturating_add(covered);
    }
    (time > 0).then(|| sum * 1e9 / value_of(time))
}

/// Kind of a host that pauses its switch, how sure that is, and why.
pub(super) fn of_host(known: &KnownFacts<'_>, hold: &Hold) -> (RootKind, Confidence, String) {
    let (from, to) = (hold.start(), hold.end());
    let host = hold.head.host;
    let rnr = host.map_or(0, |host| {
        known.receivers.rnr_naks(
            known.directory,
            host,
            from.saturating_sub(hold.resolution),
            to.saturating_add(hold.resolution),
        )
    });
    let is_captured = hold.captured.is_some();
    if rnr > 0 {
        let confidence = if is_captured {
            Confidence::High
        } else {
            Confidence::Medium
        };
        return (
            RootKind::SlowReceiver,
            confidence.max_of(hold),
            format!("it sent {rnr} RNR NAKs"),
        );
    }
    let ports = &known.readings.ports;
    let node = hold.head.port.and_then(|port| ports.node_of(port));
    let is_of_node = |key: &Key| node.is_some() && ports.node_of(key.port) == node;
    let slow = sum_at(known, Quantity::TooSlow, &hold.windows, is_of_node);
    if slow > 0.0 {
        let reason = "its adapter counted packets without a buffer, RNR NAKs or stalls of PCIe";
        return (
            RootKind::SlowReceiver,
            Confidence::Medium.max_of(hold),
            reason.to_owned(),
        );
    }
    let storms = sum_at(known, Quantity::Storms, &hold.windows, |key| {
        is_of_node(key) || hold.tail.port == Some(key.port)
    });
    let share = paused_share(hold);
    let (rate, link) = (receive_rate(known, hold), link_rate(known, hold));
    let is_low = rate.is_some_and(|rate| rate < known.settings.thresholds.storm_rate * link);
    let is_long = share.is_some_and(|share| share >= known.settings.thresholds.pause_share_critical);
    if is_low && is_long {
        let confidence = if is_captured {
            Confidence::High
        } else {
            Confidence::Medium
        };
        return (
            RootKind::PauseStorm,
            confidence.max_of(hold),
            format!(
                "it paused its switch for {:.0} % of the time, although only {:.1} % of the link's rate came",
                100.0 * share.unwrap_or_default(),
                100.0 * rate.unwrap_or_default() / link
            ),
        );
    }
    if storms > 0.0 {
        let reason = format!(
            "its adapter or its switch's watchdog counted {} storms",
            whole(storms)
        );
        return (RootKind::PauseStorm, Confidence::Medium.max_of(hold), reason);
    }
    if rate.is_some() && !is_low {
        // A storm that comes and goes lets as much through as a slow receiver: nothing that is read decides.
        let reason = "it paused its switch while data came; nothing shows what it lacks";
        return (RootKind::SlowReceiver, Confidence::Low, reason.to_owned());
    }
    let reason = "it paused its switch; nothing shows why";
    (RootKind::Unclear, Confidence::Low, reason.to_owned())
}

/// Bytes a second that came to the host meanwhile, times 8.
fn receive_rate(known: &KnownFacts<'_>, hold: &Hold) -> Option<f64> {
    if let (Some((tap, _)), Some(host)) = (hold.captured, hold.head.host) {
        // A tap of what the host sends says nothing of what comes.
        let mut flows = known.flows.all.iter();
        if flows.any(|flow| flow.tap == tap && flow.destination == host) {
            let rate = known.receivers.rate(tap, host, hold.start(), hold.end());
            return rate.map(|rate| 8.0 * rate);
        }
    }
    let of = |port: Option<PortNumber>, quantity| known.readings.get(port?, quantity);
    let series = of(hold.head.port, Quantity::ReceivedBytes).or(of(hold.tail.port, Quantity::SentBytes))?;
    mean_rate(series, &hold.windows).map(|rate| 8.0 * rate)
}

/// Rate of the link in bit/s; where nothing shows it the slowest, at which the least traffic is a lot.
pub(super) fn link_rate(known: &KnownFacts<'_>, hold: &Hold) -> f64 {
    let read = [hold.tail.port, hold.head.port].into_iter().flatten();
    let read = read
        .filter_map(|port| known.readings.get(port, Quantity::Rate))
        .map(|series| 8.0 * series.latest)
        .find(|rate| *rate > 0.0);
    let stated = known.settings.link_rate.map(value_of);
    read.or(stated).unwrap_or(SLOWEST)
}

/// Share of the time from the first to the last pause.
fn paused_share(hold: &Hold) -> Option<f64> {
    let time: u64 = hold.windows.iter().map(Window::length).sum();
    let paused = hold.paused_ns.unwrap_or_default().max(hold.surely_ns);
    (time > 0 && paused > 0).then(|| (value_of(paused) / value_of(time)).min(1.0))
}

/// The lower of two confidences.
pub(super) fn lower(one: Confidence, other: Confidence) -> Confidence {
    match (one, other) {
        (Confidence::Low, _) | (_, Confidence::Low) => Confidence::Low,
        (Confidence::Medium, _) | (_, Confidence::Medium) => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// Confidence in a root is at most that in the pauses before it.
trait AtMost {
    fn max_of(self, hold: &Hold) -> Self;
}

impl AtMost for Confidence {
    fn max_of(self, hold: &Hold) -> Self {
        lower(self, hold.confidence)
    }
}
