//! Ports of switches, hypervisors and hosts: discards, watchdogs, pause storms.

use std::collections::BTreeMap;

use roce_model::{Counter, Severity};
use roce_spelling::counted;

use super::growth::{Growths, is_port, share_text};
use super::losses::interface_discards;
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by, severity};

/// Share of a port's packets from which on discards are a warning: a loss rate that RoCE's throughput shows.
const DISCARDED_SHARE: f64 = 1e-5;
/// Share of a queue's packets from which on drops are a warning where it is not known whether the queue is lossless: TCP fills lossy queues
/// until they drop, and its throughput with loss p is about MSS / RTT * 1.22 / sqrt(p) (Mathis and others, 1997): a share of 0.1 % holds one
/// connection to about 39 packets in a round trip.
const QUEUE_DROPPED_SHARE: f64 = 1e-3;
/// Discards per second from which on they are a warning where packets are not counted.
const DISCARDS_PER_SECOND: f64 = 1.0;
/// Discards between recordings of unknown time, of a port whose packets are not counted.
const MIN_DISCARDS: f64 = 100.0;

pub(super) const RULES: &[CounterRule] = &[
    CounterRule {
        id: "counters.watchdog",
        title: "the PFC watchdog opens queues that are paused",
        meaning: "The neighbour paused this queue so long that the switch took it for stuck, and dropped its packets. Again and again: the storm \
                  goes on, and each time packets of a lossless class are lost.",
        method: "times that the watchdog fired between two readings: warning; with packets that it dropped: critical",
        source: "SONiC pfcwd show stats (storm detected/restored); Cisco NX-OS show queuing pfc-queue; Arista EOS show priority-flow-control \
                 watchdog; SAI PFC_WD_QUEUE_STATS",
        next: "Look at the neighbour of this port (LLDP): an adapter that sends pauses for ever, a hung host, or a switch with a full port behind it.",
        severity: Severity::Critical,
        run: by(watchdog),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.pause_storm",
        title: "an adapter pauses its neighbour for too long",
        meaning: "The adapter sent pauses until it took its own receiver for stuck. With an error event it also stops them: packets that arrive \
                  then are dropped.",
        method: "warning events between two readings: warning; error events: critical",
        source: "Linux mlx5 counters.rst, tx_pause_storm_warning_events and tx_pause_storm_error_events",
        next: "This host does not take its packets: look at PCIe stalls, at memory, and for a program that hangs.",
        severity: Severity::Critical,
        run: by(storms),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.discards",
        title: "a port discards packets",
        meaning: "Packets of good form were dropped for lack of buffers, or because a rule refused them. RoCE sends all that was under way again.",
        method: "0.001 % of the port's packets, or 1 a second where packets are not counted, between two readings: warning; fewer: note",
        source: "IF-MIB ifInDiscards and ifOutDiscards; Cisco NX-OS show interface counters errors; SAI_PORT_STAT_IF_OUT_DISCARDS; mlx5 \
                 rx_discards_phy; bnxt_re rx_roce_discards; InfiniBand PortXmitDiscards (IBTA 16.1.3.5)",
        next: "Sent direction: which queue of this port drops, and whether PFC or ECN works in it. Received direction: headroom, or VLAN and MTU \
               that do not fit.",
        severity: Severity::Warning,
        run: by(discards),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.queue_drops",
        title: "a queue of a switch drops packets",
        meaning: "The queue of this class was full and dropped. In a lossy class congestion control did not slow the senders in time; in a \
                  lossless one pauses did not stop them.",
        method: "a lossless queue from 0.001 % of the packets that it sent, one of unknown kind from 0.1 %, each from 1 a second where they are not \
                 counted, between two readings: warning; fewer, and all drops of a lossy queue: note",
        source: "SONiC show queue counters (Drop/pkts); Cisco NX-OS show queuing interface (Tail Drop, WRED & AFD Tail Drop); Arista EOS show \
                 interfaces counters queue; SAI_QUEUE_STAT_DROPPED_PACKETS",
        next: "A lossy class: see whether ECN marks in this queue, and which senders come together here. A lossless one: whether PFC is on at both \
               ends, and its headroom.",
        severity: Severity::Warning,
        run: by(queue_drops),
        ..NO_TEXTS
    },
];

fn queue_drops(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let mut drops: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let mut sent: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for (counter, sums) in [
        (Counter::SwitchQueueDroppedPackets, &mut drops),
        (Counter::SwitchQueueTransmittedPackets, &mut sent),
    ] {
        for (sample, growth) in growths.of(counter).filter(|(sample, _)| is_port(sample)) {
            let queue = sample.queue.as_deref().unwrap_or_default();
            *sums.entry((&*sample.object, queue)).or_default() += growth;
        }
    }
    let found = drops.into_iter().filter(|(_, count)| *count > 0.0);
    let found = found.map(|((object, queue), count)| {
        let all = sent.get(&(object, queue)).copied().filter(|all| *all > 0.0);
        let is_lossless = is_lossless(growths, object, queue);
        let is_much = match (is_lossless, all, growths.per_second(count)) {
            (Some(false), ..) => false,
            (Some(true), Some(all), _) => count / all >= DISCARDED_SHARE,
            (None, Some(all), _) => count / all >= QUEUE_DROPPED_SHARE,
            (_, None, Some(rate)) => rate >= DISCARDS_PER_SECOND,
            (_, None, None) => count >= MIN_DISCARDS,
        };
        let share = all.map_or_else(String::new, |all| {
            format!(
                ", {} of its packets",
                share_text((count / (all + count)).min(1.0))
            )
        });
        let name = if queue.is_empty() {
            String::new()
        } else {
            format!("queue {queue} ")
        };
        let text = format!("{name}dropped {}{share}", counted(count, "packet"));
        let follows = match is_lossless {
            Some(true) => "it is lossless: pauses did not stop the senders in time",
            Some(false) => "it is lossy: a full queue drops, which TCP expects; RoCE in it sends all that was under way again",
            None => "the queue was full; the reading does not say whether it is lossless",
        };
        CounterSign::new(growths, severity(is_much), object, &text)
            .and(follows)
            .number("dropped_packets", count)
    });
    found.collect()
}

/// True if a queue of a port is lossless, by its own setting or by PFC on the priority of its number; `None`: not known.
fn is_lossless(growths: &Growths<'_>, object: &str, queue: &str) -> Option<bool> {
    let own = growths
        .states(Counter::SwitchQueueNoDrop)
        .find(|sample| &*sample.object == object && sample.queue.as_deref() == Some(queue));
    let digits = queue.trim_start_matches(|glyph: char| !glyph.is_ascii_digit());
    let priority: Option<u8> = digits.parse().ok();
    let by_priority = || {
        growths
            .states(Counter::SwitchPfcEnabled)
            .find(|sample| &*sample.object == object && priority.is_some() && sample.priority == priority)
    };
    own.or_else(by_priority).map(|sample| sample.value > 0.5)
}

fn watchdog(growths: &Growths<'_>) -> Vec<CounterSign> {
    /// Counts of one queue; `None`: the switch does not count it.
    #[derive(Default)]
    struct WatchedQueue {
        shut: Option<f64>,
        restored: Option<f64>,
        dropped: Option<f64>,
        /// Times that it was shut in all, and whether it was shut once more than opened.
        total: f64,
        is_shut: bool,
    }
    let mut queues: BTreeMap<(&str, &str), WatchedQueue> = BTreeMap::new();
    for counter in [
        Counter::SwitchWatchdogShutdowns,
        Counter::SwitchWatchdogRestores,
        Counter::SwitchWatchdogDroppedPackets,
    ] {
        for (sample, growth) in growths.of(counter) {
            let key = (&*sample.object, sample.queue.as_deref().unwrap_or_default());
            let queue = queues.entry(key).or_default();
            let add = |sum: &mut Option<f64>| *sum = Some(sum.unwrap_or(0.0) + growth);
            match counter {
                Counter::SwitchWatchdogShutdowns => {
                    add(&mut queue.shut);
                    queue.total += sample.value;
                }
                Counter::SwitchWatchdogRestores => {
                    add(&mut queue.restored);
                    queue.is_shut = queue.total > sample.value;
                }
                _ => add(&mut queue.dropped),
            }
        }
    }
    let is_some = |count: Option<f64>| count.is_some_and(|count| count > 0.0);
    let fired = queues
        .into_iter()
        .filter(|(_, queue)| is_some(queue.shut) || is_some(queue.dropped));
    let found = fired.map(|((object, name), queue)| {
        let severity = if is_some(queue.dropped) {
            Severity::Critical
        } else {
            Severity::Warning
        };
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" queue {name}")
        };
        let mut parts = Vec::new();
        if let Some(shut) = queue.shut {
            parts.push(format!("shut{name} {}", counted(shut, "time")));
        }
        if let Some(restored) = queue.restored {
            parts.push(format!("opened it {}", counted(restored, "time")));
        }
        if let Some(dropped) = queue.dropped {
            parts.push(format!("dropped {}", counted(dropped, "packet")));
        }
        let text = match parts.as_slice() {
            [shut, restored, dropped] => format!("the PFC watchdog {shut} and {restored}, and {dropped}"),
            parts => format!("the PFC watchdog {}", parts.join(" and ")),
        };
        let mut follows = if queue.shut.is_some_and(|shut| shut > 1.0) {
            "the neighbour pauses it again and again".to_owned()
        } else {
            "the neighbour paused it for too long".to_owned()
        };
        if queue.is_shut {
            follows.push_str("; it is shut now");
        }
        CounterSign::new(growths, severity, object, &text)
            .and(&follows)
            .counted("shutdowns", queue.shut)
            .counted("restores", queue.restored)
            .counted("dropped_packets", queue.dropped)
    });
    found.collect()
}

fn storms(growths: &Growths<'_>) -> Vec<CounterSign> {
    // Warnings and errors of each adapter.
    let mut events: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (sample, growth) in growths.of(Counter::PauseStormEvents) {
        let is_error = sample.details.iter().any(|detail| detail == "error");
        events.entry(&*sample.object).or_default()[usize::from(is_error)] += growth;
    }
    let found = events
        .into_iter()
        .filter(|(_, [warnings, errors])| warnings + errors > 0.0);
    let found = found.map(|(object, [warnings, errors])| {
        let severity = if errors > 0.0 {
            Severity::Critical
        } else {
            Severity::Warning
        };
        // A storm that ends with an error began with a warning.
        let storms = warnings.max(errors);
        let text = format!("the adapter reports {}", counted(storms, "pause storm"));
        let sign = CounterSign::new(growths, severity, object, &text);
        let sign = if errors > 0.0 {
            let times = if errors < storms {
                counted(errors, "time") + " "
            } else {
                String::new()
            };
            sign.and(&format!("{times}it gave up pausing, and dropped what came then"))
        } else {
            sign
        };
        sign.number("warnings", warnings).number("errors", errors)
    });
    found.collect()
}

/// The direction of a sample: `received` or `transmitted`.
pub(super) fn direction(sample: &roce_model::Sample) -> &str {
    let at = sample
        .counter
        .labels()
        .iter()
        .position(|label| *label == "direction");
    at.and_then(|at| sample.details.get(at)).map_or("", AsRef::as_ref)
}

/// Packets of a port in one direction.
pub(super) fn packets(growths: &Growths<'_>, object: &str, direction: &str) -> Option<f64> {
    let counters: &[Counter] = match direction {
        "received" => &[
            Counter::SwitchInterfaceReceivedPackets,
            Counter::HypervisorReceivedPackets,
            Counter::PriorityReceivedPackets,
            Counter::PortReceivedPackets,
        ],
        _ => &[
            Counter::SwitchInterfaceTransmittedPackets,
            Counter::HypervisorTransmittedPackets,
            Counter::PriorityTransmittedPackets,
            Counter::PortTransmittedPackets,
        ],
    };
    growths.sum_of(counters, object).filter(|packets| *packets > 0.0)
}

fn discards(growths: &Growths<'_>) -> Vec<CounterSign> {
    let mut sums: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for counter in [Counter::SwitchInterfaceDiscards, Counter::NetdevDiscards] {
        if counter == Counter::NetdevDiscards && growths.is_total() {
            continue;
        }
        for (sample, growth) in growths.of(counter).filter(|(sample, _)| is_port(sample)) {
            *sums.entry((&*sample.object, direction(sample))).or_default() += growth;
        }
    }
    // Some drivers count discards by priority alone.
    if !growths.is_total() {
        for object in growths.objects(&[Counter::PriorityDiscards]) {
            if let Some(discards) = interface_discards(growths, object) {
                let count = sums.entry((object, "received")).or_default();
                if *count <= 0.0 && growths.sum(Counter::NetdevDiscards, object).unwrap_or(0.0) <= 0.0 {
                    *count = discards.count;
                }
            }
        }
    }
    let mut found = Vec::new();
    for ((object, direction), count) in sums {
        if count <= 0.0 {
            continue;
        }
        let all = packets(growths, object, direction);
        let is_much = match (all, growths.per_second(count)) {
            (Some(all), _) => count / all >= DISCARDED_SHARE,
            (None, Some(rate)) => rate >= DISCARDS_PER_SECOND,
            (None, None) => count >= MIN_DISCARDS,
        };
        // A total that is small beside what the port carried is nothing to tell.
        if growths.is_total() && !is_much {
            continue;
        }
        let severity = severity(is_much);
        let share = of_all(count, all, direction);
        let packets = if direction == "received" {
            counted(count, "received packet")
        } else {
            format!("{} to be sent", counted(count, "packet"))
        };
        let text = format!("{packets} discarded{share}");
        found.push(CounterSign::new(growths, severity, object, &text).number("discarded_packets", count));
    }
    found
}

/// The share that `count` is of it and `all` other packets in a direction, behind a comma; empty where these are not counted.
pub(super) fn of_all(count: f64, all: Option<f64>, direction: &str) -> String {
    let text = |all: f64| {
        let share = share_text((count / (all + count)).min(1.0));
        format!(", {share} of those {direction}")
    };
    all.map_or_else(String::new, text)
}
