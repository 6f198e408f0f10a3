//! Adapters of one host that are alike: one that carries nothing, less, or all losses.

use roce_model::{Counter, Severity};
use roce_spelling::{bytes, counted, whole};

use super::growth::{Growths, share_text};
use super::losses::lost;
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by};

/// Bytes of the busiest port from which on its twins are compared.
const MIN_BYTES: f64 = 1e9;
/// Share of the busiest port's bytes below which a twin carries nothing.
const NOTHING_SHARE: f64 = 0.01;
/// Share of the busiest of two ports from which on the other one is taken for its rail; one with less may be for storage.
const RAIL_SHARE: f64 = 0.1;
/// Losses and pauses of a port from which on they say why it carries less, and how often those of the busiest port they are.
const MIN_TROUBLE: f64 = 100.0;
const MORE_TROUBLE: f64 = 2.0;
/// Share of the busiest port's bytes below which a twin carries too little.
const LITTLE_SHARE: f64 = 0.5;
/// Losses of one port from which on its twins are compared.
const MIN_LOSSES: f64 = 100.0;
/// Share of one port's losses below which a twin has none.
const NO_LOSSES_SHARE: f64 = 0.01;

pub(super) const RULES: &[CounterRule] = &[CounterRule {
    id: "counters.twins",
    title: "ports that are alike are used alike",
    meaning: "Ports of one speed in one host are rails: a job that uses several gives each the same. One that carries less, or that alone has \
              losses, slows all. One that carries nothing is left out by a setting, or is down.",
    method: "RDMA ports of one rate, the busiest with 1 GB or more: one with less than half of its bytes is a note, as an adapter for storage looks like \
             that; a warning where it has 10 % and is one of two, or is one in three or fewer, and has losses or pauses, twice as many as the busiest. One with 100 losses or more, where a port with half of its bytes has less than 1 % of them: warning",
    source: "NVIDIA NCCL: channels are spread over all adapters of NCCL_IB_HCA",
    next: "Compare rate, MTU, cable and switch port of the two; look at NCCL_IB_HCA and the job's log for the adapters that it uses.",
    severity: Severity::Warning,
    confidence: "likely",
    run: by(twins),
    ..NO_TEXTS
}];

/// A port with its bytes and losses.
struct TwinPort<'a> {
    object: &'a str,
    bytes: f64,
    losses: f64,
    /// Pause frames of its interface, sent and received.
    pauses: f64,
}

const BYTES: [Counter; 2] = [Counter::PortReceivedBytes, Counter::PortTransmittedBytes];

const PAUSES: [Counter; 4] = [
    Counter::PfcReceivedFrames,
    Counter::PfcTransmittedFrames,
    Counter::PauseReceivedFrames,
    Counter::PauseTransmittedFrames,
];

fn twins(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let mut rates: Vec<(u64, Vec<TwinPort<'_>>)> = Vec::new();
    for object in growths.objects(&BYTES) {
        // Ports have a number, queue pairs more.
        let (Some(rate), Some(carried)) = (growths.rate(object), growths.sum_of(&BYTES, object)) else {
            continue;
        };
        let port = TwinPort {
            object,
            bytes: carried,
            losses: lost(growths, object),
            pauses: pauses(growths, object),
        };
        let rate = rate.to_bits();
        match rates.iter_mut().find(|(known, _)| *known == rate) {
            Some((_, ports)) => ports.push(port),
            None => rates.push((rate, vec![port])),
        }
    }
    rates
        .iter()
        .flat_map(|(_, ports)| compared(growths, ports))
        .collect()
}

/// Pause frames of the interfaces that are known to be a port's.
fn pauses(growths: &Growths<'_>, port: &str) -> f64 {
    let interfaces = growths.objects(&PAUSES).into_iter();
    interfaces
        .filter(|interface| growths.belongs(interface, port))
        .filter_map(|interface| growths.sum_of(&PAUSES, interface))
        .fold(0.0, |all, count| all + count)
}

fn compared(growths: &Growths<'_>, ports: &[TwinPort<'_>]) -> Vec<CounterSign> {
    let Some(busiest) = ports.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if busiest.bytes >= MIN_BYTES {
        let odd = ports
            .iter()
            .filter(|port| port.bytes < busiest.bytes * LITTLE_SHARE)
            .count();
        for port in ports {
            let share = port.bytes / busiest.bytes;
            if share >= LITTLE_SHARE {
                continue;
            }
            let is_idle = share < NOTHING_SHARE;
            // A few ports that differ are odd ones among rails; many have another purpose.
            let is_rail = if ports.len() == 2 {
                share >= RAIL_SHARE
            } else {
                odd * 3 <= ports.len()
            };
            let trouble = |port: &TwinPort<'_>| port.losses + port.pauses;
            let is_hurt = trouble(port) >= MIN_TROUBLE && trouble(port) > trouble(busiest) * MORE_TROUBLE;
            let severity = if is_rail && is_hurt && !is_idle {
                Severity::Warning
            } else {
                Severity::Info
            };
            let carried = if port.bytes == 0.0 {
                "nothing".to_owned()
            } else {
                size(port.bytes)
            };
            let text = format!(
                "carried {carried}, and its twin {} {}",
                busiest.object,
                size(busiest.bytes)
            );
            let follows = if is_idle {
                "it is not used".to_owned()
            } else if is_rail && is_hurt {
                format!(
                    "{} of it, with {} and {}: a job over both waits for this one",
                    share_text(share),
                    counted(port.losses, "lost packet"),
                    counted(port.pauses, "pause frame")
                )
            } else if is_rail {
                format!(
                    "{} of it: a job over both waits for this one; an adapter for storage may carry less",
                    share_text(share)
                )
            } else if ports.len() > 2 {
                format!(
                    "{} of it, where several differ: it may have another purpose",
                    share_text(share)
                )
            } else {
                format!("{} of it: it may have another purpose", share_text(share))
            };
            let sign = CounterSign::new(growths, severity, port.object, &text).and(&follows);
            found.push(
                sign.number("bytes", port.bytes)
                    .number("twin_bytes", busiest.bytes),
            );
        }
    }
    for port in ports.iter().filter(|port| port.losses >= MIN_LOSSES) {
        let clean = ports.iter().find(|twin| {
            twin.bytes >= MIN_BYTES
                && twin.bytes >= port.bytes * LITTLE_SHARE
                && twin.losses < port.losses * NO_LOSSES_SHARE
        });
        if let Some(clean) = clean {
            let none = if clean.losses == 0.0 {
                "none".to_owned()
            } else {
                losses_text(clean.losses)
            };
            let text = format!(
                "{} (packets out of sequence, sequence NAKs or timeouts), and its twin {} {none}",
                losses_text(port.losses),
                clean.object
            );
            let sign = CounterSign::new(growths, Severity::Warning, port.object, &text);
            found.push(
                sign.and("the trouble is on this rail alone")
                    .number("losses", port.losses),
            );
        }
    }
    found
}

/// Losses in words: `1 loss`, `2 losses`.
fn losses_text(count: f64) -> String {
    let count = whole(count);
    let noun = if count == "1" { "loss" } else { "losses" };
    format!("{count} {noun}")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of counters of bytes is not negative and fits"
)]
fn size(count: f64) -> String {
    bytes(count as u64)
}
