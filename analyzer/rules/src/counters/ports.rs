//! Ports of switches, hypervisors and hosts: discards, broken frames, watchdogs, pause storms.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Severity};
use roce_spelling::counted;

use super::growth::{Growths, is_port, share_text};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by};

/// Share of a port's packets from which on discards are a warning: a loss rate that RoCE's throughput shows.
const DISCARDED_SHARE: f64 = 1e-5;
/// Discards per second from which on they are a warning where packets are not counted.
const DISCARDS_PER_SECOND: f64 = 1.0;
/// Discards between recordings of unknown time, of a port whose packets are not counted.
const MIN_DISCARDS: f64 = 100.0;
/// Share of a port's packets from which on broken frames are a warning: IEEE 802.3 allows one wrong bit in 1e12, which is one frame of
/// 1,250 bytes in 1e8.
const BROKEN_SHARE: f64 = 1e-8;

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
                 rx_discards_phy",
        next: "Sent direction: which queue of this port drops, and whether PFC or ECN works in it. Received direction: headroom, or VLAN and MTU \
               that do not fit.",
        severity: Severity::Warning,
        run: by(discards),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.broken_frames",
        title: "a link delivers broken frames",
        meaning: "Frames arrive with a wrong check sequence and are dropped: cable, optics or connector.",
        method: "more than one broken frame in 100,000,000 between two readings, or any where packets are not counted: warning",
        source: "IEEE 802.3: bit error ratio 1e-12; Cisco NX-OS FCS-Err; mlx5 rx_crc_errors_phy and rx_pcs_symbol_err_phy; IF-MIB ifInErrors",
        next: "Clean or replace cable and optics of this port; compare the errors of the other end.",
        severity: Severity::Warning,
        run: by(broken),
        ..NO_TEXTS
    },
];

fn watchdog(growths: &Growths<'_>) -> Vec<CounterSign> {
    /// Counts of one queue.
    #[derive(Default)]
    struct WatchedQueue {
        shut: f64,
        restored: f64,
        dropped: f64,
        /// It is shut now: it was shut once more than opened.
        is_shut: bool,
    }
    let mut queues: BTreeMap<(&str, &str), WatchedQueue> = BTreeMap::new();
    let mut totals: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for counter in [
        Counter::SwitchWatchdogShutdowns,
        Counter::SwitchWatchdogRestores,
        Counter::SwitchWatchdogDroppedPackets,
    ] {
        for (sample, growth) in growths.of(counter) {
            let key = (&*sample.object, sample.queue.as_deref().unwrap_or_default());
            let queue = queues.entry(key).or_default();
            match counter {
                Counter::SwitchWatchdogShutdowns => {
                    queue.shut += growth;
                    *totals.entry(key).or_default() += sample.value;
                }
                Counter::SwitchWatchdogRestores => {
                    queue.restored += growth;
                    queue.is_shut = totals.get(&key).is_some_and(|shut| *shut > sample.value);
                }
                _ => queue.dropped += growth,
            }
        }
    }
    let fired = queues
        .into_iter()
        .filter(|(_, queue)| queue.shut > 0.0 || queue.dropped > 0.0);
    let found = fired.map(|((object, name), queue)| {
        let severity = if queue.dropped > 0.0 {
            Severity::Critical
        } else {
            Severity::Warning
        };
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" queue {name}")
        };
        let text = format!(
            "the PFC watchdog shut{name} {} and opened it {}, and dropped {}",
            counted(queue.shut, "time"),
            counted(queue.restored, "time"),
            counted(queue.dropped, "packet")
        );
        let mut follows = if queue.shut > 1.0 {
            "the neighbour pauses it again and again".to_owned()
        } else {
            "the neighbour paused it for too long".to_owned()
        };
        if queue.is_shut {
            follows.push_str("; it is shut now");
        }
        CounterSign::new(growths, severity, object, &text)
            .and(&follows)
            .number("shutdowns", queue.shut)
            .number("restores", queue.restored)
            .number("dropped_packets", queue.dropped)
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
        let text = format!(
            "the adapter reports {}",
            counted(warnings + errors, "pause storm")
        );
        let sign = CounterSign::new(growths, severity, object, &text);
        let sign = if errors > 0.0 {
            sign.and("it gave up pausing, and dropped what came then")
        } else {
            sign
        };
        sign.number("warnings", warnings).number("errors", errors)
    });
    found.collect()
}

/// The direction of a sample: `received` or `transmitted`.
fn direction(sample: &roce_model::Sample) -> &str {
    let at = sample
        .counter
        .labels()
        .iter()
        .position(|label| *label == "direction");
    at.and_then(|at| sample.details.get(at)).map_or("", AsRef::as_ref)
}

/// Packets of a port in one direction.
fn packets(growths: &Growths<'_>, object: &str, direction: &str) -> Option<f64> {
    let counters: &[Counter] = match direction {
        "received" => &[
            Counter::SwitchInterfaceReceivedPackets,
            Counter::HypervisorReceivedPackets,
            Counter::PriorityReceivedPackets,
        ],
        _ => &[
            Counter::SwitchInterfaceTransmittedPackets,
            Counter::HypervisorTransmittedPackets,
            Counter::PriorityTransmittedPackets,
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

fn severity(is_much: bool) -> Severity {
    if is_much {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// The share that `count` is of it and `all` other packets in a direction, behind a comma; empty where these are not counted.
fn of_all(count: f64, all: Option<f64>, direction: &str) -> String {
    let text = |all: f64| {
        let share = share_text((count / (all + count)).min(1.0));
        format!(", {share} of those {direction}")
    };
    all.map_or_else(String::new, text)
}

fn broken(growths: &Growths<'_>) -> Vec<CounterSign> {
    let counters = [
        Counter::SwitchInterfaceFcsErrors,
        Counter::SwitchInterfaceErrors,
        Counter::PhyCrcErrors,
        Counter::PhySymbolErrors,
    ];
    let mut found = Vec::new();
    let objects: BTreeSet<&str> = counters
        .iter()
        .flat_map(|counter| growths.states(*counter))
        .filter(|sample| is_port(sample))
        .map(|sample| &*sample.object)
        .collect();
    for object in objects {
        let sum = |counter| growths.sum(counter, object).unwrap_or(0.0);
        let received: f64 = growths
            .of_object(Counter::SwitchInterfaceErrors, object)
            .filter(|(sample, _)| is_port(sample) && direction(sample) == "received")
            .map(|(_, growth)| growth)
            .sum();
        let fcs = sum(Counter::SwitchInterfaceFcsErrors) + sum(Counter::PhyCrcErrors);
        let symbols = sum(Counter::PhySymbolErrors);
        let count = fcs
            .max(received)
            .max(if fcs + received > 0.0 { 0.0 } else { symbols });
        let is_host = sum(Counter::SwitchInterfaceErrors) + sum(Counter::SwitchInterfaceFcsErrors) == 0.0;
        if count <= 0.0 || is_host && growths.is_total() {
            continue;
        }
        let all = packets(growths, object, "received");
        let is_much = all.is_none_or(|all| count / all > BROKEN_SHARE);
        if growths.is_total() && !is_much {
            continue;
        }
        let severity = severity(is_much);
        let share = of_all(count, all, "received");
        let text = if fcs > 0.0 {
            format!(
                "{} with a wrong check sequence (FCS){share}",
                counted(fcs, "frame")
            )
        } else if received > 0.0 {
            format!("{} received with errors{share}", counted(received, "frame"))
        } else {
            format!("{} received in error", counted(symbols, "symbol"))
        };
        let sign = CounterSign::new(growths, severity, object, &text).and("a cable, optics or a connector");
        found.push(sign.number("broken_frames", count));
    }
    found
}
