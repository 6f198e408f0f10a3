//! Failures that an adapter counts itself: packets that were changed on the way, connections that broke, stalls of its PCIe link.

use std::collections::BTreeMap;

use roce_model::{Counter, Severity};
use roce_spelling::counted;

use super::growth::{Growths, share_text};
use super::links::BROKEN_SHARE;
use super::ports::{direction, of_all};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by, severity};

/// Share of the time from which on seconds with stalls are a warning, where it is known.
const STALLED_SHARE: f64 = 0.10;
/// Share of the time that cannot be: the adapter and the system round their seconds.
const MAX_STALLED_SHARE: f64 = 1.5;
/// Share of the last second from which on its stalls are a note: the adapter's own limit of a second with stalls.
const STALLED_SECOND: f64 = 0.30;

pub(super) const RULES: &[CounterRule] = &[
    CounterRule {
        id: "counters.icrc",
        title: "packets were changed on the way",
        meaning: "The invariant CRC of RoCE covers what no switch may change. It is wrong although the frame's own check sequence was right: a \
                  device on the way changed the packet and computed a new one. The adapter drops it, and the sender sends it again.",
        method: "packets with a wrong ICRC between two readings: more than one in 100,000,000 of the packets received, or any where they are not \
                 counted, is a warning; fewer are a note",
        source: "IBTA 9.1 and annex A17.3.3 (ICRC of RoCEv2); mlx5 counter rx_icrc_encapsulated",
        next: "Find the device that changes packets: a switch or an adapter with bad memory, a tunnel, NAT or a rule that rewrites more than \
               the TTL, DSCP and ECN. Captures at both ends show what differs.",
        severity: Severity::Warning,
        run: by(changed),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.retries_exceeded",
        title: "queue pairs use up their retries",
        meaning: "A sender repeated a request as often as it may and got no answer, or RNR NAKs alone. The queue pair is in the error state, and \
                  its program sees 'transport retry counter exceeded' (status 12) or 'RNR retry counter exceeded' (status 13).",
        method: "queue pairs that used up their retries between two readings: warning",
        source: "IBTA 9.9.2.1 (retry counter) and 9.7.5.2.8 (RNR retry counter); mlx5 req_transport_retries_exceeded and \
                 req_rnr_retries_exceeded, rxe retry_exceeded_err, bnxt_re max_retry_exceeded, ionic req_tx_retry_excd_err, efa \
                 unresponsive_remote_events",
        next: "Look at the peer of that time: is it up, is its port up, does its program still run? Then at losses on the way.",
        severity: Severity::Warning,
        run: by(exceeded),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.access_errors",
        title: "requests name memory that they may not use",
        meaning: "A request named a memory key or an address that is not registered for it, or lacks the right. The responder answers with a \
                  NAK, and the queue pair is in the error state: status 10 (remote access error) at the sender.",
        method: "remote access errors between two readings, of requests that came or that were sent: warning",
        source: "IBTA 9.7.5.2.4 (NAK remote access error); mlx5 resp_remote_access_errors and req_remote_access_errors, bnxt_re \
                 remote_access_err, ionic resp_tx_rmt_acc_err",
        next: "Look at the program: memory that was freed or registered again while the peer still uses its key, or a wrong address.",
        severity: Severity::Warning,
        run: by(refused),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.pcie_stalled",
        title: "the adapter waits for PCIe",
        meaning: "The adapter had data for memory, or wanted some, and PCIe gave it no credits. Its receive buffer fills: it pauses its neighbour, \
                  or drops.",
        method: "seconds in which requests were stalled for more than 30 % of the time: 10 % or more of the seconds between two readings, or any \
                 with pauses sent or packets discarded meanwhile, is a warning; less, and 30 % of the last second, is a note",
        source: "Linux mlx5 counters.rst: outbound_pci_stalled_wr_events, outbound_pci_stalled_rd_events, outbound_pci_stalled_wr and _rd",
        next: "Look at the width and speed of the slot, at IOMMU and ACS, at the NUMA node of the memory, and at what else is below the same PCIe switch.",
        severity: Severity::Warning,
        run: by(stalled),
        ..NO_TEXTS
    },
];

fn changed(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let found = growths.risen(Counter::PortIcrcErrors).map(|(object, count)| {
        let all = growths
            .sum(Counter::PortReceivedPackets, object)
            .filter(|packets| *packets > 0.0);
        let is_much = all.is_none_or(|all| count / all > BROKEN_SHARE);
        let share = of_all(count, all, "received");
        let text = format!("{} with a wrong ICRC{share}", counted(count, "packet"));
        CounterSign::new(growths, severity(is_much), object, &text)
            .and("a device on the way changed them, and the adapter dropped them")
            .number("icrc_errors", count)
            .counted("received_packets", all)
    });
    found.collect()
}

fn exceeded(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let used_up = |count: f64, after: &str| {
        let pronoun = if count > 1.0 { "their" } else { "its" };
        format!(
            "{} used up {pronoun} retries{after}",
            counted(count, "queue pair")
        )
    };
    let unanswered = growths
        .risen(Counter::PortRetriesExceeded)
        .map(|(object, count)| {
            let timeouts = growths
                .sum(Counter::PortAckTimeouts, object)
                .filter(|timeouts| *timeouts > 0.0);
            let after = timeouts.map_or_else(String::new, |timeouts| {
                format!(", beside {}", counted(timeouts, "timeout"))
            });
            CounterSign::new(growths, Severity::Warning, object, &used_up(count, &after))
                .and("the peer did not answer, and the connection broke")
                .number("retries_exceeded", count)
                .counted("timeouts", timeouts)
        });
    let not_ready = growths
        .risen(Counter::PortRnrRetriesExceeded)
        .map(|(object, count)| {
            let naks = growths
                .sum(Counter::PortRnrNaksReceived, object)
                .filter(|naks| *naks > 0.0);
            let after = naks.map_or_else(String::new, |naks| {
                format!(", after {}", counted(naks, "RNR NAK"))
            });
            CounterSign::new(growths, Severity::Warning, object, &used_up(count, &after))
                .and("the peer's program posted no receive in time, and the connection broke")
                .number("rnr_retries_exceeded", count)
                .counted("rnr_naks", naks)
        });
    unanswered.chain(not_ready).collect()
}

fn refused(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (sample, count) in growths
        .of(Counter::PortAccessErrors)
        .filter(|(_, count)| *count > 0.0)
    {
        let is_own = sample.details.iter().any(|side| side == "requester");
        let text = counted(count, "remote access error");
        let follows = if is_own {
            "the peer refused this host's requests: their memory key or address was not valid there"
        } else {
            "requests of peers named memory that this host had not registered for them"
        };
        let sign = CounterSign::new(growths, Severity::Warning, &sample.object, &text).and(follows);
        found.push(sign.number("access_errors", count));
    }
    found
}

/// Stalls of one direction of an interface's requests.
#[derive(Default)]
struct StalledRequests {
    seconds: Option<f64>,
    last_second: Option<f64>,
}

fn stalled(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let mut all: BTreeMap<(&str, &str), StalledRequests> = BTreeMap::new();
    for (sample, growth) in growths.of(Counter::PcieStalledSeconds) {
        all.entry((&*sample.object, direction(sample)))
            .or_default()
            .seconds = Some(growth);
    }
    for sample in growths.states(Counter::PcieStalledRatio) {
        all.entry((&*sample.object, direction(sample)))
            .or_default()
            .last_second = Some(sample.value);
    }
    let found = all.into_iter().filter_map(|((object, kind), stalls)| {
        let seconds = stalls.seconds.filter(|seconds| *seconds > 0.0);
        let last = stalls.last_second.filter(|share| *share >= STALLED_SECOND);
        let share = seconds.and_then(|seconds| growths.per_second(seconds));
        // Seconds that did not pass were not stalled.
        let is_possible = share.is_none_or(|share| share <= MAX_STALLED_SHARE);
        let text = match (seconds, last) {
            (Some(seconds), _) => {
                let of_time = share.filter(|_| is_possible).map_or_else(String::new, |share| {
                    format!(", {} of the time,", share_text(share.min(1.0)))
                });
                format!("PCIe {kind}s stalled in {}{of_time}", counted(seconds, "second"))
            }
            (None, Some(last)) => format!("PCIe {kind}s stalled for {} of the last second", share_text(last)),
            (None, None) => return None,
        };
        let effects = effects(growths, object);
        let is_much =
            is_possible && (!effects.is_empty() || share.is_some_and(|share| share >= STALLED_SHARE));
        let severity = severity(is_much);
        let sign = if seconds.is_some() {
            CounterSign::new(growths, severity, object, &text)
        } else {
            CounterSign::untimed(severity, object, &text)
        };
        let sign = sign.and(&effects.join(" and "));
        let sign = if is_possible {
            sign
        } else {
            sign.and("more seconds than passed: the counter, or the time between the readings, is not right")
        };
        Some(
            sign.counted("stalled_seconds", seconds)
                .counted("last_second", stalls.last_second),
        )
    });
    found.collect()
}

/// Pauses that an interface sent meanwhile, and packets that it discarded, in words.
fn effects(growths: &Growths<'_>, object: &str) -> Vec<String> {
    let pauses = [Counter::PfcTransmittedFrames, Counter::PauseTransmittedFrames];
    let pauses = growths.sum_of(&pauses, object).unwrap_or(0.0);
    let discards: f64 = growths
        .of_object(Counter::NetdevDiscards, object)
        .filter(|(sample, _)| direction(sample) == "received")
        .map(|(_, growth)| growth)
        .sum();
    let mut all = Vec::new();
    if pauses > 0.0 {
        all.push(format!("it sent {} meanwhile", counted(pauses, "pause frame")));
    }
    if discards > 0.0 {
        all.push(format!("it discarded {}", counted(discards, "received packet")));
    }
    all
}
