//! Failures that an adapter counts itself: packets that were changed on the way, connections that broke, stalls of its PCIe link.

use std::collections::BTreeMap;

use roce_model::{Counter, Severity};
use roce_spelling::counted;

use super::growth::{Growths, share_text};
use super::links::BROKEN_SHARE;
use super::ports::{direction, of_all, severity};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by};

/// Share of the time from which on seconds with stalls are a warning, where it is known.
const STALLED_SHARE: f64 = 0.10;
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
        meaning: "A sender repeated a request as often as it may and got no answer. The queue pair is in the error state, and its program sees \
                  'transport retry counter exceeded' (status 12).",
        method: "queue pairs that used up their retries between two readings: warning",
        source: "IBTA 9.9.2.1 (retry counter); rxe retry_exceeded_err, bnxt_re max_retry_exceeded",
        next: "Look at the peer of that time: is it up, is its port up, does its program still run? Then at losses on the way.",
        severity: Severity::Warning,
        run: by(exceeded),
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
    let found = growths
        .risen(Counter::PortRetriesExceeded)
        .map(|(object, count)| {
            let timeouts = growths
                .sum(Counter::PortAckTimeouts, object)
                .filter(|timeouts| *timeouts > 0.0);
            let after = timeouts.map_or_else(String::new, |timeouts| {
                format!(", beside {}", counted(timeouts, "timeout"))
            });
            let pronoun = if count > 1.0 { "their" } else { "its" };
            let text = format!(
                "{} used up {pronoun} retries{after}",
                counted(count, "queue pair")
            );
            CounterSign::new(growths, Severity::Warning, object, &text)
                .and("the peer did not answer, and the connection broke")
                .number("retries_exceeded", count)
                .counted("timeouts", timeouts)
        });
    found.collect()
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
        let text = match (seconds, last) {
            (Some(seconds), _) => {
                let of_time = share.map_or_else(String::new, |share| {
                    format!(", {} of the time,", share_text(share.min(1.0)))
                });
                format!("PCIe {kind}s stalled in {}{of_time}", counted(seconds, "second"))
            }
            (None, Some(last)) => format!("PCIe {kind}s stalled for {} of the last second", share_text(last)),
            (None, None) => return None,
        };
        let effects = effects(growths, object);
        let is_much = !effects.is_empty() || share.is_some_and(|share| share >= STALLED_SHARE);
        let severity = severity(is_much);
        let sign = if seconds.is_some() {
            CounterSign::new(growths, severity, object, &text)
        } else {
            CounterSign::untimed(severity, object, &text)
        };
        let sign = sign.and(&effects.join(" and "));
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
