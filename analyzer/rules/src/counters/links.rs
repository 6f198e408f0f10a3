//! Links: broken frames, symbol errors, links that retrain or go down, counters that stand at their limit.

use std::collections::BTreeSet;

use roce_model::{Counter, Severity};
use roce_spelling::{counted, whole};

use super::growth::{Growths, is_port};
use super::ports::{direction, of_all, packets};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by, severity};

/// Share of a port's packets from which on broken ones are a warning: IEEE 802.3 allows one wrong bit in 1e12, which is one frame of
/// 1,250 bytes in 1e8.
pub(super) const BROKEN_SHARE: f64 = 1e-8;
/// Broken frames or symbols per second below which they are a note: one an hour.
const BROKEN_PER_SECOND: f64 = 1.0 / 3600.0;
/// Counters of InfiniBand's management datagrams, which stop at the largest number of 16 or 8 bits (IBTA 16.1.3.5, PortCounters), and
/// their names in sysfs.
const LIMITS: [(Counter, f64, &str); 4] = [
    (Counter::PhySymbolErrors, 65_535.0, "symbol_error"),
    (Counter::PortReceiveErrors, 65_535.0, "port_rcv_errors"),
    (Counter::PhyLinkRecoveries, 255.0, "link_error_recovery"),
    (Counter::PhyLinkDowns, 255.0, "link_downed"),
];

pub(super) const RULES: &[CounterRule] = &[
    CounterRule {
        id: "counters.broken_frames",
        title: "a link delivers broken frames",
        meaning: "Frames arrive with a wrong check sequence and are dropped, or symbols of the link are wrong: cable, optics or connector.",
        method: "more than one broken frame or symbol in 100,000,000 packets between two readings, or any where packets are not counted: warning; \
                 fewer, one alone, or less than one an hour: note",
        source: "IEEE 802.3: bit error ratio 1e-12; Cisco NX-OS FCS-Err; ESXi Receive CRC errors; mlx5 rx_crc_errors_phy and rx_pcs_symbol_err_phy; IF-MIB ifInErrors; \
                 InfiniBand SymbolErrorCounter and PortRcvErrors (IBTA 16.1.3.5); bnxt_re rx_roce_errors; hns rx_err_pkt",
        next: "Clean or replace cable and optics of this port; compare the errors of the other end.",
        severity: Severity::Warning,
        run: by(broken),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.link_unsteady",
        title: "a link retrains or goes down",
        meaning: "The link was down, or recovered from errors without going down. Nothing passes meanwhile, and senders run into timeouts.",
        method: "times that the link went down, recovered or changed its state, between two readings, and a port that was up and is down: warning; \
                 one that came up: note; those since a restart are of the start and not judged",
        source: "Arista EOS show interfaces (link status changes); Cisco NX-OS show interface (interface resets); SONiC show interfaces counters \
                 (STATE); InfiniBand LinkDownedCounter and LinkErrorRecoveryCounter (IBTA 16.1.3.5); mlx5 link_down_events_phy; rxe link_downed",
        next: "Look at cable and optics, at the log of the other end, and whether somebody set the port down.",
        severity: Severity::Warning,
        run: by(unsteady),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.at_limit",
        title: "counters of InfiniBand stand below their limits",
        meaning: "Error counters of InfiniBand ports stop at the largest number that they hold, and do not show later errors.",
        method: "symbol_error and port_rcv_errors at 65,535, link_error_recovery and link_downed at 255: note",
        source: "IBTA 16.1.3.5, PortCounters: a counter that is at its maximum stays there until it is reset",
        next: "Clear the counters of this port (perfquery -R) and read them again.",
        severity: Severity::Info,
        run: by(at_limit),
        ..NO_TEXTS
    },
];

fn broken(growths: &Growths<'_>) -> Vec<CounterSign> {
    let counters = [
        Counter::SwitchInterfaceFcsErrors,
        Counter::SwitchInterfaceErrors,
        Counter::PhyCrcErrors,
        Counter::PhySymbolErrors,
        Counter::PortReceiveErrors,
        Counter::HypervisorErrors,
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
        let received = received.max(sum(Counter::PortReceiveErrors));
        let of_hypervisor: f64 = growths
            .of_object(Counter::HypervisorErrors, object)
            .filter(|(sample, _)| sample.details.get(1).is_some_and(|reason| reason == "crc"))
            .map(|(_, growth)| growth)
            .sum();
        let fcs = sum(Counter::SwitchInterfaceFcsErrors) + sum(Counter::PhyCrcErrors) + of_hypervisor;
        let symbols = sum(Counter::PhySymbolErrors);
        let frames = fcs.max(received);
        // Wrong symbols break the frames: they are not more of them.
        let count = if frames > 0.0 { frames } else { symbols };
        let is_host = sum(Counter::SwitchInterfaceErrors) + sum(Counter::SwitchInterfaceFcsErrors) == 0.0;
        if count <= 0.0 || is_host && growths.is_total() {
            continue;
        }
        let all = packets(growths, object, "received");
        let is_much = all.is_none_or(|all| count / all > BROKEN_SHARE) && is_frequent(growths, count);
        if growths.is_total() && !is_much {
            continue;
        }
        let share = of_all(frames, all, "received");
        let mut parts = Vec::new();
        if fcs > 0.0 {
            parts.push(format!(
                "{} with a wrong check sequence (FCS){share}",
                counted(fcs, "frame")
            ));
        } else if received > 0.0 {
            parts.push(format!(
                "{} received with errors{share}",
                counted(received, "frame")
            ));
        }
        if symbols > 0.0 {
            parts.push(format!("{} received in error", counted(symbols, "symbol")));
        }
        let text = parts.join(", and ");
        let sign = CounterSign::new(growths, severity(is_much), object, &text);
        let sign = sign
            .and("a cable, optics or a connector")
            .number("broken_frames", frames)
            .number("symbol_errors", symbols);
        found.push(sign.counted("received_packets", all));
    }
    found
}

/// True if events are more than the bit errors that a standard allows a link: more than one, and one an hour or more where the time is
/// known. IEEE 802.3's bit error ratio of 1e-12 is a wrong bit in 100 s at 10 Gbit/s.
fn is_frequent(growths: &Growths<'_>, count: f64) -> bool {
    growths.is_total()
        || count > 1.0
            && growths
                .per_second(count)
                .is_none_or(|rate| rate >= BROKEN_PER_SECOND)
}

fn unsteady(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() || growths.is_since_restart() {
        return Vec::new();
    }
    let objects = growths.objects(&[Counter::PhyLinkDowns, Counter::PhyLinkRecoveries]);
    let found = objects.into_iter().filter_map(|object| {
        let sum = |counter| growths.sum(counter, object).unwrap_or(0.0);
        let (downs, recoveries) = (sum(Counter::PhyLinkDowns), sum(Counter::PhyLinkRecoveries));
        let mut parts = Vec::new();
        if downs > 0.0 {
            parts.push(format!("went down {}", counted(downs, "time")));
        }
        if recoveries > 0.0 {
            parts.push(format!("recovered from errors {}", counted(recoveries, "time")));
        }
        if parts.is_empty() {
            return None;
        }
        let text = format!("the link {}", parts.join(", and "));
        let sign = CounterSign::new(growths, Severity::Warning, object, &text);
        let sign = sign.and("nothing passes meanwhile");
        Some(sign.number("downs", downs).number("recoveries", recoveries))
    });
    let mut found: Vec<CounterSign> = found.collect();
    for object in growths.objects(&[Counter::SwitchInterfaceLinkChanges]) {
        let changes: f64 = growths
            .of_object(Counter::SwitchInterfaceLinkChanges, object)
            .filter(|(sample, _)| is_port(sample))
            .map(|(_, growth)| growth)
            .sum();
        if changes > 0.0 {
            let text = format!(
                "the link changed its state, or was reset, {}",
                counted(changes, "time")
            );
            let sign = CounterSign::new(growths, Severity::Warning, object, &text);
            found.push(sign.and("nothing passes meanwhile").number("changes", changes));
        }
    }
    for (object, is_up) in growths.turned() {
        // A count says more.
        if found.iter().any(|sign| sign.object == *object) {
            continue;
        }
        let sign = if *is_up {
            CounterSign::new(
                growths,
                Severity::Info,
                object,
                "the link was down, and is up now",
            )
        } else {
            CounterSign::new(
                growths,
                Severity::Warning,
                object,
                "the link went down, and is down now",
            )
            .and("nothing passes")
        };
        found.push(sign);
    }
    found
}

fn at_limit(growths: &Growths<'_>) -> Vec<CounterSign> {
    let mut found = Vec::new();
    for (counter, limit, name) in LIMITS {
        // Ports of RDMA devices have a number. Interfaces count in 64 bits.
        let stands = growths
            .states(counter)
            .filter(|sample| sample.object.contains(':') && sample.value.total_cmp(&limit).is_eq());
        for sample in stands {
            let text = format!(
                "{name} stands at {}, where it stops: errors behind it are not counted",
                whole(limit)
            );
            found.push(CounterSign::untimed(Severity::Info, &sample.object, &text).number("limit", limit));
        }
    }
    found
}
